/* SPDX-License-Identifier: MIT */
/*
 * Stand-in libmlx5: the direct verbs that make objects without passing
 * through libibverbs' symbols. The objects themselves are libibverbs'.
 */
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "fake_internal.h"

struct mlx5dv_devx_obj {
	struct ibv_context *context;
};

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	ENTER_NEW(mlx5dv_open_device);
	return verbs_open_device(device, attr);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	ENTER_NEW(mlx5dv_create_qp);
	return fake_qp_new_ex(verdict, context, attr);
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   struct mlx5dv_cq_init_attr *mlx5_attr)
{
	ENTER_NEW(mlx5dv_create_cq);
	struct fake_cq *fake = fake_cq_new(verdict, context, attr);

	return fake ? &fake->ex : NULL;
}

struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
				struct mlx5dv_wq_init_attr *mlx5_attr)
{
	ENTER_NEW(mlx5dv_create_wq);
	return fake_wq_new(verdict, context, attr);
}

struct ibv_dm *mlx5dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr,
			       struct mlx5dv_alloc_dm_attr *mlx5_attr)
{
	ENTER_NEW(mlx5dv_alloc_dm);
	return fake_dm_new(context, attr);
}

static struct mlx5dv_devx_umem *umem_new(struct ibv_context *context)
{
	struct mlx5dv_devx_umem *umem =
		fake_object_new(context, FAKE_umem, sizeof(*umem), USES(NULL));

	if (umem)
		umem->umem_id = fake_header(umem)->handle;
	return umem;
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size,
					      uint32_t access)
{
	ENTER_NEW(mlx5dv_devx_umem_reg);
	return umem_new(context);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *context,
						 struct mlx5dv_devx_umem_in *in)
{
	ENTER_NEW(mlx5dv_devx_umem_reg_ex);
	return umem_new(context);
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
	ENTER_ERRNO(mlx5dv_devx_umem_dereg);
	return fake_object_destroy(umem, FAKE_umem);
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	ENTER_NEW(mlx5dv_devx_obj_create);
	struct mlx5dv_devx_obj *obj =
		fake_object_new(context, FAKE_devx_obj, sizeof(*obj), USES(NULL));

	if (obj) {
		obj->context = context;
		memset(out, 0, outlen);
	}
	return obj;
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
	ENTER_ERRNO(mlx5dv_devx_obj_destroy);
	return fake_object_destroy(obj, FAKE_devx_obj);
}
