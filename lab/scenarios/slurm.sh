#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Slurm with the SPANK plugin: a job's options limit it, by the library and by the guard, and never
# beyond what the policy gives to jobs; the job is a tenant while it runs, and nothing of it is left
# after its end, whichever end that is: by itself, by scancel, with a prolog that is killed, with a
# collector that starts again, or without an epilog. Many jobs at once: RDMA_INTERCEPT_TEST_FACTOR
# above 1 makes it 50.
# shellcheck disable=SC2317 # functions that check calls
set -euo pipefail
. lab/slurmlib.sh
intruder=$BUILD_DIRECTORY/lab/intruder lives=$BUILD_DIRECTORY/lab/lives
case $(uname -r) in 5.10.*) skip "the guard needs a kernel that keeps programs of fentry and LSM (5.15)" ;; esac
many=12
[ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -le 1 ] || many=50
chmod 755 "$scratch" && chmod 666 /dev/infiniband/*
mkdir "$scratch/jobs" && chmod 777 "$scratch/jobs"

cat >"$scratch/policy" <<-END
	[tenant job-%j]
	match = job=*
	qp = 8
	# so that the guard is armed before the first job
	[tenant guests]
	match = cgroup=/guests/*
	guard = on
END
mkdir -p /sys/fs/cgroup/guests
collector_with() { # the policy, and the same books each time
	export RDMA_COLLECTOR_SOCKET=$scratch/run/sock RDMA_COLLECTOR_STATE=$scratch/state
	mkdir -p "$scratch/run"
	apart "$BUILD_DIRECTORY/collector_server" --policy "$scratch/policy" >>"$scratch/collector" 2>&1 &
	collector=$!
	check "the collector answers" eventually collector_answers
}
armed() { "$command" guard status guests >"$scratch/rows" 2>&1 && grep -q kernel "$scratch/rows"; }

# fill PROGRAM...: makes queue pairs one by one, 10 at most; the last number that it prints is how many
cat >"$scratch/fill" <<-END
	#!/bin/sh
	yes +1 | head -n 10 | $lives batches rxe0 2>&1 | sed -n 's/^ok //p' | tail -n 1
END
chmod +x "$scratch/fill"
# as_user COMMAND...: of Slurm, by a user without privileges
as_user() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
tenants() { "$command" show tenants 2>/dev/null | awk 'NR > 1 { print $1 }' | grep -v -x -e default -e guests; }
no_tenants() { ! tenants >"$scratch/rows"; }
has_tenant() { tenants | tee "$scratch/rows" | grep -qx "$1"; }
no_files() { ! grep -qs job "$scratch/state/runtime.conf" && ! ls -d /sys/fs/cgroup/system.slice/*/job_* >"$scratch/rows" 2>/dev/null; }
# Places of processes in the collector's books, and their leases.
no_places() { [ "$("$command" -j status | tee "$scratch/rows" | jq -c '[.collector | .processes, .leases]')" = '[0,0]' ]; }
nothing_left() { # TEXT
	check "$1: no process is registered, no lease is left" eventually no_places
	check "$1: no tenant is left" eventually no_tenants
	check "$1: no section in the collector's state, no control group" eventually no_files
}
gone() { ! squeue -h -o %i | tee "$scratch/rows" | grep -q .; }
prints() { # EXPECTED COMMAND...
	local expected=$1
	shift
	"$@" >"$scratch/rows" 2>&1 || true
	[ "$(tail -n 1 "$scratch/rows")" = "$expected" ]
}

monitor_start
collector_with
check "the guard is armed" eventually armed
slurm_configure "$host_name"
plugin_line() { echo "optional $plugin library=$library socket=$RDMA_COLLECTOR_SOCKET $*" >$slurm/plugstack.conf; }
plugin_line guard=on
slurm_start

