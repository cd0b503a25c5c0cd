# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scenarios of the guard share: tenants that are cgroups, a policy for them, and what the
# guard and the kernel say of them.
# shellcheck disable=SC2034 # for the scenarios
. lab/lib.sh
lives=$BUILD_DIRECTORY/lab/lives intruder=$BUILD_DIRECTORY/lab/intruder guardrows=$BUILD_DIRECTORY/lab/guardrows
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

# policy_write [WRITES]: on or off; by default nothing is said of them
policy_write() {
	cat >"$scratch/policy" <<-END
		[host]
		${1:+guard_writes = $1}
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

# tells TEXT COMMAND...: what "rdma_intercept COMMAND..." prints contains it; kept for show
tells() { "$command" "${@:2}" 2>&1 | tr '\n' ' ' | tee "$scratch/rows" | grep -q "$1"; }
# writes_guarded on|off: has commands that come by write() looked at, or not
writes_guarded() {
	processors 0
	policy_write "$1"
	"$command" reload >/dev/null
	mark
	case $1 in
	on) soon 2000 "guard_writes = on is in force" ways 7 ;;
	off) soon 2000 "guard_writes = off is in force" ways 3 ;;
	esac
	processors 1
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

# guard_start [OPTION...]: the monitor, a collector with the policy, and the guard that they load
# shellcheck disable=SC2120 # most scenarios have no option
guard_start() {
	before=$(kernel_counts)
	programs_before=$(bpftool prog show | grep -c '^[0-9]' || true)
	policy_write
	export RDMA_INTERCEPT_POLICY=$scratch/policy
	processors 0
	monitor_start "$@"
	collector_start
	check "the guard is armed, with the limits of the policy" eventually guarded_now
	processors 1
	[ $checks_failed -eq 0 ] || {
		monitor_stop
		finish
	}
	echo "      ($("$guardrows" head))"
	check "by ioctl, that of 32 bits, and write()" eventually ways 7
}
guard_stop() {
	monitor_stop
	check "the kernel has nothing left" eventually nothing_listed "$before"
	finish
}
