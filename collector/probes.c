/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.c - see probes.h for the contract
 *
 * The only source that includes the skeleton.  What libbpf calls a map, a program or an
 * option does not pass beyond this file.
 *
 * Invariants
 *   - Knobs and sizes are set between open and load: the verifier checks each access against
 *     the sizes that the maps have then.
 *   - Writable mappings of references and control page live as long as the object: while
 *     they do, nobody who was handed the descriptors can freeze the maps (EBUSY).
 *   - The probe's place and its file are found through one descriptor, and the kernel is
 *     given that descriptor's file: nobody can put another in between.
 */
#include "collector/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/memtrack.skel.h"
#include "collector/segments.h"
#include "collector/uprobe_link.h"
#include "wire/scratch.h"

#define LIFE_LINKS 3
#define LINKS (LIFE_LINKS + MT_PROBES_FILES)
#define LOADS_MAX 100

/* A program that is attached; one of the two. */
struct attachment {
	struct bpf_link *link;
	int fd; /* -1: none */
};

struct mt_probes {
	struct memtrack_bpf *skel;
	struct mt_bpf_ring stacks;
	struct mt_bpf_ring life;
	struct mt_control *control;
	void *references;
	size_t references_bytes;
	uint64_t kernel_bytes;
	struct bpf_link *life_links[LIFE_LINKS];
	bool link_uprobes; /* by collector/uprobe_link.h, not as perf events */
	struct attachment captures[MT_PROBES_FILES];
	unsigned n_captures;
};

/* libbpf explains itself on stderr, the verifier's log included; only on request. */
__attribute__((format(printf, 2, 0))) static int print_if_asked(enum libbpf_print_level level,
								const char *format, va_list args)
{
	return secure_getenv("MEMTRACK_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static int map_array(int fd, size_t bytes, void **ret)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return mt_neg_errno();
	*ret = at;
	return 0;
}

static int map_maps(struct mt_probes *probes, uint32_t stacks_bytes, uint32_t life_bytes)
{
	struct memtrack_bpf *skel = probes->skel;
	void *at;
	int err;

	err = map_array(bpf_map__fd(skel->maps.control), sizeof(struct mt_control), &at);
	if (err)
		return err;
	probes->control = at;
	if (probes->references_bytes) {
		err = map_array(bpf_map__fd(skel->maps.references), probes->references_bytes,
				&probes->references);
		if (err)
			return err;
	}
	err = mt_bpf_ring_open(&probes->stacks, bpf_map__fd(skel->maps.stacks), stacks_bytes);
	if (err)
		return err;
	return mt_bpf_ring_open(&probes->life, bpf_map__fd(skel->maps.life), life_bytes);
}

/* Sets knobs and sizes; what they add up to is the kernel's memory. */
static int configure(struct mt_probes *probes, const struct mt_probes_config *config,
		     uint32_t stacks_bytes, uint32_t life_bytes)
{
	struct memtrack_bpf *skel = probes->skel;
	uint32_t scratch_bytes = (uint32_t)mt_scratch_bytes(config->budget_bytes);
	uint32_t reference_bytes = MT_WORDS_OFFSET + config->budget_bytes;
	uint32_t slots = config->raw ? 1 : MT_BPF_SLOTS;
	uint32_t percent = config->watermark_percent ? config->watermark_percent
						     : MT_WATERMARK_PERCENT;
	int err;

	skel->rodata->budget_bytes = config->budget_bytes;
	skel->rodata->cookie = config->cookie;
	skel->rodata->raw = config->raw;
	skel->rodata->measured = config->measured;
	skel->rodata->watermark_bytes = (uint64_t)stacks_bytes * percent / 100;
	skel->rodata->life_watermark_bytes = (uint64_t)life_bytes * percent / 100;
	skel->rodata->wakeup_bytes = config->wakeup_bytes ? config->wakeup_bytes : stacks_bytes / 4;

	probes->link_uprobes = !config->perf_events && mt_uprobe_link_exists();
	if (probes->link_uprobes)
		bpf_program__set_expected_attach_type(skel->progs.capture, MT_UPROBE_LINK_TYPE);

	err = bpf_map__set_value_size(skel->maps.references, reference_bytes);
	if (!err)
		err = bpf_map__set_value_size(skel->maps.scratches, scratch_bytes);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.references, slots);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.scratches, slots);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.stacks, stacks_bytes);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.life, life_bytes);
	if (err)
		return err;

	/* An entry of a hash is 48 bytes, key, value, and a bucket's 16. */
	if (!config->raw)
		probes->references_bytes = (size_t)slots * reference_bytes;
	probes->kernel_bytes = sizeof(struct mt_control) +
			       (uint64_t)slots * (reference_bytes + scratch_bytes) + stacks_bytes +
			       life_bytes + (uint64_t)MT_BPF_SLOTS * 16 +
			       (uint64_t)bpf_map__max_entries(skel->maps.members) * 80;
	return 0;
}

