#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rules of the house: who may include whom, headers that stand alone, files and names, lines
# that are written twice, documents that follow the code, and exports that follow from verbs.def.
set -euo pipefail
source=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)} build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
cd "$source"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "FAIL  $*"
	failed=1
}

# ---- rooms: which other rooms a room may include (base is for everybody)
# (collector sees how the monitor's counts are read and its guard is told, and the policy as a
# whole, and how its names are looked up; cli sees the tables of the policy, too)
declare -A may=([base]="" [terms]="" [output]="" [proto]="terms" [ledger]="terms proto"
	[intercept]="terms ledger" [monitor]="terms output" [policy]="terms"
	[collector]="terms ledger proto policy monitor" [cli]="terms proto ledger policy output view history advice"
	[fleet]="terms proto policy output"
	[slurm]="terms proto"
	[client]="terms proto" [view]="terms output proto"
	[history]="terms" [dashboard]="terms output proto view history advice"
	[advice]="terms output proto view")
declare -A sees=([collector/monitor]="\(reader/\(reader\|rows\)\|guard/guard_\(maps\|rows\)\)"
	[collector/policy]="\(policy\|accounts\|fleet\)" [cli/ledger]="view" [cli/policy]="\(policy\|check\|keys\|conditions\|accounts\)"
	[fleet/policy]="\(policy\|check\|fleet\|keys\)")
# Headers of the kernel's interface to users, and the one file that may include each of them: the
# table of the kernel's objects and commands is made from them, and so is the question for its list.
declare -A knows=([src/monitor/kernel/uverbs.h]="ib_user_ioctl_cmds ib_user_ioctl_verbs ib_user_verbs rdma_user_ioctl_cmds"
	[src/monitor/polling/netlink.c]="rdma_netlink")
for room in "${!may[@]}"; do
	while IFS=: read -r file _ line; do
		other=$(sed -E 's/.*"([a-z]+)\/.*/\1/' <<<"$line")
		case " $room base ${may[$room]} " in
		*" $other "*) ;;
		*) fail "$file includes $other/, which its room may not" ;;
		esac
		only=${sees[$room/$other]-}
		if [ -n "$only" ] && ! grep -q "\"$other/$only\.\(h\|def\)\"" <<<"$line"; then
			fail "$file includes more of $other/ than $only"
		fi
	done < <(grep -rnE '#include "[a-z]+/' "src/$room")
	[ "$room" != intercept ] || continue
	while IFS=: read -r file _ line; do
		header=$(sed -E 's/.*<rdma\/([a-z_]+)\.h>.*/\1/' <<<"$line")
		[[ " ${knows[$file]-} " == *" $header "* ]] ||
			fail "$file includes $line: only src/intercept knows verbs"
	done < <(grep -rnE '<(infiniband|rdma)/' "src/$room")
done
for room in src/*/; do
	[ -v "may[$(basename "$room")]" ] || fail "no rule for the room $room"
done

# ---- sub-rooms: a room that is larger is folders, which have rules of their own
# (the tool loads and shows all of it; nobody includes the tool)
declare -A may_in=([monitor/reader]="" [monitor/kernel]="reader" [monitor/polling]="reader"
	[monitor/accounting]="reader kernel" [monitor/guard]="reader kernel"
	[monitor/tool]="reader kernel polling accounting guard")
for part in "${!may_in[@]}"; do
	room=${part%/*}
	while IFS=: read -r file _ line; do
		other=$(sed -E "s/.*\"$room\/(([a-z]+)\/)?.*/\2/" <<<"$line")
		case " ${part#*/} ${may_in[$part]} " in
		*" ${other:-none} "*) ;;
		*) fail "$file includes $room/$other/, which its sub-room may not" ;;
		esac
	done < <(grep -rnE "#include \"$room/" "src/$part")
