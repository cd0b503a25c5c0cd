#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2317 # the cases are called by name
# An update on a host with running programs: collector, library and command of an earlier commit,
# built from the history, beside those of this build. No count, no process and no change by a
# command is lost, no tenant gets more than its limit, and what cannot work together says so with
# both versions.
#
#   upgrades.sh [FROM] [--list | --only CASE]
#
# FROM: books (the default), proto or leases: the commit before the last change of that version
# number; or a revision, such as HEAD^.
set -euo pipefail

from=books
case ${1-} in
'' | --*) ;;
*)
	from=$1
	shift
	;;
esac
unset RDMA_COLLECTOR_SOCKET RDMA_COLLECTOR_STATE RDMA_INTERCEPT_LOG_FILE_PATH
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
sources=$(cd "$here/.." && pwd)
chmod 755 "$work"
old=$work/old/build new=$build
sum=$work/sum
export RDMA_COLLECTOR_SOCKET=$work/socket RDMA_COLLECTOR_STATE=$work/state LC_ALL=C.UTF-8
export RDMA_MONITOR_DIRECTORY=$work/monitor RDMA_COLLECTOR_CGROUPS=$work/cgroups RDMA_COLLECTOR_DEVICES=$work/devices
export RDMA_INTERCEPT_QUIET=1 RDMA_INTERCEPT_LOG_LEVEL=INFO

# ---- the earlier build

history() {
	git -c safe.directory='*' -C "$sources" "$@" 2>/dev/null
}

# version_changed NAME FILE: the commit before the last one that changed the number
version_changed() {
	local last

	last=$(history log -1 --format=%H -G"\\<$1 = [0-9]" -- "$2")
	[ -n "$last" ] && history rev-parse --verify "$last^"
}

find_commit() {
	case $from in
	books) version_changed BOOKS_VERSION src/collector/books.h ;;
	proto) version_changed PROTO_VERSION src/proto/messages.h ;;
	leases) version_changed LEASE_VERSION src/ledger/leaselayout.h ;;
	*) history rev-parse --verify "$from^{commit}" ;;
	esac
}

# number DIRECTORY NAME: of the version, in the sources there
number() {
	grep -rhoE "\\<$2 = [0-9]+" "$1/src" --include='*.h' | grep -oE '[0-9]+$'
}

build_earlier() {
	local commit

	if ! commit=$(find_commit); then
		echo "skipped: the history does not have the commit ($from): a whole clone by git has it"
		exit 77
	fi
	echo "earlier: $(history log -1 --format='%h of %cs, %s' "$commit")"
	mkdir -p "$work/old"
	history archive "$commit" | tar -x -C "$work/old"
	if ! { cmake -S "$work/old" -B "$old" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" \
		-DRDMA_INTERCEPT_MONITOR=OFF -DRDMA_INTERCEPT_DASHBOARD=OFF -DRDMA_INTERCEPT_CLIENT=OFF \
		-DRDMA_INTERCEPT_NCURSES=OFF -DRDMA_INTERCEPT_TESTS=OFF &&
		cmake --build "$old" -j2; } >"$work/build.log" 2>&1; then
		tail -20 "$work/build.log"
		echo "FAIL  the earlier commit is built"
		exit 1
	fi
	old_proto=$(number "$work/old" PROTO_VERSION) new_proto=$(number "$sources" PROTO_VERSION)
	old_lease=$(number "$work/old" LEASE_VERSION) new_lease=$(number "$sources" LEASE_VERSION)
	old_books=$(number "$work/old" BOOKS_VERSION) new_books=$(number "$sources" BOOKS_VERSION)
	echo "earlier and present: protocol $old_proto, $new_proto; leases $old_lease, $new_lease; ledger $old_books, $new_books"
}

# ---- collectors

policy=$work/policy.conf
write_policy() {
	cat >"$policy" <<-END
		[host]
		qp = 200
		[tenant roomy]
		match = gid=4000001
		qp = 30
		rate.create_qp = 100000/s
		[tenant tight]
		match = gid=4000002
		qp = 10
		[tenant told]
		match = gid=4000003
		mode = warn
		qp = 2
	END
	[ "$old_lease" = "$new_lease" ] || sed -i /^rate/d "$policy" # older than rates
}

