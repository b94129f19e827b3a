/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_report.c - an artifact of any content is reported, as text and as JSON, and verified,
 * or refused
 *
 * An input is the records of an artifact, behind a byte that is not used; how they are
 * packed is fuzz_reader's.  Its modules are not looked for: what files may say is
 * fuzz_debug_file's.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "artifact/writer.h"
#include "report/json.h"
#include "report/run.h"
#include "report/symbolize.h"
#include "report/text.h"
#include "report/verify.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/printed.h"
#include "tests/sample_artifact.h"
#include "wire/control.h"
#include "wire/ring.h"
#include "wire/stack_delta.h"

static void print(const struct mt_view *view, int (*report)(const struct mt_view *, FILE *),
		  bool (*good)(const char *, size_t))
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	fuzz_must(out && report(view, out) == 0);
	fuzz_must(fclose(out) == 0 && len && good(text, len));
	free(text);
}

static void check_figures(const struct mt_replay *replay)
{
	const struct mt_figures *total = &replay->total;
	uint64_t allocations = 0, live = 0;

	fuzz_must(total->allocations - total->frees == total->left_allocations);
	fuzz_must(!total->live_allocations && !total->live_bytes);
	for (size_t i = 1; i < replay->chains_len; i++) {
		allocations += replay->chains[i].figures.allocations;
		live += replay->chains[i].at_peak.bytes;
	}
	fuzz_must(allocations == total->allocations && live == replay->peak.bytes);
}

static void report(struct mt_run *run)
{
	struct mt_view view = { .run = run };

	check_figures(&run->replay);
	for (size_t i = 0; i < run->modules_len; i++) {
		run->modules[i].path[0] ^= run->modules[i].path[0] == '/' ? '/' ^ '.' : 0;
		run->modules[i].build_id_bytes = 0;
	}
	fuzz_must(mt_symbolizer_new(run, &view.symbolizer) == 0);
	for (int by = 0; by < _MT_VIEW_MAX; by++) {
		view.by = (enum mt_view_by)by;
		view.top = by ? 3 : SIZE_MAX;
		print(&view, mt_json_report, printed_is_json);
		print(&view, mt_text_report, printed_is_text);
	}
	mt_symbolizer_free(view.symbolizer);
}

/* The stacks that were kept. */
static void verify(int fd)
{
	struct mt_verified verified;
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);
	int r;

	fuzz_must(out && lseek(fd, 0, SEEK_SET) == 0);
	r = mt_verify_stacks(fd, out, &verified);
	fuzz_must(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EPROTO);
	fuzz_must(fclose(out) == 0 && printed_is_text(text, len));
	fuzz_must(verified.hashes_right <= verified.stacks);
	fuzz_must(r || verified.stacks == verified.chains_equal + verified.chains_different +
						  verified.not_checkable);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct artifact_bytes file = { NULL, 0 };
	struct mt_run run;
	int fd, r;

	if (!len)
		return 0;
	artifact_append_frame(&file, bytes + 1, len - 1);
	fd = artifact_fd(file.bytes, file.len);
	free(file.bytes);
	fuzz_must(mt_run_init(&run) == 0);
	r = mt_run_read(&run, fd);
	verify(fd);
	close(fd);
	fuzz_must(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EPROTO);
	if (r == 0)
		report(&run);
	mt_run_done(&run);
	return 0;
}

/* Blocks that are freed, moved, left, inherited and contradicted. */
static void put_events(struct mt_writer *writer)
{
	static const uint8_t types[] = {
		MT_EVENT_ALLOC, MT_EVENT_ALLOC,		MT_EVENT_FREE,
		MT_EVENT_ALLOC, MT_EVENT_REALLOC_BEGIN, MT_EVENT_REALLOC_END,
		MT_EVENT_ALLOC, MT_EVENT_REALLOC_BEGIN, MT_EVENT_REALLOC_FAILED,
		MT_EVENT_FREE,	MT_EVENT_REALLOC_BEGIN, MT_EVENT_REALLOC_FREED,
	};

	for (uint32_t i = 0; i < 200; i++) {
		struct mt_event event = { .time_ns = 1000 + 10 * i - i % 7,
					  .address = 4096 + 16 * (i * 5 % 11),
					  .size = i * i % 3000,
					  .thread = 1 + i % 3 / 2,
					  .node = i % (MT_NODE_FIRST + 6),
					  .type = types[i % sizeof(types)],
					  .function = (uint8_t)(i % 53) };

		fuzz_must(mt_writer_event(writer, &event) == 0);
	}
}

/* Two windows that were kept, of a group and of blocks; the first has the right digest, the
 * second the right chain, of one frame. */
