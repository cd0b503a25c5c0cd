#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands that the users' documents give print what the documents say, on a real
# device, and the documented test scripts pass.
set -euo pipefail
. lab/lib.sh
unset RDMA_INTERCEPT_SHM_NAME # as a user has it
cd "$BUILD_DIRECTORY"

documented() {
	timeout 300s env RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 \
		LD_PRELOAD=./librdma_intercept.so "$1" >"$scratch/out" 2>"$scratch/err"
}
same_as_documented() { diff <(sed 's/DEVICE/rxe0/' "$OLDPWD/tests/seeds/transcript.txt") "$scratch/out"; }

check "test_global_limit ends well" documented ./test_global_limit
check "its output is the documented one, to the character" same_as_documented
check "the reason of the refusal is given" grep -q 'refused ibv_create_qp: .*qp used 2/2' "$scratch/err"
check "test_sequential ends well" documented ./test_sequential
shm_version() { LD_PRELOAD=./librdma_intercept.so ./test_shm_version >"$scratch/out"; }
check "test_shm_version agrees with the ledger at every step" shm_version
for script in test_intercept_functionality test_global_limit test_system_validation test_real_qp_intercept; do
	if "$OLDPWD/tests/$script.sh" >"$scratch/out" 2>&1; then
		echo "ok    $script.sh: $(tail -n 1 "$scratch/out")"
	else
		show "$scratch/out"
		check "$script.sh passes" false
	fi
	check "$script.sh ran on the real device" \
		bash -c "! grep -q stand-in '$scratch/out'"
done
finish
