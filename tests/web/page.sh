#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The page in a real browser: its numbers are those of the command, what a person changes there
# holds in a running process, and it says what is wrong and comes back. Pictures of all views are in
# tests/pictures of the build directory.
# usage: tests/web/page.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/web/browser.sh
. "$(dirname "$0")/browser.sh"

VIEWS='overview tenant/ours devices events advice limits/host limits/tenant%20ours'
MARKUP='<img src=x>'
# A limit that was met, a process with a name like markup, and a tenant without any.
write_policy "qp = 4
	mr = 10"
collector_begin
export RDMA_INTERCEPT_DOCTOR_ROOT=$work/none # a host without systemd
dashboard_begin
load "$MARKUP" 6 7
token=$("$build/rdma_dashboard" --token)
browser_begin
browse goto "$address/" || exit 1
browse eval 'navigator.language' && echo "the browser speaks $answer"

# ---- files

# The whole page is small, is kept by browsers, and lets nothing else in.
files() {
	local path etag total=0

	for path in / /app.js /app.css /icon.svg; do
		fetch "$path" -H 'Accept-Encoding: gzip' -D "$work/head"
		check "$path" test "$code" = 200
		check "$path is compressed" grep -qi '^content-encoding: gzip' "$work/head"
		check "$path: scripts and styles of our own only" grep -qi \
			"^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'" "$work/head"
		total=$((total + $(stat -c %s "$work/out")))
		gzip -dc <"$work/out" >"$work/plain"
		check "$path names no other host" not grep -qE "(src|href|url)[=(]['\"]?(https?:)?//" "$work/plain"
		etag=$(sed -n 's/^etag: *\([^\r]*\).*/\1/Ip' "$work/head")
		check "$path again" gets 304 "$path" -H 'Accept-Encoding: gzip' -H "If-None-Match: $etag"
		check "and another" gets 200 "$path" -H 'Accept-Encoding: gzip' -H 'If-None-Match: "0"'
	done
	echo "the page has $total bytes"
	check "all of it together has at most 100 KB" test "$total" -le 102400
	fetch /
	check "without gzip, a list of paths in text" grep -q '^/metrics' "$work/out"
	check "and no script" gets 406 /app.js
	fetch / -H 'Accept-Encoding: gzip'
	gzip -dc <"$work/out" >"$work/plain"
	check "no script or style inside" not grep -qE '<style|style=|<script>|onclick' "$work/plain"
}

# ---- numbers

# numbers_agree: what the overview shows of the tenant is what the command shows
numbers_agree() {
	local kind

	"$command" -j show tenant ours >"$work/show"
	for kind in qp mr ctx pd cq; do
		text_of "[data-tenant=ours] [data-kind=$kind] .numbers b" || return 1
		[ "$answer" = "$(jq ".tenant.kinds.$kind.used" "$work/show")" ] || {
			echo "$kind: $answer in the page, in the command $(jq -c ".tenant.kinds.$kind" "$work/show")"
			return 1
		}
	done
	reads '[data-tenant=ours] [data-kind=qp] .numbers' "4 / $(jq .tenant.kinds.qp.limit "$work/show")" &&
		reads '[data-tenant=ours] [data-column=refused]' "$(jq '[.tenant.kinds[].refused] | add' "$work/show")" &&
		reads '[data-tenant=ours] [data-column=tolerated]' "$(jq '[.tenant.kinds[].tolerated] | add' "$work/show")"
}
numbers() {
	visit '#/overview'
	check "it is live" eventually shows "document.querySelector('.connection').dataset.state" live
	check "the numbers of the command" eventually numbers_agree
	check "the refusal comes first" eventually reads .attention 'qp ×'
	check "with the tenant's name" reads .attention ours
	check "the host" eventually reads '[data-kind=qp] .numbers' '4 / 100'
	check "what is full says so in a word" reads '[data-tenant=ours] [data-kind=qp]' full
	worker_start one RDMA_INTERCEPT_QUIET=1
	ask one qp refused
	check "a new process arrives by itself" eventually numbers_agree
	"$command" limit set tenant ours mode=warn
	check "one more is tolerated" ask one qp ok
	check "and counted beside the refusals" eventually reads '[data-tenant=ours] [data-column=tolerated]' 1
	"$command" limit reset
	worker_end one quit
	check "its end, too" eventually numbers_agree
	visit '#/tenant/ours'
	check "the tenant's table" eventually reads '[data-kind=mr] .numbers' '7 / 10'
	check "a chart" eventually true_there "document.querySelector('[data-resource=qp] canvas')?.width"
	check "says its numbers" eventually reads '[data-resource=qp] figcaption' 'limit 4'
	check "queue pairs" eventually reads '[aria-labelledby=pairs]' 'RESET 4'
	check "why it was refused" eventually reads '[aria-labelledby=events]' 'limit set tenant ours qp=5'
	check "how long verbs took" eventually reads '[aria-labelledby=latencies]' create_qp
	visit '#/advice'
	check "advice" eventually reads '[data-rule=no_monitor]' 'rdma_monitor --keep'
	visit '#/devices'
	check "the device" eventually reads '[data-device] .tiles' qp
	visit '#/events'
	check "the event" eventually reads .events 'limit of the tenant'
}

# A name of a process can be any bytes; it is text.
markup() {
	visit '#/tenant/ours'
	check "the name as it is" eventually reads '[aria-labelledby=processes]' "$MARKUP"
	check "and not what it says" shows "document.querySelectorAll('img').length" 0
	visit '#/tenant/%3Cimg%20src%3Dx%3E'
	check "a name in the address" eventually reads h1 "$MARKUP"
	check "neither" shows "document.querySelectorAll('img').length" 0
}

