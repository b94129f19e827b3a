/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_writer.c - artifact/writer.c: order, bounds of frames and tables, and every way out
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "artifact/layout.h"
#include "artifact/weight.h"
#include "artifact/writer.h"
#include "tests/artifact_text.h"
#include "tests/sample_artifact.h"
#include "wire/control.h"

static const struct mt_header header = { .machine = "x86_64", .program = "test" };
static const struct mt_footer footer = { .end_ns = 5, .status = 256, .events = 3 };

/* A writer on fd, with a process, a thread and n nodes. */
static struct mt_writer *new_writer(int fd, uint32_t n)
{
	struct mt_writer *writer;

	ck_assert_int_eq(mt_writer_new(fd, &header, &writer), 0);
	ck_assert_int_eq(mt_writer_process(writer, &(struct mt_process){ .id = 1 }), 0);
	ck_assert_int_eq(
		mt_writer_thread(writer, &(struct mt_thread_info){ .id = 1, .process = 1 }), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct mt_node node = { .id = MT_NODE_FIRST + i,
					.parent = i,
					.module = UINT32_MAX };

		if (mt_writer_node(writer, &node) < 0)
			ck_abort_msg("node %u", node.id);
	}
	return writer;
}

static uint64_t random_of(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15ULL;
	i = (i ^ i >> 29) * 0xbf58476d1ce4e5b9ULL;
	return i ^ i >> 32;
}

static struct mt_event event_of(uint64_t i)
{
	return (struct mt_event){ .time_ns = 1000 * i + random_of(i) % 1000,
				  .address = random_of(3 * i),
				  .size = i % 7 ? random_of(i) % 100 : random_of(5 * i),
				  .thread = 1,
				  .node = (uint32_t)(random_of(2 * i) % 100),
				  .type = (uint8_t)(i % (_MT_EVENT_MAX - 1) + 1),
				  .function = (uint8_t)i };
}

static int write_events(struct mt_writer *writer, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct mt_event event = event_of(i);
		int r = mt_writer_event(writer, &event);

		if (r < 0)
			return r;
	}
	return 0;
}

/* No assertion for each event: Check writes a file with a line for each. */
static int check_event(void *ctx, const struct mt_event *event)
{
	uint64_t *n = ctx;
	struct mt_event expected = event_of((*n)++);

	return memcmp(event, &expected, sizeof(expected)) == 0 ? 0 : -ECANCELED;
}

static uint64_t count_events(int fd, struct mt_reader_result *ret)
{
	static const struct mt_reader_callbacks callbacks = { .event = check_event };
	uint64_t n = 0;

	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &n, ret), 0);
	return n;
}

/* More sizes than the table of infos has rows, so that it starts over, in many frames. */
START_TEST(many_events)
{
	uint64_t n = 8 * (uint64_t)MT_INFOS_MAX + 12345;
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 100);
	struct mt_reader_result result;

	ck_assert_int_eq(write_events(writer, n), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	ck_assert_uint_eq(mt_writer_bytes(writer), (uint64_t)lseek(fd, 0, SEEK_END));
	mt_writer_free(writer);
	ck_assert_uint_eq(count_events(fd, &result), n);
	ck_assert_str_eq(result.problem, "");
	close(fd);
}
END_TEST

static int check_node(void *ctx, const struct mt_node *node)
{
	uint64_t *n = ctx;

	if (node->id != MT_NODE_FIRST + *n || node->parent != *n)
		return -ECANCELED;
	++*n;
	return 0;
}

/* More nodes than a block has rows, and not one event. */
START_TEST(many_nodes)
{
	static const struct mt_reader_callbacks callbacks = { .node = check_node };
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 3 * MT_BLOCK_ROWS + 5);
	struct mt_reader_result result;
	uint64_t n = 0;

	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &n, &result), 0);
	ck_assert_uint_eq(n, 3 * MT_BLOCK_ROWS + 5);
	ck_assert_str_eq(result.problem, "");
	close(fd);
}
END_TEST

