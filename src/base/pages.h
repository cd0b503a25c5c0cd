/* SPDX-License-Identifier: MIT */
/*
 * The largest page of memory that a kernel of this processor may have: what is aligned to it is a
 * page of its own with each of them. Kernels for aarch64 have pages of 4, 16 or 64 KB.
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#ifdef __aarch64__
enum { PAGE_LARGEST = 65536 };
#else
enum { PAGE_LARGEST = 4096 };
#endif

#endif
