/* SPDX-License-Identifier: MIT */
/* The table of questions; see ask.h. */
#include "fleet/ask.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "output/page.h"

static const struct {
	const char *word;
	unsigned most; /* operands */
	int (*answer)(struct ask *ask);
} questions[] = {
	{ "status", 0, ask_status }, { "tenants", 0, ask_tenants }, { "limit", 1000, ask_limit },
	{ "quota", 1000, ask_quota }, { "policy", 1, ask_policy },  { "forget", 1, ask_forget },
};

int ask_fail(const struct ask *ask, int status, const char *format, ...)
{
	char sentence[PROBLEM_SIZE + 256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), _(format), arguments);
	va_end(arguments);
	if (ask->json)
		page_json_error(sentence);
	else
		fprintf(stderr, "%s: %s\n", FLEET_NAME, sentence);
	return status;
}

int ask_fail_etcd(const struct ask *ask, int result, const char *problem)
{
	return ask_fail(ask, result == -ENOTCONN ? ASK_ABSENT : ASK_WRONG, "%s", problem);
}

int ask_answer(struct ask *ask, const char *word)
{
	for (unsigned i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (strcmp(questions[i].word, word))
			continue;
		if (ask->count > questions[i].most)
			return ask_fail(ask, ASK_USAGE, "%s: unexpected argument '%.64s'", word,
					ask->operand[questions[i].most]);
		return questions[i].answer(ask);
	}
	return ask_fail(ask, ASK_USAGE,
			"unknown word '%.64s': expected status, tenants, limit, quota, policy, forget, "
			"or none to follow the fleet",
			word);
}
