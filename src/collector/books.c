/* SPDX-License-Identifier: MIT */
/* The books' file, the lease tables and the sums beside them; see books.h. */
#include "collector/books.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/readonly.h"

#define BOOKS_FILE "ledger"

/* Rows get memory so many at a time. */
enum { STEP = 64 };

#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

static int complain(char problem[BOOKS_PROBLEM], int result, const char *path, const char *name,
		    const char *what)
{
	snprintf(problem, BOOKS_PROBLEM, "%s%s%s: %s", path, name[0] ? "/" : "", name,
		 what ? what : strerror(-result));
	return result;
}

/* ---- the directory */

static int directory_make(const char *path)
{
	char part[1024];

	if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

static int directory_open(struct books *books, const char *path, char problem[BOOKS_PROBLEM])
{
	struct stat status;
	int result = directory_make(path);

	if (result < 0)
		return complain(problem, result, path, "", NULL);
	books->directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (books->directory < 0 || fstat(books->directory, &status))
		return complain(problem, -errno, path, "", NULL);
	if (status.st_uid != geteuid() || status.st_mode & 077)
		return complain(
			problem, -EPERM, path, "",
			"must belong to the collector's user and be closed to others (0700)");
	return 0;
}

/* Held as long as the collector lives; the kernel lets go of it at its death. */
static int directory_lock(struct books *books, const char *path, char problem[BOOKS_PROBLEM])
{
	if (!flock(books->directory, LOCK_EX | LOCK_NB))
		return 0;
	return complain(problem, errno == EWOULDBLOCK ? -EBUSY : -errno, path, "",
			errno == EWOULDBLOCK ? "another collector keeps its books here" : NULL);
}

/* ---- files with a signature */

/* Makes a file of that size that begins with those bytes; complete before it has its name. */
static int file_make(struct books *books, const char *name, size_t size, const void *head,
		     size_t head_size)
{
	char temporary[64];
	int fd, result = 0;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	fd = openat(books->directory, temporary,
		    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || pwrite(fd, head, head_size, 0) != (ssize_t)head_size ||
	    renameat(books->directory, temporary, books->directory, name))
		result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

/* Memory for a part of a file before it is touched: a full file system must not be a SIGBUS. */
static int file_reserve(int fd, const void *base, const void *from, size_t size)
{
	off_t offset = (const char *)from - (const char *)base;
	int result;

	while ((result = posix_fallocate(fd, offset, (off_t)size)) == EINTR)
		;
	return -result;
}

static void *file_map(struct books *books, const char *name, size_t size, int *ret_fd)
{
	struct stat status;
	void *memory;
	int fd = openat(books->directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) || (size_t)status.st_size != size) {
		close(fd);
		errno = EILSEQ;
		return NULL;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	*ret_fd = fd;
	return memory;
}

/* ---- tenants and their tables */

static void table_name(unsigned tenant, char ret_name[32])
{
	snprintf(ret_name, 32, "tenant-%u", tenant);
}

static void unlimited(uint64_t *limit)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		limit[kind] = SIZE_UNLIMITED;
}

static void owner_unlimited(struct owner *owner)
{
	unlimited(owner->total.limit);
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		unlimited(owner->device[device].limit);
}

static struct lease_signature table_signature(void)
{
	return (struct lease_signature){ LEASES_MAGIC, LEASE_VERSION, LEASES_MAX,
					 kinds_signature() };
}

static int tenant_open(struct books *books, unsigned number)
{
	const struct lease_signature wanted = table_signature();
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	char name[32];

	if (!tenant)
		return -ENOMEM;
	table_name(number, name);
	tenant->table = file_map(books, name, sizeof(*tenant->table), &tenant->table_fd);
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
	owner_unlimited(&tenant->all);
	unlimited(tenant->process_limit.total);
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		unlimited(tenant->process_limit.device[device]);
	books->tenant[number] = tenant;
	return 0;
}

static void tenant_close(struct books *books, unsigned number)
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
static void name_write(struct book_name *row, const char *name)
{
	memset(row->name, 0, sizeof(row->name));
	strncpy(row->name + 1, name[0] ? name + 1 : "", sizeof(row->name) - 2);
	__atomic_store_n(&row->name[0], name[0], __ATOMIC_RELEASE);
}

int books_tenant(struct books *books, const char *name)
{
	const struct lease_signature head = table_signature();
	int number = books_tenant_find(books, name), result;
	char file[32];

	if (number >= 0)
		return number;
	for (number = 0; number < BOOKS_TENANTS && books->tenant[number]; number++)
		;
	if (number == BOOKS_TENANTS)
		return -ENOSPC;
	table_name((unsigned)number, file);
	result = file_make(books, file, sizeof(struct lease_table), &head, sizeof(head));
	if (result == 0)
		result = tenant_open(books, (unsigned)number);
	if (result < 0)
		return result;
	result = file_reserve(books->tenant[number]->table_fd, books->tenant[number]->table,
			      books->tenant[number]->table, offsetof(struct lease_table, row));
	if (result < 0) {
		tenant_close(books, (unsigned)number);
		return result;
	}
	STORE(books->file->tolerant[number], 0);
	name_write(&books->file->tenant[number], name);
	return number;
}

void books_tenant_drop(struct books *books, unsigned tenant)
{
	char name[32];

	__atomic_store_n(&books->file->tenant[tenant].name[0], '\0', __ATOMIC_RELEASE);
	tenant_close(books, tenant);
	table_name(tenant, name);
	unlinkat(books->directory, name, 0);
}

unsigned books_device(struct books *books, const char *name)
{
	for (unsigned device = 1; name[0] && device < LEDGER_DEVICES; device++) {
		struct book_name *row = &books->file->device[device];

		if (!row->name[0])
			name_write(row, name);
		if (!strncmp(row->name, name, sizeof(row->name) - 1))
			return device;
	}
	return LEDGER_NAMELESS;
}

/* ---- rows */

/* The next row of a table that was never taken, with memory behind it. */
static int row_new(struct books *books, uint32_t *high, unsigned most, const void *rows,
		   size_t size)
{
	unsigned row = *high;
	int result = 0;

	if (row == most)
		return -ENOSPC;
	if (row % STEP == 0)
		result = file_reserve(books->fd, books->file, (const char *)rows + row * size,
				      STEP * size);
	if (result < 0)
		return result;
	STORE(*high, row + 1);
	return (int)row;
}

void books_member_clear(struct member *member)
{
	memset(member, 0, sizeof(*member));
	member->leases = member->next_of_pid = BOOKS_NOBODY;
	member->pidfd = member->lifeline = -1;
}

int books_member_row(struct books *books)
{
	struct book_file *file = books->file;
	int row;

	if (!books->free_members_count) {
		row = row_new(books, &file->members_high, BOOKS_MEMBERS, file->member,
			      sizeof(file->member[0]));
		if (row < 0)
			return row;
		books_member_clear(&books->member[row]);
		books->free_members[books->free_members_count++] = (uint32_t)row;
	}
	return (int)books->free_members[books->free_members_count - 1];
}

int books_lease_row(struct books *books)
{
	struct book_file *file = books->file;
	int row;

	if (!books->free_leases_count) {
		row = row_new(books, &file->leases_high, LEASES_MAX, file->lease,
			      sizeof(file->lease[0]));
		if (row < 0)
			return row;
		books->view[row].member = BOOKS_NOBODY;
		books->free_leases[books->free_leases_count++] = (uint32_t)row;
	}
	return (int)books->free_leases[books->free_leases_count - 1];
}

void books_lease_view(struct books *books, unsigned lease)
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct book_member *member = &books->file->member[row->member];
	const struct usage_page *usage = books->member[row->member].usage;
	struct lease_view *view = &books->view[lease];

	view->used = usage ? usage->row[row->usage_row].used : NULL;
	view->cap = member->flags & MEMBER_ASKS ?
			    NULL :
			    books->tenant[member->tenant]->table->row[lease].cap;
	view->member = row->member;
	view->tenant = member->tenant;
	view->device = row->device;
}

