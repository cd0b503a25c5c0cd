/* SPDX-License-Identifier: MIT */
/*
 * What the collector tells the guard in the kernel, and what it makes of the guard's word:
 * which cgroups are whose, limits, the floor below them, states and their reasons, events; and
 * guards that come, go and are of another version. The guard is one of files, and so are the
 * cgroups; collector and command are real.
 *
 * For scripts: daemon_guards files DIRECTORY [PID] writes a guard's files, with a refusal of
 * that process in slot 1. daemon_guards counts DIRECTORY writes what slot 1 has counted: 3 QPs,
 * 2 refusals, 1 overrun.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "kernel.h"
#include "monitor/guard/guard_maps.h"

/* The collector looks every second, give or take a quarter. */
#define SAMPLE 1.25

#define PLACES 1024 /* in each table */

#define GUARDED (1ull << KIND_pd | 1ull << KIND_qp | 1ull << KIND_mr | 1ull << KIND_mr_bytes)

static char directory[128], cgroups[128], devices[128], lsm[128], variables[1024];

/* ---- the guard */

static struct guard_head *head;
static struct guard_limits *limits;
static struct guard_counts *counts;
static struct guard_entry *entries;
static struct guard_cgroup *tenants;
static struct guard_rule *rules;

static void *file_make(const char *name, size_t bytes)
{
	char path[160], temporary[164];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	snprintf(temporary, sizeof(temporary), "%s~", path);
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || rename(temporary, path))
		abort();
	close(fd);
	return memory;
}

/* Of the right version, and armed. */
static struct guard_head guard_usual(void)
{
	return (struct guard_head){
		.magic = GUARD_MAGIC,
		.version = GUARD_VERSION,
		.tenants = GUARD_TENANTS,
		.kinds = kinds_signature(),
		.guarded = GUARDED,
		.armed = 1,
		.ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE,
		.counted = ~0ull,
		.tended_ns = 1ull << 62, /* as if rdma_monitor ran, for all the time of a test */
		.most = { [GUARD_OBJECTS] = PLACES, [GUARD_RUNNING] = PLACES },
	};
}

/* A new one in place of what is there: nobody is known. */
static void guard_load(struct guard_head wanted)
{
	mkdir(directory, 0755);
	limits = file_make("guard_limits", GUARD_TENANTS * sizeof(*limits));
	counts = file_make("guard_counts", GUARD_TENANTS * sizeof(*counts));
	entries = file_make("guard_log", GUARD_LOG * sizeof(*entries));
	tenants = file_make("guard_tenants", GUARD_CGROUPS * sizeof(*tenants));
	rules = file_make("guard_rules", 2 * GUARD_RULES * sizeof(*rules));
	head = file_make("guard_head", sizeof(*head));
	wanted.magic = 0;
	*head = wanted;
	__atomic_store_n(&head->magic, GUARD_MAGIC, __ATOMIC_RELEASE);
}

static void guard_unload(void)
{
	static const char *const names[] = { "guard_head", "guard_limits", "guard_counts",
					     "guard_log", "guard_tenants", "guard_rules" };
	char path[160];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
}

/* As the programs in the kernel do it. */
static void guard_log(enum guard_event event, __u32 slot, pid_t pid, enum kind kind, __u64 used)
{
	__u64 number = __atomic_fetch_add(&head->logged, 1, __ATOMIC_SEQ_CST);
	struct guard_entry *entry = &entries[number % GUARD_LOG];

	__atomic_store_n(&entry->number, 0, __ATOMIC_SEQ_CST);
	entry->event = event;
	entry->slot = slot;
	entry->pid = (__u32)pid;
	entry->kind = kind;
	entry->amount = 1;
	entry->used = entry->limit = used;
	strcpy(entry->command, "intruder");
	__atomic_store_n(&entry->number, number + 1, __ATOMIC_SEQ_CST);
}

/* ---- cgroups */

static const char *cgroup_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s%s", cgroups, name);
	return path;
}

static void cgroup_make(const char *name)
{
	if (mkdir(cgroup_path(name), 0755))
		abort();
}

static __u64 inode_of(const char *name)
{
	struct stat status;

	return stat(cgroup_path(name), &status) ? 0 : status.st_ino;
}

/* Which slot a cgroup has in the kernel; 0: none. */
static __u32 slot_of_inode(__u64 inode)
{
	for (unsigned i = 0; inode && i < GUARD_CGROUPS; i++)
		if (__atomic_load_n(&tenants[i].cgroup, __ATOMIC_ACQUIRE) == inode)
			return tenants[i].slot;
	return 0;
}

static __u32 slot_of(const char *name)
{
	return slot_of_inode(inode_of(name));
}

/* Which slot the rules give a cgroup that need not exist; 0: none. */
static __u32 rule_of(const char *path)
{
	__u32 said = __atomic_load_n(&head->rules, __ATOMIC_ACQUIRE), slot = 0;

	monitor_guard_rules_name(rules + (said & GUARD_RULES_HALF ? GUARD_RULES : 0),
				 said & ~GUARD_RULES_HALF, path, &slot);
	return slot;
}

static unsigned mapped(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		count += tenants[i].cgroup != 0;
	return count;
}

