#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Limits of a port on a real device: QPs take a place from INIT on and give it back on RESET, at
# their end, and when the kernel refuses the call; counts by port equal the kernel's; programs and
# the collector are killed. Connections of the connection manager and of perftest count as well.
set -euo pipefail
. lab/lib.sh
portqps=$BUILD_DIRECTORY/lab/portqps
member=(env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=lease RDMA_INTERCEPT_QUIET=1)

# on_port KIND: what the collector says of port 1 of rxe0
on_port() {
	"$command" -j show device rxe0 | python3 -c '
import json, sys
ports = {port["port"]: port["kinds"] for port in json.load(sys.stdin)["device"]["ports"]}
print(ports[1][sys.argv[1]]["used"] if 1 in ports else 0)' "$1"
}
on_port_is() { [ "$(on_port "$1" | tee "$scratch/rows")" = "$2" ]; }
# kernel_on_port: the QPs of rxe0 in a state other than RESET, without the kernel's own
kernel_on_port() { rdma resource show qp link rxe0/1 2>/dev/null | grep -v 'type GSI' | grep -cv 'state RESET'; }
kernel_on_port_is() { [ "$(kernel_on_port | tee "$scratch/rows")" = "$1" ]; }
# answers NAME COUNT TEXT: its last line, after so many
answers() {
	eventually has_lines "$1" "$2" || true
	tail -n 1 "$scratch/$1.out" >"$scratch/rows"
	check "$1: $3" grep -qx "$3" "$scratch/rows"
}
has_lines() { [ "$(wc -l <"$scratch/$1.out")" -ge "$2" ]; }

before=$(kernel_counts)
kernel_before=$(kernel_on_port || true)
collector_start

echo "-- counts without a limit"
begin first "${member[@]}" "$portqps" rxe0 20
answers first 1 'made 20'
check "a QP in RESET is on no port" on_port_is qp 0
tell first 'enter 7 1'
answers first 2 'on 7 refused 0 failed 0'
check "7 are on the port" on_port_is qp 7
check "as many as the kernel says" kernel_on_port_is $((kernel_before + 7))
tell first 'handles 3'
answers first 3 'handles 3 errno 0'
check "and 3 address handles" on_port_is ah 3

echo "-- a limit that comes while programs run"
check "the limit is set" "$command" limit set host port.rxe0/1.qp=10 port.rxe0/1.ah=4
begin second "${member[@]}" "$portqps" rxe0 20
answers second 1 'made 20'
tell second 'enter 20 1'
answers second 2 'on 3 refused 17 failed 0'
check "the kernel has 10 there" kernel_on_port_is $((kernel_before + 10))
tell second 'handles 5'
answers second 3 "handles 1 errno $(python3 -c 'import errno; print(errno.EDQUOT)')"
tell first 'leave 2'
answers first 4 'on 5'
tell second 'enter 17 1'
answers second 4 'on 5 refused 15 failed 0'
check "still 10" kernel_on_port_is $((kernel_before + 10))

echo "-- a call that the kernel refuses takes nothing"
tell second 'leave 1'
answers second 5 'on 4'
tell second 'enter 8 2'
answers second 6 'on 4 refused 0 failed 8'
check "9 are on the port" on_port_is qp 9
tell second 'enter 8 1'
answers second 7 'on 5 refused 7 failed 0'

echo "-- the collector and a program are killed"
collector_kill
collector_start
check "the next one knows of 10" eventually on_port_is qp 10
killed first
check "what the killed program had is back" eventually on_port_is qp 5
tell second 'enter 8 1'
answers second 8 'on 10 refused 3 failed 0'
check "the kernel has 10 there again" eventually kernel_on_port_is $((kernel_before + 10))
"$command" events >"$scratch/rows"
check "events name the port" grep -q 'rxe0/1 .*qp used 10/10, wanted 1 more, limit of the port' "$scratch/rows"
event=$(sed -n 's/.*limit of the port.*, event \([0-9-]*\)$/\1/p' "$scratch/rows" | tail -n 1)
"$command" explain "$event" >"$scratch/rows" || true
check "explain names the port and the key" grep -q 'limit set host port.rxe0/1.qp=11' "$scratch/rows"
"$command" show process "${process[second]}" >"$scratch/rows"
check "show process has the port" grep -Eq '^ *rxe0/1 +qp +10 ' "$scratch/rows"
check "and the states" grep -Eq 'qp_states +INIT +10' "$scratch/rows"
"$command" limit get >"$scratch/rows"
check "limit get has the key" grep -Eq 'host +port.rxe0/1.qp +10' "$scratch/rows"
end second || true
check "nothing is left" settled "$before"
check "nor in the books" eventually on_port_is qp 0

echo "-- connections of the connection manager"
around() { guarded 'TRANSPORT=lease QUIET=1' "$@"; }
for name in rping ucmatose ib_send_bw ib_write_lat-R; do
	check "room for all of $name" "$command" limit set host port.rxe0/1.qp=100
	application "$name"
	check "$name works ($client_status, $server_status)" [ "$client_status $server_status" = '0 0' ]
	check "one QP is too little for both of its sides" "$command" limit set host port.rxe0/1.qp=1
	rm -f "$scratch/log"
	application "$name"
	check "$name fails ($client_status, $server_status)" [ "$client_status $server_status" != '0 0' ]
	grep refused "$scratch/log" >"$scratch/rows" || true
	check "and the log says why" grep -q 'refused ibv_modify_qp: .*device=rxe0/1 qp used 1/1' "$scratch/rows"
	check "nothing is left of $name" settled "$before"
	check "nor in the books" eventually on_port_is qp 0
done

echo "-- the program's own limit, without a collector"
collector_stop
unset RDMA_COLLECTOR_SOCKET RDMA_COLLECTOR_STATE
begin alone env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=embedded RDMA_INTERCEPT_QUIET=1 \
	RDMA_INTERCEPT_LIMITS=port:rxe0/1:qp=4 "$portqps" rxe0 8
tell alone 'enter 8 1'
answers alone 2 'on 4 refused 4 failed 0'
check "the shared file tells it" on_port_is qp 4
killed alone
begin alone env LD_PRELOAD="$library" RDMA_INTERCEPT_TRANSPORT=embedded RDMA_INTERCEPT_QUIET=1 "$portqps" rxe0 8
tell alone 'enter 8 1'
answers alone 2 'on 4 refused 4 failed 0'
end alone || true
check "nothing is left at the end" settled "$before"
finish
