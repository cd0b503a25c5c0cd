#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kubernetes without a kubelet: the containers of packaging/kubernetes/daemonset.yaml, each with the
# mounts, the command, the user and the capabilities of the manifest, in mount and cgroup namespaces of
# its own; and pods with control groups and directories of logs as the kubelet makes them, a read-only
# root and uid 1000. Each namespace is a tenant; names are shown; a pod without the library is UNCOVERED
# and refused by the guard where its tenant has one; a tenant goes with its last pod.
# shellcheck disable=SC2317 # shells that this starts call its functions
set -euo pipefail
. lab/guardlib.sh
objects=$BUILD_DIRECTORY/lab/objects
unpacked=$scratch/manifests
/usr/bin/python3 tests/kubernetes/manifests.py unpack packaging/kubernetes "$unpacked"
unset RDMA_INTERCEPT_SHM_NAME RDMA_INTERCEPT_LOG_FILE_PATH
export RDMA_COLLECTOR_SOCKET=/run/rdma_intercept/collector.sock
chmod 755 "$scratch"

# ---- containers

# What the image has: the programs of the build, the library where the package puts it.
image_path=$BUILD_DIRECTORY:/usr/sbin:/usr/bin:/sbin:/bin
cp "$library" "/usr/lib/$(uname -m)-linux-gnu/librdma_intercept.so"
mkdir -p /etc/rdma_intercept /host /host-cdi /cdi /var/log/pods /usr/lib/rdma_intercept
touch /etc/ld.so.preload

