/* SPDX-License-Identifier: MIT */
/*
 * The process's side of a lease. Inside it a charge is one atomic operation on
 * memory that nobody else writes; only what goes beyond is asked of the collector.
 * This file holds both ways to live with a collector: by lease, and, where memory
 * cannot be shared, by asking at each operation. What the two sides share is in
 * leaselayout.h, what they say to each other in proto/messages.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "ledger/backing.h"
#include "ledger/identity.h"
#include "ledger/leaselayout.h"
#include "proto/client.h"

enum {
	PATIENCE_MS = 1000,	  /* for a collector that is being started again */
	HELLO_PATIENCE_MS = 5000, /* for one that is there and slow, once in a process's life */
	SILENCE_MS = 1000,	  /* for so long after it did not answer, nobody asks again */
	ROUNDS_LEAST = 1000,	  /* of asking for one charge, while others take what was given; */
	PAGE = 4096,
	NEAR_ROWS = 256,	  /* of the table, which stay mapped: most processes need no other */
	FD_FLOOR = 48,		  /* a number that programs do not expect to get, and in the first
				   table of 64 that every process has */
};

_Static_assert((int)LEDGER_TENANT_NAME == PROTO_NAME && (int)LEDGER_DEVICE_NAME == PROTO_NAME &&
		       (int)LEDGER_SOCKET_PATH == PROTO_PATH,
	       "names travel whole");
_Static_assert((int)MODE_ENFORCE == PROTO_ENFORCE && (int)MODE_WARN == PROTO_WARN &&
		       (int)MODE_AUDIT == PROTO_AUDIT,
	       "modes travel as numbers");

/* The devices that this process, or one that it was forked from, has named. Contexts
 * outlive fork and with them the numbers. Written under `asking`, name before count. */
static char device_names[LEDGER_DEVICES][LEDGER_DEVICE_NAME];
static unsigned device_count = 1; /* the nameless one */

/* The caps of a device on which there is no lease yet. */
static const uint64_t no_cap[KIND_COUNT];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Adds one amount if it stays inside the cap. The second look is what makes it safe:
 * the collector lowers the cap and then reads `used`, we raise `used` and then read the
 * cap, and the compare-and-swap is the barrier between. The first look keeps a large
 * request that has no chance from getting in the way of small ones of other threads.
 */
