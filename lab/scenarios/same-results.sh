#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real applications under the library, with generous limits, do what they do without it:
# the same exit status, the same output but for measured numbers, and no object left. Both
# with the shared file and with leases of a collector.
set -euo pipefail
. lab/lib.sh
generous='LIMITS=process:qp=1000,mr=10000,mr_bytes=64G;host:qp=10000;device:rxe0:qp=5000 QUIET=0'

# Output without what differs from run to run: numbers, how often a line comes, what perftest says
# of the guest's clock, the line that ucx_perftest prints for each second that it takes, and the one
# by which rping reports the end of the connection, if it has not ended itself before.
normal() { sed -E '/Correlation coefficient|timestamp frequency|CPU freq|^\[thread|DISCONNECT EVENT/d; s/0x[0-9a-fA-F]+|\binf\b|\bnan\b|[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})+|[0-9]+(\.[0-9]+)?/N/g; s/(N|\s)+/ /g' "$1" | sort -u; }

same_output() { diff <(normal "$scratch/bare.$1") <(normal "$scratch/$name.$1") >"$scratch/rows"; }

before=$(kernel_counts)
collector_start
for name in "${applications[@]}"; do
	around() { "$@"; }
	application "$name"
	bare_client=$client_status bare_server=$server_status
	mv "$scratch/$name.client" "$scratch/bare.client"
	mv "$scratch/$name.server" "$scratch/bare.server"
	check "$name works without the library" [ "$bare_client$bare_server" = 00 ]
	for transport in embedded lease; do
		around() { guarded "$generous TRANSPORT=$transport" "$@"; }
		application "$name"
		check "$name ($transport): same exit status ($client_status, $server_status)" \
			[ "$client_status$server_status" = "$bare_client$bare_server" ]
		for side in client server; do
			check "$name ($transport): same output of the $side" same_output "$side"
		done
		[ "$client_status$server_status" = 00 ] || show "$scratch/$name.client" "$scratch/$name.server"
		check "$name ($transport) leaves no object" settled "$before"
	done
done
check "the collector's books are empty" bash -c "'$command' -j show kind qp | grep -q '\"tenants\":\[\]' || '$command' -j show kind qp | grep -q '\"used\":0'"
check "the library was there" grep -q 'joined /dev/shm/lab_scenario' "$scratch/log"
check "and joined the collector" grep -q 'joined the collector by lease' "$scratch/log"
check "nothing was refused" bash -c "! grep -q refused '$scratch/log'"
finish
