#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Packages in root file systems of Debian: they install, work and upgrade, enable and disable never
# leave a root in which programs do not start, and a purge leaves no file. Each root is an overlay
# above one of lab/root, which stays as it is. Without PACKAGES_CASES: the packages are made of what
# was built for this machine, and the root is of its own release and has what the packages need, so
# that nothing is fetched once the root is there.
# usage: tests/packages.sh [--list | --only CASE]
# shellcheck disable=SC2016,SC2317 # shells in the root; functions that check calls
set -euo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
# shellcheck source=tests/roots.sh
. "$(dirname "$0")/roots.sh"

# What a user sees of installed packages; for the sessions of all releases.
looks='
	step status_absent rdma_intercept status
	step doctor rdma_intercept doctor
	step run rdma_intercept run -- sh -c "grep -c librdma_intercept /proc/self/maps"
	collector_server --socket /run/rdma_intercept/collector.sock --log stderr >/steps/collector 2>&1 &
	collector=$!
	for try in $(seq 200); do [ ! -S /run/rdma_intercept/collector.sock ] || break; sleep 0.1; done
	step status rdma_intercept status
	step policy rdma_intercept limit get default
	step check rdma_intercept check --strict
	step programs ls $(sed -n "s/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p" /usr/lib/systemd/system/rdma_*.service \
		/usr/lib/systemd/system/collector_server.service)
	step group grep ^rdma_intercept: /etc/group
	kill $collector; wait $collector || true'
looks_right() {
	check "status says that no collector runs" ended status_absent 3
	check "and how to start one" printed status_absent 'start it: (systemctl start collector_server|collector_server --daemon)'
	check "doctor finds the library" printed doctor '^OK +library +/usr/lib.*/librdma_intercept.so can be loaded'
	check "doctor starts a program with it" printed doctor '^OK +program'
	check "run starts a program with the library" ended run 0
	check "the collector starts with the installed policy" ended status 0
	check "status shows it" printed status '/etc/rdma_intercept/policy.conf'
	check "the mode is audit: nothing is refused" printed policy 'mode +audit'
	check "the policy has no mistake" ended check 0
	check "the units name programs" printed programs '^/usr/sbin/collector_server$'
	check "which are installed" ended programs 0
	check "the group of administrators is there" ended group 0
}

# ---- the root of this machine's own release

