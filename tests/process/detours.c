/* SPDX-License-Identifier: MIT */
/*
 * Verbs that are called, left or interrupted in unusual ways: by destructors after ours, by
 * siglongjmp out of a verb, by handlers of signals in the middle of one, on other stacks. Each
 * is counted, and limits hold.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

extern void (*late_work)(void); /* of libraries/late.c */

enum { LIMIT = 10 };

static struct fixture fixture;
static char memory[MR_LENGTH];

static unsigned make_qps(unsigned wanted)
{
	unsigned made = 0;

	while (made < wanted && qp_make(&fixture, IBV_QPT_RC))
		made++;
	return made;
}

/* ---- the end of the process */

static void make_late(void)
{
	fixture = fixture_open();
	word_store(0, make_qps(2 * LIMIT));
	word_store(1, (uint64_t)errno);
}

/* Nothing is held when our own destructor runs, or a little is. */
static void ends(const char *argument)
{
	fixture = fixture_open();
	CHECK(make_qps(2) == 2);
	if (!strcmp(argument, "empty")) {
		fixture_close(&fixture);
		fixture = fixture_open();
		fixture_close(&fixture);
	}
	late_work = make_late;
}

/* The same where the parent made nothing and the child ends by exit(). */
static void after_destructors(const char *scenario)
{
	uint64_t held = strstr(scenario, "holding") ? 2 : 0;

	words_clear();
	shm_remove();
	spawn(scenario, "LIMITS=process:qp=10");
	CHECK(word_load(0) == LIMIT - held && word_load(1) == EDQUOT,
	      "%llu made after our destructor at a limit of %d, errno %llu",
	      (unsigned long long)word_load(0), LIMIT, (unsigned long long)word_load(1));
	CHECK(used(KIND_qp) == 0 && used(KIND_ctx) == 0, "the process is gone, its seat as well");
}

/* ---- leaving a verb */

static sigjmp_buf before_verb;

static void jump(int number)
{
	siglongjmp(before_verb, 1);
}

/* Deeper than the verb that was left, and not. */
static __attribute__((noinline)) unsigned make_qps_deep(unsigned wanted)
{
	volatile char room[65536];

	room[0] = 1;
	return make_qps(wanted) + (room[0] - 1u);
}

/* What the left verb made is known to nobody: its charge stays. Everything after it counts. */
static void jumps(const char *argument)
{
	fixture = fixture_open();
	signal(SIGUSR1, jump);
	fake_set("ibv_create_qp", FAKE_RAISE, SIGUSR1, 0, 1);
	if (!sigsetjmp(before_verb, 1)) {
		CHECK(!make_qps(1), "the verb came back");
	} else {
		unsigned made = strcmp(argument, "deep") ? make_qps(4 * LIMIT) :
							   make_qps_deep(4 * LIMIT);

		CHECK(made == LIMIT - 1 && errno == EDQUOT, "%u made at a limit of %d", made,
		      LIMIT);
		CHECK(fake_live("qp") <= LIMIT);
	}
}

/* Out of a verb that was called by a verb. */
static void jumps_nested(const char *argument)
{
	fixture = fixture_open();
	signal(SIGUSR1, jump);
	fake_set("ibv_reg_mr_iova2", FAKE_RAISE, SIGUSR1, 0, 1);
	if (!sigsetjmp(before_verb, 1)) {
		(ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0);
		CHECK(false, "the verb came back");
		return;
	}
	for (unsigned i = 2; i <= LIMIT; i++)
		CHECK((ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0) && used(KIND_mr) == i,
		      "MR %u: %llu used", i, (unsigned long long)used(KIND_mr));
	CHECK(!(ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0) && errno == EDQUOT);
}

/* ---- a verb in the middle of a verb */

static void make_one(int number)
{
	word_store(0, make_qps(1));
}

static ucontext_t interrupted, other;

static void make_one_elsewhere(void)
{
	word_store(0, make_qps(1));
}