collector_pid=
answers_to() {
	"$1/rdma_intercept" status >/dev/null 2>&1
}
# collector_start BUILD: waits until it serves
collector_start() {
	background "$1/collector_server" --policy "$policy" >>"$work/collector.log" 2>&1 &
	collector_pid=$!
	workers+=("$collector_pid")
	if ! eventually answers_to "$1"; then
		cat "$work/collector.log"
		exit 1
	fi
}
collector_stop() {
	[ -n "$collector_pid" ] || return 0
	kill -"$1" "$collector_pid"
	wait "$collector_pid" 2>/dev/null || true
	collector_pid=
}
# begin BUILD: a collector of that build, with an empty state and no process
begin() {
	end
	rm -rf "$work/state" "$work/collector.log" "$work"/log.*
	mkdir -p "$work/cgroups" "$work/devices"
	write_policy
	collector_start "$1"
}
end() {
	local name

	for name in "${holders[@]}"; do
		tell "$name" quit
		wait "$(pid_of "$name")" 2>/dev/null || true
	done
	holders=()
	collector_stop KILL
}

# ---- programs

holders=()
declare -A held
pid_of() {
	local pid=pid_$1

	echo "${!pid}"
}
# holder NAME BUILD TENANT'S-GID [NAME=value...]: a program with the library of that build
holder() {
	local name=$1 from=$2 gid=$3 fd

	shift 3
	rm -f "$work/$name.in" "$work/$name.out"
	mkfifo "$work/$name.in" "$work/$name.out"
	[ -e "$sum.$gid" ] || truncate -s 16 "$sum.$gid"
	background env LD_PRELOAD="${TEST_PRELOAD:+$TEST_PRELOAD:}$from/librdma_intercept.so" \
		RDMA_INTERCEPT_LOG_FILE_PATH="$work/log.$gid" "$@" setpriv --regid "$gid" --clear-groups \
		"$build/tests/upgrades_holder" "$sum.$gid" <"$work/$name.in" >"$work/$name.out" 2>>"$work/$name.err" &
	workers+=($!)
	printf -v "pid_$name" %s $!
	exec {fd}<>"$work/$name.in"
	printf -v "to_$name" %s "$fd"
	exec {fd}<"$work/$name.out"
	printf -v "from_$name" %s "$fd"
	holders+=("$name")
	held[$name]=0
}
# A program that has ended does not answer.
made_is() {
	made=$1
	[[ $made =~ ^[0-9]+$ ]] || {
		echo "      $made"
		made=0
	}
}
# make_objects NAME N: tries; $made: how many were made. drop_objects likewise.
make_objects() {
	tell "$1" "make $2"
	made_is "$(hear "$1")"
	held[$1]=$((held[$1] + made))
}
drop_objects() {
	tell "$1" "drop $2"
	made_is "$(hear "$1")"
	held[$1]=$((held[$1] - made))
}
churn_end() {
	local rounds refused

	tell "$1" "drop 0"
	read -r rounds refused "held[$1]" <<<"$(hear "$1")"
	hear "$1" >/dev/null
	echo "      $1: $rounds rounds, $refused refusals"
}
# at_most GID N: its programs never held more together
at_most() {
	local peak

	peak=$(od -An -t u8 -j 8 -N 8 "$sum.$1" | tr -d ' ')
	echo "the tenant of gid $1 had $peak"
	[ "$peak" -le "$2" ]
}
limits_were_kept() {
	at_most 4000001 30 && at_most 4000002 12 && at_most 4000004 5
}
# used PID: queue pairs by the books, or nothing
used() {
	"$new/rdma_intercept" -j show process "$1" 2>/dev/null | grep -oE '"qp":\{"used":[0-9]+' | head -1 | grep -oE '[0-9]+$'
}
books_are_exact() {
	local name

	for name in "${holders[@]}"; do
		[ "$(used "$(pid_of "$name")")" = "${held[$name]}" ] || {
			echo "$name holds ${held[$name]}, the books say '$(used "$(pid_of "$name")")'"
			return 1
		}
	done
}
# limits_by BUILD
limits_by() {
	"$1/rdma_intercept" limit get 2>/dev/null | tr -s ' '
}
# The tenants' limits have room for what their programs churn: no limit was in the way. That the
# collector does not answer for a moment may be.
never_refused() {
	! cat "$work"/log.400000[12] 2>/dev/null | grep 'refused ibv_create_qp' | grep -vE 'cannot be asked|does not answer'
}

# ---- the cases

programs_start() {
	local i

	rm -f "$sum".*
	for i in 1 2 3; do
		holder "roomy$i" "$1" 4000001
		holder "tight$i" "$1" 4000002
	done
	holder asks "$1" 4000001 RDMA_INTERCEPT_TRANSPORT=socket
	holder told "$1" 4000003
	holder more "$1" 4000004
	for i in 1 2 3; do
		make_objects "roomy$i" 8
		make_objects "tight$i" 4
	done
	make_objects asks 6
	make_objects told 4
	make_objects more 4
}

