/* SPDX-License-Identifier: MIT */
/*
 * "/" and /metrics: what clients find that do not show the page, and what Prometheus reads; and
 * /api/kinds, which never changes.
 */
#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/metrics.h"
#include "dashboard/page.h"
#include "dashboard/state.h"
#include "terms/kinds.h"

void answer_index(struct dashboard *dashboard, const struct request *request, struct answer *answer)
{
	struct text text = { .data = NULL };

	text_add(&text, "rdma_dashboard " DASHBOARD_VERSION "\n\n");
	text_add(&text, page_files_count ?
				"/             the page, for browsers (clients that accept gzip)\n" :
				"This program was built without the page: expected npm at build time.\n\n");
	text_add(&text,
			"/metrics      numbers for Prometheus\n"
			"/api/state    collector, host, tenants, devices, processes and rules\n"
			"/api/tenant   one tenant, with its processes and devices; ?tenant=NAME\n"
			"/api/devices  devices, with the tenants on each\n"
			"/api/kinds    what is counted\n"
			"/api/events   what happened; ?since=2h\n"
			"/api/history  ?tenant=NAME&resource=KIND&since=2h&step=SECONDS\n"
			"/api/live     changes as they come (server-sent events)\n"
			"/api/advice   what to change; ?tenant=NAME\n"
			"/api/limits   POST: change limits; needs the token\n");
	answer->status = 200;
	answer->type = "text/plain; charset=utf-8";
	answer->body = body_make(&text);
}

void answer_metrics(struct dashboard *dashboard, const struct request *request,
		    struct answer *answer)
{
	enum metrics_format format = metrics_negotiate(request->accept);
	struct sample *sample = dashboard_sample(dashboard);

	answer->status = 200;
	answer->type = metrics_types[format];
	answer->body = metrics_of(sample, dashboard->feed, format);
	sample_release(sample);
}

void answer_kinds(struct dashboard *dashboard, const struct request *request, struct answer *answer)
{
	struct text text = { .data = NULL };

	text_add(&text, "{\"kinds\":[");
	for (unsigned i = 0; i < KIND_COUNT; i++) {
		state_next(&text);
		text_print(&text, "{\"name\":\"%s\",\"unit\":\"%s\",\"meaning\":\"%s\"}",
			   kind_rows[i].name, kind_rows[i].unit == UNIT_BYTES ? "bytes" : "count",
			   kind_rows[i].text);
	}
	text_add(&text, "]}\n");
	answer_json(answer, 200, &text);
}
