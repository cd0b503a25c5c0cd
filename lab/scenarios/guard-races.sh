#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard in the kernel against programs that race: many threads at the limit at once, and
# programs that change a command while the kernel reads it, which are killed.
# processors: 2
set -euo pipefail
. lab/guardlib.sh
guard_start

echo "-- all at once"
intrude storm storm/1 'made 100 refused 1100 other 0' storm qp 8 50
check "100 are charged" is used storm 'qp 100' qp
check "as the kernel lists it" guard_equals_kernel storm
end storm
all_back storm

echo "-- commands that change"
# flip PROGRAM KIND SECONDS [write]: so long at most in each place, and no longer than until it is
# killed; made_most: how much it had at most
flip() {
	"${inside[@]}" tenants/flips/1 "$1" flip "${@:2}" >"$scratch/flips" 2>&1 || true
	cp "$scratch/flips" "$scratch/rows"
}
made_most() { sed -n 's/^made \([0-9]*\) killed .*/\1/p' "$scratch/flips"; }
all_killed() { grep -q '^made [0-9]* killed yes$' "$scratch/flips"; }
most=6 most_bytes=$((1536 * 1024)) # of QPs, the limit and one
for program in "$intruder" "${intruder}32"; do
	[ -x "$program" ] || continue
	flip "$program" qp 180
	check "$(basename "$program"): in each place of the command, who changes it is killed" all_killed
	check "and had no more than 5 QPs and one ($(made_most))" test "$(made_most)" -le $most
done
flip "$intruder" mr_bytes 180
check "so for the length of a region" all_killed
check "and had no more than 1.5 MB ($(made_most))" test "$(made_most)" -le $most_bytes
all_back flips
check "the guard counted whom it killed" test "$(of killed flips)" -gt 0
check "the events tell of them" tells '"type": *"killed"' -j events
"$guardrows" trusting 1
flip "$intruder" qp 60
check "a guard that trusts what it saw (the test of the test) lets $(made_most) QPs pass" test "$(made_most)" -gt $most
flip "$intruder" mr_bytes 60
check "and $(made_most) bytes" test "$(made_most)" -gt $most_bytes
"$guardrows" trusting 0
all_back flips

echo "-- commands that change, by write()"
flip "$intruder" qp 180 write
check "who changes a command that it writes is killed, too" all_killed
check "and had no more than 5 QPs and one ($(made_most))" test "$(made_most)" -le $most
flip "$intruder" mr_bytes 180 write
check "so for the length of a region" all_killed
check "and had no more than 1.5 MB ($(made_most))" test "$(made_most)" -le $most_bytes
all_back flips
guard_stop
