#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Leases on a real device: 64 processes of 4 tenants against their limits and the
# kernel's counts, limits that change while they work, and the collector killed.
# processors: 2
set -euo pipefail
. lab/lib.sh
# The program is linked with the stand-in; here it gets the real libraries.
check "tenants, limits, modes, outage and restart" env HARNESS_PRELOAD="$library" \
	LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu "$BUILD_DIRECTORY/tests/daemon_leases"
finish
