#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real applications with a limit below their need fail cleanly: with an error message of
# their own, without a crash, leaving nothing in the kernel, and the log says why.
set -euo pipefail
. lab/lib.sh

before=$(kernel_counts)

# refused_cleanly NAME LIMIT KIND
refused_cleanly() {
	rm -f "$scratch/log" /dev/shm/lab_scenario
	around() { guarded "LIMITS=$limit QUIET=1" "$@"; }
	local limit=$2
	application "$1"
	check "$1 with $2 fails ($client_status, $server_status)" [ "$client_status $server_status" != '0 0' ]
	check "$1 with $2 does not crash or hang" bash -c \
		"for s in $client_status $server_status; do case \$s in 134|136|137|139|124) exit 1;; esac; done"
	check "$1 with $2 says something itself" \
		grep -qiE "fail|error|couldn.t|unable|cannot|quota|exceeded|not" "$scratch/$1.client" "$scratch/$1.server"
	check "the log says why" grep -qE "refused [a-z0-9_]+: .* $3 used [0-9]+/[0-9]+, wanted" "$scratch/log"
	check "nothing is left in the kernel" settled "$before"
}

for name in "${applications[@]}"; do # each needs one for either side
	refused_cleanly "$name" host:qp=1 qp
done
for name in ib_send_bw rping fi_pingpong ucx_perftest; do
	refused_cleanly "$name" process:mr_bytes=16 mr_bytes
done
finish
