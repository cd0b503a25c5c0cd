#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Three hosts on one wire, with a member of etcd, a collector, rdma_fleet and programs with queue pairs of
# Soft-RoCE on each. A limit reaches all; a member is killed, then all, and the limits outlive restarts
# of everything; a host whose wire is cut has its share until its lease ends, and only then others
# get it. Programs never hold more than the quota. In these emulated guests a call of etcd takes half
# a second, so that the lease is long; tests/fleet has the times of a real machine.
# hosts: 3
set -euo pipefail
. lab/lib.sh
command -v etcd >/dev/null || skip "etcd is not installed"
command -v etcdctl >/dev/null || skip "etcdctl is not installed"
fleet=$BUILD_DIRECTORY/rdma_fleet
worker=$BUILD_DIRECTORY/test_shm_version
export ETCDCTL_API=3
lease=20 own=10.77.0.$host
cluster='' servers='' endpoints=''
for ((i = 1; i <= hosts; i++)); do
	cluster+=${cluster:+,}m$i=http://10.77.0.$i:2380
	servers+=${servers:+,}10.77.0.$i:2379
	endpoints+=${endpoints:+,}http://10.77.0.$i:2379
done
policy=etcd://$servers/rdma

# Its patience is for disks and wires that are slower than these, and for processors that are not.
etcd_start() {
	apart etcd --name "m$host" --data-dir "$scratch/etcd" --logger zap --log-level warn --unsafe-no-fsync \
		--heartbeat-interval 1000 --election-timeout 10000 \
		--listen-client-urls "http://$own:2379" --advertise-client-urls "http://$own:2379" \
		--listen-peer-urls "http://$own:2380" --initial-advertise-peer-urls "http://$own:2380" \
		--initial-cluster "$cluster" >>"$scratch/etcd.log" 2>&1 &
	etcd=$!
}
fleet_command() { "$fleet" --policy "$policy" "$@" >"$scratch/rows" 2>&1; }
fleet_start() {
	apart "$fleet" --policy "$policy" --directory "$scratch/fleet" --socket "$scratch/sock" \
		--host "host-$host" --lease $lease >>"$scratch/fleet.log" 2>&1 &
	fleet_pid=$!
}
ended() {
	kill -9 "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}
limit_on_host() { "$command" limit get tenant ml | awk -v kind="$1" '$2 == "ml" && $3 == kind { print $4 }'; }
limit_is() { [ "$(limit_on_host "$1" | tee "$scratch/rows")" = "$2" ]; }
limit_above() { [ "$(limit_on_host "$1" | tee "$scratch/rows")" -gt "$2" ] 2>/dev/null; }
limit_above_and_below() { limit_above "$1" "$2" && ! limit_above "$1" "$3"; }
member_answers() { ETCDCTL_DIAL_TIMEOUT=5s etcdctl --endpoints "http://$own:2379" get /nothing >/dev/null 2>&1; }

# A program under the library makes queue pairs when told.
worker_begin() { begin "$1" env LD_PRELOAD="$library" RDMA_INTERCEPT_QUIET=1 "$worker" --worker; }
worker_has() { grep -c '^ok' "$scratch/$1.out" || true; }
worker_answered() { [ "$(wc -l <"$scratch/$1.out")" -ge "$2" ]; }
worker_makes() { # NAME NUMBER: at most so many more
	local i answers
	answers=$(wc -l <"$scratch/$1.out")
	for ((i = 0; i < $2; i++)); do
		tell "$1" qp
	done
	check "the program of host $host answers" eventually worker_answered "$1" $((answers + $2))
}

takes_more() {
	worker_makes taker 2 >/dev/null
	limit_above qp 11
}
# What happened to the sign of life and the share of host 3, in the order of etcd.
share_events() {
	awk '/^(PUT|DELETE)$/ { what = $0; getline key; getline value
		if (key ~ "/alive/host-3" && what == "DELETE") { gone = 1; printf "gone " }
		if (key ~ "/share/host-3/" && match(value, /"share":[0-9]+/)) {
			share = substr(value, RSTART + 8, RLENGTH - 8) + 0
			if (share < before && share <= 2) printf "lowered "
			before = share
		} }' "$scratch/history"
}
shares_are_at_most() { # QUOTA: all together, after each change
	awk -v quota="$1" '/^(PUT|DELETE)$/ { what = $0; getline key; getline value
		if (key !~ "/share/") next
		share = match(value, /"share":[0-9]+/) ? substr(value, RSTART + 8, RLENGTH - 8) + 0 : 0
		sum += share - shares[key]; shares[key] = share; changes++
		if (sum > most) most = sum }
		END { printf "%d changes, at most %d handed out\n", changes, most; exit !changes || most > quota }' \
		"$scratch/history" >"$scratch/rows"
}

