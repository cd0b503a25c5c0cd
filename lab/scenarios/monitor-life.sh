#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma_monitor's own life: readers that sleep, keepers that are killed, loading and unloading
# under load, modules that come and go, and everything that may be missing where it starts.
set -euo pipefail
. lab/lib.sh
lives=$BUILD_DIRECTORY/lab/lives
cycles=$((2 * ${RDMA_INTERCEPT_TEST_FACTOR:-1}))
before=$(kernel_counts)

# fails SENTENCE COMMAND...: with status 1, and says so
fails() {
	local sentence=$1 status=0
	shift
	"$@" >/dev/null 2>"$scratch/said" || status=$?
	cp "$scratch/said" "$scratch/rows"
	[ $status -eq 1 ] && grep -q "^rdma_monitor: .*$sentence" "$scratch/said"
}
keeper_killed() {
	kill -9 "$1"
	wait "$1" 2>/dev/null || true
}
is_kept() { ! flock -n /run/rdma_intercept/monitor.keeper true; }
# What is in the kernel by bpf, ours and other.
in_kernel() { for kind in prog link map; do bpftool $kind show; done | grep '^[0-9]' || true; }
nothing_more() { [ "$(in_kernel | tee "$scratch/rows" | wc -l)" -eq "$1" ]; }
modules_out() {
	modprobe -r rdma_ucm && modprobe -r rdma_rxe && { [ ! -e /sys/module/ib_uverbs ] || modprobe -r ib_uverbs; }
}
modules_in() {
	modprobe -a rdma_rxe ib_uverbs rdma_ucm
	for i in 0 1; do
		rdma link add "rxe$i" type rxe netdev "lab$i"
	done
}
owner_begin() {
	begin owner "$lives" batches
	says owner 'ok 0'
	tell owner "+$1"
	says owner "ok $1"
}
owner_has() { [ "$("$rows" "${process[owner]}" 2>/dev/null | sums qp | tee "$scratch/rows")" = "qp $1" ]; }

echo "-- a reader of events that sleeps"
eventually nothing_more 0 || true # what was unloaded before may still be on its way out
in_kernel_before=$(in_kernel | wc -l)
monitor_start
begin events "$monitor" --events -j
sleep 3 # it says nothing when it begins to read
owner_begin 1
check "events arrive" eventually grep -q '"event":"made","pid":'"${process[owner]}"',.*"kind":"qp"' "$scratch/events.out"
for name in many more; do
	begin $name "$BUILD_DIRECTORY/lab/objects" hold 3000
done
says many holding
says more holding
check "12,000 objects are counted" test "$("$rows" "${process[many]}" | sums qp mr), $("$rows" "${process[more]}" | sums qp mr)" = \
	'qp 3000 mr 3000, qp 3000 mr 3000'
kill -STOP "${process[events]}"
killed many
killed more
check "while it sleeps they go, and are uncharged" eventually rows_are "$("$rows" "${process[owner]}")"
begin many "$BUILD_DIRECTORY/lab/objects" hold 300
says many holding
check "others come, and are counted" rows_equal_kernel "$before"
check "events were dropped ($("$rows" head | sums dropped))" bash -c "'$monitor' --once -j | grep -q '\"dropped_events\":[1-9]'"
kill -CONT "${process[events]}"
check "awake, the reader says so" eventually grep -q '^rdma_monitor: [1-9][0-9]* events were dropped' "$scratch/events.out"
tell owner +1
check "and reads on" eventually bash -c "[ \$(grep -c '\"pid\":${process[owner]},.*\"kind\":\"qp\"' '$scratch/events.out') -eq 2 ]"
kill "${process[events]}"
check "it ends well" end events

