/* SPDX-License-Identifier: MIT */
/*
 * The catalogs of this program, by the gettext of libc. They are looked for relative to the
 * program, so that a build directory and an installation below any prefix work without being
 * told.
 */
#include "base/translation.h"

#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOMAIN "rdma_intercept"

static char *catalog_find(const char *text)
{
	return dgettext(DOMAIN, text);
}

/* The directory of the catalogs, below the program's own or beside it. */
static const char *catalogs_place(char ret_path[PATH_MAX])
{
	static const char *const places[] = { "/locale", "/../share/locale" };
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	struct stat status;

	while (length > 0 && own[length - 1] != '/')
		length--;
	for (unsigned i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(ret_path, PATH_MAX, "%.*s%s", (int)length - 1, own, places[i]) <
			    PATH_MAX &&
		    !stat(ret_path, &status) && S_ISDIR(status.st_mode))
			return ret_path;
	return NULL;
}

void translation_open(void)
{
	char path[PATH_MAX];
	const char *place;

	setlocale(LC_CTYPE, "");
	setlocale(LC_MESSAGES, "");
	place = catalogs_place(path);
	/* A locale of single bytes has no characters for most languages. */
	if (place && MB_CUR_MAX > 1 && bindtextdomain(DOMAIN, place))
		translation_use(catalog_find);
}

void translation_close(void)
{
	setlocale(LC_MESSAGES, "C");
	translation_use(NULL);
}