echo "-- options"
srun --help >"$scratch/help" 2>&1
check "srun --help has --rdma-max-qp" grep -q -e '--rdma-max-qp=COUNT' "$scratch/help"
refused() { # WORDS COMMAND...
	local words=$1
	shift
	! "$@" >"$scratch/rows" 2>&1 && grep -q -e "$words" "$scratch/rows"
}
check "a wrong count is refused at submission" refused "rdma-max-qp: invalid value 'x': expected a count" \
	srun --rdma-max-qp=x true
check "a wrong rate is refused by sbatch" refused "rdma-rate: unknown class 'fly'" \
	sbatch --rdma-rate=fly=1/s --wrap true

echo "-- limits"
cat >"$scratch/look" <<-END
	#!/bin/sh
	$scratch/fill
	$command show tenants | sed -n 's/^\(job-[0-9]*\) .*/tenant \1/p'
	tr '\0' '\n' </proc/\$\$/environ | sed -n 's/^LD_PRELOAD=/preload /p'
	echo "guarded \$($intruder fill qp 10 </dev/null)"
END
chmod +x "$scratch/look"
other=/lib/x86_64-linux-gnu/libm.so.6
mark
as_user env LD_PRELOAD="$other" srun --rdma-max-qp=4 "$scratch/look" >"$scratch/out" 2>&1 || true
cp "$scratch/out" "$scratch/rows"
check "srun --rdma-max-qp=4: the library makes 4 ($(elapsed) ms)" grep -qx 4 "$scratch/out"
check "its tasks have the library, and what the user preloads" grep -qx "preload $library:$other" "$scratch/out"
check "a program without the library gets 4 from the guard" grep -qx 'guarded made 4 errno 122' "$scratch/out"
check "show tenant shows the job" grep -qE '^tenant job-[0-9]+$' "$scratch/out"
job=$(sed -n 's/^tenant job-//p' "$scratch/out" | head -n 1)
nothing_left "after the job"
figures() { scontrol show job "$job" | tee "$scratch/rows" | grep -q "AdminComment=rdma node=$host_name tenant=job-$job .*peak.qp=4.* refused.qp=1"; }
check "its figures are in AdminComment" figures
check "and in slurmd's log" grep -q "job $job: rdma node=$host_name tenant=job-$job .*peak.qp=4" $slurm/slurmd.log
check "without an option the policy's rule counts" prints 8 as_user srun "$scratch/fill"
check "an option cannot raise it" prints 8 as_user srun --rdma-max-qp=100 "$scratch/fill"

echo "-- a tenant that jobs share"
sed 's/^\[tenant job-%j]/[tenant batch]/' "$scratch/policy" >"$scratch/policy.new"
cp "$scratch/policy" "$scratch/policy.pattern"
mv "$scratch/policy.new" "$scratch/policy"
check "another policy" "$command" reload --replace
check "a job stays in a tenant that it shares" prints 8 as_user srun --rdma-max-qp=4 "$scratch/fill"
check "slurmd's log says that the option has no effect" grep -q 'its options have no effect' $slurm/slurmd.log
plugin_line guard=on within=batch
check "within=batch makes it a tenant of its own" prints 4 as_user srun --rdma-max-qp=4 "$scratch/fill"
plugin_line guard=on
mv "$scratch/policy.pattern" "$scratch/policy"
check "the former policy" "$command" reload --replace

echo "-- steps of a job"
cat >"$scratch/steps" <<-END
	srun $scratch/fill
	scontrol update JobId=\$SLURM_JOB_ID AdminComment='of the site'
	srun --rdma-max-qp=2 true
	# another job, whose prolog and epilog look for what was left behind
	env -i SLURM_CONF=$SLURM_CONF PATH=\$PATH srun true
	srun $scratch/fill
END
chmod 644 "$scratch/steps"
salloc --rdma-max-qp=4 sh "$scratch/steps" >"$scratch/out" 2>&1 || true
cp "$scratch/out" "$scratch/rows"
check "the steps of salloc --rdma-max-qp=4 have its limit, also after others' jobs" \
	test "$(grep -cx 4 "$scratch/out")" -eq 2
