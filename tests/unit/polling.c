/* SPDX-License-Identifier: MIT */
/*
 * The monitor without BPF: what rows become of lists of objects, as readers of the files see them.
 * Needs no device.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "monitor/polling/netlink.h"
#include "monitor/polling/polling.h"
#include "monitor/reader/reader.h"

/* No process has such a number: Linux ends at 4 million. */
enum { STRANGER = 0x40000000 };

static char problem[PROBLEM_SIZE];

static struct netlink_object object(__u32 pid, __u32 device, __u32 counter, __u32 number,
				    __u64 size)
{
	struct netlink_object made = { .pid = pid,
				       .device = device,
				       .counter = counter,
				       .number = number,
				       .size = size,
				       .parent_counter = MONITOR_COUNTERS };

	snprintf(made.device_name, sizeof(made.device_name), "rxe%u", device);
	return made;
}

/* Polling in a directory of its own, and a reader of it. */
struct bench {
	const char *directory;
	struct polling *polling;
	struct monitor_reader reader;
};

static bool bench_open(struct bench *bench, const char *name)
{
	bench->directory = strdup(harness_path(name));
	if (!CHECK(polling_open(&bench->polling, bench->directory, problem) == 0,
		   "%s", problem))
		return false;
	return CHECK(monitor_reader_open(&bench->reader, bench->directory, problem) == 0,
		     "%s", problem);
}

static void bench_close(struct bench *bench)
{
	monitor_reader_close(&bench->reader);
	polling_close(bench->polling, true);
	CHECK(rmdir(bench->directory) == 0, "something was left in %s", bench->directory);
	free((char *)bench->directory);
}

static unsigned rows_used(const struct bench *bench)
{
	struct monitor_row row;
	unsigned cursor = 0, used_rows = 0;

	while (monitor_reader_next(&bench->reader, &cursor, &row))
		used_rows++;
	return used_rows;
}

/* The row of a process on a device; its place in the table, or -1. */
static int row_find(const struct bench *bench, __u32 pid, __u32 device, struct monitor_row *ret_row)
{
	unsigned cursor = 0;

	while (monitor_reader_next(&bench->reader, &cursor, ret_row))
		if (ret_row->pid == pid && ret_row->device == device)
			return (int)cursor - 1;
	memset(ret_row, 0, sizeof(*ret_row));
	return -1;
}

/* Copies, since an update brings them into another order. */
static void update(struct bench *bench, const struct netlink_object *objects, size_t count)
{
	struct netlink_object *copy = malloc(count * sizeof(*copy) + 1);

	if (count)
		memcpy(copy, objects, count * sizeof(*copy));
	CHECK(polling_update(bench->polling, copy, count, 5) == 0);
	free(copy);
}

static void files(void)
{
	char path[160];
	struct stat status;
	struct bench bench, second;
	const char *deep;

	umask(077);
	if (!bench_open(&bench, "run/rdma_intercept/monitor"))
		return;
	deep = bench.directory;
	snprintf(path, sizeof(path), "%s/..", deep);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0755, "%o", status.st_mode);
	CHECK(stat(deep, &status) == 0 && (status.st_mode & 07777) == 0755, "%o", status.st_mode);
	snprintf(path, sizeof(path), "%s/head", deep);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0644 &&
	      status.st_size == sizeof(struct monitor_head));
	snprintf(path, sizeof(path), "%s/rows", deep);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0644 &&
	      status.st_size == MONITOR_ROWS * sizeof(struct monitor_row));
	CHECK(bench.reader.head->mode == MONITOR_NETLINK);
	CHECK(bench.reader.head->load != 0);
	CHECK(bench.reader.head->seeded_ns == 0);
	update(&bench, NULL, 0);
	CHECK(bench.reader.head->seeded_ns != 0);
	CHECK(bench.reader.head->observed == 5);
	CHECK(rows_used(&bench) == 0);

	/* Another run takes the place of this one, which notices and leaves its files alone. */
	CHECK(monitor_reader_is_current(&bench.reader, deep));
	if (bench_open(&second, "run/rdma_intercept/monitor")) {
		CHECK(second.reader.head->load != bench.reader.head->load);
		CHECK(!monitor_reader_is_current(&bench.reader, deep));
		CHECK(polling_step(bench.polling, problem) == -ESTALE);
		monitor_reader_close(&bench.reader);
		polling_close(bench.polling, true);
		CHECK(monitor_reader_is_current(&second.reader, deep));
		free((char *)bench.directory);
		bench = second;
	}
	bench_close(&bench);
	umask(022);
}

