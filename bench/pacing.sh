#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a post costs on the stand-in libibverbs: bare, under the library without a pace, and with a
# pace that is never reached, which may add 10 ns: otherwise it exits with 1. Nanoseconds of this
# machine, so it is no test; the instructions are one (instructions.sh).
# Usage: pacing.sh [BUILD-DIRECTORY]
set -euo pipefail
build=$(cd "${1:-$(dirname "$0")/../build}" && pwd)
shm=rdma_bench_pacing.$$
trap 'rm -f "/dev/shm/$shm"' EXIT
run() {
	env LD_LIBRARY_PATH="$build/fakeverbs" RDMA_INTERCEPT_SHM_NAME="$shm" \
		RDMA_INTERCEPT_LOG_LEVEL=0 RDMA_INTERCEPT_TRANSPORT=embedded "$@" "$build/bench/posts"
}
# least COMMAND...: of three runs, for each interface
least() { for _ in 1 2 3; do run "$@"; done | awk "NR == 1 || \$1 < a { a = \$1 } NR == 1 || \$2 < b { b = \$2 } END { print a, b }"; }
read -r plain extended < <(least env)
most=10 over=0
report() { # TEXT PLAIN EXTENDED
	awk -v t="$1" -v a="$2" -v b="$3" -v p="$plain" -v e="$extended" 'BEGIN {
		printf "%-28s %8.2f %+7.2f (%4.2f) %8.2f %+7.2f (%4.2f)\n", t, a, a - p, a / p, b, b - e, b / e }'
}
printf '%-28s %8s %7s %6s %8s %7s %6s\n' 'ns of a post' post_send added ratio ibv_wr added ratio
report bare "$plain" "$extended"
read -r a b < <(least env LD_PRELOAD="$build/librdma_intercept.so")
report 'library, no pace' "$a" "$b"
for pace in bytes=100000G/s ops=1000000000/s 'bytes=100000G/s,ops=1000000000/s'; do
	read -r a b < <(least env LD_PRELOAD="$build/librdma_intercept.so" RDMA_INTERCEPT_PACE="$pace")
	report "$pace" "$a" "$b"
	awk -v a="$a" -v b="$b" -v p="$plain" -v e="$extended" -v most=$most \
		'BEGIN { exit a - p > most || b - e > most }' || { echo "more than $most ns" && over=1; }
done
exit $over
