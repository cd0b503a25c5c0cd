/* SPDX-License-Identifier: MIT */
/*
 * A policy as text: files, lines of a command, and the way back; see policy.h.
 * What the values mean is known to policy.c. The reader of lines is our own
 * because libinih cuts names after 49 and lines after 199 bytes without a
 * word, and process.device.NAME.KIND is longer than that.
 */
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 20 };

#define BLANKS " \t"
#define DIGITS "0123456789"
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "_.-"
#define NAME_ALLOWED "1 to 63 of the characters A-Z a-z 0-9 _ . -"

/* How much of a word a message repeats. */
#define WORD "'%.64s'"

enum section {
	SECTION_COLLECTOR = 1,
	SECTION_HOST = 2,
	SECTION_DEFAULT = 4,
	SECTION_TENANT = 8,
};

static const struct section_row {
	const char *name;
	enum section section;
	const char *allowed;
} sections[] = {
	{ "collector", SECTION_COLLECTOR, "socket, state, admin_group" },
	{ "host", SECTION_HOST, "KIND, device.NAME.KIND, guard_writes" },
	{ "default", SECTION_DEFAULT,
	  "KIND, device.NAME.KIND, process.KIND, process.device.NAME.KIND, mode, guard" },
	{ "tenant", SECTION_TENANT,
	  "KIND, device.NAME.KIND, process.KIND, process.device.NAME.KIND, mode, guard, match" },
};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

struct reader {
	struct policy *policy;
	const char *file; /* NULL: lines of a command */
	unsigned line;	  /* 0: the file as a whole */
	bool runtime;
	const struct section_row *section;
	struct policy_tenant *owner; /* whose section it is; NULL: of the host or collector */
	void *settings;		     /* a tree of struct setting */
	char *problem;
};

