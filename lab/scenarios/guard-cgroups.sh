#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Cgroups that come and are used at once, by patterns of the policy: the kernel knows whose they
# are before the collector has seen them. Neighbours that no pattern means are not touched.
set -euo pipefail
. lab/guardlib.sh
rounds=$((5 * ${RDMA_INTERCEPT_TEST_FACTOR:-1}))
guard_start
cat >>"$scratch/policy" <<END
[tenant jobs]
match = cgroup=/tenants/jobs/job_*
match = cgroup=/tenants/jobs/step-[0-9]?
qp = 5
[tenant inner]
match = cgroup=/tenants/jobs/*/inner
qp = 3
[tenant early]
match = cgroup=/tenants/early/job
qp = 4
[tenant loose]
match = cgroup=/tenants/mixed/free*
guard = off
[tenant mixed]
match = cgroup=/tenants/mixed/*
qp = 2
END
mkdir -p $groups/jobs
"$command" reload >/dev/null
guarded_in_kernel() { tells '"guarantee": *"kernel", *"reason": *null' -j guard status "$1"; }
check "a tenant of which there is no cgroup yet is guarded" eventually guarded_in_kernel early

# at_once GROUP LINE: the group is made, and used by the same process
at_once=(sh -c 'mkdir -p "/sys/fs/cgroup/$0" && echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"')
first() { # GROUP LINE ARGUMENTS...
	begin new "${at_once[@]}" "tenants/$1" "$intruder" "${@:3}"
	says new '^made'
	cp "$scratch/new.out" "$scratch/rows"
	check "$1, made and used at once: $2" grep -qx "$2" "$scratch/new.out"
	end new
}

for ((i = 0; i < rounds; i++)); do
	first jobs/job_$i "made 5 errno $refusal" fill qp 20
	first jobs/other_$i 'made 9 errno 0' fill qp 9
done
first jobs/step-7x "made 5 errno $refusal" fill qp 20
first jobs/step-x7 'made 9 errno 0' fill qp 9
first jobs/job_deep/a/b/c "made 5 errno $refusal" fill qp 20
first jobs/job_x/inner "made 5 errno $refusal" fill qp 20 # the first line that matches has it
first jobs/other_x/inner/deep "made 3 errno $refusal" fill qp 20
first jobs/other_x/outer 'made 9 errno 0' fill qp 9
first early/job "made 4 errno $refusal" fill qp 20
first early/jobs 'made 9 errno 0' fill qp 9
first mixed/free1 'made 9 errno 0' fill qp 9
first mixed/bound "made 2 errno $refusal" fill qp 9

echo "-- at the limit, with groups that come and go"
begin holder "${at_once[@]}" tenants/jobs/job_holder "$intruder" fill qp 5
says holder '^made 5 errno 0'
for ((i = 0; i < rounds; i++)); do
	first jobs/job_new_$i "made 0 errno $refusal" fill qp 2
	first jobs/neighbour_$i 'made 2 errno 0' fill qp 2
	eventually rmdir $groups/jobs/job_new_$i $groups/jobs/neighbour_$i
done
end holder
groups_path() { "$guardrows" used "$groups/jobs/job_holder" qp 2>/dev/null | tee "$scratch/rows"; }
none_used() { [ -z "$(groups_path)" ]; }
check "nothing stays charged" eventually none_used

echo "-- objects that are older than the guard, of a cgroup that is gone"
mkdir "$groups/late/old"
intrude old late/old 'made 4 errno 0' fill qp 4
echo "${process[old]}" >"$groups/late/1/cgroup.procs"
check "the cgroup goes" eventually rmdir "$groups/late/old"
check "the tenant is guarded from now on" "$command" guard on late
limited late/1 1
end old
all_back late

echo "-- without a collector"
collector_kill
first jobs/job_alone "made 5 errno $refusal" fill qp 20
first jobs/other_alone 'made 9 errno 0' fill qp 9
collector_start
check "the next collector finds the tenants as they were" eventually guarded_in_kernel early
first jobs/job_after "made 5 errno $refusal" fill qp 20
guard_stop
