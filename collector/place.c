/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * place.c - see place.h for the contract
 *
 * Invariants
 *   - The directory is on a file system that maps code; its name is ours alone (mkdtemp),
 *     everybody may read it: the tree may run as other users.
 *   - A library is known by the device and the inode that the kernel shows with a mapping, as
 *     it shows them of a mapping of ours: stat(2) has other numbers on some file systems.  A
 *     path proves nothing: a memfd's name looks like one, and who is handed it maps it.
 */
#include "collector/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collector/empty_library.h"
#include "collector/pidfd.h"
#include "collector/proc_state.h"

/* Of what is put into a run's directory. */
#define LIBRARIES_BYTES_MAX (1024 * 1024)
/* Between the end of one image and the loading of the next. */
#define EXEC_MS 1000
/* Whose ends are waited for at a time. */
#define HEIRS_MAX 64
/* Of a command's name in a file's: room for what is around it. */
#define NAME_BYTES_MAX 200

/* What the loader puts for ${PLATFORM}: the kernel's word; or glibc's own, up to 2.36 and by
 * the processor. */
#define PLATFORM_64 "x86_64"
static const char *const platforms_64[] = { PLATFORM_64, "haswell", "xeon_phi" };
#define N_PLATFORMS_64 (sizeof(platforms_64) / sizeof(platforms_64[0]))
#define PLATFORM_32 "i686"

/* The mapping of it must not be taken for one of the shim. */
#define EMPTY_NAME "empty-32.so"

/* One that says nothing of its size has none. */
static bool is_full(const struct statvfs *fs)
{
	uint64_t blocks = geteuid() ? fs->f_bavail : fs->f_bfree;

	return fs->f_blocks && blocks * fs->f_frsize < LIBRARIES_BYTES_MAX;
}

int mt_place_attend(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? mt_neg_errno() : fd;
}

static int open_directory(struct mt_place *place)
{
	strcpy(place->what, place->directory);
	place->fd = mt_place_attend(place->directory);
	if (place->fd < 0) {
		rmdir(place->directory);
		place->directory[0] = '\0';
		return place->fd;
	}
	return fchmod(place->fd, 0755) < 0 ? mt_neg_errno() : 0;
}

static int make_directory(struct mt_place *place)
{
	static const char *const parents[] = { "/tmp", "/var/tmp", "/run", "/dev/shm" };
	struct statvfs fs;
	int first = 0, r;

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		snprintf(place->directory, sizeof(place->directory), "%s/memtrack-XXXXXX",
			 parents[i]);
		if (statvfs(parents[i], &fs) < 0)
			r = mt_neg_errno();
		else if (fs.f_flag & ST_NOEXEC)
			r = -EACCES;
		else if (is_full(&fs))
			r = -ENOSPC;
		else if (mkdtemp(place->directory))
			return open_directory(place);
		else
			r = mt_neg_errno();
		/* The one that is to be mended is where it should have been. */
		if (!first) {
			first = r;
			strcpy(place->what, place->directory);
		}
	}
	place->directory[0] = '\0';
	return first;
}

/* what: the file of the two that an error is about. */
static int copy_file(const char *from, const char *to, const char **what)
{
	mt_cleanup(mt_closep) int in = -1;
	mt_cleanup(mt_closep) int out = -1;
	char block[65536];
	struct stat st;
	ssize_t n;

	*what = from;
	in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in < 0 || fstat(in, &st) < 0)
		return mt_neg_errno();
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	*what = to;
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (out < 0)
		return mt_neg_errno();
	while ((n = read(in, block, sizeof(block))) > 0)
		for (ssize_t done = 0, w; done < n; done += w) {
			w = write(out, block + done, (size_t)(n - done));
			if (w < 0)
				return mt_neg_errno();
		}
	if (n < 0) {
		*what = from;
		return mt_neg_errno();
	}
	return fchmod(out, 0755) < 0 ? mt_neg_errno() : 0;
}

