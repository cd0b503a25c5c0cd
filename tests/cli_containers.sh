# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # variables and functions of cli.sh
# Cases of cli.sh: the specification for container engines, and the hooks that engines call. What
# these do to containers is in the lab's scenario containers.

# fed status text word...: the command, with the text as its input
fed() {
	status=0
	"$command" "${@:3}" <<<"$2" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq "$1" ]
}
device_names() { tr -d ' \n' <"$work/out" | grep -o '{"name":"[^"]*"' | cut -d'"' -f4 | tr '\n' ' '; }
has_devices() { [ "$(device_names)" = "$1" ]; }

container_specification() {
	local own=/run/rdma_intercept_absent/collector.sock
	printf '[tenant a]\nmatch = uid=1\n[tenant _b]\nqp = 1\n[tenant c-%%c]\nmatch = container=*\n[tenant default]\nqp = 1\n' >"$work/containers.conf"
	check "a specification of the tenants of a file" exits 0 -s $own cdi --policy "$work/containers.conf"
	check "names that a device cannot have, and patterns, are not in it" has_devices 'default a '
	check "the hook of a tenant" says out '"--tenant",'
	check "no hook takes the tenant from an annotation" not grep -q -e --annotation "$work/out"
	check "the directory of the socket" says out '"hostPath": "/run/rdma_intercept_absent"'
	check "the library" says out '"containerPath": "/usr/lib/librdma_intercept.so"'
	check "as JSON" answers -s $own cdi --policy "$work/containers.conf" --nodes none --annotation x.y
	check "with a hook for the annotation" says out '"--annotation","x.y"'
	check "and without device nodes" not grep -q deviceNodes "$work/out"
	check "nodes: one of two words" complains 2 'expected one of: all, none' -s $own cdi --nodes some
	echo '[x]' >"$work/bad_containers.conf"
	check "a policy that is wrong" complains 1 'unknown section' -s $own cdi --policy "$work/bad_containers.conf"
	check "the tenants of a collector, without one" complains 3 'no collector at' -s $own cdi
	check "a directory that others write into is not given to containers" complains 1 'expected a directory of its own' -s /tmp/x.sock cdi
	check "nor one of the host by another name" complains 1 'expected a directory of its own' -s //etc/x.sock cdi
	check "nor by a longer one" complains 1 'expected a directory of its own' -s /etc/../etc/x.sock cdi
	check "--write and --remove" complains 2 'expected one of them' cdi --write --remove
	if [ "$(id -u)" -eq 0 ]; then
		check "--write is for root" not setpriv --reuid 65534 --clear-groups "$command" cdi --write
		check "--remove, too" not setpriv --reuid 65534 --clear-groups "$command" cdi --remove
	else
		check "--write is for root" complains 4 'expected root' cdi --write
		check "--remove, too" complains 4 'expected root' cdi --remove
	fi
}

container_hooks() {
	local mount='"mounts":[{"destination":"/usr/lib/librdma_intercept.so"}]'
	check "a configuration gets the library" fed 0 "{\"process\":{\"env\":[\"LD_PRELOAD=/a\"]},$mount}" oci-hook env
	check "before the user's" says out '"LD_PRELOAD=/usr/lib/librdma_intercept.so:/a"'
	check "one without our mount" fed 0 '{"process":{"env":["LD_PRELOAD=/a"]}}' oci-hook env
	check "stays as it is" [ "$(<"$work/out")" = '{"process":{"env":["LD_PRELOAD=/a"]}}' ]
	check "what is no configuration" fed 1 'no' oci-hook env
	check "is named" says err 'expected the configuration of a container'
	for word in start stop; do
		check "oci-hook $word: no state" fed 1 'no' oci-hook $word
		check "is named" says err 'expected the state of a container'
		check "oci-hook $word: an id with a slash" fed 1 '{"id": "a/b", "pid": 1}' oci-hook $word
	done
	check "without a tenant nothing is bound, and no collector is asked" fed 0 '{"id": "a", "pid": 1}' oci-hook start
	check "nor with an annotation that is not there" fed 0 '{"id": "a", "pid": 1, "annotations": {}}' oci-hook start --annotation x
	check "a process that has ended" fed 1 '{"id": "a", "pid": 0}' oci-hook start --tenant ours
	check "is named" says err 'has no usable path'
	check "stop without a collector" fed 3 '{"id": "a", "pid": 0}' oci-hook stop
}

# Ids may be words that others contain: a container takes out its own lines only.
container_lines() {
	local line
	collector_begin
	check "lines of containers" exits 0 tenant add boxes --match 'first cgroup=/ctr/web' --match 'first cgroup=/ctr/web/*' \
		--match 'first cgroup=/ctr/web-2' --match 'first cgroup=/ctr/web-2/*' --match 'first cgroup=/ctr/webs' \
		--match 'first cgroup=/web/x' --match 'first cgroup=/machine.slice/crun-web.scope' --match 'first cgroup=/x:ctr:web'
	check "one that ends" fed 0 '{"id": "web", "pid": 0}' oci-hook stop
	check "what is left" exits 0 show tenant boxes
	for line in /ctr/web-2 '/ctr/web-2/\*' /ctr/webs /web/x; do
		check "the line of another one stays: $line" grep -qE "first cgroup=$line( |\$)" "$work/out"
	done
	for line in /ctr/web '/ctr/web/\*' /machine.slice/crun-web.scope /x:ctr:web; do
		check "its own line is gone: $line" not grep -qE "first cgroup=$line( |\$)" "$work/out"
	done
	collector_end
}