static bool is_control(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

static __attribute__((format(printf, 3, 4))) int fail(struct reader *reader, int result,
						      const char *format, ...)
{
	char *at = reader->problem, *end = at + POLICY_PROBLEM;
	va_list arguments;

	if (reader->file)
		at += snprintf(at, POLICY_PROBLEM, "%.*s:", POLICY_PATH - 1, reader->file);
	if (reader->file && reader->line)
		at += snprintf(at, (size_t)(end - at), "%u:", reader->line);
	if (reader->file)
		*at++ = ' ';
	va_start(arguments, format);
	vsnprintf(at, (size_t)(end - at), format, arguments);
	va_end(arguments);
	/* One line, whatever bytes a file's name has. */
	for (at = reader->problem; *at; at++)
		if (is_control(*at))
			*at = '?';
	return result;
}

static int fail_errno(struct reader *reader, int result)
{
	return fail(reader, result, "%s", strerror(-result));
}

static bool well_named(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length < POLICY_NAME && strspn(name, NAME_CHARACTERS) == length;
}
_Static_assert((int)POLICY_NAME == (int)LEDGER_DEVICE_NAME, "tenants and devices: one rule");

static char *skip_blanks(char *text)
{
	return text + strspn(text, BLANKS);
}

/* Cuts blanks at both ends. */
static char *trim(char *text)
{
	size_t length;

	text = skip_blanks(text);
	length = strlen(text);
	while (length > 0 && strchr(BLANKS, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

static bool takes_back(const struct reader *reader, const char *value)
{
	return !reader->file && !strcmp(value, "unset");
}

/* ---- once only: which keys a text has set so far */

struct setting {
	const struct section_row *section;
	const struct policy_tenant *owner;
	const char *key;
	unsigned line;
};

static int compare_settings(const void *left, const void *right)
{
	const struct setting *a = left, *b = right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (a->owner != b->owner)
		return (uintptr_t)a->owner < (uintptr_t)b->owner ? -1 : 1;
	return strcmp(a->key, b->key);
}

static int set_once(struct reader *reader, const char *key)
{
	struct setting *setting = malloc(sizeof(*setting)), **stored;

	if (!setting)
		return fail_errno(reader, -ENOMEM);
	*setting = (struct setting){ reader->section, reader->owner, key, reader->line };
	stored = tsearch(setting, &reader->settings, compare_settings);
	if (stored && *stored == setting)
		return 0;
	free(setting);
	if (!stored)
		return fail_errno(reader, -ENOMEM);
	return fail(reader, -EINVAL, "%s is set already in line %u", key, (*stored)->line);
}

/* ---- match = CONDITION ... */

typedef int id_find(const char *name, uint32_t *ret_id);

static int user_find(const char *name, uint32_t *ret_id)
{
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (!user)
		return errno ? -errno : -ENOENT;
	*ret_id = user->pw_uid;
	return 0;
}

static int group_find(const char *name, uint32_t *ret_id)
{
	const struct group *group;

	errno = 0;
	group = getgrnam(name);
	if (!group)
		return errno ? -errno : -ENOENT;
	*ret_id = group->gr_gid;
	return 0;
}

#define RULE_FIELD(name) offsetof(struct policy_rule, name), sizeof(((struct policy_rule *)0)->name)

static const struct condition {
	const char *name;
	const char *who; /* has such an id */
	id_find *find;	 /* NULL: it is no id but a glob */
	size_t offset, size;
} conditions[] = {
	{ "uid", "user", user_find, RULE_FIELD(uid) },
	{ "gid", "group", group_find, RULE_FIELD(gid) },
	{ "cgroup", NULL, NULL, RULE_FIELD(cgroup) },
	{ "container", NULL, NULL, RULE_FIELD(container) },
	{ "job", NULL, NULL, RULE_FIELD(job) },
};
enum { CONDITIONS = sizeof(conditions) / sizeof(conditions[0]) };

static int id_number(const char *text, size_t length, uint32_t *ret_id)
{
	uint64_t number;

	/* The last one is what the kernel says for "no id". */
	if (size_parse(text, length, 1, false, &number) < 0 || number >= UINT32_MAX)
		return -EINVAL;
	*ret_id = (uint32_t)number;
	return 0;
}

static int id_range(const char *text, struct policy_range *ret_range)
{
	const char *dash = strchrnul(text, '-');

	if (id_number(text, (size_t)(dash - text), &ret_range->first) < 0)
		return -EINVAL;
	ret_range->last = ret_range->first;
	if (*dash && id_number(dash + 1, strlen(dash + 1), &ret_range->last) < 0)
		return -EINVAL;
	return ret_range->first <= ret_range->last ? 0 : -EINVAL;
}

static int name_resolve(struct reader *reader, const char *who, id_find *find, const char *name,
			uint32_t *ret_id)
{
	int result = find(name, ret_id);

	if (result == 0)
		return 0;
	if (result == -ENOENT || result == -ESRCH)
		return fail(reader, -EINVAL, "there is no %s called " WORD, who, name);
	return fail(reader, result, "cannot look up the %s " WORD ": %s", who, name,
		    strerror(-result));
}

static int parse_ids(struct reader *reader, const struct condition *condition, char *text,
		     struct policy_ids *ids)
{
	struct policy_range range;
	char *entry;
	int result;

	while ((entry = strsep(&text, ","))) {
		if (ids->count == POLICY_IDS)
			return fail(reader, -EINVAL,
				    "%s= has more than %d entries; use ranges such as 1000-1099, "
				    "or another match line",
				    condition->name, POLICY_IDS);
		if (entry[strspn(entry, DIGITS "-")] == '\0') {
			if (id_range(entry, &range) < 0)
				return fail(reader, -EINVAL,
					    WORD " is no %s; allowed: a number below 4294967295, a "
						 "range such as 1000-1099, a name",
					    entry, condition->name);
		} else {
			result = name_resolve(reader, condition->who, condition->find, entry,
					      &range.first);
			if (result < 0)
				return result;
			range.last = range.first;
		}
		ids->range[ids->count++] = range;
	}
	return 0;
}

static int parse_glob(struct reader *reader, const struct condition *condition, const char *text,
		      char *glob)
{
	if (strlen(text) >= condition->size)
		return fail(reader, -EINVAL, "%s= is longer than %zu bytes", condition->name,
			    condition->size - 1);
	if (!*text)
		return fail(reader, -EINVAL, "%s= needs a pattern; * stands for any",
			    condition->name);
	if (condition->offset == offsetof(struct policy_rule, cgroup) && !strchr("/*?[", text[0]))
		return fail(reader, -EINVAL, "cgroup=" WORD " meets nothing: paths begin with /",
			    text);
	strcpy(glob, text);
	return 0;
}

static const struct condition *condition_find(const char *name)
{
	for (int i = 0; i < CONDITIONS; i++)
		if (!strcmp(conditions[i].name, name))
			return &conditions[i];
	return NULL;
}

static int parse_condition(struct reader *reader, char *text, struct policy_rule *rule)
{
	char *value = strchr(text, '=');
	const struct condition *condition;
	bool twice;
	char *field;

	if (value)
		*value++ = '\0';
	condition = condition_find(text);
	if (!condition || !value)
		return fail(reader, -EINVAL,
			    WORD " is no condition; allowed: uid=, gid=, cgroup=, container=, "
				 "job=, each followed by its value without blanks",
			    text);
	field = (char *)rule + condition->offset;
	twice = condition->find ? ((struct policy_ids *)field)->count > 0 : field[0] != '\0';
	if (twice)
		return fail(reader, -EINVAL, "%s= stands twice in one match", condition->name);
	if (condition->find)
		return parse_ids(reader, condition, value, (struct policy_ids *)field);
	return parse_glob(reader, condition, value, field);
}

static void source_print(const struct reader *reader, const char *value, char source[POLICY_PATH])
{
	int length;

	if (reader->file)
		length = snprintf(source, POLICY_PATH, "%s:%u: ", reader->file, reader->line);
	else
		length = snprintf(source, POLICY_PATH, "command: ");
	if (length < POLICY_PATH)
		snprintf(source + length, (size_t)(POLICY_PATH - length), "match = %s", value);
}

/* ---- keys: how their values are read, and what they set */

struct key {
	const char *name;
	unsigned sections; /* that have it */
	bool repeats;
	int (*parse)(struct reader *reader, const struct key *key, char *value);
	size_t offset, size; /* of a text in struct policy */
};

static int parse_match(struct reader *reader, const struct key *key, char *value)
{
	struct policy_rule rule = { .next = NULL };
	char *condition;
	int result = 0;

	if (takes_back(reader, value)) {
		policy_rules_drop(reader->policy, reader->owner);
		return 0;
	}
	source_print(reader, value, rule.source);
	while (result == 0 && (condition = strsep(&value, BLANKS)))
		if (*condition)
			result = parse_condition(reader, condition, &rule);
	if (result < 0)
		return result;
	result = policy_rule_add(reader->policy, reader->owner, &rule);
	if (result == -E2BIG)
		return fail(reader, result, "more than %d match lines", POLICY_RULES);
	return result < 0 ? fail_errno(reader, result) : 0;
}

static int parse_mode(struct reader *reader, const struct key *key, char *value)
{
	int mode = 0;

	while (mode < POLICY_MODE_UNSET && strcasecmp(value, policy_mode_names[mode]))
		mode++;
	if (mode == POLICY_MODE_UNSET && !takes_back(reader, value))
		return fail(reader, -EINVAL, WORD " is no mode; allowed: enforce, warn, audit",
			    value);
	reader->owner->mode = (enum policy_mode)mode;
	return 0;
}

static int parse_switch(struct reader *reader, const struct key *key, const char *value,
			enum policy_switch *ret_switch)
{
	int position = 0;

	while (position < POLICY_SWITCH_UNSET &&
	       strcasecmp(value, policy_switch_names[position]))
		position++;
	if (position == POLICY_SWITCH_UNSET && !takes_back(reader, value))
		return fail(reader, -EINVAL, WORD " is nothing that %s can be; allowed: off, on",
			    value, key->name);
	*ret_switch = (enum policy_switch)position;
	return 0;
}

static int parse_guard(struct reader *reader, const struct key *key, char *value)
{
	return parse_switch(reader, key, value, &reader->owner->guard);
}

static int parse_guard_writes(struct reader *reader, const struct key *key, char *value)
{
	return parse_switch(reader, key, value, &reader->policy->guard_writes);
}

static int parse_text(struct reader *reader, const struct key *key, const char *value)
{
	if (strlen(value) >= key->size)
		return fail(reader, -EINVAL, "%s is longer than %zu bytes", key->name,
			    key->size - 1);
	strcpy((char *)reader->policy + key->offset, value);
	return 0;
}

static int parse_path(struct reader *reader, const struct key *key, char *value)
{
	if (value[0] != '/')
		return fail(reader, -EINVAL, "%s is " WORD "; it must begin with /", key->name,
			    value);
	return parse_text(reader, key, value);
}

static int parse_group(struct reader *reader, const struct key *key, char *value)
{
	int result = name_resolve(reader, "group", group_find, value, &reader->policy->admin_gid);

	return result < 0 ? result : parse_text(reader, key, value);
}

#define POLICY_FIELD(name) offsetof(struct policy, name), sizeof(((struct policy *)0)->name)

static const struct key keys[] = {
	/* No longer than the kernel takes it. */
	{ "socket", SECTION_COLLECTOR, false, parse_path, offsetof(struct policy, socket),
	  sizeof(((struct sockaddr_un *)0)->sun_path) },
	{ "state", SECTION_COLLECTOR, false, parse_path, POLICY_FIELD(state) },
	{ "admin_group", SECTION_COLLECTOR, false, parse_group, POLICY_FIELD(admin_group) },
	{ "guard_writes", SECTION_HOST, false, parse_guard_writes, 0, 0 },
	{ "mode", SECTION_DEFAULT | SECTION_TENANT, false, parse_mode, 0, 0 },
	{ "guard", SECTION_DEFAULT | SECTION_TENANT, false, parse_guard, 0, 0 },
	{ "match", SECTION_TENANT, true, parse_match, 0, 0 },
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static const char *kind_names(char *text, size_t size)
{
	size_t used = 0;

	for (int kind = 0; kind < KIND_COUNT && used < size; kind++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", kind ? ", " : "",
					 kind_rows[kind].name);
	return text;
}

static int unknown_key(struct reader *reader, const char *key)
{
	const struct section_row *section = reader->section;
	bool has_limits = section->section != SECTION_COLLECTOR;
	char names[256];

	return fail(reader, -EINVAL, "unknown key " WORD " in [%s]; allowed: %s%s%s", key,
		    section->name, section->allowed, has_limits ? "; KIND is one of " : "",
		    has_limits ? kind_names(names, sizeof(names)) : "");
}

static int parse_limit(struct reader *reader, enum kind kind, const char *value,
		       uint64_t *ret_limit)
{
	const struct kind_row *row = &kind_rows[kind];
	bool bytes = row->unit == UNIT_BYTES;
	int result;

	if (takes_back(reader, value)) {
		*ret_limit = POLICY_UNSET;
		return 0;
	}
	result = size_parse(value, strlen(value), 1, bytes, ret_limit);
	if (result == -ERANGE)
		return fail(reader, -EINVAL, WORD " is too large a number for %s", value,
			    row->name);
	if (result < 0)
		return fail(reader, -EINVAL,
			    WORD " is no %s for %s; allowed: a number%s, unlimited", value,
			    bytes ? "size" : "count", row->name,
			    bytes ? ", also with K, M, G or T behind it" : "");
	return 0;
}

static bool begins(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length))
		return false;
	*at += length;
	return true;
}

/*
 * [process.][device.NAME.]KIND. A kind has no dots, so that the name of a device
 * may have some.
 */
static int limit_line(struct reader *reader, const char *key, const char *value)
{
	struct policy_tenant *owner = reader->owner;
	struct policy_limits *limits = owner ? &owner->all : &reader->policy->host;
	char device[LEDGER_DEVICE_NAME] = "", names[256];
	const char *at = key, *dot;
	uint64_t limit;
	int kind, result;

	if (reader->section->section == SECTION_COLLECTOR)
		return unknown_key(reader, key);
	if (owner && begins(&at, "process."))
		limits = &owner->process;
	if (begins(&at, "device.")) {
		dot = strrchr(at, '.');
		if (!dot)
			return unknown_key(reader, key);
		snprintf(device, sizeof(device), "%.*s", (int)(dot - at), at);
		if (dot - at >= LEDGER_DEVICE_NAME || !well_named(device))
			return fail(reader, -EINVAL,
				    WORD " names no device; allowed: " NAME_ALLOWED, key);
		at = dot + 1;
	}
	kind = kind_find(at, strlen(at));
	if (kind < 0 && at == key)
		return unknown_key(reader, key);
	if (kind < 0)
		return fail(reader, -EINVAL, WORD " in %.128s is no kind of resource; allowed: %s",
			    at, key, kind_names(names, sizeof(names)));
	result = set_once(reader, key);
	if (result == 0)
		result = parse_limit(reader, (enum kind)kind, value, &limit);
	if (result < 0)
		return result;
	result = policy_limit_set(limits, device[0] ? device : NULL, (enum kind)kind, limit);
	if (result == -E2BIG)
		return fail(reader, result, "%s: limits for more than %d devices", device,
			    POLICY_DEVICES);
	return result < 0 ? fail_errno(reader, result) : 0;
}

/* ---- lines */

static int key_line(struct reader *reader, const char *name, char *value)
{
	int result;

	for (const struct key *key = keys; key < keys + KEYS; key++) {
		if (!(key->sections & reader->section->section) || strcmp(key->name, name))
			continue;
		result = key->repeats ? 0 : set_once(reader, name);
		return result < 0 ? result : key->parse(reader, key, value);
	}
	return limit_line(reader, name, value);
}

static int tenant_open(struct reader *reader, const char *name)
{
	int result;

	if (!*name)
		return fail(reader, -EINVAL, "a tenant needs a name: [tenant NAME]");
	if (!well_named(name))
		return fail(reader, -EINVAL, WORD " is no name of a tenant; allowed: " NAME_ALLOWED,
			    name);
	result = policy_tenant_add(reader->policy, name, reader->runtime, &reader->owner);
	if (result == -E2BIG)
		return fail(reader, result, "%s: more than %d tenants", name, POLICY_TENANTS);
	return result < 0 ? fail_errno(reader, result) : 0;
}

/* The text of a title: "host", "tenant NAME". */
static int section_open(struct reader *reader, char *title)
{
	char *rest = title + strcspn(title, BLANKS);
	size_t length = (size_t)(rest - title);

	rest = skip_blanks(rest);
	for (const struct section_row *row = sections; row < sections + SECTIONS; row++) {
		if (strlen(row->name) != length || memcmp(row->name, title, length) ||
		    (*rest && row->section != SECTION_TENANT) ||
		    (!reader->file && row->section == SECTION_COLLECTOR))
			continue;
		reader->section = row;
		reader->owner = row->section == SECTION_DEFAULT ? &reader->policy->fallback : NULL;
		return row->section == SECTION_TENANT ? tenant_open(reader, rest) : 0;
	}
	return fail(reader, -EINVAL,
		    "unknown section [%.64s]; allowed: %s[host], [default], [tenant NAME]", title,
		    reader->file ? "[collector], " : "");
}

static int title_line(struct reader *reader, char *line)
{
	size_t length = strlen(line);

	if (!reader->file)
		return fail(reader, -EINVAL, WORD ": a command speaks of one section only", line);
	if (line[length - 1] != ']')
		return fail(reader, -EINVAL,
			    "[SECTION] must end with ], and nothing may follow it");
	line[length - 1] = '\0';
	return section_open(reader, trim(line + 1));
}

static bool has_comment(const char *value)
{
	const char *mark = value;

	while ((mark = strpbrk(mark, "#;"))) {
		if (mark == value || strchr(BLANKS, mark[-1]))
			return true;
		mark++;
	}
	return false;
}

static int text_line(struct reader *reader, char *line)
{
	char *value;

	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line == '[')
		return title_line(reader, line);
	value = strchr(line, '=');
	if (!value)
		return fail(reader, -EINVAL, WORD " is neither KEY = VALUE nor [SECTION]", line);
	*value++ = '\0';
	line = trim(line);
	value = trim(value);
	if (!reader->section)
		return fail(reader, -EINVAL, WORD " stands before the first [SECTION]", line);
	if (!*value)
		return fail(reader, -EINVAL, WORD " has no value", line);
	if (has_comment(value))
		return fail(reader, -EINVAL, WORD ": a comment needs a line of its own", value);
	return key_line(reader, line, value);
}

static int line_read(struct reader *reader, char *line, char *end)
{
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	for (const char *at = line; at < end; at++)
		if (is_control(*at) && *at != '\t')
			return fail(reader, -EINVAL, "has the byte 0x%02x: this is no plain text",
				    (unsigned char)*at);
	return text_line(reader, line);
}

/* text[length] is there to be written. */
static int text_read(struct reader *reader, char *text, size_t length)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	char *at = text, *end = text + length;
	int result = 0;

	if (length >= 3 && !memcmp(text, byte_order_mark, 3))
		at += 3;
	while (at < end && result == 0) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		reader->line++;
		if (!stop) {
			stop = end;
			if (reader->file)
				snprintf(reader->policy->cut, sizeof(reader->policy->cut),
					 "%.*s:%u", POLICY_PATH - 1, reader->file, reader->line);
		}
		result = line_read(reader, at, stop);
		at = stop + 1;
	}
	tdestroy(reader->settings, free);
	return result;
}

