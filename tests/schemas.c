/* SPDX-License-Identifier: MIT */
/*
 * Holds documents against schemas. Reads lines "NAME<tab>DOCUMENT", prints what does not fit, and fails
 * if something does not. With --all, each schema must have been used, but those that are named: another
 * test has their documents.
 * Usage: schemas [--all] DIRECTORY [NAME]... <lines
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"

enum { NAMES = 128 };

static char names[NAMES][64];

static void name_note(const char *name)
{
	unsigned i = 0;

	while (i < NAMES - 1 && names[i][0] && strcmp(names[i], name))
		i++;
	snprintf(names[i], sizeof(names[i]), "%s", name);
}

static int unused_count(const char *directory)
{
	char pattern[512];
	int unused = 0;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.schema.json", directory);
	if (glob(pattern, 0, NULL, &found)) {
		printf("%s: no schemas\n", directory);
		return 1;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *file = strrchr(found.gl_pathv[i], '/') + 1;
		size_t length = strcspn(file, "."), known = 0;

		while (known < NAMES && (strncmp(names[known], file, length) || names[known][length]))
			known++;
		/* Not a document: its definitions are used by the others. */
		if (known == NAMES && strncmp(file, "common.", 7)) {
			printf("%s: no document was held against it\n", file);
			unused++;
		}
	}
	globfree(&found);
	return unused;
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strcmp(argv[1], "--all");
	const char *directory = argv[all ? 2 : 1];
	char *line = NULL, problem[SCHEMA_PROBLEM];
	int bad = 0, lines = 0;
	size_t room = 0;

	if (!directory)
		return 2;
	for (int i = all ? 3 : 2; i < argc; i++)
		name_note(argv[i]);
	while (getline(&line, &room, stdin) > 0) {
		char *document = strchr(line, '\t');
		json_t *value = document ? json_loads(document + 1, 0, NULL) : NULL;

		lines++;
		if (document)
			*document = '\0';
		if (!value || !schema_fits(directory, line, value, problem)) {
			printf("%s: %s\n", line, value ? problem : "not a document");
			bad++;
		}
		name_note(line);
		json_decref(value);
	}
	free(line);
	if (all)
		bad += unused_count(directory);
	printf("%d documents, %d problems\n", lines, bad);
	return bad || !lines;
}
