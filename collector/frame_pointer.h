/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/*
 * frame_pointer.h - from a frame without unwind information to its caller, if rbp allows
 *
 * Contract
 *   Input:     rsp and rbp of a frame whose code has no unwind information; anything.
 *   Errors:    the reason to stop, by which *ret was not written.
 *   Bounds:    two words are read; of a file, a few bytes.
 *
 * The compiler (-fno-omit-frame-pointer) or the assembler's author may have kept
 *
 *     [rbp + 8]  return address
 *     [rbp]      the caller's rbp
 *
 * or may have put anything into rbp.  It is taken for the former if rbp is an aligned
 * address at rsp or above, not further than MT_FRAME_POINTER_BYTES, and what lies at
 * [rbp + 8] is an address that a call returns to: mt_frame_pointer_is_return().
 */
#include "collector/space.h"
#include "collector/window.h"

#define MT_FRAME_POINTER_BYTES (1024 * 1024)

struct mt_frame_pointer_caller {
	uint64_t pc, sp;
	uint64_t rbp_at; /* where its rbp is saved */
};

/*
 * An rbp of 0 is the end mark that the psABI asks for, or a register that happens to be 0.
 * It is taken for the mark in the frame at the very bottom of the stack (ld.so's entry code,
 * and others' that has no unwind information), and where the frame below was left by its
 * frame pointer, too (linked).
 *
 * otherwise: the reason to stop if rbp is no frame pointer.
 *
 * What is found may go on only if mt_frame_pointer_is_return() says so of ret->pc; else the
 * chain ends, with otherwise.  It is asked apart because its answer does not depend on the
 * window: remember it.
 */
enum mt_stop mt_frame_pointer_follow(const struct mt_window *window, uint64_t rsp, uint64_t rbp,
				     bool linked, enum mt_stop otherwise,
				     struct mt_frame_pointer_caller *ret);

/*
 * Whether pc is one that a call returns to: the instruction before it is a call, or it is
 * where the kernel lets handlers of signals return to.  Where the file's code can not be
 * read, whether the byte before it is code.
 */
bool mt_frame_pointer_is_return(const struct mt_space *space, uint64_t pc);
