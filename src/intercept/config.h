/* SPDX-License-Identifier: MIT */
/*
 * What the environment asks of the library. Reading it has no effect on the
 * world; a bad value is reported to the caller and its default is used.
 */
#ifndef INTERCEPT_CONFIG_H
#define INTERCEPT_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log.h"
#include "ledger/ledger.h"
#include "terms/rates.h"
#include "terms/variables.h"

#define CONFIG_PREFIX VARIABLES_PREFIX
#define CONFIG_SOCKET "RDMA_COLLECTOR_SOCKET"

enum { CONFIG_NAME_MAX = 240, CONFIG_COMPLAINTS = 4, CONFIG_COMPLAINT = 400, CONFIG_IDLE = 160 };

struct config {
	bool enable;
	bool fail_closed;
	bool quiet;
	enum mode mode;
	int deny_errno;
	enum log_level log_level;
	const char *log_path; /* in the environment; NULL = the default */
	enum transport transport;
	const char *socket; /* of the collector, in the environment; NULL = the usual ones */
	char shm_name[CONFIG_NAME_MAX];
	mode_t shm_mode;
	bool shm_mode_chosen;
	struct ledger_limits limits;
	uint64_t process_listed, host_listed; /* bit k: RDMA_INTERCEPT_LIMITS has it */
	bool process_qp_is_old; /* RDMA_INTERCEPT_MAX_QP has it */
	struct config_rates {
		bool any;
		enum rate_action action;
		uint64_t max_delay_ns;
		struct rate rate[RATE_CLASSES]; /* of this process */
	} rates;
	struct pace_rate pace_bytes, pace_operations; /* of this process on each device */
	char idle[CONFIG_IDLE]; /* variables without effect, since QP control is switched off; "" */
	unsigned complaints; /* bad values met; the first few in words: */
	char complaint[CONFIG_COMPLAINTS][CONFIG_COMPLAINT];
};

typedef const char *config_lookup(const char *name);

/* lookup is getenv or a stand-in; it gets full variable names. */
void config_read(struct config *config, config_lookup *lookup);

/* The variable that set a limit of the process, the host or a device; NULL: none did. */
const char *config_limit_variable(const struct config *config, enum limit_scope scope,
				  enum kind kind);

/* Whether the environment has a limit of any scope. */
bool config_has_limits(const struct config *config);

/* Names and allowed values of all settings, for tests and documents. */
struct config_setting {
	const char *name;
	const char *allowed;
};
extern const struct config_setting config_settings[];
extern const unsigned config_settings_count;

#endif
