/* SPDX-License-Identifier: MIT */
/*
 * Asking and parsing; see netlink.h. The kernel is trusted to mean well, not to be of the
 * version that we know: every length is checked, and unknown attributes are passed over.
 */
#include "monitor/polling/netlink.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/netlink.h>
#include <unistd.h>

enum {
	ATTEMPTS = 5,		/* at one list that changes while it is read */
	TIMEOUT_SECONDS = 5,	/* the kernel answers at once, or it is stuck */
	DATAGRAM_BYTES = 65536, /* the kernel's are 32768 at most */
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

struct bytes {
	const char *at;
	size_t length;
};

struct attribute {
	unsigned type;
	struct bytes value;
};

/* Takes the first of those that are left: 1, 0 at the end, or -EBADMSG. */
static int attribute_next(struct bytes *left, struct attribute *ret_attribute)
{
	struct nlattr header;
	size_t whole;

	if (!left->length)
		return 0;
	if (left->length < sizeof(header))
		return -EBADMSG;
	memcpy(&header, left->at, sizeof(header));
	if (header.nla_len < NLA_HDRLEN || header.nla_len > left->length)
		return -EBADMSG;
	ret_attribute->type = header.nla_type & NLA_TYPE_MASK;
	ret_attribute->value.at = left->at + NLA_HDRLEN;
	ret_attribute->value.length = header.nla_len - NLA_HDRLEN;
	whole = NLA_ALIGN(header.nla_len);
	if (whole > left->length) /* the last one may lack its padding */
		whole = left->length;
	left->at += whole;
	left->length -= whole;
	return 1;
}

static int attribute_number(const struct attribute *attribute, __u64 *ret_number)
{
	const char *at = attribute->value.at;
	__u32 word;

	switch (attribute->value.length) {
	case 1:
		*ret_number = (unsigned char)*at;
		return 0;
	case 4:
		memcpy(&word, at, sizeof(word));
		*ret_number = word;
		return 0;
	case 8:
		memcpy(ret_number, at, sizeof(*ret_number));
		return 0;
	}
	return -EBADMSG;
}

static int attribute_word(const struct attribute *attribute, __u32 *ret_number)
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
		       const struct netlink_object *base, struct bytes left)
{
	struct netlink_object object = *base;
	bool of_kernel = false, known = false, sized = !dump->size;
	struct attribute attribute;
	int result;

	/* Kernels before 5.0 do not number what they list. */
	object.number = (__u32)list->count;
	while ((result = attribute_next(&left, &attribute)) > 0) {
		result = 0;
		if (attribute.type == RDMA_NLDEV_ATTR_RES_KERN_NAME) {
			of_kernel = true;
		} else if (attribute.type == RDMA_NLDEV_ATTR_RES_PID) {
			result = attribute_word(&attribute, &object.pid);
			known = true;
		} else if (attribute.type == dump->number) {
			result = attribute_word(&attribute, &object.number);
			known = true;
		} else if (dump->size && attribute.type == dump->size) {
			result = attribute_number(&attribute, &object.size);
			sized = true;
		} else if (attribute.type == RDMA_NLDEV_ATTR_RES_PDN ||
			   attribute.type == RDMA_NLDEV_ATTR_RES_CTXN) {
			result = attribute_word(&attribute, &object.parent);
			object.parent_counter =
				attribute.type == RDMA_NLDEV_ATTR_RES_PDN ? KIND_pd : KIND_ctx;
		} else if (attribute.type == RDMA_NLDEV_ATTR_RES_TYPE) {
			result = attribute_word(&attribute, &object.subtype);
		}
		if (result < 0)
			return result;
	}
	/* A context of the kernel's own has no attributes at all. */
	if (result < 0 || of_kernel || !known)
		return result;
	if (!sized)
		list->observed &= ~BIT(dump->size_counter);
	return objects_add(list, &object);
}

static int table_parse(const struct dump *dump, struct netlink_list *list,
		       const struct netlink_object *base, struct bytes left)
{
	struct attribute attribute;
	int result;

	while ((result = attribute_next(&left, &attribute)) > 0) {
		if (attribute.type != dump->entry)
			continue;
		result = entry_parse(dump, list, base, attribute.value);
		if (result < 0)
			return result;
	}
	return result;
}

/* The name and number of the device stand before the table in every message. */
static int message_parse(const struct dump *dump, struct netlink_list *list, struct bytes left)
{
	struct netlink_object base = { .counter = dump->counter,
				       .device = MONITOR_NO_DEVICE,
				       .parent_counter = MONITOR_COUNTERS };
	struct attribute attribute;
	int result;

	while ((result = attribute_next(&left, &attribute)) > 0) {
		result = 0;
		if (attribute.type == RDMA_NLDEV_ATTR_DEV_INDEX) {
			result = attribute_word(&attribute, &base.device);
		} else if (attribute.type == RDMA_NLDEV_ATTR_DEV_NAME) {
			size_t length = strnlen(attribute.value.at, attribute.value.length);

			if (length >= sizeof(base.device_name))
				length = sizeof(base.device_name) - 1;
			memcpy(base.device_name, attribute.value.at, length);
			base.device_name[length] = '\0';
		} else if (dump->table && attribute.type == dump->table) {
			result = base.device == MONITOR_NO_DEVICE ?
					 -EBADMSG :
					 table_parse(dump, list, &base, attribute.value);
		}
		if (result < 0)
			return result;
	}
	if (result < 0 || dump->table)
		return result;
	return base.device == MONITOR_NO_DEVICE ? -EBADMSG : objects_add(list, &base);
}

