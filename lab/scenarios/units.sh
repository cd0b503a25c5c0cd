#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The units under systemd, on a host that was set up by the lines of docs/whole-host.md: start, limits,
# programs of ours that are killed, stopped, restarted, replaced by another release and ended, while
# guarded programs keep their objects; policies that are reloaded, good and bad; and what the
# collector needs works inside the sandbox of its unit.
# init: systemd
set -euo pipefail
. lab/unitlib.sh
intruder=$BUILD_DIRECTORY/lab/intruder
guardrows=$BUILD_DIRECTORY/lab/guardrows
refusal=122 # EDQUOT
command=/usr/local/bin/rdma_intercept

guard_armed() {
	"$guardrows" head 2>/dev/null | grep -q 'armed 1 ' &&
		[ "$("$guardrows" limits /sys/fs/cgroup/guests.slice/1 qp 2>/dev/null)" = 'qp 5' ]
}

# The host has built everything; here make would look at each file of the tree again, which takes an
# emulated processor minutes. What it does then is this:
mkdir "$scratch/bin"
cat >"$scratch/bin/make" <<-END
	#!/bin/sh
	[ "\$*" = "-C build install" ] || { echo "make \$*: expected -C build install" >&2; exit 2; }
	exec cmake --install "$BUILD_DIRECTORY"
END
chmod +x "$scratch/bin/make"

mkdir -p /sys/fs/cgroup/guests.slice/1

echo "-- the lines of docs/whole-host.md"
check "they are five" test "$(lines docs/whole-host.md | wc -l)" -eq 5
paste_lines docs/whole-host.md
check "collector, monitor and page answer" eventually all_answer
check "the collector tells systemd its policy" status_says collector_server "policy $policy is in force"
check "the monitor tells how it watches" status_says rdma_monitor '^watching by '
check "the dashboard tells that the collector answers" eventually status_says rdma_dashboard 'the collector answers'

echo "-- limits, reload"
# policy_make LIMIT: the example that these lines installed, edited
policy_make() {
	sed -e 's/^mode = audit/mode = enforce/' -e "/^\[tenant default]/,/^\[/s/^qp = .*/qp = $1/" \
		-e '/^\[tenant guests]/,/^$/s/^qp = .*/qp = 5/' packaging/policy.conf.example >"$policy.new"
	mv "$policy.new" "$policy"
}
policy_make 20
check "a good policy is reloaded" systemctl reload collector_server
check "and the status says so" eventually status_says collector_server 'is in force'
begin holder "$lives" batches rxe0
says holder 'ok 0'
tell holder +20
says holder 'ok 20'
counted 20 "at the limit"
full "at the limit"
echo '[nonsense' >>"$policy"
reload_fails() { ! systemctl reload collector_server 2>"$scratch/rows"; }
check "a bad policy is not" reload_fails
check "systemctl status shows why" eventually status_says collector_server "$policy:[0-9]*: .*the old policy stays"
check "the service goes on" active collector_server
full "with a bad policy"
policy_make 20
check "the good one again" systemctl reload collector_server
check "and the status says so" eventually status_says collector_server 'is in force'
check "the guard is armed" eventually guard_armed
begin guest "${inside[@]}" guests.slice/1 env -u LD_PRELOAD "$intruder" fill qp 8
says guest '^made'
check "a guarded tenant gets 5 of 8 from the kernel" grep -qx "made 5 errno $refusal" "$scratch/guest.out"
end guest

echo "-- killed, beside an heir"
declare -A pid
tell holder -5
says holder 'ok 15'
"$BUILD_DIRECTORY/lab/objects" heir 5 >"$scratch/heir" 2>&1 &
parent=$!
check "a process and its heir hold 5" eventually grep -q '^heir ' "$scratch/heir"
heir=$(sed -n 's/^heir //p' "$scratch/heir")
pids() { for unit in "${units[@]}"; do pid[$unit]=$(of_unit "$unit" MainPID); done; }
pids
for unit in "${units[@]}"; do
	kill -9 "${pid[$unit]}"
done
for unit in "${units[@]}"; do
	check "$unit runs again" eventually replaced "$unit" "${pid[$unit]}"
done
check "all answer" eventually all_answer
counted 20 "after the kill"
full "after the kill"
{ kill -9 "$parent" && wait "$parent"; } 2>/dev/null || true
counted 20 "an heir has them"
pid[collector_server]=$(of_unit collector_server MainPID)
kill -9 "${pid[collector_server]}"
check "the collector runs again" eventually replaced collector_server "${pid[collector_server]}"
check "it answers" eventually collector_answers
counted 20 "an heir has them, also for the next collector"
kill -9 "$heir"
counted 15 "without the heir"
tell holder +5
says holder 'ok 20'

echo "-- stopped: the watchdog"
# Those of monitor and dashboard are patient; not here.
for unit in rdma_monitor rdma_dashboard; do
	mkdir -p "/run/systemd/system/$unit.service.d"
	printf '[Service]\nWatchdogSec=10s\n' >"/run/systemd/system/$unit.service.d/watchdog.conf"
done
check "a drop-in" systemctl daemon-reload
check "systemctl restart" systemctl restart rdma_monitor rdma_dashboard
pids
mark
for unit in "${units[@]}"; do
	kill -STOP "${pid[$unit]}"
done
for unit in "${units[@]}"; do
	check "$unit is replaced" eventually replaced "$unit" "${pid[$unit]}"
	check "by the watchdog ($(elapsed) ms)" said "$unit" 'Watchdog timeout'
done
check "all answer" eventually all_answer
counted 20 "after the hang"
full "after the hang"

echo "-- restart, with another release of each program"
pids
tell holder -5
says holder 'ok 15'
for unit in "${units[@]}"; do
	program=/usr/local/sbin/$unit
	LC_ALL=C sed 's/1\.1\.0/1.1.9/g' "$program" >"$program.new"
	chmod 755 "$program.new"
	mv "$program.new" "$program"
done
check "systemctl restart" systemctl restart "${units[@]}"
for unit in "${units[@]}"; do
	check "$unit: another process" replaced "$unit" "${pid[$unit]}"
	check "$unit: of the new file" test "/proc/$(of_unit "$unit" MainPID)/exe" -ef "/usr/local/sbin/$unit"
	check "$unit: of the new release" sh -c "/usr/local/sbin/$unit --version | grep -qx '$unit 1.1.9'"
done
check "all answer" eventually all_answer
# Only the watchdog's test needs that drop-in.
rm -r /run/systemd/system/rdma_{monitor,dashboard}.service.d
check "without the drop-in" systemctl daemon-reload
counted 15 "after the upgrade"
tell holder +5
says holder 'ok 20'
full "after the upgrade"

echo "-- the sandbox"
# What a unit forbids fails, and the programs say so.
complaints() { journalctl -q -o cat -u rdma_monitor -u collector_server -u rdma_dashboard >"$scratch/rows"
	grep -iE 'not permitted|permission denied|read-only file|cannot|failed to' "$scratch/rows"; }
no_complaints() { ! complaints; }
check "the programs were not refused anything" no_complaints

echo "-- stop"
check "systemctl stop" systemctl stop "${units[@]}"
for unit in "${units[@]}"; do
	check "$unit ended well" unit_is "$unit" Result success
	check "$unit is inactive" unit_is "$unit" ActiveState inactive
done
tell holder -5
says holder 'ok 15'
check "systemctl start" systemctl start "${units[@]}"
check "all answer" eventually all_answer
counted 15 "after the pause"
tell holder +5
says holder 'ok 20'
full "after the pause"
end holder || check "the holder ends well" false
counted 0 "at the end"
finish
