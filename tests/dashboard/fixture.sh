# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables for the scripts that source this, and of lib.sh
# A collector and a dashboard for the tests of this directory, each with files of its own and on a
# port that was free.
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_COLLECTOR_STATE=$work/state
export RDMA_MONITOR_DIRECTORY=$work/monitor RDMA_DASHBOARD_STATE=$work/dashboard
export RDMA_COLLECTOR_CGROUPS=$work/cgroups RDMA_COLLECTOR_DEVICES=$work/devices
mkdir "$RDMA_COLLECTOR_CGROUPS" "$RDMA_COLLECTOR_DEVICES"
export LC_ALL=C.UTF-8
command=$build/rdma_intercept
collector_pid='' dashboard_pid='' address=''

if ! command -v curl >/dev/null || ! command -v jq >/dev/null; then
	echo "skipped: curl or jq is not installed"
	exit 77
fi

# policy text: lines of the tenant "ours", to which this user's processes belong
write_policy() {
	cat >"$work/policy.conf" <<-END
		[host]
		qp = 100
		[tenant ours]
		match = uid=$(id -u)
		$1
		[tenant theirs]
		match = uid=4000000
		mr_bytes = 1G
	END
}

collector_answers() {
	"$command" status >/dev/null 2>&1
}
collector_begin() {
	[ -e "$work/policy.conf" ] || write_policy "qp = 4"
	background "$build/collector_server" --policy "$work/policy.conf" --log "$work/collector.log" \
		>>"$work/collector.err" 2>&1 &
	collector_pid=$!
	workers+=("$collector_pid")
	eventually collector_answers || { cat "$work/collector.err"; exit 1; }
}
# end PID: by SIGKILL, and gone when this returns
end() {
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

listens() {
	address=$(sed -n 's/^rdma_dashboard: \(http:.*\)\/$/\1/p' "$work/dashboard.out")
	[ -n "$address" ] && curl -s -o "$work/nothing" "$address/"
}
# shellcheck disable=SC2120 # scripts pass options of the dashboard
dashboard_begin() {
	: >"$work/dashboard.out"
	background "$build/rdma_dashboard" --listen 127.0.0.1:0 --unix "$work/http" "$@" \
		>"$work/dashboard.out" 2>>"$work/dashboard.err" &
	dashboard_pid=$!
	workers+=("$dashboard_pid")
	eventually listens || { cat "$work/dashboard.err"; exit 1; }
	port=${address##*:}
}
# both_begin: collector and dashboard, unless they run
both_begin() {
	[ -z "$dashboard_pid" ] || return 0
	collector_begin
	dashboard_begin
	eventually metric 'rdma_intercept_collector_up 1'
}

# fetch path [curl's arguments...]: the body in $work/out, the status in $code
fetch() {
	local path=$1

	shift
	code=$(curl -s -o "$work/out" -w '%{http_code}' "$@" "$address$path") || code=000
	: >"$work/err"
}
# gets code path [argument...]: with this status
gets() {
	local wanted=$1

	shift
	fetch "$@"
	echo "status $code, wanted $wanted"
	[ "$code" = "$wanted" ]
}
# holds filter: jq's filter is true of the last body
holds() {
	jq -e "$1" "$work/out" >"$work/jq"
}
# knows path filter: the body of the path holds it
knows() {
	fetch "$1" && [ "$code" = 200 ] && holds "$2"
}
# metric line: /metrics has it
metric() {
	fetch /metrics && grep -qxF "$1" "$work/out"
}
# makes worker count: so many QPs, which it keeps
makes() {
	local i

	for ((i = 0; i < $2; i++)); do
		ask "$1" qp ok || return 1
	done
}
