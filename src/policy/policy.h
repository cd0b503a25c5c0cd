/* SPDX-License-Identifier: MIT */
/*
 * The policy as files say it: limits of the host, of tenants and of each of a
 * tenant's processes, in total and per device; which processes belong to which
 * tenant; and where the collector finds its things. The fields of keys and of
 * conditions come from keys.def and conditions.def. Reading a policy changes
 * nothing else. Knows neither sockets nor leases.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"
#include "terms/size.h"
#include "terms/kinds.h"
#include "terms/placement.h"
#include "terms/rates.h"
#include "terms/settings.h"
#include "terms/terms.h"

#define POLICY_DEFAULT_FILE "/etc/rdma_intercept/policy.conf"

/* A limit that the policy does not set; "unlimited" (UNLIMITED) is a value that it may set. */
#define UNSET (UNLIMITED - 1)

enum {
	POLICY_PATH = 256,
	POLICY_SOCKET = 108, /* a path that a socket can have */
	POLICY_IDS = 16,     /* entries of one uid= or gid= */
	POLICY_TENANTS = 1024,
	POLICY_RULES = 4096,
	POLICY_DEVICES = DEVICES_MAX - 1, /* of one owner; the nameless one has no limits */
	POLICY_FILE_MOST = 1 << 20,	  /* bytes of one file */
	POLICY_WEIGHT_MOST = 10000,
	POLICY_ORIGIN = POLICY_PATH + 32,
};

/* The origin of values that a command set. */
#define POLICY_COMMAND "command"

enum policy_switch { POLICY_OFF, POLICY_ON, SWITCH_UNSET };

extern const char *const policy_switch_names[SWITCH_UNSET];

/* Amounts of each kind, in total and on single devices. What is on a port of a device is among
 * those of the device (kinds.h). */
struct policy_limits {
	uint64_t total[KINDS_COUNTED];
	unsigned devices;
	struct policy_device {
		char name[NAME_SIZE];
		uint64_t limit[KINDS_COUNTED];
	} * device;
};

/* A group's number is looked up once, since that may ask the network. */
struct policy_group {
	char name[NAME_SIZE];
	uint32_t gid;
};

/* What a tenant needs of the data path. */
enum policy_priority { PRIORITY_NORMAL, PRIORITY_LATENCY, PRIORITY_BULK, PRIORITY_UNSET };

extern const char *const policy_priority_names[PRIORITY_UNSET];

/* One value of a type of keys.def, and the field that a key of it has. */
#define POLICY_VALUE_mode(name) enum mode name
#define POLICY_VALUE_switch(name) enum policy_switch name
#define POLICY_VALUE_path(name) char name[POLICY_PATH]
#define POLICY_VALUE_tenant(name) char name[NAME_SIZE]
#define POLICY_VALUE_socket_path(name) char name[POLICY_SOCKET]
#define POLICY_VALUE_group(name) struct policy_group name
#define POLICY_VALUE_patterns(name) char name[SETTINGS_DEVICES]
#define POLICY_VALUE_traffic_class(name) uint32_t name
#define POLICY_VALUE_service_level(name) uint32_t name
#define POLICY_VALUE_post_rate(name) struct pace_rate name
#define POLICY_VALUE_byte_rate(name) struct pace_rate name
#define POLICY_VALUE_pace_delay(name) uint64_t name
#define POLICY_VALUE_priority(name) enum policy_priority name
#define POLICY_VALUE_amounts(name) uint64_t name
#define POLICY_VALUE_rate(name) struct rate name
#define POLICY_VALUE_rate_action(name) enum rate_action name
#define POLICY_VALUE_delay(name) uint64_t name
#define POLICY_VALUE_guarantees(name) uint64_t name
#define POLICY_VALUE_percent(name) uint32_t name
#define POLICY_VALUE_weight(name) uint32_t name

#define POLICY_FIELD_mode(name) POLICY_VALUE_mode(name)
#define POLICY_FIELD_switch(name) POLICY_VALUE_switch(name)
#define POLICY_FIELD_path(name) POLICY_VALUE_path(name)
#define POLICY_FIELD_tenant(name) POLICY_VALUE_tenant(name)
#define POLICY_FIELD_socket_path(name) POLICY_VALUE_socket_path(name)
#define POLICY_FIELD_group(name) POLICY_VALUE_group(name)
#define POLICY_FIELD_patterns(name) POLICY_VALUE_patterns(name)
#define POLICY_FIELD_traffic_class(name) POLICY_VALUE_traffic_class(name)
#define POLICY_FIELD_service_level(name) POLICY_VALUE_service_level(name)
#define POLICY_FIELD_post_rate(name) POLICY_VALUE_post_rate(name)
#define POLICY_FIELD_byte_rate(name) POLICY_VALUE_byte_rate(name)
#define POLICY_FIELD_pace_delay(name) POLICY_VALUE_pace_delay(name)
#define POLICY_FIELD_priority(name) POLICY_VALUE_priority(name)
#define POLICY_FIELD_amounts(name) struct policy_limits name
#define POLICY_FIELD_rate(name) POLICY_VALUE_rate(name)
#define POLICY_FIELD_rate_action(name) POLICY_VALUE_rate_action(name)
#define POLICY_FIELD_delay(name) POLICY_VALUE_delay(name)
#define POLICY_FIELD_guarantees(name) struct policy_limits name
#define POLICY_FIELD_percent(name) POLICY_VALUE_percent(name)
#define POLICY_FIELD_weight(name) POLICY_VALUE_weight(name)

