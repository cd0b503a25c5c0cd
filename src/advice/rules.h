/* SPDX-License-Identifier: MIT */
/* What rules of advice share; private to this room. */
#ifndef ADVICE_RULES_H
#define ADVICE_RULES_H

#include "advice/advice.h"

#define ADVICE(name, function, text)                                                               \
	void advise_##function(const struct observation *observation, struct list *advice);
#include "advice/advice.def"
#undef ADVICE

/* Finds the next row of a scope, in total or on devices, and moves *at behind it. NULL at the end. */
const struct proto_row *rule_next_row(const struct observation *observation, uint32_t scope,
				      bool on_device, size_t *at);
#define RULE_EACH_ROW(row, observation, scope, on_device)                                          \
	for (size_t at_ = 0;                                                                       \
	     (row = rule_next_row(observation, scope, on_device, &at_)) != NULL;)

/* The host, a tenant or a process in total; NULL if the collector said nothing of it. */
const struct proto_row *rule_host(const struct observation *observation);
const struct proto_row *rule_tenant(const struct observation *observation, const char *tenant);
const struct proto_row *rule_process(const struct observation *observation, int32_t pid);

/* One finding; its texts are for rule_say and rule_command. */
struct advice *rule_add(struct list *advice, const char *tenant, int32_t pid);
void rule_say(struct advice *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rule_command(struct advice *advice, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* An amount of a kind as people write it. The text is good for the rest of the statement. */
const char *rule_amount(int kind, uint64_t value);
/* The same as a value for a policy. */
const char *rule_value(int kind, uint64_t value);
/* The part of the whole in percent. */
unsigned rule_percent(uint64_t part, uint64_t whole);
/* A name as an argument in a shell. */
const char *rule_quoted(const char *name);

#endif