static inline bool take_one(uint64_t *used, const uint64_t *cap, uint64_t amount)
{
	uint64_t before = __atomic_load_n(used, __ATOMIC_RELAXED);

	do {
		if (before + amount > __atomic_load_n(cap, __ATOMIC_RELAXED))
			return amount == 0;
	} while (!__atomic_compare_exchange_n(used, &before, before + amount, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	if (__builtin_expect(before + amount <= __atomic_load_n(cap, __ATOMIC_SEQ_CST), 1))
		return true;
	__atomic_fetch_sub(used, amount, __ATOMIC_SEQ_CST);
	return amount == 0;
}

static inline void give(uint64_t *used, const struct cost *cost, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		__atomic_fetch_sub(&used[cost->kind[i]], cost->amount[i], __ATOMIC_SEQ_CST);
}

/* All of a cost or nothing. */
static inline bool take(struct ledger_lease *lease, unsigned device, const struct cost *cost)
{
	uint64_t *used = lease->usage->row[device].used;
	const uint64_t *cap = __atomic_load_n(&lease->cap[device], __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < cost->count; i++)
		if (__builtin_expect(!take_one(&used[cost->kind[i]], &cap[cost->kind[i]],
					       cost->amount[i]),
				     0)) {
			give(used, cost, i);
			return false;
		}
	return true;
}

static void add(struct ledger_lease *lease, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&lease->usage->row[device].used[cost->kind[i]], cost->amount[i],
				   __ATOMIC_SEQ_CST);
}

/* What we hold of the kind, with what we want. */
static uint64_t total_of(const struct ledger_lease *lease, unsigned device, const struct cost *cost,
			 unsigned i)
{
	return __atomic_load_n(&lease->usage->row[device].used[cost->kind[i]], __ATOMIC_SEQ_CST) +
	       cost->amount[i];
}

static void device_limits(const struct ledger *ledger, unsigned device, uint64_t *ret_limit)
{
	const struct ledger_limits *limits = ledger->limits;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		ret_limit[kind] = PROTO_UNLIMITED;
	for (unsigned i = 0; i < limits->devices; i++)
		if (!strcmp(limits->device[i].name, device_names[device]))
			memcpy(ret_limit, limits->device[i].limit, sizeof(limits->device[i].limit));
}

static struct ledger_place place_of(const struct stat *status)
{
	return (struct ledger_place){ status->st_dev, status->st_ino };
}

static bool place_is(const struct ledger_place *place, const struct stat *status)
{
	return place->device == status->st_dev && place->inode == status->st_ino;
}

/* Over the connection of HELLO, if the number is still that; -ENOTCONN if not. After a failure
 * an answer could come when another question is under way: it is not used again. */
static int line_ask(struct ledger_lease *lease, const struct proto_need *request,
		    struct proto_give *ret_give, char problem[PROTO_PROBLEM])
{
	struct stat status;
	int result = -ENOTCONN;

	if (lease->line && !fstat(lease->line, &status) && place_is(&lease->line_place, &status))
		result = proto_ask(lease->socket, lease->line, MESSAGE_NEED, request, ret_give,
				   problem);
	if (result < 0)
		lease->line = 0;
	return result;
}

static bool root_is_changed(const struct ledger_lease *lease)
{
	struct stat status;

	return !stat("/", &status) && !place_is(&lease->root, &status);
}

/* Over a new connection. Who sees another root directory need not wait for a socket in it. */
static int call(struct ledger_lease *lease, const struct proto_need *request,
		struct proto_give *ret_give, const char **ret_obstacle, char problem[PROTO_PROBLEM])
{
	bool elsewhere = root_is_changed(lease);
	struct proto_reply reply;
	int result = proto_call(lease->socket, MESSAGE_NEED, request, ret_give, &reply, 0,
				lease->silent_ns || elsewhere ? 0 : PATIENCE_MS, problem);

	if (result == -EMFILE)
		*ret_obstacle = "no descriptor is left";
	else if (result == -ENOBUFS)
		*ret_obstacle = "this process can make no socket";
	else if (result == -ENOENT && elsewhere)
		*ret_obstacle = "this process has changed its root directory";
	return result < 0 ? result : reply.status;
}

/* That is an answer, too. */
static bool has_no_lease(int error)
{
	return error == -EUSERS || error == -ENOSPC;
}

/* One question. A collector that has just failed to answer is not asked again at once,
 * so that many threads do not wait for it one after the other. */
static int need(struct ledger *ledger, struct proto_need *request, struct proto_give *ret_give,
		const char **ret_obstacle)
{
	struct ledger_lease *lease = &ledger->lease;
	char problem[PROTO_PROBLEM];
	int result;

	*ret_obstacle = NULL;
	if (lease->silent_ns && now_ns() - lease->silent_ns < SILENCE_MS * 1000000ull)
		return -ETIMEDOUT;
	result = line_ask(lease, request, ret_give, problem);
	if (result == -ENOTCONN || result == -ECONNRESET)
		result = call(lease, request, ret_give, ret_obstacle, problem);
	lease->silent_ns = result < 0 && !*ret_obstacle && !has_no_lease(result) ? now_ns() : 0;
	if (result < 0 && now_ns() - lease->said_ns >= SILENCE_MS * 1000000ull) {
		lease->said_ns = now_ns();
		log_write(ledger->log, LOG_WARN, "%s", problem);
	}
	if (result >= 0)
		__atomic_store_n(&lease->mode, ret_give->mode, __ATOMIC_RELAXED);
	return result;
}

/* The number is on the page before anybody can answer, and what is given stays ours as long as
 * it is there: otherwise others could take it back before we have it, again and again. */
static void question(struct ledger *ledger, unsigned device, const struct cost *cost,
		     unsigned flags, struct proto_need *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->cookie = ledger->lease.cookie;
	ret->question = ++ledger->lease.questions;
	__atomic_store_n(&ledger->lease.usage->question, ret->question, __ATOMIC_SEQ_CST);
	memcpy(ret->device, device_names[device], sizeof(ret->device));
	ret->row = device;
	ret->flags = flags;
	ret->count = cost->count;
	for (unsigned i = 0; i < cost->count; i++) {
		ret->kind[i] = cost->kind[i];
		ret->total[i] = total_of(&ledger->lease, device, cost, i);
		ret->wanted[i] = cost->amount[i];
	}
	device_limits(ledger, device, ret->device_limit);
}

/* What was given is taken, or there was nothing: after the additions to `used`, since the
 * collector looks at this first. */
static void question_end(struct ledger *ledger)
{
	__atomic_store_n(&ledger->lease.usage->question, 0, __ATOMIC_SEQ_CST);
}

static void describe(const struct proto_give *answer, struct ledger_refusal *ret)
{
	*ret = (struct ledger_refusal){
		.scope = answer->scope < LEDGER_SCOPES ? answer->scope : SCOPE_HOST,
		.kind = answer->kind < KIND_COUNT ? answer->kind : 0,
		.used = answer->used,
		.wanted = answer->wanted,
		.limit = answer->limit,
		.own = answer->own != 0,
		.event = answer->event,
	};
}

/* Nobody answers for us: what we hold, and would like to. */
static int unanswered(const struct proto_need *request, int error, const char *obstacle,
		      struct ledger_refusal *ret)
{
	*ret = (struct ledger_refusal){
		.scope = SCOPE_PROCESS,
		.kind = request->kind[0],
		.used = request->total[0] - request->wanted[0],
		.wanted = request->wanted[0],
		.limit = request->total[0] - request->wanted[0],
		.stranger = error == -ESTALE,
		.obstacle = obstacle,
		.no_lease = has_no_lease(error),
	};
	return LEDGER_UNANSWERED;
}

/* Whether we hold less now than when we asked: then the refusal was of another question. */
static bool outdated(const struct ledger_lease *lease, unsigned device, const struct cost *cost,
		     const struct proto_need *asked)
{
	for (unsigned i = 0; i < cost->count; i++)
		if (total_of(lease, device, cost, i) < asked->total[i])
			return true;
	return false;
}

/*
 * The row of a lease that lies beyond those that stay mapped. mremap with a size of 0 maps the
 * file once more without a descriptor of it: first the whole table, out of that one row. A page
 * of the large mapping that is touched would need a page of page tables for itself alone.
 */
static const struct lease_row *far_row(const struct lease_table *near, uint32_t number)
{
	size_t offset = offsetof(struct lease_table, row[number]), before = offset % PAGE;
	char *whole = mremap((void *)near, 0, sizeof(*near), MREMAP_MAYMOVE), *page;

	if (whole == MAP_FAILED)
		return NULL;
	page = mremap(whole + offset - before, 0, before + sizeof(struct lease_row),
		      MREMAP_MAYMOVE);
	munmap(whole, sizeof(*near));
	return page == MAP_FAILED ? NULL : (const struct lease_row *)(page + before);
}

/* False where there is no memory to map it. */
static bool caps_find(struct ledger_lease *lease, unsigned device, uint32_t number)
{
	const struct lease_row *row;

	if (lease->cap[device] != no_cap && lease->number[device] == number)
		return true;
	row = number < NEAR_ROWS ? &lease->table->row[number] : far_row(lease->table, number);
	if (!row)
		return false;
	lease->number[device] = number;
	__atomic_store_n(&lease->cap[device], row->cap, __ATOMIC_RELEASE);
	return true;
}

static bool lease_number_is_good(const struct proto_give *answer, int status)
{
	return answer->lease < LEASES_MAX ||
	       (answer->lease == PROTO_NO_LEASE && status == PROTO_REFUSED);
}

/* Takes what was granted although it is over a limit, and has no cap for that reason. Not more
 * than was granted: another thread may have taken something inside the cap meanwhile. */
static bool take_given(struct ledger_lease *lease, unsigned device, const struct cost *cost,
		       const struct proto_need *asked)
{
	uint64_t *used = lease->usage->row[device].used;

	for (unsigned i = 0; i < cost->count; i++)
		if (!take_one(&used[cost->kind[i]], &asked->total[i], cost->amount[i])) {
			give(used, cost, i);
			return false;
		}
	return true;
}

/* Beyond the cap: asks, and takes what was given, until that or a refusal succeeds. */
static __attribute__((noinline, cold)) int grow(struct ledger *ledger, unsigned device,
						const struct cost *cost,
						struct ledger_refusal *ret_refusal)
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_need request;
	struct proto_give answer;
	const char *obstacle = NULL;
	uint64_t until = now_ns() + PATIENCE_MS * 1000000ull; /* and for that long */
	sigset_t signals;
	int result = 0, saved = errno;

	signals_hold(&signals); /* a handler that calls a verb must not wait for this lock */
	lock_acquire(&lease->asking);
	for (unsigned round = 0; !take(lease, device, cost); round++) {
		question(ledger, device, cost, 0, &request);
		result = round < ROUNDS_LEAST || now_ns() < until ?
				 need(ledger, &request, &answer, &obstacle) :
				 -EPROTO;
		if (result < 0 || !lease_number_is_good(&answer, result)) {
			result = unanswered(&request, result, obstacle, ret_refusal);
			break;
		}
		if (answer.lease != PROTO_NO_LEASE && !caps_find(lease, device, answer.lease)) {
			result = unanswered(&request, -ENOMEM, "no memory to map the lease", ret_refusal);
			break;
		}
		if (result == PROTO_REFUSED && !outdated(lease, device, cost, &request)) {
			describe(&answer, ret_refusal);
			result = LEDGER_REFUSED;
			break;
		}
		if (result == PROTO_TOLERATED && take_given(lease, device, cost, &request)) {
			describe(&answer, ret_refusal);
			result = LEDGER_TOLERATED;
			break;
		}
		result = 0;
	}
	question_end(ledger);
	lock_release(&lease->asking);
	signals_let_go(&signals);
	errno = saved;
	return result;
}

