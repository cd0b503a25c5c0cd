#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the library adds to a pair of calls on the real stack, kernel and driver included, in
# instructions: the lab's clock counts them. Usage: library.sh [BUILD-DIRECTORY [KERNEL]]
#
# Rows: without a library; with one that is empty, which is the least that any preloaded library
# costs; ours disabled, embedded, and with a lease. For each pair the rows take turns in seven
# rounds, since the kernel's allocators change their state meanwhile; a ratio is the median over the
# rounds of the ratio to the first row in the same round.
# Exits with 1 when a ratio to the first row is more than 5 % above the one that is recorded below
# and in docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-$PWD/build} kernel=${2:-6.1}
# Per cent over the row without a library: qp, mr, pd, cq.
recorded='
disabled 0.8 1.3 6.8 1.3
embedded 0.3 2.8 5.8 1.8
lease 0.3 2.5 5.6 -1.9'

work=$(mktemp -d -t rdma_bench.XXXXXX)
trap 'rm -rf "$work"' EXIT
# The linker gives it the same hardening as any library of this system.
echo 'int bench_empty;' | ${CC:-cc} -shared -fPIC -x c -o "$work/empty.so" -

measure='
build=$1 empty=$2
export RDMA_INTERCEPT_LOG_FILE_PATH=/tmp/bench.log RDMA_INTERCEPT_SHM_NAME=bench_library
export RDMA_COLLECTOR_STATE=/tmp/bench.state
"$build/collector_server" --socket /tmp/bench.socket >/tmp/bench.collector 2>&1 &
collector=$!
until RDMA_COLLECTOR_SOCKET=/tmp/bench.socket "$build/rdma_intercept" status >/dev/null 2>&1; do
	kill -0 $collector || exit 1
	sleep 0.1
done
ours=$build/librdma_intercept.so
run() { # ROW OPERATION COUNT
	local settings=()
	case $1 in
	empty) settings=(LD_PRELOAD="$empty") ;;
	disabled) settings=(LD_PRELOAD="$ours" RDMA_INTERCEPT_ENABLE=0) ;;
	embedded) settings=(LD_PRELOAD="$ours" RDMA_INTERCEPT_TRANSPORT=embedded) ;;
	lease) settings=(LD_PRELOAD="$ours" RDMA_INTERCEPT_TRANSPORT=lease RDMA_COLLECTOR_SOCKET=/tmp/bench.socket) ;;
	esac
	env "${settings[@]}" "$build/bench/kernelpairs" "$2" "$3"
}
for operation in qp mr pd cq; do
	for round in 0 1 2 3 4 5 6 7; do # the first one is a warm-up
		for row in without empty disabled embedded lease; do
			figure=$(run $row $operation 200) || exit 1
			[ $round -eq 0 ] || echo "$row $operation $round $figure"
		done
	done
done
kill $collector'

lab/run --kernel "$kernel" --icount --timeout 1800 -- bash -c "$measure" measure "$build" "$work/empty.so" |
	awk -v recorded="$recorded" '
	# The median over the rounds of a row, or of how much it is above the first row in the same round.
	function median(row, operation, relative,    n, i, j, t, v) {
		for (n = 0; (row, operation, n + 1) in figure && ("without", operation, n + 1) in figure; n++) {
			v[n + 1] = figure[row, operation, n + 1]
			if (relative)
				v[n + 1] = 100 * (v[n + 1] / figure["without", operation, n + 1] - 1)
		}
		for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
		if (n < 5) missing = 1
		return v[int((n + 1) / 2)]
	}
	NF == 4 { figure[$1, $2, $3] = $4 }
	END {
		rows = split("without empty disabled embedded lease", row, " ")
		columns = split("qp mr pd cq", operation, " ")
		words = split(recorded, word, /[ \n]+/)
		for (i = 1; i <= words; i++) if (word[i] ~ /^[a-z]/) for (c = 1; c <= columns; c++) allowed[word[i], c] = word[i + c]
		printf "%-10s", ""
		for (c = 1; c <= columns; c++) printf " %17s", operation[c]
		print ""
		for (r = 1; r <= rows; r++) {
			printf "%-10s", row[r]
			for (c = 1; c <= columns; c++) {
				percent = median(row[r], operation[c], 1)
				printf " %8d %+7.1f%%", median(row[r], operation[c], 0), percent
				if ((row[r], c) in allowed && percent > allowed[row[r], c] + 5)
					failures = failures "MISSED: " row[r] ", " operation[c] ": " sprintf("%+.1f %%, recorded %+.1f %%", percent, allowed[row[r], c]) "\n"
			}
			print ""
		}
		printf "%s", failures
		if (missing) print "MISSED: not every pair was measured"
		exit failures != "" || missing
	}'
