/* SPDX-License-Identifier: MIT */
/* How a process joins the shared file: the limits that it requests, and its seat. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "ledger/embedded.h"
#include "ledger/shmfile.h"

/* The host's limit of a kind: the first that names one sets it. A default is
 * only a default: it gives way to the first that was meant. Locked. */
static void requested_limit_set_host(struct ledger *ledger, int kind)
{
	struct layout_header *header = ledger->embedded.header;
	uint64_t requested = ledger->limits->host[kind], bit = 1ull << kind;
	bool meant = !(ledger->limits->host_defaults & bit);

	if (requested == UNLIMITED)
		return;
	if (header->limit[kind] != UNLIMITED && !(meant && header->defaults & bit))
		return;
	/* In this order a death in between leaves at most a value that still gives way. */
	__atomic_store_n(&header->defaults, header->defaults | bit, __ATOMIC_RELEASE);
	__atomic_store_n(&header->limit[kind], requested, __ATOMIC_RELEASE);
	if (meant)
		__atomic_store_n(&header->defaults, header->defaults & ~bit, __ATOMIC_RELEASE);
}

/* Says that a limit that we requested is not used. Not under the lock: a log may be slow. */
static void requested_limit_report(const struct ledger *ledger, const char *scope, int kind,
				   uint64_t requested, uint64_t stands)
{
	unsigned on_port = kind_port((unsigned)kind);
	char port[16] = "";

	if (on_port)
		snprintf(port, sizeof(port), "/%u", on_port);
	if (requested != UNLIMITED && requested != stands)
		log_write(ledger->log, LOG_WARN,
			  "%s%s limit %s=%llu is set already by an earlier process; "
			  "it stays, and %llu is not used",
			  scope, port, kind_rows[kind].name, (unsigned long long)stands,
			  (unsigned long long)requested);
}

static int requested_limits_set(struct ledger *ledger)
{
	const struct ledger_limits *limits = ledger->limits;
	struct layout_device *rows[DEVICES_MAX];
	int result;

	for (unsigned i = 0; i < limits->devices; i++) {
		result = embedded_device(ledger, limits->device[i].name);
		if (result < 0 && result != -ENOSPC)
			return result;
		rows[i] = result < 0 ? NULL : &ledger->embedded.header->device[result];
		if (!rows[i])
			log_write(ledger->log, LOG_WARN,
				  "device %s: no room in the table of %d devices; "
				  "its limits are not used",
				  limits->device[i].name, DEVICES_MAX);
	}
	result = embedded_lock(ledger);
	if (result < 0)
		return result;
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		requested_limit_set_host(ledger, kind);
		for (unsigned i = 0; i < limits->devices; i++)
			if (rows[i] && rows[i]->limit[kind] == UNLIMITED)
				STORE(rows[i]->limit[kind], limits->device[i].limit[kind]);
	}
	embedded_unlock(ledger);
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		if (!(limits->host_defaults >> kind & 1))
			requested_limit_report(ledger, "host", kind, limits->host[kind],
					       LOAD(ledger->embedded.header->limit[kind]));
		for (unsigned i = 0; i < limits->devices; i++)
			if (rows[i])
				requested_limit_report(ledger, rows[i]->name, kind,
						       limits->device[i].limit[kind],
						       LOAD(rows[i]->limit[kind]));
	}
	return 0;
}

static int embedded_join(struct ledger *ledger, int fd, const struct identity *self)
{
	int result = embedded_lock(ledger);

	if (result < 0)
		return result;
	seats_release_own(ledger, self);
	embedded_unlock(ledger);

	embedded_release_dead(ledger);

	result = requested_limits_set(ledger);
	if (result < 0)
		return result;
	result = embedded_lock(ledger);
	if (result < 0)
		return result;
	result = seat_take(ledger, fd);
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) /* who looks now sees exact sums */
		sums_notice_all(ledger->embedded.header, kind);
	embedded_unlock(ledger);
	return result;
}

static int embedded_join_file(struct ledger *ledger, const struct ledger_options *options,
			      const struct identity *self, char problem[PROBLEM_SIZE])
{
	struct shmfile file;
	int result = shmfile_open(&file, options, problem);

	if (result < 0)
		return result;
	ledger->embedded.header = file.header;
	result = embedded_join(ledger, file.fd, self);
	shmfile_close(&file);
	if (result < 0) {
		problem_set(result, problem, "shared memory /dev/shm/%s: %s", options->name,
			    result == -EUSERS	 ? _("every seat is taken by a living process") :
			    result == -ETIMEDOUT ? _("the process that holds its lock does not run") :
						   strerror(-result));
		shmfile_unmap(ledger->embedded.header);
	}
	return result;
}

/* What the limits say holds for this process at least. */
static int embedded_join_private(struct ledger *ledger, const struct identity *self)
{
	struct shmfile memory;
	int result = shmfile_private(&memory);

	if (result < 0)
		return result;
	ledger->embedded.header = memory.header;
	return embedded_join(ledger, memory.fd, self);
}

int embedded_open(struct ledger *ledger, const struct ledger_options *options,
		  char problem[PROBLEM_SIZE])
{
	struct identity self = identity_self();
	int result;

	if (options->no_lock)
		return problem_set(-ENOSYS, problem, "%s", options->no_lock);
	ledger->embedded.pid = self.pid;
	ledger->embedded.start = self.start;
	ledger->embedded.view = self.view;
	result = embedded_join_file(ledger, options, &self, problem);
	if (result < 0 && !options->closed && embedded_join_private(ledger, &self) == 0)
		result = LEDGER_ALONE;
	if (result < 0)
		return result;
	ledger->backing = &embedded_backing;
	ledger->gauges_stride = sizeof(ledger->embedded.slot->device[0]);
	return result;
}
