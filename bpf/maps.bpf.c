/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps.bpf.c - definitions for maps.bpf.h, and nothing else
 */
#include "bpf/maps.bpf.h"

const volatile __u32 budget_bytes = MT_BUDGET_DEFAULT_BYTES;
const volatile __u64 cookie = 0;
const volatile __u32 raw = 0;
const volatile __u32 measured = 0;
const volatile __u64 watermark_bytes = 0;
const volatile __u64 life_watermark_bytes = 0;
const volatile __u64 wakeup_bytes = 0;

struct control_map control SEC(".maps");
struct references_map references SEC(".maps");
struct scratches_map scratches SEC(".maps");
struct owners_map owners SEC(".maps");
struct stacks_map stacks SEC(".maps");
struct life_map life SEC(".maps");
struct members_map members SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
