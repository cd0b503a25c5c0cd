/* SPDX-License-Identifier: MIT */
/* Rates of control verbs; see rates.h. */
#include "terms/rates.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "terms/size.h"

const struct rate_row rate_rows[RATE_CLASSES] = {
#define RATE_CLASS(name, frees, text) { #name, text, frees },
#include "terms/rates.def"
#undef RATE_CLASS
};

const char *const rate_owner_names[RATE_OWNERS + 1] = { "tenant", "process", "program" };
const char *const rate_action_names[RATE_ACTIONS] = { "throttle", "deny" };

enum rate_class rate_class_find(const char *name, size_t length)
{
	unsigned class = 0;

	while (class < RATE_CLASSES && (strlen(rate_rows[class].name) != length ||
					memcmp(rate_rows[class].name, name, length)))
		class++;
	return (enum rate_class)class;
}

/* A number from 1 to RATE_MOST; what follows it, or NULL. */
static const char *rate_number_take(const char *text, uint32_t *ret_number)
{
	size_t length = strspn(text, "0123456789");
	uint64_t number;

	if (!length || size_parse(text, length, 1, false, &number) < 0 || number < 1 ||
	    number > RATE_MOST)
		return NULL;
	*ret_number = (uint32_t)number;
	return text + length;
}

int rate_parse(const char *text, struct rate *ret_rate)
{
	struct rate rate = { 0 };

	if (strcmp(text, "unlimited")) {
		text = rate_number_take(text, &rate.per_second);
		if (!text || strncmp(text, "/s", 2))
			return -EINVAL;
		rate.burst = rate.per_second / 10 ? rate.per_second / 10 : 1;
		text += 2;
		if (isblank((unsigned char)*text)) {
			text += strspn(text, " \t");
			if (strncmp(text, "burst", 5) || !isblank((unsigned char)text[5]))
				return -EINVAL;
			text += 5;
			text = rate_number_take(text + strspn(text, " \t"), &rate.burst);
		}
		if (!text || *text)
			return -EINVAL;
	}
	*ret_rate = rate;
	return 0;
}

void rate_print(const struct rate *rate, char ret_text[RATE_TEXT])
{
	if (rate->per_second)
		snprintf(ret_text, RATE_TEXT, "%u/s burst %u", rate->per_second, rate->burst);
	else
		snprintf(ret_text, RATE_TEXT, "unlimited");
}

struct rate rate_lower(struct rate a, struct rate b)
{
	if (!a.per_second || !b.per_second)
		return a.per_second ? a : b;
	return (struct rate){
		.per_second = a.per_second < b.per_second ? a.per_second : b.per_second,
		.burst = a.burst < b.burst ? a.burst : b.burst,
	};
}

static const struct {
	const char *name;
	uint64_t ns;
} delay_units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 } };
enum { DELAY_UNITS = sizeof(delay_units) / sizeof(delay_units[0]) };

int rate_delay_parse(const char *text, uint64_t *ret_ns)
{
	size_t length = strspn(text, "0123456789");
	uint64_t number;

	if (!length || size_parse(text, length, 1, false, &number) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < DELAY_UNITS; i++)
		if (!strcmp(text + length, delay_units[i].name)) {
			if (number > RATE_DELAY_MOST_MS * 1000000ull / delay_units[i].ns)
				return -EINVAL;
			*ret_ns = number * delay_units[i].ns;
			return 0;
		}
	return -EINVAL;
}

void rate_delay_print(uint64_t ns, char ret_text[RATE_TEXT])
{
	unsigned i = 0;

	while (i < DELAY_UNITS - 1 && ns % delay_units[i].ns)
		i++;
	snprintf(ret_text, RATE_TEXT, "%" PRIu64 "%s", ns / delay_units[i].ns, delay_units[i].name);
}

/* ---- leases */

enum {
	SET_WORDS = sizeof(struct rate_set) / sizeof(uint64_t),
	SET_TRIES = 64, /* a collector reads what a hostile process may write */
};

/* Word by word, so that a reader at the same time meets whole words. */
static void rate_set_copy(struct rate_set *to, const struct rate_set *from)
{
	const uint64_t *source = (const uint64_t *)from;
	uint64_t *target = (uint64_t *)to;

	for (unsigned i = 0; i < SET_WORDS; i++)
		__atomic_store_n(&target[i], __atomic_load_n(&source[i], __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
}

uint64_t rate_leases_read(const struct rate_leases *leases, struct rate_set *ret_set)
{
	uint64_t changes = 0;

	for (unsigned i = 0; i < SET_TRIES; i++) {
		changes = rate_leases_changes(leases);
		rate_set_copy(ret_set, &leases->set[changes % 2]);
		if (rate_leases_changes(leases) == changes)
			break;
	}
	return changes;
}

void rate_leases_write(struct rate_leases *leases, const struct rate_set *set)
{
	uint64_t changes = __atomic_load_n(&leases->changes, __ATOMIC_RELAXED);

	rate_set_copy(&leases->set[(changes + 1) % 2], set);
	__atomic_store_n(&leases->changes, changes + 1, __ATOMIC_SEQ_CST);
}

uint64_t rate_part_wait_ns(const struct bucket_flow *flow, uint64_t now, const uint64_t *taken)
{
	uint64_t wait_ns = bucket_wait_ns(flow, now, __atomic_load_n(taken, __ATOMIC_RELAXED),
					  RATE_PART);

	return wait_ns ? wait_ns : 1;
}

/*
 * The collector may have changed the flow meanwhile, and given what was in this bucket to another
 * process: it looks at `taken` after its change, we look at its changes after ours. A part at a
 * position that is void now was not ours to take.
 */
uint64_t rate_leases_take(const struct rate_leases *leases, struct rate_uses *uses,
			  enum rate_owner owner, enum rate_class class, struct rate_set *ret_set,
			  uint64_t **ret_taken)
{
	uint64_t *taken = &uses->taken[owner][class], changes, position, now;
	const struct bucket_flow *flow = &ret_set->flow[owner][class];

	do {
		*ret_taken = NULL; /* what was void is not given back */
		changes = rate_leases_read(leases, ret_set);
		now = clock_now_ns();
		if (!(ret_set->in_force[owner] >> class & 1))
			return 0;
		if (!bucket_take(flow, now, taken, RATE_PART, &position)) {
			if (owner == RATE_OF_TENANT)
				__atomic_fetch_add(&uses->missed[class], 1, __ATOMIC_RELAXED);
			return rate_part_wait_ns(flow, now, taken);
		}
		*ret_taken = taken;
		if (rate_leases_changes(leases) == changes)
			return 0;
		rate_leases_read(leases, ret_set);
	} while (position < flow->floor);
	return 0;
}
