/* SPDX-License-Identifier: MIT */
/* Memory for programs that print and end: without it there is nothing left to do. */
#ifndef OUTPUT_MEMORY_H
#define OUTPUT_MEMORY_H

/* The pointer, unless it is NULL: then there is no memory, and the program ends with status 1. */
void *memory_need(void *pointer);

#endif
