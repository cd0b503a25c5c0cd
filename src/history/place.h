/* SPDX-License-Identifier: MIT */
/* Where the dashboard keeps its files: history.db and token, in its state directory. */
#ifndef HISTORY_PLACE_H
#define HISTORY_PLACE_H

#include <limits.h>

#define PLACE_STATE_VARIABLE "RDMA_DASHBOARD_STATE"
#define PLACE_SERVICE_STATE "/var/lib/rdma_dashboard"
#define PLACE_HISTORY "history.db"
#define PLACE_TOKEN "token"

/* The directory: chosen (unless NULL), or that of the environment, of the service for root, or of
 * this user. 0 or -errno. */
int place_directory(const char *chosen, char ret_path[PATH_MAX]);

/* A file of the directory. 0 or -ENAMETOOLONG. */
int place_file(const char *directory, const char *name, char ret_path[PATH_MAX]);

#endif
