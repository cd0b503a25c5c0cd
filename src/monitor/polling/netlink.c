/* SPDX-License-Identifier: MIT */
/*
 * Asking and parsing; see netlink.h. The kernel is trusted to mean well, not to be of the
 * version that we know: every length is checked, and unknown attributes are passed over. libmnl
 * ends a list at the first attribute or message that does not fit; here that is a fault.
 */
#include "monitor/polling/netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
	ATTEMPTS = 5,		/* at one list that changes while it is read */
	TIMEOUT_SECONDS = 5,	/* the kernel answers at once, or it is stuck */
	DATAGRAM_BYTES = 65536, /* the kernel's are 32768 at most */
	ATTR_DRIVER_DETAILS = 97, /* RDMA_NLDEV_ATTR_DRIVER_DETAILS, which older headers lack */
};

/* What can be listed. */
struct dump {
	__u32 counter;
	unsigned command;
	unsigned table, entry; /* attributes in which the objects lie; 0: the message is one */
	unsigned number, size; /* attributes of an object; 0: none */
	__u32 size_counter;
	__u64 complete; /* the counters that the list is the whole of */
};

#define BIT(counter) (1ull << (counter))
#define LIST(kind, NAME, number_attribute, size_attribute, size_kind, complete_counters)           \
	{                                                                                          \
		KIND_##kind, RDMA_NLDEV_CMD_RES_##NAME##_GET, RDMA_NLDEV_ATTR_RES_##NAME,          \
			RDMA_NLDEV_ATTR_RES_##NAME##_ENTRY, number_attribute, size_attribute,      \
			size_kind, complete_counters                                               \
	}

static const struct dump dumps[] = {
	LIST(ctx, CTX, RDMA_NLDEV_ATTR_RES_CTXN, 0, 0, BIT(KIND_ctx)),
	LIST(pd, PD, RDMA_NLDEV_ATTR_RES_PDN, 0, 0, BIT(KIND_pd)),
	LIST(cq, CQ, RDMA_NLDEV_ATTR_RES_CQN, RDMA_NLDEV_ATTR_RES_CQE, KIND_cqe,
	     BIT(KIND_cq) | BIT(KIND_cqe)),
	LIST(qp, QP, RDMA_NLDEV_ATTR_RES_LQPN, 0, 0, BIT(KIND_qp)),
	LIST(mr, MR, RDMA_NLDEV_ATTR_RES_MRN, RDMA_NLDEV_ATTR_RES_MRLEN, KIND_mr_bytes,
	     BIT(KIND_mr) | BIT(KIND_mr_bytes)),
	LIST(srq, SRQ, RDMA_NLDEV_ATTR_RES_SRQN, 0, 0, BIT(KIND_srq)),
	/* Those that are not bound to a device yet are in no list. */
	LIST(cm_id, CM_ID, RDMA_NLDEV_ATTR_RES_CM_IDN, 0, 0, 0),
};

static const struct dump devices_dump = { .counter = NETLINK_DEVICES,
					  .command = RDMA_NLDEV_CMD_GET };

enum { DUMPS = sizeof(dumps) / sizeof(dumps[0]) };

static const struct dump *dump_find(__u32 counter)
{
	for (unsigned i = 0; i < DUMPS; i++)
		if (dumps[i].counter == counter)
			return &dumps[i];
	return &devices_dump;
}

/* ---- attributes */

/* Whether the list of attributes, of which this one is the next, ended where it should: 0, or
 * -EBADMSG. */
static int attributes_end(const struct nlattr *next, const void *payload, size_t length)
{
	return (const char *)next < (const char *)payload + length ? -EBADMSG : 0;
}

static int nested_end(const struct nlattr *next, const struct nlattr *nest)
{
	return attributes_end(next, mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest));
}

static int attribute_number(const struct nlattr *attribute, __u64 *ret_number)
{
	switch (mnl_attr_get_payload_len(attribute)) {
	case sizeof(__u8):
		*ret_number = mnl_attr_get_u8(attribute);
		return 0;
	case sizeof(__u32):
		*ret_number = mnl_attr_get_u32(attribute);
		return 0;
	case sizeof(__u64):
		*ret_number = mnl_attr_get_u64(attribute);
		return 0;
	}
	return -EBADMSG;
}

static int attribute_word(const struct nlattr *attribute, __u32 *ret_number)
{
	__u64 number = 0;
	int result = attribute_number(attribute, &number);

	if (result == 0)
		*ret_number = (__u32)number;
	return result;
}

/* ---- objects */

static int objects_add(struct netlink_list *list, const struct netlink_object *object)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 256;
		void *larger = reallocarray(list->objects, room, sizeof(*object));

		if (!larger)
			return -ENOMEM;
		list->objects = larger;
		list->room = room;
	}
	list->objects[list->count++] = *object;
	return 0;
}

void netlink_list_free(struct netlink_list *list)
{
	free(list->objects);
	*list = (struct netlink_list){ 0 };
}

