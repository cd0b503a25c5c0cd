/* SPDX-License-Identifier: MIT */
/* Start and end of the library in a process; see library.h. */
#include "intercept/library.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/cycles.h"
#include "base/signals.h"
#include "intercept/elf.h"
#include "intercept/inherited.h"
#include "intercept/libc.h"
#include "intercept/notices.h"

#define DEFAULT_LOG_PATH "/tmp/rdma_intercept.log"

/* A section of its own, which the linker puts first (CMakeLists.txt). */
struct library library_state __attribute__((section(".bss.library_state")));

/* Whether the part that fork is to wipe is marked so. False on a kernel before 4.14. */
static bool state_mark(void)
{
	static bool marked; /* stays so in a forked child, and so does the mark */

	if (!__atomic_load_n(&marked, __ATOMIC_RELAXED) &&
	    !madvise(&library_state, offsetof(struct library, handles), MADV_WIPEONFORK))
		__atomic_store_n(&marked, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&marked, __ATOMIC_RELAXED);
}

static const char *environment_lookup(const char *name)
{
	return secure_getenv(name); /* a set-uid program must not write where its caller says */
}

/* The one thing besides refusals that the library ever prints. */
static void library_say(const struct library *library, const char *text)
{
	log_write(&library->log, LOG_ERROR, "%s", text);
	if (!library->log.to_stderr || library->log.level == LOG_OFF)
		log_stderr("rdma_intercept: %s", text);
}

static void library_open_log(struct library *library)
{
	const struct config *config = &library->config;
	int result = log_open(&library->log, config->log_level, config->log_path, DEFAULT_LOG_PATH);

	if (result < 0 && config->log_path)
		log_stderr("rdma_intercept: %sLOG_FILE_PATH='%.80s': cannot write there (%s); "
			   "nothing is logged",
			   CONFIG_PREFIX, config->log_path, strerror(-result));
}

static void library_report_limits(const struct library *library, bool alone)
{
	const struct ledger_limits *limits = &library->config.limits;

	if (alone)
		log_write(&library->log, LOG_INFO, "counting alone, mode %s",
			  mode_names[library->config.mode]);
	else if (ledger_transport(&library->ledger) == TRANSPORT_EMBEDDED)
		log_write(&library->log, LOG_INFO, "joined /dev/shm/%s, mode %s",
			  library->config.shm_name, mode_names[library->config.mode]);
	else
		log_write(&library->log, LOG_INFO,
			  "joined the collector by %s as tenant %s, mode %s there and %s for the "
			  "environment's own limits",
			  transport_names[ledger_transport(&library->ledger)],
			  ledger_tenant(&library->ledger),
			  mode_names[ledger_mode(&library->ledger)],
			  mode_names[library->config.mode]);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (limits->process[kind] != UNLIMITED)
			log_write(&library->log, LOG_INFO, "limit of this process: %s=%llu",
				  kind_rows[kind].name, (unsigned long long)limits->process[kind]);
		if (limits->host[kind] != UNLIMITED)
			log_write(&library->log, LOG_INFO,
				  "limit of the host, as asked for: %s=%llu", kind_rows[kind].name,
				  (unsigned long long)limits->host[kind]);
	}
	if (library->config.shm_mode & 022)
		log_write(&library->log, LOG_WARN,
			  "%sSHM_MODE=%04o: every user that may write the shared memory can change "
			  "all counts and limits",
			  CONFIG_PREFIX, (unsigned)library->config.shm_mode);
}

/* The buckets of the environment's rates are full at the beginning. */
static void library_fill_buckets(struct library *library)
{
	for (unsigned class = 0; class < RATE_CLASSES; class ++) {
		const struct rate *rate = &library->config.rates.rate[class];
		struct bucket_flow *flow = &library->rates.flow[class];

		if (!rate->per_second)
			continue;
		*flow = (struct bucket_flow){ clock_now_ns(), rate->burst * RATE_PART, 0,
					      rate->per_second * RATE_PART, rate->burst * RATE_PART };
		log_write(&library->log, LOG_INFO, "rate of this process: %s=%u/s burst %u",
			  rate_rows[class].name, rate->per_second, rate->burst);
	}
}

/* Which word verbs look at from now on. */
static void library_choose_word(struct library *library)
{
	static const uint32_t never_quiet;
	const uint32_t *word = &library->phase;

	/* The log's level is known for good: with this one every call leaves a line. */
	if (library->config.rates.any || library->paces.on || log_wants(&library->log, LOG_DEBUG))
		word = &never_quiet;
	else if (library->ledger.rate_leases)
		word = &library->ledger.rate_leases->quiet;
	__atomic_store_n(&library->word_distance, (uintptr_t)word - (uintptr_t)&library->phase,
			 __ATOMIC_RELEASE);
}

static enum phase library_join(struct library *library)
{
	const struct config *config = &library->config;
	const struct ledger_options options = {
		.transport = config->transport,
		.socket = config->socket,
		.again = library->joins_again != 0,
		.closed = config->fail_closed,
		.own_mode = config->mode,
		.name = config->shm_name,
		.mode = config->shm_mode,
		.shared = config->shm_mode_chosen && (config->shm_mode & 077),
		.limits = &config->limits,
		.no_lock = libc_find_mutex() ? NULL : "libpthread is not loaded",
		.log = &library->log,
	};
	char problem[PROBLEM_SIZE], text[PROBLEM_SIZE + 80];
	int result = ledger_open(&library->ledger, &options, problem);
	enum phase phase;

