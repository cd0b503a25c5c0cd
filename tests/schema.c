/* SPDX-License-Identifier: MIT */
/* Documents against JSON Schema; see schema.h. */
#include "schema.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SCHEMA_FILES = 64, SCHEMA_PATH = 512 };

static struct schema_file {
	char path[SCHEMA_PATH];
	json_t *schema;
} files[SCHEMA_FILES];

struct check {
	const char *directory;
	const json_t *file; /* that a "#..." refers to */
	char at[256];	    /* where in the document */
	char *problem;
};

static bool __attribute__((format(printf, 2, 3))) fail(const struct check *check,
						       const char *format, ...)
{
	va_list arguments;
	int length = snprintf(check->problem, SCHEMA_PROBLEM, "%s: ", *check->at ? check->at : "/");

	va_start(arguments, format);
	vsnprintf(check->problem + length, (size_t)(SCHEMA_PROBLEM - length), format, arguments);
	va_end(arguments);
	return false;
}

static const json_t *file_load(const struct check *check, const char *name)
{
	struct schema_file *file = files;
	char path[SCHEMA_PATH];
	json_error_t error;

	snprintf(path, sizeof(path), "%s/%s", check->directory, name);
	for (; file < files + SCHEMA_FILES && file->schema; file++)
		if (!strcmp(file->path, path))
			return file->schema;
	if (file == files + SCHEMA_FILES) {
		fail(check, "more than %d schemas", SCHEMA_FILES);
		return NULL;
	}
	file->schema = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (file->schema)
		snprintf(file->path, sizeof(file->path), "%s", path);
	else
		fail(check, "%s:%d: %s", path, error.line, error.text);
	return file->schema;
}

static bool value_fits(const struct check *check, const json_t *schema, const json_t *value);

/* "other.schema.json#/$defs/name" */
static bool reference_fits(const struct check *check, const char *reference, const json_t *value)
{
	static const char definitions[] = "/$defs/";
	const char *anchor = strchr(reference, '#');
	struct check inner = *check;
	const json_t *schema;
	char name[128];

	snprintf(name, sizeof(name), "%.*s", anchor ? (int)(anchor - reference) : 127, reference);
	if (*name)
		inner.file = file_load(check, name);
	schema = inner.file;
	if (schema && anchor && !strncmp(anchor + 1, definitions, strlen(definitions)))
		schema = json_object_get(json_object_get(schema, "$defs"),
					 anchor + 1 + strlen(definitions));
	else if (anchor && anchor[1])
		schema = NULL;
	if (!schema)
		return *check->problem ? false : fail(check, "no schema %s", reference);
	return value_fits(&inner, schema, value);
}

static bool type_is(const char *type, const json_t *value)
{
	static const struct {
		const char *name;
		json_type types[2];
	} names[] = {
		{ "object", { JSON_OBJECT, JSON_OBJECT } }, { "array", { JSON_ARRAY, JSON_ARRAY } },
		{ "string", { JSON_STRING, JSON_STRING } }, { "boolean", { JSON_TRUE, JSON_FALSE } },
		{ "null", { JSON_NULL, JSON_NULL } },	    { "number", { JSON_INTEGER, JSON_REAL } },
		{ "integer", { JSON_INTEGER, JSON_INTEGER } },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, type))
			return json_typeof(value) == names[i].types[0] ||
			       json_typeof(value) == names[i].types[1];
	return false;
}

/* A type, or an array of types of which one fits. */
static bool types_fit(const struct check *check, const json_t *types, const json_t *value)
{
	size_t i;
	json_t *type;
	char *text;

	if (json_is_string(types) && type_is(json_string_value(types), value))
		return true;
	json_array_foreach ((json_t *)types, i, type)
		if (json_is_string(type) && type_is(json_string_value(type), value))
			return true;
	text = json_dumps(types, JSON_ENCODE_ANY);
	fail(check, "is not of type %s", text);
	free(text);
	return false;
}

