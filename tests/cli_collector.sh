# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154,SC2317 # words for other shells; variables and functions of cli.sh
# Cases of cli.sh, which sources this: what the command asks of a collector.

# ---- with a collector

status_and_show() {
	collector_begin
	check "status" exits 0 status
	check "status: the collector" grep -qE "^pid +$collector_pid\$" "$work/out"
	check "status: its socket" grep -qE "^socket +$work/socket\$" "$work/out"
	check "status: its policy" grep -qE "^policy +$policy\$" "$work/out"
	check "status: the columns" grep -qE '^NAME +MODE +PROCS +QP' "$work/out"
	check "status: a tenant" grep -qE '^ours +enforce +0 +0/4' "$work/out"
	check "status: another" grep -qE '^theirs +warn +0 ' "$work/out"
	check "status: bytes for people" says out '0/1.5G'
	check "status: no colours in a file" not grep -q $'\e' "$work/out"
	check "status: a device" grep -qE "^$device +0/50" "$work/out"
	check "status: what is not seen, and the way out" grep -qE '^coverage +0 processes registered; .* without rdma_monitor: (systemctl start rdma_monitor|rdma_monitor --keep)$' "$work/out"
	check "status: no ports here" not grep -q '^DEVICE +PORT' "$work/out"
	for port in mlx5_10/ports/1 mlx5_9/ports/2 mlx5_9/ports/1; do
		mkdir -p "$RDMA_COLLECTOR_DEVICES/$port"
		echo '4: ACTIVE' >"$RDMA_COLLECTOR_DEVICES/$port/state"
		echo Ethernet >"$RDMA_COLLECTOR_DEVICES/$port/link_layer"
		echo '100 Gb/sec (4X EDR)' >"$RDMA_COLLECTOR_DEVICES/$port/rate"
	done
	echo '1: DOWN' >"$RDMA_COLLECTOR_DEVICES/mlx5_9/ports/2/state"
	check "status: with ports" exits 0 status
	grep -A3 '^DEVICE +PORT\|^DEVICE .*STATE' "$work/out" | tr -s ' ' >"$work/ports"
	check "status: sorted, with their states" same "$(tail -3 "$work/ports")" "$(printf '%s\n' \
		'mlx5_9 1 ACTIVE Ethernet 100 Gb/sec (4X EDR)' 'mlx5_9 2 DOWN Ethernet 100 Gb/sec (4X EDR)' \
		'mlx5_10 1 ACTIVE Ethernet 100 Gb/sec (4X EDR)')"
	check "status: ports as JSON" answers status
	check "status: a port" says out '{"device":"mlx5_9","port":2,"state":"DOWN","link_layer":"Ethernet","rate":"100 Gb/sec (4X EDR)"}'
	rm -r "${RDMA_COLLECTOR_DEVICES:?}"/*
	"$command" limit set host device.mlx5_10.qp=3 device.mlx5_9.qp=4 >/dev/null
	check "show device: sorted" exits 0 show device
	check "show device: by number" same "$(sed -n 's/^\(mlx5_[0-9]*\) .*/\1/p' "$work/out" | tr '\n' ' ')" 'mlx5_9 mlx5_10 '
	"$command" limit unset host device.mlx5_10.qp device.mlx5_9.qp >/dev/null
	check "show process: none" exits 0 show process
	check "show process: and why" says out "no process is registered: a process registers when it first uses RDMA"
	check "status as JSON" answers status
	check "status: exact bytes" says out '"limit":1610612736'
	check "status: no limit" says out '"limit":null'
	for arguments in 'show tenant' 'show tenant ours' 'show process' 'show device' "show device $device" \
		'show kind qp' 'limit get' 'limit get host' 'limit get default' 'limit get tenant ours' \
		'tenant list' 'guard status' 'guard status ours' events "explain $$" doctor 'top -d 0.1' advise 'advise ours'; do
		read -ra words <<<"$arguments"
		check "$arguments" exits 0 "${words[@]}"
		check "$arguments as JSON" answers "${words[@]}"
	done
	check "show: no such tenant" complains 1 "the collector has no tenant 'x': 'rdma_intercept show tenant' lists them" show tenant x
	check "show: no such process" complains 1 "no process '1'" show process 1
	check "advise: what is missing" exits 0 advise
	check "advise: its rule and command" grep -A1 '^\[no_monitor\]' "$work/out"
	check "advise: of a tenant" exits 0 advise ours
	check "advise: nothing to say" says out 'no advice'
	check "advise: no such tenant" complains 1 "the collector has no tenant 'x': 'rdma_intercept show tenants' lists them" advise x
	check "show: no such device" complains 1 "no device 'x'" show device x
	check "limit: no such tenant" complains 1 'tenant x' limit get tenant x
	check "explain: no such process" complains 1 '4000000' explain 4000000
	check "explain: no such event" complains 1 "no event 1-1 is in memory: 'rdma_intercept events' lists the latest" explain 1-1
	check "doctor: the collector" exits 0 doctor
	check "doctor: found" grep -qE "^OK +collector +pid $collector_pid" "$work/out"
	check "doctor: one language" grep -qE '^OK +protocol' "$work/out"
	check "doctor: the policy" grep -qE "^OK +policy +$policy " "$work/out"
}