static int lease_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			bool forced, struct ledger_refusal *ret_refusal)
{
	if (__builtin_expect(take(&ledger->lease, device, cost), 1))
		return 0;
	if (!forced)
		return grow(ledger, device, cost, ret_refusal);
	add(&ledger->lease, device, cost);
	return 0;
}

static void lease_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	give(ledger->lease.usage->row[device].used, cost, cost->count);
}

/* The collector hears of deaths itself, and sweeps before it refuses. */
static int lease_release_dead(struct ledger *ledger)
{
	return 0;
}

static void lease_defer(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	add(&ledger->lease, device, cost);
}

static uint64_t lease_used(struct ledger *ledger, enum kind kind)
{
	uint64_t used = 0;

	for (unsigned device = 0; device < device_count; device++)
		used += __atomic_load_n(&ledger->lease.usage->row[device].used[kind],
					__ATOMIC_RELAXED);
	return used;
}

static int lease_device(struct ledger *ledger, const char *name)
{
	unsigned device = 1;

	lock_acquire(&ledger->lease.asking);
	while (device < device_count && strncmp(device_names[device], name, LEDGER_DEVICE_NAME - 1))
		device++;
	if (device == device_count && device < LEDGER_DEVICES) {
		strncpy(device_names[device], name, LEDGER_DEVICE_NAME - 1);
		__atomic_store_n(&device_count, device + 1, __ATOMIC_RELEASE);
	}
	lock_release(&ledger->lease.asking);
	return device < LEDGER_DEVICES ? (int)device : -ENOSPC;
}