/* A process's begin and end stay where they were among the events. */
START_TEST(order_of_processes_and_events)
{
	struct mt_event event = { .type = MT_EVENT_FREE, .thread = 1, .function = 10 };
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	struct mt_process process = { .id = 2, .parent = 1 };
	struct mt_thread_info thread = { .id = 2, .process = 2 };
	struct mt_process_end end = { .id = 2 };
	struct mt_node node = { .id = MT_NODE_FIRST, .module = UINT32_MAX };
	struct mt_reader_result result;
	struct artifact_bytes file;
	const char *at;
	char *text;

	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(mt_writer_process(writer, &process), 0);
	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(mt_writer_thread(writer, &thread), 0);
	event.thread = 2;
	ck_assert_int_eq(mt_writer_node(writer, &node), 0);
	event.node = node.id;
	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(mt_writer_process_end(writer, &end), 0);
	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	file = artifact_of_fd(fd);
	ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
	ck_assert_str_eq(result.problem, "");
	at = strstr(text, "free time=0 thread=1 node=0");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "\nprocess id=2");
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(strstr(at, "\nthread id=2"));
	ck_assert_ptr_nonnull(strstr(at, "\nnode id=16"));
	at = strstr(at, "\nfree time=0 thread=1 node=0");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "\nfree time=0 thread=2 node=16");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "\nprocess-end id=2");
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(strstr(at, "\nfree time=0 thread=2 node=16"));
	free(text);
	free(file.bytes);
	close(fd);
}
END_TEST

static const uint64_t words[MT_BUDGET_MAX_BYTES / 8];

/* Their place is behind what they name, in whatever order it comes. */
START_TEST(order_of_kept_stacks)
{
	const struct mt_mapping mapping = { .end = 1 };
	struct mt_mappings mappings = { .len = 1, .mappings = &mapping };
	struct mt_event event = { .type = MT_EVENT_FREE, .thread = 1, .function = 10 };
	struct mt_kept_stack stack = {
		.thread = 1, .node = MT_NODE_FIRST, .start = 8, .end = 16, .words = words
	};
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	struct mt_node node = { .id = MT_NODE_FIRST };
	struct mt_module module = { .path = "" };
	struct mt_reader_result result;
	struct artifact_bytes file;
	const char *at;
	char *text;

	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(mt_writer_module(writer, &module), 0);
	ck_assert_int_eq(mt_writer_mappings(writer, &mappings), 0);
	ck_assert_int_eq(mt_writer_node(writer, &node), 0);
	ck_assert_int_eq(mt_writer_kept_stack(writer, &stack), 0);
	ck_assert_int_eq(
		mt_writer_thread(writer, &(struct mt_thread_info){ .id = 2, .process = 1 }), 0);
	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	mappings.id++;
	ck_assert_int_eq(mt_writer_mappings(writer, &mappings), 0);
	stack.thread = 2;
	ck_assert_int_eq(mt_writer_kept_stack(writer, &stack), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	file = artifact_of_fd(fd);
	ck_assert_int_eq(artifact_read(file.bytes, file.len, &result, &text), 0);
	ck_assert_str_eq(result.problem, "");
	at = strstr(text, "\nmappings id=0");
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_null(strstr(at, "\nfree"));
	at = strstr(at, "\nkept-stack thread=1");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "\nmappings id=1");
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(strstr(at, "\nkept-stack thread=2"));
	free(text);
	free(file.bytes);
	close(fd);
}
END_TEST

static int count_kept(void *ctx, const struct mt_kept_stack *stack)
{
	++*(uint64_t *)ctx;
	return 0;
}

/* More windows than a frame may have bytes, and nothing else: they do not pile up. */
START_TEST(many_kept_stacks)
{
	static const struct mt_reader_callbacks callbacks = { .kept_stack = count_kept };
	struct mt_kept_stack stack = {
		.thread = 1, .start = 1 << 20, .end = (1 << 20) + 65536, .words = words
	};
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	struct mt_reader_result result;
	uint64_t n = 0, bytes;

	ck_assert_int_eq(mt_writer_mappings(writer, &(struct mt_mappings){ 0 }), 0);
	ck_assert_int_eq(mt_writer_flush(writer), 0);
	bytes = mt_writer_bytes(writer);
	for (int i = 0; i < 2000; i++) {
		if (i == 100)
			ck_assert_uint_gt(mt_writer_bytes(writer), bytes);
		ck_assert_int_eq(mt_writer_kept_stack(writer, &stack), 0);
	}
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &n, &result), 0);
	ck_assert_uint_eq(n, 2000);
	ck_assert_str_eq(result.problem, "");
	close(fd);
}
END_TEST