static void lease_link(struct books *books, unsigned lease)
{
	struct member *member = &books->member[books->file->lease[lease].member];
	struct lease_view *view = &books->view[lease];
	struct tenant *tenant;

	books_lease_view(books, lease);
	view->next_of_member = member->leases;
	member->leases = lease;
	tenant = books->tenant[view->tenant];
	view->previous_of_tenant = BOOKS_NOBODY;
	view->next_of_tenant = tenant->leases;
	if (tenant->leases != BOOKS_NOBODY)
		books->view[tenant->leases].previous_of_tenant = lease;
	tenant->leases = lease;
	books->leases_count++;
}

/* Out of the tenant's list; the member's ends with the member. */
static void lease_unlink(struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];

	if (view->next_of_tenant != BOOKS_NOBODY)
		books->view[view->next_of_tenant].previous_of_tenant = view->previous_of_tenant;
	if (view->previous_of_tenant != BOOKS_NOBODY)
		books->view[view->previous_of_tenant].next_of_tenant = view->next_of_tenant;
	else
		books->tenant[view->tenant]->leases = view->next_of_tenant;
	books->leases_count--;
}

int books_lease_take(struct books *books, unsigned lease, unsigned member, unsigned device,
		     unsigned usage_row)
{
	struct tenant *tenant = books->tenant[books->file->member[member].tenant];
	struct book_lease *row = &books->file->lease[lease];
	int result = file_reserve(tenant->table_fd, tenant->table, &tenant->table->row[lease],
				  sizeof(tenant->table->row[lease]));

	if (result < 0)
		return result;
	books->free_leases_count--;
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		STORE(tenant->table->row[lease].cap[kind], 0);
		STORE(row->granted[kind], 0);
		STORE(row->device_limit[kind], SIZE_UNLIMITED);
	}
	STORE(row->member, member);
	STORE(row->device, device);
	STORE(row->usage_row, usage_row);
	__atomic_store_n(&row->state, BOOK_TAKEN, __ATOMIC_RELEASE);
	lease_link(books, lease);
	return 0;
}