static void switch_and_make(int number)
{
	static char stack[65536];

	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof(stack);
	other.uc_link = &interrupted;
	makecontext(&other, make_one_elsewhere, 0);
	swapcontext(&interrupted, &other);
}

static void interrupted_verb(const char *argument)
{
	bool away = !strcmp(argument, "altstack");
	stack_t stack = { .ss_size = 65536 };
	struct sigaction action = { .sa_handler = strcmp(argument, "context") ? make_one :
										 switch_and_make,
				    .sa_flags = away ? SA_ONSTACK : 0 };

	fixture = fixture_open();
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	word_store(0, 0);
	fake_set("ibv_create_qp", FAKE_RAISE, SIGUSR1, 0, 1);
	CHECK(make_qps(1) == 1 && word_load(0) == 1);
	CHECK(used(KIND_qp) == 2, "%llu used of two", (unsigned long long)used(KIND_qp));
	CHECK(make_qps(2 * LIMIT) == LIMIT - 2 && errno == EDQUOT);
	CHECK(fake_live("qp") == LIMIT);
}

/* The device is opened in the middle of an opening: both contexts work, inline verbs too. */
static void open_another(int number)
{
	struct fixture second = fixture_open();

	CHECK(ibv_alloc_mw(second.pd, IBV_MW_TYPE_1) != NULL);
}

static void interrupted_open(const char *argument)
{
	signal(SIGUSR1, open_another);
	fake_set(argument, FAKE_RAISE, SIGUSR1, 0, 1);
	fixture = fixture_open();
	CHECK(used(KIND_ctx) == 2, "%llu contexts", (unsigned long long)used(KIND_ctx));
	CHECK(ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1) && used(KIND_mw) == 2);
}

/* ---- a verb in the middle of the start */

static struct ibv_device **devices;
static volatile int error_in_handler;

static void open_device(int number)
{
	int saved = errno;

	errno = 0;
	if (!ibv_open_device(devices[0]))
		error_in_handler = errno;
	errno = saved;
}

/* The collector's socket is there, and nobody answers at it: the start takes seconds, and both
 * verbs are refused. */
static void interrupted_start(const char *argument)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct itimerval soon = { .it_value = { .tv_usec = 200000 } };
	struct ibv_context *context;
	int error, server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", harness_path("collector.sock"));
	CHECK(bind(server, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	      listen(server, 8) == 0);
	devices = ibv_get_device_list(NULL); /* the first try */
	sleep(2);			     /* the next one is due */
	signal(SIGALRM, open_device);
	setitimer(ITIMER_REAL, &soon, NULL);
	errno = 0;
	context = ibv_open_device(devices[0]);
	error = errno;
	CHECK(!context && error == EDQUOT, "errno %d", error);
	CHECK(error_in_handler == EDQUOT, "the handler's verb: errno %d", error_in_handler);
	unlink(address.sun_path);
}

/* ---- cancellation */

static void cancel_here(int number)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void *create_id(void *argument)
{
	struct rdma_cm_id *id;

	rdma_create_id(argument, &id, NULL, RDMA_PS_TCP);
	pthread_testcancel();
	return argument;
}

static void *open_context(void *argument)
{
	ibv_open_device(devices[0]);
	pthread_testcancel();
	return argument;
}

/* What was made is charged, what was not made is not. */
static void cancelled(const char *verb)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	bool connects = !strcmp(verb, "rdma_create_id");
	pthread_t thread;
	void *result;

	devices = ibv_get_device_list(NULL);
	signal(SIGUSR1, cancel_here);
	fake_set(verb, FAKE_RAISE, SIGUSR1, 0, 1);
	CHECK(pthread_create(&thread, NULL, connects ? create_id : open_context, channel) == 0);
	pthread_join(thread, &result);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(used(KIND_cm_id) == (uint64_t)fake_live("cm_id") &&
		      used(KIND_ctx) == (uint64_t)fake_live("ctx"),
	      "%llu and %llu charged, %ld and %ld there", (unsigned long long)used(KIND_cm_id),
	      (unsigned long long)used(KIND_ctx), fake_live("cm_id"), fake_live("ctx"));
}

