/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * segments.c - see segments.h for the contract
 *
 * Invariants
 *   - The gate's life mutex is locked by the thread that opens the segments until it closes
 *     them: the kernel marks it when the collector dies before, and every parked thread of
 *     the run polls that word.  It must not stay locked in memory that is unmapped: the
 *     thread's list of robust mutexes would end there, for the kernel and for the C library.
 *   - A memory keeps its size: a target that cut it off would have us killed by SIGBUS.
 *   - Only pages of chunks that were given are read: a read of a hole in a memfd would
 *     allocate its page.
 */
#include "collector/segments.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/scratch.h"

/* A process claims its first slot within microseconds of its hand-shake. */
#define REUSE_AFTER_NS (100 * 1000 * 1000ULL)
/* With fewer a run is not worth beginning. */
#define CHUNKS_MIN 16

static size_t page_up(size_t bytes)
{
	return (bytes + MT_PAGE_BYTES - 1) / MT_PAGE_BYTES * MT_PAGE_BYTES;
}

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* seals: beside those of the size, for whoever is handed the descriptor. */
static int map_memfd(const char *name, int seals, size_t size, int *ret_fd, void **ret)
{
	mt_cleanup(mt_closep) int fd = -1;
	void *at;
	int r;

	seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return mt_neg_errno();
	if (ftruncate(fd, (off_t)size) < 0)
		return mt_neg_errno();
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return mt_neg_errno();
	if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		r = mt_neg_errno();
		munmap(at, size);
		return r;
	}
	*ret_fd = mt_take_fd(&fd);
	*ret = at;
	return 0;
}

static int hold_life(struct mt_gate *gate)
{
	pthread_mutex_t *life = (pthread_mutex_t *)gate->life;
	pthread_mutexattr_t attr;
	int r;

	_Static_assert(sizeof(pthread_mutex_t) <= sizeof(gate->life), "life is too small");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	r = pthread_mutex_init(life, &attr);
	pthread_mutexattr_destroy(&attr);
	if (!r)
		r = pthread_mutex_lock(life);
	return -r;
}

static int open_control(struct mt_segments *s, const struct mt_segments_config *config)
{
	uint32_t percent = config->watermark_percent ? config->watermark_percent
						     : MT_WATERMARK_PERCENT;
	void *at;
	int r;

	if (config->control) {
		s->capture = MT_CAPTURE_EBPF;
		s->control = config->control;
		s->control_fd = config->control_fd;
		s->bpf_references = config->bpf_references;
		s->bpf_references_fd = config->bpf_references_fd;
	} else {
		s->capture = MT_CAPTURE_INLINE;
		r = map_memfd("memtrack-control", 0, sizeof(*s->control), &s->control_fd, &at);
		if (r < 0)
			return r;
		s->control = at;
		s->own_control = true;
	}
	s->control->magic = MT_CONTROL_MAGIC;
	s->control->version = MT_WIRE_VERSION;
	s->control->capture = s->capture;
	s->control->cookie = s->cookie;
	s->control->budget_bytes = s->budget_bytes;
	s->control->flags = config->flags;
	s->control->pause = s->pause;
	s->control->ring_watermark_bytes = (uint32_t)((uint64_t)s->ring_bytes * percent / 100);
	s->control->next_process = 1;
	return 0;
}

static uint64_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 ? RLIM_INFINITY : limit.rlim_cur;
}

/* Whether so much address space is left, and as much for everything else. */
static bool has_space(size_t bytes)
{
	void *at = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);

	if (at == MAP_FAILED)
		return false;
	munmap(at, 2 * bytes);
	return true;
}

/* As many chunks as limits that could not be lifted have room for. */
static void set_sizes(struct mt_segments *s, bool with_references)
{
	uint64_t file = file_limit();

	if (with_references) {
		s->bpf_stride = MT_WORDS_OFFSET + s->budget_bytes;
		s->scratch_offset = page_up(s->bpf_stride);
		s->stride = s->scratch_offset + page_up(mt_scratch_inline_bytes(s->budget_bytes));
	}
	for (s->n_chunks = MT_CHUNKS;; s->n_chunks /= 2) {
		s->rings_size = mt_chunk_offset(s->n_chunks, s->ring_bytes);
		s->references_size = s->stride * s->n_chunks * MT_CHUNK_SLOTS;
		if (s->n_chunks <= CHUNKS_MIN ||
		    (s->rings_size <= file && s->references_size <= file &&
		     has_space(s->rings_size + s->references_size)))
			break;
	}
}

