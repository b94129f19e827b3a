/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch.c - see watch.h for the contract
 *
 * Invariants
 *   - At most one pending entry has a given tgid: an exec replaces what was executed
 *     before it.
 *   - The file is looked at when the exec is heard of, while the process is likely to be
 *     there; the verdict waits.
 *   - A child is in the list of the thread that has started it, while that lives.
 */
#include "collector/watch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/launch.h"
#include "collector/proc_state.h"
#include "collector/regular.h"

/* What is said where the file says nothing. */
#define NOT_REGISTERED "did not register"
#define ENDED_EARLY "ended before it could be looked at"

#define SCAN_DEPTH 32
#define PHDRS_MAX 64

struct pending {
	uint32_t tgid;
	bool reported;
	bool certain; /* it can not register: if the process does, it has executed another */
	bool scanned; /* found by a scan: stays while it lives, so that it is looked at once */
	uint64_t since_ns;
	char what[64];
	char reason[64];
};

struct mt_watch {
	char shim_name[64];
	mt_not_tracked_fn fn;
	void *ctx;
	struct pending *pending;
	uint32_t n;
};

int mt_watch_new(const char *shim_name, mt_not_tracked_fn fn, void *ctx, struct mt_watch **ret)
{
	mt_cleanup(mt_watch_freep) struct mt_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->pending = calloc(MT_WATCH_PENDING, sizeof(*w->pending));
	if (!w->pending)
		return -ENOMEM;
	snprintf(w->shim_name, sizeof(w->shim_name), "%s", shim_name);
	w->fn = fn;
	w->ctx = ctx;
	*ret = mt_take_ptr(w);
	return 0;
}

void mt_watch_free(struct mt_watch *w)
{
	if (!w)
		return;
	free(w->pending);
	free(w);
}

/* What a program's file says of whether it can be tracked. */
struct verdict {
	const char *reason; /* why not; NULL: it does not say */
	bool certain;	    /* it can not register, however it is run */
};

static const char *reason_of_interpreter(int fd, const Elf64_Phdr *phdr)
{
	char interpreter[256] = "";

	if (pread(fd, interpreter, sizeof(interpreter) - 1, (off_t)phdr->p_offset) <= 0)
		return NULL;
	return strstr(interpreter, "musl") ? "another C library (musl)" : NULL;
}

static struct verdict judge_elf(int fd)
{
	struct verdict verdict;
	Elf64_Phdr phdrs[PHDRS_MAX];
	Elf64_Ehdr ehdr;
	size_t n;

	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0)
		return (struct verdict){ 0 };
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64)
		return (struct verdict){ "a 32-bit program", true };
	n = ehdr.e_phnum < PHDRS_MAX ? ehdr.e_phnum : PHDRS_MAX;
	if (ehdr.e_phentsize != sizeof(phdrs[0]) ||
	    pread(fd, phdrs, n * sizeof(phdrs[0]), (off_t)ehdr.e_phoff) !=
		    (ssize_t)(n * sizeof(phdrs[0])))
		return (struct verdict){ 0 };
	for (size_t i = 0; i < n; i++) {
		if (phdrs[i].p_type != PT_INTERP)
			continue;
		verdict.reason = reason_of_interpreter(fd, &phdrs[i]);
		verdict.certain = verdict.reason != NULL;
		return verdict;
	}
	/* The loader looks like that, too, and runs programs that are tracked. */
	return (struct verdict){ "statically linked", ehdr.e_type == ET_EXEC };
}

static struct verdict judge_file(int fd)
{
	struct verdict verdict;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return (struct verdict){ 0 };
	verdict = judge_elf(fd);
	if (!verdict.reason &&
	    (st.st_mode & S_ISUID || (st.st_mode & S_ISGID && st.st_mode & S_IXGRP)))
		verdict = (struct verdict){ "set-user-ID", false };
	return verdict;
}

/* The file that has this path for the process, or for us if that has ended: then a relative
 * one is as good as the command's folder is the process's. */
static struct verdict judge_path(uint32_t tgid, const char *path)
{
	mt_cleanup(mt_closep) int fd = -1;
	char there[PATH_MAX];

	if (!path[0])
		return (struct verdict){ 0 };
	snprintf(there, sizeof(there), "/proc/%u/%s%s", tgid, path[0] == '/' ? "root" : "cwd/",
		 path);
	fd = mt_regular_open(there);
	if (fd < 0)
		fd = mt_regular_open(path);
	return judge_file(fd);
}

/* The program that the process executes, or the one that it did if it is on to the next. */
static struct verdict judge_process(uint32_t tgid, const char *path)
{
	mt_cleanup(mt_closep) int fd = -1;
	struct verdict verdict;
	char link[64];

