/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.c - see thread.h
 *
 * Invariants
 *   - token is set last and cleared first: with it, all of the slot's fields are valid.
 *   - A slot is claimed with signals blocked: no handler meets a half-claimed one.
 *   - The mutex is locked through the C library, which has the thread's robust list; where
 *     the process is a raw clone() the C library does not know its tid, nor the kernel its
 *     list, and both are put right here.
 *   - bound is the end of the stack that the thread was given, known without asking the C
 *     library for it (pthread_getattr_np() allocates, locks, and reads /proc): the kernel's
 *     for the main thread; for another what its thread-local data, at the stack's top,
 *     leave.  It lives in TLS: in a fork's child it is still true, whichever thread forked.
 *   - Outside [low_known, bound) and the signal stack only the page that the stack pointer
 *     is on is read directly: no window faults, whatever other threads unmap meanwhile.
 */
#include "preload/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "preload/arena.h"
#include "preload/glibc.h"
#include "preload/learned.h"
#include "preload/loader_lock.h"
#include "preload/probe.h"
#include "preload/real.h"
#include "preload/recent.h"
#include "preload/syscall.h"
#include "wire/stack_encode.h"

/* A thread without a slot looks again after so many events. */
#define UNSERVED_RETRY 256
/* So much of the main thread's stack is known without asking. */
#define MAIN_STACK_BYTES (8 * 1024 * 1024)
/* How far below the known part of a stack it is looked for. */
#define STACK_GAP_BYTES (1024 * 1024)
/* And how far below its frames where that can not be done later. */
#define AHEAD_BYTES (256 * 1024)
/* Where a thread's thread-local data may lie below its thread pointer. */
#define TLS_MAX_BYTES (1024 * 1024)

__thread struct mt_self mt_self __attribute__((tls_model("initial-exec")));

/* Bytes of thread-local data below a thread pointer, as of so many loads. */
static struct {
	uint64_t loads;
	uint64_t bytes;
} static_tls;

struct tls_search {
	uint64_t sp, tp, loads, lowest;
	bool known;
};

static int look_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct tls_search *search = arg;
	uint64_t at = (uint64_t)info->dlpi_tls_data;

	search->loads = info->dlpi_adds;
	search->known = static_tls.bytes && static_tls.loads == info->dlpi_adds;
	if (search->known)
		return 1;
	/* Data of an object that was loaded late may lie in the heap. */
	if (at > search->sp && at < search->lowest && search->tp - at < TLS_MAX_BYTES)
		search->lowest = at;
	return 0;
}

static uint64_t stack_bound(uint64_t sp)
{
	uint64_t tp = (uint64_t)__builtin_thread_pointer();
	struct tls_search search = { .sp = sp < tp ? sp : 0, .tp = tp, .lowest = tp };

	if (tp == mt_session.main_thread)
		return &__libc_stack_end ? (uint64_t)__libc_stack_end & ~7ULL : 0;
	if (mt_session.modules_fixed)
		return (tp - static_tls.bytes) & ~7ULL;
	/* Not now: what was found before, or the end of the thread's own data. */
	if (!mt_loader_lock())
		return (tp - static_tls.bytes) & ~7ULL;
	mt_libc.dl_iterate_phdr(look_tls, &search);
	if (!search.known) {
		static_tls.bytes = tp - search.lowest;
		static_tls.loads = search.loads;
	}
	mt_loader_unlock();
	return (tp - static_tls.bytes) & ~7ULL;
}

/*
 * From where on is the stack that ends at bound known to be nothing else?  The kernel keeps
 * at least 128 MiB below the top of the main thread's free for it to grow.
 */
static uint64_t known_from(uint64_t bound)
{
	bool is_main = (uint64_t)__builtin_thread_pointer() == mt_session.main_thread;

	return is_main && bound > MAIN_STACK_BYTES ? bound - MAIN_STACK_BYTES : bound;
}

/*
 * Is the page of at readable?  The call fails in any case, and changes nothing: with EFAULT
 * where the kernel could not read the set, with EINVAL for the way after it was read.
 */
static bool readable(uint64_t at)
{
	return mt_syscall4(SYS_rt_sigprocmask, -1, at, 0, sizeof(uint64_t)) != -EFAULT;
}

