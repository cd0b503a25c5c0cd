/* SPDX-License-Identifier: MIT */
/*
 * Makes RDMA objects by one of the ways into the kernel: the ioctl's own methods, the
 * old commands inside that ioctl, the old commands by write() or by writev(). No library
 * of RDMA is in it, so it also stands for a program that is linked statically or built
 * for 32 bits, and that nothing can be preloaded to.
 * Usage: paths ioctl|invoke_write|write|writev [N]
 * It makes one context and N (5) objects of each kind on uverbs0, says so in a line of
 * JSON, and waits. The line "destroy" makes it destroy all by the same way, say so and
 * wait again; the end of its input ends it, whatever it still holds.
 */
#include "raw.h"

enum { DEFAULT_COUNT = 5 };

static unsigned count = DEFAULT_COUNT;
static int uverbs, cm, async_events;
static __u32 *handles[KINDS];
static unsigned made[KINDS];
static bool native[KINDS], native_context;
static char *memory;
static const struct path *path;

static struct parts parts_of(unsigned i)
{
	return (struct parts){
		.pd = handles[PD][i],
		.cq = handles[CQ][i],
		.channel = handles[COMP_CHANNEL][i],
		.memory = memory + (size_t)i * PAGE,
		.length = PAGE,
		.number = i,
	};
}

static unsigned message_send(enum kind kind, const struct command *command, struct message *batch,
			     unsigned n)
{
	if (kind == CM_ID)
		return path->send_cm(cm, command, batch, n);
	return path->send(uverbs, command, batch, n);
}

/* Whether there is such a method. */
static bool make_native(enum kind kind)
{
	const struct row *row = &rows[kind];

	for (unsigned i = 0; i < count; i++) {
		struct parts parts = parts_of(i);
		struct call call;
		int error;

		row->native(&call, &parts);
		error = call_make(uverbs, &call, &handles[kind][i]);
		if (error == EPROTONOSUPPORT && i == 0)
			return false;
		if (error)
			fail(row->native_name, error);
		made[kind]++;
	}
	native[kind] = true;
	return true;
}

static void make_old(enum kind kind)
{
	static struct message batch[BATCH];
	const struct row *row = &rows[kind];

	while (made[kind] < count) {
		unsigned n = count - made[kind] < BATCH ? count - made[kind] : BATCH, done;

		for (unsigned i = 0; i < n; i++) {
			struct parts parts = parts_of(made[kind] + i);

			message_make(&batch[i], kind, &parts);
		}
		done = message_send(kind, &row->make, batch, n);
		if (row->may_lack && !made[kind] && !done && errno == EOPNOTSUPP)
			return;
		if (done < n)
			fail(row->make.name, errno);
		for (unsigned i = 0; i < n; i++)
			handles[kind][made[kind] + i] = answer(&batch[i]);
		made[kind] += n;
	}
}

static void make_all(void)
{
	async_events = context_make(uverbs, path, &native_context);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		handles[kind] = calloc(count, sizeof(__u32));
		if (!handles[kind])
			fail("calloc", errno);
	}
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (!path->native || !rows[kind].native || !make_native(kind))
			make_old(kind);
}

static void destroy_new(enum kind kind)
{
	for (unsigned i = 0; i < made[kind]; i++) {
		int error = destroy_native(uverbs, kind, handles[kind][i]);

		if (error)
			fail(rows[kind].native_destroy.name, error);
	}
}

static void destroy_old(enum kind kind)
{
	static struct message batch[BATCH];
	const struct command *command = &rows[kind].destroy;

	for (unsigned gone = 0, n; gone < made[kind]; gone += n) {
		n = made[kind] - gone < BATCH ? made[kind] - gone : BATCH;
		for (unsigned i = 0; i < n; i++)
			message_destroy(&batch[i], kind, handles[kind][gone + i]);
		if (message_send(kind, command, batch, n) < n)
			fail(command->name, errno);
	}
}

static void close_file(int file, const char *what)
{
	if (close(file) < 0)
		fail(what, errno);
}

static void destroy_all(void)
{
	for (unsigned kind = KINDS; kind-- > 0;) {
		if (!rows[kind].destroy.name)
			for (unsigned i = 0; i < made[kind]; i++)
				close_file((int)handles[kind][i], "closing a completion channel");
		else if (path->native && rows[kind].native_destroy.name)
			destroy_new(kind);
		else
			destroy_old(kind);
	}
	close_file(cm, "closing rdma_cm");
	close_file(async_events, "closing the file of asynchronous events");
	close_file(uverbs, "closing uverbs0");
}

static void list(const char *title, bool with_context, const bool chosen[KINDS])
{
	const char *comma = "";

	printf(",\"%s\":[", title);
	if (with_context) {
		printf("\"ctx\"");
		comma = ",";
	}
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (chosen[kind]) {
			printf("%s\"%s\"", comma, rows[kind].name);
			comma = ",";
		}
	printf("]");
}

/* "absent" is what this kernel has no way to make on this device, "native" what was made
 * by a method of its own. */
static void report(void)
{
	bool absent[KINDS];

	printf("{\"pid\":%d,\"path\":\"%s\",\"bits\":%u,\"ctx\":1", (int)getpid(), path->name,
	       (unsigned)sizeof(void *) * 8);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		absent[kind] = !made[kind];
		printf(",\"%s\":%u", rows[kind].name, made[kind]);
		if (kind == MR)
			printf(",\"mr_bytes\":%llu", (unsigned long long)made[kind] * PAGE);
	}
	list("native", native_context, native);
	list("absent", false, absent);
	printf("}\n");
	fflush(stdout);
}

static void prepare(void)
{
	memory = aligned_alloc(PAGE, (size_t)count * PAGE);
	if (!memory)
		fail("aligned_alloc", errno);
	uverbs = device_open();
	cm = open_device("/dev/infiniband/rdma_cm");
}

static bool arguments(int argc, char **argv)
{
	char *end = "";

	if (argc < 2 || argc > 3)
		return false;
	path = path_find(argv[1]);
	if (argc == 3)
		count = (unsigned)strtoul(argv[2], &end, 10);
	return path && !*end && count > 0 && count <= UINT32_MAX / PAGE;
}

int main(int argc, char **argv)
{
	bool destroyed = false;
	char line[64];

	if (!arguments(argc, argv)) {
		fprintf(stderr, "usage: paths ioctl|invoke_write|write|writev [N]\n");
		return 2;
	}
	prepare();
	make_all();
	report();
	while (fgets(line, sizeof(line), stdin)) {
		if (destroyed)
			continue;
		if (strcmp(line, "destroy\n") != 0) {
			fprintf(stderr, "paths: the only command is \"destroy\", not %s", line);
			return 1;
		}
		destroy_all();
		destroyed = true;
		printf("{\"destroyed\":true}\n");
		fflush(stdout);
	}
	return 0;
}