matches() {
	collector_begin
	check "show tenant: its match lines" exits 0 show tenant theirs
	check "show tenant: the columns" grep -qE '^ORDER +SOURCE +MATCH +IN KERNEL$' "$work/out"
	check "show tenant: the line" grep -qE "^ +2 +$policy:11 +uid=4000000 +no\$" "$work/out"
	check "show tenant: only its own" not says out "$policy:8"
	check "tenant add: by a command" exits 0 tenant add more --match cgroup=/more --match 'uid=4000001 gid=7'
	check "show tenant: in their order" exits 0 show tenant more
	check "show tenant: the first" grep -qE '^ +3 +command +cgroup=/more +yes$' "$work/out"
	check "show tenant: the second" grep -qE '^ +4 +command +uid=4000001 gid=7 +no$' "$work/out"
	check "show tenant: as JSON" answers show tenant more
	check "show tenant: the documents" says out '{"order":3,"tenant":"more","source":"command","match":"cgroup=/more","in_kernel":true}'
	check "show tenant: without any" answers show tenant default
	check "show tenant: an empty array" says out '"matches":[]'
	kill -KILL "$collector_pid"
	wait "$collector_pid" 2>/dev/null || true
	background "$collector" --policy "$policy" >>"$work/collector.log" 2>&1 &
	collector_pid=$!
	workers+=("$collector_pid")
	eventually ready
	check "restart: still by a command" exits 0 show tenant more
	check "restart: the first" grep -qE '^ +3 +command +cgroup=/more +yes$' "$work/out"
}

explain_as() {
	collector_begin
	check "explain --as: a user" exits 0 explain --as uid=4000000
	check "explain --as: its tenant" grep -qE '^tenant +theirs$' "$work/out"
	check "explain --as: its rule" grep -qE "^rule +$policy:11: match = uid=4000000\$" "$work/out"
	check "explain --as: its mode" grep -qE '^mode +warn$' "$work/out"
	check "explain --as: the limits" grep -qE '^qp +- +5$' "$work/out"
	check "explain --as: nobody's" exits 0 explain --as uid=4000007,gid=1,2
	check "explain --as: the default" grep -qE '^tenant +default$' "$work/out"
	check "tenant add: of jobs" exits 0 tenant add jobs --match job=47* --match container=web qp=3
	check "explain --as: a job by its cgroup" answers explain --as cgroup=/slurm/uid_1/job_4711/step_0
	check "explain --as: the job" says out '"job":"4711","pod":null,"rule":"command: match = job=47*","tenant":"jobs"'
	check "explain --as: its limits" says out '"limits":[{"kind":"qp","limit":3,"process_limit":5}]'
	check "explain --as: a job by name" exits 0 explain --as cgroup=/slurm/uid_1/job_4711,job=1
	check "explain --as: not the other" grep -qE '^tenant +default$' "$work/out"
	check "explain --as: a container" exits 0 explain --as container=web
	check "explain --as: of the tenant" grep -qE '^tenant +jobs$' "$work/out"
	check "explain --as: of a file" exits 0 explain --as job=4711 --policy "$policy"
	check "explain --as: another policy" grep -qE '^tenant +default$' "$work/out"
	check "explain --as: not a condition" complains 2 "--as: unknown condition 'pid'" explain --as uid=1,pid=3
	check "explain --as: a range" complains 2 'uid: more than one value' explain --as uid=1-3
	check "explain --as: twice the same" complains 2 'repeated condition uid=' explain --as uid=1,uid=3
	check "explain --as: no such user" complains 2 "unknown user 'no-such-user'" explain --as uid=no-such-user
	check "explain --as: no such file" complains 1 "$work/absent" explain --as uid=1 --policy "$work/absent"
	check "explain --as: and a process" complains 2 "expected PID, or --as CONDITIONS" explain --as uid=1 1
	collector_end
	check "explain --as: without a collector" exits 3 explain --as uid=1
	check "explain --as: a file needs none" exits 0 explain --as uid=1 --policy "$policy"
}

patterns() {
	collector_begin
	check "tenant add: a pattern" exits 0 tenant add 'job-%j' --match 'job=*' qp=6
	check "show tenant: a pattern" exits 0 show tenant 'job-%j'
	check "show tenant: says so" says out 'job-%j is a pattern: '
	check "show tenant: its lines" grep -qE '^ +3 +command +job=\* +no$' "$work/out"
	check "show tenant: a pattern as JSON" answers show tenant 'job-%j'
	check "limit get: a pattern" shows_line '^tenant job-%j +qp +6 +command$' limit get tenant 'job-%j'
	check "limit get: among all" shows_line '^tenant job-%j +qp +6 +command$' limit get
	check "show tenant: no such pattern" complains 1 "no tenant 'x-%j'" show tenant 'x-%j'
	check "explain --as: a job" exits 0 explain --as job=4711
	check "explain --as: the tenant of the pattern" grep -qE '^tenant +job-4711$' "$work/out"
	check "explain --as: the pattern" grep -qE '^pattern +job-%j$' "$work/out"
	check "explain --as: its limit" grep -qE '^qp +6 +5$' "$work/out"
	check "guard on: not of a pattern" complains 1 'guard: not possible in the pattern [tenant job-%j]' guard on 'job-%j'
	check "tenant add: not a pattern" complains 1 "'%j': invalid pattern: expected a name that begins" tenant add '%j'
	check "tenant add: without its condition" complains 1 'match: missing condition job=' tenant add 'x-%j' --match uid=1
	check "tenant remove: a pattern" exits 0 tenant remove 'job-%j'
	printf '[tenant job-%%j]\nmatch = job=*\n[tenant job-1]\nqp = 1\n' >"$work/patterns.conf"
	check "check: a section beside a pattern" exits 0 check "$work/patterns.conf"
	check "check: needs no match line" not says out 'has no match line'
}

