/* SPDX-License-Identifier: MIT */
/*
 * Regions that are registered anew, in place or by another region, and the guard's programs,
 * which run here on a stand-in for the kernel: no driver of the lab does that. And what these
 * programs do when their table of closed files is full.
 */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define __bpf__
#include "monitor/guard/guard.bpf.c"
#undef __bpf__

#include "harness.h"

enum { SLOT = 3, LIMIT = 1 << 20, PAGE = 4096, CGROUP = 77, PLACES = 1000 };

/* The kernel's structures, as far as the programs read them. */
static struct file file;
static char ufile[128], api[64], context[8];
static struct ib_mr region, other_region;
static struct ib_uobject uobject, other_uobject;

/* The command, as a program writes it: the old one inside the ioctl. */
static struct {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attribute[2];
} call;
static struct {
	__u64 response;
	__u32 handle, flags;
	__u64 start, length;
} rereg;
static struct {
	__u64 response, start, length;
} reg;

static __s64 charged(enum kind kind)
{
	__u32 slot = SLOT;

	return bpf_map_lookup_elem(&guard_counts, &slot)->used[kind];
}

static struct guard_counts *counts(void)
{
	__u32 slot = SLOT;

	return bpf_map_lookup_elem(&guard_counts, &slot);
}

static void limit_set(__u64 bytes)
{
	__u32 slot = SLOT;
	struct guard_limits *limits = bpf_map_lookup_elem(&guard_limits, &slot);

	memset(limits, 0xff, sizeof(*limits));
	limits->restricted = limits->host_limited = 0;
	limits->limit[KIND_mr_bytes] = bytes;
}

static int command_look(__u32 number, const void *body)
{
	call.header =
		(struct ib_uverbs_ioctl_hdr){ .object_id = UVERBS_OBJECT_DEVICE,
					      .method_id = UVERBS_METHOD_INVOKE_WRITE,
					      .num_attrs = 2 };
	call.attribute[0] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_WRITE_CMD, .data = number };
	call.attribute[1] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_CORE_IN, .data = (__u64)body };
	return g_ioctl(&file, UVERBS_IOCTL, (unsigned long)&call);
}

static void command_end(long result)
{
	g_ioctl_end(&file, UVERBS_IOCTL, (unsigned long)&call, result);
}

static int rereg_look(__u32 flags, __u64 length)
{
	rereg.flags = flags;
	rereg.length = length;
	return command_look(IB_USER_VERBS_CMD_REREG_MR, &rereg);
}

/* A tenant with one region of a page. */
static void begin_with_page(void)
{
	struct guard_tenancy tenancy = { .slot = SLOT };
	__u64 cgroup = CGROUP;
	struct guard_head *head;
	__u32 zero = 0;

	while (stand_entries) {
		struct stand_entry *next = stand_entries->next;

		free(stand_entries);
		stand_entries = next;
	}
	stand = (struct stand){ .cgroup = CGROUP, .thread = 5ull << 32 | 5 };
	head = bpf_map_lookup_elem(&guard_head, &zero);
	head->armed = 1;
	head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	for (unsigned table = 0; table < GUARD_TABLES; table++)
		head->most[table] = PLACES;
	bpf_map_update_elem(&guard_tenancies, &cgroup, &tenancy, BPF_ANY);
	cgroup++; /* nobody's */
	tenancy.slot = 0;
	bpf_map_update_elem(&guard_tenancies, &cgroup, &tenancy, BPF_ANY);
	limit_set(LIMIT);
	file.private_data = ufile;
	memcpy(ufile + offsets.file_ucontext, &(void *){ context }, sizeof(void *));
	*(__u32 *)(api + offsets.api_object_id) = UVERBS_OBJECT_MR;
	uobject = (struct ib_uobject){ .ufile = ufile, .object = &region, .uapi_object = api };
	other_uobject =
		(struct ib_uobject){ .ufile = ufile, .object = &other_region, .uapi_object = api };
	region.length = reg.length = PAGE;
	CHECK(command_look(IB_USER_VERBS_CMD_REG_MR, &reg) == 0);
	g_commit(&uobject, context);
	command_end(0);
	CHECK(charged(KIND_mr) == 1 && charged(KIND_mr_bytes) == PAGE && !stand.kills);
}

/* Each region has a place in the table, and no more than that. */
static __s64 places(void)
{
	return counts()->taken[GUARD_OBJECTS];
}

static __s64 floating(void)
{
	return counts()->floating[KIND_mr_bytes];
}

