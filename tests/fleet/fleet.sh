# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of and for the scripts
# A fleet on this machine: members of etcd on loopback, and hosts, each of them a collector and an
# rdma_fleet. The scripts beside it source this.

# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

for needed in etcd etcdctl; do
	command -v $needed >/dev/null || {
		echo "skipped: $needed is not installed: etcd-server and etcd-client have it"
		exit 77
	}
done
export ETCDCTL_API=3
command=$build/rdma_intercept fleet=$build/rdma_fleet
scheme=etcd web=http user_of_etcd=() etcd_options=()
lease=5

# A port of loopback that nothing listens on now.
port_free() {
	local tries hex

	for ((tries = 0; tries < 1000; tries++)); do
		port=$((20000 + RANDOM % 12000))
		printf -v hex ':%04X ' "$port"
		[[ " ${ports-} " != *" $port "* ]] || continue
		grep -q "$hex" /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
	done
	ports="${ports-} $port"
}

# etcd_run NUMBER: starts a member, again with what it has on disk
etcd_run() {
	background etcd --name "m$1" --data-dir "$work/etcd$1" "${etcd_options[@]}" --logger zap \
		--listen-client-urls "$web://127.0.0.1:${client_port[$1]}" \
		--advertise-client-urls "$web://127.0.0.1:${client_port[$1]}" \
		--listen-peer-urls "http://127.0.0.1:${peer_port[$1]}" \
		--initial-advertise-peer-urls "http://127.0.0.1:${peer_port[$1]}" \
		--initial-cluster "$cluster" --initial-cluster-token "$work" \
		--auto-tls=false --unsafe-no-fsync >>"$work/etcd$1.log" 2>&1 &
	etcd_pid[$1]=$!
	workers+=($!)
}

# etcd_start MEMBERS: a new cluster; its address is in $policy_address and $endpoints
etcd_start() {
	local i addresses=''

	etcd_end
	cluster='' endpoints='' members=$1
	for ((i = 0; i < $1; i++)); do
		port_free && client_port[i]=$port
		port_free && peer_port[i]=$port
		cluster+="${cluster:+,}m$i=http://127.0.0.1:${peer_port[i]}"
		endpoints+="${endpoints:+,}$web://127.0.0.1:${client_port[i]}"
		addresses+="${addresses:+,}127.0.0.1:${client_port[i]}"
	done
	policy_address=$scheme://$addresses/rdma
	for ((i = 0; i < $1; i++)); do
		rm -rf "$work/etcd$i"
		etcd_run "$i"
	done
	if ! eventually ctl endpoint health; then
		tail -n 5 "$work"/etcd*.log
		exit 1
	fi
}

ctl() {
	etcdctl --endpoints "$endpoints" "${user_of_etcd[@]}" "$@" >"$work/ctl" 2>&1
}

kill_now() {
	! is_own "$1" || kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null || true
}

etcd_end() {
	local i

	for ((i = 0; i < ${members-0}; i++)); do
		kill_now "${etcd_pid[i]}"
	done
	members=0
}

# A command of the fleet, as people type it.
fleet_command() {
	"$fleet" --policy "$policy_address" "${fleet_options[@]}" "$@"
}
fleet_options=()

# ---- hosts

hosts=() host_prefix=()
declare -A host_names=() # of a host NAME, instead of host-NAME

collector_run() {
	background "${host_prefix[@]}" "$build/collector_server" --socket "$work/$1/socket" --policy "$work/$1/policy.conf" \
		>>"$work/$1/collector.log" 2>&1 &
	printf -v "collector_$1" %s $!
	workers+=($!)
}

fleet_run() {
	background "${host_prefix[@]}" "$fleet" --policy "$policy_address" --directory "$work/$1/fleet" \
		--socket "$work/$1/socket" --host "${host_names[$1]-host-$1}" --lease "$lease" "${fleet_options[@]}" >>"$work/$1/fleet.log" 2>&1 &
	printf -v "fleet_$1" %s $!
	workers+=($!)
}

answers_on() {
	"$command" -s "$work/$1/socket" status >/dev/null 2>&1
}

# host_start NAME...
host_start() {
	local name

	for name in "$@"; do
		rm -rf "${work:?}/$name"
		mkdir -p "$work/$name/fleet"
		mkdir -m 700 "$work/$name/state"
		printf '[collector]\nfleet = %s\nstate = %s\n[tenant ml]\nmatch = uid=%s\n' \
			"$work/$name/fleet" "$work/$name/state" "$(id -u)" >"$work/$name/policy.conf"
		collector_run "$name"
		eventually answers_on "$name" || cat "$work/$name/collector.log"
		fleet_run "$name"
		hosts+=("$name")
	done
}

pid_of() { # collector|fleet NAME
	local name=$1_$2

	echo "${!name}"
}

hosts_end() {
	local name

	for name in "${hosts[@]}"; do
		kill -CONT "$(pid_of fleet "$name")" 2>/dev/null
		kill_now "$(pid_of fleet "$name")"
		kill_now "$(pid_of collector "$name")"
	done
	hosts=()
}

# limit_on NAME [KIND]: the limit of the tenant ml in force, as its collector says it
limit_on() {
	"$command" -s "$work/$1/socket" limit get tenant ml 2>/dev/null |
		awk -v kind="${2-qp}" '$2 == "ml" && $3 == kind { print $4 }'
}

# limit_is LIMIT NAME...: in force on all of these
limit_is() {
	local limit=$1 name

	shift
	for name in "$@"; do
		[ "$(limit_on "$name")" = "$limit" ] || return 1
	done
}

milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}
