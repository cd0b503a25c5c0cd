#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real Prometheus scrapes the dashboard: the alert at four fifths of a limit fires and clears. Its
# clocks run fast: it scrapes twice a second, and waits a second before it fires; in the long form
# the rules are as they are shipped, and it waits a minute.
# usage: tests/dashboard/prometheus.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/fixture.sh"

if ! command -v prometheus >/dev/null; then
	echo "skipped: prometheus is not installed"
	exit 77
fi

rules=${SOURCE_DIRECTORY:-$here/..}/packaging/prometheus/rdma_intercept.rules.yml

# A port that nobody has: the one that the kernel gives to somebody who asks for any.
port_find() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

prometheus_answers() {
	curl -s -o "$work/nothing" "$prometheus/-/ready"
}
prometheus_begin() {
	local shorten='s/^\( *for:\) .*/\1 1s/'

	[ "$factor" -le 1 ] || shorten=''
	sed "$shorten" "$rules" >"$work/rules.yml"
	cat >"$work/prometheus.yml" <<-END
		global:
		  scrape_interval: 500ms
		  evaluation_interval: 500ms
		rule_files: [$work/rules.yml]
		scrape_configs:
		  - job_name: rdma
		    static_configs:
		      - targets: ["${address#http://}"]
	END
	prometheus=http://127.0.0.1:$(port_find)
	background prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
		--web.listen-address="${prometheus#http://}" >"$work/prometheus.out" 2>&1 &
	workers+=($!)
	eventually prometheus_answers || { cat "$work/prometheus.out"; exit 1; }
}

# asks PATH FILTER: what Prometheus answers holds it
asks() {
	curl -s "$prometheus/api/v1/$1" >"$work/out" && holds "$2"
}
fires() {
	asks alerts '.data.alerts | map(select(.labels.alertname == "RdmaTenantNearLimit" and .state == "firing"
		and .labels.tenant == "ours" and .labels.resource == "qp")) | length == 1'
}
is_quiet() {
	asks alerts '.data.alerts | map(select(.labels.alertname == "RdmaTenantNearLimit")) | length == 0'
}
scraped() {
	asks "query?query=rdma_intercept_tenant_limit%7Btenant%3D%22ours%22%7D" '.data.result[0].value[1] == "5"'
}

alert_fires_and_clears() {
	write_policy "qp = 5"
	collector_begin
	dashboard_begin
	eventually metric 'rdma_intercept_collector_up 1'
	prometheus_begin
	check "Prometheus has the metrics" eventually scraped
	check "the target is healthy" asks targets '.data.activeTargets[0].health == "up"'
	check "nothing is wrong" is_quiet
	worker_start one RDMA_INTERCEPT_QUIET=1
	check "four of five QPs" makes one 4
	check "the alert fires" eventually fires
	check "it says what to do" asks alerts '.data.alerts[0].annotations.description | test("rdma_intercept show tenant ours")'
	check "a latency by PromQL" eventually asks "query?query=histogram_quantile(0.9,sum(rdma_intercept_tenant_verb_duration_seconds_bucket)by(le,verb))" \
		'.data.result | map(select(.metric.verb == "create_qp" and (.value[1] | tonumber) > 0)) | length == 1'
	end "$pid_one"
	check "the alert clears" eventually is_quiet
}

run_cases "alert_fires_and_clears" "$@"
