#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The way from a refused program to `explain` and advice, as README.md shows it: the policy and the
# commands of that transcript are run, and must print what stands there. Process IDs and times are
# of each run; "..." stands for lines that are left out.
# usage: tests/refused.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of lib.sh; functions that check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# block README NUMBER: the lines of a code block after the marker, the first or the second
block() {
	awk -v wanted="$2" '
		/<!-- transcript: refused -->/ { marked = 1 }
		marked && /^```/ { fences++; next }
		marked && fences == 2 * wanted - 1 { print }' "$1"
}
# Without what differs from run to run.
plain() {
	sed -E -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/TIME/' -e 's/\b[0-9]+-1\b/EVENT/' -e 's/^(pid +)[0-9]+$/\1PID/' \
		-e "s/\b(rxe0|$device)\b/DEVICE/"
}

# transcript_run: the commands of the second block, each after its prompt, with what they print
transcript_run() {
	local line event=''
	while IFS= read -r line; do
		printf '$ %s\n' "$line"
		line=${line//EVENT/$event}
		PATH=$build:$PATH bash -c "cd '$build' && $line" >"$work/said" 2>&1 </dev/null || true
		event=$(sed -n 's/.*event \([0-9]*-[0-9]*\)$/\1/p' "$work/said" | tail -n 1)
		cat "$work/said"
	done < <(block "$1" 2 | sed -n 's/^\$ //p' | plain)
}

# matches EXPECTED FOUND: line by line; "..." is any number of lines
matches() {
	awk '
		NR == FNR { expected[++count] = $0; next }
		{ found[++lines] = $0 }
		END {
			at = 1
			for (i = 1; i <= count; i++) {
				if (expected[i] == "...") { any = 1; continue }
				while (any && at <= lines && found[at] != expected[i]) at++
				if (found[at] != expected[i]) { print "expected: " expected[i] "; found: " found[at]; exit 1 }
				at++
				any = 0
			}
			if (!any && at <= lines) { print "not in the transcript: " found[at]; exit 1 }
		}' "$1" "$2"
}

transcript() {
	local readme=$1
	block "$readme" 1 >"$work/policy.conf"
	check "a policy stands there" grep -q 'tenant batch' "$work/policy.conf"
	export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_COLLECTOR_STATE=$work/state
	background "$build/collector_server" --policy "$work/policy.conf" >"$work/collector" 2>&1 &
	workers+=($!)
	check "a collector" eventually "$build/rdma_intercept" status
	block "$readme" 2 | plain >"$work/expected"
	transcript_run "$readme" | plain >"$work/found"
	check "$(basename "$readme"): every line is what the commands print" matches "$work/expected" "$work/found"
	check "there were commands" grep -q '^\$ rdma_intercept advise' "$work/found"
	kill "${workers[-1]}"
	wait "${workers[-1]}"
	rm -rf "$work/state"
}
english() { transcript "$here/../README.md"; }
chinese() { transcript "$here/../README.zh.md"; }

run_cases "english chinese" "$@"
