/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * uprobe_link.c - see uprobe_link.h for the contract
 *
 * Invariants
 *   - What the kernel can do is tried, not told by its version: a program that does nothing
 *     is linked to "/", which is refused for what it is (EBADF) where such links exist.
 */
#include "collector/uprobe_link.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "base/cleanup.h"
#include "base/err.h"

#define LOADS_MAX 100

/* The link_create part of union bpf_attr, as of Linux 6.6. */
struct link_create {
	uint32_t program_fd;
	uint32_t spare0;
	uint32_t type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t reference_counter_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t probe_flags;
	uint32_t tgid; /* 0: all */
	uint32_t spare1;
};

_Static_assert(sizeof(struct link_create) == 64, "not the kernel's");

/* return 0 */
static int load_nothing(void)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int tries = 0;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = MT_UPROBE_LINK_TYPE;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uintptr_t) "GPL";
	do /* The verifier gives up when a signal comes. */
		fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	while (fd < 0 && errno == EAGAIN && ++tries < LOADS_MAX);
	return fd < 0 ? mt_neg_errno() : (int)fd;
}

bool mt_uprobe_link_exists(void)
{
	mt_cleanup(mt_closep) int program = -1;
	mt_cleanup(mt_closep) int link = -1;

	program = load_nothing();
	if (program < 0)
		return false;
	link = mt_uprobe_link_create(program, "/", 0);
	return link == -EBADF;
}

int mt_uprobe_link_create(int program_fd, const char *path, uint64_t offset)
{
	struct link_create attr = {
		.program_fd = (uint32_t)program_fd,
		.type = MT_UPROBE_LINK_TYPE,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.count = 1,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? mt_neg_errno() : (int)fd;
}