/* User or group ids; none = any. */
struct policy_ids {
	unsigned count;
	struct policy_range {
		uint32_t first, last;
	} range[POLICY_IDS];
};

/* The field that a rule has for a condition of a type of conditions.def. */
#define POLICY_CONDITION_users(name) struct policy_ids name
#define POLICY_CONDITION_groups(name) struct policy_ids name
#define POLICY_CONDITION_path(name) char name[POLICY_PATH]
#define POLICY_CONDITION_label(name) char name[POLICY_PATH]
#define POLICY_CONDITION_short_label(name) char name[NAME_SIZE]
#define POLICY_CONDITION_pod(name) char name[POD_SIZE]

/* The word at the beginning of a match line that is tried before those without it. */
#define POLICY_FIRST "first"

/* One line "match = ...": all its conditions must hold. Those that it does not have are 0. */
struct policy_rule {
	struct policy_rule *next; /* first ones, then in the order of files and lines, over all tenants */
	struct policy_tenant *tenant;
	bool first; /* POLICY_FIRST */
	char source[POLICY_PATH]; /* "FILE:LINE", or "command" */
	char text[POLICY_PATH];	  /* what stands behind "match ="; a long one is cut */
#define CONDITION(name, type, in_kernel, help) POLICY_CONDITION_##type(name);
#include "policy/conditions.def"
#undef CONDITION
};

struct policy_tenant {
	struct policy_tenant *next; /* in the order of first mention */
	char name[NAME_SIZE];
	bool runtime; /* named by a command, not by a file */
	/* Of one that was made from a pattern: whose values count where it sets none. Only the
	 * policy in force has such tenants. */
	struct policy_tenant *pattern;
	struct policy_tenant *base; /* that `within` names, or [default]; policy_bases_find */
	struct policy_origin *origins; /* of its values; origins.h */
#define KEY_TENANT(field, name, type, initial, help) POLICY_FIELD_##type(field);
#include "policy/keys.def"
};

struct policy {
#define KEY_COLLECTOR(field, name, type, initial, help) POLICY_FIELD_##type(field);
#define KEY_HOST(field, name, type, initial, help) POLICY_FIELD_##type(field);
#include "policy/keys.def"
	struct policy_tenant fallback; /* [default]: for what a tenant does not set */
	struct policy_tenant *tenants;
	struct policy_rule *rules;
	struct policy_when *whens; /* in the order of files and lines; when.h */
	struct policy_origin *origins; /* of values of [host] and [collector]; origins.h */
	char file[POLICY_PATH];	    /* that policy_read was given; "" = none was read */
	char cut[POLICY_PATH + 16]; /* "FILE:LINE" of a last line that has no end; "" = none */
	struct policy_report *report; /* of all mistakes, which do not end reading; NULL: none */
};

/* What the kernel says of a process. */
struct policy_subject {
	uid_t uid;
	gid_t gid;
	unsigned groups; /* supplementary */
	const gid_t *group;
	const char *cgroup; /* in the unified hierarchy, or the first of a v1 one; NULL = unknown */
	/* The beginning of it whose names only root can have given, for labels; NULL = all of it. */
	const char *rooted;
	const char *container, *job; /* NULL: as the path tells */
	const char *pod;	     /* NAMESPACE/NAME; NULL: in none, or its name is not known */
	const char *namespace;	     /* NULL: that of the pod */
};

/* A process as a person describes it. The subject's pointers lead into this structure. */
struct policy_given {
	struct policy_subject subject;
	gid_t group[POLICY_IDS];
	char cgroup[POLICY_PATH];
	char container[2 * NAME_SIZE];
	char job[NAME_SIZE];
	char pod[POD_SIZE];
	char namespace[NAME_SIZE];
};

struct policy *policy_new(void);
void policy_free(struct policy *policy);

/*
 * Adds what a file says, and then the files tenants.d/?*.conf beside it in the order of
 * their names. 0; -ENOENT when the file does not exist (nothing was added); -EINVAL or
 * another -errno. On failure "FILE:LINE: reason" or "FILE: reason" is in problem and the
 * policy holds a part of what was read: read into a new one, and free it then. A policy with a
 * report (report.h) fails for want of memory only.
 */