static int open_references(struct mt_segments *s)
{
	void *at;
	int r;

	r = map_memfd("memtrack-references", 0, s->references_size, &s->references_fd, &at);
	if (r < 0)
		return r;
	s->references = at;
	return 0;
}

/*
 * Only the mapping made here can be written.  A kernel that can not see to that (before 5.1)
 * teaches nothing: what is taught must be true.  Nor is anything taught where the address space
 * has a limit that this is too much for, and the rest is not.
 */
static int open_learned(struct mt_segments *s)
{
	void *at;
	int r;

	s->learned_size = MT_LEARNED_BYTES * (size_t)MT_CHUNKS;
	r = map_memfd("memtrack-learned", F_SEAL_FUTURE_WRITE, s->learned_size, &s->learned_fd,
		      &at);
	if (r < 0)
		return r == -EINVAL || r == -ENOMEM || r == -EFBIG ? 0 : r;
	s->learned = at;
	return 0;
}

int mt_segments_open(const struct mt_segments_config *config, struct mt_segments **ret)
{
	mt_cleanup(mt_segments_closep) struct mt_segments *s = NULL;
	void *at;
	int r;

	if (!power_of_two(config->budget_bytes) || config->budget_bytes < MT_BUDGET_MIN_BYTES ||
	    config->budget_bytes > MT_BUDGET_MAX_BYTES || !power_of_two(config->ring_bytes) ||
	    config->ring_bytes < MT_PAGE_BYTES || config->watermark_percent > 100)
		return -EINVAL;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->control_fd = s->bpf_references_fd = s->references_fd = s->rings_fd = -1;
	s->learned_fd = -1;
	s->budget_bytes = config->budget_bytes;
	s->ring_bytes = config->ring_bytes;
	s->pause = config->pause;
	s->cookie = config->cookie;

	r = open_control(s, config);
	if (r < 0)
		return r;

	set_sizes(s, !(config->flags & MT_RUN_RAW));
	if (!(config->flags & MT_RUN_RAW)) {
		r = open_references(s);
		if (r < 0)
			return r;
	}

	r = map_memfd("memtrack-rings", 0, s->rings_size, &s->rings_fd, &at);
	if (r < 0)
		return r;
	s->rings = at;
	s->gate = at;
	if (config->learned && s->references && s->n_chunks == MT_CHUNKS) {
		r = open_learned(s);
		if (r < 0)
			return r;
	}
	r = hold_life(s->gate);
	if (r < 0)
		return r;
	s->living = true;
	__atomic_store_n(&s->control->enabled, 1, __ATOMIC_RELEASE);

	*ret = mt_take_ptr(s);
	return 0;
}

/* As the kernel would at our death.  The mutex's own links lie where targets can write: they
 * are not followed. */
static void end_life(struct mt_segments *s)
{
	struct robust_list_head *head;
	size_t len;

	__atomic_store_n(&s->control->enabled, 0, __ATOMIC_SEQ_CST);
	if (syscall(SYS_get_robust_list, 0, &head, &len) == 0 && head)
		head->list.next = &head->list;
	__atomic_store_n((uint32_t *)s->gate->life, FUTEX_OWNER_DIED, __ATOMIC_SEQ_CST);
	mt_segments_wake(s);
}

void mt_segments_close(struct mt_segments *s)
{
	if (!s)
		return;
	if (s->rings) {
		if (s->living)
			end_life(s);
		munmap(s->rings, s->rings_size);
	}
	if (s->references)
		munmap(s->references, s->references_size);
	if (s->own_control) {
		munmap(s->control, sizeof(*s->control));
		mt_closep(&s->control_fd);
	}
	if (s->learned)
		munmap(s->learned, s->learned_size);
	mt_closep(&s->learned_fd);
	mt_closep(&s->references_fd);
	mt_closep(&s->rings_fd);
	free(s);
}

static char *chunk(const struct mt_segments *s, uint32_t slot)
{
	return s->rings + mt_chunk_offset(slot / MT_CHUNK_SLOTS, s->ring_bytes);
}

struct mt_thread *mt_segments_thread(const struct mt_segments *s, uint32_t slot)
{
	return (struct mt_thread *)(chunk(s, slot) + slot % MT_CHUNK_SLOTS * MT_PAGE_BYTES);
}

