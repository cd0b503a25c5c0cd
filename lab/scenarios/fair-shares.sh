#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fair shares on a real device: three tenants with the weights 1:2:1 that want all there is settle at
# their shares and stay there, one leaves and returns, and the collector is killed.
# processors: 2
set -euo pipefail
. lab/lib.sh
# The program is linked with the stand-in; here it gets the real libraries.
check "daemon_fairness" env HARNESS_PRELOAD="$library" \
	LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu "$BUILD_DIRECTORY/tests/daemon_fairness"
finish
