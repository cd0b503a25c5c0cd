#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The API: documents are those of the command, changes need the token and come from our own page,
# and each is recorded.
# usage: tests/dashboard/api.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/fixture.sh"

collector_begin
export RDMA_INTERCEPT_DOCTOR_ROOT=$work/none # a host without systemd
dashboard_begin
eventually metric 'rdma_intercept_collector_up 1'
token=$("$build/rdma_dashboard" --token)
sources=${SOURCE_DIRECTORY:-$here/..}

# same FILTER arguments...: of /api/state and of the command
same() {
	local filter=$1

	shift
	fetch /api/state
	"$command" -j "$@" | jq -S "$filter" >"$work/wanted"
	jq -S "$filter" "$work/out" | diff -u "$work/wanted" -
}
state() {
	worker_start one RDMA_INTERCEPT_QUIET=1
	check "three QPs" makes one 3
	check "usage arrives" eventually knows /api/state '.tenants[] | select(.name == "ours") | .kinds.qp.used == 3'
	check "tenants are those of the command" eventually same .tenants show tenant
	# (the dashboard looks up no names of users)
	check "processes" eventually same '.processes | map(del(.user))' show process
	check "devices" eventually same .devices show device
	check "rules" same .rules status
	check "the host" eventually same .host status
	check "the collector" eventually same '.collector | del(.uptime_seconds)' status
	check "events" knows /api/events '.events | map(select(.type == "joined")) | length == 1'
	check "advice" knows /api/advice '.advice | map(.rule) | index("no_monitor")'
	check "advice with a command" knows /api/advice '.advice[0].command == "rdma_monitor --keep"'
	check "advice of a tenant" knows '/api/advice?tenant=theirs' '.advice == []'
	check "advice of no tenant" gets 404 '/api/advice?tenant=nobody'
	check "is an error that names it" holds ".error | test(\"no tenant 'nobody'\")"
	check "history of a tenant" knows '/api/history?tenant=theirs&since=1m' '.series | type == "array"'
	for since in 1m 1h; do
		check "history of no tenant, $since" gets 404 "/api/history?tenant=nobody&since=$since"
		check "is an error that names it, $since" holds ".error | test(\"a tenant 'nobody'\")"
	done
	check "of one tenant" knows '/api/events?tenant=theirs' '.events == []'
	fetch /api/state
	while read -r field; do
		grep -q "^KIND($field," "$sources/src/terms/kinds.def" ||
			check "docs/json.md has '$field'" grep -q "\`$field\`" "$sources/docs/json.md"
	done < <(jq -r '[paths | map(select(type == "string"))[]] | unique[]' "$work/out")
	worker_end one quit
}

# What the page asks for besides.
page_documents() {
	worker_start one RDMA_INTERCEPT_QUIET=1
	check "two QPs" makes one 2
	check "kinds are those of the command" eventually same_document /api/kinds .kinds show kind
	check "a tenant with its processes" eventually knows '/api/tenant?tenant=ours' \
		'.tenant.name == "ours" and .processes[0].pid == '"$pid_one"' and .queue_pairs[0].qp_types.RC == 2 and .devices[0].kinds.qp.used == 2'
	check "the tenant is that of the command" eventually same_document '/api/tenant?tenant=ours' .tenant show tenant ours
	check "its devices too" eventually same_document '/api/tenant?tenant=ours' '.devices | map(del(.ports))' show tenant ours
	check "nobody else's processes" knows '/api/tenant?tenant=theirs' '.processes == []'
	check "no tenant" gets 404 '/api/tenant?tenant=nobody'
	check "no name" gets 400 /api/tenant
	check "says what is expected" holds '.error == "tenant: missing: expected /api/tenant?tenant=NAME"'
	check "devices, with tenants" eventually knows /api/devices \
		'.devices[0].device.kinds.qp.used == 2 and (.devices[0].tenants[] | select(.name == "ours").kinds.qp.used) == 2'
	check "lines of the policy" knows '/api/limits?section=tenant%20ours' \
		'.sources | map(select(.key == "qp")) == [{"key": "qp", "value": "4", "source": "'"$work/policy.conf:5"'"}]'
	check "of the host" knows '/api/limits?section=host' '.sources | map(.source) == ["'"$work/policy.conf:2"'"]'
	check "of no section" knows '/api/limits?section=ours' '.sources == []'
	check "the token" knows_token true "$token"
	check "another one" knows_token false "${token//[0-9]/f}"
	worker_end one quit
}
# same_document PATH FILTER argument...: of the path and of the command
same_document() {
	local path=$1 filter=$2

	shift 2
	fetch "$path"
	"$command" -j "$@" | jq -S "$filter" >"$work/wanted"
	jq -S "$filter" "$work/out" | diff -u "$work/wanted" -
}
knows_token() {
	gets 200 /api/token -H "Authorization: Bearer $2" && holds ".valid == $1"
}

# Every answer has the headers, also a failure.
headers() {
	for path in / /metrics /nothing; do
		fetch "$path" -D "$work/head"
		check "$path: content security policy" grep -qi "^content-security-policy: default-src 'none'" "$work/head"
		check "$path: no other type" grep -qi '^x-content-type-options: nosniff' "$work/head"
		check "$path: in no frame" grep -qi '^x-frame-options: deny' "$work/head"
	done
	check "an unknown path" gets 404 /nothing
	check "says so" holds '.error | test("no such path")'
	check "a wrong method" gets 405 /api/state -X DELETE
	check "HEAD" gets 200 /metrics -I
	check "the Unix socket" curl -sf --unix-socket "$work/http" http://localhost/metrics -o "$work/nothing"
}

