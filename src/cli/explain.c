/* SPDX-License-Identifier: MIT */
/*
 * explain: where a process belongs and by which rule; and for one of its
 * refusals, what was in the way and what can be done about it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "terms/size.h"
#include "cli/collector.h"
#include "cli/failed_calls.h"
#include "cli/limits.h"
#include "cli/placement.h"
#include "cli/tenant_settings.h"
#include "cli/users.h"
#include "view/event.h"
#include "view/vocabulary.h"
#include "output/page.h"

struct identity {
	int32_t pid;
	char user[NAME_SIZE]; /* the name of given.uid; "" */
	struct proto_explanation given;
};

static const struct form form_rule = {
	.show = form_text_show,
	.json = form_text_json,
	.nothing = N_("no match line fits"),
};

static const struct column identity_columns[] = {
	COLUMN(struct identity, pid, "pid", "pid", form_pid),
	COLUMN(struct identity, given.registered, "registered", "registered", form_flag),
	COLUMN(struct identity, given.uid, "uid", "uid", form_number),
	COLUMN(struct identity, user, "user", "user", form_text_or_blank),
	COLUMN(struct identity, given.gid, "gid", "gid", form_number),
	COLUMN(struct identity, given.cgroup, "cgroup", "cgroup", form_text),
	COLUMN(struct identity, given.container, "container", "container", form_text),
	COLUMN(struct identity, given.job, "job", "job", form_text),
	COLUMN(struct identity, given.pod, "pod", "pod", form_text),
	COLUMN(struct identity, given.pod_uid, "pod_uid", "pod uid", form_text),
	COLUMN(struct identity, given.rule, "rule", "rule", form_rule),
	COLUMN(struct identity, given.tenant, "tenant", "tenant", form_text),
	COLUMNS_END,
};

static int parse(const struct cli *cli, const char *text, struct proto_ask *ret_ask)
{
	size_t length = strcspn(text, "-");
	const char *number = text + length + 1;

	*ret_ask = (struct proto_ask){ .number = 0 };
	if (!length || (text[length] && (size_parse(number, strlen(number), 1, false, &ret_ask->number) < 0 ||
			     ret_ask->number == 0)))
		return cli_fail(cli, CLI_USAGE, "invalid argument '%s': expected PID or PID-NUMBER", text);
	return cli_pid(cli, text, length, &ret_ask->pid);
}

/* Who it was that refused, or did what it did. */
static void name_ring(struct page *page, const struct event *event)
{
	bool kernel = event->given.ring == RING_KERNEL;

	if (event->given.type == EVENT_REFUSED && kernel)
		page_sentence(page, "by", "Refused in the kernel (guard of tenant %s).",
			      event->given.tenant);
	else if (event->given.type == EVENT_REFUSED)
		page_sentence(page, "by", "Refused by the library.");
	else if (kernel)
		page_sentence(page, "by", "Seen in the kernel (guard of tenant %s).",
			      event->given.tenant);
}

static void advise(struct page *page, const struct event *event)
{
	const struct limit_place *place = vocabulary_place(event->given.scope);
	bool kernel = event->given.ring == RING_KERNEL;
	char key[LIMIT_KEY];

	if (event->given.type == EVENT_KILLED) {
		page_sentence(
			page, "advice",
			"A command was changed in memory after the guard had checked it, by this "
			"process or by another one with the same device file. No correct program "
			"does this: find out which program ran.");
		return;
	}
	if (!event->kind)
		return;
	if (event->given.own) {
		page_sentence(page, "advice",
			      "The program's own environment (RDMA_INTERCEPT_*) sets this limit: "
			      "raise it there, or let the program free some.");
		return;
	}
	if (event->given.forbidden) {
		page_sentence(page, "advice",
			      "The devices of the tenant do not include %s: use another device, or "
			      "allow it: %s limit set tenant %s devices='PATTERN...'",
			      *event->given.device ? event->given.device : _("it"), CLI_NAME,
			      event->given.tenant);
		return;
	}
	if (event->given.configured && scope_has_shares(event->given.scope)) {
		page_sentence(page, "advice",
			      "Tenants share the limit of the host or the device, and this was the "
			      "tenant's share at that moment. Free some, wait until other tenants "
			      "give back, or raise the weight or the guarantee of tenant %s.",
			      event->given.tenant);
		return;
	}
	if (event->given.configured) {
		page_sentence(page, "advice",
			      "The rest of the limit is reserved for guarantees of other tenants, or "
			      "used by programs without the library. Free some, raise the limit, or "
			      "lower a guarantee.");
		return;
	}
	vocabulary_key(place->of_each_process, place->on_device ? event->given.device : "",
		       event->kind, key);
	page_sentence(page, "advice",
		      "%sFree some, or raise the limit: %s limit set %s%s %s=%" PRIu64,
		      !kernel ? "" :
		      event->given.type == EVENT_OVERRUN ?
				_("The kernel could not refuse this and counts it. ") :
				_("The limit holds for all processes of the tenant together, with the "
				  "library and without. "),
		      CLI_NAME, place->of_host ? "host" : "tenant ",
		      place->of_host ? "" : event->given.tenant, key,
		      event->used.value + event->wanted.value);
}

static void identity_name_user(struct identity *identity)
{
	struct users users;

	users_begin(&users);
	users_name(&users, identity->given.uid, identity->user);
	users_end(&users);
}

int command_explain(const struct cli *cli)
{
	struct identity identity;
	struct proto_ask ask;
	struct event event;
	struct page page;
	int result;

	if (cli->options.as.count || cli->options.policy.count)
		return placement_explain(cli);
	result = cli_operands(cli, 1, 1);
	if (!result)
		result = parse(cli, cli->operand[0], &ask);
	if (!result)
		result = collector_ask(cli, MESSAGE_EXPLAIN, &ask, &identity.given);
	if (result)
		return result;
	if (ask.number && !identity.given.has_event)
		return cli_fail(cli, CLI_WRONG, "the collector has no event %s: '" CLI_NAME
				" events' lists the latest",
				cli->operand[0]);
	identity.pid = ask.pid;
	identity.user[0] = '\0';
	if (identity.given.alive)
		identity_name_user(&identity);
	proto_text(identity.given.tenant);
	proto_text(identity.given.container);
	proto_text(identity.given.job);
	proto_text(identity.given.pod);
	proto_text(identity.given.pod_uid);
	proto_text(identity.given.cgroup);
	proto_text(identity.given.rule);
	cli_page_begin(&page, cli);
	if (ask.number) {
		event_read(&event, &identity.given.event);
		page_record(&page, "event", event_columns, &event);
		name_ring(&page, &event);
		advise(&page, &event);
	}
	if (identity.given.alive)
		page_record(&page, "process", identity_columns, &identity);
	/* The settings do not explain an event: only JSON has them there. */
	if (identity.given.tenant[0] && (!ask.number || cli->options.json.count))
		result = tenant_settings_show(cli, &page, identity.given.tenant);
	if (!result && identity.given.tenant[0] && !ask.number) {
		char section[2 * NAME_SIZE];

		snprintf(section, sizeof(section), "tenant %.*s", NAME_SIZE - 1,
			 identity.given.tenant);
		result = limits_show(cli, &page, section, true, NULL);
	}
	if (!result && identity.given.registered && !ask.number)
		result = failed_calls_show(cli, &page, ask.pid);
	if (result)
		return result;
	return page_end(&page);
}
