/* SPDX-License-Identifier: MIT */
/*
 * What people ask of the fleet: `rdma_intercept fleet WORD` becomes this program with the same word.
 * Each question is a row of the table in ask.c.
 */
#ifndef FLEET_ASK_H
#define FLEET_ASK_H

#include <stdbool.h>

#include "fleet/etcd.h"

struct ask {
	const struct fleet_settings *settings;
	struct etcd *etcd;
	bool json;
	bool force;
	unsigned count; /* of the operands after the word */
	char **operand;
};

enum { ASK_OK, ASK_WRONG, ASK_USAGE, ASK_ABSENT };

/* Answers a question; of an unknown word it says so and returns ASK_USAGE. An exit status. */
int ask_answer(struct ask *ask, const char *word);

/* Says why it failed, and returns the status. */
int ask_fail(const struct ask *ask, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Of a call of etcd. */
int ask_fail_etcd(const struct ask *ask, int result, const char *problem);

/* ---- ask_show.c, ask_change.c */
int ask_status(struct ask *ask);
int ask_tenants(struct ask *ask);
int ask_limit(struct ask *ask);
int ask_quota(struct ask *ask);
int ask_policy(struct ask *ask);
int ask_forget(struct ask *ask);

#endif
