/* SPDX-License-Identifier: MIT */
/*
 * The messages as bytes: fixed structures of this machine's byte order, since
 * both ends are on one host. Every message begins with a header that names the
 * protocol's version and the table of kinds; who finds another one there
 * answers so and does not read on. Strings are NUL-terminated inside their
 * arrays, and who receives one makes sure of it (proto_text).
 */
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"
#include "terms/kinds.h"
#include "terms/placement.h"
#include "terms/settings.h"
#include "terms/tallies.h"
#include "terms/terms.h"

#define PROTO_MAGIC 0x414d4452u /* "RDMA" */

enum {
	PROTO_VERSION = 8,
	PROTO_MONITOR_WAY = 16,
	PROTO_TEXT = 1024,
	PROTO_KEY = 192,
	PROTO_VALUE = 256,
	PROTO_ORIGIN = 128,
	PROTO_ORIGIN_SHORT = 64,
	PROTO_REQUEST_MAX = 4096, /* whole messages */
	PROTO_REPLY_MAX = 8192,
};

/* A count of the kernel's that nobody makes, or not completely. */
#define PROTO_UNKNOWN UINT64_MAX

enum message {
#define MESSAGE(name, number, request, reply, who, how) MESSAGE_##name = number,
#include "proto/messages.def"
#undef MESSAGE
};

struct proto_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;	 /* enum message; a reply has that of its request */
	uint32_t length; /* of the whole message */
	int32_t status;	 /* requests: 0. Replies: 0, -errno, or a positive outcome: */
	uint64_t kinds;	 /* kinds_signature() of the sender */
};

enum {
	PROTO_MORE = 1,	   /* a row; others follow */
	PROTO_REFUSED = 2, /* to GROW: a limit is in the way */
	PROTO_TOLERATED = 3, /* to GROW: likewise, and it was granted all the same */
};

#define PROTO_NO_LEASE UINT32_MAX

struct proto_none {
	char nothing[0];
};

/* ---- clients that charge */

enum { HELLO_NO_MEMORY = 1 }; /* ask at each operation; no memory is handed over */

/* What the environment asks for may lower what the policy gives, never raise it. */
struct proto_hello {
	uint32_t flags;
	uint32_t mode; /* enum mode: what the environment does at its own limits */
	uint64_t process_limit[KINDS_COUNTED];
	uint64_t host_limit[KINDS_COUNTED];
	uint64_t process_defaults; /* bit k: nobody named process_limit[k]; a policy's goes first */
	uint64_t host_defaults;	   /* likewise */
};

/* With it come two descriptors: the usage page, and the lease table to be read. */
struct proto_welcome {
	uint64_t cookie; /* proves to be this registration in GROW */
	uint32_t mode;	 /* enum mode, at this moment; later in the lease table */
	uint32_t flags;	 /* enum proto_welcome_flags */
	char tenant[NAME_SIZE];
	struct tenant_settings settings; /* at this moment; later in the lease table */
};

/* The connection stays, and the process may send GROW over it. */
enum proto_welcome_flags { WELCOME_STAYS = 1 };

/* EXACT: the totals are what is held; grant no more, and take back what is over. */
enum { GROW_EXACT = 1 };

/* Absolute totals, so that asking twice is harmless. */
struct proto_grow_request {
	uint64_t cookie;
	uint64_t question; /* as it stands in the usage page until what is given is taken */
	char device[NAME_SIZE];
	uint32_t row; /* of the usage page, on which this device is counted */
	uint32_t flags;
	uint32_t count;
	uint32_t unused;
	uint32_t kind[COST_KINDS];
	uint64_t total[COST_KINDS];
	uint64_t wanted[COST_KINDS]; /* of the total, what is new: for the words of a refusal */
	uint64_t device_limit[KINDS_COUNTED]; /* the environment's, of the whole device */
};

