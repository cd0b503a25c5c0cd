/* SPDX-License-Identifier: MIT */
/*
 * The monitor without BPF: what becomes of the kernel's netlink messages, well-formed or not. Needs
 * no device.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "monitor/polling/netlink.h"

static char problem[PROBLEM_SIZE];

struct text {
	unsigned char bytes[4096];
	size_t length;
};

/* Begins a message or an attribute; end() writes its length. */
static size_t message(struct text *text, unsigned type, unsigned flags, __u32 sequence)
{
	struct nlmsghdr header = { .nlmsg_type = (__u16)type,
				   .nlmsg_flags = (__u16)flags,
				   .nlmsg_seq = sequence };
	size_t at = text->length;

	memcpy(text->bytes + at, &header, sizeof(header));
	text->length += sizeof(header);
	return at;
}

static void message_end(struct text *text, size_t at)
{
	__u32 length = (__u32)(text->length - at);

	memcpy(text->bytes + at, &length, sizeof(length));
}

static size_t nest(struct text *text, unsigned type)
{
	struct nlattr header = { .nla_type = (__u16)type };
	size_t at = text->length;

	memcpy(text->bytes + at, &header, sizeof(header));
	text->length += sizeof(header);
	return at;
}

static void nest_end(struct text *text, size_t at)
{
	__u16 length = (__u16)(text->length - at);

	memcpy(text->bytes + at, &length, sizeof(length));
	while (text->length % 4)
		text->bytes[text->length++] = 0;
}

static void put(struct text *text, unsigned type, const void *value, size_t size)
{
	size_t at = nest(text, type);

	memcpy(text->bytes + text->length, value, size);
	text->length += size;
	nest_end(text, at);
}

static void put_word(struct text *text, unsigned type, __u32 value)
{
	put(text, type, &value, sizeof(value));
}

static void done(struct text *text, __u32 sequence, unsigned flags, int error)
{
	size_t at = message(text, NLMSG_DONE, flags, sequence);

	memcpy(text->bytes + text->length, &error, sizeof(error));
	text->length += sizeof(error);
	message_end(text, at);
}

static unsigned type_of(unsigned command)
{
	return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
}

