# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scenarios share. A scenario runs as root in a guest of its own, in the project's
# directory; it prints a line per check and ends with finish. A line "# processors: N" in its head
# says how many processors the guest has; without it, one. With a line "# hosts: N", N guests on
# one wire run it at the same time; see barrier. With a line "# clock: instructions" the guest's
# clock counts instructions (lab/run --icount): for scenarios that compare speeds. With a line
# "# init: systemd" process 1 is systemd (lab/run --systemd), for scenarios of units. One with a line
# "# label: long" is among the long tests on its own kernel, too.

library=${BUILD_DIRECTORY:?}/librdma_intercept.so
scratch=$(mktemp -d /tmp/scenario.XXXXXX)
checks_failed=0
export RDMA_INTERCEPT_LOG_FILE_PATH=$scratch/log RDMA_INTERCEPT_SHM_NAME=lab_scenario

# A test of the lab: TEST_BREAK=SCENARIO:fail or SCENARIO:hang makes that scenario end without
# cleaning up, or never, at its third check. Only that scenario may turn red.
checks_made=0
break_if_asked() {
	checks_made=$((checks_made + 1))
	[ $checks_made -eq 3 ] || return 0
	case ${TEST_BREAK-} in
	"$(basename "$0" .sh):fail") echo "FAIL  TEST_BREAK=$TEST_BREAK"; exit 1 ;;
	"$(basename "$0" .sh):hang") echo "TEST_BREAK=$TEST_BREAK"; sleep infinity ;;
	esac
}

# check TEXT COMMAND...
check() {
	local text=$1
	shift
	break_if_asked
	if "$@"; then
		echo "ok    $text"
	else
		echo "FAIL  $text"
		checks_failed=1
		[ ! -s "$scratch/rows" ] || show "$scratch/rows" # what was compared last
	fi
}

# show FILE...: what a failed check may want to see
show() { tail -n 15 "$@" | sed 's/^/      /'; }

finish() {
	[ -z "$collector" ] || collector_stop
	exit $checks_failed
}
# Whether the lab has programs for 32 bits on this processor: their system calls are others.
runs_32_bits() { [ "$(uname -m)" = x86_64 ]; }
# skip REASON: this kernel cannot run the scenario
skip() {
	echo "skipped: $1"
	exit 77
}

# A collector of the scenario's own; $collector is its process.
collector=''
command=$BUILD_DIRECTORY/rdma_intercept
collector_answers() { "$command" status >/dev/null 2>&1; }
collector_start() {
	export RDMA_COLLECTOR_SOCKET=$scratch/sock RDMA_COLLECTOR_STATE=$scratch/state
	apart "$BUILD_DIRECTORY/collector_server" >>"$scratch/collector" 2>&1 &
	collector=$!
	check "a collector is there" eventually collector_answers
}
collector_kill() {
	kill -9 "$collector"
	wait "$collector" 2>/dev/null || true
	collector=''
}
collector_stop() {
	kill "$collector"
	wait "$collector" || check "the collector ends well" false
	collector=''
	[ $checks_failed -eq 0 ] || show "$scratch/collector"
}

# guarded SETTINGS COMMAND...: runs it under the library; SETTINGS are "NAME=value ...".
# In the background, $! is the command itself.
guarded() {
	local settings
	read -ra settings <<<"$1"
	shift
	if [ "$BASHPID" != $$ ]; then
		exec env "${settings[@]/#/RDMA_INTERCEPT_}" LD_PRELOAD="$library" "$@"
	fi
	env "${settings[@]/#/RDMA_INTERCEPT_}" LD_PRELOAD="$library" "$@"
}

# What the kernel has of each kind, on both devices.
kernel_counts() { rdma resource show | sed 's/ *$//'; }

# pause: 50 ms, without starting a process
exec {pause_fd}<> <(:)
pause() { read -rt 0.05 -u "$pause_fd" || true; }

# eventually COMMAND...: tries it until it succeeds. The limit only ends a scenario in which
# nothing happens any more; it is no measure of speed. On a busy machine, or an emulated one, all
# takes longer, and so does a try: it gives up after so many tries that took so many seconds.
patience_seconds=180 patience_tries=400
eventually() {
	local until=$((SECONDS + patience_seconds)) tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt $patience_tries ] || [ $SECONDS -lt $until ] || return 1
		pause
	done
}

