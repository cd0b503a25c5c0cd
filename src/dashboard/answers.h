/* SPDX-License-Identifier: MIT */
/* The functions that answer one path each; the table of paths is in request.c. */
#ifndef DASHBOARD_ANSWERS_H
#define DASHBOARD_ANSWERS_H

#include "dashboard/request.h"

#define ANSWER(name)                                                                               \
	void answer_##name(struct dashboard *dashboard, const struct request *request,             \
			   struct answer *answer)
ANSWER(index);
ANSWER(metrics);
ANSWER(state);
ANSWER(kinds);
ANSWER(tenant);
ANSWER(devices);
ANSWER(token);
ANSWER(events);
ANSWER(history);
ANSWER(live);
ANSWER(policy);
ANSWER(advice);
ANSWER(limits);
#undef ANSWER

#endif
