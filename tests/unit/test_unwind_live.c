/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_unwind_live.c - collector/unwind.h on stacks of this process, against libgcc's chains
 *
 * Each scenario captures with live_capture() (tests/unit/live_stack.h) from a place that is
 * hard to unwind from.  The functions are compiled with -O2 and without frame pointers; a
 * BARRIER after a call keeps it from becoming a jump.
 */
#include <alloca.h>
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "artifact/format.h"
#include "tests/unit/live_stack.h"

#define BUDGET (64 * 1024)
#define BARRIER() __asm__ volatile("" ::: "memory")

static sigjmp_buf back;
/* What the preinit function, which runs before anything else, made of its stack. */
static struct {
	unsigned int captures, whole, stop;
} at_start;

void live_trap_first(void);
void live_leaves(void);
void live_never_returns(void);
void live_by_rbx(void);
void live_by_expression(void);
void live_no_cfi_linked(void);
void live_no_cfi(void);
int live_late(int n);

/* Between two functions whose CFA is elsewhere: a look-up one byte off gives theirs. */
__asm__(".text\n"
	".cfi_startproc\n .cfi_def_cfa_offset 4096\n nop\n .cfi_endproc\n"
	".globl live_trap_first\n"
	"live_trap_first: .cfi_startproc\n ud2\n ret\n .cfi_endproc\n"
	".globl live_leaves\n"
	"live_leaves: .cfi_startproc\n"
	"sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
	"call live_never_returns\n"
	".cfi_endproc\n"
	".cfi_startproc\n .cfi_def_cfa_offset 4096\n nop\n .cfi_endproc\n"
	/* As ld.so's resolver does it. */
	".globl live_by_rbx\n"
	"live_by_rbx: .cfi_startproc\n"
	"push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %rbx, 0\n"
	"mov %rsp, %rbx\n .cfi_def_cfa_register %rbx\n"
	"and $-64, %rsp\n sub $128, %rsp\n"
	"call live_capture\n"
	"mov %rbx, %rsp\n .cfi_def_cfa_register %rsp\n"
	"pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbx\n"
	"ret\n .cfi_endproc\n"
	/* DW_CFA_def_cfa_expression: breg7(rsp) 8; lit8; plus */
	".globl live_by_expression\n"
	"live_by_expression: .cfi_startproc\n"
	"sub $8, %rsp\n .cfi_escape 0x0f, 4, 0x77, 8, 0x38, 0x22\n"
	"call live_capture\n"
	"add $8, %rsp\n .cfi_def_cfa %rsp, 8\n"
	"ret\n .cfi_endproc\n"
	".globl live_no_cfi_linked\n"
	"live_no_cfi_linked: push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n"
	"call live_capture\n leave\n ret\n"
	".globl live_no_cfi\n"
	"live_no_cfi: push %rbp\n mov $4096, %ebp\n sub $32, %rsp\n"
	"call live_capture\n add $32, %rsp\n pop %rbp\n ret\n");

static bool on_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

static void expect_whole(unsigned int captures)
{
	ck_assert_uint_eq(live.wrong, 0);
	ck_assert_uint_eq(live.whole, captures);
	ck_assert_uint_eq(live.captures, captures);
	ck_assert_uint_eq(live.stop, MT_STOP_END);
}

/* And each is one that can be taught. */
static void expect_learned(unsigned int captures)
{
	expect_whole(captures);
	ck_assert_uint_eq(live.learned, captures);
}

static void setup(void)
{
	live_reset(BUDGET);
}

static __attribute__((noinline)) int leaf(int n)
{
	live_capture();
	BARRIER();
	return n + 1;
}

static __attribute__((noinline)) int middle(int n)
{
	int r = leaf(n) + leaf(n + 1);

	BARRIER();
	return r;
}

START_TEST(plain)
{
	ck_assert_int_eq(middle(1), 5);
	expect_learned(2);
	ck_assert(live_has(middle, 100));
	ck_assert_uint_ge(live.len, 5);
}
END_TEST

static __attribute__((noinline)) int recurse(int depth)
{
	volatile char local[64];
	int r;

	local[depth % 64] = 1;
	r = depth ? recurse(depth - 1) : leaf(0);
	BARRIER();
	return r + local[depth % 64];
}

START_TEST(deep)
{
	recurse(150);
	expect_learned(1);
	ck_assert_uint_ge(live.len, 150);
}
END_TEST

START_TEST(deeper_than_the_window)
{
	static const uint32_t budgets[] = { 4096, 8192, 16384, 32768, 65536 };

	for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
		live_reset(budgets[i]);
		recurse(2000);
		ck_assert_uint_eq(live.wrong, 0);
		ck_assert_uint_eq(live.truncated, 1);
		ck_assert_uint_ge(live.len, budgets[i] / 256);
	}
}
END_TEST

static __attribute__((noinline)) int with_alloca(size_t n)
{
	volatile char *block = alloca(n);
	int r;

	block[n - 1] = 1;
	r = n > 1000 ? leaf(0) : with_alloca(n + 100);
	BARRIER();
	return r + block[n - 1];
}

