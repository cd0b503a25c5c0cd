/* SPDX-License-Identifier: MIT */
/* This host, as far as texts depend on it: its files, and how its services are started. */
#ifndef VIEW_HOST_H
#define VIEW_HOST_H

#include <limits.h>
#include <stdbool.h>

/* The path of a file of the host; tests have another root. */
const char *host_path(const char *path, char ret_path[PATH_MAX]);
bool host_has(const char *path);

enum host_service { HOST_COLLECTOR, HOST_MONITOR };

/* The command that starts the service here: by systemd if it runs and has the unit. */
const char *host_start(enum host_service service);

/* The same for one that runs and must begin anew. */
const char *host_restart(enum host_service service);

#endif
