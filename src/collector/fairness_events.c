/* SPDX-License-Identifier: MIT */
/* Events about limits in force that are shares: which changed, and why; see fairness.h. */
#include "collector/fairness_parts.h"

#include <stdio.h>

#include "base/clock.h"

/* Of one tenant, kind and place. */
#define EVENT_INTERVAL_NS 1000000000u

static void share_report(struct collector *collector, unsigned tenant, unsigned place,
			 unsigned kind)
{
	struct books *books = &collector->books;
	const struct scope *scope = books_scope(&books->tenant[tenant]->all, place);
	struct proto_event event = {
		.type = EVENT_SHARE,
		.kind = kind,
		.scope = place ? SCOPE_TENANT_DEVICE : SCOPE_TENANT,
		.used = books_taken(scope, kind),
		.limit = scope->limit[kind],
		.configured = scope->configured[kind],
	};

	snprintf(event.tenant, sizeof(event.tenant), "%s", books->file->tenant[tenant].name);
	if (place)
		snprintf(event.device, sizeof(event.device), "%s", books_device_name(books, place));
	snprintf(event.text, sizeof(event.text), "%s", fair_reason_names[scope->reason[kind]]);
	collector_event(collector, &event);
}

static void field_report(struct collector *collector, unsigned place, unsigned kind)
{
	struct fair_field *field = collector->fairness.field[place][kind];
	struct books *books = &collector->books;
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		struct fair_account *account = &field->account[i];
		const struct scope *scope;

		if (!books->tenant[i])
			continue;
		scope = books_scope(&books->tenant[i]->all, place);
		if (scope->reason[kind] == account->told_reason &&
		    (scope->limit[kind] == account->told_limit ||
		     scope->reason[kind] == FAIR_CONFIGURED))
			continue;
		if (account->told_ns && now_ns - account->told_ns < EVENT_INTERVAL_NS)
			continue;
		account->told_ns = now_ns;
		account->told_reason = scope->reason[kind];
		account->told_limit = scope->limit[kind];
		share_report(collector, i, place, kind);
	}
}

void fairness_report(struct collector *collector)
{
	for (unsigned place = 0; place < DEVICES_MAX; place++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (collector->fairness.field[place][kind])
				field_report(collector, place, kind);
}
