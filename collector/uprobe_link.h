/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * uprobe_link.h - a uprobe without a perf event
 *
 * A uprobe is opened as a perf event as a rule.  That needs CAP_SYS_ADMIN since Linux
 * ba677dbe77af ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes") (v6.16, and stable
 * kernels); and it takes a lock that the end of another such event, another run's too, holds for
 * several grace periods.  A link of type uprobe_multi, since 6.6, wants CAP_BPF and CAP_PERFMON,
 * has no such lock, and ends in one; libbpf 1.1 does not know it, nor do the headers of that
 * time.  A program has to be loaded for the one or the other.
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

/* Does the kernel have such links? */
bool mt_uprobe_link_exists(void);

/* In all processes that map the file at path, now or later; offset: in the file. */
int mt_uprobe_link_create(int program_fd, const char *path, uint64_t offset);
