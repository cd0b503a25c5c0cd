#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2317,SC2086 # variables of fleet.sh; functions that run_cases calls
# One policy for many hosts: it reaches their collectors, also past servers that die, and a bad one
# does not. Usage: policy.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"

follow() {
	local begun written i

	etcd_start 3
	host_start a b c
	check "a policy is written" fleet_command limit tenant ml qp=11
	check "it reaches three collectors" eventually limit_is 11 a b c
	for i in 21 22 23 24 25; do
		begun=$(milliseconds)
		fleet_command limit tenant ml qp="$i" >/dev/null
		written=$(milliseconds)
		check "limit $i is in force everywhere" eventually limit_is "$i" a b c
		echo "      the command took $((written - begun)) ms, and $(($(milliseconds) - written)) ms later all three said so"
	done
	check "the fleet says who changed it" grep -q "changed by $(id -un)@" <(fleet_command status)
	check "a command on the host goes over it" "$command" -s "$work/a/socket" limit set tenant ml qp=7
	check "on that host" limit_is 7 a
	check "and only there" limit_is 25 b c
	hosts_end
	etcd_end
}

two_writers() {
	local i pids=()

	etcd_start 1
	check "a first policy" fleet_command limit tenant ml qp=1
	for i in 1 2 3 4 5 6 7 8; do
		fleet_command limit tenant "t$i" qp="$i" >"$work/writer$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		check "a writer" wait "$i"
	done
	fleet_command limit >"$work/policy"
	for i in 1 2 3 4 5 6 7 8; do
		check "the change of writer $i" grep -A1 "^\[tenant t$i\]" "$work/policy"
	done
	check "a value that is wrong" not fleet_command limit tenant ml qp=many
	check "an unknown key" not fleet_command limit tenant ml queue=3
	check "nothing of it was written" cmp -s "$work/policy" <(fleet_command limit)
	etcd_end
}

status_says() {
	fleet_command status | grep -q "$1"
}

bad_policy() {
	etcd_start 1
	host_start a
	fleet_command limit tenant ml qp=5 >/dev/null
	check "a good policy" eventually limit_is 5 a
	check "somebody writes another one by hand" ctl put /rdma/all/policy $'[tenant ml]\nqp = lots\n'
	check "the log names the mistake" eventually grep -q "line 2: .*qp.*the last good one stays" "$work/a/fleet.log"
	check "the status, too" eventually status_says 'host-a .*refused.*line 2'
	check "the last good one stays" limit_is 5 a
	check "keys of the collector" ctl put /rdma/all/policy $'[collector]\nsocket = /tmp/x\n'
	check "are refused" eventually grep -q "\[collector\] socket: not allowed here" "$work/a/fleet.log"
	check "one that is cut" ctl put /rdma/all/policy $'[tenant ml]\nqp = 6'
	check "is refused" eventually grep -q "no newline at its end" "$work/a/fleet.log"
	check "a key that is gone" ctl del /rdma/all/policy
	check "lifts no limit" eventually grep -q "has no policy any more" "$work/a/fleet.log"
	check "the first one is in force still" limit_is 5 a
	check "a good one again" fleet_command limit tenant ml qp=9
	check "is in force" eventually limit_is 9 a
	hosts_end
	etcd_end
}

# fits SCHEMA ARGUMENT...: the command's document
fits() {
	local schema=$1

	shift
	"$command" -j --config "$work/fleet.conf" "$@" >"$work/document" || return 1
	sed "s/^/$schema\t/" "$work/document" | "$build/tests/schemas" "$here/../docs/schemas"
}

# As people ask: rdma_intercept becomes rdma_fleet.
commands() {
	etcd_start 1
	host_start a
	echo "policy = $policy_address" >"$work/fleet.conf"
	printf '[tenant ml]\nqp = 5\n' >"$work/new.conf"
	check "a file as the policy" "$command" --config "$work/fleet.conf" fleet policy "$work/new.conf"
	check "it is in force" eventually limit_is 5 a
	check "JSON: a limit" fits fleet-limit fleet limit tenant ml qp=6
	check "JSON: a quota" fits fleet-quota fleet quota ml qp=9
	check "the quota is divided" eventually limit_is 9 a
	check "JSON: the policy" fits fleet-policy fleet policy
	check "JSON: status" fits fleet-status fleet status
	check "JSON: tenants" fits fleet-tenants fleet tenants
	check "a host that is alive is not forgotten" not "$command" --config "$work/fleet.conf" fleet forget host-a
	kill_now "$(pid_of fleet a)"
	check "one whose lease has ended is" eventually fits fleet-forget fleet forget host-a
	check "no such section" not "$command" --config "$work/fleet.conf" fleet limit tenants ml qp=1
	check "no servers: its exit status" exits_with 3 "$fleet" --policy etcd://127.0.0.1:1/x status
	check "a wrong address" exits_with 2 "$fleet" --policy http://127.0.0.1:1/x status
	hosts_end
	etcd_end
}

