#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Model checking of the lease protocol (tests/model/lease.pml): the right model has no error in
# any reachable state, and each seeded bug is found. See docs/lease-model.md.
# Usage: model.sh [--list | --only NAME | right | bugs | long]: runs of the right model, seeded
# bugs, or the larger runs of the right model, which take minutes and 2 GB.
set -euo pipefail
source=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
list='' only='' part=''
[ $# -eq 0 ] || [ -n "$1" ] || { echo "model.sh: empty argument: expected right, bugs or long" >&2; exit 2; }
case ${1-} in
--list) list=1 ;;
--only) only=${2:?--only: missing NAME: --list prints the names} ;;
right | bugs | long) part=$1 ;;
'') ;;
*) echo "model.sh: unknown argument '$1'" >&2; exit 2 ;;
esac
for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$source"/tests/model/*.pml "$work"
cd "$work"
passed=0 failed=0

# Faults: kills, new processes, crashes, cuts.
faults() { echo "-DKILLS=$1 -DSPAWNS=$2 -DCRASHES=$3 -DCUTS=$4"; }

TIMEFORMAT=%U # processor time, which does not depend on what else the machine does
optimise=-O2

# run DEFINITION...: builds and runs the verifier; its words are in the file output
run() {
	local kind=(-DSAFETY) how=()
	case " $* " in *" -DPROGRESS "*) kind=(-DNFAIR=3) how=(-a -f) ;; esac
	rm -f pan lease.pml.trail
	echo 0 >seconds
	spin -a "$@" lease.pml >output 2>&1 || return
	gcc $optimise -w "${kind[@]}" -DCOLLAPSE -DMEMLIM=2400 -o pan pan.c >>output 2>&1 || return
	{ time ./pan "${how[@]}" -n -m3000000 -w22 >output 2>&1; } 2>seconds || true
}

figures() {
	awk -v seconds="$(tail -1 seconds)" '/states, stored/ { states = $1 }
		/total actual memory/ { memory = $1 }
		END { printf "%9d states %6.1f s %5d MB", states, seconds, memory }' output
}

verdict() { # TEXT COMMAND...
	local text=$1
	shift
	if "$@"; then
		printf 'ok    %s  %s\n' "$(figures)" "$text"
		passed=$((passed + 1))
	else
		printf 'FAIL  %s  %s\n' "$(figures)" "$text"
		grep -vE '^[[:space:]]*$|^Depth=' output | sed 20q || true
		failed=$((failed + 1))
	fi
}

# All states were seen, and none was wrong.
is_right() {
	grep -q 'errors: 0' output && ! grep -qE 'not completed|too small|truncated' output
}

# wanted PART NAME: whether this run was asked for
wanted() {
	[ -z "$list" ] || { echo "$2"; return 1; }
	if [ -n "$only" ]; then [ "$only" = "$2" ]; else [ "${part:-$1}" = "$1" ]; fi
}

right() { # NAME DEFINITION...
	local text=$1
	wanted "${size:-right}" "$1" || return 0
	shift
	run "$@" && verdict "$text" is_right || verdict "$text: no verifier" false
}

# The invariant that the last run broke, as the model names it in the line of the assertion.
broken() {
	local file line
	if grep -q 'acceptance cycle' output; then
		echo I6
	else
		read -r file line < <(spin -t "$@" lease.pml 2>&1 |
			sed -n 's/.*[ (]\([a-z]*\.pml\):\([0-9]*\), Error: assertion.*/\1 \2/p') || true
		[ -z "$line" ] || sed -n "${line}s,.*/\* \(I[0-9]\) \*/.*,\1,p" "$file"
	fi
}

# A mistake that x86 forgives: its run finds nothing, and that of ARMv8 finds it.
weak_bug() { # NAME INVARIANT DEFINITION...
	local name=$1
	bug "$@" -DWEAK
	shift 2
	wanted bugs "BUG_$name on x86" || return 0
	run "-DBUG_$name" "$@" && verdict "BUG_$name breaks nothing on x86" is_right ||
		verdict "BUG_$name: no verifier" false
}

bug() { # NAME INVARIANT DEFINITION...
	local name=$1 invariant=$2 found=""
	wanted bugs "BUG_$name" || return 0
	shift 2
	run "-DBUG_$name" "$@" && grep -q 'errors: 1' output && found=$(broken "-DBUG_$name" "$@")
	verdict "BUG_$name breaks ${found:-nothing}" [ "$found" = "$invariant" ]
}

