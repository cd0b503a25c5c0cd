#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a reader of the documents relies on: links lead to a file or a heading that exists, man pages
# are well-formed (mandoc), words are spelt as in a dictionary or in tests/spelling.txt, and README
# stays short. The commonest symptom is in each table of problems, and the commands that documents name
# exist. What documents let a reader paste is for guide.sh.
# Texts for people have no riddles of "nobody" and "whoever". The man pages in Chinese are for manpages.sh.
# usage: tests/documents.sh [--list | --only CASE]
export LC_ALL=C.UTF-8 # headings in Chinese
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
cd "${SOURCE_DIRECTORY:-$(dirname "$0")/..}" || exit 1
mapfile -t documents < <(find . \( -path './build*' -o -path ./.git -o -path '*/node_modules' \) -prune -o -name '*.md' -print | sed 's#^\./##' | sort)

# anchors FILE: the names that links to its headings have
anchors() {
	sed -n '/^```/,/^```$/d; s/^##* //p' "$1" | sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g; s/[：，、（）。？！“”…`]//g' |
		LC_ALL=C tr -d '!-,./:-@[-^`{-~' | LC_ALL=C tr 'A-Z ' 'a-z-'
}
# bad_links FILE: the links of a document that lead nowhere
bad_links() {
	local target path anchor
	while IFS= read -r target; do
		case $target in
		http://* | https://* | mailto:*) continue ;;
		esac
		path=${target%%#*} anchor=
		[ "$target" = "$path" ] || anchor=${target#*#}
		if [ -z "$path" ]; then
			path=$1
		else
			path=$(dirname "$1")/$path
		fi
		if [ ! -e "$path" ]; then
			echo "$1: $target: no such file"
		elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -e "$anchor"; then
			echo "$1: $target: no such heading"
		fi
	done < <(sed '/^```/,/^```$/d; s/`[^`]*`//g' "$1" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
}
no_bad_links() { [ -z "$(bad_links "$1" | tee /dev/stderr)" ]; }
links() {
	local file
	for file in "${documents[@]}"; do
		check "$file: links lead somewhere" no_bad_links "$file"
	done
	printf '# One `word`\n[a](#one-word) [b](#two) [c](missing.md)\n' >"$work/trial.md"
	check "a missing heading is found" grep -q '#two: no such heading' <(bad_links "$work/trial.md")
	check "a missing file is found" grep -q 'missing.md: no such file' <(bad_links "$work/trial.md")
	check "and nothing else" test "$(bad_links "$work/trial.md" | wc -l)" -eq 2
}

# Findings of mandoc that are accepted, each with its reason:
# - lines over 80 bytes and sentences that share a line concern the source, not what people read
# - collector_server_shm.8 is another name of a page; every man reads .so
# - pages need not name other pages in the order of mandoc
accepted='input text line longer than 80 bytes|new sentence, new line|\.so is fragile|unusual Xr order'
lint() {
	local page
	if ! command -v mandoc >/dev/null; then
		skip_part "mandoc is not installed"
		return
	fi
	for page in man/*.[0-9]; do # as installed, so that .so finds its page
		mkdir -p "$work/man${page##*.}"
		cp "$page" "$work/man${page##*.}/"
	done
	for page in "$work"/man*/*; do
		check "${page##*/}: no finding of mandoc" no_findings "$page"
	done
	printf '.TH T 1 2026-01-01 a b\n.SH NAME\nt \\- x\n.XX\n' >"$work/trial.1"
	check "an unknown macro is a finding" fails no_findings "$work/trial.1"
}
no_findings() { (cd "$work" && ! mandoc -T lint "${1#"$work"/}" | grep -vE "$accepted"); }
fails() { ! "$@" >/dev/null 2>&1; }

# Text without code, links and names with a slash, an underscore or an equals sign.
text_of_markdown() {
	sed -E '/^```/,/^```$/d; s/`[^`]*`//g; s/\]\([^)]*\)/]/g; s#<?https?://[^ >]*##g' "$@" | text_of_words
}
text_of_page() { # only lines of text: those with a macro are mostly names
	sed -E -e '/^\.EX/,/^\.EE/d; /^[.'"'"']/d' -e 's/\\f[A-Z]//g; s/\\-/-/g; s/\\[&e]//g; s/\\\((aq|dq|bu)/ /g' "$@" | text_of_words
}
text_of_words() { sed -E "s#[^ ]*[/_=<>@][^ ]*##g; s/’/'/g" | LC_ALL=C tr -c "A-Za-z0-9'.\n-" ' '; }
misspelt() { hunspell -d en_GB -l | sed "s/'s\$//; s/^'//; s/'\$//" | grep -E '^[A-Za-z]{3}' | sort -u | comm -23 - <(grep -v '^#' tests/spelling.txt | sort -u); }
spelling() {
	if ! hunspell -D 2>&1 </dev/null | grep -q en_GB; then
		skip_part "hunspell or its dictionary en_GB is not installed"
		return
	fi
	local english
	mapfile -t english < <(printf '%s\n' "${documents[@]}" | grep -v '\.zh\.md$')
	text_of_markdown "${english[@]}" | misspelt >"$work/words"
	check "documents: words are in the dictionary or in tests/spelling.txt: $(xargs <"$work/words")" test ! -s "$work/words"
	text_of_page man/*.[0-9] | misspelt >"$work/words"
	check "man pages: words are in the dictionary or in tests/spelling.txt: $(xargs <"$work/words")" test ! -s "$work/words"
	check "a misspelt word is found" grep -qx 'recieves' <(echo 'The collector recieves' | misspelt)
}

short() { [ "$(wc -l <"$1")" -le 130 ]; }
readme() {
	local kinds
	kinds=$(grep -c '^KIND(' src/terms/kinds.def)
	for file in README.md README.zh.md; do
		check "$file has at most 130 lines" short "$file"
	done
	check "README.md: $kinds kinds" grep -q "$kinds kinds" README.md
	check "README.zh.md: $kinds kinds" grep -q "$kinds 种资源" README.zh.md
}

# A person searches for what the program has printed.
troubleshooting() {
	local file
	for file in README.md README.zh.md docs/guide.md docs/guide.zh.md; do
		check "$file: a row on EDQUOT" grep -qE '^\|.*Disk quota exceeded.*EDQUOT.*rdma_intercept explain' "$file"
	done
	for file in man/rdma_intercept.1 man/librdma_intercept.7 man/zh_CN/rdma_intercept.1 man/zh_CN/librdma_intercept.7; do
		check "$file: an entry on EDQUOT" grep -q 'Disk quota exceeded.*EDQUOT' "$file"
	done
}

# named WORD...: they are a command, or one and what it takes
named() {
	"$command" help "$@" >"$work/help" 2>&1 && grep -q '^Examples:' "$work/help"
}
not() { ! "$@"; }
commands() {
	local command=${BUILD_DIRECTORY:-build}/rdma_intercept words
	if [ ! -x "$command" ]; then
		skip_part "$command is missing"
		return
	fi
	grep -ohE '`rdma_intercept [a-z]+( [a-z]+)?' README*.md docs/*.md | sed 's/^`rdma_intercept //' | sort -u >"$work/named"
	check "documents name commands" test "$(wc -l <"$work/named")" -gt 15
	while read -ra words; do
		check "rdma_intercept ${words[*]}" named "${words[@]}"
	done <"$work/named"
	check "one that does not exist is found" not named grant it
	check "a second word, too" not named show grants
}

# Texts for people name the actor. Notes for developers (docs/decisions.md and the like) are left out.
riddles() {
	grep -nE '\b([Nn]obody|[Ss]omebody|[Ww]hoever)\b|\bis none\b|\bwhat (is|there is) there\b' "$@" |
		grep -vE 'su .* nobody|^[0-9]+:  \| ' # the user nobody; before and after in CHANGELOG.md
}
plain_words() {
	local file
	sed -n 's/^msgid "\(.*\)"$/\1/p' po/zh_CN.po >"$work/messages"
	for file in README.md CHANGELOG.md CONTRIBUTING.md lab/README.md docs/{SECURITY,GLOSSARY,benchmarks,guide,whole-host,containers,json,operators,packages,upgrades,fair-shares,service-classes,guard-tables}.md \
		man/*.[0-9] web/src/texts.js "$work/messages"; do
		check "$file: no riddles" not riddles "$file"
	done
	check "a riddle is found" riddles - <<<'When nobody answers, the collector is gone.'
}

# Each check of doctor and each alert has a row in the operator's guide.
operators() {
	local name
	sed -n 's/^DOCTOR("\([^"]*\)".*/\1/p' src/cli/doctor.def >"$work/names"
	sed -n 's/^ *- alert: //p' packaging/prometheus/*.rules.yml >>"$work/names"
	check "there are checks and alerts" test "$(wc -l <"$work/names")" -gt 20
	while read -r name; do
		check "docs/operators.md: a row on $name" grep -qE "^\| \`$name\` \|" docs/operators.md
	done <"$work/names"
}

run_cases "links lint spelling readme troubleshooting operators commands plain_words" "$@"