static const char *lease_device_name(const struct ledger *ledger, unsigned device)
{
	return device_names[device];
}

static const char *lease_tenant(const struct ledger *ledger)
{
	return ledger->lease.tenant;
}

static enum ledger_mode lease_mode(const struct ledger *ledger)
{
	/* In one order with additions to `used`; see ledger_mode. */
	uint32_t mode = ledger->lease.table ?
				__atomic_load_n(&ledger->lease.table->mode, __ATOMIC_SEQ_CST) :
				__atomic_load_n(&ledger->lease.mode, __ATOMIC_RELAXED);

	return mode < LEDGER_MODES ? mode : MODE_ENFORCE;
}

/* The end of the process tells the collector, and surely. */
static void lease_close(struct ledger *ledger)
{
}

/* The two ways differ in how they charge and refund. */
#define BACKING(way, charger, refunder)                                                            \
	{                                                                                          \
		.transport = way, .charge = charger, .refund = refunder,                           \
		.release_dead = lease_release_dead, .defer = lease_defer, .used = lease_used,      \
		.device = lease_device, .device_name = lease_device_name, .tenant = lease_tenant,  \
		.mode = lease_mode, .close = lease_close,                                          \
	}

static const struct ledger_backing lease_backing =
	BACKING(TRANSPORT_LEASE, lease_charge, lease_refund);

