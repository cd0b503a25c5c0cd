#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The units that are installed: systemd understands them, they name the programs where these are
# installed, and "systemd-analyze security" counts little against them. The lab's scenario units
# runs them.
# usage: tests/units.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
# The exposure that is allowed, times 10. systemd 252 counts 2.8, 2.9 and 0.9; other releases count
# a little more or less.
declare -A allowed=([collector_server]=30 [rdma_monitor]=31 [rdma_dashboard]=12 [rdma_fleet]=15)
units=()
for unit in "${!allowed[@]}"; do
	[ ! -e "$build/packaging/$unit.service" ] || units+=("$unit")
done
[ ${#units[@]} -gt 0 ] || { echo "skipped: no program with a unit was built"; exit 77; }

# has UNIT PATTERN: a line of the unit
has() { grep -qE "^$2" "$build/packaging/$1.service"; }

analyzer() {
	command -v systemd-analyze >/dev/null || {
		skip_part "systemd-analyze is not installed (package systemd)"
		return 1
	}
}

settings() {
	local unit key
	for unit in "${units[@]}"; do
		for key in SystemCallFilter UMask MemoryMax TasksMax NoNewPrivileges WatchdogSec; do
			check "$unit: $key" has "$unit" "$key=."
		done
		check "$unit: capabilities" has "$unit" CapabilityBoundingSet= # (an empty set is the smallest)
		check "$unit: the program says when it is ready" has "$unit" 'Type=notify$'
	done
	[[ " ${units[*]} " != *' rdma_fleet '* ]] ||
		check "rdma_fleet: waits for its settings" has rdma_fleet 'ConditionPathExists=/etc/rdma_intercept/fleet.conf$'
}

programs() {
	local prefix unit program
	prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
	for unit in "${units[@]}"; do
		while read -r program; do
			check "$unit: $program is below $prefix" [ "$program" != "${program#"$prefix"/}" ]
		done < <(sed -nE 's/^Exec[A-Za-z]+=([^ ]*).*/\1/p' "$build/packaging/$unit.service")
	done
}

# Programs may not be installed here; everything else that systemd says is a fault.
understood() {
	systemd-analyze verify --man=no "$build/packaging/$1.service" 2>&1 |
		grep "$1.service" | grep -vE 'is not executable|not found|No such file' >"$work/said" || true
	cat "$work/said"
	[ ! -s "$work/said" ]
}
verify() {
	local unit
	analyzer || return 0
	for unit in "${units[@]}"; do
		check "$unit: systemd understands it" understood "$unit"
	done
}

exposed() {
	systemd-analyze security --no-pager --offline=1 --threshold="${allowed[$1]}" \
		"$build/packaging/$1.service" >"$work/said" 2>&1 || { grep -v '✓' "$work/said"; return 1; }
}
exposure() {
	local unit
	analyzer || return 0
	for unit in "${units[@]}"; do
		check "$unit: at most ${allowed[$unit]} tenths" exposed "$unit"
	done
}

run_cases "settings programs verify exposure" "$@"
