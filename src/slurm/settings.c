/* SPDX-License-Identifier: MIT */
/* Reading of the plugin's words; see settings.h. */
#include "slurm/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int text_set(char *ret_text, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return -EINVAL;
	strcpy(ret_text, value);
	return 0;
}

static int switch_set(bool *ret_switch, const char *value)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return -EINVAL;
	*ret_switch = !strcmp(value, "on");
	return 0;
}

static int path_set(char *ret_path, size_t size, const char *value)
{
	return value[0] == '/' ? text_set(ret_path, size, value) : -EINVAL;
}

static int word_read(const char *word, struct plugin_settings *settings, char problem[PROBLEM_SIZE])
{
	const char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value++ - word) : strlen(word);
	const char *expected;
	int result = -EINVAL;

	if (value && !strncmp(word, "library=", length + 1)) {
		expected = "an absolute path, or none";
		result = !strcmp(value, "none") ?
				 text_set(settings->library, sizeof(settings->library), "") :
				 path_set(settings->library, sizeof(settings->library), value);
	} else if (value && !strncmp(word, "socket=", length + 1)) {
		expected = "an absolute path of at most 107 bytes";
		result = path_set(settings->socket, sizeof(settings->socket), value);
	} else if (value && !strncmp(word, "within=", length + 1)) {
		expected = "the name of a tenant or of a pattern";
		result = text_set(settings->within, sizeof(settings->within), value);
	} else if (value && !strncmp(word, "guard=", length + 1)) {
		expected = "on or off";
		result = switch_set(&settings->guard, value);
	} else if (value && !strncmp(word, "comment=", length + 1)) {
		expected = "on or off";
		result = switch_set(&settings->comment, value);
	} else {
		return problem_set(-EINVAL, problem,
				   "plugstack.conf: unknown word '%.80s': expected library=, socket=, "
				   "within=, guard= or comment=",
				   word);
	}
	if (result < 0)
		problem_set(result, problem, "plugstack.conf: %.*s: invalid value '%.80s': expected %s",
			    (int)length, word, value, expected);
	return result;
}

int plugin_settings_read(int count, char **words, struct plugin_settings *ret_settings,
			 char problem[PROBLEM_SIZE])
{
	struct plugin_settings settings = { .library = RDMA_INTERCEPT_LIBRARY_PATH,
					    .comment = true };
	char other[PROBLEM_SIZE] = "";
	int result = 0;

	for (int i = 0; i < count; i++) {
		int read = word_read(words[i], &settings, result == 0 ? problem : other);

		result = result == 0 ? read : result;
	}
	*ret_settings = settings;
	return result;
}
