/* SPDX-License-Identifier: MIT */
/* The kernel's counts, joined with the books; see truth.h. */
#include "collector/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/collector.h"
#include "collector/drift.h"
#include "collector/grants.h"
#include "collector/subject.h"
#include "ledger/identity.h"

#define LIBRARY "librdma_intercept"
#define MAPS_PAUSE_NS 10000000000ull

enum {
	BUCKETS = 4096,
	MAPS_MS = 100,	     /* for that list to be read */
	MAPS_MOST = 4 << 20, /* bytes of one process's list of mappings that are looked at */
};

/* Sums are as old as this at most when somebody looks. */
#define FRESH_NS 100000000u
/* New processes are looked up for so long at once: others wait for us. */
#define JUDGING_NS 50000000u
/* Who has ended and still has objects for so long has left them to somebody. */
#define ABSENT_NS 2000000000u

/* The inode of the first pid namespace, the same on every Linux. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

/* What one process has on one device: a row of the monitor's. */
struct truth_part {
	uint32_t next; /* of the same process */
	uint32_t row;
	uint32_t device;
	uint64_t kernel[KIND_COUNT];
};

struct truth_sample {
	unsigned processes, parts;
	uint64_t unowned[KIND_COUNT]; /* of processes for which the monitor had no row left */
	uint32_t bucket[BUCKETS];
	struct truth_process process[MONITOR_ROWS];
	struct truth_part part[MONITOR_ROWS];
};

/* ---- the monitor */

bool truth_is_exact(const struct truth *truth)
{
	return truth->mode == MONITOR_FENTRY || truth->mode == MONITOR_KPROBE;
}

bool truth_is_complete(const struct truth *truth)
{
	const struct monitor_head *head = truth->reader.head;

	return truth_is_exact(truth) && __atomic_load_n(&head->seeded_ns, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&head->lost_objects, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&head->lost_rows, __ATOMIC_RELAXED);
}

uint64_t truth_observed(const struct truth *truth)
{
	uint64_t observed = truth->reader.head ? monitor_reader_observed(&truth->reader) : 0;

	return observed & ((1ull << KIND_COUNT) - 1);
}

static int memory_take(struct truth *truth)
{
	if (!truth->now)
		truth->now = calloc(1, sizeof(*truth->now));
	if (!truth->spare)
		truth->spare = calloc(1, sizeof(*truth->spare));
	if (!truth->member)
		truth->member = calloc(BOOKS_MEMBERS, sizeof(*truth->member));
	return truth->now && truth->spare && truth->member ? 0 : -ENOMEM;
}

static void sample_clear(struct truth_sample *sample)
{
	sample->processes = sample->parts = 0;
	memset(sample->unowned, 0, sizeof(sample->unowned));
	memset(sample->bucket, 0xff, sizeof(sample->bucket));
}

/* What another monitor, or none, has counted says nothing any more. */
static void forget(struct truth *truth)
{
	if (truth->reader.head)
		monitor_reader_close(&truth->reader);
	truth->reader = (struct monitor_reader){ NULL, NULL };
	truth->mode = MONITOR_NONE;
	truth->taken_ns = 0;
	if (truth->now)
		sample_clear(truth->now);
	free(truth->member);
	truth->member = NULL;
}

void truth_close(struct truth *truth)
{
	forget(truth);
	free(truth->now);
	free(truth->spare);
	*truth = (struct truth){ .looked = false };
}

/* A file that was cut while we have it mapped would be our SIGBUS. Maps cannot be. */
static bool rows_are_whole(const char *directory)
{
	char path[PATH_MAX + 8];
	struct statfs where;
	struct stat status;

	snprintf(path, sizeof(path), "%s/rows", directory);
	if (statfs(path, &where) || stat(path, &status))
		return false;
	return where.f_type == BPF_FS_MAGIC ||
	       (size_t)status.st_size >= MONITOR_ROWS * sizeof(struct monitor_row);
}

