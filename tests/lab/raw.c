/* SPDX-License-Identifier: MIT */
/* The commands, methods and senders, and the table of the kinds; see raw.h. */
#include "raw.h"

#include <sys/ioctl.h>
#include <sys/uio.h>

#include <rdma/rdma_user_rxe.h>

#define DEVICE "rxe0"
#define GID_FILE "/sys/class/infiniband/" DEVICE "/ports/1/gids/0"
#define OWNER_FILE "/sys/class/infiniband_verbs/uverbs0/ibdev"

enum {
	CQ_DEPTH = 16,
	SRQ_DEPTH = 16,
	QP_DEPTH = 4,
	MW_TYPE_1 = 1, /* no header of the kernel names it for programs */
};

_Static_assert(offsetof(struct message, request) ==
		       offsetof(struct message, header) + sizeof(struct ib_uverbs_cmd_hdr),
	       "no gap between header and request");
_Static_assert(offsetof(struct ib_uverbs_destroy_cq, cq_handle) ==
		       offsetof(struct rdma_ucm_destroy_id, id),
	       "one layout for everything whose destruction is answered");

_Static_assert(sizeof(struct ib_uverbs_create_qp_resp) + sizeof(struct rxe_create_qp_resp) <=
		       RESPONSE,
	       "room for the longest answer");

static __u8 gid[16]; /* the device's own */

_Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s failed: %s (errno %d)\n", program_invocation_short_name, what,
		strerror(error), error);
	exit(1);
}

__u64 address(const void *at)
{
	return (uintptr_t)at;
}

void call_begin(struct call *call, __u16 object, __u16 method)
{
	memset(call, 0, sizeof(*call));
	call->header.length = sizeof(call->header);
	call->header.object_id = object;
	call->header.method_id = method;
	call->header.driver_id = RDMA_DRIVER_RXE;
}

struct ib_uverbs_attr *call_add(struct call *call, __u16 id, size_t size)
{
	struct ib_uverbs_attr *attribute = &call->header.attrs[call->header.num_attrs++];

	call->header.length += sizeof(*attribute);
	attribute->attr_id = id;
	attribute->len = (__u16)size;
	attribute->flags = UVERBS_ATTR_F_MANDATORY;
	return attribute;
}

static void call_object(struct call *call, __u16 id, __u32 handle)
{
	call_add(call, id, 0)->data = handle;
}

/* What fits into the attribute itself has to be there. */
static void call_in(struct call *call, __u16 id, const void *from, size_t size)
{
	struct ib_uverbs_attr *attribute = call_add(call, id, size);

	if (size > sizeof(attribute->data))
		attribute->data = address(from);
	else
		memcpy(&attribute->data, from, size);
}

static void call_u32(struct call *call, __u16 id, __u32 value)
{
	call_in(call, id, &value, sizeof(value));
}

static void call_u64(struct call *call, __u16 id, __u64 value)
{
	call_in(call, id, &value, sizeof(value));
}

static void call_out(struct call *call, __u16 id, void *to, size_t size)
{
	call_add(call, id, size)->data = address(to);
}

int call_run(int file, struct call *call)
{
	return ioctl(file, RDMA_VERBS_IOCTL, call) < 0 ? errno : 0;
}

/* The object that was made is the first attribute of all methods that make one. */
int call_make(int file, struct call *call, __u32 *ret_handle)
{
	int error = call_run(file, call);

	if (!error)
		*ret_handle = (__u32)call->header.attrs[0].data;
	return error;
}

unsigned by_write(int file, const struct command *command, struct message *batch, unsigned n)
{
	size_t size = sizeof(batch->header) + command->request;
	unsigned done = 0;

	while (done < n && write(file, &batch[done].header, size) == (ssize_t)size)
		done++;
	return done;
}

/* Neither device has a write_iter, so the kernel calls their write() once per piece: a
 * piece is a message, whole, and there may be many. If it fails in the middle, the call
 * returns what went before, and only the next call says why. */
