/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a policy file and as lines of a command: refused with a reason of
 * one line and nothing changed, or read, and then written so that it reads the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/policy.h"

enum { TEXT = 1 << 16 };

static void require(int condition)
{
	if (!condition)
		abort();
}

static struct policy *read_bytes(const void *bytes, size_t size)
{
	struct policy *policy = policy_new();
	char path[64], problem[PROBLEM_SIZE] = "";
	int fd = memfd_create("policy", MFD_CLOEXEC);

	require(policy && fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (policy_read_file(policy, path, false, problem) < 0) {
		require(!strncmp(problem, path, strlen(path)) && !strchr(problem, '\n'));
		policy_free(policy);
		policy = NULL;
	}
	close(fd);
	return policy;
}

static size_t written(const struct policy *policy, char text[TEXT])
{
	ssize_t length;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/rdma_fuzz_policy.%d", (int)getpid());
	require(policy_write(policy, path) == 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = read(fd, text, TEXT);
	require(fd >= 0 && length >= 0);
	close(fd);
	unlink(path);
	return (size_t)length;
}

static void reads_the_same(const struct policy *policy)
{
	static char text[TEXT], again[TEXT];
	size_t length = written(policy, text);
	struct policy *other;

	if (length == TEXT)
		return;
	other = read_bytes(text, length);
	require(other && written(other, again) == length && !memcmp(text, again, length));
	policy_free(other);
}

static void change(struct policy *policy, const char *section, const char *lines)
{
	static char before[TEXT], after[TEXT];
	char problem[PROBLEM_SIZE] = "";
	size_t length = written(policy, before);

	if (policy_change(policy, section, lines, problem) == 0) {
		reads_the_same(policy);
		return;
	}
	require(problem[0] && !strchr(problem, '\n'));
	require(written(policy, after) == length && !memcmp(before, after, length));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct policy_subject subject = { .uid = 1000, .gid = 1000 };
	struct policy *policy = read_bytes(data, size);
	char *text = malloc(size + 1);

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (policy) {
		subject.cgroup = text;
		policy_match(policy, &subject);
		reads_the_same(policy);
	} else {
		policy = policy_new();
		require(policy != NULL);
	}
	change(policy, "tenant fuzz", text);
	change(policy, "host", text);
	change(policy, text, "qp = 1");
	policy_free(policy);
	free(text);
	return 0;
}
