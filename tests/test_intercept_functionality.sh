#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The five scenarios of the functional test: without the library, with it but
# without control, a limit per process, a limit over processes, switched off.
#
# usage: tests/test_intercept_functionality.sh [--list | --only CASE]
#   BUILD_DIRECTORY  where the project was built, if not ../build
set -eu
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

limit_test=$build/test_global_limit
unlimited="第3个QP已创建 - 限制没有生效"

without_library() {
	echo "scenario 1: without the library"
	try without RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 "$limit_test"
	check "three QPs are created" says out "$unlimited"
	check "no shared memory is made" [ ! -e "$shm" ]
}

without_control() {
	echo "scenario 2: with the library, without control"
	fresh
	try with RDMA_INTERCEPT_ENABLE_QP_CONTROL=0 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 "$limit_test"
	check "three QPs are created" says out "$unlimited"
	check "nothing is printed by the library" silent err
	check "the log names the variable" says log 'MAX_QP_PER_PROCESS: no effect, since RDMA_INTERCEPT_ENABLE_QP_CONTROL is 0'
	check "the shared memory is made" [ -e "$shm" ]
	try with "$build/test_shm_version"
	check "objects of all types are counted as they are made" [ "$status" -eq 0 ]
}

limit_per_process() {
	echo "scenario 3: limit per process"
	fresh
	try with RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 "$limit_test"
	check "a limit needs no switch" as_documented
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2)
	try with "${limits[@]}" "$limit_test"
	check "exactly the third QP is refused" [ "$status" -eq 0 ]
	check "the output is the documented one" as_documented
	check "the reason is given" says err "qp used 2/2, wanted 1 more, limit of the process"
	check "the reason is in the log" says log "qp used 2/2, wanted 1 more, limit of the process"
	try with "${limits[@]}" "$build/test_sequential"
	check "what is destroyed may be created again" [ "$status" -eq 0 ]
	worker_start first "${limits[@]}"
	worker_start second "${limits[@]}"
	for name in first second; do
		check "process $name has its own two: 1" ask $name qp ok
		check "process $name has its own two: 2" ask $name qp ok
		check "process $name has no third" ask $name qp refused
	done
	worker_end first quit
	worker_end second quit
}

limit_over_processes() {
	echo "scenario 4: limit over two processes"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_GLOBAL_QP=3)
	worker_start holder "${limits[@]}"
	check "the first process creates one of three" ask holder qp ok
	try with "${limits[@]}" "$limit_test"
	check "the second process gets two, not three" [ "$status" -eq 0 ]
	check "the reason is given" says err "qp used 3/3, wanted 1 more, limit of the host"
	check "after its end the first gets the other two: 1" ask holder qp ok
	check "after its end the first gets the other two: 2" ask holder qp ok
	check "but not a fourth" ask holder qp refused
	worker_end holder quit
	check "the first process ends well" [ "$status" -eq 0 ]
}

switched_off() {
	echo "scenario 5: switched off"
	fresh
	try with RDMA_INTERCEPT_ENABLE=0 RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 \
		RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 "$limit_test"
	check "three QPs are created" says out "$unlimited"
	check "nothing is printed by the library" silent err
	check "no shared memory is made" [ ! -e "$shm" ]
	check "no log is written" [ ! -e "$log" ]
}

run_cases "without_library without_control
	limit_per_process limit_over_processes switched_off" "$@"
