/* SPDX-License-Identifier: MIT */
/* What the library says of a refusal; see refusals.h. */
#include "intercept/refusals.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "intercept/library.h"
#include "terms/refusal.h"

/* Whether a refusal may be shown: at most one a second per process. The next one
 * that is shown tells how many were not. */
static bool refusal_may_be_shown(struct library *library, uint64_t *ret_unshown)
{
	uint64_t last = __atomic_load_n(&library->last_refusal_second, __ATOMIC_RELAXED);
	uint64_t second = clock_now_seconds() + 1; /* 0 is never */

	if (second == last ||
	    !__atomic_compare_exchange_n(&library->last_refusal_second, &last, second, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&library->refusals_unshown, 1, __ATOMIC_RELAXED);
		return false;
	}
	*ret_unshown = __atomic_exchange_n(&library->refusals_unshown, 0, __ATOMIC_RELAXED);
	return true;
}

void refusal_report(struct library *library, const char *verb, unsigned device,
			   const struct ledger_refusal *refusal)
{
	uint64_t number = __atomic_add_fetch(&library->refusals, 1, __ATOMIC_RELAXED), unshown;
	char why[REFUSAL_TEXT], event[48] = "", line[480];

	if (!refusal_may_be_shown(library, &unshown))
		return;
	if (refusal->unanswered && refusal->obstacle)
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
						      .scope = scope_names[refusal->scope],
						      .used = refusal->used,
						      .limit = refusal->limit,
						      .wanted = refusal->wanted,
						      /* Without a collector all are. */
						      .own = refusal->own && ledger_transport(&library->ledger) !=
										TRANSPORT_EMBEDDED },
			     why);
	if (!refusal->unanswered) /* of which nobody could tell more */
		snprintf(event, sizeof(event), ", event %d-%llu", (int)getpid(),
			 (unsigned long long)(refusal->event ? refusal->event : number));
	snprintf(line, sizeof(line), "%s %s: tenant=%s device=%s %s%s%s%.0llu%s",
		 refusal->verdict != VERDICT_REFUSED ? "over limit, allowed:" : "refused", verb,
		 ledger_tenant(&library->ledger), ledger_device_name(&library->ledger, device),
		 why, event, unshown ? " (and " : "",
		 (unsigned long long)unshown, unshown ? " more not shown)" : "");
	log_write(&library->log, LOG_INFO, "%s", line);
	if (!library->config.quiet &&
	    !(library->log.to_stderr && log_wants(&library->log, LOG_INFO)))
		log_stderr("rdma_intercept: %s", line);
}
