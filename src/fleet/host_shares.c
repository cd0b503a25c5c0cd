/* SPDX-License-Identifier: MIT */
/* Shares of quotas on this host, and the files that say them to the collector; see host.h. */
#include "fleet/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/directory.h"
#include "output/memory.h"
#include "policy/fleet.h"

static struct host_share *share_find(struct host *host, const char *name)
{
	char other[QUOTA_NAME];

	for (unsigned i = 0; i < host->shares; i++) {
		quota_name_print(&host->share[i].quota, other);
		if (!strcmp(name, other))
			return &host->share[i];
	}
	return NULL;
}

void host_quota_take(struct host *host, const char *name, const char *text)
{
	struct host_share *share = share_find(host, name);
	struct fleet_quota quota;

	host->has_changed = true;
	if (!text) {
		if (share)
			*share = host->share[--host->shares];
		return;
	}
	/* The numbers are for the divider: a quota that it cannot read leaves the share as it is. */
	if (!fleet_quota_name_read(name, &quota)) {
		log_write(host->log, LOG_ERROR,
			  "quota %.200s: not a name of a tenant and a kind: it is ignored", name);
		return;
	}
	if (!share && host->shares == HOST_SHARES) {
		log_write(host->log, LOG_ERROR, "quota %.200s: too many quotas: expected at most %d",
			  name, HOST_SHARES);
		return;
	}
	if (!share) {
		share = &host->share[host->shares++];
		*share = (struct host_share){ .refused = UINT64_MAX };
	}
	share->is_named = true;
	share->quota = quota;
}

void host_record_take(struct host *host, const char *name, const char *text, uint64_t revision)
{
	struct host_share *share = share_find(host, name);
	struct fleet_record record = { .share = 0 };

	if (!share || revision < share->revision)
		return;
	share->is_recorded = true;
	if (text && !fleet_record_read(text, &record)) {
		log_write(host->log, LOG_ERROR, "share of %.200s: invalid record: it counts as none", name);
		text = NULL;
	}
	share->record = record;
	share->revision = text ? revision : 0;
	host->has_changed = true;
}

void host_shares_doubt(struct host *host)
{
	for (unsigned i = 0; i < host->shares; i++)
		host->share[i].is_named = host->share[i].is_recorded = false;
	host->has_changed = true;
}

void host_shares_sweep(struct host *host)
{
	for (unsigned i = 0; i < host->shares;) {
		struct host_share *share = &host->share[i];

		if (!share->is_recorded) {
			share->record = (struct fleet_record){ .share = 0 };
			share->revision = share->confirmed = 0;
		}
		if (share->is_named)
			i++;
		else
			*share = host->share[--host->shares];
	}
}

static void limits_print(FILE *file, const struct host *host, bool leased)
{
	fprintf(file, "# Written by " FLEET_NAME " from quotas of the fleet; do not edit.\n");
	for (unsigned i = 0; i < host->shares; i++) {
		const struct host_share *share = &host->share[i];

		fprintf(file, "[tenant %s]\n%s = %" PRIu64 "\n", share->quota.tenant,
			kind_rows[share->quota.kind].name,
			leased ? share->record.target : share->record.floor);
	}
}

static int limits_write(struct host *host, const char *name, bool leased, char problem[PROBLEM_SIZE])
{
	char *text = NULL;
	size_t size;
	FILE *file = memory_need(open_memstream(&text, &size));
	int result;

	limits_print(file, host, leased);
	fclose(file);
	result = fleet_file_write(host->settings->directory, name, memory_need(text), problem);
	free(text);
	return result;
}

/* The lease last: leased.conf of an earlier one must not come to life again. */
int host_shares_write(struct host *host, char problem[PROBLEM_SIZE])
{
	int result = 0;

	if (host->has_changed && host->is_told) {
		result = limits_write(host, FLEET_KEPT, false, problem);
		if (result == 0)
			result = limits_write(host, FLEET_LEASED, true, problem);
	}
	if (result == 0)
		result = fleet_lease_write(host->settings->directory,
					   host->lease && host->is_told ? host->until_ns : 0,
					   problem);
	if (result == 0 && host->has_changed) {
		host->has_changed = false;
		host->written_ns = clock_now_ns();
	}
	return result;
}
