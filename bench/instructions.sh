#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Instructions that the library adds to a verb, counted by callgrind on the
# stand-in libibverbs: the same number on every run, however busy the machine.
# A cost is the difference between two numbers of repetitions, so start-up does
# not count. Exits with 1 when a figure is over its budget.
# Usage: instructions.sh [BUILD-DIRECTORY]
set -euo pipefail

command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
build=$(cd "${1:-$(dirname "$0")/../build}" && pwd)
few=200 many=700
work=$(mktemp -d -t rdma_bench.XXXXXX)
shm=${work##*/}
trap 'rm -rf "$work" "/dev/shm/$shm"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# instructions PRELOAD OPERATION COUNT
instructions() {
	env LD_PRELOAD="$1" LD_LIBRARY_PATH="$build/fakeverbs" RDMA_INTERCEPT_SHM_NAME="$shm" \
		RDMA_INTERCEPT_LOG_LEVEL=0 RDMA_INTERCEPT_TRANSPORT=embedded \
		RDMA_INTERCEPT_LIMITS="process:qp=100,mr_bytes=1G;host:qp=1000,mr=1000;device:rxe0:qp=500" \
		valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		"$build/bench/pairs" "$2" "$3" 2>"$work/output" >/dev/null
	sed -n 's/.*Collected : \([0-9]*\)$/\1/p' "$work/output"
}

# per_operation PRELOAD OPERATION
per_operation() {
	local less more
	less=$(instructions "$1" "$2" $few)
	more=$(instructions "$1" "$2" $many)
	echo $(((more - less) / (many - few)))
}

over=0
printf '%-34s %8s %8s %8s %8s\n' 'instructions' bare with added budget
while read -r operation budget text; do
	bare=$(per_operation "" "$operation")
	with=$(per_operation "$build/librdma_intercept.so" "$operation")
	added=$((with - bare))
	verdict=
	if [ "$added" -gt "$budget" ]; then
		verdict='  OVER' over=1
	fi
	printf '%-34s %8d %8d %8d %8d%s\n' "$text" "$bare" "$with" "$added" "$budget" "$verdict"
done <<-ROWS
	pd 700 alloc + dealloc PD
	cq 700 create + destroy CQ
	qp 700 create + destroy QP
	ah 700 create + destroy AH
	mw 700 alloc + dealloc MW (inline verb)
	mr 900 reg + dereg MR
	post_send 0 post_send
	post_recv 0 post_recv
	poll_cq 0 poll_cq
	query_device 0 query_device
ROWS
exit $over
