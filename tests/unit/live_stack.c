/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live_stack.c - see live_stack.h
 */
#include "tests/unit/live_stack.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unwind.h>

#include "base/cleanup.h"
#include "collector/images.h"
#include "collector/teach.h"
#include "collector/unwind.h"
#include "preload/learned.h"
#include "wire/control.h"
#include "wire/reference.h"

#define WORDS (MT_BUDGET_MAX_BYTES / 8)

struct live_result live;

static uint32_t budget;
static const void *bound_override;
static struct mt_images *images;
static struct mt_space space;
static struct mt_unwinder *unwinder;
static struct mt_unwind_full full;
static struct mt_call_tree tree;
static uint64_t words[WORDS];
static struct mt_segments *segments;
static struct mt_teach *teach;
static struct mt_trail *trail;
static uint32_t epoch;

/* libgcc's chain. */
static struct {
	size_t len;
	uint64_t pcs[LIVE_FRAMES];
	bool exact[LIVE_FRAMES];
} theirs;

void live_captured(const uint64_t *saved);

/* The shim's entry stub, with a call of the function above for its body. */
__asm__(".text\n"
	".globl live_capture\n"
	".type live_capture, @function\n"
	"live_capture:\n"
	".cfi_startproc\n"
	"endbr64\n"
	"push %r15\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r15, 0\n"
	"push %r14\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r14, 0\n"
	"push %r13\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r13, 0\n"
	"push %r12\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r12, 0\n"
	"push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %rbp, 0\n"
	"push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %rbx, 0\n"
	"mov %rsp, %rdi\n"
	"sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
	"call live_captured\n"
	"add $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
	"pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbx\n"
	"pop %rbp\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbp\n"
	"pop %r12\n .cfi_adjust_cfa_offset -8\n .cfi_restore %r12\n"
	"pop %r13\n .cfi_adjust_cfa_offset -8\n .cfi_restore %r13\n"
	"pop %r14\n .cfi_adjust_cfa_offset -8\n .cfi_restore %r14\n"
	"pop %r15\n .cfi_adjust_cfa_offset -8\n .cfi_restore %r15\n"
	"ret\n"
	".cfi_endproc\n"
	".size live_capture, . - live_capture\n");

static void fail(const char *what)
{
	fprintf(stderr, "live_stack: %s\n", what);
	abort();
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct mt_space_range range = { .bias = info->dlpi_addr, .start = UINT64_MAX };
	mt_cleanup(mt_image_unrefp) struct mt_image *image = NULL;
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint32_t *modules = ctx;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + phdr->p_vaddr < range.start)
			range.start = info->dlpi_addr + phdr->p_vaddr;
		if (info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz > range.end)
			range.end = info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz;
	}
	if (info->dlpi_name[0] == '/')
		mt_images_get_path(images, info->dlpi_name, &image);
	else if (vdso && range.start == (uint64_t)vdso)
		mt_image_new_memory(vdso, range.end - range.start, &image);
	else
		mt_images_get_path(images, "/proc/self/exe", &image);
	range.image = image;
	range.module = (*modules)++;
	return mt_space_add(&space, &range) < 0;
}

static bool begin_lessons(void)
{
	struct mt_segments_config config = {
		.budget_bytes = MT_BUDGET_MIN_BYTES,
		.ring_bytes = MT_PAGE_BYTES,
		.learned = true,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};

	trail = calloc(1, mt_trail_bytes());
	return trail && mt_segments_open(&config, &segments) == 0 && segments->learned &&
	       mt_teach_new(segments, &teach) == 0;
}

void live_reset(uint32_t budget_bytes)
{
	uint32_t modules = 0;

	budget = budget_bytes;
	bound_override = NULL;
	if (!images && (mt_images_new(&images) < 0 || mt_unwinder_new(&unwinder) < 0 ||
			mt_call_tree_init(&tree, UINT32_MAX) < 0 || !begin_lessons()))
		fail("no memory");
	epoch++; /* what is mapped may be something else */
	if (space.stamp)
		mt_space_clear(&space);
	else
		mt_space_init(&space);
	if (dl_iterate_phdr(add_object, &modules))
		fail("no space");
	memset(&live, 0, sizeof(live));
}

void live_set_bound(const void *bound)
{
	bound_override = bound;
}

bool live_has(const void *function, size_t len)
{
	for (size_t i = 0; i < live.len; i++)
		if (live.pcs[i] - (uint64_t)function <= len)
			return true;
	return false;
}

static uint64_t find_bound(void)
{
	pthread_attr_t attr;
	void *low;
	size_t len;

	if (bound_override)
		return (uint64_t)bound_override;
	if (pthread_getattr_np(pthread_self(), &attr))
		fail("pthread_getattr_np");
	pthread_attr_getstack(&attr, &low, &len);
	pthread_attr_destroy(&attr);
	return (uint64_t)low + len;
}

/* No sanitizer looks at the words of others' frames here. */
static __attribute__((no_sanitize("address", "undefined"), noinline)) void
copy(struct mt_window *window)
{
	for (uint64_t at = window->start; at < window->end; at += 8)
		words[(at / 8) & window->mask] = *(const volatile uint64_t *)at;
}

