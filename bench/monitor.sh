#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the accounting in the kernel adds to a pair of calls, in instructions: the lab's
# clock counts them. Usage: monitor.sh [BUILD-DIRECTORY [KERNEL]]
#
# Exits with 1 when a pair of a queue pair costs more than 5 % more by fentry, or the data
# path anything at all.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-$PWD/build} kernel=${2:-6.1}

measure='
pairs=$1/bench/kernelpairs monitor=$1/rdma_monitor
row() {
	printf "%s" "$1"
	for operation in qp mr pd cq post_recv poll_cq; do
		printf " %s" "$("$pairs" $operation 500)"
	done
	echo
}
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
"$monitor" --unload
"$monitor" --once --hooks kprobe >/dev/null 2>&1
[ ! -e /sys/fs/bpf/rdma_intercept/links/commit ] || row kprobe
"$monitor" --unload
row without'

lab/run --kernel "$kernel" --icount --timeout 900 -- bash -c "$measure" measure "$build" | awk '
	BEGIN { split("qp mr pd cq post_recv poll_cq", name, " "); printf "%-10s", "" ; for (i = 1; i <= 6; i++) printf " %16s", name[i]; print "" }
	$1 == "without" && !have { have = 1; for (i = 1; i <= 6; i++) base[i] = $(i + 1) }
	{
		printf "%-10s", $1
		for (i = 1; i <= 6; i++)
			printf " %8d %+6.1f%%", $(i + 1), 100 * ($(i + 1) - base[i]) / base[i]
		print ""
	}
	$1 == "fentry" {
		measured = 1
		if ($2 > 1.05 * base[1]) { print "MISSED: a queue pair costs more than 5 % more"; failed = 1 }
		if ($6 > base[5] + 1 || $7 > base[6] + 1) { print "MISSED: the data path costs more"; failed = 1 }
	}
	END { if (!measured) { print "MISSED: nothing was measured by fentry"; failed = 1 }; exit failed }'
