/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_processes.c - who is who: ends in their time, tgids that come again, forks that speak
 * late, numbers that are none
 */
#include "collector/processes.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/clock.h"
#include "tests/sample_artifact.h"

/* Above the numbers that processes can have, so that /proc has nothing to say. */
#define TGID (1u << 23)
#define SEEN 1024

static struct mt_writer *writer;
static struct mt_encode *encode;
static struct mt_modules *modules;
static struct mt_processes *processes;
static int fd;

/* What the artifact says, by id. */
static struct {
	struct mt_process begin;
	struct mt_process_end end;
	char thread[32];
} seen[SEEN];
static uint32_t n_seen, n_ended, n_threads;

static void setup(void)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "test" };

	fd = memfd_create("artifact", MFD_CLOEXEC);
	ck_assert_int_eq(mt_writer_new(dup(fd), &header, &writer), 0);
	ck_assert_int_eq(mt_encode_start(writer, NULL, &encode), 0);
	ck_assert_int_eq(mt_modules_new(encode, &modules), 0);
	ck_assert_int_eq(mt_processes_new(encode, modules, &processes), 0);
	n_seen = n_ended = n_threads = 0;
}

static void teardown(void)
{
	mt_processes_free(processes);
	mt_modules_free(modules);
	mt_writer_free(writer);
	close(fd);
}

static int see_process(void *ctx, const struct mt_process *process)
{
	ck_assert_uint_lt(++n_seen, SEEN);
	seen[process->id].begin = *process;
	return 0;
}

static int see_end(void *ctx, const struct mt_process_end *end)
{
	n_ended++;
	seen[end->id].end = *end;
	return 0;
}

static int see_thread(void *ctx, const struct mt_thread_info *thread)
{
	n_threads = thread->id > n_threads ? thread->id : n_threads;
	snprintf(seen[thread->process].thread, sizeof(seen[0].thread), "%s", thread->name);
	return 0;
}

static void read_all(void)
{
	static const struct mt_reader_callbacks callbacks = { .process = see_process,
							      .process_end = see_end,
							      .thread = see_thread };
	static const struct mt_footer footer = { 0 };
	struct mt_reader_result result;

	ck_assert_int_eq(mt_encode_stop(encode), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	lseek(fd, 0, SEEK_SET);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, NULL, &result), 0);
	ck_assert(result.complete);
}

static int arrive_from(uint64_t number, uint32_t tgid, uint32_t inner_tgid, uint64_t time_ns)
{
	struct mt_arrival arrival = { .process_id = number,
				      .tgid = tgid,
				      .inner_tgid = inner_tgid,
				      .time_ns = time_ns,
				      .exe = "/bin/image" };

	return mt_processes_arrive(processes, &arrival);
}

static int arrive(uint64_t number, uint32_t tgid, uint64_t time_ns)
{
	return arrive_from(number, tgid, tgid, time_ns);
}

static int thread_cell_of(uint8_t capture, uint32_t slot, uint64_t number, uint32_t tgid,
			  uint64_t time_ns)
{
	struct mt_cell cell = { MT_CELL_HEAD(MT_CELL_THREAD, capture, 0, 0),
				{ time_ns, number, (uint64_t)tgid << 32 | tgid } };

	return mt_processes_thread(processes, slot, &cell);
}

static int thread_cell(uint32_t slot, uint64_t number, uint32_t tgid, uint64_t time_ns)
{
	return thread_cell_of(MT_CAPTURE_EBPF, slot, number, tgid, time_ns);
}

static int process_cell(uint32_t slot, uint64_t number, uint64_t parent, uint64_t time_ns)
{
	struct mt_cell cell = { MT_CELL_HEAD(MT_CELL_PROCESS,
					     parent ? MT_PROCESS_FORK : MT_PROCESS_START, 0, 0),
				{ time_ns, number, parent } };

	return mt_processes_process(processes, slot, &cell);
}

