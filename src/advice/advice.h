/* SPDX-License-Identifier: MIT */
/*
 * Advice: what an operator should change, with the figures that were observed and the command that
 * changes it. A rule is a row of advice.def and a pure function of an observation.
 */
#ifndef ADVICE_ADVICE_H
#define ADVICE_ADVICE_H

#include "advice/observation.h"

enum { ADVICE_TEXT = 1024, ADVICE_COMMAND = 384, ADVICE_MOST = 10 };

struct advice {
	const char *rule;
	char tenant[NAME_SIZE]; /* "": of the host */
	int32_t pid;		/* 0: of no single process */
	char text[ADVICE_TEXT];
	char command[ADVICE_COMMAND];
	uint64_t more; /* findings of the same rule after this one that are left out */
};

extern const struct column advice_columns[]; /* of struct advice */

struct advice_rule {
	const char *name;
	const char *text;
	void (*advise)(const struct observation *observation, struct list *advice);
};
extern const struct advice_rule advice_rules[];
extern const unsigned advice_rules_count;

/* Appends to a list of struct advice what all rules find: at most so many of each. With a tenant
 * only what concerns it. */
void advice_collect(const struct observation *observation, const char *tenant, unsigned most,
		    struct list *advice);
/* The same from advice that was collected before. */
void advice_select(const struct list *from, const char *tenant, unsigned most, struct list *to);

#endif
