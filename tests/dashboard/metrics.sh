#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# /metrics: Prometheus accepts both formats, the numbers are the collector's, and labels are escaped.
# usage: tests/dashboard/metrics.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/fixture.sh"

# accepted [argument...]: promtool has nothing to say of the text
accepted() {
	fetch /metrics "$@"
	promtool check metrics <"$work/out" >"$work/said" 2>&1 && [ ! -s "$work/said" ]
}
promtool_is_silent() {
	both_begin
	if ! command -v promtool >/dev/null; then
		skip_part "promtool is not installed"
		return
	fi
	check "Prometheus' text" accepted
}

open_metrics() {
	both_begin
	fetch /metrics -H 'Accept: application/openmetrics-text; version=1.0.0' -D "$work/head"
	check "its type" grep -qi '^content-type: application/openmetrics-text' "$work/head"
	check "it ends as it must" test "$(tail -1 "$work/out")" = '# EOF'
	check "counters are named without _total" grep -q '^# TYPE rdma_intercept_policy_reloads counter' "$work/out"
	check "their values with it" grep -q '^rdma_intercept_policy_reloads_total ' "$work/out"
	check "units" grep -q '^# UNIT rdma_intercept_collector_uptime_seconds seconds' "$work/out"
	fetch /metrics -D "$work/head"
	check "the other format by default" grep -qi '^content-type: text/plain; version=0.0.4' "$work/head"
	check "which has no end" not grep -q '# EOF' "$work/out"
}

# Usage, limit, refusals: of a real process.
numbers() {
	both_begin
	check "a limit" metric 'rdma_intercept_tenant_limit{tenant="ours",resource="qp"} 4'
	check "bytes have a metric of their own" \
		metric 'rdma_intercept_tenant_limit_bytes{tenant="theirs",resource="mr_bytes"} 1073741824'
	worker_start one RDMA_INTERCEPT_QUIET=1
	check "four QPs" makes one 4
	check "usage" eventually metric 'rdma_intercept_tenant_used{tenant="ours",resource="qp"} 4'
	check "of the device, too" eventually metric "rdma_intercept_tenant_device_used{tenant=\"ours\",device=\"$device\",resource=\"qp\"} 4"
	check "of the host" metric 'rdma_intercept_host_used{resource="qp"} 4'
	check "a fifth is refused" ask one qp refused
	check "a refusal" eventually metric "rdma_intercept_refusals_total{tenant=\"ours\",device=\"$device\",resource=\"qp\"} 1"
	check "at the limit" eventually metric 'rdma_intercept_tenant_limit_hits_total{tenant="ours",resource="qp"} 1'
	"$command" limit set tenant ours mode=audit >/dev/null
	check "audit lets it pass" makes one 1
	check "what audit lets pass" eventually metric "rdma_intercept_would_refusals_total{tenant=\"ours\",device=\"$device\",resource=\"qp\"} 1"
	check "and is no refusal" metric "rdma_intercept_refusals_total{tenant=\"ours\",device=\"$device\",resource=\"qp\"} 1"
	check "no process has a label" not grep -q 'pid' "$work/out"
	if command -v promtool >/dev/null; then
		check "promtool is silent of all of it" accepted
	fi
}

# Rates and paces of the policy; without one there is no value.
rates_and_paces() {
	local rate='rdma_intercept_rate_limit_calls_per_second{tenant="ours",of=' pace=rdma_intercept_tenant_pace_bytes_per_second
	both_begin
	fetch /metrics
	check "none at first" not grep -qE 'rate_limit_calls|_pace_' "$work/out"
	"$command" limit set tenant ours rate.reg_mr=50/s process.rate.create_qp=7/s 'pace.bytes=2M/s burst 64K' qp.pace.ops=30/s >/dev/null
	check "a rate of the tenant" eventually metric "$rate\"tenant\",verb=\"reg_mr\"} 50"
	check "a rate of each process" eventually metric "$rate\"process\",verb=\"create_qp\"} 7"
	check "a pace in bytes" eventually metric "$pace{tenant=\"ours\"} 2097152"
	check "one of each queue pair" metric 'rdma_intercept_qp_pace_operations_per_second{tenant="ours"} 30'
	check "no others" not grep -q process_pace "$work/out"
	if command -v promtool >/dev/null; then
		check "promtool is silent of them" accepted
	fi
	"$command" limit unset tenant ours rate.reg_mr process.rate.create_qp pace.bytes qp.pace.ops >/dev/null
	check "none afterwards" eventually gone
}
gone() {
	fetch /metrics
	! grep -qE 'rate_limit_calls|_pace_' "$work/out"
}

