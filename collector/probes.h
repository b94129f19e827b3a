/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * probes.h - the kernel half of a run: BPF programs, loaded and attached, and their maps
 *
 * Contract
 *   Input:     the shim file that is attached to is the run's own; its section headers are
 *              checked as if it were not.
 *   Ownership: mt_probes_open() gives an object for mt_probes_close(), which takes NULL.
 *              Descriptors and mapped memory are the object's.
 *   Errors:    negative errno; *ret is written on success only.
 *              mt_probes_open(): -EOPNOTSUPP: configured with --disable-bpf; -EPERM: not
 *              allowed to use BPF; -EINVAL: a size that is none.  mt_probes_attach():
 *              -ENOEXEC: no probe in that file; -EBUSY: too many files.  Else what the
 *              kernel said.
 *   Threads:   open, attach, drain and close: one at a time; the others: any.
 *   Bounds:    kernel memory, mt_probes_kernel_bytes(): 20 MiB at 8 KiB of budget, 45 at
 *              32, 6 where stacks are not compressed; the references are mapped here too.  A
 *              drain moves past what was on the rings when it began.  Closing takes as long
 *              as the slowest link.
 *   Privilege: CAP_BPF and CAP_PERFMON, or root, when opened and attached; none after.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/bpf_ring.h"
#include "wire/control.h"

/* Files that mt_probes_attach() takes. */
#define MT_PROBES_FILES 16

#define MT_PROBES_STACKS_BYTES (4u * 1024 * 1024)
#define MT_PROBES_LIFE_BYTES (256u * 1024)

struct mt_probes;

struct mt_probes_config {
	uint64_t cookie;
	uint32_t budget_bytes; /* a power of two, 4 to 64 KiB */
	bool raw;	       /* stacks are not compressed: there are no references */
	uint32_t stacks_bytes; /* ring sizes: powers of two, pages; 0: as above */
	uint32_t life_bytes;
	uint32_t watermark_percent; /* fill of a ring that latches pressure; 0: 75 */
	bool measured;		    /* the rings' high-water marks are kept */
	uint32_t wakeup_bytes;	    /* fill that wakes mt_probes_stacks_fd(); 0: 1/4 */
	bool perf_events;	    /* as on kernels that have nothing better: uprobe_link.h */
};

int mt_probes_open(const struct mt_probes_config *config, struct mt_probes **ret);
void mt_probes_close(struct mt_probes *probes);

/*
 * Fork, exec and exit of members, when called first; and the probe in the shim file at path,
 * for whoever has it mapped or will.  May be called again for another file.
 */
int mt_probes_attach(struct mt_probes *probes, const char *path);
/* A process becomes a member; its forks are from then on. */
int mt_probes_add_member(struct mt_probes *probes, pid_t tgid);

/* To hand to the target, which maps them. */
int mt_probes_control_fd(const struct mt_probes *probes);
int mt_probes_references_fd(const struct mt_probes *probes);
/* For poll(2): readable when the fill of "stacks" passes wakeup_bytes. */
int mt_probes_stacks_fd(const struct mt_probes *probes);
/* For poll(2): readable while "life" has a record, as soon as it has. */
int mt_probes_life_fd(const struct mt_probes *probes);

/* The control page, zero at first: whoever runs the run fills it. */
struct mt_control *mt_probes_control(const struct mt_probes *probes);
/* The references of slots 0 to MT_BPF_SLOTS - 1, MT_WORDS_OFFSET + budget_bytes each; NULL:
 * there are none. */
void *mt_probes_references(const struct mt_probes *probes);

/*
 * Hands what is on "stacks" (wire/stack_record.h), then what is on "life" (wire/life.h), to
 * on_stack and on_life.  A callback that returns -EAGAIN leaves its record and those behind
 * it for the next drain; any other error ends the drain and is returned.
 */
int mt_probes_drain(struct mt_probes *probes, mt_bpf_record_fn on_stack, mt_bpf_record_fn on_life,
		    void *ctx);
/* mt_bpf_ring_produced() and _consumed() of "stacks". */
uint64_t mt_probes_stacks_produced(const struct mt_probes *probes);
uint64_t mt_probes_stacks_consumed(const struct mt_probes *probes);

/* Sizes and positions, the consumer's read first. */
struct mt_probes_ring {
	uint64_t bytes, watermark_bytes;
	uint64_t consumed, produced;
};
void mt_probes_rings(const struct mt_probes *probes, struct mt_probes_ring *ret_stacks,
		     struct mt_probes_ring *ret_life);

/* Memory that the kernel holds for the maps, without its own bookkeeping. */
uint64_t mt_probes_kernel_bytes(const struct mt_probes *probes);

/*
 * Runs of the capture program and the time they took, counted while the kernel keeps
 * statistics of BPF programs (BPF_ENABLE_STATS, or sysctl kernel.bpf_stats_enabled); else 0.
 */
struct mt_probes_runs {
	uint64_t runs;
	uint64_t ns;
};
int mt_probes_capture_runs(const struct mt_probes *probes, struct mt_probes_runs *ret);

static inline void mt_probes_closep(struct mt_probes **probes)
{
	mt_probes_close(*probes);
}