check "a step cannot have limits of its own" grep -q 'rdma-max-qp: job [0-9]* has its limits already' "$scratch/out"
job=$(sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p' "$scratch/out")
kept() { scontrol show job "$job" | tee "$scratch/rows" | grep -q "AdminComment=of the site; rdma node=$host_name "; }
check "what the site has written into AdminComment stays" kept
nothing_left "after salloc"

echo "-- the collector starts again; scancel"
cat >"$scratch/two" <<-END
	#!/bin/sh
	$scratch/fill >$scratch/jobs/before
	until [ -e $scratch/jobs/go ]; do sleep 0.2; done
	$scratch/fill >$scratch/jobs/after
	exec sleep infinity
END
job=$(as_user sbatch --parsable --rdma-max-qp=4 -o "$scratch/jobs/out" "$scratch/two")
check "the job makes 4" eventually grep -sqx 4 "$scratch/jobs/before"
collector_kill
collector_with
check "the next collector knows the job" has_tenant "job-$job"
touch "$scratch/jobs/go"
check "the job makes 4 again" eventually grep -sqx 4 "$scratch/jobs/after"
scancel "$job"
nothing_left "after scancel"

echo "-- without prolog, epilog, or a job"
cat >$slurm/prolog <<-END
	#!/bin/sh
	[ ! -e $slurm/kill ] || kill -9 \$\$
END
chmod +x $slurm/prolog
echo "Prolog=$slurm/prolog" >>$slurm/slurm.conf
scontrol reconfigure
touch $slurm/kill
job=$(as_user sbatch --parsable --no-requeue --rdma-max-qp=4 -o /dev/null --wrap true)
failed() { grep -q "job $job\b\|JobId=$job\b" <(grep -ih 'prolog.*fail' $slurm/slurmctld.log $slurm/slurmd.log); }
check "the prolog of a job is killed" eventually failed
rm $slurm/kill
scancel "$job" 2>/dev/null || true
check "the job is gone" eventually gone
scontrol update nodename="$host_name" state=resume 2>"$scratch/rows" || true
check "the node takes jobs again" eventually node_takes_jobs
"$command" tenant add job-99999 --match 'first job=99999' within=job-%j >/dev/null
"$command" tenant add job-4 --match 'first job=4' within=job-%j >/dev/null
check "tenants of an unknown job, and of one that is over" has_tenant job-99999
check "another job runs" prints 8 as_user srun "$scratch/fill"
nothing_left "after the next job"

echo "-- the node starts again"
job=$(as_user sbatch --parsable --no-requeue --rdma-max-qp=4 -o /dev/null --wrap "sleep infinity")
running() { ls -d /sys/fs/cgroup/system.slice/*/job_"$job"/step_batch >/dev/null 2>&1; }
check "a job runs" eventually running
check "it is a tenant" has_tenant "job-$job"
slurmd_kill
collector_kill
scontrol update nodename="$host_name" state=down reason=off
check "Slurm ends the job, without an epilog" eventually gone
collector_with
check "the next collector has its tenant" has_tenant "job-$job"
slurmd
scontrol update nodename="$host_name" state=resume
check "the node takes jobs" eventually node_takes_jobs
check "another job runs" prints 8 as_user srun "$scratch/fill"
nothing_left "after it"

echo "-- $many jobs at once"
array=$(as_user sbatch --parsable --array "1-$many" --rdma-max-qp=3 -o /dev/null \
	--wrap "$scratch/fill >$scratch/jobs/\$SLURM_ARRAY_TASK_ID; sleep infinity")
mark
all_filled() { [ "$(cat "$scratch"/jobs/[0-9]* 2>/dev/null | grep -cx 3)" -eq "$many" ]; }
check "each makes 3" eventually all_filled
echo "      ($(elapsed) ms)"
all_there() { [ "$(tenants | tee "$scratch/rows" | grep -c .)" -eq "$many" ]; }
check "each is a tenant" eventually all_there
scancel "$array"
mark
check "they end" eventually gone
echo "      ($(elapsed) ms)"
nothing_left "after them"
monitor_stop
slurm_stop
finish
