/* SPDX-License-Identifier: MIT */
/* Settings of rdma_fleet; see settings.h. */
#include "fleet/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/translation.h"
#include "fleet/records.h"
#include "policy/keys.h"
#include "terms/size.h"

enum { SETTINGS_FILE_MOST = 1 << 16 };

struct fleet_setting_row {
	const char *name;
	size_t offset;
};

static const struct fleet_setting_row rows_of_settings[] = {
#define FLEET_SETTING(field, name, initial, help) { name, offsetof(struct fleet_settings, field) },
#include "fleet/settings.def"
#undef FLEET_SETTING
};

void fleet_settings_init(struct fleet_settings *settings)
{
	*settings = (struct fleet_settings){
#define FLEET_SETTING(field, name, initial, help) .field = initial,
#include "fleet/settings.def"
#undef FLEET_SETTING
	};
}

int fleet_setting_set(struct fleet_settings *settings, const char *name, const char *value)
{
	for (unsigned i = 0; i < sizeof(rows_of_settings) / sizeof(rows_of_settings[0]); i++) {
		const struct fleet_setting_row *row = &rows_of_settings[i];

		if (strcmp(row->name, name))
			continue;
		return snprintf((char *)settings + row->offset, FLEET_VALUE, "%s", value) <
				       FLEET_VALUE ?
			       0 :
			       -E2BIG;
	}
	return -ENOENT;
}

static char *setting_trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

int fleet_settings_read(struct fleet_settings *settings, const char *path,
			char problem[PROBLEM_SIZE])
{
	static char text[SETTINGS_FILE_MOST];
	char *rest = text, *line, *value;
	ssize_t length = file_read_small(path, text, sizeof(text));
	int result = 0;

	if (length == -ENOENT)
		return -ENOENT;
	if (length < 0)
		return problem_set((int)length, problem, "%.300s: %s", path,
				   strerror((int)-length));
	for (unsigned number = 1; result == 0 && (line = strsep(&rest, "\n")); number++) {
		line = setting_trim(line);
		if (!*line || *line == '#')
			continue;
		value = strchr(line, '=');
		if (!value)
			return problem_set(-EINVAL, problem,
					   "%.300s:%u: '%.64s': invalid line: expected NAME = VALUE",
					   path, number, line);
		*value++ = '\0';
		line = setting_trim(line);
		result = fleet_setting_set(settings, line, setting_trim(value));
		if (result == -ENOENT)
			problem_set(result = -EINVAL, problem,
				    "%.300s:%u: '%.64s': unknown setting: see rdma_fleet(8)", path,
				    number, line);
		else if (result < 0)
			problem_set(result, problem,
				    "%.300s:%u: %s: value too long: expected at most %d bytes", path,
				    number, line, FLEET_VALUE - 1);
	}
	return result;
}

/* "etcds://a:2379,b:2379/prefix" */
static int policy_address_split(struct fleet_settings *settings, char problem[PROBLEM_SIZE])
{
	bool secure = !strncmp(settings->policy, "etcds://", 8);
	char hosts[FLEET_VALUE], *rest = hosts, *one, *slash;

	if (!secure && strncmp(settings->policy, "etcd://", 7))
		goto invalid;
	snprintf(hosts, sizeof(hosts), "%s", settings->policy + (secure ? 8 : 7));
	slash = strchr(hosts, '/');
	if (!slash || strlen(slash) >= FLEET_PREFIX || strlen(slash) < 2)
		goto invalid;
	snprintf(settings->prefix, sizeof(settings->prefix), "%.*s", FLEET_PREFIX - 1, slash);
	*slash = '\0';
	for (size_t end; (end = strlen(settings->prefix)) > 1 && settings->prefix[end - 1] == '/';)
		settings->prefix[end - 1] = '\0';
	if (settings->prefix[strspn(settings->prefix, POLICY_NAME_CHARACTERS "/")])
		goto invalid;
	settings->endpoints = 0;
	while ((one = strsep(&rest, ","))) {
		if (!*one || one[strspn(one, POLICY_NAME_CHARACTERS ":[]")] ||
		    settings->endpoints == FLEET_ENDPOINTS)
			goto invalid;
		if (snprintf(settings->endpoint[settings->endpoints++], FLEET_ENDPOINT, "http%s://%s",
			     secure ? "s" : "", one) >= FLEET_ENDPOINT)
			goto invalid;
	}
	return 0;
invalid:
	return problem_set(-EINVAL, problem,
			   "policy: invalid address '%.200s': expected "
			   "etcd://HOST:PORT[,HOST:PORT]...[at most %d]/PREFIX, or etcds:// with TLS",
			   settings->policy, FLEET_ENDPOINTS);
}

static int password_read(struct fleet_settings *settings, char problem[PROBLEM_SIZE])
{
	ssize_t length;

	if (!settings->password_file[0])
		return settings->user[0] ?
			       problem_set(-EINVAL, problem,
					   "password_file: missing: user needs a password") :
			       0;
	length = file_read_small(settings->password_file, settings->password,
				 sizeof(settings->password));
	if (length < 0)
		return problem_set(-EINVAL, problem, "password_file: %.300s: %s",
				   settings->password_file, strerror((int)-length));
	settings->password[strcspn(settings->password, "\r\n")] = '\0';
	return 0;
}

int fleet_settings_finish(struct fleet_settings *settings, char problem[PROBLEM_SIZE])
{
	int result = policy_address_split(settings, problem);

	if (result == 0)
		result = password_read(settings, problem);
	if (result < 0)
		return result;
	if (size_parse(settings->lease, strlen(settings->lease), 1, false, &settings->lease_s) < 0 ||
	    settings->lease_s < LEASE_LEAST_S || settings->lease_s > LEASE_MOST_S)
		return problem_set(-EINVAL, problem,
				   "lease: invalid value '%.64s': expected %d to %d seconds",
				   settings->lease, LEASE_LEAST_S, LEASE_MOST_S);
	settings->keeps_lost = !strcmp(settings->when_lost, "keep");
	if (!settings->keeps_lost && strcmp(settings->when_lost, "return"))
		return problem_set(-EINVAL, problem,
				   "when_lost: invalid value '%.64s': expected return or keep",
				   settings->when_lost);
	if (!settings->host[0] && gethostname(settings->host, sizeof(settings->host) - 1))
		return problem_set(-errno, problem, "host: %s", strerror(errno));
	if (!fleet_host_is_valid(settings->host, strlen(settings->host)))
		return problem_set(-EINVAL, problem,
				   "host: invalid name '%.64s': expected characters A-Z a-z 0-9 _ . -",
				   settings->host);
	return 0;
}
