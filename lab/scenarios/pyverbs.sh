#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma-core's own test suite, as Debian ships it, gives the same result for each test
# with the library as without it.
set -euo pipefail
. lab/lib.sh
export PYTHONPATH=$scratch
cp -r /usr/share/doc/rdma-core/tests "$scratch/tests"
gunzip "$scratch"/tests/*.gz

# suite NAME COMMAND...: one line per test in $scratch/NAME
suite() {
	local name=$1
	shift
	(cd "$scratch" && timeout 600 "$@" /usr/bin/python3 tests/run_tests.py -v --dev rxe0) >"$scratch/$name.out" 2>&1 || true
	grep -E ' \.\.\. ' "$scratch/$name.out" | sort >"$scratch/$name" || true
	tail -n 1 "$scratch/$name.out"
}

before=$(kernel_counts)
suite bare
suite with env RDMA_INTERCEPT_LIMITS='process:qp=10000,mr=10000;host:qp=10000' LD_PRELOAD="$library"
passed=$(grep -c 'ok$' "$scratch/bare" || true)
check "the suite ran ($(wc -l <"$scratch/bare") tests, $passed passed)" [ "$passed" -ge 50 ]
check "each test has the same result" diff "$scratch/bare" "$scratch/with"
check "the library was there" grep -q 'joined' "$scratch/log"
check "nothing is left in the kernel" settled "$before"
finish