/* ---- datagrams */

/* NLMSG_ERROR: the question was not accepted. */
static int dump_refused(struct bytes body)
{
	int error;

	if (body.length < sizeof(error))
		return -EBADMSG;
	memcpy(&error, body.at, sizeof(error));
	if (error == -EINVAL || error == -EOPNOTSUPP || error == -ENOSYS)
		return NETLINK_UNKNOWN;
	return error < 0 ? error : -EBADMSG;
}

/* NLMSG_DONE: carries what went wrong on the way, such as a device that has gone. */
static int dump_ended(const struct netlink_dump *dump, struct bytes body)
{
	int error = 0;

	if (body.length >= sizeof(error))
		memcpy(&error, body.at, sizeof(error));
	if (error == -EPERM || error == -EACCES)
		return error;
	return error < 0 || dump->interrupted ? NETLINK_AGAIN : NETLINK_END;
}

int netlink_dump_parse(struct netlink_dump *dump, const void *bytes, size_t length)
{
	const struct dump *row = dump_find(dump->counter);
	struct bytes left = { bytes, length };

	while (left.length) {
		struct nlmsghdr header;
		struct bytes body;
		size_t whole;
		int result = 0;

		if (left.length < sizeof(header))
			return -EBADMSG;
		memcpy(&header, left.at, sizeof(header));
		if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > left.length)
			return -EBADMSG;
		body.at = left.at + NLMSG_HDRLEN;
		body.length = header.nlmsg_len - NLMSG_HDRLEN;
		whole = NLMSG_ALIGN((size_t)header.nlmsg_len);
		if (whole > left.length)
			whole = left.length;
		left.at += whole;
		left.length -= whole;
		if (header.nlmsg_seq != dump->sequence)
			continue;
		dump->interrupted |= header.nlmsg_flags & NLM_F_DUMP_INTR;
		if (header.nlmsg_type == NLMSG_DONE)
			return dump_ended(dump, body);
		if (header.nlmsg_type == NLMSG_ERROR)
			return dump_refused(body);
		if (header.nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, row->command))
			result = message_parse(row, dump->list, body);
		if (result < 0)
			return result;
	}
	return NETLINK_MORE;
}

/* ---- asking */

struct connection {
	int fd;
	__u32 sequence;
	char *buffer; /* of DATAGRAM_BYTES */
};

static int netlink_ask(const struct connection *connection, const struct dump *dump, __u32 device)
{
	struct {
		struct nlmsghdr header;
		struct nlattr device;
		__u32 device_value;
		struct nlattr details;
		__u32 details_value; /* a byte, and padding */
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, dump->command),
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			    .nlmsg_seq = connection->sequence },
		.device = { NLA_HDRLEN + sizeof(__u32), RDMA_NLDEV_ATTR_DEV_INDEX },
		.device_value = device,
		/* Queue pairs of a driver's own types, too. */
		.details = { NLA_HDRLEN + sizeof(__u8), RDMA_NLDEV_ATTR_DRIVER_DETAILS },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	*(__u8 *)&question.details_value = 1;
	if (!dump->table)
		question.header.nlmsg_len = NLMSG_HDRLEN;
	if (sendto(connection->fd, &question, question.header.nlmsg_len, 0,
		   (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* The next datagram of the kernel's own: its length, or -errno. */
static ssize_t netlink_receive(const struct connection *connection)
{
	struct sockaddr_nl sender = { 0 };
	ssize_t length;

	do {
		socklen_t size = sizeof(sender);

		length = recvfrom(connection->fd, connection->buffer, DATAGRAM_BYTES, MSG_TRUNC,
				  (struct sockaddr *)&sender, &size);
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
	connection.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (connection.fd < 0) {
		result = -errno;
		free(connection.buffer);
		return result;
	}
	setsockopt(connection.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	*ret_connection = connection;
	return 0;
}

static int netlink_complain(int result, char *problem, size_t size)
{
	switch (result) {
	case -EPROTONOSUPPORT:
	case -ECONNREFUSED:
		snprintf(problem, size, "the kernel has no RDMA here: ib_core is not loaded");
		break;
	case -EPERM:
	case -EACCES:
		snprintf(problem, size,
			 "the kernel does not list its RDMA objects to us: CAP_NET_ADMIN in the "
			 "first user namespace is missing");
		break;
	case -EBADMSG:
	case -EMSGSIZE:
		snprintf(problem, size, "the kernel's list of RDMA objects cannot be understood");
		break;
	default:
		snprintf(problem, size, "the kernel's list of RDMA objects: %s", strerror(-result));
	}
	return result;
}

int netlink_objects(struct netlink_list *list, char *problem, size_t size)
{
	struct netlink_list devices = { 0 };
	struct connection connection = { .fd = -1 };
	int result = netlink_connect(&connection);

	if (result < 0)
		return netlink_complain(result, problem, size);
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
	close(connection.fd);
	free(connection.buffer);
	return result < 0 ? netlink_complain(result, problem, size) : 0;
}
