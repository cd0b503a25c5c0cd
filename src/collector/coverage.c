/* SPDX-License-Identifier: MIT */
/* Members and uncovered processes; see coverage.h. */
#include "collector/coverage.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "collector/collector.h"
#include "collector/control.h"
#include "collector/library_loaded.h"
#include "collector/subject.h"
#include "ledger/identity.h"

/* New processes are looked up for so long at once: others wait for us. */
#define JUDGING_NS 50000000u
/* Who has ended and still has objects for so long has left them to somebody. */
#define ABSENT_NS 2000000000u

/* Once the library was looked for. */
static void coverage_report(struct collector *collector, struct kernel_process *process)
{
	struct proto_event event = { .type = EVENT_UNCOVERED, .pid = process->pid };

	if (process->coverage.told || process->coverage.library == -EINPROGRESS)
		return;
	process->coverage.told = true;
	if (!process->coverage.uncovered)
		return;
	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 collector->books.file->tenant[process->coverage.tenant].name);
	snprintf(event.text, sizeof(event.text), "%s: %s", process->command,
		 process->coverage.library > 0 ? "the library is loaded, but not registered here" :
		 process->coverage.library == 0 ?
						 "the library is not loaded" :
						 "unknown whether the library is loaded");
	collector_event(collector, &event);
}

/*
 * Whose an unregistered process is, and why it is not registered. Of one that has ended the
 * kernel may just be clearing up what it had; only time tells that it left it to somebody.
 */
static void coverage_judge(struct collector *collector, struct kernel_process *process)
{
	static uint64_t view;
	struct identity who = { .pid = process->pid, .start = process->start };
	const char *reason;
	struct subject subject;
	bool is_new = !process->coverage.judged;
	uint64_t now = clock_now_ns();
	int tenant = -1, result;

	if (!view)
		view = identity_self().view;
	who.view = view;
	if (!identity_is_dead(&who, view) && subject_of_process(&subject, collector->pods, process->pid) == 0 &&
	    identity_start(process->pid) == process->start) {
		tenant = control_tenant_of(collector, &subject, &reason);
		if (is_new) {
			result = library_look(collector, process->pid, process->start);
			process->coverage.library = (int16_t)(result < 0 ? result : -EINPROGRESS);
		}
	} else if (is_new) {
		if (!process->coverage.absent_ns)
			process->coverage.absent_ns = now;
		if (now - process->coverage.absent_ns < ABSENT_NS)
			return;
		process->coverage.library = -ESRCH;
	}
	process->coverage.judged = collector->policy_generation;
	/* Also of one whose own tenant cannot be made. */
	if (tenant < 0)
		tenant = books_tenant_find(&collector->books, COLLECTOR_TENANT);
	process->coverage.tenant = tenant < 0 ? BOOKS_NOBODY : (uint32_t)tenant;
	process->coverage.uncovered = tenant >= 0;
	coverage_report(collector, process);
}

void coverage_library_seen(struct collector *collector, pid_t pid, uint64_t start, int result)
{
	struct kernel_process *process = kernel_process_of(&collector->kernel, pid, start);

	if (!process)
		return;
	process->coverage.library = (int16_t)result;
	coverage_report(collector, process);
}

/* Under another policy the number of its tenant may be nobody's, or another's. */
static void coverage_reset(const struct collector *collector, struct kernel_process *process)
{
	int tenant = books_tenant_find(&collector->books, COLLECTOR_TENANT);

	process->coverage.uncovered = tenant >= 0;
	process->coverage.tenant = tenant < 0 ? BOOKS_NOBODY : (uint32_t)tenant;
}

static void coverage_join(struct collector *collector, struct kernel_process *process)
{
	int member = members_of_identity(&collector->members, process->pid, process->start);

	process->coverage.member = member < 0 ? BOOKS_NOBODY : (uint32_t)member;
}

void coverage_find(struct collector *collector)
{
	const struct kernel_usage *usage = &collector->kernel;
	uint64_t until = clock_now_ns() + JUDGING_NS;

	for (unsigned i = 0; i < kernel_processes(usage); i++) {
		struct kernel_process *process = kernel_process_at(usage, i);
		struct kernel_coverage *coverage = &process->coverage;

		coverage_join(collector, process);
		if (coverage->member != BOOKS_NOBODY || !process->holds)
			coverage->uncovered = false;
		else if (coverage->judged == collector->policy_generation)
			coverage->uncovered = coverage->tenant != BOOKS_NOBODY;
		else if (clock_now_ns() < until)
			coverage_judge(collector, process);
		else if (coverage->uncovered)
			coverage_reset(collector, process);
	}
}

const struct kernel_process *coverage_next(const struct kernel_usage *usage, unsigned *cursor)
{
	while (*cursor < kernel_processes(usage)) {
		const struct kernel_process *process = kernel_process_at(usage, (*cursor)++);

		if (process->coverage.uncovered)
			return process;
	}
	return NULL;
}
