/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the reply to any request: an answer of the table's shape, or a
 * failure with a sentence. What the client does after connecting is reached over
 * a pair of sockets.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/call.h"

enum { STREAM_MOST = 32768, ERRNO_MOST = 4095 };

static int row_count(const void *row, void *closure)
{
	unsigned *count = closure;

	++*count;
	return 0;
}

/*
 * Takes the data as headers, and gives each the marks that no chance would find and a
 * body of one repeated byte. Fields that are overwritten say how: odd versions stand for
 * lengths that lie, and the magic is the byte.
 */
static size_t messages_make(const struct proto_message *request, const unsigned char *data,
			    size_t size, unsigned char *ret_stream)
{
	struct proto_header header, good;
	size_t used = 0, body;

	for (; size >= sizeof(header); data += sizeof(header), size -= sizeof(header)) {
		memcpy(&header, data, sizeof(header));
		body = request->rows && header.status == 0 ? 0 : request->reply;
		if (header.status < 0)
			body = header.length % (PROTO_TEXT + 1);
		good = proto_header(request->type, header.status, body);
		if (header.version & 1)
			good.length = header.length;
		if (used + sizeof(good) + body > STREAM_MOST)
			break;
		memcpy(ret_stream + used, &good, sizeof(good));
		memset(ret_stream + used + sizeof(good), data[0], body);
		used += sizeof(good) + body;
	}
	return used;
}

/* The first byte chooses the request, the second whether the rest is bytes or headers. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static unsigned char stream[STREAM_MOST];
	static char problem[PROBLEM_SIZE];
	unsigned count = 0;
	struct call call = {
		.path = "/a/path", .each = row_count, .closure = &count, .problem = problem
	};
	int ends[2], result;

	if (size < 2 || size - 2 > sizeof(stream))
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		abort();
	call.connection = ends[0];
	call.message = &proto_messages[data[0] % proto_messages_count];
	size -= 2;
	if (data[1] & 1)
		size = messages_make(call.message, data + 2, size, stream);
	else
		memcpy(stream, data + 2, size);
	if (size && write(ends[1], stream, size) != (ssize_t)size)
		abort();
	close(ends[1]);
	problem[0] = '\0';
	result = reply_receive(&call);
	if (result > 0 || result < -ERRNO_MOST || (result < 0 && !problem[0]) ||
	    (count && !call.message->rows))
		abort();
	call_close(&call);
	return 0;
}
