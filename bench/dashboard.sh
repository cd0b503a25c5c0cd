#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What watching costs: bench/dashboard, and a real collector with 1,000 tenants and 4,000 processes
# that the dashboard, a page and `top` watch. Exits with 1 when a target is missed. Needs root.
# Usage: dashboard.sh [BUILD-DIRECTORY]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
work=$(mktemp -d)
chmod 755 "$work"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
missed=0
tenants=1000 processes=4000 first_uid=100000 seconds=20

"$build/bench/dashboard" || missed=1

for ((i = 0; i < tenants; i++)); do
	printf '[tenant t%d]\nmatch = uid=%d\nqp = 100\n' "$i" $((first_uid + i))
done >"$work/policy"
"$build/collector_server" --policy "$work/policy" --socket "$work/socket" --state "$work/state" --log "$work/log" &
collector=$!
pids+=("$collector")
until [ -S "$work/socket" ]; do sleep 0.1; done
chmod 666 "$work/socket"
mkfifo "$work/crowd"
"$build/bench/crowd" "$work/socket" $tenants $processes $first_uid <"$work/crowd" >"$work/ready" &
pids+=($!)
exec 3>"$work/crowd" # it lives until this is closed
until [ -s "$work/ready" ]; do
	kill -0 "${pids[-1]}"
	sleep 0.1
done
cat "$work/ready"

# ticks PID: of processor time, in hundredths of a second
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# target WHAT VALUE UNIT MOST
target() {
	awk -v what="$1" -v value="$2" -v unit="$3" -v most="$4" 'BEGIN {
		printf "%-52s %8.2f %s%s\n", what, value, unit, value < most ? "" : "  MISSED: less than " most " is the target"
		exit value >= most
	}' || missed=1
}
# percent TICKS: of a core, in the seconds of one measurement
percent() { awk -v ticks="$1" -v seconds=$seconds 'BEGIN { print ticks / seconds }'; }
# measure: the ticks of collector and dashboard in that time
measure() {
	local begun=("$(ticks "$collector")" "$([ -z "${dashboard-}" ] || ticks "$dashboard")")
	sleep $seconds
	collector_ticks=$(($(ticks "$collector") - begun[0]))
	[ -z "${dashboard-}" ] || dashboard_ticks=$(($(ticks "$dashboard") - begun[1]))
}

sleep 2
measure
alone=$collector_ticks
echo "the collector alone: $(percent "$alone") % of a core"
"$build/rdma_dashboard" --socket "$work/socket" --state "$work/dashboard" --listen 127.0.0.1:0 >"$work/out" 2>/dev/null &
dashboard=$!
pids+=("$dashboard")
until address=$(sed -n 's/^rdma_dashboard: \(.*\)\/$/\1/p' "$work/out") && [ -n "$address" ]; do sleep 0.1; done
sleep 2
measure
target "the collector, for being watched" "$(percent $((collector_ticks - alone)))" "% of a core" 2
target "the dashboard" "$(percent "$dashboard_ticks")" "% of a core" 5
curl -sN -m $((seconds + 5)) "$address/api/live" >"$work/stream" &
pids+=($!)
measure
target "the collector, while a page is open" "$(percent $((collector_ticks - alone)))" "% of a core" 2
target "the dashboard, while a page is open" "$(percent "$dashboard_ticks")" "% of a core" 5
for i in 1 2 3 4 5; do
	sleep 1
	curl -s -o "$work/metrics" -w '%{time_total}\n' "$address/metrics"
done | sort -n >"$work/times"
echo "/metrics: $(wc -c <"$work/metrics") bytes; in seconds: $(tr '\n' ' ' <"$work/times")"
target "memory of the dashboard" "$(awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$dashboard/status")" MB 150
asked=$(date +%s%N)
"$build/rdma_intercept" --socket "$work/socket" top --delay 0.1 >"$work/top" </dev/null
target "one screen of top, read twice" $((($(date +%s%N) - asked) / 1000000)) ms 1000
exit $missed