/* ---- objects that change while they are changed */

static struct ibv_mr *mr;
static bool reused;

/* Another object comes to the same address, one without bytes. */
static void replace_mr(int number)
{
	struct ibv_mr *old = mr;

	CHECK(ibv_dereg_mr(old) == 0);
	mr = ibv_alloc_null_mr(fixture.pd);
	reused = mr == old;
}

static void replaced_while_changed(const char *argument)
{
#ifdef __SANITIZE_ADDRESS__
	skip_part("this sanitizer lets no other object come to the address of the MR");
	return;
#endif
	fixture = fixture_open();
	mr = (ibv_reg_mr)(fixture.pd, memory, sizeof(memory) / 2, 0);
	signal(SIGUSR1, replace_mr);
	fake_set("ibv_rereg_mr", FAKE_RAISE, SIGUSR1, 0, 1);
	ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, sizeof(memory), 0);
	if (!reused)
		skip_part("no other object came to the address of the MR");
	CHECK(used(KIND_mr_bytes) == 0, "%llu bytes", (unsigned long long)used(KIND_mr_bytes));
	CHECK(ibv_dereg_mr(mr) == 0 && used(KIND_mr) == 0);
}

/* A connection that cannot be remembered is turned away as one over the limit is. */
static void request_without_memory(const char *argument)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rlimit limit = { 1, RLIM_INFINITY }, before;
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	void *volatile spare; /* or the compiler leaves it out */

#ifdef __SANITIZE_ADDRESS__
	skip_part("this sanitizer ends a program that has no memory");
	return;
#endif
	CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	/* The stand-in's own objects come from memory that is there already. */
	mallopt(M_MMAP_THRESHOLD, 8 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	spare = malloc(4 << 20);
	free(spare);
	/* Until an identifier needs a larger table. */
	for (unsigned i = 0; i < 4096 && !fake_calls("rdma_reject"); i++) {
		fake_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
		fake_cm_event(listener, RDMA_CM_EVENT_ADDR_RESOLVED);
		getrlimit(RLIMIT_AS, &before);
		limit.rlim_max = before.rlim_max;
		setrlimit(RLIMIT_AS, &limit);
		CHECK(rdma_get_cm_event(channel, &event) == 0);
		setrlimit(RLIMIT_AS, &before);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(event);
			CHECK(rdma_get_cm_event(channel, &event) == 0);
		}
		CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED, "event %d", event->event);
		rdma_ack_cm_event(event);
		if (checks_failed())
			return;
	}
	CHECK(fake_calls("rdma_reject") == 1);
	CHECK(used(KIND_cm_id) == (uint64_t)fake_live("cm_id"), "%llu charged, %ld there",
	      (unsigned long long)used(KIND_cm_id), fake_live("cm_id"));
}

/* ---- threads with small stacks */

#ifdef __aarch64__ /* glibc takes no smaller one there */
enum { STACK = 262144, SMALL_STACK = 131072, MARK = 0x5a };
#else
enum { STACK = 65536, SMALL_STACK = 16384, MARK = 0x5a };
#endif

/* Bytes of its stack that a thread has used, of which it had the most so far. */
static size_t stack_used(const unsigned char *stack)
{
	size_t untouched = 0;

	while (untouched < STACK && stack[untouched] == MARK)
		untouched++;
	return STACK - untouched;
}

static void *first_verbs(void *argument)
{
	fixture = fixture_open();
	return NULL;
}

static void *next_verbs(void *argument)
{
	CHECK(make_qps(LIMIT) == LIMIT);
	return NULL;
}

static void *refused_verb(void *argument)
{
	errno = 0;
	if (qp_make(&fixture, IBV_QPT_RC))
		abort();
	return NULL;
}

static void *no_verb(void *argument)
{
	return NULL;
}