/* status 0: granted, and the caps of the lease are raised already. */
struct proto_grow_reply {
	uint32_t lease; /* row of the lease table; PROTO_NO_LEASE: nothing is granted */
	uint32_t mode;	/* enum mode of the tenant, at this moment */
	/* status PROTO_REFUSED or PROTO_TOLERATED: */
	uint32_t kind;
	uint32_t scope; /* enum limit_scope */
	uint32_t own;	/* the limit is the environment's own, not the policy's */
	uint32_t forbidden; /* the tenant may not use the device */
	uint64_t used;
	uint64_t wanted;
	uint64_t limit;
	uint64_t configured; /* by the policy, if that is more than the limit; otherwise 0 */
	uint64_t event; /* number of the refusal in this process */
	/* Where the limit was set, the file named as seen from the policy's directory:
	 * "policy.conf:12"; "" if it is the environment's own. */
	char origin[PROTO_ORIGIN_SHORT];
};

/* ---- looking */

/* Which rows: "" and 0 for all. */
struct proto_choose {
	char tenant[NAME_SIZE];
	char device[NAME_SIZE];
	int32_t pid;
	uint32_t flags;
};
enum {
	CHOOSE_FOLLOW = 1, /* EVENTS: the past ones, then new ones as they come */
	/* GET_STATS, GET_DETAILS: rows of these owners; with none of these bits, those of the
	 * message. */
	CHOOSE_HOST = 2,
	CHOOSE_TENANTS = 4,
	CHOOSE_PROCESSES = 8,
};

enum proto_scope { ROW_HOST, ROW_TENANT, ROW_PROCESS };

enum {
	ROW_DRAINING = 1,   /* more is held than a limit allows, since it was cut */
	ROW_ORPHAN = 2,	    /* the process ended, a child still has its objects */
	ROW_UNATTACHED = 4, /* its usage page was not found again after a restart */
	ROW_SOCKET = 8,	    /* asks at each operation */
	ROW_RUNTIME = 16,   /* a tenant that TENANT_ADD made */
	ROW_REMOVED = 32,   /* a tenant that no policy names any more, with processes left */
	/* Of a process, or of one of the owner's: */
	ROW_UNCOVERED = 64, /* has objects in the kernel, and is not registered */
	ROW_DRIFT = 128,    /* kernel and books differ, and not just for a moment */
	ROW_WATCHED = 256,  /* there is a monitor: kernel and drift mean something */
	ROW_INACTIVE = 512,  /* uncovered although the library is loaded */
	ROW_FORBIDDEN = 1024, /* of a tenant on a device: it may not use it, so the limits are 0 */
	ROW_PATTERN = 2048, /* a tenant that a pattern of the policy has made */
};

/* One owner of resources, on one device or (device "") in total. */
struct proto_row {
	uint32_t scope;
	uint32_t flags;
	uint32_t mode; /* of tenants and processes */
	int32_t pid;   /* of processes */
	uint32_t uid;
	uint32_t processes; /* of hosts and tenants: how many are registered */
	char tenant[NAME_SIZE];
	char device[NAME_SIZE];
	char command[NAME_SIZE]; /* of processes */
	uint64_t used[KINDS_COUNTED];
	uint64_t granted[KINDS_COUNTED]; /* leased: used and idle credit */
	uint64_t peak[KINDS_COUNTED];	 /* highest used that the collector saw since it started */
	uint64_t peak_time[KINDS_COUNTED]; /* of hosts and tenants: seconds since 1970; 0: never */
	uint64_t limit[KINDS_COUNTED];	 /* in force */
	uint64_t configured[KINDS_COUNTED]; /* of tenants, by the policy; otherwise as limit, or 0 */
	uint64_t guarantee[KIND_COUNT];	    /* of tenants: what is reserved */
	uint64_t reason[KIND_COUNT]; /* of tenants: enum fair_reason, of the limit in force */
	uint64_t weight;	     /* of tenants */
	uint64_t process_limit[KINDS_COUNTED]; /* of tenants: for each of their processes */
	uint64_t refused[KINDS_COUNTED];
	uint64_t tolerated[KINDS_COUNTED]; /* would have been refused: warn and audit let it pass */
	/* Of these, what a limit of the policy for this owner itself was in the way of, and not one of
	 * a process, the host or the program's environment. */
	uint64_t refused_here[KINDS_COUNTED], tolerated_here[KINDS_COUNTED];
	uint64_t kernel[KIND_COUNT];	    /* what the kernel has; PROTO_UNKNOWN */
	int64_t drift[KIND_COUNT];	    /* in total: kernel less used, where that lasts */
};