ports() {
	collector_begin
	check "limit set: on a port" exits 0 limit set tenant ours "port.$device/1.qp=3" "process.port.$device/2.ah=4"
	check "limit get: on a port" exits 0 limit get tenant ours
	check "limit get: of the tenant" grep -qE "^tenant ours +port\\.$device/1\\.qp +3 +command\$" "$work/out"
	check "limit get: of each process" grep -qE "^tenant ours +process\\.port\\.$device/2\\.ah +4 +command\$" "$work/out"
	check "limit get: as JSON" answers limit get tenant ours
	check "limit get: the port" says out "\"device\":\"$device/1\""
	check "show tenant: its ports" exits 0 -j show tenant ours
	check "show tenant: with limits" says out '"ports":[{"port":1,"kinds":{"qp":{"used":0,"leased":0,"peak":0,"limit":3,'
	check "show tenant: for people" exits 0 show tenant ours
	check "show tenant: a line" grep -qE "^$device/1 +qp +0 .* 3 " "$work/out"
	check "show tenant: no other port" not says out "$device/3"
	check "limit set: no port 0" complains 1 "invalid port '0': expected a number from 1 to 4" limit set host "port.$device/0.qp=1"
	check "limit set: no such kind" complains 1 "invalid kind of a port 'mr': expected qp or ah" limit set host "port.$device/1.mr=1"
	check "limit unset: on a port" exits 0 limit unset tenant ours "port.$device/1.qp" "process.port.$device/2.ah"
	"$command" limit set tenant ours guarantee.qp=2 rate.reg_mr=50/s pace.bytes=10M/s >/dev/null
	check "limit get: guarantee, rate and pace" exits 0 limit get tenant ours
	check "limit get: the guarantee" grep -qE '^tenant ours +guarantee\.qp +2 +command$' "$work/out"
	check "limit get: the rate" grep -q 'reg_mr .*50/s' "$work/out"
	check "limit get: the pace" grep -q '10M' "$work/out"
	"$command" limit unset tenant ours guarantee.qp rate.reg_mr pace.bytes >/dev/null
	check "limit get: again" exits 0 limit get tenant ours
	check "limit get: no port" not says out port.
}

explain_and_run() {
	collector_begin
	check "explain: a process" exits 0 explain $$
	check "explain: its tenant" grep -qE '^tenant +ours$' "$work/out"
	check "explain: its rule" grep -qE "^rule +$policy:8: match" "$work/out"
	check "explain: its limits" grep -qE "^tenant ours +qp +4 +$policy:9\$" "$work/out"
	check "explain: of each process" grep -qE "^tenant ours +process\\.qp +5 +$policy:6 \\[default\\]\$" "$work/out"
	check "explain: of the host" grep -qE "^host +qp +100 +$policy:2\$" "$work/out"
	check "explain: as JSON" answers explain $$
	check "run: in its tenant" exits 0 run --tenant ours true
	check "run: not in another" complains 125 "belongs to tenant 'ours', not to 'theirs'" \
		run --tenant theirs touch "$work/started"
	check "run: did not start" not test -e "$work/started"
}

# Paths that are given from the directory where the collector starts stay right in the background.
relative_paths() {
	local here=$work/relative

	collector_end
	mkdir "$here"
	printf '[host]\nqp = 9\n' >"$here/policy"
	(cd "$here" && env -u RDMA_COLLECTOR_STATE -u RDMA_INTERCEPT_POLICY "$collector" --daemon --policy policy \
		--log log --state state --socket sock) >"$work/err" 2>&1
	collector_pid=$("$command" -s "$here/sock" -j status | jq .collector.pid)
	workers+=("$collector_pid")
	check "relative paths: the socket" exits 0 -s "$here/sock" limit set host qp=7
	check "relative paths: what commands set is kept" grep -q 'qp = 7' "$here/state/runtime.conf"
	check "relative paths: check takes the file of this collector" exits 0 -s "$here/sock" check
	check "relative paths: and names it" says err "$here/policy: ok"
	echo 'qp = 8' >>"$here/policy"
	check "relative paths: reload" complains 1 "$here/policy:3" -s "$here/sock" reload
	check "relative paths: the log" eventually grep -q 'ERROR .*policy:3' "$here/log"
	kill "$collector_pid"
	collector_pid=
	check "relative paths: the log, to the end" eventually grep -q 'INFO stopping' "$here/log"
	check "relative paths: the socket is removed" eventually test ! -e "$here/sock"
}

