/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * artifact_text.h - records of an artifact as lines of text, those that make_artifact takes
 *
 * The ctx of these callbacks is a FILE.
 */
#include "artifact/reader.h"

extern const struct mt_reader_callbacks mt_artifact_text;
