#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whoever has objects in the kernel and does not run under the library is shown, within two
# seconds: a program that was never preloaded, a static one, one that took the preload out of
# its environment, and one that switched the library off. A process under the library is not shown so.
# Tenants of patterns are made for the job and the container of a cgroup, also for an uncovered process.
set -euo pipefail
. lab/lib.sh
objects=$BUILD_DIRECTORY/lab/objects paths=$BUILD_DIRECTORY/lab/paths

# state_of PID: the states of a process, as the collector shows them
state_of() { "$command" -j show process "$1" 2>/dev/null | tr -d ' \n' | grep -o '"state":\[[^]]*\]' | head -n 1; }
is() { grep -q "\"$2\"" <<<"$(state_of "$1")"; }
is_not() { [ -n "$(state_of "$1")" ] && ! is "$1" "$2"; }
known() { "$command" -j status | tr -d ' \n' | grep -o '"uncovered":[0-9]*' | head -n 1 | grep -o '[0-9]*'; }
knows() { [ "$(known)" = "$1" ]; }

# shown NAME PID: it becomes uncovered in time, and says how long that took
shown() {
	local start
	start=$(date +%s%N)
	eventually is "$2" uncovered || return 1
	echo "      ($1: $((($(date +%s%N) - start) / 1000000)) ms after it was there)"
}

cat >"$scratch/policy" <<'END'
[tenant guests]
match = uid=65534
qp = 7
[tenant job-%j]
match = job=*
qp = 2
[tenant box-%c]
match = container=*
END
export RDMA_INTERCEPT_POLICY=$scratch/policy
monitor_start
collector_start
has_mode() { "$command" -j status | tr -d ' \n' | grep -q "\"monitor\":{\"mode\":\"\(fentry\|kprobe\)\""; }
check "the collector finds the monitor" eventually has_mode
check "nobody is uncovered" knows 0

guarded TRANSPORT=lease "$objects" hold 3 >"$scratch/guarded" 2>&1 &
covered=$!
check "a guarded process is there" eventually grep -q 'holding 3' "$scratch/guarded"

"$objects" hold 3 >"$scratch/plain" 2>&1 &
plain=$!
check "a process without the library is there" eventually grep -q 'holding 3' "$scratch/plain"
check "it is uncovered" shown plain $plain

mkfifo "$scratch/stdin"
"$paths" ioctl 4 <"$scratch/stdin" >"$scratch/static" 2>&1 &
static=$!
exec 7>"$scratch/stdin"
check "a static program is there" eventually grep -q '"qp":4' "$scratch/static"
check "it is uncovered" shown static $static

guarded TRANSPORT=lease env -u LD_PRELOAD "$objects" hold 2 >"$scratch/unset" 2>&1 &
unset=$!
check "one that took the preload away is there" eventually grep -q 'holding 2' "$scratch/unset"
check "it is uncovered" shown unset $unset

guarded 'ENABLE=0' "$objects" hold 2 >"$scratch/off" 2>&1 &
off=$!
check "one with the library switched off is there" eventually grep -q 'holding 2' "$scratch/off"
check "it is uncovered" shown off $off
check "with the library loaded, but inactive" is $off inactive
check "which the others are not" is_not $plain inactive

setpriv --reuid 65534 --clear-groups "$objects" hold 1 >"$scratch/guest" 2>&1 &
guest=$!
check "one of another tenant is there" eventually grep -q 'holding 1' "$scratch/guest"
check "it is uncovered" shown guest $guest
check "and shown with its tenant" bash -c "'$command' -j show process $guest | tr -d ' \n' | grep -q '\"tenant\":\"guests\"'"

check "the guarded one is covered" is_not $covered uncovered
check "and does not drift" is_not $covered drift
check "five are uncovered in all" eventually knows 5
check "people see it, too" bash -c "'$command' status | grep -q '5 .*uncovered'"
check "doctor says so" bash -c "'$command' doctor | grep monitor | grep -q 5"
host_qp() { "$command" -j status | python3 -c 'import json, sys; qp = json.load(sys.stdin)["host"]["kinds"]["qp"]; print(qp["used"], qp["kernel"])'; }
check "the host's books have 3 QPs, and the kernel 3 + 3 + 4 + 2 + 2 + 1" [ "$(host_qp)" = "3 15" ]

exec 7>&-
for pid in $covered $plain $unset $off $guest; do
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
done
wait $static || check "the static program ends well" false
check "when they have ended nobody is uncovered" eventually knows 0

# ---- tenants of patterns, by real cgroups

# in_group PATH COMMAND...: a program in this cgroup
in_group() {
	mkdir -p "/sys/fs/cgroup/$1"
	echo $BASHPID >"/sys/fs/cgroup/$1/cgroup.procs"
	shift
	if [ "$(type -t "$1")" = function ]; then
		"$@"
	else
		exec "$@"
	fi
}
# has_tenant NAME PATTERN: the line of the tenant in the table
has_tenant() { "$command" show tenants | grep -qE "^$1 +enforce +$2"; }
has_no_tenant() { ! "$command" show tenants | grep -q "^$1 "; }
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
in_group slurm/uid_0/job_4711/step_0 guarded TRANSPORT=lease "$objects" hold 2 >"$scratch/job" 2>&1 &
job=$!
check "a process of a job is there" eventually grep -q 'holding 2' "$scratch/job"
check "the pattern has made a tenant for the job" has_tenant job-4711 '1 .* 2/2'
(in_group slurm/uid_0/job_4711/step_1 guarded TRANSPORT=lease "$objects" hold 1) >"$scratch/step" 2>&1 || true
check "another step has the same limit" grep -q 'Disk quota exceeded' "$scratch/step"
(in_group slurm/uid_0/job_4712/step_0 guarded TRANSPORT=lease "$objects" hold 3) >"$scratch/other" 2>&1 || true
check "another job has a limit of its own" grep -qE 'tenant=job-4712 .* qp used 2/2' "$scratch/other"
in_group "system.slice/docker-$id.scope" "$objects" hold 3 >"$scratch/box" 2>&1 &
box=$!
check "a process of a container is there, without the library" eventually grep -q 'holding 3' "$scratch/box"
check "the pattern makes a tenant for an uncovered process, too" eventually has_tenant box-0123456789ab '0 .*UNCOVERED'
check "the process belongs to it" eventually bash -c "'$command' -j show process $box | tr -d ' \n' | grep -q '\"tenant\":\"box-0123456789ab\"'"
for pid in $job $box; do
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
done
check "the job's tenants end with it" eventually has_no_tenant job-4711
check "that of the other job has ended" eventually has_no_tenant job-4712
check "the container's tenant ends" eventually has_no_tenant box-0123456789ab

monitor_stop
no_monitor() { "$command" -j status | tr -d ' \n' | grep -q '"monitor":{"mode":"none"'; }
check "without a monitor the collector says so" eventually no_monitor
finish
