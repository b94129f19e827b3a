/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make_artifact.c - an artifact on stdout from a description on stdin
 *
 * So that a test's artifacts are text in the test.  One record a line, a kind and then
 * KEY=VALUE in any order; # begins a comment.  Numbers are decimal, or 0x... hexadecimal;
 * in text %XX is the byte XX.  What is not given is 0 or empty, but ids count up by
 * themselves, a process is the last one, and an event's thread and time are those of the
 * event before.
 *
 *   signature VERSION      instead of all else: only the start of a file of that version
 *   header       start wall capture budget machine program argv (again for each)
 *   module       id flags path build_id (hexadecimal)
 *   symbols      module left_out, symbol=OFFSET,BYTES,INFO,NAME for each
 *   node         id parent module (- for none) offset exact
 *   process      id parent tgid how start exe name
 *   process-end  id end status
 *   thread       id process tid start name
 *   not-tracked  tgid what reason
 *   mappings     id, map=START,END,BIAS,MODULE,FLAGS for each
 *   kept-stack   thread node mappings flags start epoch digest words=WORD,...
 *   alloc free realloc-begin realloc-end realloc-failed realloc-freed
 *                time thread node address size function (a name, or its number)
 *   flush                  ends the frame
 *   raw HEX                bytes of the file, after a flush or the footer
 *   footer       end status events (those written, if not given) lost_events lost_stacks
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "artifact/writer.h"
#include "wire/control.h"
#include "wire/functions.h"

#define MAX_WORDS 256

/* A line, cut up. */
struct line {
	unsigned int number;
	const char *kind;
	char *keys[MAX_WORDS];
	char *values[MAX_WORDS]; /* NULL: the key is a bare word */
	unsigned int n;
};

struct maker {
	struct mt_writer *writer;
	uint32_t module, node, process, thread, mappings; /* the next id */
	uint64_t events;
	struct mt_event last;
};

static const struct line *current;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "make_artifact: line %u: ", current ? current->number : 0);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void check(int r)
{
	if (r < 0)
		die("%s: %s", current->kind, strerror(-r));
}

static unsigned int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	if (!at)
		die("not a hexadecimal digit: %c", c);
	return (unsigned int)(at - digits);
}

/* In place; returns the length. */
static size_t from_hex(char *text)
{
	size_t n = 0;

	for (; text[2 * n]; n++)
		text[n] = (char)(hex_digit(text[2 * n]) << 4 | hex_digit(text[2 * n + 1]));
	return n;
}

static void from_percent(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text == '%') {
			*to = (char)(hex_digit(text[1]) << 4 | hex_digit(text[2]));
			text += 2;
		}
	}
	*to = 0;
}

static char *text_of(const struct line *line, const char *key)
{
	static char empty[1];

	for (unsigned int i = 0; i < line->n; i++)
		if (line->values[i] && strcmp(line->keys[i], key) == 0)
			return line->values[i];
	return empty;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = text[0] == '-' ? (uint64_t)strtoll(text, &end, 0)
					: strtoull(text, &end, 0);

	if (*end)
		die("not a number: %s", text);
	return value;
}

static uint64_t number_of(const struct line *line, const char *key, uint64_t if_missing)
{
	const char *text = text_of(line, key);

	return *text ? number(text) : if_missing;
}

static uint8_t function_of(const struct line *line, uint8_t if_missing)
{
#define MT_FN_NAME(number, symbol, handler) [number] = #symbol,
	static const char *const names[MT_FN_MAX] = { MT_FUNCTIONS(MT_FN_NAME) };
#undef MT_FN_NAME
	const char *text = text_of(line, "function");

	for (uint8_t i = 0; i < MT_FN_MAX; i++)
		if (names[i] && strcmp(names[i], text) == 0)
			return i;
	return (uint8_t)number_of(line, "function", if_missing);
}