counts_are() { [ "$(kernel_counts)" = "$1" ]; }
tcp_listens() { ss -Hltn "sport = :$1" | grep -q .; }
# The server listens by rdma_cm, and waits: it has done what it does after it began to listen.
cm_listens() {
	local pid
	pid=$(rdma resource show cm_id | sed -n 's/.*LISTEN.* pid \([0-9]*\) .*/\1/p' | head -n 1)
	[ -n "$pid" ] && grep -q '^State:[[:space:]]*S' "/proc/$pid/status" 2>/dev/null
}

# settled COUNTS: true when the kernel's counts are these; shows what they are if not
settled() {
	eventually counts_are "$1" || {
		kernel_counts
		return 1
	}
}

# pair NAME READY SERVER -- CLIENT: runs both, output in $scratch/NAME.{server,client}, their
# statuses in $server_status and $client_status. READY is a TCP port to wait for, or cm.
# Both commands are run through the function "around", which the caller may define.
# perftest with -R connects by rdma_cm twice: to exchange parameters, and for the test. The server
# listens for the second connection only after the first, and the client does not know whether it
# does already. Nobody outside can wait for that. If the server was slower the kernel rejects the
# client with error 8 (no such service): then, and only then, both run once more.
around() { "$@"; }
pair() {
	local attempt
	for attempt in 1 2 3 4 5; do
		pair_once "$@"
		[ "$client_status" -ne 0 ] && came_too_early "$scratch/$1.client" || return 0
		echo "      ($1: attempt $attempt: the client came before its server listened)"
	done
}
came_too_early() { grep -qE 'REJECTED[,;] error:? 8\b' "$1"; }
# server_stop PID: ends the server's timeout, and by that the server. The timeout is PID itself, or
# the child of a shell that is PID; a signal to that shell alone would leave the server listening.
server_stop() {
	local runner
	runner=$(pgrep -xP "$1" timeout) || runner=$1
	kill "$runner" 2>/dev/null || true
}
pair_once() {
	local name=$1 ready=$2 server=() pid
	shift 2
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	around timeout -k 5 "$patience_seconds" "${server[@]}" >"$scratch/$name.server" 2>&1 &
	pid=$!
	case $ready in
	cm) eventually cm_listens || true ;;
	*) eventually tcp_listens "$ready" || true ;;
	esac
	around timeout -k 5 "$patience_seconds" "$@" >"$scratch/$name.client" 2>&1 && client_status=0 || client_status=$?
	[ "$client_status" -eq 0 ] || sleep 1
	[ "$client_status" -eq 0 ] || server_stop "$pid"
	wait "$pid" && server_status=0 || server_status=$?
}

# Several hosts: $host is the number of this one, $hosts their count, 10.77.0.N the address of
# host N. Each runs the whole scenario; "if [ $host -eq 1 ]" and the like divide it.
host=${LAB_HOST:-1} hosts=${LAB_HOSTS:-1}

# barrier TEXT: waits until all hosts are at this barrier; TEXT says what each has done by then.
# A host that is at its barrier K has the address 10.78.K.HOST, on lo, since an address on lab0
# would be one more GID of rxe0; the others ask for it by ping. If a host does not come, the
# scenario ends, as it could only wait at the next one, too.
barriers=0
barrier() {
	local other
	barriers=$((barriers + 1))
	[ $barriers -gt 1 ] || ip route add 10.78.0.0/16 dev lab0
	ip address add "10.78.$barriers.$host/32" dev lo
	for ((other = 1; other <= hosts; other++)); do
		eventually busybox ping -q -c 1 -W 1 "10.78.$barriers.$other" >/dev/null 2>&1 || {
			check "host $other: $1" false
			finish
		}
	done
}

