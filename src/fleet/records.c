/* SPDX-License-Identifier: MIT */
/* Keys and values of the fleet; see records.h. */
#include "fleet/records.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "output/memory.h"
#include "policy/keys.h"

bool fleet_host_is_valid(const char *name, size_t length)
{
	return length && length < FLEET_HOST && strspn(name, POLICY_NAME_CHARACTERS) >= length;
}

bool fleet_quota_name_read(const char *name, struct fleet_quota *ret_quota)
{
	const char *slash = strchr(name, '/');
	struct fleet_quota quota = { .kind = 0 };
	int kind;

	if (!slash || slash - name >= NAME_SIZE)
		return false;
	snprintf(quota.tenant, sizeof(quota.tenant), "%.*s", (int)(slash - name), name);
	kind = kind_find(slash + 1, strlen(slash + 1));
	if (kind < 0 || kind >= KIND_COUNT || !policy_name_is_valid(quota.tenant))
		return false;
	quota.kind = (unsigned)kind;
	*ret_quota = quota;
	return true;
}

void quota_name_print(const struct fleet_quota *quota, char ret_name[QUOTA_NAME])
{
	snprintf(ret_name, QUOTA_NAME, "%s/%s", quota->tenant, kind_rows[quota->kind].name);
}

void fleet_key_print(const struct fleet_settings *settings, char ret_key[ETCD_KEY],
		     const char *format, ...)
{
	int length = snprintf(ret_key, ETCD_KEY, "%s/", settings->prefix);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret_key + length, (size_t)(ETCD_KEY - length), format, arguments);
	va_end(arguments);
}

const char *fleet_key_rest(const struct fleet_settings *settings, const char *key,
			   const char *under)
{
	size_t prefix = strlen(settings->prefix), length = strlen(under);

	if (strncmp(key, settings->prefix, prefix) || key[prefix] != '/' ||
	    strncmp(key + prefix + 1, under, length))
		return NULL;
	return key + prefix + 1 + length;
}

/* All of the numbers, or false. */
static bool numbers_read(const char *value, const char *const *names, unsigned count,
			 int64_t *ret_numbers)
{
	json_error_t error;
	json_t *document = json_loads(value, 0, &error);
	bool right = json_is_object(document);

	for (unsigned i = 0; i < count && right; i++) {
		const json_t *number = json_object_get(document, names[i]);

		right = json_is_integer(number);
		ret_numbers[i] = json_integer_value(number);
	}
	json_decref(document);
	return right;
}

static char *record_text(json_t *document)
{
	char *text = memory_need(json_dumps(memory_need(document), JSON_COMPACT));

	json_decref(document);
	return text;
}

bool fleet_quota_read(const char *name, const char *value, struct fleet_quota *ret_quota)
{
	static const char *const names[] = { "amount", "guarantee" };
	struct fleet_quota quota;
	int64_t number[2];

	if (!fleet_quota_name_read(name, &quota) || !numbers_read(value, names, 2, number) ||
	    number[0] < 0 || number[1] < 0)
		return false;
	quota.amount = (uint64_t)number[0];
	quota.guarantee = (uint64_t)number[1];
	*ret_quota = quota;
	return true;
}

char *fleet_quota_write(const struct fleet_quota *quota, const char *author)
{
	return record_text(json_pack("{s:I,s:I,s:s}", "amount", (json_int_t)quota->amount,
					"guarantee", (json_int_t)quota->guarantee, "author",
					author));
}

bool fleet_record_read(const char *value, struct fleet_record *ret_record)
{
	static const char *const names[] = { "share", "kept", "target", "floor" };
	int64_t number[4];

	if (!numbers_read(value, names, 4, number))
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (number[i] < 0 || number[i] > number[0])
			return false;
	*ret_record = (struct fleet_record){ (uint64_t)number[0], (uint64_t)number[1],
					     (uint64_t)number[2], (uint64_t)number[3] };
	return ret_record->floor <= ret_record->kept;
}

char *fleet_record_write(const struct fleet_record *record)
{
	return record_text(json_pack("{s:I,s:I,s:I,s:I}", "share", (json_int_t)record->share,
					"kept", (json_int_t)record->kept, "target",
					(json_int_t)record->target, "floor",
					(json_int_t)record->floor));
}

bool fleet_ledger_read(const char *value, uint64_t *ret_quota, int64_t *ret_free)
{
	static const char *const names[] = { "quota", "free" };
	int64_t number[2];

	if (!numbers_read(value, names, 2, number) || number[0] < 0)
		return false;
	*ret_quota = (uint64_t)number[0];
	*ret_free = number[1];
	return true;
}

char *fleet_ledger_write(uint64_t quota, int64_t free)
{
	return record_text(
		json_pack("{s:I,s:I}", "quota", (json_int_t)quota, "free", (json_int_t)free));
}

void fleet_author_print(char ret_author[PROBLEM_SIZE])
{
	const char *sudo = getenv("SUDO_USER");
	const struct passwd *user = getpwuid(getuid());
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	if (sudo && *sudo)
		snprintf(ret_author, PROBLEM_SIZE, "%.60s@%.200s", sudo, host);
	else if (user)
		snprintf(ret_author, PROBLEM_SIZE, "%.60s@%.200s", user->pw_name, host);
	else
		snprintf(ret_author, PROBLEM_SIZE, "uid %u@%.200s", (unsigned)getuid(), host);
}
