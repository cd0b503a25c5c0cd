#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command rdma_intercept, from outside: exit statuses, what it says, JSON, the
# start of programs, completion; and, where the collector has been built, everything
# that is asked of one.
# usage: tests/cli.sh [--list | --only CASE]
# shellcheck disable=SC2016,SC2317 # words for other shells; functions that check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

command=$build/rdma_intercept
collector=$build/collector_server
sources=${SOURCE_DIRECTORY:-$here/..}
documents=$work/documents # every JSON document that was seen
chmod 711 "$work"
export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_COLLECTOR_STATE=$work/state
export RDMA_MONITOR_DIRECTORY=$work/monitor # and not the host's, if it has one
export RDMA_COLLECTOR_CGROUPS=$work/cgroups RDMA_COLLECTOR_DEVICES=$work/devices
mkdir "$RDMA_COLLECTOR_CGROUPS" "$RDMA_COLLECTOR_DEVICES"
export LC_ALL=C.UTF-8
unset NO_COLOR RDMA_INTERCEPT_LIBRARY

if [ ! -x "$command" ]; then
	echo "$command is missing: build the project first" >&2
	exit 1
fi

# exits status argument...: so the command ends
exits() {
	local wanted=$1

	shift
	try "$command" "$@"
	[ "$status" -eq "$wanted" ]
}

# complains status text argument...: so it ends, with one line on stderr that has the text
complains() {
	local wanted=$1 text=$2

	shift 2
	exits "$wanted" "$@" && silent out && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q '^rdma_intercept: ' "$work/err" && says err "$text"
}

# answers argument...: with a JSON document and status 0
answers() {
	exits 0 -j "$@" && silent err && is_json && note_document "$(schema_of "$@")" <"$work/out"
}

# schema_of argument...: the schema of what this command prints
schema_of() {
	local name line=" $* " # "show tenants" is "show tenant"

	line=$(sed -E 's/ show (tenant|device|kind|key)s / show \1 /; s/ show processes / show process /' <<<"$line")
	case $line in
	*' --help '* | *' -h '* | ' help '*) echo help ;;
	*' --version '* | *' -V '*) echo version ;;
	*)
		for name in "${names[@]}"; do # "guard status" has a "status" in it, too
			[[ $line != *" $name "* ]] || echo "${name// /-}"
		done | awk 'length > length(longest) { longest = $0 } END { print longest }'
		;;
	esac
}

# note_document schema <lines: for the case schemas
note_document() {
	sed "s/^/$1\t/" >>"$work/named_documents"
}

# is_json: the output is one document; it is kept for the comparison with the reference
is_json() {
	cat "$work/out" >>"$documents"
	[ "$(wc -l <"$work/out")" -eq 1 ] || return 1
	! command -v jq >/dev/null || jq -e . "$work/out" >/dev/null
}

# in_terminal columns arguments...: what a terminal of that width gets, in $work/screen
in_terminal() {
	local columns=$1

	shift
	script -qec "stty cols $columns; '$command' $*" /dev/null </dev/null >"$work/screen"
}

# ---- what several cases use

mapfile -t names < <(sed -n 's/^COMMAND([a-z_]*, "\([^"]*\)".*/\1/p' "$sources/src/cli/commands.def")
mapfile -t options < <(sed -n 's/^OPTION(\([a-z]*\),.*/\1/p' "$sources/src/cli/options.def")

# environment name: its value in what run started
environment() {
	sed -n "s/^$1=//p" "$work/out"
}
same() {
	echo "'$1' and '$2'"
	[ "$1" = "$2" ]
}

