/* SPDX-License-Identifier: MIT */
/* GET_DETAILS: the counters of registered processes, and the gauges of their queue pairs. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

#include "ledger/leaselayout.h"

/* The process writes while we copy. */
static void words_copy(uint64_t *to, const uint64_t *from, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static void member_details_send(const struct books *books, const struct request *request,
				unsigned member, const char *device)
{
	const struct usage_page *usage = books->member[member].usage;
	struct proto_details details = { .pid = books->file->member[member].pid };
	const char *name;

	if (!usage)
		return;
	words_copy((uint64_t *)&details.tallies, (const uint64_t *)&usage->tallies,
		   sizeof(details.tallies));
	if (!device[0])
		server_row(request, &details);
	memset(&details.tallies, 0, sizeof(details.tallies));
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		name = books_device_name(books, books->view[lease].device);
		name = name ? name : "-";
		if (device[0] && strcmp(device, name) != 0)
			continue;
		snprintf(details.device, sizeof(details.device), "%s", name);
		words_copy((uint64_t *)&details.gauges,
			   (const uint64_t *)&usage->row[books->file->lease[lease].usage_row].gauges,
			   sizeof(details.gauges));
		server_row(request, &details);
	}
}

void answer_GET_DETAILS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_MEMBERS; i++) {
		const struct book_member *member = &books->file->member[i];

		if (member->state != BOOK_TAKEN || (choose.pid && member->pid != choose.pid) ||
		    (choose.tenant[0] &&
		     strcmp(choose.tenant, books->file->tenant[member->tenant].name) != 0))
			continue;
		member_details_send(books, request, i, choose.device);
	}
	server_end(request);
}
