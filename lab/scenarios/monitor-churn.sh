#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Random making and destroying by many processes and threads of which some are killed:
# rdma_monitor's counts are then the kernel's, of all and of each process, and in the end 0.
# Also where the kernel may be preempted, and where more threads wait in it than it has kretprobes;
# and guarded, with the collector's books as the third that must agree.
# processors: 2
set -euo pipefail
. lab/lib.sh
operations=$((20000 * ${RDMA_INTERCEPT_TEST_FACTOR:-1})) seed=${SEED:-$RANDOM}

# What the kernel lists one by one, with its maker; not all list contexts.
kinds_made=("${kinds_listed[@]}")
[ -n "$lasting" ] || kinds_made=(pd cq qp mr)
# lists_take; process_equals_kernel PID: what the kernel lists for its threads
lists_take() {
	for kind in "${kinds_made[@]}"; do
		rdma resource show "$kind" | sed "s/^/$kind /"
	done >"$scratch/lists"
}
process_equals_kernel() {
	local ours kernel
	ours=$("$rows" "$1" | sums "${kinds_made[@]}")
	kernel=$(awk -v threads="$(ls "/proc/$1/task")" '
		BEGIN { split(threads, list); for (i in list) ours[list[i]] = 1 }
		match($0, / pid [0-9]+/) && substr($0, RSTART + 5, RLENGTH - 5) in ours { print $1, 1 }' \
		"$scratch/lists" | sums "${kinds_made[@]}")
	echo "$1: the rows: $ours; the kernel: $kernel" >"$scratch/rows"
	[ "$ours" = "$kernel" ]
}
processes_equal_kernel() {
	local process
	lists_take
	for process in "$@"; do
		process_equals_kernel "$process" || return
	done
}
objects_total() { "$rows" | sums ctx pd cq qp srq mr mw ah comp_channel other | tr ' ' '\n' | awk '/[0-9]/ { sum += $1 } END { print +sum }'; }
list_total() { "$monitor" --objects | wc -l; }
misses() { bpftool prog show | grep -oE 'name [fk]_.*recursion_misses [0-9]+' | sed -E 's/name ([a-z_]+) .*recursion_misses/\1 missed/' | tr '\n' ' '; }

# What the collector's books have of these, and whether anybody's differ from the kernel.
kinds_booked=(ctx pd cq qp srq mr)
books() {
	"$command" -j status | python3 -c '
import json, sys
status = json.load(sys.stdin)
print(" ".join(f"{kind} {count}" for kind in sys.argv[1:]
               for count in [status["host"]["kinds"][kind]["used"]] if count))
monitor = status["collector"]["monitor"]
print("drifting", monitor["drifting"], "uncovered", monitor["uncovered"])' "${kinds_booked[@]}"
}
books_equal_rows() {
	local ours
	ours=$("$rows" | sums "${kinds_booked[@]}")
	books >"$scratch/rows"
	echo "the rows: $ours" >>"$scratch/rows"
	[ "$(head -n 2 "$scratch/rows")" = "$ours"$'\n''drifting 0 uncovered 0' ]
}

# churn OPERATIONS PROCESSES HOOKS [RUN-BY...]
churn() {
	local survivors ended
	monitor_start --hooks "$3"
	[ -z "${4-}" ] || collector_start
	begin churn "${@:4}" "$BUILD_DIRECTORY/lab/lives" churn "$1" "$seed" "$2"
	mark
	check "$1 operations in $2 processes (seed $seed, $3)" eventually grep -q survivors "$scratch/churn.out"
	echo "      ($(elapsed) ms)"
	read -ra survivors < <(sed -n 's/^survivors //p' "$scratch/churn.out")
	check "the rows are what the kernel lists" eventually rows_equal_kernel "$before"
	echo "      ($("$rows"))"
	check "for each process too" processes_equal_kernel "${survivors[@]}"
	check "the objects are as many as the rows say ($(list_total))" test "$(list_total)" -eq "$(objects_total)"
	[ -z "${4-}" ] || {
		check "so do the books of the collector, and nobody's differ" eventually books_equal_rows
		show "$scratch/rows"
	}
	check "only the living have rows" test "$("$rows" used)" -ge "$2" -a "$("$rows" used)" -le $((3 * $2))
	end churn && ended=0 || ended=$?
	mark
	check "no operation failed ($(tail -n 1 "$scratch/churn.out"))" test "$ended" -eq 0
	soon 1000 "with their end, all is 0" rows_are ''
	check "no row is in use" eventually rows_are 0 used
	check "no object is left" test "$(list_total)" -eq 0
	[ -z "${4-}" ] || {
		check "the books are empty" eventually books_equal_rows
		collector_stop
	}
	check "nothing was lost" bash -c "'$rows' head | grep -q ' lost_objects 0 lost_rows 0 '"
	[ -z "$(misses)" ] || echo "      ($(misses))"
	monitor_stop
}

before=$(kernel_counts)
preemption=/sys/kernel/debug/sched/preempt
echo "-- as it is ($(cat $preemption 2>/dev/null || echo 'no choice of preemption'))"
churn "$operations" 6 auto
if grep -qs ' full' $preemption; then
	chosen=$(grep -o '([a-z]*)' $preemption | tr -d '()')
	echo full >$preemption
	echo "-- preempted wherever it may be ($(cat $preemption))"
	churn $((operations / 3)) 6 auto
	echo "$chosen" >$preemption
fi
echo "-- by kprobes, with many threads"
churn $((operations / 3)) 32 kprobe
echo "-- guarded, with a collector"
churn $((operations / 3)) 6 auto env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease
check "the kernel has nothing left" eventually nothing_listed "$before"
finish