unsigned books_lease_of(const struct books *books, unsigned member, unsigned usage_row)
{
	uint32_t lease = books->member[member].leases;

	while (lease != BOOKS_NOBODY && books->file->lease[lease].usage_row != usage_row)
		lease = books->view[lease].next_of_member;
	return lease;
}

/* change may be "negative", modulo 2^128 */
static void sums_add(struct books *books, unsigned lease, unsigned kind, wide change)
{
	const struct lease_view *view = &books->view[lease];
	struct tenant *tenant = books->tenant[view->tenant];

	books->host.total.granted[kind] += change;
	books->host.device[view->device].granted[kind] += change;
	tenant->all.total.granted[kind] += change;
	tenant->all.device[view->device].granted[kind] += change;
	books->member[view->member].granted[kind] += change;
}

void books_grant(struct books *books, unsigned lease, unsigned kind, uint64_t granted)
{
	uint64_t *word = &books->file->lease[lease].granted[kind];
	uint64_t before = *word;

	__atomic_store_n(word, granted, __ATOMIC_RELEASE);
	sums_add(books, lease, kind, (wide)granted - before);
}

/* The cap is 0 before the books say that nothing is granted, and the row is free last. */
static void lease_free(struct books *books, unsigned lease)
{
	struct lease_view *view = &books->view[lease];

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		if (view->cap)
			__atomic_store_n(&view->cap[kind], 0, __ATOMIC_RELEASE);
		books_grant(books, lease, kind, 0);
	}
	__atomic_store_n(&books->file->lease[lease].state, BOOK_FREE, __ATOMIC_RELEASE);
	lease_unlink(books, lease);
	view->member = BOOKS_NOBODY;
	books->free_leases[books->free_leases_count++] = lease;
}