mkdir "$scratch/fleet"
printf '[collector]\nfleet = %s\n[tenant ml]\nmatch = uid=0\n' "$scratch/fleet" >"$scratch/policy.conf"
export RDMA_INTERCEPT_POLICY=$scratch/policy.conf
etcd_start
collector_start
check "the member of etcd answers" eventually member_answers
barrier "etcd answers"
fleet_start
check "the host is in the fleet" eventually grep -q 'in the fleet as' "$scratch/fleet.log"
barrier "all are in the fleet"

echo "-- a limit reaches all hosts"
[ "$host" -ne 1 ] || check "host 1 sets a limit" eventually fleet_command limit tenant ml qp=11
mark
soon 1000 "a limit is in force" limit_is qp 11
barrier "the first limit is in force"
[ "$host" -ne 2 ] || check "host 2 sets another one" eventually fleet_command limit tenant ml qp=4
mark
soon 1000 "it is in force" limit_is qp 4
worker_begin four
worker_makes four 9
check "a program has exactly four queue pairs" test "$(worker_has four)" -eq 4
killed four
barrier "the limit holds"

echo "-- one member is killed, then everything"
[ "$host" -ne 3 ] || ended $etcd
barrier "host 3 has no member"
[ "$host" -ne 1 ] || check "host 1 sets a limit" eventually fleet_command limit tenant ml qp=6
check "it is in force, also where the member is dead" eventually limit_is qp 6
barrier "the limit is in force"
ended $etcd
barrier "no member is alive"
ended $fleet_pid
collector_kill
collector_start
fleet_start
check "a collector that begins without etcd has the limit" limit_is qp 6
barrier "all began anew"
etcd_start
check "the member is back" eventually member_answers
barrier "etcd is back"
[ "$host" -ne 1 ] || check "host 1 sets a limit" eventually fleet_command limit tenant ml qp=1000
check "it is in force" eventually limit_is qp 1000
barrier "the limit is high"

echo "-- a host is cut off"
[ "$host" -ne 1 ] || check "host 1 sets a quota" eventually fleet_command quota ml qp=30 guarantee.qp=2
check "the host has a share" eventually limit_above_and_below qp 7 30
barrier "the quota is divided"
if [ "$host" -eq 1 ]; then
	apart etcdctl --endpoints "http://$own:2379" watch --rev=1 --prefix /rdma/ >"$scratch/history" 2>&1 &
	watcher=$!
	check "host 1 watches all changes" eventually grep -q /rdma/share/host-3 "$scratch/history"
fi
worker_begin taker
barrier "the wire is about to be cut"
mark
if [ "$host" -eq 3 ]; then
	echo "      (the share is $(limit_on_host qp))"
	ip link set lab0 down
	check "without etcd the collector ends the share" eventually limit_is qp 2
	echo "      ($(elapsed) ms after the wire was cut; the lease has $lease s)"
	worker_makes taker 5
	check "its program gets the guarantee and no more" test "$(worker_has taker)" -eq 2
	# The others must have seen that its lease has ended, before it is back.
	sleep $lease
	ip link set lab0 up
	ip route add 10.78.0.0/16 dev lab0
else
	worker_makes taker 30
	check "the others get what it had" eventually takes_more
	echo "      ($(elapsed) ms after the wire was cut, with $(worker_has taker) queue pairs)"
fi
barrier "the share has gone"
check "the host that was cut off comes back" eventually limit_above qp 2
barrier "all have a share"
if [ "$host" -eq 1 ]; then
	ended $watcher
	check "its lease ended before its share was lowered: $(share_events)" test "$(share_events | cut -d' ' -f 1,2)" = "gone lowered"
	check "at no revision more than the quota is handed out" shares_are_at_most 30
	sed 's/^/      /' "$scratch/rows"
fi
killed taker
ended $fleet_pid
ended $etcd
[ $checks_failed -eq 0 ] || show "$scratch/fleet.log" "$scratch/etcd.log"
finish
