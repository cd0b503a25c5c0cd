/* SPDX-License-Identifier: MIT */
/* Numbers for names of users and groups, looked up by a child process; see names.h. */
#include "cli/names.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/users.h"

struct name_answer {
	int result;
	uint32_t id;
};

/* Waits for the answer of the child, until the deadline of the command. */
static int name_await(int fd, struct name_answer *ret_answer)
{
	static uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: no name was looked up yet */
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	uint64_t now = clock_now_ns();

	if (!deadline_ns)
		deadline_ns = now + USERS_PATIENCE_MS * 1000000ull;
	do {
		int left_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : 0;

		if (poll(&answer, 1, left_ms) > 0)
			return read(fd, ret_answer, sizeof(*ret_answer)) == sizeof(*ret_answer) ? 0 : -EIO;
		now = clock_now_ns();
	} while (now < deadline_ns);
	return -ETIMEDOUT;
}

int name_ask(void *closure, enum policy_account which, const char *name, uint32_t *ret_id)
{
	struct name_answer answer = { .id = 0 };
	int fds[2], result;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer.result = policy_account_ask(closure, which, name, &answer.id);
		_exit(write(fds[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	result = child < 0 ? -errno : 0;
	close(fds[1]);
	if (result == 0)
		result = name_await(fds[0], &answer);
	close(fds[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		/* One that the signal does not end at once is left to init. */
		waitpid(child, NULL, result == -ETIMEDOUT ? WNOHANG : 0);
	}
	if (result == 0 && answer.result == 0)
		*ret_id = answer.id;
	return result ? result : answer.result;
}