# replaced SIGNAL: the collector of the earlier build by ours, while programs work
replaced() {
	local name

	begin "$old"
	"$old/rdma_intercept" limit set tenant tight qp=12 >/dev/null
	"$old/rdma_intercept" tenant add more --match gid=4000004 qp=5 >/dev/null
	programs_start "$old"
	check "$1: before: a tenant is full by an override" [ $((held[tight1] + held[tight2] + held[tight3])) -eq 12 ]
	for name in roomy1 roomy2 tight1 tight2; do
		tell "$name" churn
	done
	collector_stop "$1"
	# Of one that was killed while it took the ledger over.
	[ "$1" = TERM ] || head -c 5000 /dev/urandom >"$work/state/.ledger.new"
	collector_start "$new"
	for name in roomy1 roomy2 tight1 tight2; do
		churn_end "$name"
	done
	check "$1: it is as before for all" grep -q ' registered processes: 9$' "$work/collector.log"
	check "$1: every count is exact" books_are_exact
	check "$1: no tenant was over its limit" limits_were_kept
	check "$1: no refusal without a reason" never_refused
	check "$1: what commands set" grep -qE '^tenant tight qp 12 command' <(limits_by "$new")
	check "$1: a tenant of a command" grep -qE '^tenant more qp 5 command' <(limits_by "$new")
	check "$1: a rate of a file" grep -q '^tenant roomy rate.create_qp' <(limits_by "$new")
	make_objects more 9
	check "$1: up to the limit of a command" [ "${held[more]}" -eq 5 ]
	make_objects told 1
	check "$1: where limits are not enforced" [ "${held[told]}" -eq 5 ]
	for name in tight1 tight2 tight3; do
		make_objects "$name" 12
	done
	check "$1: a full tenant is exactly full" [ $((held[tight1] + held[tight2] + held[tight3])) -eq 12 ]
	for name in roomy1 roomy2 roomy3 asks; do
		make_objects "$name" 30
	done
	check "$1: and so is another" [ $((held[roomy1] + held[roomy2] + held[roomy3] + held[asks])) -eq 30 ]
	drop_objects roomy1 3
	make_objects asks 5
	check "$1: what one gives back another gets" [ "$made" -eq 3 ]
	check "$1: every count is still exact" books_are_exact
	check "$1: never over a limit" limits_were_kept
	end
}
replaced_by_service_manager() { replaced TERM; }
replaced_after_a_crash() { replaced KILL; }


# used_by BUILD PID: as "used", asked by that build's command
used_by() {
	"$1/rdma_intercept" -j show process "$2" 2>/dev/null | grep -oE '"qp":\{"used":[0-9]+' | head -1 | grep -oE '[0-9]+$'
}
# names_both: some text names the two versions of the protocol, and the way out
names_both() {
	grep -F "protocol version $1; this side speaks version $2" "$3" | grep -q "after an update"
}

# The files are replaced, the collector is not restarted yet, and a program starts.
program_before_the_restart() {
	begin "$old"
	rm -f "$sum".*
	holder early "$new" 4000001
	make_objects early 5
	check "a new program: the earlier collector counts it" [ "$(used_by "$old" "$(pid_of early)")" = 5 ]
	holder asks "$new" 4000001 RDMA_INTERCEPT_TRANSPORT=socket
	make_objects asks 2
	check "a new program that asks: too" [ "$(used_by "$old" "$(pid_of asks)")" = 2 ]
	make_objects early 40
	check "a new program: limited by the earlier collector" [ "${held[early]}" -eq 28 ]
	collector_stop TERM
	collector_start "$new"
	check "a new program: known after the restart" books_are_exact
	drop_objects early 10
	make_objects asks 40
	check "a new program: limited after the restart" [ "${held[asks]}" -eq 12 ]
	check "a new program: counted after the restart" books_are_exact
	end
}

# A container has a copy of the earlier library, and starts after the update.
program_of_the_earlier_library() {
	begin "$new"
	rm -f "$sum".*
	holder late "$old" 4000001
	holder beside "$new" 4000001
	holder asks "$old" 4000001 RDMA_INTERCEPT_TRANSPORT=socket
	make_objects late 40
	check "an earlier program: limited" [ "${held[late]}" -eq 30 ]
	check "an earlier program: why" grep -q 'refused ibv_create_qp: .*qp used 30/30' "$work/log.4000001"
	drop_objects late 10
	make_objects asks 4
	make_objects beside 40
	check "an earlier program: what it gives back another gets" [ "${held[beside]}" -eq 6 ]
	check "an earlier program: counted" books_are_exact
	check "an earlier program: nothing in the log" not grep -q 'protocol version' "$work/collector.log"
	end
}