changes() {
	collector_begin
	check "limit set" exits 0 limit set tenant ours qp=3 process.mr_bytes=2G "device.$device.mr=7"
	check "limit set: in silence" silent out
	check "limit get: has them" exits 0 limit get tenant ours
	check "limit get: in total" grep -qE '^tenant ours +qp +3 +command$' "$work/out"
	check "limit get: of each process" grep -qE '^tenant ours +process\.mr_bytes +2G +command$' "$work/out"
	check "limit get: on a device" grep -qE "^tenant ours +device\\.$device\\.mr +7 +command\$" "$work/out"
	check "limit get: inherited" grep -qE "^tenant ours +process\\.qp +5 +$policy:6 \\[default\\]\$" "$work/out"
	check "limit unset" exits 0 limit unset tenant ours qp process.mr_bytes "device.$device.mr"
	check "limit get: as in the file" exits 0 limit get tenant ours
	check "limit get: again" grep -qE "^tenant ours +qp +4 +$policy:9\$" "$work/out"
	check "limit get: and no more" not says out mr_bytes
	check "limit set as JSON" answers limit set host mr=50
	check "limit get: [default]" exits 0 limit get default
	check "limit get: [default]: the limit" grep -qE "^default +process\\.qp +5 +$policy:6\$" "$work/out"
	check "limit get: [default]: nothing of tenants" not says out tenant
	"$command" limit set default process.qp=6 mode=warn >/dev/null
	check "limit get: [default]: changed" exits 0 limit get default
	check "limit get: [default]: by a command" grep -qE '^default +process\.qp +6 +command$' "$work/out"
	check "limit get: [default]: a setting" grep -qE '^default +mode +warn +command$' "$work/out"
	check "limit get: the tenant default" exits 0 limit get tenant default
	check "limit get: inherits" grep -qE '^tenant default +process\.qp +6 +command \[default\]$' "$work/out"
	check "limit get: its mode" grep -qE '^tenant default +mode +warn +command \[default\]$' "$work/out"
	"$command" limit unset default process.qp mode >/dev/null
	"$command" limit set tenant theirs weight=3 traffic_class=32 >/dev/null
	check "limit get: settings" exits 0 limit get tenant theirs
	check "limit get: mode" grep -qE "^tenant theirs +mode +warn +$policy:12\$" "$work/out"
	check "limit get: weight" grep -qE '^tenant theirs +weight +3 +command$' "$work/out"
	check "limit get: traffic class" grep -qE '^tenant theirs +traffic_class +(0x20|32) +command$' "$work/out"
	check "limit get: settings as JSON" answers limit get tenant theirs
	"$command" limit unset tenant theirs weight traffic_class >/dev/null
	check "limit get: mode and weight in any case" exits 0 limit get tenant ours
	check "limit get: the mode that is not set" grep -qE '^tenant ours +mode +enforce +not set$' "$work/out"
	check "limit set: a key that is none" complains 1 'nonsense' limit set host nonsense=1
	check "limit set: a value that is none" complains 1 "'x'" limit set host qp=x
	check "limit set: nobody's" complains 1 "'x'" limit set tenant x qp=1
	check "limit set: as JSON" exits 1 -j limit set tenant x qp=1
	check "limit set: a document" is_json
	check "tenant add" exits 0 tenant add new qp=9 --mode audit --match 'uid=4000001 cgroup=/x*' process.qp=2
	check "tenant list" exits 0 tenant list
	check "tenant list: has it" grep -qE '^new +audit +0 +runtime$' "$work/out"
	check "tenant list: as JSON" answers tenant list
	check "limit get: its limits" exits 0 limit get tenant new
	check "limit get: are there" grep -qE '^tenant new +process\.qp +2 +command$' "$work/out"
	check "tenant add: again" complains 1 "'new'" tenant add new
	check "tenant add: a bad rule" complains 1 'color' tenant add newer --match color=blue
	check "tenant remove" exits 0 tenant remove new
	check "tenant remove: again" complains 1 "'new'" tenant remove new
	check "completion of tenants" completes 'show tenant ' ours theirs
	check "completion of limit reset" completes 'limit reset ' default host tenant
	check "completion of devices" completes 'limit set host device.' "device.$device.qp="
}

reloading() {
	collector_begin
	check "reload" exits 0 reload
	check "reload: what is in force" says out "$policy: in force"
	check "reload: as JSON" answers reload
	echo 'nonsense' >>"$policy"
	check "reload: a bad file" complains 1 "$policy:" reload
	check "advise: how to put it right" exits 0 advise
	check "advise: check and reload" says out "rdma_intercept check $policy && rdma_intercept reload"
	check "status: says why" exits 0 status
	check "status: by file and line" grep -qE "^problem +$policy:[0-9]+: " "$work/out"
	check "status: a problem as JSON" answers status
	sed -i '$s/.*/nonsense = 1/' "$policy" # whose reason names every key
	check "reload: an unknown key" exits 1 reload
	check "status: the whole reason" exits 0 status
	check "status: to its last word" grep -qE '^problem .* unknown key .* lists KIND$' "$work/out"
	check "advise: the whole reason" exits 0 advise
	check "advise: to its last word" grep -qE '^.policy_not_loaded. .* unknown key .* lists KIND$' "$work/out"
	check "doctor: fails" exits 1 doctor
	check "doctor: by file and line" grep -qE "^FAIL +policy +$policy:[0-9]+: " "$work/out"
	good_policy
	check "reload: put right" exits 0 reload
	printf '[host]\n' >"$policy"
	check "reload: an incomplete file" complains 1 'reload --replace' reload
	check "advise: an incomplete file" exits 0 advise
	check "advise: only one command helps" grep -qE '^ +rdma_intercept reload --replace$' "$work/out"
	check "advise: with the whole reason" says out "accept it with 'rdma_intercept reload --replace'"
	printf '[host]' >"$policy"
	check "check: a file that is cut" exits 1 check "$policy"
	check "check: says where" says out "$policy:1: error: the last line has no newline at its end: the file may be cut"
	printf '[host]\n' >"$policy"
	check "reload: replace" exits 0 reload --replace
	rm "$policy"
	check "reload: a file that is missing" complains 1 "$policy: No such file" reload
	check "reload: no file any more" exits 0 reload --replace
	check "reload: says so" says out 'no policy file is in force'
	check "reload: no file as JSON" answers reload --replace
}

# A collector, and the worker `one` at the limit of its tenant, with one refusal; sets pid.
full_tenant_begin() {
	collector_begin
	worker_start one
	for _ in 1 2 3 4; do
		check "a QP" ask one qp ok
	done
	check "one more is refused" ask one qp refused
	pid=${pid_one:?}
}

