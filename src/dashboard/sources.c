/* SPDX-License-Identifier: MIT */
/*
 * Lines of policy files; see sources.h. The collector decides what a line means: here it is only
 * found again, in the files that the collector names. A file that this program may not read is
 * left out.
 */
#include "dashboard/sources.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/form.h"
#include "output/memory.h"

enum { SOURCES_MOST = 2048, SOURCES_LINE = 4096, SOURCES_FILE_MOST = 1 << 20 };

struct source_reading {
	const char *section;
	bool inside; /* the present section is the wanted one */
	json_t *found;
};

static char *line_trim(char *line)
{
	char *end;

	line += strspn(line, " \t");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return line;
}

/* "[tenant  ml]" is the section "tenant ml". */
static bool title_is(char *title, const char *section)
{
	size_t word = strcspn(section, " "), length = strlen(title);

	if (title[length - 1] != ']')
		return false;
	title[length - 1] = '\0';
	title = line_trim(title + 1);
	if (strncmp(title, section, word) || !strchr(" \t", title[word]))
		return false;
	return !strcmp(line_trim(title + word), section[word] ? section + word + 1 : "");
}

static void source_line_read(struct source_reading *reading, const char *path, unsigned number,
			     char *line)
{
	char source[PATH_MAX + 16], *value;
	json_t *record;

	line = line_trim(line);
	if (*line == '[')
		reading->inside = title_is(line, reading->section);
	value = strchr(line, '=');
	if (!reading->inside || !value || strchr("#;[", *line) ||
	    json_array_size(reading->found) >= SOURCES_MOST)
		return;
	*value++ = '\0';
	snprintf(source, sizeof(source), "%s:%u", path, number);
	record = memory_need(json_object());
	json_object_set_new(record, "key", form_json_text(line_trim(line)));
	json_object_set_new(record, "value", form_json_text(line_trim(value)));
	json_object_set_new(record, "source", form_json_text(source));
	json_array_append_new(reading->found, record);
}

/* Whether the file could be read; not waiting for the writer of a pipe. */
static bool source_file_read(struct source_reading *reading, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[SOURCES_LINE];
	struct stat status;
	unsigned number = 0;
	FILE *file;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > SOURCES_FILE_MOST ||
	    !(file = fdopen(fd, "r"))) {
		close(fd);
		return false;
	}
	reading->inside = false;
	while (fgets(line, sizeof(line), file))
		source_line_read(reading, path, ++number, line);
	fclose(file);
	return true;
}

void sources_write(struct text *text, const char *policy, const char *section)
{
	struct source_reading reading = { section, false, memory_need(json_array()) };
	const char *slash = strrchr(policy, '/');
	char pattern[PATH_MAX], *written;
	glob_t files;

	if (!*policy || !source_file_read(&reading, policy)) {
		json_decref(reading.found);
		text_add(text, "null");
		return;
	}
	snprintf(pattern, sizeof(pattern), "%.*stenants.d/*.conf",
		 slash ? (int)(slash - policy) + 1 : 0, policy);
	if (!glob(pattern, 0, NULL, &files)) {
		for (size_t i = 0; i < files.gl_pathc; i++)
			source_file_read(&reading, files.gl_pathv[i]);
		globfree(&files);
	}
	written = memory_need(json_dumps(reading.found, JSON_ENSURE_ASCII | JSON_COMPACT));
	text_add(text, written);
	free(written);
	json_decref(reading.found);
}
