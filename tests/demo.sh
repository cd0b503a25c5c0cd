#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The whole as a short transcript: the library, a collector with two tenants, a refusal and its
# explanation, a process that is killed, a program without the library that rdma_monitor finds and
# the guard refuses, and a screen of `top`. Picks the best place for it: a device here, Soft-RoCE on
# this kernel, or the lab's virtual machine. The monitor and the guard are loaded only in the lab:
# they are for the whole host.
# Usage: demo.sh [--here | --in-the-lab]
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
cd "$home"
build=${BUILD_DIRECTORY:-$home/build}
PATH=$build:$PATH:/sbin:/usr/sbin

bold='' plain=''
case ${TERM-dumb} in
dumb) ;;
*) bold=$'\e[1m' plain=$'\e[m' ;;
esac
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
shown() { printf '$ %s\n' "$*"; }
# show COMMAND...: prints it, and runs it
show() {
	shown "$@"
	"$@" || true
}

devices() { ls /sys/class/infiniband 2>/dev/null; }

# Soft-RoCE on this kernel, on a network device of our own; false where that is not possible.
soft_roce_here() {
	[ "$(id -u)" -eq 0 ] && command -v rdma >/dev/null && modprobe -q rdma_rxe 2>/dev/null &&
		ip link add rdmademo type dummy 2>/dev/null || return 1
	trap 'rdma link delete rxedemo 2>/dev/null; ip link delete rdmademo 2>/dev/null' EXIT
	ip addr add 10.77.0.1/24 dev rdmademo && ip link set rdmademo up &&
		rdma link add rxedemo type rxe netdev rdmademo 2>/dev/null
}

if [ $# -eq 0 ]; then
	if [ -n "$(devices)" ]; then
		say "This machine has an RDMA device ($(devices | paste -sd' ')): the demonstration runs on it."
	elif soft_roce_here; then
		say "No RDMA device here, but this kernel can do Soft-RoCE: the demonstration runs on that."
	else
		say "No RDMA device here, and this kernel has no Soft-RoCE: the demonstration runs in the lab,
a virtual machine with Debian's kernel (without KVM it takes about 15 seconds to boot)."
		exec lab/run --timeout 1200 -- env TERM="${TERM-dumb}" BUILD_DIRECTORY="$build" "$0" --in-the-lab
	fi
fi
lab=''
[ "${1-}" != --in-the-lab ] || lab=1

device=$(devices | head -1)
address=$(ip -o -4 addr show dev "$(cat "/sys/class/infiniband/$device/ports/1/gid_attrs/ndevs/0" 2>/dev/null || echo lo)" |
	awk '{ sub("/.*", "", $4); print $4; exit }')
library=$build/librdma_intercept.so
work=$(mktemp -d)
chmod 755 "$work"
export RDMA_INTERCEPT_SHM_NAME=rdma_demo RDMA_INTERCEPT_LOG_FILE_PATH=$work/log
collector='' monitor='' holders=()
cleanup() {
	local pid
	for pid in "${holders[@]}" $monitor $collector; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ -z "$monitor" ] || rdma_monitor --unload >/dev/null 2>&1 || true
	rm -rf "$work" /dev/shm/rdma_demo
}
trap cleanup EXIT
# comes TEXT FILE: waits until a program has written it; comes_true COMMAND...: until it succeeds
comes() { comes_true grep -q "$1" "$2"; }
comes_true() {
	local until=$((SECONDS + 300))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || {
			echo "demo.sh: $*: not true after five minutes" >&2
			exit 1
		}
		sleep 0.1
	done
}
kernel() { rdma resource show "$device" | sed 's/^[0-9]*: /the kernel:  /'; }
# hold USER N: N queue pairs of a process of that user, under the library, until it is killed
hold() {
	setpriv --reuid "$1" --regid "$1" --clear-groups env LD_PRELOAD="$library" \
		"$build/lab/objects" hold "$2" >"$work/$1" 2>&1 &
	holders+=($!)
}