processes() {
	full_tenant_begin
	check "status: full" exits 0 status
	check "status: is marked" grep -qE '^ours +enforce +1 .* !! 4/4' "$work/out"
	check "status: as JSON" answers status
	check "show process" exits 0 show process
	check "show process: a line" grep -qE "^ *$pid +test_shm_versio +$(id -u) +$(id -un) +ours +enforce " "$work/out"
	check "show process: as JSON" answers show process
	check "show process: one" exits 0 show process "$pid"
	check "show process: what it holds" grep -qE '^ +qp +4 ' "$work/out"
	check "show process: where" grep -qE "^$device +qp +4 " "$work/out"
	check "show process: the types of its QPs" grep -qE "^$device +qp_types +RC +4$" "$work/out"
	check "show process: their states" grep -qE "^$device +qp_states +RESET +4$" "$work/out"
	check "show process: one as JSON" answers show process "$pid"
	check "show process: types as JSON" says out '"qp_types":{"RC":4,"UC":0,'
	check "show process: counters as JSON" says out '"completion_events":{"received":0,'
	check "show kind: who" exits 0 show kind qp
	check "show kind: the tenant" grep -qE '^ours +enforce +1 +4 +4 +4 +4 +5 +1 +!!$' "$work/out"
	check "show kind: the process" grep -qE "^ *$pid +test_shm_versio .* ours +enforce +4 " "$work/out"
	check "show kind: as JSON" answers show kind qp
	check "show device: who" exits 0 show device "$device"
	check "show device: the process" grep -qE "^ *$pid +test_shm_versio" "$work/out"
	check "show device: as JSON" answers show device "$device"
	check "events" exits 0 events
	check "events: joined" grep -qE " joined +ours +$pid " "$work/out"
	check "events: refused" grep -qE " refused +ours +$pid +$device +qp used 4/4, wanted 1 more, limit of the tenant, from $policy:9, event $pid-1\$" "$work/out"
	check "events: as JSON" answers events
	check "events: with an id" says out "\"id\":\"$pid-1\""
	check "explain: an event" exits 0 explain "$pid-1"
	check "explain: what" says out 'qp used 4/4, wanted 1 more, limit of the tenant'
	check "explain: by whom" says out 'Refused by the library.'
	check "explain: what to do" says out 'rdma_intercept limit set tenant ours qp=5'
	check "explain: as JSON" answers explain "$pid-1"
	check "completion of processes" completes 'explain ' "$pid"
	worker_end one quit
}

# Without a collector, what processes count in their shared file is shown.
embedded_file() {
	fresh
	worker_start alone RDMA_INTERCEPT_TRANSPORT=embedded RDMA_INTERCEPT_LIMITS=host:qp=9
	for _ in 1 2 3; do
		check "a QP" ask alone qp ok
	done
	pid=${pid_alone:?}
	check "status" exits 0 status
	check "status: which file" grep -qE "^shared file +$shm\$" "$work/out"
	check "status: no collector" grep -qE "^no collector at +$work/socket\$" "$work/out"
	check "status: the process" grep -qE "^ *$pid +test_shm_versio " "$work/out"
	check "status: the host's limit" grep -qE ' 3/9' "$work/out"
	check "status as JSON" answers status
	check "show process" exits 0 show process
	check "show process: a line" grep -qE "^ *$pid +test_shm_versio +$(id -u) " "$work/out"
	check "show process: one" exits 0 show process "$pid"
	check "show process: where" grep -qE "^$device +qp +3 " "$work/out"
	check "show process: types" grep -qE "^$device +qp_types +RC +3\$" "$work/out"
	check "show process: as JSON" answers show process "$pid"
	check "show device" exits 0 show device "$device"
	check "show kind" exits 0 show kind qp
	check "tenants need a collector" complains 3 "no collector at $work/socket" show tenant
	check "--socket asks only there" complains 3 "no collector at $work/other" -s "$work/other" status
	worker_end alone quit
	fresh
}

# followed type: how many events of that type the follower has printed
followed() {
	jq -c "select(.type == \"$1\")" "$work/follow" | wc -l
}
followed_is() {
	[ "$(followed "$1")" -eq "$2" ]
}

# The follower goes on when the collector is started again, and repeats nothing that it has printed.
restarted_follower() {
	background "$command" -j events -f -n 1 --tenant ours >"$work/follow" 2>"$work/follow.err" &
	follower=$!
	workers+=("$follower")
	check "events -f -n 1: one of the past" eventually followed_is left 1
	worker_start again
	check "events -f -n 1: and the news" eventually followed_is joined 1
	worker_end again quit
	check "events -f: before the restart" eventually followed_is left 2
	collector_end
	check "events -f: says that it waits" eventually grep -qF '; waiting for a collector' "$work/follow.err"
	background "$collector" --policy "$policy" >>"$work/collector.log" 2>&1 &
	collector_pid=$!
	workers+=("$collector_pid")
	check "another collector" eventually ready
	worker_start further
	check "events -f: goes on" eventually followed_is joined 2
	worker_end further quit
	check "events -f: to the end" eventually followed_is left 3
	check "events -f: repeats nothing" test "$(wc -l <"$work/follow")" -eq "$(sort -u "$work/follow" | wc -l)"
	check "events -f: says so once" test "$(wc -l <"$work/follow.err")" -eq 1
	check "events -f: is still there" kill -0 "$follower"
	kill -STOP "$follower" # what happens meanwhile is sent by the collector, or asked for later
	worker_start late
	worker_end late quit
	kill -CONT "$follower"
	check "events -f: after a pause" eventually followed_is left 4
	kill "$follower"
}

