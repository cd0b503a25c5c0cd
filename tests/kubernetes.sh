#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The manifests of packaging/kubernetes: each field against the typed models of the Kubernetes API that
# Debian has (python3-kubernetes, of Kubernetes 1.22), the files against each other and against the
# units of systemd, the policy against the collector's reader. No API server is asked. Each sort of
# mistake is made in a copy and must be found.
# usage: tests/kubernetes.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that check calls
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
sources=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
build=${BUILD_DIRECTORY:-$sources/build}
cd "$sources" || exit 1
manifests=packaging/kubernetes
# Debian's python: its packages are in no other.
read_manifests() { /usr/bin/python3 tests/kubernetes/manifests.py "$@"; }

good() {
	/usr/bin/python3 -c 'import kubernetes, yaml' 2>/dev/null || { skip_part "python3-kubernetes is not installed" && return 0; }
	check "the manifests are in order" read_manifests check $manifests
	read_manifests unpack $manifests "$work/unpacked"
	check "so is the policy" policy_is_good
	check "the image has packages that are made" packages_are_made
}

policy_is_good() { "$build/rdma_intercept" check --strict "$work/unpacked/configMap:rdma-intercept-policy/policy.conf" 2>&1; }

packages_are_made() {
	local package
	for package in $(grep -o '[a-z-]*_\*\.deb' $manifests/Containerfile | sed 's/_.*//'); do
		grep -q " $package)$" packaging/packages.cmake || { echo "no package $package" && return 1; }
	done
}

# fault FILE SED WORDS: with this change of a file a mistake is found, and named so. First all copies are
# made and read by one program, since it takes seconds to start; then each is judged.
fault() {
	copies=$((copies + 1))
	if [ -z "$judging" ]; then
		cp -r $manifests "$work/copy$copies"
		sed -i "$2" "$work/copy$copies/$1"
		return
	fi
	check "$1, $2: is another file" differs "$1"
	check "$1, $2: is found" grep -q "^$work/copy$copies: .*$3" "$work/found"
}
differs() { ! cmp -s "$manifests/$1" "$work/copy$copies/$1"; }

faults() {
	/usr/bin/python3 -c 'import kubernetes, yaml' 2>/dev/null || { skip_part "python3-kubernetes is not installed" && return 0; }
	judging='' copies=0
	all_faults
	read_manifests check "$work"/copy* >"$work/found" && check "mistakes are found" false
	judging=1 copies=0
	all_faults
}

all_faults() {
	fault daemonset.yaml 's/hostPID: true/hostPid: true/' 'V1PodSpec has no field hostPid'
	fault daemonset.yaml 's/hostPID: true/hostPID: "true"/' "hostPID: 'true': expected bool"
	fault daemonset.yaml 's/runAsUser: 65532/runAsUser: nobody/' "runAsUser: 'nobody': expected int"
	fault daemonset.yaml 's/maxUnavailable: 1/maxUnavailable: [1]/' 'expected a number or a text'
	fault daemonset.yaml 's/drop: \[ALL\]/drop: ALL/' 'drop: expected a list'
	fault daemonset.yaml 's/memory: 512Mi/memory: 512MB/' '512MB is no quantity'
	fault daemonset.yaml '/^  selector:/,/name: rdma/d' 'selector'
	fault daemonset.yaml '0,/- name: bpf$/s//- name: bfp/' 'there is no volume bfp'
	fault daemonset.yaml '0,/mountPath: \/host$/s///' 'mount_path'
	fault daemonset.yaml 's/- SYS_PTRACE/- NET_ADMIN/' 'its unit has'
	fault daemonset.yaml 's/^      hostPID: true/&\n      hostPID: true/' 'is there twice'
	fault daemonset.yaml 's/name: rdma-intercept-policy/name: rdma-policy/' 'there is no ConfigMap rdma-policy'
	fault daemonset.yaml 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' 'can be written'
	fault namespace.yaml 's/^kind: Namespace/kind: NameSpace/' 'unknown apiVersion or kind'
	fault policy.yaml 's/^data:/date:/' 'V1ConfigMap has no field date'
	fault cdi.yaml 's/"containerPath": "\/usr/"path": "\/usr/' 'mount has no field path'
	fault cdi.yaml 's/"hostPath": "\/run/"hostPath": "\/opt/' 'does not make /opt/rdma_intercept'
	fault example-pod.yaml 's/readOnly: true/readonly: true/' 'V1VolumeMount has no field readonly'
	fault kustomization.yaml '/cdi.yaml/d' 'resources: expected'
}

run_cases "good faults" "$@"