# What a process counts stays with its tenant when the process ends; latencies are a histogram.
tenant_has() { # FILTER: show tenant -j holds it
	"$command" show tenant ours -j >"$work/out" 2>"$work/err" && holds "$1"
}
bucket_sums() { # the buckets of a histogram only grow, and the last is the count
	fetch /metrics
	awk -F'[ "]' '/^rdma_intercept_tenant_verb_duration_seconds_bucket.*verb="create_qp"/ {
		if ($NF < last) exit 1
		last = $NF; lines++
	}
	/^rdma_intercept_tenant_verb_duration_seconds_count.*verb="create_qp"/ { count = $NF }
	END { exit !(lines == 8 && last == 4 && count == 4) }' "$work/out"
}
verbs() {
	local name='rdma_intercept_tenant_verb'

	both_begin
	[ -n "${pid_one-}" ] && end "$pid_one"
	end "$collector_pid" # and with it the counts of other cases
	rm -rf "$RDMA_COLLECTOR_STATE"
	collector_begin
	"$command" limit set tenant ours mode=enforce >/dev/null
	worker_start two RDMA_INTERCEPT_QUIET=1
	check "four QPs" makes two 4
	check "a fifth is refused" ask two qp refused
	check "calls" eventually metric "${name}_calls_total{tenant=\"ours\",verb=\"create_qp\"} 4"
	check "refusals" metric "${name}_refusals_total{tenant=\"ours\",verb=\"create_qp\"} 1"
	check "no failure" metric "${name}_failures_total{tenant=\"ours\",verb=\"create_qp\"} 0"
	check "their states" metric "rdma_intercept_tenant_device_qp_states{tenant=\"ours\",device=\"$device\",state=\"RESET\"} 4"
	check "latencies" bucket_sums
	check "of the host, too" grep -q '^rdma_intercept_host_verb_duration_seconds_bucket{verb="create_qp",le="0.000001024"} ' "$work/out"
	check "the time of the peak" grep -qE '^rdma_intercept_tenant_peak_timestamp_seconds\{tenant="ours",resource="qp"\} 1[0-9]{9}$' "$work/out"
	check "the limit of the policy" metric 'rdma_intercept_tenant_limit_configured{tenant="ours",resource="qp"} 4'
	if command -v promtool >/dev/null; then
		check "promtool is silent of all of it" accepted
	fi
	check "show tenant -j" tenant_has '.counters.verb_calls.create_qp == 4 and .counters.verb_refused.create_qp == 1 and ([.counters.latency_create_qp[]] | add) == 4 and .tenant.kinds.qp.peak_time != null'
	check "the API" knows '/api/tenant?tenant=ours' '.counters.verb_calls.create_qp == 4 and .queue_pairs[0].qp_states.RESET == 4'
	end "$pid_two"
	check "the process has ended" eventually metric 'rdma_intercept_tenant_processes{tenant="ours"} 0'
	check "its calls stay" tenant_has '.counters.verb_calls.create_qp == 4 and .queue_pairs == []'
	check "its QPs do not" eventually not metric "rdma_intercept_tenant_device_qp_states{tenant=\"ours\",device=\"$device\",state=\"RESET\"} 4"
	check "in the metrics, too" metric "${name}_calls_total{tenant=\"ours\",verb=\"create_qp\"} 4"
}

collector_gone() {
	both_begin
	end "$collector_pid"
	check "the collector is down" eventually metric 'rdma_intercept_collector_up 0'
	check "no number of it is left" not grep -q rdma_intercept_tenant_used "$work/out"
	collector_begin
	check "and up again" eventually metric 'rdma_intercept_collector_up 1'
}

# Names in use: every metric that alerts and the Grafana page name is a row of the table.
shipped() {
	local packaging=${SOURCE_DIRECTORY:-$here/..}/packaging name

	both_begin
	check "the Grafana page is JSON" jq -e '.panels | length > 10' "$packaging/grafana/rdma_intercept.json"
	check "that of the fleet, too" jq -e '.panels | length > 10' "$packaging/grafana/rdma_fleet.json"
	sed -n 's/^ *- record: //p' "$packaging"/prometheus/*.rules.yml >"$work/recorded"
	while read -r name; do
		check "$name is recorded" grep -qxF "$name" "$work/recorded"
	done < <(cat "$packaging"/{grafana/*.json,prometheus/*.rules.yml} |
		grep -oE '(tenant|fleet):rdma_intercept_[a-z_]+:[a-z0-9_]+' | sort -u)
	sed -nE 's/^(ONE|TENANT|AMOUNT|MOMENT|GUARD|REFUSAL|DETAIL|VERB|RATE|GROUP|HISTOGRAM)\(([a-z_]+),.*/\2/p' \
		"$packaging/../src/dashboard/metrics.def" >"$work/rows"
	while read -r name; do
		check "there is a metric $name" is_metric "$name"
	done < <(cat "$packaging"/{grafana/*.json,prometheus/*.rules.yml} | grep -oE 'rdma_intercept_[a-z_]+' | sort -u)
	if ! command -v promtool >/dev/null; then
		skip_part "promtool is not installed"
		return
	fi
	check "the alerts are rules" promtool check rules "$packaging/prometheus/rdma_intercept.rules.yml"
	check "they fire and clear" promtool test rules "$packaging/prometheus/rdma_intercept.test.yml"
	check "those of the fleet are rules" promtool check rules "$packaging/prometheus/rdma_fleet.rules.yml"
	check "they sum, fire and clear" promtool test rules "$packaging/prometheus/rdma_fleet.test.yml"
	check "the example is a configuration" promtool check config "$packaging/prometheus/rdma_fleet.prometheus.yml"
}
is_metric() {
	local name=${1#rdma_intercept_} scope

	name=${name%_total} name=${name%_bucket} name=${name%_sum} name=${name%_count} name=${name%_bytes} name=${name%_seconds}
	for scope in '' host_ tenant_device_ tenant_ device_; do
		[[ $name != "$scope"* ]] || ! grep -qx "${name#"$scope"}" "$work/rows" || return 0
	done
	return 1
}

run_cases "promtool_is_silent open_metrics numbers rates_and_paces verbs collector_gone shipped" "$@"