	phase = result == 0 || result == LEDGER_ALONE ? PHASE_ACTIVE :
		result == LEDGER_LATER		       ? PHASE_WAITING :
		config->fail_closed		       ? PHASE_CLOSED :
							 PHASE_OFF;
	if (phase == PHASE_ACTIVE) {
		library_report_limits(library, result == LEDGER_ALONE);
		if (result == 0)
			notices_of_transport(library);
		library_fill_buckets(library);
		pace_follow(library);
	}
	if (result == 0)
		return phase;
	snprintf(text, sizeof(text), "%s; %s", problem,
		 phase == PHASE_ACTIVE ? "this process is counted alone, and all limits hold for "
					 "it by itself" :
		 phase == PHASE_OFF    ? "this process is not counted and not limited" :
		 phase == PHASE_CLOSED ? "every new object is refused" :
					 "every new object is refused until the collector can be asked");
	/* Who has set no limit has not asked for anything that is missing now. */
	if (phase == PHASE_ACTIVE && !config_has_limits(config))
		log_write(&library->log, LOG_WARN, "%s", text);
	else if (!library->joins_again) /* said once */
		library_say(library, text);
	library->joins_again = (int64_t)clock_now_seconds() + 1;
	return phase;
}

/* musl has another pthread_mutex_t, and another place for it in the kernel's list of a thread's
 * robust locks: its programs have a file of their own. */
static void library_name_file(struct config *config)
{
	static const char suffix[] = ".musl";
	size_t length = strlen(config->shm_name), most = sizeof(config->shm_name) - sizeof(suffix);

	if (libc_is_musl())
		memcpy(config->shm_name + (length < most ? length : most), suffix, sizeof(suffix));
}

static enum phase library_begin(struct library *library)
{
	struct config *config = &library->config;

	if (elf_is_copy()) /* the first one does the work */
		return PHASE_OFF;
	inherited_take_over(&library->handles);
	config_read(config, environment_lookup);
	library_name_file(config);
	if (!config->enable && !config->complaints)
		return PHASE_OFF;
	library_open_log(library);
	for (unsigned i = 0; i < config->complaints && i < CONFIG_COMPLAINTS; i++)
		library_say(library, config->complaint[i]);
	if (!config->enable)
		return PHASE_OFF;
	notices_of_settings(library);
	if (config->complaints && config->fail_closed)
		return PHASE_CLOSED;
	return library_join(library);
}

struct library *library_follow(void)
{
	int saved = errno;

	pace_follow(&library_state);
	if (library_state.paces.on) /* and for good */
		library_choose_word(&library_state);
	errno = saved;
	return &library_state;
}

/* In stack.S. */
__attribute__((visibility("hidden"))) void stack_call(void (*function)(void *), void *argument,
						      void *top);

/* What a start needs: paths, messages, lines of text. Threads may have 16 KB in all. */
enum { START_STACK = 128 << 10 };

struct attempt {
	struct library *library;
	uint32_t from, to;
};

static void attempt_run(void *argument)
{
	struct attempt *attempt = argument;
	struct cycles_mark begun = cycles_mark(), done;

	attempt->to = attempt->from == PHASE_NEW ? library_begin(attempt->library) :
						   library_join(attempt->library);
	/* To join takes long enough to tell how fast the counter of cycles runs. */
	done = cycles_mark();
	attempt->library->cycles_scale = cycles_scale(&begun, &done);
}

static void attempt_run_aside(struct attempt *attempt)
{
	char *stack = mmap(NULL, START_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED) {
		attempt_run(attempt);
		return;
	}
	stack_call(attempt_run, attempt, stack + START_STACK);
	munmap(stack, START_STACK);
}

/* One thread starts, or tries to join once more. Its result; or the phase as it is. */
static uint32_t library_start_or_join(struct library *library)
{
	uint32_t from = __atomic_load_n(&library->phase, __ATOMIC_ACQUIRE), to;
	struct attempt attempt = { library, from, from };
	sigset_t signals;
	int cancellable = PTHREAD_CANCEL_ENABLE; /* stays so where libpthread is not loaded */

	if (from != PHASE_NEW &&
	    (from != PHASE_WAITING || (int64_t)clock_now_seconds() < library->joins_again))
		return from;
	to = from;
	if (!__atomic_compare_exchange_n(&library->phase, &to, PHASE_STARTING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return to;
	/* A thread that ended in here would leave the others waiting, and a handler that called
	 * a verb would wait for itself. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
	signals_hold(&signals);
	attempt_run_aside(&attempt);
	__atomic_store_n(&library->phase, attempt.to, __ATOMIC_RELEASE);
	if (attempt.to == PHASE_ACTIVE)
		library_choose_word(library);
	signals_let_go(&signals);
	pthread_setcancelstate(cancellable, NULL);
	return attempt.to;
}

struct library *library_start(void)
{
	struct library *library = &library_state;
	uint32_t phase;
	int saved = errno;

	if (!state_mark()) {
		static bool said;

		if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
			log_stderr(
				"rdma_intercept: no memory that fork wipes (Linux before 4.14?); "
				"this process is not counted and not limited");
		return NULL;
	}
	if (library_phase() == PHASE_ACTIVE)
		return library_is_behind() ? library_follow() : library;
	phase = library_start_or_join(library);
	while (phase == PHASE_STARTING) {
		sched_yield();
		phase = __atomic_load_n(&library->phase, __ATOMIC_ACQUIRE);
	}
	errno = saved;
	return phase == PHASE_OFF ? NULL : library;
}

/*
 * At exit a process that holds nothing gives its place in the ledger back. It goes on counting:
 * destructors of other libraries run after this one, other threads are still at work, and what
 * they make takes a place again. One that holds objects stays on the books until it is really
 * gone, since the kernel frees them only then.
 */
static __attribute__((destructor)) void library_leave(void)
{
	if (library_phase() == PHASE_ACTIVE)
		ledger_close(&library_state.ledger);
}