/* ---- files */

static int file_open(struct reader *reader)
{
	struct stat status;
	int result = 0;
	/* Nonblocking, since a pipe would have us wait for its writer. */
	int fd = open(reader->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status))
		result = fail_errno(reader, -errno);
	else if (S_ISDIR(status.st_mode))
		result = fail_errno(reader, -EISDIR);
	else if (!S_ISREG(status.st_mode))
		result = fail(reader, -EINVAL, "is no regular file");
	if (result == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return result;
}

static ssize_t bytes_read(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t more;

	do {
		more = read(fd, text + length, size - length);
		if (more < 0)
			return -errno;
		length += (size_t)more;
	} while (more > 0);
	return (ssize_t)length;
}

int policy_read_file(struct policy *policy, const char *path, bool runtime,
		     char problem[POLICY_PROBLEM])
{
	struct reader reader = {
		.policy = policy, .file = path, .runtime = runtime, .problem = problem
	};
	ssize_t length;
	char *text;
	int fd, result;

	fd = file_open(&reader);
	if (fd < 0)
		return fd;
	text = malloc(FILE_MOST + 1);
	length = text ? bytes_read(fd, text, FILE_MOST + 1) : -ENOMEM;
	if (length < 0)
		result = fail_errno(&reader, (int)length);
	else if (length > FILE_MOST)
		result = fail(&reader, -EFBIG, "is larger than 1 MiB");
	else
		result = text_read(&reader, text, (size_t)length);
	free(text);
	close(fd);
	return result;
}

