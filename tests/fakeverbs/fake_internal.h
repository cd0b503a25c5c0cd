/* SPDX-License-Identifier: MIT */
/*
 * What the files of the stand-ins share: the verbs and nouns as enums, the
 * verdict that each verb asks for first, and the hidden header in front of
 * every object. Tests include fakeverbs.h only.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fakeverbs.h"

/* The signatures are libibverbs' own; a stand-in ignores half of their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum fake_verb {
#define VERB(name) VERB_##name,
#define VERB_WITH_TWIN(name) VERB_##name, VERB_OLD_##name,
#include "verbs.def"
	FAKE_N_VERBS
};

#define FAKE_NOUNS(X) \
	X(ctx) X(pd) X(cq) X(qp) X(srq) X(mr) X(mw) X(ah) X(xrcd) X(wq) X(rwq_table) X(flow) X(dm) \
	X(comp_channel) X(cm_id) X(umem) X(devx_obj) X(flow_matcher) X(dr_domain) X(dr_table)

/* Objects that a test may ask for, but which "all" leaves out. */
#define FAKE_SIDE_NOUNS(X) X(parent_domain) X(td) X(counters) X(held_device)

enum fake_noun {
	FAKE_all,
#define NOUN(name) FAKE_##name,
	FAKE_NOUNS(NOUN)
	FAKE_LAST_IN_ALL,
	FAKE_SIDE_NOUNS(NOUN)
#undef NOUN
	FAKE_N_NOUNS
};

/* ---- control.c ---- */

struct fake_verdict {
	enum fake_behaviour behaviour;
	int value;
};

/* Counts the call and says how it shall behave. */
struct fake_verdict fake_enter(enum fake_verb verb);
/* Rules set per verb; read where even a call count would be too much (the data path). */
extern atomic_uint fake_rules[FAKE_N_VERBS] __attribute__((visibility("hidden")));
void fake_live_add(enum fake_noun noun, long delta);
_Noreturn void fake_die(const char *what, const void *object);

static inline bool fake_refused(struct fake_verdict verdict)
{
	return verdict.behaviour != FAKE_WORK && verdict.behaviour != FAKE_ROUND_UP;
}

static inline void *fake_refuse_new(struct fake_verdict verdict)
{
	if (verdict.behaviour == FAKE_FAIL)
		errno = verdict.value;
	return NULL;
}

static inline int fake_refuse_call(struct fake_verdict verdict)
{
	if (verdict.behaviour == FAKE_CODE)
		return verdict.value;
	if (verdict.behaviour == FAKE_FAIL)
		errno = verdict.value;
	return -1;
}

/* The first statement of a verb, by its convention: constructors (NULL + errno),
 * errno as return value, -1 + errno, and no result at all. */
