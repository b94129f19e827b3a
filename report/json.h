/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * json.h - a run as one JSON object; doc/memtrack-report.1 describes its keys
 *
 * Contract
 *   Errors: -ENOMEM.  Those of the stream are the stream's: ferror().
 */
#include <stdio.h>

#include "report/view.h"

int mt_json_report(const struct mt_view *view, FILE *out);
