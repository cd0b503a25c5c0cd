#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What rdma_monitor adds to a pair of calls in the kernel, in instructions: the lab's clock
# counts them. Usage: monitor.sh [BUILD-DIRECTORY [KERNEL]]
#
# Rows: counting by fentry; with a reader of events; with a guard that does not look at write(),
# for a guarded process; with the guard as it is by default, for a process of no tenant and for one
# that is guarded; counting by kprobes.
# Exits with 1 when a queue pair, of 64 and 64 requests, costs more than 5 % more by counting,
# or 7 % by counting and guarding, or the data path anything at all.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-$PWD/build} kernel=${2:-6.1}

measure='
pairs=$1/bench/kernelpairs monitor=$1/rdma_monitor
row() {
	printf "%s" "$1"
	for operation in qp small_qp mr pd cq post_recv poll_cq ioctl write page; do
		printf " %s" "$("$pairs" $operation 500 </dev/null)"
	done
	echo
}
# guard BUILD-DIRECTORY WRITES WAYS: brings it into force, and ends those who did
guard() {
	printf "[host]\nguard_writes = %s\n[tenant bench]\nmatch = cgroup=/bench/*\nguard = on\nqp = 1000\n" "$2" >/tmp/bench.policy
	"$monitor" --keep >/dev/null 2>&1 &
	keeper=$!
	RDMA_COLLECTOR_STATE=/tmp/bench.state "$1/collector_server" --policy /tmp/bench.policy --socket /tmp/bench.socket >/dev/null 2>&1 &
	collector=$!
	for ((i = 0; i < 300; i++)); do
		! "$1/lab/guardrows" head 2>/dev/null | grep -q "armed 1 ways $3 " || break
		sleep 0.1
	done
	sleep 1
	kill $keeper $collector
	wait $keeper $collector 2>/dev/null
}
inside() { (echo $BASHPID >/sys/fs/cgroup/bench/1/cgroup.procs && row "$1"); }
row warm-up >/dev/null
row without
"$monitor" --once >/dev/null 2>&1
row "$("$monitor" --once -j | grep -o "\"mode\":\"[a-z]*" | cut -d\" -f4)"
"$monitor" --events >/dev/null 2>&1 &
reader=$!
sleep 3
kill -STOP $reader
row events
kill -KILL $reader
wait $reader 2>/dev/null
mkdir -p /sys/fs/cgroup/bench/1
guard "$1" off 3
inside no-writes
guard "$1" on 7
row guard
inside guarded
"$monitor" --unload
"$monitor" --once --hooks kprobe >/dev/null 2>&1
[ ! -e /sys/fs/bpf/rdma_intercept/links/commit ] || row kprobe
"$monitor" --unload
row without'

lab/run --kernel "$kernel" --icount --timeout 900 -- bash -c "$measure" measure "$build" | awk '
	BEGIN { columns = split("qp small_qp mr pd cq post_recv poll_cq ioctl write page", name, " "); printf "%-10s", "" ; for (i = 1; i <= columns; i++) printf " %16s", name[i]; print "" }
	$1 == "without" && !have { have = 1; for (i = 1; i <= columns; i++) base[i] = $(i + 1) }
	{
		printf "%-10s", $1
		for (i = 1; i <= columns; i++)
			printf " %8d %+6.1f%%", $(i + 1), 100 * ($(i + 1) - base[i]) / base[i]
		print ""
	}
	$1 == "fentry" || $1 == "guarded" {
		measured++
		most = $1 == "fentry" ? 5 : 7
		if ($2 > (1 + most / 100) * base[1]) { print "MISSED: a queue pair costs more than " most " % more"; failed = 1 }
		if ($7 > base[6] + 1 || $8 > base[7] + 1) { print "MISSED: the data path costs more"; failed = 1 }
	}
	END { if (measured < 2) { print "MISSED: nothing was measured by fentry, or with the guard"; failed = 1 }; exit failed }'
