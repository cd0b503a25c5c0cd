#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Is the library a good guest? It loads nothing, disturbs no program that does
# no RDMA, keeps its files to itself, says what it does not understand, and
# leaves nothing behind a process that was killed.
#
# usage: tests/test_system_validation.sh [--list | --only CASE]
#   BUILD_DIRECTORY  where the project was built, if not ../build
set -eu
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

limit_test=$build/test_global_limit

# Base names of what the loader maps for the command.
loaded() {
	LD_TRACE_LOADED_OBJECTS=1 LD_PRELOAD=$1 /bin/true | awk '{ print $1 }' | sed 's,.*/,,' |
		sort -u
}

what_is_loaded() {
	echo "what is loaded"
	loaded "" >"$work/plain"
	loaded "$preload" >"$work/loaded"
	if [ -z "${TEST_PRELOAD:-}" ]; then
		{
			cat "$work/plain"
			echo librdma_intercept.so
		} | sort -u >"$work/wanted"
		check "/bin/true loads the library and nothing else more" diff "$work/wanted" "$work/loaded"
	fi
	check "the library pulls in no RDMA library" not grep -e verbs -e rdmacm "$work/loaded"
}

programs_without_rdma() {
	echo "programs without RDMA"
	try with /bin/true
	check "/bin/true ends with 0" [ "$status" -eq 0 ]
	check "/bin/true prints nothing" silent out
	check "/bin/true complains of nothing" silent err
	try with /bin/echo hello
	check "/bin/echo prints what it should" [ "$(cat "$work/out")" = hello ]
	try with sh -c 'exit 7'
	check "an exit status is kept" [ "$status" -eq 7 ]
	try with sh -c 'kill -TERM $$'
	check "death by a signal is kept" [ "$status" -eq 143 ]
	try with sh -c 'umask 027; umask'
	check "the umask is kept" says out 027
	check "no shared memory is made for them" [ ! -e "$shm" ]
	check "no log is written for them" [ ! -e "$log" ]
}

files() {
	echo "files"
	fresh
	(
		umask 0
		with "$limit_test" >/dev/null 2>&1 || true
	)
	check "the shared memory has mode 0600" [ "$(stat -c %a "$shm")" = 600 ]
	check "the shared memory is ours" [ "$(stat -c %u "$shm")" = "$(id -u)" ]
	check "the log is written" [ -s "$log" ]
	check "the log has mode 0600" [ "$(stat -c %a "$log")" = 600 ]
	check "the log names the shared memory" says log "joined $shm"
	try with RDMA_INTERCEPT_LOG_FILE_PATH="$work/none/log" "$limit_test"
	check "a log that cannot be written is reported" \
		says err "RDMA_INTERCEPT_LOG_FILE_PATH='$work/none/log': cannot write there"
	check "and harms nobody" says out "第3个QP已创建"
	fresh
	try with RDMA_INTERCEPT_SHM_MODE=0666 "$limit_test"
	check "the documented mode 0666 is a choice" [ "$(stat -c %a "$shm")" = 666 ]
	check "with a warning in the log" says log "can change all counts and limits"
}

exit_status() {
	echo "exit status of the test programs"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2)
	try with "${limits[@]}" "$limit_test"
	check "limit in force: 0" [ "$status" -eq 0 ]
	try with "$limit_test"
	check "no limit: 1" [ "$status" -eq 1 ]
	try with "$limit_test" no-such-device
	check "no such device: 1" [ "$status" -eq 1 ]
	check "no such device: said" says err no-such-device
	if [ -e "$build/fakeverbs/libibverbs.so.1" ]; then
		try with LD_LIBRARY_PATH="$build/fakeverbs" FAKEVERBS_DEVICES=0 "$limit_test"
		check "no device: 77" [ "$status" -eq 77 ]
		check "no device: said" says err "no RDMA device found"
	fi
}

bad_settings() {
	echo "bad settings"
	fresh
	try with RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=two "$limit_test"
	complaint="RDMA_INTERCEPT_MAX_QP_PER_PROCESS: invalid value 'two': expected a count, or unlimited"
	check "a bad setting is named, with what is allowed" says err "$complaint"
	check "once" counted err "$complaint" 1
	check "also in the log" says log "$complaint"
	check "the default is used" says out "第3个QP已创建"
	try with RDMA_INTERCEPT_FAIL=closed RDMA_INTERCEPT_ENABLE_QP_CONTROL=yes "$limit_test"
	check "RDMA_INTERCEPT_FAIL=closed: nothing is created" [ "$status" -eq 1 ]
	check "and the reason is given" says err "every new object is refused"
}

killed_process() {
	echo "a process that is killed"
	fresh
	limits=(RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_GLOBAL_QP=2)
	worker_start victim "${limits[@]}"
	check "it creates one QP" ask victim qp ok
	check "it creates another" ask victim qp ok
	check "it cannot create a third" ask victim qp refused
	worker_end victim KILL
	check "it is killed" [ "$status" -eq 137 ]
	worker_start heir "${limits[@]}"
	check "at the next start nothing of it is left" ask heir used "0"
	check "as the log says" says log "gave back what 1 ended process held"
	check "the next process creates one QP" ask heir qp ok
	check "the next process creates another" ask heir qp ok
	check "the next process cannot create a third" ask heir qp refused
	worker_end heir quit
	check "the next process ends well" [ "$status" -eq 0 ]
}

run_cases "what_is_loaded programs_without_rdma files
	exit_status bad_settings killed_process" "$@"