static int open_once(const struct mt_probes_config *config, struct mt_probes **ret)
{
	mt_cleanup(mt_probes_closep) struct mt_probes *probes = NULL;
	uint32_t stacks_bytes = config->stacks_bytes ? config->stacks_bytes
						     : MT_PROBES_STACKS_BYTES;
	uint32_t life_bytes = config->life_bytes ? config->life_bytes : MT_PROBES_LIFE_BYTES;
	int err;

	if (!is_power_of_two(config->budget_bytes) || !is_power_of_two(stacks_bytes) ||
	    !is_power_of_two(life_bytes) || config->budget_bytes < MT_BUDGET_MIN_BYTES ||
	    config->budget_bytes > MT_BUDGET_MAX_BYTES)
		return -EINVAL;

	libbpf_set_print(print_if_asked);
	probes = calloc(1, sizeof(*probes));
	if (!probes)
		return -ENOMEM;
	probes->skel = memtrack_bpf__open();
	if (!probes->skel)
		return mt_neg_errno();
	err = configure(probes, config, stacks_bytes, life_bytes);
	if (!err)
		err = memtrack_bpf__load(probes->skel);
	if (!err)
		err = map_maps(probes, stacks_bytes, life_bytes);
	if (err)
		return err;
	*ret = mt_take_ptr(probes);
	return 0;
}

/* The verifier gives up when a signal comes, SIGSTOP included, which nobody can block; libbpf
 * tries again five times, which are soon over. */
int mt_probes_open(const struct mt_probes_config *config, struct mt_probes **ret)
{
	int err, tries = 0;

	do
		err = open_once(config, ret);
	while (err == -EAGAIN && ++tries < LOADS_MAX);
	return err;
}

static void *destroy(void *arg)
{
	struct attachment *attachment = arg;

	bpf_link__destroy(attachment->link);
	mt_closep(&attachment->fd);
	return NULL;
}

/*
 * Each link waits for its own grace period when it is destroyed; a thread for each lets them
 * wait together.
 */
static void destroy_links(struct mt_probes *probes)
{
	struct attachment attachments[LINKS];
	pthread_t threads[LINKS];
	bool started[LINKS];
	sigset_t all, before;
	size_t n = 0, i;

	for (i = 0; i < LIFE_LINKS; i++)
		if (probes->life_links[i])
			attachments[n++] = (struct attachment){ probes->life_links[i], -1 };
	for (i = 0; i < probes->n_captures; i++)
		attachments[n++] = probes->captures[i];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (i = 0; i < n; i++)
		started[i] = !pthread_create(&threads[i], NULL, destroy, &attachments[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (i = 0; i < n; i++) {
		if (started[i])
			pthread_join(threads[i], NULL);
		else
			destroy(&attachments[i]);
	}
}

void mt_probes_close(struct mt_probes *probes)
{
	if (!probes)
		return;
	destroy_links(probes);
	mt_bpf_ring_close(&probes->stacks);
	mt_bpf_ring_close(&probes->life);
	if (probes->control)
		munmap(probes->control, sizeof(struct mt_control));
	if (probes->references)
		munmap(probes->references, probes->references_bytes);
	memtrack_bpf__destroy(probes->skel);
	free(probes);
}

/* Where in the file the probe's section, which begins with the probe, lies; or -ENOEXEC. */
static int find_section(int fd, uint64_t *ret_offset)
{
	Elf_Scn *section = NULL;
	int result = -ENOEXEC;
	size_t names;
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names))
		goto out;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr head;

		if (!gelf_getshdr(section, &head))
			continue;
		name = elf_strptr(elf, names, head.sh_name);
		if (!name || strcmp(name, MT_PROBE_SECTION) != 0)
			continue;
		if (head.sh_type == SHT_PROGBITS && head.sh_flags & SHF_EXECINSTR && head.sh_size &&
		    head.sh_offset <= INT64_MAX) {
			*ret_offset = head.sh_offset;
			result = 0;
		}
		break;
	}
out:
	elf_end(elf);
	return result;
}