# command_refuses COMMAND'S-BUILD ITS-VERSION COLLECTOR'S-VERSION: every subcommand that asks
command_refuses() {
	local arguments words

	for arguments in status 'show tenant' 'show process' 'limit set host qp=3' reload events; do
		read -ra words <<<"$arguments"
		try "$1/rdma_intercept" "${words[@]}"
		cat "$work/err" >>"$work/out"
		if [ "$2" = "$3" ]; then
			check "$arguments: works" [ "$status" -eq 0 ]
		else
			check "$arguments: fails" [ "$status" -eq 3 ]
			check "$arguments: says why" names_both "$3" "$2" "$work/out"
		fi
	done
	[ "$2" = "$3" ] || check "doctor: says why" names_both "$3" "$2" <("$1/rdma_intercept" doctor 2>&1)
}
earlier_command() {
	begin "$new"
	command_refuses "$old" "$old_proto" "$new_proto"
	[ "$old_proto" = "$new_proto" ] ||
		check "the collector's log names the command" grep -qE "process [0-9]+ sends a message of protocol version $old_proto; this side speaks version $new_proto" "$work/collector.log"
	end
}
command_before_the_restart() {
	begin "$old"
	command_refuses "$new" "$new_proto" "$old_proto"
	end
}

state_sums() {
	(cd "$work/state" && sha256sum ./*)
}
# refuses_the_state BUILD ITS-VERSION FOUND: it does not start, and leaves the state as it is
refuses_the_state() {
	state_sums >"$work/before"
	try "$1/collector_server" --policy "$policy"
	cat "$work/out" >>"$work/err"
	check "a collector does not start on another version's state" [ "$status" -eq 1 ]
	check "it names both versions" grep -q "state/ledger: has the layout version $3, this collector needs $2" "$work/err"
	check "it names the way out" grep -q 'remove the directory to start anew' "$work/err"
	check "it leaves the state as it is" diff "$work/before" <(state_sums)
}

# The earlier package is installed again.
downgrade() {
	begin "$new"
	rm -f "$sum".*
	holder stays "$old" 4000001
	make_objects stays 6
	collector_stop TERM
	if [ "$old_books" != "$new_books" ]; then
		refuses_the_state "$old" "$old_books" "$new_books"
		collector_start "$new"
	else
		collector_start "$old"
		check "downgrade: the earlier collector goes on" [ "$(used_by "$old" "$(pid_of stays)")" = 6 ]
		collector_stop KILL
		collector_start "$new"
	fi
	check "downgrade: the present collector goes on" books_are_exact
	end
}

# What cannot work together, since processes and collector share memory of another layout.
other_leases_state() {
	begin "$old"
	rm -f "$sum".*
	holder stays "$old" 4000001
	make_objects stays 6
	collector_stop TERM
	refuses_the_state "$new" "$new_books" "$old_books"
	collector_start "$old"
	check "the earlier collector goes on" [ "$(used_by "$old" "$(pid_of stays)")" = 6 ]
	make_objects stays 40
	check "and limits" [ "${held[stays]}" -eq 30 ]
	"$old/rdma_intercept" limit set tenant tight qp=12 >/dev/null
	end
	find "$work/state" -type f ! -name runtime.conf -delete
	collector_start "$new"
	check "without programs and ledger: what commands set is kept" grep -qE '^tenant tight qp 12 command' <(limits_by "$new")
	end
}
other_leases_programs() {
	begin "$new"
	rm -f "$sum".*
	holder late "$old" 4000001
	make_objects late 3
	check "an earlier program: goes on without a collector" [ "${held[late]}" -eq 3 ]
	check "its log names both versions" grep -qE "$new_proto; this side speaks version $old_proto" "$work/log.4000001"
	check "so does the collector's" grep -qE "process $(pid_of late) sends a message of protocol version $old_proto; this side speaks version $new_proto" "$work/collector.log"
	check "the books do not have it" [ -z "$(used "$(pid_of late)")" ]
	end
	begin "$old"
	holder early "$new" 4000001
	make_objects early 3
	check "a new program: goes on without a collector" [ "${held[early]}" -eq 3 ]
	check "its log names both versions" grep -q "protocol version $old_proto; this side speaks version $new_proto" "$work/log.4000001"
	end
}

[ "$(id -u)" -eq 0 ] || {
	echo "skipped: only root can start programs of several tenants"
	exit 77
}
cases="replaced_by_service_manager replaced_after_a_crash program_before_the_restart program_of_the_earlier_library
	earlier_command command_before_the_restart downgrade"
[ "$from" != leases ] || cases="other_leases_state other_leases_programs earlier_command command_before_the_restart"
[ "${1-}" = --list ] || build_earlier
run_cases "$cases" "$@"