# Which events are printed: all these options together choose.
choose_events() {
	local line

	full_tenant_begin
	check "a change" exits 0 limit set tenant theirs qp=5
	while IFS='|' read -r line expected; do
		read -ra words <<<"$line"
		check "events $line" answers events "${words[@]}"
		check "events $line: these" same "$(jq -r '.events[].type' "$work/out" | sort -u | tr '\n' ' ')" "$expected"
	done <<-'END'
		--type refused|refused 
		--type refused --type limits|limits refused 
		--tenant ours --type refused --type limits|refused 
		--tenant theirs|
		--kind qp|refused 
		--kind mr|
		--kind qp --kind mr --tenant ours|refused 
		-n 1|limits 
		-n 0|
		-n 1 --tenant ours --type joined --type refused|refused 
		--since 1h --kind qp|refused 
		--since 2100-01-01|
	END
	check "events -n: the latest" answers events -n 2
	check "events -n: as many" test "$(jq '.events | length' "$work/out")" -eq 2
	check "events: for people" exits 0 events --type limits
	check "events: only these" not grep -q refused "$work/out"
	check "no such type" complains 2 "--type: unknown type of event 'x': expected one of: refused, tolerated," events --type x
	check "no such kind" complains 2 "--kind: unknown kind 'x': rdma_intercept show kind lists them" events --kind x
	check "a type is no kind" complains 2 "use --type refused" events --kind refused
	check "no number" complains 2 "--number: invalid value 'many'" events -n many
	check "events: no such tenant" complains 1 "--tenant: there is no tenant 'nosuch', and no event of one" events --tenant nosuch
	check "no tenant" complains 2 "--tenant: invalid value ''" events --tenant ''
	background "$command" -j events -f --type joined --kind qp --type refused >"$work/follow" &
	follower=$!
	workers+=("$follower")
	check "events -f --type --kind: the past" eventually followed_is refused 1
	check "a fifth QP again" ask one qp refused
	check "events -f --type --kind: the news" eventually followed_is refused 2
	check "events -f --type --kind: nothing else" followed_is joined 0
	kill "$follower"
	check "completion of types" completes 'events --type ' refused limits share
	check "completion of kinds" completes 'events --kind m' mr mr_bytes
	worker_end one quit
}

follow_events() {
	full_tenant_begin
	background "$command" -j events -f >"$work/follow" 2>"$work/follow.err" &
	follower=$!
	workers+=("$follower")
	check "events -f: the past" eventually grep -qF "\"id\":\"$pid-1\"" "$work/follow"
	check "what was advised" exits 0 limit set tenant ours qp=5
	check "helps" ask one qp ok
	check "events -f: the news" eventually grep -qF '"type":"limits"' "$work/follow"
	worker_end one quit
	check "events -f: the end" eventually grep -qF '"type":"left"' "$work/follow"
	cat "$work/follow" >>"$documents"
	note_document event <"$work/follow"
	check "events -f: an object per line" not grep -qvE '^\{"sequence":[0-9]+,.*\}$' "$work/follow"
	kill "$follower"
	background "$command" events -f >"$work/follow.text" 2>&1 &
	follower=$!
	workers+=("$follower")
	check "events -f: for people" eventually grep -qE ' left +ours +' "$work/follow.text"

	restarted_follower
	collector_end
	check "nobody listens" complains 3 'no collector at' status
	check "doctor: a stale socket" exits 1 doctor
	check "doctor: says so" grep -qE '^FAIL +socket +.* is stale' "$work/out"
}

