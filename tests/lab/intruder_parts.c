/* SPDX-License-Identifier: MIT */
/* What the parts of the program intruder share; see intruder.h. */
#include "intruder.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { PADDING = 40, STACK = 1 << 17 };

int uverbs;
struct parts parts = { .channel = NO_CHANNEL, .length = PAGE };

unsigned by_padded(int file, const struct command *command, struct message *batch,
			  unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct call call;

		call_begin(&call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		for (unsigned k = 0; k < PADDING; k++)
			call_add(&call, (__u16)(UNKNOWN - k), 0)->flags = 0;
		call_add_command(&call, command, &batch[i]);
		errno = call_run(file, &call);
		if (errno)
			return i;
	}
	return n;
}

unsigned object_make(const struct path *path, enum kind kind, unsigned n, __u32 *ret_handles)
{
	static __thread struct message batch[BATCH];
	unsigned done = 0;
	int error;

	if (path->native && rows[kind].native) {
		for (errno = 0; done < n && !errno; done += !errno) {
			struct call call;

			rows[kind].native(&call, &parts);
			errno = call_make(uverbs, &call, &ret_handles[done]);
		}
		if (done || errno != EPROTONOSUPPORT)
			return done;
	}
	for (unsigned i = 0; i < n; i++)
		message_make(&batch[i], kind, &parts);
	done = path->send(uverbs, &rows[kind].make, batch, n);
	error = errno;
	for (unsigned i = 0; i < done; i++)
		ret_handles[i] = answer(&batch[i]);
	errno = error;
	return done;
}

bool object_destroy(const struct path *path, enum kind kind, __u32 handle)
{
	struct message message;

	if (!rows[kind].destroy.name)
		return close((int)handle) == 0;
	if (path->native && rows[kind].native_destroy.name)
		return destroy_native(uverbs, kind, handle) == 0;
	message_destroy(&message, kind, handle);
	return path->send(uverbs, &rows[kind].destroy, &message, 1) == 1;
}

void context_prepare(enum kind kind)
{
	const struct path *path = path_find("ioctl");
	bool native;

	uverbs = device_open();
	context_make(uverbs, path, &native);
	if (kind != PD && kind != COMP_CHANNEL && kind != CQ &&
	    !object_make(path, PD, 1, &parts.pd))
		fail("a PD", errno);
	if (kind == QP && !object_make(path, CQ, 1, &parts.cq))
		fail("a CQ", errno);
}

void *memory_share(size_t size)
{
	void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (found == MAP_FAILED)
		fail("mmap", errno);
	return found;
}

void thread_start(void *(*work)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	error = pthread_create(&thread, &attributes, work, argument);
	if (error)
		fail("pthread_create", error);
	pthread_attr_destroy(&attributes);
}

pid_t child_start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork", errno);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}
