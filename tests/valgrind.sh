#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scenarios of the process tests under valgrind: no invalid access, no use of
# uninitialised memory, nothing lost where a scenario cleans up after itself.
# usage: tests/valgrind.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"

scenario() { # LEAK-CHECK PROGRAM SCENARIO [LIMITS]
	local shm=${work##*/}

	rm -f "/dev/shm/$shm"
	if ! env HARNESS_DIRECTORY="$work" LD_PRELOAD="$build/librdma_intercept.so" \
		RDMA_INTERCEPT_SHM_NAME="$shm" RDMA_INTERCEPT_LOG_FILE_PATH="$work/log" \
		RDMA_INTERCEPT_QUIET=1 RDMA_INTERCEPT_LIMITS="${4-}" \
		valgrind -q --error-exitcode=9 --leak-check="$1" --errors-for-leak-kinds=definite \
		"$build/tests/$2" "$3" >"$work/output" 2>&1; then
		bad=$((bad + 1))
		cat "$work/output"
	fi
}

many_at_once() { scenario full process_soak many:1000 process:mr=1000; }
many_in_turn() { scenario full process_soak rounds:1000; }
rereg() { scenario full process_rules rereg process:mr_bytes=12288; }
cq_events() { scenario full process_rules cq_events; }
cm_events() { scenario full process_rules cm_events process:cm_id=3; }
reuse() { scenario full process_rules reuse; }
threads() { scenario full process_family threads; }
imports() { scenario no process_rules imports; }
closing() { scenario no process_rules closing; }
forks() { scenario no process_family forks; }

run_cases "many_at_once many_in_turn rereg cq_events cm_events reuse threads imports closing forks" \
	"$@"