static void in_place(void)
{
	begin_with_page();
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, 2ull * PAGE) == 0);
	CHECK(charged(KIND_mr_bytes) == 3ll * PAGE, "both memories at once");
	region.length = 2ull * PAGE;
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(charged(KIND_mr) == 1 && charged(KIND_mr_bytes) == 2ll * PAGE && !floating() &&
	      places() == 1);
	/* Shorter. */
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == 0);
	region.length = PAGE;
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(charged(KIND_mr_bytes) == PAGE && !floating());
	/* In vain. */
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, 3ull * PAGE) == 0);
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(-22);
	CHECK(charged(KIND_mr_bytes) == PAGE && !floating());
	/* Too long: refused before anything is done. */
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, 2ull * LIMIT) == -EDQUOT);
	CHECK(charged(KIND_mr_bytes) == PAGE);
	/* Another access only: it costs nothing, also over a limit that was lowered. */
	limit_set(PAGE / 2);
	CHECK(rereg_look(4, 0) == 0);
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(charged(KIND_mr_bytes) == PAGE && !stand.kills);
	/* This one costs a place until it was looked for: its end cannot be told apart. */
	CHECK(places() == 1 + counts()->afloat, "%lld places", (long long)places());
	g_destroy(&uobject, 0, NULL, 0);
	CHECK(charged(KIND_mr) == 0 && charged(KIND_mr_bytes) == 0 &&
	      places() == counts()->afloat);
}

/* What the kernel carried out had more than was seen: killed, and its file is closed. */
static void caught(const char *what)
{
	CHECK(stand.kills == 1, "%s: killed %u times", what, stand.kills);
	CHECK(counts()->closed == 1 && counts()->killed == 1, "%s", what);
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == -EDQUOT, "%s: the file can be used", what);
	g_close(NULL, &file);
	CHECK(counts()->closed == 0, "%s", what);
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == -EDQUOT, "%s: nothing is charged", what);
	g_destroy(&uobject, 0, NULL, 0);
	CHECK(charged(KIND_mr) == 0 && charged(KIND_mr_bytes) == 0, "%s: %lld bytes stay", what,
	      (long long)charged(KIND_mr_bytes));
}

static void changed_in_place(void)
{
	static const struct {
		const char *what;
		__u32 command, flags;
	} trials[] = {
		{ "a shorter length", IB_USER_VERBS_CMD_REREG_MR, UVERBS_REREG_TRANSLATION },
		{ "no new memory", IB_USER_VERBS_CMD_REREG_MR, 4 },
		{ "another command", 12, 0 },
	};

	for (unsigned i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		begin_with_page();
		rereg.flags = trials[i].flags;
		rereg.length = 2ull * PAGE;
		CHECK(command_look(trials[i].command, &rereg) == 0);
		region.length = 2ull * LIMIT;
		g_changed(&uobject, LOOKUP_WRITE);
		command_end(0);
		caught(trials[i].what);
	}
	/* Within the limit it is charged, and nobody is killed. */
	begin_with_page();
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == 0);
	region.length = 4ull * PAGE;
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(charged(KIND_mr_bytes) == 4ll * PAGE && !stand.kills && !counts()->closed);
}

static void by_another_region(void)
{
	static const struct {
		__u32 flags;
		__u64 told, made;
		bool killed;
	} trials[] = {
		{ UVERBS_REREG_TRANSLATION, 2ull * PAGE, 2ull * PAGE, false },
		{ UVERBS_REREG_TRANSLATION, 2ull * PAGE, 2ull * LIMIT, true },
		{ 4, 0, PAGE, false },
		{ 4, 0, 2ull * LIMIT, true },
	};

	for (unsigned i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		begin_with_page();
		CHECK(rereg_look(trials[i].flags, trials[i].told) == 0);
		g_destroy(&uobject, 0, NULL, 0);
		other_region.length = trials[i].made;
		g_commit(&other_uobject, context);
		command_end(0);
		CHECK(stand.kills == trials[i].killed, "row %u", i);
		CHECK(charged(KIND_mr) == 1 && charged(KIND_mr_bytes) == (__s64)trials[i].made,
		      "row %u: %lld", i, (long long)charged(KIND_mr_bytes));
	}
}

/* Who has no room for a closed file gets no command in at all. */
static void no_room_for_closed_files(void)
{
	static char fresh_file[128];

	begin_with_page();
	stand.full = &guard_closed;
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == 0);
	region.length = 2ull * LIMIT;
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(stand.kills == 1 && counts()->closed == GUARD_SHUT);
	file.private_data = fresh_file;
	CHECK(command_look(12, &rereg) == -EDQUOT, "on another file of the tenant");
	CHECK(stand.kills == 1, "who uses another file is refused only");
	stand.cgroup = CGROUP + 1;
	CHECK(command_look(12, &rereg) == 0, "of another tenant");
}

/* The next file at the same address begins without a context. */
static void next_file_at_the_address(void)
{
	begin_with_page();
	CHECK(rereg_look(UVERBS_REREG_TRANSLATION, PAGE) == 0);
	region.length = 2ull * LIMIT;
	g_changed(&uobject, LOOKUP_WRITE);
	command_end(0);
	CHECK(counts()->closed == 1);
	memset(ufile, 0, sizeof(ufile));
	CHECK(command_look(12, &rereg) == 0 && counts()->closed == 0);
}

static void driver(void)
{
	RUN(in_place);
	RUN(changed_in_place);
	RUN(by_another_region);
	RUN(no_room_for_closed_files);
	RUN(next_file_at_the_address);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