static void bad_directories(void)
{
	struct polling *polling = NULL;
	const char *path = strdup(harness_path("open"));
	int fd;

	CHECK(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0);
	problem[0] = '\0';
	CHECK(polling_open(&polling, path, problem) == -EPERM);
	CHECK(strstr(problem, path), "%s", problem);
	CHECK(rmdir(path) == 0);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	CHECK(polling_open(&polling, path, problem) == -ENOTDIR);
	unlink(path);
	CHECK(polling_open(&polling, "/proc/self/none/monitor", problem) ==
	      -ENOENT);
	CHECK(strstr(problem, "/proc/self/none/monitor"), "%s", problem);
	CHECK(polling == NULL);
	free((char *)path);
}

/* A process that lives: who it is, what it holds, what it has held. */
static void own_process(void)
{
	__u32 me = (__u32)getpid();
	struct netlink_object held[] = {
		object(me, 0, KIND_ctx, 1, 0),	   object(me, 0, KIND_mr, 7, 4096),
		object(me, 0, KIND_mr, 8, 8192),   object(me, 0, KIND_cq, 3, 63),
		object(me, 0, KIND_qp, 17, 0),	   object(me, 1, KIND_pd, 1, 0),
		object(me, 0, KIND_cm_id, 900, 0),
	};
	char text[1024], comm[64], *at;
	unsigned long long ticks = 0;
	struct monitor_row row;
	struct bench bench;
	FILE *file;
	int place;

	if (!bench_open(&bench, "own"))
		return;
	update(&bench, held, 7);
	CHECK(rows_used(&bench) == 2);
	CHECK(bench.reader.head->seeded == 7);
	place = row_find(&bench, me, 0, &row);
	CHECK(place > 0);
	CHECK(row.live == 6);
	CHECK(monitor_row_count(&row, KIND_ctx) == 1);
	CHECK(monitor_row_count(&row, KIND_mr) == 2);
	CHECK(monitor_row_count(&row, KIND_mr_bytes) == 12288);
	CHECK(monitor_row_count(&row, KIND_cq) == 1);
	CHECK(monitor_row_count(&row, KIND_cqe) == 63);
	CHECK(monitor_row_count(&row, KIND_qp) == 1);
	CHECK(monitor_row_count(&row, KIND_cm_id) == 1);
	CHECK(monitor_row_count(&row, KIND_pd) == 0);
	CHECK(!strcmp(row.device_name, "rxe0"));
	CHECK(row.uid == getuid());
	CHECK(!row.exited);

	file = fopen("/proc/self/stat", "r");
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	at = strrchr(text, ')') + 3;
	for (unsigned field = 4; field <= 22; field++)
		ticks = strtoull(at, &at, 10);
	CHECK(monitor_row_start(&row) == ticks);
	file = fopen("/proc/self/comm", "r");
	CHECK(fgets(comm, sizeof(comm), file) != NULL);
	fclose(file);
	comm[strcspn(comm, "\n")] = '\0';
	CHECK(!strcmp(row.command, comm), "%s", row.command);
	CHECK(row_find(&bench, me, 1, &row) > 0 && !strcmp(row.device_name, "rxe1"));
	CHECK(row.nth == 0 || row.nth == 1);

	/* One region fewer, a larger queue, a smaller region, another queue pair. */
	held[1] = object(me, 0, KIND_qp, 18, 0);
	held[2].size = 4096;
	held[3].size = 127;
	update(&bench, held, 7);
	CHECK(row_find(&bench, me, 0, &row) == place);
	CHECK(row.live == 6);
	CHECK(row.made[KIND_mr] == 2 && row.gone[KIND_mr] == 1);
	CHECK(row.made[KIND_mr_bytes] == 12288 && row.gone[KIND_mr_bytes] == 8192);
	CHECK(row.made[KIND_cqe] == 127 && row.gone[KIND_cqe] == 0);
	CHECK(row.made[KIND_qp] == 2 && row.gone[KIND_qp] == 0);

	/* The same list twice over is the same list. */
	struct netlink_object twice[] = { held[4], held[5], held[4], held[5], held[4] };

	update(&bench, twice, 5);
	CHECK(row_find(&bench, me, 0, &row) == place && row.live == 1);

	/* With nothing left the row stays, since its process lives. */
	update(&bench, NULL, 0);
	CHECK(rows_used(&bench) == 2);
	CHECK(row_find(&bench, me, 0, &row) == place && row.live == 0 && !row.exited);
	CHECK(row.made[KIND_qp] == 2 && row.gone[KIND_qp] == 2);
	CHECK(bench.reader.head->lost_rows == 0);
	bench_close(&bench);
}

