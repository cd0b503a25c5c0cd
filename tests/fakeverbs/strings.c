/* SPDX-License-Identifier: MIT */
/*
 * The helpers of libibverbs that touch no object: names of enumerators,
 * rates, and the sysfs leftovers.
 */
#include "fake_internal.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *look_up(const char *const names[], size_t n, int i)
{
	return i >= 0 && (size_t)i < n && names[i] ? names[i] : "unknown";
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	static const char *const names[] = {
		[IBV_NODE_CA] = "channel adapter", [IBV_NODE_SWITCH] = "switch",
		[IBV_NODE_ROUTER] = "router",	   [IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",	   [IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return look_up(names, COUNT(names), (int)type);
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "PORT_NOP",	   [IBV_PORT_DOWN] = "PORT_DOWN",
		[IBV_PORT_INIT] = "PORT_INIT",	   [IBV_PORT_ARMED] = "PORT_ARMED",
		[IBV_PORT_ACTIVE] = "PORT_ACTIVE", [IBV_PORT_ACTIVE_DEFER] = "PORT_ACTIVE_DEFER",
	};

	return look_up(names, COUNT(names), (int)state);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "QP fatal",
		[IBV_EVENT_QP_REQ_ERR] = "QP request error",
		[IBV_EVENT_QP_ACCESS_ERR] = "QP access error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "SQ drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration error",
		[IBV_EVENT_DEVICE_FATAL] = "device fatal",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID change",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
		[IBV_EVENT_SM_CHANGE] = "SM change",
		[IBV_EVENT_SRQ_ERR] = "SRQ error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
		[IBV_EVENT_GID_CHANGE] = "GID change",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal",
	};

	return look_up(names, COUNT(names), (int)event);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "flushed",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "retries exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retries exceeded",
		[IBV_WC_GENERAL_ERR] = "general error",
	};

	return look_up(names, COUNT(names), (int)status);
}

/* ---- rates ---- */

static const struct rate {
	enum ibv_rate rate;
	int mult, mbps;
} rates[] = {
	{ IBV_RATE_2_5_GBPS, 1, 2500 },	      { IBV_RATE_5_GBPS, 2, 5000 },
	{ IBV_RATE_10_GBPS, 4, 10000 },	      { IBV_RATE_20_GBPS, 8, 20000 },
	{ IBV_RATE_40_GBPS, 16, 40000 },      { IBV_RATE_25_GBPS, 10, 25781 },
	{ IBV_RATE_50_GBPS, 20, 53125 },      { IBV_RATE_100_GBPS, 40, 103125 },
	{ IBV_RATE_200_GBPS, 80, 206250 },    { IBV_RATE_400_GBPS, 160, 425000 },
	{ IBV_RATE_800_GBPS, 320, 850000 },
};

/* The first row that matches, or NULL; the arguments are its keys. */
#define RATE_WHERE(field, value)                              \
	({                                                    \
		const struct rate *_row = NULL;               \
		for (size_t _i = 0; _i < COUNT(rates); _i++)  \
			if (!_row && rates[_i].field == (value)) \
				_row = &rates[_i];            \
		_row;                                         \
	})

int ibv_rate_to_mult(enum ibv_rate rate)
{
	const struct rate *row = RATE_WHERE(rate, rate);

	return row ? row->mult : -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	const struct rate *row = RATE_WHERE(mult, mult);

	return row ? row->rate : IBV_RATE_MAX;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	const struct rate *row = RATE_WHERE(rate, rate);

	return row ? row->mbps : -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	const struct rate *row = RATE_WHERE(mbps, mbps);

	return row ? row->rate : IBV_RATE_MAX;
}

/* ---- sysfs ---- */

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	errno = ENOENT;
	return -1;
}