static void begin(uint32_t slot, uint64_t number, uint64_t parent, uint32_t tgid, uint64_t time_ns)
{
	ck_assert_int_eq(thread_cell(slot, number, tgid, time_ns), 0);
	ck_assert_int_eq(process_cell(slot, number, parent, time_ns), 0);
}

static void end(uint32_t tgid, uint64_t time_ns, int status)
{
	ck_assert_int_eq(mt_processes_exit(processes, tgid, tgid, true, status, time_ns, "last"),
			 0);
}

static int add_module_at(uint32_t slot, uint32_t flags, uint64_t start, uint64_t end)
{
	struct {
		struct mt_module_record head;
		char path[16];
	} record = { .head = { .len = sizeof(record), .flags = flags, .start = start, .end = end },
		     .path = "/nowhere" };

	return mt_processes_module(processes, slot, &record, sizeof(record));
}

static int add_module(uint32_t slot, uint32_t flags, uint64_t start)
{
	return add_module_at(slot, flags, start, start + 0x1000);
}

/* A fork's child of slot 0's process, in a PID namespace below ours, where its number is that. */
static void begin_inside(uint32_t tgid)
{
	ck_assert_int_eq(arrive_from(1, TGID, 7, 10), 0);
	begin(0, 1, 0, TGID, 11);
	ck_assert_int_eq(thread_cell_of(MT_CAPTURE_INLINE, 1, 2, tgid, 20), 0);
	ck_assert_int_eq(process_cell(1, 2, 1, 20), 0);
}

/* A fork's child is known by its cells alone, which are merged after its exit was told. */
START_TEST(exit_before_cells)
{
	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	end(TGID + 1, 30, 256);
	begin(1, 2, 1, TGID + 1, 20);
	ck_assert_int_eq(mt_processes_advance(processes, 30), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 2);
	ck_assert_int_eq(mt_processes_advance(processes, 31), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 1);
	read_all();
	ck_assert_uint_eq(n_seen, 2);
	ck_assert_uint_eq(n_ended, 1);
	ck_assert_int_eq(seen[2].end.status, 256);
	ck_assert_uint_eq(seen[2].end.end_ns, 30);
	ck_assert_uint_eq(seen[2].begin.parent, 1);
	ck_assert_str_eq(seen[2].thread, "last");
}
END_TEST

/* The next process with a tgid shakes hands before the first one's exit is told. */
START_TEST(tgid_comes_again)
{
	struct mt_cell_owner owner;

	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	ck_assert_int_eq(arrive(2, TGID, 30), 0);
	end(TGID, 20, 9);
	begin(1, 2, 0, TGID, 31);
	ck_assert_int_eq(mt_processes_advance(processes, 100), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 0, &owner), -ENOENT);
	ck_assert_int_eq(mt_processes_owner(processes, 1, &owner), 0);
	ck_assert_uint_eq(owner.tgid, TGID);
	read_all();
	ck_assert_uint_eq(n_ended, 1);
	ck_assert_int_eq(seen[1].end.status, 9);
	ck_assert_uint_eq(seen[1].end.end_ns, 20);
}
END_TEST

/* fork, exec, exit, all before the first cell is merged. */
START_TEST(exec_of_an_unheard_child)
{
	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	ck_assert_int_eq(arrive(3, TGID + 1, 25), 0);
	end(TGID + 1, 30, 0);
	begin(1, 2, 1, TGID + 1, 20);
	begin(2, 3, 0, TGID + 1, 26);
	ck_assert_int_eq(mt_processes_advance(processes, 100), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 1);
	read_all();
	ck_assert_uint_eq(n_ended, 2);
	ck_assert_int_eq(seen[2].end.status, -1);
	ck_assert_uint_eq(seen[2].end.end_ns, 25);
	ck_assert_int_eq(seen[3].end.status, 0);
}
END_TEST