static __u32 thread_id;
static int thread_pipe[2];

static void *thread_run(void *unused)
{
	char byte;

	__atomic_store_n(&thread_id, (__u32)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return read(thread_pipe[0], &byte, 1) == 1 ? &thread_id : NULL;
}

/* The kernel names the thread. The row is its process's, also when the thread has ended. */
static void threads(void)
{
	__u32 me = (__u32)getpid();
	struct netlink_object made;
	struct monitor_row row;
	struct bench bench;
	pthread_t thread;

	if (!bench_open(&bench, "threads"))
		return;
	CHECK(pipe(thread_pipe) == 0 && pthread_create(&thread, NULL, thread_run, NULL) == 0);
	EVENTUALLY(__atomic_load_n(&thread_id, __ATOMIC_ACQUIRE));
	made = object(thread_id, 0, KIND_qp, 5, 0);
	CHECK(thread_id != me);
	update(&bench, &made, 1);
	CHECK(row_find(&bench, me, 0, &row) > 0 && row.live == 1);
	CHECK(rows_used(&bench) == 1);
	CHECK(write(thread_pipe[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
	made.pid = 0;
	update(&bench, &made, 1);
	CHECK(row_find(&bench, me, 0, &row) > 0 && row.live == 1 && !row.exited);
	CHECK(rows_used(&bench) == 1);
	close(thread_pipe[0]);
	close(thread_pipe[1]);
	bench_close(&bench);
}

/* A process that ends: its row stays while somebody holds what it made. */
static void heirs(void)
{
	struct netlink_object made[2];
	struct monitor_row row;
	struct bench bench;
	__u64 generation;
	int lifeline[2], place;
	char byte;
	pid_t child;

	if (!bench_open(&bench, "heirs"))
		return;
	CHECK(pipe(lifeline) == 0);
	child = family_fork();
	if (child == 0) {
		close(lifeline[1]);
		_exit(read(lifeline[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(lifeline[0]);
	made[0] = object((__u32)child, 0, KIND_qp, 5, 0);
	made[1] = object((__u32)child, 0, KIND_mr, 5, 100);
	update(&bench, made, 2);
	place = row_find(&bench, (__u32)child, 0, &row);
	CHECK(place > 0 && row.live == 2 && !row.exited);
	generation = row.generation;
	close(lifeline[1]);

	/* A zombie holds no descriptors. */
	siginfo_t ended;

	CHECK(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) == 0);
	made[0].pid = made[1].pid = 0;
	update(&bench, made, 2);
	CHECK(row_find(&bench, (__u32)child, 0, &row) == place && row.live == 2 && row.exited);
	CHECK(waitpid(child, NULL, 0) == child);
	update(&bench, made, 1);
	CHECK(row_find(&bench, (__u32)child, 0, &row) == place && row.live == 1 && row.exited);
	CHECK(row.generation == generation);
	CHECK(row.made[KIND_mr_bytes] == 100 && row.gone[KIND_mr_bytes] == 100);

	/* One that nobody has seen being made has no row of its own. */
	made[1].number = 6;
	update(&bench, made, 2);
	CHECK(row_find(&bench, 0, MONITOR_NO_DEVICE, &row) == 0 && row.live == 1);
	CHECK(row.uid == (__u32)-1 && row.device_name[0] == '\0' && row.command[0] == '\0');
	CHECK(bench.reader.head->lost_rows == 1);
	update(&bench, made, 2);
	CHECK(bench.reader.head->lost_rows == 1);

	update(&bench, NULL, 0);
	CHECK(rows_used(&bench) == 0);
	CHECK(bench.reader.rows[place].generation == generation + 1);

	/* The row is used again, for somebody else. */
	made[0] = object(STRANGER, 1, KIND_pd, 1, 0);
	update(&bench, made, 1);
	CHECK(row_find(&bench, STRANGER, 1, &row) == place);
	CHECK(row.generation == generation + 2 && row.made[KIND_mr] == 0 && row.live == 1);
	CHECK(!strcmp(row.device_name, "rxe1"));
	bench_close(&bench);
}

/* Their makers had ended before the first look: threads, or a whole process. */
static void late(void)
{
	__u32 me = (__u32)getpid();
	struct netlink_object held[] = {
		object(0, 0, KIND_mr, 9, 64),  object(0, 0, KIND_pd, 4, 0),
		object(me, 0, KIND_ctx, 2, 0), object(0, 0, KIND_mr, 3, 16),
		object(0, 1, KIND_mr, 3, 32),
	};
	struct monitor_row row;
	struct bench bench;

	if (!bench_open(&bench, "late"))
		return;
	held[1].parent_counter = KIND_ctx;
	held[1].parent = 2;
	for (unsigned i = 0; i < 5; i++)
		if (held[i].counter == KIND_mr)
			held[i].parent_counter = KIND_pd;
	held[0].parent = 4;
	held[3].parent = 5;
	held[4].parent = 4; /* on another device */
	update(&bench, held, 5);
	CHECK(row_find(&bench, me, 0, &row) > 0 && row.live == 3);
	CHECK(monitor_row_count(&row, KIND_mr_bytes) == 64);
	CHECK(row_find(&bench, 0, MONITOR_NO_DEVICE, &row) == 0 && row.live == 2);
	CHECK(monitor_row_count(&row, KIND_mr_bytes) == 48);
	CHECK(bench.reader.head->lost_rows == 2);
	bench_close(&bench);
}

static void full(void)
{
	enum { MANY = MONITOR_ROWS + 10 };
	struct netlink_object *many = malloc(MANY * sizeof(*many));
	struct monitor_row row;
	struct bench bench;

	if (!bench_open(&bench, "full"))
		return;
	for (unsigned i = 0; i < MANY; i++)
		many[i] = object(STRANGER + i, 0, KIND_mr, i, 10);
	update(&bench, many, MANY);
	CHECK(rows_used(&bench) == MONITOR_ROWS);
	CHECK(row_find(&bench, 0, MONITOR_NO_DEVICE, &row) == 0);
	/* All rows but the first were free. */
	CHECK(row.live == 11 && monitor_row_count(&row, KIND_mr_bytes) == 110, "%lld",
	      (long long)row.live);
	CHECK(bench.reader.head->lost_rows == 11);

	/* With room again they get rows. */
	update(&bench, many + 20, MANY - 20);
	CHECK(row_find(&bench, 0, MONITOR_NO_DEVICE, &row) == 0 && row.live == 11);
	update(&bench, many + 20, MANY - 20);
	CHECK(row_find(&bench, 0, MONITOR_NO_DEVICE, &row) < 0);
	CHECK(rows_used(&bench) == MANY - 20);
	CHECK(bench.reader.head->lost_rows == 11);
	update(&bench, NULL, 0);
	CHECK(rows_used(&bench) == 0);
	free(many);
	bench_close(&bench);
}

static bool racing;
static unsigned long copies;

/* Rows come and go; a copy is of one owner, with what it holds. */
static void *race(void *closure)
{
	const struct bench *bench = closure;
	struct monitor_row row;
	char name[16];

	while (__atomic_load_n(&racing, __ATOMIC_RELAXED)) {
		unsigned cursor = 0;

		while (monitor_reader_next(&bench->reader, &cursor, &row)) {
			snprintf(name, sizeof(name), "rxe%u", row.device);
			CHECK(row.pid == STRANGER + row.device && !strcmp(row.device_name, name),
			      "%s of %u", row.device_name, row.pid - STRANGER);
			CHECK(row.made[KIND_mr] == 1 && row.made[KIND_mr_bytes] == row.device + 1);
			__atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void races(void)
{
	enum { COPIES_LEAST = 1000, UPDATES_MOST = 100000 };
	struct bench bench;
	pthread_t thread;
	__u32 updates;

	if (!bench_open(&bench, "races"))
		return;
	racing = true;
	copies = 0;
	CHECK(pthread_create(&thread, NULL, race, &bench) == 0);
	for (updates = 0; updates < UPDATES_MOST; updates++) {
		struct netlink_object one = object(STRANGER + updates % 7, updates % 7, KIND_mr,
						   updates, updates % 7 + 1);

		update(&bench, &one, 1);
		if (__atomic_load_n(&copies, __ATOMIC_RELAXED) >= COPIES_LEAST)
			break;
	}
	__atomic_store_n(&racing, false, __ATOMIC_RELAXED);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(copies >= COPIES_LEAST, "%lu copies in %u updates", copies, updates);
	printf("%lu copies in %u updates\n", copies, updates);
	bench_close(&bench);
}

static void driver(void)
{
	RUN(files);
	RUN(bad_directories);
	RUN(own_process);
	RUN(threads);
	RUN(heirs);
	RUN(late);
	RUN(full);
	RUN(races);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
