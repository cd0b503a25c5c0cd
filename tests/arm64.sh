#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library and its tests for aarch64, built by packaging/cross and run by QEMU's emulator of
# programs: what the library exports and needs, each route of an application to it, and verbs of
# the table. "emulated" (the long form) runs every unit and process test that can run there.
#
# Not in there, and why: that emulator says yes to MADV_WIPEONFORK and does nothing, so that a forked
# child has the state of its parent (cases of family, posts and detours); it has no ptrace (kill
# points); it makes threads, signals and /proc in ways of its own (hammer, soak, lines, failures,
# badinput), and so for single cases ("without" below): its /proc/self/stat has a start that is some
# hundredths of a second after the kernel's, and a forked child has that of its parent, so that others
# take a process for ended (ports); the kernel's name of a process is the emulator's (unit_file); a
# message brings descriptors for which the program has no room, and they stay open
# (unit_proto_descriptors); the harness does not notice there that a child crashed, and the cause is not
# known (unit_waiting). The lab runs the library on a real arm64 kernel: lab/check --arch arm64.
# usage: tests/arm64.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
cd "$(dirname "$0")/.."
for program in qemu-aarch64-static aarch64-linux-gnu-gcc; do
	command -v "$program" >/dev/null || { echo "skipped: $program is not installed: ./build_all.sh arm64 installs it"; exit 77; }
done
# shellcheck source=tests/cases.sh
. tests/cases.sh

# What ctest gives the tests of this processor; those of the other one get their own.
prepare() {
	build=$(packaging/cross arm64 "$@")
	HARNESS_EMULATOR=$(command -v qemu-aarch64-static) QEMU_LD_PREFIX=$(lab/foreign arm64)
	export HARNESS_EMULATOR QEMU_LD_PREFIX BUILD_DIRECTORY=$build HARNESS_PRELOAD=$build/librdma_intercept.so
	export SOURCE_DIRECTORY=$PWD KINDS_DEF=$PWD/src/terms/kinds.def LC_ALL=C.UTF-8 LANGUAGE=
}

# emulated_test NAME [--only CASE]
emulated_test() {
	LD_LIBRARY_PATH=$build/fakeverbs "$HARNESS_EMULATOR" "$build/tests/$1" "${@:2}" >"$work/output" 2>&1 </dev/null && return
	tail -n 20 "$work/output"
	return 1
}

# The names are those of the other processor; that the symbols are the rows is said by tests/house.sh.
names_of() { nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort; }
library() {
	prepare rdma_intercept
	check "for aarch64" grep -q AArch64 <<<"$(readelf -hW "$build/librdma_intercept.so")"
	check "dlsym and dlvsym under the first node of glibc there, and under 2.34" \
		[ "$(names_of "$build/librdma_intercept.so" | grep -c '^dlv\?sym@\(GLIBC_2.17\|@GLIBC_2.34\)$')" -eq 4 ]
	check "what it needs of libc is in the table" tests/hardening.sh --only imports
}

routes() {
	prepare rdma_intercept process_routes
	check "every route to the library" emulated_test process_routes
}

verbs() {
	local verb

	prepare rdma_intercept process_table
	for verb in ibv_alloc_pd ibv_create_cq ibv_create_qp ibv_reg_mr ibv_create_srq rdma_create_id; do
		check "$verb" emulated_test process_table --only "$verb"
	done
}

rules() {
	prepare rdma_intercept process_rules
	check "the rules of counting" emulated_test process_rules
}

# The table of all verbs, and the unit tests.
declare -A without=([process_ports]=' child killed ' [unit_file]=' of_a_process '
	[unit_proto_descriptors]=' passed ' [unit_waiting]=' crashed aborted ')
emulated() {
	local tests=(process_table process_rates process_ports process_notices) program name

	prepare
	for program in "$build"/tests/unit_*; do
		[ ! -x "$program" ] || tests+=("$(basename "$program")")
	done
	for program in "${tests[@]}"; do
		if [ -z "${without[$program]-}" ]; then
			check "$program" emulated_test "$program"
			continue
		fi
		emulated_test "$program" --list || { check "$program lists its cases" false; continue; }
		cp "$work/output" "$work/names"
		while read -r name; do
			[[ ${without[$program]} = *" $name "* ]] || check "$program: $name" emulated_test "$program" --only "$name"
		done <"$work/names"
	done
}

case ${1-} in
emulated) shift; run_cases emulated "$@" ;;
*) run_cases "library routes verbs rules" "$@" ;;
esac
