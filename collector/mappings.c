/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mappings.c - see mappings.h for the contract
 *
 * Invariants
 *   - Only the way by map_files is sure to lead to the file that is mapped, and needs
 *     rights over all processes.  /proc/TGID/exe needs none and is as sure, for the file of
 *     the mappings that have its path.  The path below the process's root comes last.
 *   - The processes are in a circle: the oldest gives way.
 */
#include "collector/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/image.h"
#include "collector/proc_state.h"

struct mapping {
	uint64_t start;
	struct mt_image *image;
};

struct process {
	uint32_t tgid; /* 0: none */
	uint32_t n;
	struct mapping mappings[MT_MAPPINGS_FILES];
};

struct mt_mappings {
	struct mt_images *images;
	uint32_t next;
	struct process processes[MT_MAPPINGS_PROCESSES];
};

int mt_mappings_new(struct mt_images *images, struct mt_mappings **ret)
{
	struct mt_mappings *mappings = calloc(1, sizeof(*mappings));

	if (!mappings)
		return -ENOMEM;
	mappings->images = images;
	*ret = mappings;
	return 0;
}

static void drop(struct process *process)
{
	for (uint32_t i = 0; i < process->n; i++)
		mt_image_unref(process->mappings[i].image);
	process->n = 0;
	process->tgid = 0;
}

void mt_mappings_free(struct mt_mappings *mappings)
{
	if (!mappings)
		return;
	for (uint32_t i = 0; i < MT_MAPPINGS_PROCESSES; i++)
		drop(&mappings->processes[i]);
	free(mappings);
}

static struct process *find_process(const struct mt_mappings *mappings, uint32_t tgid)
{
	for (uint32_t i = 0; i < MT_MAPPINGS_PROCESSES; i++)
		if (mappings->processes[i].tgid == tgid)
			return (struct process *)&mappings->processes[i];
	return NULL;
}

static int open_file(struct mt_mappings *mappings, uint32_t tgid, const char *range,
		     const char *path, const char *exe, struct mt_image **ret)
{
	char link[PATH_MAX + 64];
	int r;

	snprintf(link, sizeof(link), "/proc/%u/map_files/%s", tgid, range);
	r = mt_images_get_path(mappings->images, link, ret);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (!strcmp(path, exe))
		snprintf(link, sizeof(link), "/proc/%u/exe", tgid);
	else
		snprintf(link, sizeof(link), "/proc/%u/root%s", tgid, path);
	return mt_images_get_path(mappings->images, link, ret);
}

/* line: of /proc/TGID/maps. */
static int take_line(struct mt_mappings *mappings, struct process *process, uint32_t tgid,
		     char *line, const char *exe)
{
	char range[40], access[5];
	struct mt_image *image;
	uint64_t start, inode;
	int path_at = 0, r;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%39s %4s %*s %*s %" SCNu64 " %n", range, access, &inode, &path_at) != 3 ||
	    !inode || !path_at || access[2] != 'x' || sscanf(range, "%" SCNx64, &start) != 1)
		return 0;
	r = open_file(mappings, tgid, range, line + path_at, exe, &image);
	if (r == 0)
		process->mappings[process->n++] = (struct mapping){ start, image };
	return r == -ENOMEM ? r : 0;
}

int mt_mappings_take(struct mt_mappings *mappings, uint32_t tgid)
{
	struct process *process = find_process(mappings, tgid);
	mt_cleanup(mt_fclosep) FILE *file = NULL;
	mt_cleanup(mt_freep) char *line = NULL;
	char path[64], exe[PATH_MAX];
	size_t room = 0;
	ssize_t len;
	int r = 0;

	if (!process)
		process = &mappings->processes[mappings->next++ % MT_MAPPINGS_PROCESSES];
	drop(process);
	process->tgid = tgid;

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	len = readlink(path, exe, sizeof(exe) - 1);
	exe[len > 0 ? len : 0] = '\0';
	file = mt_proc_open(tgid, "maps");
	while (r == 0 && file && process->n < MT_MAPPINGS_FILES && getline(&line, &room, file) > 0)
		r = take_line(mappings, process, tgid, line, exe);
	return r;
}

struct mt_image *mt_mappings_find(const struct mt_mappings *mappings, uint32_t tgid, uint64_t start,
				  uint64_t end)
{
	const struct process *process = find_process(mappings, tgid);

	for (uint32_t i = 0; process && i < process->n; i++)
		if (process->mappings[i].start >= start && process->mappings[i].start < end)
			return process->mappings[i].image;
	return NULL;
}
