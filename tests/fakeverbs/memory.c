/* SPDX-License-Identifier: MIT */
/*
 * Protection domains, memory regions and device memory, as far as they are
 * exported symbols; inline.c reaches the same objects through the context.
 */
#include "fake_internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum { MR_PD }; /* the slot of the PD among what an MR uses */

struct ibv_pd *fake_pd_new(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_object_new(context, FAKE_pd, sizeof(*pd), USES(NULL));

	if (pd) {
		pd->context = context;
		pd->handle = fake_header(pd)->handle;
	}
	return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	ENTER_NEW(ibv_alloc_pd);
	return fake_pd_new(context);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	ENTER_ERRNO(ibv_dealloc_pd);
	bool parent = fake_header(pd)->noun == FAKE_parent_domain;

	return fake_object_destroy(pd, parent ? FAKE_parent_domain : FAKE_pd);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	ENTER_NEW(ibv_import_pd);
	struct ibv_pd *pd = fake_object_import(context, FAKE_pd, handle, sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	ENTER_VOID(ibv_unimport_pd);
	fake_object_unimport(pd, FAKE_pd);
}

struct ibv_mr *fake_mr_new(struct ibv_pd *pd, struct ibv_dm *dm, void *addr, size_t length)
{
	struct ibv_mr *mr = fake_object_new(pd->context, FAKE_mr, sizeof(*mr), USES(pd, dm));

	if (mr) {
		mr->context = pd->context;
		mr->pd = pd;
		mr->addr = addr;
		mr->length = length;
		mr->handle = fake_header(mr)->handle;
		mr->lkey = mr->rkey = mr->handle << 8;
	}
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	ENTER_NEW(ibv_reg_mr_iova2);
	return fake_mr_new(pd, NULL, addr, length);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	ENTER_NEW(ibv_reg_mr);
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	ENTER_NEW(ibv_reg_mr_iova);
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	ENTER_NEW(ibv_reg_dmabuf_mr);
	return fake_mr_new(pd, NULL, (void *)(uintptr_t)offset, length);
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	ENTER_NEW(ibv_reg_mr_ex);
	return fake_mr_new(pd, NULL, attr->addr, attr->length);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access)
{
	ENTER_NEW(ibv_reg_buf_mr);
	struct ibv_mr_init_attr attr = {
		.length = length,
		.access = access,
		.iova = (uintptr_t)addr,
		.addr = addr,
		.buf = buf,
	};

	return ibv_reg_mr_ex(pd, &attr);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	const struct fake_verdict verdict = fake_enter(VERB_ibv_rereg_mr);
	bool new_is_valid = !fake_refused(verdict) ||
			    (verdict.behaviour == FAKE_CODE &&
			     verdict.value == IBV_REREG_MR_ERR_DO_FORK_OLD);

	fake_object_of(mr, FAKE_mr);
	if (new_is_valid && flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	if (new_is_valid && flags & IBV_REREG_MR_CHANGE_PD) {
		fake_object_reuse(mr, MR_PD, pd);
		mr->pd = pd;
	}
	return fake_refused(verdict) ? fake_refuse_call(verdict) : 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	ENTER_ERRNO(ibv_dereg_mr);
	return fake_object_destroy(mr, FAKE_mr);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	ENTER_NEW(ibv_import_mr);
	struct ibv_mr *mr = fake_object_import(pd->context, FAKE_mr, handle, sizeof(*mr));

	if (mr) {
		mr->context = pd->context;
		mr->pd = pd;
		mr->addr = NULL;
	}
	return mr;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	ENTER_VOID(ibv_unimport_mr);
	fake_object_unimport(mr, FAKE_mr);
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	return 0;
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return 0;
}

struct ibv_dm *fake_dm_new(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr)
{
	struct ibv_dm *dm = fake_object_new(context, FAKE_dm, sizeof(*dm), USES(NULL));

	if (dm) {
		dm->context = context;
		dm->memcpy_to_dm = copy_to_dm;
		dm->memcpy_from_dm = copy_from_dm;
		dm->comp_mask = IBV_DM_MASK_HANDLE;
		dm->handle = fake_header(dm)->handle;
	}
	return dm;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	ENTER_NEW(ibv_import_dm);
	struct ibv_dm *dm = fake_object_import(context, FAKE_dm, handle, sizeof(*dm));

	if (dm)
		dm->context = context;
	return dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	ENTER_VOID(ibv_unimport_dm);
	fake_object_unimport(dm, FAKE_dm);
}

/* ---- fork support: the stand-in pins nothing, so there is nothing to do ---- */

static atomic_bool fork_ready;

int ibv_fork_init(void)
{
	ENTER_ERRNO(ibv_fork_init);
	fork_ready = true;
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return fork_ready ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
