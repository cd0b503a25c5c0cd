#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The limit of the host, for guarded tenants without the library and others with it: never passed, and
# what one side does not use the other side gets, whoever comes first; also when a guard is switched on
# and off, for a tenant that the kernel knows in part, and beside amounts that no memory has.
set -euo pipefail
. lab/guardlib.sh
hungry=$BUILD_DIRECTORY/lab/hungry held=$scratch/held
policy_write() {
	cat >"$scratch/policy" <<-END
		[host]
		qp = 100
		mr_bytes = 400K
		[tenant a]
		match = cgroup=/tenants/a/*
		guard = on
		qp = 100
		[tenant b]
		match = cgroup=/tenants/b/*
		guard = on
		mode = audit
		[tenant others]
		match = cgroup=/tenants/others/*
		[tenant mixed]
		match = cgroup=/tenants/crowd/*
		match = uid=0 cgroup=/tenants/late/*
		guard = on
	END
}
guarded_now() { armed && is limits a 'qp 100' qp; }
covered=(env RDMA_INTERCEPT_TRANSPORT=lease RDMA_INTERCEPT_FAIL=closed RDMA_INTERCEPT_QUIET=1 LD_PRELOAD="$library")
# library_begin TENANT: with the library, wants all there is
library_begin() {
	rm -f "$held"
	begin library "${inside[@]}" "tenants/$1/1" "${covered[@]}" "$hungry" "$held" 1 100
	says library ready
}
library_holds() {
	local now
	now=$("$hungry" "$held" show)
	echo "sum, violations, ...: $now; should be: $1" >"$scratch/rows"
	read -r now _ <<<"$now"
	[ "$now" -ge $(($1 - 1)) ] && [ "$now" -le "$1" ] # it replaces one now and then
}
queue_pairs() { rdma resource show qp | grep -c ' type RC'; }
within_limit() {
	echo "$(queue_pairs) queue pairs in the kernel" >"$scratch/rows"
	[ "$(queue_pairs)" -le 100 ]
}
# guarded_rest: a, without the library, gets what is left and no more
guarded_rest() {
	begin rest "${inside[@]}" tenants/a/1 "$intruder" fill qp 100
	says rest '^made'
	check "$1: a gets what is left, not more ($(head -n 1 "$scratch/rest.out"))" within_limit
}
guard_start --tables 16384

echo "-- a quiet tenant of the guard"
intrude quiet a/1 'made 40 errno 0' fill qp 40
sleep 2 # the collector has seen it
library_begin others
check "others get all the rest: 60" eventually library_holds 60
guarded_rest "beside 60"
end rest
end quiet
check "what the guard's tenant gives back they get, too: 100" eventually library_holds 100
guarded_rest "beside 100"
end rest

echo "-- the guard is switched on and off for them"
check "on" "$command" guard on others
guarded_rest "switched on"
end rest
check "off" "$command" guard off others
guarded_rest "switched off"
end rest
end library
guarded_rest "alone"
check "alone, all of them" grep -qx 'made 100 errno 0' "$scratch/rest.out"
end rest

echo "-- a tenant that the kernel knows in part"
library_begin late
check "by the other line: 100" eventually library_holds 100
guarded_rest "beside it"
end rest
end library

echo "-- amounts that no memory has"
begin huge "${inside[@]}" tenants/b/1 "$intruder" bytes 9223372036854775807 20000
intrude many a/1 'made 100 errno 122 bytes 409600' bytes 4096 110
end many
killed huge
guard_stop
