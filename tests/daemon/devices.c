/* SPDX-License-Identifier: MIT */
/*
 * The devices of a tenant: others are in no list, cannot be opened or imported, and nothing is made
 * on a context that is open there, by the lease and over the socket. Lists are freed whole. Changes
 * count from the next call on; warn and audit tolerate; the guard and rdma.max are told the same.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "guardfiles.h"
#include "member.h"

#define SETTINGS "QUIET=1\nLOG_LEVEL=INFO\n!FAKEVERBS_DEVICES=4"

/* The names in a list, with blanks between. */
static const char *names_of(struct ibv_device **list)
{
	static char names[256];

	names[0] = '\0';
	for (; list && *list; list++)
		sprintf(names + strlen(names), "%s%s", names[0] ? " " : "",
			ibv_get_device_name(*list));
	return names;
}

/* "NAMES": the list has these and its number, and libibverbs gets all references back. */
static void lists(const char *names)
{
	int count = -1, expected = 0, status = -1;
	struct ibv_device **list, **other;
	pid_t child;

	errno = 0;
	list = ibv_get_device_list(&count);
	CHECK(errno == 0);
	other = ibv_get_device_list(NULL);
	for (const char *at = names; *at; at++)
		expected += at == names || at[-1] == ' ';
	CHECK(list && !strcmp(names_of(list), names), "%s", names_of(list));
	CHECK(count == expected, "%d", count);
	CHECK(fake_live("held_device") == 8, "%ld", fake_live("held_device"));
	ibv_free_device_list(list);
	CHECK(other && !strcmp(names_of(other), names), "%s", names_of(other));
	/* A forked child has its own. */
	child = fork_child();
	if (child == 0) {
		ibv_free_device_list(other);
		_exit(fake_live("held_device") != 0);
	}
	waitpid(child, &status, 0);
	CHECK(status == 0, "status %d", status);
	ibv_free_device_list(other);
	CHECK(fake_live("held_device") == 0, "%ld", fake_live("held_device"));
}

/* More lists than are remembered: none is damaged. */
static void many(const char *argument)
{
	enum { LISTS = 100 };
	struct ibv_device **list[LISTS];

	for (unsigned i = 0; i < LISTS; i++)
		CHECK((list[i] = ibv_get_device_list(NULL)) && !strcmp(names_of(list[i]), "rxe1"));
	for (unsigned i = 0; i < LISTS; i++)
		ibv_free_device_list(list[i]);
	/* 64 are remembered; of the others the three hidden ones stay. */
	CHECK(fake_live("held_device") == 3 * (LISTS - 64), "%ld", fake_live("held_device"));
}

/* All devices, also those that the list of this process would hide. */
static struct ibv_device *device_of(unsigned number)
{
	static struct ibv_device device[4];

	snprintf(device[number].name, sizeof(device[number].name), "rxe%u", number);
	return &device[number];
}

/* Nothing of the device can be had, and nothing stays of the attempt. */
static void forbidden(const char *argument)
{
	struct mlx5dv_context_attr attr = { 0 };
	struct ibv_device *other = device_of((unsigned)atoi(argument));

	errno = 0;
	CHECK(!ibv_open_device(other) && errno == EACCES, "errno %d", errno);
	errno = 0;
	CHECK(!mlx5dv_open_device(other, &attr) && errno == EACCES, "errno %d", errno);
	CHECK(fake_calls("verbs_open_device") == 0 && fake_live("ctx") == 0);
}

static void allowed(const char *argument)
{
	struct ibv_context *context = ibv_open_device(device_of((unsigned)atoi(argument)));

	CHECK(context != NULL, "errno %d", errno);
	if (context)
		CHECK(ibv_close_device(context) == 0);
}

