/* SPDX-License-Identifier: MIT */
/* Stand-in libmlx4: its one direct verb that makes an object. */
#include <infiniband/mlx4dv.h>

#include "fake_internal.h"

struct ibv_qp *mlx4dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx4dv_qp_init_attr *mlx4_attr)
{
	ENTER_NEW(mlx4dv_create_qp);
	return fake_qp_new_ex(verdict, context, attr);
}
