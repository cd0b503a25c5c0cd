/* SPDX-License-Identifier: MIT */
/*
 * The property test of the guard: random programs of hostile tenants, witnesses that work inside
 * their limits, cgroups that come and go, and a judge. In moments in which all of them are frozen
 * it compares what the kernel has of each tenant's objects, by the accounting, with the limits,
 * and the accounting with the kernel's own list.
 * Usage: hostiles PROGRAMS TENANTS SEED SECONDS
 * PROGRAMS is the directory of the program hostile, TENANTS that of the tenants' cgroups: h1 to h4
 * and w1, w2, each with a cgroup 1. Prints what it did, and a line with "violation" for whatever
 * must not be; ends with 1 if there was any. An object over a limit may be there for the moment
 * until who has its file is ended: the longest is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/reader/reader.h"

enum {
	HOSTILE = 4, /* tenants */
	WORKERS = 1, /* of each; it forks */
	WITNESSES = 2,
	GROUPS = 4096, /* cgroups that ever were */
	POOL_SEND = 10,
	POOL_TAKE,
	FIRST_USER = 2000,
	PROCESSES = 8, /* of a user, with threads: two processors are to race */
	STEP_MS = 50,
	JUDGE_EVERY = 40, /* steps */
	SETTLE_MS = 20000,
	FREEZE_MS = 60000,
};

/* As the scenario's policy has them. */
static const struct {
	enum kind kind;
	__u64 most;
} limits[] = { { KIND_qp, 5 }, { KIND_cq, 6 }, { KIND_pd, 6 },		{ KIND_srq, 4 },
	       { KIND_mr, 6 }, { KIND_ah, 6 }, { KIND_mr_bytes, 65536 } };
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static const char *programs, *tenants;
static unsigned long seed;
static int pool[2];
static pid_t workers[HOSTILE][WORKERS], witnesses[WITNESSES];
static struct {
	__u64 inode;
	unsigned tenant; /* from 0: hostile ones, then witnesses */
} groups[GROUPS];
static unsigned group_count, group_number, violations, deaths, judged, slowest_ms;
static struct monitor_reader reader;

static void violation(const char *what, const char *detail, unsigned long long number)
{
	violations++;
	printf("violation: %s: %s %llu\n", what, detail, number);
	fflush(stdout);
}

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "hostiles: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned pick(unsigned bound)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % bound;
}

static unsigned long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

/* ---- cgroups */

static const char *name_of(unsigned tenant)
{
	static char name[8];

	snprintf(name, sizeof(name), "%c%u", tenant < HOSTILE ? 'h' : 'w',
		 1 + (tenant < HOSTILE ? tenant : tenant - HOSTILE));
	return name;
}

static void group_remember(const char *path, unsigned tenant)
{
	struct stat status;

	if (stat(path, &status) || group_count == GROUPS)
		give_up(path);
	groups[group_count].inode = status.st_ino;
	groups[group_count++].tenant = tenant;
}

static bool file_write(const char *directory, const char *name, const char *text)
{
	char path[256];
	ssize_t written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text));
	close(fd);
	return written == (ssize_t)strlen(text);
}

/* A new cgroup of a hostile tenant, to which one of its processes moves; an older one goes. */
static void groups_churn(void)
{
	unsigned tenant = pick(HOSTILE);
	char path[256], pid[32] = "";
	FILE *file;

	if (group_count < GROUPS) {
		snprintf(path, sizeof(path), "%s/%s/1/cgroup.procs", tenants, name_of(tenant));
		file = fopen(path, "re");
		for (unsigned skip = pick(6); file && fgets(pid, sizeof(pid), file) && skip; skip--)
			;
		if (file)
			fclose(file);
		snprintf(path, sizeof(path), "%s/%s/1/%u", tenants, name_of(tenant), group_number);
		if (pid[0] && !mkdir(path, 0755)) {
			group_remember(path, tenant);
			file_write(path, "cgroup.procs", pid);
			group_number++;
		}
	}
	if (!group_number)
		return;
	for (tenant = 0; tenant < HOSTILE; tenant++) {
		snprintf(path, sizeof(path), "%s/%s/1/%u", tenants, name_of(tenant),
			 pick(group_number));
		rmdir(path); /* not while anybody is in it */
	}
}