void books_lease_drop(struct books *books, unsigned lease)
{
	uint32_t *link = &books->member[books->view[lease].member].leases;

	while (*link != lease)
		link = &books->view[*link].next_of_member;
	*link = books->view[lease].next_of_member;
	lease_free(books, lease);
}

void books_member_free(struct books *books, unsigned member)
{
	struct book_member *row = &books->file->member[member];
	struct member *beside = &books->member[member];

	__atomic_store_n(&row->state, BOOK_DYING, __ATOMIC_RELEASE);
	while (beside->leases != BOOKS_NOBODY) {
		unsigned lease = beside->leases;

		beside->leases = books->view[lease].next_of_member;
		lease_free(books, lease);
	}
	STORE(row->generation, row->generation + 1);
	__atomic_store_n(&row->state, BOOK_FREE, __ATOMIC_RELEASE);
	books->tenant[row->tenant]->members--;
	books->members_count--;
	books->free_members[books->free_members_count++] = member;
}

/* ---- opening */

static struct book_signature signature(void)
{
	return (struct book_signature){
		.magic = BOOKS_MAGIC,
		.version = BOOKS_VERSION,
		.members = BOOKS_MEMBERS,
		.leases = LEASES_MAX,
		.tenants = BOOKS_TENANTS,
		.kinds = kinds_signature(),
		.size = sizeof(struct book_file),
	};
}

static int file_check(int directory, char *reason, size_t size)
{
	struct book_signature found, wanted = signature();
	int fd = openat(directory, BOOKS_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = read(fd, &found, sizeof(found));
	close(fd);
	if (length == sizeof(found) && !memcmp(&found, &wanted, sizeof(found)))
		return 0;
	if (length != sizeof(found) || found.magic != BOOKS_MAGIC)
		snprintf(reason, size,
			 "is not a collector's ledger; remove the directory to start anew");
	else if (found.version != BOOKS_VERSION)
		snprintf(reason, size,
			 "has the layout version %u, this collector needs %u; end its clients and "
			 "remove the directory to start anew",
			 found.version, BOOKS_VERSION);
	else
		snprintf(reason, size,
			 "was made by a collector with other tables of kinds or sizes; end its "
			 "clients and remove the directory to start anew");
	return -EILSEQ;
}

static int file_open(struct books *books, const char *path, char problem[BOOKS_PROBLEM])
{
	struct book_signature head = signature();
	char reason[256];
	int result = file_check(books->directory, reason, sizeof(reason));

	if (result == -ENOENT)
		result =
			file_make(books, BOOKS_FILE, sizeof(struct book_file), &head, sizeof(head));
	if (result < 0)
		return complain(problem, result, path, BOOKS_FILE,
				result == -EILSEQ ? reason : NULL);
	books->file = file_map(books, BOOKS_FILE, sizeof(*books->file), &books->fd);
	if (!books->file)
		return complain(problem, -errno, path, BOOKS_FILE, NULL);
	result = file_reserve(books->fd, books->file, books->file,
			      offsetof(struct book_file, member));
	if (result < 0)
		return complain(problem, result, path, BOOKS_FILE, NULL);
	if (books->file->members_high > BOOKS_MEMBERS || books->file->leases_high > LEASES_MAX)
		return complain(problem, -EILSEQ, path, BOOKS_FILE,
				"is damaged; remove the directory to start anew");
	return 0;
}

static int tenants_open(struct books *books, const char *path, char problem[BOOKS_PROBLEM])
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		char name[32];
		int result;

		if (!books->file->tenant[i].name[0])
			continue;
		table_name(i, name);
		result = tenant_open(books, i);
		if (result < 0)
			return complain(problem, result, path, name,
					result == -EILSEQ ?
						"has another layout; end the collector's "
						"clients and remove the directory to "
						"start anew" :
						NULL);
	}
	return 0;
}

