/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * text.h - a run as text for people
 *
 * Contract
 *   Errors: -ENOMEM.  Those of the stream are the stream's: ferror().
 */
#include <stdio.h>

#include "report/view.h"

int mt_text_report(const struct mt_view *view, FILE *out);
