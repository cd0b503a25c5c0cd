# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154,SC2317 # words for other shells; variables and functions of cli.sh
# Cases of cli.sh, which sources this: what the command does without a collector.

# ---- the command line

usage_errors() {
	while IFS='|' read -r text arguments; do
		read -ra words <<<"$arguments"
		check "usage: '$arguments'" complains 2 "$text" "${words[@]}"
	done <<'END'
missing command: rdma_intercept help lists them|
unknown command 'nonsense': rdma_intercept help lists them|nonsense
unknown command 'statis': did you mean 'status'?|statis
unknown command 'set': did you mean 'limit set'?|set host qp=1
unknown command 'tenants': did you mean 'show tenant'?|tenants
unknown command 'processes': did you mean 'show process'?|processes
limit: unknown word 'st': did you mean 'set'?|limit st
show: unknown word 'tenent': did you mean 'tenant'?|show tenent
unknown command 'nonsense'|nonsense --help
unknown command 'nonsense'|help nonsense
unknown option '--nonsense'|--nonsense
unknown option '--soket=x': did you mean '--socket'?|--soket=x status
unknown option '-x'|-x status
--socket needs a value|status --socket
--json takes no value|--json=1 status
get, set, unset|limit
get, set, unset|limit put
tenant, process, device, kind|show
status, on, off|guard
status takes no option --follow|status -f
events takes no option --limit|events --limit qp=1
unexpected argument 'more'|status more
--color: invalid value 'blue': expected one of: auto, always, never|--color=blue status
invalid process ID 'self': expected a number from 1 to|show process self
invalid process ID '0'|explain 0
invalid process ID '99999999999'|explain 99999999999
invalid argument '1-': expected PID or PID-NUMBER|explain 1-
invalid argument '1-0': expected PID or PID-NUMBER|explain 1-0
invalid argument '-5': expected PID or PID-NUMBER|explain -- -5
expected PID, or --as CONDITIONS|explain 5 --as uid=5
unknown option '--repalce': did you mean '--replace'?|reload --repalce
unknown option '--force': rdma_intercept --help lists them|reload --force
'qp=6': expected a key without a value|limit unset host qp=6
'qp' is given twice|limit set host qp=5 mr=1 qp=6
unknown section 'ml': expected host, default or tenant NAME|limit set ml qp=5
missing argument: expected|explain
missing argument: expected|limit set host
missing argument: expected|tenant add
missing argument: expected|guard on
missing argument: expected|guard off
unexpected argument 'more'|guard status a more
host, default or tenant NAME|limit set
host, default or tenant NAME|limit set everything qp=1
host, default or tenant NAME|limit get tenant
invalid argument 'qp': expected KEY=VALUE|limit set host qp
invalid argument '=1': expected KEY=VALUE|limit set host =1
invalid argument 'qp=': expected KEY=VALUE|limit set host qp=
expected 1 to 63 of the characters|tenant remove aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
expected 1 to 63 of the characters|guard on aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
END
	check "an empty name of a tenant" complains 2 "invalid name of a tenant '': expected 1 to 63" tenant add ''
	check "a name of two lines" complains 2 "invalid name of a tenant" tenant add $'a\nmode = audit'
	check "a value of two lines" complains 2 "qp: invalid value '1\x0amr=2': expected one line" limit set host $'qp=1\nmr=2'
	check "more than a message takes" complains 2 "the change is too long at 'qp': expected at most" \
		limit set host "qp=$(printf '%01100d' 1)"
	check "a path that no socket can have" complains 2 'less than 108' -s "$(printf '%0200d' 1)" status
	check "a mistake before -j is told as JSON, too" exits 2 --nonsense status -j
	check "is a document" is_json
	check "no kind of that name" complains 1 "unknown kind 'quux': 'rdma_intercept show kind' lists them" show kind quux
	check "no section of that name" complains 2 "unknown section 'quux': expected collector," show key quux
}