/* Programs in the kernel count by the numbers that processes have on the host. */
static bool numbers_are_ours(const char *directory)
{
	struct stat status;

	return strcmp(directory, MONITOR_DIRECTORY) || stat("/proc/self/ns/pid", &status) ||
	       status.st_ino == FIRST_PID_NAMESPACE;
}

/* Opens what is there; 0, or -errno with a sentence. */
static int monitor_open(struct truth *truth, char problem[TRUTH_PROBLEM])
{
	int result = monitor_reader_open(&truth->reader, truth->directory, problem, TRUTH_PROBLEM);

	if (result < 0)
		return result;
	truth->mode = truth->reader.head->mode;
	if (!numbers_are_ours(truth->directory)) {
		snprintf(problem, TRUTH_PROBLEM,
			 "%.100s: counts processes of the host, and the collector is in a pid "
			 "namespace of its own",
			 truth->directory);
		result = -EXDEV;
	} else if (truth->mode == MONITOR_NONE || truth->mode > MONITOR_NETLINK) {
		snprintf(problem, TRUTH_PROBLEM,
			 "%.100s: rdma_monitor is there and watches nothing", truth->directory);
		result = -ENODATA;
	} else if (monitor_reader_is_stale(&truth->reader)) {
		snprintf(problem, TRUTH_PROBLEM,
			 "%.100s: the rdma_monitor that counted, by %s, has ended",
			 truth->directory, monitor_mode_names[truth->mode]);
		result = -ESTALE;
	} else {
		result = memory_take(truth);
		if (result < 0)
			snprintf(problem, TRUTH_PROBLEM, "no memory for what the monitor counts");
	}
	if (result < 0)
		forget(truth);
	return result;
}

/* Each load is another one. What is new is said in the log, once. */
static void monitor_find(struct collector *collector)
{
	struct truth *truth = &collector->truth;
	char problem[TRUTH_PROBLEM] = "";
	int result;

	truth->looked = true;
	if (truth->reader.head && rows_are_whole(truth->directory) &&
	    !strcmp(truth->directory, monitor_directory()) &&
	    monitor_reader_is_current(&truth->reader, truth->directory) &&
	    !monitor_reader_is_stale(&truth->reader))
		return;
	forget(truth);
	snprintf(truth->directory, sizeof(truth->directory), "%s", monitor_directory());
	result = monitor_open(truth, problem);
	if (result == 0)
		log_write(&collector->log, LOG_INFO, "%s: the kernel is watched by %s",
			  truth->directory, monitor_mode_names[truth->mode]);
	else if (strcmp(problem, truth->problem))
		log_write(&collector->log, result == -ENOENT ? LOG_INFO : LOG_WARN, "%s", problem);
	memcpy(truth->problem, problem, sizeof(problem));
}

void truth_describe(const struct collector *collector, struct proto_pong *pong)
{
	const struct truth *truth = &collector->truth;
	const struct monitor_head *head = truth->reader.head;

	snprintf(pong->monitor, sizeof(pong->monitor), "%s", monitor_mode_names[truth->mode]);
	snprintf(pong->monitor_problem, sizeof(pong->monitor_problem), "%s", truth->problem);
	pong->uncovered = collector->books.host.uncovered;
	pong->drifting = collector->books.host.drifting;
	pong->observed = truth_observed(truth);
	if (!head)
		return;
	pong->lost_objects = __atomic_load_n(&head->lost_objects, __ATOMIC_RELAXED);
	pong->lost_rows = __atomic_load_n(&head->lost_rows, __ATOMIC_RELAXED);
}

/* ---- a sample: the rows, by process */

static uint32_t *bucket_of(struct truth_sample *sample, pid_t pid, uint64_t start)
{
	return &sample->bucket[((uint64_t)pid * 2654435761u ^ start) % BUCKETS];
}

