/* SPDX-License-Identifier: MIT */
/* The forms of fields that are not special to one subcommand; see form.h. */
#include "output/form.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

#include "base/translation.h"
#include "output/memory.h"

/*
 * Names of programs, devices and cgroups are anybody's bytes. Whatever takes no
 * place on the screen is written out, not only control characters: overrides of
 * the writing direction would make one text look like another.
 */
char *form_printable(const char *text, unsigned *ret_width)
{
	char *printable = memory_need(malloc(4 * strlen(text) + 1)), *to = printable;
	mbstate_t state = { 0 };
	unsigned width = 0;

	while (*text) {
		wchar_t wide;
		size_t length = mbrtowc(&wide, text, strnlen(text, MB_CUR_MAX), &state);
		bool whole = length != (size_t)-1 && length != (size_t)-2;

		if (whole && iswprint((wint_t)wide) && wcwidth(wide) > 0) {
			to = mempcpy(to, text, length);
			text += length;
			width += (unsigned)wcwidth(wide);
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text++);
			width += 4;
			memset(&state, 0, sizeof(state));
		}
	}
	*to = '\0';
	if (ret_width)
		*ret_width = width;
	return printable;
}

unsigned form_width(const char *text)
{
	unsigned width;

	free(form_printable(text, &width));
	return width;
}

void cell_print(struct cell *ret_cell, const char *colour, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		memory_need(NULL);
	ret_cell->text = form_printable(text, &ret_cell->width);
	ret_cell->colour = colour;
	free(text);
}

json_t *form_json_text(const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */
	json_t *json;
	char *valid, *to;

	if (!text || !*text)
		return json_null();
	json = json_string(text);
	if (json)
		return json;
	valid = to = memory_need(malloc(3 * strlen(text) + 1));
	for (; *text; text++)
		to = mempcpy(to, *text & 0x80 ? unknown : text, *text & 0x80 ? 3 : 1);
	*to = '\0';
	json = memory_need(json_string(valid));
	free(valid);
	return json;
}

json_t *form_json_number(uint64_t value)
{
	return memory_need(json_integer((json_int_t)(value > INT64_MAX ? INT64_MAX : value)));
}

/* ---- text */

void form_text_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const char *text = field;

	cell_print(ret_cell, NULL, "%s", *text ? text : _(form->nothing));
}

json_t *form_text_json(const struct form *form, const void *field)
{
	return form_json_text(field);
}

const struct form form_text = { .show = form_text_show, .json = form_text_json, .nothing = "-" };
const struct form form_text_or_blank = { .show = form_text_show, .json = form_text_json, .nothing = "" };

void form_string_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const char *text = *(const char *const *)field;

	form_text_show(form, text ? text : "", ret_cell);
}

static json_t *string_json(const struct form *form, const void *field)
{
	return form_json_text(*(const char *const *)field);
}

const struct form form_string = { .show = form_string_show, .json = string_json, .nothing = "-" };

static void message_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const char *text = *(const char *const *)field;

	form_text_show(form, text ? _(text) : "", ret_cell);
}

const struct form form_message = { .show = message_show, .json = string_json, .nothing = "-" };

static json_t *words_json(const struct form *form, const void *field)
{
	json_t *words = memory_need(json_array());

	for (const char *at = *(const char *const *)field; *at;) {
		size_t length = strcspn(at, " ");

		json_array_append_new(words, memory_need(json_stringn(at, length)));
		at += length;
		at += strspn(at, " ");
	}
	return words;
}

const struct form form_words = { .show = form_string_show, .json = words_json, .nothing = "-" };

/* ---- numbers */

static void count_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, "%" PRIu64, *(const uint64_t *)field);
}

static json_t *count_json(const struct form *form, const void *field)
{
	return form_json_number(*(const uint64_t *)field);
}

const struct form form_count = { .show = count_show, .json = count_json, .right = true };

static void number_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, "%" PRIu32, *(const uint32_t *)field);
}

static json_t *number_json(const struct form *form, const void *field)
{
	return form_json_number(*(const uint32_t *)field);
}

const struct form form_number = { .show = number_show, .json = number_json, .right = true };

static void pid_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	int32_t pid = *(const int32_t *)field;

	if (pid)
		cell_print(ret_cell, NULL, "%" PRId32, pid);
	else
		cell_print(ret_cell, NULL, "-");
}