/* An image that executed another one, before either was heard of by its cells. */
START_TEST(image_after_image)
{
	for (uint32_t i = 1; i <= 100; i++)
		ck_assert_int_eq(arrive(i, TGID, 10 * i), 0);
	begin(0, 100, 0, TGID, 1001);
	ck_assert_int_eq(mt_processes_advance(processes, 2000), 0);
	read_all();
	ck_assert_uint_eq(n_seen, 100);
	for (uint32_t i = 1; i <= 100; i++) {
		ck_assert_uint_eq(seen[i].begin.parent, i - 1);
		ck_assert_uint_eq(seen[i].begin.start_ns, 10 * i);
	}
	ck_assert_uint_eq(n_ended, 99);
}
END_TEST

static pid_t fork_paused(void)
{
	pid_t child = fork();

	if (child == 0) {
		for (;;)
			pause();
	}
	ck_assert_int_gt(child, 0);
	return child;
}

static void reap(pid_t child)
{
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* Programs that were executed by a tracked one's child, and by one that is not tracked itself. */
START_TEST(parents_by_the_kernel)
{
	pid_t child = fork_paused();

	ck_assert_int_eq(arrive(1, (uint32_t)getppid(), 10), 0);
	begin(0, 1, 0, (uint32_t)getppid(), 11);
	ck_assert_int_eq(arrive(2, (uint32_t)child, 20), 0);
	begin(1, 2, 0, (uint32_t)child, 21);
	ck_assert_int_eq(arrive(3, (uint32_t)getpid(), 30), 0);
	begin(2, 3, 0, (uint32_t)getpid(), 31);
	reap(child);
	read_all();
	ck_assert_uint_eq(seen[1].begin.parent, 0);
	ck_assert_uint_eq(seen[2].begin.parent, 1);
	ck_assert_uint_eq(seen[3].begin.parent, 1);
}
END_TEST

/* A daemon: its parent has ended when it allocates for the first time. */
START_TEST(late_child_has_its_parents_modules)
{
	struct mt_cell_owner owner;

	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	ck_assert_int_eq(add_module(0, MT_MODULE_FIRST, 0x1000), 0);
	ck_assert_int_eq(add_module(0, MT_MODULE_END, 0), 0);
	end(TGID, 20, 0);
	ck_assert_int_eq(mt_processes_advance(processes, 100), 0);
	begin(1, 2, 1, TGID + 1, 200);
	ck_assert_int_eq(mt_processes_owner(processes, 1, &owner), 0);
	ck_assert_ptr_nonnull(mt_space_find(owner.space, 0x1800));
	read_all();
	ck_assert_uint_eq(seen[2].begin.parent, 1);
}
END_TEST

/* A thread's stack may be unwound while another's list of modules is on its way. */
START_TEST(modules_by_lists)
{
	struct mt_cell_owner owner;

	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	ck_assert_int_eq(mt_processes_owner(processes, 0, &owner), 0);
	ck_assert_int_eq(add_module(0, MT_MODULE_END, 0), -EBADMSG);
	ck_assert_int_eq(add_module(0, MT_MODULE_FIRST, 0x1000), 0);
	ck_assert_int_eq(add_module(0, 0, 0x2000), 0);
	ck_assert_ptr_null(mt_space_find(owner.space, 0x1800));
	ck_assert_int_eq(add_module(0, MT_MODULE_END, 0), 0);
	ck_assert_int_eq(add_module(0, 0, 0x3000), 0);
	for (uint64_t at = 0x1800; at < 0x4000; at += 0x1000)
		ck_assert_ptr_nonnull(mt_space_find(owner.space, at));

	ck_assert_int_eq(add_module(0, MT_MODULE_FIRST, 0x1000), 0);
	ck_assert_ptr_nonnull(mt_space_find(owner.space, 0x3800));
	ck_assert_int_eq(add_module(0, 0, 0x4000), 0);
	ck_assert_ptr_null(mt_space_find(owner.space, 0x4800));
	ck_assert_int_eq(add_module(0, MT_MODULE_END, 0), 0);
	ck_assert_ptr_nonnull(mt_space_find(owner.space, 0x1800));
	ck_assert_ptr_null(mt_space_find(owner.space, 0x3800));
	ck_assert_ptr_nonnull(mt_space_find(owner.space, 0x4800));
}
END_TEST

/* Somebody has the child's number here, and shook hands meanwhile: that is not its end. */
START_TEST(number_of_another_namespace)
{
	struct mt_cell_owner owner;

	ck_assert_int_eq(arrive(3, TGID + 5, 30), 0);
	begin_inside(TGID + 5);
	ck_assert_int_eq(mt_processes_advance(processes, 100), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 1, &owner), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 3);
	read_all();
	ck_assert_uint_eq(n_ended, 0);
}
END_TEST

