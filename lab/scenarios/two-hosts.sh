#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two hosts on one wire: ping, rping and ib_write_bw from one to the other; the library of each
# counts the queue pairs of its own host; the kernel's queues (tc) act on the traffic class of a
# queue pair. Host 1 is the client and sends, host 2 is the server and receives.
# hosts: 2
set -euo pipefail
. lab/lib.sh
objects=$BUILD_DIRECTORY/lab/objects
receiver=10.77.0.2

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

# transfers NAME:CLASS:MESSAGES...: ib_write_bw of messages of 64 KiB with each traffic class, all
# at the same time. 64 packets of a queue pair may wait in a slow queue, so the time after which it
# sends them again is long (-u). ib_write_bw first measures how fast the processor's counter runs;
# if other work disturbs that, it may print 0.00 on both hosts, and both begin again.
transfers() {
	local try
	for try in 1 2 3 4 5; do
		transfers_run "$@"
		unmeasured "$@" || return 0
		echo "      (ib_write_bw printed 0.00 in try $try$(grep -h Correlation "$scratch"/class-* | head -n 1 | sed 's/^/: /'))"
	done
}
unmeasured() {
	local row
	for row; do
		[ "$(bandwidth "${row%%:*}")" != 0.00 ] || return 0
	done
	return 1
}
transfers_run() {
	local pids=() status row
	[ "$host" -eq 1 ] || transfers_start "$@"
	barrier "ib_write_bw listens"
	[ "$host" -eq 2 ] || transfers_start "$@"
	for row; do
		wait "${pids[0]}" && status=0 || status=$?
		pids=("${pids[@]:1}")
		check "ib_write_bw ends well: ${row%%:*}: $(bandwidth "${row%%:*}") MB/s" test $status -eq 0
		[ $status -eq 0 ] || show "$scratch/${row%%:*}"
	done
	check "the library counts no queue pair" eventually ledger_has 0
}
transfers_start() { # adds to pids
	local port=18515 row name class messages run
	for row; do
		IFS=: read -r name class messages <<<"$row"
		run=(ib_write_bw -d rxe0 -F -u 19 -s 65536 -n "$messages" --tclass="$class" -p "$port")
		[ "$host" -eq 2 ] || run+=("$receiver")
		guarded '' timeout -k 5 "$patience_seconds" "${run[@]}" >"$scratch/$name" 2>&1 &
		pids+=($!)
		[ "$host" -eq 1 ] || check "ib_write_bw listens: $name" eventually tcp_listens $port
		port=$((port + 1))
	done
}
bandwidth() { awk '$1 == 65536 { print $4 }' "$scratch/$1"; }
# faster NAME TIMES OTHER
faster() {
	echo "$1 $(bandwidth "$1") MB/s, $3 $(bandwidth "$3") MB/s" >"$scratch/rows"
	awk -v a="$(bandwidth "$1")" -v b="$(bandwidth "$3")" -v times="$2" \
		'BEGIN { exit !(a > 0 && b > 0 && a >= times * b) }'
}

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
