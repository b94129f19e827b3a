/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * life.h - what became of the processes of a run: exec, exit
 *
 * Written by:  bpf/life.bpf.c, to the BPF ring "life"; for members of the run only
 * Read by:     collector/pipeline.c
 *
 * A fork has no record: the child shakes hands, or is found by what it executes; that it is a
 * member too, the kernel part sees to by itself.
 *
 * tgid and tid are the kernel's, of the root PID namespace.  Times are CLOCK_MONOTONIC ns
 * of the root time namespace.  Strings end with a NUL; a file name that does not fit is cut.
 */
#include <linux/types.h>

/* 1 was a fork. */
#define MT_LIFE_EXEC 2 /* struct mt_life_exec: tgid runs another image */
#define MT_LIFE_EXIT 3 /* struct mt_life_exit: a thread ended, or with it its process */

#define MT_LIFE_COMM_BYTES 16
#define MT_LIFE_FILENAME_BYTES 256

struct mt_life_head {
	__u32 len;  /* of the record in bytes; a multiple of 8 */
	__u32 type; /* MT_LIFE_* */
	__u64 time_ns;
	__u32 tgid;
	__u32 tid; /* of whoever did it */
};

struct mt_life_exec {
	struct mt_life_head head;
	__u8 comm[MT_LIFE_COMM_BYTES];
	__u8 filename[MT_LIFE_FILENAME_BYTES]; /* as it was given to execve(2) */
};

struct mt_life_exit {
	struct mt_life_head head;
	__u32 exit_code;	       /* as wait(2) gives it: status << 8 | signal */
	__u32 group_dead;	       /* 1: no thread of the process is left */
	__u8 comm[MT_LIFE_COMM_BYTES]; /* the thread's last name */
};

_Static_assert(sizeof(struct mt_life_head) == 24, "struct mt_life_head changed size");
_Static_assert(sizeof(struct mt_life_exec) == 296, "struct mt_life_exec changed size");
_Static_assert(sizeof(struct mt_life_exit) == 48, "struct mt_life_exit changed size");
