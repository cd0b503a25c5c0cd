#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Instructions that the library adds to a verb, counted by callgrind on the
# stand-in libibverbs: the same number on every run, however busy the machine.
# A cost is the difference between two numbers of repetitions, so start-up does
# not count. Posts are counted without a pace, with one that is never reached, and after one was
# taken off by a collector. Exits with 1 when a figure is over its budget.
# Usage: instructions.sh [BUILD-DIRECTORY]
set -euo pipefail

command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
build=$(cd "${1:-$(dirname "$0")/../build}" && pwd)
few=200 many=700
work=$(mktemp -d -t rdma_bench.XXXXXX)
shm=${work##*/}
collector=''
finish() {
	[ -z "$collector" ] || { kill "$collector" && wait "$collector"; } || true
	rm -rf "$work" "/dev/shm/$shm"
}
trap finish EXIT
trap 'exit 1' HUP INT PIPE TERM

export RDMA_COLLECTOR_SOCKET=$work/sock
pace_set() { "$build/rdma_intercept" limit set default "pace.bytes=$1" >"$work/set" 2>&1; }
: >"$work/policy.conf"
"$build/collector_server" --socket "$work/sock" --state "$work/state" --policy "$work/policy.conf" \
	>"$work/collector" 2>&1 &
collector=$!
while ! "$build/rdma_intercept" status >/dev/null 2>&1; do
	kill -0 $collector 2>/dev/null || { cat "$work/collector" && exit 1; }
	sleep 0.05
done

# instructions PRELOAD OPERATION COUNT WAY. The ways: plain; paced; freed, of a pace that is taken
# off when the program has its objects.
instructions() {
	local way=(RDMA_INTERCEPT_TRANSPORT=embedded)
	case $4 in
	paced) way+=(RDMA_INTERCEPT_PACE='bytes=100000G/s,ops=1000000000/s') ;;
	freed)
		pace_set 100000G/s
		way=(RDMA_INTERCEPT_TRANSPORT=lease
			BENCH_BETWEEN="env -u LD_PRELOAD '$build/rdma_intercept' limit set default pace.bytes=unlimited >&2")
		;;
	esac
	env LD_PRELOAD="$1" LD_LIBRARY_PATH="$build/fakeverbs" RDMA_INTERCEPT_SHM_NAME="$shm" \
		RDMA_INTERCEPT_LOG_LEVEL=0 "${way[@]}" \
		RDMA_INTERCEPT_LIMITS="process:qp=100,mr_bytes=1G;host:qp=1000,mr=1000;device:rxe0:qp=500" \
		valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		"$build/bench/pairs" "$2" "$3" 2>"$work/output" >/dev/null || { cat "$work/output" >&2 && exit 1; }
	sed -n 's/.*Collected : \([0-9]*\)$/\1/p' "$work/output"
}

# per_operation PRELOAD OPERATION WAY
per_operation() {
	local less more
	less=$(instructions "$1" "$2" $few "$3")
	more=$(instructions "$1" "$2" $many "$3")
	echo $(((more - less) / (many - few)))
}

over=0
printf '%-34s %8s %8s %8s %8s\n' 'instructions' bare with added budget
while read -r operation way budget text; do
	bare=$(per_operation "" "$operation" plain)
	with=$(per_operation "$build/librdma_intercept.so" "$operation" "$way")
	added=$((with - bare))
	verdict=
	if [ "$added" -gt "$budget" ]; then
		verdict='  OVER' over=1
	fi
	printf '%-34s %8d %8d %8d %8d%s\n' "$text" "$bare" "$with" "$added" "$budget" "$verdict"
done <<-ROWS
	pd plain 700 alloc + dealloc PD
	cq plain 720 create + destroy CQ
	qp plain 800 create + destroy QP
	ah plain 730 create + destroy AH
	mw plain 700 alloc + dealloc MW (inline verb)
	mr plain 900 reg + dereg MR
	post_send plain 0 post_send
	post_send paced 125 post_send, pace not reached
	post_send freed 0 post_send, pace taken off
	post_recv plain 0 post_recv
	poll_cq plain 0 poll_cq
	query_device plain 0 query_device
ROWS
exit $over
