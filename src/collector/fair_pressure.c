/* SPDX-License-Identifier: MIT */
/* Pressure; see fair_pressure.h. */
#include "collector/fair_pressure.h"

#include "terms/terms.h"

static bool load_reaches(const struct fair_load *load, unsigned percent)
{
	return (unsigned __int128)load->used * 100 >= (unsigned __int128)load->capacity * percent;
}

struct fair_pressure fair_pressure_next(struct fair_pressure last, const struct fair_load *load)
{
	struct fair_pressure next = last;
	unsigned end = load->percent >= 2 * FAIR_PRESSURE_MARGIN ?
			       load->percent - FAIR_PRESSURE_MARGIN :
			       load->percent / 2;

	if (load->capacity == UNLIMITED)
		return (struct fair_pressure){ .on = false };
	if (load->unmet) {
		next.unmet = true;
		next.unmet_ns = load->now_ns;
	} else if (load->now_ns - last.unmet_ns >= FAIR_UNMET_NS) {
		next.unmet = false;
	}
	next.on = next.unmet || load_reaches(load, last.on ? end : load->percent);
	return next;
}