static bool object_fits(const struct check *check, const json_t *schema, const json_t *object)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *others = json_object_get(schema, "additionalProperties");
	struct check inner = *check;
	const char *key;
	json_t *value;
	size_t i;

	if (!others)
		return fail(check, "the schema has no additionalProperties");
	json_array_foreach (json_object_get(schema, "required"), i, value)
		if (!json_object_get(object, json_string_value(value)))
			return fail(check, "lacks the field \"%s\"", json_string_value(value));
	json_object_foreach ((json_t *)object, key, value) {
		const json_t *property = json_object_get(properties, key);

		snprintf(inner.at, sizeof(inner.at), "%.150s/%.100s", check->at, key);
		if (!property && json_is_false(others))
			return fail(&inner, "the schema has no such field");
		if (!value_fits(&inner, property ? property : others, value))
			return false;
	}
	return true;
}

static bool array_fits(const struct check *check, const json_t *items, const json_t *array)
{
	struct check inner = *check;
	json_t *value;
	size_t i;

	if (!items)
		return fail(check, "the schema has no items");
	json_array_foreach ((json_t *)array, i, value) {
		snprintf(inner.at, sizeof(inner.at), "%.200s/%zu", check->at, i);
		if (!value_fits(&inner, items, value))
			return false;
	}
	return true;
}

static bool choices_fit(const struct check *check, const json_t *choices, const json_t *value)
{
	char problems[SCHEMA_PROBLEM] = "", one[SCHEMA_PROBLEM];
	struct check inner = *check;
	unsigned fitting = 0;
	json_t *choice;
	size_t i;

	inner.problem = one;
	json_array_foreach ((json_t *)choices, i, choice) {
		one[0] = '\0';
		if (value_fits(&inner, choice, value))
			fitting++;
		else
			snprintf(strchr(problems, '\0'), sizeof(problems) - strlen(problems),
				 " [%.100s]", one);
	}
	return fitting == 1 ||
	       fail(check, "%u of oneOf fit:%.300s", fitting, problems);
}

static bool text_fits(const struct check *check, const char *pattern, const char *text)
{
	regex_t regex;
	bool fits;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
		return fail(check, "the schema has the wrong pattern %s", pattern);
	fits = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return fits || fail(check, "'%.100s' does not match %s", text, pattern);
}

static bool keywords_are_known(const struct check *check, const json_t *schema)
{
	static const char known[] =
		" $schema $id $defs $comment title description $ref type properties required "
		"additionalProperties items enum pattern oneOf ";
	const char *key;
	json_t *value;
	char word[64];

	json_object_foreach ((json_t *)schema, key, value) {
		snprintf(word, sizeof(word), " %s ", key);
		if (!strstr(known, word))
			return fail(check, "the schema has the keyword %s, which is not known here",
				    key);
	}
	return true;
}

static bool enumeration_fits(const struct check *check, const json_t *words, const json_t *value)
{
	json_t *word;
	size_t i;

	json_array_foreach ((json_t *)words, i, word)
		if (json_equal(word, value))
			return true;
	return fail(check, "'%s' is not one of the enum",
		    json_is_string(value) ? json_string_value(value) : "(no text)");
}

static bool value_fits(const struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *types = json_object_get(schema, "type");
	const json_t *words = json_object_get(schema, "enum");
	const json_t *choices = json_object_get(schema, "oneOf");
	const char *reference = json_string_value(json_object_get(schema, "$ref"));
	const char *pattern = json_string_value(json_object_get(schema, "pattern"));

	if (!json_is_object(schema))
		return fail(check, "the schema is no object");
	return keywords_are_known(check, schema) && (types || words || choices || reference ||
						     fail(check, "the schema allows anything")) &&
	       (!reference || reference_fits(check, reference, value)) &&
	       (!choices || choices_fit(check, choices, value)) &&
	       (!types || types_fit(check, types, value)) &&
	       (!words || enumeration_fits(check, words, value)) &&
	       (!pattern || !json_is_string(value) ||
		text_fits(check, pattern, json_string_value(value))) &&
	       (!types || !json_is_object(value) || object_fits(check, schema, value)) &&
	       (!types || !json_is_array(value) ||
		array_fits(check, json_object_get(schema, "items"), value));
}

bool schema_fits(const char *directory, const char *name, json_t *document,
		 char ret_problem[SCHEMA_PROBLEM])
{
	struct check check = { .directory = directory, .problem = ret_problem };
	char file[128];

	ret_problem[0] = '\0';
	snprintf(file, sizeof(file), "%s.schema.json", name);
	check.file = file_load(&check, file);
	return check.file && value_fits(&check, check.file, document);
}
