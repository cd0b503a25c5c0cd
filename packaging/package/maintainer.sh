# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The scripts of all packages, after the part of the package itself. dpkg calls them with a word, rpm
# with the number of versions that are left. A unit is enabled and started when it is new, only
# restarted if it runs when it is upgraded, and as the administrator left it in all other ways.
# (without the sign for remainders of variables: rpm reads it as its own)

# Whether dpkg knows another package, if only by its settings; rpm does not purge.
package_is_known() { # NAME
	case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in
	'' | *\ not-installed) return 1 ;;
	esac
}

unit_does() { # start|stop|try-restart
	[ -d /run/systemd/system ] || return 0
	systemctl daemon-reload || true
	if command -v deb-systemd-invoke >/dev/null; then # it obeys policy-rc.d
		deb-systemd-invoke "$1" "$unit" || true
	else
		systemctl "$1" "$unit" || true
	fi
}

unit_install() { # new|upgrade
	[ -n "$unit" ] || return 0
	step=$1
	if command -v deb-systemd-helper >/dev/null; then
		# The package was removed and is back: its unit was stopped for that.
		[ ! -e "/var/lib/systemd/deb-systemd-helper-masked/$unit" ] || step=new
		deb-systemd-helper unmask "$unit" >/dev/null || true
		if deb-systemd-helper --quiet was-enabled "$unit"; then
			deb-systemd-helper enable "$unit" >/dev/null || true
		else
			deb-systemd-helper update-state "$unit" >/dev/null || true
		fi
	elif [ "$step" = new ] && command -v systemctl >/dev/null; then
		systemctl enable "$unit" || true
	fi
	if [ "$step" = new ]; then unit_does start; else unit_does try-restart; fi
}

unit_forget() { # remove|purge
	[ -n "$unit" ] || return 0
	if command -v deb-systemd-helper >/dev/null; then
		if [ "$1" = purge ]; then
			deb-systemd-helper purge "$unit" >/dev/null || true
			deb-systemd-helper unmask "$unit" >/dev/null || true
			# It leaves its own directories.
			for directory in deb-systemd-helper-enabled/multi-user.target.wants deb-systemd-helper-enabled \
				deb-systemd-helper-masked; do
				rmdir "/var/lib/systemd/$directory" 2>/dev/null || true
			done
			rmdir /var/lib/systemd /etc/systemd/system/multi-user.target.wants /etc/systemd/system \
				/etc/systemd 2>/dev/null || true
		else
			deb-systemd-helper mask "$unit" >/dev/null || true
		fi
	fi
	[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
}

script_postinst() {
	case $1-$2 in
	configure- | 1-*) step=new ;;
	configure-* | abort-* | [2-9]-*) step=upgrade ;;
	*) return 0 ;;
	esac
	package_install
	unit_install "$step"
}

script_prerm() {
	case $1 in
	remove | 0) ;;
	*) return 0 ;;
	esac
	if [ -n "$unit" ]; then
		unit_does stop
		if [ "$1" = 0 ] && command -v systemctl >/dev/null; then
			systemctl disable "$unit" || true
		fi
	fi
	package_remove
}

script_postrm() {
	case $1 in
	remove) unit_forget remove ;;
	0) package_forget_run ;;
	purge)
		unit_forget purge
		package_forget_run
		package_forget
		;;
	esac
}
