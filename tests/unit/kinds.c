/* SPDX-License-Identifier: MIT */
/*
 * Everything that is made from kinds.def has exactly its rows. trials.sh
 * builds this once more with a row added and nothing else changed.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "intercept/config.h"
#include "ledger/layout.h"

/* The rows, read from the text of the table rather than by the compiler. */
static unsigned rows_read(char names[][64], unsigned most)
{
	char line[256];
	unsigned rows = 0;
	FILE *file = fopen(getenv("KINDS_DEF"), "re");

	if (!file)
		abort();
	while (rows < most && fgets(line, sizeof(line), file))
		if (sscanf(line, "KIND(%63[a-z_], ", names[rows]) == 1)
			rows++;
	fclose(file);
	return rows;
}

static char assignment[256];

static const char *lookup(const char *name)
{
	return strcmp(name, CONFIG_PREFIX "LIMITS") ? NULL : assignment;
}

static void limits_of(const char *name, int kind)
{
	static struct config config;

	snprintf(assignment, sizeof(assignment), "process:%s=7;host:%s=8;device:rxe0:%s=9", name, name,
		 name);
	config_read(&config, lookup);
	CHECK(config.complaints == 0, "%s", config.complaint[0]);
	for (int other = 0; other < KIND_COUNT; other++) {
		uint64_t none = UNLIMITED;

		CHECK(config.limits.process[other] == (other == kind ? 7 : none));
		CHECK(config.limits.host[other] == (other == kind ? 8 : none));
		CHECK(config.limits.device[0].limit[other] == (other == kind ? 9 : none), "%s",
		      kind_rows[other].name);
	}
}

#define ROOM(array) (sizeof(array) / sizeof((array)[0]))

static char names[64][64];
static unsigned rows;

static void table(void)
{
	CHECK(rows == KIND_COUNT, "%u rows, %d kinds", rows, KIND_COUNT);
	for (unsigned i = 0; i < rows; i++) {
		CHECK(!strcmp(kind_rows[i].name, names[i]), "%s", names[i]);
		CHECK(kind_find(names[i], strlen(names[i])) == (int)i);
		CHECK(strlen(kind_rows[i].text) > 5);
		CHECK((kind_rows[i].unit == UNIT_BYTES) == (strstr(names[i], "_bytes") != NULL));
	}
	CHECK(kind_find("qpx", 3) < 0 && kind_find("q", 1) < 0 && kind_find("", 0) < 0);
}

/* The setting LIMITS knows the name of every kind, in every scope. */
static void limits(void)
{
	for (unsigned i = 0; i < rows; i++)
		limits_of(names[i], (int)i);
}

/* The shared file has room for every kind. */
static void layout(void)
{
	const struct layout_slot *slot = NULL;
	const struct layout_header *header = NULL;

	CHECK(ROOM(slot->used) == rows && ROOM(slot->device[0].charged) == rows &&
	      ROOM(header->limit) == rows && ROOM(header->device[0].used) == rows);
	printf("%u kinds\n", rows);
}

static void driver(void)
{
	rows = rows_read(names, 64);
	RUN(table);
	RUN(limits);
	RUN(layout);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