# "$(faults ...)" is several words, on purpose.
# shellcheck disable=SC2046
{
	# Together they have every kind of fault in which a seeded bug shows.
	right "kill, crash, cut" $(faults 1 0 1 1)
	right "kill, crash, a new process" $(faults 1 1 1 0)
	right "two threads of a client, cut" -DTHREADS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 0 1)
	right "a client that lies, crash, cut" -DLIAR $(faults 0 0 1 1)
	right "progress: room for all, kill, crash" -DPROGRESS -DALONE -DMOST=1 $(faults 1 0 1 0)
	right "progress of all: cut" -DPROGRESS $(faults 0 0 0 1)
	right "three clients, a cut to nothing" -DCLIENTS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 0 1)
	right "ARMv8: crash, cut" -DWEAK $(faults 0 0 1 1)
	right "ARMv8: three clients, a cut to nothing" -DWEAK -DCLIENTS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 0 1)

	size=long
	right "ARMv8: kill, crash, cut" -DWEAK $(faults 1 0 1 1)
	right "ARMv8: two threads of a client, cut" -DWEAK -DTHREADS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 0 1)
	right "kill, two crashes" $(faults 1 0 2 0)
	right "two kills, a new process" $(faults 2 1 0 0)
	right "progress of all: crash" -DPROGRESS $(faults 0 0 1 0)
	right "kill, crash, cut, a new process" $(faults 1 1 1 1)
	right "three clients" -DCLIENTS=3 $(faults 0 0 0 0)
	right "two threads" -DTHREADS=3 $(faults 0 0 0 0)
	right "two threads, crash, cut" -DTHREADS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 1 1)
	right "two threads, kill, cut" -DTHREADS=3 -DLIMIT=1 -DCUT=0 $(faults 1 0 0 1)
	right "a client that lies, all faults" -DLIAR $(faults 1 1 1 1)

	optimise=-O0 # found sooner than compiled
	bug NO_FENCE I3 $(faults 0 0 0 0)
	bug GRANT_CAP_FIRST I2 $(faults 0 0 0 0)
	bug REVOKE_LEDGER_FIRST I2 $(faults 0 0 0 0)
	bug NO_RECHECK I3 $(faults 0 0 0 0)
	bug FORGET_USED I3 $(faults 0 0 0 0)
	bug FORGET_CAP I2 $(faults 0 0 1 0)
	optimise=-O2
	bug CLOSE_TO_USED I4 -DCLIENTS=3 $(faults 0 0 0 0)
	bug SWEEP_ONCE I4 -DCLIENTS=3 $(faults 0 0 0 0)
	optimise=-O0
	bug TRUST_USED I1 $(faults 0 0 0 0)
	bug GIVE_LOWERS I2 $(faults 0 0 0 0)
	bug REFUND_FIRST I3 $(faults 0 0 0 0)
	bug NO_SWEEP I4 $(faults 0 0 0 0)
	bug REFUSE_BEFORE_REAP I4 $(faults 1 0 0 0)
	bug REAP_ONCE I4 -DCLIENTS=3 $(faults 0 0 0 0)
	bug ANY_REFUSAL I4 -DTHREADS=3 $(faults 0 0 0 0)
	bug CUT_KEEPS_CAPS I3 $(faults 0 0 0 1)
	bug GIVE_WHILE_DRAINING I3 -DTHREADS=3 -DLIMIT=1 -DCUT=0 $(faults 0 0 0 1)
	bug SETTLE_TO_CAP I3 $(faults 0 0 1 0)
	bug SETTLE_OPENS I3 $(faults 0 0 1 1)
	bug DEATH_FREE_FIRST I1 $(faults 1 0 1 0)
	bug FORGET_DYING I5 $(faults 1 0 1 0)
	bug NO_GENERATION I5 $(faults 1 0 0 0)
	bug NO_HELD_SETTLE I6 -DPROGRESS -DALONE $(faults 0 0 0 1)
	bug NO_PROMISE I6 -DPROGRESS $(faults 0 0 0 0)
	weak_bug LOOK_RELAXED I3 $(faults 0 0 0 0)
	weak_bug USED_RELAXED I3 $(faults 0 0 0 0)
	weak_bug REFUND_RELAXED I3 $(faults 0 0 0 0)
	bug CLOSE_RELAXED I3 -DWEAK $(faults 0 0 0 0)
}
[ -z "$list" ] || exit 0
[ $((passed + failed)) -gt 0 ] || echo "model.sh: no run named '$only': --list prints the names"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
