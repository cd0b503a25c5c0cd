/* SPDX-License-Identifier: MIT */
/*
 * Attacks on the start of the collector: a file that passes for a usage page when the collector is
 * started again, and files that another user has put where the socket or the state belongs. The
 * collector neither uses nor touches them.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- a file that passes for a usage page when the collector is started again */

enum { NOTE_PLACED, NOTE_RESTARTED, NOTE_CUT };
enum { INODES_MOST = 500000 }; /* to make more files takes long; a long uptime needs more */

/* A file of that inode number, size and name, without the seals; or -1. */
static int imposter_make(uint64_t inode)
{
	static const char path[] = "/tmp/memfd:rdma_intercept_usage";
	struct stat status = { 0 };
	int fd = -1;

	if (inode > INODES_MOST || !become_container_root() ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
		return -1;
	do {
		close(fd);
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (fd >= 0 && !fstat(fd, &status) && status.st_ino < inode);
	/* The path of a file on a detached mount is its name alone. */
	if (status.st_ino != inode || ftruncate(fd, sizeof(struct usage_page)) ||
	    umount2("/tmp", MNT_DETACH))
		return -1;
	return fd;
}

static void __attribute__((noreturn)) imposter(void)
{
	struct proto_grow_request need;
	struct member member;
	struct stat status;
	int fd;

	become(attacker_uid(), NULL);
	CHECK(join(&member));
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) == 0 && fstat(member.usage_fd, &status) == 0);
	fd = imposter_make(status.st_ino);
	leave(&member);
	note_set(NOTE_PLACED, fd < 0 ? 2 : 1);
	note_wait(NOTE_RESTARTED, 1);
	if (fd >= 0)
		CHECK(ftruncate(fd, 0) == 0);
	note_set(NOTE_CUT, 1);
	rest();
	finish();
}

static void page_of_another(void)
{
	pid_t child;

	stage_open();
	child = split();
	if (child == 0)
		imposter();
	EVENTUALLY(note(NOTE_PLACED) != 0);
	if (note(NOTE_PLACED) != 1)
		skip_part("no file can be made here that passes for a usage page");
	collector_kill();
	collector_start("");
	note_set(NOTE_RESTARTED, 1);
	note_wait(NOTE_CUT, 1);
	CHECK(collector_process(child).uid == attacker_uid(),
	      "the collector read the file and ended: %s", collector_log());
	attack_stop();
	CHECK(reap(child) == 0);
}

/* ---- files of another user at the paths of the collector */

