/* SPDX-License-Identifier: MIT */
/* The life of a host in the fleet; see host.h. */
#include "fleet/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/directory.h"
#include "fleet/divider.h"
#include "output/memory.h"
#include "policy/fleet.h"

enum {
	BACKOFF_LEAST_MS = 100,
	BACKOFF_MOST_MS = 10000,
	LOOK_MS = 500,
	READ_S = 60, /* all keys are read again, whatever the stream said */
	STEP_MS = 200,
};

#define MS_NS 1000000ull

/* Somewhere between half of a time and all of it: hosts that lost the same server come back one
 * by one. */
static uint64_t with_jitter(uint64_t time)
{
	return time / 2 + (uint64_t)random() % (time / 2 + 1);
}

/* One line for each new problem. */
static void host_say(struct host *host, const char *problem)
{
	if (!strcmp(host->said, problem))
		return;
	snprintf(host->said, sizeof(host->said), "%s", problem);
	log_write(host->log, LOG_WARN, "%s", problem);
}

static void host_back_off(struct host *host, const char *problem)
{
	uint64_t wait_ms = BACKOFF_LEAST_MS << (host->failures < 7 ? host->failures : 7);

	host_say(host, problem);
	host->failures++;
	host->try_at_ns = clock_now_ns() +
			  with_jitter(wait_ms < BACKOFF_MOST_MS ? wait_ms : BACKOFF_MOST_MS) * MS_NS;
}

/* ---- what comes from etcd */

static void policy_take(struct host *host, const struct etcd_pair *pair)
{
	char problem[PROBLEM_SIZE] = "";
	int result;

	if (pair->modified == host->policy_revision && !host->policy_is_unwritten)
		return;
	host->policy_revision = pair->modified;
	result = fleet_policy_write(host->settings->directory, pair->value, pair->length, problem);
	if (result == 0) {
		host->policy_in_force = pair->modified;
		log_write(host->log, LOG_INFO, "policy of revision %llu: written",
			  (unsigned long long)pair->modified);
	} else {
		log_write(host->log, LOG_ERROR,
			  "policy of revision %llu: %s; the last good one stays",
			  (unsigned long long)pair->modified, problem);
	}
	host->policy_is_unwritten = result < 0 && result != -EINVAL;
	memcpy(host->policy_problem, problem, sizeof(problem));
}

/* Hosts look at the fleet's divider only when it changes, and then not all at once. */
static void divider_take(struct host *host, const char *name)
{
	if (host->has_divider && !name)
		host->divide_at_ns = clock_now_ns() + with_jitter(divider_rest_ns(0));
	host->has_divider = name;
	host->is_divider = name && !strcmp(name, host->settings->host);
}

static void host_pair_take(void *closure, const struct etcd_pair *pair, bool deleted)
{
	struct host *host = closure;
	const char *name, *text = deleted ? NULL : pair->value;
	char under[ETCD_KEY];

	host->is_told |= !deleted && fleet_key_rest(host->settings, pair->key, "all/");
	snprintf(under, sizeof(under), "share/%.255s/", host->settings->host);
	if ((name = fleet_key_rest(host->settings, pair->key, under)))
		host_record_take(host, name, text, pair->modified);
	else if ((name = fleet_key_rest(host->settings, pair->key, "all/quota/")))
		host_quota_take(host, name, text);
	else if ((name = fleet_key_rest(host->settings, pair->key, "divider")) && !*name)
		divider_take(host, text);
	else if ((name = fleet_key_rest(host->settings, pair->key, "all/policy")) && !*name) {
		if (!deleted)
			policy_take(host, pair);
		else
			log_write(host->log, LOG_WARN,
				  "the fleet has no policy any more: the last one stays");
	}
}

