/* SPDX-License-Identifier: MIT */
/*
 * Creating, checking and mapping of the shared file; see shmfile.h. A new file
 * is made without a name and linked into place when it is complete, so no
 * process ever sees half of one and a creator may be killed at any point.
 */
#include "ledger/shmfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/translation.h"
#include "ledger/layout.h"

#define DIRECTORY "/dev/shm"

enum { PATH_SIZE = 288 };

static struct layout_signature shmfile_signature(void)
{
	return (struct layout_signature){
		.magic = LAYOUT_MAGIC,
		.version = LAYOUT_VERSION,
		.word_bits = 8 * sizeof(void *),
		.seats = LAYOUT_SEATS,
		.devices = DEVICES_MAX,
		.kinds = KINDS_COUNTED,
		.slot_size = sizeof(struct layout_slot),
		.kinds_signature = kinds_signature(),
		.file_size = LAYOUT_FILE_SIZE,
	};
}

int shmfile_allocate(int fd, off_t offset, size_t length)
{
	int result, attempts = 1000; /* a signal undoes one, and the next may be on its way */

	do {
		result = fallocate(fd, 0, offset, (off_t)length) ? -errno : 0;
	} while (result == -EINTR && --attempts);
	/* A file system without fallocate is no tmpfs and has other limits. */
	return result == -EOPNOTSUPP ? 0 : result;
}

static void header_init(struct layout_header *header)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&header->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		header->limit[kind] = UNLIMITED;
		for (unsigned device = 0; device < DEVICES_MAX; device++)
			header->device[device].limit[kind] = UNLIMITED;
	}
	header->signature = shmfile_signature();
}

