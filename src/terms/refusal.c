/* SPDX-License-Identifier: MIT */
/* The words of a refusal; see refusal.h. */
#include "terms/refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "terms/terms.h"

const char *refusal_text(const struct refusal_words *words, char ret_text[REFUSAL_TEXT])
{
	char limit[24] = "-", more[64] = "";

	if (words->limit != UNLIMITED)
		snprintf(limit, sizeof(limit), "%" PRIu64, words->limit);
	if (words->own)
		snprintf(more, sizeof(more), "%s", _(" (its own)"));
	else if (words->configured == UNLIMITED)
		snprintf(more, sizeof(more), "%s", _(" (its limit is unlimited)"));
	else if (words->configured && words->share)
		snprintf(more, sizeof(more), _(" (its limit is %" PRIu64 ")"), words->configured);
	else if (words->configured)
		snprintf(more, sizeof(more), _(" (%" PRIu64 ", and the rest is reserved)"),
			 words->configured);
	snprintf(ret_text, REFUSAL_TEXT,
		 _("%s used %" PRIu64 "/%s, wanted %" PRIu64 " more, %s of the %s%s"), words->kind,
		 words->used, limit, words->wanted,
		 words->configured && words->share ? _("share") : _("limit"), _(words->scope), more);
	if (words->origin && *words->origin) {
		size_t used = strlen(ret_text);

		snprintf(ret_text + used, REFUSAL_TEXT - used, _(", from %s"), words->origin);
	}
	return ret_text;
}
