#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2317,SC2086 # variables of fleet.sh; functions that run_cases calls
# A quota of the fleet: it is divided by demand, and at no revision of etcd and at no moment on the hosts
# more of it is handed out than there is, whatever becomes of hosts, dividers and servers.
# Usage: quota.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"
# shellcheck source=tests/fleet/shares.sh
. "$(dirname "$0")/shares.sh"

by_demand() {
	local grown=0

	etcd_start 1
	history_begin
	host_start a b c
	check "a quota" fleet_command quota ml qp=30 guarantee.qp=2
	check "is divided" eventually limit_is 10 a b c
	worker_on a
	check "who wants more gets it" eventually grows_to a 20
	check "others keep their guarantee" [ "$(limit_on b)" -ge 2 ]
	check "no more is enforced than there is" enforced_check 30
	worker_on b
	check "another one gets at least its guarantee" eventually guaranteed b 2
	worker_end a quit
	grown=0
	# Idle hosts keep four each, and the last unit may stay where it is: small changes are left out.
	check "what was given back goes to others" eventually grows_to b 17
	check "a smaller quota" fleet_command quota ml qp=12
	check "is divided" eventually divided_at_most 12
	worker_end b quit
	hosts_end
	check "at no revision more than the quota" history_check 30
	show history <(history_check 30)
	etcd_end
}

guaranteed() {
	local grown=0

	grows_to "$1" "$2"
}

limit_above() {
	[ "$(limit_on "$1")" -gt "$2" ]
}

divided_at_most() {
	local name sum=0

	for name in "${hosts[@]}"; do
		sum=$((sum + $(limit_on "$name")))
	done
	[ "$sum" -le "$1" ]
}

# A host whose rdma_fleet is stopped cannot say anything, and its collector lowers the limit alone.
cut_off() {
	local events share

	etcd_start 1
	history_begin
	host_start a b c
	check "a quota" fleet_command quota ml qp=30 guarantee.qp=2
	check "is divided" eventually limit_is 10 a b c
	worker_on a
	check "the host uses some" guaranteed a 5
	check "and has said so" eventually reported a 5
	kill -STOP "$(pid_of fleet a)"
	worker_on b
	grown=0
	# More than it can have while the first host has its ten and the third its guarantee.
	check "others get its share" eventually grows_to b 19
	# What the host had made stays on its account.
	check "the host has what it keeps without a lease" limit_is 2 a
	share=$(etcdctl --endpoints "$endpoints" get --print-value-only /rdma/share/host-a/ml/qp)
	check "and what it holds stays on its account ($share)" grep -q '"share":5,' <<<"$share"
	check "it makes nothing new" ask a qp refused
	check "no more is enforced than there is" enforced_check 30
	# In etcd's order: its sign of life went before its share was lowered.
	events=$(awk '/^(PUT|DELETE)$/ { what = $0; getline key; getline value
		if (key ~ "/alive/host-a" && what == "DELETE") print "gone"
		if (key ~ "/share/host-a/" && value ~ "\"share\":5,") print "lowered" }' "$work/history" | tr '\n' ' ')
	check "the lease ended first: $events" [ "${events% }" = "gone lowered" ]
	kill -CONT "$(pid_of fleet a)"
	check "it comes back" eventually grep -c "in the fleet as host-a" "$work/a/fleet.log"
	check "and gets a share again" eventually limit_above a 5
	worker_end a quit
	worker_end b quit
	hosts_end
	check "at no revision more than the quota" history_check 30
	show history <(history_check 30)
	etcd_end
}

# The collector alone keeps the end of the lease, also if it begins anew meanwhile.
collector_restarts() {
	etcd_start 1
	host_start a
	check "a quota" fleet_command quota ml qp=30 guarantee.qp=2
	check "is divided" eventually limit_is 30 a
	kill_now "$(pid_of collector a)"
	collector_run a
	eventually answers_on a
	check "a collector that begins anew has the share" eventually limit_is 30 a
	kill_now "$(pid_of fleet a)"
	kill_now "$(pid_of collector a)"
	collector_run a
	eventually answers_on a
	check "without rdma_fleet the share ends" eventually limit_is 2 a
	kill_now "$(pid_of collector a)"
	collector_run a
	eventually answers_on a
	check "and does not come back" limit_is 2 a
	hosts_end
	etcd_end
}

divider_dies() {
	local divider others=()

	etcd_start 1
	history_begin
	host_start a b c
	check "a quota" fleet_command quota ml qp=30 guarantee.qp=2
	check "is divided" eventually limit_is 10 a b c
	divider=$(divider_host)
	kill_now "$(pid_of fleet "$divider")"
	check "another host divides" eventually another_divider "$divider"
	for name in a b c; do
		[ "$name" = "$divider" ] || others+=("$name")
	done
	worker_on "${others[0]}"
	grown=0
	check "also what the dead one had" eventually grows_to "${others[0]}" 14
	worker_end "${others[0]}" quit
	check "the operator forgets the host" fleet_command forget "host-$divider"
	check "all of it goes to the others" eventually divided_by_two 30 "${others[@]}"
	hosts_end
	check "at no revision more than the quota" history_check 30
	etcd_end
}

divided_by_two() {
	[ $(($(limit_on "$2") + $(limit_on "$3"))) -eq "$1" ]
}

run_cases "by_demand cut_off collector_restarts divider_dies" "$@"