lifecycle() {
	local base
	own_packages || { check "packages are made" false; return; }
	later_packages
	base=$("$source/lab/root" "$own" "${needed[@]}") || { check "lab/root makes a root" false; return; }
	mkdir -p "$work/lifecycle/up/later"
	cp "$work"/later/*.deb "$work/lifecycle/up/later/"
	session lifecycle "$base" "$work"/packages/*.deb < <(
		cat <<-'END'
			# A systemctl that writes down what it is asked for.
			mkdir -p /run/systemd/system
			printf '#!/bin/sh\necho "$*" >>/steps/systemctl\ncase "$*" in *is-enabled*) echo enabled ;; esac\n' >/usr/bin/systemctl
			chmod 755 /usr/bin/systemctl
			entries >/steps/before
			step install apt-get -y -qq install /packages/*.deb
			cp /steps/systemctl /steps/systemctl_install; : >/steps/systemctl
		END
		echo "$looks"
		cat <<-'END'
			echo '# mine' >>/etc/rdma_intercept/policy.conf
			printf '# comment\n/lib/x86_64-linux-gnu/libm.so.6' >/etc/ld.so.preload
			chmod 664 /etc/ld.so.preload
			cp -a /etc/ld.so.preload /steps/preload_before
			step enable rdma_intercept enable
			cp -a /etc/ld.so.preload /steps/preload_enabled
			step upgrade apt-get -y -qq install /later/*.deb
			cp /steps/systemctl /steps/systemctl_upgrade; : >/steps/systemctl
			cp -a /etc/ld.so.preload /steps/preload_upgraded
			cp /etc/rdma_intercept/policy.conf /steps/policy_upgraded
			mkdir -p /run/rdma_intercept/state /var/lib/rdma_intercept /var/lib/rdma_dashboard /var/lib/rdma_fleet
			touch /dev/shm/rdma_intercept_shm /dev/shm/rdma_intercept_shm.1000 /var/lib/rdma_intercept/good \
				/var/lib/rdma_dashboard/history.db /etc/rdma_intercept/tenants.d/mine.conf \
				/etc/rdma_intercept/fleet.conf /var/lib/rdma_fleet/policy.conf
			step remove apt-get -y -qq remove librdma-intercept
			cp -a /etc/ld.so.preload /steps/preload_removed
			cp /steps/systemctl /steps/systemctl_remove
			step kept ls /var/lib/rdma_dashboard/history.db /etc/rdma_intercept/policy.conf \
				/etc/rdma_intercept/fleet.conf /var/lib/rdma_fleet/policy.conf
			rm -f /etc/ld.so.preload
			step purge apt-get -y -qq purge 'librdma-intercept*' 'rdma-intercept*'
			entries >/steps/after
		END
	)
	check "packages install" ended install 0
	looks_right
	for unit in collector_server rdma_monitor rdma_dashboard rdma_fleet; do
		check "$unit: starts when it is new" grep -q -E "(^| )start $unit" "$place/up/steps/systemctl_install"
		check "$unit: restarts after an upgrade only if it runs" grep -q "^try-restart $unit" "$place/up/steps/systemctl_upgrade"
		check "$unit: an upgrade does not stop it" lacks "$place/up/steps/systemctl_upgrade" "^stop"
	done
	check "collector_server: stops when it is removed" grep -q "^stop collector_server" "$place/up/steps/systemctl_remove"
	check "enable" ended enable 0
	check "an upgrade" ended upgrade 0
	check "keeps the preloaded library" same preload_enabled preload_upgraded
	check "and a changed policy" printed policy_upgraded '^# mine'
	check "the removed library is not preloaded" ended remove 0
	check "and the other lines are as before" diff <(cat "$place/up/steps/preload_before" <(echo)) "$place/up/steps/preload_removed"
	check "removing keeps history and policy" ended kept 0
	check "purge" ended purge 0
	check "leaves no file" same before after
}

# ---- enable and disable

# What every program of a root loads, for programs that work and for those that do not.
trap_source='#include <stdlib.h>
#include <sys/auxv.h>
__attribute__((constructor)) static void begin(void) { if (getauxval(AT_SECURE)) abort(); }'
# The same where a variable does not hide it.
hidden_source='#include <stdlib.h>
__attribute__((constructor)) static void begin(void) { if (!getenv("RDMA_INTERCEPT_ENABLE")) abort(); }'
enabling() {
	local base texts number=0
	own_packages || { check "packages are made" false; return; }
	base=$("$source/lab/root" "$own" "${needed[@]}") || { check "lab/root makes a root" false; return; }
	place=$work/enabling
	mkdir -p "$place/up/trap" "$place/up/hidden" "$place/up/texts"
	gcc -shared -fPIC -o "$place/up/trap/librdma_intercept.so" -x c - <<<"$trap_source"
	gcc -shared -fPIC -o "$place/up/hidden/librdma_intercept.so" -x c - <<<"$hidden_source"
	cp "$source/packaging/package/library.sh" "$place/up/"
	texts=('L\n' '/a.so\nL\n' 'L\n/a.so\n' '/a.so L /b.so\n' '/a.so:L' '# a comment\nL' '  L  \n\n/a.so # L\n' 'L L\n/a.so' '/x/notlibrdma_intercept.so\n')
	for text in "${texts[@]}"; do
		number=$((number + 1))
		printf '%b' "${text//L/\/x\/librdma_intercept.so}" >"$place/up/texts/$number"
	done
	session enabling "$base" "$work"/packages/*.deb <<-'END'
		step install apt-get -y -qq install /packages/*.deb
		library=$(dpkg -L librdma-intercept | grep '/librdma_intercept\.so$')
		alone='setpriv --reuid 65534 --regid 65534 --clear-groups'
		loads() { grep -c librdma_intercept /proc/self/maps; }
		step unprivileged $alone rdma_intercept enable
		# Any user can lock what he may read, and nobody waits for him.
		$alone flock /etc sleep infinity & holder=$!
		step disable_nothing rdma_intercept disable
		# Two at once.
		rdma_intercept enable >/steps/first 2>&1 & one=$!
		rdma_intercept enable >/steps/second 2>&1 & other=$!
		step first_ends wait $one
		step second_ends wait $other
		cp /etc/ld.so.preload /steps/preload
		step mode stat -c %a:%u:%g /etc/ld.so.preload
		step loaded loads
		step loaded_alone $alone grep -c librdma_intercept /proc/self/maps
		step set_user_id $alone su --version
		step again rdma_intercept -j enable
		step disable rdma_intercept -j disable
		step gone test ! -e /etc/ld.so.preload
		step profile rdma_intercept enable --profile
		step login bash -lc 'grep -c librdma_intercept /proc/self/maps'
		step login_sh sh -lc 'grep -c librdma_intercept /proc/self/maps'
		step profile_again rdma_intercept enable --profile
		step profile_disable rdma_intercept disable
		step profile_gone test ! -e /etc/profile.d/rdma_intercept.sh

		# Refusals, each with the reason, and no file.
		mkdir -p /bad/owner /bad/mode /bad/text /open
		cp $library /bad/owner; chown 65534 /bad/owner/librdma_intercept.so
		cp $library /bad/mode; chmod 666 /bad/mode/librdma_intercept.so
		echo text >/bad/text/librdma_intercept.so
		chmod 777 /open; cp $library /open
		for bad in /bad/owner /bad/mode /bad/text /open /trap /missing; do
			RDMA_INTERCEPT_LIBRARY=$bad/librdma_intercept.so step bad_${bad##*/} rdma_intercept enable
		done
		# What only set-user-ID programs tell, where no mount namespace can be made: the old file is back.
		printf '/lib/x86_64-linux-gnu/libm.so.6\n' >/etc/ld.so.preload
		cp /etc/ld.so.preload /steps/old
		RDMA_INTERCEPT_LIBRARY=/trap/librdma_intercept.so step bad_restored \
			setpriv --bounding-set -sys_admin --inh-caps -sys_admin rdma_intercept enable
		cp /etc/ld.so.preload /steps/restored
		rm /etc/ld.so.preload
		step nothing_left sh -c 'ls /etc/ld.so.preload* /etc/profile.d/rdma* 2>/dev/null'
		step true /bin/true

		# What the caller ignores, and what only his environment makes work.
		step ignoring env --ignore-signal=CHLD,ALRM rdma_intercept enable
		rdma_intercept disable >/dev/null
		RDMA_INTERCEPT_ENABLE=0 RDMA_INTERCEPT_LIBRARY=/hidden/librdma_intercept.so step bad_hidden rdma_intercept enable
		printf '# one\0/two.so\n' >/etc/ld.so.preload
		cp /etc/ld.so.preload /steps/zero
		step bad_zero rdma_intercept enable
		cp /etc/ld.so.preload /steps/zero_kept
		# One of the programs that a trial starts changes the file, outside of the trial.
		printf '# one\n' >/etc/ld.so.preload
		printf '#!/bin/sh\ncmp -s /etc/ld.so.preload /proc/1/root/etc/ld.so.preload || echo "# two" >>/proc/1/root/etc/ld.so.preload\n' >/usr/bin/sudo
		chmod 755 /usr/bin/sudo
		step bad_meanwhile rdma_intercept enable
		cp /etc/ld.so.preload /steps/meanwhile
		rm /usr/bin/sudo /etc/ld.so.preload

		# disable and the package's own way do the same to a file.
		for text in /texts/*; do
			cp $text /etc/ld.so.preload
			rdma_intercept disable >/dev/null 2>&1
			cp /etc/ld.so.preload /steps/${text##*/}.command 2>/dev/null || : >/steps/${text##*/}.command
			cp $text /etc/ld.so.preload
			sh -e -c '. /library.sh; preload_remove' 2>/dev/null
			cp /etc/ld.so.preload /steps/${text##*/}.package 2>/dev/null || : >/steps/${text##*/}.package
			rm -f /etc/ld.so.preload
		done
		kill $holder
		step no_lock test ! -e /etc/.rdma_intercept.lock
	END
	check "packages install" ended install 0
	check "enable is for root" ended unprivileged 4
	check "and says so" printed unprivileged 'not permitted: expected root'
	check "disable where nothing is enabled" ended disable_nothing 0
	check "two at once: the first" ended first_ends 0
	check "the second" ended second_ends 0
	check "the library is named once" test "$(grep -c librdma_intercept "$place/up/steps/preload")" -eq 1
	check "mode and owner" printed mode '^644:0:0$'
	check "programs load the library" ended loaded 0
	check "also without privileges" ended loaded_alone 0
	check "set-user-ID programs start" ended set_user_id 0
	check "again: nothing to change" printed again '"changed": ?false'
	check "documents fit docs/schemas" fits_schemas
	check "disable" printed disable '"preload": ?true'
	check "removes a file that has nothing else" ended gone 0
	check "enable --profile" ended profile 0
	check "bash as a login shell" ended login 0
	check "sh as a login shell" ended login_sh 0
	check "the profile again" printed profile_again 'already'
	check "disable removes the profile" ended profile_disable 0
	check "which is gone" ended profile_gone 0
	check "a library of another user" printed bad_owner 'belongs to user 65534: expected root'
	check "a library that others may write" printed bad_mode 'other users may write it \(mode 0666\)'
	check "a directory that others may write" printed bad_open '/open: other users may write it'
	check "a file that is no library" ended bad_text 1
	check "a missing one" printed bad_missing 'No such file'
	check "a library that stops set-user-ID programs" printed bad_trap "nothing was changed: with /trap/.*ends with signal 6"
	check "the same without a mount namespace" printed bad_restored 'ends with signal 6'
	check "the old file is back" same old restored
	check "a caller who ignores signals" ended ignoring 0
	check "a library that works in the caller's environment only" printed bad_hidden 'ends with signal 6'
	check "a list with a byte 0" printed bad_zero 'byte 0: expected text'
	check "stays as it is" same zero zero_kept
	check "a list that another program changes meanwhile" printed bad_meanwhile 'another program has changed it'
	check "keeps that change" grep -q '^# two' "$place/up/steps/meanwhile"
	check "and gets no other" lacks "$place/up/steps/meanwhile" librdma_intercept
	check "the lock is removed" ended no_lock 0
	check "nothing is left" ended nothing_left 2
	check "programs start" ended true 0
	check "and print nothing" test ! -s "$place/up/steps/true"
	while [ "$number" -gt 0 ]; do
		check "${texts[number - 1]}: disable and the package agree" same "$number.command" "$number.package"
		number=$((number - 1))
	done
	check "disable keeps a comment that names the library" grep -q '^/a.so # ' "$place/up/steps/7.command"
	check "and a library with a similar name" grep -q notlibrdma "$place/up/steps/9.command"
}

fits_schemas() {
	(for name in again:enable disable:disable; do
		sed "s/^/${name#*:}\t/" "$place/up/steps/${name%:*}"
	done) | "$build/tests/schemas" "$source/docs/schemas"
}

# Killed at each step that changes a file: the list is the old or the new one, and programs start.
killed() {
	local base
	command -v strace >/dev/null || { skip_part "strace is not installed"; return; }
	own_packages || { check "packages are made" false; return; }
	base=$("$source/lab/root" "$own" "${needed[@]}") || { check "lab/root makes a root" false; return; }
	session killed "$base" "$work"/packages/*.deb <<<'step install apt-get -y -qq install /packages/*.deb'
	check "packages install" ended install 0
	cat >"$work/kill_at" <<-'END'
		command=$1 root=$2 place=$3
		export RDMA_INTERCEPT_LIBRARY=$(chroot "$root" dpkg -L librdma-intercept | grep '/librdma_intercept\.so$')
		good='# kept'
		for call in openat flock write fsync fchmod fchown rename unlink close clone; do
			for when in $(seq 40); do
				printf '%s\n' "$good" >"$root/etc/ld.so.preload"
				status=0
				{ strace -qq -o "$place/strace" -e trace=$call -e inject=$call:signal=KILL:when=$when \
					"$command" enable --root "$root" >"$place/said" 2>&1 || status=$?; } 2>/dev/null
				case $status in
				0) break ;;
				137) echo "$call $when" >>"$place/points" ;;
				*) echo "$call $when: status $status: $(cat "$place/said")" >>"$place/bad" ;;
				esac
				said=$(chroot "$root" /bin/true 2>&1) && [ -z "$said" ] || { echo "$call $when: /bin/true: $said" >>"$place/bad"; }
				grep -qxF "$good" "$root/etc/ld.so.preload" || echo "$call $when: the other line is gone" >>"$place/bad"
				[ "$(wc -l <"$root/etc/ld.so.preload")" -le 2 ] || echo "$call $when: $(cat "$root/etc/ld.so.preload")" >>"$place/bad"
			done
		done
		rm -f "$root"/etc/ld.so.preload*
		(umask 0 && strace -qq -o "$place/strace" -e trace=rename -e inject=rename:error=EIO:signal=KILL:when=1 \
			"$command" enable --root "$root" >"$place/said" 2>&1) || true
		stat -c '%n %a %s' "$root"/etc/ld.so.preload* >"$place/modes"
		find "$root/etc" -maxdepth 1 -name '*ld.so.preload*' -perm /022 >"$place/writable"
		printf '%s\n' "$good" >"$root/etc/ld.so.preload"
		"$command" enable --root "$root" >/dev/null
		ls "$root"/etc/ld.so.preload* >"$place/left"
		cat "$root/etc/ld.so.preload" >>"$place/left"
	END
	root_enter "$base" killed bash "$work/kill_at" "$build/rdma_intercept" "$place/root" "$place"
	check "it was killed at several points" test "$(wc -l <"$place/points")" -gt 20
	echo "killed at $(wc -l <"$place/points") points"
	check "programs start after each, and other lines are there" test ! -e "$place/bad"
	[ ! -e "$place/bad" ] || head "$place/bad"
	check "killed without a umask before the first list is complete" grep -q 'ld.so.preload 644 0$' "$place/modes"
	check "only root may write what is there then" test ! -s "$place/writable"
	check "the next one leaves nothing of the killed ones" test "$(grep -c . "$place/left")" -eq 3
}

# ---- a user without privileges

# In a mount namespace, in which the build belongs to the user.
unprivileged() {
	local home=$work/home user='setpriv --reuid 65534 --regid 65534 --clear-groups'
	mkdir -p "$home" "$work/build"/{up,work}
	chown 65534:65534 "$home"
	if ! $user test -r "$build/librdma_intercept.so"; then
		skip_part "a user without privileges cannot read $build"
		return
	fi
	chown 65534:65534 "$work/build/up"
	HOME=$home RDMA_COLLECTOR_SOCKET=$home/none unshare --mount --net bash -ec '
		build=$1 home=$2
		shift 2
		mount -t overlay overlay -o "lowerdir=$build,upperdir=$3/up,workdir=$3/work" "$build"
		rm -f "$build"/install_*.txt
		'"$user"' cmake --install "$build" --prefix "$home/.local" >"$home/../installed" 2>&1
		export LD_LIBRARY_PATH=$build/fakeverbs PATH=$home/.local/bin:$PATH
		cd /
		'"$user"' rdma_intercept run --limit qp=2 -- "$build/test_global_limit" >"$home/../out" 2>&1 || true
		'"$user"' rdma_intercept doctor >"$home/../doctor" 2>&1 || true
	' unprivileged "$build" "$home" "" "" "$work/build" || { tail "$work/installed"; check "it installs" false; }
	check "the library is in the home directory" test -e "$(echo "$home"/.local/lib*/librdma_intercept.so)"
	check "run finds it there, and it refuses" grep -q 'refused ibv_create_qp: tenant=default .* qp used 2/2' "$work/out"
	check "it counts without a collector" grep -q '^OK *library *.*/home/.local/lib' "$work/doctor"
	check "a unit names the program there" grep -q "^ExecStart=$home/.local/sbin/collector_server " \
		"$home/.local/lib/systemd/system/collector_server.service"
	check "all that was installed is in the home directory" not_elsewhere
}
not_elsewhere() { ! grep -E '^-- Installing: ' "$work/installed" | grep -v "$work/home/.local"; }

