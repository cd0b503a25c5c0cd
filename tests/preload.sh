#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# enable and disable on hosts in odd states: a list that only root reads, a full or read-only /etc, a
# list that cannot be changed, a library that becomes unusable in the middle, others that change the
# list at the same time, and kills at each step of disable and of the package's own way. After each
# programs start without a message, and the list is the old or the new one.
# usage: tests/preload.sh [--list | --only CASE]
# shellcheck disable=SC2016,SC2317 # shells in the root; functions that check calls
set -euo pipefail
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
# shellcheck source=tests/roots.sh
. "$(dirname "$0")/roots.sh"

# The build's library and command, without a package: in $place/up, of which the root is made.
installed_here() { # NAME
	base=$("$source/lab/root" "$own" "${needed[@]}") || { check "lab/root makes a root" false; return 1; }
	place=$work/$1
	mkdir -p "$place"/up/{usr/local/bin,usr/local/lib}
	cp "$build/rdma_intercept" "$place/up/usr/local/bin/"
	cp "$build/librdma_intercept.so" "$place/up/usr/local/lib/"
	cp "$source/packaging/package/library.sh" "$place/up/"
}
# For the sessions: what every program prints, what is left beside the list, and the package's own way.
helpers='
	export PATH=/usr/local/sbin:/usr/local/bin:$PATH
	list=/etc/ld.so.preload library=/usr/local/lib/librdma_intercept.so
	alone="setpriv --reuid 65534 --regid 65534 --clear-groups"
	programs() { /bin/true; $alone /bin/sh -c "/bin/true | /bin/cat"; $alone su --version >/dev/null; }
	beside() { find /etc -name "*ld.so.preload?*" -o -name "*rdma_intercept*"; }
	package_remove_() { sh -e -c ". /library.sh; package_remove"; }'
# failed NAME, silent NAME: a step that did not end well; one that did and printed nothing
failed() { ! grep -qx 0 "$place/up/steps/$1.status" || { cat "$place/up/steps/$1" >&2; return 1; }; }
silent() { ended "$1" 0 && [ ! -s "$place/up/steps/$1" ] || { cat "$place/up/steps/$1" >&2; return 1; }; }

# A list that only root may read would give the library to root's programs only.
unreadable() {
	local base
	installed_here unreadable || return 0
	session unreadable "$base" < <(
		echo "$helpers"
		cat <<-'END'
			for mode in 600 640; do
				echo '# kept' >$list
				chmod $mode $list
				step enable_$mode rdma_intercept enable
				step kept_$mode cat $list
				step programs_$mode programs
			done
			step beside beside
			rm $list
			step enable sh -c 'umask 077; exec rdma_intercept enable'
			step mode stat -c %a $list
			step loaded $alone grep -c librdma_intercept /proc/self/maps
		END
	)
	for mode in 600 640; do
		check "mode $mode: enable refuses" ended "enable_$mode" 1
		check "mode $mode: and says how to go on" printed "enable_$mode" 'nothing was changed: .*chmod 644 /etc/ld.so.preload'
		check "mode $mode: the list is as before" printed "kept_$mode" '^# kept$'
		check "mode $mode: has no other line" lacks "$place/up/steps/kept_$mode" librdma
		check "mode $mode: programs start" silent "programs_$mode"
	done
	check "nothing is beside it" silent beside
	check "with another umask everybody may read a new list" printed mode '^644$'
	check "and loads the library" ended loaded 0
}

# A disk without room: at no byte and at no file more.
full() {
	local base
	installed_here full || return 0
	session full "$base" < <(
		echo "$helpers"
		cat <<-'END'
			cp -a /etc /etc.copy
			full_etc() { # OPTIONS
				mount -t tmpfs -o "$1" etc /etc
				cp -a /etc.copy/. /etc/
				printf '%s' "$2" >$list
				cat /dev/zero >/etc/fill 2>/dev/null
				[ "$1" = size=8m ] || while : 2>/dev/null >/etc/fill$((number = ${number-0} + 1)); do :; done
			}
			try() { # NAME
				step $1_list cat $list
				step $1_programs programs
				step $1_beside beside
			}
			full_etc size=8m "# kept
			"
			step bytes_enable rdma_intercept enable
			try bytes
			umount /etc
			full_etc size=8m,nr_inodes=2000 "# kept
			"
			step files_enable rdma_intercept enable
			try files
			umount /etc
			full_etc size=8m "# kept
			$library
			"
			step others_disable rdma_intercept disable
			try others
			step others_package package_remove_
			try others_again
			umount /etc
			full_etc size=8m $library
			step alone_disable rdma_intercept disable
			try alone
			umount /etc
		END
	)
	for what in bytes files; do
		check "no room for $what: enable fails" ended ${what}_enable 1
		check "no room for $what: and says why" printed ${what}_enable 'No space left on device'
		check "no room for $what: the list is as before" same ${what}_list bytes_list
		check "no room for $what: programs start" silent ${what}_programs
		check "no room for $what: nothing is beside it" silent ${what}_beside
	done
	check "the list has its line" printed bytes_list '^	*# kept$'
	check "disable with other lines: it says why it fails" printed others_disable 'No space left on device'
	check "disable with other lines: the list is whole" printed others_list '^	*/usr/local/lib/librdma_intercept.so$'
	check "disable with other lines: programs start" silent others_programs
	check "disable with other lines: nothing is beside it" silent others_beside
	check "the package's own way: fails, too, so that dpkg keeps the library" failed others_package
	check "the package's own way: names what it could not change" printed others_package '/etc/ld.so.preload: '
	check "the package's own way: the list is whole" same others_again_list others_list
	check "the package's own way: nothing is beside it" silent others_again_beside
	check "disable where the list has nothing else works" ended alone_disable 0
	check "and the list is gone" ended alone_list 1
	check "programs start" silent alone_programs
}

