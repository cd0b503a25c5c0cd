/* SPDX-License-Identifier: MIT */
/* /api/state and /api/events; see state.h. */
#include "dashboard/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/feed.h"
#include "dashboard/sources.h"
#include "output/form.h"
#include "output/memory.h"
#include "view/event.h"
#include "view/guard.h"
#include "view/owner.h"
#include "view/rule.h"

/* Processes are asked for at most once in this time. */
#define PROCESSES_FRESH_NS CLOCK_SECOND_NS

void state_next(struct text *text)
{
	char last = text->length ? text->data[text->length - 1] : '[';

	if (last != '[' && last != '{')
		text_append(text, ",", 1);
}

void state_write_record(struct text *text, const struct column *columns, const void *row)
{
	json_t *record = table_json_record(columns, row);
	char *written = memory_need(json_dumps(record, JSON_ENSURE_ASCII | JSON_COMPACT));

	text_add(text, written);
	free(written);
	json_decref(record);
}

void state_write_owner(struct text *text, const struct column *columns, const struct proto_row *row)
{
	struct owner owner;

	owner_read(&owner, row);
	state_write_record(text, columns, &owner);
}

void state_write_event(struct text *text, const struct proto_event *given)
{
	struct event event;

	event_read(&event, given);
	state_write_record(text, event_columns, &event);
}

void state_write_collector(struct text *text, const struct sample *sample)
{
	if (sample->up)
		state_write_record(text, collector_columns, &sample->collector);
	else
		text_add(text, "null");
}

static bool row_is_chosen(const struct proto_row *row, const struct state_choice *choice)
{
	return row->scope == choice->scope && choice->on_devices == (row->device[0] != '\0') &&
	       (!choice->tenant || !strcmp(choice->tenant, row->tenant)) &&
	       (!choice->device || !strcmp(choice->device, row->device));
}

void state_write_owners(struct text *text, const struct list *rows,
			const struct state_choice *choice)
{
	text_add(text, "[");
	for (size_t i = 0; i < rows->count; i++) {
		const struct proto_row *row = list_at(rows, i);

		if (!row_is_chosen(row, choice))
			continue;
		state_next(text);
		state_write_owner(text, choice->columns, row);
	}
	text_add(text, "]");
}

void state_write_host(struct text *text, const struct sample *sample)
{
	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);

		if (row->scope == ROW_HOST && !row->device[0]) {
			state_write_owner(text, host_columns, row);
			return;
		}
	}
	text_add(text, "null");
}

static void guards_write(struct text *text, const struct sample *sample)
{
	struct guard guard;

	for (size_t i = 0; i < sample->guards.count; i++) {
		guard_read(&guard, list_at(&sample->guards, i));
		if (i == 0)
			text_add(text, ",\"guard\":");
		else if (i == 1)
			text_add(text, ",\"guarded_tenants\":[");
		if (i && !guard.given.on)
			continue;
		if (i)
			state_next(text);
		state_write_record(text, i ? guard_tenant_columns : guard_host_columns, &guard);
	}
	if (sample->guards.count > 1)
		text_add(text, "]");
}

static void rules_write(struct text *text, const struct sample *sample)
{
	text_add(text, "[");
	for (size_t i = 0; i < sample->rules.count; i++) {
		state_next(text);
		state_write_record(text, rule_columns, list_at(&sample->rules, i));
	}
	text_add(text, "]");
}

/* The array of processes; the same for all who ask within a second. */
static struct body *processes_ask(struct dashboard *dashboard)
{
	const struct proto_choose choose = { .flags = CHOOSE_PROCESSES };
	struct list rows = { .size = sizeof(struct proto_row) };
	struct text text = { .data = NULL };
	char problem[PROBLEM_SIZE];
	struct body *body;

	pthread_mutex_lock(&dashboard->processes_lock);
	if (!dashboard->processes_ns ||
	    clock_now_ns() - dashboard->processes_ns > PROCESSES_FRESH_NS) {
		if (proto_rows(dashboard->socket, MESSAGE_GET_PROC_STATS, &choose, sample_row_take,
			       &rows, 0, problem) < 0)
			rows.count = 0;
		state_write_owners(&text, &rows, &(struct state_choice){
			.scope = ROW_PROCESS, .columns = process_columns });
		free(rows.row);
		body_release(dashboard->processes);
		dashboard->processes = body_make(&text);
		dashboard->processes_ns = clock_now_ns();
	}
	body = body_hold(dashboard->processes);
	pthread_mutex_unlock(&dashboard->processes_lock);
	return body;
}

struct sample *state_sample(struct dashboard *dashboard, struct answer *answer)
{
	struct sample *sample = dashboard_sample(dashboard);

	if (sample->up)
		return sample;
	answer_fail(answer, 503, "%s",
		    *sample->problem ? sample->problem : "the collector was not asked yet");
	sample_release(sample);
	return NULL;
}

const struct proto_row *state_tenant(const struct sample *sample, const char *name)
{
	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);

		if (row->scope == ROW_TENANT && !row->device[0] && !strcmp(row->tenant, name))
			return row;
	}
	return NULL;
}

bool state_may_have_tenant(struct dashboard *dashboard, const char *name)
{
	struct sample *sample = dashboard_sample(dashboard);
	bool may_have = !sample->up || state_tenant(sample, name);

	sample_release(sample);
	return may_have;
}

void answer_state(struct dashboard *dashboard, const struct request *request, struct answer *answer)
{
	struct sample *sample = state_sample(dashboard, answer);
	struct body *processes = NULL;
	struct text text = { .data = NULL };

	if (!sample)
		return;
	processes = processes_ask(dashboard);
	text_add(&text, "{\"collector\":");
	state_write_collector(&text, sample);
	text_add(&text, ",\"host\":");
	state_write_host(&text, sample);
	text_add(&text, ",\"tenants\":");
	state_write_owners(&text, &sample->rows, &(struct state_choice){
		.scope = ROW_TENANT, .columns = tenant_columns });
	text_add(&text, ",\"devices\":");
	state_write_owners(&text, &sample->rows, &(struct state_choice){
		.scope = ROW_HOST, .on_devices = true, .columns = device_columns });
	text_add(&text, ",\"processes\":");
	text_append(&text, processes->text.data, processes->text.length);
	text_add(&text, ",\"rules\":");
	rules_write(&text, sample);
	guards_write(&text, sample);
	text_add(&text, "}\n");
	answer_json(answer, 200, &text);
	body_release(processes);
	sample_release(sample);
}

void answer_policy(struct dashboard *dashboard, const struct request *request,
		   struct answer *answer)
{
	struct sample *sample = state_sample(dashboard, answer);
	struct text text = { .data = NULL };

	if (!sample)
		return;
	text_add(&text, "{\"rules\":");
	rules_write(&text, sample);
	text_add(&text, ",\"sources\":");
	if (request->section)
		sources_write(&text, sample->collector.status.policy, request->section);
	else
		text_add(&text, "null");
	text_add(&text, "}\n");
	answer_json(answer, 200, &text);
	sample_release(sample);
}