#define SAYINGS 9

/* Says one thing again, and returns what that weighs: most of it zstd does not see twice. */
static uint64_t say(struct mt_writer *writer, int what, uint32_t i)
{
	static char text[4000];
	struct mt_mapping map[64];
	struct mt_module module = { .id = i, .path = text };
	struct mt_symbol symbol = { .name = text };
	struct mt_module_symbols symbols = { .len = 1, .symbols = &symbol };
	struct mt_process process = { .id = i + 2, .exe = text };
	struct mt_process_end end = { .id = 1 };
	struct mt_thread_info thread = { .id = 1, .process = 1, .name = text };
	struct mt_not_tracked not_tracked = { .what = text };
	struct mt_mappings mappings = { .id = i + 1, .len = 64, .mappings = map };
	struct mt_kept_stack stack = { .thread = 1, .start = 8, .end = 16, .words = words };
	struct mt_event event = { .type = MT_EVENT_ALLOC, .thread = 1, .address = i };

	memset(text, 'x', sizeof(text) - 1);
	for (uint32_t n = 0; n < 64; n++)
		map[n] = (struct mt_mapping){ .start = n, .end = n + 1 };
	switch (what) {
	case 0:
		ck_assert_int_eq(mt_writer_module(writer, &module), 0);
		return mt_weight_module(&module);
	case 1:
		ck_assert_int_eq(mt_writer_process(writer, &process), 0);
		return mt_weight_process(&process);
	case 2:
		ck_assert_int_eq(mt_writer_process_end(writer, &end), 0);
		return MT_WEIGHT_PROCESS_END;
	case 3:
		ck_assert_int_eq(mt_writer_thread(writer, &thread), 0);
		return mt_weight_thread(&thread);
	case 4:
		ck_assert_int_eq(mt_writer_not_tracked(writer, &not_tracked), 0);
		return mt_weight_not_tracked(&not_tracked);
	case 5:
		ck_assert_int_eq(mt_writer_mappings(writer, &mappings), 0);
		return mt_weight_mappings(&mappings);
	case 6:
		ck_assert_int_eq(mt_writer_kept_stack(writer, &stack), 0);
		return MT_WEIGHT_KEPT_STACK;
	case 7:
		ck_assert_int_eq(mt_writer_symbols(writer, &symbols), 0);
		return mt_weight_symbols(&symbols);
	default:
		if (mt_writer_event(writer, &event) < 0)
			ck_abort_msg("event %u", i);
		return MT_WEIGHT_ROW;
	}
}

/* A frame's content has what it weighs before it in the file, so that it may end there. */
static void check_filling(int fd, uint64_t weight_of_rows)
{
	struct artifact_bytes file = artifact_of_fd(fd);
	size_t at = 0, filling = 0;
	uint64_t weight = 0;

	while (at < file.len) {
		size_t len = ZSTD_findFrameCompressedSize(file.bytes + at, file.len - at);

		ck_assert(!ZSTD_isError(len));
		if (memcmp(file.bytes + at, "\x5e\x2a\x4d\x18", 4) == 0)
			filling += len;
		at += len;
		if (weight_of_rows && len > 100 && memcmp(file.bytes + at - len, "\x28", 1) == 0)
			weight += weight_of_rows;
		ck_assert_uint_le(weight, MT_WEIGHT_PER_BYTE * at);
	}
	ck_assert_uint_gt(filling, 0);
	free(file.bytes);
}

/* What a reader would take for made to fill its memory: a file is as long as it has to be, but
 * not longer. */
