/* SPDX-License-Identifier: MIT */
/* Passes over /proc; see heirs.h. */
#include "collector/heirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/usage_page.h"

#define PAGE_LINK "/memfd:" USAGE_PAGE_NAME
#define DEVICE_LINK "/dev/infiniband/"

enum {
	BUCKETS = 1024,
	NOBODY = -1,
	USER_MOST = 1 << 14,   /* descriptors of one user that a pass looks at */
	PROCESS_MOST = 4096,   /* of a living member, or of another user's process for root */
	LOOKS_AT_ONCE = 16,    /* between two looks at the clock */
};

enum sought_state { SOUGHT_NOT, SOUGHT_NEXT, SOUGHT_NOW };

/* One for each member of the books. */
struct sought {
	struct heirs_goal goal;
	enum sought_state state;
	bool found;
	bool again; /* one pass has found nobody */
	bool candidate; /* the process that is looked at has its page */
	uint64_t since;
	int next_of_inode;
	int next_candidate;
};

/* What goes on for one user. */
struct search {
	TAILQ_ENTRY(search) link;
	uid_t uid;
	bool running;	  /* a pass has begun */
	unsigned left;	  /* of USER_MOST */
	unsigned living;  /* the next member to look at, of those that live */
	DIR *processes;	  /* NULL: not at /proc, or not yet */
	DIR *descriptors; /* of the process that is looked at, or NULL */
	unsigned process_left;
	unsigned *purse;   /* `left` or `process_left`; NULL: root's own, without end */
	bool has_device;   /* the process that is looked at */
	int candidates;	   /* of that process */
};

struct heirs {
	unsigned members;
	struct sought *sought;
	int by_inode[BUCKETS];
	TAILQ_HEAD(search_queue, search) searches; /* the first one has its turn */
	unsigned count;
	uint64_t since, passes, spent_ns;
	heirs_page *page;
	heirs_done *done;
	void *closure;
};

/* ---- who is sought */

static int *heirs_bucket(struct heirs *heirs, uint64_t inode)
{
	return &heirs->by_inode[inode % BUCKETS];
}

static struct search *search_for(struct heirs *heirs, uid_t uid)
{
	struct search *search;

	TAILQ_FOREACH (search, &heirs->searches, link)
		if (search->uid == uid)
			return search;
	search = calloc(1, sizeof(*search));
	if (!search)
		return NULL;
	search->uid = uid;
	search->candidates = NOBODY;
	TAILQ_INSERT_TAIL(&heirs->searches, search, link);
	return search;
}

int heirs_seek(struct heirs *heirs, unsigned member, const struct heirs_goal *goal)
{
	struct sought *sought = &heirs->sought[member];
	int *place = heirs_bucket(heirs, goal->inode);

	if (sought->state != SOUGHT_NOT)
		return 0;
	if (!search_for(heirs, goal->uid))
		return -ENOMEM;
	*sought = (struct sought){
		.goal = *goal,
		.state = SOUGHT_NEXT,
		.since = ++heirs->since,
		.next_of_inode = *place,
	};
	*place = (int)member;
	heirs->count++;
	return 0;
}

/* Out of the list of those that the process looked at has the page of. */
static void candidate_drop(struct heirs *heirs, unsigned member)
{
	struct search *search;

	TAILQ_FOREACH (search, &heirs->searches, link)
		for (int *link = &search->candidates; *link != NOBODY;
		     link = &heirs->sought[*link].next_candidate)
			if (*link == (int)member) {
				*link = heirs->sought[member].next_candidate;
				return;
			}
}

void heirs_drop(struct heirs *heirs, unsigned member)
{
	struct sought *sought = &heirs->sought[member];
	int *link = heirs_bucket(heirs, sought->goal.inode);

	if (sought->state == SOUGHT_NOT)
		return;
	if (sought->candidate)
		candidate_drop(heirs, member);
	while (*link != (int)member)
		link = &heirs->sought[*link].next_of_inode;
	*link = sought->next_of_inode;
	sought->state = SOUGHT_NOT;
	heirs->count--;
}

uint64_t heirs_since(const struct heirs *heirs, unsigned member)
{
	return heirs->sought[member].state == SOUGHT_NOT ? 0 : heirs->sought[member].since;
}

uint64_t heirs_now(const struct heirs *heirs)
{
	return heirs->since;
}

unsigned heirs_sought(const struct heirs *heirs)
{
	return heirs->count;
}

uint64_t heirs_passes(const struct heirs *heirs)
{
	return heirs->passes;
}

uint64_t heirs_spent_ns(const struct heirs *heirs)
{
	return heirs->spent_ns;
}

/* ---- one descriptor */

/* What the kernel knows of a file without asking its file system, which may be a program of the
 * descriptor's owner that never answers. */
static bool file_look(int fd, struct statx *ret_status)
{
	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_SIZE,
		      ret_status);
}