START_TEST(alloca_frames)
{
	with_alloca(100);
	expect_learned(1);
}
END_TEST

/* GCC keeps the caller's frame in r10 here, and the CFA behind rbp. */
static __attribute__((noinline)) int realigned(int n, size_t more)
{
	_Alignas(64) volatile char local[64];
	volatile char *block = alloca(more);
	int r;

	local[n] = 1;
	block[0] = 2;
	ck_assert_uint_eq((uintptr_t)local % 64, 0);
	r = n ? realigned(n - 1, more + 24) : leaf(0);
	BARRIER();
	return r + local[n] + block[0];
}

static __attribute__((noinline, force_align_arg_pointer)) int forced(int n, int a, int b, int c,
								     int d, int e, int on_stack)
{
	int r = realigned(n, (size_t)(8 * (a + b + c + d + e + on_stack)));

	BARRIER();
	return r + on_stack;
}

START_TEST(realigned_stacks)
{
	forced(6, 1, 2, 3, 4, 5, 6);
	expect_learned(1);
}
END_TEST

static void on_signal(int signo)
{
	leaf(signo);
	BARRIER();
}

static void on_fault(int signo)
{
	leaf(signo);
	siglongjmp(back, 1);
}

static void handle(int signo, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	ck_assert_int_eq(sigaction(signo, &action, NULL), 0);
}

static __attribute__((noinline)) int raise_in(int depth)
{
	int r = depth ? raise_in(depth - 1) : raise(SIGUSR1);

	BARRIER();
	return r + 1;
}

START_TEST(signal_frame)
{
	if (on_valgrind())
		return;
	handle(SIGUSR1, on_signal, 0);
	raise_in(4);
	expect_whole(1);
	ck_assert(live_has(raise_in, 100));
}
END_TEST

static __attribute__((noinline)) int fault_in(int depth, volatile int *at)
{
	int r = depth ? fault_in(depth - 1, at) : *at;

	BARRIER();
	return r + 1;
}

/* The interrupted instruction is looked up itself, in the middle of a function and as the
 * first of one. */
START_TEST(fault_frame)
{
	static void (*volatile nowhere)(void);

	if (on_valgrind())
		return;
	handle(SIGSEGV, on_fault, SA_NODEFER);
	if (!sigsetjmp(back, 1))
		fault_in(3, mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	expect_whole(1);
	ck_assert(live_has(fault_in, 100));

	handle(SIGILL, on_fault, SA_NODEFER);
	if (!sigsetjmp(back, 1))
		live_trap_first();
	expect_whole(2);
	ck_assert(live_has(live_trap_first, 0));

	/* A call of nothing: the interrupted code is in no module. */
	if (!sigsetjmp(back, 1))
		nowhere();
	ck_assert_uint_eq(live.captures, 3);
	ck_assert_uint_eq(live.stop, MT_STOP_NO_MODULE);
	ck_assert_uint_eq(live.pcs[live.len - 1], 0);
}
END_TEST

START_TEST(alternate_stack)
{
	stack_t stack = { .ss_size = 64 * 1024 };

	if (on_valgrind())
		return;
	stack.ss_sp = malloc(stack.ss_size);
	ck_assert_ptr_nonnull(stack.ss_sp);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	live_set_bound((char *)stack.ss_sp + stack.ss_size);
	raise_in(4);
	ck_assert_uint_eq(live.wrong, 0);
	ck_assert_uint_eq(live.truncated, 1);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
}
END_TEST

static void *in_thread(void *ctx)
{
	middle(1);
	BARRIER();
	return ctx;
}

START_TEST(other_thread)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	expect_learned(2);
}
END_TEST

void live_never_returns(void)
{
	leaf(0);
	siglongjmp(back, 1);
}

START_TEST(call_at_the_end_of_a_function)
{
	if (!sigsetjmp(back, 1))
		live_leaves();
	expect_learned(1);
}
END_TEST

START_TEST(rules_of_the_full_evaluator)
{
	live_by_rbx();
	expect_whole(1);
	live_by_expression();
	expect_whole(2);
}
END_TEST

START_TEST(without_cfi)
{
	live_no_cfi_linked();
	ck_assert_uint_eq(live.wrong, 0);
	ck_assert_uint_eq(live.longer, 1);
	live_no_cfi();
	ck_assert_uint_eq(live.wrong, 0);
	ck_assert_uint_eq(live.no_cfi, 1);
}
END_TEST

static ucontext_t main_context, other_context;

static void in_context(void)
{
	middle(1);
	BARRIER();
}

START_TEST(own_stack)
{
	static char stack[64 * 1024] __attribute__((aligned(16)));

	ck_assert_int_eq(getcontext(&other_context), 0);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = &main_context;
	makecontext(&other_context, in_context, 0);
	live_set_bound(stack + sizeof(stack));
	ck_assert_int_eq(swapcontext(&main_context, &other_context), 0);
	/* glibc returns to the first byte of a function, and its unwind information does not
	 * say that this is the end. */
	ck_assert_uint_eq(live.wrong, 0);
	ck_assert_uint_eq(live.no_cfi, 2);
	ck_assert(live_has(in_context, 100));
}
END_TEST

