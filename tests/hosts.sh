#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lab/run --hosts: output, exit status and barrier of several guests on one wire, and that nothing
# of them is left when one crashes, when they are cut off and when lab/run is stopped.
set -euo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
cd "$(dirname "$0")/.."
export BUILD_DIRECTORY=${BUILD_DIRECTORY:-$PWD/build} TMPDIR=$work/tmp
mkdir "$TMPDIR"
command -v qemu-system-x86_64 >/dev/null || {
	echo "skipped: qemu-system-x86_64 is not installed; ./build_all.sh test installs the packages of the lab"
	exit 77
}

# hosts_run ARGUMENTS...: lab/run; its status in $status, its output in $work/out
hosts_run() {
	status=0
	lab/run "$@" >"$work/out" 2>&1 || status=$?
}
prints() { grep -qx -e "$1" "$work/out"; }
says() { grep -q -e "$1" "$work/out"; }
# The directory of a run is part of the command line of its QEMU.
nothing_left() { [ -z "$(ls "$TMPDIR")" ] && ! grep -qs "$TMPDIR" /proc/[0-9]*/cmdline; }

three() {
	# shellcheck disable=SC2016 # the guests' shells expand it
	local script='
		. lab/lib.sh
		barrier "the first" && barrier "the second"
		echo "number $LAB_HOST of $LAB_HOSTS, $(hostname), $(ip -o -4 address show lab0 | tr -s " " | cut -d " " -f 4)"
		rdma link show rxe0/1 | grep -o "ACTIVE.*netdev.*" | tr -s " "
		exit'
	hosts_run --hosts 3 -- bash -c "$script 0" ::: bash -c "$script 7" ::: bash -c "$script 3"
	for host in 1 2 3; do
		check "host $host: its number, name and address" \
			prints "host $host: number $host of 3, host$host, 10.77.0.$host/24"
		check "host $host: its device is on the wire" says "^host $host: ACTIVE .* netdev lab0"
	done
	check "the status is the first that is not 0" test "$status" -eq 7
	check "nothing is left" nothing_left
	[ "$bad" -eq 0 ] || sed 's/^/      /' "$work/out"
}

crash() {
	hosts_run --hosts 2 -- sleep 1000 ::: sh -c 'echo c >/proc/sysrq-trigger'
	check "a guest that crashes is status 125" test "$status" -eq 125
	check "and is named" says 'ended without a result (host 2)'
	check "nothing is left" nothing_left
}

cut_off() {
	hosts_run --hosts 2 --timeout 2 -- true
	check "a guest that is cut off is status 125" test "$status" -eq 125
	check "and lab/run says so" says 'cut off after 2 seconds'
	check "nothing is left" nothing_left
}

stopped() {
	local signal pid
	for signal in INT TERM; do
		# A shell ignores INT for what it starts in the background.
		env --default-signal=INT lab/run --hosts 2 -- sleep 1000 >"$work/out" 2>&1 &
		pid=$!
		workers+=("$pid")
		check "$signal: both guests run" eventually both_run
		kill -s "$signal" "$pid"
		status=0
		wait "$pid" || status=$?
		workers=()
		check "$signal: lab/run ends by it" test "$status" -eq $((128 + $(kill -l "$signal")))
		check "$signal: nothing is left" eventually nothing_left
	done
}
# Of the two, only the second has such an argument.
both_run() { grep -qs "server=off.*$TMPDIR/.*/wire.2" /proc/[0-9]*/cmdline; }

wrong_use() {
	hosts_run --hosts 3 -- true ::: true
	check "two commands for three hosts" says '2 commands for 3 hosts: expected 1 or 3'
	hosts_run --hosts 0 -- true
	check "no host" says "invalid number '0': expected 1 to 9"
	hosts_run --hosts 2
	check "no command" says 'missing command'
	check "status 2" test "$status" -eq 2
}

run_cases "three crash cut_off stopped wrong_use" "$@"
