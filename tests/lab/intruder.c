/* SPDX-License-Identifier: MIT */
/*
 * Takes what it can get of RDMA objects, past every library: what a limit in the kernel has
 * to stand. It only tells what it got, and knows of limits nothing but EDQUOT.
 * Usage: intruder fill KIND N [WAY]     tries N times to make one: "made M errno E", E of the
 *                                       first failure or 0; after that it tries on
 *        intruder bytes SIZE N [WAY]    the same with MRs: "made M errno E bytes B"
 *        intruder storm KIND PROCESSES THREADS [WAY]
 *                                       all at once, each thread three times: "made M refused R
 *                                       other O", of which refused are those with EDQUOT
 *        intruder flip KIND SECONDS [write]
 *                                       changes its command while the kernel reads it, so long
 *                                       at most in each place that it knows: "PLACE made M killed
 *                                       yes|no" or "PLACE absent"; then the most that it made:
 *                                       "made M killed yes|some|no". Of mr_bytes, M are bytes.
 *                                       By the ioctl, or by write()
 *        intruder heirs KIND SECONDS [SOCKET]
 *                                       a process makes all that it gets, passes its file to who
 *                                       receives at the SOCKET, and has children flip on it, one
 *                                       after the other: "heirs K keeper alive|killed", K of the
 *                                       children that were killed
 *        intruder receive SOCKET        takes a file; at each line of its input makes a PD on it,
 *                                       and one on a file of its own: "passed E own E", of errno
 *        intruder failing KIND N [WAY]  N times wrong: "failed F made M refused R"
 *        intruder chain N               becomes this program N times, each time but the last by a
 *                                       thread that is not the first; then the same as fill pd 1
 *        intruder unknown               what no kernel knows, and what is no command: "survived"
 * KIND is one of rows[] but cm_id. WAY is one of paths[], ioctl if none is given, or padded: the
 * old command in the ioctl behind attributes that the kernel passes over. The first three then
 * hold what they made until their input ends, and failing stays as long; at the line "destroy"
 * the first two destroy it: "destroyed M".
 */
#include "raw.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum {
	TRIES = 3, /* of a thread in a storm */
	PADDING = 40,
	STACK = 1 << 17,
	SMALL = 1,
	LARGE = 1 << 20,
	/* Flipping goes on for no longer than this: more than any limit of the scenario. */
	ENOUGH = 8,
	ENOUGH_BYTES = 2 * LARGE,
	PAUSE = 256, /* at most, between two flips */
	NO_HANDLE = 0xffffff,
	NO_ADDRESS = 8,
	UNKNOWN = 0xfff,  /* object, method or attribute */
	DRIVERS = 0x1000, /* where those of drivers begin */
};

static int uverbs;
static struct parts parts = { .channel = NO_CHANNEL, .length = PAGE };

/* ---- making */

static unsigned by_padded(int file, const struct command *command, struct message *batch,
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

static const struct path padded = { "padded", false, by_padded, NULL };

/* How many of up to BATCH; errno is about the next one. */
static unsigned make(const struct path *path, enum kind kind, unsigned n, __u32 *ret_handles)
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

static bool destroy(const struct path *path, enum kind kind, __u32 handle)
{
	struct message message;

	if (!rows[kind].destroy.name)
		return close((int)handle) == 0;
	if (path->native && rows[kind].native_destroy.name)
		return destroy_native(uverbs, kind, handle) == 0;
	message_destroy(&message, kind, handle);
	return path->send(uverbs, &rows[kind].destroy, &message, 1) == 1;
}

/* A context, and what that kind is made of but memory. */
static void prepare(enum kind kind)
{
	const struct path *path = path_find("ioctl");
	bool native;

	uverbs = device_open();
	context_make(uverbs, path, &native);
	if (kind != PD && kind != COMP_CHANNEL && kind != CQ && !make(path, PD, 1, &parts.pd))
		fail("a PD", errno);
	if (kind == QP && !make(path, CQ, 1, &parts.cq))
		fail("a CQ", errno);
}

static void *memory(size_t size)
{
	void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (found == MAP_FAILED)
		fail("mmap", errno);
	return found;
}

static int fill(const struct path *path, enum kind kind, unsigned count, bool with_bytes)
{
	__u32 *handles = calloc(count + BATCH, sizeof(*handles));
	unsigned made = 0, tried = 0;
	char line[64];
	int error = 0;

	if (!handles)
		fail("calloc", errno);
	prepare(kind);
	while (tried < count) {
		unsigned n = count - tried < BATCH ? count - tried : BATCH;
		unsigned done = make(path, kind, n, handles + made);

		if (done < n && !error)
			error = errno;
		made += done;
		tried += done + (done < n);
	}
	printf("made %u errno %d", made, error);
	if (with_bytes)
		printf(" bytes %llu", (unsigned long long)made * parts.length);
	printf("\n");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned gone = 0;

		if (strcmp(line, "destroy\n") != 0)
			continue;
		while (made && destroy(path, kind, handles[made - 1])) {
			made--;
			gone++;
		}
		printf("destroyed %u\n", gone);
		if (made)
			fail("destroying", errno);
	}
	return 0;
}

