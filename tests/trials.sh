#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What CONTRIBUTING.md says of the places that an addition touches is true: in a copy of the tree a
# kind, keys of the policy, a match condition, a subcommand and a task of each second are added at
# those places only, all components are built, and each addition works.
# usage: tests/trials.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
sources=$(cd "${SOURCE_DIRECTORY:-$here/..}" && pwd)
copy=$work/copy made=$work/made

# row FILE LINE...: adds rows to a table of src/, before its last #undef lines
row() {
	local file=$copy/src/$1 at

	shift
	at=$(grep -n '^#undef' "$file" | head -1 | cut -d: -f1)
	printf '%s\n' "$@" >"$work/rows"
	if [ -n "$at" ]; then
		sed -i "$((at - 1))r $work/rows" "$file"
	else
		cat "$work/rows" >>"$file"
	fi
}

# function_add FILE: adds the function on standard input to a file of src/
function_add() {
	cat >>"$copy/src/$1"
}

# The additions: what follows here is all that is changed, so the rows and functions are the places.
additions_make() {
	row terms/kinds.def 'KIND(trial, COUNT, OBJECT, NOT, NONE, NO, "a kind of this test")'

	row policy/keys.def 'KEY_COLLECTOR(trial_path, "trial_path", path, "", "a key of this test")'
	row policy/keys.def 'KEY_HOST(trial_host, "trial_host", switch, POLICY_OFF, "a key of this test")'
	row policy/keys.def 'KEY_TENANT(trial_mode, "trial_mode", mode, MODE_WARN, "a key of this test")'
	row policy/keys.def 'KEY_TENANT(trial_amounts, "trial.", amounts, 7, "a key of this test")'

	row policy/conditions.def 'CONDITION(trial_gid, groups, false, "a condition of this test")'
	function_add policy/match.c <<-'END'
		bool policy_meets_trial_gid(const void *field, const struct policy_facts *facts)
		{
			return ids_have(field, facts->subject->gid);
		}
	END

	row cli/commands.def 'COMMAND(trial_word, "trial word", "[NUMBER]", "replace", false, "a subcommand of this test", "")'
	function_add cli/policy.c <<-'END'
		int command_trial_word(const struct cli *cli)
		{
			return cli_fail(cli, CLI_WRONG, "trial word: %u operands", cli->count);
		}
	END

	row collector/tasks.def 'TASK(trial, 1, control_keep)'
}

all_built() {
	cmake -S "$copy" -B "$made" -DCMAKE_BUILD_TYPE=Debug -DRDMA_INTERCEPT_WERROR=ON -DRDMA_INTERCEPT_PAGE=OFF \
		-DRDMA_INTERCEPT_TESTS=OFF && make -s -C "$made" -j2
}

# program_build NAME SOURCE...: a program of tests/ with the copy's tables
program_build() {
	local name=$1 archives

	shift
	archives=$(find "$made/src" -name '*.a')
	# shellcheck disable=SC2086 # several
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Werror -I"$copy/src" -I"$sources/tests" -I"$sources/tests/daemon" \
		-o "$work/$name" "${@/#/$sources/tests/}" -Wl,--start-group $archives -Wl,--end-group -ljansson
}

copy_make() {
	mkdir "$copy"
	cp -r "$sources"/{CMakeLists.txt,include,man,packaging,po,src,web} "$copy"
	additions_make
	try all_built
	if [ "$status" -ne 0 ]; then
		echo "FAIL  the copy with the additions does not build"
		tail -40 "$work/err"
		exit 1
	fi
	export PATH=$made:$PATH RDMA_COLLECTOR_SOCKET=$work/socket
}

# ---- what the cases share

answers() { # BUILD
	"$1/rdma_intercept" tenant list >/dev/null 2>&1
}

# collector_begin BUILD: that build's, with a state of its own, and the policy on standard input
collector_begin() {
	cat >"$work/policy"
	RDMA_INTERCEPT_POLICY=$work/policy RDMA_COLLECTOR_STATE=$work/state \
		background "$1/collector_server" >>"$work/collector.log" 2>&1 &
	workers+=($!)
	check "the collector starts with this policy" eventually answers "$1"
}
collector_end() {
	kill "${workers[-1]}"
	wait "${workers[-1]}" || true
	unset 'workers[-1]'
	rm -rf "$work/state" "$work/policy"
}

