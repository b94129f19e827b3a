/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay_compare.S - the shim's vector code, assembled once more, for a program
 *
 * A source of its own because automake makes an object either with libtool or without.
 */
#include "preload/compare.S"