static int shmfile_map(struct shmfile *file, int protection)
{
	void *memory = mmap(NULL, LAYOUT_FILE_SIZE, protection, MAP_SHARED, file->fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	/* A forked child is another process, with a seat of its own. */
	madvise(memory, LAYOUT_FILE_SIZE, MADV_DONTFORK);
	file->header = memory;
	return 0;
}

/* 0, -EEXIST when somebody was faster, or another -errno. */
static int shmfile_create(struct shmfile *file, const char *path, mode_t mode)
{
	char self[40];
	struct rlimit size;
	int result;

	/* Growing a file past this limit would be answered with SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &size) && size.rlim_cur < LAYOUT_FILE_SIZE)
		return -EFBIG;
	file->fd = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (file->fd < 0)
		return -errno;
	if (ftruncate(file->fd, LAYOUT_FILE_SIZE) || fchmod(file->fd, mode)) {
		result = -errno;
		goto close;
	}
	result = shmfile_allocate(file->fd, 0, LAYOUT_HEADER_SIZE);
	if (result < 0)
		goto close;
	result = shmfile_map(file, PROT_READ | PROT_WRITE);
	if (result < 0)
		goto close;
	header_init(file->header);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
	if (!linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
		return 0;
	result = -errno;
	shmfile_unmap(file->header);
close:
	close(file->fd);
	return result;
}

static int shmfile_check_signature(const struct layout_signature *seen, const char *path,
				   char problem[PROBLEM_SIZE])
{
	const struct layout_signature ours = shmfile_signature();

	if (seen->magic != ours.magic)
		return problem_set(-EINVAL, problem,
				   "shared memory %s is not a ledger of rdma_intercept", path);
	if (seen->version != ours.version)
		return problem_set(
			-EPROTO, problem,
			"shared memory %s has layout version %u, this program has version %u; end "
			"the programs that use it and remove it",
			path, seen->version, ours.version);
	if (seen->word_bits != ours.word_bits)
		return problem_set(
			-EPROTO, problem,
			"shared memory %s belongs to %u-bit programs, this is a %u-bit one", path,
			seen->word_bits, ours.word_bits);
	if (memcmp(seen, &ours, sizeof(ours)))
		return problem_set(
			-EPROTO, problem,
			"shared memory %s has layout version %u with other tables "
			"(%u kinds, %u devices) than this program (%u kinds, %u devices); end the "
			"programs that use it and remove it",
			path, seen->version, seen->kinds, seen->devices, ours.kinds, ours.devices);
	return 0;
}

static int shmfile_check(int fd, const char *path, bool foreign_allowed, char problem[PROBLEM_SIZE])
{
	struct layout_signature seen;
	struct stat status;
	int result;

	if (fstat(fd, &status))
		return problem_set(-errno, problem, "shared memory %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return problem_set(-EINVAL, problem, "shared memory %s is not a regular file",
				   path);
	if (status.st_uid != geteuid() && !foreign_allowed)
		return problem_set(-EPERM, problem,
				   "shared memory %s belongs to user %u, not to user %u", path,
				   (unsigned)status.st_uid, (unsigned)geteuid());
	if (pread(fd, &seen, sizeof(seen), 0) != (ssize_t)sizeof(seen))
		return problem_set(-EINVAL, problem, "shared memory %s is truncated: %lld bytes",
				   path, (long long)status.st_size);
	result = shmfile_check_signature(&seen, path, problem);
	if (result < 0)
		return result;
	if (status.st_size != (off_t)LAYOUT_FILE_SIZE)
		return problem_set(-EINVAL, problem,
				   "shared memory %s is truncated: %lld of %lld bytes", path,
				   (long long)status.st_size, (long long)LAYOUT_FILE_SIZE);
	return 0;
}

/* Opens what is there; -ENOENT when nothing is. */
static int shmfile_attach(struct shmfile *file, const char *path, bool writing,
			  bool foreign_allowed, char problem[PROBLEM_SIZE])
{
	int result;

	file->fd = open(path, (writing ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		return problem_set(-errno, problem, "shared memory %s: %s", path,
				   errno == ELOOP ? _("is a symbolic link") : strerror(errno));
	result = shmfile_check(file->fd, path, foreign_allowed, problem);
	if (result == 0) {
		if (writing)
			result = shmfile_allocate(file->fd, 0, LAYOUT_HEADER_SIZE);
		if (result == 0)
			result = shmfile_map(file, writing ? PROT_READ | PROT_WRITE : PROT_READ);
		if (result < 0)
			problem_set(result, problem, "shared memory %s: %s", path,
				    strerror(-result));
	}
	if (result < 0)
		close(file->fd);
	return result;
}

static void shmfile_path(char path[PATH_SIZE], const char *name, unsigned number)
{
	if (number)
		snprintf(path, PATH_SIZE, DIRECTORY "/%s.%u", name, number);
	else
		snprintf(path, PATH_SIZE, DIRECTORY "/%s", name);
}

/* Whether something is at the path that is ours to use, or to complain about. */
static bool shmfile_is_ours(const char *path, bool shared, uid_t *ret_owner)
{
	struct stat status;

	if (lstat(path, &status))
		return false;
	*ret_owner = status.st_uid;
	return status.st_uid == geteuid() ||
	       (shared && S_ISREG(status.st_mode) && !eaccess(path, R_OK | W_OK));
}

/* Which of the names we have a file under; -1. The search is the same in every process, and an
 * own file goes first: so what others plant and remove does not part our processes. */
static int shmfile_find_number(const char *name, bool shared, char path[PATH_SIZE])
{
	uid_t owner;

	for (int number = 0; number < SHMFILE_NAMES; number++) {
		shmfile_path(path, name, (unsigned)number);
		if (shmfile_is_ours(path, shared, &owner))
			return number;
	}
	return -1;
}

#define STRANGER "shared memory " DIRECTORY "/%s belongs to user %u, not to user %u"

/* A new file under the first name that is free; 1 if somebody of ours was faster. */
static int shmfile_create_free(struct shmfile *file, const struct ledger_options *options,
			       char path[PATH_SIZE], char problem[PROBLEM_SIZE])
{
	uid_t owner = geteuid(), stranger = owner; /* whose the file of the first name is */

	for (unsigned number = 0; number < SHMFILE_NAMES; number++) {
		int result;

		shmfile_path(path, options->name, number);
		result = shmfile_create(file, path, options->mode);
		if (result == 0) {
			log_write(options->log, LOG_INFO, "created shared memory %s, mode %04o",
				  path, (unsigned)options->mode);
			if (number)
				log_write(options->log, LOG_WARN, STRANGER "; %s is used",
					  options->name, (unsigned)stranger, (unsigned)geteuid(),
					  path);
			return 0;
		}
		if (result != -EEXIST)
			return problem_set(result, problem,
					   "shared memory %s cannot be created: %s", path,
					   strerror(-result));
		if (shmfile_is_ours(path, options->shared, &owner))
			return 1;
		if (!number)
			stranger = owner;
	}
	return problem_set(-EPERM, problem, STRANGER, options->name, (unsigned)stranger,
			   (unsigned)geteuid());
}

const char *shmfile_default_name(bool shared, char ret_name[SHMFILE_NAME])
{
	if (geteuid() == 0 || shared)
		strcpy(ret_name, "rdma_intercept_shm");
	else
		snprintf(ret_name, SHMFILE_NAME, "rdma_intercept_shm.%u", (unsigned)geteuid());
	return ret_name;
}

int shmfile_open(struct shmfile *file, const struct ledger_options *options,
		 char problem[PROBLEM_SIZE])
{
	char path[PATH_SIZE];
	bool again;
	int result;

	do {
		if (shmfile_find_number(options->name, options->shared, path) < 0) {
			result = shmfile_create_free(file, options, path, problem);
			again = result == 1;
		} else {
			result = shmfile_attach(file, path, true, options->shared, problem);
			again = result == -ENOENT; /* it was removed just now */
		}
	} while (again);
	return result;
}

int shmfile_private(struct shmfile *file)
{
	size_t size = LAYOUT_HEADER_SIZE + sizeof(struct layout_slot);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, size, MADV_DONTFORK);
	file->fd = -1;
	file->header = memory;
	header_init(file->header);
	file->header->seats_high = 1; /* and no more can be taken */
	return 0;
}

int shmfile_observe(struct shmfile *file, const char *name, char problem[PROBLEM_SIZE])
{
	char path[PATH_SIZE];

	if (shmfile_find_number(name, false, path) < 0)
		shmfile_path(path, name, 0);
	return shmfile_attach(file, path, false, true, problem);
}

void shmfile_close(struct shmfile *file)
{
	close(file->fd);
	file->fd = -1;
}

void shmfile_unmap(struct layout_header *header)
{
	munmap(header, LAYOUT_FILE_SIZE);
}
