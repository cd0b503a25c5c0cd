/* SPDX-License-Identifier: MIT */
/*
 * /api/tenant and /api/devices: what a page shows of one tenant, and of devices. Processes and
 * their counters are asked for only here, at most once a second for the same tenant.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/state.h"
#include "output/memory.h"
#include "view/details.h"
#include "view/owner.h"

#define DETAIL_FRESH_NS CLOCK_SECOND_NS

/* ---- a tenant */

static void document_write(struct text *text, const json_t *document)
{
	char *written = memory_need(json_dumps(document, JSON_ENSURE_ASCII | JSON_COMPACT));

	text_add(text, written);
	free(written);
}

/* Everything of the tenant that is not in the sample: "processes", "counters", "queue_pairs". */
static int detail_ask(const char *socket, const char *tenant, struct text *text,
		      char problem[PROBLEM_SIZE])
{
	struct proto_choose choose = { .flags = CHOOSE_PROCESSES };
	struct list rows = { .size = sizeof(struct proto_row) };
	struct details details = details_make();
	int result;

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	result = proto_rows(socket, MESSAGE_GET_PROC_STATS, &choose, sample_row_take, &rows, 0,
			    problem);
	choose.flags = CHOOSE_TENANTS;
	if (result >= 0)
		result = proto_rows(socket, MESSAGE_GET_DETAILS, &choose, details_take, &details, 0,
				    problem);
	if (result >= 0) {
		text_add(text, ",\"processes\":");
		state_write_owners(text, &rows, &(struct state_choice){ .scope = ROW_PROCESS,
			.tenant = tenant, .columns = process_columns });
		text_add(text, ",\"counters\":");
		document_write(text, details.counters);
		text_add(text, ",\"queue_pairs\":");
		document_write(text, details.devices);
	}
	details_free(&details);
	free(rows.row);
	return result;
}

/* The same for all who ask within a second; NULL with a problem when the collector does not
 * answer. The lock is held meanwhile, so that many clients do not ask at once. */
static struct body *detail_of(struct dashboard *dashboard, const char *tenant,
			      char problem[PROBLEM_SIZE])
{
	struct dashboard_detail *oldest = &dashboard->details[0], *found = NULL;
	struct text text = { .data = NULL };
	struct body *body = NULL;

	pthread_mutex_lock(&dashboard->processes_lock);
	for (unsigned i = 0; i < DASHBOARD_DETAILS; i++) {
		struct dashboard_detail *detail = &dashboard->details[i];

		if (detail->body && !strcmp(detail->tenant, tenant))
			found = detail;
		if (detail->ns < oldest->ns)
			oldest = detail;
	}
	if (!found)
		found = oldest;
	if (!found->body || strcmp(found->tenant, tenant) ||
	    clock_now_ns() - found->ns > DETAIL_FRESH_NS) {
		body_release(found->body);
		found->body = NULL;
		if (detail_ask(dashboard->socket, tenant, &text, problem) >= 0)
			found->body = body_make(&text);
		text_free(&text);
		found->ns = clock_now_ns();
		snprintf(found->tenant, sizeof(found->tenant), "%s", tenant);
	}
	if (found->body)
		body = body_hold(found->body);
	pthread_mutex_unlock(&dashboard->processes_lock);
	return body;
}

void answer_tenant(struct dashboard *dashboard, const struct request *request,
		   struct answer *answer)
{
	const char *name = request->tenant ? request->tenant : "";
	char problem[PROBLEM_SIZE] = "";
	struct sample *sample = state_sample(dashboard, answer);
	struct text text = { .data = NULL };
	const struct proto_row *row;
	struct body *detail;

	if (!sample)
		return;
	row = state_tenant(sample, name);
	detail = row ? detail_of(dashboard, name, problem) : NULL;
	if (!row && !*name) {
		answer_fail(answer, 400, "tenant: missing: expected /api/tenant?tenant=NAME");
	} else if (!row) {
		answer_fail(answer, 404, "tenant: the collector has no tenant '%.100s'", name);
	} else if (!detail) {
		answer_fail(answer, 503, "%s", problem);
	} else {
		text_add(&text, "{\"tenant\":");
		state_write_owner(&text, tenant_columns, row);
		text_add(&text, ",\"devices\":");
		state_write_owners(&text, &sample->rows, &(struct state_choice){
			.scope = ROW_TENANT, .on_devices = true, .tenant = name,
			.columns = device_columns });
		text_append(&text, detail->text.data, detail->text.length);
		text_add(&text, "}\n");
		answer_json(answer, 200, &text);
	}
	body_release(detail);
	sample_release(sample);
}

/* ---- devices */

void answer_devices(struct dashboard *dashboard, const struct request *request,
		    struct answer *answer)
{
	struct sample *sample = state_sample(dashboard, answer);
	struct text text = { .data = NULL };

	if (!sample)
		return;
	text_add(&text, "{\"devices\":[");
	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);

		if (row->scope != ROW_HOST || !row->device[0])
			continue;
		state_next(&text);
		text_add(&text, "{\"device\":");
		state_write_owner(&text, device_columns, row);
		text_add(&text, ",\"tenants\":");
		state_write_owners(&text, &sample->rows, &(struct state_choice){
			.scope = ROW_TENANT, .on_devices = true, .device = row->device,
			.columns = tenant_columns });
		text_add(&text, "}");
	}
	text_add(&text, "]}\n");
	answer_json(answer, 200, &text);
	sample_release(sample);
}
