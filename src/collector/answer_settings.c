/* SPDX-License-Identifier: MIT */
/* GET_SETTINGS: what the processes of tenants follow besides limits. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

void answer_GET_SETTINGS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		struct proto_settings row = { 0 };

		if (!books->tenant[i] ||
		    (choose.tenant[0] && strcmp(choose.tenant, books->file->tenant[i].name) != 0))
			continue;
		snprintf(row.tenant, sizeof(row.tenant), "%s", books->file->tenant[i].name);
		row.settings = books->tenant[i]->table->settings;
		server_row(request, &row);
	}
	server_end(request);
}