/* base says which device. */
static int entry_parse(const struct dump *dump, struct netlink_list *list,
		       const struct netlink_object *base, const struct nlattr *entry)
{
	struct netlink_object object = *base;
	bool of_kernel = false, known = false, sized = !dump->size;
	const struct nlattr *attribute;
	int result;

	/* Kernels before 5.0 do not number what they list. */
	object.number = (__u32)list->count;
	mnl_attr_for_each_nested (attribute, entry) {
		unsigned type = mnl_attr_get_type(attribute);

		result = 0;
		if (type == RDMA_NLDEV_ATTR_RES_KERN_NAME) {
			of_kernel = true;
		} else if (type == RDMA_NLDEV_ATTR_RES_PID) {
			result = attribute_word(attribute, &object.pid);
			known = true;
		} else if (type == dump->number) {
			result = attribute_word(attribute, &object.number);
			known = true;
		} else if (dump->size && type == dump->size) {
			result = attribute_number(attribute, &object.size);
			sized = true;
		} else if (type == RDMA_NLDEV_ATTR_RES_PDN || type == RDMA_NLDEV_ATTR_RES_CTXN) {
			result = attribute_word(attribute, &object.parent);
			object.parent_counter =
				type == RDMA_NLDEV_ATTR_RES_PDN ? KIND_pd : KIND_ctx;
		} else if (type == RDMA_NLDEV_ATTR_RES_TYPE) {
			result = attribute_word(attribute, &object.subtype);
		}
		if (result < 0)
			return result;
	}
	result = nested_end(attribute, entry);
	/* A context of the kernel's own has no attributes at all. */
	if (result < 0 || of_kernel || !known)
		return result;
	if (!sized)
		list->observed &= ~BIT(dump->size_counter);
	return objects_add(list, &object);
}

static int table_parse(const struct dump *dump, struct netlink_list *list,
		       const struct netlink_object *base, const struct nlattr *table)
{
	const struct nlattr *attribute;

	mnl_attr_for_each_nested (attribute, table) {
		int result = mnl_attr_get_type(attribute) == dump->entry ?
				     entry_parse(dump, list, base, attribute) :
				     0;

		if (result < 0)
			return result;
	}
	return nested_end(attribute, table);
}

/* The name and number of the device stand before the table in every message. */
static int message_parse(const struct dump *dump, struct netlink_list *list,
			 const struct nlmsghdr *message)
{
	const void *payload = mnl_nlmsg_get_payload(message);
	size_t length = mnl_nlmsg_get_payload_len(message);
	struct netlink_object base = { .counter = dump->counter,
				       .device = MONITOR_NO_DEVICE,
				       .parent_counter = MONITOR_COUNTERS };
	const struct nlattr *attr; /* the macro knows it by this name */
	int result;

	mnl_attr_for_each_payload (payload, length) {
		unsigned type = mnl_attr_get_type(attr);

		result = 0;
		if (type == RDMA_NLDEV_ATTR_DEV_INDEX)
			result = attribute_word(attr, &base.device);
		else if (type == RDMA_NLDEV_ATTR_DEV_NAME)
			snprintf(base.device_name, sizeof(base.device_name), "%.*s",
				 (int)mnl_attr_get_payload_len(attr), mnl_attr_get_str(attr));
		else if (dump->table && type == dump->table)
			result = base.device == MONITOR_NO_DEVICE ?
					 -EBADMSG :
					 table_parse(dump, list, &base, attr);
		if (result < 0)
			return result;
	}
	result = attributes_end(attr, payload, length);
	if (result < 0 || dump->table)
		return result;
	return base.device == MONITOR_NO_DEVICE ? -EBADMSG : objects_add(list, &base);
}

/* ---- datagrams */

/* NLMSG_ERROR: the question was not accepted. */
static int dump_refused(const struct nlmsghdr *message)
{
	int error;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(error))
		return -EBADMSG;
	memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
	if (error == -EINVAL || error == -EOPNOTSUPP || error == -ENOSYS)
		return NETLINK_UNKNOWN;
	return error < 0 ? error : -EBADMSG;
}

/* NLMSG_DONE: carries what went wrong on the way, such as a device that has gone. */
static int dump_ended(const struct netlink_dump *dump, const struct nlmsghdr *message)
{
	int error = 0;

	if (mnl_nlmsg_get_payload_len(message) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
	if (error == -EPERM || error == -EACCES)
		return error;
	return error < 0 || dump->interrupted ? NETLINK_AGAIN : NETLINK_END;
}

int netlink_dump_parse(struct netlink_dump *dump, const void *bytes, size_t length)
{
	const struct dump *row = dump_find(dump->counter);
	const struct nlmsghdr *message = bytes;
	int left = (int)length;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
		int result = 0;

		if (message->nlmsg_seq != dump->sequence)
			continue;
		dump->interrupted |= message->nlmsg_flags & NLM_F_DUMP_INTR;
		if (message->nlmsg_type == NLMSG_DONE)
			return dump_ended(dump, message);
		if (message->nlmsg_type == NLMSG_ERROR)
			return dump_refused(message);
		if (message->nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, row->command))
			result = message_parse(row, dump->list, message);
		if (result < 0)
			return result;
	}
	return left > 0 ? -EBADMSG : NETLINK_MORE;
}