/* Opens rxe0, and waits while the policy takes it away. */
static void holds(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_mr *mr, *kept;
	static char buffer[64];

	kept = ibv_reg_mr(fixture.pd, buffer, sizeof(buffer), 0);
	CHECK(kept != NULL);
	word_store(WORD_READY, 1);
	word_await(WORD_GO, 1);
	/* What is there stays and can be used; nothing more is made. */
	errno = 0;
	mr = ibv_reg_mr(fixture.pd, buffer, sizeof(buffer), 0);
	CHECK(!mr && errno == EACCES, "errno %d", errno);
	errno = 0;
	CHECK(!ibv_open_device(fixture.context->device) && errno == EACCES);
	CHECK(!ibv_import_device(dup(fixture.context->cmd_fd)) && errno == EACCES, "errno %d",
	      errno);
	CHECK(fake_live("ctx") == 1, "%ld", fake_live("ctx"));
	CHECK(ibv_dereg_mr(kept) == 0);
	word_store(WORD_READY, 2);
	word_await(WORD_GO, 2);
	mr = ibv_reg_mr(fixture.pd, buffer, sizeof(buffer), 0);
	CHECK(mr != NULL, "errno %d", errno);
	if (mr)
		ibv_dereg_mr(mr);
	fixture_close(&fixture);
}

static int event_note(const void *row, void *last)
{
	const struct proto_event *event = row;

	if (event->type == EVENT_REFUSED || event->type == EVENT_TOLERATED)
		*(struct proto_event *)last = *event;
	return 0;
}

/* The last refusal, or what was tolerated. */
static const struct proto_event *event_last(void)
{
	static struct proto_event last;
	char problem[PROBLEM_SIZE];

	last = (struct proto_event){ .type = EVENT_TYPES };
	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 event_note, &last, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return &last;
}

static bool event_is(enum proto_event_type type, const char *device)
{
	const struct proto_event *last = event_last();

	return CHECK(last->type == type && last->forbidden && !strcmp(last->device, device),
		     "type %u, forbidden %u, device %s", last->type, last->forbidden, last->device);
}

static void each_transport(void (*run)(const char *settings))
{
	run(SETTINGS "\nTRANSPORT=lease");
	run(SETTINGS "\nTRANSPORT=socket");
}

static void listed_run(const char *settings)
{
	spawn("lists:rxe1", settings);
	CHECK(collector_set("default", "devices = rxe2 rxe?") == 0);
	spawn("lists:rxe0 rxe1 rxe2 rxe3", settings);
	CHECK(collector_set("default", "devices = *3 mlx5_0 rxe0*") == 0);
	spawn("lists:rxe0 rxe3", settings);
	CHECK(collector_set("default", "devices = mlx5_0") == 0);
	spawn("lists:", settings);
	CHECK(collector_set("default", "mode = warn") == 0);
	spawn("lists:rxe0 rxe1 rxe2 rxe3", settings);
	CHECK(collector_set("default", "mode = unset\ndevices = unset") == 0);
}

static void listed(void)
{
	collector_fresh("[default]\ndevices = rxe1\n", "");
	each_transport(listed_run);
	spawn("many", SETTINGS);
	/* Without a collector there is no policy. */
	collector_stop();
	spawn("lists:rxe0 rxe1 rxe2 rxe3", SETTINGS);
}

static void opened_run(const char *settings)
{
	log_clear();
	spawn("allowed:1", settings);
	spawn("forbidden:0", settings);
	event_is(EVENT_REFUSED, "rxe0");
	CHECK(strstr(log_text(), "refused ibv_open_device: tenant=default device=rxe0 not among "
				 "the devices of the tenant: rxe1, event "), "%s", log_text());
	CHECK(collector_set("default", "mode = warn") == 0);
	spawn("allowed:0", settings);
	event_is(EVENT_TOLERATED, "rxe0");
	CHECK(strstr(log_text(), "over limit, allowed: ibv_open_device: tenant=default device=rxe0 "
				 "not among"), "%s", log_text());
	CHECK(collector_set("default", "mode = audit") == 0);
	spawn("allowed:2", settings);
	event_is(EVENT_TOLERATED, "rxe2");
	CHECK(collector_set("default", "mode = unset") == 0);
}

static void opened(void)
{
	collector_fresh("[default]\ndevices = rxe1\n", "");
	each_transport(opened_run);
	/* What the library knows holds without a collector. */
	collector_stop();
}

static void changed_run(const char *settings)
{
	pid_t pid;

	words_clear();
	pid = spawn_start("holds", settings);
	word_await(WORD_READY, 1);
	CHECK(collector_set("default", "devices = rxe1") == 0);
	word_store(WORD_GO, 1);
	word_await(WORD_READY, 2);
	event_is(EVENT_REFUSED, "rxe0");
	CHECK(collector_tenant("default").used[KIND_ctx] == 1);
	CHECK(collector_set("default", "devices = unset") == 0);
	word_store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
}