post() { # code document [argument...]
	local wanted=$1 document=$2

	shift 2
	gets "$wanted" /api/limits -H 'Content-Type: application/json' -d "$document" "$@"
}
bearer() { # code document [argument...]
	post "$@" -H "Authorization: Bearer $token"
}
limit_is() {
	[ "$("$command" -j limit get tenant ours | jq -c '[.limits[] | select(.key == "qp").value][0]')" = "$1" ]
}

changes() {
	local good='{"section": "tenant ours", "set": {"qp": 9}}'

	check "the token is for its owner only" test "$(stat -c %a "$work/dashboard/token")" = 600
	check "without a token" post 401 "$good"
	check "with another" post 401 "$good" -H "Authorization: Bearer ${token//[0-9]/f}"
	check "with the token as a user's password" post 401 "$good" -u "x:$token"
	check "from another site" bearer 403 "$good" -H 'Origin: http://evil.example'
	check "from nowhere" bearer 403 "$good" -H 'Origin: null'
	check "by another site's page" bearer 403 "$good" -H 'Sec-Fetch-Site: cross-site'
	check "for another host" bearer 403 "$good" -H 'Host: evil.example'
	check "metrics for another host" gets 403 /metrics -H 'Host: evil.example:9910'
	check "as a form" gets 415 /api/limits -d "$good" -H "Authorization: Bearer $token"
	check "nothing was changed by any of them" limit_is 4
	check "from our own page" bearer 200 "$good" -H "Origin: $address"
	check "it is in force" limit_is 9
	check "it is an event, with who did it" eventually knows /api/events \
		'.events | map(select(.type == "limits" and (.text | test("qp = 9 .*dashboard.*127.0.0.1")))) | length == 1'
	check "it is one event" knows /api/events \
		'.events | map(select(.type == "limits" and (.text | test("qp = 9")))) | length == 1'
	check "with the dashboard's user" knows /api/events \
		'.events | map(select(.type == "limits") | .uid) == ['"$(id -u)"']'
	check "taken back" bearer 200 '{"section": "tenant ours", "unset": ["qp"]}'
	check "the policy's again" limit_is 4
	chmod 644 "$work/dashboard/token"
	check "a token that others can read" bearer 401 "$good"
	chmod 600 "$work/dashboard/token"
}

bad_input() {
	check "no JSON" bearer 400 '{'
	check "where" holds '.error | test("line 1")'
	check "no section" bearer 400 '{"set": {"qp": 1}}'
	check "what is expected" holds '.error | test("section.*expected host")'
	check "nothing to do" bearer 400 '{"section": "host"}'
	check "a value that is none" bearer 400 '{"section": "host", "set": {"qp": "many"}}'
	check "in the collector's words" holds '.error == "qp: invalid value '"'many'"': expected a count or unlimited"'
	check "a key that is none" bearer 400 '{"section": "host", "set": {"house": 1}}'
	check "a line in a value" bearer 400 '{"section": "host", "set": {"qp": "1\nmr = 2"}}'
	check "a line in a key" bearer 400 '{"section": "host", "set": {"mr = 2\nqp": "1"}}'
	check "no tenant" bearer 404 '{"section": "tenant nobody", "set": {"qp": 1}}'
	check "too much" bearer 413 "{\"section\": \"$(head -c 9000 /dev/zero | tr '\0' x)\"}"
	check "a span that is none" gets 400 '/api/history?since=yesterday'
	check "which are" holds '.error | test("expected 10m")'
	check "a resource that is none" gets 404 '/api/history?resource=nosuch'
	check "a step that is none" gets 400 '/api/history?step=0'
}

# What a page sees: all tenants once, then what changes, and events.
live() {
	curl -sN "$address/api/live" >"$work/live" &
	workers+=($!)
	check "the state at first" eventually grep -q '"name":"theirs"' "$work/live"
	"$command" limit set tenant theirs qp=77 >/dev/null
	check "the event" eventually grep -q 'theirs.*qp = 77' "$work/live"
	check "the tenant that changed" eventually grep -q '"name":"theirs".*"limit":77' "$work/live"
	check "and no other" not grep -q '"limit":77.*"name":"ours"' "$work/live"
	check "at most 64 of them" too_many_live
	check "others are served" metric 'rdma_intercept_collector_up 1'
}
too_many_live() {
	local i

	for ((i = 0; i < 70; i++)); do
		curl -sN -o "$work/nothing" "$address/api/live" &
		workers+=($!)
	done
	eventually gets 503 /api/live -m 2
}

# The collector and the dashboard end and come again, in any order.
restarts() {
	end "$collector_pid"
	check "the state says why" eventually gets 503 /api/state
	check "in words" holds '.error | test("no collector")'
	check "a change too" bearer 503 '{"section": "host", "set": {"qp": 1}}'
	collector_begin
	check "it comes back" eventually knows /api/state '.tenants | length == 3'
	end "$dashboard_pid"
	check "the collector goes on without the dashboard" collector_answers
	dashboard_begin
	check "the dashboard comes back" eventually knows /api/state '.tenants | length == 3'
}

run_cases "state page_documents headers changes bad_input live restarts" "$@"