static __u64 limit_of(const char *name, enum kind kind)
{
	__u32 slot = slot_of(name);

	return slot ? __atomic_load_n(&limits[slot].limit[kind], __ATOMIC_SEQ_CST) : 0;
}

/* ---- the collector's word */

static int row_keep(const void *row, void *closure)
{
	memcpy(closure, row, sizeof(struct proto_guard));
	return 0;
}

/* Of a tenant; NULL: the guard itself. */
static struct proto_guard guard(const char *tenant)
{
	struct proto_choose choose = { .tenant = "-" };
	struct proto_guard row = { 0 };
	char problem[PROBLEM_SIZE];

	if (tenant)
		snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	CHECK(proto_rows(collector_socket(), MESSAGE_GUARD, &choose, row_keep, &row,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return row;
}

static bool is(const char *tenant, enum proto_guarantee guarantee, const char *reason)
{
	struct proto_guard row = guard(tenant);

	return !strcmp(row.tenant, tenant) && row.guarantee == guarantee &&
	       strstr(row.reason, reason) && !row.reason[0] == !reason[0];
}

/* What the command says, with its arguments as a shell takes them. */
static FILE *command_begin(const char *arguments)
{
	char line[512];
	FILE *output;

	snprintf(line, sizeof(line), "%s/rdma_intercept -s %s %s 2>&1", getenv("BUILD_DIRECTORY"),
		 collector_socket(), arguments);
	output = popen(line, "re");
	if (!output)
		abort();
	return output;
}

/* What it prints, once it has ended with that status. */
static const char *command_end(FILE *output, int status)
{
	static char text[65536];
	size_t length = fread(text, 1, sizeof(text) - 1, output);
	int ended = pclose(output);

	text[length] = '\0';
	CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == status, "%d: %s", ended, text);
	return text;
}

static const char *command(const char *arguments)
{
	return command_end(command_begin(arguments), 0);
}

static void fresh(const char *policy)
{
	guard_unload();
	guard_load(guard_usual());
	/* Of others, who are no more: something, and something to remember. */
	counts[1].used[KIND_qp] = 1;
	counts[2].refused[KIND_qp] = 1;
	collector_fresh(policy, variables);
}

/* ---- on, off, and limits */

static void switches_and_limits(void)
{
	__u32 slot;
	__u64 epoch;

	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\ncqe = 9\nguard = on\n"
	      "[tenant b]\nmatch = cgroup=/b\nqp = 6\n");
	/* By the file: in force when the collector answers. */
	CHECK(limit_of("/a", KIND_qp) == 5 && mapped() == 1 && head->epoch == 1);
	CHECK(slot_of("/a") == 3, "%u", slot_of("/a"));
	CHECK(limit_of("/a", KIND_mr) == UNLIMITED);
	CHECK(limit_of("/a", KIND_cqe) == UNLIMITED, "a kind that cannot be guarded");
	CHECK(head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE), "%x", head->wanted);
	CHECK(is("a", GUARANTEE_KERNEL, "") && guard("a").on && guard("a").cgroups == 1 &&
	      guard("a").limit[KIND_qp] == 5);
	CHECK(is("b", GUARANTEE_OFF, "") && !guard("b").on && !slot_of("/b"));
	CHECK(guard(NULL).on == 1 && guard(NULL).armed && guard(NULL).guarded == GUARDED &&
	      guard(NULL).cgroups == 1);
	/* By a command. */
	command("guard on b");
	CHECK(limit_of("/b", KIND_qp) == 6 && slot_of("/b") != slot_of("/a"));
	CHECK(slot_of("/a") && head->epoch == 2, "epoch %llu", head->epoch);
	/* Limits, at once. */
	CHECK(collector_set("tenant a", "qp = 7") == 0);
	CHECK(limit_of("/a", KIND_qp) == 7 && limit_of("/b", KIND_qp) == 6 && head->epoch == 2);
	CHECK(collector_set("default", "mr = 3") == 0);
	CHECK(limit_of("/a", KIND_mr) == 3 && limit_of("/b", KIND_mr) == 3);
	/* Who does not enforce refuses nothing, here as well. */
	CHECK(collector_set("tenant a", "mode = audit") == 0);
	CHECK(limit_of("/a", KIND_qp) == UNLIMITED &&
	      is("a", GUARANTEE_NONE, "mode is audit"));
	CHECK(collector_set("tenant a", "mode = unset") == 0);
	CHECK(limit_of("/a", KIND_qp) == 7 && is("a", GUARANTEE_KERNEL, ""));
	/* Off: counted on, so that on again is exact. */
	slot = slot_of("/a");
	epoch = head->epoch;
	command("guard off a");
	CHECK(limit_of("/a", KIND_qp) == UNLIMITED && slot_of("/a") == slot);
	CHECK(is("a", GUARANTEE_OFF, "") && head->wanted && head->epoch == epoch);
	command("guard off b");
	CHECK(head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE) && mapped() == 2);
	command("guard on a b");
	CHECK(limit_of("/a", KIND_qp) == 7 && slot_of("/a") == slot);
	CHECK(limit_of("/b", KIND_qp) == 6 && head->epoch == epoch);
	/* Ways: write() is guarded unless somebody says otherwise, and then it is told. */
	CHECK(head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE));
	head->ways = GUARD_IOCTL | GUARD_COMPAT;
	EVENTUALLY(is("a", GUARANTEE_PARTLY, "write() is not guarded: rdma_monitor has not"));
	strcpy(head->problem, "no hook for writes");
	EVENTUALLY(is("a", GUARANTEE_PARTLY, "write() is not guarded: no hook for writes"));
	head->problem[0] = '\0';
	CHECK(collector_set("host", "guard_writes = off") == 0);
	CHECK(head->wanted == (GUARD_IOCTL | GUARD_COMPAT));
	EVENTUALLY(is("a", GUARANTEE_PARTLY, "[host] has guard_writes = off"));
	CHECK(strstr(command("guard status"), "partly: write() is not guarded") &&
	      strstr(command("doctor || true"), "write() is not guarded"));
	CHECK(collector_set("host", "guard_writes = unset") == 0);
	CHECK(head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE));
	head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	/* What is counted is shown. */
	counts[slot].used[KIND_qp] = 4;
	counts[slot].refused[KIND_qp] = 2;
	counts[slot].overrun[KIND_mr] = 1;
	counts[slot].killed = 1;
	CHECK(guard("a").used[KIND_qp] == 4 && guard("a").refused[KIND_qp] == 2 &&
	      guard("a").overrun[KIND_mr] == 1 && guard("a").killed == 1);
	CHECK(guard("b").used[KIND_qp] == 0 && guard(NULL).used[KIND_qp] == 5);
	/* A tenant that is gone takes its limits along; the file is as good as a command. */
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 6\nguard = off\n");
	CHECK(collector_set("tenant a", "guard = unset") == 0);
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(limit_of("/a", KIND_qp) == UNLIMITED);
	CHECK(collector_set("tenant b", "guard = unset") == 0);
	CHECK(limit_of("/b", KIND_qp) == UNLIMITED);
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 6\nguard = on\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0 && limit_of("/b", KIND_qp) == 6);
	CHECK(collector_stop() == 0 && limit_of("/b", KIND_qp) == 6, "the end leaves it in force");
}

