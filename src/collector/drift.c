/* SPDX-License-Identifier: MIT */
/* Comparing kernel and books; see drift.h. */
#include "collector/drift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/grants.h"

enum {
	ENOUGH = 2,	     /* samples with a difference that no timing explains */
	ENOUGH_PATIENT = 10, /* with one that may be an operation under way */
};

/* And which do for this member. */
static unsigned drift_meaning_of_member(const struct collector *collector, unsigned member,
					const struct kernel_process *process)
{
	const struct books *books = &collector->books;
	const struct book_member *row = &books->file->member[member];
	bool asks = row->flags & MEMBER_ASKS;
	unsigned meaning = DRIFT_MORE;

	/* Of an orphan the books know how it ended, of the unattached how much was granted. */
	if (books->member[member].orphan || (!asks && !books->member[member].usage))
		return 0;
	/* What it made without an answer is not on the books before its next request. */
	if (asks && grants_tolerate_unanswered(books, row->tenant))
		meaning = 0;
	/* What DevX makes is of a kind in the books, and the driver's own in the kernel. */
	if (kernel_is_complete(&collector->kernel) && !(process && process->driver))
		meaning |= DRIFT_LESS;
	return meaning;
}

/* What the member says at this moment. */
static void member_used_now(const struct books *books, unsigned member,
			    uint64_t ret_used[KIND_COUNT])
{
	memset(ret_used, 0, KIND_COUNT * sizeof(*ret_used));
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			ret_used[kind] += grants_used(books, lease, kind);
}

static int64_t nearer_to_zero(int64_t a, int64_t b)
{
	return llabs(a) < llabs(b) ? a : b;
}

/*
 * A difference counts when it was there at two samples in a row, and then the smaller one.
 * Less in the kernel may also be an operation under way, for many seconds where much memory
 * is pinned; and what is only asked for now and then lags behind. There it must have lasted
 * longer, while nothing moved.
 */
static void drift_note(struct drift_state *state, unsigned kind, int64_t difference, bool patient,
		       bool still)
{
	int64_t last = state->last[kind];
	bool same = (difference > 0 && last > 0) || (difference < 0 && last < 0);
	unsigned enough = patient ? ENOUGH_PATIENT : ENOUGH;

	if (!same)
		state->samples[kind] = difference != 0;
	else if (state->samples[kind] < enough)
		state->samples[kind] = patient && !still ? 1 : state->samples[kind] + 1;
	state->last[kind] = difference;
	state->drift[kind] =
		same && state->samples[kind] >= enough ? nearer_to_zero(difference, last) : 0;
}

static void drift_report(struct collector *collector, unsigned member,
			 const struct drift_state *state)
{
	const struct book_member *row = &collector->books.file->member[member];
	struct proto_event event = { .type = EVENT_DRIFT, .pid = row->pid };
	const char *between = "the kernel's counts differ from the books: ";

	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 collector->books.file->tenant[row->tenant].name);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		size_t length = strlen(event.text);

		if (!state->drift[kind])
			continue;
		snprintf(event.text + length, sizeof(event.text) - length, "%s%s %+lld", between,
			 kind_rows[kind].name, (long long)state->drift[kind]);
		between = ", ";
	}
	collector_event(collector, &event);
}

static bool drift_is_possible(const struct collector *collector, unsigned member,
			      const struct kernel_process *process)
{
	const uint64_t *used = collector->books.member[member].used;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (used[kind] != (process ? process->kernel[kind] : 0))
			return true;
	return false;
}

void drift_close(struct drift *drift)
{
	free(drift->member);
	*drift = (struct drift){ .member = NULL };
}

/* What was compared with another monitor, or with none, says nothing any more. */
static struct drift_state *drift_state_of(struct collector *collector, unsigned member)
{
	struct drift *drift = &collector->drift;

	if (drift->generation != collector->kernel.generation)
		drift_close(drift);
	drift->generation = collector->kernel.generation;
	if (!drift->member)
		drift->member = calloc(BOOKS_MEMBERS, sizeof(*drift->member));
	return drift->member ? &drift->member[member] : NULL;
}

void drift_compare(struct collector *collector, unsigned member,
		   const struct kernel_process *process)
{
	const struct kernel_usage *usage = &collector->kernel;
	struct drift_state *state = drift_state_of(collector, member);
	unsigned of_member = drift_meaning_of_member(collector, member, process);
	uint64_t observed = kernel_observed(usage);
	struct kernel_process again;
	uint64_t used[KIND_COUNT];

	if (!state)
		return;
	if (state->generation != collector->books.file->member[member].generation)
		*state = (struct drift_state){
			.generation = collector->books.file->member[member].generation
		};
	if (drift_is_possible(collector, member, process)) {
		/* In this order: the books are charged before the kernel has an object and refunded
		 * after it is gone. So what is under way makes them the larger; only a charge and
		 * its object that both fall between the two looks would not. */
		member_used_now(&collector->books, member, used);
		kernel_look_again(usage, process, &again);
	} else {
		memcpy(used, collector->books.member[member].used, sizeof(used));
		again = process ? *process : (struct kernel_process){ .pid = 0 };
	}
	state->drifting = false;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		int64_t difference = (int64_t)(again.kernel[kind] - used[kind]);
		unsigned meaning = observed >> kind & 1 ? of_member & (unsigned)kind_rows[kind].drift : 0;
		bool still = used[kind] == state->used[kind] &&
			     again.moves[kind] == state->moves[kind];

		/* A region in device memory has its bytes there. */
		if (kind == KIND_mr_bytes && (again.kernel[KIND_dm_bytes] || used[KIND_dm_bytes]))
			meaning &= ~(unsigned)DRIFT_MORE;
		if (!(meaning & (difference > 0 ? DRIFT_MORE : DRIFT_LESS)))
			difference = 0;
		drift_note(state, kind, difference, difference < 0 || !kernel_is_exact(usage),
			   still);
		state->used[kind] = used[kind];
		state->moves[kind] = again.moves[kind];
		state->drifting |= state->drift[kind] != 0;
	}
	if (state->drifting && !state->told)
		drift_report(collector, member, state);
	state->told |= state->drifting;
}

const int64_t *drift_of(const struct collector *collector, unsigned member)
{
	const struct drift_state *state = collector->drift.member;

	if (!state || collector->drift.generation != collector->kernel.generation ||
	    !state[member].drifting ||
	    state[member].generation != collector->books.file->member[member].generation)
		return NULL;
	return state[member].drift;
}
