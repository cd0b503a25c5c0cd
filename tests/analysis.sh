#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: analysis.sh gcc|clang|cppcheck
# Static analysis of src/, as BUILD_DIRECTORY compiles it. A finding fails unless analysis.allowed
# has a line with its tool, file and name; a line there that allows nothing any more fails, too.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
tool=$1
command -v "$tool" >/dev/null || {
	echo "skipped: $tool is not installed"
	exit 77
}
build=${BUILD_DIRECTORY:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The arguments of the compiler for each source file, once: FILE TAB ARGUMENTS
commands() {
	sed -n -e 's/^  "command": "\(.*\)",$/\1/p' "$build/compile_commands.json" |
		sed -e 's/\\"/"/g' -e 's/\\\\/\\/g' |
		sed -n -e "s|^[^ ]* \(.*\) -o [^ ]* -c \($PWD/src/[a-z_/]*\.c\)\$|\2\t\1|p" |
		sort -u -k 1,1
}

# analyse FILE ARGUMENTS
analyse() {
	case $tool in
	gcc) eval "gcc $2 -fanalyzer -Wno-error -fno-lto -c -o /dev/null '$1'" ;;
	clang) # A function's paths are followed up to so many nodes: the default takes three times as long.
		eval "clang $2 -Wno-everything -fno-lto --analyze --analyzer-output text \
			-Xclang -analyzer-config -Xclang max-nodes=50000 -o /dev/null '$1'"
		;;
	cppcheck) # Without the generated headers: it takes minutes to read a BPF program as an array.
		eval "cppcheck -q --std=c11 --enable=warning,performance,portability --library=gnu \
			--suppress=unknownMacro --suppress=unmatchedSuppression \
			--template='{file}:{line}:{column}: warning: {message} [{id}]' \
			$(grep -o -- '-[DI][^ ]*\|-isystem [^ ]*' <<<"$2" | sed -e 's/^-isystem /-I/' -e '/generated$/d' | tr '\n' ' ') '$1'"
		;;
	esac
}

commands >"$work/commands"
[ -s "$work/commands" ] || {
	echo "$build/compile_commands.json: no source file of src/ found"
	exit 1
}
while IFS=$'\t' read -r file arguments; do
	analyse "$file" "$arguments"
done <"$work/commands" >"$work/output" 2>&1
# FILE NAME of each finding, and the finding itself
sed -n -e "s|^$PWD/\(src/[^:]*\):[0-9]*:[0-9]*: warning: .*\[\(-W\)\?\([^] ]*\)\]\$|\1 \3\t&|p" "$work/output" |
	sort -u >"$work/findings"
grep -E ': (fatal )?error: ' "$work/output" && exit 1
awk -v tool="$tool" '$1 == tool { print $2 " " $3 }' tests/analysis.allowed | sort >"$work/allowed"

status=0
while IFS=$'\t' read -r name finding; do
	grep -qxF "$name" "$work/allowed" && continue
	printf '%s\n' "$finding"
	status=1
done <"$work/findings"
while read -r name; do
	cut -f 1 "$work/findings" | grep -qxF "$name" && continue
	echo "tests/analysis.allowed: '$tool $name': nothing is found there any more: expected no such line"
	status=1
done <"$work/allowed"
echo "$(wc -l <"$work/commands") files, $(wc -l <"$work/findings") findings, $(wc -l <"$work/allowed") allowed"
exit $status