static _Unwind_Reason_Code add_theirs(struct _Unwind_Context *context, void *ctx)
{
	int exact = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &exact);

	if (theirs.len == LIVE_FRAMES)
		return _URC_END_OF_STACK;
	theirs.pcs[theirs.len] = pc;
	theirs.exact[theirs.len++] = exact;
	return _URC_NO_REASON;
}

/* libgcc's chain from the frame on that returns to pc. */
static void find_theirs(uint64_t pc)
{
	size_t skip = 0;

	theirs.len = 0;
	_Unwind_Backtrace(add_theirs, NULL);
	while (skip < theirs.len && theirs.pcs[skip] != pc)
		skip++;
	/* The end of the stack is a frame of its own there. */
	if (theirs.len > skip && !theirs.pcs[theirs.len - 1])
		theirs.len--;
	theirs.len -= skip;
	memmove(theirs.pcs, theirs.pcs + skip, theirs.len * sizeof(theirs.pcs[0]));
	memmove(theirs.exact, theirs.exact + skip, theirs.len * sizeof(theirs.exact[0]));
}

static uint64_t bias_of(uint32_t module)
{
	for (size_t i = 0; i < space.len; i++)
		if (space.ranges[i].module == module)
			return space.ranges[i].bias;
	return 0;
}

static bool same_frames(const struct mt_frame *a, const struct mt_frame *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (a[i].module != b[i].module || a[i].offset != b[i].offset ||
		    a[i].exact != b[i].exact)
			return false;
	return true;
}

/* The node's chain is the trace's. */
static bool same_chain(uint32_t node, const struct mt_trace *trace)
{
	for (size_t i = 0; i < trace->len; i++) {
		if (node < MT_NODE_FIRST || node >= mt_call_tree_end(&tree) ||
		    !same_frames(&mt_call_tree_node(&tree, node)->frame, &trace->frames[i], 1))
			return false;
		node = mt_call_tree_node(&tree, node)->parent;
	}
	return node == trace->stop;
}

static void judge(const struct mt_trace *trace)
{
	size_t shorter = trace->len < theirs.len ? trace->len : theirs.len, same = 0;

	live.stop = trace->stop;
	live.len = trace->len < LIVE_FRAMES ? trace->len : LIVE_FRAMES;
	for (size_t i = 0; i < live.len; i++)
		live.pcs[i] = trace->frames[i].offset + bias_of(trace->frames[i].module);
	while (same < shorter && live.pcs[same] == theirs.pcs[same] &&
	       trace->frames[same].exact == theirs.exact[same])
		same++;
	live.captures++;
	if (same < shorter)
		live.wrong++;
	else if (trace->stop == MT_STOP_TRUNCATED && trace->len <= theirs.len)
		live.truncated++;
	else if (trace->stop == MT_STOP_NO_CFI && trace->len <= theirs.len)
		live.no_cfi++;
	else if (trace->stop == MT_STOP_END && trace->len > theirs.len)
		live.longer++;
	else if (trace->stop == MT_STOP_END && trace->len == theirs.len)
		live.whole++;
	else
		live.wrong++;
}

/* Does the thread find the chain by itself once it was taught, and before that no other? */
static bool learns(const struct mt_window *window, uint32_t node)
{
	const struct mt_learned_window same = {
		.start = window->start,
		.end = window->end,
		.epoch = epoch,
	};
	const struct mt_learned *learned = mt_segments_learned(segments, 0);
	struct mt_chain is;

	if (mt_learned_chain(learned, 0, trail, &same, &is) && is.name != node)
		return false;
	if (mt_teach_chain(teach, 0, epoch, unwinder, &space, window, node) < 0)
		fail("no memory");
	if (!mt_teach_used(teach, 0, node))
		return !mt_learned_chain(learned, 0, trail, &same, &is);
	live.learned++;
	return mt_learned_chain(learned, 0, trail, &same, &is) && is.name == node;
}

void live_captured(const uint64_t *saved)
{
	static struct mt_trace slow;
	uint64_t start = (uint64_t)saved, bound = find_bound();
	uint64_t budget_end = start / MT_GROUP_BYTES * MT_GROUP_BYTES + budget;
	struct mt_window window = {
		.start = start,
		.end = bound < budget_end ? bound : budget_end,
		.words = words,
		.mask = budget / 8 - 1,
		.bottom = bound < budget_end,
	};
	const struct mt_trace *trace = NULL;
	uint32_t node, again;

	copy(&window);
	find_theirs(saved[MT_SAVED_RIP]);
	if (mt_unwind(unwinder, &space, &window, &tree, &node) < 0 ||
	    mt_unwind(unwinder, &space, &window, &tree, &again) < 0 ||
	    mt_unwind_trace(unwinder, &space, &window, &trace) < 0 ||
	    mt_unwind_full(&full, &space, &window, &slow) < 0)
		fail("no memory");
	judge(trace);
	if (trace->stop != slow.stop || trace->len != slow.len ||
	    !same_frames(trace->frames, slow.frames, slow.len) || !same_chain(node, trace) ||
	    again != node || !learns(&window, node))
		live.wrong++;
}
