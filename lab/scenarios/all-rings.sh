#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Library, collector, rdma_monitor and guard together, against users without privileges. Both rings
# keep the same limits, also for programs without the library. Users who attack at the same time
# get no object too many; a witness who stays inside its limit is never refused, while the
# collector and rdma_monitor are killed and the policy is read again. Users cannot change limits.
# processors: 2
set -euo pipefail
. lab/guardlib.sh
chmod 755 "$scratch"
export LOGS=$scratch/logs
install -d -m 1777 "$LOGS"

# "${as[@]}" USER GROUP COMMAND...: becomes the command, as that user in that cgroup;
# "${covered[@]}" COMMAND...: under the library
# shellcheck disable=SC2016 # that shell expands it
as=(sh -c 'user=$0 group=$1; shift; export RDMA_INTERCEPT_LOG_FILE_PATH="$LOGS/$user"; echo $$ >"/sys/fs/cgroup/tenants/$group/1/cgroup.procs" &&
	exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"')
covered=(env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease)
# answers NAME COUNT TEXT: its last line, after so many
answers() {
	eventually has_lines "$1" "$2" || true
	tail -n 1 "$scratch/$1.out" >"$scratch/rows"
	check "$1: $3" grep -qx "$3" "$scratch/rows"
}
has_lines() { [ "$(wc -l <"$scratch/$1.out")" -ge "$2" ]; }
guard_start

echo "-- one limit, whichever ring a program meets"
begin owner "${as[@]}" 2001 b "${covered[@]}" "$lives" batches
tell owner +5
answers owner 1 'ok 5'
begin escaped "${as[@]}" 2001 b "$intruder" fill qp 3
says escaped '^made'
check "without the library the tenant gets no sixth" grep -qx "made 0 errno $refusal" "$scratch/escaped.out"
end escaped
tell owner -2
answers owner 2 'ok 3'
begin escaped "${as[@]}" 2001 b "$intruder" fill qp 3
says escaped '^made'
check "what the library gave back, a program without it gets" grep -qx "made 2 errno $refusal" "$scratch/escaped.out"
check "the kernel has 5" eventually guard_equals_kernel b
end escaped
end owner || true
all_back b

echo "-- attacks of three users, and a witness"
begin witness "${as[@]}" 2004 others "${covered[@]}" "$lives" batches
begin storm "${as[@]}" 2001 b sh -c 'while :; do echo | timeout 60 "$0" storm qp 3 4; done' "$intruder"
begin flips "${as[@]}" 2002 flips "$intruder" flip qp 60
begin churn "${as[@]}" 2003 storm "${covered[@]}" "$lives" churn 0 7 2
rounds=0
# witness_works ROUNDS
witness_works() {
	local until=$((rounds + $1))
	while [ $rounds -lt $until ]; do
		tell witness +4
		tell witness -4
		rounds=$((rounds + 1))
		eventually has_lines witness $((2 * rounds)) || return 1
	done
}
never_refused() {
	! grep -nvxE 'ok [04]' "$scratch/witness.out" >"$scratch/rows"
}
within() { # TENANT: its QPs are not more than 5
	local qps
	qps=$(of used "$1" qp)
	echo "$1: ${qps:-qp 0}" >"$scratch/rows"
	[ "$(cut -d ' ' -f 2 <<<"${qps:-qp 0}")" -le 5 ]
}
for part in nothing collector monitor policy; do
	case $part in
	collector)
		collector_kill
		witness_works 3
		collector_start
		;;
	monitor)
		processors 0
		kill -9 "$keeper"
		wait "$keeper" 2>/dev/null || true
		processors 1
		witness_works 3
		monitor_start
		;;
	policy)
		for _ in 1 2 3 4 5; do
			policy_write
			"$command" reload >/dev/null
			witness_works 2
		done
		;;
	esac
	check "the witness works ($part is lost)" witness_works 10
	frozen "$groups"
	check "b is within its limit" within b
	check "flips is within its limit" eventually within flips
	thawed "$groups"
done
check "the witness was never refused ($rounds rounds)" never_refused
check "nor killed" is killed others 0
for name in storm flips churn; do
	killed $name
done
for tenant in b flips storm; do
	echo 1 >"$groups/$tenant/1/cgroup.kill"
done
end witness || check "the witness ends well" false
for tenant in b flips storm others; do
	check "$tenant has nothing any more" eventually nothing_used $tenant
done
check "nor has the kernel" eventually nothing_listed "$before"

echo "-- what a user may not do"
denied() { # COMMAND...
	("${as[@]}" 2001 b "$@") >"$scratch/rows" 2>&1 && return 1
	return 0
}
check "set a limit" denied "$command" limit set tenant b qp=50
check "turn the guard off" denied "$command" guard off b
check "read the policy again" denied "$command" reload
check "take rdma_monitor out" denied "$monitor" --unload
check "read the collector's state" denied sh -c 'cat "$0"/*' "$RDMA_COLLECTOR_STATE"
check "remove the socket" denied rm -f "$RDMA_COLLECTOR_SOCKET"
check "end the collector" denied kill "$collector"
begin escaped "${as[@]}" 2001 b "$intruder" fill qp 8
says escaped '^made'
check "the limit is the same" grep -qx "made 5 errno $refusal" "$scratch/escaped.out"
end escaped
guard_stop