/* ---- asking */

struct connection {
	struct mnl_socket *socket;
	__u32 sequence;
	char *buffer; /* of DATAGRAM_BYTES */
};

static int netlink_ask(const struct connection *connection, const struct dump *dump, __u32 device)
{
	struct nlmsghdr *question = mnl_nlmsg_put_header(connection->buffer);

	question->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, dump->command);
	question->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	question->nlmsg_seq = connection->sequence;
	if (dump->table) {
		mnl_attr_put_u32(question, RDMA_NLDEV_ATTR_DEV_INDEX, device);
		/* Queue pairs of a driver's own types, too. */
		mnl_attr_put_u8(question, ATTR_DRIVER_DETAILS, 1);
	}
	if (mnl_socket_sendto(connection->socket, question, question->nlmsg_len) < 0)
		return -errno;
	return 0;
}

/* The next datagram of the kernel's own: its length, or -errno. (libmnl's function for it does not
 * say who sent it.) */
static ssize_t netlink_receive(const struct connection *connection)
{
	struct sockaddr_nl sender = { 0 };
	ssize_t length;

	do {
		socklen_t size = sizeof(sender);

		length = recvfrom(mnl_socket_get_fd(connection->socket), connection->buffer,
				  DATAGRAM_BYTES, MSG_TRUNC, (struct sockaddr *)&sender, &size);
	} while ((length < 0 && errno == EINTR) || (length >= 0 && sender.nl_pid));
	if (length < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return length > DATAGRAM_BYTES ? -EMSGSIZE : length;
}

/* One list, from the beginning until it is complete. An outcome, or -errno. */
static int dump_read(struct connection *connection, const struct dump *dump, __u32 device,
		     struct netlink_list *list)
{
	size_t before = list->count;
	int result = NETLINK_AGAIN;

	for (unsigned attempt = 0; attempt < ATTEMPTS && result == NETLINK_AGAIN; attempt++) {
		struct netlink_dump answer = { .list = list,
					       .counter = dump->counter,
					       .sequence = ++connection->sequence };

		list->count = before;
		result = netlink_ask(connection, dump, device);
		while (result == NETLINK_MORE) {
			ssize_t length = netlink_receive(connection);

			result = length < 0 ? (int)length :
					      netlink_dump_parse(&answer, connection->buffer,
								 (size_t)length);
		}
	}
	return result;
}

static int netlink_connect(struct connection *ret_connection)
{
	struct connection connection = { .buffer = malloc(DATAGRAM_BYTES) };
	struct timeval patience = { .tv_sec = TIMEOUT_SECONDS };
	int result;

	if (!connection.buffer)
		return -ENOMEM;
	connection.socket = mnl_socket_open2(NETLINK_RDMA, SOCK_CLOEXEC);
	if (!connection.socket) {
		result = -errno;
		free(connection.buffer);
		return result;
	}
	setsockopt(mnl_socket_get_fd(connection.socket), SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	*ret_connection = connection;
	return 0;
}

static int netlink_complain(int result, char problem[PROBLEM_SIZE])
{
	switch (result) {
	case -EPROTONOSUPPORT:
	case -ECONNREFUSED:
		problem_set(result, problem, "this kernel has no RDMA: module ib_core is not loaded");
		break;
	case -EPERM:
	case -EACCES:
		problem_set(result, problem,
			    "the kernel does not list its RDMA objects: CAP_NET_ADMIN in the "
			    "first user namespace is missing");
		break;
	case -EBADMSG:
	case -EMSGSIZE:
		problem_set(result, problem,
			    "the kernel's list of RDMA objects cannot be understood");
		break;
	default:
		problem_set(result, problem, "the kernel's list of RDMA objects: %s",
			    strerror(-result));
	}
	return result;
}

int netlink_objects(struct netlink_list *list, char problem[PROBLEM_SIZE])
{
	struct netlink_list devices = { 0 };
	struct connection connection = { 0 };
	int result = netlink_connect(&connection);

	if (result < 0)
		return netlink_complain(result, problem);
	list->count = 0;
	list->observed = 0;
	for (unsigned i = 0; i < DUMPS; i++)
		list->observed |= dumps[i].complete;
	result = dump_read(&connection, &devices_dump, 0, &devices);
	if (result == NETLINK_UNKNOWN || result == NETLINK_AGAIN)
		result = result == NETLINK_UNKNOWN ? -EOPNOTSUPP : -EAGAIN;
	for (size_t d = 0; d < devices.count && result >= 0; d++)
		for (unsigned i = 0; i < DUMPS && result >= 0; i++) {
			result = dump_read(&connection, &dumps[i], devices.objects[d].device, list);
			if (result == NETLINK_UNKNOWN || result == NETLINK_AGAIN)
				list->observed &= ~dumps[i].complete;
		}
	netlink_list_free(&devices);
	mnl_socket_close(connection.socket);
	free(connection.buffer);
	return result < 0 ? netlink_complain(result, problem) : 0;
}
