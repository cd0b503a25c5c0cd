#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# root: --unpack testing libc6 libgcc-s1 zlib1g libudev1 libnl-3-200 libnl-route-3-200 libpci3 libibumad3 libibverbs1 librdmacm1t64 ibverbs-providers ibverbs-utils rdmacm-utils perftest
# The rdma-core and the glibc of Debian testing, which are newer than this machine's: every route
# into libibverbs is limited at exactly the limit, perftest and rping work under the library and
# fail cleanly at a limit, and the counts equal the kernel's.
set -euo pipefail
. lab/lib.sh

# A root with their files, and the directories of the guest that programs need.
root=$scratch/root
mkdir -p "$root"
mount -t tmpfs root "$root"
mkdir -p "$root"/{usr,proc,sys,dev,tmp,etc,run}
for place in usr etc; do
	mount --bind "${SCENARIO_ROOT:?}/$place" "$root/$place"
done
for place in proc sys dev tmp run; do
	mount --rbind "/$place" "$root/$place"
done
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
mkdir -p "$root$BUILD_DIRECTORY"
mount --bind "$BUILD_DIRECTORY" "$root$BUILD_DIRECTORY"
inside() { chroot "$root" "$@"; }

loaded=$(basename "$(readlink -f "$root/usr/lib/$(uname -m)-linux-gnu/libibverbs.so.1")")
echo "      $loaded, here $(basename "$(readlink -f "/usr/lib/$(uname -m)-linux-gnu/libibverbs.so.1")")"
before=$(kernel_counts)
user=$BUILD_DIRECTORY/lab/user
check "programs run with another glibc than this machine's" \
	[ "$(inside "$user" libc)" != "$("$user" libc)" ]

# limited LIMITS WHAT N
limited() {
	rm -f /dev/shm/lab_scenario
	guarded "LIMITS=$1" chroot "$root" "$user" "${@:2}" >"$scratch/rows" 2>"$scratch/refusals" || return 1
	[ "$(grep -c 'rdma_intercept: refused' "$scratch/refusals")" -ge 1 ] && grep -qx OK "$scratch/rows"
}
for route in linked inline next default dlsym dlvsym; do
	check "$route: exactly 3 queue pairs" limited process:qp=3 "$route" 3
done
check "CQs by an operation of the context: exactly 4" limited process:cq=4 inline_cq 4
for life in threads fork killed; do
	check "$life: exactly 5 queue pairs" limited host:qp=5 "$life" 5
done
check "nothing is left in the kernel" settled "$before"

# What the ledger has of one process equals what the kernel lists.
rm -f /dev/shm/lab_scenario # and the limit in it
begin holder env LD_PRELOAD="$library" chroot "$root" "$user" hold 7
says holder 'made 7'
check "7 queue pairs are in the kernel" eventually counts_are "$(awk '
	$2 ~ /rxe0:/ { for (i = 3; i < NF; i += 2) { if ($i == "qp") $(i + 1) += 7; if ($i ~ /^(ctx|pd|cq)$/) $(i + 1)++ } }
	{ print }' <<<"$before")"
"$BUILD_DIRECTORY/lab/objects" ledger rxe0 >"$scratch/rows"
check "and in the ledger" grep -q ' ctx 1 pd 1 cq 1 qp 7 ' "$scratch/rows"
end holder
check "they are gone" settled "$before"

# perftest and rping of testing: without a limit they work, with one below their need they do not.
# (the root has no timeout of its own: its four words stay outside)
around() { guarded "LIMITS=$limit QUIET=1" "${@:1:4}" chroot "$root" "${@:5}"; }
for name in ib_send_bw ib_write_lat-R rping; do
	for limit in host:qp=20 host:qp=1; do
		rm -f "$scratch/log" /dev/shm/lab_scenario
		application "$name"
		if [ $limit = host:qp=20 ]; then
			check "$name works with $limit" [ "$client_status $server_status" = '0 0' ]
		else
			check "$name fails with $limit ($client_status, $server_status)" \
				[ "$client_status $server_status" != '0 0' ]
			check "the log says why" grep -qE 'refused [a-z0-9_]+: .* qp used 1/1, wanted 1' "$scratch/log"
		fi
		check "nothing is left in the kernel" settled "$before"
	done
done
finish
