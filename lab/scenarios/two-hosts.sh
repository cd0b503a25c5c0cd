#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two hosts on one wire: ping, rping and ib_write_bw from one to the other; the library of each
# counts the queue pairs of its own host; the kernel's queues (tc) act on the traffic class of a
# queue pair. Host 1 is the client and sends, host 2 is the server and receives.
# hosts: 2
set -euo pipefail
. lab/hostlib.sh
objects=$BUILD_DIRECTORY/lab/objects

# ledger_has COUNT, kernel_has COUNT: queue pairs on rxe0, by the ledger and by the kernel without
# those that it had before
ledger_has() { "$objects" ledger rxe0 | tee "$scratch/rows" | grep -q " qp $1 "; }
kernel_qps() { rdma resource show rxe0 | sed 's/.* qp \([0-9]*\).*/\1/'; }
kernel_has() { [ $(($(kernel_qps) - qps_before)) -eq "$1" ]; }
before=$(kernel_counts)
qps_before=$(kernel_qps)

echo "-- ping and rping"
barrier "the host runs"
answers() { busybox ping -c 1 "10.77.0.$1" >"$scratch/rows"; }
check "the other host answers a ping" answers $((3 - host))
if [ "$host" -eq 2 ]; then
	begin rping env LD_PRELOAD="$library" rping -s -a $receiver -v
	check "rping listens" eventually cm_listens
fi
barrier "the server listens"
[ "$host" -eq 2 ] || begin rping env LD_PRELOAD="$library" rping -c -a $receiver -v
says rping 'ping data: rdma-ping-9:'
check "rping works with the other host" grep -q 'ping data: rdma-ping-9:' "$scratch/rping.out"
check "the library counts the queue pair of this host" ledger_has 1
check "the kernel has the same" kernel_has 1
barrier "the queue pairs are counted"
[ "$host" -eq 2 ] || killed rping
check "the kernel is back at the state before" settled "$before"
[ "$host" -eq 1 ] || killed rping
check "the library counts no queue pair" eventually ledger_has 0

# faster NAME TIMES OTHER
faster() {
	echo "$1 $(bandwidth "$1") MB/s, $3 $(bandwidth "$3") MB/s" >"$scratch/rows"
	awk -v a="$(bandwidth "$1")" -v b="$(bandwidth "$3")" -v times="$2" \
		'BEGIN { exit !(a > 0 && b > 0 && a >= times * b) }'
}

transfers_done() { check "the library counts no queue pair" eventually ledger_has 0; }

echo "-- without a queue for the class"
transfers class-0-before:0:100
transfers class-0x20-before:0x20:100

echo "-- with a queue of 2 Mbit/s for class 0x20"
if [ "$host" -eq 1 ]; then
	tc qdisc add dev lab0 root handle 1: htb default 1
	tc class add dev lab0 parent 1: classid 1:1 htb rate 10gbit
	tc class add dev lab0 parent 1: classid 1:2 htb rate 2mbit
	tc filter add dev lab0 parent 1: protocol ip u32 match ip tos 0x20 0xfc flowid 1:2
fi
transfers class-0:0:100 class-0x20:0x20:10
if [ "$host" -eq 1 ]; then
	# Without the filter the two are about equal; with it, factors of 13 to 40 were seen.
	check "class 0x20 has at most a third of what it had before" faster class-0x20-before 3 class-0x20
	check "class 0x20 has at most a third of what class 0 has at the same time" faster class-0 3 class-0x20
	tc -s class show dev lab0 classid 1:2 | tee "$scratch/queue" | sed 's/^/      /'
	check "the packets of class 0x20 went through its queue" grep -qE '^ Sent [0-9]{6,} bytes' "$scratch/queue"
fi
finish
