# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Cases of a test script, which sources this: the options --list and --only NAME, a directory of
# its own, checks, waits, and an end that leaves nothing behind. It knows no test.

work=$(mktemp -d -t rdma_test.XXXXXX)
workers=() # processes in the background, killed at the end
bad=0      # failed checks of the present case
present_case=

# is_own PID: whether this script has that process, as a job or in its session. The number of one that
# has ended may be that of a process of somebody else by now.
is_own() {
	local running stat_self=() stat_other=()

	running=" $(jobs -rp) $(jobs -sp) "
	[[ ${running//$'\n'/ } != *" $1 "* ]] || return 0
	read -ra stat_self </proc/$$/stat && read -ra stat_other <"/proc/$1/stat" || return 1
	[ "${stat_other[5]}" = "${stat_self[5]}" ]
} 2>/dev/null

clean_up() {
	local pid

	[ -z "$present_case" ] || echo "FAIL  $present_case (the script stopped here)"
	for pid in "${workers[@]}"; do
		! is_own "$pid" || { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
	done
	rm -rf "$work"
	rm -f "/dev/shm/${work##*/}"*
}
trap clean_up EXIT
trap 'exit 1' HUP INT PIPE TERM

# background command...: to be called with '&'; the command is killed when the script ends.
background() {
	if setpriv --pdeathsig KILL true 2>/dev/null; then
		exec setpriv --pdeathsig KILL "$@"
	fi
	exec "$@"
}

# eventually command...: tries until it succeeds. The patience is a number of tries and not a
# time: what makes the awaited thing slow on a busy machine makes the tries slow too.
eventually() {
	local tries

	for ((tries = 0; tries < 1200; tries++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}

# check "what should be so" command...: by the command's exit status
check() {
	local text=$1

	shift
	if "$@"; then
		echo "ok    $text"
	else
		echo "FAIL  $text"
		bad=$((bad + 1))
	fi
}

# skip_part REASON: a part of the case cannot run here; the case counts as skipped, not as passed
skip_part() {
	echo "skipped: $1"
	skipped=1
}

# run_cases "name..." "$@": runs the functions of these names, or what the options say. A case
# needs no earlier one. The last command of a script.
run_cases() {
	local case_names=$1 only_case='' passed_cases=0 failed_cases=0 skipped_cases=0

	shift
	[ $# -gt 0 ] || [ -z "${TEST_CASE-}" ] || set -- --only "$TEST_CASE"
	case ${1-} in
	'') ;;
	--list)
		tr -s ' \t' '\n\n' <<<"$case_names" | sed '/^$/d'
		exit 0
		;;
	--only)
		only_case=${2-}
		if [ $# -ne 2 ] || ! tr -s ' \t' '\n\n' <<<"$case_names" | grep -qxF -e "${only_case:- }"; then
			echo "--only: no case named '$only_case': --list prints the names" >&2
			exit 2
		fi
		;;
	*)
		echo "usage: $0 [--list | --only NAME]" >&2
		exit 2
		;;
	esac
	for present_case in $case_names; do
		[ -z "$only_case" ] || [ "$only_case" = "$present_case" ] || continue
		bad=0 skipped=''
		"$present_case"
		if [ "$bad" -eq 0 ] && [ -n "$skipped" ]; then
			skipped_cases=$((skipped_cases + 1))
			echo "skip  $present_case"
		elif [ "$bad" -eq 0 ]; then
			passed_cases=$((passed_cases + 1))
			echo "ok    $present_case"
		else
			failed_cases=$((failed_cases + 1))
			echo "FAIL  $present_case ($bad checks failed)"
		fi
	done
	present_case=
	if [ "$skipped_cases" -gt 0 ]; then
		echo "$passed_cases passed, $failed_cases failed, $skipped_cases skipped"
	else
		echo "$passed_cases passed, $failed_cases failed"
	fi
	[ "$failed_cases" -eq 0 ] || exit 1
	[ "$passed_cases" -gt 0 ] || exit 77
	exit 0
}
