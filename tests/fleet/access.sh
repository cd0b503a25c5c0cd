#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034,SC2154,SC2317 # variables of fleet.sh; functions that run_cases calls
# TLS and users of etcd, and servers that send what no etcd sends.
# Usage: access.sh [--list | --only NAME]
set -uo pipefail
# shellcheck source=tests/fleet/fleet.sh
. "$(dirname "$0")/fleet.sh"

# certificate NAME SUBJECT [EXTENSION]: signed by the authority
certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$work/$1.key" -out "$work/$1.csr" -subj "/CN=$2" &&
		openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial \
			-days 2 -out "$work/$1.pem" -extfile <(echo "${3-}")
}

encrypted() {
	command -v openssl >/dev/null || { skip_part "openssl is not installed"; return; }
	{
		openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/ca.key" -out "$work/ca.pem" -subj /CN=ours -days 2
		openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/x.key" -out "$work/other.pem" -subj /CN=x -days 2
		certificate server etcd 'subjectAltName = IP:127.0.0.1'
		certificate client host
	} 2>"$work/openssl"
	scheme=etcds web=https
	etcd_options=(--cert-file "$work/server.pem" --key-file "$work/server.key" --client-cert-auth
		--trusted-ca-file "$work/ca.pem")
	user_of_etcd=(--cacert "$work/ca.pem" --cert "$work/client.pem" --key "$work/client.key")
	etcd_start 1
	fleet_options=(--ca "$work/ca.pem" --certificate "$work/client.pem" --key "$work/client.key")
	host_start a
	check "a change over TLS" fleet_command limit tenant ml qp=5
	check "arrives" eventually limit_is 5 a
	fleet_options=(--ca "$work/ca.pem")
	check "without a certificate nothing is changed" not fleet_command limit tenant ml qp=6
	fleet_options=(--ca "$work/other.pem" --certificate "$work/client.pem" --key "$work/client.key")
	try fleet_command status
	check "a server of another authority is not believed" grep -qi certificate "$work/err"
	check "it counts as a server that does not answer" [ "$status" -eq 3 ]
	check "the limit is as it was" limit_is 5 a
	hosts_end
	etcd_end
	scheme=etcd web=http etcd_options=() user_of_etcd=() fleet_options=()
}

users() {
	etcd_start 1
	{
		ctl user add root:secret && ctl user grant-role root root
		ctl user add rdma:word && ctl role add fleet && ctl role grant-permission fleet --prefix=true readwrite /rdma/
		ctl user grant-role rdma fleet && ctl auth enable
	} || cat "$work/ctl"
	user_of_etcd=(--user root:secret)
	echo word >"$work/password"
	fleet_options=(--user rdma --password-file "$work/password")
	host_start a
	check "a change by a user" fleet_command limit tenant ml qp=5
	check "arrives" eventually limit_is 5 a
	check "a quota" fleet_command quota ml qp=9
	check "is divided" eventually limit_is 9 a
	echo wrong >"$work/password"
	check "a wrong password" not fleet_command limit tenant ml qp=6
	fleet_options=()
	check "no user" not fleet_command limit tenant ml qp=6
	kill_now "${etcd_pid[0]}"
	etcd_run 0
	check "etcd is back, and knows no token" eventually ctl endpoint health
	echo word >"$work/password"
	fleet_options=(--user rdma --password-file "$work/password")
	check "another change" eventually fleet_command quota ml qp=7
	check "arrives, too" eventually limit_is 7 a
	hosts_end
	etcd_end
	user_of_etcd=() fleet_options=()
}

# serve FILE: a server that answers everything with the bytes of a file
serve() {
	port_free
	background python3 - "$port" "$1" >/dev/null 2>&1 <<-'END' &
		import socket, sys
		listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
		while True:
		    peer, _ = listening.accept()
		    try:
		        peer.recv(65536)
		        with open(sys.argv[2], "rb") as file:
		            peer.sendall(file.read())
		    except OSError:
		        pass
		    peer.close()
	END
	workers+=($!)
	served=$!
	eventually grep -q "$(printf ':%04X ' "$port")" /proc/net/tcp
}

garbage() {
	local answer head=$'HTTP/1.1 200 OK\r\n\r\n'

	command -v python3 >/dev/null || { skip_part "python3 is not installed"; return; }
	printf '%s' "$head" >"$work/empty"
	printf '%s{"header":{},"kvs":[{"key":"!!"}]}' "$head" >"$work/key"
	printf '%s[1,2' "$head" >"$work/cut"
	printf '%s\0\377\0' "$head" >"$work/binary"
	printf 'no HTTP at all' >"$work/other"
	{ printf '%s' "$head" && head -c 20000000 /dev/zero | tr '\0' '['; } >"$work/huge"
	for answer in empty key cut binary other huge; do
		serve "$work/$answer"
		policy_address=etcd://127.0.0.1:$port/rdma
		try bash -c "ulimit -v 400000; exec '$fleet' --policy $policy_address status"
		check "$answer: a failure ($(head -c 150 "$work/err"))" [ "$status" -ne 0 ]
		check "$answer: one line that names the server or the mistake" \
			grep -qE '^rdma_fleet: .*(127.0.0.1|the server sent)' "$work/err"
		check "$answer: not by a signal" [ "$status" -lt 100 ]
		mkdir -p "$work/$answer.d"
		background "$fleet" --policy "$policy_address" --directory "$work/$answer.d" --socket "$work/none" \
			2>"$work/$answer.log" &
		workers+=($!)
		check "$answer: rdma_fleet says it, too" eventually test -s "$work/$answer.log"
		check "$answer: and goes on" kill -0 $!
		kill_now $!
		kill_now "$served"
	done
}

run_cases "encrypted users garbage" "$@"
