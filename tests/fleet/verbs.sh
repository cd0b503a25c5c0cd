#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2317,SC2034,SC2086 # variables of fleet.sh; functions that run_cases calls
# Nothing remote is on the path of a verb: while a program creates and destroys queue pairs and the
# fleet's policy changes, neither the program nor the collector makes a socket of the network. With a
# RDMA_INTERCEPT_TEST_FACTOR above 1 it takes a minute. Usage: verbs.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"

calls() {
	local i programs=0 limit=100 until=$((SECONDS + 60))

	strace -o /dev/null true 2>/dev/null || { skip_part "strace is not installed, or may not trace"; return; }
	# Each process has a file trace.PID; -D: the process is the one that was started, and not strace.
	host_prefix=(strace -D -ff -qq -e trace=%network -o "$work/trace")
	etcd_start 1
	host_start a
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	for ((i = 0; i < 20; i++)); do
		echo qp
	done >"$work/orders"
	echo quit >>"$work/orders"
	while [ "$limit" -lt 105 ] || { [ "$factor" -gt 1 ] && [ $SECONDS -lt $until ]; }; do
		limit=$((limit + 1))
		fleet_command limit tenant ml qp=$limit >/dev/null
		check "a limit of the fleet" eventually limit_is $limit a
		strace -D -qq -e trace=%network -o "$work/program.$limit" -E LD_PRELOAD="$preload" \
			-E RDMA_COLLECTOR_SOCKET="$work/a/socket" "$build/test_shm_version" --worker \
			<"$work/orders" >"$work/answers"
		check "20 queue pairs" test "$(grep -c '^ok' "$work/answers")" -eq 20
		programs=$((programs + 1))
	done
	echo "      $((20 * programs)) queue pairs of $programs programs, $((limit - 100)) limits"
	# The traces see what they are to see.
	check "a program speaks with the collector" grep -q AF_UNIX "$work/program.$limit"
	check "the collector accepts it" grep -q accept "$work/trace.$(pid_of collector a)"
	check "rdma_fleet speaks with etcd" eventually grep -qE 'connect.*AF_INET' "$work/trace.$(pid_of fleet a)"
	check "no program makes a socket of the network" not grep AF_INET "$work"/program.*
	check "nor does the collector" not grep AF_INET "$work/trace.$(pid_of collector a)"
	host_prefix=()
	hosts_end
	etcd_end
}

run_cases "calls" "$@"
