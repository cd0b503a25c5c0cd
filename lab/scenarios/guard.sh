#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard in the kernel: a tenant's cgroup gets what its limits allow and EDQUOT after that,
# whatever way its programs take and with nothing preloaded; who changes a command under the
# kernel's eyes is killed; nobody else is touched. It outlives the collector and the keeper.
# processors: 2
# CYCLES says how often it is loaded and unloaded under load: emulated, that is half a minute each
# and more.
set -euo pipefail
. lab/lib.sh
lives=$BUILD_DIRECTORY/lab/lives intruder=$BUILD_DIRECTORY/lab/intruder guardrows=$BUILD_DIRECTORY/lab/guardrows
cycles=${CYCLES:-1}
kinds=(pd cq qp srq mr mw ah comp_channel)
refusal=122 # EDQUOT

case $(uname -r) in
5.10.*)
	skip "the guard needs a kernel that keeps programs of fentry and LSM (5.15)"
	;;
esac
[ -e /sys/kernel/security/lsm ] || mount -t securityfs securityfs /sys/kernel/security
check "bpf is one of the kernel's security modules ($(</sys/kernel/security/lsm))" grep -qw bpf /sys/kernel/security/lsm
[ $checks_failed -eq 0 ] || finish

# ---- tenants are cgroups; their processes are in the cgroup 1 below them

groups=/sys/fs/cgroup/tenants
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
for tenant in a b flips storm others late crowd; do
	mkdir -p "$groups/$tenant/1"
done
for group in /sys/fs/cgroup "$groups" "$groups"/*/; do
	echo +rdma >"$group/cgroup.subtree_control" 2>/dev/null || true
done

# policy_write WRITES: on or off
policy_write() {
	cat >"$scratch/policy" <<-END
		[host]
		guard_writes = $1
		[default]
		guard = on
		[tenant a]
		match = cgroup=/tenants/a/*
		$(printf '%s = 5\n' "${kinds[@]}")
		mr_bytes = 20K
		[tenant b]
		match = cgroup=/tenants/b/*
		qp = 5
		[tenant flips]
		match = cgroup=/tenants/flips/*
		qp = 5
		mr_bytes = 1536K
		[tenant storm]
		match = cgroup=/tenants/storm/*
		qp = 100
		[tenant others]
		match = cgroup=/tenants/others/*
		qp = 9
		[tenant late]
		match = cgroup=/tenants/late/*
		guard = off
		qp = 5
		[tenant crowd]
		match = cgroup=/tenants/crowd/*
		qp = 100000
		mr_bytes = 1T
	END
}

# of WHAT TENANT [KIND...]: used, limits, refused, overrun, killed; see tests/lab/guardrows.c
of() { "$guardrows" "$1" "$groups/$2/1" "${@:3}" 2>/dev/null; }
# is WHAT TENANT NUMBERS [KIND...]; kept for show
is() {
	local numbers
	numbers=$(of "$1" "$2" "${@:4}") || numbers='not known'
	echo "$1 of $2: $numbers; should be: $3" >"$scratch/rows"
	[ "$numbers" = "$3" ]
}
nothing_used() { is used "$1" ''; }
# guard_equals_kernel TENANT: as long as nobody else has anything
guard_equals_kernel() {
	local ours kernel
	ours=$(of used "$1" pd cq qp srq mr)
	kernel=$(listed "$before" | sums pd cq qp srq mr)
	echo "the guard: $ours; the kernel: $kernel" >"$scratch/rows"
	[ "$ours" = "$kernel" ]
}
armed() { "$guardrows" head 2>/dev/null | tee "$scratch/rows" | grep -q 'armed 1 '; }
# ways NUMBER: those that are guarded, see guardrows.h
ways() { "$guardrows" head 2>/dev/null | tee "$scratch/rows" | grep -q " ways $1 "; }
guarded_now() { armed && is limits a 'qp 5' qp; }

# kind_of KIND FIELD...: of a JSON document on the input, as "FIELD NUMBER ..."; the first that has the kind
kind_of() {
	local object field
	object=$(tr -d ' \n' | grep -o "\"$1\":{[^}]*}" | head -n 1)
	for field in "${@:2}"; do
		echo "$field $(grep -o "\"$field\":[0-9]*" <<<"$object" | cut -d : -f 2)"
	done | paste -sd ' '
}
# shows WHAT TENANT NUMBERS FIELD...: of QPs, as the collector has it in "WHAT TENANT"
shows() {
	local numbers words
	read -ra words <<<"$1"
	numbers=$("$command" -j "${words[@]}" "$2" | kind_of qp "${@:4}") || true
	echo "$1 $2: $numbers; should be: $3" >"$scratch/rows"
	[ "$numbers" = "$3" ]
}

# intrude NAME GROUP LINE ARGUMENTS...: begins the intruder there; this is what it says
intrude() {
	local name=$1 group=$2 line=$3 program=$intruder
	shift 3
	case $1 in 32) program=${intruder}32; shift ;; esac
	begin "$name" "${inside[@]}" "tenants/$group" "$program" "$@"
	says "$name" '^made'
	cp "$scratch/$name.out" "$scratch/rows"
	check "$group: $(basename "$program") $*: $line" grep -qx "$line" "$scratch/$name.out"
}
# all_back TENANT: what has ended has left nothing
all_back() {
	mark
	soon 1000 "$1 has nothing any more" nothing_used "$1"
	check "nor has the kernel" eventually nothing_listed "$before"
}
unlimited() { # GROUP: gets as much as it wants
	intrude free "$1" 'made 20 errno 0' fill qp 20
	end free
}
limited() { # GROUP COUNT: gets so many QPs
	intrude owner "$1" "made $2 errno $refusal" fill qp $(($2 + 3))
	end owner
}

before=$(kernel_counts)
programs_before=$(bpftool prog show | grep -c '^[0-9]' || true)
policy_write off
export RDMA_INTERCEPT_POLICY=$scratch/policy
processors 0
monitor_start
collector_start
check "the guard is armed, with the limits of the policy" eventually guarded_now
processors 1
[ $checks_failed -eq 0 ] || {
	monitor_stop
	finish
}
echo "      ($("$guardrows" head))"
check "by ioctl, and that of 32 bits" ways 3

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
else
	echo "skipped: intruder32 was not built (gcc-multilib)"
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
tells() { "$command" "${@:2}" 2>&1 | tr '\n' ' ' | tee "$scratch/rows" | grep -q "$1"; } # TEXT COMMAND...
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

echo "-- all at once"
intrude storm storm/1 'made 100 refused 1100 other 0' storm qp 8 50
check "100 are charged" is used storm 'qp 100' qp
check "as the kernel lists it" guard_equals_kernel storm
end storm
all_back storm

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
eventually grep -q '^made' "$scratch/owner.out" || true
check "behind 40 attributes more, at most 5 ($(tail -n 1 "$scratch/owner.out"))" grep -q '^made [0-5] ' "$scratch/owner.out"
check "as the kernel lists it" guard_equals_kernel a
end owner || true

echo "-- commands that change"
# flip PROGRAM KIND SECONDS [write]; made_most: how much it had at most
flip() {
	"${inside[@]}" tenants/flips/1 "$1" flip "${@:2}" >"$scratch/flips" 2>&1 || true
	cp "$scratch/flips" "$scratch/rows"
}
made_most() { sed -n 's/^made \([0-9]*\) killed .*/\1/p' "$scratch/flips"; }
all_killed() { grep -q '^made [0-9]* killed yes$' "$scratch/flips"; }
most=6 most_bytes=$((1536 * 1024)) # of QPs, the limit and one
for program in "$intruder" "${intruder}32"; do
	[ -x "$program" ] || continue
	flip "$program" qp 10
	check "$(basename "$program"): in each place of the command, who changes it is killed" all_killed
	check "and had no more than 5 QPs and one ($(made_most))" test "$(made_most)" -le $most
