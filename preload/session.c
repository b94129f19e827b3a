/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.c - see session.h
 *
 * Invariants
 *   - Signals are blocked while a hand-shake runs: a handler that allocates finds the phase
 *     before it or the phase after it.
 *   - Each descriptor is closed before the program can see it: a hand-shake at the start
 *     happens before main(), a later one is over when the allocation that needed it returns.
 *     Where another thread could fork meanwhile, or there is no room for a descriptor, it
 *     happens in a table apart (apart.h).
 *   - n_chunks counts chunks that are complete; they never move.
 *   - mt_on is cleared only where no block of the arena can come back: free() of one would
 *     reach the real function.
 */
#include "preload/session.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/behind_wall.h"
#include "preload/address.h"
#include "preload/apart.h"
#include "preload/arena.h"
#include "preload/compare.h"
#include "preload/glibc.h"
#include "preload/modules.h"
#include "preload/probe.h"
#include "preload/real.h"
#include "preload/sandbox.h"
#include "preload/syscall.h"

#define HANDSHAKE_SECONDS 1
/* The first hand-shake is tried so often, where the collector hangs up without a word. */
#define STARTS_MAX 10

/* Descriptors of the child that shakes hands where the program has no room for one. */
#define APART_FDS 16

/* "pid:[4026531836]" */
#define NAMESPACE_BYTES 32

struct mt_session mt_session;

/*
 * The environment of the start, as the kernel has it above __libc_stack_end: argc, argv, NULL,
 * envp, NULL.  The C library knows it late, after constructors of an executable's
 * preinit_array; and a library's constructor may have put another in its place.
 */
static char **kernel_environment(void)
{
	long argc;
	char **argv;

	if (!&__libc_stack_end || !__libc_stack_end)
		return NULL;
	argc = *(long *)__libc_stack_end;
	argv = (char **)__libc_stack_end + 1;
	if (argc < 0 || argc > INT_MAX || argv[argc])
		return NULL;
	return argv + argc + 1;
}

static const char *variable(char **env, const char *name)
{
	for (; *env; env++) {
		const char *e = *env, *n = name;

		while (*n && *e == *n) {
			e++;
			n++;
		}
		if (!*n && *e == '=')
			return e + 1;
	}
	return NULL;
}

/* Of either; NULL: there is none. */
static const char *run_variable(void)
{
	char **env = kernel_environment();
	const char *text = env ? variable(env, MT_RUN_VARIABLE) : NULL;

	return text || !environ ? text : variable(environ, MT_RUN_VARIABLE);
}

static long retry(long number, long a, long b, long c)
{
	long ret;

	do
		ret = mt_syscall3(number, a, b, c);
	while (ret == -EINTR);
	return ret;
}

/*
 * Connects to the path, or to the abstract name, which another root does not hide but another
 * network namespace does; a descriptor, or a negative errno: -EAGAIN, where either is there and
 * too many wait for it.
 */
static int dial(const struct mt_address *address)
{
	static const char hex[] = "0123456789abcdef";
	static const char prefix[] = MT_ABSTRACT_PREFIX;
	struct timeval limit = { .tv_sec = HANDSHAKE_SECONDS };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	long err = 0, other;
	size_t n, i;
	int fd, shift;

	fd = mt_syscall3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	mt_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&limit, sizeof(limit), 0);
	mt_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&limit, sizeof(limit), 0);

	for (n = 0; address->path[n]; n++)
		name.sun_path[n] = address->path[n];
	if (n) {
		err = retry(SYS_connect, fd, (long)&name,
			    offsetof(struct sockaddr_un, sun_path) + n + 1);
		if (!err)
			return fd;
	}

	name.sun_path[0] = '\0';
	for (i = 0; prefix[i]; i++)
		name.sun_path[1 + i] = prefix[i];
	for (n = 1 + i, shift = 60; shift >= 0; shift -= 4)
		name.sun_path[n++] = hex[address->name >> shift & 15];
	other = retry(SYS_connect, fd, (long)&name, offsetof(struct sockaddr_un, sun_path) + n);
	if (!other)
		return fd;
	mt_syscall3(SYS_close, fd, 0, 0);
	return err == -EAGAIN ? err : other;
}

