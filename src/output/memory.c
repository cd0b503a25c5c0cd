/* SPDX-License-Identifier: MIT */
/* The end where there is no memory; see memory.h. */
#include "output/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void *memory_need(void *pointer)
{
	static char complaint[] = ": out of memory\n";
	struct iovec parts[] = {
		{ program_invocation_short_name, strlen(program_invocation_short_name) },
		{ complaint, sizeof(complaint) - 1 },
	};

	if (pointer)
		return pointer;
	if (writev(STDERR_FILENO, parts, 2) < 0)
		_exit(1);
	_exit(1);
}