# The applications: name, how to know that the server is ready, server -- client.
application() {
	local common=(-d rxe0 -n 200 -s 1024 -F)
	case $1 in
	ib_send_bw) pair "$1" 18515 ib_send_bw "${common[@]}" -- ib_send_bw "${common[@]}" 10.77.0.1 ;;
	ib_read_bw) pair "$1" 18515 ib_read_bw "${common[@]}" -- ib_read_bw "${common[@]}" 10.77.0.1 ;;
	ib_atomic_lat) pair "$1" 18515 ib_atomic_lat -d rxe0 -n 200 -F -- ib_atomic_lat -d rxe0 -n 200 -F 10.77.0.1 ;;
	ib_write_lat-R) pair "$1" cm ib_write_lat -R "${common[@]}" -- ib_write_lat -R "${common[@]}" 10.77.0.1 ;;
	rping) pair "$1" cm rping -s -a 10.77.0.1 -C 10 -v -- rping -c -a 10.77.0.1 -C 10 -v ;;
	ucmatose) pair "$1" cm ucmatose -b 10.77.0.1 -c 2 -C 10 -- ucmatose -s 10.77.0.1 -c 2 -C 10 ;;
	fi_pingpong) pair "$1" 47592 fi_pingpong -p verbs -e msg -I 20 -S 64 -- fi_pingpong -p verbs -e msg -I 20 -S 64 10.77.0.1 ;;
	ucx_perftest)
		export UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0 UCX_TLS=rc_verbs,ud_verbs UCX_WARN_UNUSED_ENV_VARS=n
		pair "$1" 13337 ucx_perftest -t tag_lat -n 200 -s 64 -- ucx_perftest 127.0.0.1 -t tag_lat -n 200 -s 64
		;;
	mpi_ring)
		[ -x "$scratch/ring" ] || mpicc -o "$scratch/ring" tests/lab/ring.c
		# shellcheck disable=SC2034 # for the scenarios
		server_status=0
		UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0 UCX_TLS=rc_verbs,ud_verbs,self around timeout -k 5 "$patience_seconds" \
			mpirun --allow-run-as-root --oversubscribe -n 3 --mca pml ucx --mca btl ^openib \
			"$scratch/ring" >"$scratch/$1.client" 2>&1 && client_status=0 || client_status=$?
		: >"$scratch/$1.server"
		;;
	esac
}
# shellcheck disable=SC2034 # for the scenarios
applications=(ib_send_bw ib_write_lat-R ib_read_bw ib_atomic_lat rping ucmatose fi_pingpong ucx_perftest mpi_ring)

# mark, elapsed: milliseconds since the last mark
mark() { marked=${EPOCHREALTIME/./}; }
elapsed() { echo $(((${EPOCHREALTIME/./} - marked) / 1000)); }

# soon MS TEXT COMMAND...: a check that shows how long it took from the last mark to become true.
# MS is what a real machine should need. It is shown, not judged: this guest may be emulated, and
# what else the machine does decides.
soon() {
	local limit=$1 text=$2 result=1 ms
	shift 2
	! eventually "$@" || result=0
	ms=$(elapsed)
	[ "$ms" -le "$limit" ] || text+=", slower than $limit ms"
	check "$text ($ms ms)" test $result -eq 0
}

# begin NAME COMMAND...: in the background as ${process[NAME]}, output in $scratch/NAME.out. Its
# input is what "tell NAME LINE" writes; "end NAME" ends that and waits for it.
declare -A process inputs
begin() {
	local name=$1 fd
	shift
	rm -f "$scratch/$name.in"
	mkfifo "$scratch/$name.in"
	apart "$@" <"$scratch/$name.in" >"$scratch/$name.out" 2>&1 &
	process[$name]=$!
	exec {fd}>"$scratch/$name.in"
	inputs[$name]=$fd
}
# apart COMMAND...: without the inputs of others, so that these end when we end them
apart() {
	local fd
	for fd in "${inputs[@]}"; do
		exec {fd}>&-
	done
	exec "$@"
}
tell() { (trap '' PIPE && echo "$2" >&"${inputs[$1]}") 2>/dev/null || true; }
# says NAME TEXT: waits for it; fails at once when the process ends without
said_or_ended() { grep -q "$2" "$scratch/$1.out" || ! kill -0 "${process[$1]}" 2>/dev/null; }
says() {
	eventually said_or_ended "$@" || true
	! grep -q "$2" "$scratch/$1.out" || return 0
	check "$1 says '$2'" grep -q "$2" "$scratch/$1.out"
	show "$scratch/$1.out"
}
end() {
	local fd=${inputs[$1]}
	exec {fd}>&-
	unset "inputs[$1]"
	wait "${process[$1]}"
}
killed() {
	kill -9 "${process[$1]}" 2>/dev/null || true
	end "$1" 2>/dev/null || true
}