# root_make ROOT: a file system as of an image, the machine's own one
root_make() {
	local root=$1 name
	mount -t tmpfs -o mode=755 tmpfs "$root"
	for name in usr bin sbin lib lib32 lib64 libx32 etc; do
		if [ -L "/$name" ]; then
			cp -d "/$name" "$root/"
		elif [ -d "/$name" ]; then
			mkdir "$root/$name"
			mount --bind "/$name" "$root/$name"
		fi
	done
	mkdir -p "$root"/{proc,sys,dev,host,host-cdi,cdi,var/lib,var/log/pods,var/lib/rdma_intercept,var/lib/rdma_dashboard,run/rdma_intercept} "$root$BUILD_DIRECTORY"
	mount --bind "$BUILD_DIRECTORY" "$root$BUILD_DIRECTORY"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount --bind /dev "$root/dev"
}
# root_mount ROOT FILE: the mounts of a manifest
root_mount() {
	local path host mode
	while read -r path host mode; do
		case $host in
		-) mount -t tmpfs -o mode=2775,gid=65532 tmpfs "$1$path" ;;
		*) mount --bind "${host/#configMap:/$unpacked/configMap:}" "$1$path" ;;
		esac
		[ "$mode" = rw ] || mount -o remount,bind,ro "$1$path"
	done <"$2"
	mount -o remount,ro "$1"
}
# container_become NAME [COMMAND...]: in namespaces of its own; the command of the manifest by default
container_become() {
	local name=$1 root=$scratch/root user capabilities=-all word environment
	shift
	mkdir -p "$root"
	root_make "$root"
	root_mount "$root" "$unpacked/$name/mounts"
	if [ $# -eq 0 ]; then
		while IFS= read -r word; do
			set -- "$@" "${word//$'\x01'/$'\n'}"
		done <"$unpacked/$name/command"
	fi
	user=$(<"$unpacked/$name/user")
	while read -r word; do
		capabilities+=,+${word,,}
	done <"$unpacked/$name/capabilities"
	mapfile -t environment <"$unpacked/$name/environment"
	# shellcheck disable=SC2016 # the manifest has it so
	exec env -i PATH="$image_path" "${environment[@]}" chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups \
		--bounding-set "$capabilities" --inh-caps -all "${@/'$(POD_IP)'/127.0.0.1}"
}
export -f root_make root_mount container_become
export scratch unpacked image_path BUILD_DIRECTORY
# What a runtime does for a container that shares the node's pids, and for one that does not.
container=(unshare --mount --cgroup --propagation private bash -euc 'container_become "$@"' container)
boxed=(unshare --mount --cgroup --pid --fork --kill-child --propagation private bash -euc 'container_become "$@"' boxed)

# configmap FILE TEXT: as the kubelet replaces a ConfigMap
versions=0
configmap() {
	local directory=$unpacked/configMap:rdma-intercept-policy
	versions=$((versions + 1))
	mkdir "$directory/..version$versions"
	cat >"$directory/..version$versions/policy.conf"
	ln -s "..version$versions" "$directory/..data_tmp"
	mv -T "$directory/..data_tmp" "$directory/..data"
	[ -L "$directory/policy.conf" ] || ln -sfn ..data/policy.conf "$directory/policy.conf"
}

# ---- the pod of the DaemonSet

mkdir -p /run/rdma_intercept /var/lib/rdma_intercept /var/run/cdi # DirectoryOrCreate
check "the init container ends well" "${container[@]}" install
check "and has put the library there" cmp -s "$library" /var/lib/rdma_intercept/lib/librdma_intercept.so
configmap <"$unpacked/configMap:rdma-intercept-policy/policy.conf"

processors 0
apart "${container[@]}" monitor >"$scratch/monitor" 2>&1 &
keeper=$!
eventually monitor_counts_or_ended || true
check "the monitor counts" monitor_counts
[ $checks_failed -eq 0 ] || show "$scratch/monitor"
processors 1
collector_container() {
	apart "${container[@]}" collector >>"$scratch/collector" 2>&1 &
	collector=$!
	check "the collector answers" eventually collector_answers
	[ $checks_failed -eq 0 ] || show "$scratch/collector"
}
collector_container
check "it has the policy of the ConfigMap" eventually bash -c "'$command' limit get default 2>/dev/null | grep -q audit"
check "the monitor is known" eventually bash -c "'$command' -j status | tr -d ' \n' | grep -q '\"monitor\":{\"mode\":\"fentry\"'"

sed 's/mode = audit/mode = enforce/
	s/^\[tenant ns-%n\]/[tenant guarded]\nmatch = cgroup=\/kubepods.slice\/kubepods-besteffort.slice\/*\nguard = on\nqp = 2\n\n&\nqp = 3/
	/unnamed/,$ s/qp = .*/qp = 1/' "$unpacked/configMap:rdma-intercept-policy/policy.conf" >"$scratch/changed"
configmap <"$scratch/changed"
check "a changed ConfigMap is read again" eventually bash -c "'$command' show tenant guarded >/dev/null 2>&1"
[ $checks_failed -eq 0 ] || show "$scratch/changed" "$scratch/collector"

# ---- pods

# pod_make NAMESPACE NAME UID [CLASS]: what the kubelet does for a pod
declare -A pod_group
pod_make() {
	local class=${4-burstable} uid=${3//-/_} id group
	mkdir -p "/var/log/pods/$1_$2_$3"
	group=/sys/fs/cgroup/kubepods.slice/kubepods-$class.slice/kubepods-$class-pod$uid.slice
	id=$(printf '%s' "$3" | sha256sum | cut -c 1-64)
	group=$group/cri-containerd-$id.scope
	mkdir -p "$group"
	pod_group[$2]=$group
}
# in_pod NAME CONTAINER COMMAND...: becomes a container of the pod
in_pod() {
	echo $BASHPID >"${pod_group[$1]}/cgroup.procs"
	exec "${boxed[@]}" "${@:2}"
}
# A program that should end by itself
limited=(timeout "$patience_seconds" "$objects")
# holder NAME CONTAINER COUNT LABEL: holds so many QPs, as ${process[LABEL]}
holder() {
	in_pod "$1" "$2" "$objects" hold "$3" >"$scratch/$4.out" 2>&1 &
	process[$4]=$!
	check "$4: holds $3" eventually grep -q "holding $3" "$scratch/$4.out"
	[ $checks_failed -eq 0 ] || show "$scratch/$4.out"
}
# program NAME: the number that the pod's program has on the node; the other is the parent that waits
program() { sort -n "${pod_group[$1]}/cgroup.procs" | tail -n 1; }
# stop NAME LABEL: as a runtime ends a pod
stop() {
	echo 1 >"${pod_group[$1]}/cgroup.kill"
	wait "${process[$2]}" 2>/dev/null || true
}
has_tenant() { "$command" show tenants >"$scratch/rows" 2>&1 && grep -qE "^$1 +enforce +$2" "$scratch/rows"; }
has_no_tenant() { "$command" show tenants >"$scratch/rows" 2>&1 && ! grep -q "^$1 " "$scratch/rows"; }

a=8cd1ab34-0123-4567-89ab-00000000000a b=8cd1ab34-0123-4567-89ab-00000000000b
c=8cd1ab34-0123-4567-89ab-00000000000c d=8cd1ab34-0123-4567-89ab-00000000000d
pod_make team-a web-0 $a
pod_make team-b web-0-b $b
pod_make team-c guest-0 $c besteffort
holder web-0 perftest 3 web
check "its namespace is its tenant" has_tenant ns-team-a '1 .* 3/3'
"$command" explain "$(program web-0)" >"$scratch/rows" 2>&1 || true
check "its pod is named" grep -qE '^ *pod +team-a/web-0' "$scratch/rows"
check "it runs as uid 1000" grep -qE '^ *uid +1000' "$scratch/rows"
(in_pod web-0 perftest "${limited[@]}" hold 1) >"$scratch/more.out" 2>&1 || true
check "one more in the namespace is refused" grep -qE 'Disk quota exceeded' "$scratch/more.out"
(in_pod web-0 perftest touch /usr/x) >"$scratch/rows" 2>&1 && check "its root file system cannot be written" false
holder web-0-b perftest 3 other
check "another namespace has a limit of its own" has_tenant ns-team-b '1 .* 3/3'
# page_has TEXT: the dashboard serves it
page_has() { curl -s http://127.0.0.1:9910/metrics >"$scratch/rows" && grep -q "$1" "$scratch/rows"; }
apart "${container[@]}" dashboard >"$scratch/dashboard" 2>&1 &
dashboard=$!
check "the dashboard has the tenant" eventually page_has 'tenant_used{tenant="ns-team-a",resource="qp"} 3'
[ $checks_failed -eq 0 ] || show "$scratch/dashboard"
kill "$dashboard"
check "the dashboard ends well" wait "$dashboard"
stop web-0-b other
check "its tenant goes with it" eventually has_no_tenant ns-team-b

echo "-- by the CDI specification, with /etc/ld.so.preload and no variable"
mkdir -p "$unpacked/cdi"
cp "$unpacked/perftest/user" "$unpacked/perftest/capabilities" "$unpacked/cdi/"
: >"$unpacked/cdi/environment"
holder web-0-b cdi 2 preloaded
check "the library has registered it" has_tenant ns-team-b '1 .* 2/3'

echo "-- the collector's container is killed and started again"
kill -9 "$collector"
wait "$collector" 2>/dev/null || true
collector_container
check "the tenants are there again" eventually has_tenant ns-team-a '1 .* 3/3'
(in_pod web-0 perftest "${limited[@]}" hold 1) >"$scratch/more.out" 2>&1 || true
check "and the limit holds" grep -qE 'Disk quota exceeded' "$scratch/more.out"

echo "-- without the library"
mkdir -p "$unpacked/bare"
cp "$unpacked"/cdi/* "$unpacked/bare/"
: >"$unpacked/bare/mounts"
stop web-0-b preloaded
holder web-0-b bare 4 bare
check "it is UNCOVERED in the tenant of its namespace" eventually has_tenant ns-team-b '0 .*UNCOVERED'
stop web-0-b bare
guarded_is_on() { "$command" guard status >"$scratch/rows" 2>&1 && grep -qE '^guarded +.*kernel' "$scratch/rows"; }
check "the guard is on for pods without a class" eventually guarded_is_on
(in_pod guest-0 bare "${limited[@]}" hold 3) >"$scratch/guest.out" 2>&1 || true
check "the kernel refuses it a third one" grep -q 'Disk quota exceeded' "$scratch/guest.out"

echo "-- a pod without a directory of logs, and one that ends"
pod_make team-d late-0 $d
rmdir "/var/log/pods/team-d_late-0_$d"
holder late-0 perftest 1 late
check "it is in the tenant of pods without a name" has_tenant unnamed-pods '1 .* 1/1'
check "the collector says so" grep -q "no directory of the pod $d" "$scratch/collector"
stop late-0 late
rm -r "/var/log/pods/team-a_web-0_$a"
check "a pod whose logs are removed first keeps its tenant" has_tenant ns-team-a '1 .* 3/3'
stop web-0 web
check "the tenant goes with it" eventually has_no_tenant ns-team-a

kill "$collector"
check "the collector ends well" wait "$collector"
collector=''
processors 0
kill "$keeper"
check "the monitor ends well" wait "$keeper"
check "and is taken out" "$monitor" --unload
processors 1
finish
