#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clock: instructions
# Paces of the data path on a real device: a tenant's 5 MB/s hold for both interfaces and for
# perftest, every message arrives whole and in order, two processes share, a change holds while
# programs run, and without a pace the functions are the provider's own. The guest's clock counts
# instructions: by another one it would miss time whenever the machine is busy. A transfer takes
# 4 seconds; with RDMA_INTERCEPT_TEST_FACTOR above 1, 10.
set -euo pipefail
. lab/lib.sh
stream=$BUILD_DIRECTORY/lab/stream
pace=$((5 << 20))
[ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -gt 1 ] && seconds=10 || seconds=4
export RDMA_INTERCEPT_LOG_LEVEL=0

# field NAME: of the last line that stream printed to $scratch/stream
field() { tail -n 1 "$scratch/stream" | sed "s/.*$1 \([0-9.]*\).*/\1/"; }
# within PACE LOW HIGH: the rate is so many percent of the pace
within() {
	local percent=$(($(field rate) * 100 / $1))
	echo "note: $(field rate) bytes/s at a pace of $1"
	[ $percent -le "$3" ] && [ $percent -ge "$2" ]
}
streams() { # INTERFACE SECONDS
	env LD_PRELOAD="$library" "$stream" rxe0 "$1" 8192 "$2" >"$scratch/stream" 2>&1
}

collector_start
echo "-- without a pace"
check "messages arrive whole and in order" streams plain 4
check "the functions are the provider's own" [ "$(field ours)" = 0 ]
free=$(field rate)
echo "      ($free bytes/s without a pace)"

echo "-- 5 MB/s"
check "a pace is set" "$command" limit set default 'pace.bytes=5MB/s'
for interface in plain extended; do
	check "$interface: messages arrive whole and in order" streams $interface $seconds
	check "$interface: 5 MB/s" within $pace 95 105
	check "$interface: the functions are ours" [ "$(field ours)" = 1 ]
done

echo "-- perftest"
perftest() { # PROGRAM OPTIONS...
	local program=$1
	shift
	"$program" -d rxe0 -F -s 16384 -D $seconds "$@" >"$scratch/server" 2>&1 &
	eventually tcp_listens 18515
	env LD_PRELOAD="$library" "$program" -d rxe0 -F -s 16384 -D $seconds "$@" 10.77.0.1 >"$scratch/rows" 2>&1
	wait $!
}
bandwidth() { awk '$1 == 16384 { print $4 }' "$scratch/rows"; }
is_paced() {
	echo "note: $(bandwidth) MB/s"
	awk -v rate="$(bandwidth)" 'BEGIN { exit !(rate >= 4.75 && rate <= 5.25) }'
}
for program in ib_send_bw ib_write_bw; do
	for interface in '' --use_old_post_send; do
		check "$program $interface works" perftest $program $interface
		check "at 5 MB/s" is_paced
	done
done

echo "-- two processes"
share() {
	local pids=() each
	for each in 1 2; do
		env LD_PRELOAD="$library" "$stream" rxe0 plain 8192 $seconds >"$scratch/stream.$each" 2>&1 &
		pids+=($!)
	done
	wait "${pids[0]}" && wait "${pids[1]}"
}
rate_of() { tail -n 1 "$scratch/stream.$1" | sed 's/.*rate \([0-9]*\).*/\1/'; }
fair() {
	local one two
	one=$(rate_of 1) two=$(rate_of 2)
	echo "note: two processes $one and $two bytes/s"
	[ $((one + two)) -le $((pace * 105 / 100)) ] && [ $((one + two)) -ge $((pace * 95 / 100)) ] &&
		[ $((one * 100)) -ge $((two * 90)) ] && [ $((two * 100)) -ge $((one * 90)) ]
}
check "two processes send" share
check "they share the pace" fair

echo "-- changed while a program runs"
env LD_PRELOAD="$library" "$stream" rxe0 plain 8192 9 >"$scratch/stream" 2>&1 &
runs=$!
says_after() { grep -q "^at $1" "$scratch/stream"; }
eventually says_after '2\.'
"$command" limit set default 'pace.bytes=2MB/s'
changed=$(tail -n 1 "$scratch/stream" | awk '{ print $2 }')
eventually says_after '5\.'
"$command" limit unset default pace.bytes
check "the program ends well" wait $runs
# after OFFSET: the mean rate from so long after the change on, for 2 s
after() { awk -v from="$(awk "BEGIN { print $changed + $1 }")" '$1 == "at" && $2 > from && $2 < 4.9 { s += $3; n++ } END { print int(s / n * 10) }' "$scratch/stream"; }
echo "note: $(after 0.2) bytes/s from 200 ms after the change to 2 MB/s on"
check "2 MB/s hold after 200 ms" [ "$(after 0.2)" -le $((2 * 1048576 * 105 / 100)) ]
check "taken off, the functions are the provider's own again" [ "$(field ours)" = 0 ]
finish
