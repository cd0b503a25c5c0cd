/* SPDX-License-Identifier: MIT */
/*
 * The table of open contexts; see contexts.h. It outlives fork, since a child
 * may go on using an inherited context whose operations lead to us. Entries
 * never leave their bucket, so readers need no lock and a fork at any moment
 * leaves a table that can be read.
 */
#include "intercept/contexts.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept/library.h"

enum { BUCKETS = 256, CHUNK_BYTES = 16384, CHUNK = CHUNK_BYTES / sizeof(struct context) };

static struct context *buckets[BUCKETS];
static uint32_t last_group;
static struct context first_chunk[CHUNK];
static struct context *spare = first_chunk; /* of the newest chunk */
static unsigned spares = CHUNK;

static struct context **context_bucket(const struct ibv_context *handle)
{
	return &buckets[(uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 56];
}

struct context *context_find(const struct ibv_context *handle)
{
	struct context *entry = __atomic_load_n(context_bucket(handle), __ATOMIC_ACQUIRE);

	while (entry && __atomic_load_n(&entry->handle, __ATOMIC_ACQUIRE) != handle)
		entry = entry->next;
	return entry;
}

/* A free entry of the handle's bucket. Under the writers' lock. */
static struct context *context_entry_make(const struct ibv_context *handle)
{
	struct context **bucket = context_bucket(handle);
	struct context *entry = *bucket;

	while (entry && entry->handle)
		entry = entry->next;
	if (entry)
		return entry;
	if (!spares) {
		void *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (chunk == MAP_FAILED)
			return NULL;
		spare = chunk;
		spares = CHUNK;
	}
	entry = spare++;
	spares--;
	entry->next = *bucket;
	__atomic_store_n(bucket, entry, __ATOMIC_RELEASE);
	return entry;
}

/* Whether two descriptors are one open file. Where the kernel may not be asked
 * (seccomp), two of one device are taken for it, which is right unless the device
 * was opened twice. */
static bool context_same_file(int a, int b)
{
	pid_t self = getpid();
	long order = syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
	struct stat status_a, status_b;

	if (order >= 0)
		return order == 0;
	return !fstat(a, &status_a) && !fstat(b, &status_b) && status_a.st_rdev == status_b.st_rdev;
}

/* The group of an open context with the same open file, or 0. */
static uint32_t context_group_of_file(int fd)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct context *entry = buckets[i]; entry; entry = entry->next)
			if (entry->handle && context_same_file(fd, entry->handle->cmd_fd))
				return entry->group;
	return 0;
}

/* `verbs_context` grows upward: an op exists if the context is large enough to have it. */
#define HAS_EXTENDED(vctx, op)                                                                     \
	((vctx) && (vctx)->sz >= sizeof(*(vctx)) - offsetof(struct verbs_context, op) && (vctx)->op)

static void ops_replace(struct context *entry, struct ibv_context *handle)
{
	struct verbs_context *extended = verbs_get_ctx(handle);

	/* It is never NULL, but verbs_get_ctx allows that, and gcc 16 warns of what would follow. */
	if (!handle)
		return;
#define REPLACE_BASIC_OP(op, verb)                                                                 \
	if (handle->ops.op && handle->ops.op != wrap_op_##verb) {                                  \
		entry->ops.op = handle->ops.op;                                                    \
		handle->ops.op = wrap_op_##verb;                                                   \
	}
#define REPLACE_EXTENDED_OP(op, verb)                                                              \
	if (HAS_EXTENDED(extended, op) && extended->op != wrap_op_##verb) {                        \
		entry->ops.op = extended->op;                                                      \
		extended->op = wrap_op_##verb;                                                     \
	}
#define OP_CREATE(place, op, verb, object, type, parameters, arguments, context, cost, settled)    \
	REPLACE_##place(op, verb)
#define OP_DESTROY(place, op, verb, object, type) REPLACE_##place(op, verb)
#include "intercept/verbs.def"
}

static void ops_restore(struct context *entry, struct ibv_context *handle)
{
	struct verbs_context *extended = verbs_get_ctx(handle);

#define RESTORE_BASIC_OP(op, verb)                                                                 \
	if (entry->ops.op && handle->ops.op == wrap_op_##verb)                                     \
		handle->ops.op = entry->ops.op;
#define RESTORE_EXTENDED_OP(op, verb)                                                              \
	if (entry->ops.op && extended->op == wrap_op_##verb)                                       \
		extended->op = entry->ops.op;
#define OP_CREATE(place, op, verb, object, type, parameters, arguments, context, cost, settled)    \
	RESTORE_##place(op, verb)
#define OP_DESTROY(place, op, verb, object, type) RESTORE_##place(op, verb)
#include "intercept/verbs.def"
}

int context_add(struct library *library, struct ibv_context *handle, unsigned device, bool imported)
{
	struct context *entry;

	lock_acquire(&library->contexts_lock);
	entry = context_find(handle); /* an opening that was interrupted by another counts twice */
	if (!entry) {
		entry = context_entry_make(handle);
		if (entry)
			entry->ops = (struct context_ops){ 0 }, entry->posts = (struct posts_ops){ 0 };
	}
	if (entry) {
		entry->device = device;
		entry->group = imported ? context_group_of_file(handle->cmd_fd) : 0;
		if (!entry->group)
			entry->group = ++last_group;
		ops_replace(entry, handle);
		__atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
		posts_add_context(library, entry);
	}
	lock_release(&library->contexts_lock);
	return entry ? 0 : -ENOMEM;
}

bool context_group_is_open(uint32_t group)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct context *entry = buckets[i]; entry; entry = entry->next)
			if (entry->handle && entry->group == group)
				return true;
	return false;
}

void contexts_visit(struct library *library, void (*call)(struct context *context, void *closure),
		    void *closure)
{
	lock_acquire(&library->contexts_lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct context *entry = buckets[i]; entry; entry = entry->next)
			if (entry->handle)
				call(entry, closure);
	lock_release(&library->contexts_lock);
}

bool context_remove(struct library *library, struct ibv_context *handle, uint32_t *ret_group,
		    unsigned *ret_device)
{
	struct context *entry;

	lock_acquire(&library->contexts_lock);
	entry = context_find(handle);
	if (entry) {
		ops_restore(entry, handle);
		posts_restore_context(entry, handle);
		__atomic_store_n(&entry->handle, NULL, __ATOMIC_RELEASE);
		*ret_group = entry->group;
		*ret_device = entry->device;
	}
	lock_release(&library->contexts_lock);
	return entry != NULL;
}