static int is_policy_file(const struct dirent *entry)
{
	return fnmatch("?*.conf", entry->d_name, FNM_PERIOD) == 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int directory_file_read(struct policy *policy, const char *directory, const char *name,
			       char problem[POLICY_PROBLEM])
{
	char path[2 * POLICY_PATH + sizeof("tenants.d/")];
	int result;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	result = policy_read_file(policy, path, false, problem);
	/* To the caller, -ENOENT is a host without a policy; this is a link to nowhere. */
	return result == -ENOENT ? -EINVAL : result;
}

static int directory_read(struct policy *policy, const char *directory,
			  char problem[POLICY_PROBLEM])
{
	struct reader reader = { .file = directory, .problem = problem };
	struct dirent **entries;
	int result = 0;
	int count = scandir(directory, &entries, is_policy_file, compare_names);

	if (count < 0)
		return errno == ENOENT ? 0 : fail_errno(&reader, -errno);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (result == 0)
			result = directory_file_read(policy, directory, name, problem);
		free(entries[i]);
	}
	free(entries);
	return result;
}

int policy_read(struct policy *policy, const char *path, char problem[POLICY_PROBLEM])
{
	const char *slash = strrchr(path, '/');
	int parent = slash ? (int)(slash - path) + 1 : 0;
	char directory[POLICY_PATH + sizeof("tenants.d")];
	struct reader reader = { .file = path, .problem = problem };
	int result;

	if (strlen(path) >= sizeof(policy->file))
		return fail_errno(&reader, -ENAMETOOLONG);
	result = policy_read_file(policy, path, false, problem);
	if (result < 0)
		return result;
	snprintf(policy->file, sizeof(policy->file), "%s", path);
	snprintf(directory, sizeof(directory), "%.*stenants.d", parent, path);
	return directory_read(policy, directory, problem);
}

