/* SPDX-License-Identifier: MIT */
/* GET_DETAILS: the counters of registered processes and tenants, and the gauges of their queue
 * pairs. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

#include "collector/tenant_tallies.h"
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
	uint32_t row;
	const char *name;

	if (!usage)
		return;
	snprintf(details.tenant, sizeof(details.tenant), "%s",
		 books->file->tenant[books->file->member[member].tenant].name);
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
		row = books->file->lease[lease].usage_row;
		words_copy((uint64_t *)&details.gauges, (const uint64_t *)&usage->row[row].gauges,
			   sizeof(details.gauges));
		words_copy((uint64_t *)&details.classes, (const uint64_t *)&usage->classes[row],
			   sizeof(details.classes));
		posted_fold(&details.gauges.posted);
		server_row(request, &details);
	}
}

/* Tenants of which nothing was ever counted have a row only if they are named. */
static void tenant_details_send(const struct books *books, const struct request *request,
				unsigned tenant, const char *chosen, bool named)
{
	struct proto_details details = { .pid = 0 };

	snprintf(details.tenant, sizeof(details.tenant), "%s", books->file->tenant[tenant].name);
	if (!chosen[0]) {
		if (!tenant_tallies_sum(books, tenant, &details.tallies, &details.gauges) && !named)
			return;
		server_row(request, &details);
	}
	memset(&details.tallies, 0, sizeof(details.tallies));
	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		const char *name = books_device_name(books, device);

		name = name ? name : "-";
		if ((device && !strcmp(name, "-")) || (chosen[0] && strcmp(chosen, name) != 0) ||
		    !tenant_gauges_sum(books, tenant, device, &details.gauges))
			continue;
		snprintf(details.device, sizeof(details.device), "%s", name);
		server_row(request, &details);
	}
}

static void tenants_details_send(const struct books *books, const struct request *request,
				 const struct proto_choose *choose)
{
	tenant_tallies_chain(books);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] &&
		    (!choose->tenant[0] || !strcmp(choose->tenant, books->file->tenant[i].name)))
			tenant_details_send(books, request, i, choose->device,
					    choose->tenant[0] != '\0');
}

void answer_GET_DETAILS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct books *books = &collector->books;

	if (choose.flags & CHOOSE_TENANTS) {
		tenants_details_send(books, request, &choose);
		server_end(request);
		return;
	}
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