static unsigned by_writev(int file, const struct command *command, struct message *batch,
			  unsigned n)
{
	size_t size = sizeof(batch->header) + command->request;
	struct iovec pieces[BATCH];
	unsigned done = 0;

	for (unsigned i = 0; i < n; i++)
		pieces[i] = (struct iovec){ &batch[i].header, size };
	while (done < n) {
		ssize_t taken = writev(file, pieces + done, (int)(n - done));

		if (taken <= 0)
			break;
		done += (unsigned)((size_t)taken / size);
	}
	return done;
}

void call_add_command(struct call *call, const struct command *command, struct message *message)
{
	call_u64(call, UVERBS_ATTR_WRITE_CMD, command->number);
	call_in(call, UVERBS_ATTR_CORE_IN, &message->request, command->request);
	if (command->response)
		call_out(call, UVERBS_ATTR_CORE_OUT, message->response, command->response);
	if (command->driver)
		call_out(call, UVERBS_ATTR_UHW_OUT, message->response + command->response,
			 command->driver);
}

unsigned by_ioctl(int file, const struct command *command, struct message *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct call call;

		call_begin(&call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		call_add_command(&call, command, &batch[i]);
		errno = call_run(file, &call);
		if (errno)
			return i;
	}
	return n;
}

const struct path paths[PATHS] = {
	{ "ioctl", true, by_ioctl, by_write },
	{ "invoke_write", false, by_ioctl, by_write },
	{ "write", false, by_write, by_write },
	{ "writev", false, by_writev, by_writev },
};

const struct path *path_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!strcmp(name, paths[i].name))
			return &paths[i];
	return NULL;
}

void message_begin(struct message *message, const struct command *command, enum kind kind)
{
	memset(message, 0, sizeof(*message));
	if (kind == CM_ID)
		message->header.cm = (struct rdma_ucm_cmd_hdr){
			.cmd = command->number,
			.in = command->request,
			.out = command->response,
		};
	else
		message->header.uverbs = (struct ib_uverbs_cmd_hdr){
			.command = command->number,
			.in_words = (__u16)((sizeof(message->header) + command->request) / 4),
			.out_words = (__u16)((command->response + command->driver) / 4),
		};
	if (command->response)
		message->request.response = address(message->response);
}

__u32 answer(const struct message *message)
{
	__u32 first;

	memcpy(&first, message->response, sizeof(first));
	return first;
}

static void fill_cq(struct message *message, const struct parts *parts)
{
	message->request.cq.cqe = CQ_DEPTH;
	message->request.cq.comp_channel = (__s32)parts->channel;
}

static void fill_srq(struct message *message, const struct parts *parts)
{
	message->request.srq.pd_handle = parts->pd;
	message->request.srq.max_wr = SRQ_DEPTH;
	message->request.srq.max_sge = 1;
}

static void fill_qp(struct message *message, const struct parts *parts)
{
	struct ib_uverbs_create_qp *request = &message->request.qp;

	request->pd_handle = parts->pd;
	request->send_cq_handle = parts->cq;
	request->recv_cq_handle = parts->cq;
	request->max_send_wr = QP_DEPTH;
	request->max_recv_wr = QP_DEPTH;
	request->max_send_sge = 1;
	request->max_recv_sge = 1;
	request->qp_type = IB_UVERBS_QPT_RC;
}

static void fill_mr(struct message *message, const struct parts *parts)
{
	struct ib_uverbs_reg_mr *request = &message->request.mr;

	request->pd_handle = parts->pd;
	request->start = address(parts->memory);
	request->hca_va = request->start;
	request->length = parts->length;
	request->access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE;
}

static void fill_mw(struct message *message, const struct parts *parts)
{
	message->request.mw.pd_handle = parts->pd;
	message->request.mw.mw_type = MW_TYPE_1;
}

