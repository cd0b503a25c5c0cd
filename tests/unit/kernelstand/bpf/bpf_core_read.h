/* SPDX-License-Identifier: MIT */
/* See bpf_helpers.h. */
#include <stddef.h>

#define CORE_READ_1(from, member) ((from)->member)
#define CORE_READ_2(from, first, second) ((from)->first->second)
#define CORE_READ_3(from, first, second, third) ((from)->first->second->third)
#define CORE_READ_CHOOSE(from, first, second, third, macro, ...) macro
#define BPF_CORE_READ(...)                                                                         \
	CORE_READ_CHOOSE(__VA_ARGS__, CORE_READ_3, CORE_READ_2, CORE_READ_1, 0)(__VA_ARGS__)
#define bpf_core_field_offset(type, member) offsetof(type, member)
