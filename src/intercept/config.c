/* SPDX-License-Identifier: MIT */
/* Reading of the environment; see config.h. One parser per row of terms/variables.def. */
#include "intercept/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ledger/shmfile.h"
#include "terms/limit_list.h"

/* Defaults of the documented limits, in force when their control is on. */
enum {
	DEFAULT_PROCESS_QP = 100,
	DEFAULT_HOST_QP = 1000,
	DEFAULT_PROCESS_MR = 1000,
	DEFAULT_HOST_MR = 1000,
};
#define DEFAULT_PROCESS_MEMORY (10240ull << 20)
#define DEFAULT_HOST_MEMORY (10ull << 30)

#define MEGABYTE (1ull << 20)

/* What the variables say before it is clear which of it applies. */
struct draft {
	struct config *config;
	bool qp_control, qp_control_given, mr_control;
	uint64_t process_qp, host_qp, old_max_qp;
	struct ledger_limits documented; /* MR and memory variables */
	struct ledger_limits special;	 /* RDMA_INTERCEPT_LIMITS */
};

static void limits_unset(struct ledger_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		limits->process[kind] = limits->host[kind] = UNSET;
}

static int parse_flag(const char *text, bool *ret_flag)
{
	if (strcmp(text, "0") && strcmp(text, "1"))
		return -EINVAL;
	*ret_flag = text[0] == '1';
	return 0;
}

static int parse_choice(const char *text, const char *const *names, unsigned count, unsigned *ret)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcasecmp(text, names[i])) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

static int parse_count(const char *text, uint64_t *ret)
{
	return size_parse(text, strlen(text), 1, false, ret);
}

static int parse_fail(struct draft *draft, const char *text)
{
	static const char *const names[] = { "open", "closed" };
	unsigned choice;
	int result = parse_choice(text, names, 2, &choice);

	if (result == 0)
		draft->config->fail_closed = choice == 1;
	return result;
}

static int parse_enable(struct draft *draft, const char *text)
{
	return parse_flag(text, &draft->config->enable);
}

static int parse_qp_control(struct draft *draft, const char *text)
{
	int result = parse_flag(text, &draft->qp_control);

	draft->qp_control_given = result == 0;
	return result;
}

static int parse_mr_control(struct draft *draft, const char *text)
{
	return parse_flag(text, &draft->mr_control);
}

static int parse_max_qp(struct draft *draft, const char *text)
{
	return parse_count(text, &draft->old_max_qp);
}

static int parse_process_qp(struct draft *draft, const char *text)
{
	return parse_count(text, &draft->process_qp);
}

static int parse_host_qp(struct draft *draft, const char *text)
{
	return parse_count(text, &draft->host_qp);
}

static int parse_process_mr(struct draft *draft, const char *text)
{
	return parse_count(text, &draft->documented.process[KIND_mr]);
}

static int parse_host_mr(struct draft *draft, const char *text)
{
	return parse_count(text, &draft->documented.host[KIND_mr]);
}

static int parse_process_memory(struct draft *draft, const char *text)
{
	return size_parse(text, strlen(text), MEGABYTE, true,
			  &draft->documented.process[KIND_mr_bytes]);
}

static int parse_host_memory(struct draft *draft, const char *text)
{
	return size_parse(text, strlen(text), 1, true, &draft->documented.host[KIND_mr_bytes]);
}

/* The row of limits of a scope; NULL: there is no place for another device. */
static uint64_t *limits_row(struct ledger_limits *limits, const struct limit_item *item)
{
	struct ledger_device_limits *device;

	if (item->scope == SCOPE_PROCESS)
		return limits->process;
	if (item->scope == SCOPE_HOST)
		return limits->host;
	device = ledger_limits_device(limits, item->device, item->device_length);
	return device ? device->limit : NULL;
}