/* Of a registered process: with the device "" its counters, with a device gauges of its queue
 * pairs there. With CHOOSE_TENANTS the same of tenants, processes that have ended included: with
 * the device "" also the gauges, in total, but no classes. */
struct proto_details {
	int32_t pid; /* 0: of a tenant */
	uint32_t unused;
	char tenant[NAME_SIZE];
	char device[NAME_SIZE];
	struct tallies tallies;
	struct gauges gauges;
	struct class_gauges classes;
};

/* A when line of the policy, and whether it is in force. */
struct proto_rule {
	uint32_t in_force;
	uint32_t by_time;   /* the condition is a window of time: used and limit are 0 */
	uint64_t since_ns;  /* CLOCK_REALTIME: of the last change; 0: the rule has not changed yet */
	uint64_t used;	    /* what the condition looks at */
	uint64_t limit;	    /* likewise, without any rule */
	char text[320];	    /* behind "when =" */
	char source[256];   /* "FILE:LINE", or "command" */
	char problem[256];  /* why it has no effect although it is in force; "" */
};

/* A match line of the policy. */
struct proto_match {
	uint32_t order;	    /* 1: the collector tries it first */
	uint32_t in_kernel; /* the guard in the kernel can decide by it */
	char tenant[NAME_SIZE];
	char source[256]; /* "FILE:LINE", or "command" */
	char text[256];	  /* what stands behind "match ="; a long one is cut */
};

/* A rate of control verbs: of a tenant, or, chosen by CHOOSE_PROCESSES, what a process has of it. */
struct proto_rate {
	char tenant[NAME_SIZE];
	int32_t pid;	     /* of processes; 0: of a tenant */
	uint32_t owner;	     /* enum rate_owner: whose rate it is */
	uint32_t class;	     /* enum rate_class */
	uint32_t action;     /* enum rate_action */
	uint32_t per_second; /* as the policy says it */
	uint32_t burst;
	uint64_t max_delay_ns;
	uint64_t leased; /* calls per second that it may make now, or its processes together, times
			    1000 */
	/* Of the class, whoever set the rate; of tenants also by processes that have ended. */
	uint64_t throttled, throttled_ns, refused, tolerated;
};

/* A key that is set in the policy in force, as a line of a policy file has it. */
struct proto_key {
	char section[2 * NAME_SIZE]; /* "host", "default" or "tenant NAME" */
	char key[PROTO_KEY];
	char value[PROTO_VALUE];
	char origin[PROTO_ORIGIN]; /* as in struct proto_event */
};

/* What the processes of a tenant follow besides limits. */
struct proto_settings {
	char tenant[NAME_SIZE];
	struct tenant_settings settings;
};

/* A tenant that has a pace, or another priority than normal. */
struct proto_pace {
	char tenant[NAME_SIZE];
	uint32_t priority;   /* enum policy_priority */
	uint32_t is_counted; /* its posts are */
	struct pace_rate bytes, operations;		    /* of the tenant; 0 = none */
	struct pace_rate process_bytes, process_operations; /* of each process; 0 = none */
	struct pace_rate qp_bytes, qp_operations;	    /* of each queue pair; 0 = none */
	uint64_t floor;	       /* bytes a second that a bulk tenant always gets */
	uint64_t max_delay_ns; /* that one post waits at most */
	struct posted posted;  /* by its processes that run, while posts are counted */
	char held[SETTINGS_DEVICES]; /* devices where it is held to its floor now */
};

