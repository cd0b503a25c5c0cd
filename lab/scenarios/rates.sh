#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clock: instructions
# A program that registers and deregisters memory in a loop slows down a neighbour's ib_write_bw;
# throttled to 100 calls per second it does not. Measurements of one run are compared: each round
# has one undisturbed, one beside the loop and one beside the throttled loop, in another order each
# time, and the best of the rounds counts. The guest's clock counts instructions. By the clock of
# the machine the neighbour would lose as much to whatever else the machine does as to the loop,
# and in an emulated guest 100 calls are a large part of what its processor can do in a second.
set -euo pipefail
. lab/lib.sh
pairs=$BUILD_DIRECTORY/bench/kernelpairs
size=65536 messages=1000
rounds=('alone disturbed throttled' 'throttled alone disturbed' 'disturbed throttled alone')

# transfer NAME: ib_write_bw between two processes of this host; its MB/s go to $scratch/NAME.rates
transfer() {
	local server
	ib_write_bw -d rxe0 -F -s $size -n $messages >"$scratch/server" 2>&1 &
	server=$!
	eventually tcp_listens 18515
	ib_write_bw -d rxe0 -F -s $size -n $messages 127.0.0.1 >"$scratch/client" 2>&1
	wait $server
	awk -v size=$size '$1 == size { print $4 }' "$scratch/client" >>"$scratch/$1.rates"
}
best() { sort -g "$scratch/$1.rates" | tail -n 1; }
# share NAME: the best of it, in hundredths of the best undisturbed one
share() { awk -v a="$(best "$1")" -v b="$(best alone)" 'BEGIN { print (b > 0 ? int(100 * a / b) : 0) }'; }

rate_set() { "$command" limit set default rate.reg_mr="$1" rate.dereg_mr="$1" max_delay=60s >/dev/null; }
# How many calls have waited, of both classes.
waited() { "$command" status | awk '/^default .* 100\/s burst 10 / { sum += $(NF - 3) } END { print sum + 0 }'; }
has_waited() { [ "$(waited)" -gt "$1" ]; }

# The loop runs during these two only.
disturbed() {
	kill -CONT "${process[loop]}"
	transfer disturbed
	kill -STOP "${process[loop]}"
}
throttled() {
	local before
	rate_set '100/s burst 10'
	before=$(waited)
	kill -CONT "${process[loop]}"
	check "the loop waits" eventually has_waited $((before + 10)) # its burst is used up
	before=$(waited)
	transfer throttled
	check "it waited during the transfer" has_waited $((before + 10))
	kill -STOP "${process[loop]}"
	rate_set unset
}

collector_start
begin loop env RDMA_INTERCEPT_TRANSPORT=lease LD_PRELOAD="$library" "$pairs" mr 1000000000
loop_is_there() { "$command" show process "${process[loop]}" >/dev/null 2>&1; }
check "the loop is registered" eventually loop_is_there
kill -STOP "${process[loop]}"
for round in "${rounds[@]}"; do
	for measurement in $round; do
		case $measurement in
		alone) transfer alone ;;
		disturbed) disturbed ;;
		throttled) throttled ;;
		esac
	done
	echo "      round ($round), MB/s: alone $(tail -n 1 "$scratch/alone.rates")," \
		"disturbed $(tail -n 1 "$scratch/disturbed.rates")," \
		"throttled $(tail -n 1 "$scratch/throttled.rates")"
done
echo "note: best MB/s: alone $(best alone), beside the loop $(best disturbed) ($(share disturbed) %)," \
	"beside the throttled loop $(best throttled) ($(share throttled) %)"
check "the loop slows the neighbour down" [ "$(share disturbed)" -lt 90 ]
check "beside the throttled loop the neighbour has at least 95 %" [ "$(share throttled)" -ge 95 ]
rate_set '100/s burst 10'
kill -CONT "${process[loop]}"
status_shows() { "$command" status | grep -qE 'reg_mr .* 100/s burst 10 '; }
check "status shows the rate" eventually status_shows
killed loop
collector_stop
finish