/* What is asked for, and by whom: a child that shares the memory may do the asking. */
struct question {
	const struct mt_address *address;
	uint32_t what; /* MT_HELLO_* */
	uint32_t pid, tid;
	int fd;	 /* of a START's connection, which is the process's own */
	int err; /* -ECANCELED: a child was killed before it had an answer */
};

/* It was, for a call that the program has given up, and so would be the next. */
static bool asking_kills;

static int send_hello(int fd, const struct question *question)
{
	struct mt_hello hello = {
		.magic = MT_HELLO_MAGIC,
		.version = MT_WIRE_VERSION,
		.what = question->what,
		.cookie = question->address->cookie,
		.process_id = question->what == MT_HELLO_START ? 0 : mt_session.process,
		.pid = question->pid,
		.tid = question->tid,
	};
	long n;

	/* Where the counter may not be read that can not be told. */
	if (question->what == MT_HELLO_START && !mt_sandbox_clock)
		hello.behind_wall_ns = mt_behind_wall_ns(mt_read_clock_ns);
	mt_syscall3(SYS_readlink, (long)"/proc/self/exe", (long)hello.exe, sizeof(hello.exe) - 1);
	do
		n = mt_syscall6(SYS_sendto, fd, (long)&hello, sizeof(hello), MSG_NOSIGNAL, 0, 0);
	while (n == -EINTR);
	if (n == -EPIPE)
		return -ECONNRESET;
	if (n < 0)
		return n;
	return n == sizeof(hello) ? 0 : -EIO;
}

static void close_all(int *fds)
{
	int i;

	for (i = 0; i < MT_FDS; i++)
		if (fds[i] >= 0)
			mt_syscall3(SYS_close, fds[i], 0, 0);
}

/*
 * The welcome and its descriptors; all or none of them is valid after it.  -EAGAIN: none has come
 * yet; -ECONNRESET: none will, on this connection.
 */
static int receive_welcome(int fd, struct mt_welcome *ret, int *fds)
{
	char space[CMSG_SPACE(sizeof(int) * MT_FDS)] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *head;
	long n;
	int i, n_fds = 0;

	n = retry(SYS_recvmsg, fd, (long)&message, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n ? n : -ECONNRESET;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		n_fds = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n_fds && i < MT_FDS; i++)
			fds[i] = ((int *)CMSG_DATA(head))[i];
	}
	if (n == sizeof(*ret) && ret->magic == MT_HELLO_MAGIC && ret->error > 0)
		return -ret->error;
	if (message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	if (n != sizeof(*ret) || ret->magic != MT_HELLO_MAGIC || ret->error ||
	    ret->version != MT_WIRE_VERSION || n_fds != mt_welcome_fds(ret))
		return -EPROTO;
	return 0;
}

static void *map(uint64_t bytes, int protection, int fd, uint64_t offset)
{
	return mt_map(bytes, protection, MAP_SHARED, fd, offset);
}

static void unmap(const void *at, uint64_t bytes)
{
	if (at)
		mt_syscall3(SYS_munmap, (long)at, bytes, 0);
}

static bool sane(const struct mt_welcome *welcome)
{
	uint32_t budget = welcome->budget_bytes, ring = welcome->ring_bytes;

	return (welcome->capture == MT_CAPTURE_EBPF || welcome->capture == MT_CAPTURE_INLINE) &&
	       budget >= MT_BUDGET_MIN_BYTES && budget <= MT_BUDGET_MAX_BYTES &&
	       !(budget & (budget - 1)) && ring >= MT_PAGE_BYTES && !(ring & (ring - 1)) &&
	       (!welcome->references_stride ||
		(welcome->references_stride >= MT_WORDS_OFFSET + budget &&
		 (welcome->capture == MT_CAPTURE_EBPF || welcome->scratch_offset))) &&
	       (!welcome->learned_bytes ||
		(welcome->learned_bytes == MT_LEARNED_BYTES && welcome->references_stride));
}