	snprintf(link, sizeof(link), "/proc/%u/exe", tgid);
	fd = mt_regular_open(link);
	verdict = judge_file(fd);
	return verdict.reason ? verdict : judge_path(tgid, path);
}

/* The file that execvp(3) would execute for the name, or a negative errno. */
static int open_command(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];
	int fd = -ENOENT, len;

	if (strchr(name, '/'))
		return mt_regular_open(name);
	if (!folders)
		folders = MT_LAUNCH_PATH;
	for (;; folders += len + 1) {
		len = (int)strcspn(folders, ":");
		snprintf(path, sizeof(path), "%.*s%s%s", len, folders, len ? "/" : "./", name);
		if (access(path, X_OK) == 0)
			fd = mt_regular_open(path);
		if (fd >= 0 || !folders[len])
			return fd;
	}
}

static struct pending *find(struct mt_watch *w, uint32_t tgid)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->pending[i].tgid == tgid)
			return &w->pending[i];
	return NULL;
}

static void forget(struct mt_watch *w, struct pending *p)
{
	*p = w->pending[--w->n];
}

static int report(struct mt_watch *w, struct pending *p)
{
	if (p->reported)
		return 0;
	p->reported = true;
	return w->fn(w->ctx, p->tgid, p->what, p->reason);
}

/* Whether the process is there without a program. */
static bool is_zombie(uint32_t tgid)
{
	char path[32], target;

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	return readlink(path, &target, 1) < 0 && errno == ENOENT;
}

static void describe(const struct mt_watch *w, struct pending *p, uint32_t tgid, const char *path,
		     const char *name, uint64_t now_ns)
{
	struct verdict verdict = judge_process(tgid, path);
	const char *reason = verdict.reason;

	*p = (struct pending){ .tgid = tgid, .since_ns = now_ns, .certain = verdict.certain };
	snprintf(p->what, sizeof(p->what), "%s", name);
	/* It may end at any time: only one that still is there had no such variables. */
	if (!reason && !(mt_proc_has(tgid, "environ", "MEMTRACK_RUN=") &&
			 mt_proc_has(tgid, "environ", w->shim_name)))
		reason = mt_proc_has(tgid, "status", "Pid:") && !is_zombie(tgid)
				 ? "started without our environment"
				 : ENDED_EARLY;
	snprintf(p->reason, sizeof(p->reason), "%s", reason ? reason : NOT_REGISTERED);
}

int mt_watch_exec(struct mt_watch *w, uint32_t tgid, const char *path, const char *name,
		  uint64_t now_ns)
{
	struct pending *p = find(w, tgid);
	struct pending overflow;
	int r = 0;

	if (p && !p->reported)
		r = report(w, p);
	if (!p && w->n < MT_WATCH_PENDING)
		p = &w->pending[w->n++];
	if (p) {
		describe(w, p, tgid, path, name, now_ns);
		return r;
	}
	describe(w, &overflow, tgid, path, name, now_ns);
	/* Of these it is not known yet whether they will register, or have. */
	if (!strcmp(overflow.reason, NOT_REGISTERED) || !strcmp(overflow.reason, ENDED_EARLY))
		return r;
	return report(w, &overflow);
}

int mt_watch_passed(struct mt_watch *w, uint32_t tgid, const char *path, const char *name)
{
	struct verdict verdict = judge_path(tgid, path);

	return verdict.reason && verdict.certain ? w->fn(w->ctx, tgid, name, verdict.reason) : 0;
}

int mt_watch_arrived(struct mt_watch *w, uint32_t tgid)
{
	struct pending *p = find(w, tgid);
	int r;

	if (!p)
		return 0;
	r = p->certain ? report(w, p) : 0;
	forget(w, p);
	return r;
}

int mt_watch_exit(struct mt_watch *w, uint32_t tgid)
{
	struct pending *p = find(w, tgid);
	int r;

	if (!p)
		return 0;
	r = report(w, p);
	forget(w, p);
	return r;
}

