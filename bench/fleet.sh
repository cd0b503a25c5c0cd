#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Thousands of simulated hosts on a real etcd on this machine's loopback: heartbeats, streams of changes,
# limits, quotas under churn; see fleet.c. docs/fleet-scale.md has what it printed.
# usage: bench/fleet.sh [--members N] [--hosts N] [--quotas N] [--lease SECONDS] [--seconds N]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD_DIRECTORY:-$here/../build}
members=1 hosts=1000 quotas=2 lease=10 seconds=60
while [ $# -gt 0 ]; do
	case $1 in
	--members) members=$2 ;;
	--hosts) hosts=$2 ;;
	--quotas) quotas=$2 ;;
	--lease) lease=$2 ;;
	--seconds) seconds=$2 ;;
	*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	esac
	shift 2
done
for tool in etcd etcdctl; do
	command -v $tool >/dev/null || { echo "$tool is not installed: etcd-server and etcd-client have it" >&2; exit 1; }
done
work=$(mktemp -d -t rdma_bench.XXXXXX)
pids=()
end() {
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
# A connection of each host for its stream, those for calls, and those between the members.
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge $((hosts + 5000)) ] || {
	echo "$hosts hosts need $((hosts + 5000)) open files: see ulimit -Hn" >&2
	exit 1
}
ulimit -Sn "$(ulimit -Hn)"

base=$((20000 + RANDOM % 8000)) cluster='' addresses='' endpoints=''
for ((i = 0; i < members; i++)); do
	cluster+=${cluster:+,}m$i=http://127.0.0.1:$((base + 2 * i + 1))
	addresses+=${addresses:+,}127.0.0.1:$((base + 2 * i))
	endpoints+=${endpoints:+,}http://127.0.0.1:$((base + 2 * i))
done
for ((i = 0; i < members; i++)); do
	etcd --name m$i --data-dir "$work/m$i" --logger zap --log-level error --unsafe-no-fsync \
		--quota-backend-bytes 8000000000 --auto-compaction-mode periodic --auto-compaction-retention 1m \
		--listen-client-urls "http://127.0.0.1:$((base + 2 * i))" \
		--advertise-client-urls "http://127.0.0.1:$((base + 2 * i))" \
		--listen-peer-urls "http://127.0.0.1:$((base + 2 * i + 1))" \
		--initial-advertise-peer-urls "http://127.0.0.1:$((base + 2 * i + 1))" \
		--initial-cluster "$cluster" >"$work/m$i.log" 2>&1 &
	pids+=($!)
done
for ((i = 0; i < 600; i++)); do
	ETCDCTL_API=3 etcdctl --endpoints "$endpoints" endpoint health >/dev/null 2>&1 && break
	sleep 0.1
done
echo "$members member(s) of $(etcd --version | head -n 1), $(nproc) processors, load $(cut -d' ' -f 1 /proc/loadavg)"
"$build/bench/fleet" "etcd://$addresses" "$hosts" "$quotas" "$lease" "$seconds" "${pids[@]}"
echo "database: $(du -sm "$work/m0/member/snap/db" | cut -f 1) MB, log: $(du -sm "$work/m0/member/wal" | cut -f 1) MB"
