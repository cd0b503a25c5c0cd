#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The history of a real program: seconds in memory, steps and events on disk, by the API and by the
# command; it survives a SIGKILL, and a damaged file.
# usage: tests/dashboard/history.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/fixture.sh"

begin() {
	[ -z "$dashboard_pid" ] || return 0
	both_begin
	worker_start one RDMA_INTERCEPT_QUIET=1
	makes one 3 >/dev/null
	eventually metric 'rdma_intercept_tenant_used{tenant="ours",resource="qp"} 3' >/dev/null
}
# has_step: a step of ten seconds with all three is on disk
has_step() {
	knows '/api/history?tenant=ours&resource=qp&since=1h' \
		'.step == 10 and (.series[0].points | map(select(.[2] == 3 and .[3] == 4)) | length > 0)'
}
tells() { # TEXT ARGUMENT...: the command prints it
	"$command" "${@:2}" >"$work/out" 2>"$work/err" && grep -qE "$1" "$work/out"
}
# fails STATUS TEXT ARGUMENT...: so the command ends, with this error
fails() {
	local status=0

	"$command" "${@:3}" >"$work/out" 2>"$work/err" || status=$?
	cat "$work/err"
	[ "$status" = "$1" ] && cat "$work/out" "$work/err" | grep -qF -e "$2"
}

joined() {
	knows '/api/events?since=1h' '.events | map(select(.type == "joined")) | length == 1'
}

seconds_and_steps() {
	begin
	check "seconds" knows '/api/history?tenant=ours&resource=qp&since=1m' \
		'.step == 1 and (.series | length == 1) and .series[0].points[-1][1] == 3 and .series[0].points[-1][3] == 4'
	check "steps on disk" eventually has_step
	check "the host tells that somebody looked" knows '/api/history?resource=processes&since=1h' \
		'.series | map(select(.tenant == null)) | length == 1'
	check "the command" tells 'ours +qp +[0-9]+ +3 +4 +0' history ours
	check "as CSV" tells '^[0-9]+,"ours",qp,[0-9]+,3,4,0$' history ours --csv
	check "as JSON" tells '"resource":"qp"' history ours -j --since 30m
	"$command" -j history --since 30m | sed 's/^/history\t/' >"$work/named"
	check "as its schema says" "$build/tests/schemas" "${SOURCE_DIRECTORY:-$here/..}/docs/schemas" <"$work/named"
	check "of another tenant nothing" not tells '"ours"' history theirs --csv
	"$command" history --since x >"$work/out" 2>"$work/err"
	check "a span that is none" says err 'expected 10m'
}

