#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Service classes on two hosts: two tenants send at once through queues (tc) for the traffic classes
# 0x20 and 0x40 with shares of 1:3. Both programs ask for class 0; the library puts the tenants'
# classes in, so that they get these shares; without the library they do not. The same for queue
# pairs that rdma_cm connects. Host 1 sends, host 2 receives.
# hosts: 2
set -euo pipefail
. lab/hostlib.sh

if [ "$host" -eq 1 ]; then
	[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mkdir -p /sys/fs/cgroup/one /sys/fs/cgroup/three
	cat >"$scratch/policy" <<-END
		[tenant one]
		match = cgroup=/one
		traffic_class = 0x20
		[tenant three]
		match = cgroup=/three
		traffic_class = 0x40-0x5c
	END
	export RDMA_INTERCEPT_POLICY=$scratch/policy
	collector_start
	tc qdisc add dev lab0 root handle 1: htb default 9
	tc class add dev lab0 parent 1: classid 1:9 htb rate 10gbit
	tc class add dev lab0 parent 1: classid 1:2 htb rate 2mbit
	tc class add dev lab0 parent 1: classid 1:4 htb rate 6mbit
	tc filter add dev lab0 parent 1: protocol ip u32 match ip tos 0x20 0xfc flowid 1:2
	tc filter add dev lab0 parent 1: protocol ip u32 match ip tos 0x40 0xfc flowid 1:4
fi
# queues KBIT: that much for class 0x20 and three times as much for class 0x40. No queue lends to
# another, so it does not matter which transfer begins first.
queues() {
	[ "$host" -eq 1 ] || return 0
	tc class change dev lab0 parent 1: classid 1:2 htb rate "$1kbit" ceil "$1kbit"
	tc class change dev lab0 parent 1: classid 1:4 htb rate "$((3 * $1))kbit" ceil "$((3 * $1))kbit"
}
barrier "the queues are there"

# One packet each: so the rate of messages, which ib_write_bw prints with more digits, tells shares.
message_size=1024
packet=1098 # with its headers
covered=(env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease RDMA_INTERCEPT_LOG_LEVEL=DEBUG)
# The name of a transfer begins with its cgroup.
transfer_around() {
	if [ "$host" -eq 1 ]; then
		exec "${inside[@]}" "${1%%-*}" "${covered[@]}" "${@:2}"
	else
		exec "${@:2}"
	fi
}
# ratio ONE OTHER: messages of the second for each of the first
ratio() { awk -v a="$(message_rate "$1")" -v b="$(message_rate "$2")" 'BEGIN { printf "%.2f", (a > 0) ? b / a : 0 }'; }
is_three() { awk -v r="$1" 'BEGIN { exit !(r >= 2.7 && r <= 3.3) }'; }
isnt_three() { ! is_three "$1"; }
sent() { tc -s class show dev lab0 classid "$1" | awk '$1 == "Sent" { print $2 }'; }

# filled KBIT: by 95 %. A guest that gets too little of the machine does not fill the queues, and then they
# share out nothing. Both hosts see the same numbers, and both begin again with slower queues.
filled() {
	awk -v a="$(message_rate one)" -v b="$(message_rate three)" -v most="$(($1 * 125 / packet))" \
		'BEGIN { exit !(a >= 0.95 * most && b >= 0.95 * 3 * most) }'
}

echo "-- with the library"
for kbit in 2000 1000 500 250 250 250 250 250; do
	queues $kbit
	transfers "one:0:$((kbit / 2))" "three:0:$((3 * kbit / 2))"
	! filled $kbit || break
	echo "      (queues of $kbit and $((3 * kbit)) kbit/s were not filled: $(message_rate one) and $(message_rate three) messages/s)"
done
if [ "$host" -eq 1 ]; then
	check "the shares are 1:3, within 10 % ($(ratio one three))" is_three "$(ratio one three)"
	check "the packets went through both queues ($(sent 1:2) and $(sent 1:4) bytes)" \
		test "$(sent 1:2)" -ge $((kbit / 2 * packet)) -a "$(sent 1:4)" -ge $((3 * kbit / 2 * packet))
	check "the log says what was replaced" grep -q 'traffic class 0x20, and not 0x00' "$RDMA_INTERCEPT_LOG_FILE_PATH"
fi

echo "-- without the library"
covered=()
transfers one-bare:0:1000 three-bare:0:1000
if [ "$host" -eq 1 ]; then
	check "the shares are others ($(ratio one-bare three-bare))" isnt_three "$(ratio one-bare three-bare)"
fi

echo "-- rdma_cm"
covered=(env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease)
if [ "$host" -eq 2 ]; then
	begin rping rping -s -a $receiver -C 20 -S 20000
	check "rping listens" eventually cm_listens
fi
barrier "rping listens"
if [ "$host" -eq 1 ]; then
	queues 2000
	before=$(sent 1:2)
	check "rping of tenant one ends well" "${inside[@]}" one "${covered[@]}" timeout 170 rping -c -a $receiver -C 20 -S 20000
	# A round is a read and a write of the 20000 bytes: what is read comes from host 2.
	check "its queue pair has the class ($(($(sent 1:2) - before)) bytes)" test $(($(sent 1:2) - before)) -gt 300000
fi
barrier "rping is done"
[ "$host" -eq 1 ] || end rping || true
finish