#define PAGE_OF(at) ((at) & ~(uint64_t)(MT_PAGE_BYTES - 1))

/*
 * sp is below what is known: has the stack grown down to it without a gap?  Not asked for
 * one that is far below: a look at each page between would cost too much, and would make
 * the main thread's stack grow.
 */
static void lower_known(struct mt_self *self, uint64_t sp)
{
	uint64_t page = PAGE_OF(self->low_known - 1);

	if (self->low_known - sp > STACK_GAP_BYTES || sp < self->low_failed)
		return;
	while (page >= PAGE_OF(sp)) {
		if (!readable(page)) {
			self->low_failed = page;
			return;
		}
		page -= MT_PAGE_BYTES;
	}
	self->low_known = PAGE_OF(sp);
}

void mt_thread_look_ahead(struct mt_self *self, uint64_t sp)
{
	uint64_t least = PAGE_OF(sp) - AHEAD_BYTES, page = PAGE_OF(self->low_known - 1);

	if (sp >= self->bound || (sp < page && page - sp > STACK_GAP_BYTES))
		return;
	for (; page >= least && readable(page); page -= MT_PAGE_BYTES)
		self->low_known = page;
}

/* The end of the signal stack that start lies on; 0: on none. */
static uint64_t signal_stack_end(uint64_t start)
{
	stack_t stack;

	if (mt_syscall4(SYS_sigaltstack, 0, (long)&stack, 0, 0) || !(stack.ss_flags & SS_ONSTACK) ||
	    start - (uint64_t)stack.ss_sp >= stack.ss_size)
		return 0;
	return ((uint64_t)stack.ss_sp + stack.ss_size) & ~7ULL;
}

long mt_thread_read(uint64_t at, void *ret, uint64_t bytes)
{
	struct iovec here = { .iov_base = ret, .iov_len = bytes };
	struct iovec there = { .iov_base = (void *)at, .iov_len = bytes };

	return mt_syscall6(SYS_process_vm_readv, mt_syscall3(SYS_getpid, 0, 0, 0), (long)&here, 1,
			   (long)&there, 1, 0);
}

