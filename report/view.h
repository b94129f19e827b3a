/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * view.h - what of a run is to be shown, and in which order
 */
#include <stddef.h>

#include "report/rank.h"
#include "report/run.h"
#include "report/symbolize.h"

enum mt_view_by {
	MT_VIEW_CHAIN,
	MT_VIEW_SIZE,
	MT_VIEW_THREAD,
	MT_VIEW_PROCESS,
	_MT_VIEW_MAX,
};

struct mt_view {
	const struct mt_run *run;
	struct mt_symbolizer *symbolizer; /* for MT_VIEW_CHAIN */
	enum mt_view_by by;
	size_t top; /* chains in each list */
};
