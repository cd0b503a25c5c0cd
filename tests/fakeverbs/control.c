/* SPDX-License-Identifier: MIT */
/*
 * Owns what fakeverbs.h steers and reports: rules per verb, call counts, live
 * counts and their peaks. It knows no object, only verbs and nouns.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

enum { RULES_PER_VERB = 16 };

struct rule {
	struct fake_verdict verdict;
	unsigned skip, times;
};

struct verb {
	atomic_ulong calls;
	struct rule rule[RULES_PER_VERB];
};

struct census {
	atomic_long live, peak;
};

static const char *const verb_names[] = {
#define VERB(name) #name,
#define VERB_WITH_TWIN(name) #name, #name "@IBVERBS_1.0",
#include "verbs.def"
};

static const char *const noun_names[] = {
	[FAKE_all] = "all",
#define NOUN(name) [FAKE_##name] = #name,
	FAKE_NOUNS(NOUN)
	FAKE_SIDE_NOUNS(NOUN)
#undef NOUN
};

atomic_uint fake_rules[FAKE_N_VERBS]; /* 0: nothing to judge, no mutex taken */
static struct verb verbs[FAKE_N_VERBS];
static struct census census[FAKE_N_NOUNS];
static pthread_mutex_t rules_mutex = PTHREAD_MUTEX_INITIALIZER;

void fake_die(const char *what, const void *object)
{
	fprintf(stderr, "fakeverbs: %s (%p)\n", what, object);
	abort();
}

static size_t find(const char *const names[], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	fprintf(stderr, "fakeverbs: '%s' is unknown\n", name);
	abort();
}

static size_t find_verb(const char *name)
{
	return find(verb_names, FAKE_N_VERBS, name);
}

static struct census *find_noun(const char *name)
{
	return &census[find(noun_names, FAKE_N_NOUNS, name)];
}

/* The newest rule whose turn it is decides; the others' turns pass as well. */
static struct fake_verdict judge(enum fake_verb verb)
{
	struct fake_verdict verdict = { FAKE_WORK, 0 };
	struct rule *rules = verbs[verb].rule;
	unsigned left = 0;

	pthread_mutex_lock(&rules_mutex);
	for (unsigned i = 0; i < fake_rules[verb]; i++) {
		struct rule rule = rules[i];

		if (rule.skip) {
			rule.skip--;
		} else {
			verdict = rule.verdict;
			rule.times--;
		}
		if (rule.times)
			rules[left++] = rule;
	}
	fake_rules[verb] = left;
	pthread_mutex_unlock(&rules_mutex);
	return verdict;
}

struct fake_verdict fake_enter(enum fake_verb verb)
{
	struct fake_verdict verdict;

	atomic_fetch_add_explicit(&verbs[verb].calls, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&fake_rules[verb], memory_order_relaxed))
		return (struct fake_verdict){ FAKE_WORK, 0 };
	verdict = judge(verb);
	if (verdict.behaviour == FAKE_RAISE) {
		raise(verdict.value);
		verdict.behaviour = FAKE_WORK;
	}
	return verdict;
}

void fake_set(const char *name, enum fake_behaviour behaviour, int value, unsigned skip,
	      unsigned times)
{
	size_t verb = find_verb(name);

	if (!times)
		return;
	pthread_mutex_lock(&rules_mutex);
	if (fake_rules[verb] == RULES_PER_VERB)
		fake_die("too many rules for one verb", name);
	verbs[verb].rule[fake_rules[verb]] = (struct rule){ { behaviour, value }, skip, times };
	fake_rules[verb]++;
	pthread_mutex_unlock(&rules_mutex);
}

unsigned long fake_calls(const char *name)
{
	return verbs[find_verb(name)].calls;
}

static void count(struct census *row, long delta)
{
	long live = atomic_fetch_add_explicit(&row->live, delta, memory_order_relaxed) + delta;
	long peak = atomic_load_explicit(&row->peak, memory_order_relaxed);

	while (live > peak && !atomic_compare_exchange_weak(&row->peak, &peak, live))
		;
}

void fake_live_add(enum fake_noun noun, long delta)
{
	count(&census[noun], delta);
	if (noun < FAKE_LAST_IN_ALL)
		count(&census[FAKE_all], delta);
}

long fake_live(const char *noun)
{
	return find_noun(noun)->live;
}

long fake_peak(const char *noun)
{
	return find_noun(noun)->peak;
}

void fake_reset(void)
{
	pthread_mutex_lock(&rules_mutex);
	for (size_t i = 0; i < FAKE_N_VERBS; i++) {
		fake_rules[i] = 0;
		verbs[i].calls = 0;
	}
	pthread_mutex_unlock(&rules_mutex);
	for (size_t i = 0; i < FAKE_N_NOUNS; i++)
		census[i].peak = census[i].live;
}
