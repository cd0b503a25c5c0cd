#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard's promise as a property: random programs of four hostile tenants, which fork, pass
# files, execute, race on their commands and fill the guard's table, by every way and of both widths,
# in cgroups that come and go. In no frozen moment has a tenant more than its limits, and no witness
# is refused or killed.
# 40 seconds; with RDMA_INTERCEPT_TEST_FACTOR above 1, 10 minutes. SEED repeats a run.
# processors: 2
set -euo pipefail
. lab/guardlib.sh
[ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -gt 1 ] && seconds=600 || seconds=40
all=(h1 h2 h3 h4 w1 w2)
for tenant in "${all[@]}"; do
	mkdir -p "$groups/$tenant/1"
done

# The limits are those of tests/lab/hostiles.c; QPS: so many, to see the judge find one too many
policy_write() {
	local tenant
	printf '[default]\nguard = on\n' >"$scratch/policy"
	printf '[tenant a]\nmatch = cgroup=/tenants/a/*\nqp = 5\n' >>"$scratch/policy"
	for tenant in "${all[@]}"; do
		printf '[tenant %s]\nmatch = cgroup=/tenants/%s/*\nqp = %s\ncq = 6\npd = 6\nsrq = 4\nmr = 6\nah = 6\nmr_bytes = 64K\n' \
			"$tenant" "$tenant" "${QPS:-5}" >>"$scratch/policy"
	done
}
# run SEED SECONDS
run() {
	"$BUILD_DIRECTORY/lab/hostiles" "$BUILD_DIRECTORY/lab" "$groups" "$1" "$2" >"$scratch/hostiles" 2>&1 && result=0 || result=$?
	cp "$scratch/hostiles" "$scratch/rows"
	echo "      ($(head -n 1 "$scratch/hostiles"); $(tail -n 1 "$scratch/hostiles"))"
}
# Small enough to be filled in this time; the rows of the accounting, 1 for 32 places, suffice.
guard_start --tables 4096
run "${SEED:-$RANDOM$RANDOM}" "$seconds"
check "no tenant is over a limit, and no witness is harmed" test "$result" -eq 0
killed_all() {
	local sum=0 tenant
	for tenant in h1 h2 h3 h4; do
		sum=$((sum + $("$guardrows" killed "$groups/$tenant/1")))
	done
	echo "$sum"
}
# A race needs two processors at the same moment, which a busy machine may not give in so short a time.
[ "$seconds" -lt 600 ] && echo "      (killed: $(killed_all))" || check "somebody was killed ($(killed_all))" test "$(killed_all)" -gt 0
# Of many refusals not each becomes an event: the log says it, too.
filled() {
	tells "the tenant has used its share of the guard's table" -j events ||
		grep -q "its share of the guard's table of objects is full" "$scratch/collector"
}
check "a tenant filled its share of the table" filled
all_owners_known() { "$rows" head | tee "$scratch/rows" | grep -q ' lost_objects 0 lost_rows 0'; }
check "the judge saw the owner of each object" all_owners_known
for tenant in w1 w2; do
	check "$tenant: nobody was refused" is refused $tenant ''
	check "$tenant: nobody was killed" is killed $tenant 0
done
check "the kernel has nothing left" eventually nothing_listed "$before"

echo "-- the test of the test"
QPS=6 policy_write
"$command" reload >/dev/null
check "a limit of one more is in force" eventually is limits h1 'qp 6' qp
run 1 60
check "the judge finds one too many" grep -q '^violation: h[1-4]: qp 6$' "$scratch/hostiles"
guard_stop