listens() { ss -Hltn 'sport = :18515' | grep -q .; }
watched() { rdma_intercept status | grep '^monitor' | grep -vq none; }
uncovered() { rdma_intercept events | grep -q uncovered; }
guarded() { rdma_intercept guard status web | grep -q '^guarantee *in the kernel'; }
ml_has_nothing() { ! rdma_intercept show tenant | grep -q 'ml .*10/10'; }
# in_web N: the same of the tenant web, without the library
in_web() {
	sh -c 'echo $$ >/sys/fs/cgroup/demo/web/1/cgroup.procs; exec "$0" hold "$1"' "$build/lab/objects" "$1" \
		>"$work/web" 2>&1 &
	holders+=($!)
}

say "1. A real application runs under the library as it does without it."
shown "LD_PRELOAD=librdma_intercept.so ib_send_bw -d $device -n 500 $address"
covered=(timeout 60 env LD_PRELOAD="$library")
"${covered[@]}" ib_send_bw -d "$device" -n 500 -F >"$work/server" 2>&1 &
server=$!
comes_true listens
"${covered[@]}" ib_send_bw -d "$device" -n 500 -F "$address" 2>&1 | sed -n '/#bytes/,/[0-9]$/p' || true
wait $server || true

say "2. One command, no daemon: two queue pairs for a process. The third is refused, with the reason."
show rdma_intercept run --limit qp=2 -- "$build/test_global_limit" "$device"

say "3. A whole host: a collector with two tenants. It knows a tenant by user or control group."
web='match = uid=2002'
if [ -n "$lab" ]; then
	web='match = cgroup=/demo/web/*'
	mkdir -p /sys/fs/cgroup/demo/web/1
fi
cat >"$work/policy.conf" <<END
[host]
qp = 20

[tenant ml]
match = uid=2001
qp = 10

[tenant web]
$web
qp = 4
END
show cat "$work/policy.conf"
export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_COLLECTOR_STATE=$work/state RDMA_INTERCEPT_POLICY=$work/policy.conf
shown "collector_server &"
collector_server >"$work/collector" 2>&1 &
collector=$!
comes_true rdma_intercept status
if [ -n "$lab" ]; then
	shown "rdma_monitor --keep &"
	rdma_monitor --keep >"$work/monitor" 2>&1 &
	monitor=$!
	comes_true watched
fi
hold 2001 10
comes holding "$work/2001"
show rdma_intercept show tenants

say "4. ml has its ten queue pairs and wants one more: refused. \`explain\` says why, and what helps."
hold 2001 1
comes refused "$work/2001"
grep 'refused' "$work/2001"
show rdma_intercept explain "$(sed -n 's/.*event \([0-9]*-[0-9]*\).*/\1/p' "$work/2001" | head -n 1)"

say "5. The process that holds them is killed with -9. The kernel and the collector take everything back."
kernel
shown "kill -9 ${holders[0]}"
kill -9 "${holders[0]}"
wait "${holders[0]}" 2>/dev/null || true
comes_true ml_has_nothing
kernel
show rdma_intercept show tenants

if [ -n "$lab" ]; then
	say "6. A program of web does not load the library. rdma_monitor counts its objects in the kernel."
	in_web 6
	comes holding "$work/web"
	comes_true uncovered
	show rdma_intercept show processes

	say "7. The guard is for such programs: the kernel itself refuses the fifth queue pair."
	kill -9 "${holders[-1]}"
	wait "${holders[-1]}" 2>/dev/null || true
	shown rdma_intercept guard on web
	rdma_intercept guard on web >/dev/null 2>&1 || true # it is not yet in the kernel
	comes_true guarded
	show rdma_intercept guard status web
	in_web 6
	shown "objects hold 6"
	comes quota "$work/web"
	cat "$work/web"
else
	echo
	echo "A program that does not load the library is found by rdma_monitor, and refused by the kernel with the"
	echo "guard. They are for the whole host, so this demonstration loads them only in the lab:"
	echo "  lab/run -- env BUILD_DIRECTORY=$build tests/demo.sh --in-the-lab"
fi

say "The same on one screen, each second on a terminal:"
hold 2001 7
comes holding "$work/2001"
show rdma_intercept top

say "And as a web page, with history and advice: rdma_intercept dashboard, then open http://127.0.0.1:9910/"