same_help() {
	"$command" "$@" --help | cmp -s - <("$command" help "$@")
}
help_and_version() {
	check "help" exits 0 --help
	check "help goes to standard output" silent err
	check "there are commands and options" test "${#names[@]}" -gt 10 -a "${#options[@]}" -gt 10
	manual=$(sed 's/\\-/-/g; s/\\&//g' "$sources/man/rdma_intercept.1")
	"$command" --help >"$work/help"
	for name in "${names[@]}"; do
		read -ra words <<<"$name"
		check "'$name' is in the help" grep -q "^$name " "$work/help"
		check "'$name --help' says how" exits 0 "${words[@]}" --help
		check "'$name --help' has its usage" says out "usage: rdma_intercept $name"
		check "'$name --help' has examples" grep -q "^  rdma_intercept ${words[0]}" "$work/out"
		check "'help $name' is the same" same_help "${words[@]}"
		check "the manual has '$name'" grep -q "rdma_intercept $name" <<<"$manual"
		check "'$name --help' as JSON" answers "${words[@]}" -h
	done
	for option in "${options[@]}"; do
		check "the manual has --$option" grep -qe "--$option" <<<"$manual"
	done
	check "help as JSON" answers --help
	check "help on the commands of a word" exits 0 limit --help
	check "has these" test "$(grep -c '^limit ' "$work/out")" -eq 4
	check "and no others" not grep -q '^status' "$work/out"
	for noun in tenants processes devices kinds keys; do
		check "show $noun" exits 0 show "$noun" --help
		check "is show $noun" says out 'usage: rdma_intercept show '
		check "help show $noun" same_help show "$noun"
	done
	check "version" exits 0 -V
	check "version has a number" grep -qE '^rdma_intercept [0-9]+\.[0-9]+' "$work/out"
	check "version as JSON" answers --version
	check "options after the command" exits 0 show kind --json
	check "and before it" exits 0 -j show kind
	check "and among the words" exits 0 show -j kind
	check "operands after --" exits 0 -- show kind
}

# Each option of a service has a line in its help and a place in its manual, and the other way round.
help_of_daemons() {
	local program option

	for program in collector_server rdma_monitor rdma_dashboard; do
		if [ ! -x "$build/$program" ]; then
			skip_part "$program is missing"
			continue
		fi
		"$build/$program" --help >"$work/help"
		check "$program: help has examples" grep -q "^  $program " "$work/help"
		manual=$(sed 's/\\-/-/g; s/\\&//g' "$sources/man/$program.8")
		while read -r option; do
			check "$program: the help describes $option" grep -qE -e "^  (-., )?(-., )?${option}[ ,]" "$work/help"
			check "$program: the manual has $option" grep -qe "$option" <<<"$manual"
		done < <({ sed '/^$/q' "$work/help" | grep -oE -- '--[a-z-]+' | grep -v -- '--json'; echo --help; echo --version; } | sort -u)
		while read -r option; do
			check "$program: the usage has $option" grep -qe "$option" <(sed '/^$/q' "$work/help")
		done < <(sed -n '/^$/,$s/^  \(-., \)\?\(--[a-z-]*\).*/\2/p' "$work/help" | grep -vE -- '--(help|version)$')
	done
}

# ---- without a collector

