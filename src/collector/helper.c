/* SPDX-License-Identifier: MIT */
/* Children that answer questions; see helper.h. */
#include "collector/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"

enum {
	QUESTIONS_MOST = 4096, /* that have no answer yet */
	STARVED_MOST = 10,     /* times the patience, while the child waits for a processor */
	REAP_MS = 20,	       /* a child that is to end is looked for so often */
	ANSWERS = STDERR_FILENO + 1, /* the child's descriptor */
};

struct helper {
	const struct helper_job *job;
	void *closure;
	sd_event *event;
	sd_event_source *answers, *timer;
	pid_t child;	    /* 0 while no child runs */
	bool ends;	    /* the child has answered all, or was killed: it is to be reaped */
	int fd;		    /* its answers; -1 */
	unsigned asked;	    /* questions that the child has, the first ones of `question` */
	unsigned waited_ms; /* for the answer to the first, or for the child's end */
	char *question;
	unsigned count, room;
};

_Static_assert(HELPER_ANSWER <= PIPE_BUF, "an answer is written in one piece");

/* ---- in the child */

/* It keeps nothing of the collector's open, and ends with it. */
static void child_become(int fd, pid_t collector)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != collector)
		_exit(1);
	setpriority(PRIO_PROCESS, 0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(fd, ANSWERS) < 0)
		_exit(1);
	syscall(__NR_close_range, ANSWERS + 1, ~0u, 0); /* a function in glibc since 2.34 only */
}

static _Noreturn void child_answer(const struct helper *helper)
{
	_Alignas(8) char answer[HELPER_ANSWER];

	for (unsigned i = 0; i < helper->count; i++) {
		memset(answer, 0, sizeof(answer));
		helper->job->work(helper->question + i * helper->job->question, answer);
		if (write(ANSWERS, answer, helper->job->answer) != (ssize_t)helper->job->answer)
			_exit(1);
	}
	_exit(0);
}

/* ---- in the collector */

static void helper_timer_set(struct helper *helper, unsigned ms)
{
	sd_event_source_set_time_relative(helper->timer, ms * UINT64_C(1000));
	sd_event_source_set_enabled(helper->timer, SD_EVENT_ONESHOT);
}

/* The first question has its answer. */
static void question_done(struct helper *helper, int result, const void *answer)
{
	_Alignas(8) char question[HELPER_QUESTION];
	size_t size = helper->job->question;

	memcpy(question, helper->question, size);
	helper->count--;
	if (helper->asked)
		helper->asked--;
	memmove(helper->question, helper->question + size, helper->count * size);
	helper->waited_ms = 0;
	helper->job->done(helper->closure, question, result, answer);
	if (!helper->count && helper->job->idle)
		helper->job->idle(helper->closure);
}

static void questions_fail(struct helper *helper, unsigned count, int error)
{
	while (count-- && helper->count)
		question_done(helper, error, NULL);
}

/* The child gets nothing more to do. It is a child of ours until it was reaped, so its number
 * cannot be another's. */
static void child_dismiss(struct helper *helper)
{
	kill(helper->child, SIGKILL);
	helper->answers = sd_event_source_disable_unref(helper->answers);
	close(helper->fd);
	helper->fd = -1;
	helper->asked = 0;
	helper->ends = true;
	helper->waited_ms = 0;
	helper_timer_set(helper, REAP_MS);
}

static int child_on_answer(sd_event_source *source, int fd, uint32_t events, void *closure)
{
	_Alignas(8) char answer[HELPER_ANSWER];
	struct helper *helper = closure;
	ssize_t length = read(fd, answer, helper->job->answer);
	bool died = length != (ssize_t)helper->job->answer;

	if (length < 0 && errno == EAGAIN)
		return 0;
	if (died || helper->asked == 1)
		child_dismiss(helper);
	else
		helper_timer_set(helper, helper->job->patience_ms);
	question_done(helper, died ? -EIO : 0, died ? NULL : answer);
	return 0;
}

/* A child that would work if it had a processor is given more time. */
static bool child_is_starved(const struct helper *helper)
{
	struct proc_stat stat;

	return helper->waited_ms < STARVED_MOST * helper->job->patience_ms &&
	       proc_stat_read(helper->child, &stat) == 0 && stat.state == 'R';
}