done
flip "$intruder" mr_bytes 10
check "so for the length of a region" all_killed
check "and had no more than 1.5 MB ($(made_most))" test "$(made_most)" -le $most_bytes
all_back flips
check "the guard counted whom it killed" test "$(of killed flips)" -gt 0
check "the events tell of them" tells '"type": *"killed"' -j events
"$guardrows" trusting 1
flip "$intruder" qp 5
check "a guard that trusts what it saw (the test of the test) lets $(made_most) QPs pass" test "$(made_most)" -gt $most
flip "$intruder" mr_bytes 2
check "and $(made_most) bytes" test "$(made_most)" -gt $most_bytes
"$guardrows" trusting 0
all_back flips

echo "-- write()"
intrude owner a/1 'made 8 errno 0' fill qp 8 write
check "unguarded, it makes 8 of 5" is used a 'qp 8' qp
check "3 of them too many" is overrun a 'qp 3' qp
check "guard status says so" shows 'guard status' a 'used 8 overrun 3' used overrun
end owner
processors 0
policy_write on
"$command" reload >/dev/null
mark
soon 2000 "guard_writes = on is in force" ways 7
processors 1
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
check "none of them was too many" is overrun a 'qp 3' qp
for kind in qp cq mr; do
	failing $kind write
done
flip "$intruder" qp 10 write
check "who changes a command that it writes is killed, too" all_killed
check "and had no more than 5 QPs and one ($(made_most))" test "$(made_most)" -le $most
processors 0
policy_write off
"$command" reload >/dev/null
mark
soon 2000 "guard_writes = off is in force" ways 3
processors 1
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

echo "-- without a collector, without a keeper"
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
processors 0
monitor_start
check "the next keeper has the guard" eventually armed
processors 1
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
processors 0
monitor_start
check "loaded again, the guard finds what there is" eventually is used a 'qp 20' qp
processors 1
intrude other a/1 "made 0 errno $refusal" fill qp 1
end other
tell owner -15
says owner '^ok 5$'
intrude other a/1 "made 1 errno $refusal" fill qp 3
end other
killed owner
all_back a

echo "-- loaded and unloaded under load, $cycles times"
processors 0
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
processors 1
check "no operation failed ($(tail -n 1 "$scratch/churn.out"))" test "$ended" -eq 0
[ "$ended" -eq 0 ] || show "$scratch/churn.out"
all_back crowd
monitor_stop
check "the kernel has nothing left" eventually nothing_listed "$before"
finish
