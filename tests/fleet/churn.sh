#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2317,SC2034,SC2086 # variables of fleet.sh; functions that run_cases calls
# Three hosts on three members of etcd, and random misfortune: rdma_fleet, collectors, members and
# programs are killed, hosts are cut off and come back, everything is killed at once. At no revision of
# etcd are more shares handed out than the quota, and at no look is more in force. RDMA_INTERCEPT_TEST_FACTOR=150
# is ten minutes of it or more. Usage: churn.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"
# shellcheck source=tests/fleet/shares.sh
. "$(dirname "$0")/shares.sh"

quota=60 guarantee=3 looks=0 wrong=0
lease=3
declare -A done_times=()

random_of() { # WORD...
	shift $((RANDOM % $#))
	echo "$1"
}

# A look at what is in force on all hosts together.
look() {
	looks=$((looks + 1))
	enforced_check $quota || wrong=$((wrong + 1))
}

looks_for() { # NUMBER
	local i

	for ((i = 0; i < $1; i++)); do
		look
	done
}

fleet_again() {
	kill -CONT "$(pid_of fleet "$1")" 2>/dev/null
	kill_now "$(pid_of fleet "$1")"
	fleet_run "$1"
}

collector_again() {
	kill_now "$(pid_of collector "$1")"
	rm -f "$work/$1/socket"
	collector_run "$1"
	eventually answers_on "$1" || check "the collector of $1 answers" false
}

program_again() {
	! [ -e "$work/$1.in" ] || worker_end "$1" KILL
	worker_on "$1"
}

# The program of a host makes what it is let make.
wants() { # NAME NUMBER
	fill "$1" "$2"
}

share_has_ended() {
	[ "$(limit_on "$1")" = $guarantee ]
}

misfortune() {
	local name other what=$1 i

	name=$(random_of a b c)
	done_times[$what]=$((${done_times[$what]-0} + 1))
	case $what in
	fleet_killed) fleet_again "$name" ;;
	collector_killed) collector_again "$name" ;;
	program_killed) program_again "$name" ;;
	program_wants) wants "$name" $((1 + RANDOM % quota)) ;;
	member_killed)
		i=$((RANDOM % 3))
		kill_now "${etcd_pid[i]}"
		looks_for 5
		etcd_run $i
		;;
	host_cut_off)
		kill -STOP "$(pid_of fleet "$name")"
		# Others want its share at once, and must not have it before its end.
		for ((i = 0; i < 1000; i++)); do
			! share_has_ended "$name" || break
			for other in a b c; do
				[ "$other" = "$name" ] || wants "$other" $quota
			done
			look
		done
		check "the share of $name ends" share_has_ended "$name"
		looks_for 5
		kill -CONT "$(pid_of fleet "$name")"
		;;
	all_killed)
		for i in 0 1 2; do
			kill_now "${etcd_pid[i]}"
		done
		looks_for 5
		for name in a b c; do
			collector_again $name
			fleet_again $name
		done
		for i in 0 1 2; do
			etcd_run $i
		done
		;;
	limit_changed) fleet_command limit tenant ml mr=$((100 + RANDOM % 100)) >/dev/null 2>&1 ;;
	esac
	looks_for 3
}

# Shares of all hosts as the history has them, and as etcd has them now.
history_is_complete() {
	local now

	now=$(etcdctl --endpoints "$endpoints" get --prefix /rdma/share/ | grep -c '"share"')
	[ "$now" -eq 3 ] && [ "$(etcdctl --endpoints "$endpoints" get --prefix /rdma/share/)" = "$(last_shares)" ]
}

last_shares() {
	awk '/^PUT$/ { getline key; getline value; if (key ~ "/share/") last[key] = value }
		END { for (key in last) print key "\n" last[key] }' "$work/history" | paste - - | sort | tr '\t' '\n'
}

all_divided() {
	divided $quota
}

all_guaranteed() {
	local name limit

	for name in a b c; do
		limit=$(limit_on $name)
		[[ $limit =~ ^[0-9]+$ ]] && [ "$limit" -gt $guarantee ] || return 1
	done
}

churn() {
	local i what began=$SECONDS

	RANDOM=${CHURN_SEED:-$$}
	etcd_start 3
	history_begin
	host_start a b c
	check "a quota" eventually fleet_command quota ml qp=$quota guarantee.qp=$guarantee
	check "is divided" eventually all_divided
	for name in a b c; do
		worker_on $name
	done
	for ((i = 0; i < 8 * factor; i++)); do
		# Each at least once in the short form, and the dear ones less often.
		set -- host_cut_off fleet_killed collector_killed member_killed all_killed program_wants limit_changed program_killed
		[ $i -ge $# ] && set -- fleet_killed collector_killed program_killed program_wants program_wants fleet_killed \
			collector_killed program_killed program_wants limit_changed member_killed host_cut_off host_cut_off all_killed
		[ $i -lt 8 ] && shift $i && what=$1 || what=$(random_of "$@")
		misfortune "$what"
	done
	for i in 0 1 2; do
		kill -0 "${etcd_pid[i]}" 2>/dev/null || etcd_run $i
	done
	check "a limit reaches all again" eventually fleet_command limit tenant ml mr=99
	for name in a b c; do
		check "on $name" eventually limit_is_mr $name 99
	done
	for name in a b c; do
		worker_end $name KILL
	done
	check "each host has its guarantee again" eventually all_guaranteed
	check "in $looks looks no more was in force than the quota" [ $wrong -eq 0 ]
	check "the history has all changes" eventually history_is_complete
	check "at no revision more than the quota" history_check $quota
	show history <(history_check $quota)
	echo "      $((8 * factor)) misfortunes in $((SECONDS - began)) s, $looks looks:"
	for what in "${!done_times[@]}"; do
		echo "      ${done_times[$what]} $what"
	done
	hosts_end
	etcd_end
}

limit_is_mr() {
	[ "$(limit_on "$1" mr)" = "$2" ]
}

run_cases "churn" "$@"
