/* SPDX-License-Identifier: MIT */
/*
 * A user of verbs for every C library: tests/libcs.sh compiles it with each and runs it under the
 * one librdma_intercept.so of the build. LINKED: it is linked to libibverbs; otherwise it loads it.
 * GLIBC: there is dlvsym. It leaves no object, and prints OK if all was as it should be.
 *
 * usage: user libc                     prints the name of the C library
 *        user ROUTE N                  queue pairs (or CQs) until the refusal are N, twice
 *        user fork|killed|threads N    the same, with other processes or threads
 *        user hold N                   makes N queue pairs and says so; goes on at the end of its input
 *        user most N                   makes what it gets of N, says how many, and goes on like that
 *        user hammer N                 makes and destroys queue pairs, N thousand times
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../process/fixture.h"

enum { PLENTY = 1000, THREADS = 4 };

const char *gnu_get_libc_version(void) __attribute__((weak));

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("not so: %s (errno %d, %s)\n", what, errno, strerror(errno));
	exit(1);
}

/* ---- verbs by a route */

static struct {
	__typeof__(ibv_get_device_list) *get_device_list;
	__typeof__(ibv_free_device_list) *free_device_list;
	__typeof__(ibv_open_device) *open_device;
	__typeof__(ibv_close_device) *close_device;
	__typeof__(ibv_alloc_pd) *alloc_pd;
	__typeof__(ibv_dealloc_pd) *dealloc_pd;
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	__typeof__(ibv_destroy_cq) *destroy_cq;
	__typeof__(ibv_create_qp) *create_qp;
	__typeof__(ibv_destroy_qp) *destroy_qp;
} verbs;

static struct fixture fixture;

static void *look_up(void *handle, const char *name, const char *version)
{
	void *found;

#ifdef GLIBC
	found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
#else
	found = dlsym(handle, name);
#endif
	must(found != NULL, name);
	return found;
}

static void verbs_look_up(void *handle, const char *version)
{
#define LOOK_UP(verb) *(void **)&verbs.verb = look_up(handle, "ibv_" #verb, version)
	LOOK_UP(get_device_list);
	LOOK_UP(free_device_list);
	LOOK_UP(open_device);
	LOOK_UP(close_device);
	LOOK_UP(alloc_pd);
	LOOK_UP(dealloc_pd);
	LOOK_UP(create_cq);
	LOOK_UP(destroy_cq);
	LOOK_UP(create_qp);
	LOOK_UP(destroy_qp);
}

#ifdef LINKED
static struct ibv_qp *create_inline_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.qp_type = attr->qp_type,
		.cap = attr->cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
	};

	return ibv_create_qp_ex(pd->context, &extended);
}
#endif

static void verbs_find(const char *route)
{
	void *handle;

#ifdef LINKED
#define LINK(verb) verbs.verb = ibv_##verb
	LINK(get_device_list), LINK(free_device_list), LINK(open_device), LINK(close_device);
	LINK(alloc_pd), LINK(dealloc_pd), LINK(create_cq), LINK(destroy_cq);
	LINK(create_qp), LINK(destroy_qp);
	if (!strcmp(route, "inline"))
		verbs.create_qp = create_inline_qp;
	if (!strcmp(route, "next"))
		verbs_look_up(RTLD_NEXT, NULL);
	if (!strcmp(route, "default"))
		verbs_look_up(RTLD_DEFAULT, NULL);
	if (strcmp(route, "dlsym") && strcmp(route, "dlvsym"))
		return;
#endif
	handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	must(handle != NULL, "libibverbs.so.1 can be loaded");
	verbs_look_up(handle, !strcmp(route, "dlvsym") ? "IBVERBS_1.1" : NULL);
	must(dlerror() == NULL, "a look-up that succeeds leaves no error");
#ifdef GLIBC
	must(dlvsym(handle, "ibv_create_qp", "IBVERBS_1.12") == NULL, "no symbol of another node");
#endif
	must(dlsym(handle, "ibv_no_such_verb") == NULL && dlerror() != NULL, "no unknown symbol");
	must(dlsym(handle, "ibv_create_qp_ex") == NULL, "no symbol of an inline function");
}

static void fixture_make(void)
{
	fixture.devices = fixture_part(verbs.get_device_list(NULL), "devices");
	fixture.context = fixture_part(verbs.open_device(fixture.devices[0]), "a context");
	fixture.pd = fixture_part(verbs.alloc_pd(fixture.context), "a protection domain");
	fixture.cq = fixture_part(verbs.create_cq(fixture.context, CQ_DEPTH, NULL, NULL, 0), "a CQ");
}

static void fixture_unmake(void)
{
	must(!verbs.destroy_cq(fixture.cq) && !verbs.dealloc_pd(fixture.pd) &&
		     !verbs.close_device(fixture.context), "all objects can be destroyed");
	verbs.free_device_list(fixture.devices);
}

/* Makes at most so many; how many it was. */
static unsigned make(struct ibv_qp *qp[], unsigned most)
{
	unsigned made = 0;

	for (; made < most; made++) {
		struct ibv_qp_init_attr attr = qp_attributes(fixture.cq, IBV_QPT_RC);

		errno = 0;
		qp[made] = verbs.create_qp(fixture.pd, &attr);
		if (!qp[made]) {
			must(errno == EDQUOT, "the errno of a refusal is EDQUOT");
			break;
		}
		must(errno == 0, "success leaves errno");
	}
	return made;
}