/* ---- which cgroups */

static void cgroups_of_tenants(void)
{
	__u64 epoch, inode;
	__u32 slot;

	fresh("[tenant late]\nmatch = cgroup=/late/*\nqp = 1\nguard = on\n"
	      "[tenant pods]\nmatch = cgroup=/pods/pod?x*\nqp = 2\nguard = on\n"
	      "[tenant first]\nmatch = cgroup=/both\nqp = 3\nguard = on\n"
	      "[tenant second]\nmatch = cgroup=/both\nqp = 4\nguard = on\n"
	      "[tenant wide]\nmatch = cgroup=/wide/*\nqp = 5\n"
	      "[tenant inner]\nmatch = cgroup=/wide/inner/*\nqp = 6\nguard = on\n"
	      "[tenant mixed]\nmatch = uid=4000000\nmatch = uid=4000001 cgroup=/a\n"
	      "guard = on\nqp = 7\n"
	      "[tenant some]\nmatch = uid=4000000\nmatch = cgroup=/b\nguard = on\nqp = 8\n");
	CHECK(is("late", GUARANTEE_KERNEL, "") && rule_of("/late") && !slot_of("/late"),
	      "not guarded before the first cgroup comes: %s", guard("late").reason);
	CHECK(is("mixed", GUARANTEE_NONE, "no match line") && !slot_of("/a"));
	CHECK(is("some", GUARANTEE_KERNEL, "more than a cgroup: 1") &&
	      limit_of("/b", KIND_qp) == 8);
	CHECK(head->wanted != 0, "armed before the first cgroup comes");
	/* They appear; what is below is meant with a group. */
	epoch = head->epoch;
	cgroup_make("/late");
	EVENTUALLY(limit_of("/late", KIND_qp) == 1, "%s", guard("late").reason);
	CHECK(is("late", GUARANTEE_KERNEL, "") && head->epoch == epoch + 1);
	cgroup_make("/late/below");
	cgroup_make("/pods");
	cgroup_make("/pods/pod1x-a");
	cgroup_make("/pods/pod2x-b");
	cgroup_make("/pods/other");
	EVENTUALLY(slot_of("/pods/pod1x-a") && slot_of("/pods/pod2x-b"));
	CHECK(slot_of("/pods/pod1x-a") == slot_of("/pods/pod2x-b") && guard("pods").cgroups == 2);
	CHECK(limit_of("/pods/pod1x-a", KIND_qp) == 2 && !slot_of("/pods/other"));
	CHECK(!slot_of("/late/below") && !slot_of("/pods"));
	/* The first line has it. */
	cgroup_make("/both");
	cgroup_make("/wide");
	cgroup_make("/wide/inner");
	EVENTUALLY(limit_of("/both", KIND_qp) == 3);
	CHECK(is("second", GUARANTEE_NONE, "another tenant's by an earlier line"), "%s",
	      guard("second").reason);
	CHECK(!slot_of("/wide/inner") && !slot_of("/wide") && guard("inner").cgroups == 0);
	/* And when it has it no more, the other. */
	CHECK(collector_set("tenant second", "match = cgroup=/b") == 0); /* some's, by the file */
	CHECK(limit_of("/b", KIND_qp) == 8);
	slot = slot_of("/pods/pod1x-a");
	/* One that is gone leaves the map, and nothing else changes. */
	epoch = head->epoch;
	inode = inode_of("/pods/pod2x-b");
	rmdir(cgroup_path("/pods/pod2x-b"));
	EVENTUALLY(!slot_of_inode(inode) && head->epoch == epoch + 1);
	CHECK(slot_of("/pods/pod1x-a") == slot && guard("pods").cgroups == 1);
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(head->epoch == epoch + 1, "the epoch moves by itself");
	/* The last goes; the tenant has its slot when another comes. */
	rmdir(cgroup_path("/pods/pod1x-a"));
	EVENTUALLY(guard("pods").cgroups == 0);
	CHECK(is("pods", GUARANTEE_KERNEL, "") && rule_of("/pods/pod4x") == slot);
	counts[slot].used[KIND_qp] = 1;
	cgroup_make("/pods/pod3x");
	EVENTUALLY(slot_of("/pods/pod3x") == slot);
	/* A cgroup that changes hands is not held to the limits of who had it. */
	collector_policy("[tenant heir]\nmatch = cgroup=/pods/pod3x\n"
			 "[tenant pods]\nmatch = cgroup=/pods/pod?x*\nqp = 2\nguard = on\n"
			 "match = cgroup=/late\n");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(!slot_of("/pods/pod3x") && limit_of("/late", KIND_qp) == 2, "slot %u",
	      slot_of("/pods/pod3x"));
	/* A slot that still holds something is nobody else's. */
	CHECK(collector_set("tenant heir", "guard = on") == 0);
	CHECK(slot_of("/pods/pod3x") && slot_of("/pods/pod3x") != slot);
	collector_stop();
}

