/* SPDX-License-Identifier: MIT */
/*
 * Programs of tenants, for the property test of the guard (hostiles.c, which starts them).
 * Usage: hostile attack SEED DEPTH [FILE...]  does at random, until it is killed, what a program
 *                                             can do to get more than its tenant's limits
 *        hostile witness SEED                 makes and destroys what its tenant may have, until
 *                                             SIGTERM: "witness rounds N"; ends with 1 at the
 *                                             first failure
 * Descriptors POOL_SEND and POOL_TAKE are the two ends of a socket that all of them share.
 */
#include "parcel.h"
#include "raw.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum {
	POOL_SEND = 10,
	POOL_TAKE,
	FILES = 8,
	OBJECTS = 32,
	RACE_SECONDS = 2,
	FILL = 2000, /* more than a tenant's share of a small table */
	DEPTH = 3,
	REST_US = 20000, /* of a witness: others shall get to run at the same time */
	LARGE = 1 << 20,
	NO_HANDLE = 0xffffff,
	UNKNOWN = 0xfff,
	WITNESS_QPS = 4,
	WITNESS_MRS = 2,
};

static struct {
	int fd;
	__u32 pd, cq;
} files[FILES];
static unsigned file_count;

static struct {
	int fd;
	enum kind kind;
	__u32 handle;
} objects[OBJECTS];
static unsigned object_count;

static unsigned long seed, depth;
static char *program;
static void *memory;

static unsigned pick(unsigned bound)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)((__u64)seed >> (sizeof(seed) * 8 - 31)) % bound;
}

/* ---- objects */

static int make_one(int fd, const struct parts *parts, const struct path *path, enum kind kind,
		    __u32 *ret_handle)
{
	struct message message;
	struct call call;
	int error;

	if (path->native && rows[kind].native) {
		rows[kind].native(&call, parts);
		error = call_make(fd, &call, ret_handle);
		if (error != EPROTONOSUPPORT)
			return error;
	}
	message_make(&message, kind, parts);
	if (!path->send(fd, &rows[kind].make, &message, 1))
		return errno ? errno : EIO;
	*ret_handle = answer(&message);
	return 0;
}

static int destroy_one(int fd, enum kind kind, __u32 handle)
{
	if (!rows[kind].destroy.name)
		return close((int)handle) ? errno : 0;
	return destroy_native(fd, kind, handle);
}

static struct parts parts_of(unsigned file)
{
	return (struct parts){ .pd = files[file].pd,
			       .cq = files[file].cq,
			       .channel = NO_CHANNEL,
			       .memory = memory,
			       .length = PAGE };
}

/* ---- passing files */