/* Nor are its files those that the child has mapped. */
START_TEST(modules_of_another_namespace)
{
	begin_inside((uint32_t)getpid());
	ck_assert_int_eq(add_module_at(1, 0, 0x1000, UINT64_MAX), 0);
	ck_assert_uint_eq(mt_modules_missing(modules), 1);
	read_all();
}
END_TEST

/* In another time namespace: what it did before its end seems to be later. */
START_TEST(clock_of_another)
{
	struct mt_arrival arrival = { .process_id = 1,
				      .tgid = TGID,
				      .inner_tgid = TGID,
				      .other_clock = true,
				      .time_ns = 1000 };
	struct mt_cell_owner owner;

	ck_assert_int_eq(mt_processes_arrive(processes, &arrival), 0);
	begin(0, 1, 0, TGID, 1000);
	begin(1, 2, 1, TGID + 1, 2000);
	end(TGID + 1, 1990, 0);
	end(TGID, 3000, 0);
	ck_assert_int_eq(mt_processes_advance(processes, 4000), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 0, &owner), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 1, &owner), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 0);
	ck_assert_int_eq(mt_processes_advance(processes, UINT64_MAX), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 1, &owner), -ENOENT);
	read_all();
	ck_assert_uint_eq(n_ended, 2);
	ck_assert_uint_eq(seen[2].begin.start_ns, 2000);
	ck_assert_uint_eq(seen[2].end.end_ns, 1990);
}
END_TEST

/* Many that ended: their numbers are not theirs again, nor their slots. */
START_TEST(the_past)
{
	struct mt_cell_owner owner;
	uint32_t n = 3 * MT_PROCESSES_KEPT;

	for (uint32_t i = 1; i <= n; i++) {
		ck_assert_int_eq(arrive(i, TGID + i, 10 * i), 0);
		begin(i % 8, i, 0, TGID + i, 10 * i + 1);
		end(TGID + i, 10 * i + 2, 0);
		ck_assert_int_eq(mt_processes_advance(processes, 10 * i + 3), 0);
	}
	ck_assert_uint_eq(mt_processes_live(processes), 0);
	for (uint32_t slot = 0; slot < 8; slot++)
		ck_assert_int_eq(mt_processes_owner(processes, slot, &owner), -ENOENT);
	ck_assert_int_eq(arrive(1, TGID, 1), -EBADMSG);
	ck_assert_int_eq(arrive(n, TGID, 1), -EBADMSG);
	ck_assert_int_eq(thread_cell(0, 1, TGID, 1), 0);
	ck_assert_int_eq(process_cell(0, 1, 0, 1), 0);
	ck_assert_int_eq(mt_processes_owner(processes, 0, &owner), -ENOENT);
	read_all();
	ck_assert_uint_eq(n_seen, n);
	ck_assert_uint_eq(n_ended, n);
}
END_TEST

