# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scenarios of Slurm share: slurmctld, slurmd and munge of their own, on the hosts of the lab.
# Jobs run in control groups of the unified hierarchy, which slurmd makes itself
# (IgnoreSystemd=yes). $slurm is the directory of everything that belongs to Slurm.
# shellcheck disable=SC2034 # for the scenarios
. lab/lib.sh
slurm=/run/slurm
export SLURM_CONF=$slurm/slurm.conf
host_name=$(hostname)
plugin=$BUILD_DIRECTORY/spank_rdma_intercept.so

for program in slurmctld slurmd srun munged; do
	command -v $program >/dev/null ||
		skip "$program is not installed; ./build_all.sh test installs its package"
done
[ -e "$plugin" ] || skip "the plugin was not built: libslurm-dev was not installed"

# slurm_configure NODES...: files of the configuration
slurm_configure() {
	local controller=$1
	mkdir -p $slurm/{state,spool,munge} /sys/fs/cgroup/system.slice
	chmod 755 $slurm
	cat >$slurm/slurm.conf <<-END
		ClusterName=lab
		SlurmctldHost=$controller
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$slurm/munge/socket
		CredType=cred/munge
		StateSaveLocation=$slurm/state
		SlurmdSpoolDir=$slurm/spool
		SlurmctldPidFile=$slurm/slurmctld.pid
		SlurmdPidFile=$slurm/slurmd.pid
		SlurmctldLogFile=$slurm/slurmctld.log
		SlurmdLogFile=$slurm/slurmd.log
		SlurmctldDebug=info
		SlurmdDebug=info
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		MpiDefault=none
		SwitchType=switch/none
		SchedulerType=sched/builtin
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SlurmdParameters=config_overrides
		MessageTimeout=60
		BatchStartTimeout=60
		SlurmctldTimeout=600
		SlurmdTimeout=600
		KillWait=2
		CompleteWait=0
		ReturnToService=2
		PlugStackConfig=$slurm/plugstack.conf
		$(for node; do echo "NodeName=$node CPUs=64 State=UNKNOWN"; done)
		PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
	END
	cat >$slurm/cgroup.conf <<-END
		CgroupPlugin=cgroup/v2
		IgnoreSystemd=yes
		ConstrainCores=no
		ConstrainRAMSpace=no
	END
	touch $slurm/plugstack.conf
}
slurm_munge() {
	# Every host has the same key. It is no secret: the guests end with the scenario.
	printf '%01024d' 7 >$slurm/munge/key
	chmod 400 $slurm/munge/key
	chown -R munge: $slurm/munge
	chmod 755 $slurm/munge
	setpriv --reuid munge --regid munge --clear-groups munged --force --socket $slurm/munge/socket \
		--key-file $slurm/munge/key --pid-file $slurm/munge/pid --log-file $slurm/munge/log \
		--seed-file $slurm/munge/seed --num-threads 2
}
# slurm_start: all of them on this host, until it takes jobs
node_takes_jobs() { sinfo -h -o %T | tee "$scratch/rows" | grep -qxE 'idle|mixed'; }
# slurmd starts after it: one that came too early was not registered for minutes.
controller_answers() { scontrol ping 2>/dev/null | grep -q ' is UP'; }
slurm_start() {
	slurm_munge
	slurmctld
	check "slurmctld answers" eventually controller_answers
	slurmd
	check "the node takes jobs" eventually node_takes_jobs
}
# slurmd_kill: it ends with all that it runs, and leaves their control groups empty or removed, as when
# the host is switched off
slurmd_kill() {
	local group
	kill -9 "$(<$slurm/slurmd.pid)"
	for group in /sys/fs/cgroup/system.slice/*slurmstepd.scope; do
		echo 1 >"$group/cgroup.kill"
		check "nothing of it runs" eventually grep -qx 'populated 0' "$group/cgroup.events"
		find "$group" -mindepth 1 -depth -type d -exec rmdir {} +
	done
}
slurm_stop() {
	kill "$(<$slurm/slurmd.pid)" "$(<$slurm/slurmctld.pid)" "$(<$slurm/munge/pid)"
}
