/* SPDX-License-Identifier: MIT */
/* STATUS: the collector, and how it sees the kernel. */
#include "collector/answers.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/control.h"

static void status_add_kernel(const struct collector *collector, struct proto_status *status)
{
	const struct kernel_usage *kernel = &collector->kernel;
	const struct kernel_sums *host = reconcile_sums(collector, -1);
	const struct monitor_head *head = kernel->reader.head;

	snprintf(status->monitor, sizeof(status->monitor), "%s", monitor_mode_names[kernel->mode]);
	snprintf(status->monitor_problem, sizeof(status->monitor_problem), "%.255s",
		 kernel->problem);
	status->uncovered = host->uncovered;
	status->drifting = host->drifting;
	status->observed = kernel_observed(kernel);
	if (!head)
		return;
	status->lost_objects = __atomic_load_n(&head->lost_objects, __ATOMIC_RELAXED);
	status->lost_rows = __atomic_load_n(&head->lost_rows, __ATOMIC_RELAXED);
}

void answer_STATUS(struct collector *collector, const struct request *request)
{
	struct proto_status status = {
		.pid = getpid(),
		.uid = geteuid(),
		.processes = collector->books.members_count,
		.leases = collector->books.leases_count,
		.reloads = collector->reloads,
		.searches = members_passes(&collector->members),
		.version = COLLECTOR_VERSION,
		.overrides = control_overrides(collector),
	};

	status.uptime_seconds = clock_now_seconds() - collector->started;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		status.tenants += collector->books.tenant[i] != NULL;
	snprintf(status.policy, sizeof(status.policy), "%s", collector->effective->file);
	snprintf(status.problem, sizeof(status.problem), "%s", collector->problem);
	reconcile_look(collector);
	status_add_kernel(collector, &status);
	server_reply(request, 0, &status, NULL, 0);
}
