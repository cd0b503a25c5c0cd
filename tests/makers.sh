#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every exported function of the RDMA libraries, and every operation of a context, that may make an
# object has a row in verbs.def, or a line with the reason in passed.txt. A name that is new is one
# that may make something, unless a word in it says what else it does. Looks at what is installed
# here, and at the packages of Debian testing, which are fetched once (lab/root).
set -euo pipefail
source=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "FAIL  $*"
	failed=1
}

# Words of names that make nothing: what is asked, changed, given back, sent or told in words.
harmless='(^|_)(query|modify|destroy|dealloc|free|freeaddrinfo|dereg|unimport|detach|ack|close|is|dump'
harmless+='|str|rate|index|name|guid|path|port|info|copy|fork|dofork|dontfork|resolve|poll|post|req|read'
harmless+='|write|notify|disconnect|reject|leave|reset|cancel|check|ece|option|sync|unlink|logout'
harmless+='|allow|layout|reclaim|uninit|log|attrs|inc|set_comp_cntr|set_err_comp_cntr|caps|sizes|depth'
harmless+='|advise|num|supported|from|to|udma|get_event|get_async_cmd_comp)(_|$)'
# rsockets beside those that make: as the calls of sockets that they stand for.
harmless+='|^r(close|fcntl|getpeername|getsockname|getsockopt|setsockopt|iounmap|iowrite|poll|read|readv'
harmless+='|recv|recvfrom|recvmsg|select|send|sendmsg|sendto|shutdown|write|writev)$'
harmless+='|^repoll_(ctl|wait)$|^rdma_freeaddrinfo$|^mlx5dv_devx_(get_event|get_async_cmd_comp)$'
# Words of names that make something, whatever other words are in them.
makers='(^|_)(create|alloc|reg|rereg|open|import|bind|connect|accept|join|attach|link|register|resize)(_|$)'

rows=$(tr '\n' ' ' <"$source/src/intercept/verbs.def" |
	grep -oE '(CREATE|CHILD|DESTROY|SPECIAL)\([a-z0-9]+, [A-Z0-9_.]+, *[a-z0-9_]+|UNVERSIONED\([a-z0-9]+, *[a-z0-9_]+' |
	sed -E 's/.*, *//')
# Operations of a context, as NAME of ibv_NAME: those that we replace.
operations=$(tr '\n' ' ' <"$source/src/intercept/verbs.def" |
	grep -oE 'OP_(CREATE|DESTROY)\((BASIC|EXTENDED)_OP, *[a-z0-9_]+' | sed -E 's/.*, *(ibv_)?/ibv_/')
mapfile -t reasons < <(sed -E 's/#.*//; /^$/d; s/[ \t].*//' "$source/src/intercept/passed.txt")
while IFS= read -r line; do
	fail "passed.txt: '$line' has no reason: expected NAME and REASON, separated by a tab"
done < <(sed -E '/^#/d; /^$/d' "$source/src/intercept/passed.txt" | grep -vP '^[a-z0-9_*]+\t\S' || true)

declare -A is_row=()
for name in $rows $operations; do
	is_row[$name]=1
done
for name in "${reasons[@]}"; do
	[ ! -v "is_row[$name]" ] || fail "passed.txt: $name has a row in verbs.def"
done

is_passed() {
	local pattern
	for pattern in "${reasons[@]}"; do
		# shellcheck disable=SC2254
		case $1 in $pattern) return 0 ;; esac
	done
	return 1
}

# judge LIBRARY < names
judge() {
	local name
	while read -r name; do
		[ ! -v "is_row[$name]" ] || continue
		is_passed "$name" && continue
		if ! [[ $name =~ $makers ]] && [[ $name =~ $harmless ]]; then
			continue
		fi
		fail "$1 exports $name, which may make an object: expected a row in verbs.def, or a line with the reason in passed.txt"
	done
}

exported_by() {
	nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ { sub(/@.*/, "", $3); print $3 }' | sort -u
}

# operations_of HEADER: the operations of contexts, as ibv_NAME; not those that only keep a place
operations_of() {
	sed -n '/^struct \(ibv_context_ops\|verbs_context\) {/,/^}/p' "$1" | grep -oE '\( ?\* ?[a-z][a-z0-9_]+ ?\) ?\(' |
		sed -E 's/[^a-z0-9_]//g; s/^(ibv_)?/ibv_/' | sort -u
}

# look NAME LIBRARIES [HEADER]: at what is in the directory LIBRARIES, and at the header
look() {
	local library looked=0 operations=0
	for library in "$2"/lib{ibverbs,rdmacm}.so.1 "$2"/libibverbs/*.so; do
		[ -e "$library" ] || continue
		exported_by "$library" >"$work/names"
		judge "$1: $(basename "$library")" <"$work/names"
		looked=$((looked + $(wc -l <"$work/names")))
	done
	if [ -e "${3-}" ]; then
		operations_of "$3" >"$work/names"
		judge "$1: a context" <"$work/names"
		operations=$(wc -l <"$work/names")
		[ "$operations" -gt 30 ] || fail "$1: only $operations operations of a context were found"
	fi
	echo "$1: $looked exported names, $operations operations of a context"
	[ "$looked" -gt 100 ] || fail "$1: only $looked exported names were found"
}

# ---- the test itself: a maker that nobody has heard of is found
(judge libfuture.so.1 <<<"future_create_widget") >"$work/future"
grep -q future_create_widget "$work/future" || fail "an unknown maker is not found"
printf 'struct verbs_context {\n\tstruct ibv_widget *(*create_widget)(struct ibv_pd *pd);\n}\n' >"$work/future.h"
[ "$(operations_of "$work/future.h")" = ibv_create_widget ] || fail "an unknown operation is not found"

missing=
ibverbs=$(ldconfig -p | awk '$1 == "libibverbs.so.1" && !found++ { print $NF }') # awk reads all: no SIGPIPE
if [ -n "$ibverbs" ]; then
	look installed "$(dirname "$ibverbs")" /usr/include/infiniband/verbs.h
else
	missing='libibverbs is not installed'
fi
# The name of librdmacm's package has a suffix since the 64-bit time_t.
if newer=$("$source/lab/root" --unpack testing libibverbs1 librdmacm1t64 ibverbs-providers libibverbs-dev); then
	libraries=$(dirname "$(find "$newer/usr/lib" -name libibverbs.so.1)")
	look "testing ($(basename "$(readlink "$libraries/libibverbs.so.1")"))" "$libraries" "$newer/usr/include/infiniband/verbs.h"
else
	missing+=${missing:+, }'the packages of Debian testing cannot be fetched'
fi
[ $failed -eq 0 ] || exit 1
[ -z "$missing" ] || { echo "skipped: $missing"; exit 77; }
