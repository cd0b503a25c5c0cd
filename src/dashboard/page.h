/* SPDX-License-Identifier: MIT */
/*
 * The page: files of web/, bundled and compressed by the build, which makes the table of them. A
 * build without npm has none (page_absent.c).
 */
#ifndef DASHBOARD_PAGE_H
#define DASHBOARD_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct answer;
struct request;

struct page_file {
	const char *path;
	const char *type;
	const char *etag; /* with its quotation marks */
	const unsigned char *data; /* compressed by gzip */
	size_t length;
};

extern const struct page_file page_files[];
extern const unsigned page_files_count;

/* Answers with the file of that path; false if there is no such file. "/" of a client that does not take
 * gzip is answered by answer_index, for people who ask with curl. */
bool page_answer(const struct request *request, struct answer *ret_answer);

#endif