int policy_read(struct policy *policy, const char *path, char problem[PROBLEM_SIZE]);

/* One file only: no tenants.d beside it. `runtime` marks the tenants it adds. */
int policy_read_file(struct policy *policy, const char *path, bool runtime,
		     char problem[PROBLEM_SIZE]);

/*
 * Lines of one section ("host", "default", "tenant NAME") as a command gives them. They go
 * over earlier values, match lines are added; the value "unset" unsets a key, "match = unset"
 * takes out all of the tenant's rules, "match = unset RULE" one of them. A tenant that does not
 * exist is made, also by no lines at all. All or nothing: on failure the policy is as before, and
 * the reason is in problem. On success pointers into the policy are void.
 */
int policy_change(struct policy *policy, const char *section, const char *text,
		  char problem[PROBLEM_SIZE]);

/*
 * Whether the policy lacks something that an earlier one has: a tenant, a key that is set, or
 * match lines of a tenant. The first such thing is in problem. [collector] is not compared.
 */
bool policy_lacks(const struct policy *policy, const struct policy *earlier,
		  char problem[PROBLEM_SIZE]);

/* Takes a tenant out, with its rules; -ENOENT. */
int policy_remove_tenant(struct policy *policy, const char *name);

/*
 * What a layer of commands sets over what is below, in a section ("": in all): values, match and when
 * lines. A tenant that only commands name is not set over anything, unless it is built in or a
 * pattern has made it. policy_reset drops all of it from the layer. Both return how much it is.
 */
struct policy_below {
	const struct policy *files, *in_force;
	const char *builtin; /* the tenant that needs no section */
};

unsigned policy_overrides(const struct policy *commands, const struct policy_below *below,
			  const char *section);
unsigned policy_reset(struct policy *commands, const struct policy_below *below, const char *section);

/* Takes out tenants that are set over nothing and hold no value or rule any more. */
void policy_prune(struct policy *commands, const struct policy_below *below);

/*
 * base, and over it what `over` says (NULL: nothing, so this copies). Rules of base go
 * first, and its file is named if it has one.
 * A new policy; NULL with errno ENOMEM, or E2BIG when both together name too much.
 */
struct policy *policy_merge(const struct policy *base, const struct policy *over);

/* Writes it as a file that policy_read_file reads back the same; atomically, mode 0600.
 * -errno; -EFBIG for one that would be too large to be read. */
int policy_write(const struct policy *policy, const char *path);

/* The first rule that a process meets, or NULL: it belongs to the tenant "default", which a
 * policy may name like any other. */
const struct policy_rule *policy_match(const struct policy *policy,
				       const struct policy_subject *subject);

/* The same, and the name of the tenant: of a pattern, that of the one for this process. */
const struct policy_rule *policy_match_tenant(const struct policy *policy,
					      const struct policy_subject *subject,
					      char ret_tenant[NAME_SIZE]);

/* The same with all that comes of it. */
void policy_place(const struct policy *policy, const struct policy_subject *subject,
		  struct placement *ret_placement);

/*
 * Reads "uid=1000,gid=100,27,cgroup=/x": names as in match lines, each with one value, gid with the
 * groups that the process has. What is not given meets no condition. 0, or -EINVAL with a problem.
 */
int policy_given_parse(const char *text, struct policy_given *ret_given,
		       char problem[PROBLEM_SIZE]);

/* Whether the guard can hold the rule in the kernel: it has only conditions of which
 * conditions.def says so. */
bool policy_rule_in_kernel(const struct policy_rule *rule);

/* Container and job as the cgroup's path tells them; "" if it tells none. */
void policy_labels(const char *cgroup, char ret_container[2 * NAME_SIZE],
		   char ret_job[NAME_SIZE]);

/* Of those is the UID of a pod: of a UUID, or of the hash that a static pod has. */
#define POLICY_POD_UID_CHARACTERS                                                                  \
	"0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* The UID of the pod that the cgroup's path tells, as the API has it; false if it tells none. */
bool policy_pod_uid(const char *cgroup, char ret_uid[NAME_SIZE]);

struct policy_tenant *policy_tenant_find(const struct policy *policy, const char *name);

/* Whether the name is that of a pattern, [tenant job-%j]: it has no processes of its own. */
bool policy_name_is_pattern(const char *name);

/* Adds a tenant that is made from a pattern of the same policy, or makes one of the tenant with
 * that name. POLICY_TENANTS does not bound these. -ENOMEM. */
int policy_tenant_make(struct policy *policy, const char *name, struct policy_tenant *pattern);

/* Finds the tenants that `within` names, after tenants were added. policy_read and policy_merge do. */
void policy_bases_find(struct policy *policy);