# ---- changes

limit_is() {
	[ "$("$command" -j limit get tenant ours | jq -c '[.limits[] | select(.key == "qp").value][0]')" = "$1" ]
}
# editor VALUE: a new limit of QPs is entered
editor() {
	visit '#/overview'
	visit '#/limits/tenant%20ours'
	eventually true_there "document.querySelector('input[data-key=qp]')" && browse fill 'input[data-key=qp]' "$1"
}
token_enter() {
	browse fill 'input[name=token]' "$1" && browse click '.token button'
}
changes() {
	worker_start two RDMA_INTERCEPT_QUIET=1
	check "the limit refuses" ask two qp refused
	check "the editor" editor 5
	check "file and line beside the value" eventually reads '[data-kind=qp] .source' "$work/policy.conf:5"
	check "what would change" eventually reads .preview 'qp: 4 → 5'
	check "and what it means" eventually reads .preview '1 more can be made'
	check "without a token there is no change" true_there "document.querySelector('.apply .strong').disabled"
	check "by a request of the page neither" shows "fetch('/api/limits', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ section: 'tenant ours', set: { qp: 5 } }) }).then((answer) => answer.status)" 401
	browse errors
	check "nothing was changed" limit_is 4
	check "a wrong token" token_enter "${token//[0-9]/f}"
	check "is explained in place" eventually reads '#token-problem' 'This is not the token'
	check "the token" token_enter "$token"
	check "is accepted" eventually shows "document.querySelector('header .chip').dataset.state" may_change
	check "applied" browse click '.apply .strong'
	check "says so" eventually reads .success 'qp = 5'
	check "it is in force" eventually limit_is 5
	check "a running process has it" ask two qp ok
	check "the page shows it" eventually reads '[data-kind=qp] .numbers' '5 / 5'
	check "and that the file has another value" eventually reads '[data-kind=qp] .source' 'policy.conf:5 (says 4'
	visit '#/events'
	check "it is an event" eventually reads .events 'qp = 5'
	check "with who did it" eventually reads .events "dashboard's token, from 127.0.0.1"
	check "bad input" editor many
	check "is sent" browse click '.apply .strong'
	check "and explained in place" eventually reads '#failure' "qp: invalid value 'many': expected a count or unlimited"
	check "the field is marked" shows "document.querySelector('input[data-key=qp]').getAttribute('aria-invalid')" true
	check "nothing was changed by it" limit_is 5
	check "the token is not in the address or kept after the tab" true_there "!localStorage.getItem('token') && !location.href.includes('$token')"
	browse errors # the browser reports the answer 400
	worker_end two quit
	"$command" limit unset tenant ours qp >/dev/null
}

# ---- restarts

no_errors() {
	browse errors && echo "$answer" && [ "$answer" = '[]' ]
}
restarts() {
	visit '#/overview'
	eventually shows "document.querySelector('.connection').dataset.state" live
	check "no complaint so far" no_errors
	end "$collector_pid"
	check "without a collector it says so" eventually reads .trouble 'The collector does not answer'
	check "and keeps what it knew" reads '[data-tenant=ours] [data-kind=mr] .numbers' '7 / 10'
	collector_begin
	check "the collector is back" eventually shows "document.querySelector('.connection').dataset.state" live
	check "with its numbers" eventually numbers_agree
	check "that made no complaint" no_errors
	end "$dashboard_pid"
	check "without a dashboard it says so" eventually reads .trouble 'The dashboard does not answer'
	dashboard_begin --listen "127.0.0.1:$port"
	check "the dashboard is back" eventually shows "document.querySelector('.connection').dataset.state" live
	"$command" limit set tenant ours mr=12 >/dev/null
	check "and what changes arrives" eventually reads '[data-tenant=ours] [data-kind=mr] .numbers' '7 / 12'
	check "nothing wrong is left" shows "document.querySelector('.trouble')" null
	"$command" limit unset tenant ours mr >/dev/null
	browse errors # the browser reports connections that were refused
}

# ---- how it looks

# accessible VIEW: axe-core finds nothing
accessible() {
	browse axe && echo "$answer" && [ "$answer" = '[]' ]
}
wide() {
	true_there "document.documentElement.scrollWidth <= innerWidth"
}
# looks WIDTH COLOURS LANGUAGE: all views, with pictures
looks() {
	local view name

	browse look "$1" "$2"
	for view in $VIEWS; do
		name=${view//[\/%]/-}-$1-$2-$3
		visit "#/$view"
		check "$name is there" eventually true_there "document.querySelector('main h1') && !document.querySelector('main .dim')?.textContent.startsWith('Loading')"
		check "$name fits into the window" eventually wide
		browse shot "$pictures/$name.png"
		[ "$4" != axe ] || check "$name: axe-core finds nothing" accessible
	done
}
views() {
	browse errors
	looks 1280 light en axe
	looks 390 dark en axe
	browse click .language
	check "the language of the document" shows document.documentElement.lang zh-CN
	VIEWS='overview tenant/ours limits/tenant%20ours' # the texts differ, the layout does not
	looks 1280 dark zh no
	looks 390 light zh no
	check "Chinese" eventually reads h1 限制
	browse click .language
	browse look 1280 light
	check "no complaint of the console" no_errors
	visit '#/overview'
	# (the first stop is the link that skips the navigation)
	browse eval 'document.activeElement.blur()'
	browse keys Tab
	browse keys Enter
	check "by keyboard to the content" eventually shows document.activeElement.id main
}

run_cases "files numbers markup changes restarts views" "$@"