#define ENTER_AS(verb, refuse)                                              \
	const struct fake_verdict verdict = fake_enter(VERB_##verb);       \
	if (fake_refused(verdict))                                         \
	return refuse
#define ENTER_NEW(verb) ENTER_AS(verb, fake_refuse_new(verdict))
#define ENTER_ERRNO(verb) ENTER_AS(verb, verdict.value)
#define ENTER_CALL(verb) ENTER_AS(verb, fake_refuse_call(verdict))
#define ENTER_VOID(verb) ENTER_AS(verb, )

/* The depth that the device grants for the depth that was asked. */
static inline uint32_t fake_depth(struct fake_verdict verdict, uint32_t asked)
{
	if (verdict.behaviour != FAKE_ROUND_UP || !asked)
		return asked;
	return asked == 1 ? 2 : 4u << (31 - __builtin_clz(asked - 1));
}

/* ---- object.c ---- */

enum { FAKE_USES = 6 };

/*
 * Stands in front of every object that an application holds. A created object
 * is both a handle and the kernel's object; an import is a handle whose kernel
 * object is `origin`. A block is freed when nothing refers to it any more.
 * Everything but the magic is guarded by the group's mutex.
 */
struct fake_object {
	_Alignas(16) struct fake_object *prev; /* free() scribbles over the first 16 bytes */
	struct fake_object *next;
	struct fake_group *group;
	struct fake_object *origin;
	struct fake_object *uses[FAKE_USES]; /* kernel objects that this one pins */
	volatile uint32_t magic;
	uint32_t handle;
	uint32_t users; /* how many pin this one */
	uint32_t refs;	/* handle + living kernel object + imports */
	enum fake_noun noun;
	bool alive;
};

/* One opened device file: what the kernel calls a ucontext. */
struct fake_group {
	pthread_mutex_t mutex;
	struct fake_object objects;   /* list head */
	struct fake_context *open;    /* so that leak checkers find them by their start */
	struct fake_group *next;
	struct ibv_device *device;
	dev_t dev;
	ino_t ino;
	uint32_t last_handle;
	unsigned contexts;
};

struct fake_context {
	struct fake_context *next; /* in the group's list */
	struct fake_group *group;
	volatile uint32_t magic;
	struct verbs_context verbs;
};

struct fake_context *fake_context_of(struct ibv_context *context);
/* The header of an object; dies if it is dead already or of another noun. */
struct fake_object *fake_object_of(const void *object, enum fake_noun noun);
static inline struct fake_object *fake_header(const void *object)
{
	return (struct fake_object *)(uintptr_t)object - 1;
}

/* uses: FAKE_USES objects or NULLs that cannot be destroyed before this one. */
void *fake_object_new(struct ibv_context *context, enum fake_noun noun, size_t size,
		      const void *const uses[]);
#define USES(...) (const void *const[FAKE_USES]){ __VA_ARGS__ }
/* 0, EBUSY, or ENOENT if another handle already destroyed the kernel's object. */
int fake_object_destroy(void *object, enum fake_noun noun);
void *fake_object_import(struct ibv_context *context, enum fake_noun noun, uint32_t handle,
			 size_t size);
void fake_object_unimport(void *object, enum fake_noun noun);
void fake_object_reuse(void *object, unsigned slot, const void *used);
/* The two halves of fake_object_destroy, with the group's mutex held. */
int fake_object_kill(struct fake_object *object);
void fake_object_release(struct fake_object *object);

struct fake_group *fake_group_new(struct ibv_device *device, dev_t dev, ino_t ino);
struct fake_group *fake_group_find(dev_t dev, ino_t ino);
void fake_group_put(struct fake_group *group);

/* ---- device.c, inline.c ---- */

struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
void fake_context_fill(struct verbs_context *verbs);
void fake_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int fake_query_port(uint8_t port, struct ibv_port_attr *attr, size_t size);

/* ---- memory.c ---- */

struct ibv_pd *fake_pd_new(struct ibv_context *context);
struct ibv_mr *fake_mr_new(struct ibv_pd *pd, struct ibv_dm *dm, void *addr, size_t length);
struct ibv_dm *fake_dm_new(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr);

/* ibv_reg_mr_ex came after the headers that this may be built with. */
#ifndef HAVE_IBV_MR_INIT_ATTR
struct ibv_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};
struct ibv_buf;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);
#endif

/* ---- queues.c ---- */

struct fake_srq {
	struct ibv_srq srq;
	struct ibv_srq_attr attr;
};

/* attr may be the head of a struct ibv_qp_init_attr_ex, then ex is that one. */
struct ibv_qp *fake_qp_new(struct fake_verdict verdict, struct ibv_context *context,
			   struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			   const struct ibv_qp_init_attr_ex *ex);
struct ibv_qp *fake_qp_new_ex(struct fake_verdict verdict, struct ibv_context *context,
			      struct ibv_qp_init_attr_ex *ex);
struct ibv_srq *fake_srq_new(struct fake_verdict verdict, struct ibv_context *context,
			     struct ibv_pd *pd, struct ibv_srq_init_attr *attr, void *xrcd,
			     void *cq);
struct ibv_wq *fake_wq_new(struct fake_verdict verdict, struct ibv_context *context,
			   struct ibv_wq_init_attr *attr);

/* ---- events.c ---- */

struct fake_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct fake_cq *next_on_channel; /* guarded by the group's mutex, as the rest */
	uint64_t serial;		 /* what the channel's pipe carries */
	uint32_t events_got;
};

struct fake_channel {
	struct ibv_comp_channel channel;
	int write_fd;
	struct fake_cq *cqs;
};

struct fake_cq *fake_cq_new(struct fake_verdict verdict, struct ibv_context *context,
			    const struct ibv_cq_init_attr_ex *attr);
void fake_channel_close(struct fake_channel *channel);
uint64_t fake_serial(void);

/* The connection manager's objects; rdmacm.c owns them, fake_cm_event() reads them. */
struct fake_cm_channel {
	struct rdma_event_channel channel;
	int write_fd;
};

struct fake_cm_id {
	struct rdma_cm_id id;
	struct fake_cm_id *prev, *next;
	uint64_t serial;
	volatile uint32_t magic;
	unsigned events_got, events_acked;
	bool owns_channel;
	bool passive; /* an endpoint that gives its QP attributes to each request */
	struct ibv_pd *passive_pd;
	struct ibv_qp_init_attr passive_attr;
};

struct fake_cm_message {
	uint64_t serial;
	int32_t event;
	uint32_t zero;
};

/* Without a channel the id is synchronous and has one of its own. */
struct fake_cm_id *fake_cm_id_new(struct rdma_event_channel *channel, void *context,
				  enum rdma_port_space ps);
struct fake_cm_id *fake_cm_id_of(struct rdma_cm_id *id);

#define FAKE_MAGIC_ALIVE 0xfa4eb1e5u
#define FAKE_MAGIC_DEAD 0xdeadfa4eu

#endif
