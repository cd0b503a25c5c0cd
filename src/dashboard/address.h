/* SPDX-License-Identifier: MIT */
/* Sockets that listen: an address and port, or a path. */
#ifndef DASHBOARD_ADDRESS_H
#define DASHBOARD_ADDRESS_H

#include "base/problem.h"

enum { ADDRESS_TEXT = 80 };

/* "127.0.0.1:9910" or "[::1]:9910", port 0 for a free one. A listening socket, its address as
 * text with the port that it has, and the part that is a host; or -errno with a sentence. */
int address_listen(const char *address, char ret_address[ADDRESS_TEXT],
		   char ret_host[ADDRESS_TEXT], char problem[PROBLEM_SIZE]);

/* A listening socket at the path, for this user and group only. One that nobody serves any more
 * is replaced. Or -errno with a sentence. */
int address_listen_path(const char *path, char problem[PROBLEM_SIZE]);

#endif
