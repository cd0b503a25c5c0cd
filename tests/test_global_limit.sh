#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Test of the limits as documented: the documented command with its documented
# output, and the limit of the host over processes in turn and at once.
#
# usage: tests/test_global_limit.sh [--list | --only CASE]
#   BUILD_DIRECTORY  where the project was built, if not ../build
set -eu
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

limit_test=$build/test_global_limit
usage="从共享内存获取进程资源使用情况"

# What users type, where they type it.
documented=(env -C "$build" timeout 30s env RDMA_INTERCEPT_ENABLE_QP_CONTROL=1
	RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2
	LD_PRELOAD="${TEST_PRELOAD:+$TEST_PRELOAD:}./librdma_intercept.so")

documented_commands() {
	echo "the documented commands"
	try "${documented[@]}" ./test_global_limit
	check "test_global_limit: exactly the third QP is refused" [ "$status" -eq 0 ]
	check "test_global_limit: the output is the documented one" as_documented
	try "${documented[@]}" ./test_sequential
	check "test_sequential: ten rounds, then a refusal" [ "$status" -eq 0 ]
	check "test_sequential: ends as documented" [ "$(tail -n 1 "$work/out")" = 测试完成 ]
}

lines_at_level_debug() {
	echo "the lines of the library at level DEBUG"
	export RDMA_INTERCEPT_LOG_LEVEL=DEBUG RDMA_INTERCEPT_LOG_FILE_PATH=stderr
	try "${documented[@]}" ./test_global_limit
	check "the program's own output stays as it is" as_documented
	check "one line before the MR and each QP" counted err "[RDMA_HOOKS] $usage" 4
	check "they count up: MR" says err "QP=0, MR=1, Memory=4096"
	check "they count up: first QP" says err "QP=1, MR=1, Memory=4096"
	check "they count up: second QP" says err "QP=2, MR=1, Memory=4096"
	unset RDMA_INTERCEPT_LOG_LEVEL
}

host_limit_one_process() {
	echo "a limit of the host, one process"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_GLOBAL_QP=2)
	try with "${limits[@]}" "$limit_test"
	check "exactly the third QP is refused" [ "$status" -eq 0 ]
	check "the output is the documented one" as_documented
	check "the limit met is that of the host" says err "qp used 2/2, wanted 1 more, limit of the host"
	try with "${limits[@]}" "$limit_test"
	check "a second run finds all given back" [ "$status" -eq 0 ]
	worker_start first "${limits[@]}"
	check "a process that lives under the limit" ask first used "0"
	try with RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_GLOBAL_QP=100 "$limit_test"
	check "a later process cannot raise the limit" [ "$status" -eq 0 ]
	check "and is told so in the log" says log "host limit qp=2 is set already"
	worker_end first quit
}

host_limit_four_processes() {
	echo "a limit of the host, four processes at once"
	fresh
	names=(a b c d)
	for name in "${names[@]}"; do
		worker_start "$name" RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_GLOBAL_QP=10
	done
	for _ in {1..5}; do
		for name in "${names[@]}"; do
			tell "$name" qp
		done
	done
	: >"$work/answers"
	for name in "${names[@]}"; do
		for _ in {1..5}; do
			hear "$name" >>"$work/answers"
		done
	done
	check "of twenty attempts ten are granted" [ "$(grep -cx ok "$work/answers")" -eq 10 ]
	check "and ten refused" [ "$(grep -c ^refused "$work/answers")" -eq 10 ]
	check "the ledger says ten" ask a used "10"
	for name in "${names[@]:1}"; do
		worker_end "$name" quit
	done
	for _ in {1..10}; do
		tell a qp
		hear a >>"$work/answers"
	done
	check "when three have ended the fourth gets the rest" ask a used "10"
	check "and no more" ask a qp refused
	worker_end a quit
}

run_cases "documented_commands lines_at_level_debug
	host_limit_one_process host_limit_four_processes" "$@"
