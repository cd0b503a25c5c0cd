#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a reader of README.md and docs/guide.md pastes works, and prints what stands there: all blocks
# ```sh of a document are run in order, in one shell on a terminal, in a directory that looks like a
# fresh checkout. A block ```text below one is what it prints; "..." stands for lines that are left
# out, and volatile parts (IDs, times, versions, devices, paths) are not compared. A word after "sh"
# says where a block can run:
#   build    builds the project: here the build is there already
#   lab      needs a virtual machine (case guide_lab)
#   host     changes the host: only in a root of its own (GUIDE_ROOT=DIRECTORY, see bare.sh)
#   long     takes long: only in a root of its own
#   systemd  needs systemd as process 1: the block of whole-host.md is run by the lab's scenario units
#   never    not run: the tests would run themselves
# usage: tests/guide.sh [--list | --only CASE]
#        tests/guide.sh --write DOCUMENT   put what the blocks print into the document;
#                                     GUIDE_LAB=1: those that need a virtual machine
# shellcheck disable=SC2154,SC2317 # variables of lib.sh; functions that check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
source=${SOURCE_DIRECTORY:-$(cd "$here/.." && pwd)}
unset RDMA_INTERCEPT_SHM_NAME RDMA_INTERCEPT_LOG_FILE_PATH RDMA_COLLECTOR_SOCKET RDMA_COLLECTOR_STATE