static struct truth_process *process_find(struct truth_sample *sample, pid_t pid, uint64_t start)
{
	uint32_t at = *bucket_of(sample, pid, start);

	while (at != UINT32_MAX &&
	       (sample->process[at].pid != pid || sample->process[at].start != start))
		at = sample->process[at].next;
	return at == UINT32_MAX ? NULL : &sample->process[at];
}

/* One that was there before keeps what was found out about it. */
static struct truth_process *process_add(struct truth_sample *sample, struct truth_sample *before,
					 const struct monitor_row *row)
{
	uint64_t start = monitor_row_start(row);
	struct truth_process *process = &sample->process[sample->processes],
			     *old = process_find(before, (pid_t)row->pid, start);
	uint32_t *bucket = bucket_of(sample, (pid_t)row->pid, start);

	*process = old ? *old :
			 (struct truth_process){ .start = start,
						 .pid = (pid_t)row->pid,
						 .uid = row->uid };
	memcpy(process->command, row->command, sizeof(process->command));
	process->command[sizeof(process->command) - 1] = '\0';
	process->holds = process->driver = false;
	memset(process->kernel, 0, sizeof(process->kernel));
	memset(process->moves, 0, sizeof(process->moves));
	process->parts = UINT32_MAX;
	process->next = *bucket;
	*bucket = sample->processes++;
	return process;
}

static void process_count(struct truth_process *process, const struct monitor_row *row)
{
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		process->holds |= monitor_row_count(row, i) != 0;
	process->driver |= monitor_row_count(row, MONITOR_driver) != 0;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		process->kernel[kind] += monitor_row_count(row, kind);
		process->moves[kind] += row->made[kind] + row->gone[kind];
	}
}

static unsigned device_of(struct collector *collector, struct monitor_row *row)
{
	row->device_name[sizeof(row->device_name) - 1] = '\0';
	return row->device == MONITOR_NO_DEVICE ? LEDGER_NAMELESS :
						  control_device(collector, row->device_name);
}

static void part_add(struct collector *collector, struct truth_sample *sample,
		     struct truth_process *process, struct monitor_row *row, unsigned number)
{
	struct truth_part *part = &sample->part[sample->parts];

	*part = (struct truth_part){ .next = process->parts,
				     .row = number,
				     .device = device_of(collector, row) };
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		part->kernel[kind] = monitor_row_count(row, kind);
	process->parts = sample->parts++;
}

/* Reads all rows. The sample before gives its memory to the next one. */
static void sample_take(struct collector *collector)
{
	struct truth *truth = &collector->truth;
	struct truth_sample *sample = truth->spare, *before = truth->now;
	struct truth_process *process;
	struct monitor_row row;
	unsigned cursor = 0;

	truth->taken_ns = clock_now_ns();
	if (!before->processes)
		sample_clear(before);
	sample_clear(sample);
	while (monitor_reader_next(&truth->reader, &cursor, &row)) {
		/* Where not even the time of the start is known, the number may be anybody's. */
		if (!row.pid || !row.start_ns) {
			for (unsigned kind = 0; kind < KIND_COUNT; kind++)
				sample->unowned[kind] += monitor_row_count(&row, kind);
			continue;
		}
		process = process_find(sample, (pid_t)row.pid, monitor_row_start(&row));
		if (!process) {
			int member;

			process = process_add(sample, before, &row);
			member = members_of_identity(&collector->members, process->pid,
						     process->start);
			process->member = member < 0 ? BOOKS_NOBODY : (uint32_t)member;
		}
		process_count(process, &row);
		part_add(collector, sample, process, &row, cursor - 1);
	}
	truth->now = sample;
	truth->spare = before;
}

const struct truth_process *truth_of_member(const struct collector *collector, unsigned member)
{
	const struct book_member *row = &collector->books.file->member[member];
	const struct truth *truth = &collector->truth;

	return truth->taken_ns ? process_find(truth->now, row->pid, row->start) : NULL;
}