/* ---- a process that goes on under other numbers */

static void thread_start(void *(*work)(void *), void *argument)
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

static const char *chain_rest; /* how often still, as text */

static void *chain_thread(void *unused)
{
	const struct path *path = path_find("ioctl");
	__u32 handle;

	if (make(path, PD, 1, &handle) != 1 || !destroy(path, PD, handle)) {
		printf("made 0 errno %d\n", errno);
		exit(1);
	}
	execl("/proc/self/exe", "intruder", "chain", chain_rest, NULL);
	fail("exec", errno);
}

static int chain(unsigned count)
{
	char rest[16];

	if (count == 1)
		return fill(path_find("ioctl"), PD, 1, false);
	snprintf(rest, sizeof(rest), "%u", count - 1);
	chain_rest = rest;
	prepare(PD);
	thread_start(chain_thread, NULL);
	for (;;)
		pause();
}

/* ---- all at once */

static struct storm {
	const struct path *path;
	enum kind kind;
	unsigned ready, done; /* threads */
	unsigned begun;
	unsigned made, refused, other;
} * storm;

static void *storm_thread(void *unused)
{
	__u32 handle;

	__atomic_fetch_add(&storm->ready, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&storm->begun, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &storm->begun, FUTEX_WAIT, 0, NULL);
	for (unsigned i = 0; i < TRIES; i++) {
		bool made = make(storm->path, storm->kind, 1, &handle) == 1;
		unsigned *count = made		  ? &storm->made :
				  errno == EDQUOT ? &storm->refused :
						    &storm->other;

		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&storm->done, 1, __ATOMIC_RELEASE);
	for (;;) /* a thread that has ended needs no place anywhere */
		pause();
	return NULL;
}

/* A child that ends with its parent, whatever becomes of that. */
static pid_t child_start(void)
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

/* Until so many threads are there; a process that ends before has failed. */
static void storm_wait(const unsigned *threads, unsigned wanted)
{
	while (__atomic_load_n(threads, __ATOMIC_ACQUIRE) < wanted) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			fail("a process of the storm", ECHILD);
		usleep(1000);
	}
}

static int storm_run(const struct path *path, enum kind kind, unsigned processes, unsigned threads)
{
	storm = memory(sizeof(*storm));
	storm->path = path;
	storm->kind = kind;
	for (unsigned i = 0; i < processes; i++) {
		if (child_start())
			continue;
		prepare(kind);
		for (unsigned k = 0; k < threads; k++)
			thread_start(storm_thread, NULL);
		for (;;)
			pause();
	}
	storm_wait(&storm->ready, processes * threads);
	__atomic_store_n(&storm->begun, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &storm->begun, FUTEX_WAKE, INT_MAX);
	storm_wait(&storm->done, processes * threads);
	printf("made %u refused %u other %u\n", storm->made, storm->refused, storm->other);
	while (getchar() != EOF)
		;
	return 0;
}

/* ---- a command that changes while it is read */

/* What is called again and again, and the place in it that is changed between calls that
 * make nothing, or little, and those that make an object. */
struct target {
	struct call call;
	struct message message;
	size_t written; /* by write(), so much of the message; 0: by the ioctl */
	void *at;
	unsigned size; /* 2 or 4 */
	__u32 harmless, harmful;
};

