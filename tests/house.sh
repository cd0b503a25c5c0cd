#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rules of the house: who may include whom, headers that stand alone, files and names, lists
# that follow from the tables, lines that are written twice, exports that follow from verbs.def, and
# that a new kind of resource and a new key of the policy are one line each.
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
# whole; cli sees the tables of the policy, too)
declare -A may=([base]="" [terms]="" [output]="" [proto]="terms" [ledger]="terms proto"
	[intercept]="terms ledger" [monitor]="terms output" [policy]="terms"
	[collector]="terms ledger proto policy monitor" [cli]="terms proto ledger policy output"
	[client]="terms proto")
declare -A sees=([collector/monitor]="\(reader/\(reader\|rows\)\|guard/guard_\(maps\|rows\)\)"
	[collector/policy]="policy" [cli/ledger]="view" [cli/policy]="\(policy\|keys\|conditions\)")
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
	src/output/* | src/cli/* | src/monitor/tool/*) ;;
	*) fail "$file includes output/, but is no program that people call" ;;
	esac
done < <(grep -rnE '#include "output/' src)
while IFS=: read -r file _; do
	[ "$file" = src/output/json.h ] || fail "$file includes <jansson.h>: only src/output/json.h may"
done < <(grep -rn '#include <jansson' src)
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
	gcc -std=gnu11 -D_GNU_SOURCE -Isrc -Itests -Itests/{fakeverbs,step,daemon} -fsyntax-only -Wall -Werror \
		-Wno-unknown-pragmas "$work/alone.c" || fail "$header does not compile alone"
done
while read -r file; do
	head -3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || fail "$file has no licence line"
done < <(find src tests bench lab .ci build_all.sh -type f \
	\( -name '*.[chS]' -o -name '*.def' -o -name '*.sh' -o -name '*.map' -o -name CMakeLists.txt -o -name run \))

# ---- a file has one idea, a name one place
while read -r lines file; do
	[ "$lines" -le 600 ] || [ "$file" = total ] || fail "$file has $lines lines: at most 600"
done < <(find src -name '*.[ch]' -print0 | wc -l --files0-from=-)
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

# ---- documents name every setting and every kind
settings=$(sed -n 's/^SETTING(\([A-Z_]*\),.*/RDMA_INTERCEPT_\1/p' src/intercept/settings.def)
kinds=$(sed -n 's/^KIND(\([a-z_]*\),.*/\1/p' src/terms/kinds.def)
for document in man/librdma_intercept.7 README.md README.zh.md; do
	text=$(sed 's/\\-/-/g; s/\\_/_/g' "$document")
	for word in $settings $kinds; do
		grep -qE "(^|[^A-Za-z_])$word([^A-Za-z_]|\$)" <<<"$text" || fail "$document does not name $word"
	done
done

# ---- exports are the rows of verbs.def, and nothing else
{
	tr '\n' ' ' <src/intercept/verbs.def | grep -oE '(CREATE|CHILD|DESTROY|SPECIAL)\([a-z0-9]+, [A-Z0-9_.]+, *[a-z0-9_]+' |
		sed -E 's/.*\([a-z0-9]+, ([A-Z0-9_.]+), *([a-z0-9_]+)/\2@@\1/'
	echo verbs_open_device
	printf '%s\n' dlsym@@GLIBC_2.34 dlsym@GLIBC_2.2.5 dlvsym@@GLIBC_2.34 dlvsym@GLIBC_2.2.5
} | sort >"$work/wanted"
nm -D --defined-only "$build/librdma_intercept.so" | awk '$2 == "T" { print $3 }' | sort >"$work/exported"
diff "$work/wanted" "$work/exported" || fail "the exports differ from the rows of verbs.def"

