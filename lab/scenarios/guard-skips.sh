#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A kernel that preempts itself skips programs of kprobes while somebody is in a bpf() call. Here
# somebody always is, on every processor. Two witnesses make and destroy exactly what they may have:
# nobody of them is refused, since the guard looks for ends that it missed before it refuses; and
# another tenant gets exactly what it may have.
# 20 seconds; with RDMA_INTERCEPT_TEST_FACTOR above 1, 5 minutes.
# processors: 2
# kernel: 7.2
set -euo pipefail
. lab/guardlib.sh
preempted || skip "this kernel does not preempt itself, and so skips nothing"
[ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -gt 1 ] && seconds=300 || seconds=20
mkdir -p "$groups/w1/1" "$groups/w2/1"

# What a witness holds (tests/lab/hostile.c), and not one more.
policy_write() {
	local tenant
	printf '[default]\nguard = on\n[tenant a]\nmatch = cgroup=/tenants/a/*\nqp = 5\n' >"$scratch/policy"
	for tenant in w1 w2; do
		printf '[tenant %s]\nmatch = cgroup=/tenants/%s/*\nqp = 4\ncq = 1\npd = 1\nmr = 2\nmr_bytes = 8K\n' \
			"$tenant" "$tenant" >>"$scratch/policy"
	done
}
# skips: how many calls of the guard's programs for the ends of objects the kernel has skipped
skips() {
	bpftool prog show name k_destroy | grep -o 'recursion_misses [0-9]*' | cut -d ' ' -f 2 | tail -n 1
}
guard_start
begin calls "$BUILD_DIRECTORY/lab/mapcalls"
says calls '^calling'
for tenant in w1 w2; do
	begin $tenant "${inside[@]}" "tenants/$tenant/1" "$BUILD_DIRECTORY/lab/hostile" witness 1
done
sleep "$seconds"
for tenant in w1 w2; do
	kill "${process[$tenant]}" 2>/dev/null || true
	end $tenant && result=0 || result=$?
	cp "$scratch/$tenant.out" "$scratch/rows"
	echo "      ($(tail -n 1 "$scratch/$tenant.out"))"
	check "$tenant: makes and destroys what it may have" test "$result" -eq 0
	check "$tenant: nobody was refused" is refused $tenant ''
done
limited a/1 5
killed calls
check "the kernel has skipped ends of objects ($(skips))" test "$(skips)" -gt 0
for tenant in a w1 w2; do
	check "$tenant has nothing any more" eventually nothing_used $tenant
done
guard_stop