# frozen CGROUP, thawed CGROUP: stops all processes below it, each where it returns from the kernel,
# so that no object is half made; and lets them go on
frozen() {
	echo 1 >"$1/cgroup.freeze"
	check "the processes of $(basename "$1") stand still" eventually grep -qx 'frozen 1' "$1/cgroup.events"
}
thawed() { echo 0 >"$1/cgroup.freeze"; }
# "${inside[@]}" CGROUP COMMAND...: becomes the command, in that cgroup
# shellcheck disable=SC2016,SC2034 # that shell expands it; the scenarios use it
inside=(sh -c 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"')

# processors 0|1: the second and further ones off or on again; inside another such pair nothing
# changes. Emulated (QEMU 7.2), they may go on executing what the kernel has patched away, and it
# panics; with kprobes of tracefs as well. So while hooks come and go there is only one.
processors_off=0
emulated() { ! grep -q kvm /sys/devices/system/clocksource/clocksource0/available_clocksource; }
processors() {
	local file
	processors_off=$((processors_off + ($1 ? -1 : 1)))
	[ $processors_off -eq $((1 - $1)) ] || return 0
	for file in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$file" ] || ! emulated || echo "$1" >"$file"
	done
}

# Whether threads are preempted in this kernel.
preempted() {
	[ -d /sys/kernel/debug/sched ] || mount -t debugfs debugfs /sys/kernel/debug
	grep -qE '\((full|lazy)\)' /sys/kernel/debug/sched/preempt
}

# rdma_monitor; $keeper is the one that looks after the accounting. Before 5.15 no kernel pins
# kprobes, so that counting ends with it: then $lasting is empty.
monitor=$BUILD_DIRECTORY/rdma_monitor
rows=$BUILD_DIRECTORY/lab/rows
keeper='' lasting=1
case $(uname -r) in 5.10.*) lasting='' ;; esac
monitor_counts() { "$rows" head 2>/dev/null | grep -qv 'seeded_at 0\.'; }
monitor_counts_or_ended() { monitor_counts || ! kill -0 "$keeper" 2>/dev/null; }
# Its unit's capabilities, and no others.
monitor_capabilities() {
	sed -n 's/^CapabilityBoundingSet=//p' packaging/rdma_monitor.service | tr A-Z a-z |
		sed 's/ *cap_/,+/g; s/^/-all/'
}
monitor_start() {
	processors 0
	mark
	apart setpriv --bounding-set "$(monitor_capabilities)" "$monitor" --keep "$@" >>"$scratch/monitor" 2>&1 &
	keeper=$!
	eventually monitor_counts_or_ended || true
	check "rdma_monitor counts ($(elapsed) ms)" monitor_counts
	[ $checks_failed -eq 0 ] || show "$scratch/monitor"
	processors 1
}
monitor_stop() {
	processors 0
	kill "$keeper" 2>/dev/null || true
	check "rdma_monitor ends well" wait "$keeper"
	keeper=''
	check "and is taken out" "$monitor" --unload
	processors 1
	[ $checks_failed -eq 0 ] || show "$scratch/monitor"
}

# rows_are COUNTS [WHICH]: what the rows say, see tests/lab/rows.c; kept for show
rows_are() { [ "$("$rows" "${@:2}" | tee "$scratch/rows")" = "$1" ]; }

# sums KIND...: of names and numbers on the input, the sums of these, as rows prints them. What
# follows a line "minus" is taken off.
sums() {
	awk -v kinds="$*" '
		/^minus$/ { minus = 1 }
		{ for (i = 1; i < NF; i++) if ($(i + 1) ~ /^-?[0-9]+$/) sum[$i] += minus ? -$(i + 1) : $(i + 1) }
		END {
			count = split(kinds, kind)
			for (i = 1; i <= count; i++) if (sum[kind[i]]) line = line " " kind[i] " " sum[kind[i]]
			print substr(line, 2)
		}'
}

# What the kernel lists and the rows have too; older ones list no SRQs.
kinds_listed=(ctx pd cq qp srq mr)
[ -n "$lasting" ] || kinds_listed=(ctx pd cq qp mr)
# listed BEFORE: what the kernel has beyond that, on all devices together
listed() { { kernel_counts && printf 'minus\n%s\n' "$1"; } | sums "${kinds_listed[@]}"; }
nothing_listed() { [ -z "$(listed "$1" | tee "$scratch/rows")" ]; }
# rows_equal_kernel BEFORE [WHICH]
rows_equal_kernel() {
	local ours kernel
	ours=$("$rows" "${@:2}" | sums "${kinds_listed[@]}")
	kernel=$(listed "$1")
	echo "the rows: $ours; the kernel: $kernel" >"$scratch/rows"
	[ "$ours" = "$kernel" ]
}
