#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command in Chinese: every message of the sources has a translation with the same arguments,
# and it is used where the locale asks for it, and only there.
# usage: tests/catalogs.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that check calls
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
sources=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)} build=${BUILD_DIRECTORY:-$sources/build}
catalog=$sources/po/zh_CN.po
export RDMA_COLLECTOR_SOCKET=$work/socket

# tools NAME...: whether all of them are installed
tools() {
	local name
	for name; do
		command -v "$name" >/dev/null || { skip_part "$name is not installed" && return 1; }
	done
}

# none FILE: the file is empty; otherwise the beginning of it is shown
none() {
	[ ! -s "$1" ] || { head -20 "$1" && false; }
}

# ids FILE...: its messages, one a line
ids() {
	msgcat --no-wrap --no-location "$@" | sed -n 's/^msgid "\(..*\)"$/\1/p' | sort
}

complete() {
	tools xgettext msgcat msgcmp msgattrib perl cpp || return 0
	"$sources/po/catalog.sh" >"$work/template.pot" 2>"$work/warnings"
	check "the messages are collected without a warning" none "$work/warnings"
	check "there are hundreds of them" test "$(ids "$work/template.pot" | wc -l)" -gt 400
	check "each has a translation (po/catalog.sh update adds those that lack one)" \
		msgcmp "$catalog" "$work/template.pot"
	msgattrib --untranslated "$catalog" >"$work/empty"
	check "none is empty" none "$work/empty"
	msgattrib --only-fuzzy "$catalog" >"$work/fuzzy"
	check "none is fuzzy" none "$work/fuzzy"
	comm -13 <(ids "$work/template.pot") <(ids "$catalog") >"$work/gone"
	check "none is of a message that is gone" none "$work/gone"
}

formats() {
	tools msgfmt || return 0
	check "a translation has the arguments of its message" msgfmt --check-format -o /dev/null "$catalog"
}

# chinese: the locale from here on, made for this test; false if that cannot be
chinese() {
	tools localedef msgfmt || return 1
	[ -e /usr/share/i18n/locales/zh_CN ] || { skip_part "the sources of locales are not installed" && return 1; }
	[ -d "$work/zh_CN.UTF-8" ] || localedef -i zh_CN -f UTF-8 "$work/zh_CN.UTF-8" 2>/dev/null
	export LOCPATH=$work
	unset LC_ALL LANGUAGE LC_MESSAGES LC_CTYPE
	export LANG=zh_CN.UTF-8
}

# What is in the sources as a Chinese text, so that a catalog which was not built fails.
in_force() {
	local english
	chinese || return 0
	"$build/rdma_intercept" help >"$work/help" 2>&1 || true
	check "help is Chinese" grep -q '^status  *显示收集服务' "$work/help"
	check "names of commands are not" grep -q '^limit unset ' "$work/help"
	"$build/rdma_intercept" nonsense >"$work/error" 2>&1 || true
	check "errors are Chinese" grep -q "^rdma_intercept: 未知的命令 'nonsense'" "$work/error"
	printf '[tenant a]\nmode = maybe\n' >"$work/policy"
	"$build/rdma_intercept" check "$work/policy" >"$work/problem" 2>/dev/null || true
	check "problems of a policy are Chinese, at the place that editors read" \
		grep -q "^$work/policy:2: 错误: mode：无效的值 'maybe'：应为 enforce、warn 或 audit$" "$work/problem"
	"$build/rdma_intercept" show kind >"$work/kinds"
	check "tables are Chinese, and names in them are not" grep -q '^qp  *count  *队列对$' "$work/kinds"
	check "their titles are" grep -q '^名称  *单位  *含义$' "$work/kinds"
	english=$(LC_ALL=C.UTF-8 "$build/rdma_intercept" -j nonsense || true)
	check "JSON is English" test "$("$build/rdma_intercept" -j nonsense)" = "$english"
	LC_ALL=C.UTF-8 "$build/rdma_intercept" -j show key >"$work/keys.english"
	"$build/rdma_intercept" -j show key >"$work/keys"
	check "and all of it" cmp "$work/keys.english" "$work/keys"
	LANG=C "$build/rdma_intercept" help >"$work/help" 2>&1
	check "help is English in the locale C" grep -q '^status  *show the collector' "$work/help"
	LC_MESSAGES=C "$build/rdma_intercept" help >"$work/help" 2>&1
	check "LC_MESSAGES decides" grep -q '^status  *show the collector' "$work/help"
	LANG=zh_TW.UTF-8 "$build/rdma_intercept" help >"$work/help" 2>&1
	check "a locale that is not generated is English" grep -q '^status  *show the collector' "$work/help"
	mkdir -p "$work/prefix/bin" "$work/prefix/share"
	cp "$build/rdma_intercept" "$work/prefix/bin"
	cp -r "$build/locale" "$work/prefix/share/locale"
	"$work/prefix/bin/rdma_intercept" help >"$work/help" 2>&1
	check "an installation has its catalogs in share/locale" grep -q '^status  *显示收集服务' "$work/help"
	rm -r "$work/prefix/share/locale"
	"$work/prefix/bin/rdma_intercept" help >"$work/help" 2>&1
	check "without catalogs it is English" grep -q '^status  *show the collector' "$work/help"
}

# Services: their command line is for people, their log and what they send are not.
services() {
	local program
	chinese || return 0
	for program in collector_server rdma_dashboard rdma_monitor; do
		"$build/$program" --help >"$work/help" 2>&1 || true
		check "$program --help is Chinese" grep -q "^用法：$program " "$work/help"
	done
	: >"$work/empty.conf"
	RDMA_INTERCEPT_POLICY=$work/empty.conf RDMA_COLLECTOR_STATE=$work/state background "$build/collector_server" \
		2>"$work/log" &
	workers+=($!)
	check "a collector starts" eventually test -S "$RDMA_COLLECTOR_SOCKET"
	check "its log is English" grep -q 'collector_server: serving ' "$work/log"
	"$build/rdma_intercept" limit set host qp=many >"$work/error" 2>&1 || true
	check "a value that the collector rejects is told in Chinese" \
		grep -q "^rdma_intercept: limit set: qp：无效的值 'many'：应为 一个数量 或 unlimited$" "$work/error"
	"$build/rdma_intercept" guard on nobody >"$work/error" 2>&1 || true
	check "its own sentences stay English" grep -q "^rdma_intercept: guard on: there is no tenant 'nobody'" "$work/error"
	"$build/rdma_intercept" -j limit set host qp=many >"$work/error" 2>&1 || true
	check "and so does JSON" grep -q "invalid value 'many': expected a count or unlimited" "$work/error"
}

run_cases "complete formats in_force services" "$@"