no_collector() {
	mkdir "$work/alone" # a directory in which there is no rdma_fleet
	cp "$command" "$work/alone/rdma_intercept"
	printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$work/alone" "$work/alone/rdma_intercept" >"$work/alone/command"
	chmod +x "$work/alone/command"
	command=$work/alone/command check "fleet: not installed" \
		complains 1 'rdma_fleet is not installed: install the package rdma-intercept-fleet' fleet status
	check "a path that is not a socket" complains 3 "$work is not a socket: expected the path of" -s "$work" status
	check "the kinds" exits 0 show kind
	while read -r kind; do
		check "kind $kind" grep -qE "^$kind +(count|bytes) +[a-zA-Z]" "$work/out"
	done < <(sed -n 's/^KIND(\([a-z_]*\),.*/\1/p' "$sources/src/terms/kinds.def")
	check "the kinds as JSON" answers show kind
	check "the keys" exits 0 show key
	check "a key of the collector" grep -qE '^collector +socket +- +the ' "$work/out"
	check "a key of the host" grep -qE '^host +guard_writes +on +whether ' "$work/out"
	check "a key of tenants" grep -qE '^tenant +mode +enforce +what ' "$work/out"
	check "keys for kinds" grep -qE '^default +process\.device\.NAME\.KIND +unlimited +limit ' "$work/out"
	check "the conditions" grep -qE '^cgroup +yes +the path ' "$work/out"
	check "the keys of a section" exits 0 show key host
	check "no others" not grep -qE '^(collector|default|tenant) ' "$work/out"
	check "the keys as JSON" answers show key
	check "what is expected" says out '"expected":"on or off"'
	for arguments in status 'show tenant' 'show process' 'show process 1' 'show device' 'show kind qp' \
		'limit get' 'limit set host qp=1' 'limit unset host qp' 'tenant list' 'tenant add x' \
		'tenant remove x' 'guard status' 'guard on x' 'guard off x' reload 'explain 1' events \
		'events -f'; do
		read -ra words <<<"$arguments"
		check "no collector: $arguments" complains 3 "no collector at $work/socket" "${words[@]}"
		check "no collector, as JSON: $arguments" exits 3 -j "${words[@]}"
		check "an error is a document: $arguments" is_json
		check "that has it: $arguments" says out '{"error":"no collector at '
	done
	check "--socket goes before the environment" complains 3 "at $work/other" -s "$work/other" status
}

check_policy() {
	cat >"$work/good.conf" <<'END'
[host]
qp = 100
[tenant a]
match = uid=1
match = uid=2
[tenant b]
match = uid=3
END
	printf '[tenant a]\nqp = 1\nqp = nonsense\nnonsense\n' >"$work/bad.conf"
	printf '[tenant a]\nqp = 1\n' >"$work/doubtful.conf"
	check "check: a good file" exits 0 check "$work/good.conf"
	check "check: no findings" silent out
	check "check: the verdict" same "$(cat "$work/err")" "$work/good.conf: ok, 2 tenants, 3 match lines"
	check "check: as JSON" answers check "$work/good.conf"
	check "check: a bad file" exits 1 check "$work/bad.conf"
	check "check: file, line and reason" grep -q "^$work/bad.conf:3: error: qp: set already" "$work/out"
	check "check: the next mistake" grep -q "^$work/bad.conf:4: error: 'nonsense': invalid line" "$work/out"
	check "check: a warning" grep -q "^$work/bad.conf:1: warning: tenant 'a' has no match line" "$work/out"
	check "check: no more than these" test "$(wc -l <"$work/out")" -eq 3
	check "check: their number" same "$(cat "$work/err")" "$work/bad.conf: 2 errors, 1 warning"
	check "check: a bad file as JSON" exits 1 -j check "$work/bad.conf"
	check "check: is a document" is_json
	check "check: says so in it" says out '"ok":false'
	check "check: has the findings" says out '"level":"warning","rule":"tenant_without_match"'
	check "check: only warnings" exits 0 check "$work/doubtful.conf"
	check "check: are counted" same "$(cat "$work/err")" "$work/doubtful.conf: 0 errors, 1 warning"
	check "check: warnings as errors" exits 1 check --strict "$work/doubtful.conf"
	check "check: a good file has none" exits 0 check "$work/good.conf" --strict
	check "check: no file" exits 1 check "$work/none.conf"
	check "check: names it" says out "$work/none.conf: error: No such file"
	RDMA_INTERCEPT_POLICY=$work/good.conf check "check: the collector's file" exits 0 check
	check "check: is named" says err "$work/good.conf: ok"
	if [ ! -e /etc/rdma_intercept/policy.conf ]; then
		check "check: the default file" exits 1 check
		check "check: is named, too" says out '/etc/rdma_intercept/policy.conf: error: No such file'
	fi
	mkdir "$RDMA_COLLECTOR_DEVICES/mlx5_0"
	printf '[host]\ndevice.mlx5_9.qp = 1\n' >"$work/doubtful.conf"
	check "check: another host's device" exits 0 check "$work/doubtful.conf"
	check "check: is told" grep -q "^$work/doubtful.conf:2: warning: .*no device 'mlx5_9'" "$work/out"
	rmdir "$RDMA_COLLECTOR_DEVICES/mlx5_0"
}