/* Whether the file is a memfd. Files of other file systems may have the inode number of a usage page. */
static bool file_is_memfd(const struct statx *status)
{
	static struct statx memory;
	static bool known;
	int fd;

	if (!known) {
		fd = memfd_create(USAGE_PAGE_NAME, MFD_CLOEXEC);
		known = fd >= 0 && file_look(fd, &memory);
		if (fd >= 0)
			close(fd);
	}
	return known && status->stx_dev_major == memory.stx_dev_major &&
	       status->stx_dev_minor == memory.stx_dev_minor;
}

/* Opens what a descriptor of ours leads to, which may be anything but cannot change any more. */
static int page_open(int path)
{
	char link[40];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
	fd = open(link, O_RDWR | O_CLOEXEC);
	/* One that could be made shorter would be our SIGBUS. */
	if (fd >= 0 && !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Notes whose page it is. The owner of the descriptor may put another file in its place at any
 * moment: so it is looked at through an O_PATH, which opens nothing. */
static void page_look(struct heirs *heirs, struct search *search, const char *name)
{
	int path = openat(dirfd(search->descriptors), name, O_PATH | O_CLOEXEC), member, fd;
	struct statx status;

	if (path < 0)
		return;
	if (!file_look(path, &status) || !file_is_memfd(&status) ||
	    status.stx_size != sizeof(struct usage_page)) {
		close(path);
		return;
	}
	for (member = *heirs_bucket(heirs, status.stx_ino); member != NOBODY;
	     member = heirs->sought[member].next_of_inode) {
		struct sought *sought = &heirs->sought[member];

		if (sought->goal.inode != status.stx_ino || sought->goal.uid != search->uid ||
		    sought->state != SOUGHT_NOW || sought->found || sought->candidate)
			continue;
		if (sought->goal.wants_page && (fd = page_open(path)) >= 0) {
			sought->goal.wants_page = false;
			heirs->page(heirs->closure, (unsigned)member, fd);
		}
		sought->candidate = true;
		sought->next_candidate = search->candidates;
		search->candidates = member;
	}
	close(path);
}

static void descriptor_look(struct heirs *heirs, struct search *search, const char *name)
{
	char target[64];
	ssize_t length =
		readlinkat(dirfd(search->descriptors), name, target, sizeof(target) - 1);

	if (search->purse)
		--*search->purse;
	if (length <= 0)
		return;
	target[length] = '\0';
	if (!strncmp(target, DEVICE_LINK, sizeof(DEVICE_LINK) - 1))
		search->has_device = true;
	else if (!strncmp(target, PAGE_LINK, sizeof(PAGE_LINK) - 1))
		page_look(heirs, search, name);
}

/* ---- one process */

static void process_open(struct search *search, pid_t pid, unsigned *purse)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	search->descriptors = opendir(path);
	search->purse = purse;
	search->process_left = PROCESS_MOST;
	search->has_device = false;
}

/* All of its descriptors were seen. */
static void process_close(struct heirs *heirs, struct search *search)
{
	int next;

	closedir(search->descriptors);
	search->descriptors = NULL;
	for (int member = search->candidates; member != NOBODY; member = next) {
		struct sought *sought = &heirs->sought[member];

		next = sought->next_candidate;
		sought->candidate = false;
		sought->found = search->has_device || sought->goal.pid;
	}
	search->candidates = NOBODY;
}

/* A process that may not be looked at by its user belongs to root in /proc: whose it is then is
 * said by its users. */
static uid_t process_user(int processes, const char *name)
{
	unsigned long real = 0, effective = 0;
	char path[40], text[1024];
	struct stat status;
	const char *line;
	ssize_t length;
	int fd;

	if (fstatat(processes, name, &status, 0))
		return (uid_t)-1;
	if (status.st_uid)
		return status.st_uid;
	snprintf(path, sizeof(path), "%.20s/status", name);
	fd = openat(processes, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	line = strstr(text, "\nUid:");
	if (line)
		sscanf(line + strlen("\nUid:"), "%lu %lu", &real, &effective);
	return (uid_t)(real ? real : effective);
}

/* A process that may be an heir: of the member's own user, of root, or anybody's if the member
 * was root, which may have given up its rights. */
static void process_begin(struct search *search, const char *name)
{
	pid_t pid = atoi(name);
	uid_t owner;

	if (pid <= 0)
		return;
	owner = process_user(dirfd(search->processes), name);
	if (owner == (uid_t)-1)
		return;
	if (owner && owner == search->uid)
		process_open(search, pid, &search->left);
	else if (!owner)
		process_open(search, pid, NULL);
	else if (!search->uid)
		process_open(search, pid, &search->process_left);
}

/* ---- a pass */

static bool sought_is_of(const struct sought *sought, const struct search *search,
		  enum sought_state state)
{
	return sought->state == state && sought->goal.uid == search->uid;
}

/* Takes those in that are sought by now. False: there are none. */
static bool pass_begin(struct heirs *heirs, struct search *search)
{
	bool any = false;

	for (unsigned i = 0; i < heirs->members; i++)
		if (sought_is_of(&heirs->sought[i], search, SOUGHT_NEXT)) {
			heirs->sought[i].state = SOUGHT_NOW;
			any = true;
		}
	search->left = USER_MOST;
	search->living = 0;
	return search->running = any;
}

/* An heir that forks while a pass goes on may have ended when the pass comes to it, and its child
 * may not be on the list that the pass has read. So one pass that finds nobody is not believed. */
static bool sought_is_doubtful(const struct sought *sought, enum heirs_result result)
{
	return result == HEIRS_NONE && !sought->goal.pid && !sought->again;
}

static void pass_end(struct heirs *heirs, struct search *search)
{
	heirs->passes += search->processes != NULL;
	if (search->descriptors)
		process_close(heirs, search);
	if (search->processes)
		closedir(search->processes);
	search->processes = NULL;
	search->running = false;
	for (unsigned i = 0; i < heirs->members; i++) {
		struct sought *sought = &heirs->sought[i];
		enum heirs_result result = sought->found  ? HEIRS_FOUND :
					   !search->left ? HEIRS_UNKNOWN :
							   HEIRS_NONE;

		if (!sought_is_of(sought, search, SOUGHT_NOW))
			continue;
		if (sought_is_doubtful(sought, result)) {
			sought->again = true;
			sought->state = SOUGHT_NEXT;
			continue;
		}
		heirs_drop(heirs, i);
		heirs->done(heirs->closure, i, result);
	}
}

/* The next process to look at. False: the pass has seen them all. */
static bool process_next(struct heirs *heirs, struct search *search)
{
	bool ended = search->processes != NULL;
	struct dirent *entry;

	while (search->living < heirs->members) {
		const struct sought *sought = &heirs->sought[search->living++];

		if (!sought_is_of(sought, search, SOUGHT_NOW))
			continue;
		if (sought->goal.pid) {
			process_open(search, sought->goal.pid, &search->process_left);
			return true;
		}
		ended = true;
	}
	if (!search->processes && ended)
		search->processes = opendir("/proc");
	entry = search->processes && search->left ? readdir(search->processes) : NULL;
	if (entry)
		process_begin(search, entry->d_name);
	return entry;
}

/* Some steps of a pass. False: it has ended. */
static bool pass_step(struct heirs *heirs, struct search *search)
{
	struct dirent *entry;

	for (unsigned i = 0; i < LOOKS_AT_ONCE; i++) {
		if (!search->descriptors) {
			if (!process_next(heirs, search))
				return false;
			continue;
		}
		entry = !search->purse || *search->purse ? readdir(search->descriptors) : NULL;
		if (entry)
			descriptor_look(heirs, search, entry->d_name);
		else
			process_close(heirs, search);
	}
	return true;
}

static void search_free(struct heirs *heirs, struct search *search)
{
	TAILQ_REMOVE(&heirs->searches, search, link);
	free(search);
}

/* The next user's turn. */
static void heirs_turn_pass(struct heirs *heirs)
{
	struct search *search = TAILQ_FIRST(&heirs->searches);

	TAILQ_REMOVE(&heirs->searches, search, link);
	TAILQ_INSERT_TAIL(&heirs->searches, search, link);
}

bool heirs_step(struct heirs *heirs, uint64_t until)
{
	uint64_t begun = clock_now_ns(), now = begun;
	struct search *search = TAILQ_FIRST(&heirs->searches);
	bool goes_on = true;

	if (!search)
		return false;
	if (!search->running && !pass_begin(heirs, search)) {
		search_free(heirs, search);
		return false;
	}
	while (goes_on && now < until) {
		goes_on = pass_step(heirs, search);
		now = clock_now_ns();
	}
	heirs->spent_ns += now - begun;
	if (!goes_on)
		pass_end(heirs, search);
	heirs_turn_pass(heirs);
	return !goes_on;
}

int heirs_new(struct heirs **ret_heirs, unsigned members, heirs_page *page, heirs_done *done,
	      void *closure)
{
	struct heirs *heirs = calloc(1, sizeof(*heirs));

	if (heirs)
		heirs->sought = calloc(members, sizeof(*heirs->sought));
	if (!heirs || !heirs->sought) {
		free(heirs);
		return -ENOMEM;
	}
	TAILQ_INIT(&heirs->searches);
	heirs->members = members;
	heirs->page = page;
	heirs->done = done;
	heirs->closure = closure;
	for (unsigned i = 0; i < BUCKETS; i++)
		heirs->by_inode[i] = NOBODY;
	*ret_heirs = heirs;
	return 0;
}

void heirs_free(struct heirs *heirs)
{
	struct search *search;

	if (!heirs)
		return;
	while ((search = TAILQ_FIRST(&heirs->searches))) {
		if (search->descriptors)
			closedir(search->descriptors);
		if (search->processes)
			closedir(search->processes);
		search_free(heirs, search);
	}
	free(heirs->sought);
	free(heirs);
}