START_TEST(bad_numbers)
{
	static const uint64_t bad[] = { 0, 1u << 24, 1ULL << 32, UINT64_MAX };
	struct mt_cell_owner owner;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(arrive(bad[i], TGID, 1), -EBADMSG);
		ck_assert_int_eq(thread_cell(0, bad[i], TGID, 1), -EBADMSG);
		ck_assert_int_eq(process_cell(0, bad[i], 0, 1), -EBADMSG);
	}
	ck_assert_int_eq(mt_processes_owner(processes, 0, &owner), -ENOENT);
	/* Its own parent, and one that is not there. */
	begin(0, 5, 5, TGID, 1);
	begin(1, 6, 1u << 30, TGID + 1, 1);
	read_all();
	ck_assert_uint_eq(n_seen, 2);
}
END_TEST

/* More processes than can be: refused, and nothing grows any more. */
START_TEST(flood)
{
	uint64_t number;
	int r = 0;

	for (number = 1; number < 1u << 20 && r == 0; number++)
		r = thread_cell(3, number, 0, number);
	ck_assert_int_eq(r, -EBADMSG);
	ck_assert_uint_le(mt_processes_live(processes), 2 * MT_SLOTS);
	read_all();
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* More exits than are kept waiting. */
START_TEST(exits_wait)
{
	ck_assert_int_eq(arrive(1, TGID, 10), 0);
	begin(0, 1, 0, TGID, 11);
	end(TGID, 50, 1);
	for (uint32_t i = 0; i < 20000; i++)
		if (mt_processes_exit(processes, TGID + 1, i, false, 0, 60 + i, "x") < 0)
			ck_abort_msg("exit %u", i);
	ck_assert_int_eq(mt_processes_advance(processes, 51), 0);
	ck_assert_uint_eq(mt_processes_live(processes), 0);
	read_all();
	ck_assert_uint_eq(seen[1].end.end_ns, 50);
}
END_TEST

/* Nothing tells when a process ended: it is found gone, and whatever it did was before that. */
START_TEST(found_gone)
{
	const struct mt_segments_config config = {
		.budget_bytes = 8192,
		.ring_bytes = 4096,
		.cookie = 42,
		.control_fd = -1,
		.bpf_references_fd = -1,
	};
	struct mt_segments *segments;
	struct mt_welcome welcome;
	uint64_t gone_ns;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_int_eq(mt_segments_give_chunk(segments, false, 1, &welcome), 0);
	begin(0, 1, 0, (uint32_t)child, mt_clock_ns());
	gone_ns = mt_clock_ns();
	ck_assert_int_eq(mt_processes_sweep(processes, segments), 0);
	ck_assert_int_eq(mt_processes_advance(processes, gone_ns), 0);
	ck_assert_uint_eq(mt_processes_tgid(processes, 0), (uint32_t)child);
	ck_assert_int_eq(mt_processes_advance(processes, mt_clock_ns() + 1), 0);
	ck_assert_uint_eq(mt_processes_tgid(processes, 0), 0);
	mt_segments_close(segments);
	read_all();
	ck_assert_uint_ge(seen[1].end.end_ns, gone_ns);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("processes");
	TCase *tcase = tcase_create("processes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, exit_before_cells);
	tcase_add_test(tcase, tgid_comes_again);
	tcase_add_test(tcase, exec_of_an_unheard_child);
	tcase_add_test(tcase, image_after_image);
	tcase_add_test(tcase, parents_by_the_kernel);
	tcase_add_test(tcase, late_child_has_its_parents_modules);
	tcase_add_test(tcase, clock_of_another);
	tcase_add_test(tcase, the_past);
	tcase_add_test(tcase, bad_numbers);
	tcase_add_test(tcase, flood);
	tcase_add_test(tcase, exits_wait);
	tcase_add_test(tcase, modules_by_lists);
	tcase_add_test(tcase, found_gone);
	tcase_add_test(tcase, number_of_another_namespace);
	tcase_add_test(tcase, modules_of_another_namespace);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