/* ---- collectors that die */

static void restarts(void)
{
	struct guard_cgroup before[8];
	struct guard_head kept;
	__u32 slot;

	fresh("[tenant b]\nmatch = cgroup=/b\nqp = 2\nguard = on\n"
	      "[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n");
	slot = slot_of("/a");
	counts[slot].used[KIND_qp] = 3;
	collector_kill();
	memcpy(before, tenants, sizeof(before));
	kept = *head;
	CHECK(limit_of("/a", KIND_qp) == 5 && head->wanted);
	/* In another order: who is who is told by the names. */
	collector_policy("[tenant a]\nmatch = cgroup=/a\nqp = 6\nguard = on\n"
			 "[tenant b]\nmatch = cgroup=/b\nqp = 2\nguard = on\n");
	collector_start(variables);
	CHECK(slot_of("/a") == slot && limit_of("/a", KIND_qp) == 6 &&
	      limit_of("/b", KIND_qp) == 2);
	CHECK(!memcmp(before, tenants, sizeof(before)), "something was changed");
	CHECK(rule_of("/a") == slot && head->epoch == kept.epoch + 1, "rules of another order");
	kept = *head;
	collector_kill();
	collector_start(variables);
	/* The earlier one may have died before it said that cgroups changed: they are looked up anew. */
	kept.epoch++;
	CHECK(!memcmp(before, tenants, sizeof(before)) && !memcmp(&kept, head, sizeof(kept)),
	      "something was changed");
	CHECK(guard("a").used[KIND_qp] == 3);
	/* What happened in between is noticed. */
	collector_kill();
	collector_forget_policy();
	collector_policy("[tenant a]\nmatch = cgroup=/a\nqp = 6\nguard = off\n");
	rmdir(cgroup_path("/b"));
	collector_start(variables);
	CHECK(slot_of("/a") == slot && limit_of("/a", KIND_qp) == UNLIMITED);
	CHECK(mapped() == 1 && head->epoch == kept.epoch + 1, "mapped %u", mapped());
	command("guard on a");
	CHECK(slot_of("/a") == slot && limit_of("/a", KIND_qp) == 6);
	collector_stop();
	cgroup_make("/b");
}

/* After a restart one of a tenant's two cgroups is another tenant's: what was made before stays
 * with the first, whose limit it would have twice otherwise. */
static void restarts_with_another(const char *given, const char *left)
{
	char policy[256];
	__u32 slot;

	fresh("[tenant c]\nmatch = cgroup=/a\nmatch = cgroup=/b\nqp = 5\nguard = on\n");
	slot = slot_of(given);
	CHECK(slot && slot_of(left) == slot);
	counts[slot].used[KIND_qp] = 5;
	collector_kill();
	collector_forget_policy();
	snprintf(policy, sizeof(policy),
		 "[tenant d]\nmatch = cgroup=%s\nqp = 5\nguard = on\n"
		 "[tenant c]\nmatch = cgroup=%s\nqp = 5\nguard = on\n",
		 given, left);
	collector_policy(policy);
	collector_start(variables);
	CHECK(slot_of(left) == slot && guard("c").used[KIND_qp] == 5);
	CHECK(slot_of(given) != slot && guard("d").used[KIND_qp] == 0, "slot %u of %u",
	      slot_of(given), slot);
	/* One that has got another name keeps what it has. */
	collector_kill();
	collector_forget_policy();
	snprintf(policy, sizeof(policy), "[tenant e]\nmatch = cgroup=%s\nqp = 5\nguard = on\n",
		 left);
	collector_policy(policy);
	collector_start(variables);
	CHECK(slot_of(left) == slot && guard("e").used[KIND_qp] == 5);
	collector_stop();
}