uint32_t truth_devices(const struct truth *truth, const struct truth_process *process,
		       uint64_t ret_kernel[LEDGER_DEVICES][KIND_COUNT])
{
	uint32_t found = 0;

	for (uint32_t at = process->parts; at != UINT32_MAX; at = truth->now->part[at].next) {
		const struct truth_part *part = &truth->now->part[at];
		uint64_t *sum = ret_kernel[part->device];

		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			sum[kind] =
				(found >> part->device & 1 ? sum[kind] : 0) + part->kernel[kind];
		found |= 1u << part->device;
	}
	return found;
}

void truth_look_again(const struct truth *truth, const struct truth_process *process,
		      struct truth_process *ret_process)
{
	*ret_process = (struct truth_process){ .parts = UINT32_MAX };
	for (uint32_t at = process ? process->parts : UINT32_MAX; at != UINT32_MAX;
	     at = truth->now->part[at].next) {
		unsigned number = truth->now->part[at].row, cursor = number;
		struct monitor_row row;

		if (monitor_reader_next(&truth->reader, &cursor, &row) && cursor == number + 1 &&
		    (pid_t)row.pid == process->pid && monitor_row_start(&row) == process->start)
			process_count(ret_process, &row);
	}
}

/* ---- processes that nobody guards */

/* Whether the library is among a process's mappings: 1, 0, or -errno. */
static int mappings_look(pid_t pid)
{
	enum { TAIL = sizeof(LIBRARY) - 2 };
	static char text[65536];
	size_t kept = 0, seen = 0;
	char path[40];
	bool found = false;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!found && seen < MAPS_MOST &&
	       (length = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t size = kept + (size_t)length;

		found = memmem(text, size, LIBRARY, sizeof(LIBRARY) - 1);
		seen += (size_t)length;
		/* The name may have been cut in two. */
		kept = size < TAIL ? size : TAIL;
		memmove(text, text + size - kept, kept);
	}
	close(fd);
	return found;
}

/*
 * The same by a child, which has only so long: a process can keep the lock on its mappings for as
 * long as it likes, for example in a file system of its own. After one that does, others are not
 * looked at for a while.
 */
static int library_is_loaded(pid_t pid)
{
	static uint64_t not_before_ns;
	static pid_t late; /* a child that is still to be reaped */
	struct pollfd poll_fd = { .events = POLLIN };
	int ends[2], result = -ETIMEDOUT;
	pid_t child;

	if (late > 0 && waitpid(late, NULL, WNOHANG) == 0)
		return -EBUSY;
	late = 0;
	if (clock_now_ns() < not_before_ns)
		return -EBUSY;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child == 0) {
		result = mappings_look(pid);
		_exit(write(ends[1], &result, sizeof(result)) != sizeof(result));
	}
	close(ends[1]);
	poll_fd.fd = ends[0];
	if (child < 0)
		result = -errno;
	else if (poll(&poll_fd, 1, MAPS_MS) <= 0 ||
		 read(ends[0], &result, sizeof(result)) != sizeof(result))
		not_before_ns = clock_now_ns() + MAPS_PAUSE_NS;
	close(ends[0]);
	if (child < 0)
		return result;
	if (result == -ETIMEDOUT)
		kill(child, SIGKILL);
	if (waitpid(child, NULL, result == -ETIMEDOUT ? WNOHANG : 0) == 0)
		late = child;
	return result;
}

static void uncovered_tell(struct collector *collector, const struct truth_process *process)
{
	struct proto_event event = { .type = EVENT_UNCOVERED, .pid = process->pid };

	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 collector->books.file->tenant[process->tenant].name);
	snprintf(event.text, sizeof(event.text), "%s: %s", process->command,
		 process->library > 0  ? "the library is loaded, but not registered here" :
		 process->library == 0 ? "the library is not loaded" :
					 "it cannot be seen whether the library is loaded");
	collector_event(collector, &event);
}