static void child_is_late(struct helper *helper)
{
	unsigned others = helper->asked - 1;

	helper->waited_ms += helper->job->patience_ms;
	if (child_is_starved(helper)) {
		helper_timer_set(helper, helper->job->patience_ms);
		return;
	}
	child_dismiss(helper);
	question_done(helper, -ETIMEDOUT, NULL);
	if (helper->job->rest_fails)
		questions_fail(helper, others, -ETIMEDOUT);
}

/* No second child while one hangs that cannot be killed either. */
static void child_reap(struct helper *helper)
{
	if (waitpid(helper->child, NULL, WNOHANG) == 0) {
		helper->waited_ms += REAP_MS;
		if (helper->waited_ms > helper->job->patience_ms)
			questions_fail(helper, helper->count, -EBUSY);
		helper_timer_set(helper, REAP_MS);
		return;
	}
	helper->child = 0;
	helper_begin(helper);
}

static int child_start(struct helper *helper)
{
	pid_t collector = getpid();
	int ends[2], result;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	result = sd_event_add_io(helper->event, &helper->answers, ends[0], EPOLLIN, child_on_answer,
				 helper);
	helper->child = result < 0 ? -1 : fork();
	if (helper->child == 0) {
		child_become(ends[1], collector);
		child_answer(helper);
	}
	if (helper->child < 0 && result >= 0)
		result = -errno;
	close(ends[1]);
	if (result < 0) {
		helper->answers = sd_event_source_disable_unref(helper->answers);
		close(ends[0]);
		helper->child = 0;
		return result;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	helper->fd = ends[0];
	helper->ends = false;
	helper->asked = helper->count;
	helper->waited_ms = 0;
	helper_timer_set(helper, helper->job->patience_ms);
	return 0;
}

static int helper_on_time(sd_event_source *source, uint64_t now, void *closure)
{
	struct helper *helper = closure;
	int result = 0;

	if (!helper->child && helper->count)
		result = child_start(helper);
	else if (helper->child && helper->ends)
		child_reap(helper);
	else if (helper->child)
		child_is_late(helper);
	if (result < 0)
		questions_fail(helper, helper->count, result);
	return 0;
}

/* The callback runs in a later turn of the loop, after the caller has returned. */
void helper_begin(struct helper *helper)
{
	if (helper->count && !helper->child)
		helper_timer_set(helper, 0);
}

int helper_ask(struct helper *helper, const void *question)
{
	unsigned room = helper->room ? 2 * helper->room : 16;
	char *more;

	if (helper->count == QUESTIONS_MOST)
		return -ENOBUFS;
	if (helper->count == helper->room) {
		more = realloc(helper->question, room * helper->job->question);
		if (!more)
			return -ENOMEM;
		helper->question = more;
		helper->room = room;
	}
	memcpy(helper->question + helper->count++ * helper->job->question, question,
	       helper->job->question);
	return 0;
}

void helper_wait(struct helper *helper)
{
	int result = 0;

	helper_begin(helper);
	while (helper->count && result >= 0)
		result = sd_event_run(helper->event, UINT64_MAX);
	questions_fail(helper, helper->count, result);
}

int helper_new(struct helper **ret_helper, sd_event *event, const struct helper_job *job,
	       void *closure)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	int result;

	if (!helper)
		return -ENOMEM;
	helper->event = sd_event_ref(event);
	helper->job = job;
	helper->closure = closure;
	helper->fd = -1;
	result = sd_event_add_time_relative(event, &helper->timer, CLOCK_MONOTONIC, 0, 1,
					    helper_on_time, helper);
	if (result >= 0)
		result = sd_event_source_set_enabled(helper->timer, SD_EVENT_OFF);
	if (result < 0) {
		helper_free(helper);
		return result;
	}
	*ret_helper = helper;
	return 0;
}

void helper_free(struct helper *helper)
{
	if (!helper)
		return;
	if (helper->child && !helper->ends)
		child_dismiss(helper);
	sd_event_source_disable_unref(helper->timer);
	sd_event_unref(helper->event);
	free(helper->question);
	free(helper);
}
