#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What compiler and linker were asked for is in the programs and the library.
# usage: tests/hardening.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
source_directory=$(cd "$(dirname "$0")/.." && pwd)
command -v readelf >/dev/null || { echo "skipped: readelf is not installed"; exit 77; }
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"

# shown FILE PATTERN: readelf tells that of the file
shown() {
	readelf -hldsW "$build/$1" >"$work/elf" && grep -qE "$2" "$work/elf"
}

lacks() {
	! shown "$@"
}

binaries() {
	local file

	for file in librdma_intercept.so collector_server rdma_intercept rdma_monitor rdma_dashboard rdma_fleet spank_rdma_intercept.so; do
		[ -e "$build/$file" ] || { skip_part "$file was not built"; continue; }
		check "$file: tables are read-only" shown "$file" GNU_RELRO
		check "$file: bound at the start" shown "$file" 'BIND_NOW|FLAGS.* NOW'
		check "$file: the stack cannot be executed" shown "$file" 'GNU_STACK.* RW '
		check "$file: position independent" shown "$file" 'Type: *DYN'
		check "$file: stack protector" shown "$file" __stack_chk_fail
		check "$file: sizes are checked" shown "$file" '__[a-z]+_chk(@|$)'
		check "$file: no mode or owner is set by a path, which may be a link" \
			lacks "$file" ' UND (chmod|chown|lchown)@'
	done
}

# The library needs of libc what src/intercept/libc.txt allows, under those nodes, and no other
# library: then it loads with glibc 2.31 and later and with musl.
imports() {
	local table=$source_directory/src/intercept/libc.txt column=2 name node allowed

	[ -e "$build/librdma_intercept.so" ] || { skip_part "librdma_intercept.so was not built"; return 0; }
	if grep -qE '^(RDMA_INTERCEPT_SANITIZER:STRING=.|CMAKE_C_FLAGS:.*coverage)' "$build/CMakeCache.txt"; then
		skip_part "an instrumented library needs more"
		return 0
	fi
	if ! grep -qE '^CMAKE_BUILD_TYPE:[A-Z]*=(Rel.*)?$' "$build/CMakeCache.txt"; then
		skip_part "a library that is not optimized needs more"
		return 0
	fi
	[ "$(readelf -hW "$build/librdma_intercept.so" | sed -n 's/^ *Machine: *//p')" != AArch64 ] || column=3
	# Those of the compiler's own start files are weak and in no libc.
	awk -v column="$column" '/^[^#]/ {
		node = $2
		if (node == "weak") print $1
		else if (column == 2 && node == "-") next
		else print $1 "@" (column == 2 ? node : NF > 2 ? $3 : "GLIBC_2.17")
	}' "$table" >"$work/allowed"
	printf '%s\n' _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __gmon_start__ >>"$work/allowed"
	nm -D --undefined-only "$build/librdma_intercept.so" | awk '{ print $2 }' >"$work/needed"
	check "the library needs something" [ -s "$work/needed" ]
	allowed=$(grep -vxFf "$work/allowed" "$work/needed" || true)
	check "no symbol that libc.txt does not allow${allowed:+: $(tr "\n" " " <<<"$allowed")}" [ -z "$allowed" ]
	nm -D --undefined-only "$build/librdma_intercept.so" | awk '$1 == "U" { print $2 }' >"$work/firm"
	while read -r name node; do
		[ "$node" = weak ] || continue
		check "$name may be missing" [ -z "$(grep -x "$name\(@.*\)\?" "$work/firm")" ]
	done < <(grep '^[^#]' "$table")
	check "no library but libc.so.6" [ "$(readelf -dW "$build/librdma_intercept.so" |
		sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')" = "libc.so.6 " ]
}

run_cases "binaries imports" "$@"
