# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # variables and functions of cli.sh
# Cases of cli.sh, which sources this: names of users and groups, whose sources may not answer.

# Names of users stand beside their numbers, and a source of names that hangs holds nobody up.
users_named() {
	local slow=$build/tests/libslow_host.so

	collector_begin
	worker_start named
	check "a QP" ask named qp ok
	pid=${pid_named:?}
	check "show process: the name of the user" exits 0 show process
	check "show process: beside its number" grep -qE "^ *$pid +test_shm_versio +$(id -u) +$(id -un) +ours " "$work/out"
	check "explain: the name of the user" exits 0 explain "$pid"
	check "explain: in a line" grep -qE "^user +$(id -un)\$" "$work/out"
	for arguments in 'show process' "show process $pid" "show device $device" "explain $pid" 'top --once'; do
		read -ra words <<<"$arguments"
		check "$arguments as JSON" answers "${words[@]}"
		check "$arguments: the user" test "$(jq -r '[.. | .user? | strings] | unique[]' "$work/out")" = "$(id -un)"
	done
	if [ -e "$slow" ]; then
		mkdir "$work/slow"
		try env LD_PRELOAD="$slow" SLOW_HOST="$work/slow" "$command" show process
		check "another source of names" grep -qE " $(id -u) +slow-user " "$work/out"
		touch "$work/slow/getpwuid"
		try env LD_PRELOAD="$slow" SLOW_HOST="$work/slow" "$command" show process
		check "one that hangs was asked" test -e "$work/slow/asked"
		check "one that hangs: the command ends" test "$status" -eq 0
		check "one that hangs: the number" grep -qE "^ *$pid +test_shm_versio +$(id -u) +ours " "$work/out"
		check "one that hangs: no process is left" eventually not pgrep -f "$command show process"
	else
		skip_part "$slow is missing: a sanitizer's build"
	fi
	worker_end named quit
}

# on_slow_host ARGUMENT...: the command where names that begin with "slow-" are held back
on_slow_host() {
	try env LD_PRELOAD="$build/tests/libslow_host.so" SLOW_HOST="$work/slow.names" "$command" "$@"
}

# Numbers for names that a person or a file gives: the command does not wait for a source that hangs.
names_that_hang() {
	if [ ! -e "$build/tests/libslow_host.so" ]; then
		skip_part "$build/tests/libslow_host.so is missing: a sanitizer's build"
		return
	fi
	collector_begin
	mkdir "$work/slow.names"
	touch "$work/slow.names/slow-one"
	printf '[tenant a]\nmatch = uid=slow-one\n[tenant b]\nmatch = gid=slow-one\n' >"$work/slow.conf"
	on_slow_host explain --as uid=slow-one
	check "explain --as: the source was asked" test -e "$work/slow.names/asked"
	check "explain --as: the command ends" test "$status" -eq 2
	check "explain --as: and says why" says err "uid: cannot look up the user 'slow-one': Connection timed out"
	on_slow_host check "$work/slow.conf"
	check "check: the command ends" test "$status" -eq 1
	check "check: a user" grep -q "^$work/slow.conf:2: error: uid: cannot look up the user 'slow-one'" "$work/out"
	check "check: a group" grep -q "^$work/slow.conf:4: error: gid: cannot look up the group 'slow-one'" "$work/out"
	rm "$work/slow.names/slow-one"
	on_slow_host check "$work/slow.conf"
	check "check: names that answer" test "$status" -eq 0
	on_slow_host explain --as uid=slow-one
	check "explain --as: a name that answers" grep -qE '^tenant +ours$' "$work/out"
}