static int make_empty_library(const char *directory)
{
	mt_cleanup(mt_closep) int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" PLATFORM_32, directory);
	if (mkdir(path, 0755) < 0 || chmod(path, 0755) < 0)
		return mt_neg_errno();
	snprintf(path, sizeof(path), "%s/" PLATFORM_32 "/" MT_SHIM_NAME, directory);
	if (symlink("../" EMPTY_NAME, path) < 0)
		return mt_neg_errno();
	snprintf(path, sizeof(path), "%s/" EMPTY_NAME, directory);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || fchmod(fd, 0755) < 0)
		return mt_neg_errno();
	return mt_empty_library_write(fd);
}

/* A place of its own for each kind of program that LD_PRELOAD is read by. */
static int divide_by_platform(struct mt_place *place)
{
	const char *platform = (const char *)getauxval(AT_PLATFORM);
	char path[PATH_MAX];

	/* A kernel that says nothing leaves the loader with nothing to put there. */
	if (!platform || strcmp(platform, PLATFORM_64) != 0) {
		snprintf(place->preload, sizeof(place->preload), "%s", place->shim);
		return 0;
	}
	for (size_t i = 0; i < N_PLATFORMS_64; i++) {
		snprintf(path, sizeof(path), "%s/%s", place->directory, platforms_64[i]);
		if (symlink(".", path) < 0)
			return mt_neg_errno();
	}
	snprintf(place->preload, sizeof(place->preload), "%s/${PLATFORM}/%s", place->directory,
		 MT_SHIM_NAME);
	return make_empty_library(place->directory);
}

int mt_place_open(struct mt_place *place)
{
	int r;

	*place = (struct mt_place){ .fd = -1 };
	r = make_directory(place);
	if (r < 0)
		return r;
	snprintf(place->shim, sizeof(place->shim), "%s/%s", place->directory, MT_SHIM_NAME);
	snprintf(place->socket, sizeof(place->socket), "%s/socket", place->directory);
	return 0;
}

int mt_place_fill(struct mt_place *place, const char *shim_source)
{
	const char *what;
	int r = copy_file(shim_source, place->shim, &what);

	if (r == 0) {
		what = place->directory;
		r = divide_by_platform(place);
	}
	snprintf(place->what, sizeof(place->what), "%s", what);
	return r;
}

/* Whether the path leads there still. */
static bool is_there(int fd, const char *directory)
{
	struct stat ours, found;

	return fstat(fd, &ours) == 0 && lstat(directory, &found) == 0 &&
	       ours.st_dev == found.st_dev && ours.st_ino == found.st_ino;
}

