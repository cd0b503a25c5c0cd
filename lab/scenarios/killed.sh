#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# kill -9 of a process with 500 QPs and 500 MRs: the kernel's counts and ours are back
# where they were, within a second of the next join.
set -euo pipefail
. lab/lib.sh
objects=$BUILD_DIRECTORY/lab/objects

before=$(kernel_counts)
guarded 'LIMITS=host:qp=500,mr=500' "$objects" hold 500 >"$scratch/out" 2>&1 &
victim=$!
check "it holds 500 of each" eventually grep -q 'holding 500 QPs and 500 MRs' "$scratch/out"
check "the kernel has them" bash -c "rdma resource show rxe0 | grep -q ' qp 501 .* mr 500 '"
refused() {
	! guarded 'QUIET=1' "$objects" hold 1 >"$scratch/second" 2>&1 && grep -q 'quota exceeded' "$scratch/second"
}
check "a second process is refused by the limit of the host" refused
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
check "the kernel is back at the state before" settled "$before"
# Giving back is part of joining: it is done before the next process has made anything.
start=$(date +%s%N)
guarded '' "$objects" hold 1 >"$scratch/third" 2>&1 &
third=$!
check "the next process has its QP" eventually grep -q 'holding 1 QPs' "$scratch/third"
echo "      (it was started $((($(date +%s%N) - start) / 1000000)) ms ago)"
check "with its join, what the killed one held was given back" \
	bash -c "grep -A1 'gave back what [0-9]* ended process' '$scratch/log' | grep -q '\[$third\] INFO joined'"
check "our counts are its own only" bash -c \
	"'$objects' ledger rxe0 | grep -q ': ctx 1 pd 1 cq 1 qp 1 mr 1 srq 0'"
kill -9 $third
wait $third 2>/dev/null || true
check "nothing is left" settled "$before"
finish
