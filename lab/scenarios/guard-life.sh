#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard in the kernel outlives the collector and the keeper; it is unloaded and loaded again,
# also while a tenant works. That takes half a minute each time if emulated.
set -euo pipefail
. lab/guardlib.sh
cycles=${RDMA_INTERCEPT_TEST_FACTOR:-1}
guard_start

echo "-- without a collector, without a keeper"
"$command" limit set tenant a qp=7 >/dev/null
check "a limit of 7 is in force" eventually is limits a 'qp 7' qp
collector_kill
limited a/1 7
collector_start
check "the next one finds everything as it was" eventually is limits a 'qp 7' qp
limited a/1 7
begin owner "${inside[@]}" tenants/a/1 "$lives" batches
says owner 'ok 0'
tell owner +4
says owner 'ok 4'
kill -9 "$keeper"
wait "$keeper" 2>/dev/null || true
intrude other a/1 "made 3 errno $refusal" fill qp 5
end other
mark
"$command" limit set tenant a qp=6 >/dev/null
soon 100 "without a keeper, a new limit is in force" is limits a 'qp 6' qp
tell owner +2
says owner 'ok 6'
tell owner +1
says owner 'Disk quota exceeded'
end owner || true
all_back a
monitor_start
check "the next keeper has the guard" eventually armed
limited a/1 6

echo "-- unloaded, and loaded again"
monitor_stop
check "nothing is left in the bpf file system" test ! -e /sys/fs/bpf/rdma_intercept
programs_gone() { [ "$(bpftool prog show | grep -c '^[0-9]' || true)" -eq "$programs_before" ]; }
check "nor in the kernel" eventually programs_gone
begin owner "${inside[@]}" tenants/a/1 "$lives" batches
says owner 'ok 0'
tell owner +20
says owner 'ok 20'
monitor_start
check "loaded again, the guard finds what there is" eventually is used a 'qp 20' qp
intrude other a/1 "made 0 errno $refusal" fill qp 1
end other
tell owner -15
says owner '^ok 5$'
intrude other a/1 "made 1 errno $refusal" fill qp 3
end other
killed owner
all_back a

echo "-- loaded and unloaded under load, $cycles times"
begin churn "${inside[@]}" tenants/crowd/1 nice -n 19 "$lives" churn 0 1 3
crowd_is_charged() { armed && [ -n "$(of used crowd | tee "$scratch/rows")" ]; }
for ((i = 0; i < cycles; i++)); do
	monitor_stop
	monitor_start
	check "time $i: who works is charged" eventually crowd_is_charged
	check "and not killed" is killed crowd 0
	check "nor refused" is refused crowd ''
done
end churn && ended=0 || ended=$?
check "no operation failed ($(tail -n 1 "$scratch/churn.out"))" test "$ended" -eq 0
[ "$ended" -eq 0 ] || show "$scratch/churn.out"
all_back crowd
guard_stop
