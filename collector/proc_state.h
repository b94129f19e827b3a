/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * proc_state.h - what proc(5) says of a process: its state, its relatives, namespaces and files
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Of a file that the process may make as long as it likes, so much is looked through. */
#define MT_PROC_FILE_BYTES (32u * 1024 * 1024)

/* /proc/TGID/FILE, to be read; NULL as for fopen(3). */
static inline FILE *mt_proc_open(uint32_t tgid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	return fopen(path, "re");
}

static inline void mt_proc_closep(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

/* The next number in /proc, a process, or in what mt_proc_threads() opened, a thread; 0: there are
 * no more, or no folder. */
static inline uint32_t mt_proc_next(DIR *folder)
{
	const struct dirent *entry;
	uint32_t number = 0;

	while (folder && !number && (entry = readdir(folder)))
		number = (uint32_t)strtoul(entry->d_name, NULL, 10);
	return number;
}

/* NULL as for opendir(3). */
static inline DIR *mt_proc_threads(uint32_t tgid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	return opendir(path);
}

/* Those that a thread has started, as decimal numbers; NULL as for fopen(3), and where Linux has no
 * CONFIG_PROC_CHILDREN. */
static inline FILE *mt_proc_children(uint32_t tgid, uint32_t tid)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%u/children", tid);
	return mt_proc_open(tgid, name);
}

/* /proc/TGID/stat from behind the name, which may have anything in it; NULL if there is no such
 * process, or it can not be looked at. */
static inline const char *mt_proc_stat(uint32_t tgid, char *room, size_t bytes)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_open(tgid, "stat");
	const char *rest;

	if (!file)
		return NULL;
	room[fread(room, 1, bytes - 1, file)] = '\0';
	rest = strrchr(room, ')');
	return rest && rest[1] == ' ' ? rest + 2 : NULL;
}

/* 'R', 'S', 'T', 'Z' and so on; 0 if there is no such process, or it can not be looked at. */
static inline char mt_proc_state(uint32_t tgid)
{
	char stat[256];
	const char *rest = mt_proc_stat(tgid, stat, sizeof(stat));

	return rest ? rest[0] : 0;
}

/* 0: there is none, or no such process. */
static inline uint32_t mt_proc_parent(uint32_t tgid)
{
	char stat[256];
	const char *rest = mt_proc_stat(tgid, stat, sizeof(stat));

	return rest && rest[0] ? (uint32_t)strtoul(rest + 1, NULL, 10) : 0;
}

/* A number of what mt_proc_stat() returned, by proc(5)'s count, where the state is 3; 0: none. */
static inline uint64_t mt_proc_number(const char *rest, int field)
{
	for (int i = 3; i < field && rest; i++) {
		rest = strchr(rest, ' ');
		rest = rest ? rest + 1 : NULL;
	}
	return rest ? strtoull(rest, NULL, 10) : 0;
}

/* In clock ticks since the machine's start; 0: no such process. */
static inline uint64_t mt_proc_start(uint32_t tgid)
{
	char stat[1024];

	return mt_proc_number(mt_proc_stat(tgid, stat, sizeof(stat)), 22);
}

/* Whether the process is there and has not ended.  One whose main thread has ended before others
 * looks like a zombie, but has more threads than that. */
static inline bool mt_proc_lives(uint32_t tgid)
{
	char stat[1024];
	const char *rest = mt_proc_stat(tgid, stat, sizeof(stat));

	return rest && ((rest[0] != 'Z' && rest[0] != 'X') || mt_proc_number(rest, 20) > 1);
}

/* What names a namespace of the process ("pid", "pid_for_children"); 0: that can not be told. */
static inline uint64_t mt_proc_namespace(uint32_t tgid, const char *which)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/%s", tgid, which);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* What the process is called in its own PID namespace; 0: no such process. */
static inline uint32_t mt_proc_inner_tgid(uint32_t tgid)
{
	mt_cleanup(mt_fclosep) FILE *file = mt_proc_open(tgid, "status");
	const char *last;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
		if (last)
			return (uint32_t)strtoul(last, NULL, 10);
	}
	return 0;
}

/*
 * Whether /proc/TGID/FILE holds the text; a file that can not be read does not.  Where its
 * environment lies a process may say itself, and that it has no end.
 */
static inline bool mt_proc_has(uint32_t tgid, const char *name, const char *text)
{
	mt_cleanup(mt_closep) int fd = -1;
	size_t text_len = strlen(text), len = 0, done = 0;
	char path[64], block[16384];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && done < MT_PROC_FILE_BYTES) {
		n = read(fd, block + len, sizeof(block) - len);
		if (n <= 0)
			break;
		done += (size_t)n;
		len += (size_t)n;
		if (memmem(block, len, text, text_len))
			return true;
		/* At the end there may be the beginning of it. */
		if (len >= text_len) {
			memmove(block, block + len - (text_len - 1), text_len - 1);
			len = text_len - 1;
		}
	}
	return false;
}
