/* SPDX-License-Identifier: MIT */
/* Habits of daemons whose verbs are interrupted or end: by signals, threads, libraries and exit. */
#include "habits.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- signals */

static void tick(int number)
{
}

void habit_signals_each_millisecond(void)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = tick };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	for (int i = 0; i < 20; i++)
		habit_tell_work();
}

void habit_signals_blocked(void)
{
	sigset_t all, after;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	habit_tell_work();
	sigprocmask(SIG_BLOCK, NULL, &after);
	for (int number = 1; number < 32; number++)
		habit_tell("blocked", sigismember(&after, number));
	sigpending(&after);
	habit_tell("pending", sigisemptyset(&after));
}

void habit_dispositions(void)
{
	struct sigaction action;

	habit_tell_work();
	for (int number = 1; number < 32; number++)
		if (!sigaction(number, NULL, &action))
			habit_tell("default", action.sa_handler == SIG_DFL);
}

void habit_ends_by_signal(void)
{
	habit_tell("made", habit_work(true));
	raise(SIGTERM);
}

void habit_aborts(void)
{
	struct rlimit limit = { 0, 0 };

	setrlimit(RLIMIT_CORE, &limit);
	habit_tell("made", habit_work(true));
	abort();
}

static sigjmp_buf back;

static void jump(int number)
{
	siglongjmp(back, 1);
}

/* Out of a system call of the program's own. */
void habit_jumps(void)
{
	signal(SIGALRM, jump);
	habit_tell_work();
	if (!sigsetjmp(back, 1)) {
		raise(SIGALRM);
		habit_tell("not here", 0);
	}
	habit_tell_work();
}

/* ---- threads and libraries */

static void *thread_work(void *closure)
{
	*(long *)closure = habit_work(false);
	return NULL;
}

static void on_thread(size_t stack)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long good = -1;

	pthread_attr_init(&attributes);
	habit_need(!pthread_attr_setstacksize(&attributes, stack));
	habit_need(!pthread_create(&thread, &attributes, thread_work, &good));
	pthread_join(thread, NULL);
	habit_tell("thread", good);
}

void habit_first_verb_on_thread(void)
{
	on_thread(128 << 10);
}

void habit_small_stack(void)
{
	habit_tell_work();
	on_thread(32 << 10);
}

static void *thread_cancelled(void *closure)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	pthread_cancel(pthread_self());
	*(long *)closure = habit_work(false); /* makes no cancellation point */
	pthread_testcancel();
	return closure;
}

void habit_cancelled(void)
{
	pthread_t thread;
	long good = -1;
	void *end;

	habit_need(!pthread_create(&thread, NULL, thread_cancelled, &good));
	pthread_join(thread, &end);
	habit_tell("good", good);
	habit_tell("cancelled", end == PTHREAD_CANCELED);
}

void habit_main_thread_ends(void)
{
	pthread_t thread;
	static long good;

	habit_tell_work();
	habit_need(!pthread_create(&thread, NULL, thread_work, &good));
	pthread_join(thread, NULL);
	habit_tell("good", good);
	pthread_exit(NULL);
}

void habit_loads_and_unloads(void)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

		habit_tell("opened", library != NULL);
		habit_tell("found", library && dlsym(library, "ibv_create_qp") != NULL);
		habit_tell_work();
		habit_tell("closed", library ? dlclose(library) : -1);
	}
}

static void at_exit(void)
{
	habit_tell_work();
}

void habit_works_at_exit(void)
{
	atexit(at_exit);
	habit_tell_work();
}

void habit_holds_at_exit(void)
{
	habit_tell("made", habit_work(true));
	exit(3);
}

void habit_ends_at_once(void)
{
	habit_tell("made", habit_work(true));
	_exit(4);
}
