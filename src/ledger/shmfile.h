/* SPDX-License-Identifier: MIT */
/*
 * The file behind the embedded ledger: found or created, checked, mapped.
 * Knows the layout's signature and size, not what the numbers mean.
 */
#ifndef LEDGER_SHMFILE_H
#define LEDGER_SHMFILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/problem.h"
#include "ledger/ledger.h"

struct layout_header;

struct shmfile {
	int fd;
	struct layout_header *header;
};

/* How many names are tried: NAME, NAME.1... Everybody may make files in that directory. */
enum { SHMFILE_NAMES = 8 };

/* One file for each user, and the documented name for root's and for one that is meant to be
 * shared. Returns the name. */
enum { SHMFILE_NAME = 40 };
const char *shmfile_default_name(bool shared, char ret_name[SHMFILE_NAME]);

/*
 * The first of the names that has a file of our user's (or of anybody's who shares it), or a
 * new file under the first name that nobody took. -errno and a sentence in problem when there is
 * no usable file.
 */
int shmfile_open(struct shmfile *file, const struct ledger_options *options,
		 char problem[PROBLEM_SIZE]);

/* Read-only and without creating, for observers. */
int shmfile_observe(struct shmfile *file, const char *name, char problem[PROBLEM_SIZE]);

/* Memory of this process alone, with one seat, in place of a file; fd is -1. */
int shmfile_private(struct shmfile *file);

void shmfile_close(struct shmfile *file); /* the descriptor; the mapping stays */
void shmfile_unmap(struct layout_header *header);

/* Memory behind a range of the file now, rather than SIGBUS on first touch. */
int shmfile_allocate(int fd, off_t offset, size_t length);

#endif
