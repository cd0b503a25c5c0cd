/* SPDX-License-Identifier: MIT */
/* A list of names; see security_modules.h. */
#include "base/security_modules.h"

#include <stdio.h>
#include <string.h>

#define NAME "bpf"

enum { LIST = SECURITY_MODULES_BOOT - 16 }; /* of it, what leaves room for the rest */

bool security_modules_have_bpf(const char *list, char ret_boot[SECURITY_MODULES_BOOT])
{
	size_t length = strcspn(list, "\n");

	for (const char *at = list; at < list + length;) {
		size_t here = strcspn(at, ",\n");

		if (here == strlen(NAME) && !memcmp(at, NAME, here))
			return true;
		at += here + 1;
	}
	snprintf(ret_boot, SECURITY_MODULES_BOOT, "lsm=%.*s%s" NAME,
		 (int)(length < LIST ? length : LIST), list, length ? "," : "");
	return false;
}