/* ---- commands */

static void swap(struct policy *a, struct policy *b)
{
	struct policy held = *a;

	*a = *b;
	*b = held;
}

int policy_change(struct policy *policy, const char *section, const char *text,
		  char problem[POLICY_PROBLEM])
{
	struct reader reader = { .runtime = true, .problem = problem };
	char *title = strdup(section), *lines = strdup(text);
	int result;

	reader.policy = policy_merge(policy, NULL);
	if (!title || !lines || !reader.policy)
		result = fail_errno(&reader, -ENOMEM);
	else
		result = section_open(&reader, trim(title));
	if (result == 0)
		result = text_read(&reader, lines, strlen(lines));
	if (result == 0)
		swap(policy, reader.policy);
	policy_free(reader.policy);
	free(title);
	free(lines);
	return result;
}

/* ---- writing */

static void row_write(FILE *file, const char *scope, const char *device,
		      const uint64_t limit[KIND_COUNT])
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (limit[kind] == POLICY_UNSET)
			continue;
		fprintf(file, "%s%s%s%s%s = ", scope, device ? "device." : "", device ? device : "",
			device ? "." : "", kind_rows[kind].name);
		if (limit[kind] == SIZE_UNLIMITED)
			fprintf(file, "unlimited\n");
		else
			fprintf(file, "%" PRIu64 "\n", limit[kind]);
	}
}

