/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * format.h - what an artifact says, as structs; doc/FORMAT.md is the specification
 *
 * An artifact (NAME.mtk) is a sequence of independent zstd frames of msgpack objects, a
 * header first, a footer last.  Ids are small integers that the writer's user counts up
 * from the value given here; a record comes before the first that names it.
 *
 * Times are CLOCK_MONOTONIC ns of the machine that recorded (the header says what that was
 * in wall-clock time).
 *
 *   module   a file with code, by path and build-id; ids from 0
 *   symbols  a module's functions, where its file is not likely to be found later
 *   node     of the call tree: the chain that ends in it is its own frame, then its
 *            parent's chain.  Ids below MT_NODE_FIRST are the roots, one for each reason
 *            why a chain ended.
 *   process  an image: exec makes a new one; ids from 1 (0: none)
 *   thread   ids from 1
 *   mappings what code lay where in a process for a time; ids from 0
 *   event    what a thread did, in the order that is right for each address of a process
 */
#include <stddef.h>
#include <stdint.h>

#define MT_FORMAT_VERSION 1

/* Why a chain ended: the root nodes.  Only END is a whole chain. */
enum mt_stop {
	MT_STOP_NONE,	   /* no stack was captured for this event */
	MT_STOP_END,	   /* the outermost frame: main's caller's start, a thread's start */
	MT_STOP_TRUNCATED, /* the window ended first */
	MT_STOP_NO_CFI,	   /* code without unwind information or frame pointer */
	MT_STOP_NO_MODULE, /* an address in no module that is known */
	MT_STOP_BAD,	   /* unwind information and stack contradict each other */
	MT_STOP_DEPTH,	   /* more frames than are kept */
	MT_STOP_BOOTSTRAP, /* made before the shim was ready */
	MT_STOP_LOST,	   /* the stack record was lost or did not verify */
	_MT_STOP_MAX,
};

#define MT_NODE_FIRST 16

enum mt_event_type {
	MT_EVENT_NONE, /* never in a file */
	MT_EVENT_ALLOC,
	MT_EVENT_FREE,
	MT_EVENT_REALLOC_BEGIN,	 /* address: the old block, freed tentatively */
	MT_EVENT_REALLOC_END,	 /* address: the new block */
	MT_EVENT_REALLOC_FAILED, /* the last REALLOC_BEGIN of the thread did not happen */
	MT_EVENT_REALLOC_FREED,	 /* freed, and nothing allocated by it: realloc(p, 0) */
	_MT_EVENT_MAX,
};

struct mt_event {
	uint64_t time_ns;
	uint64_t address; /* 0 for REALLOC_FAILED and REALLOC_FREED */
	uint64_t size;	  /* asked for; 0 for FREE, REALLOC_BEGIN, _FAILED, _FREED */
	uint32_t thread;
	uint32_t node;	  /* ALLOC, REALLOC_END; else 0 */
	uint8_t type;	  /* enum mt_event_type */
	uint8_t function; /* MT_FN_*, wire/functions.h */
	uint8_t spare[6];
};

struct mt_header {
	uint64_t start_ns;
	uint64_t wall_ns; /* CLOCK_REALTIME at start_ns */
	uint32_t capture; /* MT_CAPTURE_*, wire/control.h */
	uint32_t budget_bytes;
	const char *machine;	 /* "x86_64" */
	const char *program;	 /* the version that wrote it, "memtrack 0.1.0" */
	const char *const *argv; /* the command, NULL-terminated */
};

struct mt_module {
	uint32_t id;
	uint32_t flags;	  /* MT_MODULE_MAIN, MT_MODULE_VDSO of wire/ring.h */
	const char *path; /* bytes as the target has them, not always UTF-8 */
	const uint8_t *build_id;
	uint32_t build_id_bytes;
};

/* A function, as the symbol table of its module has it. */
struct mt_symbol {
	uint64_t offset;  /* ELF virtual address, as a node's */
	uint64_t bytes;	  /* 0: not known */
	const char *name; /* as the linker has it, any bytes */
	uint32_t info;	  /* st_info: binding and type */
	uint32_t spare;
};

/* Some of a module's functions, or the last of them; in any order. */
struct mt_module_symbols {
	uint32_t module;
	uint32_t len;	   /* MT_SYMBOLS_LEN at most */
	uint64_t left_out; /* functions that are in none of the module's records */
	const struct mt_symbol *symbols;
};

#define MT_SYMBOLS_LEN 2048

struct mt_node {
	uint32_t id;
	uint32_t parent; /* a smaller id */
	uint32_t module; /* UINT32_MAX: offset is a run-time address in no module */
	uint64_t offset; /* ELF virtual address of the return address; a look-up of the call
			  * takes offset - 1, or offset itself where exact is set */
	uint8_t exact;	 /* the frame below is a signal frame: offset is the instruction */
};

struct mt_process {
	uint32_t id;
	uint32_t parent; /* process id, 0: not known */
	uint32_t tgid;
	uint32_t how; /* MT_PROCESS_START or MT_PROCESS_FORK of wire/ring.h */
	uint64_t start_ns;
	const char *exe;
	const char *name; /* the kernel's comm, any bytes */
};

struct mt_process_end {
	uint32_t id;
	uint64_t end_ns;
	int32_t status; /* as wait(2) gives it; -1: not known, or exec followed */
};

struct mt_thread_info {
	uint32_t id;
	uint32_t process;
	uint32_t tid;
	uint64_t start_ns;
	const char *name; /* any bytes; a later record of the same id corrects it */
};

/* A process of the run, or a part of one, whose allocations are not in the artifact. */
struct mt_not_tracked {
	uint32_t tgid;
	const char *what;   /* command or module */
	const char *reason; /* in words */
};

/* The mapping's module was found: its unwind information was used. */
#define MT_MAPPING_FOUND 1

struct mt_mapping {
	uint64_t start, end; /* run-time addresses */
	uint64_t bias;	     /* run-time address - ELF virtual address */
	uint32_t module;
	uint32_t flags; /* MT_MAPPING_FOUND */
};

/* What kept stacks were unwound with. */
struct mt_mappings {
	uint32_t id;			   /* the next; or the last one again: goes on with it */
	uint32_t len;			   /* MT_MAPPINGS_LEN at most */
	const struct mt_mapping *mappings; /* by address, no two overlap */
};

#define MT_MAPPINGS_LEN 4096

/* The window ends where the stack does, and not because the budget did. */
#define MT_KEPT_BOTTOM 1

/* Its digest is that of a raw window: of blocks, and not of groups. */
#define MT_KEPT_RAW 2

/* A copied window, with what was made of it: only in runs that keep stacks. */
struct mt_kept_stack {
	uint32_t thread;
	uint32_t node;	   /* the chain that it was unwound to */
	uint32_t mappings; /* by these */
	uint32_t flags;	   /* MT_KEPT_* */
	uint64_t start;	   /* addresses in the process: mt_window_valid(), wire/stack_delta.h */
	uint64_t end;
	uint64_t digest; /* wire/digest.h */
	uint32_t epoch;	 /* goes into the digest */
	uint32_t spare;
	const uint64_t *words; /* those of [start, end) */
};

struct mt_footer {
	uint64_t end_ns;
	int32_t status; /* of the command, as wait(2) gives it; -1: not known */
	uint64_t events;
	uint64_t lost_events;
	uint64_t lost_stacks;
};
