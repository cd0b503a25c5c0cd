# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of the dashboard, whose history is kept until the package is purged.
unit=rdma_dashboard.service

package_install() { :; }
package_remove() { :; }
package_forget_run() { :; }
package_forget() {
	rm -rf /var/lib/rdma_dashboard /var/lib/private/rdma_dashboard
}