# /etc, or the list in it, that nobody may change.
unchangeable() {
	local base
	installed_here unchangeable || return 0
	session unchangeable "$base" < <(
		echo "$helpers"
		cat <<-'END'
			cp -a /etc /etc.copy
			mount -t tmpfs -o size=8m etc /etc
			cp -a /etc.copy/. /etc/
			fixed() { # NAME: tries all three ways
				step $1_enable rdma_intercept enable
				step $1_disable rdma_intercept disable
				step $1_package package_remove_
				step $1_list cat $list
				step $1_programs programs
				step $1_beside beside
			}
			printf '# kept\n%s\n' $library >$list
			mount -o remount,ro /etc
			step ro_profile rdma_intercept enable --profile
			fixed ro
			mount -o remount,rw /etc
			echo "$library # kept" >$list
			if chattr +i $list 2>/dev/null; then
				fixed fixed
				chattr -i $list
			fi
			# The list is a mount of its own, as a container may have it, and so is a link.
			printf '# kept\n' >/list
			: >$list
			mount --bind /list $list
			fixed mount
			umount $list
			ln -sf /list $list
			fixed link
			rm $list; mkdir $list
			fixed directory
		END
	)
	check "read-only: enable --profile fails" printed ro_profile 'Read-only file system'
	for what in ro fixed mount link directory; do
		if [ $what = fixed ] && [ ! -e "$place/up/steps/fixed_list" ]; then
			skip_part "chattr: files of a tmpfs cannot be made immutable by this kernel"
			continue
		fi
		check "$what: enable fails" ended ${what}_enable 1
		check "$what: enable says what was expected" printed ${what}_enable 'nothing was changed: |Read-only file system'
		check "$what: nothing is beside it" silent ${what}_beside
	done
	for what in ro fixed; do
		[ -e "$place/up/steps/${what}_list" ] || continue
		check "$what: disable fails" ended ${what}_disable 1
		check "$what: the package's own way fails, so that dpkg keeps the library" failed ${what}_package
		check "$what: the list has its line" printed ${what}_list 'librdma_intercept.so'
	done
	for what in ro mount link directory; do
		check "$what: programs start" silent ${what}_programs
	done
}

# The library is replaced between the trial and the end of enable: by what is no library, by a part of
# one, by nothing. One of the programs that enable starts does it, when the list is in place.
garbage() {
	local base way
	installed_here garbage || return 0
	session garbage "$base" < <(
		echo "$helpers"
		cat <<-'END'
			cp $library /good
			cat >/usr/bin/sudo <<-'SUDO'
				#!/bin/sh
				# (in a trial the list is a mount that only the trial sees)
				grep -q librdma /proc/1/root/etc/ld.so.preload || exit 0
				case $(cat /way) in
				text) echo text >/new ;;
				part) head -c 9000 /good >/new ;;
				empty) : >/new ;;
				missing) rm -f /usr/local/lib/librdma_intercept.so; exit 0 ;;
				esac
				chmod 755 /new
				mv /new /usr/local/lib/librdma_intercept.so
			SUDO
			chmod 755 /usr/bin/sudo
			for way in text part empty missing; do
				for others in '# kept' ''; do
					name=$way${others:+_others}
					rm -f $list $library
					cp /good $library
					[ -z "$others" ] || echo "$others" >$list
					echo $way >/way
					step $name rdma_intercept enable
					step ${name}_list cat $list
					step ${name}_programs programs
					step ${name}_beside beside
				done
			done
		END
	)
	for way in text part empty missing; do
		for name in $way ${way}_others; do
			check "$name: enable fails" ended $name 1
			check "$name: nothing was changed" printed $name 'nothing was changed: '
			check "$name: programs start" silent ${name}_programs
			check "$name: nothing is beside it" silent ${name}_beside
		done
		check "$way: no list as before" ended ${way}_list 1
		check "$way: the list as before" test "$(cat "$place/up/steps/${way}_others_list")" = '# kept'
	done
}

