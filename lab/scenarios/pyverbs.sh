#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma-core's own test suite, as Debian ships it, gives the same result for each test
# with the library as without it, and those that post with a pace that is never reached. A test
# that is not sure of its own result (there are such on some kernels) is asked again; what counts
# is a result that only comes with us.
set -euo pipefail
. lab/lib.sh
export PYTHONPATH=$scratch
cp -r /usr/share/doc/rdma-core/tests "$scratch/tests"
gunzip "$scratch"/tests/*.gz

# The parts of the suite whose tests post.
posting=(test_addr test_atomic test_cq test_mr. test_odp test_parent_domain test_qpex test_rdmacm
	test_relaxed_ordering test_shared_pd)
# suite NAME OPTION... -- COMMAND...: one line per test in $scratch/NAME
suite() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	(cd "$scratch" && timeout 3600 "$@" /usr/bin/python3 tests/run_tests.py -v --dev rxe0 "${options[@]}") \
		>"$scratch/$name.out" 2>&1 || true
	# A test that has a description is two lines: its name, then that with the result.
	awk '/^test_[^ ]* \(/ { name = $1 " " $2 } / [.][.][.] / { sub(/.* [.][.][.] /, ""); print name " ... " $0 }' \
		"$scratch/$name.out" | sort -u "$scratch/$name" - >"$scratch/sorted"
	mv "$scratch/sorted" "$scratch/$name"
	echo "      $name, in its own words: $(tail -n 1 "$scratch/$name.out")"
}

limits='process:qp=10000,mr=10000;host:qp=10000' pace='bytes=100000G/s,ops=1000000000/s'
run_bare() { suite bare -- env; }
run_with() { suite with -- env RDMA_INTERCEPT_LIMITS="$limits" LD_PRELOAD="$library"; }
run_paced() {
	suite paced "${posting[@]/#/-ktests.}" -- env RDMA_INTERCEPT_PACE="$pace" LD_PRELOAD="$library"
}

# differing NAME [PATTERN]: tests (of those that match) that never had there a result that they also
# have without us.
differing() {
	grep -E "${2:-.}" "$scratch/bare" >"$scratch/compared" || true
	awk -F ' [.][.][.] ' 'NR == FNR { bare[$0]; next } { seen[$1]; if ($0 in bare) same[$1] }
		END { for (test in seen) if (!(test in same)) print test }' "$scratch/compared" "$scratch/$1"
	comm -3 <(sed 's/ \.\.\. .*//' "$scratch/compared" | sort -u) <(sed 's/ \.\.\. .*//' "$scratch/$1" | sort -u)
}
# same NAME [PATTERN]: runs it, and both once more where they differ; results add up.
same() {
	: >"$scratch/$1"
	"run_$1"
	for again in second third; do
		[ -n "$(differing "$@")" ] || break
		echo "note  not the same, a $again time: $(differing "$@" | paste -sd';')"
		run_bare
		"run_$1"
	done
	check "$1: each of $(wc -l <"$scratch/$1") results is the same ($(differing "$@"))" \
		[ -z "$(differing "$@")" ]
}
passed() { grep -c 'ok$' "$scratch/$1" || true; }

before=$(kernel_counts)
: >"$scratch/bare"
run_bare
check "the suite ran ($(wc -l <"$scratch/bare") results, $(passed bare) passed)" [ "$(passed bare)" -ge 50 ]
same with
same paced "tests\.($(IFS='|' && echo "${posting[*]}"))"
check "tests that post ran with a pace ($(passed paced) passed)" [ "$(passed paced)" -ge 10 ]
env RDMA_INTERCEPT_PACE="$pace" LD_PRELOAD="$library" "$BUILD_DIRECTORY/lab/stream" rxe0 plain 8192 1 \
	>"$scratch/stream" 2>&1 || true
check "with that pace posts are counted" grep -q 'ours 1' "$scratch/stream"
check "the library was there" grep -q 'joined' "$scratch/log"
check "nothing is left in the kernel" settled "$before"
finish