what_the_kernel_has() {
	collector_begin
	check "status: no monitor" exits 0 status
	check "status: says so" grep -qE "^monitor +none; $monitor: no rdma_monitor" "$work/out"
	check "doctor: no monitor" exits 0 doctor
	check "doctor: what to do" grep -qE '^WARN +monitor +.*no rdma_monitor.*; start it: (systemctl start rdma_monitor|rdma_monitor --keep); programs without the library are not seen$' "$work/out"
	check "doctor: as JSON" answers doctor
	worker_start two
	check "a guarded QP" ask two qp ok
	pid=${pid_two:?}
	background sleep 1000 &
	bare=$!
	workers+=("$bare")
	check "a monitor that has nothing to tell" counts 1
	check "status: its mode" eventually watched fentry
	check "doctor: watched" exits 0 doctor
	check "doctor: by what" grep -qE '^OK +monitor +the kernel is watched by fentry$' "$work/out"
	check "a monitor that sees more" counts 1 "$bare" "$device" raw qp 7 "$bare" "$device" raw mr_bytes 3145728 \
		"$pid" "$device" worker qp 4
	check "status: one is uncovered" eventually watched 'fentry, 1 uncovered.*'
	check "status: and one drifts" eventually watched 'fentry, 1 uncovered, 1 drifting'
	check "status: whose" grep -qE '^ours +enforce +1 .* 1/4 \(11\).* UNCOVERED, DRIFT$' "$work/out"
	check "status: the host" grep -qE '^ +1 .* 1/100 \(11\)' "$work/out"
	check "status: as JSON" answers status
	check "status: the monitor in it" says out '"monitor":{"mode":"fentry","problem":null,"uncovered":1,"drifting":1,"lost_objects":0,"lost_rows":0,"observed":["ctx",'
	check "status: the state in it" says out '"state":["uncovered","drift"]'
	check "show process: both" exits 0 show process
	check "show process: uncovered" grep -qE "^ *$bare +raw +$(id -u) +$(id -un) +ours +enforce .* 0/5 \(7\) .*0 \(3M\).* UNCOVERED\$" "$work/out"
	check "show process: drift" grep -qE "^ *$pid +test_shm_versio .* 1/5 \(4\) .* DRIFT\$" "$work/out"
	check "show process: as JSON" answers show process
	check "show process: states" says out '"state":["uncovered"]'
	check "show process: one" exits 0 show process "$pid"
	check "show process: titles" grep -qE '^DEVICE +KIND +USED +KERNEL +DRIFT +LEASED' "$work/out"
	check "show process: beside each other" grep -qE '^ +qp +1 +4 +\+3 ' "$work/out"
	check "show process: on the device" grep -qE "^$device +qp +1 +4 " "$work/out"
	check "show process: one as JSON" answers show process "$pid"
	check "show process: exactly" says out '"qp":{"used":1,"kernel":4,"drift":3,'
	check "show process: an uncovered one" exits 0 show process "$bare"
	check "show process: its bytes" grep -qE "^$device +mr_bytes +0 +3M " "$work/out"
	check "show tenant: the sum" exits 0 show tenant ours
	check "show tenant: and what differs" grep -qE '^ +qp +1 +11 +\+3 ' "$work/out"
	check "show kind: the largest first" exits 0 show kind qp
	check "show kind: the uncovered one" first_process "$bare"
	check "show device: what is there" exits 0 show device "$device"
	check "show device: who" grep -qE "^ *$bare +raw .* 0/?[^ ]* \(7\).* UNCOVERED\$" "$work/out"
	check "show device: as JSON" answers show device "$device"
	check "events: uncovered" exits 0 events
	check "events: why" grep -qE " uncovered +ours +$bare +- +raw: the library is not loaded\$" "$work/out"
	check "events: drift" grep -qE " drift +ours +$pid +- +the kernel's counts differ from the books: .*qp \+3" "$work/out"
	check "events: as JSON" answers events
	check "doctor: uncovered" exits 0 doctor
	check "doctor: how many" grep -qE '^WARN +monitor +watching by fentry; processes uncovered: 1, drifting: 1; ' "$work/out"
	check "a monitor that lost something" counts lost
	check "status: as well" eventually watched 'fentry, 7 objects lost'
	check "doctor: that is bad" exits 1 doctor
	check "doctor: and why" grep -qE '^FAIL +monitor +watching by fentry; tables were full, and 7 objects are not counted' "$work/out"
	rm -r "$monitor"
	check "no monitor any more" eventually watched "none; $monitor: no rdma_monitor is loaded"
	check "show process: no column then" exits 0 show process "$pid"
	check "show process: not even a title" not says out KERNEL
	check "show process: null in JSON" answers show process "$pid"
	check "show process: indeed" says out '"qp":{"used":1,"kernel":null,"drift":null,'
	worker_end two quit
	kill "$bare"
}

what_the_kernel_refuses() {
	collector_begin
	guests=$RDMA_COLLECTOR_CGROUPS/guests
	mkdir "$guests" "$RDMA_COLLECTOR_DEVICES/$device"
	check "guard: nobody is" exits 0 guard status
	check "guard: says so" grep -qE '^ours +no .* off$' "$work/out"
	check "doctor: nothing to say of it" exits 0 doctor
	check "doctor: indeed" grep -qE '^SKIP +guard +no tenant has guard = on$' "$work/out"
	check "guard: no such tenant" complains 1 "no tenant 'guests'" guard status guests
	check "guard on: no such tenant" complains 1 "'guests'" guard on guests
	check "guard: a tenant" exits 0 tenant add guests --match 'cgroup=/guests' qp=4
	check "guard on: there is no guard" complains 1 "tenant guests: guard = on is set, but nothing is guarded: $monitor: no rdma_monitor is loaded" guard on guests
	check "guard: no monitor" guarded "not guarded: $monitor: no rdma_monitor is loaded"
	check "guard: as JSON" answers guard status
	check "guard: a word for it" says out '"guarantee":"none","reason":"'
	check "doctor: not guarded" exits 0 doctor
	check "doctor: why" grep -qE '^WARN +guard +1 of 1 tenants .* guests: .*no rdma_monitor' "$work/out"
	touch "$guests/rdma.max"
	check "guard: a limit for it" exits 0 limit set tenant guests ctx=2
	check "guard on: rdma.max is not enough" complains 1 "tenant guests: guard = on is set, but only rdma.max limits it: $monitor: no" guard on guests
	check "guard: rdma.max" guarded "rdma.max only: $monitor: no rdma_monitor is loaded"
	check "guard: what it has" grep -qx "$device hca_handle=2 hca_object=max" "$guests/rdma.max"
	check "a guard" "$build/tests/daemon_guards" files "$monitor" 4000009
	check "guard: in the kernel" eventually guarded 'in the kernel'
	check "guard on" exits 0 guard on guests
	check "guard on: what it guarantees" grep -qE '^guests +in the kernel$' "$work/out"
	check "guard on: as JSON" answers guard on guests
	check "guard on: what it was" says out '{"sections":["tenant guests"],"tenants":[{"name":"guests","guarantee":"kernel","reason":null}]}'
	check "guard: once more" guarded 'in the kernel'
	check "guard: how" grep -qE '^ways +ioctl, compat, write$' "$work/out"
	check "guard: what is left out" says out 'by the library only: ctx'
	check "a guard that counted" "$build/tests/daemon_guards" counts "$monitor"
	check "guard: one" exits 0 guard status guests
	check "guard: its kinds" grep -qE '^qp +yes +3 +4 +2 +1$' "$work/out"
	check "guard: one as JSON" answers guard status guests
	check "guard: its guarantee" says out '"guarantee":"kernel","reason":null'
	check "guard: its limit" says out '"qp":{"guarded":true,"used":3,"limit":4,"refused":2,"overrun":1}'
	check "guard: no limits of ports" says out '"port_limits":false'
	check "guard: a limit of a port" exits 0 limit set tenant guests "process.port.$device/1.qp=2"
	check "guard: its limits of ports" exits 0 guard status guests
	check "guard: only the library keeps them" says out 'but by the library only: limits of ports that hold for tenant guests.'
	check "guard: a limit of a port less" exits 0 limit unset tenant guests "process.port.$device/1.qp"
	check "doctor: guarded" exits 0 doctor
	check "doctor: by the kernel" grep -qE '^OK +guard +tenants that the kernel guards: 1$' "$work/out"
	check "events: of the guard" exits 0 events
	check "events: by whom" grep -qE ' refused +guests +4000009 +- +intruder: refused in the kernel: qp used 4/4, .* event 4000009-1$' "$work/out"
	check "explain: in the kernel" exits 0 explain 4000009-1
	check "explain: whose guard" says out 'Refused in the kernel (guard of tenant guests).'
	check "explain: what helps" says out 'rdma_intercept limit set tenant guests qp=5'
	check "explain: as JSON" answers explain 4000009-1
	check "explain: the ring" says out '"ring":"kernel"'
	check "guard off" exits 0 guard off guests
	check "guard: off" guarded off
	check "guard: rdma.max is wide again" grep -qx "$device hca_handle=max hca_object=max" "$guests/rdma.max"
	check "completion of guarded tenants" completes 'guard on guests ' ours guests
	check "guard: the tenant goes" exits 0 tenant remove guests
	rm -r "$monitor"
}

