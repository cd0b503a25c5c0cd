/* SPDX-License-Identifier: MIT */
/* The table of a build that has no page. */
#include "dashboard/page.h"

const struct page_file page_files[] = { { .path = NULL } };
const unsigned page_files_count = 0;