/* How much stack a thread needs that does only this. */
static size_t stack_of(void *(*function)(void *))
{
	unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;
	size_t used;

	memset(stack, MARK, STACK);
	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstack(&attributes, stack, STACK) == 0);
	CHECK(pthread_create(&thread, &attributes, function, NULL) == 0);
	pthread_join(thread, NULL);
	used = stack_used(stack);
	munmap(stack, STACK);
	return used;
}

/* Reports what each sort of verb needs more than a thread that calls none. */
static void stacks(const char *argument)
{
	size_t nothing = stack_of(no_verb);

	word_store(0, stack_of(first_verbs) - nothing);
	word_store(1, stack_of(next_verbs) - nothing);
	if (!strcmp(argument, "limited"))
		word_store(2, stack_of(refused_verb) - nothing);
}

/* In 16 KB on x86, of which the thread's own data take a part, there is room for the verbs. */
static void *all_verbs(void *argument)
{
	first_verbs(NULL);
	next_verbs(NULL);
	return refused_verb(NULL);
}

static void small_stack(const char *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, SMALL_STACK) == 0);
	CHECK(pthread_create(&thread, &attributes, all_verbs, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK(used(KIND_qp) == LIMIT);
}

static const struct scenario scenarios[] = {
	{ "interrupted_start", interrupted_start },
	{ "cancelled", cancelled },
	{ "replaced_while_changed", replaced_while_changed },
	{ "request_without_memory", request_without_memory },
	{ "stacks", stacks },
	{ "small_stack", small_stack },
	{ "ends", ends },
	{ "jumps", jumps },
	{ "jumps_nested", jumps_nested },
	{ "interrupted_verb", interrupted_verb },
	{ "interrupted_open", interrupted_open },
	{ 0 },
};

/* The library needs little more stack than the verbs themselves. */
static void stack_depth(const char *settings)
{
	uint64_t bare[2];

	words_clear();
	shm_remove();
	spawn_bare("stacks", "");
	bare[0] = word_load(0);
	bare[1] = word_load(1);
	spawn("stacks:limited", settings);
	printf("stack: first verb %llu, bare %llu; next %llu, bare %llu; refused %llu\n",
	       (unsigned long long)word_load(0), (unsigned long long)bare[0],
	       (unsigned long long)word_load(1), (unsigned long long)bare[1],
	       (unsigned long long)word_load(2));
	for (unsigned i = 0; i < 3; i++)
		CHECK(word_load(i) < 8192, "%u", i);
}

static void driver(void)
{
	static const char *const limited[] = {
		"jumps", "jumps:deep", "jumps_nested", "interrupted_verb", "interrupted_verb:altstack",
		"interrupted_verb:context", "interrupted_open:ibv_open_device",
		"interrupted_open:verbs_open_device",
	};

	cases_at_once();
	CASE("stack_depth") {
		stack_depth("LIMITS=process:qp=10");
		stack_depth("LIMITS=process:qp=10\nLOG_LEVEL=DEBUG");
		stack_depth("LIMITS=process:qp=10;host:qp=10;device:rxe0:qp=10\nLOG_FILE_PATH=stderr");
	}
	CASE("interrupted_start")
		spawn("interrupted_start", "TRANSPORT=lease");
	CASE("cancelled:rdma_create_id")
		spawn("cancelled:rdma_create_id", "");
	CASE("cancelled:ibv_open_device")
		spawn("cancelled:ibv_open_device", "");
	CASE("replaced_while_changed")
		spawn("replaced_while_changed", "");
	CASE("request_without_memory")
		spawn("request_without_memory", "");
	CASE("small_stack")
		spawn("small_stack", "LIMITS=process:qp=10");
	CASE("ends_empty")
		after_destructors("ends:empty");
	CASE("ends_holding")
		after_destructors("ends:holding");
	for (unsigned i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
		CASE(limited[i]) {
			shm_remove();
			spawn(limited[i], "LIMITS=process:qp=10,mr=10");
		}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
