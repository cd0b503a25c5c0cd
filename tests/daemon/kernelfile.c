/* SPDX-License-Identifier: MIT */
/*
 * For scripts: kernel_file DIRECTORY MODE [PID DEVICE COMMAND KIND AMOUNT]... writes a monitor's
 * files, with a row for each five. MODE is a number (enum monitor_mode); "lost" stands for the
 * first with objects lost.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

int main(int argc, char **argv)
{
	bool lost = argc > 2 && !strcmp(argv[2], "lost");

	if (argc < 3 || (argc - 3) % 5)
		return 2;
	kernel_load(argv[1], lost ? MONITOR_FENTRY : (enum monitor_mode)atoi(argv[2]));
	kernel_head->lost_objects = lost ? 7 : 0;
	for (char **at = argv + 3; *at; at += 5) {
		int kind = kind_find(at[3], strlen(at[3]));

		if (kind < 0)
			return 2;
		kernel_set(kernel_row((pid_t)atoi(at[0]), at[1], at[2]), (unsigned)kind,
			   strtoull(at[4], NULL, 10));
	}
	return 0;
}