# completes line candidates...: these are among what bash would offer
completes() {
	local line="rdma_intercept $1" wanted offered

	shift
	offered=$(PATH=$build:$PATH bash -c '
		. "$1"
		COMP_LINE=$2 COMP_POINT=${#2}
		_rdma_intercept
		printf "%s\n" "${COMPREPLY[@]}"
	' - "$sources/packaging/bash-completion/rdma_intercept" "$line")
	echo "offered: $offered"
	for wanted; do
		grep -qxFe "$wanted" <<<"$offered" || return 1
	done
}

# daemon_completes program word... -- candidates...: these are among what bash would offer for the last word
daemon_completes() {
	local words=() wanted offered

	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	offered=$(PATH=$build:$PATH bash -c '
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_rdma_daemon "$1"
		printf "%s\n" "${COMPREPLY[@]}"
	' - "$sources/packaging/bash-completion/rdma_daemons" "${words[@]}")
	echo "offered: $offered"
	for wanted; do
		grep -qxFe "$wanted" <<<"$offered" || return 1
	done
}

policy=$work/policy.conf
good_policy() {
	cat >"$policy" <<-END
		[host]
		qp = 100
		mr_bytes = 1536M
		device.$device.qp = 50
		[default]
		process.qp = 5
		[tenant ours]
		match = uid=$(id -u)
		qp = 4
		[tenant theirs]
		match = uid=4000000
		mode = warn
	END
}
ready() {
	"$command" status >/dev/null 2>&1
}

# collector_begin: one with a new state and the good policy
collector_begin() {
	collector_end
	rm -rf "$work/state" "$RDMA_MONITOR_DIRECTORY"
	good_policy
	background "$collector" --policy "$policy" >>"$work/collector.log" 2>&1 &
	collector_pid=$!
	workers+=("$collector_pid") # ended with them
	if ! eventually ready; then
		cat "$work/collector.log"
		exit 1
	fi
	fresh
}
collector_end() {
	[ -n "$collector_pid" ] || return 0
	kill -KILL "$collector_pid"
	wait "$collector_pid" 2>/dev/null || true
	collector_pid=
}
collector_pid=

monitor=$RDMA_MONITOR_DIRECTORY
counts() {
	"$build/tests/kernel_file" "$monitor" "$@"
}
watched() {
	exits 0 status && grep -qE "^monitor +$1\$" "$work/out"
}
first_process() {
	grep -A1 '^ *PID ' "$work/out" | grep -qE "^ *$1 "
}
# guarded text: so the status of the tenant ends
guarded() {
	exits 0 guard status && grep -qE "^guests +(yes|no) +.* $1\$" "$work/out"
}

# ---- the cases

# shellcheck source=tests/cli_containers.sh
. "$here/cli_containers.sh"
# shellcheck source=tests/cli_alone.sh
. "$here/cli_alone.sh"
# shellcheck source=tests/cli_run.sh
. "$here/cli_run.sh"
# shellcheck source=tests/cli_collector.sh
. "$here/cli_collector.sh"
# shellcheck source=tests/cli_overrides.sh
. "$here/cli_overrides.sh"
# shellcheck source=tests/cli_names.sh
. "$here/cli_names.sh"

# Every field of every document that the other cases saw; alone it has nothing to compare.
json_reference() {
	if [ ! -s "$documents" ]; then
		skip_part "no other case ran"
		return
	fi
	grep -oE '"[a-z_]+":' "$documents" | tr -d '":' | sort -u >"$work/fields"
	check "there were documents" test "$(wc -l <"$work/fields")" -gt 50
	while read -r field; do
		grep -q "^KIND($field," "$sources/src/terms/kinds.def" ||
			check "docs/json.md has '$field'" grep -q "\`$field\`" "$sources/docs/json.md"
	done <"$work/fields"
}

# Every document that the other cases saw fits its schema, in which each field stands.
schemas() {
	local directory=$sources/docs/schemas extra

	if [ ! -x "$build/tests/schemas" ] || [ ! -s "$work/named_documents" ]; then
		skip_part "no other case ran, or $build/tests/schemas is missing"
		return
	fi
	if [ -x "$collector" ]; then
		collector_begin
		for arguments in 'tenant add guests --match uid=4000001 qp=5' 'limit set tenant guests qp=6' \
			'limit unset tenant guests qp' 'limit reset host' 'guard off guests' 'tenant remove guests' reload; do
			read -ra words <<<"$arguments"
			check "$arguments as JSON" answers "${words[@]}"
		done
		collector_end
	fi
	exits 3 -j status
	check "a failure as JSON" note_document error <"$work/out"
	# The monitor's are held against theirs in unit/print.c, the history's in dashboard/history.sh, those
	# of enable and disable in packages.sh, the fleet's in fleet/policy.sh, those of hooks in the lab's
	# scenario containers; a token is not asked for here.
	check "documents fit docs/schemas" "$build/tests/schemas" --all "$directory" history dashboard enable disable oci-hook-{start,stop} monitor-table \
		monitor-event monitor-object fleet-{status,tenants,limit,quota,policy,forget} <"$work/named_documents"
	extra=$(grep -m1 '^tenant-list' "$work/named_documents" | sed 's/}$/,"surprise":1}/')
	check "a field that no schema has is found" not "$build/tests/schemas" "$directory" <<<"$extra"
	extra=$(grep -m1 '^tenant-list' "$work/named_documents" | sed 's/"mode":/"surprise":1,"mode":/')
	check "also inside of an array" not "$build/tests/schemas" "$directory" <<<"$extra"
	extra=$(grep -m1 '^tenant-list' "$work/named_documents" | sed 's/"mode":/"mood":/')
	check "one that is missing, too" not "$build/tests/schemas" "$directory" <<<"$extra"
	extra=$(grep -m1 '^tenant-list' "$work/named_documents" | sed 's/"processes":[0-9]*/"processes":"many"/')
	check "and one of another type" not "$build/tests/schemas" "$directory" <<<"$extra"
}

cases="usage_errors help_and_version help_of_daemons no_collector embedded_file check_policy doctor doctor_host run_programs
	output_and_escapes completion completion_of_daemons container_specification container_hooks"
cases+=" run_unloadable run_privileged"
if [ -x "$collector" ]; then
	cases+=" container_lines status_and_show matches explain_as patterns ports explain_and_run relative_paths changes reloading processes follow_events
		overrides
		choose_events
		users_named names_that_hang
		what_the_kernel_has what_the_kernel_refuses bad_names_and_terminals other_users"
else
	echo "skipped: $collector is missing, and so are the cases that need it" >&2
fi
run_cases "$cases json_reference schemas" "$@"
