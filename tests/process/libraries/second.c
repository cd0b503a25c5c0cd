/* SPDX-License-Identifier: MIT */
/*
 * Another preloaded library, of the kind that profilers are: it wraps
 * ibv_create_qp by RTLD_NEXT and hooks dlsym to hand out its wrapper. Both it
 * and ours must go on working, whichever comes first.
 */
#include <dlfcn.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

struct ibv_pd;
struct ibv_qp;
struct ibv_qp_init_attr;

PUBLIC unsigned second_calls(void);
PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

typedef void *dlsym_function(void *handle, const char *name);
#ifdef __aarch64__
#define LIBC_OLDEST "GLIBC_2.17"
#else
#define LIBC_OLDEST "GLIBC_2.2.5"
#endif

typedef struct ibv_qp *create_function(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

static unsigned calls;
static create_function *by_handle;

unsigned second_calls(void)
{
	return calls;
}

static dlsym_function *next_dlsym(void)
{
	static dlsym_function *next;

	if (!next)
		next = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", LIBC_OLDEST);
	return next;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	create_function *next = (create_function *)next_dlsym()(RTLD_NEXT, "ibv_create_qp");

	calls++;
	if (!next)
		next = by_handle;
	return next(pd, attr);
}

PUBLIC void *dlsym(void *handle, const char *name)
{
	void *found = next_dlsym()(handle, name);

	if (found && handle != RTLD_NEXT && handle != RTLD_DEFAULT && !strcmp(name, "ibv_create_qp")) {
		by_handle = (create_function *)found;
		return (void *)ibv_create_qp;
	}
	return found;
}
