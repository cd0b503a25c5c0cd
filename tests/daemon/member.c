/* SPDX-License-Identifier: MIT */
/* Guarded programs of the tests of leases; see member.h. */
#include "member.h"

#include <string.h>
#include <unistd.h>

struct fixture member_fixture(void)
{
	struct fixture fixture = { .devices = ibv_get_device_list(NULL) };
	struct waiting waiting = { .for_what = "opening the device", .file = __FILE__,
				   .line = __LINE__ };

	fixture_part(fixture.devices, "ibv_get_device_list");
	do {
		if (!fixture.context)
			fixture.context = ibv_open_device(fixture.devices[0]);
		if (fixture.context && !fixture.pd)
			fixture.pd = ibv_alloc_pd(fixture.context);
		if (fixture.pd && !fixture.cq)
			fixture.cq = ibv_create_cq(fixture.context, CQ_DEPTH, NULL, NULL, 0);
	} while (!fixture.cq && errno == EDQUOT && waiting_goes_on(&waiting));
	fixture_part(fixture.cq, "the device");
	return fixture;
}

void member_exactly(const char *argument)
{
	unsigned wanted = (unsigned)atoi(argument), made = 0;
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp[QPS_MAX];

	while (made < QPS_MAX && (qp[made] = qp_make(&fixture, IBV_QPT_RC)))
		made++;
	CHECK(made == wanted, "%u, not %u", made, wanted);
	word_add(WORD_READY, 1);
	if (strchr(argument, 'w')) /* to be killed */
		pause();
	while (made)
		ibv_destroy_qp(qp[--made]);
	fixture_close(&fixture);
}

void member_expect(const char *scenario, const char *settings)
{
	char all[512];

	snprintf(all, sizeof(all), "TRANSPORT=lease\nQUIET=1\n%s", settings);
	spawn(scenario, all);
	snprintf(all, sizeof(all), "TRANSPORT=socket\nQUIET=1\n%s", settings);
	spawn(scenario, all);
}
