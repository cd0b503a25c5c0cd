#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A tenant that may use rxe0 only: with the library, rxe1 is in no list of devices, and neither
# verbs nor rdma_cm open it; without the library, the guard in the kernel refuses contexts on it.
# Another tenant uses both. What the policy says while programs run counts from their next call on.
set -euo pipefail
. lab/guardlib.sh

policy_write() {
	cat >"$scratch/policy" <<-END
		[default]
		guard = on
		[tenant a]
		match = cgroup=/tenants/a/*
		qp = 5
		devices = rxe0
		[tenant b]
		match = cgroup=/tenants/b/*
		qp = 5
	END
}
guard_start

covered=(env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease)
# run_in GROUP COMMAND...: in that cgroup; output in $scratch/rows, status is the command's
run_in() { "${inside[@]}" "tenants/$1/1" timeout -k 5 "$patience_seconds" "${@:2}" >"$scratch/rows" 2>&1; }
fails_in() { ! run_in "$@"; }
lists() { # GROUP DEVICES COMMAND...: ibv_devices prints these names
	run_in "$1" "${@:3}" ibv_devices || return 1
	[ "$(awk 'NR > 2 { print $1 }' "$scratch/rows" | sort | paste -sd ' ')" = "$2" ]
}
opens() { run_in "$@" && grep -q 'hca_id:' "$scratch/rows"; } # GROUP COMMAND...
refused() { ! opens "$@"; }

echo "-- with the library"
check "b sees both devices" lists b 'rxe0 rxe1' "${covered[@]}"
check "a sees rxe0 only" lists a rxe0 "${covered[@]}"
check "a opens rxe0" opens a "${covered[@]}" ibv_devinfo -d rxe0
check "a does not find rxe1" refused a "${covered[@]}" ibv_devinfo -d rxe1
check "nor does ib_write_bw" fails_in a "${covered[@]}" ib_write_bw -d rxe1 -F
check "b opens it" opens b "${covered[@]}" ibv_devinfo -d rxe1

echo "-- rdma_cm"
around() { "${inside[@]}" "tenants/$group/1" "${covered[@]}" "$@"; }
group=a
pair rping cm rping -s -a 10.77.0.1 -C 3 -v -- rping -c -a 10.77.0.1 -C 3 -v
check "rping of a works over rxe0" test "$client_status" -eq 0
address=$(ip -4 -o address show dev "$(rdma link show rxe1/1 | sed 's/.* netdev \([^ ]*\).*/\1/')" | awk '{ sub("/.*", "", $4); print $4; exit }')
echo "      (rxe1 has the address $address)"
resolves_not() { fails_in a "${covered[@]}" rping -c -a "$address" -C 3 -v && grep -q ADDR_ERROR "$scratch/rows"; }
binds_not() { fails_in a "${covered[@]}" rping -s -a "$address" -C 3 -v && grep -q 'rdma_bind_addr: No such device' "$scratch/rows"; }
check "an address of rxe1 is not resolved for a" resolves_not
check "nor can a bind to it" binds_not

echo "-- without the library: the guard"
check "a opens rxe0" opens a ibv_devinfo -d rxe0
check "a cannot open rxe1" refused a ibv_devinfo -d rxe1
check "b can" opens b ibv_devinfo -d rxe1
check "the guard counted the refusal" test -n "$(of refused a ctx)"
event_told() { "$command" -j events | tr -d ' \n' | grep -o '{[^{}]*"forbidden":true[^{}]*}' >"$scratch/rows" && grep -q '"device":"rxe1"' "$scratch/rows"; }
check "an event names the device" eventually event_told
check "show tenant names the devices" tells 'rxe0' show tenant a

echo "-- changed while a program runs"
begin holder "${inside[@]}" tenants/b/1 "${covered[@]}" "$lives" batches
tell holder +2
says holder 'ok 2'
"$command" limit set tenant b devices='mlx5_* rxe1' >/dev/null
check "b sees rxe1 only" lists b rxe1 "${covered[@]}"
tell holder +1
says holder '^a QP: Permission denied'
check "a context that was open before makes nothing more" grep -q '^a QP: Permission denied' "$scratch/holder.out"
"$command" limit set tenant b mode=warn >/dev/null
check "in mode warn b sees both" lists b 'rxe0 rxe1' "${covered[@]}"
check "and opens rxe0" opens b "${covered[@]}" ibv_devinfo -d rxe0
check "with a line that says so" grep -q 'over limit, allowed: .*not among the devices' "$RDMA_INTERCEPT_LOG_FILE_PATH" "$scratch/rows"
check "and without the library" eventually opens b ibv_devinfo -d rxe0
"$command" limit unset tenant b devices mode >/dev/null
check "b sees both again" lists b 'rxe0 rxe1' "${covered[@]}"
end holder || true
guard_stop