exits_with() {
	local wanted=$1

	shift
	try "$@"
	[ "$status" -eq "$wanted" ]
}

# Who may write the directory, and what in it is believed.
trust() {
	etcd_start 1
	host_start a
	fleet_command limit tenant ml qp=5 >/dev/null
	check "a good policy" eventually limit_is 5 a
	kill_now "$(pid_of fleet a)"
	printf '[tenant ml]\nqp = 500\n' >"$work/other.conf"
	ln -sf "$work/other.conf" "$work/a/fleet/policy.conf"
	check "a link is not followed" eventually grep -qE "policy.conf: (not trusted|Too many levels)" "$work/a/collector.log"
	check "the old limit stays" limit_is 5 a
	rm "$work/a/fleet/policy.conf"
	check "one that is gone lifts no limit" eventually grep -q "policy.conf: is missing" "$work/a/collector.log"
	cp "$work/other.conf" "$work/a/fleet/new" && chmod 666 "$work/a/fleet/new"
	mv "$work/a/fleet/new" "$work/a/fleet/policy.conf"
	check "a file that all can write is not read" eventually grep -q "not trusted: expected a regular file" "$work/a/collector.log"
	check "the old limit stays, too" limit_is 5 a
	printf '[tenant ml]\nqp = 6\n' >"$work/a/fleet/new"
	mv "$work/a/fleet/new" "$work/a/fleet/policy.conf"
	check "one of the owner is" eventually limit_is 6 a
	hosts_end
	etcd_end
}

servers_die() {
	local name

	etcd_start 3
	host_start a b c
	fleet_command limit tenant ml qp=11 >/dev/null
	check "three members" eventually limit_is 11 a b c
	kill_now "${etcd_pid[0]}"
	check "one member is dead: a change" eventually fleet_command limit tenant ml qp=12
	check "reaches all" eventually limit_is 12 a b c
	kill_now "${etcd_pid[1]}"
	kill_now "${etcd_pid[2]}"
	for name in a b c; do
		kill_now "$(pid_of fleet $name)"
		kill_now "$(pid_of collector $name)"
		rm -f "$work/$name/socket"
		collector_run $name
		fleet_run $name
		eventually answers_on $name
	done
	check "all members are dead, and everything began anew: the limits hold" limit_is 12 a b c
	for name in 0 1 2; do
		etcd_run $name
	done
	check "the members are back" eventually ctl endpoint health
	check "a change" eventually fleet_command limit tenant ml qp=13
	check "reaches all again" eventually limit_is 13 a b c
	hosts_end
	etcd_end
}

# What a stopped host missed is not in etcd any more.
compaction() {
	local revision

	etcd_start 1
	host_start a
	fleet_command limit tenant ml qp=11 >/dev/null
	check "a limit" eventually limit_is 11 a
	kill -STOP "$(pid_of fleet a)"
	for limit in 12 13 14; do
		fleet_command limit tenant ml qp=$limit >/dev/null
	done
	revision=$(fleet_command status | sed -n 's/^policy of revision \([0-9]*\).*/\1/p')
	check "compaction" ctl compaction "$revision"
	kill_now "${etcd_pid[0]}"
	etcd_run 0
	check "etcd is back" eventually ctl endpoint health
	kill -CONT "$(pid_of fleet a)"
	check "the last limit arrives" eventually limit_is 14 a
	fleet_command limit tenant ml qp=15 >/dev/null
	check "and the next" eventually limit_is 15 a
	hosts_end
	etcd_end
}

run_cases "follow two_writers bad_policy commands trust servers_die compaction" "$@"
