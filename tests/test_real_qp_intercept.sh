#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The documented test with real QPs: the same program without the interceptor,
# with it, and with limits, down to a limit of no QP at all.
#
# usage: tests/test_real_qp_intercept.sh [--list | --only CASE]
#   BUILD_DIRECTORY  where the project was built, if not ../build
set -eu
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

limit_test=$build/test_global_limit
echo "device: $device" >&2

# What the program says without the interceptor.
try without "$limit_test"
cp "$work/out" "$work/plain"

without_interceptor() {
	echo "without the interceptor"
	try without "$limit_test"
	check "the memory is registered" says out "MR已注册"
	for number in 1 2 3; do
		check "QP $number is created" says out "第${number}个QP已创建"
	done
	check "the interceptor left no trace" [ ! -e "$shm" -a ! -e "$log" ]
}

no_limits() {
	echo "with the interceptor, no limits"
	try with RDMA_INTERCEPT_ENABLE=1 "$limit_test"
	check "the program's output is the same" diff "$work/plain" "$work/out"
	check "the interceptor prints nothing" silent err
	check "the interceptor was there" says log "joined $shm"
}

every_verb_logged() {
	echo "with the interceptor, every verb logged"
	fresh
	try with RDMA_INTERCEPT_LOG_LEVEL=DEBUG "$limit_test"
	check "the program's output is the same" diff "$work/plain" "$work/out"
	check "three QPs were seen" [ "$(grep -c 'ibv_create_qp: allowed' "$log")" -eq 3 ]
	check "all types of QP are counted" with "$build/test_shm_version"
}

five_for_a_process() {
	echo "with the interceptor, five QPs for a process and ten for all"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE=1 RDMA_INTERCEPT_ENABLE_QP_CONTROL=1
		RDMA_INTERCEPT_MAX_GLOBAL_QP=10 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=5)
	worker_start only "${limits[@]}"
	for number in 1 2 3 4 5; do
		check "QP $number is created" ask only qp ok
	done
	check "QP 6 is refused: quota exceeded" ask only qp "refused Disk quota exceeded"
	worker_end only quit
	check "the program ends well" [ "$status" -eq 0 ]
}

two_qps() {
	echo "with the interceptor, two QPs"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2)
	try with "${limits[@]}" "$limit_test"
	check "exactly the third is refused" [ "$status" -eq 0 ]
	check "the output is the documented one" as_documented
	check "the refusal names verb and device" says err "refused ibv_create_qp: tenant=default device=$device"
	try with "${limits[@]}" RDMA_INTERCEPT_QUIET=1 "$limit_test"
	check "RDMA_INTERCEPT_QUIET=1 refuses silently" silent err
	try with "${limits[@]}" RDMA_INTERCEPT_MODE=warn "$limit_test"
	check "RDMA_INTERCEPT_MODE=warn lets the third pass" says out "第3个QP已创建"
	check "and says so" says err "over limit, allowed: ibv_create_qp"
}

no_qp() {
	echo "with the interceptor, no QP at all"
	fresh
	try with RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=0 "$limit_test"
	check "the first QP is refused" says out "第1个QP创建失败"
	check "the memory is registered all the same" says out "MR已注册"
	check "the program ends by itself" [ "$status" -eq 1 ]
}

run_cases "without_interceptor no_limits every_verb_logged five_for_a_process two_qps no_qp" "$@"
