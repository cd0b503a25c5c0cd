# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of the collector and the command: the group that the policy names, and what the
# collector wrote. An upgrade leaves the ledger alone: the next collector continues with it.
unit=collector_server.service

package_install() {
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers rdma_intercept.conf
	elif ! grep -q '^rdma_intercept:' /etc/group; then
		groupadd --system rdma_intercept
	fi
	if command -v systemd-tmpfiles >/dev/null; then
		systemd-tmpfiles --create rdma_intercept.conf || true
	else
		mkdir -p /run/rdma_intercept /var/log/rdma_intercept
		chmod 755 /run/rdma_intercept
		chmod 750 /var/log/rdma_intercept
		chgrp rdma_intercept /var/log/rdma_intercept
	fi
}
# What 'rdma_intercept cdi --write' wrote names the command and the library.
package_remove() {
	rm -f /etc/cdi/rdma_intercept.json /usr/share/containers/oci/hooks.d/rdma_intercept.json \
		/etc/rdma_intercept/ld.so.preload
}
package_forget_run() {
	rm -rf /run/rdma_intercept/state /run/rdma_intercept/collector.sock*
	rm -f /tmp/rdma_collector.sock /tmp/rdma_collector.log*
	rmdir /run/rdma_intercept 2>/dev/null || true
	rmdir /var/log/rdma_intercept 2>/dev/null || true
}
package_forget() {
	rm -rf /var/lib/rdma_intercept /var/log/rdma_intercept
	# Settings of rdma_fleet, and the keys that they name, are in the same directory.
	if package_is_known rdma-intercept-fleet; then
		rm -rf /etc/rdma_intercept/policy.conf* /etc/rdma_intercept/tenants.d
	else
		rm -rf /etc/rdma_intercept
	fi
	if grep -q '^rdma_intercept:' /etc/group && command -v groupdel >/dev/null; then
		groupdel rdma_intercept || true
	fi
}
