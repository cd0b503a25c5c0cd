/* SPDX-License-Identifier: MIT */
/*
 * The settings of a tenant that its processes follow besides their limits. The collector writes
 * them into memory that the processes read at any time (a sequence lock: one writer, no waiting).
 */
#ifndef TERMS_SETTINGS_H
#define TERMS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "terms/pace_rate.h"

enum { SETTINGS_DEVICES = 256 };

/* How fast data may be posted. All zeros: nothing is counted and nothing waits. */
struct pace_settings {
	struct pace_rate bytes, operations;		       /* of the tenant, over its processes */
	struct pace_rate process_bytes, process_operations; /* of each process */
	struct pace_rate qp_bytes, qp_operations;	       /* of each queue pair */
	uint64_t floor;	       /* bytes a second on a device of `held`, over its processes */
	uint64_t max_delay_ns; /* that one call waits at most */
	uint64_t is_counted;   /* 1: posts are counted, whether or not a rate is set */
	char held[SETTINGS_DEVICES]; /* names of devices with blanks between, or "*": a tenant of
					the priority latency is active there */
};

struct tenant_settings {
	uint64_t version;		/* goes up by two with each change; odd during one */
	char devices[SETTINGS_DEVICES]; /* patterns with blanks between; "": all devices */
	uint64_t classes; /* traffic class and service level, see below; 0: as programs ask */
	struct pace_settings pace;
};

_Static_assert(sizeof(struct tenant_settings) % sizeof(uint64_t) == 0, "it is copied by words");

/* Settings that change nothing. */
extern const struct tenant_settings settings_none;

/* Writes all but the version, if anything differs. A writer that died in the middle left an odd
 * version: the next one writes everything again. */
void settings_write(struct tenant_settings *to, const struct tenant_settings *from);

/* A copy of one moment; false, with nothing written, while a change is going on. */
bool settings_read(const struct tenant_settings *from, struct tenant_settings *ret_settings);

/*
 * A class of service that processes have to use: one value, or a range that they may choose from.
 * 0 keeps what a program asks for. Both classes of a tenant are one word, which is read at once.
 */
enum { CLASS_KEEP = 0, CLASS_SET = 1 << 16, TRAFFIC_CLASS_MAX = 255, SERVICE_LEVEL_MAX = 15 };

static inline uint32_t class_make(unsigned first, unsigned last)
{
	return CLASS_SET | last << 8 | first;
}

static inline uint8_t class_first(uint32_t class)
{
	return (uint8_t)class;
}

static inline uint8_t class_last(uint32_t class)
{
	return (uint8_t)(class >> 8);
}

/* The value for a program that asks for one. */
static inline uint8_t class_apply(uint32_t class, uint8_t asked)
{
	return class == CLASS_KEEP || (asked >= class_first(class) && asked <= class_last(class)) ?
		       asked :
		       class_first(class);
}

static inline uint64_t classes_make(uint32_t traffic_class, uint32_t service_level)
{
	return traffic_class | (uint64_t)service_level << 32;
}

static inline uint32_t classes_traffic_class(uint64_t classes)
{
	return (uint32_t)classes;
}

static inline uint32_t classes_service_level(uint64_t classes)
{
	return (uint32_t)(classes >> 32);
}

/* "keep", a value, or a range of two: hexadecimal or decimal. Returns the text. */
enum { CLASS_TEXT = 16 };
const char *class_text(uint32_t class, bool hexadecimal, char ret_text[CLASS_TEXT]);

/* Those in force. */
static inline uint64_t settings_classes(const struct tenant_settings *settings)
{
	return __atomic_load_n(&settings->classes, __ATOMIC_RELAXED);
}

/* Whether a device may be used: patterns are those of `devices`, where * stands for any characters
 * and ? for one. */
bool settings_device_matches(const char *patterns, const char *device);

/* Changes with the settings. */
static inline uint64_t settings_version(const struct tenant_settings *settings)
{
	return __atomic_load_n(&settings->version, __ATOMIC_ACQUIRE);
}

#endif
