/* SPDX-License-Identifier: MIT */
/* See bpf_helpers.h. */
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define BPF_KPROBE(name, ...) name(__VA_ARGS__)
#define BPF_KRETPROBE(name, ...) name(__VA_ARGS__)