bad_names_and_terminals() {
	collector_begin
	evil=$'\e[31m"red"'
	ln -s "$build/test_shm_version" "$work/$evil"
	mkfifo "$work/evil.in"
	background env LD_PRELOAD="$preload" "$work/$evil" --worker <"$work/evil.in" >"$work/evil.out" 2>&1 &
	workers+=("$!")
	exec {evil_fd}>"$work/evil.in"
	echo qp >&"$evil_fd"
	check "a program with a bad name" eventually grep -q ok "$work/evil.out"
	check "show process: with it" exits 0 show process
	check "show process: escaped" says out '\x1b[31m"red"'
	check "show process: no escape" not grep -q $'\e' "$work/out"
	check "show process: as JSON" answers show process
	check "show process: escaped there, too" says out '\u001B[31m\"red\"'

	if command -v script >/dev/null; then
		limit_all() {
			"$command" limit set tenant ours qp=1
		}
		check "a limit that is reached" limit_all
		in_terminal 200 status
		check "terminal: red where it is full" grep -q $'\e\\[31m!! 1/1\e\\[m' "$work/screen"
		check "terminal: a table" grep -q '^NAME ' "$work/screen"
		in_terminal 200 --color=never status
		check "terminal: no colours if not wanted" not grep -q $'\e\\[3' "$work/screen"
		NO_COLOR=1 in_terminal 200 status
		check "terminal: NO_COLOR" not grep -q $'\e\\[3' "$work/screen"
		TERM=dumb in_terminal 200 status
		check "terminal: a dumb one" not grep -q $'\e\\[3' "$work/screen"
		NO_COLOR=1 in_terminal 200 --color always status
		check "terminal: unless asked for" grep -q $'\e\\[3' "$work/screen"
		in_terminal 20 status
		check "narrow terminal: a list" grep -qE '^name +ours' "$work/screen"
		check "narrow terminal: with what the table has" grep -q '!! 1/1' "$work/screen"
		check "narrow terminal: in place of it" not grep -q '^NAME ' "$work/screen"
		in_terminal 1 doctor
		check "the narrowest terminal" grep -q 'library' "$work/screen"
	else
		skip_part "script is not installed; terminals were not tried"
	fi
	check "--color=always" exits 0 --color=always status
	check "has colours" grep -q $'\e\\[31m' "$work/out"
	exec {evil_fd}>&-
}

other_users() {
	collector_begin
	if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		as_nobody() {
			try setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
		}
		as_nobody "$command" limit set host qp=1
		check "others may not change" test "$status" -eq 4
		check "and hear so" says err 'rdma_intercept: limit set: not permitted: expected root'
		as_nobody "$command" status
		check "but may look" test "$status" -eq 0
		mkdir -m 777 "$work/theirs"
		setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL "$collector" --policy "$policy" \
			--socket "$work/theirs/socket" --state "$work/theirs/state" >>"$work/collector.log" 2>&1 &
		theirs=$!
		workers+=("$theirs")
		check "their server starts" eventually test -S "$work/theirs/socket"
		check "the server of another is not trusted" complains 4 'uid 65534' -s "$work/theirs/socket" status
		check "doctor: nor there" exits 1 -s "$work/theirs/socket" doctor
		check "doctor: says whose it is" grep -qE '^FAIL +socket +.* belongs to user 65534' "$work/out"
		kill "$theirs"
		wait "$theirs" || true
	else
		skip_part "not root, or no setpriv; other users were not tried"
	fi
}
