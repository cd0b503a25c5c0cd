#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the scripts of packages do on hosts in odd states: one package alone, packages that are purged
# apart, installed again, or replaced by an earlier one, a policy that both sides changed, a purge
# while programs run with the library, and a list of preloaded libraries that cannot be changed.
# usage: tests/maintainers.sh [--list | --only CASE]
# shellcheck disable=SC2016,SC2317 # shells in the root; functions that check calls
set -euo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
# shellcheck source=tests/roots.sh
. "$(dirname "$0")/roots.sh"

# root_with NAME PACKAGE...: the root's release and what is there before the session
root_with() {
	local name=$1
	shift
	own_packages library collector fleet || { check "packages are made" false; return 1; }
	base=$("$source/lab/root" "$own" "$@") || { check "lab/root makes a root" false; return 1; }
	place=$work/$name
	mkdir -p "$place"/up/{later,stand-in}
}

# A container that only counts: a root with nothing but the base system, and a program that has the
# stand-in libibverbs.
alone() {
	local base
	root_with alone || return 0
	cp -L "$build"/fakeverbs/lib{ibverbs,rdmacm}.so.1 "$build/test_global_limit" "$place/up/stand-in/"
	session alone "$base" "$work"/packages/librdma-intercept_*.deb <<-'END'
		entries >/steps/before
		step install apt-get -y -qq install /packages/*.deb
		library=$(dpkg -L librdma-intercept | grep '/librdma_intercept\.so$')
		export LD_LIBRARY_PATH=/stand-in
		step limited setpriv --reuid 65534 --regid 65534 --clear-groups \
			env LD_PRELOAD=$library RDMA_INTERCEPT_LIMITS=host:qp=2 /stand-in/test_global_limit
		step ledger sh -c "ls /dev/shm/rdma_intercept_shm*"
		step client grep -c librdma_intercept_client.so.1 /etc/ld.so.cache
		echo $library >/etc/ld.so.preload
		step loaded grep -c librdma_intercept /proc/self/maps
		step remove apt-get -y -qq remove librdma-intercept
		step true /bin/true
		step again apt-get -y -qq install /packages/*.deb
		step purge apt-get -y -qq purge librdma-intercept
		entries >/steps/after
	END
	check "it installs alone" ended install 0
	check "a program without privileges is limited at exactly 2" printed limited 'refused ibv_create_qp: tenant=default .* qp used 2/2'
	check "it counts in a ledger of its own" ended ledger 0
	check "the linker knows the library for programs that read usage" ended client 0
	check "ld.so.preload without the command" ended loaded 0
	check "it is removed, and with it the line" ended remove 0
	check "programs start, without a message" test ! -s "$place/up/steps/true"
	check "it is installed again" ended again 0
	check "purge" ended purge 0
	check "leaves no file" same before after
}

# Two packages have settings in one directory; a purge takes its own, and the last one the directory.
apart() {
	local base way
	root_with apart "${needed[@]}" || return 0
	session apart "$base" "$work"/packages/*.deb <<-'END'
		entries >/steps/before
		for way in "rdma-intercept rdma-intercept-fleet" "rdma-intercept-fleet rdma-intercept"; do
			set -- $way
			step $1_install apt-get -y -qq install /packages/*.deb
			touch /etc/rdma_intercept/fleet.conf /etc/rdma_intercept/etcd-client.key /etc/rdma_intercept/tenants.d/mine.conf
			step $1_first dpkg --purge $1
			step $1_settings ls /etc/rdma_intercept
			step $1_second dpkg --purge $2
			step $1_library dpkg --purge librdma-intercept
			entries >/steps/$1_after
		done
	END
	for way in rdma-intercept rdma-intercept-fleet; do
		check "$way first: install" ended ${way}_install 0
		check "$way first: purge" ended ${way}_first 0
		check "$way first: the key of the other is kept" printed ${way}_settings '^etcd-client.key$'
		check "$way first: the other" ended ${way}_second 0
		check "$way first: both leave nothing" same before ${way}_after
	done
	check "the collector's purge keeps the fleet's settings" printed rdma-intercept_settings '^fleet.conf$'
	check "and takes its own" lacks "$place/up/steps/rdma-intercept_settings" 'policy.conf\|tenants.d'
	check "the fleet's purge keeps the policies" printed rdma-intercept-fleet_settings '^tenants.d$'
	check "and takes its own, too" lacks "$place/up/steps/rdma-intercept-fleet_settings" fleet.conf
}

# Again, later, earlier; and a policy that the administrator and the later package both changed.
again() {
	local base
	root_with again "${needed[@]}" || return 0
	later_packages 's/^mode = audit/& # later/'
	cp "$work"/later/*.deb "$place/up/later/"
	session again "$base" "$work"/packages/*.deb <<-'END'
		entries >/steps/before
		step install apt-get -y -qq install /packages/*.deb
		step enable rdma_intercept enable
		echo '# mine' >>/etc/rdma_intercept/policy.conf
		step reinstall apt-get -y -qq install --reinstall /packages/*.deb
		step later apt-get -y -qq -o Dpkg::Options::=--force-confold install /later/*.deb
		step settings sh -c 'cd /etc/rdma_intercept; tail -n 1 policy.conf; grep "^mode" policy.conf*'
		step earlier apt-get -y -qq --allow-downgrades -o Dpkg::Options::=--force-confold install /packages/*.deb
		step version dpkg-query -W -f '${Version}\n' rdma-intercept librdma-intercept rdma-intercept-fleet
		step kept tail -n 1 /etc/rdma_intercept/policy.conf
		step listed grep -c librdma_intercept /etc/ld.so.preload
		step true /bin/true
		step remove dpkg --remove rdma-intercept-fleet rdma-intercept librdma-intercept
		step back apt-get -y -qq install /packages/*.deb
		step back_kept tail -n 1 /etc/rdma_intercept/policy.conf
		step purge apt-get -y -qq purge rdma-intercept rdma-intercept-fleet librdma-intercept
		entries >/steps/after
	END
	for what in install enable reinstall later earlier remove back purge; do
		check "$what" ended $what 0
	done
	check "the administrator's policy holds" printed settings '^# mine$'
	check "the later one is beside it" printed settings 'policy.conf.dpkg-dist:mode = audit # later'
	check "the earlier packages are installed" lacks "$place/up/steps/version" later
	check "and the policy is the administrator's" printed kept '^# mine$'
	check "the library is in the list once all the time" printed listed '^1$'
	check "programs start, without a message" test ! -s "$place/up/steps/true"
	check "removed and installed again: the policy is there" printed back_kept '^# mine$'
	check "no file is left" same before after
}

# A program goes on with the library that it has, and ends well.
in_use() {
	local base
	root_with in_use "${needed[@]}" || return 0
	cp -L "$build"/fakeverbs/lib{ibverbs,rdmacm}.so.1 "$build/test_shm_version" "$place/up/stand-in/"
	session in_use "$base" "$work"/packages/*.deb <<-'END'
		entries >/steps/before
		step install apt-get -y -qq install /packages/*.deb
		mkfifo /to /from
		LD_LIBRARY_PATH=/stand-in RDMA_INTERCEPT_LIMITS=process:qp=3 RDMA_INTERCEPT_LOG_FILE_PATH=/steps/worker.log rdma_intercept run -- \
			/stand-in/test_shm_version --worker </to >/from 2>/steps/worker.err & worker=$!
		exec 8>/to 7</from
		ask() { echo "$2" >&8; read -r -u 7 answer; echo "$answer" >>/steps/$1; }
		ask held qp
		ask held qp
		step purge apt-get -y -qq purge rdma-intercept rdma-intercept-fleet librdma-intercept
		step library sh -c "grep librdma_intercept /proc/$worker/maps"
		ask more qp
		ask more qp
		echo quit >&8
		step ended wait $worker
		exec 8>&- 7<&-
		rm /to /from
		entries >/steps/after
	END
	check "install" ended install 0
	check "a program holds 2" test "$(grep -c '^ok$' "$place/up/steps/held")" -eq 2
	check "purge" ended purge 0
	check "the program has the library that is gone" printed library '\(deleted\)'
	check "it gets its third queue pair and no fourth" test "$(tr '\n' ' ' <"$place/up/steps/more")" = 'ok refused Disk quota exceeded '
	check "it ends well" ended ended 0
	check "no file is left" same before after
}

# The library stays as long as the list may name it.
listed() {
	local base
	root_with listed "${needed[@]}" || return 0
	session listed "$base" "$work"/packages/*.deb <<-'END'
		step install apt-get -y -qq install /packages/*.deb
		library=$(dpkg -L librdma-intercept | grep '/librdma_intercept\.so$')
		echo $library >/list
		: >/etc/ld.so.preload
		mount --bind /list /etc/ld.so.preload
		step purge apt-get -y -qq purge librdma-intercept
		step library ls $library
		step true /bin/true
		umount /etc/ld.so.preload; rm /etc/ld.so.preload
		step purge_again apt-get -y -qq purge librdma-intercept
		step beside sh -c 'ls -A /etc | grep -e ld.so.preload -e rdma'
	END
	check "install" ended install 0
	check "a purge fails while the list cannot be changed" ended purge 100
	check "and says why" printed purge '/etc/ld.so.preload: cannot be changed'
	check "the library is there" ended library 0
	check "programs start, without a message" test ! -s "$place/up/steps/true"
	check "the next purge" ended purge_again 0
	check "leaves nothing beside the policy" test "$(cat "$place/up/steps/beside")" = rdma_intercept
}

run_cases "alone apart again in_use listed" "$@"
