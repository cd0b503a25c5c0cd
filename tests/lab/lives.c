/* SPDX-License-Identifier: MIT */
/*
 * Lives and deaths of processes with RDMA objects, on a real stack: what somebody who
 * counts in the kernel has to get right. It counts nothing itself but its own failures.
 * Usage: lives exit N            N QPs and N MRs, "made"; a line, and it ends with all of them
 *        lives pass N            N QPs; another process gets the descriptor: "maker PID
 *                                holder PID"; both wait
 *        lives batches [DEVICE]  each line +N or -N makes or destroys QPs: "ok TOTAL"
 *        lives churn OPERATIONS SEED [PROCESSES]
 *                                makes and destroys at random in PROCESSES (6) of two threads,
 *                                some of which are killed; then what there is stays: "survivors
 *                                PID ...". 0 OPERATIONS: without end. The end of input ends it:
 *                                "N operations, N killed, N failures"
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_device **devices;
static int device_count;

static _Noreturn void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void *must(void *made, const char *what)
{
	if (!made)
		fail(what);
	return made;
}

static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(pd, &attr);
}

/* ---- one process */

struct base {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct base base_open(const char *device)
{
	struct base base = { 0 };

	for (int i = 0; i < device_count && !base.context; i++)
		if (!device || !strcmp(ibv_get_device_name(devices[i]), device))
			base.context = must(ibv_open_device(devices[i]), "ibv_open_device");
	if (!base.context)
		fail(device ? device : "a device");
	base.pd = must(ibv_alloc_pd(base.context), "ibv_alloc_pd");
	base.cq = must(ibv_create_cq(base.context, 16, NULL, NULL, 0), "ibv_create_cq");
	return base;
}

static int exit_with(unsigned count)
{
	struct base base = base_open(NULL);
	char *memory = malloc((size_t)count * 4096);

	for (unsigned i = 0; i < count; i++) {
		must(qp_make(base.pd, base.cq, NULL), "a QP");
		must(ibv_reg_mr(base.pd, memory + (size_t)i * 4096, 4096, 0), "an MR");
	}
	printf("made\n");
	getchar();
	return 0;
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static void descriptor_send(int socket, int fd)
{
	union control control = { 0 };
	struct iovec piece = { "d", 1 };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) != 1)
		fail("sendmsg");
}

static void descriptor_take(int socket)
{
	union control control;
	char byte;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message) ||
	    CMSG_FIRSTHDR(&message)->cmsg_type != SCM_RIGHTS)
		fail("recvmsg");
}

/* The holder is older than everything that it gets, and inherits none of it. */
static _Noreturn void pass(unsigned count)
{
	int sockets[2];
	struct base base;
	pid_t holder;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		fail("socketpair");
	holder = fork();
	if (holder < 0)
		fail("fork");
	if (!holder) {
		close(sockets[0]);
		descriptor_take(sockets[1]);
		if (write(sockets[1], "t", 1) != 1)
			fail("write");
		for (;;)
			pause();
	}
	close(sockets[1]);
	base = base_open(NULL);
	for (unsigned i = 0; i < count; i++)
		must(qp_make(base.pd, base.cq, NULL), "a QP");
	descriptor_send(sockets[0], base.context->cmd_fd);
	if (read(sockets[0], &byte, 1) != 1)
		fail("the holder");
	printf("maker %d holder %d\n", (int)getpid(), (int)holder);
	for (;;)
		pause();
}

static int batches(const char *device)
{
	struct base base = base_open(device);
	struct ibv_qp **qps = NULL;
	unsigned total = 0, wanted;
	char line[32];

	printf("ok 0\n");
	while (fgets(line, sizeof(line), stdin)) {
		int change = atoi(line);

		wanted = change < 0 && total < (unsigned)-change ? 0 : total + (unsigned)change;
		if (wanted > total)
			qps = must(realloc(qps, wanted * sizeof(*qps)), "memory");
		for (; total < wanted; total++)
			qps[total] = must(qp_make(base.pd, base.cq, NULL), "a QP");
		for (; total > wanted; total--)
			if (ibv_destroy_qp(qps[total - 1]))
				fail("ibv_destroy_qp");
		printf("ok %u\n", total);
	}
	return 0;
}