struct proto_status {
	int32_t pid;
	uint32_t uid;
	uint64_t uptime_seconds;
	uint32_t processes;
	uint32_t leases;
	uint32_t tenants;
	uint32_t reloads;	      /* that took effect */
	char version[NAME_SIZE];     /* of the program */
	char policy[256];	      /* the file; "" if there is none */
	char problem[PROBLEM_SIZE]; /* why the last reload did not take effect; "" */
	/* How the kernel is watched: "fentry", "kprobe", "netlink" or "none", and then why. */
	char monitor[PROTO_MONITOR_WAY];
	char monitor_problem[256];
	uint32_t uncovered;    /* processes */
	uint32_t drifting;     /* likewise */
	uint64_t lost_objects; /* that the monitor had no room to count */
	uint64_t lost_rows;    /* objects whose owner it had no room for */
	uint64_t observed;     /* bit k: it counts kind k completely */
	uint64_t searches;     /* through /proc, for heirs of processes that ended */
	uint32_t overrides;    /* keys, match and when lines that commands set over the policy files */
	uint32_t unused;
};

/* ---- changing: a section of the policy file, and lines of it */
struct proto_change {
	char section[2 * NAME_SIZE]; /* "host", "default" or "tenant NAME" */
	char text[PROTO_TEXT];	      /* "qp = 10\nprocess.mr = 5\n"; the value "unset" takes back */
	char via[NAME_SIZE]; /* for whom the client asks, for the event; "": for its own user */
};

/* What RESET_POLICY dropped. */
struct proto_reset {
	uint32_t keys;
	uint32_t unused;
};

/* ---- events */

enum proto_event_type {
	EVENT_REFUSED,
	EVENT_TOLERATED, /* would have been refused */
	EVENT_JOINED,
	EVENT_LEFT,
	EVENT_DIED,
	EVENT_ORPHANED,
	EVENT_LIMITS,	/* changed by a command */
	EVENT_RELOADED,
	EVENT_RELOAD_FAILED,
	EVENT_UNCOVERED, /* seen for the first time */
	EVENT_DRIFT,	 /* likewise */
	EVENT_OVERRUN,	 /* made beyond a limit, in a way that the kernel could not refuse */
	EVENT_KILLED,	 /* by the guard, for a command that was changed after the look */
	EVENT_RULE,	 /* a when line is in force, or no longer */
	EVENT_RATE,	 /* calls above a rate were refused, or tolerated, in the last second */
	EVENT_SHARE,	 /* a tenant's limit in force is another share of its configured one */
	EVENT_TENANT_CREATED, /* by a pattern, for its first process */
	EVENT_TENANT_REMOVED, /* likewise: its last process has left */
	EVENT_TYPES
};

/* Who refused. */
enum proto_ring { RING_LIBRARY, RING_KERNEL };

struct proto_event {
	uint64_t sequence;
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t count;	  /* so often in a row, the last time then */
	uint32_t type;
	int32_t pid;
	uint64_t number; /* of a refusal or the like in its process: the event PID-NUMBER */
	char tenant[NAME_SIZE];
	char device[NAME_SIZE];
	uint32_t kind;
	uint32_t scope;
	uint32_t own;
	uint32_t ring; /* enum proto_ring */
	uint64_t used;
	uint64_t wanted;
	uint64_t limit;
	uint64_t configured; /* by the policy, if that is more than the limit; otherwise 0 */
	char text[256];
	uint32_t forbidden; /* of a refusal or the like: the tenant may not use the device */
	uint32_t has_author; /* of changes and reloads: a client asked for it, */
	uint32_t uid;	     /* of this user */
	uint32_t unused;
	/* Of a refusal or the like: where the limit was set. "FILE:LINE", "command",
	 * "environment VARIABLE" or "when FILE:LINE", with " [default]" behind it if the tenant has
	 * the value from there; "environment" of the process's own; "": the policy does not say it. */
	char origin[PROTO_ORIGIN];
};

