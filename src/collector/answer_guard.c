/* SPDX-License-Identifier: MIT */
/* GUARD: what the kernel guarantees to each tenant. */
#include "collector/answers.h"

#include <string.h>

void answer_GUARD(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	struct proto_guard row;

	guards_look(collector);
	guards_listen(collector);
	guards_describe_host(collector, &row);
	server_row(request, &row);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const char *name = collector->books.file->tenant[i].name;

		if (!collector->books.tenant[i] ||
		    (choose.tenant[0] && strcmp(choose.tenant, name)))
			continue;
		guards_describe_tenant(collector, name, &row);
		server_row(request, &row);
	}
	server_end(request);
}
