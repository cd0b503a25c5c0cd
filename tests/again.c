/* SPDX-License-Identifier: MIT */
/* The program of the test once more, also where an emulator runs it; see harness.h. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

/* A kernel of another processor cannot start the program, but the emulator that runs it can. */
struct again program_again(const char *name, const char *first, const char *second)
{
	static char path[PATH_MAX];
	char *emulator = getenv("HARNESS_EMULATOR");
	ssize_t length;

	if (!emulator)
		return (struct again){ "/proc/self/exe",
				       { (char *)name, (char *)first, (char *)second } };
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	return (struct again){ emulator, { emulator, "-0", (char *)name, path, (char *)first,
					   (char *)second } };
}

void exec_again(const char *name, const char *first, const char *second)
{
	struct again again = program_again(name, first, second);

	execv(again.program, again.arguments);
}