static int compare(const void *a, const void *b)
{
	leaf(0);
	BARRIER();
	return *(const int *)a - *(const int *)b;
}

START_TEST(library_calls_back)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof(numbers[0]), compare);
	expect_learned(live.captures);
	ck_assert_uint_ge(live.captures, 2);
}
END_TEST

static _Unwind_Reason_Code
stop_unwinding(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	       struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *ctx)
{
	leaf(version);
	siglongjmp(back, 1);
}

static __attribute__((noinline)) int unwind_from(int depth)
{
	static struct _Unwind_Exception exception;
	int r;

	r = depth ? unwind_from(depth - 1)
		  : (int)_Unwind_ForcedUnwind(&exception, stop_unwinding, NULL);
	BARRIER();
	return r + 1;
}

START_TEST(inside_the_unwinder)
{
	if (!sigsetjmp(back, 1))
		unwind_from(3);
	expect_learned(1);
	ck_assert(live_has(unwind_from, 100));
}
END_TEST

static int late(int n)
{
	return n + 1;
}

/* Runs inside ld.so's resolver when live_late is called for the first time. */
__attribute__((used)) static int (*resolve_late(void))(int)
{
	if (live.captures == 0 && getenv("LIVE_CAPTURE"))
		leaf(0);
	BARRIER();
	return late;
}

int live_late(int n) __attribute__((ifunc("resolve_late")));

/* What is beside the program. */
static void *open_library(const char *name)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *library;

	ck_assert_int_gt(len, 0);
	path[len] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	library = dlopen(path, RTLD_LAZY);
	if (!library)
		ck_abort_msg("%s", dlerror());
	live_reset(BUDGET);
	return library;
}

START_TEST(lazy_binding)
{
	int (*call)(int);

	*(void **)&call = dlsym(open_library("live_lazy.so"), "live_lazy_call");
	setenv("LIVE_CAPTURE", "1", 1);
	ck_assert_int_eq(call(1), 3);
	unsetenv("LIVE_CAPTURE");
	if (!live.captures && (getenv("LD_BIND_NOW") || on_valgrind()))
		return;
	expect_whole(1);
	ck_assert(live_has((void *)call, 100));
}
END_TEST

START_TEST(debug_frame)
{
	static const char *const names[] = { "live_debug_frame.so", "live_debug_frame_z.so" };
	int (*outer)(void (*)(void), int);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*(void **)&outer = dlsym(open_library(names[i]), "live_debug_frame_outer");
		outer(live_capture, 4);
		ck_assert_uint_eq(live.wrong, 0);
		/* libgcc has no row in there. */
		ck_assert_uint_eq(live.longer, 1);
		ck_assert(live_has((void *)outer, 1000));
	}
}
END_TEST

START_TEST(cxx_library)
{
	live_cxx_library();
	/* valgrind has its own operator new. */
	if (!live.captures && on_valgrind())
		return;
	expect_learned(live.captures);
	ck_assert_uint_ge(live.captures, 50);
}
END_TEST

START_TEST(cxx_exceptions)
{
	live_cxx_unwinding();
	expect_learned(live.captures);
	ck_assert_uint_ge(live.captures, 8);
	live_cxx_throw();
	expect_learned(live.captures);
	ck_assert_uint_ge(live.captures, 14);
}
END_TEST

/* ld.so's entry code has no unwind information, and is the end of the stack. */
START_TEST(before_main)
{
	ck_assert_uint_eq(at_start.captures, 1);
	ck_assert_uint_eq(at_start.stop, MT_STOP_END);
	ck_assert_uint_eq(at_start.whole, 1);
}
END_TEST

static void capture_at_start(void)
{
	live_reset(BUDGET);
	live_set_bound(__libc_stack_end);
	leaf(0);
	at_start.captures = live.captures;
	at_start.whole = live.whole;
	at_start.stop = live.stop;
}

static __attribute__((used, section(".preinit_array"))) void (*preinit)(void) = capture_at_start;

int main(void)
{
	Suite *suite = suite_create("unwind_live");
	TCase *tcase = tcase_create("live");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, plain);
	tcase_add_test(tcase, deep);
	tcase_add_test(tcase, deeper_than_the_window);
	tcase_add_test(tcase, alloca_frames);
	tcase_add_test(tcase, realigned_stacks);
	tcase_add_test(tcase, signal_frame);
	tcase_add_test(tcase, fault_frame);
	tcase_add_test(tcase, alternate_stack);
	tcase_add_test(tcase, other_thread);
	tcase_add_test(tcase, call_at_the_end_of_a_function);
	tcase_add_test(tcase, rules_of_the_full_evaluator);
	tcase_add_test(tcase, without_cfi);
	tcase_add_test(tcase, own_stack);
	tcase_add_test(tcase, library_calls_back);
	tcase_add_test(tcase, inside_the_unwinder);
	tcase_add_test(tcase, lazy_binding);
	tcase_add_test(tcase, debug_frame);
	tcase_add_test(tcase, cxx_library);
	tcase_add_test(tcase, cxx_exceptions);
	tcase_add_test(tcase, before_main);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