static void aim(struct target *target, void *at, unsigned size, __u32 harmless, __u32 harmful)
{
	target->at = at;
	target->size = size;
	target->harmless = harmless;
	target->harmful = harmful;
}

static void aim_method(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_ioctl_hdr *header = &target->call.header;

	rows[kind].native(&target->call, &parts);
	aim(target, &header->method_id, sizeof(header->method_id), harmless, header->method_id);
}

static void aim_object(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_ioctl_hdr *header = &target->call.header;

	rows[kind].native(&target->call, &parts);
	aim(target, &header->object_id, sizeof(header->object_id), harmless, header->object_id);
}

static void aim_native_length(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_attr *attribute = target->call.header.attrs;

	rows[kind].native(&target->call, &parts);
	while (attribute->attr_id != REG_MR_LENGTH)
		attribute++;
	aim(target, &attribute->data, sizeof(__u32), harmless, LARGE);
}

/* The first attribute is the number of the command. */
static struct ib_uverbs_attr *aim_old(struct target *target, enum kind kind)
{
	message_make(&target->message, kind, &parts);
	call_begin(&target->call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	call_add_command(&target->call, &rows[kind].make, &target->message);
	return &target->call.header.attrs[0];
}

static void aim_command(struct target *target, enum kind kind, __u32 harmless)
{
	aim(target, &aim_old(target, kind)->data, sizeof(__u32), harmless, rows[kind].make.number);
}

static void aim_attribute(struct target *target, enum kind kind, __u32 harmless)
{
	aim(target, &aim_old(target, kind)->attr_id, sizeof(__u16), harmless,
	    UVERBS_ATTR_WRITE_CMD);
}

static void aim_length(struct target *target, enum kind kind, __u32 harmless)
{
	aim_old(target, kind);
	aim(target, &target->message.request.mr.length, sizeof(__u32), harmless, LARGE);
}

static void aim_written(struct target *target, enum kind kind)
{
	message_make(&target->message, kind, &parts);
	target->written = sizeof(target->message.header) + rows[kind].make.request;
}

static void aim_written_command(struct target *target, enum kind kind, __u32 harmless)
{
	aim_written(target, kind);
	aim(target, &target->message.header.uverbs.command, sizeof(__u32), harmless,
	    rows[kind].make.number);
}

static void aim_written_length(struct target *target, enum kind kind, __u32 harmless)
{
	aim_written(target, kind);
	aim(target, &target->message.request.mr.length, sizeof(__u32), harmless, LARGE);
}

/* What is harmless fails: no kernel knows it, there is no room for its answer, or it is of
 * no length. Of a length that is SMALL, much can be had before any limit. */
static const struct flip {
	const char *name;
	bool native, of_bytes, written;
	__u32 harmless;
	void (*aim)(struct target *target, enum kind kind, __u32 harmless);
} flips[] = {
	{ "method", true, false, false, UNKNOWN, aim_method },
	{ "object", true, false, false, UVERBS_OBJECT_DEVICE, aim_object },
	{ "command", false, false, false, IB_USER_VERBS_CMD_QUERY_DEVICE, aim_command },
	{ "unknown_command", false, false, false, UNKNOWN, aim_command },
	{ "attribute", false, false, false, UNKNOWN, aim_attribute },
	{ "length", false, true, false, SMALL, aim_length },
	{ "no_length", false, true, false, 0, aim_length },
	{ "native_length", true, true, false, SMALL, aim_native_length },
	{ "written_command", false, false, true, IB_USER_VERBS_CMD_QUERY_DEVICE,
	  aim_written_command },
	{ "written_unknown", false, false, true, UNKNOWN, aim_written_command },
	{ "written_length", false, true, true, SMALL, aim_written_length },
};

static int target_run(struct target *target)
{
	ssize_t written;

	if (!target->written)
		return call_run(uverbs, &target->call);
	written = write(uverbs, &target->message.header, target->written);
	return written < 0 ? errno : 0;
}

/* Between the child, which writes it, and its parent. */
static struct tally {
	unsigned long made;
	bool absent;
} * tally;

static void *flip_thread(void *argument)
{
	struct target *target = argument;
	unsigned random = 1;

	for (unsigned turn = 0;; turn++) {
		__u32 value = turn & 1 ? target->harmful : target->harmless;

		if (target->size == sizeof(__u16))
			__atomic_store_n((__u16 *)target->at, (__u16)value, __ATOMIC_RELAXED);
		else
			__atomic_store_n((__u32 *)target->at, value, __ATOMIC_RELAXED);
		random = random * 1664525 + 1013904223;
		for (unsigned i = random >> 16; i % PAUSE; i--)
			__asm__ volatile("pause");
	}
	return NULL;
}

/* What the kernel says of this process, in bytes. */
static unsigned long pinned(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long kilobytes = 0;
	char line[128];

	if (!file)
		fail("/proc/self/status", errno);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmPin: %lu", &kilobytes) != 1)
		;
	fclose(file);
	return kilobytes << 10;
}

/* With the file and the parts that are there. */
static _Noreturn void flip_on(const struct flip *flip, enum kind kind)
{
	static struct target target;
	unsigned long before = 0;
	int error;

	flip->aim(&target, kind, flip->harmless);
	error = target_run(&target);
	if (error == EPROTONOSUPPORT) {
		tally->absent = true;
		exit(0);
	}
	if (flip->of_bytes)
		before = pinned();
	thread_start(flip_thread, &target);
	for (unsigned long one = 1;; error = target_run(&target)) {
		if (error)
			continue;
		if (flip->of_bytes) {
			unsigned long now = pinned();

			one = now - before >= LARGE ? LARGE : SMALL;
			before = now;
		}
		__atomic_store_n(&tally->made, tally->made + one, __ATOMIC_RELAXED);
	}
}

static _Noreturn void flip_child(const struct flip *flip, enum kind kind)
{
	parts.memory = memory(LARGE);
	if (flip->of_bytes)
		parts.length = SMALL;
	prepare(kind);
	flip_on(flip, kind);
}

/* Whether somebody else killed it within that time, and before it had enough. */
static bool flip_wait(pid_t pid, unsigned seconds, unsigned long enough)
{
	int status;

	for (unsigned i = 0; i < 100 * seconds; i++) {
		if (__atomic_load_n(&tally->made, __ATOMIC_RELAXED) >= enough)
			break;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (!tally->absent && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
				fail("a process that flips", ECHILD);
			return !tally->absent;
		}
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

static int flip_run(enum kind kind, bool of_bytes, bool written, unsigned seconds)
{
	unsigned there = 0, killed = 0;
	unsigned long most = 0;

	tally = memory(sizeof(*tally));
	for (unsigned i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
		const struct flip *flip = &flips[i];
		bool was_killed;
		pid_t pid;

		if (flip->of_bytes != of_bytes || flip->written != written ||
		    (flip->native && !rows[kind].native))
			continue;
		*tally = (struct tally){ 0 };
		pid = child_start();
		if (!pid)
			flip_child(flip, kind);
		was_killed =
			flip_wait(pid, seconds, of_bytes ? ENOUGH_BYTES : ENOUGH);
		if (tally->absent) {
			printf("%s absent\n", flip->name);
			continue;
		}
		printf("%s made %lu killed %s\n", flip->name, tally->made,
		       was_killed ? "yes" : "no");
		there++;
		killed += was_killed;
		if (tally->made > most)
			most = tally->made;
	}
	printf("made %lu killed %s\n", most, !killed ? "no" : killed < there ? "some" : "yes");
	return 0;
}

/* ---- a file that several have */

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

/* A message of one byte, with room for a file. */
struct parcel {
	struct msghdr header;
	struct iovec piece;
	char byte;
	union {
		struct cmsghdr aligned;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
};

static void parcel_wrap(struct parcel *parcel)
{
	*parcel = (struct parcel){ .byte = 'f' };
	parcel->piece = (struct iovec){ &parcel->byte, 1 };
	parcel->header.msg_iov = &parcel->piece;
	parcel->header.msg_iovlen = 1;
	parcel->header.msg_control = parcel->control.room;
	parcel->header.msg_controllen = sizeof(parcel->control.room);
}

static void file_pass(int file, const char *name)
{
	struct sockaddr_un at = name_of(name);
	int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct cmsghdr *control;
	struct parcel parcel;

	parcel_wrap(&parcel);
	control = CMSG_FIRSTHDR(&parcel.header);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(file));
	memcpy(CMSG_DATA(control), &file, sizeof(file));
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
	return make(path_find("ioctl"), PD, 1, &handle) ? 0 : errno;
}

static int receive_run(const char *name)
{
	int passed = file_receive(name), own;
	char line[64];

	prepare(PD);
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

	prepare(kind);
	while (make(path_find("ioctl"), kind, 1, &handle))
		;
	if (errno != EDQUOT)
		fail("making what can be had", errno);
	if (name)
		file_pass(uverbs, name);
	tally = memory(sizeof(*tally));
	while (family->killed < HEIRS && time(NULL) < until) {
		pid_t pid = child_start();

		if (!pid)
			flip_on(&flips[0], kind);
		family->killed += flip_wait(pid, seconds, ENOUGH);
	}
	__atomic_store_n(&family->done, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static int heirs_run(enum kind kind, unsigned seconds, const char *name)
{
	pid_t keeper, ended = 0;

	family = memory(sizeof(*family));
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

/* ---- what fails */

static void message_spoil(struct message *message, enum kind kind)
{
	switch (kind) {
	case CQ:
		message->request.cq.cqe = INT32_MAX;
		break;
	case SRQ:
		message->request.srq.max_wr = UINT32_MAX;
		break;
	case QP:
		message->request.qp.max_send_wr = UINT32_MAX;
		break;
	case MR:
		message->request.mr.access_flags = IB_UVERBS_ACCESS_REMOTE_WRITE;
		break;
	case MW:
		message->request.mw.mw_type = UINT8_MAX;
		break;
	case AH:
		message->request.ah.attr.port_num = UINT8_MAX;
		break;
	default:
		break;
	}
}

/* Written: made of what is not there, or too large. */
static int write_wrong(const struct path *path, enum kind kind, unsigned which)
{
	struct parts missing = parts;
	struct message message;

	missing.pd = missing.cq = missing.channel = NO_HANDLE;
	message_make(&message, kind, which % 2 ? &missing : &parts);
	if (which % 2 == 0)
		message_spoil(&message, kind);
	return path->send(uverbs, &rows[kind].make, &message, 1) ? 0 : errno;
}

/* Made of what is not there, by the method or the command; too large; or made and then given
 * back, since its handle cannot be told. */
static int make_wrong(enum kind kind, unsigned which)
{
	enum { NATIVE, OLD, SPOILED, UNTOLD, WRONGS } wrong = which % WRONGS;
	struct parts missing = parts;
	struct message message;
	struct call call;

	if (kind == PD || kind == COMP_CHANNEL)
		wrong = UNTOLD;
	missing.pd = missing.cq = missing.channel = NO_HANDLE;
	if (wrong == NATIVE && rows[kind].native) {
		rows[kind].native(&call, &missing);
		return call_run(uverbs, &call);
	}
	message_make(&message, kind, wrong == NATIVE || wrong == OLD ? &missing : &parts);
	if (wrong == SPOILED)
		message_spoil(&message, kind);
	call_begin(&call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	call_add_command(&call, &rows[kind].make, &message);
	for (unsigned i = 0; wrong == UNTOLD && i < call.header.num_attrs; i++)
		if (call.header.attrs[i].attr_id == UVERBS_ATTR_CORE_OUT)
			call.header.attrs[i].data = NO_ADDRESS;
	return call_run(uverbs, &call);
}

static int failing(const struct path *path, enum kind kind, unsigned count)
{
	unsigned made = 0, refused = 0, failed = 0;

	prepare(kind);
	for (unsigned i = 0; i < count; i++) {
		int error = path->native ? make_wrong(kind, i) : write_wrong(path, kind, i);

		made += !error;
		refused += error == EDQUOT;
		failed += error && error != EDQUOT;
	}
	printf("failed %u made %u refused %u\n", failed, made, refused);
	while (getchar() != EOF)
		;
	return failed == count ? 0 : 1;
}

/* ---- what is no command */

static unsigned accepted;

static void must_fail(const char *what, unsigned detail, bool failed)
{
	if (failed)
		return;
	accepted++;
	printf("%s (%#x): accepted\n", what, detail);
}

static void unknown_methods(void)
{
	static const __u16 objects[] = { 0x30, UNKNOWN, DRIVERS, DRIVERS + 1, 0x7fff, UINT16_MAX };
	static const __u16 methods[] = { 0x30, UNKNOWN, DRIVERS, DRIVERS + 1, 0x7fff, UINT16_MAX };
	enum { KNOWN = 17, METHODS = sizeof(methods) / sizeof(methods[0]) };
	struct call call;

	for (unsigned object = 0; object < KNOWN; object++)
		for (unsigned k = 0; k < METHODS; k++) {
			call_begin(&call, (__u16)object, methods[k]);
			must_fail("method", object << 16 | methods[k], call_run(uverbs, &call));
		}
	for (unsigned i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		for (unsigned k = 0; k < KNOWN; k++) {
			call_begin(&call, objects[i], (__u16)k);
			must_fail("object", (unsigned)objects[i] << 16 | k,
				  call_run(uverbs, &call));
		}
}

/* What makes a QP if it is in order. */
static void qp_begin(struct call *call, struct message *message)
{
	message_make(message, QP, &parts);
	call_begin(call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	call_add_command(call, &rows[QP].make, message);
}

static void wrong_lengths(void)
{
	static const int more[] = { -4096, -16, -8, -1, 1, 8, 16 };
	struct message message;
	struct call call;

	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		qp_begin(&call, &message);
		call.header.length = (__u16)(call.header.length + more[i]);
		must_fail("length", call.header.length, call_run(uverbs, &call));
		qp_begin(&call, &message);
		call.header.num_attrs = (__u16)(call.header.num_attrs + more[i]);
		must_fail("number of attributes", call.header.num_attrs, call_run(uverbs, &call));
	}
	for (unsigned i = 0; i < 4; i++) {
		qp_begin(&call, &message);
		call.header.attrs[i].len = 4;
		must_fail("length of attribute", i, call_run(uverbs, &call));
		qp_begin(&call, &message);
		call.header.attrs[i].attr_id = UNKNOWN;
		must_fail("name of attribute", i, call_run(uverbs, &call));
	}
}

static void wrong_pointers(void)
{
	char *end = (char *)memory(2 * PAGE) + PAGE;
	static const uintptr_t nowhere[] = { 0, NO_ADDRESS,
					     (uintptr_t)1 << (8 * sizeof(void *) - 1),
					     UINTPTR_MAX - 7 };
	static const size_t parts_seen[] = { 1, 8, 16, 24, 40, 56 };
	struct message message;
	struct call call;

	munmap(end, PAGE);
	for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		must_fail("address", i, ioctl(uverbs, RDMA_VERBS_IOCTL, nowhere[i]) < 0);
		must_fail("address to write()", i, write(uverbs, (void *)nowhere[i], 64) < 0);
		qp_begin(&call, &message);
		call.header.attrs[1].data = nowhere[i];
		must_fail("address of a request", i, call_run(uverbs, &call));
	}
	for (unsigned i = 0; i < sizeof(parts_seen) / sizeof(parts_seen[0]); i++) {
		char *at = end - parts_seen[i];

		qp_begin(&call, &message);
		memcpy(at, &call, parts_seen[i]);
		must_fail("half a call", (unsigned)parts_seen[i],
			  ioctl(uverbs, RDMA_VERBS_IOCTL, at) < 0);
		memcpy(at, &message.header, parts_seen[i]);
		must_fail("half a message", (unsigned)parts_seen[i],
			  write(uverbs, at, sizeof(message.header) + rows[QP].make.request) < 0);
	}
}

static void many_attributes(void)
{
	static const struct command commands[] = {
		{ "a number too large", 0x7f, 64, 32, 0 },
		{ "an extended one", 0x80000000 | UNKNOWN, 64, 32, 0 },
		{ "one of all bits", UINT32_MAX, 64, 32, 0 },
	};
	enum {
		MOST = (UINT16_MAX - sizeof(struct ib_uverbs_ioctl_hdr)) /
		       sizeof(struct ib_uverbs_attr)
	};
	struct ib_uverbs_ioctl_hdr *header = memory(UINT16_MAX + 1);
	struct message message = { 0 };
	struct call call;

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		must_fail(commands[i].name, i, !by_padded(uverbs, &commands[i], &message, 1));
		must_fail(commands[i].name, i, !by_ioctl(uverbs, &commands[i], &message, 1));
		message_begin(&message, &commands[i], PD);
		must_fail(commands[i].name, i, !by_write(uverbs, &commands[i], &message, 1));
	}
	rows[QP].native(&call, &parts);
	while (call.header.num_attrs < ATTRIBUTES)
		call_add(&call, UNKNOWN, 0);
	must_fail("many attributes", ATTRIBUTES, call_run(uverbs, &call));
	call_begin(&call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	*header = call.header;
	header->num_attrs = MOST;
	header->length = sizeof(*header) + MOST * sizeof(struct ib_uverbs_attr);
	for (unsigned i = 0; i < MOST; i++)
		header->attrs[i].attr_id = UNKNOWN;
	must_fail("as many as there can be", MOST, ioctl(uverbs, RDMA_VERBS_IOCTL, header) < 0);
}

static int unknown(void)
{
	prepare(QP);
	unknown_methods();
	wrong_lengths();
	wrong_pointers();
	many_attributes();
	if (!accepted)
		printf("survived\n");
	return accepted ? 1 : 0;
}

/* ---- */

static bool number(const char *text, unsigned *ret_number)
{
	char *end;

	*ret_number = (unsigned)strtoul(text, &end, 10);
	return *text && !*end && *ret_number > 0;
}

static bool kind_is(const char *name, enum kind *ret_kind)
{
	for (enum kind kind = 0; kind < CM_ID; kind++)
		if (!strcmp(name, rows[kind].name)) {
			*ret_kind = kind;
			return true;
		}
	return false;
}

static int usage(void)
{
	fprintf(stderr, "usage: intruder fill KIND N [WAY] | bytes SIZE N [WAY] |\n"
			"       storm KIND PROCESSES THREADS [WAY] | flip KIND SECONDS [write] |\n"
			"       heirs KIND SECONDS [SOCKET] | receive SOCKET |\n"
			"       failing KIND N [WAY] | chain N | unknown\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool is_storm = !strcmp(what, "storm"), is_flip = !strcmp(what, "flip"), of_bytes;
	bool is_heirs = !strcmp(what, "heirs");
	const char *way = !is_heirs && argc > 4 + is_storm ? argv[4 + is_storm] : "ioctl";
	const struct path *path = strcmp(way, "padded") ? path_find(way) : &padded;
	unsigned first = 0, second = 0;
	enum kind kind = MR;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(what, "unknown"))
		return unknown();
	if (argc == 3 && !strcmp(what, "receive"))
		return receive_run(argv[2]);
	if (argc == 3 && !strcmp(what, "chain") && number(argv[2], &first))
		return chain(first);
	if (argc < 4 || argc > 5 + is_storm || !path || !number(argv[3], &first))
		return usage();
	if (!strcmp(what, "bytes")) {
		if (!number(argv[2], &second))
			return usage();
		parts.length = second;
		parts.memory = memory(second);
		return fill(path, kind, first, true);
	}
	of_bytes = is_flip && !strcmp(argv[2], "mr_bytes");
	if (!of_bytes && !kind_is(argv[2], &kind))
		return usage();
	parts.memory = memory(PAGE);
	if (is_storm && argc > 4 && number(argv[4], &second))
		return storm_run(path, kind, first, second);
	if (!strcmp(what, "fill"))
		return fill(path, kind, first, false);
	if (is_heirs && kind == QP)
		return heirs_run(kind, first, argc > 4 ? argv[4] : NULL);
	if (is_flip && (path == path_find("ioctl") || path == path_find("write")))
		return flip_run(kind, of_bytes, !path->native, first);
	if (!strcmp(what, "failing") && path != &padded)
		return failing(path, kind, first);
	return usage();
}
