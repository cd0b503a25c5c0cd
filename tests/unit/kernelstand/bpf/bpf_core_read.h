/* SPDX-License-Identifier: MIT */
/* See bpf_helpers.h. */
#define BPF_CORE_READ(from, member) ((from)->member)