/* Starts a collector at these places; what it says goes to a file. */
static pid_t collector_at(const char *socket_path, const char *state, int *ret_log)
{
	char program[PATH_MAX];
	int fd = open(harness_path("refusal.log"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t child;

	if (fd < 0)
		abort();
	child = split();
	if (child == 0) {
		dup2(fd, STDERR_FILENO);
		snprintf(program, sizeof(program), "%s/collector_server",
			 getenv("BUILD_DIRECTORY"));
		execl(program, "collector_server", "--socket", socket_path, "--state", state,
		      "--policy", harness_path("policy.conf"), NULL);
		_exit(126);
	}
	*ret_log = fd;
	return child;
}

/* Runs a collector that must refuse to start. Returns its message. */
static const char *refusal(const char *socket_path, const char *state)
{
	static char text[4096];
	ssize_t length;
	int fd, status = reap(collector_at(socket_path, state, &fd));

	/* One that starts and serves is killed. */
	length = pread(fd, text, sizeof(text) - 1, 0);
	text[length < 0 ? 0 : length] = '\0';
	close(fd);
	CHECK(status == 1, "%s %s: status %d, %s", socket_path, state, status, text);
	return text;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
	       a->st_uid == b->st_uid && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int serve_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || chmod(path, 0777) ||
	    listen(fd, 10))
		return -1;
	return fd;
}

enum plant {
	PLANT_LINK,
	PLANT_DANGLING,
	PLANT_FILE,
	PLANT_DIRECTORY,
	PLANT_FIFO,
	PLANT_SOCKET,
	PLANTS
};

static void plant(enum plant what, const char *path, const char *target)
{
	int fd = -1;

	become(attacker_uid(), NULL);
	switch (what) {
	case PLANT_LINK:
		fd = symlink(target, path);
		break;
	case PLANT_DANGLING:
		fd = symlink("/etc/rdma_attack", path);
		break;
	case PLANT_FILE:
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		break;
	case PLANT_DIRECTORY:
		fd = mkdir(path, 0777);
		break;
	case PLANT_FIFO:
		fd = mkfifo(path, 0666);
		break;
	default:
		fd = serve_at(path);
		break;
	}
	CHECK(fd >= 0, "plant %d: %s", what, strerror(errno));
	note_set(0, 1);
	rest();
	finish();
}

/* No client takes the socket of another unprivileged user for a collector. */
static void served_by_another(const char *path)
{
	char problem[PROBLEM_SIZE];
	struct proto_status collector_state;
	pid_t child = split();

	if (child == 0) {
		become(victim_uid(), NULL);
		CHECK(proto_call(path, MESSAGE_STATUS, NULL, &collector_state, NULL, 0, 0, problem) == -EPERM,
		      "%s", problem);
		finish();
	}
	CHECK(reap(child) == 0);
	CHECK(proto_call(path, MESSAGE_STATUS, NULL, &collector_state, NULL, 0, 0, problem) == -EPERM, "%s",
	      problem);
}

/* Who asks at the path now asks this collector. */
static bool is_served_by(const char *path, pid_t collector)
{
	char problem[PROBLEM_SIZE];
	struct proto_status collector_state;

	return !proto_call(path, MESSAGE_STATUS, NULL, &collector_state, NULL, 0, 0, problem) &&
	       collector_state.pid == collector;
}

/* Root's collector takes the name back, and follows nothing. */
static void planted_paths(void)
{
	char directory[PROTO_PATH - 8], path[PROTO_PATH], target[PATH_MAX], state[PATH_MAX];
	struct stat target_before, target_after;

	stage_prepare();
	snprintf(directory, sizeof(directory), "%s", harness_path("common"));
	snprintf(target, sizeof(target), "%s", harness_path("policy.conf"));
	snprintf(state, sizeof(state), "%s", harness_path("other_state"));
	if (mkdir(directory, 0777) || chmod(directory, 01777))
		abort();
	for (unsigned what = 0; what < PLANTS; what++) {
		pid_t planter, collector;
		int log;

		snprintf(path, sizeof(path), "%s/s%u", directory, what);
		stage_clear();
		planter = split();
		if (planter == 0)
			plant(what, path, target);
		note_wait(0, 1);
		CHECK(lstat(target, &target_before) == 0);
		if (what == PLANT_SOCKET)
			served_by_another(path);
		collector = collector_at(path, state, &log);
		EVENTUALLY(is_served_by(path, collector), "plant %u", what);
		CHECK(lstat(target, &target_after) == 0 && same_file(&target_before, &target_after),
		      "a link was followed");
		kill(collector, SIGTERM);
		CHECK(reap(collector) == 0, "plant %u", what);
		close(log);
		attack_stop();
		CHECK(reap(planter) == 0);
	}
	CHECK(access("/etc/rdma_attack", F_OK) != 0);
}

static void planted_state(void)
{
	char path[PATH_MAX], good[PATH_MAX], socket_path[PATH_MAX];
	const char *said;

	stage_prepare();
	snprintf(path, sizeof(path), "%s", harness_path("planted_state"));
	snprintf(good, sizeof(good), "%s", harness_path("good_state"));
	snprintf(socket_path, sizeof(socket_path), "%s", harness_path("unused.sock"));
	if (mkdir(path, 0700) || mkdir(good, 0700))
		abort();
	for (unsigned mode = 0701; mode <= 0777; mode += 0777 - 0701) {
		if (chmod(path, mode))
			abort();
		said = refusal(socket_path, path);
		CHECK(strstr(said, path) != NULL, "%s", said);
	}
	if (chmod(path, 0700) || chown(path, attacker_uid(), attacker_uid()))
		abort();
	said = refusal(socket_path, path);
	CHECK(strstr(said, path) != NULL, "%s", said);
	if (rmdir(path) || symlink(good, path))
		abort();
	said = refusal(socket_path, path);
	CHECK(strstr(said, path) != NULL, "%s", said);
	CHECK(rmdir(good) == 0, "the collector wrote behind the link");
}


static void driver(void)
{
	RUN(page_of_another);
	RUN(planted_paths);
	RUN(planted_state);
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