/* ---- processes */

static pid_t spawn(unsigned tenant, const char *what)
{
	char path[256], number[24];
	unsigned user = FIRST_USER + tenant;
	bool is_narrow = pick(3) == 0;
	pid_t pid;

	snprintf(number, sizeof(number), "%u", pick(1u << 30));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid)
		return pid;
	snprintf(path, sizeof(path), "%s/%s/1", tenants, name_of(tenant));
	if (!file_write(path, "cgroup.procs", "0") ||
	    setrlimit(RLIMIT_NPROC, &(struct rlimit){ PROCESSES, PROCESSES }) ||
	    setgroups(0, NULL) || setgid(user) || setuid(user) || dup2(pool[0], POOL_SEND) < 0 ||
	    dup2(pool[1], POOL_TAKE) < 0)
		give_up("becoming a tenant");
	snprintf(path, sizeof(path), "%s/hostile%s", programs, is_narrow ? "32" : "");
	if (access(path, X_OK))
		snprintf(path, sizeof(path), "%s/hostile", programs);
	execl(path, path, what, number, strcmp(what, "attack") ? NULL : "0", NULL);
	give_up(path);
}

/* Whoever was killed is followed by another; a witness must not have ended. */
static void processes_tend(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned i = 0; i < WITNESSES; i++)
			if (pid == witnesses[i]) {
				violation("a witness has ended, with status", name_of(HOSTILE + i),
					  (unsigned)status);
				witnesses[i] = spawn(HOSTILE + i, "witness");
			}
		for (unsigned i = 0; i < HOSTILE; i++)
			for (unsigned k = 0; k < WORKERS; k++)
				if (pid == workers[i][k]) {
					deaths += WIFSIGNALED(status);
					workers[i][k] = spawn(i, "attack");
				}
	}
}

/* Files on their way from one to another belong to nobody. */
static void pool_drain(void)
{
	char byte;

	while (recv(pool[1], &byte, 1, MSG_DONTWAIT) == 1)
		;
}

/* ---- the judge */

/* What the kernel lists, on all devices. */
static void kernel_list(unsigned long long ret_sum[KIND_COUNT])
{
	FILE *list = popen("rdma resource show", "re");
	char word[64], kind_name[64] = "";
	unsigned long long number;

	memset(ret_sum, 0, KIND_COUNT * sizeof(*ret_sum));
	while (list && fscanf(list, "%63s", word) == 1) {
		if (sscanf(word, "%llu", &number) == 1 && !strchr(word, ':'))
			for (unsigned kind = 0; kind < KIND_COUNT; kind++)
				if (!strcmp(kind_rows[kind].name, kind_name))
					ret_sum[kind] += number;
		snprintf(kind_name, sizeof(kind_name), "%s", word);
	}
	if (!list || pclose(list))
		give_up("rdma resource show");
}

static unsigned tenant_of(__u64 inode)
{
	for (unsigned i = 0; i < group_count; i++)
		if (groups[i].inode == inode)
			return groups[i].tenant;
	return HOSTILE + WITNESSES;
}

/* Whether no tenant is over a limit, by the accounting; told otherwise. */
static bool is_within(bool tell)
{
	static unsigned long long sums[HOSTILE + WITNESSES + 1][KIND_COUNT];
	struct monitor_row row;
	unsigned cursor = 0;
	bool within = true;

	memset(sums, 0, sizeof(sums));
	while (monitor_reader_next(&reader, &cursor, &row))
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			sums[tenant_of(row.cgroup)][kind] += monitor_row_count(&row, kind);
	for (unsigned tenant = 0; tenant < HOSTILE + WITNESSES; tenant++)
		for (unsigned i = 0; i < LIMITS; i++) {
			if (sums[tenant][limits[i].kind] <= limits[i].most)
				continue;
			within = false;
			if (tell)
				violation(name_of(tenant), kind_rows[limits[i].kind].name,
					  sums[tenant][limits[i].kind]);
		}
	return within;
}

