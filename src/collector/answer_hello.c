/* SPDX-License-Identifier: MIT */
/* HELLO: a process registers. */
#include "collector/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/control.h"
#include "collector/shares.h"
#include "collector/subject.h"

void answer_HELLO(struct collector *collector, const struct request *request)
{
	const struct proto_hello *hello = request->body;
	struct books *books = &collector->books;
	struct proto_welcome welcome = { 0 };
	struct subject subject;
	struct peer peer;
	const char *share = NULL;
	int tenant, member, fds[2], result = peer_identify(request->fd, request->start, &peer);

	if (result < 0) {
		server_fail(request, result, "process %d cannot be identified: %s",
			    (int)request->pid,
			    result == -EXDEV ?
				    "it is in a pid namespace that the collector does not see" :
				    strerror(-result));
		return;
	}
	subject_of_peer(&subject, collector->pods, request->fd, peer.pid, peer.uid, peer.gid);
	tenant = control_tenant_of(collector, &subject, &share);
	if (tenant >= 0) {
		snprintf(welcome.tenant, sizeof(welcome.tenant), "%s",
			 books->file->tenant[tenant].name);
		share = share_refuse_member(books, peer.uid, (unsigned)tenant);
	}
	if (!share && tenant >= 0)
		share = share_refuse_lease(books, peer.uid, (unsigned)tenant);
	if (tenant < 0)
		member = tenant;
	else if (share)
		member = -EUSERS;
	else
		member = members_join(&collector->members, &peer, (unsigned)tenant, hello, -1,
				      &fds[0]);
	if (member < 0) {
		close(peer.pidfd);
		server_fail(request, member, "process %d of uid %u cannot be registered: %s",
			    (int)peer.pid, (unsigned)peer.uid, share ? share : strerror(-member));
		return;
	}
	rates_join(collector, (unsigned)member);
	welcome.cookie = books->file->member[member].cookie;
	welcome.mode = books->tenant[tenant]->table->mode;
	welcome.settings = books->tenant[tenant]->table->settings;
	welcome.flags = WELCOME_STAYS;
	fds[1] = books->tenant[tenant]->table_read_fd;
	server_reply(request, 0, &welcome, fds, fds[0] < 0 ? 0 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
	books->member[member].lifeline = server_keep(request);
	collector_member_event(collector, (unsigned)member, EVENT_JOINED);
	fairness_wake(collector);
	collector_dispatch(collector); /* before exec it may have left an orphan, to be looked at */
}