/* The program's address space has a limit, which what can be done without is not to use up. */
static bool is_short_of_space(void)
{
	struct rlimit limit;

	return mt_syscall3(SYS_getrlimit, RLIMIT_AS, (long)&limit, 0) ||
	       limit.rlim_cur != RLIM_INFINITY;
}

/* Maps what a chunk has and enters it in the table. */
static int add_chunk(const struct mt_welcome *welcome, const int *fds)
{
	uint32_t n = mt_session.n_chunks;
	int protection = welcome->capture == MT_CAPTURE_EBPF ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t heads_bytes = MT_CHUNK_SLOTS * MT_PAGE_BYTES;
	uint64_t rings_bytes = MT_CHUNK_SLOTS * (uint64_t)welcome->ring_bytes;
	uint64_t references_bytes = MT_CHUNK_SLOTS * welcome->references_stride;
	struct mt_chunk chunk = {
		.references_stride = welcome->references_stride,
		.scratch_offset = welcome->scratch_offset,
		.first_slot = welcome->first_slot,
		.capture = welcome->capture,
	};

	if (n == MT_PROCESS_CHUNKS)
		return -ENOSPC;
	chunk.heads = map(heads_bytes, PROT_READ | PROT_WRITE, fds[MT_FD_RINGS],
			  welcome->rings_offset);
	/* Without access until claimed: mlockall() makes the rest of it real. */
	chunk.rings = map(rings_bytes, PROT_NONE, fds[MT_FD_RINGS],
			  welcome->rings_offset + heads_bytes);
	if (references_bytes)
		chunk.references = map(references_bytes, protection, fds[MT_FD_REFERENCES],
				       welcome->references_offset);
	if (welcome->learned_bytes && !is_short_of_space())
		chunk.learned = map(welcome->learned_bytes, PROT_READ, fds[MT_FD_LEARNED],
				    welcome->learned_offset);
	if (!chunk.heads || !chunk.rings || (references_bytes && !chunk.references)) {
		unmap(chunk.heads, heads_bytes);
		unmap(chunk.rings, rings_bytes);
		unmap(chunk.references, references_bytes);
		unmap((void *)chunk.learned, welcome->learned_bytes);
		return -ENOMEM;
	}
	mt_session.chunks[n] = chunk;
	__atomic_store_n(&mt_session.n_chunks, n + 1, __ATOMIC_RELEASE);
	return 0;
}

/* What all chunks have in common, and the word that a fork clears. */
static int map_run(const struct mt_welcome *welcome, const int *fds)
{
	struct mt_session *s = &mt_session;
	long word;

	word = mt_syscall6(SYS_mmap, 0, MT_PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word < 0 && word > -4096)
		return word;
	s->fork_word = (uint64_t *)word;
	if (mt_syscall3(SYS_madvise, word, MT_PAGE_BYTES, MADV_WIPEONFORK))
		return -ENOSYS;

	s->control = map(sizeof(*s->control), PROT_READ | PROT_WRITE, fds[MT_FD_CONTROL], 0);
	s->gate = map(MT_PAGE_BYTES, PROT_READ, fds[MT_FD_RINGS], 0);
	if (!s->control || !s->gate)
		return -ENOMEM;
	if (s->control->magic != MT_CONTROL_MAGIC || s->control->version != MT_WIRE_VERSION)
		return -EPROTO;
	return 0;
}

void mt_session_move_epoch(void)
{
	uint64_t epochs = __atomic_add_fetch(&mt_session.control->epochs, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&mt_session.epoch, (uint32_t)epochs, __ATOMIC_RELAXED);
}