void mt_place_remove(int fd, const char *directory)
{
	static const char *const names[] = { MT_SHIM_NAME, "socket", EMPTY_NAME };
	mt_cleanup(mt_closep) int inner = openat(fd, PLATFORM_32,
						 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; i < N_PLATFORMS_64; i++)
		unlinkat(fd, platforms_64[i], 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(fd, names[i], 0);
	if (inner >= 0)
		unlinkat(inner, MT_SHIM_NAME, 0);
	unlinkat(fd, PLATFORM_32, AT_REMOVEDIR);
	if (is_there(fd, directory))
		rmdir(directory);
}

void mt_place_close(struct mt_place *place)
{
	if (place->directory[0])
		mt_place_remove(place->fd, place->directory);
	mt_place_leave(place);
}

void mt_place_leave(struct mt_place *place)
{
	if (place->directory[0])
		mt_closep(&place->fd);
	place->fd = -1;
	place->directory[0] = '\0';
}

/* What a process of the run may have mapped. */
enum { SHIM, EMPTY };
static const char *const libraries[] = { [SHIM] = MT_SHIM_NAME, [EMPTY] = EMPTY_NAME };
/* What the loader, and hardly anybody else, maps some of it for. */
static const char mapped_for[] = { [SHIM] = 'x', [EMPTY] = 'w' };
#define N_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static int open_library(int directory, size_t i)
{
	return openat(directory, libraries[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* Of a line of /proc/TGID/maps: "rwxp", and "MAJOR:MINOR INODE". */
struct mapping {
	char rights[8];
	char mark[sizeof(((struct mt_place_marks *)0)->marks[0])];
};

static void take_mapping(const char *line, struct mapping *ret)
{
	char device[16], inode[24];

	*ret = (struct mapping){ 0 };
	if (sscanf(line, "%*s %7s %*s %15s %23s", ret->rights, device, inode) == 3)
		snprintf(ret->mark, sizeof(ret->mark), "%s %s", device, inode);
}

static void mark_address(const void *at, struct mapping *ret)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_open((uint32_t)getpid(), "maps");
	mt_cleanup(mt_freep) char *line = NULL;
	size_t line_room = 0;

	while (file && getline(&line, &line_room, file) > 0)
		if (strtoull(line, NULL, 16) == (uintptr_t)at)
			take_mapping(line, ret);
}

int mt_place_mark(int directory, struct mt_place_marks *ret)
{
	_Static_assert(sizeof(ret->marks) / sizeof(ret->marks[0]) == N_LIBRARIES,
		       "a library without a mark");
	*ret = (struct mt_place_marks){ 0 };
	for (size_t i = 0; i < N_LIBRARIES; i++) {
		mt_cleanup(mt_closep) int fd = open_library(directory, i);
		struct mapping mapping = { 0 };
		void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);

		if (fd < 0 && errno == ENOENT)
			continue; /* as where the kernel does not name the platform */
		if (at == MAP_FAILED)
			return mt_neg_errno();
		mark_address(at, &mapping);
		munmap(at, 1);
		if (!mapping.mark[0])
			return -ENOENT;
		memcpy(ret->marks[i], mapping.mark, sizeof(mapping.mark));
	}
	return 0;
}

bool mt_place_is_loaded(const struct mt_place_marks *marks, uint32_t tgid)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_open(tgid, "maps");
	mt_cleanup(mt_freep) char *line = NULL;
	struct mapping mapping;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		take_mapping(line, &mapping);
		for (size_t i = 0; mapping.mark[0] && i < N_LIBRARIES; i++)
			if (!strcmp(mapping.mark, marks->marks[i]) &&
			    strchr(mapping.rights, mapped_for[i]) && strchr(mapping.rights, 'p'))
				return true;
	}
	return false;
}

/* Whether anybody but us has the file open, or mapped: then a write lease can not be had. */
static int try_lease(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return mt_neg_errno();
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return 0;
}

static bool is_open_elsewhere(int fd)
{
	return try_lease(fd) == -EAGAIN;
}

bool mt_place_is_left(int directory)
{
	mt_cleanup(mt_closep) int fd = open_library(directory, SHIM);
	struct statfs fs;

	/* Where that is not the file that is mapped, a lease tells nothing. */
	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type != OVERLAYFS_SUPER_MAGIC &&
	       try_lease(fd) == 0;
}

/* As pidfds, most of them at most: the processes whose environment leads here.  A program that the
 * shim is not for hands it on, and what that executes looks for the shim. */
static size_t find_heirs(const char *directory, struct pollfd *ret, size_t most)
{
	mt_cleanup(mt_proc_closep) DIR *proc = opendir("/proc");
	uint32_t tgid;
	size_t n = 0;

	while (n < most && (tgid = mt_proc_next(proc))) {
		int pidfd;

		if (!mt_proc_has(tgid, "environ", directory))
			continue;
		pidfd = mt_pidfd_open(tgid);
		if (pidfd >= 0)
			ret[n++] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	}
	return n;
}

static void forget_heirs(const struct pollfd *heirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(heirs[i].fd);
}

static bool has_heir(const char *directory)
{
	struct pollfd heir;
	size_t n = find_heirs(directory, &heir, 1);

	forget_heirs(&heir, n);
	return n > 0;
}

bool mt_place_in_use(int fd, const char *directory)
{
	bool in_use = false;

	for (size_t i = 0; i < N_LIBRARIES && !in_use; i++) {
		mt_cleanup(mt_closep) int library = open_library(fd, i);

		in_use = library >= 0 && is_open_elsewhere(library);
	}
	return in_use || has_heir(directory);
}