START_TEST(much_in_little)
{
	static const struct mt_reader_callbacks none;
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	struct artifact_bytes file, content, bare = { NULL, 0 };
	struct mt_reader_result result;
	uint64_t weight = 0, bytes;

	ck_assert_int_eq(mt_writer_mappings(writer, &(struct mt_mappings){ 0 }), 0);
	if (_i != 0)
		ck_assert_int_eq(mt_writer_module(writer, &(struct mt_module){ 0 }), 0);
	for (uint32_t i = 0; weight < 3 * MT_WEIGHT_ALWAYS; i++)
		weight += say(writer, _i, i);
	ck_assert_int_eq(mt_writer_flush(writer), 0);
	bytes = mt_writer_bytes(writer);
	ck_assert_uint_ge(bytes, weight / MT_WEIGHT_PER_BYTE);
	ck_assert_uint_lt(bytes, 2 * weight / MT_WEIGHT_PER_BYTE);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &none, NULL, &result), 0);
	ck_assert_str_eq(result.problem, "");
	check_filling(fd, _i == SAYINGS - 1 ? MT_WEIGHT_ROW * MT_WRITER_FRAME_EVENTS : 0);

	file = artifact_of_fd(fd);
	content = artifact_content(file);
	artifact_append_frame(&bare, content.bytes, content.len);
	ck_assert_int_eq(artifact_read(bare.bytes, bare.len, &result, NULL), 0);
	ck_assert_ptr_nonnull(strstr(result.problem, "more than a recording has"));
	free(file.bytes);
	free(content.bytes);
	free(bare.bytes);
	close(fd);
}
END_TEST

/* As wrong_call(). */
static int wrong_keeping(struct mt_writer *writer, int i)
{
	struct mt_mapping map[2] = { { .end = 2 }, { .start = 2, .end = 3 } };
	struct mt_mappings mappings = { .id = 1, .len = 2, .mappings = map };
	struct mt_kept_stack stack = { .thread = 1, .start = 8, .end = 16, .words = words };

	ck_assert_int_eq(mt_writer_module(writer, &(struct mt_module){ .path = "" }), 0);
	ck_assert_int_eq(mt_writer_mappings(writer, &(struct mt_mappings){ 0 }), 0);
	switch (i) {
	case 0:
		mappings.id = 2;
		return mt_writer_mappings(writer, &mappings);
	case 1:
		map[1].start = 1;
		return mt_writer_mappings(writer, &mappings);
	case 2:
		map[1].end = 2;
		return mt_writer_mappings(writer, &mappings);
	case 3:
		map[0].module = 1;
		return mt_writer_mappings(writer, &mappings);
	case 4:
		mappings.len = MT_MAPPINGS_LEN + 1;
		return mt_writer_mappings(writer, &mappings);
	case 5:
		ck_assert_int_eq(mt_writer_kept_stack(writer, &stack), 0);
		mappings.id = 0;
		return mt_writer_mappings(writer, &mappings);
	case 6:
		stack.thread = 2;
		break;
	case 7:
		stack.node = MT_NODE_FIRST;
		break;
	case 8:
		stack.mappings = 1;
		break;
	case 9:
		stack.end = 12;
		break;
	default:
		stack.end = stack.start + 65536;
	}
	return mt_writer_kept_stack(writer, &stack);
}

