#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2317,SC2034,SC2086 # variables of fleet.sh; functions that run_cases calls
# What should not be in etcd, on the disk or on the network: names and values that break files, too
# many and too large keys, two hosts of one name, a full disk, a kill at each step of writing, clocks
# that differ, servers that do not answer. A good limit still arrives, and no quota is exceeded.
# Usage: hostile.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"

# raw_put KEY VALUE: keys and values with any bytes but NUL; \0 in the key is a NUL
raw_put() {
	printf '{"key":"%s","value":"%s"}' "$(printf %b "$1" | base64 -w 0)" "$(printf %s "$2" | base64 -w 0)" >"$work/raw"
	raw_post kv/put
}

raw_post() {
	curl -sf --data-binary "@$work/raw" "${endpoints%%,*}/v3/$1" >"$work/raw.answer" || {
		cat "$work/raw.answer"
		return 1
	}
}

# The records of a quota and what is free are the quota.
ledger_is_right() { # TENANT/KIND
	local ledger shares

	ledger=$(etcdctl --endpoints "$endpoints" get --print-value-only "/rdma/ledger/$1")
	shares=$(etcdctl --endpoints "$endpoints" get --prefix /rdma/share/ | grep -A1 "^/rdma/share/[^/]\{1,255\}/$1\$")
	printf '%s\n%s\n' "$ledger" "$shares" | tee "$work/ledger" | awk '
		function field(name) {
			if (!match($0, "\"" name "\":-?[0-9]+")) return 0
			return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
		}
		/"quota"/ { quota = field("quota"); sum += field("free") }
		/"share"/ { sum += field("share") }
		END { exit !(quota > 0 && sum == quota) }'
}

collector_is_content() {
	! grep -E "the fleet's old policy stays|the fleet has no limits" "$work/$1/collector.log"
}

works_still() { # LIMIT
	check "a limit arrives" fleet_command limit tenant ml qp="$1"
	check "at both hosts" eventually limit_is "$1" a b
	check "a quota is divided among both" eventually divides_still
	check "shares and what is free are the quota" eventually ledger_is_right ml/mr
	check "the collectors have no complaint" collector_is_content a
}

divides_still() {
	local one other

	one=$(limit_on a mr) other=$(limit_on b mr)
	[ "${one:-0}" -ge 2 ] && [ "${other:-0}" -ge 2 ] && [ $((one + other)) -eq 40 ]
}

