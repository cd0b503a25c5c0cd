/* SPDX-License-Identifier: MIT */
/* The embedded ledger as rows; see embedded.h. */
#include "cli/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "cli/collector.h"
#include "ledger/view.h"

#define NAME_VARIABLE "RDMA_INTERCEPT_SHM_NAME"

static const char *embedded_name(void)
{
	const char *name = getenv(NAME_VARIABLE);

	return name && name[0] ? name : NULL;
}

static bool collector_is_absent(void)
{
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	struct proto_status status;
	int result;

	if (proto_socket_path(getenv(PROTO_SOCKET_VARIABLE), path) < 0)
		return false;
	result = proto_call(path, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, problem);
	return result == -ENOENT || result == -ECONNREFUSED;
}

bool embedded_is_used(const struct cli *cli, char ret_path[EMBEDDED_PATH])
{
	char problem[PROBLEM_SIZE];
	struct ledger_view view;

	if (cli_value(&cli->options.socket) || !collector_is_absent() ||
	    ledger_view_open(&view, embedded_name(), problem) < 0)
		return false;
	snprintf(ret_path, EMBEDDED_PATH, "/dev/shm/%s", view.name);
	ledger_view_close(&view);
	return true;
}

static int embedded_open(const struct cli *cli, struct ledger_view *ret_view)
{
	char problem[PROBLEM_SIZE];

	return ledger_view_open(ret_view, embedded_name(), problem) < 0 ?
		       cli_fail(cli, CLI_WRONG, "%s", problem) :
		       CLI_OK;
}

/* Whether a row of that device is wanted; the row in total has the device "". */
static bool device_is_chosen(const struct proto_choose *choose, const char *device)
{
	return !choose->device[0] || !strcmp(choose->device, device);
}

static int host_rows(const struct ledger_view *view, const struct proto_choose *choose,
		     proto_row_function *each, void *closure)
{
	int result = 0;

	for (int device = -1; device < DEVICES_MAX && !result; device++) {
		const char *name = device < 0 ? "" : ledger_view_device_name(view, (unsigned)device);
		struct proto_row row = { .scope = ROW_HOST };
		bool any = device < 0;

		if ((device >= 0 && !name[0]) || !device_is_chosen(choose, name))
			continue;
		snprintf(row.device, sizeof(row.device), "%s", name);
		for (int kind = 0; kind < KINDS_COUNTED; kind++) {
			row.used[kind] = ledger_view_used(view, device, (enum kind)kind);
			row.granted[kind] = row.peak[kind] = row.used[kind];
			row.limit[kind] = ledger_view_limit(view, device, (enum kind)kind);
			row.process_limit[kind] = UNLIMITED;
			any |= row.used[kind] || row.limit[kind] != UNLIMITED;
		}
		for (unsigned seat = 0; seat < ledger_view_seats(view); seat++)
			row.processes += ledger_view_seat(view, seat, NULL) != NULL;
		if (any)
			result = each(&row, closure);
	}
	return result;
}

static void process_describe(pid_t pid, struct proto_row *row)
{
	char path[40];
	struct stat status;

	row->pid = pid;
	if (proc_read(pid, "comm", row->command, sizeof(row->command)) > 0)
		row->command[strcspn(row->command, "\n")] = '\0';
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	row->uid = stat(path, &status) ? (uint32_t)-1 : status.st_uid;
}

static int process_rows(const struct ledger_view *view, const struct layout_slot *slot, pid_t pid,
			const struct proto_choose *choose, proto_row_function *each, void *closure)
{
	/* Mode and limits of a process are in its environment. */
	struct proto_row head = { .scope = ROW_PROCESS, .mode = MODES }, total;
	const struct tallies *tallies = ledger_view_tallies(slot);
	int result = 0;

	process_describe(pid, &head);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		head.limit[kind] = head.process_limit[kind] = UNLIMITED;
	total = head;
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			total.used[kind] += ledger_view_held(slot, device, (enum kind)kind);
		total.granted[kind] = total.peak[kind] = total.used[kind];
		total.refused[kind] = __atomic_load_n(&tallies->refused[kind], __ATOMIC_RELAXED);
		total.tolerated[kind] = __atomic_load_n(&tallies->tolerated[kind], __ATOMIC_RELAXED);
	}
	if (!choose->device[0])
		result = each(&total, closure);
	for (unsigned device = 0; device < DEVICES_MAX && !result; device++) {
		const char *name = ledger_view_device_name(view, device);
		struct proto_row row = head;
		bool any = false;

		if (!name[0] || !device_is_chosen(choose, name))
			continue;
		snprintf(row.device, sizeof(row.device), "%s", name);
		for (int kind = 0; kind < KINDS_COUNTED; kind++) {
			row.used[kind] = ledger_view_held(slot, device, (enum kind)kind);
			row.granted[kind] = row.peak[kind] = row.used[kind];
			any |= row.used[kind] != 0;
		}
		if (any)
			result = each(&row, closure);
	}
	return result;
}

static int process_details(const struct ledger_view *view, const struct layout_slot *slot,
			   pid_t pid, const struct proto_choose *choose, proto_row_function *each,
			   void *closure)
{
	struct proto_details details = { .pid = pid, .tallies = *ledger_view_tallies(slot) };
	int result = each(&details, closure);

	memset(&details.tallies, 0, sizeof(details.tallies));
	for (unsigned device = 0; device < DEVICES_MAX && !result; device++) {
		const char *name = ledger_view_device_name(view, device);

		if (!name[0] || !device_is_chosen(choose, name) ||
		    !ledger_view_held(slot, device, KIND_ctx))
			continue;
		snprintf(details.device, sizeof(details.device), "%s", name);
		details.gauges = *ledger_view_gauges(slot, device);
		posted_fold(&details.gauges.posted);
		result = each(&details, closure);
	}
	return result;
}

typedef int process_function(const struct ledger_view *view, const struct layout_slot *slot,
			     pid_t pid, const struct proto_choose *choose, proto_row_function *each,
			     void *closure);

/* Calls the function for each process that is chosen, until one returns something other than 0. */
static int processes_visit(const struct ledger_view *view, const struct proto_choose *choose,
			   process_function *visit, proto_row_function *each, void *closure)
{
	int result = 0;

	for (unsigned seat = 0; seat < ledger_view_seats(view) && !result; seat++) {
		pid_t pid;
		const struct layout_slot *slot = ledger_view_seat(view, seat, &pid);

		if (slot && (!choose->pid || choose->pid == pid))
			result = visit(view, slot, pid, choose, each, closure);
	}
	return result;
}

int embedded_rows(const struct cli *cli, const struct proto_choose *choose,
		  proto_row_function *each, void *closure)
{
	struct ledger_view view;
	int result = embedded_open(cli, &view);

	if (result)
		return result;
	if (!choose->pid)
		result = host_rows(&view, choose, each, closure);
	if (!result)
		result = processes_visit(&view, choose, process_rows, each, closure);
	ledger_view_close(&view);
	return result;
}

int embedded_details(const struct cli *cli, const struct proto_choose *choose,
		     proto_row_function *each, void *closure)
{
	struct ledger_view view;
	int result = embedded_open(cli, &view);

	if (result)
		return result;
	result = processes_visit(&view, choose, process_details, each, closure);
	ledger_view_close(&view);
	return result;
}
