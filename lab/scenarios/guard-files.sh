#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An object lives as long as anybody has its file. Children that race on an inherited file are
# killed, and the file is closed: what was made on it over the limit does not stay, also where
# another tenant has the file open. That tenant is refused on it, but not harmed.
# processors: 2
set -euo pipefail
. lab/guardlib.sh
guard_start

# heirs NAME [SOCKET]: children race on the file of a process that has as much as it may
heirs() {
	begin heirs "${inside[@]}" tenants/flips/1 "$intruder" heirs qp 180 "$@"
	says heirs '^heirs'
	cp "$scratch/heirs.out" "$scratch/rows"
	check "the children race, and who keeps the file is ended ($(tail -n 1 "$scratch/heirs.out"))" grep -q '^heirs [0-9]* keeper killed$' "$scratch/heirs.out"
}
no_more_than() { # QPS
	local qps
	qps=$(listed "$before" | sums qp)
	echo "the kernel has: $qps" >"$scratch/rows"
	[ "$(cut -d ' ' -f 2 <<<"${qps:-qp 0}")" -le "$1" ]
}
no_file_is_closed() { "$guardrows" head | tee "$scratch/rows" | grep -q ' closed 0 '; }

echo "-- inherited"
heirs
check "the kernel has no more than 5" eventually no_more_than 5
end heirs
all_back flips
check "no file is closed any more" eventually no_file_is_closed
check "the tenant can go on" limited flips/1 5

echo "-- passed to another tenant"
begin witness "${inside[@]}" tenants/others/1 "$intruder" receive guard-files
says witness listens
heirs guard-files
says witness received
check "the kernel has no more than 5, although another tenant has the file" eventually no_more_than 5
tell witness use
says witness '^passed'
cp "$scratch/witness.out" "$scratch/rows"
check "who was given the file is refused on it, and not on its own" grep -qx "passed $refusal own 0" "$scratch/witness.out"
check "nobody else was killed" is killed others 0
check "the events tell of the file" tells '"type": *"refused"[^}]*the device file is closed' -j events
check "and of who used it" tells '"type": *"killed"' -j events
end heirs
end witness || check "the witness ends well" false
all_back flips
check "no file is closed any more" eventually no_file_is_closed
guard_stop
