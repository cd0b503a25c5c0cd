/* SPDX-License-Identifier: MIT */
/* Opening the books: the file is checked, and the lists and sums are made from its rows. */
#include "collector/books_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/readonly.h"

struct book_signature books_signature(void)
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

static int books_file_check(int directory, char *reason, size_t size)
{
	struct book_signature found, wanted = books_signature();
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

static int books_file_open(struct books *books, const char *path, char problem[PROBLEM_SIZE])
{
	struct book_signature head = books_signature();
	char reason[256];
	int result = books_former_take(books);

	if (result < 0)
		return statefile_problem(problem, result, path, BOOKS_FILE,
					 result == -EILSEQ ? "is damaged; remove the directory to "
							     "start anew" : NULL);
	result = books_file_check(books->directory, reason, sizeof(reason));
	if (result == -ENOENT)
		result = statefile_make(books->directory, BOOKS_FILE, sizeof(struct book_file),
					&head, sizeof(head));
	if (result < 0)
		return statefile_problem(problem, result, path, BOOKS_FILE,
					 result == -EILSEQ ? reason : NULL);
	books->file = statefile_map(books->directory, BOOKS_FILE, sizeof(*books->file), &books->fd);
	if (!books->file)
		return statefile_problem(problem, -errno, path, BOOKS_FILE, NULL);
	result = statefile_reserve(books->fd, books->file, books->file,
				   offsetof(struct book_file, member));
	if (result < 0)
		return statefile_problem(problem, result, path, BOOKS_FILE, NULL);
	if (books->file->members_high > BOOKS_MEMBERS || books->file->leases_high > LEASES_MAX)
		return statefile_problem(problem, -EILSEQ, path, BOOKS_FILE,
					 "is damaged; remove the directory to start anew");
	return 0;
}

/* Why a lease table was not opened. */
static void books_table_describe(const struct books *books, unsigned tenant, char *ret_reason,
				 size_t size)
{
	struct lease_signature found = { 0 };

	if (books_table_found(books->directory, tenant, &found) < 0)
		found.version = 0;
	snprintf(ret_reason, size,
		 "has the layout version %u, this collector needs %u with the same kinds; end its "
		 "clients and remove the directory to start anew",
		 found.version, LEASE_VERSION);
}

static int books_tenants_open(struct books *books, const char *path, char problem[PROBLEM_SIZE])
{
	char problem_of_table[256];

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		char name[BOOKS_TABLE_NAME];
		int result;

		if (!books->file->tenant[i].name[0])
			continue;
		books_table_name(i, name);
		result = books_tenant_open(books, i);
		if (result == -EILSEQ)
			books_table_describe(books, i, problem_of_table,
					     sizeof(problem_of_table));
		if (result < 0)
			return statefile_problem(problem, result, path, name,
						 result == -EILSEQ ?
							 problem_of_table :
							 NULL);
	}
	return 0;
}

/* Whether a row names things that exist: it may be the work of a failing disk or hand. */
static bool books_lease_is_sound(const struct books *books, const struct book_lease *row)
{
	const struct book_member *member;

	if (row->member >= books->file->members_high || row->device >= DEVICES_MAX ||
	    row->usage_row >= DEVICES_MAX)
		return false;
	member = &books->file->member[row->member];
	return member->state != BOOK_FREE && member->tenant < BOOKS_TENANTS &&
	       books->tenant[member->tenant];
}

static int books_rows_read(struct books *books, const char *path, char problem[PROBLEM_SIZE])
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
			return statefile_problem(
				problem, -EILSEQ, path, BOOKS_FILE,
				"names an unknown tenant; remove the directory to "
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
		if (!books_lease_is_sound(books, &file->lease[i]))
			return statefile_problem(
				problem, -EILSEQ, path, BOOKS_FILE,
				"has a lease without a process; remove the directory to start anew");
		books_lease_link(books, i);
		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
			books_sums_add(books, i, kind, file->lease[i].granted[kind]);
	}
	return 0;
}

/* Beside the file; empty. */
static int books_memory(struct books *books)
{
	books_owner_unlimited(&books->host);
	for (unsigned i = 0; i < sizeof(books->by_pid) / sizeof(books->by_pid[0]); i++)
		books->by_pid[i] = BOOKS_NOBODY;
	books->member = calloc(BOOKS_MEMBERS, sizeof(*books->member));
	books->view = calloc(LEASES_MAX, sizeof(*books->view));
	books->free_members = calloc(BOOKS_MEMBERS, sizeof(*books->free_members));
	books->free_leases = calloc(LEASES_MAX, sizeof(*books->free_leases));
	return books->member && books->view && books->free_members && books->free_leases ? 0 :
											   -ENOMEM;
}

static int books_directories(struct books *books, const char *path, char problem[PROBLEM_SIZE])
{
	int result = books->directory = statefile_directory(path, problem);

	if (result < 0)
		return result;
	result = books->read_directory = readonly_directory(books->directory, books->log);
	if (result < 0)
		return statefile_problem(problem, result, path, "", NULL);
	/* Not before: the child that makes the read-only mount shares our descriptor, and would
	 * keep the lock for a moment after our death. */
	return statefile_directory_lock(books->directory, path, problem);
}

int books_open(struct books *books, const char *directory, const struct log *log,
	       char problem[PROBLEM_SIZE])
{
	int result;

	memset(books, 0, sizeof(*books));
	books->directory = books->read_directory = books->fd = -1;
	books->log = log;
	result = books_memory(books);
	if (result < 0)
		statefile_problem(problem, result, directory, "", NULL);
	else
		result = books_directories(books, directory, problem);
	if (result == 0)
		result = books_file_open(books, directory, problem);
	if (result == 0)
		result = books_tenants_open(books, directory, problem);
	if (result == 0)
		result = books_rows_read(books, directory, problem);
	if (result < 0)
		books_close(books);
	return result;
}

void books_close(struct books *books)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			books_tenant_close(books, i);
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
