/* SPDX-License-Identifier: MIT */
/*
 * A file of uverbs that several processes have: by inheritance, where one of them flips on it, and
 * by a message to who receives at a socket.
 */
#include "parcel.h"
#include "intruder.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum {
	HEIRS = 12,
	GRACE = 1000, /* hundredths of a second */
};

/* Between the process that keeps the file, which writes it, and its parent. */
static struct family {
	unsigned killed; /* children */
	bool done;
} * family;

/* In the abstract name space. */
static struct sockaddr_un name_of(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", name);
	return at;
}

static void file_pass(int file, const char *name)
{
	struct sockaddr_un at = name_of(name);
	int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct parcel parcel;

	parcel_wrap_file(&parcel, file);
	if (socket_fd < 0 || connect(socket_fd, (struct sockaddr *)&at, sizeof(at)) ||
	    sendmsg(socket_fd, &parcel.header, 0) != 1)
		fail("passing a file", errno);
	close(socket_fd);
}

static int file_receive(const char *name)
{
	struct sockaddr_un at = name_of(name);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), from, file = -1;
	struct cmsghdr *control;
	struct parcel parcel;

	parcel_wrap(&parcel);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1))
		fail("listening", errno);
	printf("listens\n");
	from = accept(listener, NULL, NULL);
	if (from < 0 || recvmsg(from, &parcel.header, MSG_CMSG_CLOEXEC) != 1)
		fail("receiving", errno);
	control = CMSG_FIRSTHDR(&parcel.header);
	if (control && control->cmsg_type == SCM_RIGHTS)
		memcpy(&file, CMSG_DATA(control), sizeof(file));
	close(from);
	close(listener);
	return file;
}

static int pd_try(int file)
{
	__u32 handle;

	uverbs = file;
	return object_make(path_find("ioctl"), PD, 1, &handle) ? 0 : errno;
}

int receive_run(const char *name)
{
	int passed = file_receive(name), own;
	char line[64];

	context_prepare(PD);
	own = uverbs;
	printf("received\n");
	while (fgets(line, sizeof(line), stdin)) {
		int first = pd_try(passed);

		printf("passed %d own %d\n", first, pd_try(own));
	}
	return 0;
}

static _Noreturn void keeper_run(enum kind kind, unsigned seconds, const char *name)
{
	time_t until = time(NULL) + (time_t)seconds;
	__u32 handle;

	context_prepare(kind);
	while (object_make(path_find("ioctl"), kind, 1, &handle))
		;
	if (errno != EDQUOT)
		fail("making what can be had", errno);
	if (name)
		file_pass(uverbs, name);
	tally = memory_share(sizeof(*tally));
	while (family->killed < HEIRS && time(NULL) < until) {
		pid_t pid = child_start();

		if (!pid)
			flip_first(kind);
		family->killed += flip_wait(pid, seconds, ENOUGH);
	}
	__atomic_store_n(&family->done, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

int heirs_run(enum kind kind, unsigned seconds, const char *name)
{
	pid_t keeper, ended = 0;

	family = memory_share(sizeof(*family));
	keeper = child_start();
	if (!keeper)
		keeper_run(kind, seconds, name);
	/* When the children are through, the one who ends the keeper may still be on its way. */
	for (unsigned grace = 0; !ended && grace < GRACE;
	     grace += __atomic_load_n(&family->done, __ATOMIC_ACQUIRE)) {
		ended = waitpid(keeper, NULL, WNOHANG);
		usleep(10000);
	}
	printf("heirs %u keeper %s\n", family->killed, ended ? "killed" : "alive");
	while (getchar() != EOF)
		;
	return 0;
}
