#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clock: instructions
# Priorities on a link that is full: ib_send_lat of a latency tenant beside ib_send_bw of a bulk
# tenant, without the priorities and with them. Without, each small message waits behind packets of
# the bulk tenant in the queue of the link; with them, its 99th percentile must be at least three
# times better. Both are measured in this run, with the same programs and the same bulk process.
#
# Packets that a Soft-RoCE device sends to itself meet no queue. So there are two devices, near and
# far, at the ends of a veth pair, and tc makes the way from near to far a link of 20 Mbit/s. Routing
# rules send what this host sends to its own other address over the pair. The guest's clock counts
# instructions: by another one messages would take longer whenever the machine is busy.
# shellcheck disable=SC2317 # functions that check calls
set -euo pipefail
. lab/lib.sh
export RDMA_INTERCEPT_LOG_LEVEL=0 RDMA_INTERCEPT_TRANSPORT=lease
link_rate=$((20000000 / 8))
bulk_floor=131072
messages=500

# end_make DEVICE ADDRESS PEER PEER_ADDRESS: one end of the pair. Its neighbour is entered by hand,
# since a host does not answer itself.
end_make() {
	sysctl -qw "net.ipv4.conf.$1.accept_local=1" "net.ipv4.conf.$1.rp_filter=0" "net.ipv6.conf.$1.disable_ipv6=1"
	ip address add "$2/32" dev "$1"
	ip link set "$1" mtu 9000 up # for packets of 4096 bytes
	ip route add "$4" dev "$1" src "$2" table 79
	ip rule add pref 10 iif lo from "$2" to "$4" lookup 79
	ip neighbour add "$4" dev "$1" nud permanent lladdr "$(cat "/sys/class/net/$3/address")"
	rdma link add "$1" type rxe netdev "$1"
}
link_make() {
	sysctl -qw net.ipv4.conf.all.rp_filter=0
	ip link add near type veth peer name far
	end_make near 10.79.0.1 far 10.79.0.2
	end_make far 10.79.0.2 near 10.79.0.1
	ip rule add pref 11 lookup local # was the first rule
	ip rule del pref 0
	tc qdisc add dev near root tbf rate $((link_rate * 8))bit burst 8k limit 4m
}
# Bytes that have gone over the link.
link_bytes() { tc -s qdisc show dev near | awk '$1 == "Sent" { print $2 }'; }
link_carried() { [ "$(link_bytes)" -ge "$1" ]; }
# link_is_full: in one second it carries nearly what it can
link_is_full() {
	local before passed
	before=$(link_bytes)
	mark
	sleep 1
	passed=$(elapsed)
	full=$((($(link_bytes) - before) * 100000 / passed / link_rate))
	[ "$full" -ge 80 ]
}

covered=(env LD_PRELOAD="$library")
# With events, since on one processor a program that polls would disturb by that alone. The bulk
# program has up to 8 messages posted: 128 KB, for which the link takes 52 ms.
bulk=(ib_send_bw -F -e -N -s 16384 -t 8 -n 1000000)
lat=(ib_send_lat -F -e -s 64 -n "$messages" -p 18600)

# latency NAME: ib_send_lat from near to far, both ends of the latency tenant. With -C the server does
# not measure how fast the processor's counter runs: only the client's figures are read.
latency() {
	local status=0
	begin server "${inside[@]}" latency "${covered[@]}" "${lat[@]}" -d far -C
	eventually tcp_listens 18600
	"${inside[@]}" latency "${covered[@]}" "${lat[@]}" -d near 127.0.0.1 >"$scratch/$1" 2>&1 || status=$?
	end server || status=$?
	check "$1: ib_send_lat ends well" [ $status -eq 0 ]
	echo "note: $1: p50 $(figure "$1" 5) us, p99 $(figure "$1" 8) us, longest $(figure "$1" 4) us"
}
# figure NAME COLUMN: of the row that ib_send_lat printed
figure() { awk -v n="$messages" -v column="$2" '$1 == 64 && $2 == n { print $column }' "$scratch/$1"; }
# factor ONE OTHER: how many times the 99th percentile of the second is in that of the first
factor() { awk -v a="$(figure "$1" 8)" -v b="$(figure "$2" 8)" 'BEGIN { printf "%.1f", (b > 0) ? a / b : 0 }'; }
at_least_three() { awk -v factor="$1" 'BEGIN { exit !(factor >= 3) }'; }
# pace TENANT FIELD
pace() { "$command" -j status | jq -r ".paces[] | select(.tenant == \"$1\").$2"; }
is_counted() { [ "$(pace bulk posted_operations)" -gt 0 ]; }

# Without the library, too, both sides wait there for an event after every packet has arrived.
case $(uname -r) in
6.12.* | 7.2.*) skip "ib_send_lat -e waits for ever on Soft-RoCE of this kernel" ;;
esac
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/latency /sys/fs/cgroup/bulk
printf '[tenant %s]\nmatch = cgroup=/%s\n' latency latency bulk bulk >"$scratch/policy"
export RDMA_INTERCEPT_POLICY=$scratch/policy
link_make
collector_start
latency alone

echo "-- without the priorities"
begin bulk-server "${bulk[@]}" -d far
eventually tcp_listens 18515
begin bulk "${inside[@]}" bulk "${covered[@]}" "${bulk[@]}" -d near 127.0.0.1
check "the bulk tenant sends" eventually link_carried $(($(link_bytes) + 500000))
latency without

echo "-- with the priorities"
check "the priorities are set" "$command" limit set tenant latency priority=latency
check "and the floor" "$command" limit set tenant bulk priority=bulk bulk_floor=$bulk_floor/s
check "the bulk process follows while it runs" eventually is_counted
check "the bulk tenant fills the link" eventually link_is_full
echo "note: it takes $full % of the link"
latency with
check "the bulk tenant was delayed ($(pace bulk delays) posts)" [ "$(pace bulk delays)" -gt 0 ]
check "p99 beside bulk is at least 3 times better with the priorities ($(factor without with) times)" \
	at_least_three "$(factor without with)"
check "afterwards the bulk tenant fills the link again" eventually link_is_full
killed bulk
killed bulk-server
finish
