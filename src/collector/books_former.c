/* SPDX-License-Identifier: MIT */
/*
 * The ledger of a former version: its rows are copied into a new file, which takes its place when
 * it is complete. A collector that is killed before leaves the former ledger untouched. Knows the
 * former layouts, and nothing of how a ledger is used.
 */
#include "collector/books_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMER_TEMPORARY "." BOOKS_FILE ".new"

/* Version 5: there were no tenants made by patterns. */
struct book_file_5 {
	struct book_signature signature;
	uint32_t members_high;
	uint32_t leases_high;
	struct book_name device[DEVICES_MAX];
	struct book_name tenant[BOOKS_TENANTS];
	uint32_t tolerant[BOOKS_TENANTS];
	_Alignas(4096) struct book_member member[BOOKS_MEMBERS];
	_Alignas(4096) struct book_lease lease[LEASES_MAX];
};

/* The rows of a former version are those of the present one. Who changes a row says here what
 * becomes of the former ones. */
_Static_assert(sizeof(struct book_member) == 80 + 2 * 8 * KINDS_COUNTED &&
		       sizeof(struct book_lease) == 16 + 2 * 8 * KINDS_COUNTED,
	       "rows of versions 5 and 6");

/* A part of a ledger: where it is in the former one and in the present one. */
struct former_part {
	size_t from, to, size;
};

#define PART(former, field)                                                                        \
	{ offsetof(struct former, field), offsetof(struct book_file, field),                       \
	  sizeof(((struct book_file *)0)->field) }

/* What is copied whole; a part that the former ledger lacks is 0 in the new one. */
static const struct former_part former_parts_5[] = {
	PART(book_file_5, members_high), PART(book_file_5, leases_high),
	PART(book_file_5, device),	 PART(book_file_5, tenant),
	PART(book_file_5, tolerant),
};

static const struct former {
	uint32_t version;
	size_t size;
	const struct former_part *part;
	unsigned parts;
	struct former_part members, leases; /* of these as many as were ever taken */
} formers[] = {
	{ 5, sizeof(struct book_file_5), former_parts_5,
	  sizeof(former_parts_5) / sizeof(former_parts_5[0]), PART(book_file_5, member),
	  PART(book_file_5, lease) },
};

static const struct former *former_of(const struct book_signature *found)
{
	for (unsigned i = 0; i < sizeof(formers) / sizeof(formers[0]); i++) {
		struct book_signature wanted = books_signature();

		wanted.version = formers[i].version;
		wanted.size = formers[i].size;
		if (!memcmp(found, &wanted, sizeof(wanted)))
			return &formers[i];
	}
	return NULL;
}

static int former_write(int fd, const void *data, size_t size, size_t offset)
{
	while (size) {
		ssize_t part = pwrite(fd, data, size, (off_t)offset);

		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			return part ? -errno : -EIO;
		data = (const char *)data + part;
		size -= (size_t)part;
		offset += (size_t)part;
	}
	return 0;
}

/* Rows, with memory behind all of their step. */
static int former_write_rows(int fd, const char *old, struct former_part rows, size_t size,
			     uint32_t high)
{
	size_t steps = (high + BOOKS_STEP - 1) / BOOKS_STEP * BOOKS_STEP;
	int result = steps ? -posix_fallocate(fd, (off_t)rows.to, (off_t)(steps * size)) : 0;

	return result ? result : former_write(fd, old + rows.from, high * size, rows.to);
}

static int former_write_all(int fd, const char *old, const struct former *former)
{
	const struct book_signature head = books_signature();
	/* All layouts begin with the signature and these two words. */
	const struct book_file *counts = (const void *)old;
	int result;

	if (counts->members_high > BOOKS_MEMBERS || counts->leases_high > LEASES_MAX)
		return -EILSEQ;
	if (ftruncate(fd, sizeof(struct book_file)))
		return -errno;
	result = former_write(fd, &head, sizeof(head), 0);
	for (unsigned i = 0; !result && i < former->parts; i++)
		result = former_write(fd, old + former->part[i].from, former->part[i].size,
				      former->part[i].to);
	if (!result)
		result = former_write_rows(fd, old, former->members, sizeof(struct book_member),
					   counts->members_high);
	if (!result)
		result = former_write_rows(fd, old, former->leases, sizeof(struct book_lease),
					   counts->leases_high);
	return result;
}

/* Whether the tenants' lease tables have the present layout: processes have them mapped, so they
 * cannot be made anew. Otherwise nothing is changed, and the former collector can go on. */
static bool former_tables_fit(int directory, const char *old, const struct former *former)
{
	const struct lease_signature wanted = books_table_signature();
	const struct book_name *tenant = NULL;

	for (unsigned i = 0; i < former->parts; i++)
		if (former->part[i].to == offsetof(struct book_file, tenant))
			tenant = (const void *)(old + former->part[i].from);
	for (unsigned i = 0; tenant && i < BOOKS_TENANTS; i++) {
		struct lease_signature found;

		if (tenant[i].name[0] && (books_table_found(directory, i, &found) < 0 ||
					  memcmp(&found, &wanted, sizeof(wanted))))
			return false;
	}
	return true;
}

static int former_replace(int directory, const char *old, const struct former *former)
{
	int result, fd = openat(directory, FORMER_TEMPORARY,
				O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	result = former_write_all(fd, old, former);
	if (!result && fsync(fd))
		result = -errno;
	close(fd);
	if (!result && renameat(directory, FORMER_TEMPORARY, directory, BOOKS_FILE))
		result = -errno;
	if (result)
		unlinkat(directory, FORMER_TEMPORARY, 0);
	return result;
}

int books_former_take(struct books *books)
{
	struct book_signature found;
	const struct former *former;
	struct stat status;
	size_t former_size;
	void *old;
	int result = 0, fd = openat(books->directory, BOOKS_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (read(fd, &found, sizeof(found)) != sizeof(found) || !(former = former_of(&found)) ||
	    fstat(fd, &status) || (size_t)status.st_size != former->size) {
		close(fd);
		return 0;
	}
	former_size = former->size;
	old = mmap(NULL, former_size, PROT_READ, MAP_SHARED, fd, 0);
	if (old == MAP_FAILED)
		result = -errno;
	close(fd);
	if (result)
		return result;
	if (former_tables_fit(books->directory, old, former))
		result = former_replace(books->directory, old, former);
	else
		former = NULL;
	munmap(old, former_size);
	if (result || !former)
		return result;
	log_write(books->log, LOG_WARN,
		  "the ledger had layout version %u: the collector has taken it over into version "
		  "%d; a collector of the former version does not read it any more",
		  former->version, BOOKS_VERSION);
	return 0;
}
