# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of the monitor: what it loaded stays in the kernel over an upgrade, and leaves it when
# the package is removed.
unit=rdma_monitor.service

package_install() { :; }
package_remove() {
	/usr/sbin/rdma_monitor --unload >/dev/null 2>&1 || true
}
package_forget_run() {
	rm -rf /sys/fs/bpf/rdma_intercept /run/rdma_intercept/monitor
	rm -f /run/rdma_intercept/monitor.change /run/rdma_intercept/monitor.keeper
	rmdir /run/rdma_intercept 2>/dev/null || true
}
package_forget() { :; }
