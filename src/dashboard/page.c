/* SPDX-License-Identifier: MIT */
/* Which file of the page a request gets; see page.h. */
#include "dashboard/page.h"

#include <string.h>

#include "dashboard/request.h"

static const struct page_file *page_find(const char *path)
{
	for (unsigned i = 0; i < page_files_count; i++)
		if (!strcmp(page_files[i].path, path))
			return &page_files[i];
	return NULL;
}

bool page_answer(const struct request *request, struct answer *ret_answer)
{
	const struct page_file *file = page_find(request->path);
	bool takes_gzip = request->accept_encoding && strstr(request->accept_encoding, "gzip");

	if (!file || (!takes_gzip && !strcmp(request->path, "/")))
		return false;
	if (!takes_gzip) {
		answer_fail(ret_answer, 406, "Accept-Encoding: expected gzip");
		return true;
	}
	ret_answer->file = file;
	ret_answer->type = file->type;
	ret_answer->status =
		request->if_none_match && strstr(request->if_none_match, file->etag) ? 304 : 200;
	return true;
}
