#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Model checking of the division of a fleet's quota (tests/model/fleet.pml): the right model has no
# error in any reachable state, and each seeded mistake breaks the invariant that it is to break.
# usage: model_fleet.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -uo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
source=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
cp "$source/tests/model/fleet.pml" "$work"
cd "$work" || exit 1

optimise=-O2
# model DEFINITION...: what the verifier says is in the file output
model() {
	rm -f pan fleet.pml.trail
	spin -a "$@" fleet.pml >output 2>&1 || return
	gcc "$optimise" -w -DSAFETY -DCOLLAPSE -DMEMLIM=1000 -o pan pan.c >>output 2>&1 || return
	./pan -n -m1000000 -w20 >output 2>&1
	grep -E 'states, stored|assertion violated' output
}

right() {
	model
	check "all states were seen, and none was wrong" grep -q 'errors: 0' output
	check "nothing was cut" not_cut
}

not_cut() {
	! grep -qE 'not completed|too small|truncated|out of memory' output
}

breaks() { # INVARIANT DEFINITION
	local text

	model "-DBUG_$2"
	case $1 in
	I1) text='<=' ;;
	I2) text='freed)==' ;;
	esac
	check "$2 breaks $1" grep -qF "$text" <(grep -m1 'assertion violated' output)
}

# I1 and I3 look at the same hosts; whichever is found first.
# Found sooner than compiled.
bugs() {
	local optimise=-O0
	local bug

	for bug in OLD_RECORD CONFIRM_EARLY NO_MARGIN NO_CONFIRM FORGET_KEPT LOWER_KEPT NO_LEASE_COMPARE; do
		breaks I1 "$bug"
	done
	for bug in GIVE_TOO_MUCH NO_LEDGER_COMPARE; do
		breaks I2 "$bug"
	done
}

run_cases "right bugs" "$@"