/* Private memory, zero; NULL: there is none. */
static void *map_private(uint64_t bytes)
{
	return mt_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Room for a copy; NULL: there is no memory for it. */
static char *copy_room(struct mt_self *self)
{
	if (!self->own->copy)
		self->own->copy = map_private(mt_session.budget_bytes);
	return self->own->copy;
}

struct mt_extent mt_thread_window_on_page(uint64_t start)
{
	uint64_t base = start & ~(uint64_t)(MT_GROUP_BYTES - 1);
	uint64_t end = base + mt_session.budget_bytes, page = PAGE_OF(start) + MT_PAGE_BYTES;

	return (struct mt_extent){ .end = end < page ? end : page };
}

/* Another thread may take away what lies behind this page: copied, as far as it is there. */
static struct mt_extent copied_window(struct mt_self *self, uint64_t start)
{
	struct mt_extent extent = mt_thread_window_on_page(start);
	uint64_t base = start & ~(uint64_t)(MT_GROUP_BYTES - 1);
	char *room = copy_room(self);
	long bytes;

	if (!room)
		return extent;
	extent.copies = ++self->copies;
	__asm__ volatile("" ::: "memory");
	bytes = mt_thread_read(start, room, base + mt_session.budget_bytes - start);
	if (bytes <= (long)(extent.end - start))
		return extent;
	extent.end = start + (bytes & ~7L);
	extent.shift = (uint64_t)room - start;
	return extent;
}

struct mt_extent mt_thread_window(struct mt_self *self, uint64_t start)
{
	uint64_t base = start & ~(uint64_t)(MT_GROUP_BYTES - 1);
	uint64_t end = base + mt_session.budget_bytes, stack_end;

	if (mt_thread_on_stack(self, start))
		return (struct mt_extent){ .end = end < self->bound ? end : self->bound };
	/* Nothing may be asked. */
	if (mt_sandbox)
		return mt_thread_window_on_page(start);
	/* What lies behind a signal stack may be gone the next moment. */
	stack_end = signal_stack_end(start);
	if (stack_end)
		return (struct mt_extent){ .end = end < stack_end ? end : stack_end };
	if (start < self->low_known && self->bound) {
		lower_known(self, start);
		if (mt_thread_on_stack(self, start))
			return (struct mt_extent){ .end = end < self->bound ? end : self->bound };
	}
	return copied_window(self, start);
}

static bool init_mutex(struct mt_thread *head)
{
	pthread_mutexattr_t attr;
	uint32_t fresh = 0;

	if (__atomic_load_n(&head->initialised, __ATOMIC_ACQUIRE) == 2)
		return true;
	/* 1: another is at it, or died there: not a slot for us. */
	if (!__atomic_compare_exchange_n(&head->initialised, &fresh, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	mt_libc.mutexattr_init(&attr);
	mt_libc.mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	mt_libc.mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	mt_libc.mutex_init((pthread_mutex_t *)head->owner, &attr);
	__atomic_store_n(&head->initialised, 2, __ATOMIC_RELEASE);
	return true;
}

/* From a thread pointer to the thread's robust list; the same in all threads. */
static ptrdiff_t robust_list_at;
/* This process is the child of a raw clone(): the C library took no part in its making. */
static bool raw_clone;

/* Where the C library keeps robust lists.  None: this is a vfork's child. */
static void learn_robust_list(void)
{
	struct robust_list_head *list = NULL;
	size_t bytes = 0;

	if (robust_list_at || mt_syscall3(SYS_get_robust_list, 0, (long)&list, (long)&bytes))
		return;
	if (list)
		robust_list_at = (char *)list - (char *)__builtin_thread_pointer();
}

/*
 * In a fork's child: where the kernel has no robust list, gives it an empty one.  That is for the
 * thread that was cloned, which need not be the first to come here, and not for a vfork's child:
 * the list is its parent's.  In a sandbox, where nothing may be asked, what a raw clone() held
 * stays its parent's.
 */
static void renew_robust_list(void)
{
	struct robust_list_head *list = NULL;
	size_t bytes = 0;

	if (!robust_list_at || mt_sandbox ||
	    mt_syscall3(SYS_get_robust_list, 0, (long)&list, (long)&bytes) || list ||
	    mt_syscall3(SYS_getpid, 0, 0, 0) != mt_session.pid)
		return;
	raw_clone = true;
	list = (void *)((char *)__builtin_thread_pointer() + robust_list_at);
	list->list.next = &list->list;
	mt_syscall3(SYS_set_robust_list, (long)list, sizeof(*list), 0);
}

/*
 * Is this a child in its parent's memory, as vfork's is?  It has no robust list, like the thread
 * of a raw clone().  Where nothing may be asked, or the kernel does not say, it is taken for that.
 */
static bool is_guest(void)
{
	struct robust_list_head *list = NULL;
	size_t bytes = 0;

	if (mt_sandbox || mt_syscall3(SYS_get_robust_list, 0, (long)&list, (long)&bytes) || list)
		return false;
	return mt_syscall6(SYS_kcmp, mt_syscall3(SYS_getpid, 0, 0, 0),
			   mt_syscall3(SYS_getppid, 0, 0, 0), KCMP_VM, 0, 0, 0) == 0;
}

/* Locks the slot's mutex, if nobody holds it. */
static bool lock_slot(struct mt_thread *head)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)head->owner;
	uint32_t *word = (uint32_t *)head->owner;
	uint32_t tid, holder;
	int err;

	if (!init_mutex(head))
		return false;
	holder = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (holder & FUTEX_TID_MASK && !(holder & FUTEX_OWNER_DIED))
		return false;
	err = mt_libc.mutex_trylock(mutex);
	if (err == EOWNERDEAD)
		err = mt_libc.mutex_consistent(mutex);
	if (err)
		return false;
	if (!raw_clone)
		return true;
	/* The C library has the parent's tid, which the kernel would not find dead here. */
	tid = mt_syscall3(SYS_gettid, 0, 0, 0);
	holder = __atomic_load_n(word, __ATOMIC_RELAXED);
	if ((holder & FUTEX_TID_MASK) != tid)
		__atomic_store_n(word, (holder & ~FUTEX_TID_MASK) | tid, __ATOMIC_RELAXED);
	return true;
}

/* The registration probe: has BPF seen it, so that the slot is ours there too? */
static bool registered(uint32_t slot)
{
	const volatile struct mt_answer *answer = &mt_session.control->answers[slot];
	uint32_t probes = answer->probes;

	mt_probe_send(slot | (uint64_t)mt_session.epoch << 32, MT_PROBE_REGISTER, 0, 0, 0,
		      mt_session.address.cookie, 0);
	return answer->probes != probes && answer->status == MT_PROBE_REGISTERED;
}

static bool has_rseq(void)
{
	const struct rseq *rseq;

	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return false;
	rseq = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	/* Not registered, or refused: negative. */
	return (int32_t) * (const volatile uint32_t *)&rseq->cpu_id >= 0;
}

/* What the slot's owner needs to look up chains, if there are any to come. */
static void begin_trail(struct mt_own *own, const struct mt_chunk *chunk)
{
	if (own->trail)
		mt_trail_forget(own->trail);
	else if (chunk->learned)
		own->trail = map_private(mt_trail_bytes() + sizeof(*own->recent));
	if (!own->trail)
		return;
	own->recent = (void *)((char *)own->trail + mt_trail_bytes());
	own->learned = chunk->learned;
}

/* Takes slot i of the chunk; false: it is another's, or of no use. */
static bool take_slot(struct mt_self *self, struct mt_chunk *chunk, uint32_t i)
{
	struct mt_thread *head = &chunk->heads[i];
	char *cells = chunk->rings + (uint64_t)i * mt_session.ring_bytes;
	char *reference = chunk->references + i * chunk->references_stride;
	uint32_t slot = chunk->first_slot + i;

	if (!lock_slot(head))
		return false;
	if (mt_syscall3(SYS_mprotect, (long)cells, mt_session.ring_bytes, PROT_READ | PROT_WRITE))
		return false;
	if (chunk->capture == MT_CAPTURE_EBPF && !registered(slot)) {
		mt_session.probe_absent = 1;
		return false;
	}
	if (chunk->capture == MT_CAPTURE_INLINE && chunk->references)
		mt_claim_reference((void *)reference, (void *)(reference + MT_DICTIONARY_OFFSET));
	self->ring.head = head;
	self->ring.cells = cells;
	self->ring.bytes = mt_session.ring_bytes;
	self->ring.rseq = has_rseq();
	self->ring.slot = slot;
	self->ring.watermark = mt_session.control->ring_watermark_bytes;
	self->capture = chunk->capture;
	self->reference = chunk->references ? (void *)reference : NULL;
	self->scratch = chunk->capture == MT_CAPTURE_INLINE && chunk->references
				? (void *)(reference + chunk->scratch_offset)
				: NULL;
	self->own = &chunk->own[i];
	begin_trail(self->own, chunk);
	self->capture_start = 0;
	self->piece_id = 0;
	mt_ring_take_over(&self->ring);
	return true;
}

static bool find_slot(struct mt_self *self)
{
	for (;;) {
		uint32_t n = __atomic_load_n(&mt_session.n_chunks, __ATOMIC_ACQUIRE), c, i;
		uint32_t what;

		for (c = 0; c < n; c++)
			for (i = 0; i < MT_CHUNK_SLOTS; i++) {
				struct mt_chunk *chunk = &mt_session.chunks[c];

				if (chunk->capture == MT_CAPTURE_EBPF && mt_session.probe_absent)
					break;
				if (take_slot(self, chunk, i))
					return true;
			}
		what = mt_session.probe_absent ? MT_HELLO_INLINE : MT_HELLO_CHUNK;
		if (!mt_session_grow(what, n))
			return false;
	}
}

/* What was kept until there was a ring. */
static void append_kept(struct mt_self *self)
{
	const struct mt_arena_event *events;
	uint64_t lost;
	unsigned n = mt_arena_take(&events, &lost), i;
	struct mt_cell cell = { 0 };

	for (i = 0; i < n; i++) {
		if (!events[i].type)
			continue;
		cell.head = MT_CELL_HEAD(events[i].type, events[i].kind,
					 MT_STACK_NONE | MT_NONE_BOOTSTRAP, 0);
		if (events[i].type == MT_CELL_FREE)
			cell.head = MT_CELL_HEAD(MT_CELL_FREE, events[i].kind, 0, 0);
		cell.w[0] = mt_now_ns();
		cell.w[1] = events[i].address;
		cell.w[2] = events[i].size;
		mt_ring_append(&self->ring, &cell);
	}
	if (!lost)
		return;
	cell.head = MT_CELL_HEAD(MT_CELL_LOSS, 0, 0, 0);
	cell.w[0] = mt_now_ns();
	cell.w[1] = lost;
	cell.w[2] = 0;
	mt_ring_append(&self->ring, &cell);
}

/* Is the process told of by this thread?  If not, it was, before now. */
static bool is_first(void)
{
	int silent = MT_ANNOUNCED_NOT;

	if (__atomic_compare_exchange_n(&mt_session.announced, &silent, MT_ANNOUNCED_BUSY, false,
					__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return true;
	while (__atomic_load_n(&mt_session.announced, __ATOMIC_ACQUIRE) != MT_ANNOUNCED_DONE)
		mt_syscall3(SYS_sched_yield, 0, 0, 0);
	return false;
}

/* The ring's first cells: whose it is now. */
static void announce(struct mt_self *self)
{
	const struct mt_reference *reference = self->reference;
	const struct mt_answer *answer = &mt_session.control->answers[self->ring.slot];
	uint16_t generation = reference ? (uint16_t)reference->generation : 0;
	uint32_t seq = reference ? (uint32_t)(reference->seq / 2) : 0;
	/* As the kernel counts, where BPF has said it; else as a PID namespace does. */
	bool told = self->capture == MT_CAPTURE_EBPF;
	uint64_t tid = told ? answer->owner_tid : (uint64_t)mt_syscall3(SYS_gettid, 0, 0, 0);
	uint64_t pid = told ? answer->owner_tgid : (uint64_t)mt_syscall3(SYS_getpid, 0, 0, 0);
	struct mt_cell cell = {
		.head = MT_CELL_HEAD(MT_CELL_THREAD, self->capture, generation, seq),
		.w = { 0, mt_session.process, tid << 32 | pid },
	};
	bool first = is_first();

	cell.w[0] = mt_now_ns();
	mt_ring_append(&self->ring, &cell);
	if (!first)
		return;
	cell.head = MT_CELL_HEAD(MT_CELL_PROCESS, mt_session.start, 0, 0);
	cell.w[0] = mt_now_ns();
	cell.w[1] = mt_session.process;
	cell.w[2] = mt_session.told;
	mt_ring_append(&self->ring, &cell);
	__atomic_store_n(&mt_session.told, mt_session.process, __ATOMIC_RELEASE);
	if (mt_session.start == MT_PROCESS_START)
		append_kept(self);
	__atomic_store_n(&mt_session.announced, MT_ANNOUNCED_DONE, __ATOMIC_RELEASE);
}

static struct mt_self *claim(struct mt_self *self, const void *sp)
{
	if (!mt_session.on)
		return NULL;
	if (mt_session_forked()) {
		/* The process would have its number, and end with it. */
		if (is_guest())
			return NULL;
		mt_session_fork();
		self->unserved = 0;
	}
	self->token = 0;
	learn_robust_list();
	if (mt_session.pid)
		renew_robust_list();
	if (!find_slot(self)) {
		if (!self->unserved++)
			__atomic_fetch_add(&mt_session.control->unserved_threads, 1,
					   __ATOMIC_RELAXED);
		return NULL;
	}
	self->unserved = 0;
	if (!self->bound) {
		self->bound = stack_bound((uint64_t)sp);
		self->low_known = known_from(self->bound);
	}
	announce(self);
	self->token = mt_session_token();
	return self;
}

struct mt_self *mt_thread_claim(const void *sp)
{
	struct mt_self *self = &mt_self;
	uint64_t mask;

	if (self->unserved % UNSERVED_RETRY && !mt_session_forked()) {
		self->unserved++;
		return NULL;
	}
	mask = mt_signals_block();
	self = claim(self, sp);
	mt_signals_restore(mask);
	return self;
}

struct mt_self *mt_thread_go_inline(const void *sp)
{
	mt_session.probe_absent = 1;
	mt_self.token = 0;
	return mt_thread_claim(sp);
}
