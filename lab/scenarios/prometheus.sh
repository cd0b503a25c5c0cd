#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real Prometheus scrapes the dashboard of a host with a real device: the alert at four fifths of a
# limit fires and clears. With RDMA_INTERCEPT_TEST_FACTOR above 1 the rules are as they are shipped.
set -euo pipefail
. lab/lib.sh
if ! command -v prometheus >/dev/null; then
	echo "skipped: prometheus is not installed"
	exit 77
fi
scrapes() { tests/dashboard/prometheus.sh >"$scratch/out" 2>&1; }
scrapes || { show "$scratch/out" && check "tests/dashboard/prometheus.sh passes" false; }
sed -n '/^ok  /p' "$scratch/out"
check "no check failed" grep -qx '1 passed, 0 failed' "$scratch/out"
check "it ran on the real device" bash -c "! grep -q stand-in '$scratch/out'"
finish