static int parse_limits(struct draft *draft, const char *text)
{
	struct limit_list list = { .at = text };
	struct ledger_limits limits;
	struct limit_item item;
	int result;

	limits_unset(&limits);
	while ((result = limit_list_next(&list, &item)) > 0) {
		uint64_t *row = limits_row(&limits, &item);

		if (!row)
			return -EINVAL;
		row[item.kind] = item.amount;
	}
	if (result == 0)
		draft->special = limits; /* all of it or nothing */
	return result;
}

/* One rate, or what is done above all of them. */
static int rates_item_parse(char *item, bool *inside, struct config_rates *rates)
{
	enum rate_class class;
	char *value;

	if (!strncmp(item, "process:", 8)) {
		item += 8;
		*inside = true;
	}
	value = strchr(item, '=');
	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(item, "action")) {
		unsigned action;

		if (parse_choice(value, rate_action_names, RATE_ACTIONS, &action) < 0)
			return -EINVAL;
		rates->action = (enum rate_action)action;
		return 0;
	}
	if (!strcmp(item, "max_delay"))
		return rate_delay_parse(value, &rates->max_delay_ns);
	class = rate_class_find(item, strlen(item));
	if (class == RATE_NO_CLASS || !*inside || rate_parse(value, &rates->rate[class]) < 0)
		return -EINVAL;
	rates->any |= rates->rate[class].per_second != 0;
	return 0;
}

static int parse_rates(struct draft *draft, const char *text)
{
	struct config_rates rates = { .max_delay_ns = RATE_DELAY_MS * 1000000ull };
	char copy[512], *item, *next = copy;
	bool inside = false;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	while (next && *next) {
		size_t length = strcspn(next, ",;");
		char mark = next[length];

		item = next;
		next = mark ? next + length + 1 : NULL;
		item[length] = '\0';
		if (rates_item_parse(item, &inside, &rates) < 0)
			return -EINVAL;
		inside = inside && mark == ',';
	}
	if (inside) /* a comma at the end */
		return -EINVAL;
	draft->config->rates = rates; /* all of it or nothing */
	return 0;
}

static int parse_pace(struct draft *draft, const char *text)
{
	struct pace_rate rates[2] = { { 0 }, { 0 } };
	static const char *const names[] = { "ops=", "bytes=" };

	while (*text) {
		size_t length = strcspn(text, ",");
		int bytes = !strncmp(text, names[1], strlen(names[1]));
		size_t name = strlen(names[bytes]);

		if (strncmp(text, names[bytes], name) ||
		    pace_rate_parse(text + name, length - name, bytes, &rates[bytes]) < 0)
			return -EINVAL;
		text += length + (text[length] == ',');
	}
	draft->config->pace_operations = rates[0];
	draft->config->pace_bytes = rates[1];
	return 0;
}

static int parse_own_mode(struct draft *draft, const char *text)
{
	unsigned choice;
	int result = parse_choice(text, mode_names, MODES, &choice);

	if (result == 0)
		draft->config->mode = (enum mode)choice;
	return result;
}

static int parse_transport(struct draft *draft, const char *text)
{
	unsigned choice;
	int result = parse_choice(text, transport_names, TRANSPORTS, &choice);

	if (result == 0)
		draft->config->transport = (enum transport)choice;
	return result;
}

static int parse_deny_errno(struct draft *draft, const char *text)
{
	static const char *const names[] = { "EDQUOT", "ENOMEM", "EAGAIN", "EPERM",
					     "EACCES", "ENOSPC", "EBUSY",  "EUSERS" };
	static const int codes[] = { EDQUOT, ENOMEM, EAGAIN, EPERM, EACCES, ENOSPC, EBUSY, EUSERS };
	uint64_t number;
	unsigned choice;

	if (parse_choice(text, names, sizeof(names) / sizeof(names[0]), &choice) == 0)
		number = (uint64_t)codes[choice];
	else if (parse_count(text, &number) < 0 || number < 1 || number > 4095)
		return -EINVAL;
	draft->config->deny_errno = (int)number;
	return 0;
}

static int parse_quiet(struct draft *draft, const char *text)
{
	return parse_flag(text, &draft->config->quiet);
}