doctor() {
	check "doctor" exits 0 doctor
	check "doctor: the library" grep -qE "^OK +library +$(realpath "$library") " "$work/out"
	check "doctor: no collector" grep -qE '^WARN +collector +no collector' "$work/out"
	check "doctor: nothing preloads" grep -qE '^WARN +preload' "$work/out"
	check "doctor: one line each" not grep -qvE '^(OK|WARN|SKIP) +[a-z]+' "$work/out"
	check "doctor: every row" test "$(wc -l <"$work/out")" -eq "$(grep -c '^DOCTOR' "$sources/src/cli/doctor.def")"
	check "doctor: what was not tried is not OK" grep -qE '^SKIP +policy +no collector answers' "$work/out"
	check "doctor: a program was started" grep -qE '^OK +program +a program was started' "$work/out"
	check "doctor: how to start a collector" grep -qE '^WARN +collector .*; start it: (systemctl start collector_server|collector_server --daemon);' "$work/out"
	check "doctor: as JSON" answers doctor
	LD_PRELOAD=$preload check "doctor: LD_PRELOAD" exits 0 doctor
	check "doctor: is seen" grep -qE '^OK +preload +LD_PRELOAD' "$work/out"
	check "doctor: warns of sanitized programs" grep -qE '^OK +preload .*-fsanitize=address' "$work/out"
	RDMA_INTERCEPT_MAX_QPS=3 check "doctor: a misspelt variable" exits 0 doctor
	check "doctor: is named" grep -qE '^WARN +variables +RDMA_INTERCEPT_MAX_QPS: unknown variable.* did you mean RDMA_INTERCEPT_MAX_QP\?' "$work/out"
	if setpriv --bounding-set -ipc_lock true 2>/dev/null; then # root may lock what it wants
		try setpriv --bounding-set -ipc_lock prlimit --memlock=65536:65536 "$command" doctor
		check "doctor: a limit of locked memory" grep -qE '^WARN +memlock +locked memory is limited to 64K; .*ulimit -l unlimited' "$work/out"
	else
		skip_part "no setpriv, or not root: locked memory was not limited"
	fi
	echo "no library" >"$work/no.so"
	RDMA_INTERCEPT_LIBRARY=$work/no.so check "doctor: a library that is none" exits 1 doctor
	check "doctor: fails" grep -qE '^FAIL +library' "$work/out"
	check "doctor: a program does not start with it" grep -qE '^FAIL +program .*librdma|^FAIL +program .*no\.so' "$work/out"
	touch "$work/socket"
	check "doctor: a file where the socket should be" exits 1 doctor
	check "doctor: says so" grep -qE '^FAIL +socket +.* is not a socket' "$work/out"
	rm "$work/socket"
	ln -s /etc/passwd "$shm"
	check "doctor: a link in place of the shared memory" exits 1 doctor
	check "doctor: is not followed" grep -qE "^FAIL +shared memory +$shm is not a regular file" "$work/out"
	rm "$shm"
	touch "$shm"
	chmod 666 "$shm"
	check "doctor: shared memory that others can write" exits 0 doctor
	check "doctor: warns" grep -qE "^WARN +shared memory +$shm has mode 0666" "$work/out"
	rm "$shm"
}

# found LEVEL CHECK TEXT: a line of doctor on a host of files
found() {
	RDMA_INTERCEPT_DOCTOR_ROOT=$host try "$command" doctor
	grep -E "^$1 +$2 " "$work/out" | grep -qF -e "$3"
}

