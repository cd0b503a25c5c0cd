/* SPDX-License-Identifier: MIT */
/* Variables without effect; see notices.h. */
#include "intercept/notices.h"

#include <stdlib.h>
#include <unistd.h>

#include "intercept/library.h"
#include "terms/variables.h"

enum { NOTICES_MOST = 16 }; /* unknown variables that are named */

/* Not part of the state that fork wipes: a child has the environment of its parent. */
static bool settings_said, transport_said;

static bool notices_begin(bool *said)
{
	return !__atomic_exchange_n(said, true, __ATOMIC_RELAXED);
}

/* As the settings are read: nothing is set in a program with raised privileges. */
static bool is_set(const char *name)
{
	return secure_getenv(name) != NULL;
}

void notices_of_settings(const struct library *library)
{
	char text[VARIABLE_TEXT];
	unsigned named = 0;

	if (!notices_begin(&settings_said))
		return;
	if (library->config.idle[0])
		log_write(&library->log, LOG_WARN, "%s: no effect, since %sENABLE_QP_CONTROL is 0",
			  library->config.idle, CONFIG_PREFIX);
	for (char **entry = environ; entry && *entry && named < NOTICES_MOST; entry++)
		if (variable_is_unknown(*entry, text)) {
			log_write(&library->log, LOG_WARN, "%s", text);
			named++;
		}
}

void notices_of_transport(const struct library *library)
{
	static const char *const of_embedded[] = { CONFIG_PREFIX "SHM_NAME", CONFIG_PREFIX "SHM_MODE" };

	if (!notices_begin(&transport_said))
		return;
	if (ledger_transport(&library->ledger) == TRANSPORT_EMBEDDED) {
		if (library->config.transport == TRANSPORT_EMBEDDED && is_set(CONFIG_SOCKET))
			log_write(&library->log, LOG_WARN,
				  "%s: no effect, since %sTRANSPORT is embedded", CONFIG_SOCKET,
				  CONFIG_PREFIX);
		return;
	}
	for (unsigned i = 0; i < sizeof(of_embedded) / sizeof(of_embedded[0]); i++)
		if (is_set(of_embedded[i]))
			log_write(&library->log, LOG_WARN,
				  "%s: no effect, since the collector counts for this process",
				  of_embedded[i]);
	if (is_set(CONFIG_PREFIX "MODE") && !config_has_limits(&library->config))
		log_write(&library->log, LOG_WARN,
			  "%sMODE: no effect: it is for limits of the environment, which has none; "
			  "limits of the policy have the mode of tenant %s, %s",
			  CONFIG_PREFIX, ledger_tenant(&library->ledger),
			  mode_names[ledger_mode(&library->ledger)]);
}
