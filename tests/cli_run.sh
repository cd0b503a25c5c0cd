# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # variables and functions of cli.sh
# Cases of cli.sh, which sources this: programs into which the library cannot be loaded.

# program_patch FILE OFFSET BYTES: overwrites, with bytes as printf writes them
program_patch() {
	# shellcheck disable=SC2059 # the bytes are the format
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# number FILE OFFSET SIZE: of the ELF header
number() {
	od -An -tu"$3" -j"$2" -N"$3" "$1" | tr -d ' '
}

# loader_header FILE: the offset of the program header that names the dynamic linker (ELF, 64 bits)
loader_header() {
	local at size count

	at=$(number "$1" 32 8) size=$(number "$1" 54 2) count=$(number "$1" 56 2)
	while [ "$count" -gt 0 ]; do
		if [ "$(number "$1" "$at" 4)" -eq 3 ]; then
			echo "$at"
			return 0
		fi
		at=$((at + size)) count=$((count - 1))
	done
	return 1
}

# program NAME: a copy of true under this name
program() {
	cp "$(type -P true)" "$work/$1"
}

# unloadable NAME TEXT: run refuses the program with this text, and starts it with --try
unloadable() {
	complains 125 "$work/$1: not started: $2" run "$work/$1" && says err '--try starts it anyway'
}

run_unloadable() {
	local at text

	program static
	at=$(loader_header "$work/static")
	program_patch "$work/static" "$at" '\0' # no dynamic linker
	check "run: a static program" unloadable static 'the program is statically linked'
	check "run: names a way out" says err 'rdma_intercept guard on'
	check "run: as JSON" exits 125 -j run "$work/static"
	check "run: a document" is_json
	program many
	program_patch "$work/many" 56 '\100\001' # 320 headers, more than are read: the kernel decides
	check "run: headers that are not read" not complains 125 'statically linked' run "$work/many"

	program uclibc
	at=$(number "$work/uclibc" $(($(loader_header "$work/uclibc") + 8)) 8)
	program_patch "$work/uclibc" "$at" '/lib/ld64-uClibc.so.0\0'
	check "run: another C library" unloadable uclibc \
		'the program uses another C library (its dynamic linker is /lib/ld64-uClibc.so.0, the library needs ld-'

	program musl
	at=$(number "$work/musl" $(($(loader_header "$work/musl") + 8)) 8)
	program_patch "$work/musl" "$at" '/lib/ld-musl-none.so\0'
	check "run: a dynamic linker that is missing" complains 127 \
		"$work/musl: its dynamic linker '/lib/ld-musl-none.so' does not exist: install the C library" run "$work/musl"

	program foreign
	program_patch "$work/foreign" 18 '\xf3\0'
	check "run: another architecture" unloadable foreign 'the program is for riscv (64 bits) and the library '
	program narrow
	program_patch "$work/narrow" 4 '\1'
	check "run: another ELF class" unloadable narrow 'the program is for '

	printf '#!%s -x\n' "$work/static" >"$work/script"
	printf '#! /usr/bin/env -S A=1 %s\n' "$work/uclibc" >"$work/script.env"
	printf '#!%s\n' "$work/script" >"$work/script.script"
	chmod 755 "$work"/script*
	check "run: a script of a static program" complains 125 "$work/static: not started" run "$work/script"
	check "run: one by env" complains 125 "$work/uclibc: not started" run "$work/script.env"
	check "run: a script of a script" complains 125 "$work/static: not started" run "$work/script.script"
	PATH=$work:$PATH check "run: by PATH" complains 125 "$work/static: not started" run script.script

	echo 'exit 9' >"$work/plain"
	printf '#!/bin/sh\nexit 8\n' >"$work/script"
	printf '#!%s\n' "$work/plain-missing" >"$work/script.env"
	chmod 755 "$work/plain"
	check "run: a script without a first line is the shell's" exits 9 run "$work/plain"
	check "run: a script that is fine" exits 8 run "$work/script"
	check "run: an interpreter that is missing" complains 127 \
		"$work/script.env: the interpreter '$work/plain-missing' of its first line (#!) does not exist" \
		run "$work/script.env"
	printf '#!static\n' >"$work/script.relative"
	chmod 755 "$work/script.relative"
	PATH=$work:$PATH check "run: a relative interpreter is not searched in PATH" complains 127 \
		"the interpreter 'static' of its first line (#!) does not exist" run "$work/script.relative"
	at=$(number "$work/uclibc" $(($(loader_header "$work/uclibc") + 8)) 8)
	text=$(dd if="$(type -P true)" bs=1 skip="$at" count=80 status=none | tr '\0' '\n' | sed -n 1p)
	check "run: the dynamic linker itself" exits 3 run "$text" /bin/sh -c 'exit 3'

	echo 'no library' >"$work/no.so"
	export RDMA_INTERCEPT_LIBRARY=$work/no.so
	check "run: a library that does not load" \
		complains 125 "not started: the library cannot be loaded: $work/no.so: " run true
	check "run: with --try" exits 0 run --try true
	check "run: a warning" says err 'rdma_intercept: warning: the program starts without limits'
	unset RDMA_INTERCEPT_LIBRARY
}

# run_as_nobody ARGUMENT...: the command as another user
run_as_nobody() {
	try setpriv --reuid 65534 --regid 65534 --clear-groups "$command" run "$@"
}

run_privileged() {
	program own
	chmod u+s "$work/own"
	check "run: set-user-ID of the same user" exits 0 run "$work/own"
	if [ "$(id -u)" -ne 0 ] || findmnt -no OPTIONS -T "$work" | grep -q nosuid; then
		skip_part "only root can give files to other users, where the mount has no nosuid"
		return
	fi
	program user
	chown 65533 "$work/user"
	chmod u+s "$work/user"
	check "run: set-user-ID" unloadable user 'the program runs with raised privileges (set-user-ID)'
	check "run: set-user-ID with --try" exits 0 run --try "$work/user"
	check "run: warns" says err 'warning: the program starts without limits'
	check "run: where privileges are not raised" try setpriv --no-new-privs "$command" run "$work/user"
	check "run: it starts" [ "$status" -eq 0 ]
	program group
	chgrp 65533 "$work/group"
	chmod g+s "$work/group"
	check "run: set-group-ID" unloadable group 'the program runs with raised privileges (set-group-ID)'
	program capable
	if ! setcap cap_net_raw+ep "$work/capable" 2>/dev/null; then
		skip_part "no setcap, or no file capabilities here"
		return
	fi
	check "run: file capabilities mean nothing to root" exits 0 run "$work/capable"
	run_as_nobody true
	if [ "$status" -ne 0 ]; then
		skip_part "other users cannot start programs of the build directory"
		return
	fi
	run_as_nobody "$work/capable"
	check "run: file capabilities" [ "$status" -eq 125 ]
	check "run: are named" says err 'the program runs with raised privileges (file capabilities)'
}
