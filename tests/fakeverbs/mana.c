/* SPDX-License-Identifier: MIT */
/*
 * Stand-in libmana: the one direct verb of the MANA provider that makes an
 * object. It is newer than the oldest headers that this is built with.
 */
#include "fake_internal.h"

struct ibv_pd *manadv_alloc_pd(struct ibv_context *context, uint32_t flags);

struct ibv_pd *manadv_alloc_pd(struct ibv_context *context, uint32_t flags)
{
	ENTER_NEW(manadv_alloc_pd);
	return fake_pd_new(context);
}