/* Are there as many descriptors free as come with a welcome? */
static bool has_room(int fd)
{
	int fds[MT_FDS], i, n = 0;

	while (n < MT_FDS && (fds[n] = mt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	for (i = 0; i < n; i++)
		mt_syscall3(SYS_close, fds[i], 0, 0);
	return n == MT_FDS;
}

/* One hand-shake, from the socket to the mappings. */
static int shake_on(int fd, const struct question *question)
{
	uint32_t what = question->what;
	struct mt_session *s = &mt_session;
	int fds[MT_FDS] = { -1, -1, -1, -1 };
	struct mt_welcome welcome;
	int err;

	/* Who has said START, and gives up, is for the collector a process without events. */
	if (what == MT_HELLO_START && !has_room(fd))
		return -EMFILE;
	err = send_hello(fd, question);
	if (!err) {
		/* On the same connection: who asked twice to start would be two processes. */
		do
			err = receive_welcome(fd, &welcome, fds);
		while (err == -EAGAIN && what == MT_HELLO_START);
	}
	if (!err && !sane(&welcome))
		err = -EPROTO;
	if (!err && what == MT_HELLO_START)
		err = map_run(&welcome, fds);
	if (!err && what != MT_HELLO_START &&
	    (welcome.ring_bytes != s->ring_bytes || welcome.budget_bytes != s->budget_bytes))
		err = -EPROTO;
	if (!err)
		err = add_chunk(&welcome, fds);
	close_all(fds);
	if (err || what != MT_HELLO_START)
		return err;
	s->budget_bytes = welcome.budget_bytes;
	s->ring_bytes = welcome.ring_bytes;
	s->flags = s->control->flags;
	s->process = welcome.process_id;
	s->told = s->process;
	mt_clock_offset_ns = welcome.clock_offset_ns;
	mt_session_move_epoch();
	s->start = MT_PROCESS_START;
	*s->fork_word = mt_session_token();
	return 0;
}

static int shake_here(const struct question *question)
{
	int fd = dial(question->address), err;

	if (fd < 0)
		return fd;
	err = shake_on(fd, question);
	mt_syscall3(SYS_close, fd, 0, 0);
	return err;
}

/* Descriptors of a table of its own: the program's are not needed there. */
static void shake_apart(void *arg)
{
	struct rlimit limit = { .rlim_cur = APART_FDS, .rlim_max = APART_FDS };
	struct question *question = arg;
	int fd;

	/* Who may not raise the hard limit can have as much as that. */
	if (mt_syscall3(SYS_setrlimit, RLIMIT_NOFILE, (long)&limit, 0) &&
	    !mt_syscall3(SYS_getrlimit, RLIMIT_NOFILE, (long)&limit, 0)) {
		limit.rlim_cur = limit.rlim_max;
		mt_syscall3(SYS_setrlimit, RLIMIT_NOFILE, (long)&limit, 0);
	}
	for (fd = 0; fd < APART_FDS; fd++)
		if (fd != question->fd)
			mt_syscall3(SYS_close, fd, 0, 0);
	question->err = question->fd < 0 ? shake_here(question) : shake_on(question->fd, question);
}

/*
 * Would a child be in another PID namespace?  It would be the first there, and nobody could
 * be born after its end.  Where that can not be told, it is not risked.
 */
static bool pid_namespace_moves(void)
{
	char own[NAMESPACE_BYTES] = "", next[NAMESPACE_BYTES] = "";
	int i;

	mt_syscall3(SYS_readlink, (long)"/proc/self/ns/pid", (long)own, sizeof(own) - 1);
	mt_syscall3(SYS_readlink, (long)"/proc/self/ns/pid_for_children", (long)next,
		    sizeof(next) - 1);
	for (i = 0; own[i] && own[i] == next[i]; i++)
		;
	return !i || own[i] != next[i];
}

static bool shake_in_child(struct question *question)
{
	return !pid_namespace_moves() && mt_apart(shake_apart, question) >= 0;
}

/* The collector takes who connects to say START for the process itself. */
static int shake_first(struct question *question)
{
	int err;

	question->fd = dial(question->address);
	if (question->fd < 0)
		return question->fd;
	err = shake_on(question->fd, question);
	if (err == -EMFILE && shake_in_child(question))
		err = question->err;
	mt_syscall3(SYS_close, question->fd, 0, 0);
	return err;
}

static int shake(const struct mt_address *address, uint32_t what)
{
	/* Signals are blocked: a process of one thread can not fork meanwhile. */
	bool alone = &__libc_single_threaded && __libc_single_threaded;
	struct question question = {
		.address = address,
		.what = what,
		.pid = mt_syscall3(SYS_getpid, 0, 0, 0),
		.tid = mt_syscall3(SYS_gettid, 0, 0, 0),
		.fd = -1,
		.err = -ECANCELED,
	};
	int err = -EMFILE;

	if (what == MT_HELLO_START)
		return shake_first(&question);
	/* In a sandbox rather a child's end than the program's. */
	if (alone && !mt_sandbox)
		err = shake_here(&question);
	if (err != -EMFILE && err != -ENFILE)
		return err;
	if (!shake_in_child(&question))
		return shake_here(&question);
	if (question.err == -ECANCELED)
		asking_kills = true;
	return question.err;
}

static void undo(void)
{
	struct mt_session *s = &mt_session;

	unmap(s->fork_word, MT_PAGE_BYTES);
	unmap(s->control, sizeof(*s->control));
	unmap(s->gate, MT_PAGE_BYTES);
	s->fork_word = NULL;
	s->control = NULL;
	s->gate = NULL;
}

static bool join(void)
{
	const char *text = run_variable();
	int err, tries = 0;

	/* Another C library's mutexes are not those of the rings. */
	if (!text || !gnu_get_libc_version || mt_libc.getauxval(AT_SECURE) ||
	    !mt_address_parse(&mt_session.address, text))
		return false;
	/* A collector that is slow, or stopped, is waited for as long as it lives.  It hangs up on
	 * who was too slow himself. */
	do {
		err = shake(&mt_session.address, MT_HELLO_START);
		if (err)
			undo();
	} while (err == -EAGAIN || (err == -ECONNRESET && ++tries < STARTS_MAX));
	if (err)
		return false;
	/* An image's first thread is the one that comes here first, but for a constructor
	 * that starts threads before anything has allocated. */
	if (mt_syscall3(SYS_gettid, 0, 0, 0) == mt_syscall3(SYS_getpid, 0, 0, 0))
		mt_session.main_thread = (uint64_t)__builtin_thread_pointer();
	mt_session.probe_absent = mt_probe_is_instrumented();
	mt_compare_choose();
	return true;
}

/* Joined to be named only. */
static bool aside;

/* Decides whether there is a run; signals are blocked. */
static void decide(void)
{
	const struct mt_arena_event *events;
	uint64_t lost;
	bool joined = join();

	aside = joined && mt_real_sanitizes();
	mt_session.on = joined && !aside;
	if (!joined) {
		mt_arena_take(&events, &lost);
		if (!mt_arena_used())
			mt_on = 0;
	}
	__atomic_store_n(&mt_session.phase, MT_PHASE_DECIDED, __ATOMIC_RELEASE);
}

static bool advance(int from, int to)
{
	return __atomic_compare_exchange_n(&mt_session.phase, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

bool mt_session_start(void)
{
	if (__atomic_load_n(&mt_session.phase, __ATOMIC_ACQUIRE) == MT_PHASE_START &&
	    mt_real_relocated() && advance(MT_PHASE_START, MT_PHASE_RESOLVING)) {
		mt_real_resolve();
		__atomic_store_n(&mt_session.phase, MT_PHASE_RESOLVED, __ATOMIC_RELEASE);
	}
	if (__atomic_load_n(&mt_session.phase, __ATOMIC_ACQUIRE) < MT_PHASE_RESOLVED)
		return false;
	if (__atomic_load_n(&mt_session.phase, __ATOMIC_RELAXED) == MT_PHASE_RESOLVED &&
	    (environ || kernel_environment())) {
		uint64_t mask = mt_signals_block();
		int err = errno;

		if (advance(MT_PHASE_RESOLVED, MT_PHASE_ASKING))
			decide();
		errno = err;
		mt_signals_restore(mask);
	}
	return true;
}

/* To look whether the collector is there, and whether there is a grower yet; of thousands that wait
 * each does that. */
#define GROWER_NS (100 * 1000 * 1000)
/* Who wait for a chunk are woken for its slots, and not all of thousands.  There are more of them
 * than slots: one that finds none asks for the next chunk, and wakes as many. */
#define GROWN_WAKES (2 * MT_CHUNK_SLOTS)

/* Another thread is at it; false: the collector is gone, and so is the hope for a chunk. */
static bool wait_for_grower(void)
{
	struct timespec moment = { .tv_nsec = GROWER_NS };

	mt_syscall4(SYS_futex, (long)&mt_session.chunk_lock, FUTEX_WAIT_PRIVATE, 1, (long)&moment);
	return !mt_session_orphaned();
}

bool mt_session_grow(uint32_t what, uint32_t known)
{
	int unlocked = 0, err = 0;

	while (!__atomic_compare_exchange_n(&mt_session.chunk_lock, &unlocked, 1, false,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&mt_session.n_chunks, __ATOMIC_ACQUIRE) > known)
			return true;
		if (!wait_for_grower())
			return false;
		unlocked = 0;
	}
	/* A collector that is slow to answer is waited for, as one that is slow to make room
	 * on a ring is: what this thread does meanwhile would be lost. */
	while (mt_session.n_chunks <= known) {
		err = asking_kills ? -ECANCELED : shake(&mt_session.address, what);
		if ((err != -EAGAIN && err != -ECONNRESET) || mt_session_orphaned())
			break;
	}
	__atomic_store_n(&mt_session.chunk_lock, 0, __ATOMIC_RELEASE);
	mt_syscall3(SYS_futex, (long)&mt_session.chunk_lock, FUTEX_WAKE_PRIVATE, GROWN_WAKES);
	return !err;
}

void mt_session_end(void)
{
	__atomic_store_n(&mt_session.on, 0, __ATOMIC_RELAXED);
	if (!mt_arena_used())
		mt_on = 0;
}

bool mt_session_orphaned(void)
{
	/* A robust mutex that the collector holds from before the first hand-shake on. */
	uint32_t life = *(const volatile uint32_t *)mt_session.gate->life;

	return life & FUTEX_OWNER_DIED || !(life & FUTEX_TID_MASK);
}

void mt_session_fork(void)
{
	struct mt_session *s = &mt_session;
	uint64_t wiped = 0;

	if (!__atomic_compare_exchange_n(s->fork_word, &wiped, MT_FORK_BUSY, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		while (__atomic_load_n(s->fork_word, __ATOMIC_ACQUIRE) == MT_FORK_BUSY)
			mt_syscall3(SYS_sched_yield, 0, 0, 0);
		return;
	}
	s->process = __atomic_fetch_add(&s->control->next_process, 1, __ATOMIC_RELAXED);
	mt_session_move_epoch();
	s->start = MT_PROCESS_FORK;
	s->pid = mt_syscall3(SYS_getpid, 0, 0, 0);
	s->announced = MT_ANNOUNCED_NOT;
	s->chunk_lock = 0;
	mt_modules_fork();
	mt_probe_renew();
	__atomic_store_n(s->fork_word, mt_session_token(), __ATOMIC_RELEASE);
}

__attribute__((constructor(101))) static void begin(void)
{
	mt_session_start();
	if (aside)
		mt_session.on = 1;
	if (mt_session.on)
		mt_modules_begin();
	if (aside)
		mt_session_end();
}
