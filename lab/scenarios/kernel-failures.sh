#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A region that the kernel refuses for want of locked memory is told apart from a refusal of the
# library's: the log has the limit of locked memory and what was wanted.
set -euo pipefail
. lab/lib.sh

fails() { ! "$@"; }
# locked KILOBYTES COMMAND...: under the library, as a process that may not lock more
locked() {
	local limit=$1

	shift
	rm -f "$scratch/log"
	(ulimit -l "$limit" && guarded "QUIET=1" timeout 60 setpriv --bounding-set -ipc_lock "$@") \
		>"$scratch/output" 2>&1
}

check "an application with too little locked memory fails" fails locked 64 ibv_rc_pingpong -d rxe0 -g 1 -s 1048576
check "with its own message" grep -q "Couldn't register MR" "$scratch/output"
check "the log tells the limit and what was wanted" grep -q \
	'ibv_reg_mr failed with ENOMEM in the kernel .* limited to 65536 bytes (RLIMIT_MEMLOCK), 0 are pinned, 1048576 more are wanted' \
	"$scratch/log"
check "and has no refusal" fails grep -q 'refused ibv_' "$scratch/log"
locked 0 "$BUILD_DIRECTORY/test_global_limit" || true
check "the kernel has another error where nothing may be locked" \
	grep -q 'ibv_reg_mr failed with EPERM in the kernel .* limited to 0 bytes' "$scratch/log"
check "a limit of the library is a refusal" fails guarded "LIMITS=process:mr_bytes=16 QUIET=1" \
	ibv_rc_pingpong -d rxe0 -g 1 -s 1048576
check "as the log says" grep -q 'refused ibv_reg_mr: .* mr_bytes used 0/16, wanted' "$scratch/log"
check "and nothing failed in the kernel" fails grep -q 'failed with' <(tail -1 "$scratch/log")
finish
