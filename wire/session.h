/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * session.h - the hand-shake between a process and the run's collector
 *
 * The shim connects to the collector's SOCK_SEQPACKET socket, sends a struct mt_hello and
 * receives a struct mt_welcome, with the descriptors to map in an SCM_RIGHTS message.
 * Where: the environment's MEMTRACK_RUN is "COOKIE:NAME:PATH", two numbers of 16 hex digits
 * and the socket's path; if the path can not be reached (another root), the abstract name
 * "memtrack-NAME".  No MEMTRACK_RUN: the shim does nothing.
 *
 * The collector checks the cookie, not the user: a tracked program may change its user
 * before it starts another.  So nobody else may know it; but everybody can read abstract
 * names, in /proc/net/unix: NAME is a number that tells nothing of the cookie.  The shim
 * closes what it was given once that is mapped.
 */
#include <linux/types.h>

#define MT_RUN_VARIABLE "MEMTRACK_RUN"
#define MT_RUN_DIGITS 16 /* of COOKIE and of NAME */
#define MT_ABSTRACT_PREFIX "memtrack-"
#define MT_HELLO_MAGIC 0x6f6c6c6568746d01ULL

#define MT_HELLO_START 1  /* a new image: a process number and a chunk */
#define MT_HELLO_CHUNK 2  /* another chunk for process_id */
#define MT_HELLO_INLINE 3 /* as CHUNK, of slots that capture inline: the probe is not there */

struct mt_hello {
	__u64 magic;
	__u32 version; /* MT_WIRE_VERSION */
	__u32 what;    /* MT_HELLO_* */
	__u64 cookie;
	__u64 process_id; /* 0 for START */
	/* Of START: what CLOCK_MONOTONIC of the sender, who may be in a time namespace, is behind
	 * CLOCK_REALTIME, which is the same everywhere; 0: not known. */
	__u64 behind_wall_ns;
	__u32 pid; /* as the sender sees itself */
	__u32 tid;
	char exe[464]; /* path of the executable, NUL-terminated; may be cut */
};

/* The descriptors in a welcome, in this order. */
#define MT_FD_CONTROL 0	   /* struct mt_control at offset 0 */
#define MT_FD_RINGS 1	   /* the gate at 0, the chunk at rings_offset */
#define MT_FD_REFERENCES 2 /* at references_offset, references_stride for each slot */
#define MT_FD_LEARNED 3	   /* at learned_offset, learned_bytes; read-only */
#define MT_FDS 4	   /* less what has a stride of 0: the last, or the last two */

struct mt_welcome {
	__u64 magic;   /* MT_HELLO_MAGIC */
	__u32 version; /* the collector's */
	__s32 error;   /* 0, or an errno: no slots left, wrong version; nothing is mapped then */
	__u32 capture; /* MT_CAPTURE_* of this chunk: says how references are mapped */
	__u32 ring_bytes;
	__u64 process_id;
	__u32 first_slot; /* a multiple of MT_CHUNK_SLOTS */
	__u32 budget_bytes;
	__u64 references_offset;
	__u64 references_stride;
	__u64 scratch_offset; /* in each stride; 0: the slot has none (BPF has its own) */
	__u64 rings_offset;   /* mt_chunk_offset() */
	__u64 learned_offset;
	__u64 learned_bytes; /* MT_LEARNED_BYTES; 0: nothing is learned */
	/* To START: what the process adds to its clock for ours, and so does its fork's child, in
	 * whatever time namespace that is. */
	__s64 clock_offset_ns;
};

/* How many descriptors come with a welcome without an error. */
static inline int mt_welcome_fds(const struct mt_welcome *welcome)
{
	return MT_FDS - !welcome->references_stride - !welcome->learned_bytes;
}

_Static_assert(sizeof(struct mt_hello) == 512, "struct mt_hello changed size");
_Static_assert(sizeof(struct mt_welcome) == 96, "struct mt_welcome changed size");