static void limits_write(FILE *file, const char *scope, const struct policy_limits *limits)
{
	row_write(file, scope, NULL, limits->total);
	for (unsigned i = 0; i < limits->devices; i++)
		row_write(file, scope, limits->device[i].name, limits->device[i].limit);
}

static void switch_write(FILE *file, const char *name, enum policy_switch position)
{
	if (position != POLICY_SWITCH_UNSET)
		fprintf(file, "%s = %s\n", name, policy_switch_names[position]);
}

static void tenant_write(FILE *file, const struct policy_tenant *tenant)
{
	if (tenant->mode != POLICY_MODE_UNSET)
		fprintf(file, "mode = %s\n", policy_mode_names[tenant->mode]);
	switch_write(file, "guard", tenant->guard);
	limits_write(file, "", &tenant->all);
	limits_write(file, "process.", &tenant->process);
}

static void ids_write(FILE *file, const char *name, const struct policy_ids *ids)
{
	for (unsigned i = 0; i < ids->count; i++) {
		fprintf(file, i ? "," : " %s=", name);
		fprintf(file, "%" PRIu32, ids->range[i].first);
		if (ids->range[i].last != ids->range[i].first)
			fprintf(file, "-%" PRIu32, ids->range[i].last);
	}
}

static void rule_write(FILE *file, const struct policy_rule *rule)
{
	fprintf(file, "match =");
	for (int i = 0; i < CONDITIONS; i++) {
		const char *field = (const char *)rule + conditions[i].offset;

		if (conditions[i].find)
			ids_write(file, conditions[i].name, (const struct policy_ids *)field);
		else if (field[0])
			fprintf(file, " %s=%s", conditions[i].name, field);
	}
	fprintf(file, "\n");
}