done
# (of the monitor, only the tool prints; and only the output knows the library that writes JSON)
while IFS=: read -r file _; do
	case $file in
	src/output/* | src/view/* | src/advice/* | src/cli/* | src/dashboard/* | src/fleet/* | src/monitor/tool/*) ;;
	*) fail "$file includes output/, but is no program that people call" ;;
	esac
done < <(grep -rnE '#include "output/' src)
while IFS=: read -r file _; do
	[ "$file" = src/output/json.h ] || fail "$file includes <jansson.h>: only src/output/json.h may"
done < <(grep -rn '#include <jansson' src)
# (and one room knows each of the libraries of HTTP and of the database)
while IFS=: read -r file _ line; do
	case "$file $line" in
	"src/dashboard/http.c "*microhttpd* | "src/history/history_parts.h "*sqlite3*) ;;
	*) fail "$file includes $line: only dashboard/http.c and history/history_parts.h may" ;;
	esac
done < <(grep -rnE '#include <(microhttpd|sqlite3)' src)
while IFS=: read -r file _; do
	[ "$file" = src/fleet/etcd_parts.h ] || fail "$file includes <curl.h>: only src/fleet/etcd_parts.h may"
done < <(grep -rn '#include <curl' src)
while IFS=: read -r file _ line; do
	case "$file $line" in
	"src/slurm/plugin.c "*slurm/spank.h* | "src/slurm/controller.c "*slurm/slurm*) ;;
	*) fail "$file includes $line: only slurm/plugin.c and slurm/controller.c may" ;;
	esac
done < <(grep -rnE '#include <slurm/' src)
while IFS=: read -r file _; do
	[ "$file" = src/cli/top_screen.c ] || fail "$file includes ncurses: only src/cli/top_screen.c may"
done < <(grep -rnE '#include <(n?curses|term)\.h' src)
for part in src/*/*/; do
	part=${part#src/}
	[ -v "may_in[${part%/}]" ] || fail "no rule for the sub-room src/$part"
done
for part in "${!may_in[@]}"; do
	for file in "src/${part%/*}"/*.[ch]; do
		[ ! -e "$file" ] || fail "$file is in no sub-room"
	done
done

# ---- each header compiles alone, each file says its licence
for header in include/*/*.h src/*/*.h src/*/*/*.h tests/*.h tests/*/*.h tests/*/*/*.h; do
	echo "#include \"$source/$header\"" >"$work/alone.c"
	case $header in
	*.bpf.h)
		clang -target bpf -D__TARGET_ARCH_x86 -ffreestanding -Isrc -idirafter "/usr/include/$(gcc -print-multiarch)" \
			-fsyntax-only -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Werror "$work/alone.c" ||
			fail "$header does not compile alone"
		continue
		;;
	esac
	# (some pragmas are for the compiler of programs in the kernel)
	gcc -std=gnu11 -D_GNU_SOURCE -Isrc -Itests -Itests/{fakeverbs,step,daemon,process} -fsyntax-only -Wall -Werror \
		-Wno-unknown-pragmas "$work/alone.c" || fail "$header does not compile alone"
done
while read -r file; do
	head -3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || fail "$file has no licence line"
done < <(find src tests bench lab web .ci build_all.sh -type f \
	\( -name '*.js' -o -name '*.jsx' -o -name '*.mjs' -o -name '*.css' -o -name '*.[chS]' -o -name '*.def' -o -name '*.sh' -o -name '*.map' -o -name CMakeLists.txt -o -name run \))

# ---- a file has one idea, a name one place
while read -r lines file; do
	[ "$lines" -le 600 ] || [ "$file" = total ] || fail "$file has $lines lines: at most 600"
done < <(find src -name '*.[ch]' -print0 | wc -l --files0-from=-)
while read -r lines file; do
	[ "$lines" -le 700 ] || [ "$file" = total ] || fail "$file has $lines lines: at most 700"
