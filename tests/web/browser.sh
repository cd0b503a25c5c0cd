# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables for the scripts that source this, and of the fixture
# A browser for the scripts of this directory, beside the collector and the dashboard of the
# fixture. browser.mjs has its commands.
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "${BASH_SOURCE[0]}")/../dashboard/fixture.sh"
modules=$build/web/node_modules
pictures=$build/tests/pictures
mkdir -p "$pictures"

for needed in chromium node; do
	if ! command -v "$needed" >/dev/null; then
		echo "skipped: $needed is not installed"
		exit 77
	fi
done
if [ ! -e "$modules/playwright-core" ]; then
	echo "skipped: the build has no page: npm or its packages were missing"
	exit 77
fi

browser_begin() {
	CHROMIUM=$(command -v chromium)
	export CHROMIUM
	mkfifo "$work/browser.in" "$work/browser.out"
	# (the stand-in libraries and a preload are not for the browser)
	background env -u LD_LIBRARY_PATH -u LD_PRELOAD HOME="$work" node \
		"$(dirname "${BASH_SOURCE[0]}")/browser.mjs" "$modules" "$work/browser" \
		<"$work/browser.in" >"$work/browser.out" 2>"$work/browser.err" &
	browser_pid=$!
	exec {to_browser}<>"$work/browser.in" {from_browser}<"$work/browser.out"
	trap 'browser_end; clean_up' EXIT
}
# It has processes of its own, which must not stay.
browser_end() {
	echo quit >&"$to_browser"
	eventually not kill -0 "$browser_pid" 2>/dev/null || kill -KILL "$browser_pid"
	wait "$browser_pid" 2>/dev/null || true
}

# browse COMMAND...: the answer's value in $answer, as JSON, strings without quotation marks
browse() {
	local line

	printf '%s\n' "$*" >&"$to_browser"
	if ! read -r -t 120 line <&"$from_browser"; then
		echo "the browser does not answer"
		cat "$work/browser.err"
		return 1
	fi
	if answer=$(jq -er .error <<<"$line"); then
		echo "$answer"
		return 1
	fi
	answer=$(jq -r 'if .ok | type == "string" then .ok else .ok | tojson end' <<<"$line")
}

# shows EXPRESSION VALUE: the expression has this value in the page
shows() {
	browse eval "$1" && echo "$1: $answer, wanted $2" && [ "$answer" = "$2" ]
}
# true_there EXPRESSION: it is true in the page
true_there() {
	shows "Boolean($1)" true
}
# text_of SELECTOR: the text of the element, with single blanks, in $answer
text_of() {
	browse eval "(document.querySelector('$1')?.textContent ?? '').replace(/\\s+/g, ' ').trim()"
}
# reads SELECTOR TEXT: the element contains the text
reads() {
	text_of "$1" && echo "$1: $answer, wanted $2" && [[ $answer == *"$2"* ]]
}
# visit VIEW: by the part of the address behind #
visit() {
	browse eval "location.hash = '$1'"
}
# load NAME QPS MRS [MILLISECONDS]: a program with the library
load() {
	background env LD_PRELOAD="$preload" RDMA_INTERCEPT_QUIET=1 "$build/tests/web_load" "$@" \
		>>"$work/load.out" 2>&1 &
	workers+=($!)
	load_pid=$!
}