static void restarts_with_other_tenants(void)
{
	restarts_with_another("/a", "/b");
	restarts_with_another("/b", "/a");
}

/* ---- the log */

struct told {
	pid_t pid;
	unsigned count;
	struct proto_event last;
};

static int event_count(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct told *told = closure;

	if (event->pid == told->pid && event->ring == RING_KERNEL) {
		told->count += (unsigned)event->count;
		told->last = *event;
	}
	return 0;
}

static struct told told_of(pid_t pid)
{
	struct told told = { .pid = pid };
	struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_count, &told,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return told;
}

/* A guarded one that has a QP, and was refused another by the library. */
static void run_refused(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && !qp_make(&fixture, IBV_QPT_RC));
	word_store(0, 1);
	for (;;)
		pause();
}

/* Both rings number the refusals of a process, and never alike. */
static void numbers_of_refusals(void)
{
	char line[64];
	pid_t pid;

	fresh("[tenant default]\nprocess.qp = 1\n[tenant a]\nmatch = cgroup=/a\nguard = on\n");
	pid = spawn_start("refused", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(0) == 1);
	guard_log(GUARD_REFUSED, slot_of("/a"), pid, KIND_qp, 5);
	CHECK(told_of(pid).count == 1 && told_of(pid).last.number == 2);
	snprintf(line, sizeof(line), "explain %d-1", (int)pid);
	CHECK(strstr(command(line), "Refused by the library."), "%s", command(line));
	snprintf(line, sizeof(line), "explain %d-2", (int)pid);
	CHECK(strstr(command(line), "Refused in the kernel (guard of tenant a)."), "%s",
	      command(line));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	collector_stop();
}

/* Waits for two samples, and asks the collector nothing: new cgroups show that it looked. */
static void samples_pass(void)
{
	cgroup_make("/mark1");
	EVENTUALLY(slot_of("/mark1"));
	cgroup_make("/mark2");
	EVENTUALLY(slot_of("/mark2"));
}

static void refusals_are_told(void)
{
	struct told told;
	const char *text;
	__u32 slot;

	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
	      "[tenant marks]\nmatch = cgroup=/mark?\nguard = on\n");
	slot = slot_of("/a");
	guard_log(GUARD_REFUSED, slot, 4000001, KIND_qp, 5);
	told = told_of(4000001); /* asked for before a second has passed */
	CHECK(told.count == 1 && told.last.type == EVENT_REFUSED && told.last.number == 1);
	CHECK(!strcmp(told.last.tenant, "a") && told.last.kind == KIND_qp && told.last.used == 5 &&
	      told.last.wanted == 1 && told.last.limit == 5 && strstr(told.last.text, "intruder"));
	guard_log(GUARD_OVERRUN, slot, 4000001, KIND_mr, 9);
	guard_log(GUARD_KILLED, slot, 4000001, KIND_qp, 5);
	told = told_of(4000001);
	CHECK(told.count == 3 && told.last.type == EVENT_KILLED && told.last.number == 3 &&
	      strstr(told.last.text, "intruder"));
	guard_log(GUARD_REFUSED, slot, 4000002, KIND_mr_bytes, 4096);
	text = command("explain 4000002-1"); /* not asked for before */
	CHECK(strstr(text, "Refused in the kernel (guard of tenant a)") &&
		      strstr(text, "limit set tenant a mr_bytes=4097"),
	      "%s", text);
	text = command("explain 4000001-2");
	CHECK(strstr(text, "overrun") && strstr(text, "could not refuse"), "%s", text);
	text = command("explain 4000001-3");
	CHECK(strstr(text, "No honest program"), "%s", text);
	text = command("events");
	CHECK(strstr(text, "intruder: refused in the kernel: qp used 5/5, wanted 1 more, "
			   "limit of the tenant, event 4000001-1"),
	      "%s", text);
	text = command("-j events");
	CHECK(strstr(text, "\"ring\":\"kernel\""), "%s", text);
	/* Told once; also by itself; and what came too fast is told in the log. */
	CHECK(told_of(4000001).count == 3);
	guard_log(GUARD_REFUSED, slot, 4000003, KIND_qp, 5);
	samples_pass();
	for (unsigned i = 0; i < GUARD_LOG + 10; i++)
		guard_log(GUARD_REFUSED, slot, 4000004, KIND_qp, 5);
	CHECK(told_of(4000003).count == 1 && told_of(4000004).count == GUARD_LOG, "%u",
	      told_of(4000004).count);
	CHECK(strstr(collector_log(), ": 10 refusals of the guard came too fast"), "%s",
	      collector_log());
	/* One that is being written is waited for. */
	guard_log(GUARD_REFUSED, slot, 4000005, KIND_qp, 5);
	__atomic_store_n(&entries[(head->logged - 1) % GUARD_LOG].number, 0, __ATOMIC_SEQ_CST);
	CHECK(told_of(4000005).count == 0);
	__atomic_store_n(&entries[(head->logged - 1) % GUARD_LOG].number, head->logged,
			 __ATOMIC_SEQ_CST);
	CHECK(told_of(4000005).count == 1);
	/* Of nobody's slot, and of kinds that are none. */
	guard_log(GUARD_REFUSED, 77, 4000006, KIND_qp, 5);
	guard_log(GUARD_REFUSED, slot, 4000006, (enum kind)KIND_COUNT, 5);
	told = told_of(4000006);
	CHECK(told.count == 1 && !told.last.tenant[0]);
	/* Events begin anew with each collector. */
	collector_kill();
	collector_start(variables);
	CHECK(told_of(4000001).count == 0);
	guard_log(GUARD_REFUSED, slot, 4000001, KIND_qp, 5);
	CHECK(told_of(4000001).count == 1);
	collector_stop();
}