/* Each of these is refused, and so is all that comes after it. */
static int wrong_call(struct mt_writer *writer, int i)
{
	struct mt_event event = { .type = MT_EVENT_ALLOC, .thread = 1 };
	struct mt_node node = { .id = MT_NODE_FIRST, .parent = 1, .module = UINT32_MAX };

	switch (i) {
	case 0:
		event.type = MT_EVENT_NONE;
		return mt_writer_event(writer, &event);
	case 1:
		event.type = _MT_EVENT_MAX;
		return mt_writer_event(writer, &event);
	case 2:
		event.thread = 2;
		return mt_writer_event(writer, &event);
	case 3:
		event.node = MT_NODE_FIRST;
		return mt_writer_event(writer, &event);
	case 4:
		node.id++;
		return mt_writer_node(writer, &node);
	case 5:
		node.parent = MT_NODE_FIRST;
		return mt_writer_node(writer, &node);
	case 6:
		node.module = 0;
		return mt_writer_node(writer, &node);
	case 7:
		return mt_writer_module(writer, &(struct mt_module){ .id = 1, .path = "" });
	case 8:
		return mt_writer_process(writer, &(struct mt_process){ .id = 1 });
	case 9:
		return mt_writer_process(writer, &(struct mt_process){ .id = 2, .parent = 2 });
	case 10:
		return mt_writer_process_end(writer, &(struct mt_process_end){ .id = 2 });
	case 11:
		return mt_writer_thread(writer, &(struct mt_thread_info){ .id = 3, .process = 1 });
	case 12:
		return mt_writer_thread(writer, &(struct mt_thread_info){ .id = 1, .process = 2 });
	case 13:
		return mt_writer_symbols(writer, &(struct mt_module_symbols){ 0 });
	case 14:
		ck_assert_int_eq(mt_writer_module(writer, &(struct mt_module){ .path = "" }), 0);
		return mt_writer_symbols(writer,
					 &(struct mt_module_symbols){ .len = MT_SYMBOLS_LEN + 1 });
	default:
		return wrong_keeping(writer, i - 15);
	}
}

START_TEST(wrong_calls)
{
	struct mt_event event = { .type = MT_EVENT_ALLOC, .thread = 1 };
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	uint64_t bytes = mt_writer_bytes(writer);

	ck_assert_int_eq(mt_writer_event(writer, &event), 0);
	ck_assert_int_eq(wrong_call(writer, _i), -EINVAL);
	ck_assert_int_eq(mt_writer_event(writer, &event), -EINVAL);
	ck_assert_int_eq(mt_writer_not_tracked(writer, &(struct mt_not_tracked){ 1, "", "" }),
			 -EINVAL);
	ck_assert_int_eq(mt_writer_flush(writer), -EINVAL);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), -EINVAL);
	ck_assert_uint_eq(mt_writer_bytes(writer), bytes);
	ck_assert_uint_eq((uint64_t)lseek(fd, 0, SEEK_END), bytes);
	mt_writer_free(writer);
	close(fd);
}
END_TEST

START_TEST(after_the_end)
{
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);

	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	ck_assert_int_eq(mt_writer_flush(writer), -ESHUTDOWN);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), -ESHUTDOWN);
	ck_assert_int_eq(write_events(writer, 1), -ESHUTDOWN);
	mt_writer_free(writer);
	mt_writer_free(NULL);
	close(fd);
}
END_TEST

START_TEST(a_device_that_is_full)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct mt_writer *writer = NULL;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mt_writer_new(fd, &header, &writer), -ENOSPC);
	ck_assert_ptr_null(writer);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1); /* the writer's, and closed */
}
END_TEST

/* Fills what fd is on; then only whole frames are in it, of events that are right. */
static void fill_up(int fd, int error)
{
	struct mt_writer *writer = new_writer(dup(fd), 100);
	struct mt_reader_result result;
	uint64_t bytes, n;
	int r;

	r = write_events(writer, 100 * MT_WRITER_FRAME_EVENTS);
	ck_assert_int_eq(r, error);
	bytes = mt_writer_bytes(writer);
	ck_assert_int_eq(mt_writer_flush(writer), error);
	ck_assert_int_eq(write_events(writer, 1), error);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), error);
	ck_assert_uint_eq(mt_writer_bytes(writer), bytes);
	mt_writer_free(writer);
	ck_assert_uint_eq((uint64_t)lseek(fd, 0, SEEK_END), bytes);
	n = count_events(fd, &result);
	ck_assert_uint_ge(n, MT_WRITER_FRAME_EVENTS);
	ck_assert_uint_eq(n % MT_WRITER_FRAME_EVENTS, 0);
	ck_assert_uint_eq(result.good_bytes, bytes);
	ck_assert_str_eq(result.problem, "it has no footer");
}