/* ---- asking at each operation: `used` is ours alone, the collector is told each time */

static int asked_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			bool forced, struct ledger_refusal *ret_refusal)
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_need request;
	struct proto_give answer;
	const char *obstacle;
	sigset_t signals;
	int result, saved = errno;

	signals_hold(&signals);
	lock_acquire(&lease->asking);
	question(ledger, device, cost, NEED_EXACT, &request);
	result = need(ledger, &request, &answer, &obstacle);
	if (result == 0 || forced) {
		add(lease, device, cost);
		result = 0;
	} else if (result == PROTO_TOLERATED) {
		add(lease, device, cost);
		describe(&answer, ret_refusal);
		result = LEDGER_TOLERATED;
	} else if (result == PROTO_REFUSED) {
		describe(&answer, ret_refusal);
		result = LEDGER_REFUSED;
	} else {
		result = unanswered(&request, result, obstacle, ret_refusal);
	}
	lock_release(&lease->asking);
	signals_let_go(&signals);
	errno = saved;
	return result;
}

/* When the collector does not answer, the next question, a total as always, will tell it. */
static void asked_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	struct cost nothing = *cost;
	struct proto_need request;
	struct proto_give answer;
	const char *obstacle;
	sigset_t signals;
	int saved = errno;

	memset(nothing.amount, 0, sizeof(nothing.amount));
	signals_hold(&signals);
	lock_acquire(&ledger->lease.asking);
	give(ledger->lease.usage->row[device].used, cost, cost->count);
	question(ledger, device, &nothing, NEED_EXACT, &request);
	need(ledger, &request, &answer, &obstacle);
	lock_release(&ledger->lease.asking);
	signals_let_go(&signals);
	errno = saved;
}

static const struct ledger_backing asked_backing =
	BACKING(TRANSPORT_SOCKET, asked_charge, asked_refund);

/* ---- joining */

/* A descriptor that stays open, out of the way of the program's own numbers; its number. A
 * program that closes it does no harm: the number is used again only after a look at what it
 * leads to. */
static int keep(int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, FD_FLOOR);

	if (kept < 0)
		return fd;
	close(fd);
	return kept;
}

/* The collector can be asked over the connection that stays: without a new descriptor, the
 * socket's path or the right to make sockets, which a program may give up after its first verb. */
