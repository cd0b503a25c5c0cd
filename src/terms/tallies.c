/* SPDX-License-Identifier: MIT */
/* The names of counters and gauges; see tallies.h. */
#include "terms/tallies.h"

#define COUNTER(number, name) { "completion_events", name, offsetof(struct tallies, counter[number]) }
#define CM(number, name) { "connection_events", name, offsetof(struct tallies, cm_event[number]) }
#define TYPE(number, name) { "qp_types", name, offsetof(struct gauges, qp_type[number]) }
#define STATE(number, name) { "qp_states", name, offsetof(struct gauges, qp_state[number]) }
#define PORT(number, name) { "qp_ports", name, offsetof(struct gauges, qp_port[number]) }

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
};
const unsigned tally_count = sizeof(tally_rows) / sizeof(tally_rows[0]);

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
};
const unsigned gauge_count = sizeof(gauge_rows) / sizeof(gauge_rows[0]);