static void destroy(struct ibv_qp *qp[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		must(!verbs.destroy_qp(qp[i]), "a queue pair can be destroyed");
}

/* ---- what the first argument names */

/* Once with a refusal, and once more as many without: they were given back. */
static void run_route(unsigned limit)
{
	struct ibv_qp *qp[PLENTY];

	must(make(qp, PLENTY) == limit, "exactly the limit");
	destroy(qp, limit);
	must(make(qp, limit) == limit, "what was destroyed is given back");
	destroy(qp, limit);
}

static void run_inline_cqs(unsigned limit)
{
	struct ibv_cq_ex *cq[PLENTY];
	unsigned made = 1; /* that of the fixture */

	for (; made < PLENTY; made++) {
		struct ibv_cq_init_attr_ex attr = { .cqe = CQ_DEPTH };

		cq[made] = ibv_create_cq_ex(fixture.context, &attr);
		if (!cq[made])
			break;
	}
	must(made == limit && errno == EDQUOT, "exactly the limit");
	while (--made)
		must(!verbs.destroy_cq(ibv_cq_ex_to_cq(cq[made])), "a CQ can be destroyed");
}

/* The child is a process of its own: it gets the rest of the host's limit, without its parent's. */
static void run_fork(unsigned limit)
{
	struct ibv_qp *qp[PLENTY];
	int status = 0;
	pid_t child;

	must(make(qp, 2) == 2, "two in the parent");
	child = fork();
	if (!child) {
		fixture_make();
		must(make(qp, PLENTY) == limit - 2, "the rest in the child");
		destroy(qp, limit - 2);
		fixture_unmake();
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && status == 0, "the child ends well");
	must(make(qp + 2, limit - 2) == limit - 2, "the child's are given back");
	destroy(qp, limit);
}

/* What a killed child has held is there again. */
static void run_killed(unsigned limit)
{
	struct ibv_qp *qp[PLENTY];
	int ends[2], status = 0;
	char byte;
	pid_t child;

	must(!pipe(ends), "a pipe");
	child = fork();
	if (!child) {
		fixture_make();
		must(make(qp, PLENTY) == limit, "all in the child");
		must(write(ends[1], "", 1) == 1, "a byte for the parent");
		for (;;)
			pause();
	}
	must(read(ends[0], &byte, 1) == 1, "the child has made them");
	must(make(qp, 1) == 0, "the parent is refused");
	must(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child, "the child is killed");
	/* Without a collector at once; a collector must notice the death first. */
	for (unsigned tries = 0; tries < 1200 && !make(qp, 1); tries++)
		usleep(50000);
	must(make(qp + 1, limit - 1) == limit - 1, "what the child had is given back");
	destroy(qp, limit);
}

static struct ibv_qp *made_by_thread[THREADS][PLENTY];
static unsigned count_of_thread[THREADS];

static void *thread_run(void *argument)
{
	unsigned thread = (unsigned)(size_t)argument;

	count_of_thread[thread] = make(made_by_thread[thread], PLENTY);
	return NULL;
}

static void run_threads(unsigned limit)
{
	pthread_t threads[THREADS];
	unsigned sum = 0;

	for (size_t i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, thread_run, (void *)i), "a thread");
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += count_of_thread[i];
	}
	must(sum == limit, "exactly the limit, for all threads together");
	for (size_t i = 0; i < THREADS; i++)
		destroy(made_by_thread[i], count_of_thread[i]);
	must(make(made_by_thread[0], limit) == limit, "what was destroyed is given back");
	destroy(made_by_thread[0], limit);
}

static void run_until_told(unsigned wanted, bool all)
{
	struct ibv_qp *qp[PLENTY];
	unsigned made = make(qp, wanted);
	char byte;

	must(!all || made == wanted, "as many as wanted");
	printf("made %u\n", made);
	while (read(0, &byte, 1) > 0)
		;
	destroy(qp, made);
}

static void run_hammer(unsigned rounds)
{
	struct ibv_qp *qp[PLENTY];

	for (unsigned i = 0; i < 1000 * rounds; i++) {
		destroy(qp, make(qp, 1 + i % 3));
		if (i == 0)
			puts("begun");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned number = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "libc")) {
		puts(gnu_get_libc_version ? gnu_get_libc_version() : "musl");
		return 0;
	}
	must(number > 0 && number <= PLENTY, "usage: user WHAT N");
	verbs_find(what);
	fixture_make();
	if (!strcmp(what, "fork"))
		run_fork(number);
	else if (!strcmp(what, "killed"))
		run_killed(number);
	else if (!strcmp(what, "threads"))
		run_threads(number);
	else if (!strcmp(what, "hold") || !strcmp(what, "most"))
		run_until_told(number, what[0] == 'h');
	else if (!strcmp(what, "hammer"))
		run_hammer(number);
	else if (!strcmp(what, "inline_cq"))
		run_inline_cqs(number);
	else
		run_route(number);
	fixture_unmake();
	puts("OK");
	return 0;
}
