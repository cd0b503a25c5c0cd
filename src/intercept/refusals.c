/* SPDX-License-Identifier: MIT */
/* What the library says of a refusal; see refusals.h. */
#include "intercept/refusals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "intercept/library.h"
#include "terms/refusal.h"

bool report_may_be_shown(struct report_pace *pace, uint64_t *ret_unshown)
{
	uint64_t last = __atomic_load_n(&pace->last_second, __ATOMIC_RELAXED);
	uint64_t second = clock_now_seconds() + 1; /* 0 is never */

	if (second == last ||
	    !__atomic_compare_exchange_n(&pace->last_second, &last, second, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&pace->unshown, 1, __ATOMIC_RELAXED);
		return false;
	}
	*ret_unshown = __atomic_exchange_n(&pace->unshown, 0, __ATOMIC_RELAXED);
	return true;
}

/* To the log, and to standard error unless the log is there or nobody wants to read it. */
static void refusal_write(struct library *library, const char *line)
{
	log_write(&library->log, LOG_INFO, "%s", line);
	if (!library->config.quiet &&
	    !(library->log.to_stderr && log_wants(&library->log, LOG_INFO)))
		log_stderr("rdma_intercept: %s", line);
}

void refusal_report_rate(struct library *library, const char *verb, enum rate_class class,
			 enum rate_owner owner, const struct rate *rate, bool tolerated)
{
	char line[320], value[RATE_TEXT];
	uint64_t unshown;

	if (!verb || !report_may_be_shown(&library->refusals_shown, &unshown))
		return;
	rate_print(rate, value);
	snprintf(line, sizeof(line), "%s %s: tenant=%s above the rate of %s: %s, rate of the %s%s%.0llu%s",
		 tolerated ? "over limit, allowed:" : "refused", verb,
		 ledger_tenant(&library->ledger), rate_rows[class].name, value,
		 rate_owner_names[owner], unshown ? " (and " : "", (unsigned long long)unshown,
		 unshown ? " more not shown)" : "");
	refusal_write(library, line);
}

/* As the settings are at this moment: they may have changed since the refusal. */
static void refusal_forbidden_text(const struct library *library, char ret_text[REFUSAL_TEXT])
{
	struct tenant_settings settings = settings_none;

	settings_read(ledger_settings(&library->ledger), &settings);
	snprintf(ret_text, REFUSAL_TEXT, "not among the devices of the tenant%s%.100s",
		 settings.devices[0] ? ": " : "", settings.devices);
}

/* The variable is named only if it has that limit: without a collector the one of the host may be
 * of another process. */
static const char *refusal_origin(const struct library *library, unsigned device,
				  const struct ledger_refusal *refusal)
{
	const struct config *config = &library->config;
	const char *name = ledger_device_name(&library->ledger, device);
	const uint64_t *limit = NULL;

	if (!refusal->own)
		return refusal->origin;
	if (refusal->scope == SCOPE_PROCESS)
		limit = config->limits.process;
	else if (refusal->scope == SCOPE_HOST)
		limit = config->limits.host;
	for (unsigned i = 0; refusal->scope == SCOPE_DEVICE && i < config->limits.devices; i++)
		if (!strcmp(config->limits.device[i].name, name))
			limit = config->limits.device[i].limit;
	if (!limit || limit[refusal->kind] != refusal->limit)
		return NULL;
	return config_limit_variable(config, refusal->scope, refusal->kind);
}

void refusal_report(struct library *library, const char *verb, unsigned device,
			   const struct ledger_refusal *refusal)
{
	uint64_t number = __atomic_add_fetch(&library->refusals, 1, __ATOMIC_RELAXED), unshown;
	unsigned on_port = kind_port(refusal->kind);
	char why[REFUSAL_TEXT], event[48] = "", port[16] = "", line[640];

	if (!report_may_be_shown(&library->refusals_shown, &unshown))
		return;
	if (refusal->forbidden)
		refusal_forbidden_text(library, why);
	else if (refusal->unanswered && refusal->obstacle)
		snprintf(why, sizeof(why),
			 "%s used %llu, wanted %llu more, and the collector cannot be asked: %s",
			 kind_rows[refusal->kind].name, (unsigned long long)refusal->used, (unsigned long long)refusal->wanted,
			 refusal->obstacle);
	else if (refusal->unanswered)
		snprintf(why, sizeof(why),
			 "%s used %llu, wanted %llu more, and the collector %s",
			 kind_rows[refusal->kind].name, (unsigned long long)refusal->used, (unsigned long long)refusal->wanted,
			 refusal->unregistered ? "does not know this process any more" :
			 refusal->no_lease ? "has no lease left for this process" :
					     "does not answer");
	else
		refusal_text(&(struct refusal_words){ .kind = kind_rows[refusal->kind].name,
						      .scope = (on_port ? scope_port_names :
								   scope_names)[refusal->scope],
						      .used = refusal->used,
						      .limit = refusal->limit,
						      .wanted = refusal->wanted,
						      .configured = refusal->configured,
						      .share = scope_has_shares(refusal->scope),
						      .origin = refusal_origin(library, device, refusal),
						      /* Without a collector all are. */
						      .own = refusal->own && ledger_transport(&library->ledger) !=
										TRANSPORT_EMBEDDED },
			     why);
	if (!refusal->unanswered) /* of which nobody could tell more */
		snprintf(event, sizeof(event), ", event %d-%llu", (int)getpid(),
			 (unsigned long long)(refusal->event ? refusal->event : number));
	if (on_port)
		snprintf(port, sizeof(port), "/%u", on_port);
	snprintf(line, sizeof(line), "%s %s: tenant=%s device=%s%s %s%s%s%.0llu%s",
		 refusal->verdict != VERDICT_REFUSED ? "over limit, allowed:" : "refused", verb,
		 ledger_tenant(&library->ledger), ledger_device_name(&library->ledger, device),
		 port, why, event, unshown ? " (and " : "",
		 (unsigned long long)unshown, unshown ? " more not shown)" : "");
	refusal_write(library, line);
}
