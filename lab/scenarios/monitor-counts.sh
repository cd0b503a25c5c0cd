#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma_monitor counts what processes hold, whichever way they made it and however they
# end: killed, without destroying, with heirs, in other cgroups, with the device gone.
set -euo pipefail
. lab/lib.sh
lives=$BUILD_DIRECTORY/lab/lives
empty() { rows_are '' "$@"; }
holds() { [ "$("$rows" "$1" | sums "${@:3}" | tee "$scratch/rows")" = "$2" ]; } # PID COUNTS KIND...

before=$(kernel_counts)
monitor_start
echo "      ($("$rows" head))"

echo "-- ends of processes"
begin owner "$BUILD_DIRECTORY/lab/objects" hold 500
says owner holding
check "500 QPs and 500 MRs are counted" holds "${process[owner]}" 'ctx 1 pd 1 cq 1 qp 500 mr 500 mr_bytes 2048000 comp_channel 1' \
	ctx pd cq qp mr mr_bytes comp_channel
check "as the kernel lists them" rows_equal_kernel "$before"
check "on their device" test "$("$rows" device rxe0)" = "$("$rows" "${process[owner]}")"
mark
killed owner
soon 1000 "killed, it holds nothing" empty "${process[owner]}"
check "and nobody does" empty

begin owner "$lives" exit 50
says owner made
check "50 QPs and 50 MRs of the next" holds "${process[owner]}" 'qp 50 mr 50' qp mr
mark
end owner
soon 1000 "ended without destroying, it holds nothing" empty "${process[owner]}"

begin owner "$BUILD_DIRECTORY/lab/objects" heir 20
says owner heir
heir=$(sed -n 's/^heir //p' "$scratch/owner.out")
killed owner
sleep 0.2
check "the dead parent of an heir is still charged" holds "${process[owner]}" 'ctx 1 qp 20 mr 20' ctx qp mr
check "the heir is not" empty "$heir"
check "and its row says that it has ended" bash -c "'$monitor' --once -j | grep -q '\"pid\":${process[owner]},[^}]*\"ended\":true'"
mark
kill -9 "$heir"
soon 1000 "with the heir, that ends" empty

begin owner "$lives" pass 20
says owner maker
read -r _ _ _ holder <"$scratch/owner.out"
check "a descriptor that was passed on changes nothing" holds "${process[owner]}" 'ctx 1 qp 20' ctx qp
killed owner
sleep 0.2
check "its dead maker is still charged" holds "${process[owner]}" 'ctx 1 qp 20' ctx qp
check "as the kernel lists it" rows_equal_kernel "$before"
mark
kill -9 "$holder"
soon 1000 "with the holder, that ends" empty

echo "-- cgroups"
old=/sys/fs/cgroup/monitor-old new=/sys/fs/cgroup/monitor-new
mkdir $old $new
old_inode=$(stat -c %i $old) new_inode=$(stat -c %i $new)
begin owner bash -c "echo \$\$ >$old/cgroup.procs && exec '$lives' batches"
says owner 'ok 0'
tell owner +30
says owner 'ok 30'
echo "${process[owner]}" >$new/cgroup.procs
tell owner +12
says owner 'ok 42'
check "what it made before it moved is the old cgroup's" test "$("$rows" cgroup "$old_inode" | sums ctx pd cq qp)" = 'ctx 1 pd 1 cq 1 qp 30'
check "what it made after is the new one's" test "$("$rows" cgroup "$new_inode" | sums ctx pd cq qp)" = 'qp 12'
check "all is its" holds "${process[owner]}" 'qp 42' qp
rmdir $old
check "also when the old cgroup is removed" test "$("$rows" cgroup "$old_inode" | sums qp)" = 'qp 30'
check "which is then shown as gone" bash -c "'$monitor' --once --by cgroup | tee '$scratch/rows' | grep -q '^($old_inode, gone)'"
check "beside the one that is there" grep -q '^/monitor-new ' "$scratch/rows"
tell owner -35
says owner 'ok 7'
check "the last made go first" test "$("$rows" cgroup "$new_inode" | sums qp)$("$rows" cgroup "$old_inode" | sums qp)" = 'qp 7'
mark
killed owner
soon 1000 "killed, both are empty" empty
rmdir $new