/* Reads everything that concerns this host, and follows it from there. */
static int host_read(struct host *host, char problem[PROBLEM_SIZE])
{
	enum { PARTS = 3 };
	char all[ETCD_KEY], own[ETCD_KEY], divider[ETCD_KEY];
	const char *const prefixes[PARTS] = { all, own, divider };
	struct etcd_pairs pairs[PARTS] = { { .pair = NULL } };
	int result = 0;

	fleet_key_print(host->settings, all, "all/");
	fleet_key_print(host->settings, own, "share/%s/", host->settings->host);
	fleet_key_print(host->settings, divider, "divider");
	for (unsigned i = 0; i < PARTS && result == 0; i++)
		result = etcd_read_at(host->etcd, prefixes[i], false, pairs[0].revision, &pairs[i],
				      problem);
	if (result == 0) {
		host->is_told = pairs[0].count > 0;
		if (host->is_told)
			host_shares_doubt(host);
		else
			host_say(host, "etcd has nothing under the prefix: what was last told stays");
		if (!pairs[2].count)
			divider_take(host, NULL);
		for (unsigned i = 0; i < PARTS; i++)
			for (size_t j = 0; j < pairs[i].count; j++)
				host_pair_take(host, &pairs[i].pair[j], false);
		if (host->is_told)
			host_shares_sweep(host);
		etcd_watch(host->etcd, prefixes, PARTS, pairs[0].revision + 1);
		host->read_at_ns = clock_now_ns() + with_jitter(READ_S * 1000) * MS_NS;
	}
	for (unsigned i = 0; i < PARTS; i++)
		etcd_pairs_free(&pairs[i]);
	return result;
}

/* ---- the lease */

/* The share ends so long after the lease was asked for: so much may this clock be slower than etcd's,
 * and the collector be late. */
static uint64_t lease_until(uint64_t asked_ns, uint64_t seconds)
{
	uint64_t lasts_ns = (seconds < LEASE_MOST_S ? seconds : LEASE_MOST_S) * CLOCK_SECOND_NS;

	return asked_ns + lasts_ns - lasts_ns / LEASE_MARGIN_PART - CLOCK_SECOND_NS / 2;
}

static void lease_is_kept(struct host *host, uint64_t asked_ns, uint64_t seconds)
{
	host->until_ns = lease_until(asked_ns, seconds);
	host->lease_s = seconds;
	host->keep_at_ns = clock_now_ns() +
			   with_jitter((seconds < LEASE_MOST_S ? seconds : LEASE_MOST_S) * 1000 / 3) *
				   MS_NS;
}

static void lease_is_lost(struct host *host)
{
	host->lease = 0;
	etcd_watch_end(host->etcd);
}

/*
 * The sign of life. Two hosts of one name would both use the one share that the name has, so a name
 * is taken over only from an earlier session of the same directory in the same boot. Any other has to
 * wait until the lease has ended.
 */
static int host_sign(struct host *host, uint64_t lease, char problem[PROBLEM_SIZE])
{
	char key[ETCD_KEY], id[FLEET_IDENTITY];
	struct etcd_change change;
	struct etcd_pairs before;
	uint64_t modified;
	bool is_other;
	int result = fleet_identity_print(host->settings->directory, id, problem);

	if (result < 0)
		return result;
	fleet_key_print(host->settings, key, "alive/%s", host->settings->host);
	result = etcd_read(host->etcd, key, true, &before, problem);
	if (result < 0)
		return result;
	modified = before.count ? before.pair[0].modified : 0;
	is_other = before.count && strcmp(before.pair[0].value, id);
	etcd_pairs_free(&before);
	if (!is_other) {
		etcd_change_begin(&change);
		etcd_change_if(&change, key, modified);
		etcd_change_put(&change, key, id, lease);
		result = etcd_change_commit(host->etcd, &change, NULL, problem);
		is_other = result == 1;
	}
	return is_other ? problem_set(-EEXIST, problem,
				      "host %s: another rdma_fleet has this name in the fleet, or a lease "
				      "from before the boot has not ended: expected a name of its own "
				      "for each host",
				      host->settings->host) :
			  result;
}

