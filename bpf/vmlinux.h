/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once
/*
 * vmlinux.h - the kernel types and fields that the programs look into, and no others
 *
 * Each access is relocated by CO-RE against the running kernel's BTF when the object is
 * loaded; the offsets here mean nothing.  A generated vmlinux.h would be 3 MB that differ
 * between any two build machines, would need /sys/kernel/btf at build time, and would let a
 * program come to depend on a field without anybody seeing it in review.
 *
 * A field that other kernels name otherwise gets a flavour: a second struct with a suffix
 * ___old or ___new, chosen by bpf_core_field_exists(), and a comment that names the commit.
 *
 * struct pt_regs is the one of <linux/ptrace.h>: a uprobe's context has that layout, and is
 * part of the kernel's ABI.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;
struct completion;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not come to do_exit() */
};

struct task_struct {
	struct mm_struct *mm;
	int exit_code;
	int pid; /* that is, the tid */
	int tgid;
	struct task_struct *real_parent; /* of a fork: the thread that called it */
	struct completion *vfork_done;	 /* not NULL while a vfork parent waits for this task */
	__u64 start_time;		 /* CLOCK_MONOTONIC ns */
	char comm[16];
	struct signal_struct *signal;
};

struct linux_binprm {
	const char *filename;
};

#pragma clang attribute pop
