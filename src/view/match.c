/* SPDX-License-Identifier: MIT */
/* The match lines of the policy in the form in which they are shown; see match.h. */
#include "view/match.h"

#include "output/form.h"

const struct column match_columns[] = {
	COLUMN(struct proto_match, order, "order", "ORDER", form_number),
	COLUMN(struct proto_match, tenant, "tenant", NULL, form_text),
	COLUMN(struct proto_match, source, "source", "SOURCE", form_text),
	COLUMN(struct proto_match, text, "match", "MATCH", form_text),
	COLUMN(struct proto_match, in_kernel, "in_kernel", "IN KERNEL", form_flag),
	COLUMNS_END,
};

int match_take(const void *row, void *matches)
{
	struct proto_match *match = list_add(matches);

	*match = *(const struct proto_match *)row;
	proto_text(match->tenant);
	proto_text(match->source);
	proto_text(match->text);
	return 0;
}