/* ---- explaining: a process, or with a number one of its refusals */
struct proto_ask {
	int32_t pid; /* 0: the one who asks */
	uint32_t unused;
	uint64_t number; /* 0: the process itself */
};

struct proto_explanation {
	uint32_t registered; /* the process is; otherwise where it would belong if it were */
	uint32_t has_event;
	uint32_t alive; /* there is such a process; otherwise only the event is filled */
	uint32_t unused;
	uint32_t uid;
	uint32_t gid;
	char tenant[NAME_SIZE];
	char container[2 * NAME_SIZE];
	char job[NAME_SIZE];
	char pod_uid[NAME_SIZE]; /* by the cgroup's path; "": the process is in no pod */
	char pod[POD_SIZE];	 /* NAMESPACE/NAME; "" with a UID: the name is not known */
	char cgroup[256];
	char rule[256]; /* "FILE:LINE: match = ..."; "" when nothing matched */
	struct proto_event event;
};

/* A process that there need not be: where it would belong. */
struct proto_subject {
	uint32_t uid, gid; /* UINT32_MAX: not said */
	uint32_t groups;   /* supplementary */
	uint32_t flags;	   /* enum proto_subject_flags */
	uint32_t group[16];
	char cgroup[256];
	char container[2 * NAME_SIZE];
	char job[NAME_SIZE];
	char namespace[NAME_SIZE];
	char pod[POD_SIZE];
};
/* The label is said; otherwise it is what the cgroup's path tells. */
enum proto_subject_flags {
	SUBJECT_CONTAINER = 1,
	SUBJECT_JOB = 2,
	SUBJECT_NAMESPACE = 4,
	SUBJECT_POD = 8
};

struct proto_placement {
	struct placement placement;
};

/* ---- guarding: the kernel refuses, too */

/* What a tenant whose guard is on can count on. */
enum proto_guarantee {
	GUARANTEE_OFF,	  /* it is not on */
	GUARANTEE_KERNEL, /* each kind in the kernel, where it can be guarded */
	GUARANTEE_FLOOR,  /* only contexts, and objects of all kinds together: rdma.max */
	GUARANTEE_NONE,
	GUARANTEE_PARTLY, /* in the kernel, with an exception that the reason names */
	GUARANTEES
};

/* Ways into the kernel; bits. */
enum { WAY_IOCTL = 1, WAY_COMPAT = 2, WAY_WRITE = 4 };

/* The guard of a tenant; the first row is that of the host: the guard itself. */
struct proto_guard {
	uint32_t scope;	    /* ROW_HOST or ROW_TENANT */
	uint32_t on;	    /* of the host: for how many tenants */
	uint32_t guarantee; /* of tenants: enum proto_guarantee */
	uint32_t cgroups;   /* that are guarded, or at least counted */
	uint32_t floor;	    /* rdma.max is set in so many cgroups */
	uint32_t armed;	    /* everything is attached in the kernel */
	uint32_t ways;	    /* WAY_... that are guarded */
	uint32_t wanted;    /* WAY_... that should be */
	uint64_t guarded;   /* bit k: the kernel can refuse kind k */
	uint64_t killed;    /* processes */
	uint32_t pending;   /* of tenants: the reason is one that passes; rdma_monitor is at it */
	uint32_t port_limits; /* of tenants: limits of ports hold for it, which the kernel does not
				 keep */
	char tenant[NAME_SIZE];
	char reason[256]; /* why it is no more than that; "" */
	uint64_t used[KIND_COUNT];
	uint64_t limit[KIND_COUNT]; /* in the kernel at this moment */
	uint64_t refused[KIND_COUNT];
	uint64_t overrun[KIND_COUNT]; /* made beyond a limit */
};

