#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 200 slow, broken and hostile clients of HTTP: others are served, the collector goes on, and what
# takes too long is cut off although it never stops sending.
# usage: tests/dashboard/clients.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/fixture.sh"

descriptors() {
	find "/proc/$dashboard_pid/fd" -mindepth 1 2>/dev/null | wc -l
}
few_descriptors() {
	[ "$(descriptors)" -le "$1" ]
}
kilobytes() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$dashboard_pid/status"
}

hostile() {
	local before i until hostile

	collector_begin
	dashboard_begin --timeout 2
	eventually metric 'rdma_intercept_collector_up 1'
	before=$(descriptors)
	background "$build/tests/dashboard_hostile" "$port" 200 >"$work/hostile.out" &
	hostile=$!
	workers+=("$hostile")
	check "they are there" eventually not few_descriptors $((before + 100))
	# With --long for a minute.
	until=$((SECONDS + 15 * (factor - 1)))
	for ((i = 0; i < 10 || SECONDS < until; i++)); do
		check "metrics, time $i" metric 'rdma_intercept_collector_up 1'
		check "state, time $i" gets 200 /api/state
	done
	check "no limit was changed" metric 'rdma_intercept_tenant_limit{tenant="ours",resource="qp"} 4'
	check "the collector answers" collector_answers
	check "a guarded program works" makes_one
	check "all that take too long are cut off" eventually grep -q 'all were cut off' "$work/hostile.out"
	check "metrics after it" metric 'rdma_intercept_collector_up 1'
	check "the dashboard is the same process" kill -0 "$dashboard_pid"
	check "its memory is small: $(kilobytes) KB" test "$(kilobytes)" -lt 150000
	end "$hostile"
	check "nothing of them is left" eventually few_descriptors $((before + 5))
	check "it ends in order" ends
}
ends() {
	kill "$dashboard_pid"
	wait "$dashboard_pid"
}
makes_one() {
	worker_start one RDMA_INTERCEPT_QUIET=1
	makes one 1
}

# A collector that does not answer costs waiting, and nobody else notices.
stopped_collector() {
	[ -n "$collector_pid" ] && kill -0 "$collector_pid" 2>/dev/null || collector_begin
	dashboard_begin
	eventually metric 'rdma_intercept_collector_up 1'
	kill -STOP "$collector_pid"
	check "it is down" eventually metric 'rdma_intercept_collector_up 0'
	check "the index" gets 200 /
	check "state says so" gets 503 /api/state
	kill -CONT "$collector_pid"
	check "and up again" eventually metric 'rdma_intercept_collector_up 1'
}

run_cases "hostile stopped_collector" "$@"