static void changed(void)
{
	collector_fresh("", "");
	changed_run(SETTINGS "\nTRANSPORT=lease");
	collector_stop();
}

/* A bad value changes nothing. */
static void bad_values(void)
{
	static const char *const values[] = { "rxe/0", "[a-z]*", "rxe0,rxe1" };
	char line[64];

	collector_fresh("[default]\ndevices = rxe1\n", "");
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(line, sizeof(line), "devices = %s", values[i]);
		CHECK(collector_set("default", line) < 0, "%s", line);
	}
	collector_policy("[default]\ndevices = rxe0\n\n[tenant a]\ndevices = a b/c\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) < 0);
	CHECK(strstr(collector_log(), "policy.conf:5: devices"), "%s", collector_log());
	spawn("lists:rxe1", SETTINGS);
	collector_stop();
}

/* ---- the command, the guard and rdma.max */

static void uverbs_make(unsigned number, const char *device)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/uverbs%u", harness_path("uverbs"), number);
	mkdir(harness_path("uverbs"), 0755);
	mkdir(path, 0755);
	strcat(path, "/ibdev");
	file = fopen(path, "we");
	if (!file)
		abort();
	fprintf(file, "%s\n", device);
	fclose(file);
}

static bool guard_allows(__u32 slot, unsigned number)
{
	return !guard_limits[slot].restricted ||
	       guard_limits[slot].device[number / 64] >> number % 64 & 1;
}

/* Whether the last line of rdma.max for a device begins so. */
static bool floor_is(const char *line)
{
	char path[300], text[4096] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path("/a"));
	file = fopen(path, "re");
	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
	return strstr(text, line) != NULL;
}

static void floor_make(void)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path("/a"));
	file = fopen(path, "we");
	if (!file)
		abort();
	fclose(file);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/rxe%u", guard_devices, i);
		mkdir(path, 0755);
	}
}

static void guarded(void)
{
	char variable[300];
	__u32 slot;

	uverbs_make(0, "rxe0");
	uverbs_make(1, "rxe1");
	uverbs_make(70, "mlx5_0");
	snprintf(variable, sizeof(variable), "\nRDMA_COLLECTOR_UVERBS=%s", harness_path("uverbs"));
	strcat(guard_variables, variable);
	floor_make();
	guard_fresh("[tenant a]\nmatch = cgroup=/a\nguard = on\ndevices = rxe1 mlx5_*\n");
	EVENTUALLY(guard_slot("/a"));
	slot = guard_slot("/a");
	EVENTUALLY(guard_limits[slot].restricted == 1);
	CHECK(!guard_allows(slot, 0) && guard_allows(slot, 1) && guard_allows(slot, 70));
	CHECK(!guard_allows(slot, 2), "a device that nobody knows");
	uverbs_make(2, "mlx5_1");
	EVENTUALLY(guard_allows(slot, 2), "a device that appears later");
	/* The kernel's word of a refusal. */
	guard_entries[guard_head->logged % GUARD_LOG].device = 1;
	guard_log(GUARD_REFUSED, slot, getpid(), KIND_ctx, 0);
	EVENTUALLY(event_last()->forbidden);
	event_is(EVENT_REFUSED, "rxe0");
	CHECK(strstr(command_output("show tenant a"), "rxe1 mlx5_*"), "%s",
	      command_output("show tenant a"));
	CHECK(floor_is("rxe0 hca_handle=0 hca_object=0") && !floor_is("rxe1 hca"), "rdma.max");
	CHECK(collector_set("tenant a", "mode = warn") == 0);
	EVENTUALLY(guard_allows(slot, 0));
	CHECK(collector_set("tenant a", "mode = enforce") == 0);
	EVENTUALLY(!guard_allows(slot, 0));
	CHECK(collector_set("tenant a", "devices = *") == 0);
	EVENTUALLY(guard_allows(slot, 0));
	collector_stop();
}

static void drive(void)
{
	guard_files_prepare();
	RUN(listed);
	RUN(opened);
	RUN(changed);
	RUN(bad_values);
	RUN(guarded);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "lists", lists },	{ "many", many },   { "forbidden", forbidden },
		{ "allowed", allowed }, { "holds", holds }, { NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