names() {
	local long name

	etcd_start 1
	printf -v long '%600s' ''
	long=${long// /x}
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	for name in 'all/quota/x]\n[collector]\nsocket = /x\n[tenant y/qp' 'all/quota/a b/qp' 'all/quota//qp' \
		'all/quota/ml/nothing' 'all/quota/ml/qp/more' 'all/quota/%j/qp' "all/quota/${long:0:100}/qp" \
		"all/$long" 'all/with\0nul' 'all/quota/\0330;31m/qp' "alive/${long:0:300}" 'alive/a/b' alive/ 'alive/x\ny' \
		'share/host-a/x]\n[host/qp' share/host-a share/ 'share//ml/mr' "share/${long:0:300}/ml/mr" \
		'ledger/' 'ledger/x\ny/qp' report/ "report/$long"; do
		raw_put "/rdma/$name" '{"amount":5,"guarantee":1,"share":5,"kept":5,"target":5,"floor":5}' ||
			check "etcd takes ${name:0:40}" false
	done
	host_start a b
	works_still 11
	check "nothing of it is in the files" not grep -rqE 'collector|host\]|socket|a b|%j' "$work/a/fleet"
	check "status has one line for each host" [ "$(fleet_command status | grep -c '^host-')" -eq 2 ]
	# Once more, now that hosts follow changes.
	for name in 'all/quota/x]\n[collector]\nsocket = /x\n[tenant y/qp' "all/$long" 'all/with\0nul' 'alive/a/c'; do
		raw_put "/rdma/$name" '{"amount":6,"guarantee":1}' || check "etcd takes ${name:0:40}" false
	done
	works_still 12
	hosts_end
	etcd_end
}

values() {
	local value nested i=0

	nested=$(printf '%5000s' '' | tr ' ' '[')
	etcd_start 1
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	check "another quota, for the bad values" fleet_command quota ml cq=40
	host_start a b
	works_still 11
	for value in '' 'null' '[]' '{}' "$nested" '{"amount":-1,"guarantee":-1}' '{"amount":99999999999999999999}' \
		'{"amount":1e3,"guarantee":0}' '{"amount":"5","guarantee":"1"}' '{"amount":9223372036854775807,"guarantee":9223372036854775807}' \
		'{"quota":9223372036854775807,"free":9223372036854775807}' '{"quota":-5,"free":-9223372036854775808}' \
		'{"share":9223372036854775807,"kept":0,"target":9223372036854775807,"floor":0}' \
		'{"share":9223372036854775807,"kept":9223372036854775807,"target":0,"floor":9223372036854775807}' \
		'{"share":5,"kept":0,"target":50,"floor":0}' '{"share":-5,"kept":-5,"target":-5,"floor":-5}'; do
		for key in all/quota/ml/cq share/host-a/ml/cq share/host-b/ml/cq share/gone/ml/cq ledger/ml/cq \
			report/host-a report/gone divider; do
			raw_put "/rdma/$key" "$value" || check "etcd takes the value" false
		done
		i=$((i + 1))
		ctl del /rdma/divider
	done
	works_still 12
	check "both rdma_fleets live" kill -0 "$(pid_of fleet a)" "$(pid_of fleet b)"
	check "all of it is gone" ctl del --prefix /rdma/share/gone
	for key in share/host-a/ml/cq share/host-b/ml/cq ledger/ml/cq; do
		ctl del "/rdma/$key"
	done
	check "a good quota in its place" fleet_command quota ml cq=30
	check "is divided" eventually sum_is 30 cq
	check "the ledger was garbage, and is right" eventually ledger_is_right ml/cq
	hosts_end
	etcd_end
}

sum_is() { # AMOUNT KIND
	local one other

	one=$(limit_on a "$2") other=$(limit_on b "$2")
	[ $((${one:-0} + ${other:-0})) -eq "$1" ]
}

# Somebody removes a ledger, or writes another one: the records say what is handed out.
ledger() {
	etcd_start 1
	host_start a b
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	check "is divided" eventually divides_still
	check "its ledger is removed" ctl del /rdma/ledger/ml/mr
	check "it comes back, and is right" eventually ledger_is_right ml/mr
	check "a ledger that promises more" ctl put /rdma/ledger/ml/mr '{"quota":40,"free":1000}'
	check "is put right when shares change" fleet_command quota ml mr=30
	check "and is" eventually ledger_is_right ml/mr
	check "no more is in force than there is" eventually sum_is 30 mr
	hosts_end
	etcd_end
}

# puts COUNT BYTES PREFIX: so many keys with values of so many bytes, 100 at a time
puts() {
	python3 - "$@" "${endpoints%%,*}" <<-'END'
		import base64, json, sys, urllib.request
		count, size, prefix, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
		value = base64.b64encode(b'x' * size).decode()
		batch = max(1, min(100, 1000000 // size))
		for first in range(0, count, batch):
		    puts = [{'request_put': {'key': base64.b64encode(b'%s%07d' % (prefix.encode(), i)).decode(), 'value': value}}
		            for i in range(first, min(first + batch, count))]
		    urllib.request.urlopen(address + '/v3/kv/txn', json.dumps({'success': puts}).encode()).read()
	END
}

most_memory() { # KILOBYTES NAME: what rdma_fleet of a host has had at most
	local kilobytes

	kilobytes=$(awk '/^VmHWM/ { print $2 }' "/proc/$(pid_of fleet "$2")/status")
	echo "      rdma_fleet of $2 had at most $kilobytes KB"
	[ "$kilobytes" -le "$1" ]
}

large() {
	command -v python3 >/dev/null || { skip_part "python3 is not installed"; return; }
	etcd_start 1
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	check "1,000 keys of 20 KB that concern all" puts 1000 20000 /rdma/all/x
	check "16 reports of 1 MB" puts 16 1000000 /rdma/report/x
	host_start a b
	works_still 11
	check "memory is bounded" most_memory 120000 a
	if [ "$factor" -gt 1 ]; then
		check "250,000 keys that concern all" puts 250000 1 /rdma/all/y
		kill_now "$(pid_of fleet a)"
		fleet_run a
		check "are too many, and the log says so" eventually grep -q "too many keys" "$work/a/fleet.log"
		check "the last limit stays" limit_is 11 a
		check "memory is bounded" most_memory 400000 a
	fi
	hosts_end
	etcd_end
}

# A share belongs to a name: a second host of the same name must not use it, too.
same_name() {
	etcd_start 1
	host_start a
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	check "all of it is the first host's" eventually limit_is_of a mr 40
	host_names=([b]=host-a)
	host_start b
	check "the second host of this name says so" eventually grep -q "host host-a: another rdma_fleet has this name" "$work/b/fleet.log"
	check "and has no share" not limit_is_of b mr 40
	kill_now "$(pid_of fleet a)"
	check "when the lease of the first has ended, the second has it" eventually limit_is_of b mr 40
	check "the first has not" limit_is_of a mr 2
	kill_now "$(pid_of fleet b)"
	fleet_run b
	check "who begins anew on the same host waits for nothing" eventually log_has b "in the fleet as host-a" 2
	check "and was not refused" log_has_at_most b "another rdma_fleet" 1
	host_names=()
	hosts_end
	etcd_end
}

limit_is_more() { local limit; limit=$(limit_on "$1" "$2") && [[ $limit =~ ^[0-9]+$ ]] && [ "$limit" -gt "$3" ]; }
limit_is_of() { [ "$(limit_on "$1" "$2")" = "$3" ]; }
log_has() { [ "$(grep -c "$2" "$work/$1/fleet.log")" -ge "$3" ]; }
log_has_at_most() { [ "$(grep -c "$2" "$work/$1/fleet.log")" -le "$3" ]; }

traced=''
can_trace() {
	[ -n "$traced" ] || { strace -o /dev/null true 2>/dev/null && traced=yes || traced=no; }
	[ "$traced" = yes ] || {
		skip_part "strace is not installed, or may not trace"
		return 1
	}
}

# The system calls that make a file last fail, as on a full disk.
disk_full() {
	local strace

	can_trace || return
	etcd_start 1
	host_start a
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	fleet_command limit tenant ml qp=5 >/dev/null
	check "a limit" eventually limit_is 5 a
	check "a share" eventually limit_is_of a mr 40
	background strace -o "$work/strace" -p "$(pid_of fleet a)" -e trace=fsync,openat -e inject=fsync:error=ENOSPC 2>/dev/null &
	strace=$!
	workers+=("$strace")
	check "the disk is full" eventually test -s "$work/strace"
	fleet_command limit tenant ml qp=6 >/dev/null
	check "the log says so" eventually grep -q "No space left" "$work/a/fleet.log"
	check "the status, too" eventually status_has 'refused.*No space left'
	check "the old limit stays" limit_is 5 a
	fleet_command quota ml mr=20 >/dev/null
	check "a share that cannot be written is not confirmed" eventually share_has a '"share":40,.*"target":20,'
	kill -TERM "$strace"
	wait "$strace" 2>/dev/null
	check "there is room again: the limit comes without another change" eventually limit_is 6 a
	check "and the share" eventually limit_is_of a mr 20
	check "and is confirmed" eventually share_has a '"share":20,'
	check "nothing half written is left" files_are a
	hosts_end
	etcd_end
}

status_has() { fleet_command status | grep -q "$1"; }
share_has() { etcdctl --endpoints "$endpoints" get --print-value-only "/rdma/share/host-$1/ml/mr" | grep -q "$2"; }
files_are() {
	ls -A "$work/$1/fleet" >"$work/files"
	printf '%s\n' kept.conf lease leased.conf policy.conf | cmp -s - "$work/files" || {
		cat "$work/files"
		return 1
	}
}

# rdma_fleet is killed before each system call of its writing in turn.
killed() {
	local call number limit=10 at=0 now tracer not_reached=''

	can_trace || return
	etcd_start 1
	host_start a
	check "a quota" fleet_command quota ml mr=1000 guarantee.mr=2
	fleet_command limit tenant ml qp=10 >/dev/null
	check "a limit" eventually limit_is 10 a
	check "a share" eventually limit_is_of a mr 1000
	kill_now "$(pid_of fleet a)"
	for call in openat fchmod fsync rename write; do
		for number in 1 2 3; do
			# The first writes, and files that are opened, are not those of the directory.
			at=$number
			[ "$call" != openat ] || at=$((openat_first + number))
			limit=$((limit + 1))
			fleet_command limit tenant ml qp=$limit >/dev/null
			fleet_command quota ml mr="$(mr_of $limit)" >/dev/null
			background strace -o "$work/strace" -e trace="$call" -e inject="$call":signal=KILL:when="$at" \
				"$fleet" --policy "$policy_address" --directory "$work/a/fleet" --socket "$work/a/socket" \
				--host host-a --lease "$lease" >>"$work/a/fleet.log" 2>&1 &
			tracer=$!
			workers+=("$tracer")
			eventually killed_or_done $tracer $limit
			kill -0 $tracer 2>/dev/null && not_reached+=" $call-$at"
			kill_now $tracer
			now=$(limit_on a)
			check "killed at $call $at: an old or a new limit ($now)" test "${now:-0}" -ge 10 -a "${now:-0}" -le $limit
			check "the share or the guarantee" test "$(limit_on a mr)" -ge 2
			check "the collector has no complaint" collector_is_content a
		done
	done
	echo "      all was written before these were reached:${not_reached:- none}"
	check "most were reached" [ "$(wc -w <<<"$not_reached")" -le 6 ]
	fleet_run a
	check "the last limit comes" eventually limit_is $limit a
	check "the share, too" eventually limit_is_of a mr "$(mr_of $limit)"
	check "nothing half written is left" files_are a
	hosts_end
	etcd_end
}
openat_first=30
# A smaller quota reaches a host that wants little; a larger one would stay free.
mr_of() { echo $((1000 - 10 * $1)); }
killed_or_done() { # PID LIMIT
	! kill -0 "$1" 2>/dev/null || { limit_is "$2" a && limit_is_of a mr "$(mr_of "$2")"; }
}

# Clocks of the host are not those of etcd: the host's own clock decides.
clocks() {
	unshare --time --fork --boottime 100000 true 2>/dev/null || {
		skip_part "unshare cannot make a namespace of clocks here"
		return
	}
	etcd_start 1
	host_prefix=(unshare --time --fork --kill-child --boottime 100000 --monotonic 50000)
	host_start a
	host_prefix=()
	host_start b
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	check "is divided" eventually divides_still
	kill -STOP "$(pgrep -P "$(pid_of fleet a)")"
	check "the share ends with the lease" eventually limit_is_of a mr 2
	check "and its share in etcd" eventually share_has a '"share":2,'
	kill -CONT "$(pgrep -P "$(pid_of fleet a)")"
	check "it comes back" eventually divides_still
	hosts_end
	# A lease that no server can have granted.
	host_start a
	check "a share" eventually limit_is_more a mr 2
	kill_now "$(pid_of fleet a)"
	check "it ends" eventually limit_is_of a mr 2
	sed 's/ .*/ 9000000000000000000/' "$work/a/fleet/lease" >"$work/lease" && chmod 644 "$work/lease"
	mv "$work/lease" "$work/a/fleet/lease"
	"$command" -s "$work/a/socket" limit set tenant ml qp=3 >/dev/null # the collector has read both
	check "another command" eventually limit_is 3 a
	check "a lease of centuries does not count" limit_is_of a mr 2
	hosts_end
	etcd_end
}

# A collector that cannot read its files keeps to the old ones: nothing is confirmed.
unread() {
	etcd_start 1
	host_start a b
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=5
	fleet_command limit tenant ml qp=5 >/dev/null
	check "is divided" eventually divides_still
	check "confirmed" eventually share_has a '"kept":5,'
	chmod 666 "$work/a/fleet/policy.conf"
	touch "$work/a/fleet/policy.conf"
	fleet_command quota ml guarantee.mr=2 >/dev/null
	check "the collector does not trust a file" eventually grep -q "not trusted" "$work/a/collector.log"
	check "the other host keeps less without a lease" eventually share_has b '"kept":2,'
	check "this one is not said to" share_has a '"kept":5,'
	check "and does not" eventually grep -q "the lease has ended" "$work/a/collector.log"
	check "it keeps the old guarantee" limit_is_of a mr 5
	check "and etcd says so" share_has a '"kept":5,'
	chmod 644 "$work/a/fleet/policy.conf"
	fleet_command limit tenant ml qp=6 >/dev/null
	check "trusted again" eventually limit_is 6 a
	check "and confirmed" eventually share_has a '"kept":2,'
	hosts_end
	etcd_end
}

# The first server accepts connections and says nothing.
silent_server() {
	local address

	command -v python3 >/dev/null || { skip_part "python3 is not installed"; return; }
	etcd_start 1
	port_free
	background python3 - "$port" <<-'END' &
		import socket, sys
		listening, peers = socket.create_server(("127.0.0.1", int(sys.argv[1]))), []
		while True:
		    peers.append(listening.accept())
	END
	workers+=($!)
	address=$policy_address
	policy_address=etcd://127.0.0.1:$port,${policy_address#etcd://}
	host_start a b
	check "a quota" fleet_command quota ml mr=40 guarantee.mr=2
	works_still 11
	policy_address=$address
	hosts_end
	etcd_end
}

run_cases "names values ledger large same_name disk_full killed clocks unread silent_server" "$@"