# The collector's memory begins anew with it; the history goes on.
events_since() {
	local before

	begin
	check "events on disk" eventually joined
	check "since: of this collector" tells ' joined +ours ' events --since 1h
	before=$("$command" events --since 1h -j | jq '.events | length')
	end "$collector_pid"
	rm -rf "$RDMA_COLLECTOR_STATE"
	collector_begin
	check "the collector has forgotten" not tells ' joined +ours ' events
	check "the history has not" tells ' joined +ours ' events --since 1h
	check "as JSON, each once" all_since "$before"
	check "from a moment on" not tells ' joined +ours ' events --since "$(date -u -d '+1 hour' +%FT%T.5+00:00)"
	"$command" events --since x >"$work/out" 2>"$work/err"
	check "a span that is none" says err "--since: invalid value 'x': expected 10m"
}
all_since() { # COUNT: so many events of the first collector, and none twice
	"$command" events --since 1h -j >"$work/out" &&
		holds "(.events | length) > $1 and (.events | length) == (.events | unique | length)
			and (.events | map(select(.type == \"joined\")) | length) == 1"
}

# In the long form as often as the database has to bear it.
killed() {
	local i kills=$((factor > 1 ? 200 : 5))

	begin
	check "steps on disk" eventually has_step
	check "events on disk" eventually joined
	for ((i = 0; i < kills; i++)); do
		end "$dashboard_pid"
		dashboard_begin
		check "kill $i: what was written is there" has_step
		check "kill $i: and an event once" joined
	done
	eventually metric 'rdma_intercept_collector_up 1'
	check "the collector's events, which came again, are no new ones" joined
}

damaged() {
	begin
	kill "$dashboard_pid"
	wait "$dashboard_pid"
	head -c 20000 /dev/urandom >"$work/dashboard/history.db"
	rm -f "$work/dashboard"/history.db-*
	dashboard_begin
	check "it says so" eventually grep -q 'the history was damaged' "$work/dashboard.err"
	check "and keeps it" test -s "$work/dashboard/history.db.damaged"
	check "a new one begins" eventually knows '/api/events?since=1h' '.events | length > 0'
	chmod 0 "$work/dashboard" # root may write all the same
	check "metrics need no history" metric 'rdma_intercept_collector_up 1'
	chmod 700 "$work/dashboard"
}

memory_only() {
	begin
	end "$dashboard_pid"
	dashboard_begin --no-history
	check "seconds" eventually knows '/api/history?tenant=ours&resource=qp&since=1m' '.series[0].points | length > 0'
	check "no steps" gets 404 '/api/history?since=1h'
	check "it says why" holds '.error | test("no history")'
}

started_by_the_command() {
	[ -n "$collector_pid" ] || collector_begin
	background "$command" dashboard --listen 127.0.0.1:0 --state "$work/other" >"$work/foreground.out" 2>&1 &
	workers+=($!)
	check "it prints the address" eventually grep -q '^rdma_dashboard: http://127.0.0.1:[0-9]*/$' "$work/foreground.out"
	check "and the token" tells '^[0-9a-f]{64}$' dashboard --token --state "$work/other"
	check "as JSON" tells '^\{"token":"[0-9a-f]{64}"\}$' -j dashboard --token --state "$work/other"
	check "no token as JSON" fails 1 "{\"error\":\"$work/unused/token: there is no token: rdma_dashboard makes it when it starts: start rdma_dashboard" \
		-j dashboard --token --state "$work/unused"
	check "who asks makes no directory" test ! -e "$work/unused"
	check "in JSON only" test ! -s "$work/err"
	refuses 1 'other: another rdma_dashboard keeps its history there: expected another directory' \
		--listen 127.0.0.1:0 --state "$work/other"
}

without_history() {
	[ -n "$collector_pid" ] || collector_begin
	check "no history" fails 1 "$work/none/history.db: there is no history: rdma_dashboard records it" \
		history --state "$work/none"
	check "names what to start" grep -qF "start it with 'systemctl start rdma_dashboard'" "$work/err"
	check "events need none" "$command" events --since 1h --state "$work/none"
	if [ "$(id -u)" -ne 0 ]; then
		skip_part "only root can make files of another user"
		return
	fi
	mkdir -m 700 "$work/closed"
	: >"$work/closed/history.db"
	chmod 711 "$work"
	chmod 666 "$work/socket"
	command=$work/as_nobody
	printf '#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "%s" "$@"\n' \
		"$build/rdma_intercept" >"$command"
	chmod 755 "$command"
	if ! "$command" --version >"$work/out" 2>&1; then
		skip_part "other users cannot start programs of the build directory"
	else
		check "a directory of another user" \
			fails 4 "$work/closed/history.db: the history cannot be read: Permission denied" \
			history --state "$work/closed"
		check "events say so, too" \
			fails 4 "$work/closed/history.db: the history cannot be read: Permission denied" \
			events --since 1h --state "$work/closed"
	fi
	command=$build/rdma_intercept
}

# refuses STATUS TEXT [OPTION...]: rdma_dashboard does not start, and says why
refuses() {
	local status=0

	timeout 60 "$build/rdma_dashboard" "${@:3}" >"$work/out" 2>"$work/err" || status=$?
	check "${*:3}: status $1, with the reason" test "$status" = "$1"
	check "${*:3}: $2" grep -qF -e "$2" "$work/err"
}

wrong_command_lines() {
	refuses 2 "unexpected argument 'extra': expected options only" --state "$work/none" extra
	refuses 2 "foo" --state "$work/none" --listen foo
	refuses 2 "no address: expected" --state "$work/none" --listen none
	refuses 2 "usage: rdma_dashboard" --state "$work/none" --nonsense
	refuses 1 "192.0.2.1:1: cannot listen: Cannot assign requested address: expected another address by --listen or --unix" \
		--state "$work/none" --listen 192.0.2.1:1
	check "nothing was written" not test -e "$work/none"
	refuses 1 "/proc/x: the state directory cannot be made" --listen 127.0.0.1:0 --state /proc/x
}

run_cases "seconds_and_steps killed events_since damaged memory_only started_by_the_command without_history wrong_command_lines" "$@"
