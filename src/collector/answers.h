/* SPDX-License-Identifier: MIT */
/*
 * What the collector answers: a function for each row of messages.def, in a file answer_*.c.
 * answers.c calls them.
 */
#ifndef COLLECTOR_ANSWERS_H
#define COLLECTOR_ANSWERS_H

#include "collector/collector.h"

#define MESSAGE(name, number, request_body, reply_body, who, how)                                  \
	void answer_##name(struct collector *collector, const struct request *request);
#include "proto/messages.def"
#undef MESSAGE

/* For struct server; the closure is the collector. */
void answer(void *closure, const struct request *request);

/* What a request chooses, with strings that end. */
struct proto_choose request_choice(const struct request *request);

/* Whether the client that sent the request may change the policy. */
bool request_is_admin(const struct collector *collector, const struct request *request);

#endif