echo "-- a device that goes"
begin owner "$lives" batches rxe1
says owner 'ok 0'
tell owner +25
says owner 'ok 25'
check "25 QPs on rxe1" test "$("$rows" device rxe1 | sums qp)" = 'qp 25'
mark
rdma link delete rxe1 &
deletion=$!
sleep 0.5
if jobs -rp | grep -qx $deletion; then
	echo "      (this kernel's Soft-RoCE waits for those who have it open)"
	check "until then they are counted" holds "${process[owner]}" 'qp 25' qp
	mark
	killed owner
	soon 1000 "with its user, they are gone" empty
else
	soon 1000 "it is gone, and they with it" holds "${process[owner]}" '' qp mr cq pd
	killed owner
	mark
	soon 1000 "nothing is left" empty
fi
check "the device is deleted" wait $deletion
check "no line of it is left" bash -c "! '$monitor' --once --by device | grep rxe1"
rdma link add rxe1 type rxe netdev lab1
begin owner "$lives" batches rxe1
says owner 'ok 0'
tell owner +3
says owner 'ok 3'
check "the device added again is counted" test "$("$rows" device rxe1 | sums ctx qp)" = 'ctx 1 qp 3'
killed owner
check "nothing is left" eventually empty

echo "-- ways into the kernel"
kinds=(ctx pd cq qp srq mr mr_bytes mw ah comp_channel cm_id)
first=''
# A region that Soft-RoCE registers by the method of 6.17 has no length for the kernel either.
lengthless() { rdma resource show mr | grep " pid ${process[owner]} " | grep -q ' mrlen 0 '; }
programs=(paths)
! runs_32_bits || programs+=(paths32)
for program in "${programs[@]}"; do
	[ -x "$BUILD_DIRECTORY/lab/$program" ] || {
		echo "skipped: $program was not built (gcc-12-multilib)"
		continue
	}
	for path in ioctl invoke_write write writev; do
		begin owner "$BUILD_DIRECTORY/lab/$program" $path
		says owner '^{'
		compared=("${kinds[@]}")
		if lengthless; then
			compared=("${kinds[@]/mr_bytes/}")
			echo "      (the kernel itself lists regions of no length: mr_bytes is not compared)"
		fi
		made=$(tr -c 'a-z_0-9\n' ' ' <"$scratch/owner.out" | sums "${compared[@]}")
		check "$program $path: the counts are what was made" holds "${process[owner]}" "$made" "${compared[@]}"
		seen=$("$rows" "${process[owner]}" | sed 's/ mr_bytes [0-9]*//')
		[ -n "$first" ] || echo "      ($(grep -o '"absent":.*]' "$scratch/owner.out") $("$rows" "${process[owner]}"))"
		check "$program $path: all are those of the first way" test "$seen" = "${first:=$seen}"
		tell owner destroy
		check "$program $path: destroyed, all are 0" eventually empty "${process[owner]}"
		end owner || check "$program $path ends well" false
		begin owner "$BUILD_DIRECTORY/lab/$program" $path
		says owner '^{'
		check "$program $path: the next one has as many" test "$("$rows" "${process[owner]}" | sed 's/ mr_bytes [0-9]*//')" = "$first"
		mark
		killed owner
		soon 1000 "$program $path: killed, all are 0" empty
	done
done

echo "-- connections"
begin server rping -s -a 10.77.0.1
eventually cm_listens
check "a server that listens has an identifier" holds "${process[server]}" 'cm_id 1' cm_id
begin client rping -c -a 10.77.0.1
check "connected, it has two" eventually holds "${process[server]}" 'qp 1 cm_id 2' qp cm_id
check "and the client one" holds "${process[client]}" 'qp 1 cm_id 1' qp cm_id
check "all together as the kernel lists them" rows_equal_kernel "$before"
killed client
check "the client killed, it has none" eventually empty "${process[client]}"
killed server
check "nor has the server" eventually empty "${process[server]}"
check "no row is in use" rows_are 0 used
check "nothing was lost" bash -c "'$rows' head | grep -q ' lost_objects 0 lost_rows 0 '"
monitor_stop
check "the kernel has nothing left" eventually nothing_listed "$before"
finish
