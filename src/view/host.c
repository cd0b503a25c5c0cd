/* SPDX-License-Identifier: MIT */
/* This host; see host.h. */
#include "view/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOT_VARIABLE "RDMA_INTERCEPT_DOCTOR_ROOT" /* for tests: files of another host */

static const struct {
	const char *unit;
	const char *start, *restart; /* by systemd */
	const char *program;	     /* without it */
} services[] = {
	[HOST_COLLECTOR] = { "collector_server.service", "systemctl start collector_server",
			     "systemctl restart collector_server", "collector_server --daemon" },
	[HOST_MONITOR] = { "rdma_monitor.service", "systemctl start rdma_monitor",
			   "systemctl restart rdma_monitor", "rdma_monitor --keep" },
};

const char *host_path(const char *path, char ret_path[PATH_MAX])
{
	const char *root = getenv(ROOT_VARIABLE);

	snprintf(ret_path, PATH_MAX, "%s%s", root ? root : "", path);
	return ret_path;
}

bool host_has(const char *path)
{
	char full[PATH_MAX];

	return !access(host_path(path, full), F_OK);
}

/* Whether systemd runs here and can have read the unit. */
static bool unit_is_installed(const char *unit)
{
	static const char *const directories[] = { "/etc", "/usr/local/lib", "/usr/lib", "/lib" };
	char path[PATH_MAX];

	if (!host_has("/run/systemd/system"))
		return false;
	for (unsigned i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(path, sizeof(path), "%s/systemd/system/%s", directories[i], unit);
		if (host_has(path))
			return true;
	}
	return false;
}

const char *host_start(enum host_service service)
{
	return unit_is_installed(services[service].unit) ? services[service].start :
							   services[service].program;
}

const char *host_restart(enum host_service service)
{
	return unit_is_installed(services[service].unit) ? services[service].restart :
							   services[service].program;
}