static int attach_capture(struct mt_probes *probes, const char *path)
{
	mt_cleanup(mt_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bpf_program *program = probes->skel->progs.capture;
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	char name[sizeof("/proc/self/fd/") + 11];
	struct attachment made = { .fd = -1 };
	uint64_t offset;
	int err;

	if (fd < 0)
		return mt_neg_errno();
	if (probes->n_captures == MT_PROBES_FILES)
		return -EBUSY;
	err = find_section(fd, &offset);
	if (err)
		return err;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (probes->link_uprobes) {
		made.fd = mt_uprobe_link_create(bpf_program__fd(program), name, offset);
		if (made.fd < 0)
			return made.fd;
	} else {
		made.link = bpf_program__attach_uprobe_opts(program, -1, name, (size_t)offset,
							    &opts);
		if (!made.link)
			return mt_neg_errno();
	}
	probes->captures[probes->n_captures++] = made;
	return 0;
}

/* Exit first: a process that is entered by its fork is also removed. */
static int attach_life(struct mt_probes *probes)
{
	const struct bpf_program *programs[LIFE_LINKS] = {
		probes->skel->progs.process_exit,
		probes->skel->progs.process_exec,
		probes->skel->progs.process_fork,
	};
	int i;

	for (i = 0; i < LIFE_LINKS; i++) {
		if (probes->life_links[i])
			continue;
		probes->life_links[i] = bpf_program__attach_trace(programs[i]);
		if (!probes->life_links[i])
			return mt_neg_errno();
	}
	return 0;
}

int mt_probes_attach(struct mt_probes *probes, const char *path)
{
	int err = attach_life(probes);

	return err ? err : attach_capture(probes, path);
}

int mt_probes_add_member(struct mt_probes *probes, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid, one = 1;

	return bpf_map__update_elem(probes->skel->maps.members, &key, sizeof(key), &one,
				    sizeof(one), BPF_ANY);
}

int mt_probes_control_fd(const struct mt_probes *probes)
{
	return bpf_map__fd(probes->skel->maps.control);
}

int mt_probes_references_fd(const struct mt_probes *probes)
{
	return bpf_map__fd(probes->skel->maps.references);
}

int mt_probes_stacks_fd(const struct mt_probes *probes)
{
	return bpf_map__fd(probes->skel->maps.stacks);
}

int mt_probes_life_fd(const struct mt_probes *probes)
{
	return bpf_map__fd(probes->skel->maps.life);
}

struct mt_control *mt_probes_control(const struct mt_probes *probes)
{
	return probes->control;
}

void *mt_probes_references(const struct mt_probes *probes)
{
	return probes->references;
}

int mt_probes_drain(struct mt_probes *probes, mt_bpf_record_fn on_stack, mt_bpf_record_fn on_life,
		    void *ctx)
{
	int64_t n;

	n = mt_bpf_ring_drain(&probes->stacks, probes->stacks.ring_bytes, on_stack, ctx);
	if (n < 0 && n != -EAGAIN)
		return (int)n;
	n = mt_bpf_ring_drain(&probes->life, probes->life.ring_bytes, on_life, ctx);
	if (n < 0 && n != -EAGAIN)
		return (int)n;
	return 0;
}

uint64_t mt_probes_stacks_produced(const struct mt_probes *probes)
{
	return mt_bpf_ring_produced(&probes->stacks);
}

uint64_t mt_probes_stacks_consumed(const struct mt_probes *probes)
{
	return mt_bpf_ring_consumed(&probes->stacks);
}

static struct mt_probes_ring look_at(const struct mt_bpf_ring *ring, uint64_t watermark_bytes)
{
	struct mt_probes_ring state = {
		.bytes = ring->ring_bytes,
		.watermark_bytes = watermark_bytes,
		.consumed = mt_bpf_ring_consumed(ring),
	};

	state.produced = mt_bpf_ring_produced(ring);
	return state;
}

void mt_probes_rings(const struct mt_probes *probes, struct mt_probes_ring *ret_stacks,
		     struct mt_probes_ring *ret_life)
{
	*ret_stacks = look_at(&probes->stacks, probes->skel->rodata->watermark_bytes);
	*ret_life = look_at(&probes->life, probes->skel->rodata->life_watermark_bytes);
}

uint64_t mt_probes_kernel_bytes(const struct mt_probes *probes)
{
	return probes->kernel_bytes;
}

int mt_probes_capture_runs(const struct mt_probes *probes, struct mt_probes_runs *ret)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(bpf_program__fd(probes->skel->progs.capture), &info, &len);

	if (err)
		return err;
	*ret = (struct mt_probes_runs){ .runs = info.run_cnt, .ns = info.run_time_ns };
	return 0;
}