/* RoCE takes no address without a GRH; the device's own will do. */
static void fill_ah(struct message *message, const struct parts *parts)
{
	struct ib_uverbs_create_ah *request = &message->request.ah;

	request->pd_handle = parts->pd;
	request->attr.port_num = 1;
	request->attr.is_global = 1;
	request->attr.grh.hop_limit = 1;
	memcpy(request->attr.grh.dgid, gid, sizeof(gid));
}

static void fill_cm_id(struct message *message, const struct parts *parts)
{
	message->request.cm_id.uid = parts->number;
	message->request.cm_id.response = address(message->response);
	message->request.cm_id.ps = RDMA_PS_TCP;
	message->request.cm_id.qp_type = IB_UVERBS_QPT_RC;
}

static void native_cq(struct call *call, const struct parts *parts)
{
	call_begin(call, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	call_object(call, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	call_u32(call, UVERBS_ATTR_CREATE_CQ_CQE, CQ_DEPTH);
	call_u64(call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, parts->number);
	if (parts->channel != NO_CHANNEL)
		call_object(call, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, parts->channel);
	call_u32(call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0);
	call_out(call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &call->answer[0], sizeof(__u32));
	call_out(call, UVERBS_ATTR_UHW_OUT, call->driver, sizeof(struct rxe_create_cq_resp));
}

static void native_srq(struct call *call, const struct parts *parts)
{
	call_begin(call, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	call_object(call, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	call_object(call, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, parts->pd);
	call_u64(call, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC);
	call_u64(call, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, parts->number);
	call_u32(call, UVERBS_ATTR_CREATE_SRQ_MAX_WR, SRQ_DEPTH);
	call_u32(call, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 1);
	call_u32(call, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	call_out(call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &call->answer[0], sizeof(__u32));
	call_out(call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &call->answer[1], sizeof(__u32));
	call_out(call, UVERBS_ATTR_UHW_OUT, call->driver, sizeof(struct rxe_create_srq_resp));
}

static void native_qp(struct call *call, const struct parts *parts)
{
	call_begin(call, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	call->wanted = (struct ib_uverbs_qp_cap){ QP_DEPTH, QP_DEPTH, 1, 1, 0 };
	call_object(call, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	call_object(call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, parts->pd);
	call_object(call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, parts->cq);
	call_object(call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, parts->cq);
	call_u64(call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, parts->number);
	call_u64(call, UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_RC);
	call_in(call, UVERBS_ATTR_CREATE_QP_CAP, &call->wanted, sizeof(call->wanted));
	call_out(call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &call->given, sizeof(call->given));
	call_out(call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &call->answer[0], sizeof(__u32));
	call_out(call, UVERBS_ATTR_UHW_OUT, call->driver, sizeof(struct rxe_create_qp_resp));
}

static void native_mr(struct call *call, const struct parts *parts)
{
	call_begin(call, UVERBS_OBJECT_MR, METHOD_REG_MR);
	call_object(call, REG_MR_HANDLE, 0);
	call_object(call, REG_MR_PD_HANDLE, parts->pd);
	call_u64(call, REG_MR_IOVA, address(parts->memory));
	call_u64(call, REG_MR_ADDR, address(parts->memory));
	call_u64(call, REG_MR_LENGTH, parts->length);
	call_u64(call, REG_MR_ACCESS_FLAGS, IB_UVERBS_ACCESS_LOCAL_WRITE);
	call_out(call, REG_MR_RESP_LKEY, &call->answer[0], sizeof(__u32));
	call_out(call, REG_MR_RESP_RKEY, &call->answer[1], sizeof(__u32));
}

/* clang-format off */
#define SIZE(what) sizeof(struct ib_uverbs_##what)
#define COMMAND(number, request, response, driver) \
	{ #number, number, request, response, driver }
#define DESTROY(object, response) \
	{ "UVERBS_METHOD_" #object "_DESTROY", UVERBS_OBJECT_##object, \
	  UVERBS_METHOD_##object##_DESTROY, response }
/* clang-format on */

static const struct command get_context =
	COMMAND(IB_USER_VERBS_CMD_GET_CONTEXT, SIZE(get_context), SIZE(get_context_resp), 0);

const struct row rows[KINDS] = {
	[PD] = {
		.name = "pd",
		.make = COMMAND(IB_USER_VERBS_CMD_ALLOC_PD, SIZE(alloc_pd), SIZE(alloc_pd_resp), 0),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DEALLOC_PD, SIZE(dealloc_pd), 0, 0),
		.native_destroy = DESTROY(PD, 0),
	},
	[COMP_CHANNEL] = {
		.name = "comp_channel",
		.make = COMMAND(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, SIZE(create_comp_channel),
				SIZE(create_comp_channel_resp), 0),
	},
	[CQ] = {
		.name = "cq",
		.make = COMMAND(IB_USER_VERBS_CMD_CREATE_CQ, SIZE(create_cq), SIZE(create_cq_resp),
				sizeof(struct rxe_create_cq_resp)),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DESTROY_CQ, SIZE(destroy_cq),
				   SIZE(destroy_cq_resp), 0),
		.fill = fill_cq,
		.native_name = "UVERBS_METHOD_CQ_CREATE",
		.native = native_cq,
		.native_destroy = DESTROY(CQ, SIZE(destroy_cq_resp)),
	},
	[SRQ] = {
		.name = "srq",
		.make = COMMAND(IB_USER_VERBS_CMD_CREATE_SRQ, SIZE(create_srq),
				SIZE(create_srq_resp), sizeof(struct rxe_create_srq_resp)),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DESTROY_SRQ, SIZE(destroy_srq),
				   SIZE(destroy_srq_resp), 0),
		.fill = fill_srq,
		.native_name = "UVERBS_METHOD_SRQ_CREATE",
		.native = native_srq,
		.native_destroy = DESTROY(SRQ, SIZE(destroy_srq_resp)),
	},
	[QP] = {
		.name = "qp",
		.make = COMMAND(IB_USER_VERBS_CMD_CREATE_QP, SIZE(create_qp), SIZE(create_qp_resp),
				sizeof(struct rxe_create_qp_resp)),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DESTROY_QP, SIZE(destroy_qp),
				   SIZE(destroy_qp_resp), 0),
		.fill = fill_qp,
		.native_name = "UVERBS_METHOD_QP_CREATE",
		.native = native_qp,
		.native_destroy = DESTROY(QP, SIZE(destroy_qp_resp)),
	},
	[MR] = {
		.name = "mr",
		.make = COMMAND(IB_USER_VERBS_CMD_REG_MR, SIZE(reg_mr), SIZE(reg_mr_resp), 0),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DEREG_MR, SIZE(dereg_mr), 0, 0),
		.fill = fill_mr,
		.native_name = "UVERBS_METHOD_REG_MR",
		.native = native_mr,
		.native_destroy = DESTROY(MR, 0),
	},
	[MW] = {
		.name = "mw",
		.make = COMMAND(IB_USER_VERBS_CMD_ALLOC_MW, SIZE(alloc_mw), SIZE(alloc_mw_resp), 0),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DEALLOC_MW, SIZE(dealloc_mw), 0, 0),
		.fill = fill_mw,
		.native_destroy = DESTROY(MW, 0),
		.may_lack = true,
	},
	[AH] = {
		.name = "ah",
		.make = COMMAND(IB_USER_VERBS_CMD_CREATE_AH, SIZE(create_ah), SIZE(create_ah_resp),
				sizeof(struct rxe_create_ah_resp)),
		.destroy = COMMAND(IB_USER_VERBS_CMD_DESTROY_AH, SIZE(destroy_ah), 0, 0),
		.fill = fill_ah,
		.native_destroy = DESTROY(AH, 0),
	},
	[CM_ID] = {
		.name = "cm_id",
		.make = COMMAND(RDMA_USER_CM_CMD_CREATE_ID, sizeof(struct rdma_ucm_create_id),
				sizeof(struct rdma_ucm_create_id_resp), 0),
		.destroy = COMMAND(RDMA_USER_CM_CMD_DESTROY_ID, sizeof(struct rdma_ucm_destroy_id),
				   sizeof(struct rdma_ucm_destroy_id_resp), 0),
		.fill = fill_cm_id,
	},
};

void message_make(struct message *message, enum kind kind, const struct parts *parts)
{
	message_begin(message, &rows[kind].make, kind);
	if (rows[kind].fill)
		rows[kind].fill(message, parts);
}

void message_destroy(struct message *message, enum kind kind, __u32 handle)
{
	message_begin(message, &rows[kind].destroy, kind);
	if (rows[kind].destroy.response)
		message->request.answered.cq_handle = handle;
	else
		message->request.bare.pd_handle = handle;
}

int destroy_native(int file, enum kind kind, __u32 handle)
{
	const struct row *row = &rows[kind];
	struct call call;

	call_begin(&call, row->native_destroy.object, row->native_destroy.method);
	call_object(&call, 0, handle);
	if (row->native_destroy.response)
		call_out(&call, 1, call.driver, row->native_destroy.response);
	return call_run(file, &call);
}

/* The old command makes a file for asynchronous events as well; here it is asked for. */
static int context_native(int file)
{
	struct call call;
	__u32 events;
	int error;

	call_begin(&call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	call_out(&call, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &call.answer[0], sizeof(__u32));
	error = call_run(file, &call);
	if (error)
		fail("UVERBS_METHOD_GET_CONTEXT", error);
	call_begin(&call, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	call_object(&call, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	error = call_make(file, &call, &events);
	if (error)
		fail("UVERBS_METHOD_ASYNC_EVENT_ALLOC", error);
	return (int)events;
}

/* Since 6.15 no context can be made by INVOKE_WRITE, on any device: both ways end in
 * ib_init_ucontext(), which there looks for attribute 2 of GET_CONTEXT, a list of file
 * descriptors. Of INVOKE_WRITE attribute 2 is the number of the command, a zero of eight
 * bytes: twice descriptor 0, which is not one of those sought, hence EBADF. The method
 * takes its place, and *ret_native says so. The file of asynchronous events is returned. */
int context_make(int file, const struct path *path, bool *ret_native)
{
	struct message message;

	*ret_native = false;
	message_begin(&message, &get_context, PD);
	if (!path->native && path->send(file, &get_context, &message, 1))
		return (int)answer(&message);
	if (!path->native && (path->send != by_ioctl || errno != EBADF))
		fail(get_context.name, errno);
	*ret_native = true;
	return context_native(file);
}

static void read_line(const char *name, char *line, int size)
{
	FILE *file = fopen(name, "re");

	if (!file || !fgets(line, size, file))
		fail(name, errno);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
}

/* "fe80:0000:0000:0000:1861:a4ff:fe43:7eaf" */
static void read_gid(void)
{
	static const __u8 none[sizeof(gid)];
	char line[64];
	const char *at = line;

	read_line(GID_FILE, line, sizeof(line));
	for (unsigned i = 0; i < sizeof(gid); i += 2) {
		char *end;
		unsigned long group = strtoul(at, &end, 16);

		gid[i] = (__u8)(group >> 8);
		gid[i + 1] = (__u8)group;
		at = *end ? end + 1 : end;
	}
	if (!memcmp(gid, none, sizeof(gid)))
		fail("looking for a GID in " GID_FILE, ENOENT);
}

int open_device(const char *name)
{
	int file = open(name, O_RDWR | O_CLOEXEC);

	if (file < 0)
		fail(name, errno);
	return file;
}

/* uverbs0, if that is the device; it is told of as well. */
int device_open(void)
{
	char owner[64];

	read_line(OWNER_FILE, owner, sizeof(owner));
	if (strcmp(owner, DEVICE) != 0)
		fail("finding " DEVICE " behind uverbs0", ENODEV);
	read_gid();
	return open_device("/dev/infiniband/uverbs0");
}