static int parse_log_level(struct draft *draft, const char *text)
{
	return log_level_parse(text, &draft->config->log_level);
}

static int parse_log_path(struct draft *draft, const char *text)
{
	if (!*text || strlen(text) >= LOG_PATH_MAX)
		return -EINVAL;
	draft->config->log_path = text;
	return 0;
}

static int parse_shm_name(struct draft *draft, const char *text)
{
	const char *name = text + (text[0] == '/'); /* as shm_open takes it */

	if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
	    strlen(name) >= CONFIG_NAME_MAX)
		return -EINVAL;
	strcpy(draft->config->shm_name, name);
	return 0;
}

static int parse_shm_mode(struct draft *draft, const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (text[0] < '0' || text[0] > '7' || *end || (mode & 0600) != 0600 || mode & ~0666ul)
		return -EINVAL;
	draft->config->shm_mode = (mode_t)mode;
	draft->config->shm_mode_chosen = true;
	return 0;
}

const struct config_setting config_settings[] = {
#define SETTING(name, parser, allowed) { CONFIG_PREFIX #name, allowed },
#include "terms/variables.def"
#undef SETTING
};
const unsigned config_settings_count = sizeof(config_settings) / sizeof(config_settings[0]);

static int (*const parsers[])(struct draft *draft, const char *text) = {
#define SETTING(name, parser, allowed) parser,
#include "terms/variables.def"
#undef SETTING
};

static void config_complain(struct config *config, const struct config_setting *setting,
			    const char *text)
{
	if (config->complaints < CONFIG_COMPLAINTS)
		snprintf(config->complaint[config->complaints], CONFIG_COMPLAINT,
			 "%s: invalid value '%.80s': expected %s; %s", setting->name, text,
			 setting->allowed,
			 config->fail_closed ? "every new object is refused" :
					       "the default is used");
	config->complaints++;
}

/* The first of the three that somebody spoke of. */
static uint64_t limit_choose(uint64_t special, uint64_t documented, uint64_t fallback)
{
	return special != UNSET ? special : documented != UNSET ? documented : fallback;
}

static void draft_name_idle(const struct draft *draft)
{
	const struct {
		const char *name;
		uint64_t value;
	} idle[] = {
		{ CONFIG_PREFIX "MAX_QP_PER_PROCESS", draft->process_qp },
		{ CONFIG_PREFIX "MAX_GLOBAL_QP", draft->host_qp },
		{ CONFIG_PREFIX "MAX_QP", draft->old_max_qp },
	};
	char *text = draft->config->idle;

	for (unsigned i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		if (idle[i].value != UNSET)
			snprintf(strchr(text, '\0'), CONFIG_IDLE - strlen(text), "%s%s",
				 *text ? ", " : "", idle[i].name);
}

static void draft_settle(struct draft *draft)
{
	struct ledger_limits *limits = &draft->config->limits;
	struct ledger_limits *documented = &draft->documented;
	struct ledger_limits fallback;

	ledger_limits_clear(&fallback);
	/* The first version knew no switch: its own variable switches. */
	if (draft->old_max_qp != UNSET && !draft->qp_control_given)
		draft->qp_control = true;
	/* A limit that is set counts, unless the switch is set to 0; defaults need the switch. */
	if (draft->qp_control || !draft->qp_control_given) {
		documented->process[KIND_qp] =
			limit_choose(draft->process_qp, draft->old_max_qp, UNSET);
		draft->config->process_qp_is_old = draft->process_qp == UNSET;
		documented->host[KIND_qp] = draft->host_qp;
	} else {
		draft_name_idle(draft);
	}
	if (draft->qp_control) {
		fallback.process[KIND_qp] = DEFAULT_PROCESS_QP;
		fallback.host[KIND_qp] = DEFAULT_HOST_QP;
	}
	if (draft->mr_control) {
		fallback.process[KIND_mr] = DEFAULT_PROCESS_MR;
		fallback.host[KIND_mr] = DEFAULT_HOST_MR;
		fallback.process[KIND_mr_bytes] = DEFAULT_PROCESS_MEMORY;
		fallback.host[KIND_mr_bytes] = DEFAULT_HOST_MEMORY;
	}
	*limits = draft->special; /* for its devices */
	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		limits->process[kind] = limit_choose(draft->special.process[kind],
						     documented->process[kind],
						     fallback.process[kind]);
		limits->host[kind] = limit_choose(draft->special.host[kind], documented->host[kind],
						  fallback.host[kind]);
		if (draft->special.process[kind] != UNSET)
			draft->config->process_listed |= 1ull << kind;
		if (draft->special.host[kind] != UNSET)
			draft->config->host_listed |= 1ull << kind;
		if (draft->special.process[kind] == UNSET && documented->process[kind] == UNSET)
			limits->process_defaults |= 1ull << kind;
		if (draft->special.host[kind] == UNSET && documented->host[kind] == UNSET)
			limits->host_defaults |= 1ull << kind;
	}
}

