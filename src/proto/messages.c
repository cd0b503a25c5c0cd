/* SPDX-License-Identifier: MIT */
/* The table of messages, and what a header must say; see messages.h. */
#include "proto/messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { HOW_ONE, HOW_ROWS };

const struct proto_message proto_messages[] = {
#define MESSAGE(name, number, request, reply, who, how)                                            \
	{ #name, number, ACCESS_##who, HOW_##how == HOW_ROWS, sizeof(struct proto_##request),      \
	  sizeof(struct proto_##reply) },
#include "proto/messages.def"
#undef MESSAGE
};

const unsigned proto_messages_count = sizeof(proto_messages) / sizeof(proto_messages[0]);

const struct proto_message *proto_message(unsigned type)
{
	for (unsigned i = 0; i < proto_messages_count; i++)
		if (proto_messages[i].type == type)
			return &proto_messages[i];
	return NULL;
}

static const struct {
	unsigned version, type;
	struct proto_bodies bodies;
} former_messages[] = {
#define FORMER(version, name, request, reply) { version, MESSAGE_##name, { request, reply } },
#include "proto/former.def"
#undef FORMER
};

#define FORMER(version, name, request, reply)                                                      \
	_Static_assert((version) < PROTO_VERSION, "a former version of " #name);
#include "proto/former.def"
#undef FORMER

bool proto_bodies(unsigned type, unsigned version, struct proto_bodies *ret_bodies)
{
	const struct proto_message *message = proto_message(type);

	if (message && version == PROTO_VERSION) {
		*ret_bodies = (struct proto_bodies){ message->request, message->reply };
		return true;
	}
	for (unsigned i = 0; i < sizeof(former_messages) / sizeof(former_messages[0]); i++)
		if (former_messages[i].type == type && former_messages[i].version == version) {
			*ret_bodies = former_messages[i].bodies;
			return true;
		}
	return false;
}

struct proto_header proto_header(enum message type, int status, size_t body)
{
	return (struct proto_header){
		.magic = PROTO_MAGIC,
		.version = PROTO_VERSION,
		.type = (uint16_t)type,
		.length = (uint32_t)(sizeof(struct proto_header) + body),
		.status = status,
		.kinds = kinds_signature(),
	};
}

static bool proto_speaks(const struct proto_header *header)
{
	struct proto_bodies bodies;

	return header->version == PROTO_VERSION ||
	       proto_bodies(header->type, header->version, &bodies);
}

bool proto_is_foreign(const struct proto_header *header)
{
	return header->magic == PROTO_MAGIC &&
	       (!proto_speaks(header) || header->kinds != kinds_signature());
}

int proto_check(const struct proto_header *header, size_t most, char problem[PROBLEM_SIZE])
{
	if (header->magic != PROTO_MAGIC)
		return problem_set(-EPROTO, problem,
				   "an invalid message: it begins with 0x%08" PRIx32
				   " instead of 0x%08x",
				   header->magic, PROTO_MAGIC);
	if (!proto_speaks(header))
		return problem_set(-EPROTO, problem,
				   "a message of protocol version %u; this side speaks version %d",
				   (unsigned)header->version, PROTO_VERSION);
	if (header->kinds != kinds_signature())
		return problem_set(-EPROTO, problem,
				   "a message of another table of kinds, 0x%016" PRIx64
				   "; this side has 0x%016" PRIx64,
				   header->kinds, kinds_signature());
	if (!proto_message(header->type))
		return problem_set(-EPROTO, problem, "a message of unknown type %u",
				   (unsigned)header->type);
	if (header->length < sizeof(*header) || header->length > most)
		return problem_set(-EPROTO, problem,
				   "a message of %" PRIu32 " bytes: expected %zu to %zu",
				   header->length, sizeof(*header), most);
	return 0;
}