/* ---- guards that are not there */

static void absent_guards(void)
{
	struct guard_head unready = guard_usual(), newer = unready, other = unready;
	FILE *file;

	file = fopen(lsm, "we");
	if (!file || fputs("lockdown,capability,yama\n", file) < 0 || fclose(file))
		abort();
	collector_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n", variables);
	CHECK(is("a", GUARANTEE_NONE, "no rdma_monitor is loaded"), "%s", guard("a").reason);
	kernel_load(directory, MONITOR_FENTRY);
	EVENTUALLY(is("a", GUARANTEE_NONE,
				"without BPF LSM; boot it with lsm=lockdown,capability,yama,bpf"),
	      "%s", guard("a").reason);
	unlink(lsm);
	EVENTUALLY(is("a", GUARANTEE_NONE, "rdma_monitor has no guard"), "%s",
	      guard("a").reason);
	CHECK(strstr(command("guard status"), "not guarded: rdma_monitor has no guard"));
	/* It comes, is not ready, is. */
	unready.armed = 0;
	guard_load(unready);
	EVENTUALLY(is("a", GUARANTEE_NONE, "not attached it yet"), "%s",
	      guard("a").reason);
	CHECK(limit_of("/a", KIND_qp) == 5 && head->wanted);
	strcpy(head->problem, "this kernel has no BPF LSM");
	EVENTUALLY(is("a", GUARANTEE_NONE, "this kernel has no BPF LSM"));
	CHECK(!strcmp(guard(NULL).reason, "this kernel has no BPF LSM"));
	head->problem[0] = '\0';
	head->armed = 1;
	EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	CHECK(strstr(command("guard status"), "in the kernel") &&
	      strstr(command("guard status"), "by the library only: ctx") &&
	      strstr(command("doctor || true"), "tenants that the kernel guards: 1\n"));
	/* Another in its place, from the beginning; of another version, of other kinds; cut. */
	guard_log(GUARD_REFUSED, slot_of("/a"), 4000011, KIND_qp, 5);
	CHECK(told_of(4000011).count == 1);
	guard_load(guard_usual());
	EVENTUALLY(limit_of("/a", KIND_qp) == 5 && head->wanted && head->epoch == 1);
	guard_log(GUARD_REFUSED, slot_of("/a"), 4000012, KIND_qp, 5);
	CHECK(told_of(4000012).count == 1);
	newer.version++;
	guard_load(newer);
	EVENTUALLY(is("a", GUARANTEE_NONE, "another version of rdma_monitor"), "%s",
	      guard("a").reason);
	CHECK(strstr(guard("a").reason, "take it out with: rdma_monitor --unload"), "%s",
	      guard("a").reason);
	other.kinds++;
	guard_load(other);
	EVENTUALLY(is("a", GUARANTEE_NONE, "another version of rdma_monitor"));
	CHECK(!mapped() && !head->wanted, "written to nevertheless");
	guard_load(guard_usual());
	EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	CHECK(truncate(harness_path("monitor/guard_counts"), 64) == 0);
	EVENTUALLY(is("a", GUARANTEE_NONE, "guard_counts"), "%s", guard("a").reason);
	guard_load(guard_usual());
	EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	/* A line for each change, and not each second. */
	CHECK(occurrences(collector_log(), "tenant a: the guard is on, in the kernel") <= 4 &&
		      occurrences(collector_log(), "has not attached it yet") == 1,
	      "%s", collector_log());
	collector_stop();
	kernel_unload(directory);
}

/* ---- the floor */

/* The last line that a file has for a device, and how many. */
static const char *floor_of(const char *cgroup, const char *device, unsigned *ret_lines)
{
	static char last[128];
	char path[300], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path(cgroup));
	file = fopen(path, "re");
	last[0] = '\0';
	*ret_lines = 0;
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, device, strlen(device))) {
			line[strcspn(line, "\n")] = '\0';
			strcpy(last, line);
			++*ret_lines;
		}
	if (file)
		fclose(file);
	return last;
}

static bool floor_is(const char *cgroup, const char *line, unsigned lines)
{
	char device[32];
	unsigned found;

	snprintf(device, sizeof(device), "%.*s", (int)strcspn(line, " "), line);
	return !strcmp(floor_of(cgroup, device, &found), line) && found == lines;
}

static void floor_make(const char *cgroup)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path(cgroup));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		abort();
	close(fd);
}

