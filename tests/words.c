/* SPDX-License-Identifier: MIT */
/* The words that a driver and its children share; see words.h and harness.h. */
#include "words.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

static uint64_t *words;

void words_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 4096))
		abort();
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

uint64_t *words_skipped(void)
{
	return &words[4096 / sizeof(*words) - 1];
}

uint64_t *shared_word(unsigned index)
{
	return &words[index * 8];
}

/* A waiter sleeps on the low half of a word. */
static void word_futex(unsigned index, int operation, uint32_t value)
{
	syscall(SYS_futex, shared_word(index), operation, value, NULL, NULL, 0);
}

uint64_t word_load(unsigned index)
{
	return __atomic_load_n(shared_word(index), __ATOMIC_SEQ_CST);
}

void word_store(unsigned index, uint64_t value)
{
	__atomic_store_n(shared_word(index), value, __ATOMIC_SEQ_CST);
	word_futex(index, FUTEX_WAKE, INT_MAX);
}

uint64_t word_add(unsigned index, uint64_t amount)
{
	uint64_t value = __atomic_add_fetch(shared_word(index), amount, __ATOMIC_SEQ_CST);

	word_futex(index, FUTEX_WAKE, INT_MAX);
	return value;
}

void word_await(unsigned index, uint64_t value)
{
	uint64_t now;

	while ((now = word_load(index)) < value)
		word_futex(index, FUTEX_WAIT, (uint32_t)now);
}

void words_clear(void)
{
	for (unsigned index = 0; index < 16; index++)
		word_store(index, 0);
}
