#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process inside its lease asks nobody: charges and refunds make no system call, of
# the ledger alone and of a whole program under the library. What a pair of them costs
# is counted in instructions, by callgrind: the same number on every run, with a budget.
# usage: tests/leasecost.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
for tool in strace valgrind; do
	command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"

export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_INTERCEPT_SHM_NAME=${work##*/}
touch "$work/policy"
background "$build/collector_server" --socket "$work/socket" --state "$work/state" \
	--policy "$work/policy" 2>"$work/log" &
workers+=($!)
if ! eventually [ -S "$work/socket" ]; then
	echo "the collector does not start:"
	cat "$work/log"
	exit 1
fi

# ---- the ledger: system calls between two of getppid
calls_between() { # TRANSPORT PAIRS
	strace -o "$work/trace" "$build/bench/leases" pairs "$1" "$2"
	awk '/^getppid/ { marks++; next } marks == 1 { calls++ }
		END { print marks == 2 ? calls + 0 : "unknown" }' "$work/trace"
}
ledger_makes_no_call() {
	local calls

	calls=$(calls_between lease 100000)
	check "100000 pairs inside a lease make no system call (calls: $calls)" [ "$calls" = 0 ]
	calls=$(calls_between socket 10)
	check "10 pairs by socket are seen to make some (calls: $calls)" [ "$calls" -ge 20 ]
}

# ---- a program under the library: no call more when it makes more objects. Not counted is
# what depends on how soon the collector answers, and on where in its table a handle lies.
calls_of() { # OPERATION PAIRS
	strace -o "$work/trace" -E LD_PRELOAD="$build/librdma_intercept.so" \
		-E LD_LIBRARY_PATH="$build/fakeverbs" -E RDMA_INTERCEPT_TRANSPORT=lease \
		-E RDMA_INTERCEPT_LOG_LEVEL=0 "$build/bench/pairs" "$1" "$2"
	grep -q "connect(.*$work/socket" "$work/trace" || echo "not by lease,"
	grep -cvE '^(ppoll|recvmsg|mmap|madvise)\(' "$work/trace"
}
library_makes_no_call() {
	local operation few many

	for operation in pd cq qp ah mw mr; do
		few=$(calls_of $operation 100)
		many=$(calls_of $operation 5000)
		check "5000 pairs of $operation make as many system calls as 100 ($few, $many)" \
			[ "$few" = "$many" ]
	done
}

# ---- instructions of one pair
instructions() { # TRANSPORT PAIRS
	valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		"$build/bench/leases" pairs "$1" "$2" 2>"$work/output"
	sed -n 's/.*Collected : \([0-9]*\)$/\1/p' "$work/output"
}
budget() { # TRANSPORT INSTRUCTIONS
	local few many pair

	few=$(instructions "$1" 1000)
	many=$(instructions "$1" 3000)
	pair=$(((many - few) / 2000))
	check "a charge and its refund, $1: $pair instructions of at most $2" [ $pair -le "$2" ]
}
budget_of_lease() { budget lease 99; }
budget_of_embedded() { budget embedded 255; }

run_cases "ledger_makes_no_call library_makes_no_call budget_of_lease budget_of_embedded" "$@"
