/* SPDX-License-Identifier: MIT */
/*
 * Stand-in libefa: the direct verbs of the EFA provider. The objects
 * themselves are libibverbs'.
 */
#include <infiniband/efadv.h>

#include "fake_internal.h"

struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				      uint32_t driver_qp_type)
{
	ENTER_NEW(efadv_create_driver_qp);
	return fake_qp_new(verdict, pd->context, pd, attr, NULL);
}

struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				  struct efadv_qp_init_attr *efa_attr, uint32_t inlen)
{
	ENTER_NEW(efadv_create_qp_ex);
	return fake_qp_new_ex(verdict, context, attr);
}

struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				  struct efadv_cq_init_attr *efa_attr, uint32_t inlen)
{
	ENTER_NEW(efadv_create_cq);
	struct fake_cq *fake = fake_cq_new(verdict, context, attr);

	return fake ? &fake->ex : NULL;
}
