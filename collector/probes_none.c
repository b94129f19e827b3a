/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes_none.c - probes.h for --disable-bpf: there is nothing to open
 *
 * Invariants
 *   - mt_probes_open() never makes an object, so that no other call ever gets one.
 */
#include "collector/probes.h"

#include <errno.h>

int mt_probes_open(const struct mt_probes_config *config, struct mt_probes **ret)
{
	return -EOPNOTSUPP;
}

void mt_probes_close(struct mt_probes *probes)
{
}

int mt_probes_attach(struct mt_probes *probes, const char *path)
{
	return -EOPNOTSUPP;
}

int mt_probes_add_member(struct mt_probes *probes, pid_t tgid)
{
	return -EOPNOTSUPP;
}

int mt_probes_control_fd(const struct mt_probes *probes)
{
	return -EOPNOTSUPP;
}

int mt_probes_references_fd(const struct mt_probes *probes)
{
	return -EOPNOTSUPP;
}

int mt_probes_stacks_fd(const struct mt_probes *probes)
{
	return -EOPNOTSUPP;
}

int mt_probes_life_fd(const struct mt_probes *probes)
{
	return -EOPNOTSUPP;
}

struct mt_control *mt_probes_control(const struct mt_probes *probes)
{
	return NULL;
}

void *mt_probes_references(const struct mt_probes *probes)
{
	return NULL;
}

int mt_probes_drain(struct mt_probes *probes, mt_bpf_record_fn on_stack, mt_bpf_record_fn on_life,
		    void *ctx)
{
	return -EOPNOTSUPP;
}

uint64_t mt_probes_stacks_produced(const struct mt_probes *probes)
{
	return 0;
}

uint64_t mt_probes_stacks_consumed(const struct mt_probes *probes)
{
	return 0;
}

void mt_probes_rings(const struct mt_probes *probes, struct mt_probes_ring *ret_stacks,
		     struct mt_probes_ring *ret_life)
{
	*ret_stacks = (struct mt_probes_ring){ 0 };
	*ret_life = (struct mt_probes_ring){ 0 };
}

uint64_t mt_probes_kernel_bytes(const struct mt_probes *probes)
{
	return 0;
}

int mt_probes_capture_runs(const struct mt_probes *probes, struct mt_probes_runs *ret)
{
	return -EOPNOTSUPP;
}
