#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A job of Slurm on two hosts, with slurmctld on host 1: the collector of each host limits its part, and
# after the end nothing of it is left on either. Host 1 submits.
# hosts: 2
# label: long
# shellcheck disable=SC2317 # functions that check calls
set -euo pipefail
. lab/slurmlib.sh
lives=$BUILD_DIRECTORY/lab/lives
policy_make() { printf '[tenant job-%%j]\nmatch = job=*\nqp = 8\n' >"$scratch/policy"; }
policy_make
RDMA_INTERCEPT_POLICY=$scratch/policy collector_start
slurm_configure host1 host2
echo "optional $plugin library=$library socket=$RDMA_COLLECTOR_SOCKET" >$slurm/plugstack.conf
cat >/run/fill <<-END
	#!/bin/sh
	export RDMA_COLLECTOR_SOCKET=\$(echo /tmp/scenario.*/sock)
	yes +1 | head -n 10 | $lives batches rxe0 2>&1 | sed -n 's/^ok //p' | tail -n 1 | sed "s/^/\$(hostname) /"
END
chmod +x /run/fill
slurm_munge
barrier "munge runs"
[ "$host" -ne 1 ] || slurmctld
check "slurmctld answers" eventually controller_answers
barrier "slurmctld answers both hosts"
slurmd
if [ "$host" -eq 1 ]; then
	both() { [ "$(sinfo -h -N -o %T | tee "$scratch/rows" | sort -u)" = idle ]; }
	check "both nodes take jobs" eventually both
	srun -N 2 --rdma-max-qp=4 /run/fill >"$scratch/out" 2>&1 || true
	sort "$scratch/out" >"$scratch/rows"
	check "each host lets the job have 4" test "$(paste -sd' ' "$scratch/rows")" = 'host1 4 host2 4'
	figures() { scontrol show job 1 | tee "$scratch/rows" | grep -q 'AdminComment=rdma node=host1 .*peak.qp=4'; }
	check "the figures of the first host are in AdminComment" figures
fi
barrier "the job has ended"
logged() { grep -qs "job 1: rdma node=host$host .*peak.qp=4" $slurm/slurmd.log; }
check "slurmd's log has those of this host" eventually logged
no_tenants() { "$command" show tenants >"$scratch/rows" && ! grep -q '^job-' "$scratch/rows"; }
check "no tenant is left" eventually no_tenants
barrier "all is looked at"
kill "$(<$slurm/slurmd.pid)"
[ "$host" -ne 1 ] || kill "$(<$slurm/slurmctld.pid)"
kill "$(<$slurm/munge/pid)"
finish