/* Whether the accounting says of all together what the kernel lists, beyond what there was. */
static bool is_listed(const unsigned long long before[KIND_COUNT], bool tell)
{
	static const enum kind listed[] = { KIND_pd, KIND_cq, KIND_qp, KIND_mr };
	unsigned long long list[KIND_COUNT], sum[KIND_COUNT] = { 0 };
	struct monitor_row row;
	unsigned cursor = 0;
	bool same = true;

	kernel_list(list);
	while (monitor_reader_next(&reader, &cursor, &row))
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			sum[kind] += monitor_row_count(&row, kind);
	for (unsigned i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
		if (sum[listed[i]] == list[listed[i]] - before[listed[i]])
			continue;
		same = false;
		if (tell)
			violation("the accounting differs from the kernel's list",
				  kind_rows[listed[i]].name, list[listed[i]]);
	}
	return same;
}

static bool is_frozen(void)
{
	char path[256], line[64];
	bool frozen = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.events", tenants);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		frozen |= !strcmp(line, "frozen 1\n");
	if (file)
		fclose(file);
	return frozen;
}

static void judge(const unsigned long long before[KIND_COUNT])
{
	unsigned long long begin = now_ms();

	if (!file_write(tenants, "cgroup.freeze", "1"))
		give_up("freezing");
	while (!is_frozen()) {
		if (now_ms() - begin > FREEZE_MS) {
			violation("the tenants", "cannot be frozen in ms", FREEZE_MS);
			break;
		}
		usleep(5000);
	}
	begin = now_ms();
	for (;;) {
		bool late = now_ms() - begin > SETTLE_MS;

		pool_drain();
		if ((is_within(late) && is_listed(before, late)) || late)
			break;
		usleep(20000);
	}
	if (now_ms() - begin > slowest_ms)
		slowest_ms = (unsigned)(now_ms() - begin);
	judged++;
	file_write(tenants, "cgroup.freeze", "0");
}

/* ---- */

static void begin_all(void)
{
	char path[256], problem[PROBLEM_SIZE];

	if (monitor_reader_open(&reader, monitor_directory(), problem) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pool))
		give_up("the accounting");
	for (unsigned tenant = 0; tenant < HOSTILE + WITNESSES; tenant++) {
		snprintf(path, sizeof(path), "%s/%s/1", tenants, name_of(tenant));
		group_remember(path, tenant);
	}
	for (unsigned i = 0; i < WITNESSES; i++)
		witnesses[i] = spawn(HOSTILE + i, "witness");
	for (unsigned i = 0; i < HOSTILE; i++)
		for (unsigned k = 0; k < WORKERS; k++)
			workers[i][k] = spawn(i, "attack");
}

static void end_all(void)
{
	char path[256];
	int status;

	for (unsigned i = 0; i < HOSTILE; i++) {
		snprintf(path, sizeof(path), "%s/%s", tenants, name_of(i));
		file_write(path, "cgroup.kill", "1");
	}
	for (unsigned i = 0; i < WITNESSES; i++) {
		kill(witnesses[i], SIGTERM);
		if (waitpid(witnesses[i], &status, 0) != witnesses[i] || status)
			violation("a witness has failed, with status", name_of(HOSTILE + i),
				  (unsigned)status);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	pool_drain();
}

int main(int argc, char **argv)
{
	unsigned long long before[KIND_COUNT], until;

	if (argc != 5) {
		fprintf(stderr, "usage: hostiles PROGRAMS TENANTS SEED SECONDS\n");
		return 2;
	}
	programs = argv[1];
	tenants = argv[2];
	seed = strtoul(argv[3], NULL, 10);
	printf("seed %lu\n", seed);
	kernel_list(before);
	until = now_ms() + 1000 * strtoull(argv[4], NULL, 10);
	begin_all();
	for (unsigned step = 1; now_ms() < until && !violations; step++) {
		processes_tend();
		groups_churn();
		usleep(STEP_MS * 1000);
		if (step % JUDGE_EVERY == 0)
			judge(before);
	}
	judge(before);
	end_all();
	printf("judged %u deaths %u cgroups %u settled within %u ms violations %u\n", judged,
	       deaths, group_count, slowest_ms, violations);
	return violations ? 1 : 0;
}
