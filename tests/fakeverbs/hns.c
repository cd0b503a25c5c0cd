/* SPDX-License-Identifier: MIT */
/*
 * Stand-in libhns: the one direct verb of the HNS provider that makes an
 * object. Debian's headers do not declare it.
 */
#include "fake_internal.h"

struct hnsdv_qp_init_attr;
struct ibv_qp *hnsdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			       struct hnsdv_qp_init_attr *hns_attr);

struct ibv_qp *hnsdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			       struct hnsdv_qp_init_attr *hns_attr)
{
	ENTER_NEW(hnsdv_create_qp);
	return fake_qp_new_ex(verdict, context, attr);
}