/* Their last closes are what is waited for: a mapping's end is one.  Ours come after that. */
static bool watch_libraries(int watch, const int *fds)
{
	uint32_t n = 0;
	char name[32];

	for (size_t i = 0; i < N_LIBRARIES; i++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fds[i]);
		n += fds[i] >= 0 && inotify_add_watch(watch, name, IN_CLOSE_NOWRITE) >= 0;
	}
	return n > 0;
}

void mt_place_outlive(int fd, const char *directory)
{
	mt_cleanup(mt_closep) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct pollfd waits[1 + HEIRS_MAX] = { { .fd = watch, .events = POLLIN } };
	int fds[N_LIBRARIES];
	char events[4096];
	size_t n = 0;
	bool in_use;

	for (size_t i = 0; i < N_LIBRARIES; i++)
		fds[i] = open_library(fd, i);
	if (watch >= 0 && watch_libraries(watch, fds)) {
		do {
			while (read(watch, events, sizeof(events)) > 0)
				;
			forget_heirs(waits + 1, n);
			in_use = false;
			for (size_t i = 0; i < N_LIBRARIES; i++)
				in_use |= fds[i] >= 0 && is_open_elsewhere(fds[i]);
			/* Heirs are looked for where nothing else keeps it. */
			n = in_use ? 0 : find_heirs(directory, waits + 1, HEIRS_MAX);
		} while (poll(waits, 1 + n, in_use || n ? -1 : EXEC_MS) != 0);
	}
	for (size_t i = 0; i < N_LIBRARIES; i++)
		mt_closep(&fds[i]);
	mt_place_remove(fd, directory);
}

/* more: flags for a file that is there. */
static int open_or_create(const char *path, int more, bool *ret_created)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	*ret_created = fd >= 0;
	if (fd < 0 && errno == EEXIST) /* Not to wait for the reader of a fifo. */
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more,
			  0666);
	return fd < 0 ? mt_neg_errno() : fd;
}

/* For this run alone; a file system without locks can not tell. */
static int reserve(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? -EBUSY : 0;
}

/* other: what becomes of a file that is not a regular one: 0, it is taken as it is, or an error. */
static int open_file(const char *path, int more, int other, bool *ret_created)
{
	mt_cleanup(mt_closep) int fd = open_or_create(path, more, ret_created);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return mt_neg_errno();
	r = S_ISREG(st.st_mode) ? reserve(fd) : other;
	return r < 0 ? r : mt_take_fd(&fd);
}

static int open_regular(const char *path, int more, bool *ret_created)
{
	int fd = open_file(path, more, -EINVAL, ret_created);

	return fd == -ENXIO ? -EINVAL : fd; /* a fifo that nobody reads */
}

int mt_place_open_stats(const char *path, bool *ret_created)
{
	return open_file(path, 0, 0, ret_created);
}

int mt_place_open_output(const char *path, const char *command, pid_t tgid, char *what,
			 size_t what_room, bool *ret_created)
{
	const char *slash = strrchr(command, '/');
	const char *name = slash ? slash + 1 : command;
	/* A name that was not given can be foreseen, and somebody may have led it elsewhere. */
	int len, more = O_NOFOLLOW;
	struct stat st;

	if (path && !*path) {
		snprintf(what, what_room, "%s", path);
		return -ENOENT;
	}
	if (!path)
		len = snprintf(what, what_room, "memtrack.%.*s.%d.mtk", NAME_BYTES_MAX, name,
			       (int)tgid);
	else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		len = snprintf(what, what_room, "%s/memtrack.%.*s.%d.mtk", path, NAME_BYTES_MAX,
			       name, (int)tgid);
	else {
		len = snprintf(what, what_room, "%s", path);
		more = 0;
	}
	if (len < 0 || (size_t)len >= what_room)
		return -ENAMETOOLONG;
	return open_regular(what, more, ret_created);
}