/* Whose values count where the tenant sets none, before those of [default]; NULL. */
const struct policy_tenant *policy_tenant_below(const struct policy_tenant *tenant);

/* The limit in force: as set, or UNLIMITED. device NULL: in total. */
uint64_t policy_limit(const struct policy_limits *limits, const char *device, enum kind kind);

/* The same for a tenant (NULL: one that no policy names), with [default] behind it. */
uint64_t policy_tenant_limit(const struct policy *policy, const struct policy_tenant *tenant,
			     bool of_each_process, const char *device, enum kind kind);
enum mode policy_tenant_mode(const struct policy *policy,
				    const struct policy_tenant *tenant);
bool policy_tenant_guard(const struct policy *policy, const struct policy_tenant *tenant);
/* Patterns of names with blanks between; "*": all. */
const char *policy_tenant_devices(const struct policy *policy, const struct policy_tenant *tenant);
/* Of RATE_OF_TENANT or RATE_OF_PROCESS. */
struct rate policy_tenant_rate(const struct policy *policy, const struct policy_tenant *tenant,
			       enum rate_owner owner, enum rate_class class);
enum rate_action policy_tenant_rate_action(const struct policy *policy,
					   const struct policy_tenant *tenant);
uint64_t policy_tenant_max_delay(const struct policy *policy, const struct policy_tenant *tenant);
/* As struct tenant_settings has them. */
uint64_t policy_tenant_classes(const struct policy *policy, const struct policy_tenant *tenant);
enum policy_priority policy_tenant_priority(const struct policy *policy,
					    const struct policy_tenant *tenant);
/* What its processes follow of pace.*, process.pace.*, qp.pace.* and bulk_floor; not whether posts are counted
 * and which devices are held. */
struct pace_settings policy_tenant_pace(const struct policy *policy,
					const struct policy_tenant *tenant);
bool policy_guard_writes(const struct policy *policy);
/* What is reserved for a tenant; 0: nothing. And its weight. */
uint64_t policy_tenant_guarantee(const struct policy *policy, const struct policy_tenant *tenant,
				 const char *device, enum kind kind);
uint32_t policy_tenant_weight(const struct policy *policy, const struct policy_tenant *tenant);
/* In percent: of the host's and the devices' limits. */
unsigned policy_pressure(const struct policy *policy);

/*
 * Whether all guarantees can be kept: none is above its tenant's limit, and together they are not
 * above the limit of the host or the device. 0, or -EINVAL with a problem, which names the line if
 * a file set the guarantee. policy_read does this; so must who merges policies.
 */
int policy_guarantees_check(const struct policy *policy, char problem[PROBLEM_SIZE]);

/*
 * Where the limit in force of a scope comes from, of a tenant (NULL: of one that no policy names) or
 * the host: "FILE:LINE", "command", "environment VARIABLE" or "when FILE:LINE", with " [default]"
 * behind it if the tenant has it from there; "" if the policy does not set it. device NULL: in total.
 */
void policy_limit_origin(const struct policy *policy, const struct policy_tenant *tenant,
			 enum limit_scope scope, const char *device, enum kind kind,
			 char ret_origin[POLICY_ORIGIN]);
/* The same of the devices that a tenant may use. */
void policy_devices_origin(const struct policy *policy, const struct policy_tenant *tenant,
			   char ret_origin[POLICY_ORIGIN]);

/* A value that a policy sets, as a line of a file has it; and its origin. */
struct policy_line {
	const char *section, *key, *value, *origin;
};

/* Calls for each value of [host], [default] and the tenants, or of the one tenant that is named
 * (NULL: of all), until a call returns false. */
void policy_lines_visit(const struct policy *policy, const char *tenant,
			bool (*visit)(void *closure, const struct policy_line *line), void *closure);

/* A limit of the host that a variable of the environment sets. -ENOMEM. */
int policy_host_limit_set(struct policy *policy, enum kind kind, uint64_t value,
			  const char *variable);

/*
 * Filling a policy, as the reader of files does. -ENOMEM; -E2BIG past the bounds above.
 * The limit UNSET unsets. A rule that its tenant has already
 * is not added again: whoever meets it has met the first one.
 */
int policy_limit_set(struct policy_limits *limits, const char *device, enum kind kind,
		     uint64_t value);
int policy_tenant_add(struct policy *policy, const char *name, bool runtime,
		      struct policy_tenant **ret_tenant);
int policy_rule_add(struct policy *policy, struct policy_tenant *tenant,
		    const struct policy_rule *rule);
void policy_rules_drop(struct policy *policy, const struct policy_tenant *tenant);
/* The one with the same conditions; false if the tenant has no such rule. */
bool policy_rule_drop(struct policy *policy, const struct policy_tenant *tenant,
		      const struct policy_rule *rule);

#include "policy/when.h"

#endif
