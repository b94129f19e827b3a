/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.c - load the BPF object for one stack budget, and say what the verifier walked
 *
 * usage: budget OBJECT BUDGET_BYTES [raw]
 *
 * Prints a line for each program: its name, the instructions walked, and the deepest stack
 * frame of it and the functions that it calls.  Exits with 0, with 1 if the kernel refused
 * the object, with 77 if it may not be asked.  Sizes maps as collector/probes.c does, but
 * does not use it: the verifier's log is what is wanted here.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "wire/reference.h"
#include "wire/scratch.h"

#define PROGRAMS_MAX 16
#define LOG_BYTES (1024 * 1024)
#define LOG_STATISTICS 4 /* the kernel's BPF_LOG_STATS */

/* Where the knob lies in .rodata, or NULL. */
static __u32 *find_knob(struct bpf_object *object, const char *knob)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	const struct btf *btf = bpf_object__btf(object);
	__s32 id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_var_secinfo *var;
	const struct btf_type *section;
	size_t bytes;
	char *values;
	int i;

	if (!map || id < 0)
		return NULL;
	values = (char *)bpf_map__initial_value(map, &bytes);
	section = btf__type_by_id(btf, (__u32)id);
	var = btf_var_secinfos(section);
	for (i = 0; values && i < btf_vlen(section); i++, var++) {
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), knob))
			return (__u32 *)(values + var->offset);
	}
	return NULL;
}

static int size_maps(struct bpf_object *object, __u32 budget_bytes, bool raw)
{
	struct bpf_map *references = bpf_object__find_map_by_name(object, "references");
	struct bpf_map *scratches = bpf_object__find_map_by_name(object, "scratches");
	__u32 *knob = find_knob(object, "budget_bytes"), *raw_knob = find_knob(object, "raw"),
	      *measured = find_knob(object, "measured");
	int err;

	if (!references || !scratches || !knob || !raw_knob || !measured)
		return -ENOENT;
	*knob = budget_bytes;
	*raw_knob = raw;
	*measured = 1; /* which is more */
	if (raw) {
		err = bpf_map__set_max_entries(references, 1)
			      ?: bpf_map__set_max_entries(scratches, 1);
		if (err)
			return err;
	}
	return bpf_map__set_value_size(references, MT_WORDS_OFFSET + budget_bytes)
		       ?: bpf_map__set_value_size(scratches, (__u32)mt_scratch_bytes(budget_bytes));
}

/* The greatest number in the log's line "stack depth A+B+C..."; -1 without one. */
static long deepest_frame(const char *log)
{
	const char *at = strstr(log, "stack depth ");
	long deepest = -1, depth;
	char *end;

	if (!at)
		return -1;
	at += strlen("stack depth ");
	do {
		depth = strtol(at, &end, 10);
		deepest = depth > deepest ? depth : deepest;
		at = end + 1;
	} while (*end == '+');
	return deepest;
}

int main(int argc, char **argv)
{
	static char logs[PROGRAMS_MAX][LOG_BYTES];
	struct bpf_object *object;
	struct bpf_program *program;
	int i = 0, err;
	bool raw;

	libbpf_set_print(NULL); /* the first line on stderr is to be ours */
	raw = argc == 4 && !strcmp(argv[3], "raw");
	object = argc == 3 + raw ? bpf_object__open_file(argv[1], NULL) : NULL;
	if (!object || size_maps(object, (__u32)strtoul(argv[2], NULL, 10), raw)) {
		fprintf(stderr, "usage: budget OBJECT BUDGET_BYTES [raw]\n");
		return 1;
	}
	bpf_object__for_each_program (program, object) {
		if (i == PROGRAMS_MAX)
			return 1;
		bpf_program__set_log_level(program, LOG_STATISTICS);
		bpf_program__set_log_buf(program, logs[i++], LOG_BYTES);
	}
	err = bpf_object__load(object);
	if (err) {
		fprintf(stderr, "cannot load '%s': %s\n", argv[1], strerror(-err));
		return err == -EPERM ? 77 : 1;
	}
	i = 0;
	bpf_object__for_each_program (program, object) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
			return 1;
		printf("%s %u %ld\n", bpf_program__name(program), info.verified_insns,
		       deepest_frame(logs[i++]));
	}
	bpf_object__close(object);
	return 0;
}