void config_read(struct config *config, config_lookup *lookup)
{
	struct draft draft = {
		.config = config,
		.process_qp = UNSET,
		.host_qp = UNSET,
		.old_max_qp = UNSET,
	};

	*config = (struct config){
		.enable = true,
		.deny_errno = EDQUOT,
		.log_level = LOG_INFO,
		.shm_mode = 0600,
	};
	limits_unset(&draft.documented);
	limits_unset(&draft.special);
	for (unsigned i = 0; i < config_settings_count; i++) {
		const char *text = lookup(config_settings[i].name);

		if (text && parsers[i](&draft, text) < 0)
			config_complain(config, &config_settings[i], text);
	}
	config->socket = lookup(CONFIG_SOCKET);
	if (!config->shm_name[0])
		shmfile_default_name(config->shm_mode & 066, config->shm_name);
	draft_settle(&draft);
}

/* The documented variables of a kind: of the process, of the host, and the switch by which their
 * defaults hold. */
static const struct {
	enum kind kind;
	const char *process, *host, *control;
} limit_variables[] = {
	{ KIND_qp, CONFIG_PREFIX "MAX_QP_PER_PROCESS", CONFIG_PREFIX "MAX_GLOBAL_QP",
	  CONFIG_PREFIX "ENABLE_QP_CONTROL" },
	{ KIND_mr, CONFIG_PREFIX "MAX_MR_PER_PROCESS", CONFIG_PREFIX "MAX_GLOBAL_MR",
	  CONFIG_PREFIX "ENABLE_MR_CONTROL" },
	{ KIND_mr_bytes, CONFIG_PREFIX "MAX_MEMORY_PER_PROCESS", CONFIG_PREFIX "MAX_GLOBAL_MEMORY",
	  CONFIG_PREFIX "ENABLE_MR_CONTROL" },
};

const char *config_limit_variable(const struct config *config, enum limit_scope scope,
				  enum kind kind)
{
	bool of_process = scope == SCOPE_PROCESS;
	uint64_t listed = of_process ? config->process_listed : config->host_listed;
	uint64_t defaults = of_process ? config->limits.process_defaults :
					 config->limits.host_defaults;

	if (scope == SCOPE_DEVICE || listed >> kind & 1)
		return CONFIG_PREFIX "LIMITS";
	for (unsigned i = 0; i < sizeof(limit_variables) / sizeof(limit_variables[0]); i++) {
		if (limit_variables[i].kind != kind)
			continue;
		if (defaults >> kind & 1)
			return limit_variables[i].control;
		if (of_process && kind == KIND_qp && config->process_qp_is_old)
			return CONFIG_PREFIX "MAX_QP";
		return of_process ? limit_variables[i].process : limit_variables[i].host;
	}
	return NULL;
}

bool config_has_limits(const struct config *config)
{
	const struct ledger_limits *limits = &config->limits;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (limits->process[kind] != UNLIMITED || limits->host[kind] != UNLIMITED)
			return true;
	return limits->devices != 0;
}