# Another host, of files: each check of the host in its states.
doctor_host() {
	host=$work/host
	mkdir -p "$host/etc" "$host/lib" "$host/run" "$host/dev" "$host/bin" "$host/sys/class" "$host/sys/fs/cgroup" \
		"$host/sys/kernel/security" "$host/sys/kernel/btf" "$host/sys/module"
	check "libc: the version" found OK libc "glibc $(ldd --version | sed -n '1s/.* //p')"
	: >"$host/lib/ld-musl-x86_64.so.1"
	check "libc: another one" found WARN libc 'ld-musl-x86_64.so.1 for programs that use musl'
	check "preload: nothing" found WARN preload 'neither LD_PRELOAD nor /etc/ld.so.preload'
	echo "/lib/libother.so $(realpath "$library")" >"$host/etc/ld.so.preload"
	check "preload: the library" found OK preload '/etc/ld.so.preload loads the library'
	echo "$work/none/librdma_intercept.so" >"$host/etc/ld.so.preload"
	check "preload: a library that is missing" found FAIL preload "sed -i '/librdma_intercept/d' /etc/ld.so.preload"
	check "btf: none" found WARN btf 'CONFIG_DEBUG_INFO_BTF=y'
	printf '\x9f\xeb\x01' >"$host/sys/kernel/btf/vmlinux"
	check "btf: of the kernel" found OK btf 'readable'
	mkdir "$host/sys/module/ib_uverbs"
	check "btf: a module that is built in" found OK btf 'readable'
	echo live >"$host/sys/module/ib_uverbs/initstate"
	check "btf: none of a module" found WARN btf 'CONFIG_DEBUG_INFO_BTF_MODULES=y'
	printf '\x9f\xeb\x01' >"$host/sys/kernel/btf/ib_uverbs"
	check "btf: of the module" found OK btf 'readable'
	check "lsm: not known" found SKIP lsm 'mount -t securityfs'
	echo lockdown,capability,ebpfish >"$host/sys/kernel/security/lsm"
	check "lsm: without bpf" found WARN lsm 'boot with lsm=lockdown,capability,ebpfish,bpf'
	echo lockdown,capability,bpf >"$host/sys/kernel/security/lsm"
	check "lsm: with bpf" found OK lsm 'lockdown,capability,bpf'
	check "cgroup: none" found SKIP cgroup 'mount -t cgroup2'
	mkdir "$host/sys/fs/cgroup/memory"
	check "cgroup: version 1" found WARN cgroup 'systemd.unified_cgroup_hierarchy=1'
	echo cpu memory >"$host/sys/fs/cgroup/cgroup.controllers"
	check "cgroup: without rdma" found WARN cgroup 'CONFIG_CGROUP_RDMA=y'
	echo cpu rdma memory >"$host/sys/fs/cgroup/cgroup.controllers"
	check "cgroup: with rdma" found OK cgroup 'version 2, with the controller rdma'
	check "devices: none" found WARN devices 'there is no RDMA device'
	check "nodes: none without a device" found WARN nodes 'modprobe ib_uverbs'
	mkdir -p "$host/sys/class/infiniband/mlx5_10" "$host/sys/class/infiniband/mlx5_9"
	check "devices: sorted" found OK devices 'mlx5_9 mlx5_10'
	check "nodes: none of a device" found FAIL nodes 'modprobe ib_uverbs'
	mkdir "$host/dev/infiniband"
	: >"$host/dev/infiniband/uverbs0"
	check "nodes: opened" found OK nodes '1 in /dev/infiniband, and this user could open them'
	ln -s /nonexistent "$host/dev/infiniband/uverbs1"
	check "nodes: cannot be opened" found FAIL nodes 'uverbs1: No such file'
	check "units: no systemd" found SKIP units 'systemd does not run here'
	starts() {
		RDMA_INTERCEPT_DOCTOR_ROOT=$host check "$1: how to start a collector" \
			complains 3 "start it: $2, or name another socket: --socket PATH" show tenant
		check "$1: doctor says it, too" found WARN collector "start it: $2;"
	}
	starts "no systemd" 'collector_server --daemon'
	mkdir -p "$host/run/systemd/system"
	starts "no unit" 'collector_server --daemon'
	mkdir -p "$host/usr/local/lib/systemd/system"
	: >"$host/usr/local/lib/systemd/system/collector_server.service"
	starts "a unit" 'systemctl start collector_server'
	RDMA_INTERCEPT_DOCTOR_ROOT=$host check "another socket: no unit serves it" \
		complains 3 "start it: collector_server --daemon --socket $work/other" --socket "$work/other" show tenant
	systemctl_says() {
		printf '#!/bin/sh\nprintf "%s"\n' "$1" >"$host/bin/systemctl"
		chmod 755 "$host/bin/systemctl"
	}
	systemctl_says 'LoadState=not-found\nUnitFileState=\nActiveState=inactive\n'
	check "units: not installed" found WARN units 'systemctl daemon-reload'
	systemctl_says 'LoadState=loaded\nUnitFileState=disabled\nActiveState=inactive\n'
	check "units: not enabled" found WARN units 'systemctl enable --now collector_server'
	systemctl_says 'LoadState=loaded\nUnitFileState=enabled\nActiveState=active\n'
	check "units: all right" found OK units 'collector_server and rdma_monitor are enabled and active'
	rm -r "$host"
}