echo "-- a reader that wants the events of one process"
begin chosen "$monitor" --events -j --pid "${process[owner]}" --device rxe0 --kind qp --kind cq
sleep 3 # it says nothing when it begins to read
begin more "$BUILD_DIRECTORY/lab/objects" hold 300
says more holding
killed more
tell owner +1
says owner 'ok 3'
check "the wanted event arrives" eventually grep -q '"event":"made","pid":'"${process[owner]}"',.*"kind":"qp"' "$scratch/chosen.out"
# The program prints all that is in the ring, so the kernel has left out the others.
check "and no other" test "$(grep -c '"pid"' "$scratch/chosen.out")" -eq 1
check "its time is RFC 3339" grep -qE '^\{"time":"20[0-9-]{8}T[0-9:]{8}\.[0-9]{9}Z",' "$scratch/chosen.out"
kill "${process[chosen]}"
check "it ends well, too" end chosen
begin chosen "$monitor" --events -j --cgroup /no-such
check "a cgroup that does not exist is named" eventually grep -q '^rdma_monitor: --cgroup: .*/no-such: No such file' "$scratch/chosen.out"
end chosen || true
begin chosen "$monitor" --events -j --device rxe7
sleep 3
tell owner +1
says owner 'ok 4'
sleep 1
check "nothing happens on another device" test ! -s "$scratch/chosen.out"
kill "${process[chosen]}"
end chosen || true
for arguments in "--pid ${process[owner]}" '--kind qp --device rxe0' '--kind cm_id' '--device rxe7'; do
	read -ra words <<<"$arguments"
	count=0
	case $arguments in --pid* | *rxe0) count=4 ;; esac
	check "objects $arguments" test "$("$monitor" --objects -j "${words[@]}" | grep -c "\"pid\":${process[owner]},.*\"kind\":\"qp\"")" -eq "$count"
done
check "the table fits 80 columns" test -z "$("$monitor" --once | grep -E '.{81}')"
killed many
end owner

echo "-- a keeper that is killed"
patience=2500
[ -n "$lasting" ] || patience=15000 # it loads everything again, emulated
owner_begin 30
found=$("$rows" head | sums found)
keeper_killed "$keeper"
tell owner +20
says owner 'ok 50'
tell owner -15
says owner 'ok 35'
if [ -n "$lasting" ]; then
	check "counting goes on without a process" owner_has 35
	check "no less for others" rows_equal_kernel "$before"
else
	echo "      (this kernel ends counting with it)"
fi
mark
monitor_start
soon $patience "the next one reads on" owner_has 35
check "as the kernel lists it" rows_equal_kernel "$before"
[ -z "$lasting" ] || check "nothing was found anew" test "$("$rows" head | sums found)" = "$found"
apart "$monitor" --keep >>"$scratch/monitor" 2>&1 &
second=$!
sleep 1
keeper_killed "$keeper"
mark
tell owner +5
says owner 'ok 40'
soon 2500 "a second one, which only looked on, takes over" is_kept
soon $patience "and counts" owner_has 40
keeper=$second
tell owner -40
says owner '^ok 0$'
check "as the kernel lists it" eventually rows_equal_kernel "$before"
end owner
check "no row is in use" eventually rows_are 0 used
monitor_stop

echo "-- loaded and unloaded $cycles times under load"
begin churn nice -n 19 "$lives" churn 0 1
mark
for ((i = 0; i < cycles; i++)); do
	hooks=auto
	[ $((i % 2)) -eq 0 ] || hooks=kprobe
	"$monitor" --once --hooks $hooks >"$scratch/once" 2>&1 && "$monitor" --unload >>"$scratch/once" 2>&1 || {
		check "time $i, --hooks $hooks" false
		show "$scratch/once"
	}
done
echo "      ($(($(elapsed) / cycles)) ms each)"
end churn && ended=0 || ended=$?
check "no operation failed ($(tail -n 1 "$scratch/churn.out"))" test "$ended" -eq 0
check "nothing is left in the bpf file system" test ! -e /sys/fs/bpf/rdma_intercept
check "nor in the kernel" eventually nothing_more "$in_kernel_before"
check "the kernel has nothing left" eventually nothing_listed "$before"

echo "-- modules that come and go"
monitor_start --hooks kprobe
owner_begin 5
check "by kprobes, 5 QPs" owner_has 5
end owner
check "kprobes let modules go" modules_out
sleep 0.5
check "without them it waits" kill -0 "$keeper"
check "and counts nothing" rows_are ''
modules_in
mark
owner_begin 5
soon 1000 "when they are back, it counts again" owner_has 5
has_context() { [ "$("$rows" "${process[owner]}" | sums ctx)" = 'ctx 1' ]; }
check "contexts as well" eventually has_context
end owner
check "up and down" eventually rows_are ''
monitor_stop
if [ -n "$lasting" ]; then
	monitor_start --hooks fentry
	if preempted; then
		echo "      (kprobes, which this kernel needs, let modules go)"
	else
		check "fentry does not let modules go" bash -c '! rmmod rdma_ucm 2>&1'
	fi
	monitor_stop
