# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scenarios of two hosts share: ib_write_bw from host 1 to host 2, several at the same
# time, each with a traffic class, and what they measured.
# shellcheck disable=SC2034 # for the scenarios
. lab/lib.sh
receiver=10.77.0.2
message_size=65536

# What the scenario may define: how the transfer NAME is run, and what is checked after each round.
transfer_around() { guarded '' "${@:2}"; }
transfers_done() { :; }

# transfers NAME:CLASS:MESSAGES...: ib_write_bw of messages of $message_size with each traffic class,
# all at the same time. 64 packets of a queue pair may wait in a slow queue, so the time after which
# it sends them again is long (-u). ib_write_bw first measures how fast the processor's counter runs;
# if other work disturbs that, it may print 0.00 on both hosts, and both begin again.
transfers() {
	local try
	for try in 1 2 3 4 5; do
		transfers_run "$@"
		unmeasured "$@" || return 0
		echo "      (ib_write_bw printed 0.00 in try $try$(grep -h Correlation "$scratch/${1%%:*}" | head -n 1 | sed 's/^/: /'))"
	done
}
unmeasured() {
	local row
	for row; do
		[ "$(bandwidth "${row%%:*}")" != 0.00 ] || return 0
	done
	return 1
}
transfers_run() {
	local pids=() status row
	[ "$host" -eq 1 ] || transfers_start "$@"
	barrier "ib_write_bw listens"
	[ "$host" -eq 2 ] || transfers_start "$@"
	for row; do
		wait "${pids[0]}" && status=0 || status=$?
		pids=("${pids[@]:1}")
		check "ib_write_bw ends well: ${row%%:*}: $(bandwidth "${row%%:*}") MB/s" test $status -eq 0
		[ $status -eq 0 ] || show "$scratch/${row%%:*}"
	done
	transfers_done
}
transfers_start() { # adds to pids
	local port=18515 row name class messages run
	for row; do
		IFS=: read -r name class messages <<<"$row"
		run=(ib_write_bw -d rxe0 -F -u 19 -s "$message_size" -n "$messages" --tclass="$class" -p "$port")
		[ "$host" -eq 2 ] || run+=("$receiver")
		transfer_around "$name" timeout -k 5 "$patience_seconds" "${run[@]}" >"$scratch/$name" 2>&1 &
		pids+=($!)
		[ "$host" -eq 1 ] || check "ib_write_bw listens: $name" eventually tcp_listens $port
		port=$((port + 1))
	done
}
# bandwidth NAME: in MB/s; message_rate NAME: messages a second
bandwidth() { awk -v size="$message_size" '$1 == size { print $4 }' "$scratch/$1"; }
message_rate() { awk -v size="$message_size" '$1 == size { print $5 * 1000000 }' "$scratch/$1"; }
