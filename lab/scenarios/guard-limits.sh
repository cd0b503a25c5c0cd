#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard in the kernel: a tenant's cgroup gets what its limits allow and EDQUOT after that,
# whatever way its programs take and with nothing preloaded. Other tenants are not touched.
set -euo pipefail
. lab/guardlib.sh
guard_start

echo "-- every kind, every way"
for kind in "${kinds[@]}"; do
	for way in ioctl invoke_write; do
		case $way-$kind in invoke_write-pd | invoke_write-mw | invoke_write-ah | invoke_write-comp_channel) continue ;; esac # no other
		intrude owner a/1 "made 5 errno $refusal" fill "$kind" 8 $way
		check "it is charged 5" is used a "$kind 5" "$kind"
		check "as the kernel lists it" guard_equals_kernel a
		tell owner destroy
		says owner 'destroyed 5'
		check "destroyed, none" is used a '' "$kind"
		end owner || check "it ends well" false
	done
done
for way in ioctl invoke_write; do
	intrude owner a/1 "made 2 errno $refusal bytes 16384" bytes 8192 4 $way
	check "16384 bytes are charged, in 2 regions" is used a 'mr 2 mr_bytes 16384' mr mr_bytes
	end owner
done
if [ -x "${intruder}32" ]; then
	for kind in pd qp mr; do
		intrude owner a/1 "made 5 errno $refusal" 32 fill $kind 8
		check "it is charged 5" is used a "$kind 5" $kind
		end owner
	done
	intrude owner a/1 "made 2 errno $refusal bytes 16384" 32 bytes 8192 4
	end owner
elif runs_32_bits; then
	echo "skipped: intruder32 was not built (gcc-12-multilib)"
fi
all_back a
check "each refusal was counted" test "$(of refused a qp)" != ''

echo "-- a program that was not preloaded"
begin plain "${inside[@]}" tenants/a/1 "$lives" batches
says plain 'ok 0'
tell plain +5
says plain 'ok 5'
check "5 QPs" is used a 'pd 1 cq 1 qp 5' pd cq qp
check "as the kernel lists it" guard_equals_kernel a
intrude other others/1 "made 9 errno $refusal" fill qp 12
check "another tenant has its own limit" is used others 'qp 9' qp
end other
begin stranger "$intruder" fill qp 20
says stranger '^made'
check "who is no tenant's has none" grep -qx 'made 20 errno 0' "$scratch/stranger.out"
end stranger
intrude other a/1 'made 3 errno 0' fill mr 3
check "of another kind there is some left" is used a 'qp 5 mr 3' qp mr
end other
tell plain +1
says plain 'Disk quota exceeded'
end plain || true
all_back a
begin plain "${inside[@]}" tenants/a/1 "$BUILD_DIRECTORY/lab/objects" hold 5
says plain 'holding 5'
check "5 QPs and 5 MRs of the next" is used a 'qp 5 mr 5 mr_bytes 20480' qp mr mr_bytes
killed plain
all_back a

echo "-- what the collector tells"
intrude owner a/1 "made 5 errno $refusal" fill qp 6
check "explain names the kernel's refusal" tells 'Refused in the kernel (guard of tenant a)' explain "${process[owner]}-1"
check "with what was used" tells 'qp used 5/5' explain "${process[owner]}-1"
check "the events have it" tells '"refused"[^}]*"pid": *'"${process[owner]}"',[^}]*"kernel"' -j events
check "guard status says what is used, and how much was refused" shows 'guard status' a \
	"used 5 limit 5 refused $(of refused a qp | cut -d ' ' -f 2) overrun 0" used limit refused overrun
check "and that the tenant is guarded in the kernel" tells '"guarantee": *"kernel"' -j guard status a
end owner

echo "-- cgroups below, and moving"
mkdir -p $groups/a/1/deep/deeper
begin owner "${inside[@]}" tenants/a/1 "$lives" batches
says owner 'ok 0'
tell owner +2
says owner 'ok 2'
echo "${process[owner]}" >$groups/a/1/deep/deeper/cgroup.procs
tell owner +3
says owner 'ok 5'
check "moved below, it is still charged to its tenant" is used a 'qp 5' qp
tell owner +1
says owner 'Disk quota exceeded'
end owner || true
all_back a
begin owner "${inside[@]}" tenants/a/1/deep/deeper "$lives" batches
says owner 'ok 0'
tell owner +4
says owner 'ok 4'
intrude other a/1 "made 1 errno $refusal" fill qp 3
end other
killed owner
all_back a