/* Two regions of a process, one of the kernel, one whose maker has ended. */
static void regions(struct text *text, __u32 sequence, unsigned flags)
{
	size_t whole = message(text, type_of(RDMA_NLDEV_CMD_RES_MR_GET), flags, sequence);
	size_t table, entry;

	put_word(text, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	put(text, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_3", 7);
	table = nest(text, RDMA_NLDEV_ATTR_RES_MR | NLA_F_NESTED);
	for (__u32 i = 0; i < 4; i++) {
		__u64 length = 1ull << (32 + i);

		entry = nest(text, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
		put(text, RDMA_NLDEV_ATTR_RES_MRLEN, &length, sizeof(length));
		put_word(text, RDMA_NLDEV_ATTR_RES_MRN, 70 + i);
		put_word(text, RDMA_NLDEV_ATTR_RES_PDN, 40 + i);
		if (i < 2)
			put_word(text, RDMA_NLDEV_ATTR_RES_PID, 1000 + i);
		if (i == 2)
			put(text, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core", 8);
		put(text, 4000, "unheard of", 10);
		nest_end(text, entry);
	}
	nest_end(text, table);
	message_end(text, whole);
}

static int parse(struct netlink_list *list, __u32 counter, const struct text *text)
{
	struct netlink_dump dump = { .list = list, .counter = counter, .sequence = 9 };
	/* Memory that ends where the text does, for the sanitizers. */
	void *exact = malloc(text->length ? text->length : 1);
	int result;

	memcpy(exact, text->bytes, text->length);
	result = netlink_dump_parse(&dump, exact, text->length);
	free(exact);
	return result;
}

static void good_messages(void)
{
	struct netlink_list list = { .observed = ~0ull };
	struct text text = { .length = 0 };
	size_t whole, table, entry;
	unsigned char type = 2;

	regions(&text, 9, NLM_F_MULTI);
	CHECK(parse(&list, KIND_mr, &text) == NETLINK_MORE);
	if (CHECK(list.count == 3, "%zu", list.count)) {
		CHECK(list.objects[0].pid == 1000 && list.objects[1].pid == 1001);
		CHECK(list.objects[2].pid == 0 && list.objects[2].number == 73);
		CHECK(list.objects[1].size == 1ull << 33 && list.objects[1].number == 71);
		CHECK(list.objects[1].parent_counter == KIND_pd && list.objects[1].parent == 41);
		CHECK(list.objects[1].device == 3 && list.objects[1].counter == KIND_mr);
		CHECK(!strcmp(list.objects[1].device_name, "mlx5_3"));
	}
	CHECK(list.observed == ~0ull);
	done(&text, 9, 0, 0);
	list.count = 0;
	CHECK(parse(&list, KIND_mr, &text) == NETLINK_END && list.count == 3);

	/* Of another question, or of another list: passed over. */
	list.count = 0;
	text.length = 0;
	regions(&text, 8, 0);
	done(&text, 8, 0, 0);
	CHECK(parse(&list, KIND_mr, &text) == NETLINK_MORE && list.count == 0);
	text.length = 0;
	regions(&text, 9, 0);
	CHECK(parse(&list, KIND_qp, &text) == NETLINK_MORE && list.count == 0);

	/* A queue pair with a type; a region without a length; a context of the kernel. */
	text.length = 0;
	whole = message(&text, type_of(RDMA_NLDEV_CMD_RES_QP_GET), 0, 9);
	put_word(&text, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	table = nest(&text, RDMA_NLDEV_ATTR_RES_QP);
	entry = nest(&text, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	put_word(&text, RDMA_NLDEV_ATTR_RES_LQPN, 17);
	put(&text, RDMA_NLDEV_ATTR_RES_TYPE, &type, 1);
	put_word(&text, RDMA_NLDEV_ATTR_RES_PID, 5);
	nest_end(&text, entry);
	nest_end(&text, table);
	message_end(&text, whole);
	CHECK(parse(&list, KIND_qp, &text) == NETLINK_MORE && list.count == 1);
	CHECK(list.objects[0].parent_counter == MONITOR_COUNTERS);
	CHECK(list.objects[0].subtype == 2 && list.objects[0].number == 17);
	text.length = 0;
	whole = message(&text, type_of(RDMA_NLDEV_CMD_RES_MR_GET), 0, 9);
	put_word(&text, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	table = nest(&text, RDMA_NLDEV_ATTR_RES_MR);
	entry = nest(&text, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
	put_word(&text, RDMA_NLDEV_ATTR_RES_PID, 5);
	nest_end(&text, entry);
	nest_end(&text, nest(&text, RDMA_NLDEV_ATTR_RES_MR_ENTRY));
	nest_end(&text, table);
	message_end(&text, whole);
	list.count = 0;
	CHECK(parse(&list, KIND_mr, &text) == NETLINK_MORE && list.count == 1);
	CHECK(list.observed == ~(1ull << KIND_mr_bytes));

	/* Devices, one with a name that is too long and does not end. */
	text.length = 0;
	for (__u32 i = 0; i < 2; i++) {
		char name[100];

		memset(name, 'x', sizeof(name));
		whole = message(&text, type_of(RDMA_NLDEV_CMD_GET), NLM_F_MULTI, 9);
		put_word(&text, RDMA_NLDEV_ATTR_DEV_INDEX, i);
		put(&text, RDMA_NLDEV_ATTR_DEV_NAME, name, i ? sizeof(name) : 4);
		message_end(&text, whole);
	}
	done(&text, 9, 0, 0);
	list.count = 0;
	CHECK(parse(&list, NETLINK_DEVICES, &text) == NETLINK_END && list.count == 2);
	CHECK(list.objects[1].device == 1);
	CHECK(!strcmp(list.objects[0].device_name, "xxxx"));
	CHECK(strlen(list.objects[1].device_name) == NAME_SIZE - 1);
	netlink_list_free(&list);
}

static int error_of(int error)
{
	struct netlink_list list = { 0 };
	struct text text = { .length = 0 };
	size_t whole = message(&text, NLMSG_ERROR, 0, 9);

	memcpy(text.bytes + text.length, &error, sizeof(error));
	text.length += sizeof(error) + sizeof(struct nlmsghdr);
	message_end(&text, whole);
	return parse(&list, KIND_srq, &text);
}

static int done_of(int error, unsigned flags)
{
	struct netlink_list list = { 0 };
	struct text text = { .length = 0 };

	done(&text, 9, flags, error);
	return parse(&list, KIND_srq, &text);
}

static void outcomes(void)
{
	struct netlink_list list = { 0 };
	struct text text = { .length = 0 };

	CHECK(error_of(-EINVAL) == NETLINK_UNKNOWN);
	CHECK(error_of(-EOPNOTSUPP) == NETLINK_UNKNOWN);
	CHECK(error_of(-EPERM) == -EPERM);
	CHECK(error_of(-EBUSY) == -EBUSY);
	CHECK(error_of(0) == -EBADMSG);
	CHECK(done_of(0, 0) == NETLINK_END);
	CHECK(done_of(-EINVAL, 0) == NETLINK_AGAIN);
	CHECK(done_of(-EPERM, 0) == -EPERM);
	CHECK(done_of(0, NLM_F_DUMP_INTR) == NETLINK_AGAIN);

	/* Interrupted in any message is interrupted. */
	regions(&text, 9, NLM_F_MULTI | NLM_F_DUMP_INTR);
	done(&text, 9, 0, 0);
	CHECK(parse(&list, KIND_mr, &text) == NETLINK_AGAIN);
	netlink_list_free(&list);
}

/* Every beginning of a good text, and every byte of it changed: an outcome, never a crash. */
static void garbage(void)
{
	struct netlink_list list = { 0 };
	struct text text = { .length = 0 }, bent;
	unsigned refused = 0;

	regions(&text, 9, NLM_F_MULTI);
	for (size_t length = 1; length < text.length; length++) {
		bent = text;
		bent.length = length;
		CHECK(parse(&list, KIND_mr, &bent) == -EBADMSG, "%zu bytes", length);
		/* The message says that it ends there, its attributes do not. */
		if (length >= sizeof(struct nlmsghdr)) {
			message_end(&bent, 0);
			parse(&list, KIND_mr, &bent);
		}
		list.count = 0;
	}
	for (size_t at = 0; at < text.length; at++)
		for (unsigned value = 0; value < 256; value++) {
			bent = text;
			bent.bytes[at] = (unsigned char)value;
			refused += parse(&list, KIND_mr, &bent) == -EBADMSG;
			CHECK(list.count <= 4, "%zu objects", list.count);
			list.count = 0;
		}
	CHECK(refused > 1000, "%u refused", refused);

	/* A pid of the wrong size, a table before its device. */
	text.length = 0;
	size_t whole = message(&text, type_of(RDMA_NLDEV_CMD_RES_MR_GET), 0, 9);
	size_t start = text.length;
	size_t table, entry;

	put_word(&text, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	table = nest(&text, RDMA_NLDEV_ATTR_RES_MR);
	entry = nest(&text, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
	put(&text, RDMA_NLDEV_ATTR_RES_PID, "xyz", 3);
	nest_end(&text, entry);
	nest_end(&text, table);
	message_end(&text, whole);
	CHECK(parse(&list, KIND_mr, &text) == -EBADMSG);
	text.length = start;
	table = nest(&text, RDMA_NLDEV_ATTR_RES_MR);
	nest_end(&text, table);
	message_end(&text, whole);
	CHECK(parse(&list, KIND_mr, &text) == -EBADMSG);
	netlink_list_free(&list);
}

/* Whatever this kernel has, there is an answer or a sentence. */
static void this_kernel(void)
{
	struct netlink_list list = { 0 };
	int result;

	problem[0] = '\0';
	result = netlink_objects(&list, problem);
	CHECK(result == 0 || (result < 0 && problem[0]));
	if (result)
		printf("this kernel: %s\n", problem);
	netlink_list_free(&list);
}

static void driver(void)
{
	RUN(good_messages);
	RUN(outcomes);
	RUN(garbage);
	RUN(this_kernel);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