static void floor_below_limits(void)
{
	static const char all[] =
		"pd = 1\ncq = 2\nqp = 3\nsrq = 4\nmr = 5\nmw = 6\nah = 7\nxrcd = 8\n"
		"wq = 9\nrwq_table = 10\nflow = 11\nmr_bytes = 4096\n";
	char policy[512], path[160];

	floor_make("/a");
	snprintf(path, sizeof(path), "%s/rxe0", devices);
	mkdir(path, 0755);
	snprintf(policy, sizeof(policy), "[tenant a]\nmatch = cgroup=/a\nctx = 12\n%sguard = on\n",
		 all);
	collector_fresh(policy, variables);
	/* Without a guard it is all there is. */
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=66", 1));
	CHECK(is("a", GUARANTEE_FLOOR, "no rdma_monitor is loaded") && guard("a").floor == 1);
	CHECK(strstr(command("guard status"), "rdma.max only: "));
	/* Written only where something is to be changed. */
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=66", 1));
	snprintf(path, sizeof(path), "%s/rxe1", devices);
	mkdir(path, 0755);
	EVENTUALLY(floor_is("/a", "rxe1 hca_handle=12 hca_object=66", 1));
	CHECK(collector_set("tenant a", "flow = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=max", 2));
	CHECK(collector_set("tenant a", "flow = unset\nctx = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 3));
	CHECK(collector_set("tenant a", "mode = warn") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 4) &&
	      is("a", GUARANTEE_NONE, "mode is warn"));
	CHECK(collector_set("tenant a", "mode = unset") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 5));
	/* Nothing to hold anybody to is no floor. */
	CHECK(collector_set("tenant a", "pd = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 6) &&
	      is("a", GUARANTEE_NONE, "no rdma_monitor"));
	CHECK(collector_set("tenant a", "pd = unset") == 0);
	/* With a guard it stays below it. */
	guard_load(guard_usual());
	EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	CHECK(guard("a").floor == 1);
	/* Off, also by one who did not set it; and what others set stays. */
	collector_kill();
	guard_unload();
	collector_policy("[tenant a]\nmatch = cgroup=/a\n");
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 7));
	collector_start(variables);
	CHECK(collector_set("tenant a", "guard = off") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 8));
	floor_make("/b");
	collector_stop();
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 1\n");
	collector_start(variables);
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 8));
	CHECK(floor_is("/b", "", 0), "a tenant that is not guarded");
	collector_stop();
}

/* ---- switching on */

static void guard_on_waits(void)
{
	struct guard_head unready = guard_usual();
	FILE *output;

	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\n");
	unready.armed = unready.ways = 0;
	unready.counted = 0;
	guard_load(unready);
	output = command_begin("guard on a");
	/* Until everything is attached, and what the tenant holds is counted. */
	EVENTUALLY(is("a", GUARANTEE_NONE, "not attached it yet") && guard("a").pending);
	head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	__atomic_store_n(&head->armed, 1, __ATOMIC_SEQ_CST);
	EVENTUALLY(is("a", GUARANTEE_PARTLY, "has not counted yet") && guard("a").pending);
	__atomic_store_n(&head->counted, head->epoch, __ATOMIC_SEQ_CST);
	CHECK(strstr(command_end(output, 0), "in the kernel"));
	CHECK(is("a", GUARANTEE_KERNEL, "") && !guard("a").pending);
	/* There is nothing to wait for if it cannot be had. */
	CHECK(collector_set("tenant a", "guard = off") == 0);
	strcpy(unready.problem, "this kernel has no BPF LSM");
	guard_load(unready);
	CHECK(strstr(command_end(command_begin("guard on a"), 1),
		     "nothing is guarded: this kernel has no BPF LSM"));
	unready.problem[0] = '\0';
	unready.tended_ns = 0;
	guard_load(unready);
	CHECK(strstr(command_end(command_begin("guard on a"), 1),
		     "nothing is guarded: no rdma_monitor is running"));
	CHECK(strstr(command("doctor"), "no rdma_monitor is running"));
	CHECK(collector_set("tenant a", "mode = audit") == 0);
	CHECK(strstr(command_end(command_begin("guard on a"), 1), "its mode is audit"));
	collector_stop();
}

/* ---- tables */

static void tables_full(void)
{
	const __s64 share = (PLACES - PLACES / GUARD_RESERVE) / 2;
	__u32 slot;

	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
	      "[tenant b]\nmatch = cgroup=/b\nqp = 5\nguard = on\n");
	slot = slot_of("/a");
	CHECK(is("a", GUARANTEE_KERNEL, "") && is("b", GUARANTEE_KERNEL, ""));
	/* One that has its share is told so, others are not. */
	for (unsigned table = 0; table < GUARD_TABLES; table++) {
		head->taken[table] = counts[slot].taken[table] = share;
		EVENTUALLY(is("a", GUARANTEE_PARTLY,
			      table == GUARD_OBJECTS ? "table of objects is full" :
						       "table of threads is full"));
		CHECK(is("b", GUARANTEE_KERNEL, ""));
		head->taken[table] = counts[slot].taken[table] = share - 1;
		EVENTUALLY(is("a", GUARANTEE_KERNEL, ""));
	}
	/* Where not all is known that there is, all are told. */
	head->incomplete = 1;
	EVENTUALLY(is("a", GUARANTEE_PARTLY, "no room to list all objects") &&
		   is("b", GUARANTEE_PARTLY, "no room to list all objects"));
	head->incomplete = 0;
	EVENTUALLY(is("a", GUARANTEE_KERNEL, "") && is("b", GUARANTEE_KERNEL, ""));
	/* A refusal for want of a place is an event that says so. */
	guard_log(GUARD_CROWDED, slot, 4000021, KIND_qp, 480);
	EVENTUALLY(strstr(told_of(4000021).last.text, "share of the places"));
	collector_stop();
}