static void make_signature(uint64_t version)
{
	uint8_t record[32] = "\x92\xb1memtrack artifact\xcf", frame[128];
	size_t len = 20;

	for (int shift = 56; shift >= 0; shift -= 8)
		record[len++] = (uint8_t)(version >> shift);
	len = ZSTD_compress(frame, sizeof(frame), record, len, 1);
	if (ZSTD_isError(len) || fwrite(frame, 1, len, stdout) != len)
		die("can not write");
}

static void make_header(struct maker *maker, const struct line *line)
{
	const char *argv[MAX_WORDS + 1] = { NULL };
	struct mt_header header = {
		.start_ns = number_of(line, "start", 0),
		.wall_ns = number_of(line, "wall", 0),
		.capture = (uint32_t)number_of(line, "capture", 0),
		.budget_bytes = (uint32_t)number_of(line, "budget", 0),
		.machine = text_of(line, "machine"),
		.program = text_of(line, "program"),
		.argv = argv,
	};
	unsigned int argc = 0;

	for (unsigned int i = 0; i < line->n; i++)
		if (line->values[i] && strcmp(line->keys[i], "argv") == 0)
			argv[argc++] = line->values[i];
	check(mt_writer_new(dup(STDOUT_FILENO), &header, &maker->writer));
}

static void make_module(struct maker *maker, const struct line *line)
{
	char *build_id = text_of(line, "build_id");
	struct mt_module module = {
		.id = (uint32_t)number_of(line, "id", maker->module),
		.flags = (uint32_t)number_of(line, "flags", 0),
		.path = text_of(line, "path"),
		.build_id_bytes = (uint32_t)from_hex(build_id),
		.build_id = (uint8_t *)build_id,
	};

	maker->module = module.id + 1;
	check(mt_writer_module(maker->writer, &module));
}

static void make_symbols(struct maker *maker, const struct line *line)
{
	struct mt_symbol list[MAX_WORDS];
	struct mt_module_symbols symbols = {
		.module = (uint32_t)number_of(line, "module", maker->module - 1),
		.left_out = number_of(line, "left_out", 0),
		.symbols = list,
	};

	for (unsigned int i = 0; i < line->n; i++) {
		char *text = line->values[i];
		uint64_t values[3];

		if (!text || strcmp(line->keys[i], "symbol") != 0)
			continue;
		for (int n = 0; n < 3; n++) {
			char *number_text = strsep(&text, ",");

			if (!text)
				die("a symbol has three numbers and a name");
			values[n] = number(number_text);
		}
		list[symbols.len++] = (struct mt_symbol){
			.offset = values[0],
			.bytes = values[1],
			.info = (uint32_t)values[2],
			.name = text,
		};
	}
	check(mt_writer_symbols(maker->writer, &symbols));
}

static void make_node(struct maker *maker, const struct line *line)
{
	struct mt_node node = {
		.id = (uint32_t)number_of(line, "id", maker->node),
		.parent = (uint32_t)number_of(line, "parent", 0),
		.module = UINT32_MAX,
		.offset = number_of(line, "offset", 0),
		.exact = (uint8_t)number_of(line, "exact", 0),
	};

	if (strcmp(text_of(line, "module"), "-") != 0)
		node.module = (uint32_t)number_of(line, "module", 0);
	maker->node = node.id + 1;
	check(mt_writer_node(maker->writer, &node));
}

static void make_process(struct maker *maker, const struct line *line)
{
	struct mt_process process = {
		.id = (uint32_t)number_of(line, "id", maker->process),
		.parent = (uint32_t)number_of(line, "parent", 0),
		.tgid = (uint32_t)number_of(line, "tgid", 0),
		.how = (uint32_t)number_of(line, "how", 0),
		.start_ns = number_of(line, "start", 0),
		.exe = text_of(line, "exe"),
		.name = text_of(line, "name"),
	};

	maker->process = process.id + 1;
	check(mt_writer_process(maker->writer, &process));
}

static void make_process_end(struct maker *maker, const struct line *line)
{
	struct mt_process_end end = {
		.id = (uint32_t)number_of(line, "id", maker->process - 1),
		.end_ns = number_of(line, "end", 0),
		.status = (int32_t)number_of(line, "status", 0),
	};

	check(mt_writer_process_end(maker->writer, &end));
}