# The file of an installed library is replaced, and not written into.
replaced() {
	local file first
	DESTDIR=$work/stage cmake --install "$build" --component library >/dev/null
	file=$(find "$work/stage" -name librdma_intercept.so)
	first=$(stat -c %i "$file")
	ln "$file" "$work/held"
	touch -d '1 hour ago' "$file"
	DESTDIR=$work/stage cmake --install "$build" --component library >/dev/null
	check "another file has its name" test "$(stat -c %i "$file")" != "$first"
	check "nothing is beside it" test ! -e "$file.new"
	check "make uninstall knows it" grep -q '/librdma_intercept\.so$' "$build/install_manifest_library.txt"
	rm -f "$build/install_manifest_library.txt"
}

# ---- packages for all releases

# Made once, with the libraries of Debian 11.
all_packages() {
	[ ! -e "$work/made" ] || return 0
	"$source/build_all.sh" package >"$work/made.log" 2>&1 || { tail "$work/made.log"; return 1; }
	touch "$work/made"
	echo "packages made: $SECONDS s"
}

# release SUITE: what the packages need comes from the release
release() {
	local base began=$SECONDS
	all_packages || { check "packages are made" false; return; }
	base=$("$source/lab/root" "$1") || { check "lab/root makes a root of $1" false; return; }
	mkdir -p "$work/$1/up/etc/apt"
	cp -a /etc/apt/apt.conf.d "$work/$1/up/etc/apt/"
	cp -L /etc/resolv.conf /etc/hosts "$work/$1/up/etc/"
	session "$1" "$base" "$source"/build-package/packages/*.deb < <(
		cat <<-'END'
			apt-get -qq update
			installed >/steps/packages_before
			entries >/steps/before
			step install apt-get -y -qq --no-install-recommends install /packages/*.deb
		END
		echo "$looks"
		cat <<-'END'
			step enable rdma_intercept enable
			step loaded grep -c librdma_intercept /proc/self/maps
			step disable rdma_intercept disable
			step unloaded grep -c librdma_intercept /proc/self/maps
			step enable_again rdma_intercept enable
			step purge apt-get -y -qq purge $(installed | comm -13 /steps/packages_before -)
			step true /bin/true
			entries >/steps/after
		END
	)
	check "packages install on $1" ended install 0
	looks_right
	check "enable" ended enable 0
	check "programs load the library" ended loaded 0
	check "disable" ended disable 0
	check "programs do not load it" ended unloaded 1
	check "enable before a purge" ended enable_again 0
	check "purge" ended purge 0
	check "programs start, without a message" test ! -s "$place/up/steps/true"
	check "no file is left" same before after
	echo "$1: $((SECONDS - began)) s"
}
debian_11() { release bullseye; }
debian_12() { release bookworm; }
debian_testing() { release testing; }

# What programs need is what the table in packaging/packages.cmake says.
dependencies() {
	local file name depends library package
	all_packages || { check "packages are made" false; return; }
	for file in "$source"/build-package/packages/*.deb; do
		rm -rf "$work/unpacked"
		dpkg-deb -x "$file" "$work/unpacked"
		depends=$(dpkg-deb -f "$file" Depends)
		name=$(basename "${file%%_*}")
		while read -r library; do
			case $library in
			libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | ld-linux*) package=libc6 ;;
			libz.so.1) package=zlib1g ;;
			*) package=$(sed -E 's/\.so\.([0-9]+)$/\1/; s/([a-z])([0-9]+)$/\1\2/' <<<"$library") ;;
			esac
			[ "$library" != libsqlite3.so.0 ] || package=libsqlite3-0
			check "$name: $library is in $package, which it depends on" grep -qE "(^|[ ,])$package( |,|\$)" <<<"$depends"
		done < <(find "$work/unpacked" -type f -exec sh -c 'readelf -dW "$1" 2>/dev/null' _ {} \; |
			sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
	done
}

# rpm works in another root, too; the scripts of the packages run there.
rpm_root() {
	local base
	all_packages || { check "packages are made" false; return; }
	command -v rpm >/dev/null || { skip_part "rpm is not installed"; return; }
	base=$("$source/lab/root" "$own" "${needed[@]}") || { check "lab/root makes a root" false; return; }
	place=$work/rpm
	mkdir -p "$place/up/steps"
	cat >"$work/rpm_steps" <<-'END'
		root=$1 packages=$2
		entries() { (cd "$root" && find . \( -path ./proc -o -path ./dev -o -path ./steps -o -path ./var/lib/rpm -o -path ./root \) -prune -o \
			! -path './etc/g*-' ! -path . -printf '%p %M %u %g\n' | sort); }
		step() { local name=$1; shift; local status=0; "$@" >"$root/steps/$name" 2>&1 || status=$?; echo $status >"$root/steps/$name.status"; }
		rpm --root "$root" --initdb
		entries >"$root/steps/before"
		# (its database does not know the packages of Debian that have the libraries)
		step install rpm --root "$root" --install --nodeps "$packages"/*.rpm
		step list rpm --root "$root" -qa
		step files rpm --root "$root" -ql librdma-intercept
		step verify rpm --root "$root" --verify --nodeps -a
		step requires rpm --root "$root" -q --requires rdma-intercept
		step missing sh -c 'chroot "$1" ldd /usr/bin/rdma_intercept /usr/sbin/collector_server /usr/sbin/rdma_monitor /usr/sbin/rdma_dashboard /usr/sbin/rdma_fleet | grep "not found"' sh "$root"
		step run chroot "$root" rdma_intercept run -- grep -c librdma_intercept /proc/self/maps
		step enable chroot "$root" rdma_intercept enable
		step loaded chroot "$root" grep -c librdma_intercept /proc/self/maps
		step erase rpm --root "$root" --erase $(rpm --root "$root" -qa | grep rdma)
		step true chroot "$root" /bin/true
		entries >"$root/steps/after"
	END
	root_enter "$base" rpm bash "$work/rpm_steps" "$place/root" "$source/build-package/packages" >"$place/log" 2>&1 || cat "$place/log"
	check "packages install" ended install 0
	check "rpm lists them" test "$(grep -c rdma-intercept "$place/up/steps/list")" -eq 6
	check "the library is in lib64" printed files '^/usr/lib64/librdma_intercept.so$'
	check "files are as they were packed" ended verify 0
	check "names of libraries are requirements" printed requires '^libjansson.so.4\(.*\)\(64bit\)$'
	check "programs find their libraries" ended missing 1
	check "run finds the library there" ended run 0
	check "enable" ended enable 0
	check "programs load the library" ended loaded 0
	check "erase" ended erase 0
	check "programs start, without a message" test ! -s "$place/up/steps/true"
	# The group stays, as rpm's packages leave groups.
	check "no file is left" same before after
}

run_cases "${PACKAGES_CASES-replaced unprivileged lifecycle enabling killed}" "$@"
