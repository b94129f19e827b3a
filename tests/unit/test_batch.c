/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_batch.c - what a batch is given, a writer gets: in order, whole, or not at all
 */
#include "collector/batch.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sample_artifact.h"

static const uint8_t build_id[3] = { 0, 1, 0xff };

static const struct mt_module module = { .path = "/lib/x\n\xff",
					 .build_id = build_id,
					 .build_id_bytes = sizeof(build_id) };
static const struct mt_symbol symbol[3] = { { 1, 2, "f", 3, 0 },
					    { UINT64_MAX, 0, "", 0, 0 },
					    { 4, UINT64_MAX, "long\n\xff", UINT32_MAX, 0 } };
static const struct mt_module_symbols symbols = { .len = 3, .left_out = 9, .symbols = symbol };
static const struct mt_process process = { .id = 1, .exe = "/bin/a", .name = "" };
static const struct mt_thread_info thread = { .id = 1, .process = 1, .name = "worker" };
static const struct mt_node node = { .id = MT_NODE_FIRST, .parent = MT_STOP_END, .offset = 1 };
static const struct mt_event event = {
	.type = MT_EVENT_ALLOC, .thread = 1, .node = MT_NODE_FIRST, .address = 64, .size = 8
};
static const struct mt_not_tracked other = { .tgid = 7, .what = "b", .reason = "c" };
static const struct mt_mapping map[3] = { { .end = 1 },
					  { 1, 2, 3, 0, 4 },
					  { .start = 2, .end = 3 } };
static const struct mt_mappings mappings = { .len = 3, .mappings = map };
static const uint64_t words[3] = { 1, UINT64_MAX, 1ULL << 63 };
static const struct mt_kept_stack stack = {
	.thread = 1, .node = MT_NODE_FIRST, .start = 8, .end = 32, .epoch = 9, .words = words
};
static const struct mt_process_end end = { .id = 1, .end_ns = 9, .status = 256 };

static const struct {
	enum mt_batch_kind kind;
	const void *record;
} all[] = {
	{ MT_BATCH_MODULE, &module },	  { MT_BATCH_PROCESS, &process },
	{ MT_BATCH_THREAD, &thread },	  { MT_BATCH_EVENT, &event },
	{ MT_BATCH_NOT_TRACKED, &other }, { MT_BATCH_PROCESS_END, &end },
	{ MT_BATCH_MAPPINGS, &mappings }, { MT_BATCH_KEPT_STACK, &stack },
	{ MT_BATCH_SYMBOLS, &symbols },
};

#define N_ALL (sizeof(all) / sizeof(all[0]))

static struct mt_batch *batch;

static void setup(void)
{
	ck_assert_int_eq(mt_batch_new(&batch), 0);
}

static void teardown(void)
{
	mt_batch_free(batch);
}

static int see_module(void *ctx, const struct mt_module *seen)
{
	ck_assert_str_eq(seen->path, module.path);
	ck_assert_uint_eq(seen->build_id_bytes, sizeof(build_id));
	ck_assert_mem_eq(seen->build_id, build_id, sizeof(build_id));
	return 0;
}

static int see_symbols(void *ctx, const struct mt_module_symbols *seen)
{
	++*(int *)ctx;
	ck_assert_uint_eq(seen->len, 3);
	ck_assert_uint_eq(seen->left_out, 9);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(seen->symbols[i].offset, symbol[i].offset);
		ck_assert_uint_eq(seen->symbols[i].bytes, symbol[i].bytes);
		ck_assert_uint_eq(seen->symbols[i].info, symbol[i].info);
		ck_assert_str_eq(seen->symbols[i].name, symbol[i].name);
	}
	return 0;
}

static int see_process(void *ctx, const struct mt_process *seen)
{
	ck_assert_str_eq(seen->exe, process.exe);
	ck_assert_str_eq(seen->name, "");
	return 0;
}

static int see_thread(void *ctx, const struct mt_thread_info *seen)
{
	ck_assert_str_eq(seen->name, thread.name);
	return 0;
}

static int see_not_tracked(void *ctx, const struct mt_not_tracked *seen)
{
	ck_assert_str_eq(seen->what, other.what);
	ck_assert_str_eq(seen->reason, other.reason);
	return 0;
}

static int see_event(void *ctx, const struct mt_event *seen)
{
	++*(int *)ctx;
	ck_assert_mem_eq(seen, &event, sizeof(event));
	return 0;
}

static void put_node(const struct mt_node *from)
{
	struct mt_batch_node *to = mt_batch_node(batch);

	ck_assert_ptr_nonnull(to);
	to->id = from->id;
	to->parent = from->parent;
	to->module = from->module;
	to->offset = from->offset;
	to->exact = from->exact;
}

/* What is put down in the batch itself: the same event, and one more node. */
static void put_short(void)
{
	static const struct mt_node second = { .id = MT_NODE_FIRST + 1,
					       .parent = MT_NODE_FIRST,
					       .module = UINT32_MAX,
					       .offset = UINT64_MAX,
					       .exact = 1 };
	struct mt_batch_event *short_event;

	put_node(&second);
	short_event = mt_batch_event(batch);
	ck_assert_ptr_nonnull(short_event);
	short_event->type = event.type;
	short_event->function = event.function;
	short_event->thread = event.thread;
	short_event->time_ns = event.time_ns;
	short_event->address = event.address;
	short_event->size = (uint32_t)event.size;
	short_event->node = event.node;
}

