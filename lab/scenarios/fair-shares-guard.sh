#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fair shares with the guard: of three tenants that want all there is, one is guarded in the kernel
# and its program has no library. All settle at 1:2:1 and stay, the sum is never above the limit of
# the host, and the guarded one has its guarantee whenever it comes back. They are watched for 10 s;
# with RDMA_INTERCEPT_TEST_FACTOR above 1, 60 s.
# processors: 2
set -euo pipefail
. lab/guardlib.sh
hungry=$BUILD_DIRECTORY/lab/hungry held=$scratch/held
[ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -gt 1 ] && long=60 || long=10

policy_write() {
	cat >"$scratch/policy" <<-END
		[host]
		qp = 400
		[tenant a]
		match = cgroup=/tenants/a/*
		guard = on
		qp = 390
		guarantee.qp = 20
		[tenant b]
		match = cgroup=/tenants/b/*
		weight = 2
		[tenant others]
		match = cgroup=/tenants/others/*
	END
}
guarded_now() { armed && is limits a 'qp 390' qp; }
covered=(env RDMA_INTERCEPT_TRANSPORT=lease RDMA_INTERCEPT_FAIL=closed RDMA_INTERCEPT_QUIET=1 LD_PRELOAD="$library")
hungry_begin() { # NAME NUMBER [COMMAND...]
	begin "$1" "${inside[@]}" "tenants/$1/1" "${@:3}" "$hungry" "$held" "$2" 400
	says "$1" ready
}
near() { [ "$1" -ge $(($2 - 1)) ] && [ "$1" -le $(($2 + 1)) ]; }
# hold A B C: each within one
hold() {
	local now
	now=$("$hungry" "$held" show)
	echo "sum, violations, a, b, others: $now; should be: $*" >"$scratch/rows"
	read -r _ _ a b c <<<"$now"
	near "$a" "$1" && near "$b" "$2" && near "$c" "$3"
}
# stay TEXT A B C SECONDS: no limit in force changes meanwhile
share_events() { grep -c '"type": *"share"' "$scratch/events" || true; }
stay() {
	local watch end before='' looks=0 good=1
	"$command" -j events -f >"$scratch/events" 2>&1 &
	watch=$!
	# Changes from before are reported late.
	for ((end = SECONDS + 60; SECONDS < end;)); do
		[ "$before" != "$(share_events)" ] || break
		before=$(share_events)
		sleep 4
	done
	end=$((SECONDS + $5))
	while [ $SECONDS -lt $end ]; do
		# While the collector has no processor one that is replaced is refused: for a moment.
		hold "${@:2:3}" || eventually hold "${@:2:3}" || { good='' && break; }
		looks=$((looks + 1))
		pause
	done
	check "$1: they stay there for $5 s ($looks looks)" test -n "$good"
	if [ $looks -ge $((2 * $5)) ]; then
		check "$1: no limit in force changes" [ "$(share_events)" = "$before" ]
	else
		echo "note: changes of limits are not judged: the machine was too busy for two looks in a second"
	fi
	check "events are followed" grep -q '"type"' "$scratch/events"
	kill $watch
	wait $watch || true
}

guard_start --tables 16384 # a preempted kernel walks all of it before it refuses (decision 112)
hungry_begin a 1
hungry_begin b 2 "${covered[@]}"
hungry_begin others 3 "${covered[@]}"
mark
soon 1000 "a (guarded, without the library), b and others: 100, 200, 100" hold 100 200 100
stay "three tenants" 100 200 100 $long
check "the kernel has the share as the limit" is limits a 'qp 100' qp
check "status says why" eventually tells '"reason": *"share"' -j show tenant a
end a
mark
soon 1000 "a has left: 0, 253, 127" hold 0 253 127
check "its guarantee is the limit in the kernel" is limits a 'qp 20' qp
intrude owner a/1 'made 20 errno 0' fill qp 20
end owner
mark
hungry_begin a 1
soon 1000 "a has returned: 100, 200, 100" hold 100 200 100
stay "again" 100 200 100 3
echo "-- the collector is killed"
collector_kill
collector_start
mark
soon 1000 "the same again" hold 100 200 100
for name in a b others; do
	end $name || check "$name ends well" false
done
check "never above the limit of the host" grep -q ' 0 0 0 0$' <("$hungry" "$held" show)
guard_stop
