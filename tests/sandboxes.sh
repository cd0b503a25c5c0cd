#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The sandbox of the tests: whatever a test does, nothing of it is left, and its status says what
# happened. Here each "test" is a small shell command.
set -euo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
sandbox=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}/tests/sandbox

# boxed COMMAND: its exit status in $status, its output in $work/out
boxed() {
	status=0
	"$sandbox" inner sh -c "$1" >"$work/out" 2>&1 || status=$?
}
says() { grep -q "$1" "$work/out"; }
# sleepers SECONDS: the processes that sleep so long (the pattern does not match this grep itself)
sleepers() { { grep -lsxz "${1%?}[${1: -1}]" /proc/[0-9]*/cmdline || true; } | cut -d / -f 3; }
runs() { [ -n "$(sleepers "$1")" ]; }
ended() { ! runs "$1"; }
no_directory() { ! compgen -G "/tmp/rdma_sandbox.$1.*" >/dev/null; }
# A number of seconds that no other sleep on this machine has.
unique() { echo "$1.$$"; }

statuses() {
	boxed 'exit 0'
	check "a test that passes" test "$status" -eq 0
	boxed 'exit 3'
	check "a test that fails" test "$status" -eq 3
	boxed 'exit 77'
	check "a test that is skipped" test "$status" -eq 77
	boxed 'kill -SEGV $$'
	check "a test that crashes" test "$status" -eq 139
}

left_processes() {
	local first second
	first=$(unique 1001) second=$(unique 1002)
	boxed "sleep $first & setsid sleep $second & exit 0"
	check "a test that leaves processes running fails" test "$status" -eq 1
	check "and the sandbox names them" says "sleep $first"
	check "they are killed" ended "$first"
	check "also in another session" ended "$second"
	boxed "setsid sleep $first & exit 5"
	check "a test that fails keeps its status" test "$status" -eq 5
	check "and leaves no process either" ended "$first"
}

left_files() {
	local directory
	# shellcheck disable=SC2016 # the inner shell expands it
	boxed 'echo "$TMPDIR"; touch "$TMPDIR/file"; echo x >/dev/shm/'"${work##*/}.left"
	directory=$(head -n 1 "$work/out")
	check "the temporary directory is the test's own" test "$directory" != /tmp
	check "and is removed" test ! -e "$directory"
	if [ "$(id -u)" -eq 0 ]; then
		check "nothing is left in /dev/shm" test ! -e "/dev/shm/${work##*/}.left"
	else
		skip_part "a /dev/shm of its own needs root"
	fi
}

standstill() {
	local seconds
	seconds=$(unique 1003)
	SANDBOX_STILL_SECONDS=6 boxed "echo begun; sleep $seconds"
	check "a test that stands still is stopped" test "$status" -eq 124
	check "and the sandbox says why" says 'stopped: no process has worked for 6 s'
	check "and what ran" says "sleep $seconds"
	check "it is killed" ended "$seconds"
	SANDBOX_STILL_SECONDS=6 boxed 'end=$(($(date +%s) + 12)); while [ $(date +%s) -lt $end ]; do :; done'
	check "a test that works goes on" test "$status" -eq 0
}

killed_sandbox() {
	local pid seconds left
	seconds=$(unique 1004)
	background "$sandbox" inner sh -c "sleep $seconds & wait" >"$work/out" 2>&1 &
	pid=$!
	workers+=("$pid")
	check "a test runs" eventually runs "$seconds"
	kill "$pid"
	wait "$pid" || true
	check "a sandbox that is asked to end takes its test along" eventually ended "$seconds"
	background "$sandbox" inner sh -c "sleep $seconds & wait" >"$work/out" 2>&1 &
	pid=$!
	workers+=("$pid")
	check "another test runs" eventually runs "$seconds"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	left=$(sleepers "$seconds")
	boxed 'exit 0'
	check "the next sandbox removes the directory of a killed one" no_directory "$pid"
	if ended "$seconds"; then
		[ -z "$left" ] || check "and says which processes it left" says 'an earlier test left processes running'
	else
		sleepers "$seconds" | xargs -r kill -KILL
		skip_part "no cgroup may be made here, so the next sandbox does not find what a killed one left"
	fi
}

run_cases "statuses left_processes left_files standstill killed_sandbox" "$@"
