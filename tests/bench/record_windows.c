/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record_windows.c - preloaded, writes the window of each allocation to a file
 *
 * WINDOWS_PREFIX is what files begin with, a process's number is what they end with;
 * WINDOWS_LIMIT is the most records that a process writes.  window_record.h has the format.
 *
 * Invariants
 *   A window begins as the shim's does (wire/reference.h): the stubs push the registers that
 *   a callee saves in that order, and the window is read before anything returns.
 *   Nothing is kept open, because programs close what they do not know: each record is a
 *   file opened, appended to and closed.
 *   A handler that interrupts a recording allocates without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/window_record.h"

#define GROUP_BYTES 512
#define PATH_BYTES 512
/* In the worst case every second word is a run. */
#define OUT_WORDS (2 * WINDOW_WORDS)

/* glibc's own, behind its exported functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *recorded_malloc(size_t size, size_t, size_t, const uint64_t *window);
void *recorded_calloc(size_t count, size_t size, size_t, const uint64_t *window);
void *recorded_realloc(void *block, size_t size, size_t, const uint64_t *window);
void *recorded_memalign(size_t alignment, size_t size, size_t, const uint64_t *window);
long recorded_posix_memalign(void **ret, size_t alignment, size_t size, const uint64_t *window);

/* The arguments stay where they are; the window is the fourth. */
__asm__(".text\n"
	".macro recorded name function\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	push %r15\n"
	"	push %r14\n"
	"	push %r13\n"
	"	push %r12\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	mov %rsp, %rcx\n"
	"	sub $8, %rsp\n"
	"	.cfi_def_cfa_offset 64\n"
	"	call \\function\n"
	"	add $56, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size \\name, . - \\name\n"
	".endm\n"
	"recorded malloc recorded_malloc\n"
	"recorded calloc recorded_calloc\n"
	"recorded realloc recorded_realloc\n"
	"recorded memalign recorded_memalign\n"
	"recorded aligned_alloc recorded_memalign\n"
	"recorded posix_memalign recorded_posix_memalign\n");

struct recorder {
	uint64_t image[WINDOW_WORDS];
	uint64_t low, high; /* the stack, as far as it was seen */
	pid_t tgid, tid;
	bool fresh;
	struct window_record record; /* with the runs right behind it */
	uint64_t out[OUT_WORDS];
};

static __thread struct recorder *own __attribute__((tls_model("initial-exec")));
static __thread volatile bool busy __attribute__((tls_model("initial-exec")));

static char prefix[PATH_BYTES - 32];
static uint64_t limit, records;
static pid_t records_tgid;

static uint64_t hex_number(const char **at)
{
	uint64_t number = 0;

	for (;; (*at)++) {
		if (**at >= '0' && **at <= '9')
			number = number << 4 | (uint64_t)(**at - '0');
		else if (**at >= 'a' && **at <= 'f')
			number = number << 4 | (uint64_t)(**at - 'a' + 10);
		else
			return number;
	}
}

/* A line of /proc/self/maps without its end; false: no more. */
static bool read_line(int fd, char *line, size_t room)
{
	size_t len = 0;
	char c;

	while (read(fd, &c, 1) == 1 && c != '\n')
		if (len + 1 < room)
			line[len++] = c;
	line[len] = 0;
	return len;
}

/* The bounds of the stack that address is on. */
static bool find_stack(struct recorder *self, uint64_t address)
{
	uint64_t thread = (uint64_t)pthread_self();
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = false;
	char line[64];

	if (fd < 0)
		return false;
	while (!found && read_line(fd, line, sizeof(line))) {
		const char *at = line;

		self->low = hex_number(&at);
		at++;
		self->high = hex_number(&at);
		found = self->low <= address && address < self->high;
	}
	close(fd);
	/* A thread's own data lie above its stack. */
	if (found && thread > address && thread < self->high)
		self->high = thread & ~7ULL;
	return found;
}

/* Brings the image up to date; the words that did so are the runs.  Returns their number. */
static uint64_t collect_runs(struct recorder *self, uint64_t start, uint64_t end)
{
	const uint64_t *window = (const uint64_t *)start;
	uint64_t *head = NULL, *at = self->out;

	for (uint64_t i = 0; i < (end - start) / 8; i++) {
		uint64_t *kept = &self->image[(start / 8 + i) % WINDOW_WORDS];
		uint64_t word = ((const volatile uint64_t *)window)[i];

		if (word == *kept) {
			head = NULL;
			continue;
		}
		if (!head) {
			head = at++;
			*head = i;
		}
		*head += 1ULL << 32;
		*at++ = word;
		*kept = word;
	}
	return (uint64_t)(at - self->out);
}

static void append(const struct recorder *self, size_t bytes)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s.%d", prefix, self->tgid);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, &self->record, bytes) != (ssize_t)bytes)
		abort();
	close(fd);
}

static bool within_limit(pid_t tgid)
{
	if (records_tgid != tgid) {
		records_tgid = tgid;
		records = 0;
	}
	return __atomic_fetch_add(&records, 1, __ATOMIC_RELAXED) < limit;
}

static void record_window(uint64_t start)
{
	uint64_t end = (start & ~(uint64_t)(GROUP_BYTES - 1)) + WINDOW_BUDGET_BYTES;
	struct recorder *self = own;
	pid_t tgid = (pid_t)syscall(SYS_getpid);

	if (!within_limit(tgid))
		return;
	if (!self) {
		self = mmap(NULL, sizeof(*self), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (self == MAP_FAILED)
			return;
		own = self;
	}
	if (self->tgid != tgid) {
		memset(self->image, 0, sizeof(self->image));
		self->tgid = tgid;
		self->tid = (pid_t)syscall(SYS_gettid);
		self->fresh = true;
	}
	if (!(self->low <= start && start < self->high) && !find_stack(self, start))
		return;
	end = end < self->high ? end : self->high;
	self->record.tid = (uint32_t)self->tid;
	self->record.flags = self->fresh ? WINDOW_FRESH : 0;
	self->record.start = start;
	self->record.end = end;
	self->record.run_words = collect_runs(self, start, end);
	self->fresh = false;
	append(self, sizeof(self->record) + self->record.run_words * 8);
}

static void record(const uint64_t *window)
{
	int saved_errno = errno;

	if (busy || !prefix[0])
		return;
	busy = true;
	record_window((uint64_t)window);
	busy = false;
	errno = saved_errno;
}

void *recorded_malloc(size_t size, size_t unused1, size_t unused2, const uint64_t *window)
{
	record(window);
	return __libc_malloc(size);
}

void *recorded_calloc(size_t count, size_t size, size_t unused, const uint64_t *window)
{
	record(window);
	return __libc_calloc(count, size);
}

void *recorded_realloc(void *block, size_t size, size_t unused, const uint64_t *window)
{
	record(window);
	return __libc_realloc(block, size);
}

void *recorded_memalign(size_t alignment, size_t size, size_t unused, const uint64_t *window)
{
	record(window);
	return __libc_memalign(alignment, size);
}

long recorded_posix_memalign(void **ret, size_t alignment, size_t size, const uint64_t *window)
{
	int saved_errno = errno;
	void *block;

	if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	record(window);
	block = __libc_memalign(alignment, size);
	errno = saved_errno;
	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

__attribute__((constructor)) static void read_environment(void)
{
	const char *path = getenv("WINDOWS_PREFIX"), *most = getenv("WINDOWS_LIMIT");

	if (!path || strlen(path) >= sizeof(prefix))
		return;
	limit = most ? strtoull(most, NULL, 10) : UINT64_MAX;
	strcpy(prefix, path);
}