/*
 * Whose an unregistered process is, and why it is not registered. Of one that has ended the
 * kernel may just be clearing up what it had; only time tells that it left it to somebody.
 */
static void process_judge(struct collector *collector, struct truth_process *process)
{
	static uint64_t view;
	struct identity who = { .pid = process->pid, .start = process->start };
	const char *name = COLLECTOR_TENANT;
	struct subject subject;
	bool is_new = !process->judged;
	uint64_t now = clock_now_ns();
	int tenant;

	if (!view)
		view = identity_self().view;
	who.view = view;
	if (!identity_is_dead(&who, view) && subject_of_process(&subject, process->pid) == 0 &&
	    identity_start(process->pid) == process->start) {
		name = control_tenant_name(collector, &subject);
		if (is_new)
			process->library = (int16_t)library_is_loaded(process->pid);
	} else if (is_new) {
		if (!process->absent_ns)
			process->absent_ns = now;
		if (now - process->absent_ns < ABSENT_NS)
			return;
		process->library = -ESRCH;
	}
	process->judged = collector->policies;
	tenant = books_tenant_find(&collector->books, name);
	process->tenant = tenant < 0 ? BOOKS_NOBODY : (uint32_t)tenant;
	process->uncovered = tenant >= 0;
	if (process->uncovered && !process->told)
		uncovered_tell(collector, process);
	process->told = true;
}

/* Under another policy the number of its tenant may be nobody's, or another's. */
static void tenant_forget(const struct collector *collector, struct truth_process *process)
{
	int tenant = books_tenant_find(&collector->books, COLLECTOR_TENANT);

	process->uncovered = tenant >= 0;
	process->tenant = tenant < 0 ? BOOKS_NOBODY : (uint32_t)tenant;
}

static void uncovered_find(struct collector *collector)
{
	struct truth_sample *sample = collector->truth.now;
	uint64_t until = clock_now_ns() + JUDGING_NS;

	for (unsigned i = 0; i < sample->processes; i++) {
		struct truth_process *process = &sample->process[i];

		if (process->member != BOOKS_NOBODY || !process->holds) {
			process->uncovered = false;
			continue;
		}
		if (process->judged == collector->policies) {
			process->uncovered = process->tenant != BOOKS_NOBODY;
			continue;
		}
		if (clock_now_ns() < until)
			process_judge(collector, process);
		else if (process->uncovered)
			tenant_forget(collector, process);
	}
}

const struct truth_process *truth_uncovered(const struct truth *truth, unsigned *cursor)
{
	while (truth->taken_ns && *cursor < truth->now->processes) {
		const struct truth_process *process = &truth->now->process[(*cursor)++];

		if (process->uncovered)
			return process;
	}
	return NULL;
}

/* ---- sums */

static void owner_clear(struct owner *owner)
{
	memset(owner->total.kernel, 0, sizeof(owner->total.kernel));
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		memset(owner->device[device].kernel, 0, sizeof(owner->device[device].kernel));
	memset(owner->drift, 0, sizeof(owner->drift));
	owner->drifting = owner->uncovered = 0;
}

static void owner_count(struct owner *owner, const struct truth_part *part)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		owner->total.kernel[kind] += part->kernel[kind];
		owner->device[part->device].kernel[kind] += part->kernel[kind];
	}
}

/* NULL for who has ended unregistered, and may be known by the next sample. */
static struct owner *owner_of(struct books *books, const struct truth_process *process)
{
	uint32_t tenant = process->uncovered ? process->tenant : BOOKS_NOBODY;

	if (process->member != BOOKS_NOBODY)
		tenant = books->file->member[process->member].tenant;
	return tenant == BOOKS_NOBODY ? NULL : &books->tenant[tenant]->all;
}

