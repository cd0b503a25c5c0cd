/* SPDX-License-Identifier: MIT */
/* Usage pages; see usage_page.h. */
#include "collector/usage_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/grants.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

enum { PAGE = 4096 };

/* Nobody may shrink or grow it: a page that went away would be a SIGBUS for who looks. */
int usage_page_make(const struct usage_page **ret_page, uint64_t *ret_inode)
{
	const struct lease_signature signature = { USAGE_MAGIC, LEASE_VERSION, DEVICES_MAX,
						   kinds_signature() };
	struct stat status;
	void *page;
	int result, fd = memfd_create(USAGE_PAGE_NAME,
				      MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(USAGE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct usage_page)) || fallocate(fd, 0, 0, PAGE) ||
	    pwrite(fd, &signature, sizeof(signature), 0) != sizeof(signature) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &status))
		goto failed;
	page = mmap(NULL, sizeof(struct usage_page), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto failed;
	*ret_page = page;
	*ret_inode = status.st_ino;
	return fd;
failed:
	result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

void usage_page_attach(struct books *books, unsigned member, int fd)
{
	void *page = MAP_FAILED;

	if (fd >= 0) {
		page = mmap(NULL, sizeof(struct usage_page), PROT_READ, MAP_SHARED, fd, 0);
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