run_programs() {
	check "run: the program's own status" exits 7 run sh -c 'exit 7'
	PATH=/usr/bin:/bin check "run: not found" complains 127 'nonsense: not found in PATH: expected' run nonsense
	check "run: no such file" complains 127 "$work/nonsense: No such file or directory" run "$work/nonsense"
	check "run: a directory" complains 126 "$work: is a directory: expected a program" run "$work"
	: >"$work/plain"
	check "run: not executable" complains 126 "$work/plain: the file is not executable: expected" run "$work/plain"
	check "run: no command" complains 125 'missing argument' run
	check "run: a bad option" complains 125 "unknown option '--nonsense'" run --nonsense true
	check "run: an option of another" complains 125 'run takes no option --follow' run -f true
	check "run: a bad option before it" complains 125 "unknown option '--nonsense'" --nonsense run true
	check "run: a mode that is none" complains 125 \
		"--mode: invalid value 'hard': expected one of: enforce, warn, audit" run --mode hard true
	check "run: a transport that is none" complains 125 'auto, lease' run --transport post true
	while IFS='|' read -r limit text; do
		check "run: limit '$limit'" complains 125 "--limit: $text" run --limit "$limit" true
	done <<'END'
|'' is not a limit: expected KIND=VALUE
qp|'qp' is not a limit: expected KIND=VALUE
qp=1,|'' is not a limit: expected KIND=VALUE
process:|'' is not a limit: expected KIND=VALUE
host:qp=1;x|'x' is not a limit: expected KIND=VALUE
qp=|invalid value '' in 'qp=': expected a count
mr=2,qp=x|invalid value 'x' in 'qp=x': expected a count
mr=1G|invalid value '1G' in 'mr=1G': expected a count
mr_bytes=much|invalid value 'much' in 'mr_bytes=much': expected a size
nonsense=1|unknown kind 'nonsense' in 'nonsense=1': expected one of ctx, pd,
mr=1,qpp=3|unknown kind 'qpp' in 'qpp=3': expected one of ctx, pd, cq, qp,
host:mr_byts=3|unknown kind 'mr_byts' in 'mr_byts=3': expected
user:qp=1|unknown or incomplete scope in 'user:qp=1': expected process:, host:,
device:qp=1|unknown or incomplete scope in 'device:qp=1': expected process:, host:,
device::qp=1|unknown or incomplete scope in 'device::qp=1': expected process:, host:,
port:rxe0/9:qp=1|invalid port '9' in 'port:rxe0/9:qp=1': expected a number from 1 to 4
port:rxe0/x:qp=1|invalid port 'x' in 'port:rxe0/x:qp=1': expected a number from 1 to 4
port:rxe0/1:mr=1|'mr' cannot be limited on a port: expected qp or ah
END
	check "run: limit: a suggestion" complains 125 "did you mean 'qp'?" run --limit qpp=3 true
	RDMA_INTERCEPT_LIMITS='process:qpp=1' check "run: a bad limit of the environment" \
		complains 125 "RDMA_INTERCEPT_LIMITS: unknown kind 'qpp'" run --limit qp=1 true
	RDMA_INTERCEPT_LIBRARY=$work/none.so check "run: no library" \
		complains 125 "RDMA_INTERCEPT_LIBRARY=$work/none.so: No such" run true
	mkdir "$work/a b"
	cp "$library" "$work/a b/"
	RDMA_INTERCEPT_LIBRARY="$work/a b/librdma_intercept.so" check "run: a path that LD_PRELOAD cannot have" \
		complains 125 'no path with a colon or a space' run true
	check "run: no collector to ask for the tenant" \
		complains 125 'no collector at' run --tenant default true
	PATH=/usr/bin:/bin check "run: errors as JSON" exits 127 -j run nonsense
	check "run: are a document" is_json

	check "run: with everything" exits 0 run --limit 'qp=10,mr=5' --limit 'host:qp=9;device:rxe0:mr_bytes=1G' \
		--mode audit --transport embedded --quiet -s "$work/other" -- env
	check "run: limits" same "$(environment RDMA_INTERCEPT_LIMITS)" \
		'process:qp=10,mr=5;host:qp=9;device:rxe0:mr_bytes=1G'
	check "run: mode" same "$(environment RDMA_INTERCEPT_MODE)" audit
	check "run: transport" same "$(environment RDMA_INTERCEPT_TRANSPORT)" embedded
	check "run: quiet" same "$(environment RDMA_INTERCEPT_QUIET)" 1
	check "run: socket" same "$(environment RDMA_COLLECTOR_SOCKET)" "$work/other"
	check "run: preload" same "$(environment LD_PRELOAD)" "$(realpath "$library")"
	check "run: without options nothing is set" exits 0 run env
	check "run: no limits" same "$(environment RDMA_INTERCEPT_LIMITS)" ''
	check "run: no mode" same "$(environment RDMA_INTERCEPT_MODE)" ''
	other=$(ldconfig -p | sed -n 's/.*libdl\.so\.2 .*=> //p' | head -1)
	LD_PRELOAD=$other RDMA_INTERCEPT_LIMITS='host:qp=1;' check "run: what is there already" \
		exits 0 run --limit qp=2 env
	check "run: stays behind the library" same "$(environment LD_PRELOAD)" "$(realpath "$library"):$other"
	check "run: stays before the new limits" same "$(environment RDMA_INTERCEPT_LIMITS)" 'host:qp=1;process:qp=2'
	check "run: the program's options are its own" exits 0 run env -i "$(command -v echo)" -j --help
	check "run: as they are" same "$(cat "$work/out")" '-j --help'
	check "run: and its --" exits 0 run -- echo -- x
	check "run: as well" same "$(cat "$work/out")" '-- x'
	mkdir -p "$work/prefix/bin" "$work/prefix/lib"
	cp "$command" "$work/prefix/bin/"
	cp "$library" "$work/prefix/lib/"
	try "$work/prefix/bin/rdma_intercept" run env
	check "run: the library of the same prefix" \
		same "$(environment LD_PRELOAD)" "$work/prefix/lib/librdma_intercept.so"
	check "run: a device of a host that shows none" exits 0 run --limit device:rxe9:qp=1 true
	check "run: nothing is known of it" silent err
	mkdir "$RDMA_COLLECTOR_DEVICES/rxe0" "$RDMA_COLLECTOR_DEVICES/mlx5_0"
	check "run: a device that this host has" exits 0 run --limit 'device:rxe0:qp=1;port:mlx5_0/1:qp=1' true
	check "run: says nothing of it" silent err
	check "run: another one" exits 0 run --limit 'qp=3;port:rxe9/1:qp=1' true
	check "run: warns of it" grep -qE "^rdma_intercept: warning: --limit: this host has no device 'rxe9': expected one of: (mlx5_0, rxe0|rxe0, mlx5_0)$" "$work/err"
	rmdir "$RDMA_COLLECTOR_DEVICES"/*
	check "run: a limit is in force" exits 0 run --limit qp=2 -- "$build/test_global_limit"
	check "run: and refuses" says err 'qp used 2/2, wanted 1 more, limit of the process'
	fresh
}

output_and_escapes() {
	try sh -c '"$0" show kind >/dev/full' "$command"
	check "a full device is an error" test "$status" -eq 1
	check "that is told" says err 'rdma_intercept: the output cannot be written: No space left'
	try sh -c '"$0" show kind >&-' "$command"
	check "no output at all is one, too" test "$status" -eq 1
	try sh -c 'trap "" PIPE; "$0" show kind | true; "$0" -j show kind | true' "$command"
	check "a reader that has gone is no crash" test "$status" -eq 0
	try env -i "$command" show kind
	check "no environment" test "$status" -eq 0
	try sh -c 'exec 0<&- 2>&-; "$0" status' "$command"
	check "no standard error" test "$status" -eq 3
	check "control characters of the user are escaped" complains 2 'unknown command '"'"'\x1b[31m'"'" $'\e[31m'
	check "so is what is no UTF-8" complains 2 'unknown command '"'"'\xff'"'" $'\xff'
	check "and what turns the writing around" complains 2 '\xe2\x80\xae' $'\u202e'
	check "letters are not" complains 2 'größe' größe
	check "no UTF-8 in JSON" exits 2 -j $'\xff'
	check "is a document" is_json
	# rdma_monitor prints by the same rules; unit_print has the rest of it.
	try "$build/rdma_monitor" $'\e[31m\xff\u202e'
	check "rdma_monitor: escaped in the same way" says err 'unknown argument '"'"'\x1b[31m\xff\xe2\x80\xae'"'"
	try "$build/rdma_monitor" größe
	check "rdma_monitor: letters are not" says err 'größe'
}

# The daemons: what their tables of options have is offered.
completion_of_daemons() {
	local program file option

	while read -r program file; do
		[ -x "$build/$program" ] || continue
		while read -r option; do
			[ "$option" = tables ] || # for tests
				check "completion of $program --$option" daemon_completes "$program" --${option:0:1} -- "--$option"
		done < <(grep -oE '\{ "[a-z-]+", (no|required)_argument' "$sources/src/$file" | cut -d'"' -f2)
		check "completion of $program: nothing else" not daemon_completes "$program" --s -- --surprise
	done <<-'END'
		rdma_monitor monitor/tool/main.c
		collector_server collector/main.c
		rdma_dashboard dashboard/main.c
	END
	if [ -x "$build/rdma_monitor" ]; then
		check "completion of --by" daemon_completes rdma_monitor --by '' -- process cgroup device
		check "completion of --by=" daemon_completes rdma_monitor --by = -- process
		check "completion of --by=c" daemon_completes rdma_monitor --by = c -- cgroup
		check "completion of --by c: no other" not daemon_completes rdma_monitor --by c -- process
		check "completion of --hooks" daemon_completes rdma_monitor --hooks f -- fentry
		check "completion of a part" not daemon_completes rdma_monitor --on -- --events
	fi
	check "completion of --log-level" daemon_completes collector_server --log-level I -- INFO
}

completion() {
	for name in "${names[@]}"; do
		case $name in
		*' '*) check "completion of '$name'" completes "${name% *} " "${name#* }" ;;
		*) check "completion of '$name'" completes '' "$name" ;;
		esac
	done
	check "completion of a part" completes 'sta' status
	check "completion of nothing else" not completes 'sta' run
	check "completion of common options" completes '--' --json --socket --color
	check "completion of no others" not completes '--' --limit
	check "completion of run's options" completes 'run --' --limit --mode --tenant --transport --quiet
	check "completion leaves the program's alone" not completes 'run env -' --json
	check "completion of kinds" completes 'show kind ' qp mr_bytes
	check "completion of limits" completes 'run --limit host:q' qp=
	while IFS='|' read -r line keys; do
		read -ra words <<<"$keys"
		check "completion of keys: '$line'" completes "$line " "${words[@]}"
	done <<'END'
limit set host|qp= mr_bytes= guard_writes=
limit set default|qp= process.qp= mode= guard=
limit set tenant x|qp= process.qp= mode= guard= match=
tenant add x|process.mr_bytes= mode=
limit unset host|qp guard_writes
limit unset tenant x|process.qp mode match
show key|collector host default tenant
tenant add x --match|uid= gid= cgroup= container= job=
END
	check "completion of no keys of other sections" not completes 'limit set host ' process.qp=
	check "completion of sections" completes 'limit get ' host default tenant
	while IFS='|' read -r option value; do
		check "completion of --$option" completes "run --$option " "$value"
		check "completion of --$option=" completes "run --$option=" "$value"
	done <<'END'
mode|audit
transport|embedded
color|never
limit|qp=
match|uid=
END
	check "completion does not start programs" completes "run touch $work/started -"
	check "really" not test -e "$work/started"
}