static void process_sum(struct collector *collector, const struct truth_process *process)
{
	struct books *books = &collector->books;
	struct owner *owner = owner_of(books, process);

	for (uint32_t at = process->parts; at != UINT32_MAX;
	     at = collector->truth.now->part[at].next) {
		owner_count(&books->host, &collector->truth.now->part[at]);
		if (owner)
			owner_count(owner, &collector->truth.now->part[at]);
	}
	books->host.uncovered += process->uncovered;
	if (owner)
		owner->uncovered += process->uncovered;
}

static void drift_sum(struct collector *collector, unsigned member)
{
	struct books *books = &collector->books;
	struct owner *owners[] = { &books->host,
				   &books->tenant[books->file->member[member].tenant]->all };
	const int64_t *drift = drift_of(collector, member);

	for (unsigned i = 0; drift && i < sizeof(owners) / sizeof(owners[0]); i++) {
		owners[i]->drifting++;
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			owners[i]->drift[kind] += drift[kind];
	}
}

static void sum(struct collector *collector)
{
	struct truth *truth = &collector->truth;
	struct books *books = &collector->books;

	owner_clear(&books->host);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			owner_clear(&books->tenant[i]->all);
	for (unsigned i = 0; truth->taken_ns && i < truth->now->processes; i++)
		process_sum(collector, &truth->now->process[i]);
	for (unsigned kind = 0; truth->taken_ns && kind < KIND_COUNT; kind++)
		books->host.total.kernel[kind] += truth->now->unowned[kind];
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN)
			drift_sum(collector, i);
	truth->summed = truth->reader.head;
}

/* ---- when */

/* Members come and go between the samples. */
static void members_rejoin(struct collector *collector)
{
	struct truth_sample *sample = collector->truth.now;

	for (unsigned i = 0; i < sample->processes; i++) {
		struct truth_process *process = &sample->process[i];
		int member = members_of_identity(&collector->members, process->pid, process->start);

		process->member = member < 0 ? BOOKS_NOBODY : (uint32_t)member;
	}
}

void truth_look(struct collector *collector)
{
	struct truth *truth = &collector->truth;

	if (!truth->looked || truth->reader.head)
		monitor_find(collector);
	if (truth->reader.head) {
		if (!truth->taken_ns || clock_now_ns() - truth->taken_ns > FRESH_NS)
			sample_take(collector);
		members_rejoin(collector);
		uncovered_find(collector);
	}
	if (truth->reader.head || truth->summed)
		sum(collector);
}

void truth_measure(struct collector *collector)
{
	const struct book_file *file = collector->books.file;
	struct truth *truth = &collector->truth;

	monitor_find(collector);
	if (truth->reader.head) {
		sample_take(collector);
		uncovered_find(collector);
		for (unsigned i = 0; i < file->members_high; i++)
			if (file->member[i].state == BOOK_TAKEN)
				drift_compare(collector, i);
	}
	if (truth->reader.head || truth->summed)
		sum(collector);
}

enum member_remains truth_remains(void *closure, unsigned member, uint64_t since)
{
	struct collector *collector = closure;
	struct truth *truth = &collector->truth;
	const struct truth_process *process;

	if (!truth->looked || (truth->reader.head && truth->taken_ns < since))
		monitor_find(collector);
	if (!truth->reader.head || !truth_is_exact(truth))
		return REMAINS_UNKNOWN;
	if (truth->taken_ns < since)
		sample_take(collector);
	process = truth_of_member(collector, member);
	if (process && process->holds)
		return REMAINS_SOMETHING;
	if (!truth_is_complete(truth))
		return REMAINS_UNKNOWN;
	/* It must be one that would know of what the member had. */
	for (uint32_t lease = collector->books.member[member].leases; lease != BOOKS_NOBODY;
	     lease = collector->books.view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (drift_meaning(kind) && !(truth_observed(truth) >> kind & 1) &&
			    grants_used(&collector->books, lease, kind))
				return REMAINS_UNKNOWN;
	return REMAINS_NOTHING;
}