const struct mt_cell *mt_segments_cells(const struct mt_segments *s, uint32_t slot)
{
	return (const struct mt_cell *)(chunk(s, slot) + MT_CHUNK_SLOTS * MT_PAGE_BYTES +
					(size_t)(slot % MT_CHUNK_SLOTS) * s->ring_bytes);
}

static bool in_bpf(const struct mt_segments *s, uint32_t slot)
{
	return s->capture == MT_CAPTURE_EBPF && slot < MT_BPF_SLOTS;
}

struct mt_reference *mt_segments_reference(const struct mt_segments *s, uint32_t slot)
{
	if (!s->references)
		return NULL;
	if (in_bpf(s, slot))
		return (struct mt_reference *)(s->bpf_references + s->bpf_stride * slot);
	return (struct mt_reference *)(s->references + s->stride * slot);
}

struct mt_learned *mt_segments_learned(const struct mt_segments *s, uint32_t slot)
{
	if (!s->learned)
		return NULL;
	return (struct mt_learned *)(s->learned + MT_LEARNED_BYTES * (slot / MT_CHUNK_SLOTS));
}

bool mt_segments_slot_held(const struct mt_segments *s, uint32_t slot)
{
	/* The lock word is the first of a pthread_mutex_t; its robust part is the kernel's
	 * interface, Documentation/locking/robust-futex-ABI.rst. */
	const uint32_t *word = (const uint32_t *)mt_segments_thread(s, slot)->owner;
	uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	return (value & FUTEX_TID_MASK) && !(value & FUTEX_OWNER_DIED);
}

static bool chunk_idle(const struct mt_segments *s, uint32_t c, uint64_t now_ns)
{
	if (now_ns - s->chunks[c].given_ns < REUSE_AFTER_NS)
		return false;
	for (uint32_t i = 0; i < MT_CHUNK_SLOTS; i++) {
		const struct mt_thread *thread = mt_segments_thread(s, c * MT_CHUNK_SLOTS + i);

		if (mt_segments_slot_held(s, c * MT_CHUNK_SLOTS + i) ||
		    __atomic_load_n(&thread->head, __ATOMIC_ACQUIRE) != thread->tail)
			return false;
	}
	return true;
}

int mt_segments_give_chunk(struct mt_segments *s, bool inline_only, uint64_t now_ns,
			   struct mt_welcome *welcome)
{
	uint32_t c = inline_only && s->capture == MT_CAPTURE_EBPF ? MT_BPF_SLOTS / MT_CHUNK_SLOTS
								  : 0;

	while (c < s->n_chunks && s->chunks[c].given && !chunk_idle(s, c, now_ns))
		c++;
	if (c >= s->n_chunks)
		return -ENOSPC;
	s->chunks[c].given = true;
	s->chunks[c].given_ns = now_ns;
	if (c >= s->chunks_used)
		s->chunks_used = c + 1;

	welcome->first_slot = c * MT_CHUNK_SLOTS;
	welcome->budget_bytes = s->budget_bytes;
	welcome->ring_bytes = s->ring_bytes;
	welcome->rings_offset = mt_chunk_offset(c, s->ring_bytes);
	if (in_bpf(s, welcome->first_slot)) {
		welcome->capture = MT_CAPTURE_EBPF;
		welcome->references_stride = s->bpf_stride;
		welcome->scratch_offset = 0;
	} else {
		welcome->capture = MT_CAPTURE_INLINE;
		welcome->references_stride = s->stride;
		welcome->scratch_offset = s->scratch_offset;
	}
	welcome->references_offset = welcome->references_stride * welcome->first_slot;
	welcome->learned_bytes = s->learned ? MT_LEARNED_BYTES : 0;
	welcome->learned_offset = welcome->learned_bytes * c;
	return 0;
}

int mt_segments_references_fd(const struct mt_segments *s, uint32_t capture)
{
	return capture == MT_CAPTURE_EBPF && s->references ? s->bpf_references_fd
							   : s->references_fd;
}

void mt_segments_wake(struct mt_segments *s)
{
	__atomic_fetch_add(&s->gate->futex, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->gate->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mt_segments_release(struct mt_segments *s)
{
	if (!__atomic_load_n(&s->control->latch, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&s->control->latch, 0, __ATOMIC_SEQ_CST);
	mt_segments_wake(s);
}