/* Whether a row names things that exist: it may be the work of a failing disk or hand. */
static bool lease_is_sound(const struct books *books, const struct book_lease *row)
{
	const struct book_member *member;

	if (row->member >= books->file->members_high || row->device >= LEDGER_DEVICES ||
	    row->usage_row >= LEDGER_DEVICES)
		return false;
	member = &books->file->member[row->member];
	return member->state != BOOK_FREE && member->tenant < BOOKS_TENANTS &&
	       books->tenant[member->tenant];
}

static int rows_read(struct books *books, const char *path, char problem[BOOKS_PROBLEM])
{
	struct book_file *file = books->file;

	for (unsigned i = file->members_high; i-- > 0;) {
		const struct book_member *row = &file->member[i];

		books_member_clear(&books->member[i]);
		if (row->state == BOOK_FREE) {
			books->free_members[books->free_members_count++] = i;
			continue;
		}
		if (row->tenant >= BOOKS_TENANTS || !books->tenant[row->tenant])
			return complain(problem, -EILSEQ, path, BOOKS_FILE,
					"names a tenant that is not there; remove the directory to "
					"start anew");
		books->tenant[row->tenant]->members++;
		books->members_count++;
	}
	for (unsigned i = file->leases_high; i-- > 0;) {
		books->view[i].member = BOOKS_NOBODY;
		if (file->lease[i].state == BOOK_FREE) {
			books->free_leases[books->free_leases_count++] = i;
			continue;
		}
		if (!lease_is_sound(books, &file->lease[i]))
			return complain(
				problem, -EILSEQ, path, BOOKS_FILE,
				"has a lease of nobody; remove the directory to start anew");
		lease_link(books, i);
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			sums_add(books, i, kind, file->lease[i].granted[kind]);
	}
	return 0;
}

int books_open(struct books *books, const char *directory, const struct log *log,
	       char problem[BOOKS_PROBLEM])
{
	int result;

	memset(books, 0, sizeof(*books));
	books->directory = books->read_directory = books->fd = -1;
	books->log = log;
	owner_unlimited(&books->host);
	for (unsigned i = 0; i < sizeof(books->by_pid) / sizeof(books->by_pid[0]); i++)
		books->by_pid[i] = BOOKS_NOBODY;
	books->member = calloc(BOOKS_MEMBERS, sizeof(*books->member));
	books->view = calloc(LEASES_MAX, sizeof(*books->view));
	books->free_members = calloc(BOOKS_MEMBERS, sizeof(*books->free_members));
	books->free_leases = calloc(LEASES_MAX, sizeof(*books->free_leases));
	if (!books->member || !books->view || !books->free_members || !books->free_leases)
		result = complain(problem, -ENOMEM, directory, "", NULL);
	else
		result = directory_open(books, directory, problem);
	if (result == 0) {
		books->read_directory = readonly_directory(books->directory, log);
		if (books->read_directory < 0)
			result = complain(problem, books->read_directory, directory, "", NULL);
	}
	/* Not before: the child that makes the door shares our descriptor, and would keep the
	 * lock for a moment after our death. */
	if (result == 0)
		result = directory_lock(books, directory, problem);
	if (result == 0)
		result = file_open(books, directory, problem);
	if (result == 0)
		result = tenants_open(books, directory, problem);
	if (result == 0)
		result = rows_read(books, directory, problem);
	if (result < 0)
		books_close(books);
	return result;
}

void books_close(struct books *books)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			tenant_close(books, i);
	if (books->file)
		munmap(books->file, sizeof(*books->file));
	free(books->member);
	free(books->view);
	free(books->free_members);
	free(books->free_leases);
	if (books->fd >= 0)
		close(books->fd);
	if (books->read_directory >= 0)
		close(books->read_directory);
	if (books->directory >= 0)
		close(books->directory);
	memset(books, 0, sizeof(*books));
	books->directory = books->read_directory = books->fd = -1;
}