static json_t *pid_json(const struct form *form, const void *field)
{
	int32_t pid = *(const int32_t *)field;

	return pid ? memory_need(json_integer(pid)) : json_null();
}

const struct form form_pid = { .show = pid_show, .json = pid_json, .right = true };

static void flag_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, *(const uint32_t *)field ? _("yes") : _("no"));
}

static json_t *flag_json(const struct form *form, const void *field)
{
	return json_boolean(*(const uint32_t *)field);
}

const struct form form_flag = { .show = flag_show, .json = flag_json };

/* ---- times */

static void seconds_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	uint64_t seconds = *(const uint64_t *)field;
	uint64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;

	if (days)
		cell_print(ret_cell, NULL, "%" PRIu64 "d %" PRIu64 "h", days, hours);
	else if (hours)
		cell_print(ret_cell, NULL, "%" PRIu64 "h %" PRIu64 "m", hours, minutes);
	else if (minutes)
		cell_print(ret_cell, NULL, "%" PRIu64 "m %" PRIu64 "s", minutes, seconds % 60);
	else
		cell_print(ret_cell, NULL, "%" PRIu64 "s", seconds);
}

const struct form form_seconds = { .show = seconds_show, .json = count_json, .right = true };

static void time_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	time_t seconds = (time_t)(*(const uint64_t *)field / 1000000000);
	struct tm local = { 0 };
	char text[32];

	localtime_r(&seconds, &local);
	strftime(text, sizeof(text), "%F %T", &local);
	cell_print(ret_cell, NULL, "%s", text);
}

static json_t *time_json(const struct form *form, const void *field)
{
	uint64_t ns = *(const uint64_t *)field;
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm universal = { 0 };
	char text[32], exact[48];

	gmtime_r(&seconds, &universal);
	strftime(text, sizeof(text), "%FT%T", &universal);
	snprintf(exact, sizeof(exact), "%s.%09uZ", text, (unsigned)(ns % 1000000000));
	return memory_need(json_string(exact));
}

const struct form form_time = { .show = time_show, .json = time_json };

/* ---- bytes */

const char *bytes_text(uint64_t bytes, char ret_text[BYTES_TEXT])
{
	static const char units[] = "KMGT";
	const char *unit = units;
	double value = (double)bytes / 1024;

	if (bytes < 1024) {
		snprintf(ret_text, BYTES_TEXT, "%" PRIu64, bytes);
		return ret_text;
	}
	/* What would be rounded to 1024 is 1 of the next unit. */
	for (; value >= 1023.95 && unit[1]; unit++)
		value /= 1024;
	snprintf(ret_text, BYTES_TEXT, "%.1f", value);
	if (!strcmp(strchr(ret_text, '\0') - 2, ".0"))
		*strrchr(ret_text, '.') = '\0';
	snprintf(strchr(ret_text, '\0'), 2, "%c", *unit);
	return ret_text;
}

/* ---- names */

static const char *name_of(const struct form *form, uint32_t value)
{
	return value < form->count && form->names[value] ? form->names[value] : "unknown";
}

void form_name_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, "%s", name_of(form, *(const uint32_t *)field));
}

json_t *form_name_json(const struct form *form, const void *field)
{
	return form_json_text(name_of(form, *(const uint32_t *)field));
}

json_t *form_set_json(const struct form *form, const void *field)
{
	json_t *names = memory_need(json_array());
	uint32_t set = *(const uint32_t *)field;

	for (unsigned bit = 0; bit < form->count; bit++)
		if (set >> bit & 1 && form->names[bit])
			json_array_append_new(names, form_json_text(form->names[bit]));
	return names;
}

void form_set_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	char text[256] = "";
	uint32_t set = *(const uint32_t *)field;

	for (unsigned bit = 0; bit < form->count; bit++) {
		char *end = strchr(text, '\0');

		if (!(set >> bit & 1) || !form->names[bit])
			continue;
		snprintf(end, sizeof(text) - strlen(text), "%s%s", *text ? ", " : "",
			 form->names[bit]);
		for (; form->loud >> bit & 1 && *end; end++)
			*end = (char)toupper((unsigned char)*end);
	}
	cell_print(ret_cell, set & form->loud ? COLOUR_BAD : NULL, "%s", text);
}