/* Nothing hidden between the fields: a message has no byte that nobody wrote. */
#define PROTO_SIZE(name, bytes) _Static_assert(sizeof(struct proto_##name) == (bytes), #name)
PROTO_SIZE(header, 24);
PROTO_SIZE(none, 0);
PROTO_SIZE(hello, 24 + 2 * 8 * KINDS_COUNTED);
PROTO_SIZE(welcome, 16 + NAME_SIZE + sizeof(struct tenant_settings));
PROTO_SIZE(grow_request, 32 + NAME_SIZE + (4 + 8 + 8) * COST_KINDS + 8 * KINDS_COUNTED);
PROTO_SIZE(grow_reply, 64 + PROTO_ORIGIN_SHORT);
PROTO_SIZE(choose, 8 + 2 * NAME_SIZE);
PROTO_SIZE(row, 32 + 3 * NAME_SIZE + 11 * 8 * KINDS_COUNTED + 4 * 8 * KIND_COUNT);
PROTO_SIZE(details, 8 + 2 * NAME_SIZE + sizeof(struct tallies) + sizeof(struct gauges) +
			    sizeof(struct class_gauges));
PROTO_SIZE(rate, 24 + NAME_SIZE + 48);
PROTO_SIZE(settings, NAME_SIZE + sizeof(struct tenant_settings));
PROTO_SIZE(rule, 32 + 320 + 2 * 256);
PROTO_SIZE(match, 8 + NAME_SIZE + 2 * 256);
PROTO_SIZE(pace, NAME_SIZE + 8 + 6 * 16 + 16 + 7 * 8 + SETTINGS_DEVICES);
PROTO_SIZE(status, 32 + NAME_SIZE + 256 + PROBLEM_SIZE + PROTO_MONITOR_WAY + 256 + 48);
PROTO_SIZE(key, 2 * NAME_SIZE + PROTO_KEY + PROTO_VALUE + PROTO_ORIGIN);
PROTO_SIZE(change, 3 * NAME_SIZE + PROTO_TEXT);
PROTO_SIZE(reset, 8);
PROTO_SIZE(event, 104 + 2 * NAME_SIZE + 256 + PROTO_ORIGIN);
PROTO_SIZE(ask, 16);
PROTO_SIZE(explanation, 8 + 16 + 5 * NAME_SIZE + POD_SIZE + 2 * 256 + sizeof(struct proto_event));
PROTO_SIZE(subject, 16 + 16 * 4 + 256 + 4 * NAME_SIZE + POD_SIZE);
PROTO_SIZE(placement, 8 + 5 * NAME_SIZE + POD_SIZE + 2 * PLACEMENT_TEXT + 2 * 8 * KIND_COUNT);
PROTO_SIZE(guard, 56 + NAME_SIZE + 256 + 4 * 8 * KIND_COUNT);
#undef PROTO_SIZE

/* The bodies' sizes and the rights, by type; NULL for a type that does not exist. */
enum proto_access { ACCESS_ANYBODY, ACCESS_MEMBER, ACCESS_ADMIN };

struct proto_message {
	const char *name;
	uint16_t type;
	enum proto_access access;
	bool rows; /* the reply comes in rows */
	size_t request;
	size_t reply;
};

extern const struct proto_message proto_messages[];
extern const unsigned proto_messages_count;

const struct proto_message *proto_message(unsigned type);

/* The bodies' sizes of a message in a version of the protocol, the present one or a former one
 * (former.def); false, and the output untouched, if this side does not speak that. */
struct proto_bodies {
	size_t request, reply;
};
bool proto_bodies(unsigned type, unsigned version, struct proto_bodies *ret_bodies);

/* A header for a message with that much body. */
struct proto_header proto_header(enum message type, int status, size_t body);

/*
 * Whether a header may begin a message of at most that many bytes: 0, or
 * -EPROTO with a sentence that names what is wrong.
 */
int proto_check(const struct proto_header *header, size_t most, char problem[PROBLEM_SIZE]);

/* Whether the header is of a program that this side does not understand, by the version of its
 * protocol or by its kinds. */
bool proto_is_foreign(const struct proto_header *header);

/* Ends a received string inside its array. */
#define proto_text(array) ((array)[sizeof(array) - 1] = '\0', (array))

#endif