static void pass(int fd)
{
	struct parcel parcel;

	parcel_wrap_file(&parcel, fd);
	sendmsg(POOL_SEND, &parcel.header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* -1: there was none. */
static int taken(void)
{
	struct cmsghdr *control;
	struct parcel parcel;
	int fd = -1;

	parcel_wrap(&parcel);
	if (recvmsg(POOL_TAKE, &parcel.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	control = CMSG_FIRSTHDR(&parcel.header);
	if (control && control->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

/* ---- what an attacker does */

static void file_add(int fd)
{
	if (file_count == FILES || fd < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	files[file_count].fd = fd;
	files[file_count].pd = files[file_count].cq = pick(4); /* of another's: guessed */
	file_count++;
}

static void do_open(void)
{
	int fd = file_count < FILES ? open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC) : -1;
	struct parts parts;
	bool native;

	if (fd < 0)
		return;
	context_make(fd, path_find("ioctl"), &native);
	file_add(fd);
	parts = parts_of(file_count - 1);
	make_one(fd, &parts, path_find("ioctl"), PD, &files[file_count - 1].pd);
	make_one(fd, &parts, path_find("ioctl"), CQ, &files[file_count - 1].cq);
}

static void do_make(void)
{
	enum kind kind = (enum kind)pick(CM_ID);
	const struct path *path = &paths[pick(PATHS)];
	unsigned file, again = 1 + pick(8);
	struct parts parts;
	__u32 handle;

	if (!file_count)
		return;
	file = pick(file_count);
	parts = parts_of(file);
	while (again-- && !make_one(files[file].fd, &parts, path, kind, &handle)) {
		if (object_count == OBJECTS)
			continue;
		objects[object_count].fd = files[file].fd;
		objects[object_count].kind = kind;
		objects[object_count++].handle = handle;
	}
}

/* Takes all places that the guard's table of charges has for the tenant: MWs have no limit. */
static void do_fill(void)
{
	unsigned file, again = FILL;
	struct parts parts;
	__u32 handle;

	if (!file_count)
		return;
	file = pick(file_count);
	parts = parts_of(file);
	while (again-- && !make_one(files[file].fd, &parts, path_find("ioctl"), MW, &handle))
		;
}

static void do_destroy(void)
{
	unsigned which;

	if (!object_count)
		return;
	which = pick(object_count);
	destroy_one(objects[which].fd, objects[which].kind, objects[which].handle);
	objects[which] = objects[--object_count];
}

static void do_close(void)
{
	unsigned file;

	if (!file_count)
		return;
	file = pick(file_count);
	close(files[file].fd);
	files[file] = files[--file_count];
}

static void do_pass(void)
{
	if (file_count)
		pass(files[pick(file_count)].fd);
}

static void do_take(void)
{
	file_add(taken());
}

static void do_fork(void)
{
	if (depth < DEPTH && fork() == 0) {
		depth++;
		seed += (unsigned long)getpid();
	}
}

/* As a program of the other width, with the files. */
static void do_exec(void)
{
	char other[256], numbers[FILES + 2][24], *arguments[FILES + 6] = { other, "attack" };
	size_t length = strlen(program);
	unsigned count = 2;

	snprintf(other, sizeof(other), "%s", program);
	if (length > 2 && !strcmp(other + length - 2, "32"))
		other[length - 2] = '\0';
	else
		strcat(other, "32");
	if (access(other, X_OK))
		return;
	snprintf(numbers[0], sizeof(numbers[0]), "%lu", seed);
	snprintf(numbers[1], sizeof(numbers[1]), "%lu", depth);
	for (unsigned i = 0; i < file_count; i++) {
		fcntl(files[i].fd, F_SETFD, 0);
		snprintf(numbers[i + 2], sizeof(numbers[i + 2]), "%d", files[i].fd);
	}
	for (unsigned i = 0; i < file_count + 2; i++)
		arguments[count++] = numbers[i];
	execv(other, arguments);
}

/* A place in a command that another thread changes meanwhile. */
static struct race {
	struct call call;
	struct message message;
	size_t written; /* by write(), so much of the message; 0: by the ioctl */
	__u32 *volatile at;
	__u32 harmless, harmful;
	bool over;
} race;

static void *race_thread(void *unused)
{
	for (unsigned turn = 0; !__atomic_load_n(&race.over, __ATOMIC_RELAXED); turn++) {
		__atomic_store_n(race.at, turn & 1 ? race.harmful : race.harmless,
				 __ATOMIC_RELAXED);
		for (unsigned i = turn * 7 % 97; i; i--)
			pause_briefly();
	}
	return NULL;
}

static void do_race(void)
{
	struct parts parts;
	time_t until = time(NULL) + RACE_SECONDS;
	bool of_bytes = false;
	pthread_t thread;
	unsigned file;
	__u32 handle;

	if (!file_count)
		return;
	file = pick(file_count);
	parts = parts_of(file);
	memset(&race, 0, sizeof(race));
	switch (pick(4)) {
	case 0: /* object and method are one word; a method that there is not */
		rows[QP].native(&race.call, &parts);
		race.at = (__u32 *)&race.call.header.object_id;
		race.harmful = *race.at;
		race.harmless = race.harmful | (__u32)UNKNOWN << 16;
		break;
	case 1:
		message_make(&race.message, QP, &parts);
		call_begin(&race.call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		call_add_command(&race.call, &rows[QP].make, &race.message);
		race.at = (__u32 *)&race.call.header.attrs[0].data;
		race.harmful = rows[QP].make.number;
		race.harmless = IB_USER_VERBS_CMD_QUERY_DEVICE;
		break;
	case 2:
		message_make(&race.message, QP, &parts);
		race.written = sizeof(race.message.header) + rows[QP].make.request;
		race.at = &race.message.header.uverbs.command;
		race.harmful = rows[QP].make.number;
		race.harmless = UNKNOWN;
		break;
	default:
		of_bytes = true;
		parts.length = 1;
		message_make(&race.message, MR, &parts);
		call_begin(&race.call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		call_add_command(&race.call, &rows[MR].make, &race.message);
		race.at = (__u32 *)&race.message.request.mr.length;
		race.harmful = LARGE;
		race.harmless = 1;
		break;
	}
	/* Only who has all that it may have gets too much by a race; of bytes, a race is enough. */
	while (!of_bytes && !make_one(files[file].fd, &parts, path_find("ioctl"), QP, &handle))
		;
	if (pthread_create(&thread, NULL, race_thread, NULL))
		return;
	while (time(NULL) < until) {
		if (!race.written)
			call_run(files[file].fd, &race.call);
		else if (write(files[file].fd, &race.message.header, race.written) < 0)
			continue;
	}
	__atomic_store_n(&race.over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void do_rest(void)
{
	usleep(pick(3000));
}

static void do_end(void)
{
	if (depth && pick(3) == 0)
		exit(0);
}

static _Noreturn void attack(int count, char **inherited)
{
	static void (*const actions[])(void) = {
		do_open, do_make, do_make, do_make, do_make, do_destroy, do_destroy, do_close,
		do_pass, do_take, do_fork, do_race, do_race, do_rest,	 do_end,
	};

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < count; i++)
		file_add(atoi(inherited[i]));
	if (!count) {
		do_open();
		do_fill();
	}
	for (;;) {
		if (pick(200) == 0)
			do_exec();
		if (pick(60) == 0)
			do_fill();
		actions[pick(sizeof(actions) / sizeof(actions[0]))]();
	}
}

/* ---- a witness */

static volatile sig_atomic_t is_over;

static void over(int signal_number)
{
	is_over = 1;
}

static void must(const char *what, int error)
{
	if (error)
		fail(what, error);
}

/* Makes, at most, what its tenant may have, and leaves nothing. */
static void witness_round(void)
{
	const struct path *path = &paths[pick(2) ? 0 : 2]; /* ioctl or write */
	struct parts parts = { .channel = NO_CHANNEL, .memory = memory, .length = PAGE };
	__u32 qps[WITNESS_QPS], mrs[WITNESS_MRS];
	int fd = device_open(), passed = taken(), events;
	bool native;

	events = context_make(fd, path_find("ioctl"), &native);
	must("a PD", make_one(fd, &parts, path, PD, &parts.pd));
	must("a CQ", make_one(fd, &parts, path, CQ, &parts.cq));
	for (unsigned i = 0; i < WITNESS_QPS; i++)
		must("a QP", make_one(fd, &parts, path, QP, &qps[i]));
	for (unsigned i = 0; i < WITNESS_MRS; i++)
		must("an MR", make_one(fd, &parts, path, MR, &mrs[i]));
	/* Of a file that somebody has passed to it, it wants nothing; whatever comes of that. */
	if (passed >= 0) {
		destroy_native(passed, PD, NO_HANDLE);
		close(passed);
	}
	for (unsigned i = 0; i < WITNESS_MRS; i++)
		must("destroying an MR", destroy_one(fd, MR, mrs[i]));
	for (unsigned i = 0; i < WITNESS_QPS; i++)
		must("destroying a QP", destroy_one(fd, QP, qps[i]));
	must("destroying the CQ", destroy_one(fd, CQ, parts.cq));
	must("destroying the PD", destroy_one(fd, PD, parts.pd));
	close(events);
	close(fd);
}

static int witness(void)
{
	unsigned rounds = 0;

	signal(SIGTERM, over);
	for (; !is_over; rounds++) {
		witness_round();
		usleep(REST_US);
	}
	printf("witness rounds %u\n", rounds);
	return rounds ? 0 : 1;
}

int main(int argc, char **argv)
{
	program = argv[0];
	memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap", errno);
	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	if (argc == 3 && !strcmp(argv[1], "witness"))
		return witness();
	if (argc < 4 || strcmp(argv[1], "attack") != 0) {
		fprintf(stderr, "usage: hostile attack SEED DEPTH [FILE...] | witness SEED\n");
		return 2;
	}
	depth = strtoul(argv[3], NULL, 10);
	attack(argc - 4, argv + 4);
}
