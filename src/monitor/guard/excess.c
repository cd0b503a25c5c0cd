/* SPDX-License-Identifier: MIT */
/* Objects over a limit, on closed files; see excess.h. */
#include "monitor/guard/excess.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/kernel/pins.h"
#include "monitor/kernel/uverbs.h"

enum { FILES = 64 }; /* at a time; what is left follows at the next call */

struct search {
	const struct tenancy *tenancy;
	struct guard_counts *counts;
	/* Closed files that processes of other tenants have open: */
	struct {
		__u64 file;
		int fd;		/* a copy of their descriptor */
		bool confirmed; /* it is this file; the process may have closed it meanwhile */
	} files[FILES];
	unsigned count;
};

static void holder_kill(const struct search *search, const struct guard_holder *holder)
{
	int process = (int)syscall(SYS_pidfd_open, holder->process, 0);

	if (process < 0)
		return;
	/* Asked again now that it cannot be another process. */
	if (tenancy_of_process(search->tenancy, (pid_t)holder->process) == holder->slot &&
	    !syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0))
		__atomic_fetch_add(&search->counts[holder->slot].killed, 1, __ATOMIC_SEQ_CST);
	close(process);
}

static void file_copy(struct search *search, const struct guard_holder *holder)
{
	int process, fd;

	for (unsigned i = 0; i < search->count; i++)
		if (search->files[i].file == holder->file)
			return;
	process = search->count < FILES ? (int)syscall(SYS_pidfd_open, holder->process, 0) : -1;
	if (process < 0)
		return;
	fd = (int)syscall(__NR_pidfd_getfd, process, holder->fd, 0);
	close(process);
	if (fd < 0)
		return;
	search->files[search->count].file = holder->file;
	search->files[search->count].fd = fd;
	search->files[search->count++].confirmed = false;
}

static void holder_end(void *closure, const void *record)
{
	const struct guard_holder *holder = record;
	struct search *search = closure;

	if (holder->slot >= GUARD_TENANTS)
		return;
	if (tenancy_of_process(search->tenancy, (pid_t)holder->process) == holder->slot)
		holder_kill(search, holder);
	else
		file_copy(search, holder);
}

/* The kernel says which file each of our own descriptors is. */
static void file_confirm(void *closure, const void *record)
{
	const struct guard_holder *holder = record;
	struct search *search = closure;

	for (unsigned i = 0; i < search->count && holder->process == (__u32)getpid(); i++)
		if (search->files[i].fd == (int)holder->fd)
			search->files[i].confirmed = search->files[i].file == holder->file;
}

/* By the type: the method, and the size of its response. */
static const struct destroyer {
	bool known;
	__u16 method, response;
} destroyers[] = {
#define UOBJECT_DESTROY(object, method, response) [object] = { true, method, response },
#include "monitor/kernel/uverbs.def"
};

/* Fails, and is repeated at the next call, while another object depends on this one. */
static void object_destroy(int fd, const struct guard_excess *excess)
{
	const struct destroyer *destroyer = &destroyers[excess->type];
	__u64 response = 0;
	union {
		struct ib_uverbs_ioctl_hdr header;
		char bytes[sizeof(struct ib_uverbs_ioctl_hdr) + 2 * sizeof(struct ib_uverbs_attr)];
	} command = { .header = { .object_id = (__u16)excess->type,
				  .method_id = destroyer->method,
				  .num_attrs = destroyer->response ? 2 : 1,
				  .driver_id = excess->driver } };

	command.header.attrs[0] = (struct ib_uverbs_attr){ .attr_id = UVERBS_DESTROY_HANDLE,
							   .flags = UVERBS_ATTR_F_MANDATORY,
							   .data = excess->handle };
	command.header.attrs[1] = (struct ib_uverbs_attr){ .attr_id = UVERBS_DESTROY_RESPONSE,
							   .len = destroyer->response,
							   .flags = UVERBS_ATTR_F_MANDATORY,
							   .data = (__u64)(uintptr_t)&response };
	command.header.length = (__u16)(sizeof(command.header) +
					command.header.num_attrs * sizeof(struct ib_uverbs_attr));
	ioctl(fd, UVERBS_IOCTL, &command);
}

static void excess_destroy(void *closure, const void *record)
{
	const struct guard_excess *excess = record;
	const struct search *search = closure;

	if (excess->type >= sizeof(destroyers) / sizeof(destroyers[0]) ||
	    !destroyers[excess->type].known)
		return;
	for (unsigned i = 0; i < search->count; i++)
		if (search->files[i].confirmed && search->files[i].file == excess->file)
			object_destroy(search->files[i].fd, excess);
}

void excess_end(const char *directory, const struct tenancy *tenancy, struct guard_counts *counts)
{
	struct search search = { .tenancy = tenancy, .counts = counts };

	pins_iterate_twice(directory, "g_holders", sizeof(struct guard_holder), holder_end,
			   &search);
	if (!search.count)
		return;
	pins_iterate(directory, "g_holders", sizeof(struct guard_holder), file_confirm, &search);
	pins_iterate(directory, "g_excess", sizeof(struct guard_excess), excess_destroy, &search);
	for (unsigned i = 0; i < search.count; i++)
		close(search.files[i].fd);
}