/* /proc/TGID/comm, or ret as it was. */
static bool read_name(uint32_t tgid, char *ret, int room)
{
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	file = fopen(path, "re");
	if (!file || !fgets(ret, room, file))
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

/* Nobody told if what a scan found has executed something else since.  False: it is one that
 * can register, and the next scan's. */
static bool look_again(struct mt_watch *w, struct pending *p)
{
	char name[sizeof(p->what)];
	bool has_shim;

	if (!p->scanned)
		return true;
	has_shim = mt_proc_has(p->tgid, "maps", w->shim_name);
	if (is_zombie(p->tgid) || !read_name(p->tgid, name, sizeof(name)))
		return true;
	describe(w, p, p->tgid, "", name, p->since_ns);
	p->scanned = true;
	return !has_shim;
}

/* Stopped, or in a debugger's hands, which may look at a program before it begins. */
static bool is_held(uint32_t tgid)
{
	char state = mt_proc_state(tgid);

	return state == 'T' || state == 't' ||
	       (state && state != 'Z' && !mt_proc_has(tgid, "status", "TracerPid:\t0\n"));
}

int mt_watch_tick(struct mt_watch *w, uint64_t now_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < w->n && r == 0;) {
		struct pending *p = &w->pending[i];

		if (p->reported || now_ns <= p->since_ns + MT_WATCH_PATIENCE_NS) {
			i++;
		} else if (is_held(p->tgid)) {
			p->since_ns = now_ns;
			i++;
		} else if (look_again(w, p)) {
			r = report(w, p);
			i++;
		} else {
			forget(w, p);
		}
	}
	return r;
}

static int consider(struct mt_watch *w, uint32_t tgid, uint64_t now_ns)
{
	char name[sizeof(((struct pending *)0)->what)];
	struct pending *p;

	if (find(w, tgid) || w->n == MT_WATCH_PENDING)
		return 0;
	/* A fork's child that has not allocated yet, or one that is about to register; it may
	 * execute something else at any time. */
	if (mt_proc_has(tgid, "maps", w->shim_name))
		return 0;
	/* In this order: one that lost its memory in between had it with the shim, perhaps. */
	if (is_zombie(tgid) || !read_name(tgid, name, sizeof(name)))
		return 0;
	p = &w->pending[w->n++];
	describe(w, p, tgid, "", name, now_ns);
	p->scanned = true;
	return 0;
}

/* A walk through the tree. */
struct scan {
	struct mt_watch *watch;
	uint64_t now_ns;
	bool (*tracked)(void *ctx, uint32_t tgid);
	void *ctx;
};

static int scan(const struct scan *s, uint32_t tgid, int depth);

/* Those that a thread of the process has started. */
static int scan_children(const struct scan *s, uint32_t tgid, uint32_t tid, int depth)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_children(tgid, tid);
	uint32_t child;
	int r = 0;

	while (file && r == 0 && fscanf(file, "%u", &child) == 1)
		r = scan(s, child, depth + 1);
	return r;
}

static int scan(const struct scan *s, uint32_t tgid, int depth)
{
	mt_cleanup(mt_proc_closep) DIR *threads = NULL;
	uint32_t tid;
	int r = 0;

	if (!s->tracked(s->ctx, tgid))
		r = consider(s->watch, tgid, s->now_ns);
	if (r < 0 || depth == SCAN_DEPTH)
		return r;
	threads = mt_proc_threads(tgid);
	while (r == 0 && (tid = mt_proc_next(threads)))
		r = scan_children(s, tgid, tid, depth);
	return r;
}

/* What was found by a scan, and has ended since, did so before it registered. */
static int forget_ended(struct mt_watch *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->n && r == 0;) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%u", w->pending[i].tgid);
		if (!w->pending[i].scanned || access(path, F_OK) == 0) {
			i++;
			continue;
		}
		r = report(w, &w->pending[i]);
		forget(w, &w->pending[i]);
	}
	return r;
}

int mt_watch_scan(struct mt_watch *w, uint32_t root, uint64_t now_ns,
		  bool (*tracked)(void *ctx, uint32_t tgid), void *tracked_ctx)
{
	const struct scan s = { w, now_ns, tracked, tracked_ctx };
	int r = forget_ended(w);

	return r < 0 ? r : scan(&s, root, 0);
}

void mt_watch_root(struct mt_watch *w, uint32_t tgid, const char *name, uint64_t now_ns)
{
	/* Looked at now: it may have ended before the next scan. */
	mt_cleanup(mt_closep) int fd = open_command(name);
	struct verdict verdict = judge_file(fd);
	struct pending *p = &w->pending[w->n];

	if (w->n == MT_WATCH_PENDING)
		return;
	*p = (struct pending){
		.tgid = tgid, .scanned = true, .since_ns = now_ns, .certain = verdict.certain
	};
	snprintf(p->what, sizeof(p->what), "%s", name);
	snprintf(p->reason, sizeof(p->reason), "%s",
		 verdict.reason ? verdict.reason : NOT_REGISTERED);
	w->n++;
}

int mt_watch_finish(struct mt_watch *w)
{
	return forget_ended(w);
}
