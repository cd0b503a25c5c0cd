#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma_monitor is started when there are thousands of objects already, also amid making and
# destroying: it finds each of them, once.
set -euo pipefail
. lab/lib.sh
lives=$BUILD_DIRECTORY/lab/lives
object_kinds=(ctx pd cq qp srq mr mw ah comp_channel cm_id other)
# How many objects the rows say; how many are on the monitor's list.
rows_total() { "$rows" | sums "${object_kinds[@]}" | tr ' ' '\n' | awk '/[0-9]/ { sum += $1 } END { print +sum }'; }
list_total() { "$monitor" --objects | wc -l; }
something_listed() { [ -n "$(listed "$before")" ]; }

count=600
[ -n "$lasting" ] || count=90 # Soft-RoCE had 100 address handles in all
before=$(kernel_counts)
begin many "$BUILD_DIRECTORY/lab/objects" hold 1000
begin ways "$BUILD_DIRECTORY/lab/paths" write $count
begin parent "$BUILD_DIRECTORY/lab/objects" heir 700 # more than one pass reads of a file
begin maker "$lives" pass 10
says many holding
says ways '^{'
says parent heir
says maker maker
monitor_start
echo "      (the start took $(elapsed) ms: $("$rows" head))"
mark
soon 1000 "all that was there is counted as the kernel lists it" rows_equal_kernel "$before"
check "2,000 objects of one file" test "$("$rows" "${process[many]}" | sums qp mr)" = 'qp 1000 mr 1000'
check "$count of each kind, also identifiers" test "$("$rows" "${process[ways]}" | sums ctx pd cq qp srq mr ah comp_channel cm_id)" = \
	"ctx 1 pd $count cq $count qp $count srq $count mr $count ah $count comp_channel $count cm_id $count"
check "what two hold, once" test "$("$rows" "${process[parent]}" | sums ctx qp)" = 'ctx 1 qp 700'
check "what was passed on, once" test "$("$rows" "${process[maker]}" | sums ctx qp)" = 'ctx 1 qp 10'
check "the list of objects has as many as the rows ($(list_total))" test "$(list_total)" -eq "$(rows_total)"
check "and as many as were found" test "$("$rows" head | sums found)" = "found $(rows_total)"
tell ways destroy
check "what was found is uncharged when it is destroyed" eventually rows_are '' "${process[ways]}"
end ways
kill -9 "$(sed -n 's/^heir //p' "$scratch/parent.out")" "$(sed -n 's/.*holder //p' "$scratch/maker.out")"
mark
for name in many parent maker; do
	killed $name
done
soon 1000 "or when its owner is killed" rows_are ''
check "no row is in use" eventually rows_are 0 used
monitor_stop

crowd=/sys/fs/cgroup/crowd
mkdir "$crowd"
for round in 1 2 3; do
	begin churn "${inside[@]}" crowd nice -n 19 "$lives" churn 0 $((round + RANDOM))
	eventually something_listed
	monitor_start
	sleep 1
	frozen "$crowd"
	check "amid churn, round $round: as the kernel lists it" eventually rows_equal_kernel "$before"
	echo "      ($("$rows" head | sums found), $("$rows"))"
	check "the list of objects has as many" test "$(list_total)" -eq "$(rows_total)"
	thawed "$crowd"
	sleep 0.5
	end churn && ended=0 || ended=$?
	check "no operation failed ($(tail -n 1 "$scratch/churn.out"))" test "$ended" -eq 0
	check "with its end, all is 0" eventually rows_are ''
	check "no row is in use" eventually rows_are 0 used
	monitor_stop
done
check "the kernel has nothing left" eventually nothing_listed "$before"
finish