static void line_keep(struct ledger_lease *lease, const struct proto_welcome *welcome,
		      const struct proto_reply *reply)
{
	int line = keep(reply->connection);
	struct stat status;

	if (!stat("/", &status))
		lease->root = place_of(&status);
	if (!(welcome->flags & WELCOME_STAYS) || !reply->askable || fstat(line, &status))
		return;
	lease->line = line;
	lease->line_place = place_of(&status);
}

/* Maps the beginning of a file of that size. The version is looked at before the size, which
 * another version may have another of. */
static void *map(int fd, size_t size, size_t mapped, int protection, uint64_t magic, const char *what,
		 char problem[LEDGER_PROBLEM])
{
	struct lease_signature found = { 0 };
	struct stat status;
	void *memory;

	if (syscall(SYS_pread64, fd, &found, sizeof(found), 0) != sizeof(found) ||
	    found.magic != magic || fstat(fd, &status)) {
		snprintf(problem, LEDGER_PROBLEM, "the collector's %s is none", what);
		return NULL;
	}
	if (found.version != LEASE_VERSION || found.kinds != kinds_signature() ||
	    (size_t)status.st_size != size) {
		snprintf(
			problem, LEDGER_PROBLEM,
			"the collector's %s has the layout version %u and %llu bytes, this library "
			"needs version %u, %zu bytes and the same kinds",
			what, found.version, (unsigned long long)status.st_size, LEASE_VERSION,
			size);
		return NULL;
	}
	memory = mmap(NULL, mapped, protection, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	snprintf(problem, LEDGER_PROBLEM, "the collector's %s: %s", what, strerror(errno));
	return NULL;
}

/* Memory of our own, where the collector gives none. */
static struct usage_page *private_page(char problem[LEDGER_PROBLEM])
{
	void *page = mmap(NULL, sizeof(struct usage_page), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		return page;
	snprintf(problem, LEDGER_PROBLEM, "no memory for the counts");
	return NULL;
}

static int shared_pages(struct ledger_lease *lease, const struct proto_reply *reply,
			char problem[LEDGER_PROBLEM])
{
	lease->usage = map(reply->fd[0], sizeof(*lease->usage), sizeof(*lease->usage),
			   PROT_READ | PROT_WRITE, USAGE_MAGIC, "usage page", problem);
	if (!lease->usage)
		return -EPROTO;
	lease->table = map(reply->fd[1], sizeof(*lease->table),
			   offsetof(struct lease_table, row[NEAR_ROWS]), PROT_READ, LEASES_MAGIC,
			   "lease table", problem);
	if (!lease->table) {
		munmap(lease->usage, sizeof(*lease->usage));
		return -EPROTO;
	}
	return 0;
}

/*
 * Registers, with as much patience as there is reason for. A socket without anybody at it
 * is a collector that was killed and, most likely, is being started again. One that takes
 * the connection and says nothing has much to do, and without it nothing is counted. But
 * where there is no socket there is no collector, unless somebody insists.
 */
static int hello_say(const char *path, const struct proto_hello *hello,
		     struct proto_welcome *ret_welcome, struct proto_reply *ret_reply,
		     const struct ledger_options *options, char problem[LEDGER_PROBLEM])
{
	bool may_be_none = options->transport == TRANSPORT_AUTO && !options->again;
	int result = proto_call(path, MESSAGE_HELLO, hello, ret_welcome, ret_reply,
				PROTO_KEEP_CONNECTION, 0, problem);
	bool again = result == -ECONNREFUSED || result == -ECONNRESET ||
		     (result == -ETIMEDOUT && !options->again) ||
		     (result == -ENOENT && !may_be_none);

	if (!again)
		return result;
	return proto_call(path, MESSAGE_HELLO, hello, ret_welcome, ret_reply, PROTO_KEEP_CONNECTION,
			  result == -ETIMEDOUT ? HELLO_PATIENCE_MS : PATIENCE_MS, problem);
}

/* ---- processes before this one. A child is a process of its own, whose counts are others;
 * but it has its parent's objects and, mapped, its parent's page. */

static struct ledger_past self; /* the process that was the last to join: the parent, in a child */

static void remember(struct usage_page *usage, int fd)
{
	struct identity who = identity_self();
	struct stat status = { 0 };

	fstat(fd, &status);
	self = (struct ledger_past){ usage, fd, status.st_ino, who.pid, who.start, who.view };
}

struct ledger_past ledger_past(void)
{
	struct ledger_past past = self;

	self = (struct ledger_past){ 0 };
	return past;
}

bool ledger_past_is_over(const struct ledger_past *past)
{
	struct identity who = { past->pid, past->start, past->view };
	int saved = errno;
	bool over = past->usage && identity_is_dead(&who, self.view);

	errno = saved;
	return over;
}

/* Several children may have inherited one page: what was given back already is not again. */
void ledger_past_refund(const struct ledger_past *past, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		uint64_t *used = &past->usage->row[device].used[cost->kind[i]];
		uint64_t there = __atomic_load_n(used, __ATOMIC_RELAXED), given;

		do {
			given = cost->amount[i] < there ? cost->amount[i] : there;
		} while (!__atomic_compare_exchange_n(used, &there, there - given, true,
						      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	}
}

/* The number may be of another file by now. */
void ledger_past_leave(struct ledger_past *past)
{
	struct stat status;
	int saved = errno;

	if (past->usage && !fstat(past->fd, &status) && status.st_ino == past->inode &&
	    status.st_size == sizeof(struct usage_page))
		syscall(SYS_close, past->fd);
	past->usage = NULL;
	errno = saved;
}

static int join(struct ledger *ledger, const struct ledger_options *options, bool shared,
		char problem[LEDGER_PROBLEM])
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_hello hello = {
		.flags = shared ? 0 : HELLO_NO_MEMORY,
		.mode = options->own_mode,
		.process_defaults = options->limits->process_defaults,
		.host_defaults = options->limits->host_defaults,
	};
	struct proto_welcome welcome;
	struct proto_reply reply;
	int result = proto_socket_path(options->socket, lease->socket);

	if (result < 0) {
		snprintf(problem, LEDGER_PROBLEM, "%s='%.80s...' is too long for a socket",
			 PROTO_SOCKET_VARIABLE, options->socket);
		return result;
	}
	memcpy(hello.process_limit, options->limits->process, sizeof(hello.process_limit));
	memcpy(hello.host_limit, options->limits->host, sizeof(hello.host_limit));
	result = hello_say(lease->socket, &hello, &welcome, &reply, options, problem);
	if (result < 0)
		return result;
	if (shared)
		result = shared_pages(lease, &reply, problem);
	else
		result = (lease->usage = private_page(problem)) ? 0 : -ENOMEM;
	if (reply.fd[1] >= 0)
		close(reply.fd[1]);
	if (result < 0) {
		close(reply.connection);
		if (reply.fd[0] >= 0)
			close(reply.fd[0]);
		return result;
	}
	line_keep(lease, &welcome, &reply);
	if (reply.fd[0] >= 0)
		remember(lease->usage, keep(reply.fd[0]));
	lease->cookie = welcome.cookie;
	lease->mode = welcome.mode;
	memcpy(lease->tenant, proto_text(welcome.tenant), sizeof(lease->tenant));
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		lease->cap[device] = no_cap;
	ledger->backing = shared ? &lease_backing : &asked_backing;
	ledger->tallies = &lease->usage->tallies;
	ledger->gauges = (char *)&lease->usage->row[0].gauges;
	ledger->gauges_stride = sizeof(lease->usage->row[0]);
	return 0;
}

/* Sharing memory takes two descriptors more. A process that has none left for that is counted
 * all the same. */
int lease_open(struct ledger *ledger, const struct ledger_options *options,
	       enum ledger_transport transport, char problem[LEDGER_PROBLEM])
{
	int result = join(ledger, options, transport == TRANSPORT_LEASE, problem);

	if (result == -EMFILE && transport == TRANSPORT_LEASE)
		result = join(ledger, options, false, problem);
	return result;
}
