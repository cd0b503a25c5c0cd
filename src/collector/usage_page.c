/* SPDX-License-Identifier: MIT */
/* Usage pages; see usage_page.h. */
#include "collector/usage_page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/grants.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

static struct lease_signature usage_page_signature(void)
{
	return (struct lease_signature){ USAGE_MAGIC, LEASE_VERSION, DEVICES_MAX,
					 kinds_signature() };
}

/* Nobody may shrink or grow it: a page that went away would be a SIGBUS for who looks. */
int usage_page_make(const struct usage_page **ret_page, uint64_t *ret_inode)
{
	const struct lease_signature signature = usage_page_signature();
	struct stat status;
	void *page;
	int result, fd = memfd_create(USAGE_PAGE_NAME,
				      MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(USAGE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct usage_page)) || fallocate(fd, 0, 0, USAGE_ALLOCATED) ||
	    pwrite(fd, &signature, sizeof(signature), 0) != sizeof(signature) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &status))
		goto failed;
	page = mmap(NULL, sizeof(struct usage_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto failed;
	((struct usage_page *)page)->rate_leases.quiet = RATES_QUIET;
	*ret_page = page;
	*ret_inode = status.st_ino;
	return fd;
failed:
	result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

/* Whether a collector of this layout made it. The process can write there, but not cut it. */
static bool usage_page_is_ours(int fd)
{
	const struct lease_signature wanted = usage_page_signature();
	struct lease_signature found;
	struct stat status;

	return pread(fd, &found, sizeof(found), 0) == sizeof(found) &&
	       !memcmp(&found, &wanted, sizeof(found)) && !fstat(fd, &status) &&
	       status.st_size == sizeof(struct usage_page);
}

void usage_page_attach(struct books *books, unsigned member, int fd)
{
	void *page = MAP_FAILED;

	if (fd >= 0 && !usage_page_is_ours(fd)) {
		log_write(books->log, LOG_WARN,
			  "process %d: its usage page does not have layout version %d: all that "
			  "the collector granted it counts as used; restart the process",
			  (int)books->file->member[member].pid, LEASE_VERSION);
		close(fd);
		fd = -1;
	}
	if (fd >= 0) {
		page = mmap(NULL, sizeof(struct usage_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
		close(fd);
	}
	if (page != MAP_FAILED)
		books->member[member].usage = page;
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		books_lease_view(books, lease);
		grants_settle(books, lease);
	}
}