/* Without a place for a cgroup the rules decide; without a rule the tenant is told. */
static void no_room_for_cgroups(void)
{
	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
	      "[tenant pods]\nmatch = cgroup=/crowd*\nqp = 5\nguard = on\n"
	      "[tenant long]\nmatch = cgroup=/[l][o][n][g][s]*\nqp = 5\nguard = on\n");
	CHECK(is("a", GUARANTEE_KERNEL, "") && is("pods", GUARANTEE_KERNEL, ""));
	CHECK(is("long", GUARANTEE_NONE, "none of its cgroups exists"), "%s", guard("long").reason);
	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (!tenants[i].cgroup) /* no cgroup has such a number here */
			tenants[i].cgroup = ~0ull - i;
	cgroup_make("/crowded");
	cgroup_make("/longs");
	EVENTUALLY(is("long", GUARANTEE_NONE, "no room for its cgroups"), "%s",
		   guard("long").reason);
	CHECK(!slot_of("/crowded") && rule_of("/crowded") && is("pods", GUARANTEE_KERNEL, ""),
	      "%s", guard("pods").reason);
	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (tenants[i].cgroup > ~0ull - GUARD_CGROUPS)
			tenants[i].cgroup = 0;
	EVENTUALLY(is("long", GUARANTEE_PARTLY, "within a second") && slot_of("/longs") &&
		   slot_of("/crowded"));
	rmdir(cgroup_path("/crowded"));
	rmdir(cgroup_path("/longs"));
	collector_stop();
}

/* All are held by what is left of others. */
static void no_slot_left(void)
{
	fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\n");
	for (unsigned slot = 1; slot < GUARD_TENANTS; slot++)
		counts[slot].used[KIND_qp] = 1;
	CHECK(strstr(command_end(command_begin("guard on a"), 1), "no room for its cgroups"));
	CHECK(is("a", GUARANTEE_NONE, "no room for its cgroups") && !slot_of("/a"), "%s",
	      guard("a").reason);
	counts[GUARD_TENANTS - 1].used[KIND_qp] = 0;
	EVENTUALLY(is("a", GUARANTEE_KERNEL, "") && slot_of("/a") == GUARD_TENANTS - 1);
	collector_stop();
}

/* ---- */

static void drive(void)
{
	snprintf(directory, sizeof(directory), "%s", harness_path("monitor"));
	snprintf(cgroups, sizeof(cgroups), "%s", harness_path("cgroups"));
	snprintf(devices, sizeof(devices), "%s", harness_path("devices"));
	snprintf(lsm, sizeof(lsm), "%s", harness_path("lsm"));
	snprintf(variables, sizeof(variables),
		 MONITOR_VARIABLE "=%s\nRDMA_COLLECTOR_CGROUPS=%s\nRDMA_COLLECTOR_DEVICES=%s\n"
				  "RDMA_COLLECTOR_LSM=%s\n",
		 directory, cgroups, devices, lsm);
	mkdir(cgroups, 0755);
	mkdir(devices, 0755);
	cgroup_make("/a");
	cgroup_make("/b");
	cases_at_once();
	RUN(switches_and_limits);
	RUN(cgroups_of_tenants);
	RUN(guard_on_waits);
	RUN(tables_full);
	RUN(no_room_for_cgroups);
	RUN(no_slot_left);
	RUN(restarts);
	RUN(restarts_with_other_tenants);
	RUN(refusals_are_told);
	RUN(numbers_of_refusals);
	RUN(absent_guards);
	RUN(floor_below_limits);
}

static int counts_write(const char *guard_directory)
{
	struct guard_counts count = { .used[KIND_qp] = 3, .refused[KIND_qp] = 2,
				      .overrun[KIND_qp] = 1 };
	char path[PATH_MAX];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "%s/guard_counts", guard_directory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	good = fd >= 0 && pwrite(fd, &count, sizeof(count), sizeof(count)) == sizeof(count);
	if (fd >= 0)
		close(fd);
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "refused", run_refused },
		{ NULL, NULL },
	};

	if (argc >= 3 && !strcmp(argv[1], "files")) {
		snprintf(directory, sizeof(directory), "%s", argv[2]);
		guard_load(guard_usual());
		if (argc > 3)
			guard_log(GUARD_REFUSED, 1, atoi(argv[3]), KIND_qp, 4);
		return 0;
	}
	if (argc >= 3 && !strcmp(argv[1], "counts"))
		return counts_write(argv[2]);
	return harness_main(argc, argv, scenarios, drive);
}
