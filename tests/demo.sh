#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main job as a short transcript: a real application runs under the library,
# one that wants too much is refused with a reason, and what a killed one held comes
# back. Picks the best place for it: a device here, Soft-RoCE on this kernel, or the
# lab's virtual machine. Usage: demo.sh [--here]
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
cd "$home"
build=${BUILD_DIRECTORY:-$home/build}
PATH=$PATH:/sbin:/usr/sbin

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
shown() { printf '$ %s\n' "$*"; }

devices() { ls /sys/class/infiniband 2>/dev/null; }

# Soft-RoCE on this kernel, on a network device of our own; false where that is not possible.
soft_roce_here() {
	[ "$(id -u)" -eq 0 ] && command -v rdma >/dev/null && modprobe -q rdma_rxe 2>/dev/null &&
		ip link add rdmademo type dummy 2>/dev/null || return 1
	trap 'rdma link delete rxedemo 2>/dev/null; ip link delete rdmademo 2>/dev/null' EXIT
	ip addr add 10.77.0.1/24 dev rdmademo && ip link set rdmademo up &&
		rdma link add rxedemo type rxe netdev rdmademo 2>/dev/null
}

if [ "${1-}" != --here ]; then
	if [ -n "$(devices)" ]; then
		say "This machine has an RDMA device ($(devices | paste -sd' ')): the demonstration runs on it."
	elif soft_roce_here; then
		say "No RDMA device here, but this kernel can do Soft-RoCE: the demonstration runs on that."
	else
		say "No RDMA device here, and this kernel has no Soft-RoCE: the demonstration runs in the lab,
a virtual machine with Debian's kernel (without KVM it takes about 15 seconds to boot)."
		exec lab/run --timeout 300 -- env TERM="${TERM-dumb}" BUILD_DIRECTORY="$build" "$0" --here
	fi
fi

device=$(devices | head -1)
address=$(ip -o -4 addr show dev "$(cat "/sys/class/infiniband/$device/ports/1/gid_attrs/ndevs/0" 2>/dev/null || echo lo)" |
	awk '{ sub("/.*", "", $4); print $4; exit }')
library=$build/librdma_intercept.so
work=$(mktemp -d)
export RDMA_INTERCEPT_SHM_NAME=rdma_demo RDMA_INTERCEPT_LOG_FILE_PATH=$work/log
cleanup() {
	[ -z "${holder-}" ] || kill -9 "$holder" 2>/dev/null || true
	rm -rf "$work" /dev/shm/rdma_demo
}
trap cleanup EXIT
kernel() { rdma resource show "$device" | sed 's/^[0-9]*: /the kernel:  /'; }
ledger() { "$build/lab/objects" ledger "$device"; }
wait_for() { for _ in $(seq 300); do ! grep -q "$1" "$2" || return 0; sleep 0.1; done; return 1; }

say "1. A real application runs under the library as it does without it."
shown "LD_PRELOAD=librdma_intercept.so ib_send_bw -d $device -n 500 $address"
export LD_PRELOAD=$library
ib_send_bw -d "$device" -n 500 -F >"$work/server" 2>&1 &
server=$!
sleep 1.5
ib_send_bw -d "$device" -n 500 -F "$address" 2>&1 | sed -n '/#bytes/,/[0-9]$/p' || true
wait $server || true
unset LD_PRELOAD

say "2. Two queue pairs per process: the third is refused, and the program is told why."
shown "RDMA_INTERCEPT_LIMITS=process:qp=2 LD_PRELOAD=librdma_intercept.so test_global_limit"
RDMA_INTERCEPT_LIMITS=process:qp=2 LD_PRELOAD=$library "$build/test_global_limit" "$device"

say "3. Ten queue pairs for the whole host. A process takes them all; we count with the kernel."
echo "before (the kernel keeps a PD, a CQ and a QP of its own):"
kernel
ledger
rm -f /dev/shm/rdma_demo
shown "RDMA_INTERCEPT_LIMITS=host:qp=10 LD_PRELOAD=librdma_intercept.so objects hold 10 &"
RDMA_INTERCEPT_LIMITS=host:qp=10 LD_PRELOAD=$library "$build/lab/objects" hold 10 >"$work/holder" 2>&1 &
holder=$!
wait_for holding "$work/holder"
cat "$work/holder"
echo "during:"
kernel
ledger
echo "another process wants one:"
LD_PRELOAD=$library "$build/lab/objects" hold 1 || true

say "4. The process is killed with -9. Nothing of it can run; nothing it held is lost."
shown "kill -9 $holder"
kill -9 "$holder"
wait "$holder" 2>/dev/null || true
holder=
sleep 0.5
echo "after:"
kernel
ledger
echo "another process wants ten now:"
LD_PRELOAD=$library "$build/lab/objects" hold 10 >"$work/holder" 2>&1 &
holder=$!
wait_for holding "$work/holder"
cat "$work/holder"
kill -9 "$holder"
wait "$holder" 2>/dev/null || true
holder=

say "The log of all this:"
grep -E 'refused|gave back' "$work/log"