# offered LINE WORD: the completion of the line offers the word
offered() {
	# shellcheck disable=SC2016
	bash -c '. "$2/packaging/bash-completion/rdma_intercept"
		COMP_LINE=$1 COMP_POINT=${#1}
		_rdma_intercept; printf "%s\n" "${COMPREPLY[@]}"' - "rdma_intercept $1" "$copy" | grep -qxFe "$2"
}

# answered WORD ARGUMENT...: what the command prints has the word
answered() {
	rdma_intercept "${@:2}" | grep -qE "(^|[^A-Za-z_])$1([^A-Za-z_]|\$)"
}

# ---- the cases

kind() {
	local setting

	check "a program that loops over the table" program_build kinds unit/kinds.c again.c harness.c session.c words.c
	check "every list has the kind" env KINDS_DEF="$copy/src/terms/kinds.def" "$work/kinds"
	check "its name is offered" offered 'show kind ' trial
	check "show kind has it" answered trial show kind
	check "and in JSON" answered '"name":"trial"' -j show kind
	collector_begin "$made" <<-END
		[host]
		trial = 30
		[tenant t]
		match = uid=4000000000
		trial = 3
		process.device.mlx5_0.trial = 2
	END
	check "its limit is in force" answered 'trial +3' limit get tenant t
	check "it can be changed" rdma_intercept limit set tenant t trial=5 process.trial=4
	check "the change is in force" answered '"trial"' -j limit get tenant t
	check "a tenant's row has it in JSON" answered '"trial":\{' -j show tenant t
	check "the client library has it" gcc -Wall -Werror -o "$work/usage" "$sources/examples/usage.c" -I"$copy/include" \
		-L"$made" -lrdma_intercept_client -Wl,-rpath,"$made"
	try "$work/usage" trial
	check "and reads its limit" says out 't: 0 of 5'
	collector_end
	# The library says what is wrong with its settings.
	for setting in trial trail; do
		fresh
		try env LD_PRELOAD="$made/librdma_intercept.so" RDMA_INTERCEPT_LIMITS="process:$setting=1" "$build/test_global_limit"
		grep -F ': invalid value ' "$work/err" >"$work/complaint.$setting" || true
	done
	check "the library accepts a limit of it" test ! -s "$work/complaint.trial"
	check "and not of another name" test -s "$work/complaint.trail"
	check "a program that has rdma_monitor print" program_build print unit/print.c schema.c again.c harness.c session.c words.c
	check "rdma_monitor shows it" "$work/print" --only every_kind
	check "rdma_monitor is built with it" test -x "$made/rdma_monitor"
}

key() {
	check "a program that loops over the tables" program_build policy_rows unit/policy_rows.c again.c harness.c session.c words.c
	check "every row reaches everything that is made from it" "$work/policy_rows"
	cat >"$work/keys.conf" <<-END
		[collector]
		trial_path = /somewhere
		[host]
		trial_host = on
		[tenant t]
		trial_mode = audit
		trial.qp = 3
		trial.device.mlx5_0.mr_bytes = 1G
	END
	check "check knows the keys" rdma_intercept check "$work/keys.conf"
	sed -i 's/trial_host = on/trial_host = maybe/' "$work/keys.conf"
	try rdma_intercept check "$work/keys.conf"
	check "and their values" says out 'expected on or off'
	check "show key has them" answered trial_mode show key
	check "completed: of the host" offered 'limit set host ' trial_host=
	check "of a tenant, by kind" offered 'limit set tenant t ' trial.mr_bytes=
	check "to take it back" offered 'limit unset default ' trial_mode
	collector_begin "$made" <<-END
		[tenant t]
		match = uid=4000000000
	END
	check "a command sets one" rdma_intercept limit set tenant t trial_mode=enforce
	check "and it is kept" grep -qr 'trial_mode = enforce' "$work/state"
	collector_end
}

condition() {
	check "completed" offered 'tenant add t --match ' trial_gid=
	check "show key has it" answered trial_gid show key
	collector_begin "$made" <<-END
		[tenant t]
		match = trial_gid=$(id -g)
	END
	LD_PRELOAD=$made/librdma_intercept.so RDMA_INTERCEPT_TRANSPORT=lease \
		RDMA_INTERCEPT_QUIET=1 try "$build/test_global_limit"
	check "a process meets it" says log 'as tenant t'
	collector_end
}

subcommand() {
	check "help has it" answered 'trial word' --help
	check "its own help" answered 'trial word \[NUMBER\]' trial word --help
	check "JSON has it" answered '"name":"trial word"' -j --help
	check "its first word is completed" offered '' trial
	check "its second word" offered 'trial ' word
	check "its options" offered 'trial word --' --replace
	try rdma_intercept trial word 1 2
	check "it runs" says err 'trial word: 2 operands'
	try rdma_intercept trial
	check "a forgotten word" says err 'word'
}

task() {
	local copy_of_policy

	# control_keep writes the last good policy; no other task does.
	collector_begin "$made" <<-END
		[tenant t]
	END
	copy_of_policy=$(grep -rl 'tenant t' "$work/state" | head -1)
	check "there is what the task makes" test -n "$copy_of_policy"
	rm -f "$copy_of_policy"
	check "the task makes it again" eventually test -e "$copy_of_policy"
	collector_end
	collector_begin "$build" <<-END
		[tenant t]
	END
	rm -f "$copy_of_policy"
	sleep 2.5
	check "without the row it does not" test ! -e "$copy_of_policy"
	collector_end
}

[ "${1-}" = --list ] || copy_make
run_cases "kind key condition subcommand task" "$@"
