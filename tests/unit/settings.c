/* SPDX-License-Identifier: MIT */
/* Settings in shared memory: a reader has those of one moment, or keeps what it had. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "terms/settings.h"

enum { CHANGES = 200000 };

static struct tenant_settings shared;
static uint32_t done;

static void settings_fill(struct tenant_settings *settings, char letter)
{
	memset(settings->devices, letter, sizeof(settings->devices) - 1);
	settings->devices[sizeof(settings->devices) - 1] = '\0';
}

static void *writer(void *unused)
{
	struct tenant_settings next = settings_none;

	for (unsigned i = 0; i < CHANGES; i++) {
		settings_fill(&next, (char)('a' + i % 26));
		settings_write(&shared, &next);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return unused;
}

static bool settings_are_whole(const struct tenant_settings *settings)
{
	struct tenant_settings wanted = settings_none;

	settings_fill(&wanted, settings->devices[0]);
	return !strcmp(settings->devices, wanted.devices);
}

static void reads_are_whole(void)
{
	struct tenant_settings settings = settings_none;
	unsigned torn = 0, read = 0;
	pthread_t thread;

	settings_fill(&settings, 'z');
	settings_write(&shared, &settings);
	if (pthread_create(&thread, NULL, writer, NULL))
		abort();
	do {
		if (settings_read(&shared, &settings)) {
			read++;
			torn += !settings_are_whole(&settings);
		}
	} while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	CHECK(settings_read(&shared, &settings) && torn == 0, "%u of %u", torn, read);
	CHECK(settings_version(&shared) == 2 * (CHANGES + 1), "%llu",
	      (unsigned long long)settings_version(&shared));
}

static void the_same_is_not_written(void)
{
	struct tenant_settings memory = settings_none, same = settings_none;

	settings_write(&memory, &same);
	CHECK(settings_version(&memory) == 0);
	same.version = 7; /* that of the source does not count */
	settings_write(&memory, &same);
	CHECK(settings_version(&memory) == 0);
}

/* A collector that was killed while it wrote. */
static void dead_writer(void)
{
	struct tenant_settings memory = settings_none, next = settings_none, mine = settings_none;

	settings_fill(&next, 'b');
	memory.version = 5;
	memcpy(memory.devices, "half", 4);
	settings_fill(&mine, 'a');
	CHECK(!settings_read(&memory, &mine) && settings_are_whole(&mine) && *mine.devices == 'a');
	settings_write(&memory, &next);
	CHECK(settings_read(&memory, &mine) && *mine.devices == 'b' && mine.version == 6);
	/* Also when what it was about to write is there already. */
	memory.version = 7;
	settings_write(&memory, &next);
	CHECK(settings_read(&memory, &mine) && mine.version == 8);
}

static void driver(void)
{
	RUN(reads_are_whole);
	RUN(the_same_is_not_written);
	RUN(dead_writer);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
