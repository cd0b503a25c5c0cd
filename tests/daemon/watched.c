/* SPDX-License-Identifier: MIT */
/* Processes whose objects a kernel of files counts; see watched.h. */
#include "watched.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

char watched_directory[128], watched_variables[256];

void watched_prepare(void)
{
	snprintf(watched_directory, sizeof(watched_directory), "%s", harness_path("monitor"));
	snprintf(watched_variables, sizeof(watched_variables), MONITOR_VARIABLE "=%s\n",
		 watched_directory);
	chmod(harness_path(""), 0711);
	cases_at_once();
}

void watched_begin(const char *policy, enum monitor_mode mode)
{
	words_clear();
	kernel_load(watched_directory, mode);
	collector_fresh(policy, watched_variables);
}

void wait_seconds(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

/* ---- processes */

void watched_holder(const char *argument)
{
	struct fixture fixture = fixture_open();

	for (int i = 0; i < atoi(argument); i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_END, 1);
}

void watched_idle(const char *argument)
{
	word_add(WORD_READY, 1);
	word_await(WORD_END, 1);
}

pid_t guarded_start(const char *scenario, const char *settings)
{
	uint64_t ready = word_load(WORD_READY);
	pid_t pid = spawn_start(scenario, settings);

	NEED(word_load(WORD_READY) > ready, "%s", scenario);
	return pid;
}

pid_t unguarded_start(void)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		for (;;)
			pause();
	}
	return pid;
}

void process_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

unsigned kernel_mirror(pid_t pid, const char *device)
{
	struct proto_row books = collector_process(pid);
	unsigned row = kernel_row(pid, device, "guarded");

	CHECK(books.used[KIND_ctx] == 1 && books.used[KIND_cqe], "not registered");
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		kernel_set(row, kind, books.used[kind]);
	return row;
}

/* ---- what the collector says */

struct proto_status collector_state(void)
{
	struct proto_status answer = { 0 };

	CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0);
	return answer;
}

static int event_count(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct wanted *wanted = closure;

	if (event->type != wanted->type || (wanted->pid && event->pid != wanted->pid))
		return 0;
	wanted->count++;
	snprintf(wanted->text, sizeof(wanted->text), "%.250s", event->text);
	return 0;
}

struct wanted events_of(enum proto_event_type type, pid_t pid)
{
	struct wanted wanted = { .type = type, .pid = pid };
	struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_count, &wanted,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return wanted;
}

static int row_keep(const void *row, void *closure)
{
	const struct proto_row *given = row;

	memcpy(closure, given, sizeof(*given));
	return 0;
}

struct proto_row row_on_device(enum message type, const char *tenant, pid_t pid,
				  const char *device)
{
	struct proto_choose choose = { .pid = pid };
	struct proto_row row = { 0 };
	char problem[PROBLEM_SIZE];

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	snprintf(choose.device, sizeof(choose.device), "%s", device);
	CHECK(proto_rows(collector_socket(), type, &choose, row_keep, &row, COLLECTOR_PATIENCE_MS,
			 problem) >= 0,
	      "%s", problem);
	return row;
}

bool process_has(pid_t pid, uint32_t flag)
{
	return collector_process(pid).flags & flag;
}