# ---- a new kind is one line
cp -r src "$work/src"
echo 'KIND(house_test, COUNT, OBJECT, NOT, NONE, NO, "a kind that only this test knows")' >>"$work/src/terms/kinds.def"
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Werror -I"$work/src" -Itests -o "$work/kinds" tests/unit/kinds.c \
	tests/{harness,session}.c "$work"/src/{base,terms,ledger,proto}/*.c "$work"/src/intercept/{config,handles}.c
before=$(wc -w <<<"$kinds")
KINDS_DEF=$work/src/terms/kinds.def "$work/kinds" | tee "$work/output" | grep 'failed:' || true
if ! grep -qx "$((before + 1)) kinds" "$work/output" || ! grep -q ', 0 failed$' "$work/output"; then
	fail "a row added to kinds.def did not reach every list"
fi

# ---- a policy key is one line, a condition of match lines one line and a function
cp -r src "$work/rows"
sed -i '/^#undef KEY_COLLECTOR/i \
KEY_COLLECTOR(house_path, "house_path", path, "", "a key that only this test knows")\
KEY_HOST(house_host, "house_host", switch, POLICY_OFF, "a key that only this test knows")\
KEY_TENANT(house_mode, "house_mode", mode, MODE_WARN, "a key that only this test knows")\
KEY_TENANT(house_amounts, "house.", amounts, 7, "a key that only this test knows")' "$work/rows/policy/keys.def"
echo 'CONDITION(house_gid, groups, false, "a condition that only this test knows")' >>"$work/rows/policy/conditions.def"
cat >>"$work/rows/policy/match.c" <<'END'
bool policy_meets_house_gid(const void *field, const struct policy_facts *facts)
{
	return ids_have(field, facts->subject->gid);
}
END
mapfile -t sources < <(find "$work/rows" -name '*.c' ! -path '*/intercept/*' ! -path '*/collector/*' ! -path '*/client/*' \
	! -path '*/monitor/*')
mapfile -t below < <(printf '%s\n' "${sources[@]}" | grep -v '/cli/\|/output/')
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Werror -I"$work/rows" -Itests -o "$work/policy_rows" \
	tests/unit/policy_rows.c tests/{harness,session}.c "${below[@]}"
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Werror -I"$work/rows" -o "$work/rdma_intercept" "${sources[@]}" \
	-DCLI_VERSION='"0"' -DCLI_LIBRARY_ARCHITECTURE='""' -DCLI_LIBRARY_DIRECTORY='""' -ljansson
"$build/tests/unit_policy_rows" >"$work/before"
"$work/policy_rows" | tee "$work/after" | grep 'failed:' || true
for rows in 'keys 4' 'conditions 1'; do
	before=$(sed -n "s/ ${rows% *}\$//p" "$work/before")
	grep -qx "$((before + ${rows#* })) ${rows% *}" "$work/after" || fail "new ${rows% *} are not in the table"
done
grep -q ', 0 failed$' "$work/after" || fail "a row added to keys.def or conditions.def did not reach everything"
cat >"$work/house.conf" <<'END'
[host]
house_host = on
[tenant t]
house_mode = audit
house.qp = 3
house.device.mlx5_0.mr_bytes = 1G
match = house_gid=5
END
PATH=$work:$PATH rdma_intercept check "$work/house.conf" || fail "check does not know keys of new rows"
# completed line candidate
completed() {
	local offered

	# shellcheck disable=SC2016
	offered=$(PATH=$work:$PATH bash -c '. packaging/bash-completion/rdma_intercept
		COMP_LINE=$1 COMP_POINT=${#1}
		_rdma_intercept; printf "%s\n" "${COMPREPLY[@]}"' - "rdma_intercept $1")
	grep -qxFe "$2" <<<"$offered" || fail "the completion of '$1' does not offer $2"
}
completed 'limit set host ' house_host=
completed 'limit set tenant t ' house.mr_bytes=
completed 'limit unset default ' house_mode
completed 'tenant add t --match ' house_gid=

# ---- scripts
if command -v shellcheck >/dev/null; then
	find . -path ./build\* -prune -o -name '*.sh' -print0 | xargs -0 shellcheck -x -S warning ||
		fail "shellcheck"
	shellcheck -x -S warning .ci/run build_all.sh lab/{run,check,kernel,guest} || fail "shellcheck"
else
	echo "skipped: shellcheck is not installed; the scripts were not checked"
	[ $failed -ne 0 ] || exit 77
fi
[ $failed -eq 0 ] && echo "the house is in order"
exit $failed