done < <(find tests -type f -print0 | wc -l --files0-from=-)
grep -rnE '^static [^=;]*\b[a-z_0-9]+\(' src --include='*.[ch]' | grep -v __attribute__ |
	sed -E 's/^([^:]+):[0-9]+:static [^(]*[ *]([a-z_0-9]+)\(.*/\2 \1/' | sort -u >"$work/statics"
while read -r name; do
	fail "the static function $name is in several files:$(awk -v name="$name" '$1 == name { printf " %s", $2 }' "$work/statics")"
done < <(cut -d ' ' -f 1 "$work/statics" | uniq -d)

# ---- modes become a verdict in one place
while read -r line; do
	fail "$line: a mode is compared; terms/verdict.h says what it means"
done < <(grep -rnE '[!=]= *MODE_(ENFORCE|WARN|AUDIT)|MODE_(ENFORCE|WARN|AUDIT) *[!=]=' src --include='*.[ch]')
# ---- six lines in a row are written once: what is needed twice is a function
# (blank lines, comments, includes and lone braces do not count; a run is found where it begins)
mapfile -t sources < <(find src -name '*.[ch]' | sort)
awk '
	FNR == 1 { count = 0; comment = 0 }
	{ gsub(/[ \t\\]+/, " "); sub(/^ /, ""); sub(/ $/, "") }
	comment { if (/\*\//) comment = 0; next }
	/^\/\*/ { if (!/\*\//) comment = 1; next }
	/^#include/ || /^[{};]*$/ { next }
	{
		line[count % 6] = $0; number[count % 6] = FNR; count++
		if (count < 6) next
		run = ""
		for (i = 0; i < 6; i++) run = run line[(count + i) % 6] "\n"
		place = FILENAME ":" number[count % 6]
		if (run in first) print place " " first[run]
		else first[run] = place
	}' "${sources[@]}" >"$work/runs"
while read -r place earlier; do
	# (the guard's two looks begin alike; with a function for that, its programs are longer)
	[ "${place%:*} ${earlier%:*}" != 'src/monitor/guard/look.bpf.h src/monitor/guard/look.bpf.h' ] || continue
	fail "$place has six lines that stand at $earlier, too"
done <"$work/runs"

# ---- the page: text is text, both languages, exact versions, nothing from elsewhere
while IFS= read -r line; do
	fail "$line: what came from outside must be text: expected no markup made of it"
done < <(grep -rnE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function' web/src)
while IFS= read -r line; do
	fail "$line: expected nothing from other hosts, and no style or script inside"
done < <(grep -rnE "https?://|<style|<script>|style=\"" web/src --include='*.js' --include='*.jsx' --include='*.css' --include='*.html')
while IFS= read -r line; do
	fail "web/src/texts.js: $line: expected one row with two texts"
done < <(sed -n '/^const texts/,/^};/p' web/src/texts.js | grep -E '^	[a-z]' | grep -vE '^	[a-z_0-9]+: \[("[^"]*", "[^"]*"\],|$)')
while IFS= read -r line; do
	fail "web/package.json: $line: expected an exact version"
done < <(grep -E '": "[\^~*<>]' web/package.json | grep -v '"node"')
while IFS= read -r line; do
	fail "web/package-lock.json: $line: expected no address of a download"
done < <(grep -n '"resolved"' web/package-lock.json)
while read -r file; do
	grep -q "src/$file" web/CMakeLists.txt || fail "web/CMakeLists.txt does not name src/$file"
	[ "$(wc -l <"web/src/$file")" -le 600 ] || [ "$file" = style.css ] || fail "web/src/$file has more than 600 lines"
done < <(find web/src -type f -printf '%f\n')

# ---- documents name every setting and every kind
settings=$(sed -n 's/^SETTING(\([A-Z_]*\),.*/RDMA_INTERCEPT_\1/p' src/terms/variables.def)
kinds=$(sed -n 's/^KIND(\([a-z_]*\),.*/\1/p' src/terms/kinds.def)
for document in man/librdma_intercept.7 man/zh_CN/librdma_intercept.7; do
	text=$(sed 's/\\-/-/g; s/\\_/_/g' "$document")
	for word in $settings $kinds; do
		grep -qE "(^|[^A-Za-z_])$word([^A-Za-z_]|\$)" <<<"$text" || fail "$document does not name $word"
	done
done

# ---- the tour names files and functions that are there
tour=docs/ARCHITECTURE.md
find . -path './build*' -prune -o -path ./.git -prune -o -print >"$work/paths"
grep -rhoE '[A-Za-z_][A-Za-z0-9_]*' src tests bench lab packaging | sort -u >"$work/words"
while read -r word; do
	case $word in
	*[\ \[\*\<]* | /*) ;; # commands, patterns, and what is not of this tree
	*.c | *.h | *.S | *.def | *.sh | *.md | *.map | *.txt | */)
		grep -qE "/${word%/}\$" "$work/paths" || fail "$tour names the file $word, which does not exist"
		;;
	*NAME* | *VERB* | *_ | *.* | *[\(@]*) ;;
	entry_* | wrap_*) # made from the rows of verbs.def
		grep -qxF "${word#*_}" "$work/words" || fail "$tour names $word, which does not exist"
		;;
	*_*) grep -qxF "$word" "$work/words" || fail "$tour names $word, which does not exist" ;;
	esac
done < <(grep -oE '`[^`]+`' $tour | tr -d '`' | sort -u)

# ---- its walks: an arrow is a call, which stays in its room or goes to one below
# defined_in function: the files that declare or define it
defined_in() {
	grep -rlE "^([A-Za-z_].*[ *])?$1\(" src --include='*.[ch]' || true
}
while read -r caller called; do
	room=$(defined_in "$caller" | head -1 | cut -d/ -f2) other=$(defined_in "$called" | head -1 | cut -d/ -f2)
	case " $room base ${may[${room:-none}]-} " in
	*" ${other:-none} "*) ;;
	*) fail "$tour: '$caller → $called' leads from ${room:-no room} to ${other:-no room}" ;;
	esac
	defined_in "$caller" | xargs -r grep -qw "$called" || fail "$tour: $caller does not call $called"
done < <(grep -oE '`[A-Za-z0-9_]+`( → `[A-Za-z0-9_]+`)+' $tour | tr -d '`→' |
	awk '{ for (i = 1; i < NF; i++) print $i, $(i + 1) }' | sort -u)

# ---- exports are the rows of verbs.def, and nothing else
{
	tr '\n' ' ' <src/intercept/verbs.def | grep -oE '(CREATE|CHILD|DESTROY|SPECIAL)\([a-z0-9]+, [A-Z0-9_.]+, *[a-z0-9_]+' |
		sed -E 's/.*\([a-z0-9]+, ([A-Z0-9_.]+), *([a-z0-9_]+)/\2@@\1/'
	echo verbs_open_device
	printf '%s\n' dlsym@@GLIBC_2.34 dlsym@GLIBC_2.2.5 dlvsym@@GLIBC_2.34 dlvsym@GLIBC_2.2.5
} | sort >"$work/wanted"
# (nodes are absolute symbols)
nm -D --defined-only "$build/librdma_intercept.so" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"
diff "$work/wanted" "$work/exported" || fail "the exports differ from the rows of verbs.def"
if [ -e "$build/librdma_intercept_client.so" ]; then
	grep -hv '^typedef' include/rdma_intercept/*.h | grep -oE '\brdma_intercept_[a-z_]+\(' | tr -d '(' | sort -u >"$work/wanted"
	nm -D --defined-only "$build/librdma_intercept_client.so" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"
	diff "$work/wanted" "$work/exported" || fail "the exports of the client's library differ from its headers"
fi

[ $failed -eq 0 ] && echo "the house is in order"
exit $failed