/* ---- churn: things of every kind that depend on each other */

enum {
	PROCESSES = 6,
	PROCESSES_MAX = 64,
	THREADS = 2,
	THINGS = 96, /* of a thread */
	MEMORY = 1 << 18,
	KILLS = 50,
	KILL_EVERY = 2000, /* without end */
	DEVICES = 2,
	NEEDS = 3,
};

enum kind { CTX, PD, CHANNEL, CQ, SRQ, QP, MR, MW, AH, KINDS, NOTHING = KINDS };

struct thing {
	enum kind kind; /* NOTHING: this place is free */
	void *handle;
	struct thing *root, *needs[NEEDS]; /* of one context */
	unsigned users;
};

struct worker {
	uint64_t random;
	unsigned count;
	struct thing thing[THINGS];
	char memory[MEMORY];
};

/* Between all processes. */
static struct shared {
	unsigned long goal; /* 0: none */
	unsigned long operations, failures;
	unsigned resting[PROCESSES_MAX]; /* threads */
	bool stop;
} * shared;
static union ibv_gid gids[DEVICES];
static bool lacks[KINDS]; /* what this kernel has not on this device */

static unsigned below(struct worker *worker, unsigned limit)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return (unsigned)(worker->random >> 11) % limit;
}

static void *make_ctx(struct worker *worker, void **needs)
{
	return ibv_open_device(devices[below(worker, DEVICES)]);
}

static void *make_pd(struct worker *worker, void **needs)
{
	return ibv_alloc_pd(needs[0]);
}

static void *make_channel(struct worker *worker, void **needs)
{
	return ibv_create_comp_channel(needs[0]);
}

static void *make_cq(struct worker *worker, void **needs)
{
	return ibv_create_cq(needs[0], 1 + (int)below(worker, 100), NULL, needs[1], 0);
}

static void *make_srq(struct worker *worker, void **needs)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };

	return ibv_create_srq(needs[0], &attr);
}

static void *make_qp(struct worker *worker, void **needs)
{
	return qp_make(needs[0], needs[1], needs[2]);
}

static void *make_mr(struct worker *worker, void **needs)
{
	unsigned length = 1 + below(worker, 1u << (1 + below(worker, 16)));

	return ibv_reg_mr(needs[0], worker->memory + below(worker, MEMORY - length + 1), length, 0);
}

static void *make_mw(struct worker *worker, void **needs)
{
	return ibv_alloc_mw(needs[0], below(worker, 2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
}

static void *make_ah(struct worker *worker, void **needs)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh = { .hop_limit = 1 } };
	struct ibv_pd *pd = needs[0];

	attr.grh.dgid = gids[pd->context->device == devices[1]];
	return ibv_create_ah(pd, &attr);
}

#define DESTROY(name, call, type)                                                                  \
	static int destroy_##name(void *handle)                                                    \
	{                                                                                          \
		return call((struct type *)handle);                                                \
	}
DESTROY(ctx, ibv_close_device, ibv_context)
DESTROY(pd, ibv_dealloc_pd, ibv_pd)
DESTROY(channel, ibv_destroy_comp_channel, ibv_comp_channel)
DESTROY(cq, ibv_destroy_cq, ibv_cq)
DESTROY(srq, ibv_destroy_srq, ibv_srq)
DESTROY(qp, ibv_destroy_qp, ibv_qp)
DESTROY(mr, ibv_dereg_mr, ibv_mr)
DESTROY(mw, ibv_dealloc_mw, ibv_mw)
DESTROY(ah, ibv_destroy_ah, ibv_ah)

