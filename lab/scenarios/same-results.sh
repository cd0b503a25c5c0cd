#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real applications under the library, with generous limits, do what they do without it:
# the same exit status, the same output but for measured numbers, and no object left.
set -euo pipefail
. lab/lib.sh
generous='LIMITS=process:qp=1000,mr=10000,mr_bytes=64G;host:qp=10000;device:rxe0:qp=5000 QUIET=0'

# Output without what differs from run to run: numbers, how often a line comes, and
# what perftest says of the guest's clock.
normal() { sed -E '/Correlation coefficient|timestamp frequency|CPU freq/d; s/0x[0-9a-fA-F]+|[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})+|[0-9]+(\.[0-9]+)?/N/g; s/(N|\s)+/ /g' "$1" | sort -u; }

before=$(kernel_counts)
for name in "${applications[@]}"; do
	around() { "$@"; }
	application "$name"
	bare_client=$client_status bare_server=$server_status
	mv "$scratch/$name.client" "$scratch/bare.client"
	mv "$scratch/$name.server" "$scratch/bare.server"
	around() { guarded "$generous" "$@"; }
	application "$name"
	check "$name works without the library" [ "$bare_client$bare_server" = 00 ]
	check "$name: same exit status ($client_status, $server_status)" \
		[ "$client_status$server_status" = "$bare_client$bare_server" ]
	for side in client server; do
		check "$name: same output of the $side" \
			diff <(normal "$scratch/bare.$side") <(normal "$scratch/$name.$side")
	done
	[ "$client_status$server_status" = 00 ] || show "$scratch/$name.client" "$scratch/$name.server"
	check "$name leaves no object" settled "$before"
done
check "the library was there" grep -q 'joined /dev/shm/lab_scenario' "$scratch/log"
check "nothing was refused" bash -c "! grep -q refused '$scratch/log'"
finish
