/* SPDX-License-Identifier: MIT */
/*
 * Stand-in libmlx5: the direct verbs that make objects without passing
 * through libibverbs' symbols. The objects themselves are libibverbs'.
 */
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

struct mlx5dv_devx_obj {
	struct ibv_context *context;
};

struct mlx5dv_flow_matcher {
	struct ibv_context *context;
};

struct mlx5dv_dr_domain {
	struct ibv_context *context;
};

struct mlx5dv_dr_table {
	struct mlx5dv_dr_domain *domain;
	uint32_t level;
};

/* On a root table it is one of the kernel's, on others memory of the device. */
struct mlx5dv_dr_matcher {
	struct mlx5dv_dr_table *table;
	struct mlx5dv_flow_matcher *of_kernel;
};

struct mlx5dv_dr_rule {
	struct ibv_flow *of_kernel;
};

struct fake_mkey {
	struct mlx5dv_mkey mkey;
	struct mlx5dv_devx_obj *obj;
};

/* Newer than the oldest headers that this is built with. */
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access);
struct ibv_flow *__mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *value, size_t actions,
				      struct mlx5dv_flow_action_attr attr[], size_t attr_length);
#undef mlx5dv_create_flow
struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				    struct mlx5dv_flow_match_parameters *value, size_t actions,
				    struct mlx5dv_flow_action_attr attr[]);

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

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access)
{
	ENTER_NEW(mlx5dv_reg_dmabuf_mr);
	return fake_mr_new(pd, NULL, (void *)(uintptr_t)offset, length);
}

/* As the real one: a DevX object, made by the exported verb. */
struct mlx5dv_mkey *mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
	ENTER_NEW(mlx5dv_create_mkey);
	const unsigned char create_mkey[16] = { 0x02, 0x00 };
	unsigned char out[16];
	struct fake_mkey *fake = calloc(1, sizeof(*fake));

	if (!fake)
		return NULL;
	fake->obj = mlx5dv_devx_obj_create(attr->pd->context, create_mkey, sizeof(create_mkey), out,
					   sizeof(out));
	if (fake->obj)
		return &fake->mkey;
	free(fake);
	return NULL;
}

int mlx5dv_destroy_mkey(struct mlx5dv_mkey *mkey)
{
	ENTER_ERRNO(mlx5dv_destroy_mkey);
	struct fake_mkey *fake = (struct fake_mkey *)mkey;
	int result = mlx5dv_devx_obj_destroy(fake->obj);

	if (!result)
		free(fake);
	return result;
}

/* ---- flows ---- */

struct mlx5dv_flow_matcher *mlx5dv_create_flow_matcher(struct ibv_context *context,
						       struct mlx5dv_flow_matcher_attr *attr)
{
	ENTER_NEW(mlx5dv_create_flow_matcher);
	struct mlx5dv_flow_matcher *matcher =
		fake_object_new(context, FAKE_flow_matcher, sizeof(*matcher), USES(NULL));

	if (matcher)
		matcher->context = context;
	return matcher;
}

int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher)
{
	ENTER_ERRNO(mlx5dv_destroy_flow_matcher);
	return fake_object_destroy(matcher, FAKE_flow_matcher);
}

static struct ibv_flow *flow_new(struct mlx5dv_flow_matcher *matcher)
{
	struct ibv_flow *flow =
		fake_object_new(matcher->context, FAKE_flow, sizeof(*flow), USES(matcher));

	if (flow)
		flow->context = matcher->context;
	return flow;
}

struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				    struct mlx5dv_flow_match_parameters *value, size_t actions,
				    struct mlx5dv_flow_action_attr attr[])
{
	ENTER_NEW(mlx5dv_create_flow);
	return flow_new(matcher);
}

struct ibv_flow *__mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *value, size_t actions,
				      struct mlx5dv_flow_action_attr attr[], size_t attr_length)
{
	ENTER_NEW(__mlx5dv_create_flow);
	return flow_new(matcher);
}

/* ---- flows by "direct rules" ---- */

struct mlx5dv_dr_domain *mlx5dv_dr_domain_create(struct ibv_context *context,
						 enum mlx5dv_dr_domain_type type)
{
	ENTER_NEW(mlx5dv_dr_domain_create);
	struct mlx5dv_dr_domain *domain =
		fake_object_new(context, FAKE_dr_domain, sizeof(*domain), USES(NULL));

	if (domain)
		domain->context = context;
	return domain;
}

int mlx5dv_dr_domain_destroy(struct mlx5dv_dr_domain *domain)
{
	ENTER_ERRNO(mlx5dv_dr_domain_destroy);
	return fake_object_destroy(domain, FAKE_dr_domain);
}

struct mlx5dv_dr_table *mlx5dv_dr_table_create(struct mlx5dv_dr_domain *domain, uint32_t level)
{
	ENTER_NEW(mlx5dv_dr_table_create);
	struct mlx5dv_dr_table *table =
		fake_object_new(domain->context, FAKE_dr_table, sizeof(*table), USES(domain));

	if (table) {
		table->domain = domain;
		table->level = level;
	}
	return table;
}

int mlx5dv_dr_table_destroy(struct mlx5dv_dr_table *table)
{
	ENTER_ERRNO(mlx5dv_dr_table_destroy);
	return fake_object_destroy(table, FAKE_dr_table);
}

struct mlx5dv_dr_matcher *mlx5dv_dr_matcher_create(struct mlx5dv_dr_table *table, uint16_t priority,
						   uint8_t criteria,
						   struct mlx5dv_flow_match_parameters *mask)
{
	ENTER_NEW(mlx5dv_dr_matcher_create);
	struct mlx5dv_dr_matcher *matcher = calloc(1, sizeof(*matcher));

	if (!matcher)
		return NULL;
	matcher->table = table;
	if (table->level == 0)
		matcher->of_kernel = mlx5dv_create_flow_matcher(table->domain->context, NULL);
	return matcher;
}

int mlx5dv_dr_matcher_destroy(struct mlx5dv_dr_matcher *matcher)
{
	ENTER_ERRNO(mlx5dv_dr_matcher_destroy);
	int result = matcher->of_kernel ? mlx5dv_destroy_flow_matcher(matcher->of_kernel) : 0;

	if (!result)
		free(matcher);
	return result;
}

/* As since rdma-core 56: the exported verb makes the flow of the kernel. */
struct mlx5dv_dr_rule *mlx5dv_dr_rule_create(struct mlx5dv_dr_matcher *matcher,
					     struct mlx5dv_flow_match_parameters *value,
					     size_t actions, struct mlx5dv_dr_action *action[])
{
	ENTER_NEW(mlx5dv_dr_rule_create);
	struct mlx5dv_dr_rule *rule = calloc(1, sizeof(*rule));

	if (!rule || !matcher->of_kernel)
		return rule;
	rule->of_kernel = __mlx5dv_create_flow(matcher->of_kernel, value, 0, NULL, 0);
	if (rule->of_kernel)
		return rule;
	free(rule);
	return NULL;
}

int mlx5dv_dr_rule_destroy(struct mlx5dv_dr_rule *rule)
{
	ENTER_ERRNO(mlx5dv_dr_rule_destroy);
	int result = rule->of_kernel ? ibv_destroy_flow(rule->of_kernel) : 0;

	if (!result)
		free(rule);
	return result;
}
