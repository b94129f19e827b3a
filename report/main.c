/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main.c - memtrack-report: what an artifact says about where the memory went
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "report/json.h"
#include "report/printable.h"
#include "report/run.h"
#include "report/symbolize.h"
#include "report/text.h"
#include "report/verify.h"

#define EXIT_USAGE 2
#define EXIT_INCOMPLETE 3
#define DEFAULT_TOP 10

static const char usage[] =
	"Usage: memtrack-report [--json] [--top=N] [--by=chain|size|thread|process] FILE\n"
	"       memtrack-report --verify-stacks FILE\n"
	"Says where the memory went in the run that memtrack-run recorded in FILE.\n"
	"\n"
	"  --by=chain     the call chains with most memory at the peak, most allocations,\n"
	"                 most memory never freed (the default)\n"
	"  --by=size      each size that was asked for\n"
	"  --by=thread    each thread\n"
	"  --by=process   each process\n"
	"  --top=N        at most N chains in each list (default 10)\n"
	"  --json         all of it as one JSON object\n"
	"  --verify-stacks\n"
	"                 instead of that, hash and unwind each stack again that was kept by\n"
	"                 memtrack-run --keep-stacks, and compare\n"
	"  -h, --help     this text\n"
	"  -V, --version  the version\n"
	"\n"
	"Exit status: 0 reported, 1 could not report, or a stack does not agree, 2 wrong usage,\n"
	"3 reported as far as the file goes, which is cut or damaged.\n";

struct options {
	const char *path;
	int json;
	int verify_stacks;
	const char *of_report; /* name of an option that only a report has, if there is one */
	enum mt_view_by by;
	size_t top;
	int done; /* --help or --version: exit with 0 */
};

/* One line on stderr, whatever is in the name. */
static void complain(const char *verb, const char *thing, const char *reason)
{
	fprintf(stderr, "memtrack-report: cannot %s '", verb);
	mt_printable_write(stderr, thing);
	fprintf(stderr, "': %s\n", reason);
}

static int parse_by(const char *name, enum mt_view_by *ret)
{
	static const char *const names[] = {
		[MT_VIEW_CHAIN] = "chain",
		[MT_VIEW_SIZE] = "size",
		[MT_VIEW_THREAD] = "thread",
		[MT_VIEW_PROCESS] = "process",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == _MT_VIEW_MAX, "a view has no name");
	for (unsigned int i = 0; i < _MT_VIEW_MAX; i++)
		if (!strcmp(name, names[i])) {
			*ret = i;
			return 0;
		}
	complain("report by", name, "not known (chain, size, thread or process)");
	return -EINVAL;
}

static int parse_top(const char *digits, size_t *ret)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(digits, &end, 10);
	if (digits[0] < '0' || digits[0] > '9' || *end || errno || !value) {
		complain("show the top", digits, "not a number from 1 on");
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

enum {
	OPTION_JSON = 0x100,
	OPTION_TOP,
	OPTION_BY,
	OPTION_VERIFY_STACKS,
};

/* getopt's own messages come without the remedy.  found: what getopt_long() returned. */
static int complain_option(char **argv, int found)
{
	char letter[] = { '-', (char)optopt, '\0' };
	int is_letter = optopt > 0 && optopt < OPTION_JSON && optopt != 'h' && optopt != 'V';
	const char *reason = found == ':'	    ? "needs a value"
			     : optopt && !is_letter ? "takes no value"
						    : "not known";
	char line[64];

	snprintf(line, sizeof(line), "%s (see memtrack-report --help)", reason);
	complain("use option", is_letter ? letter : argv[optind - 1], line);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "top", required_argument, NULL, OPTION_TOP },
		{ "by", required_argument, NULL, OPTION_BY },
		{ "verify-stacks", no_argument, NULL, OPTION_VERIFY_STACKS },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct options options = { .by = MT_VIEW_CHAIN, .top = DEFAULT_TOP };
	int option, which = 0, err = 0;
	char name[32];

	opterr = 0;
	while (!err && (option = getopt_long(argc, argv, ":hV", longs, &which)) != -1) {
		if (option >= OPTION_JSON && option <= OPTION_BY)
			options.of_report = longs[which].name;
		if (option == OPTION_JSON)
			options.json = 1;
		else if (option == OPTION_TOP)
			err = parse_top(optarg, &options.top);
		else if (option == OPTION_BY)
			err = parse_by(optarg, &options.by);
		else if (option == OPTION_VERIFY_STACKS)
			options.verify_stacks = 1;
		else if (option == 'h' || option == 'V')
			options.done = 1;
		else
			err = complain_option(argv, option);
		if (options.done) {
			fputs(option == 'h' ? usage : "memtrack-report " PACKAGE_VERSION "\n",
			      stdout);
			break;
		}
	}
	if (!err && !options.done && options.verify_stacks && options.of_report) {
		snprintf(name, sizeof(name), "--%s", options.of_report);
		complain("use option", name, "has no meaning with --verify-stacks");
		err = -EINVAL;
	}
	if (!err && !options.done && optind + 1 != argc) {
		fprintf(stderr,
			"memtrack-report: cannot report %s FILE: "
			"give the one that memtrack-run wrote (see memtrack-report --help)\n",
			optind < argc ? "more than one" : "without a");
		err = -EINVAL;
	}
	options.path = options.done || err ? NULL : argv[optind];
	if (!err)
		*ret = options;
	return err;
}

