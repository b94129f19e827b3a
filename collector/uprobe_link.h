/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * uprobe_link.h - a uprobe for whoever has CAP_BPF and CAP_PERFMON, but not CAP_SYS_ADMIN
 *
 * A uprobe is opened as a perf event as a rule, which needs CAP_SYS_ADMIN since Linux
 * ba677dbe77af ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes") (v6.16, and stable
 * kernels).  A link of type uprobe_multi, since 6.6, does not; libbpf 1.1 does not know it,
 * nor do the headers of that time.  A program has to be loaded for the one or the other.
 *
 * Contract
 *   Ownership: mt_uprobe_link_create() returns a descriptor; the probe ends when it is
 *              closed, which waits for those that are in it.
 *   Errors:    negative errno of bpf(2)
 *   Threads:   any
 */
#include <stdbool.h>
#include <stdint.h>

/* The program's expected_attach_type, BPF_TRACE_UPROBE_MULTI. */
#define MT_UPROBE_LINK_TYPE 48

/* Does this process need such a link, and does the kernel have it? */
bool mt_uprobe_link_wanted(void);

/* In all processes that map the file at path, now or later; offset: in the file. */
int mt_uprobe_link_create(int program_fd, const char *path, uint64_t offset);