# blocks DOCUMENT DIRECTORY: block N into N.sh, its conditions into N.when, what it prints into N.text
blocks() {
	awk -v to="$2" '
		/^```sh/ { number++; file = to "/" number ".sh"; $1 = ""; print >(to "/" number ".when"); printf "" >file; next }
		/^```text/ { file = to "/" number ".text"; printf "" >file; next }
		/^```/ { if (file) { close(file); file = "" } else file = "/dev/null"; next }
		file { print >file }' "$1"
}

# plain: without what differs from run to run and from host to host; runs of spaces are one
plain() {
	sed -E -e 's/\r$//' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]{8,12}Z?/TIME/g' -e 's/\b[0-9]+-[0-9]+$/EVENT/' \
		-e 's/[0-9]+\.[0-9]+\.[0-9]+/VERSION/g' -e "s/\b(rxe[0-9]|$device)\b/DEVICE/g" -e 's#/[^ :]*/tour/#TOUR/#g' \
		-e 's/^(cgroup +).*/\1CGROUP/' -e 's/^(up +)[0-9a-z ]+$/\1TIME/' -e 's/\b(uid[= ]*)[0-9]+$/\1USER/' \
		-e "s/\b(root|$(id -un))\b/USER/g" -e 's/ +/ /g' -e 's/^ //' -e 's/ $//' |
		sed -E -e ':again' -e 's/(^|[ (])[0-9]{3,7}($|[ ),:])/\1N\2/' -e 'tagain'
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
			if (!any && at <= lines) { print "not in the document: " found[at]; exit 1 }
		}' <(plain <"$1") <(plain <"$2")
}

# runs_here CONDITIONS: whether a block with these is run by this script, here
runs_here() {
	local word
	for word in $1; do
		case $word in
		build) [ -n "${GUIDE_ROOT-}" ] || return 1 ;;
		lab) [ -n "$in_lab" ] || return 1 ;;
		host | long) [ -n "${GUIDE_ROOT-}" ] || return 1 ;;
		*) return 1 ;;
		esac
	done
	[ -z "$in_lab" ] || [[ " $1 " == *" lab "* ]]
}

# paste_document DOCUMENT: runs its blocks; what block N printed is in $work/pasted/N.out, its status in N.status
paste_document() {
	local number=0 block where=$work alone
	rm -rf "$work/pasted" "$work/checkout"
	mkdir -p "$work/pasted" "$work/checkout"
	blocks "$1" "$work/pasted"
	if [ -n "${GUIDE_ROOT-}" ]; then
		checkout=/checkout where=/session
	else
		checkout=$work/checkout
		ln -s "$source"/* "$checkout/"
		ln -sfn "$build" "$checkout/build"
	fi
	{
		echo 'stty cols 160; unset LD_LIBRARY_PATH TEST_CASE "${!RDMA_@}"; export TERM=dumb'
		echo "cd $checkout"
		for block in "$work"/pasted/*.sh; do
			[ -e "$block" ] || break
			number=$((number + 1))
			if ! runs_here "$(cat "$work/pasted/$number.when")"; then
				echo "left out here: block $number ($(xargs <"$work/pasted/$number.when"))" >&2
				continue
			fi
			printf 'printf "\\n@@ %s\\n"\n. %q\nprintf "\\n@@ status %%s\\n" $?\n' "$number" "$where/pasted/$number.sh"
		done
	} >"$work/session"
	# On a terminal, as the reader has one: there lines of programs and of the library keep their order.
	if [ -n "${GUIDE_ROOT-}" ]; then
		rm -rf "$GUIDE_ROOT/session"
		mkdir "$GUIDE_ROOT/session"
		cp -r "$work/pasted" "$work/session" "$GUIDE_ROOT/session/"
		unshare --mount --pid --fork --kill-child "$GUIDE_ROOT/enter" "$GUIDE_ROOT" /session/session \
			</dev/null >"$work/said" 2>&1 || true
	else
		# In a network of its own, where that is possible: the documents name ports.
		alone=()
		[ -n "$in_lab" ] || ! unshare --net ip link set lo up 2>/dev/null ||
			alone=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
		"${alone[@]}" timeout 1800 script -qec "bash $work/session" /dev/null </dev/null >"$work/said" 2>&1 || true
	fi
	tr -d '\r' <"$work/said" | awk -v to="$work/pasted" '
		function flush(  i) { # without the empty line that the marker put before itself
			if (lines && line[lines] == "") lines--
			for (i = 1; i <= lines; i++) print line[i] >(to "/" number ".out")
			lines = 0
		}
		$1 == "@@" && $2 == "status" { flush(); print $3 >(to "/" number ".status"); next }
		$1 == "@@" { lines = 0; number = $2; printf "" >(to "/" number ".out"); next }
		number { line[++lines] = $0 }
		END { if (lines) flush() }'
}

document() {
	local number=0 ran=0 block
	paste_document "$1"
	for block in "$work"/pasted/*.sh; do
		number=$((number + 1))
		[ -e "$work/pasted/$number.out" ] || continue
		ran=$((ran + 1))
		if [ -e "$work/pasted/$number.text" ]; then
			check "${1##*/}, block $number ($(head -n 1 "$work/pasted/$number.sh")): prints what the document shows" \
				matches "$work/pasted/$number.text" "$work/pasted/$number.out"
		else
			check "${1##*/}, block $number ($(head -n 1 "$work/pasted/$number.sh")): succeeds" \
				block_succeeded "$number"
		fi
		check "${1##*/}, block $number: no step is missing before it" complete "$number"
	done
	check "${1##*/}: there were blocks" test "$ran" -gt 0
}
block_succeeded() {
	[ "$(cat "$work/pasted/$1.status" 2>/dev/null)" = 0 ] || { cat "$work/pasted/$1.out"; return 1; }
}
complete() { ! grep -E 'command not found|No such file or directory|unbound variable|syntax error' "$work/pasted/$1.out"; }

in_lab=''
readme() { document "$source/README.md"; }
readme_zh() { document "$source/README.zh.md"; }
guide() { document "$source/docs/guide.md"; }
whole_host() { document "$source/docs/whole-host.md"; }
# The blocks that need a kernel, in a virtual machine; both languages have the same blocks (translations).
guide_lab() {
	in_lab=1
	document "$source/docs/guide.md"
	in_lab=''
}
commands_of() { sed -n '/^```sh/,/^```$/p; /^```text/,/^```$/p' "$1"; }
# What a translation lets the reader paste is the same, and so is what it prints.
translations() {
	local name
	for name in README docs/guide; do
		[ -e "$source/$name.zh.md" ] || continue
		commands_of "$source/$name.md" | sed 's/ *#.*//' >"$work/english"
		commands_of "$source/$name.zh.md" | sed 's/ *#.*//' >"$work/chinese"
		check "$name: the same blocks in Chinese" diff "$work/english" "$work/chinese"
	done
}

if [ "${1-}" = --write ]; then
	in_lab=${GUIDE_LAB-}
	paste_document "$(realpath "$2")"
	awk -v from="$work/pasted" '
		/^```sh/ { number++ }
		/^```text/ {
			print
			out = from "/" number ".out"
			if ((getline line <out) >= 0) {
				close(out)
				while ((getline line <out) > 0) print line
				skip = 1
			}
			next
		}
		/^```$/ { skip = 0 }
		!skip { print }' "$2" |
		sed -E -e "s#$checkout/#/home/me/rdma_intercept/#g" -e 's#^(cgroup +)/.+#\1/user.slice/user-1000.slice/session-1.scope#' \
			>"$work/written" && cat "$work/written" >"$2"
	exit 0
fi
run_cases "${GUIDE_CASES-readme readme_zh guide translations}" "$@"
