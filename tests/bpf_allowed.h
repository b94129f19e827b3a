/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * bpf_allowed.h - whether a test of the BPF programs may load them
 *
 * Contract
 *   Errors:    none but that: what else goes wrong is for the test's cases to find
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/probes.h"

#define BPF_SKIPPED 77

/* 0, or the exit status of a test that is skipped, whose reason is printed. */
static inline int bpf_allowed(void)
{
	const struct mt_probes_config config = { .cookie = 1, .budget_bytes = 8192 };
	struct mt_probes *tried = NULL;
	int err = mt_probes_open(&config, &tried);

	if (err == -EPERM || err == -EACCES) {
		printf("no BPF: cannot load the programs: %s\n", strerror(-err));
		return BPF_SKIPPED;
	}
	if (!err)
		mt_probes_close(tried);
	return 0;
}