static void make_thread(struct maker *maker, const struct line *line)
{
	struct mt_thread_info thread = {
		.id = (uint32_t)number_of(line, "id", maker->thread),
		.process = (uint32_t)number_of(line, "process", maker->process - 1),
		.tid = (uint32_t)number_of(line, "tid", 0),
		.start_ns = number_of(line, "start", 0),
		.name = text_of(line, "name"),
	};

	if (thread.id == maker->thread)
		maker->thread++;
	check(mt_writer_thread(maker->writer, &thread));
}

static void make_not_tracked(struct maker *maker, const struct line *line)
{
	struct mt_not_tracked what = {
		.tgid = (uint32_t)number_of(line, "tgid", 0),
		.what = text_of(line, "what"),
		.reason = text_of(line, "reason"),
	};

	check(mt_writer_not_tracked(maker->writer, &what));
}

/* Cuts numbers off that commas divide; returns how many there are, at most max. */
static size_t numbers(char *text, uint64_t *ret, size_t max)
{
	char *save = NULL, *word = strtok_r(text, ",", &save);
	size_t n = 0;

	for (; word; word = strtok_r(NULL, ",", &save)) {
		if (n == max)
			die("more than %zu numbers", max);
		ret[n++] = number(word);
	}
	return n;
}

static void make_mappings(struct maker *maker, const struct line *line)
{
	struct mt_mapping list[MAX_WORDS];
	struct mt_mappings mappings = {
		.id = (uint32_t)number_of(line, "id", maker->mappings),
		.mappings = list,
	};
	uint64_t values[5];

	for (unsigned int i = 0; i < line->n; i++) {
		if (!line->values[i] || strcmp(line->keys[i], "map") != 0)
			continue;
		if (numbers(line->values[i], values, 5) != 5)
			die("a mapping has five numbers");
		list[mappings.len++] = (struct mt_mapping){
			.start = values[0],
			.end = values[1],
			.bias = values[2],
			.module = (uint32_t)values[3],
			.flags = (uint32_t)values[4],
		};
	}
	maker->mappings = mappings.id + 1;
	check(mt_writer_mappings(maker->writer, &mappings));
}

static void make_kept_stack(struct maker *maker, const struct line *line)
{
	static uint64_t words[MT_BUDGET_MAX_BYTES / 8];
	size_t n = numbers(text_of(line, "words"), words, sizeof(words) / sizeof(words[0]));
	struct mt_kept_stack stack = {
		.thread = (uint32_t)number_of(line, "thread", maker->last.thread),
		.node = (uint32_t)number_of(line, "node", 0),
		.mappings = (uint32_t)number_of(line, "mappings", maker->mappings - 1),
		.flags = (uint32_t)number_of(line, "flags", 0),
		.start = number_of(line, "start", 0),
		.epoch = (uint32_t)number_of(line, "epoch", 0),
		.digest = number_of(line, "digest", 0),
		.words = words,
	};

	stack.end = stack.start + 8 * n;
	check(mt_writer_kept_stack(maker->writer, &stack));
}

static void make_event(struct maker *maker, const struct line *line, uint8_t type)
{
	struct mt_event event = {
		.time_ns = number_of(line, "time", maker->last.time_ns),
		.address = number_of(line, "address", 0),
		.size = number_of(line, "size", 0),
		.thread = (uint32_t)number_of(line, "thread", maker->last.thread),
		.node = (uint32_t)number_of(line, "node", 0),
		.type = type,
		.function = function_of(line, type == MT_EVENT_ALLOC  ? 1
					      : type == MT_EVENT_FREE ? 10
								      : 3),
	};

	maker->last = event;
	maker->events++;
	check(mt_writer_event(maker->writer, &event));
}

static void make_flush(struct maker *maker, const struct line *line)
{
	check(mt_writer_flush(maker->writer));
}

