/* SPDX-License-Identifier: MIT */
/*
 * Commands that the kernel must refuse: of parts that do not exist, of sizes that are too large, of
 * methods, lengths, addresses and attributes that no kernel knows.
 */
#include "intruder.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

enum {
	NO_HANDLE = 0xffffff,
	NO_ADDRESS = 8,
	DRIVERS = 0x1000, /* where objects and methods of drivers begin */
};

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

int failing_run(const struct path *path, enum kind kind, unsigned count)
{
	unsigned made = 0, refused = 0, failed = 0;

	context_prepare(kind);
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
	char *end = (char *)memory_share(2 * PAGE) + PAGE;
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
	struct ib_uverbs_ioctl_hdr *header = memory_share(UINT16_MAX + 1);
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

int unknown_run(void)
{
	context_prepare(QP);
	unknown_methods();
	wrong_lengths();
	wrong_pointers();
	many_attributes();
	if (!accepted)
		printf("survived\n");
	return accepted ? 1 : 0;
}
