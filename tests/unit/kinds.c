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

	CHECK((size_t)snprintf(assignment, sizeof(assignment), "process:%s=7;host:%s=8;device:rxe0:%s=9",
			       name, name, name) < sizeof(assignment), "%s is too long", name);
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

/* Each port has a number of its own for each kind that is counted by port, and no other kind or
 * port has one. */
static void ports(void)
{
	unsigned next = KIND_COUNT;

	for (unsigned port = 0; port <= 255; port++)
		for (int kind = 0; kind < KIND_COUNT; kind++) {
			int on_port = kind_on_port((enum kind)kind, port);
			bool counted = port >= 1 && port <= PORTS_COUNTED &&
				       (kind == KIND_qp || kind == KIND_ah);

			CHECK((on_port >= 0) == counted, "%s on port %u", names[kind], port);
			if (on_port < 0)
				continue;
			CHECK(on_port == (int)next++, "%s on port %u", names[kind], port);
			CHECK(kind_port((unsigned)on_port) == port);
			CHECK(kind_plain((unsigned)on_port) == (enum kind)kind);
			CHECK(!strcmp(kind_rows[on_port].name, names[kind]));
			CHECK(!kind_rows[on_port].guarded && !kind_rows[on_port].drift);
		}
	CHECK(next == KINDS_COUNTED);
	CHECK(kind_port(KIND_qp) == 0 && kind_plain(KIND_mr) == KIND_mr);
}

/* port:NAME/PORT: in the setting LIMITS. */
static void port_limits(void)
{
	static const char *const wrong[] = {
		"port:rxe0:qp=1", "port:rxe0/:qp=1",   "port:rxe0/0:qp=1",   "port:rxe0/5:qp=1",
		"port:/1:qp=1",	  "port:rxe0/x:qp=1",  "port:rxe0/255:qp=1", "port:rxe0/1:mr=1",
		"port:rxe0/1qp=", "port:rxe0/1:qp=-1", "port:rxe0/-1:qp=1",  "port:rxe0/1.:qp=1",
	};
	static struct config config;

	snprintf(assignment, sizeof(assignment), "%s",
		 "port:rxe0/1:qp=7,ah=8;device:rxe0:qp=9;port:rxe1/4:qp=5");
	config_read(&config, lookup);
	CHECK(config.complaints == 0, "%s", config.complaint[0]);
	CHECK(config.limits.devices == 2);
	CHECK(config.limits.device[0].limit[kind_on_port(KIND_qp, 1)] == 7);
	CHECK(config.limits.device[0].limit[kind_on_port(KIND_ah, 1)] == 8);
	CHECK(config.limits.device[0].limit[kind_on_port(KIND_qp, 2)] == UNLIMITED);
	CHECK(config.limits.device[0].limit[KIND_qp] == 9);
	CHECK(config.limits.device[1].limit[kind_on_port(KIND_qp, 4)] == 5);
	CHECK(config.limits.device[1].limit[KIND_qp] == UNLIMITED);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(assignment, sizeof(assignment), "%s", wrong[i]);
		config_read(&config, lookup);
		CHECK(config.complaints == 1 && config.limits.devices == 0, "%s", wrong[i]);
	}
}

/* The shared file has room for every kind. */
static void layout(void)
{
	const struct layout_slot *slot = NULL;
	const struct layout_header *header = NULL;

	unsigned room = rows + PORT_KINDS * PORTS_COUNTED;

	CHECK(ROOM(slot->used) == room && ROOM(slot->device[0].charged) == room &&
	      ROOM(header->limit) == room && ROOM(header->device[0].used) == room);
	printf("%u kinds\n", rows);
}

static void driver(void)
{
	rows = rows_read(names, 64);
	RUN(table);
	RUN(limits);
	RUN(ports);
	RUN(port_limits);
	RUN(layout);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