static void make_footer(struct maker *maker, const struct line *line)
{
	struct mt_footer footer = {
		.end_ns = number_of(line, "end", maker->last.time_ns),
		.status = (int32_t)number_of(line, "status", 0),
		.events = number_of(line, "events", maker->events),
		.lost_events = number_of(line, "lost_events", 0),
		.lost_stacks = number_of(line, "lost_stacks", 0),
	};

	check(mt_writer_finish(maker->writer, &footer));
}

static void make_raw(struct maker *maker, const struct line *line)
{
	size_t len = line->n ? from_hex(line->keys[0]) : 0;

	if (len && fwrite(line->keys[0], 1, len, stdout) != len)
		die("can not write");
	fflush(stdout);
}

/* clang-format off */
static const struct {
	const char *kind;
	void (*make)(struct maker *maker, const struct line *line);
} makers[] = {
	{ "header", make_header },
	{ "module", make_module },
	{ "symbols", make_symbols },
	{ "node", make_node },
	{ "process", make_process },
	{ "process-end", make_process_end },
	{ "thread", make_thread },
	{ "not-tracked", make_not_tracked },
	{ "mappings", make_mappings },
	{ "kept-stack", make_kept_stack },
	{ "flush", make_flush },
	{ "raw", make_raw },
	{ "footer", make_footer },
};
/* clang-format on */

static const char *const event_kinds[_MT_EVENT_MAX] = {
	[MT_EVENT_ALLOC] = "alloc",
	[MT_EVENT_FREE] = "free",
	[MT_EVENT_REALLOC_BEGIN] = "realloc-begin",
	[MT_EVENT_REALLOC_END] = "realloc-end",
	[MT_EVENT_REALLOC_FAILED] = "realloc-failed",
	[MT_EVENT_REALLOC_FREED] = "realloc-freed",
};

static void make(struct maker *maker, const struct line *line)
{
	if (strcmp(line->kind, "signature") == 0) {
		make_signature(line->n ? number(line->keys[0]) : 0);
		return;
	}
	if (!maker->writer && strcmp(line->kind, "header") != 0 && strcmp(line->kind, "raw") != 0)
		die("no header yet");
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (strcmp(makers[i].kind, line->kind) == 0) {
			makers[i].make(maker, line);
			return;
		}
	}
	for (uint8_t i = 1; i < _MT_EVENT_MAX; i++) {
		if (strcmp(event_kinds[i], line->kind) == 0) {
			make_event(maker, line, i);
			return;
		}
	}
	die("unknown kind: %s", line->kind);
}

/* Cuts text up into line; returns 0 if there is nothing in it. */
static int cut_up(char *text, struct line *line)
{
	char *save = NULL, *word;

	text[strcspn(text, "#\n")] = 0;
	line->kind = strtok_r(text, " \t", &save);
	line->n = 0;
	if (!line->kind)
		return 0;
	while ((word = strtok_r(NULL, " \t", &save))) {
		char *equals = strchr(word, '=');

		if (line->n == MAX_WORDS)
			die("more than %d words", MAX_WORDS);
		line->keys[line->n] = word;
		line->values[line->n] = equals ? equals + 1 : NULL;
		if (equals) {
			*equals = 0;
			from_percent(equals + 1);
		}
		line->n++;
	}
	return 1;
}

int main(void)
{
	struct maker maker = {
		.node = MT_NODE_FIRST, .process = 1, .thread = 1, .last = { .thread = 1 }
	};
	static struct line line;
	char *text = NULL;
	size_t size = 0;

	current = &line;
	while (getline(&text, &size, stdin) >= 0) {
		line.number++;
		if (cut_up(text, &line))
			make(&maker, &line);
	}
	free(text);
	/* No footer: what is open goes into a frame, as if the writer had been killed then. */
	if (maker.writer) {
		int r = mt_writer_flush(maker.writer);

		if (r < 0 && r != -ESHUTDOWN)
			die("%s", strerror(-r));
	}
	mt_writer_free(maker.writer);
	return fflush(stdout) ? 1 : 0;
}
