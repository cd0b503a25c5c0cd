#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Leases on a real device: 64 processes of 4 tenants against their limits and the
# kernel's counts, limits that change while they work, and the collector killed.
# processors: 2
set -euo pipefail
. lab/lib.sh
# The programs are linked with the stand-in; here they get the real libraries.
# run NAME [--only CASE]
run() {
	check "$*" env HARNESS_PRELOAD="$library" LD_LIBRARY_PATH="/usr/lib/$(uname -m)-linux-gnu" \
		"$BUILD_DIRECTORY/tests/daemon_$1" "${@:2}"
}
run programs
# How changes are computed does not depend on the device: the other cases are for the long form.
if [ "${RDMA_INTERCEPT_TEST_FACTOR:-1}" -gt 1 ]; then
	run changes
else
	run changes --only live_changes
	run changes --only draining
fi
run restarts --only outage # another case posts on queue pairs that are not connected
run leases
finish
