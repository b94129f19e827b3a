/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text.c - see text.h
 *
 * Invariants
 *   Names are printed last in their line, by mt_printable_write(): whatever is in them,
 *   columns stay aligned and a line stays a line.
 */
#include "report/text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/demangle.h"
#include "report/printable.h"
#include "wire/control.h"

/* Room for a number with its commas, or a size in words. */
struct cell {
	char text[40];
};

/* 1,234,567 */
static struct cell number(uint64_t value)
{
	struct cell cell;
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			cell.text[at++] = ',';
		cell.text[at++] = digits[i];
	}
	cell.text[at] = '\0';
	return cell;
}

/* 1.2 MiB */
static struct cell bytes_in_words(uint64_t value)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct cell cell;
	double scaled = (double)value;
	size_t unit = 0;

	/* What would be shown as 1024.0 of one unit is 1.0 of the next. */
	while (scaled >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		scaled /= 1024;
		unit++;
	}
	snprintf(cell.text, sizeof(cell.text), unit ? "%.1f %s" : "%.0f %s", scaled, units[unit]);
	return cell;
}

static struct cell seconds(uint64_t ns)
{
	struct cell cell;

	snprintf(cell.text, sizeof(cell.text), "%" PRIu64 ".%03" PRIu64 " s", ns / 1000000000,
		 ns / 1000000 % 1000);
	return cell;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* What a shell takes as this word; not of one with ' that has what " does not hide, too. */
static const char *quote_of(const char *word)
{
	if (*word && !strpbrk(word, " \t\n'\"\\$&;|<>()*?`#[]{}~!"))
		return "";
	return strchr(word, '\'') && !strpbrk(word, "\"\\$`!") ? "\"" : "'";
}

static void put_command(const struct mt_run *run, FILE *out)
{
	for (size_t i = 0; i < run->argc; i++) {
		const char *quote = quote_of(run->argv[i]);

		fprintf(out, "%s%s", i ? " " : "", quote);
		mt_printable_write(out, run->argv[i]);
		fputs(quote, out);
	}
	fputc('\n', out);
}

static void put_recorded(const struct mt_run *run, FILE *out)
{
	time_t start = (time_t)(run->wall_ns / 1000000000);
	char when[64] = "";
	struct tm tm;

	if (gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	fprintf(out, "recorded           %s%s, by ", when, seconds(mt_run_duration_ns(run)).text);
	mt_printable_write(out, run->program);
	fprintf(out, " on ");
	mt_printable_write(out, run->machine);
	fprintf(out, ", %s capture\n",
		run->capture == MT_CAPTURE_EBPF	    ? "eBPF"
		: run->capture == MT_CAPTURE_INLINE ? "inline"
						    : "unknown");
}

static void put_ending(const struct mt_run *run, FILE *out)
{
	int32_t status = run->footer.status;

	if (!run->result.complete) {
		fprintf(out, "ended              not known: the file is incomplete (");
		mt_printable_write(out, run->result.problem);
		fprintf(out, ")\n");
	} else if (status >= 0 && WIFSIGNALED(status)) {
		fprintf(out, "ended              by signal %d (%s)\n", WTERMSIG(status),
			sigdescr_np(WTERMSIG(status)) ? sigdescr_np(WTERMSIG(status)) : "unknown");
	} else if (status >= 0 && WIFEXITED(status)) {
		fprintf(out, "ended              with exit status %d\n", WEXITSTATUS(status));
	} else {
		fprintf(out, "ended              in a way that is not known\n");
	}
}

static void put_total(FILE *out, const char *label, uint64_t value, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void put_total(FILE *out, const char *label, uint64_t value, const char *format, ...)
{
	va_list args;

	fprintf(out, "%-18s %15s", label, number(value).text);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

static void put_totals(const struct mt_run *run, FILE *out)
{
	const struct mt_replay *replay = &run->replay;
	const struct mt_figures *total = &replay->total;

	put_total(out, "allocations", total->allocations, "   %s temporary (%.1f %%)",
		  number(total->temporary_allocations).text,
		  percent(total->temporary_allocations, total->allocations));
	put_total(out, "frees", total->frees, "%s", "");
	put_total(out, "bytes allocated", total->bytes_allocated, "   %s",
		  bytes_in_words(total->bytes_allocated).text);
	put_total(out, "peak heap bytes", replay->peak.bytes, "   %s, after %s",
		  bytes_in_words(replay->peak.bytes).text,
		  seconds(mt_run_since_start(run, replay->peak.time_ns)).text);
	put_total(out, "live at exit bytes", total->left_bytes, "   %s, in %s block%s",
		  bytes_in_words(total->left_bytes).text, number(total->left_allocations).text,
		  plural(total->left_allocations));
	put_total(out, "processes", run->processes_len - 1, "%s", "");
	put_total(out, "threads", run->threads_len - 1, "%s", "");
}

/* What the figures do not tell, each only if it is so. */
static void put_doubts(const struct mt_run *run, FILE *out)
{
	const struct mt_replay *replay = &run->replay;
	uint64_t unresolved = mt_run_unresolved(run);

	if (replay->untracked_frees)
		put_total(out, "untracked frees", replay->untracked_frees, "   %s",
			  "of blocks from before tracking, or inherited over a fork");
	if (replay->contradictions)
		put_total(out, "contradictions", replay->contradictions, "   %s",
			  "events that do not fit the heap as the others tell it");
	if (run->result.complete && run->footer.lost_events)
		put_total(out, "lost events", run->footer.lost_events, "   %s",
			  "all figures are too low");
	if (run->result.complete && run->footer.lost_stacks)
		put_total(out, "lost stacks", run->footer.lost_stacks, "%s", "");
	if (unresolved) {
		put_total(out, "chains cut", unresolved, "   %.2f %% of the allocations:",
			  percent(unresolved, replay->total.allocations));
		for (uint32_t stop = 0; stop < _MT_STOP_MAX; stop++)
			if (stop != MT_STOP_END && run->stops[stop])
				fprintf(out, "  %-16s %15s\n", mt_run_stop_name(stop),
					number(run->stops[stop]).text);
	}
	for (size_t i = 0; i < run->not_tracked_len; i++) {
		fprintf(out, "not tracked: %" PRIu32 " ", run->not_tracked[i].tgid);
		mt_printable_write(out, run->not_tracked[i].what);
		fprintf(out, " (");
		mt_printable_write(out, run->not_tracked[i].reason);
		fprintf(out, ")\n");
	}
}

static int put_calls(const struct mt_run *run, FILE *out)
{
	fprintf(out, "\nCALLS\n");
	for (unsigned int i = 0; i <= UINT8_MAX; i++) {
		const char *symbol = mt_run_function_symbol((uint8_t)i);
		mt_cleanup(mt_freep) char *name = NULL;

		if (!run->replay.calls[i])
			continue;
		if (symbol) {
			name = mt_demangle(symbol);
			if (!name)
				return -ENOMEM;
		}
		fprintf(out, "%15s  ", number(run->replay.calls[i]).text);
		if (name)
			fprintf(out, "%s\n", name);
		else
			fprintf(out, "function %u\n", i);
	}
	return 0;
}

static void put_frame(const struct mt_run *run, uint32_t node, const struct mt_frame *frame,
		      FILE *out)
{
	const struct mt_run_node *mine = &run->nodes[node];
	const char *path = mine->module == UINT32_MAX ? NULL : run->modules[mine->module].path;
	const char *base = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	fputs("       ", out);
	if (frame->function)
		mt_printable_write(out, frame->function);
	else if (path)
		mt_printable_write(out, base);
	if (!frame->function)
		fprintf(out, "%s0x%" PRIx64, path ? "+" : "", mine->offset);
	if (frame->inlined)
		fputs(" (inlined)", out);
	if (frame->file) {
		fputs(frame->function ? " at " : " ", out);
		mt_printable_write(out, frame->file);
		if (frame->line)
			fprintf(out, ":%u", frame->line);
	} else if (frame->function && path) {
		fputs(" in ", out);
		mt_printable_write(out, base);
	}
	fputc('\n', out);
}

static const char *stop_in_words(uint8_t stop)
{
	static const char *const words[] = {
		[MT_STOP_NONE] = "no stack was captured",
		[MT_STOP_END] = NULL,
		[MT_STOP_TRUNCATED] = "cut: the captured part of the stack ends here",
		[MT_STOP_NO_CFI] = "cut: no unwind information for the caller",
		[MT_STOP_NO_MODULE] = "cut: the caller is in no known module",
		[MT_STOP_BAD] = "cut: unwind information and stack contradict each other",
		[MT_STOP_DEPTH] = "cut: more frames than are kept",
		[MT_STOP_BOOTSTRAP] = "allocated before stacks could be captured",
		[MT_STOP_LOST] = "the stack was lost",
	};

	return stop < sizeof(words) / sizeof(words[0]) ? words[stop] : "cut: for a new reason";
}

static int put_chain(const struct mt_view *view, uint32_t leaf, FILE *out)
{
	const struct mt_run *run = view->run;
	const char *stop = stop_in_words(run->nodes[leaf].stop);

	for (uint32_t node = leaf; node >= MT_NODE_FIRST; node = run->nodes[node].parent) {
		const struct mt_frames *frames;
		int err = mt_symbolizer_node(view->symbolizer, node, &frames);

		if (err)
			return err;
		for (size_t i = 0; i < frames->len; i++)
			put_frame(run, node, &frames->frames[i], out);
	}
	if (stop)
		fprintf(out, "       (%s)\n", stop);
	return 0;
}

static void put_row(const struct mt_rank_row *row, size_t place, enum mt_rank rank, uint64_t whole,
		    FILE *out)
{
	if (rank == MT_RANK_ALLOCATIONS)
		fprintf(out, "\n%4zu.  %s allocation%s (%.1f %%), %s bytes (%s)\n", place,
			number(row->count).text, plural(row->count), percent(row->count, whole),
			number(row->bytes).text, bytes_in_words(row->bytes).text);
	else
		fprintf(out, "\n%4zu.  %s (%s bytes, %.1f %%) in %s block%s\n", place,
			bytes_in_words(row->bytes).text, number(row->bytes).text,
			percent(row->bytes, whole), number(row->count).text, plural(row->count));
}

static int put_top(const struct mt_view *view, enum mt_rank rank, FILE *out)
{
	static const char *const titles[] = {
		[MT_RANK_PEAK] = "LIVE AT THE PEAK",
		[MT_RANK_ALLOCATIONS] = "MOST ALLOCATIONS",
		[MT_RANK_LEFT] = "NEVER FREED",
	};
	const struct mt_replay *replay = &view->run->replay;
	const uint64_t wholes[] = {
		[MT_RANK_PEAK] = replay->peak.bytes,
		[MT_RANK_ALLOCATIONS] = replay->total.allocations,
		[MT_RANK_LEFT] = replay->total.left_bytes,
	};
	mt_cleanup(mt_freep) struct mt_rank_row *rows = NULL;
	size_t len;
	int err = mt_rank_chains(replay, rank, view->top, &rows, &len);

	if (err)
		return err;
	fprintf(out, "\n%s%s\n", titles[rank], len ? "" : ": nothing");
	for (size_t i = 0; i < len && !err; i++) {
		put_row(&rows[i], i + 1, rank, wholes[rank], out);
		err = put_chain(view, rows[i].node, out);
	}
	return err;
}

static int put_chains(const struct mt_view *view, FILE *out)
{
	const struct mt_run *run = view->run;
	int titled = 0, err = 0;

	for (unsigned int rank = 0; rank < _MT_RANK_MAX && !err; rank++)
		err = put_top(view, rank, out);
	for (size_t i = 0; i < run->modules_len && !err; i++) {
		const char *problem = mt_symbolizer_problem(view->symbolizer, (uint32_t)i);

		if (!problem)
			continue;
		if (!titled)
			fprintf(out, "\nWHY NAMES OR LINES ARE MISSING\n");
		titled = 1;
		fputs("  ", out);
		mt_printable_write(out, run->modules[i].path);
		fprintf(out, " %s\n", problem);
	}
	return err;
}

/* As the sums of replay.h, it stops at UINT64_MAX. */
static uint64_t total_of(const struct mt_size *size)
{
	uint64_t bytes;

	return __builtin_mul_overflow(size->size, size->allocations, &bytes) ? UINT64_MAX : bytes;
}

static void put_sizes(const struct mt_sizes *sizes, FILE *out)
{
	fprintf(out, "\nSIZES\n%15s %15s %15s %15s %19s\n", "size", "allocations", "frees",
		"temporary", "bytes");
	for (size_t i = 0; i < sizes->len; i++) {
		const struct mt_size *size = &sizes->sizes[i];

		fprintf(out, "%15s %15s %15s %15s %19s\n", number(size->size).text,
			number(size->allocations).text, number(size->frees).text,
			number(size->temporary_allocations).text, number(total_of(size)).text);
	}
}

static void put_threads(const struct mt_run *run, FILE *out)
{
	fprintf(out, "\nTHREADS\n%10s %10s %15s %15s %19s %19s  %s\n", "pid", "tid", "allocations",
		"frees", "bytes", "live at exit", "name");
	for (size_t i = 1; i < run->threads_len; i++) {
		const struct mt_run_thread *thread = &run->threads[i];
		const struct mt_figures *figures = &run->replay.threads[i].figures;

		fprintf(out, "%10" PRIu32 " %10" PRIu32 " %15s %15s %19s %19s  ",
			run->processes[thread->process].tgid, thread->tid,
			number(figures->allocations).text, number(figures->frees).text,
			number(figures->bytes_allocated).text, number(figures->left_bytes).text);
		mt_printable_write(out, thread->name);
		fputc('\n', out);
	}
}

static void put_processes(const struct mt_run *run, FILE *out)
{
	fprintf(out, "\nPROCESSES\n%10s %10s %15s %15s %19s %15s %15s  %s\n", "pid", "parent",
		"allocations", "frees", "bytes", "peak", "live at exit", "name, program");
	for (size_t i = 1; i < run->processes_len; i++) {
		const struct mt_run_process *process = &run->processes[i];
		const struct mt_replay_process *replayed = &run->replay.processes[i];
		const struct mt_figures *figures = &replayed->figures;
		/* The parent's is a smaller id, and 0, which is nobody, has no pid. */
		uint32_t parent = process->parent < i ? run->processes[process->parent].tgid : 0;

		fprintf(out, "%10" PRIu32 " %10" PRIu32 " %15s %15s %19s %15s %15s  ",
			process->tgid, parent, number(figures->allocations).text,
			number(figures->frees).text, number(figures->bytes_allocated).text,
			number(replayed->peak.bytes).text, number(figures->left_bytes).text);
		mt_printable_write(out, process->name);
		fputs(", ", out);
		mt_printable_write(out, process->exe);
		fputc('\n', out);
	}
}

int mt_text_report(const struct mt_view *view, FILE *out)
{
	const struct mt_run *run = view->run;
	int err;

	fprintf(out, "command            ");
	put_command(run, out);
	put_recorded(run, out);
	put_ending(run, out);
	fputc('\n', out);
	put_totals(run, out);
	put_doubts(run, out);
	switch (view->by) {
	case MT_VIEW_SIZE:
		put_sizes(&run->replay.sizes, out);
		return 0;
	case MT_VIEW_THREAD:
		put_threads(run, out);
		return 0;
	case MT_VIEW_PROCESS:
		put_processes(run, out);
		return 0;
	default:
		err = put_calls(run, out);
		return err ? err : put_chains(view, out);
	}
}