START_TEST(a_file_at_its_limit)
{
	struct rlimit old, limit = { 3000000, RLIM_INFINITY };
	char path[] = "/tmp/test_writer.XXXXXX";
	int fd;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	fd = mkostemp(path, O_CLOEXEC | (_i ? O_APPEND : 0));
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill_up(fd, -EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	close(fd);
}
END_TEST

START_TEST(a_full_disk)
{
	char dir[] = "/tmp/test_writer.XXXXXX", path[64];
	int fd;

	/* In a chroot "/" is no mount point, and what is mounted could be seen outside. */
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0) {
		fprintf(stderr, "# a_full_disk: only root can mount a small disk, "
				"and not in a chroot\n");
		return;
	}
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(mount("none", dir, "tmpfs", 0, "size=3m"), 0);
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	fill_up(fd, -ENOSPC);
	close(fd);
	umount(dir);
	rmdir(dir);
}
END_TEST

START_TEST(a_pipe_that_nobody_reads)
{
	struct mt_writer *writer;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	writer = new_writer(fds[1], 100);
	close(fds[0]);
	ck_assert_int_eq(write_events(writer, MT_WRITER_FRAME_EVENTS), -EPIPE);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), -EPIPE);
	mt_writer_free(writer);
}
END_TEST

struct pipe_reader {
	int fd;
	uint64_t n;
	struct mt_reader_result result;
};

static void *read_pipe(void *arg)
{
	static const struct mt_reader_callbacks callbacks = { .event = check_event };
	struct pipe_reader *reader = arg;

	ck_assert_int_eq(mt_reader_read(reader->fd, &callbacks, &reader->n, &reader->result), 0);
	return NULL;
}

/* Blocking and not. */
START_TEST(through_a_pipe)
{
	struct pipe_reader reader = { 0 };
	struct mt_writer *writer;
	pthread_t thread;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	if (_i)
		ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	reader.fd = fds[0];
	ck_assert_int_eq(pthread_create(&thread, NULL, read_pipe, &reader), 0);
	writer = new_writer(fds[1], 100);
	ck_assert_int_eq(write_events(writer, 300000), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(reader.n, 300000);
	ck_assert_str_eq(reader.result.problem, "");
	ck_assert_uint_eq(reader.result.file_bytes, mt_writer_bytes(writer));
	mt_writer_free(writer);
	close(fds[0]);
}
END_TEST

/* Records so long that a frame is written for its bytes, not for its events. */
START_TEST(long_strings)
{
	struct mt_module module = { .id = 0 };
	int fd = artifact_fd("", 0);
	struct mt_writer *writer = new_writer(dup(fd), 0);
	struct mt_reader_result result;
	size_t len = 3000000;
	char *path = malloc(len + 1);

	ck_assert_ptr_nonnull(path);
	for (size_t i = 0; i < len; i++)
		path[i] = (char)(random_of(i) % 255 + 1);
	path[len] = 0;
	module.path = path;
	for (; module.id < 20; module.id++)
		ck_assert_int_eq(mt_writer_module(writer, &module), 0);
	ck_assert_uint_gt(mt_writer_bytes(writer), 19 * len / 2);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	ck_assert_uint_eq(count_events(fd, &result), 0);
	ck_assert_str_eq(result.problem, "");
	free(path);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("writer");
	TCase *tcase = tcase_create("writer");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, many_events);
	tcase_add_test(tcase, many_nodes);
	tcase_add_test(tcase, order_of_processes_and_events);
	tcase_add_test(tcase, order_of_kept_stacks);
	tcase_add_test(tcase, many_kept_stacks);
	tcase_add_loop_test(tcase, much_in_little, 0, SAYINGS);
	tcase_add_loop_test(tcase, wrong_calls, 0, 26);
	tcase_add_test(tcase, after_the_end);
	tcase_add_test(tcase, a_device_that_is_full);
	tcase_add_loop_test(tcase, a_file_at_its_limit, 0, 2);
	tcase_add_test(tcase, a_full_disk);
	tcase_add_test(tcase, a_pipe_that_nobody_reads);
	tcase_add_loop_test(tcase, through_a_pipe, 0, 2);
	tcase_add_test(tcase, long_strings);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