else
	echo "      (this kernel has no fentry for modules)"
	check "and says so" fails 'no BTF describes the function' "$monitor" --once --hooks fentry
fi
check "unloaded, modules may go, in a moment" eventually rmmod rdma_ucm
monitor_start
owner_begin 1
check "without rdma_ucm, nothing is said of identifiers" bash -c "'$monitor' --once -j | grep -q '\"cm_id\":null'"
end owner
modprobe rdma_ucm
mark
begin ways "$BUILD_DIRECTORY/lab/paths" ioctl
says ways '^{'
ways_have() { [ "$("$rows" "${process[ways]}" | sums cm_id | tee "$scratch/rows")" = 'cm_id 5' ]; }
soon 1000 "with the module that came late, they are counted" ways_have
tell ways destroy
check "and uncounted" eventually rows_are '' "${process[ways]}"
end ways
monitor_stop

echo "-- what may be missing"
owner_begin 4
module=$(awk '$3 == "rdma_alloc_commit_uobject" { gsub(/[][]/, "", $4); print $4 }' /proc/kallsyms)
echo OE >"$scratch/taint"
mount --bind "$scratch/taint" "/sys/module/$module/taint"
check "foreign modules: fentry is refused, and which it is" fails "module $module is out of tree" "$monitor" --once --hooks fentry
check "so are kprobes" fails "module $module is out of tree" "$monitor" --once --hooks kprobe
by_netlink() {
	"$monitor" --once -j >"$scratch/rows" 2>"$scratch/said" && grep -q "watching by netlink, because .*$1" "$scratch/said" &&
		grep -q '"mode":"netlink".*"pid":'"${process[owner]}"',.*"qp":4,' "$scratch/rows"
}
check "the kernel's own list takes their place" by_netlink "$module"
monitor_start
check "and is kept up to date" owner_has 4
tell owner +2
check "every second" eventually owner_has 6
tell owner -2
kill "$keeper"
check "it ends well" wait "$keeper"
umount "/sys/module/$module/taint"

cp /sys/kernel/btf/vmlinux "$scratch/vmlinux.btf"
mount -t tmpfs tmpfs /sys/kernel/btf
check "no types: the list again, and how to help" by_netlink '--btf'
[ -z "$lasting" ] || {
	check "a file of the kernel's types is not enough: its modules' are missing" fails 'no BTF describes struct' \
		"$monitor" --once --hooks kprobe --btf "$scratch/vmlinux.btf"
	umount /sys/kernel/btf
	mount --bind /dev/null /sys/kernel/btf/vmlinux
	check "no types but the modules': the list again" by_netlink vmlinux
}
by_kprobes() { "$rows" head 2>/dev/null | tee "$scratch/rows" | grep -q 'mode kprobe observed 0x[1-9a-f]'; }
apart "$monitor" --keep --btf "$scratch/vmlinux.btf" >>"$scratch/monitor" 2>&1 &
keeper=$!
check "with a file of types it counts by kprobes" eventually by_kprobes
tell owner +2
check "not what was there before, but what is made" eventually owner_has 2
monitor_stop
[ -z "$lasting" ] || check "fentry needs the kernel's own" fails 'fentry needs' "$monitor" --once --hooks fentry --btf "$scratch/vmlinux.btf"
umount /sys/kernel/btf/vmlinux 2>/dev/null || umount /sys/kernel/btf
check "not root: it says so" fails 'needs root' setpriv --reuid 65534 --regid 65534 --clear-groups "$monitor" --once
end owner
modules_out
check "no ib_uverbs: it says so" fails 'ib_uverbs is not loaded' "$monitor" --once
check "nothing to unload: it says so" fails 'nothing is loaded' "$monitor" --unload
modules_in
check "the kernel has nothing left" eventually nothing_listed "$before"
finish