/* A new session: the lease, the sign of life under it, and only then what this host may use. */
static int host_join(struct host *host, char problem[PROBLEM_SIZE])
{
	uint64_t asked_ns = clock_boot_ns(), lease, seconds;
	int result = etcd_lease_grant(host->etcd, host->settings->lease_s, &lease, &seconds, problem);

	if (result < 0)
		return result;
	result = host_sign(host, lease, problem);
	if (result < 0) {
		etcd_lease_revoke(host->etcd, lease);
		return result;
	}
	/* Reading may take longer than the lease. */
	host->lease = lease;
	host->is_joining = true;
	lease_is_kept(host, asked_ns, seconds);
	result = host_read(host, problem);
	host->is_joining = false;
	if (result == 0 && !host->lease)
		result = problem_set(-ESTALE, problem, "the lease has ended");
	if (result < 0) {
		host->lease = 0;
		return result;
	}
	host->failures = 0;
	host->has_changed = true;
	json_decref(host->reported);
	host->reported = NULL;
	log_write(host->log, LOG_INFO, "in the fleet as %s, with a lease of %llu seconds",
		  host->settings->host, (unsigned long long)seconds);
	host->said[0] = '\0';
	return host_shares_write(host, problem);
}

static void host_keep(struct host *host)
{
	char problem[PROBLEM_SIZE];
	uint64_t asked_ns = clock_boot_ns(), seconds;
	int result = etcd_lease_keep(host->etcd, host->lease, &seconds, problem);

	if (result == 0) {
		lease_is_kept(host, asked_ns, seconds);
		/* What this host may use is not known before it has read it. */
		if (!host->is_joining)
			result = host_shares_write(host, problem);
	} else {
		host->keep_at_ns = clock_now_ns() + with_jitter(1000) * MS_NS;
	}
	if (result < 0)
		host_say(host, problem);
	/* Its shares have ended already; a lease that etcd may still have is of no use. */
	if (result == -ESTALE || clock_boot_ns() >= host->until_ns) {
		lease_is_lost(host);
		host_back_off(host, problem);
	}
}

void host_keep_if_due(void *closure)
{
	struct host *host = closure;

	if (host->lease && clock_now_ns() >= host->keep_at_ns)
		host_keep(host);
}

/* ---- one step */

static void host_follow(struct host *host)
{
	char problem[PROBLEM_SIZE];
	uint64_t now_ns = clock_now_ns();
	int result = etcd_watch_take(host->etcd, host_pair_take, host, problem);

	/* What could not be written, as on a full disk, is read and tried again. */
	if (host->policy_is_unwritten && host->read_at_ns > now_ns + 2 * CLOCK_SECOND_NS)
		host->read_at_ns = now_ns + with_jitter(2000) * MS_NS;
	if ((result < 0 || now_ns >= host->read_at_ns) && now_ns >= host->try_at_ns) {
		if (result < 0)
			log_write(host->log, LOG_INFO, "%s; everything is read again", problem);
		result = host_read(host, problem);
		if (result < 0)
			host_back_off(host, problem);
		else
			host->failures = 0;
	}
	if (host->has_changed) {
		if (host_shares_write(host, problem) < 0)
			host_say(host, problem);
		host->look_at_ns = clock_now_ns() + (HOST_READ_MS + 10) * MS_NS;
	}
}

static void host_divide(struct host *host)
{
	uint64_t began_ns = clock_now_ns(), now_ns;
	char problem[PROBLEM_SIZE];

	if (divider_round(host->etcd, host->settings, host->log, host->lease, problem) < 0)
		host_say(host, problem);
	now_ns = clock_now_ns();
	host->divide_at_ns = now_ns + with_jitter(divider_rest_ns(now_ns - began_ns));
}

static void host_tell(struct host *host)
{
	char problem[PROBLEM_SIZE];
	uint64_t now_ns = clock_now_ns();

	if (now_ns >= host->look_at_ns) {
		host_look(host);
		host->look_at_ns = now_ns + LOOK_MS * MS_NS;
		if (host_report(host, problem) < 0)
			host_say(host, problem);
	}
	if (now_ns >= host->divide_at_ns && (host->is_divider || !host->has_divider))
		host_divide(host);
}

int host_step(struct host *host)
{
	char problem[PROBLEM_SIZE];
	uint64_t now_ns = clock_now_ns();

	if (host->lease) {
		host_keep_if_due(host);
	} else if (now_ns >= host->try_at_ns) {
		if (host_join(host, problem) < 0)
			host_back_off(host, problem);
	}
	if (host->lease)
		host_follow(host);
	if (host->lease)
		host_tell(host);
	return STEP_MS;
}