static void put_stacks(struct mt_writer *writer)
{
	static const struct mt_mapping mappings[] = {
		{ 0x1000, 0x9000, 0x1000, 0, MT_MAPPING_FOUND },
		{ 0x10000, 0x20000, 0x10000, 1, 0 },
	};
	__u64 words[MT_GROUP_WORDS] = { 0 };
	struct mt_kept_stack stack = { .thread = 1,
				       .node = MT_NODE_FIRST,
				       .flags = MT_KEPT_BOTTOM,
				       .start = 0x7ffe0000,
				       .end = 0x7ffe0000 + sizeof(words),
				       .epoch = 3,
				       .words = (const uint64_t *)words };

	words[MT_SAVED_RIP] = 0x1234;
	words[MT_SAVED_RIP + 1] = 0x12345;
	stack.digest = mt_digest_finish(stack.start, stack.end, stack.epoch,
					mt_digest_part(mt_group_hash(words), 0));
	fuzz_must(mt_writer_mappings(writer, &(struct mt_mappings){ 0, 2, mappings }) == 0);
	fuzz_must(mt_writer_kept_stack(writer, &stack) == 0);
	words[MT_SAVED_RIP] = 0x12345;
	stack.flags |= MT_KEPT_RAW;
	stack.node = MT_NODE_FIRST + 6;
	stack.end -= 64;
	fuzz_must(mt_writer_kept_stack(writer, &stack) == 0);
	stack.node = MT_NODE_FIRST + 1;
	fuzz_must(mt_writer_kept_stack(writer, &stack) == 0);
}

static struct artifact_bytes make_artifact(void)
{
	static const char *const argv[] = { "a", "\xff \x1b[2J", NULL };
	static const uint8_t build_id[20] = { 1, 2, 3 };
	const struct mt_header header = { .machine = "x86_64",
					  .program = "fuzz",
					  .capture = MT_CAPTURE_INLINE,
					  .budget_bytes = 8192,
					  .argv = argv };
	const struct mt_module modules[] = { { 0, 0, "/bin/\xc2\x9b", build_id, 20 },
					     { 1, 0, "", NULL, 0 } };
	const struct mt_process processes[] = { { 1, 0, 7, MT_PROCESS_START, 1, "/bin/a", "a" },
						{ 2, 1, 8, MT_PROCESS_FORK, 5, "/bin/a", "\n" } };
	const struct mt_thread_info threads[] = { { 1, 1, 7, 1, "main" }, { 2, 2, 8, 5, "\"" } };
	const struct mt_process_end ends[] = { { 2, 9000, 0 }, { 1, 9001, 11 } };
	const struct mt_not_tracked not_tracked = { 9, "/bin/\x7f", "statically linked" };
	const struct mt_symbol symbols[] = { { 0x1000, 0x1000, "_ZN1a1bEv", 18, 0 },
					     { 0x2000, 0, "\xc2\x9b", 2, 0 },
					     { 0x2000, UINT64_MAX, "c", 34, 0 },
					     { 0x4000, 0, "\"", 18, 0 } };
	const struct mt_module_symbols recorded = { 0, 4, 3, symbols };
	const struct mt_node one_frame = { MT_NODE_FIRST + 6, MT_STOP_END, 1, 0x2345, 0 };
	const struct mt_footer footer = { .end_ns = 9002, .events = 200 };
	int fd = artifact_fd("", 0);
	struct artifact_bytes ret;
	struct mt_writer *writer;

	fuzz_must(mt_writer_new(dup(fd), &header, &writer) == 0);
	fuzz_must(mt_writer_not_tracked(writer, &not_tracked) == 0);
	for (int i = 0; i < 2; i++)
		fuzz_must(mt_writer_module(writer, &modules[i]) == 0 &&
			  mt_writer_process(writer, &processes[i]) == 0 &&
			  mt_writer_thread(writer, &threads[i]) == 0);
	fuzz_must(mt_writer_symbols(writer, &recorded) == 0);
	for (uint32_t i = 0; i < 6; i++) {
		struct mt_node node = { .id = MT_NODE_FIRST + i,
					.parent = i % 3 ? MT_NODE_FIRST + i - 1 : i / 3 + 1,
					.module = i % 4 == 3 ? UINT32_MAX : i % 2,
					.offset = 0x1000 * i,
					.exact = i % 2 };

		fuzz_must(mt_writer_node(writer, &node) == 0);
	}
	fuzz_must(mt_writer_node(writer, &one_frame) == 0);
	put_events(writer);
	put_stacks(writer);
	for (int i = 0; i < 2; i++)
		fuzz_must(mt_writer_process_end(writer, &ends[i]) == 0);
	fuzz_must(mt_writer_finish(writer, &footer) == 0);
	mt_writer_free(writer);
	ret = artifact_of_fd(fd);
	close(fd);
	return ret;
}

static void try_artifact(struct artifact_bytes file, size_t step, unsigned int mixtures)
{
	struct artifact_bytes records = { NULL, 0 }, content = artifact_content(file);

	artifact_append(&records, "R", 1);
	artifact_append(&records, content.bytes, content.len);
	fuzz_try_around(records.bytes, records.len, step);
	fuzz_try_mixed(records.bytes, records.len, mixtures);
	free(content.bytes);
	free(records.bytes);
	free(file.bytes);
}

void fuzz_corpus(void)
{
	char *text;

	try_artifact(make_artifact(), 2, 2000);
	try_artifact(sample_artifact(&text), 16, 500);
	free(text);
}
