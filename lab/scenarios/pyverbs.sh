#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma-core's own test suite, as Debian ships it, gives the same result for each test
# with the library as without it. A test that is not sure of its own result (there are
# such on some kernels) is asked again; what counts is a result that only comes with us.
set -euo pipefail
. lab/lib.sh
export PYTHONPATH=$scratch
cp -r /usr/share/doc/rdma-core/tests "$scratch/tests"
gunzip "$scratch"/tests/*.gz

# suite NAME COMMAND...: one line per test in $scratch/NAME
suite() {
	local name=$1
	shift
	(cd "$scratch" && timeout 3600 "$@" /usr/bin/python3 tests/run_tests.py -v --dev rxe0) >"$scratch/$name.out" 2>&1 || true
	# A test that has a description is two lines: its name, then that with the result.
	awk '/^test_[^ ]* \(/ { name = $1 " " $2 } / [.][.][.] / { sub(/.* [.][.][.] /, ""); print name " ... " $0 }' \
		"$scratch/$name.out" | sort -u "$scratch/$name" - >"$scratch/sorted"
	mv "$scratch/sorted" "$scratch/$name"
	echo "      $name, in its own words: $(tail -n 1 "$scratch/$name.out")"
}

# Both suites, once more; results add up.
both() {
	suite bare
	suite with env RDMA_INTERCEPT_LIMITS='process:qp=10000,mr=10000;host:qp=10000' LD_PRELOAD="$library"
}

# Tests that never had with us a result that they also have without.
differing() {
	awk -F ' [.][.][.] ' 'NR == FNR { bare[$0]; next } { seen[$1]; if ($0 in bare) same[$1] }
		END { for (test in seen) if (!(test in same)) print test }' "$scratch/bare" "$scratch/with"
	comm -3 <(sed 's/ \.\.\. .*//' "$scratch/bare" | sort -u) <(sed 's/ \.\.\. .*//' "$scratch/with" | sort -u)
}

before=$(kernel_counts)
: >"$scratch/bare"
: >"$scratch/with"
both
for again in second third; do
	[ -n "$(differing)" ] || break
	echo "note  not the same, a $again time: $(differing | paste -sd';')"
	both
done
passed=$(grep -c 'ok$' "$scratch/bare" || true)
check "the suite ran ($(wc -l <"$scratch/bare") results, $passed passed)" [ "$passed" -ge 50 ]
check "each test has the same result ($(differing))" [ -z "$(differing)" ]
check "the library was there" grep -q 'joined' "$scratch/log"
check "nothing is left in the kernel" settled "$before"
finish