static int see_node(void *ctx, const struct mt_node *seen)
{
	bool first = seen->id == MT_NODE_FIRST;

	++*(int *)ctx;
	ck_assert_uint_eq(seen->id, first ? node.id : MT_NODE_FIRST + 1);
	ck_assert_uint_eq(seen->parent, first ? node.parent : MT_NODE_FIRST);
	ck_assert_uint_eq(seen->module, first ? node.module : UINT32_MAX);
	ck_assert_uint_eq(seen->offset, first ? node.offset : UINT64_MAX);
	ck_assert_uint_eq(seen->exact, first ? node.exact : 1);
	return 0;
}

static int see_end(void *ctx, const struct mt_process_end *seen)
{
	ck_assert_int_eq(seen->status, 256);
	return 0;
}

static int see_mappings(void *ctx, const struct mt_mappings *seen)
{
	ck_assert_uint_eq(seen->len, 3);
	ck_assert_mem_eq(seen->mappings, map, sizeof(map));
	return 0;
}

static int see_stack(void *ctx, const struct mt_kept_stack *seen)
{
	++*(int *)ctx;
	ck_assert_uint_eq(seen->end - seen->start, sizeof(words));
	ck_assert_uint_eq(seen->epoch, 9);
	ck_assert_mem_eq(seen->words, words, sizeof(words));
	return 0;
}

START_TEST(comes_out_as_it_went_in)
{
	static const struct mt_reader_callbacks callbacks = { .module = see_module,
							      .symbols = see_symbols,
							      .process = see_process,
							      .process_end = see_end,
							      .thread = see_thread,
							      .mappings = see_mappings,
							      .kept_stack = see_stack,
							      .node = see_node,
							      .not_tracked = see_not_tracked,
							      .event = see_event };
	static const struct mt_header header = { .machine = "x86_64", .program = "test" };
	static const struct mt_footer footer = { .events = 2 };
	int fd = memfd_create("artifact", MFD_CLOEXEC), n = 0;
	struct mt_reader_result result;
	struct mt_writer *writer;

	for (size_t i = 0; i < N_ALL; i++) {
		if (all[i].kind == MT_BATCH_EVENT)
			put_node(&node);
		ck_assert_int_eq(mt_batch_add(batch, all[i].kind, all[i].record), 0);
	}
	put_short();
	ck_assert_int_eq(mt_writer_new(dup(fd), &header, &writer), 0);
	ck_assert_int_eq(mt_batch_write(batch, writer), 0);
	ck_assert_int_eq(mt_writer_finish(writer, &footer), 0);
	mt_writer_free(writer);
	ck_assert_int_eq((int)lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mt_reader_read(fd, &callbacks, &n, &result), 0);
	ck_assert(result.complete);
	ck_assert_int_eq(n, 6);
	close(fd);
}
END_TEST

START_TEST(full)
{
	size_t n = 0;
	int r;

	while ((r = mt_batch_add(batch, all[n % N_ALL].kind, all[n % N_ALL].record)) == 0)
		n++;
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_uint_gt(n, MT_BATCH_BYTES / 128);
	mt_batch_clear(batch);
	ck_assert(mt_batch_empty(batch));
	ck_assert_int_eq(mt_batch_add(batch, MT_BATCH_EVENT, &event), 0);
	ck_assert(!mt_batch_empty(batch));
}
END_TEST

/* The longest record that fits, and one byte more. */
START_TEST(longest_record)
{
	size_t fixed = 8 + sizeof(struct mt_module) + 1;
	char *path = malloc(MT_BATCH_BYTES);
	struct mt_module longest = { .path = path };

	ck_assert_ptr_nonnull(path);
	memset(path, 'x', MT_BATCH_BYTES);
	path[MT_BATCH_BYTES - fixed + 1] = '\0';
	ck_assert_int_eq(mt_batch_add(batch, MT_BATCH_MODULE, &longest), -EMSGSIZE);
	ck_assert(mt_batch_empty(batch));
	path[MT_BATCH_BYTES - fixed] = '\0';
	ck_assert_int_eq(mt_batch_add(batch, MT_BATCH_MODULE, &longest), 0);
	ck_assert_int_eq(mt_batch_add(batch, MT_BATCH_EVENT, &event), -ENOSPC);
	ck_assert_ptr_null(mt_batch_event(batch));
	ck_assert_ptr_null(mt_batch_node(batch));
	free(path);
}
END_TEST

START_TEST(kind_that_is_none)
{
	ck_assert_int_eq(mt_batch_add(batch, (enum mt_batch_kind)99, &event), -EINVAL);
	ck_assert(mt_batch_empty(batch));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("batch");
	TCase *tcase = tcase_create("batch");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, comes_out_as_it_went_in);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, longest_record);
	tcase_add_test(tcase, kind_that_is_none);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
