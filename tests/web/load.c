/* SPDX-License-Identifier: MIT */
/*
 * A program for the page to show: it makes and frees QPs and memory regions in a rhythm, up to a
 * most, and has the name that it is given. Without a rhythm it makes them and waits.
 * usage: web_load NAME QPS MRS [MILLISECONDS]
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "resources.h"

enum { MOST = 256, REGION = 1 << 16 };

int main(int argc, char **argv)
{
	unsigned wanted[2] = { 0, 0 }, held[2] = { 0, 0 }, most[2], pause_ms, step = 0;
	struct resources resources;
	struct ibv_qp *qps[MOST];
	struct ibv_mr *mrs[MOST];
	static char memory[REGION];

	if (argc < 4)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, argv[1]);
	most[0] = (unsigned)atoi(argv[2]) % MOST;
	most[1] = (unsigned)atoi(argv[3]) % MOST;
	pause_ms = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	if (resources_open(&resources, NULL))
		return 77;
	for (;; step++) {
		for (int i = 0; i < 2; i++)
			wanted[i] = pause_ms ? most[i] * (60 + (step * (13 + 4 * (unsigned)i)) % 41) / 100 :
					       most[i];
		while (held[0] > wanted[0])
			ibv_destroy_qp(qps[--held[0]]);
		while (held[1] > wanted[1])
			ibv_dereg_mr(mrs[--held[1]]);
		while (held[0] < wanted[0] && (qps[held[0]] = resources_qp(&resources, IBV_QPT_RC, NULL)))
			held[0]++;
		while (held[1] < wanted[1] &&
		       (mrs[held[1]] = ibv_reg_mr(resources.pd, memory, sizeof(memory), 0)))
			held[1]++;
		if (!pause_ms)
			pause();
		usleep(pause_ms * 1000);
	}
}