static const struct sort {
	const char *name;
	unsigned weight; /* how often it is made */
	void *(*make)(struct worker *worker, void **needs);
	int (*destroy)(void *handle);
	enum kind needs[NEEDS];
	bool optional[NEEDS];
} sorts[KINDS] = {
	[CTX] = { "ctx", 1, make_ctx, destroy_ctx, { NOTHING, NOTHING, NOTHING }, { 0 } },
	[PD] = { "pd", 4, make_pd, destroy_pd, { CTX, NOTHING, NOTHING }, { 0 } },
	[CHANNEL] = { "channel", 3, make_channel, destroy_channel, { CTX, NOTHING, NOTHING }, { 0 } },
	[CQ] = { "cq", 8, make_cq, destroy_cq, { CTX, CHANNEL, NOTHING }, { false, true } },
	[SRQ] = { "srq", 4, make_srq, destroy_srq, { PD, NOTHING, NOTHING }, { 0 } },
	[QP] = { "qp", 16, make_qp, destroy_qp, { PD, CQ, SRQ }, { false, false, true } },
	[MR] = { "mr", 16, make_mr, destroy_mr, { PD, NOTHING, NOTHING }, { 0 } },
	[MW] = { "mw", 6, make_mw, destroy_mw, { PD, NOTHING, NOTHING }, { 0 } },
	[AH] = { "ah", 6, make_ah, destroy_ah, { PD, NOTHING, NOTHING }, { 0 } },
};

static void failed(const char *what, const char *name, int error)
{
	__atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED);
	fprintf(stderr, "lives: %s %s: %s\n", what, name, strerror(error));
}

/* One of a kind, and of a context if that is given. */
static struct thing *choose(struct worker *worker, enum kind kind, const struct thing *root)
{
	unsigned first = below(worker, THINGS);

	for (unsigned i = 0; i < THINGS; i++) {
		struct thing *thing = &worker->thing[(first + i) % THINGS];

		if (thing->kind == kind && (!root || thing->root == root))
			return thing;
	}
	return NULL;
}

static enum kind choose_kind(struct worker *worker)
{
	unsigned sum = 0, at;

	for (unsigned i = 0; i < KINDS; i++)
		sum += lacks[i] ? 0 : sorts[i].weight;
	at = below(worker, sum);
	for (unsigned i = 0; i < KINDS; i++) {
		unsigned weight = lacks[i] ? 0 : sorts[i].weight;

		if (at < weight)
			return (enum kind)i;
		at -= weight;
	}
	return CTX;
}

/* True if it was an operation: what it needs may not be there. */
static bool make(struct worker *worker)
{
	struct thing *place = choose(worker, NOTHING, NULL), new = { .kind = choose_kind(worker) };
	const struct sort *sort = &sorts[new.kind];
	void *handles[NEEDS] = { 0 };

	if (!place)
		return false;
	for (unsigned i = 0; i < NEEDS; i++) {
		if (sort->needs[i] == NOTHING || (sort->optional[i] && below(worker, 2)))
			continue;
		new.needs[i] = choose(worker, sort->needs[i], new.root);
		if (!new.needs[i] && !sort->optional[i])
			return false;
		if (!new.needs[i])
			continue;
		new.root = new.needs[i]->root;
		handles[i] = new.needs[i]->handle;
	}
	new.handle = sort->make(worker, handles);
	if (!new.handle) {
		failed("making", sort->name, errno);
		return true;
	}
	for (unsigned i = 0; i < NEEDS; i++)
		if (new.needs[i])
			new.needs[i]->users++;
	if (!new.root)
		new.root = place;
	*place = new;
	worker->count++;
	return true;
}

static bool destroy(struct worker *worker)
{
	struct thing *thing = &worker->thing[below(worker, THINGS)];
	int error;

	if (thing->kind == NOTHING || thing->users)
		return false;
	error = sorts[thing->kind].destroy(thing->handle);
	if (error)
		failed("destroying", sorts[thing->kind].name, error < 0 ? errno : error);
	for (unsigned i = 0; i < NEEDS; i++)
		if (thing->needs[i])
			thing->needs[i]->users--;
	thing->kind = NOTHING;
	worker->count--;
	return true;
}

static bool goes_on(void)
{
	return !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED) &&
	       (!shared->goal ||
		__atomic_load_n(&shared->operations, __ATOMIC_RELAXED) < shared->goal);
}

static unsigned own_place, own_number;
static uint64_t seed;

