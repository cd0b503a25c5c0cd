#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scenarios of the process tests under valgrind: no invalid access, no use of
# uninitialised memory, nothing lost where a scenario cleans up after itself.
set -euo pipefail
build=${BUILD_DIRECTORY:?}
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
work=$(mktemp -d)
shm="valgrind.$$"
trap 'rm -rf "$work" "/dev/shm/$shm"' EXIT
failed=0

scenario() { # LEAK-CHECK PROGRAM SCENARIO [LIMITS]
	rm -f "/dev/shm/$shm"
	if env HARNESS_DIRECTORY="$work" LD_PRELOAD="$build/librdma_intercept.so" \
		RDMA_INTERCEPT_SHM_NAME="$shm" RDMA_INTERCEPT_LOG_FILE_PATH="$work/log" \
		RDMA_INTERCEPT_QUIET=1 RDMA_INTERCEPT_LIMITS="${4-}" \
		valgrind -q --error-exitcode=9 --leak-check="$1" --errors-for-leak-kinds=definite \
		"$build/tests/$2" "$3" >"$work/output" 2>&1; then
		echo "ok    $2 $3"
	else
		echo "FAIL  $2 $3"
		cat "$work/output"
		failed=1
	fi
}

scenario full process_soak many process:mr=10000
scenario full process_soak rounds:3000
scenario full process_rules rereg process:mr_bytes=12288
scenario full process_rules cq_events
scenario full process_rules cm_events process:cm_id=3
scenario full process_rules reuse
scenario full process_family threads
scenario no process_rules imports
scenario no process_rules closing
scenario no process_family forks
exit $failed
