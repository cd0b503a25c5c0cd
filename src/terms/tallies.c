/* SPDX-License-Identifier: MIT */
/* The names of counters and gauges; see tallies.h. */
#include "terms/tallies.h"

const struct verb_class_row verb_class_rows[VERB_CLASSES] = {
#define VERB_CLASS(name, text) [VERB_##name] = { #name, text },
#include "terms/verb_classes.def"
#undef VERB_CLASS
};

#define COUNTER(number, name)                                                                      \
	{ "completion_events", name, offsetof(struct tallies, counter[number]), 1 }
#define CM(number, name)                                                                           \
	{ "connection_events", name, offsetof(struct tallies, cm_event[number]), 1 }
#define RATE(tally, class, group)                                                                  \
	{ group, #class, offsetof(struct tallies, rate[tally][RATE_##class]), 1 },
#define VERB(field, class, group)                                                                  \
	{ group, #class, offsetof(struct tallies, verb[VERB_##class].field), 1 },
#define CALLS(class)                                                                               \
	{ "verb_calls", #class, offsetof(struct tallies, verb[VERB_##class].latency),              \
	  LATENCY_BUCKETS },
#define TYPE(number, name) { "qp_types", name, offsetof(struct gauges, qp_type[number]), 1 }
#define STATE(number, name) { "qp_states", name, offsetof(struct gauges, qp_state[number]), 1 }
#define POSTED(field) { "posted", #field, offsetof(struct gauges, posted.field), 1 }
#define PORT(number, name) { "qp_ports", name, offsetof(struct gauges, qp_port[number]), 1 }

/* Connection events have the numbers of rdma_cma.h. */
const struct tally_row tally_rows[] = {
	COUNTER(COUNTER_CQ_EVENTS, "received"),
	COUNTER(COUNTER_CQ_ACKS, "acknowledged"),
	COUNTER(COUNTER_CQ_GAPS, "gaps"),
	COUNTER(COUNTER_CQ_GAP_NS, "gap_ns"),
	COUNTER(COUNTER_CQ_GAP_MAX_NS, "gap_max_ns"),
	CM(0, "addr_resolved"),
	CM(1, "addr_error"),
	CM(2, "route_resolved"),
	CM(3, "route_error"),
	CM(4, "connect_request"),
	CM(5, "connect_response"),
	CM(6, "connect_error"),
	CM(7, "unreachable"),
	CM(8, "rejected"),
	CM(9, "established"),
	CM(10, "disconnected"),
	CM(11, "device_removal"),
	CM(12, "multicast_join"),
	CM(13, "multicast_error"),
	CM(14, "addr_change"),
	CM(15, "timewait_exit"),
	CM(16, "addrinfo_resolved"),
	CM(17, "addrinfo_error"),
	CM(18, "user"),
	CM(CM_EVENTS - 1, "other"),
#define RATE_CLASS(name, frees, text) RATE(RATE_THROTTLED, name, "rate_throttled")
#include "terms/rates.def"
#undef RATE_CLASS
#define RATE_CLASS(name, frees, text) RATE(RATE_THROTTLED_NS, name, "rate_throttled_ns")
#include "terms/rates.def"
#undef RATE_CLASS
#define RATE_CLASS(name, frees, text) RATE(RATE_REFUSED, name, "rate_refused")
#include "terms/rates.def"
#undef RATE_CLASS
#define RATE_CLASS(name, frees, text) RATE(RATE_TOLERATED, name, "rate_tolerated")
#include "terms/rates.def"
#undef RATE_CLASS
#define VERB_CLASS(name, text) CALLS(name)
#include "terms/verb_classes.def"
#undef VERB_CLASS
#define VERB_CLASS(name, text) VERB(failed, name, "verb_failed")
#include "terms/verb_classes.def"
#undef VERB_CLASS
#define VERB_CLASS(name, text) VERB(refused, name, "verb_refused")
#include "terms/verb_classes.def"
#undef VERB_CLASS
#define VERB_CLASS(name, text) VERB(ns, name, "verb_ns")
#include "terms/verb_classes.def"
#undef VERB_CLASS
};
const unsigned tally_count = sizeof(tally_rows) / sizeof(tally_rows[0]);

#define LATENCY(class, bucket, name)                                                               \
	{ "latency_" #class, name, offsetof(struct tallies, verb[VERB_##class].latency[bucket]), 1 }
#define FOUR_LATENCIES(class, bucket, a, b, c, d)                                                  \
	LATENCY(class, bucket, a), LATENCY(class, bucket + 1, b), LATENCY(class, bucket + 2, c),   \
		LATENCY(class, bucket + 3, d)

/* By their upper bounds in ns. */
const struct tally_row latency_rows[] = {
#define VERB_CLASS(name, text)                                                                     \
	FOUR_LATENCIES(name, 0, "1024", "2048", "4096", "8192"),                                   \
		FOUR_LATENCIES(name, 4, "16384", "32768", "65536", "131072"),                      \
		FOUR_LATENCIES(name, 8, "262144", "524288", "1048576", "2097152"),                 \
		FOUR_LATENCIES(name, 12, "4194304", "8388608", "16777216", "33554432"),            \
		FOUR_LATENCIES(name, 16, "67108864", "134217728", "268435456", "536870912"),       \
		LATENCY(name, 20, "1073741824"), LATENCY(name, LATENCY_BUCKETS - 1, "longer"),
#include "terms/verb_classes.def"
#undef VERB_CLASS
};
const unsigned latency_count = sizeof(latency_rows) / sizeof(latency_rows[0]);
_Static_assert(sizeof(latency_rows) / sizeof(latency_rows[0]) == VERB_CLASSES * LATENCY_BUCKETS,
	       "a row for each bucket");

const struct tally_row gauge_rows[] = {
	TYPE(QP_RC, "RC"),
	TYPE(QP_UC, "UC"),
	TYPE(QP_UD, "UD"),
	TYPE(QP_XRC, "XRC"),
	TYPE(QP_RAW, "RAW"),
	TYPE(QP_DRIVER, "DRIVER"),
	STATE(QP_RESET, "RESET"),
	STATE(QP_INIT, "INIT"),
	STATE(QP_RTR, "RTR"),
	STATE(QP_RTS, "RTS"),
	STATE(QP_SQD, "SQD"),
	STATE(QP_SQE, "SQE"),
	STATE(QP_ERR, "ERR"),
	PORT(QP_NO_PORT, "unbound"),
	PORT(1, "1"),
	PORT(2, "2"),
	PORT(3, "3"),
	PORT(4, "4"),
	PORT(5, "5"),
	PORT(6, "6"),
	PORT(QP_PORTS - 1, "7"),
	POSTED(bytes),
	POSTED(operations),
	POSTED(errors),
	POSTED(delays),
	POSTED(delayed_ns),
	POSTED(waiting),
};
const unsigned gauge_count = sizeof(gauge_rows) / sizeof(gauge_rows[0]);

#define CLASS(number, name)                                                                        \
	{ "qp_traffic_classes", name, offsetof(struct class_gauges, traffic_class[number]), 1 }
#define CLASSES(digit, number)                                                                     \
	CLASS(number, "0x" digit "0"), CLASS((number) + 1, "0x" digit "4"),                        \
		CLASS((number) + 2, "0x" digit "8"), CLASS((number) + 3, "0x" digit "c")
#define LEVEL(number)                                                                              \
	{ "qp_service_levels", #number, offsetof(struct class_gauges, service_level[number]), 1 }

const struct tally_row class_rows[] = {
	CLASSES("0", 0),  CLASSES("1", 4),  CLASSES("2", 8),  CLASSES("3", 12),
	CLASSES("4", 16), CLASSES("5", 20), CLASSES("6", 24), CLASSES("7", 28),
	CLASSES("8", 32), CLASSES("9", 36), CLASSES("a", 40), CLASSES("b", 44),
	CLASSES("c", 48), CLASSES("d", 52), CLASSES("e", 56), CLASSES("f", 60),
	LEVEL(0),  LEVEL(1),  LEVEL(2),	 LEVEL(3),  LEVEL(4),  LEVEL(5),  LEVEL(6),  LEVEL(7),
	LEVEL(8),  LEVEL(9),  LEVEL(10), LEVEL(11), LEVEL(12), LEVEL(13), LEVEL(14), LEVEL(15),
};
const unsigned class_count = sizeof(class_rows) / sizeof(class_rows[0]);

/* What a hostile process writes must not wrap around in the sums of others. */
static void word_add(uint64_t *sum, const uint64_t *one)
{
	if (__builtin_add_overflow(*sum, __atomic_load_n(one, __ATOMIC_RELAXED), sum))
		*sum = UINT64_MAX;
}

static void words_add(uint64_t *sum, const uint64_t *one, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*sum); i++)
		word_add(&sum[i], &one[i]);
}

void tallies_add(struct tallies *sum, const struct tallies *one)
{
	uint64_t *longest = &sum->counter[COUNTER_CQ_GAP_MAX_NS], before = *longest, other;

	words_add((uint64_t *)sum, (const uint64_t *)one, sizeof(*sum));
	other = __atomic_load_n(&one->counter[COUNTER_CQ_GAP_MAX_NS], __ATOMIC_RELAXED);
	*longest = other > before ? other : before;
}

void posted_add(struct posted *sum, const struct posted *one)
{
	struct posted now = { 0 };

	words_add((uint64_t *)&now, (const uint64_t *)one, sizeof(now));
	posted_fold(&now);
	words_add((uint64_t *)sum, (const uint64_t *)&now, sizeof(now));
}

void gauges_add(struct gauges *sum, const struct gauges *one)
{
	words_add((uint64_t *)sum, (const uint64_t *)one, offsetof(struct gauges, posted));
	posted_add(&sum->posted, &one->posted);
}