/* Rules stand apart from the tenants' limits, since their order over all tenants counts. */
static void rules_write(FILE *file, const struct policy_rule *rule)
{
	const struct policy_tenant *tenant = NULL;

	for (; rule; rule = rule->next) {
		if (rule->tenant != tenant)
			fprintf(file, "\n[tenant %s]\n", rule->tenant->name);
		tenant = rule->tenant;
		rule_write(file, rule);
	}
}

static void policy_print(const struct policy *policy, FILE *file)
{
	fprintf(file, "# Written by the collector; see rdma_intercept_policy(5).\n\n[collector]\n");
	for (const struct key *key = keys; key < keys + KEYS; key++) {
		const char *text = (const char *)policy + key->offset;

		if (key->sections == SECTION_COLLECTOR && text[0])
			fprintf(file, "%s = %s\n", key->name, text);
	}
	fprintf(file, "\n[host]\n");
	switch_write(file, "guard_writes", policy->guard_writes);
	limits_write(file, "", &policy->host);
	fprintf(file, "\n[default]\n");
	tenant_write(file, &policy->fallback);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		fprintf(file, "\n[tenant %s]\n", tenant->name);
		tenant_write(file, tenant);
	}
	rules_write(file, policy->rules);
}

int policy_write(const struct policy *policy, const char *path)
{
	char *temporary;
	FILE *file;
	int fd, result = 0;
	bool failed, too_large;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0) {
		result = -errno;
		goto out;
	}
	file = fdopen(fd, "w");
	if (!file) {
		result = -errno;
		close(fd);
		goto remove;
	}
	errno = 0;
	policy_print(policy, file);
	failed = ferror(file);
	too_large = ftello(file) > FILE_MOST;
	if (fclose(file) || failed)
		result = errno ? -errno : -EIO;
	else if (too_large)
		result = -EFBIG;
	else if (rename(temporary, path))
		result = -errno;
remove:
	if (result < 0)
		unlink(temporary);
out:
	free(temporary);
	return result;
}