# Everybody at once: the list is never in pieces, and the end is what the last one wanted.
together() {
	local base
	installed_here together || return 0
	session together "$base" < <(
		echo "$helpers"
		cat <<-'END'
			echo '# kept' >$list
			for round in 1 2 3; do
				rdma_intercept enable >/steps/enable.1 2>&1 & one=$!
				rdma_intercept disable >/steps/disable 2>&1 & two=$!
				package_remove_ >/steps/package 2>&1 & three=$!
				rdma_intercept enable >/steps/enable.2 2>&1 & four=$!
				while kill -0 $one || kill -0 $two || kill -0 $three || kill -0 $four; do
					sed 's/^/list: /' $list
					/bin/true
				done 2>/dev/null >>/steps/seen
				wait
			done
			step enable rdma_intercept enable
			step enabled cat $list
			step disable rdma_intercept disable
			step list cat $list
			step programs programs
			step beside beside
		END
	)
	check "each look showed whole lines only" lacks <(grep -vxE 'list: (# kept|/usr/local/lib/librdma_intercept.so)' "$place/up/steps/seen") .
	check "and the line of others" test "$(grep -c '# kept' "$place/up/steps/seen")" -gt 0
	check "enable afterwards" ended enable 0
	check "names the library once" test "$(grep -c librdma "$place/up/steps/enabled")" -eq 1
	check "disable afterwards" ended disable 0
	check "leaves the line of others" test "$(cat "$place/up/steps/list")" = '# kept'
	check "programs start" silent programs
	check "nothing is beside it" silent beside
}

# Killed at each step of disable, and of what the package does when it is removed. The next package
# that is removed takes what a killed enable left.
killed() {
	local base
	command -v strace >/dev/null || { skip_part "strace is not installed"; return; }
	installed_here killed || return 0
	cat >"$work/kill_at" <<-'END'
		command=$1 root=$2 place=$3
		export RDMA_INTERCEPT_LIBRARY=/usr/local/lib/librdma_intercept.so
		list=$root/etc/ld.so.preload
		remove() { chroot "$root" sh -e -c ". /library.sh; package_remove"; }
		left() { find "$root/etc" -name "*ld.so.preload?*" -o -name "*rdma_intercept*"; }
		for way in disable remove; do
			case $way in
			disable) words=("$command" disable --root "$root") ;;
			remove) words=(chroot "$root" sh -e -c ". /library.sh; package_remove") ;;
			esac
			for call in openat flock write fsync fchmod fchmodat fchown fchownat rename renameat2 unlink unlinkat close execve clone vfork; do
				for when in $(seq 30); do
					printf '# kept\n%s\n' $RDMA_INTERCEPT_LIBRARY >"$list"
					status=0
					{ strace -f -qq -o "$place/strace" -e trace=$call -e inject=$call:signal=KILL:when=$when \
						"${words[@]}" >"$place/said" 2>&1 || status=$?; } 2>/dev/null
					[ $status -ne 0 ] || [ "$(cat "$list")" = '# kept' ] || echo "$way $call $when: says 0: $(cat "$list")" >>"$place/bad"
					case $(cat "$list") in
					'# kept' | "# kept
		$RDMA_INTERCEPT_LIBRARY") ;;
					*) echo "$way $call $when: $(cat "$list")" >>"$place/bad" ;;
					esac
					said=$(chroot "$root" /bin/true 2>&1) && [ -z "$said" ] || echo "$way $call $when: /bin/true: $said" >>"$place/bad"
					[ $status -ne 0 ] || ! grep -q 'killed by SIGKILL' "$place/strace" || status=1
					[ $status -ne 0 ] || break
					echo "$way $call $when" >>"$place/points"
				done
			done
			printf '# kept\n%s\n' $RDMA_INTERCEPT_LIBRARY >"$list"
			remove
			left >>"$place/left"
			[ "$(cat "$list")" = '# kept' ] || echo "$way: the next one: $(cat "$list")" >>"$place/bad"
		done
		# An enable that was killed with all of its files there; then the package is removed.
		rm -f "$list"
		for words in enable 'enable --profile'; do
			(umask 077; strace -qq -o "$place/strace" -e trace=rename -e inject=rename:error=EIO:signal=KILL:when=1 \
				"$command" $words --root "$root" >"$place/said" 2>&1) || true
		done
		left >"$place/there"
		stat -c '%a' "$list" >"$place/mode"
		remove
		left >>"$place/left"
		[ ! -e "$list" ] || echo "$list" >>"$place/left"
	END
	root_enter "$base" killed bash "$work/kill_at" "$build/rdma_intercept" "$place/root" "$place" >"$place/log" 2>&1 || cat "$place/log"
	check "disable was killed at several points" test "$(grep -c ^disable "$place/points")" -gt 8
	check "the package's own way, too" test "$(grep -c ^remove "$place/points")" -gt 20
	echo "killed at $(wc -l <"$place/points") points"
	check "programs start after each, and the list is the old or the new one" test ! -e "$place/bad"
	[ ! -e "$place/bad" ] || head "$place/bad"
	check "a killed enable leaves files" test "$(wc -l <"$place/there")" -ge 3
	check "everybody may read what it left, with any umask" grep -qx 644 "$place/mode"
	check "removing the package takes them" test ! -s "$place/left"
	cat "$place/left"
}

run_cases "unreadable full unchangeable garbage together killed" "$@"
