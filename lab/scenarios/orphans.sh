#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A forked child keeps its dead parent's objects alive in the kernel: they stay charged
# as long as the kernel has them, also over the collector's death, and no longer.
set -euo pipefail
. lab/lib.sh
objects=$BUILD_DIRECTORY/lab/objects

# used KIND: what the tenant default uses, the only one
used() { "$command" -j show kind "$1" | grep -o '"used": *[0-9]*' | head -n 1 | grep -o '[0-9]*'; }
uses() { # a tenant that uses none is not listed
	local amount
	"$command" -j show kind "$1" >/dev/null || return
	amount=$(used "$1") || amount=0
	[ "$amount" = "$2" ]
}

before=$(kernel_counts)
collector_start
guarded TRANSPORT=lease "$objects" heir 5 >"$scratch/out" 2>&1 &
parent=$!
check "a process and its heir are there" eventually grep -q heir "$scratch/out"
heir=$(sed -n 's/^heir //p' "$scratch/out")
check "the collector counts 5 QPs" uses qp 5
kill -9 $parent
wait $parent 2>/dev/null || true
check "the kernel still has them" bash -c "sleep 0.5; rdma resource show rxe0 | grep -q ' qp 6 '"
check "and so they stay charged" uses qp 5
check "to an orphan" bash -c "'$command' -j show process | grep -q '\"orphan\"'"
collector_kill
collector_start
check "also for a collector that was started anew" uses qp 5
kill -9 "$heir"
check "with the heir, the kernel lets go" settled "$before"
check "and the collector within seconds" eventually uses qp 0
finish
