#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# root: --unpack --depends bullseye bash dash coreutils perftest ibverbs-providers ibverbs-utils
# Containers of podman that get library, collector and tenant by a device of the specification that
# rdma_intercept cdi writes: perftest with glibc 2.31 and a program of musl are limited as the tenant
# that was asked for, or as one of a pattern; also with a read-only root, as user 1000, with ids of
# their own, and with a library of the user's in LD_PRELOAD. Who leaves the library out is uncovered,
# and refused by the guard. The tenant ends with the container, whoever is killed meanwhile.
set -euo pipefail
. lab/lib.sh
for program in podman crun runc musl-gcc jq; do
	command -v $program >/dev/null || skip "$program is not installed"
done
unset RDMA_INTERCEPT_SHM_NAME RDMA_INTERCEPT_LOG_FILE_PATH
build=$BUILD_DIRECTORY

# ---- a host: what is installed, a collector, a policy

command=/usr/local/bin/rdma_intercept
mkdir -p /usr/local/bin /usr/local/lib /etc/rdma_intercept /run/rdma_intercept
install "$build/rdma_intercept" $command
install "$build/librdma_intercept.so" /usr/local/lib/librdma_intercept.so
cat >/etc/rdma_intercept/policy.conf <<'END'
[tenant ml]
qp = 2
[tenant batch]
qp = 6
guard = on
[tenant box-%c]
match = container=*
qp = 3
END
export RDMA_COLLECTOR_SOCKET=/run/rdma_intercept/collector.sock RDMA_COLLECTOR_STATE=/run/rdma_intercept/state
host_collector_start() {
	apart "$build/collector_server" >>"$scratch/collector" 2>&1 &
	collector=$!
	check "a collector is there" eventually collector_answers
}
monitor_start
host_collector_start
# What hooks complain of: crun shows none of it.
apart busybox syslogd -n -O "$scratch.syslog" &
logger=$!
logged() { grep -q "$1" "$scratch.syslog"; }

# says_of FILTER COMMAND...: what jq makes of the command's document
says_of() { "$command" -j "${@:2}" | jq -r "$1"; }
# Match lines of commands: those that hooks have added.
lines() { says_of '[.matches[]? | select(.source == "command")] | length' show tenant "$1"; }
has_lines() { [ "$(lines "$1")" = "$2" ]; }

files=(/etc/cdi/rdma_intercept.json /etc/rdma_intercept/ld.so.preload /usr/share/containers/oci/hooks.d/rdma_intercept.json)
check "cdi --write" "$command" cdi --write
check "it has a device for each tenant, and default" \
	[ "$(jq -r '[.devices[].name] | join(" ")' "${files[0]}")" = 'default ml batch' ]

# ---- images: Debian 11, and one with musl and nothing else

mount -t tmpfs images "$scratch"
old=$scratch/old musl=$scratch/musl
mkdir -p "$scratch"/{upper,work} "$old" "$musl"/{bin,lib,tmp}
mount -t overlay -o "lowerdir=${SCENARIO_ROOT:?},upperdir=$scratch/upper,workdir=$scratch/work" old "$old"
# Its packages are unpacked, not configured.
ln -sf bash "$old/bin/sh"

with_musl() { musl-gcc -std=gnu11 -D_GNU_SOURCE -O1 "$@" -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu"; }
stand=tests/fakeverbs
check "a stand-in for libibverbs is compiled with musl" with_musl -o "$musl/lib/libibverbs.so.1" -fPIC -shared \
	-fvisibility=default -I$stand -Wl,-soname,libibverbs.so.1 -Wl,--version-script=$stand/ibverbs.map \
	-Wl,--version-script=$stand/ibverbs-newer.map $stand/{compat,control,device,events,inline,memory,object,queues,strings}.c -pthread
check "and a program" with_musl -o "$musl/bin/user" -DLINKED tests/libcs/user.c "$musl/lib/libibverbs.so.1" -pthread -ldl
cp "/lib/ld-musl-$(uname -m).so.1" "$musl/lib/"
cp /bin/busybox "$musl/bin/"
ln -s busybox "$musl/bin/sh"
for applet in env sleep cat id; do
	ln -s busybox "$musl/bin/$applet"
done
pod=(podman --cgroup-manager=cgroupfs --root "$scratch/storage" --runroot "$scratch/runroot" --storage-driver=vfs)
image() { tar -C "$musl" -c . | "${pod[@]}" import - musl:lab; }
check "podman imports an image with musl" image
# The user's own library: it says so in every program that it is loaded into.
cat >"$scratch/mine.c" <<'END'
static void __attribute__((constructor)) mine(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(1L), "D"(2L), "S"("mine\n"), "d"(5L) : "rcx", "r11", "memory");
}
END
gcc -shared -fPIC -nostdlib -o "$scratch/mine.so" "$scratch/mine.c"

# contain TENANT [OPTION...] IMAGE COMMAND...: its output in $scratch/rows
contain() {
	"${pod[@]}" run --rm --network=host --ulimit memlock=-1 --device "rdma_intercept/tenant=$1" "${@:2}" \
		>"$scratch/rows" 2>&1 </dev/null
}
image_old=(--rootfs "$old")
said() { grep -qE "$1" "$scratch/rows"; }
not() { ! "$@"; }

