# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of rdma_fleet, whose unit does not start before its settings are written. The collector
# keeps to the last policy in its directory, until the package is purged.
unit=rdma_fleet.service

package_install() { :; }
package_remove() { :; }
package_forget_run() { :; }
package_forget() {
	rm -rf /var/lib/rdma_fleet /var/lib/private/rdma_fleet /etc/rdma_intercept/fleet.conf
	package_is_known rdma-intercept || rm -rf /etc/rdma_intercept
}
