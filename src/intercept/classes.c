/* SPDX-License-Identifier: MIT */
/* Classes of service in address vectors; see classes.h. */
#include "intercept/classes.h"

/* What a packet over InfiniBand has without a global header is its service level alone. */
void class_address_set(struct ibv_ah_attr *address, uint64_t classes, const char *verb)
{
	uint8_t class = class_apply(classes_traffic_class(classes), address->grh.traffic_class);
	uint8_t level = class_apply(classes_service_level(classes), address->sl);

	if (address->is_global && class != address->grh.traffic_class) {
		log_write(&library_state.log, LOG_DEBUG,
			  "%s: traffic class 0x%02x, and not 0x%02x as the program asked, by the "
			  "policy of tenant %s",
			  verb, class, address->grh.traffic_class,
			  ledger_tenant(&library_state.ledger));
		address->grh.traffic_class = class;
	}
	if (level != address->sl)
		log_write(&library_state.log, LOG_DEBUG,
			  "%s: service level %u, and not %u as the program asked, by the policy of "
			  "tenant %s",
			  verb, level, address->sl, ledger_tenant(&library_state.ledger));
	address->sl = level;
}
