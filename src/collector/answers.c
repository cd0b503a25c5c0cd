/* SPDX-License-Identifier: MIT */
/* Who answers which message, and who may ask; see answers.h. */
#include "collector/answers.h"

#include <errno.h>

struct proto_choose request_choice(const struct request *request)
{
	struct proto_choose choose = *(const struct proto_choose *)request->body;

	proto_text(choose.tenant);
	proto_text(choose.device);
	return choose;
}

bool request_is_admin(const struct collector *collector, const struct request *request)
{
	const struct policy *policy = collector->effective;

	return server_is_admin(request, policy->admin_group.name[0] ? &policy->admin_group.gid : NULL);
}

void answer(void *closure, const struct request *request)
{
	struct collector *collector = closure;

	/* Who has just ended must not count any more for those that ask now. */
	collector_dispatch(collector);
	if (request->message->access == ACCESS_ADMIN && !request_is_admin(collector, request)) {
		server_fail(
			request, -EPERM,
			"not permitted: expected root, the collector's own user or a member of its "
			"admin_group");
		return;
	}
	switch ((enum message)request->message->type) {
#define MESSAGE(name, number, request_body, reply_body, who, how)                                  \
	case MESSAGE_##name:                                                                       \
		answer_##name(collector, request);                                                 \
		break;
#include "proto/messages.def"
#undef MESSAGE
	}
}
