/* SPDX-License-Identifier: MIT */
/* The state directory; see place.h. */
#include "history/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int path_print(char ret_path[PATH_MAX], const char *directory, const char *name)
{
	return snprintf(ret_path, PATH_MAX, "%s%s", directory, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int place_directory(const char *chosen, char ret_path[PATH_MAX])
{
	/* systemd names the directory of the service. */
	const char *variables[] = { PLACE_STATE_VARIABLE, "STATE_DIRECTORY" };
	const char *home;

	for (unsigned i = 0; i < 2 && !(chosen && *chosen); i++)
		chosen = getenv(variables[i]);
	if (chosen && *chosen)
		return path_print(ret_path, chosen, "");
	if (!geteuid())
		return path_print(ret_path, PLACE_SERVICE_STATE, "");
	home = getenv("XDG_STATE_HOME");
	if (home && *home)
		return path_print(ret_path, home, "/rdma_dashboard");
	home = getenv("HOME");
	return home && *home ? path_print(ret_path, home, "/.local/state/rdma_dashboard") : -ENOENT;
}

int place_file(const char *directory, const char *name, char ret_path[PATH_MAX])
{
	return snprintf(ret_path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX ? 0 :
										     -ENAMETOOLONG;
}