# ---- perftest with glibc 2.31

# transfer N: a server and a client with N queue pairs each, in one container. 4853 is the port, 0A
# the state of a socket that listens.
# shellcheck disable=SC2016 # bash in the container expands it
transfer=(bash -c 'ib_send_bw -d rxe0 -n 20 -s 64 -F -q $0 >/dev/null & server=$!
	listens() { local all=$(</proc/net/tcp)$(</proc/net/tcp6) none=00000000
		[[ $all == *:4853\ $none:0000\ 0A* || $all == *:4853\ $none$none$none$none:0000\ 0A* ]]; }
	until listens || ! kill -0 $server; do sleep 0.2; done
	ib_send_bw -d rxe0 -n 20 -s 64 -F -q $0 10.77.0.1; status=$?
	[ $status -eq 0 ] || kill $server
	wait $server && exit $status')
refused() { said "rdma_intercept: refused .* tenant=$1 .*qp used $2/$2"; }
uses() { [ "$(says_of '.tenant.kinds.qp.used' show tenant "$1")" = "$2" ]; }
joined_are() { [ "$(says_of "[.events[] | select(.type == \"joined\" and .tenant == \"$1\")] | length" events)" = "$2" ]; }

check "perftest with one queue pair at each end works" contain ml "${image_old[@]}" "${transfer[@]}" 1
check "its two programs belonged to the tenant" joined_are ml 2
check "nothing is left of the container in the policy" has_lines ml 0
check "with two at each end it fails" not contain ml "${image_old[@]}" "${transfer[@]}" 2
check "refused as the tenant that was asked for" refused ml 2
check "another container of the device default fails with four" not contain default "${image_old[@]}" "${transfer[@]}" 2
check "refused as a tenant of the pattern" refused 'box-[0-9a-f]{12}' 3
for options in '--user 1000' '--read-only' '--uidmap 0:100000:65536' '--runtime runc --user 1000 --read-only'; do
	read -ra words <<<"$options"
	check "$options: works within the limit" contain ml "${words[@]}" "${image_old[@]}" "${transfer[@]}" 1
	check "$options: fails beyond it" not contain ml "${words[@]}" "${image_old[@]}" "${transfer[@]}" 2
	check "$options: refused as the tenant" refused ml 2
done
mine=(-v "$scratch/mine.so:/mine.so:ro" -e LD_PRELOAD=/mine.so)
check "the user's LD_PRELOAD: fails beyond the limit" not contain ml "${mine[@]}" "${image_old[@]}" "${transfer[@]}" 2
check "refused as the tenant" refused ml 2
check "and the user's library is loaded" said '^mine'
check "env -u LD_PRELOAD does not help with glibc" not contain ml "${mine[@]}" "${image_old[@]}" env -u LD_PRELOAD "${transfer[@]}" 2
check "refused as the tenant" refused ml 2

# ---- musl

check "musl: exactly two queue pairs" contain ml musl:lab /bin/user linked 2
check "refused as the tenant" refused ml 2
check "musl: with the user's LD_PRELOAD, exactly two" contain ml "${mine[@]}" musl:lab /bin/user linked 2
check "refused as the tenant" refused ml 2
check "and the user's library is loaded" said '^mine'
check "musl: read-only, user 1000, ids of its own: exactly two" contain ml --read-only --user 1000 \
	--uidmap 0:100000:65536 musl:lab /bin/user linked 2
check "refused as the tenant" refused ml 2

# ---- programs without the library

# hold TENANT NAME COMMAND...: a container in the background that the end of its input ends
hold() {
	begin "$2" "${pod[@]}" run --rm -i --network=host --name "$2" --device "rdma_intercept/tenant=$1" \
		-v "$build/lab:/lab:ro" musl:lab "${@:3}"
}
uncovered() { says_of '.processes[] | select(.state | index("uncovered")) | .tenant' show process | grep -qx "$1"; }
hold ml escaped env -u LD_PRELOAD /lab/paths ioctl 4
says escaped '"qp":4'
check "a program without the library is uncovered, with its tenant" eventually uncovered ml
check "two match lines bind the container" has_lines ml 2
end escaped || true
check "they end with it" eventually has_lines ml 0
hold batch guarded env -u LD_PRELOAD /lab/intruder fill qp 20
says guarded '^made'
check "with the guard such a program gets six" grep -q 'made 6 errno 122' "$scratch/guarded.out"
check "and EDQUOT in the kernel" [ "$(says_of '.events[] | select(.type == "refused" and .ring == "kernel") | .tenant' events | tail -n 1)" = batch ]
end guarded || true

# ---- who is killed meanwhile

hold ml holder /bin/user hold 1
says holder 'made 1'
"${pod[@]}" exec holder /bin/env >"$scratch/rows" 2>&1
check "podman exec does not set the variable" not said LD_PRELOAD
collector_kill
host_collector_start
check "a restarted collector knows the container" has_lines ml 2
check "its objects are the tenant's" eventually uses ml 1
collector_kill
end holder || true
host_collector_start
check "a container that ended without a collector leaves its lines" has_lines ml 2
check "the next container's start removes them" contain batch musl:lab /bin/sleep 0
check "from that tenant, too" has_lines ml 0
collector_kill
check "without a collector a tenant's container does not start" not contain ml musl:lab /bin/sleep 0
check "podman names the hook" said 'hook.*/usr/local/bin/rdma_intercept'
check "and the system's log says why" eventually logged 'start it: collector_server --daemon'
check "one of the device default does" contain default musl:lab /bin/sleep 0
host_collector_start

# ---- which tenant

check "a tenant is added" "$command" tenant add late qp=1
check "cdi --write, with an annotation for default" "$command" cdi --write --annotation rdma_intercept.tenant
check "late: exactly one queue pair" contain late musl:lab /bin/user linked 1
check "refused as the tenant" refused late 1
check "an annotation names the tenant" contain default --annotation rdma_intercept.tenant=ml musl:lab /bin/user linked 2
check "refused as the tenant" refused ml 2
check "without it the match lines decide" contain default musl:lab /bin/user linked 3
check "refused as a tenant of the pattern" refused 'box-[0-9a-f]{12}' 3
check "the tenant is removed" "$command" tenant remove late
check "its container does not start" not contain late musl:lab /bin/sleep 0
check "the system's log says why" eventually logged "oci-hook start: there is no tenant 'late'"
check "with runc" not contain late --runtime runc musl:lab /bin/sleep 0
check "podman says why, too" said "there is no tenant 'late'"

check "a container without a control group of its own does not start" not contain ml --cgroups=disabled musl:lab /bin/sleep 0
check "the system's log says why" eventually logged 'expected a container with a control group of its own'

# ---- who may bind what

groups=/sys/fs/cgroup
id=$(printf '%064d' 7)
mkdir -p "$groups/sleeper" "$groups/machine.slice/libpod-$id.scope/container"
begin sleeper "${inside[@]}" sleeper sleep infinity
begin scoped "${inside[@]}" "machine.slice/libpod-$id.scope/container" sleep infinity
is_in() { grep -qx "0::/$1" "/proc/$2/cgroup"; }
check "a process is in a group of its own" eventually is_in sleeper "${process[sleeper]}"
check "another is in a scope as podman has it with systemd" eventually is_in "machine.slice/libpod-$id.scope/container" "${process[scoped]}"
# hook ID PID WORD... -- COMMAND...: the command, with the state of a container
hook() {
	local state="{\"id\": \"$1\", \"pid\": $2}"
	"${@:3}" <<<"$state" >"$scratch/rows" 2>&1
}
start=("$command" -j oci-hook start --tenant ml) stop=("$command" -j oci-hook stop)
check "users cannot bind a control group" not hook sleeper "${process[sleeper]}" setpriv --reuid 65534 --clear-groups "${start[@]}"
check "root can" hook sleeper "${process[sleeper]}" "${start[@]}"
{ echo -n $'oci-hook-start\t'; cat "$scratch/rows"; } >"$scratch/documents"
check "a hook for the same name" hook sleeper 0 "${stop[@]}"
check "leaves the lines of a group that has processes" has_lines ml 2
killed sleeper
check "and undo it" hook sleeper 0 "${stop[@]}"
{ echo -n $'oci-hook-stop\t'; cat "$scratch/rows"; } >>"$scratch/documents"
check "nothing is left" has_lines ml 0
check "its documents fit docs/schemas" "$build/tests/schemas" docs/schemas <"$scratch/documents"
check "of a scope" hook "$id" "${process[scoped]}" "${start[@]}"
check "it binds all of it" said "\"cgroup\": *\"/machine.slice/libpod-$id.scope\""
killed scoped
rmdir "$groups/machine.slice/libpod-$id.scope/container" "$groups/machine.slice/libpod-$id.scope"
# several_hooks: as when many containers end at once
several_hooks() {
	local pids=() pid number
	for number in 1 2 3 4 5 6; do
		"${stop[@]}" <<<"{\"id\": \"other$number\", \"pid\": 0}" >"$scratch/rows" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || return 1
	done
}
check "the lines of a scope that is gone end with the next hooks, six at once" several_hooks
check "nothing is left" has_lines ml 0
begin sleeper "${inside[@]}" sleeper sleep infinity
check "a process is in the group again" eventually is_in sleeper "${process[sleeper]}"
check "the group that the hook is in itself is not bound" not hook sleeper "${process[sleeper]}" "${inside[@]}" sleeper "${start[@]}"
check "as it says" said 'shares the control group /sleeper'
check "nor is the root" not hook sleeper $$ "${start[@]}"
check "as it says" said 'has no usable path'
killed sleeper

check "cdi --remove" "$command" cdi --remove
for file in "${files[@]}"; do
	check "$file is gone" [ ! -e "$file" ]
done
check "no container of the device starts any more" not contain ml musl:lab /bin/sleep 0
check "as podman says" said 'unresolvable CDI devices'
kill $logger
wait $logger || true
finish