/* Regular files only: others could make us wait, or go on for ever. */
static int open_artifact(const char *path)
{
	mt_cleanup(mt_closep) int fd = -1;
	struct stat st;
	int err;

	/* Before the open, which some devices take as an order. */
	if (stat(path, &st))
		goto failed;
	if (!S_ISREG(st.st_mode)) {
		complain("read", path,
			 S_ISDIR(st.st_mode)
				 ? "is a directory (give a file that memtrack-run wrote)"
				 : "is not a regular file (give a file that memtrack-run wrote)");
		return -EINVAL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		goto failed;
	if (S_ISREG(st.st_mode))
		return mt_take_fd(&fd);
	errno = EINVAL;
failed:
	err = mt_neg_errno();
	complain("open", path, strerror(-err));
	return err;
}

static void complain_read(const char *path, const struct mt_reader_result *result, int err)
{
	char line[320];

	switch (err) {
	case -EBADMSG:
		snprintf(line, sizeof(line),
			 "is not a memtrack artifact%s%s "
			 "(give a file that memtrack-run wrote)",
			 result->problem[0] ? ": " : "", result->problem);
		break;
	case -EPROTONOSUPPORT:
		snprintf(line, sizeof(line),
			 "is of format version %" PRIu32 ", this reads up to %d "
			 "(use the memtrack-report of the memtrack that wrote it)",
			 result->version, MT_FORMAT_VERSION);
		break;
	case -EPROTO:
		snprintf(line, sizeof(line),
			 "its records contradict each other "
			 "(it is damaged, or memtrack did not write it)");
		break;
	default:
		snprintf(line, sizeof(line), "%s", strerror(-err));
	}
	complain("read", path, line);
}

/* Reported all the same. */
static void warn_damaged(const char *path, const struct mt_reader_result *result)
{
	fprintf(stderr, "memtrack-report: '");
	mt_printable_write(stderr, path);
	fprintf(stderr,
		"' is %s, after %" PRIu64 " of %" PRIu64 " bytes: %s; "
		"reporting what is there (for all of it, record again)\n",
		result->complete ? "damaged" : "incomplete", result->good_bytes, result->file_bytes,
		result->problem);
}

/* Is the file what was written?  If not, says so. */
static bool check_whole(const char *path, const struct mt_run *run)
{
	if (run->result.problem[0]) {
		warn_damaged(path, &run->result);
		return false;
	}
	if (run->footer.events == run->replay.events)
		return true;
	fprintf(stderr, "memtrack-report: '");
	mt_printable_write(stderr, path);
	fprintf(stderr,
		"' has %" PRIu64 " events, but says that it has %" PRIu64
		" (it is damaged; record again)\n",
		run->replay.events, run->footer.events);
	return false;
}

static int print(const struct options *options, const struct mt_run *run)
{
	mt_cleanup(mt_symbolizer_freep) struct mt_symbolizer *symbolizer = NULL;
	struct mt_view view = { .run = run, .by = options->by, .top = options->top };
	int err;

	err = mt_symbolizer_new(run, &symbolizer);
	if (err)
		return err;
	view.symbolizer = symbolizer;
	return options->json ? mt_json_report(&view, stdout) : mt_text_report(&view, stdout);
}

/* An exit status, or a negative errno. */
static int report(const struct options *options)
{
	mt_cleanup(mt_closep) int fd = open_artifact(options->path);
	mt_cleanup(mt_run_done) struct mt_run run = { 0 };
	bool whole;
	int err;

	if (fd < 0)
		return fd;
	err = mt_run_init(&run);
	if (!err)
		err = mt_run_read(&run, fd);
	if (err) {
		complain_read(options->path, &run.result, err);
		return err;
	}
	whole = check_whole(options->path, &run);
	err = print(options, &run);
	if (err) {
		complain("report", options->path, strerror(-err));
		return err;
	}
	return whole ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}

/* What is not there can not be verified either: a file that is cut or damaged does not pass. */
static int verify(const struct options *options)
{
	mt_cleanup(mt_closep) int fd = open_artifact(options->path);
	struct mt_verified verified;
	int err;

	if (fd < 0)
		return fd;
	err = mt_verify_stacks(fd, stdout, &verified);
	if (err) {
		complain_read(options->path, &verified.reader, err);
		return err;
	}
	if (verified.reader.problem[0])
		warn_damaged(options->path, &verified.reader);
	/* Of one that was cut nobody knows whether it had any. */
	if (!verified.stacks && !verified.reader.problem[0]) {
		complain("verify the stacks of", options->path,
			 "it has none (record with memtrack-run --keep-stacks)");
		return -ENODATA;
	}
	if (verified.hashes_right < verified.stacks || verified.chains_different ||
	    verified.reader.problem[0])
		return -EILSEQ;
	return 0;
}

/* A report that did not get out is not a report. */
static int flush(void)
{
	int failed = ferror(stdout);

	if (fclose(stdout) || failed) {
		complain("write", "standard output", strerror(errno));
		return -EIO;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options options;
	int status = EXIT_SUCCESS;

	if (parse(argc, argv, &options))
		return EXIT_USAGE;
	if (!options.done)
		status = options.verify_stacks ? verify(&options) : report(&options);
	if (status < 0 && !options.verify_stacks)
		return EXIT_FAILURE;
	return flush() || status < 0 ? EXIT_FAILURE : status;
}