static void *work(void *thread)
{
	struct worker *worker = must(calloc(1, sizeof(*worker)), "memory");

	worker->random = (seed + 1) * 0x9e3779b97f4a7c15u ^ own_number << 8 ^ (uintptr_t)thread;
	for (unsigned i = 0; i < THINGS; i++)
		worker->thing[i].kind = NOTHING;
	while (goes_on())
		if (below(worker, THINGS) >= worker->count ? make(worker) : destroy(worker))
			__atomic_fetch_add(&shared->operations, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->resting[own_place], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		usleep(20000);
	return NULL;
}

/* Ends with what it holds. */
static pid_t worker_start(unsigned place, unsigned number)
{
	pthread_t thread;
	pid_t pid;

	shared->resting[place] = 0;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	own_place = place;
	own_number = number;
	for (uintptr_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			fail("pthread_create");
	work(NULL);
	_exit(0);
}

/* What each kind needs to know, and which the device has not, or not enough of: Soft-RoCE had no
 * memory windows before 5.14, and 100 address handles at that time. */
static void survey(unsigned processes)
{
	for (int i = 0; i < DEVICES; i++) {
		struct ibv_context *context = must(ibv_open_device(devices[i]), "ibv_open_device");
		struct ibv_device_attr attr;
		struct ibv_pd *pd = must(ibv_alloc_pd(context), "ibv_alloc_pd");
		struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

		if (ibv_query_gid(context, 1, 0, &gids[i]) || ibv_query_device(context, &attr))
			fail("a device");
		lacks[MW] = !mw;
		lacks[AH] = attr.max_ah < (int)(processes * THREADS * THINGS);
		if (mw)
			ibv_dealloc_mw(mw);
		ibv_dealloc_pd(pd);
		ibv_close_device(context);
	}
}

static bool input_ended(int ms)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char text[64];

	return poll(&input, 1, ms) > 0 && read(STDIN_FILENO, text, sizeof(text)) <= 0;
}

static bool all_rest(unsigned processes)
{
	for (unsigned i = 0; i < processes; i++)
		if (__atomic_load_n(&shared->resting[i], __ATOMIC_ACQUIRE) < THREADS)
			return false;
	return true;
}

static int churn(unsigned long goal, unsigned processes)
{
	unsigned long every = goal ? goal / KILLS + 1 : KILL_EVERY, next = every;
	unsigned number = 0, killed = 0;
	pid_t pid[PROCESSES_MAX];
	bool told = false;

	survey(processes);
	shared->goal = goal;
	for (unsigned i = 0; i < processes; i++)
		pid[i] = worker_start(i, number++);
	while (!input_ended(5)) {
		unsigned long done = __atomic_load_n(&shared->operations, __ATOMIC_RELAXED);
		unsigned victim = killed % processes;

		if (goes_on() && done >= next) {
			kill(pid[victim], SIGKILL);
			waitpid(pid[victim], NULL, 0);
			pid[victim] = worker_start(victim, number++);
			killed++;
			next += every;
		}
		if (told || !goal || !all_rest(processes))
			continue;
		printf("survivors");
		for (unsigned i = 0; i < processes; i++)
			printf(" %d", (int)pid[i]);
		printf("\n");
		told = true;
	}
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < processes; i++)
		waitpid(pid[i], NULL, 0);
	printf("%lu operations, %u killed, %lu failures\n", shared->operations, killed,
	       shared->failures);
	return shared->failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned processes = argc == 5 ? (unsigned)atoi(argv[4]) : PROCESSES;

	setvbuf(stdout, NULL, _IOLBF, 0);
	devices = ibv_get_device_list(&device_count);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (!devices || !device_count || shared == MAP_FAILED)
		fail("devices");
	if (argc == 3 && !strcmp(what, "exit"))
		return exit_with((unsigned)atoi(argv[2]));
	if (argc == 3 && !strcmp(what, "pass"))
		pass((unsigned)atoi(argv[2]));
	if (argc <= 3 && !strcmp(what, "batches"))
		return batches(argv[2]);
	if ((argc == 4 || argc == 5) && !strcmp(what, "churn") && device_count >= DEVICES &&
	    processes && processes <= PROCESSES_MAX) {
		seed = strtoul(argv[3], NULL, 10);
		return churn(strtoul(argv[2], NULL, 10), processes);
	}
	fprintf(stderr, "usage: lives exit N | pass N | batches [DEVICE] | "
			"churn OPERATIONS SEED [PROCESSES]\n");
	return 2;
}
