/* SPDX-License-Identifier: MIT */
/* Tenants with their lease tables, and devices: how a name gets its number on the books. */
#include "collector/books_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void books_table_name(unsigned tenant, char ret_name[BOOKS_TABLE_NAME])
{
	snprintf(ret_name, BOOKS_TABLE_NAME, "tenant-%u", tenant);
}

static void limits_clear(uint64_t *limit)
{
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		limit[kind] = UNLIMITED;
}

static void scope_unlimited(struct scope *scope)
{
	limits_clear(scope->configured);
	limits_clear(scope->limit);
}

void books_owner_unlimited(struct owner *owner)
{
	scope_unlimited(&owner->total);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		scope_unlimited(&owner->device[device]);
}

static void tenant_unlimited(struct tenant *tenant)
{
	books_owner_unlimited(&tenant->all);
	limits_clear(tenant->process_limit.total);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		limits_clear(tenant->process_limit.device[device]);
}

struct lease_signature books_table_signature(void)
{
	return (struct lease_signature){ LEASES_MAGIC, LEASE_VERSION, LEASES_MAX,
					 kinds_signature() };
}

int books_table_found(int directory, unsigned tenant, struct lease_signature *ret_signature)
{
	char name[BOOKS_TABLE_NAME];
	ssize_t length;
	int fd;

	books_table_name(tenant, name);
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, ret_signature, sizeof(*ret_signature));
	close(fd);
	return length == sizeof(*ret_signature) ? 0 : -EILSEQ;
}

int books_tenant_open(struct books *books, unsigned number)
{
	const struct lease_signature wanted = books_table_signature();
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	char name[BOOKS_TABLE_NAME];

	if (!tenant)
		return -ENOMEM;
	books_table_name(number, name);
	tenant->table =
		statefile_map(books->directory, name, sizeof(*tenant->table), &tenant->table_fd);
	if (!tenant->table) {
		int result = -errno;

		free(tenant);
		return result;
	}
	tenant->table_read_fd = openat(books->read_directory, name, O_RDONLY | O_CLOEXEC);
	if (tenant->table_read_fd >= 0 &&
	    memcmp(&tenant->table->signature, &wanted, sizeof(wanted))) {
		close(tenant->table_read_fd);
		tenant->table_read_fd = -1;
		errno = EILSEQ;
	}
	if (tenant->table_read_fd < 0) {
		int result = -errno;

		munmap(tenant->table, sizeof(*tenant->table));
		close(tenant->table_fd);
		free(tenant);
		return result;
	}
	tenant->leases = BOOKS_NOBODY;
	tenant_unlimited(tenant);
	books->tenant[number] = tenant;
	return 0;
}

void books_tenant_close(struct books *books, unsigned number)
{
	struct tenant *tenant = books->tenant[number];

	munmap(tenant->table, sizeof(*tenant->table));
	close(tenant->table_fd);
	close(tenant->table_read_fd);
	free(tenant);
	books->tenant[number] = NULL;
}

int books_tenant_find(const struct books *books, const char *name)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && !strcmp(books->file->tenant[i].name, name))
			return (int)i;
	return -1;
}

/* The first letter last: until it is there the row is free, whoever died meanwhile. */
static void books_name_write(struct book_name *row, const char *name)
{
	memset(row->name, 0, sizeof(row->name));
	strncpy(row->name + 1, name[0] ? name + 1 : "", sizeof(row->name) - 2);
	__atomic_store_n(&row->name[0], name[0], __ATOMIC_RELEASE);
}

int books_tenant(struct books *books, const char *name)
{
	return books_tenant_make(books, name, "");
}

const char *books_tenant_pattern(const struct books *books, unsigned tenant)
{
	return books->file->pattern[tenant].name;
}

void books_tenant_mark(struct books *books, unsigned tenant, const char *pattern)
{
	books_name_write(&books->file->pattern[tenant], pattern);
}

int books_tenant_make(struct books *books, const char *name, const char *pattern)
{
	const struct lease_signature head = books_table_signature();
	int number = books_tenant_find(books, name), result;
	char file[BOOKS_TABLE_NAME];

	if (number >= 0)
		return number;
	for (number = 0; number < BOOKS_TENANTS && books->tenant[number]; number++)
		;
	if (number == BOOKS_TENANTS)
		return -ENOSPC;
	books_table_name((unsigned)number, file);
	result = statefile_make(books->directory, file, sizeof(struct lease_table), &head,
				sizeof(head));
	if (result == 0)
		result = books_tenant_open(books, (unsigned)number);
	if (result < 0)
		return result;
	result = statefile_reserve(books->tenant[number]->table_fd, books->tenant[number]->table,
				   books->tenant[number]->table, offsetof(struct lease_table, row));
	if (result < 0) {
		books_tenant_close(books, (unsigned)number);
		return result;
	}
	BOOKS_STORE(books->file->tolerant[number], 0);
	/* Before the name, which makes the row a tenant's. */
	books_name_write(&books->file->pattern[number], pattern);
	books_name_write(&books->file->tenant[number], name);
	return number;
}

bool books_tenants_are_full(const struct books *books)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (!books->tenant[i])
			return false;
	return true;
}

void books_tenant_rename(struct books *books, unsigned tenant, const char *name)
{
	struct tenant *beside = books->tenant[tenant];

	__atomic_store_n(&books->file->tenant[tenant].name[0], '\0', __ATOMIC_RELEASE);
	BOOKS_STORE(books->file->tolerant[tenant], 0);
	books_tenant_mark(books, tenant, "");
	memset(&beside->all, 0, sizeof(beside->all));
	memset(&beside->ended, 0, sizeof(beside->ended));
	memset(&beside->ended_posted, 0, sizeof(beside->ended_posted));
	beside->any_ended = false;
	tenant_unlimited(beside);
	books_name_write(&books->file->tenant[tenant], name);
}

void books_tenant_drop(struct books *books, unsigned tenant)
{
	char name[BOOKS_TABLE_NAME];

	__atomic_store_n(&books->file->tenant[tenant].name[0], '\0', __ATOMIC_RELEASE);
	books_tenant_close(books, tenant);
	books_table_name(tenant, name);
	unlinkat(books->directory, name, 0);
}

const char *books_device_name(const struct books *books, unsigned device)
{
	const char *name = books->file->device[device].name;

	return name[0] ? name : NULL;
}

bool books_device_is_free(const struct books *books, unsigned device)
{
	return device != LEDGER_NAMELESS && !books->file->device[device].name[0];
}

unsigned books_device(struct books *books, const char *name)
{
	for (unsigned device = 1; name[0] && device < DEVICES_MAX; device++) {
		struct book_name *row = &books->file->device[device];

		if (!row->name[0])
			books_name_write(row, name);
		if (!strncmp(row->name, name, sizeof(row->name) - 1))
			return device;
	}
	return LEDGER_NAMELESS;
}