echo "-- what fails for another reason"
failing() { # KIND [WAY]: nothing stays charged, while who failed is still there
	begin wrong "${inside[@]}" tenants/a/1 "$intruder" failing "$1" 40 "${@:2}"
	says wrong '^failed'
	cp "$scratch/wrong.out" "$scratch/rows"
	check "40 times a wrong $*" grep -qx 'failed 40 made 0 refused 0' "$scratch/wrong.out"
	check "nothing stays charged" eventually is used a '' "$1"
	end wrong || check "it ends well" false
}
for kind in "${kinds[@]}"; do
	failing "$kind"
done
for program in "$intruder" "${intruder}32"; do
	[ -x "$program" ] || continue
	status=0
	"${inside[@]}" tenants/a/1 "$program" unknown >"$scratch/rows" 2>&1 || status=$?
	check "$(basename "$program"): nothing that is no command is taken, and nobody is killed for it" test "$(<"$scratch/rows") $status" = 'survived 0'
done
all_back a
check "nobody was killed" is killed a 0
check "another tenant was refused what is over its limit, and nothing else" test "$(of refused others)" = 'qp 3'
# However it is said, no more than 5: refused, or killed for it.
begin owner "${inside[@]}" tenants/a/1 "$intruder" fill qp 8 padded
says owner '^made'
check "behind 40 attributes more, at most 5 ($(tail -n 1 "$scratch/owner.out"))" grep -q '^made [0-5] ' "$scratch/owner.out"
check "as the kernel lists it" guard_equals_kernel a
end owner || true

echo "-- write()"
for program in '' 32; do
	[ -x "$intruder$program" ] || continue
	# shellcheck disable=SC2086 # nothing, or a word
	intrude owner a/1 "made 5 errno $refusal" $program fill qp 8 write
	end owner
	begin owner "${inside[@]}" tenants/a/1 "$intruder$program" fill qp 8 writev
	says owner '^made'
	check "intruder$program: many in one call, at most 5 ($(<"$scratch/owner.out"))" grep -q "^made [0-5] errno [1-9]" "$scratch/owner.out"
	end owner
done
check "none of them was too many" is overrun a '' qp
for kind in qp cq mr; do
	failing $kind write
done
writes_guarded off
check "unguarded, it is told" eventually tells '"guarantee": *"partly", *"reason": *"write() is not guarded' -j guard status a
intrude owner a/1 'made 8 errno 0' fill qp 8 write
check "it makes 8 of 5" is used a 'qp 8' qp
check "3 of them too many" is overrun a 'qp 3' qp
check "guard status says so" shows 'guard status' a 'used 8 overrun 3' used overrun
end owner
writes_guarded on
check "guarded again, it is told" eventually tells '"guarantee": *"kernel"' -j guard status a
all_back a

echo "-- with the library"
begin owner "${inside[@]}" tenants/b/1 env RDMA_INTERCEPT_TRANSPORT=lease LD_PRELOAD="$library" "$lives" batches
says owner 'ok 0'
tell owner +5
says owner 'ok 5'
books_are() { shows 'show tenant' b "$1" used kernel refused; }
check "5 in the books, as the kernel has them" eventually books_are 'used 5 kernel 5 refused 0'
check "5 in the guard" is used b 'qp 5' qp
check "as the kernel lists it" guard_equals_kernel b
tell owner +1
says owner 'a QP: '
end owner || true
check "the sixth is refused once, by the library" eventually books_are 'used 0 kernel 0 refused 1'
check "and not a second time, by the guard" is refused b ''
all_back b

echo "-- what was there before"
begin owner "${inside[@]}" tenants/late/1 "$lives" batches
says owner 'ok 0'
tell owner +3
says owner 'ok 3'
intrude other late/1 'made 5 errno 0' fill qp 5
check "the guard of this tenant is turned on" "$command" guard on late
mark
soon 2000 "what it has already is counted" is used late 'qp 8' qp
tell owner +1
says owner 'Disk quota exceeded'
end owner || true
end other
all_back late
limited late/1 5
check "off again" "$command" guard off late
unlimited late/1

echo "-- limits that change"
mark
"$command" limit set tenant a qp=7 >/dev/null
soon 100 "a new limit is in force" is limits a 'qp 7' qp
limited a/1 7

echo "-- exec by threads that are not the leader"
# entries: of the table of commands, which has one for each thread that gives any
entries() { bpftool map dump name guard_commands | grep -c '"value":' || true; }
kill -STOP "$keeper" # it would clear up
earlier=$(entries)
intrude last others/1 'made 1 errno 0' chain 40
later=$(entries)
check "of 40 programs in a row only the last has an entry ($earlier entries, then $later)" test "$later" -le $((earlier + 1))
end last
kill -CONT "$keeper"
guard_stop
