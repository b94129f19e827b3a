/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbolize.c - see symbolize.h
 *
 * Invariants
 *   A module's addresses are the file's own: each has a Dwfl for itself, and is reported
 *   there at bias 0.  Debug information may have a bias of its own (dwarf_bias).
 *   A file is open once, for the first module that it is: all others are that one's twins.
 *   Symbols that were recorded are for a module that no file was found for.
 *   What is called is looked up by the last byte of the call, so that a call that ends its
 *   function, or its line, is not taken for what follows.
 */
#include "report/symbolize.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/build_id.h"
#include "base/cleanup.h"
#include "report/debug_file.h"
#include "report/demangle.h"
#include "report/grow.h"
#include "report/scopes.h"
#include "report/symbols.h"
#include "wire/ring.h"

struct module {
	int used;
	const char *problem;
	char *own_problem;   /* if it is not one of many's */
	struct module *twin; /* has all that follows, if it is not NULL */
	struct module *next; /* of those that are open */
	dev_t dev;
	ino_t ino;
	Dwfl *dwfl;
	struct mt_symbols *symbols;
	Dwarf *dwarf;
	Dwarf_Addr dwarf_bias;
	struct mt_scopes *scopes;
	void *answers; /* tree of struct answer, tsearch(3) */
};

struct answer {
	uint64_t address;
	struct mt_frames frames;
};

struct mt_symbolizer {
	const struct mt_run *run;
	struct module *modules;
	struct module *open; /* the last one that was opened */
	void *nowhere;	     /* answers for addresses in no module */
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = mt_debug_file_find,
	.section_address = dwfl_offline_section_address,
};

static void free_answer(void *p)
{
	struct answer *answer = p;

	for (size_t i = 0; i < answer->frames.len; i++) {
		free(answer->frames.frames[i].function);
		free(answer->frames.frames[i].file);
	}
	free(answer->frames.frames);
	free(answer);
}

int mt_symbolizer_new(const struct mt_run *run, struct mt_symbolizer **ret)
{
	mt_cleanup(mt_freep) struct mt_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return -ENOMEM;
	symbolizer->run = run;
	symbolizer->modules = calloc(run->modules_len + 1, sizeof(*symbolizer->modules));
	if (!symbolizer->modules)
		return -ENOMEM;
	*ret = mt_take_ptr(symbolizer);
	return 0;
}

void mt_symbolizer_free(struct mt_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->run->modules_len; i++) {
		struct module *module = &symbolizer->modules[i];

		free(module->own_problem);
		tdestroy(module->answers, free_answer);
		mt_scopes_free(module->scopes);
		mt_symbols_free(module->symbols);
		if (module->dwfl)
			dwfl_end(module->dwfl);
	}
	tdestroy(symbolizer->nowhere, free_answer);
	free(symbolizer->modules);
	free(symbolizer);
}

static int has_build_id(Dwfl_Module *module, const struct mt_run_module *recorded)
{
	const unsigned char *build_id;
	GElf_Addr vaddr;
	int bytes;

	/* Nothing was recorded that could be compared. */
	if (!recorded->build_id_bytes)
		return 1;
	bytes = dwfl_module_build_id(module, &build_id, &vaddr);
	return bytes > 0 && mt_build_id_equal(build_id, (uint32_t)bytes, recorded->build_id,
					      recorded->build_id_bytes);
}

/* The open module that is the same file, and was recorded as the same, or NULL. */
static struct module *find_twin(const struct mt_symbolizer *symbolizer, const struct module *module,
				const struct mt_run_module *recorded)
{
	struct module *twin;

	for (twin = symbolizer->open; twin; twin = twin->next) {
		const struct mt_run_module *its = &symbolizer->run
							   ->modules[twin - symbolizer->modules];

		if (twin->dev == module->dev && twin->ino == module->ino &&
		    mt_build_id_equal(its->build_id, its->build_id_bytes, recorded->build_id,
				      recorded->build_id_bytes))
			break;
	}
	return twin;
}

/* Takes fd.  NULL if there is a twin, and, with the problem, if it is not the file that was
 * recorded. */
static Dwfl_Module *report_file(const struct mt_symbolizer *symbolizer, struct module *module,
				const struct mt_run_module *recorded, int fd)
{
	Dwfl_Module *reported;
	struct stat st;

	if (fstat(fd, &st) == 0) {
		module->dev = st.st_dev;
		module->ino = st.st_ino;
		module->twin = find_twin(symbolizer, module, recorded);
	}
	if (module->twin) {
		close(fd);
		return NULL;
	}
	module->dwfl = dwfl_begin(&callbacks);
	if (!module->dwfl) {
		close(fd);
		module->problem = "could not be opened";
		return NULL;
	}
	dwfl_report_begin(module->dwfl);
	reported = dwfl_report_elf(module->dwfl, recorded->path, recorded->path, fd, 0, true);
	dwfl_report_end(module->dwfl, NULL, NULL);
	if (!reported) {
		close(fd);
		module->problem = "is not an ELF file";
	} else if (!has_build_id(reported, recorded)) {
		module->problem = "is not the file that was recorded (other build-id)";
		reported = NULL;
	}
	if (!reported) {
		dwfl_end(module->dwfl);
		module->dwfl = NULL;
	}
	return reported;
}

/* The file at the module's path, or what the build-id directory has of the recorded one. */
static Dwfl_Module *find_file(const struct mt_symbolizer *symbolizer, struct module *module,
			      const struct mt_run_module *recorded)
{
	Dwfl_Module *reported = NULL;
	const char *problem;
	int fd;

	fd = mt_debug_file_open(recorded->path);
	if (fd >= 0)
		reported = report_file(symbolizer, module, recorded, fd);
	else
		module->problem = fd == -ENOENT	   ? "is not there any more"
				  : fd == -ENOEXEC ? "is not a regular file"
						   : "can not be read";
	if (reported || module->twin)
		return reported;
	problem = module->problem;
	fd = mt_debug_file_open_build_id(recorded->build_id, recorded->build_id_bytes);
	if (fd >= 0)
		reported = report_file(symbolizer, module, recorded, fd);
	module->problem = reported ? NULL : problem;
	return reported;
}

/* Also if all were left out. */
static int has_recorded(const struct mt_run_module *recorded)
{
	return recorded->symbols_len || recorded->symbols_left_out;
}

/* Without the file: functions, and why there are no lines. */
static int use_recorded(struct module *module, const struct mt_run_module *recorded)
{
	int r;

	if (!has_recorded(recorded))
		return 0;
	if (recorded->symbols_left_out)
		r = asprintf(&module->own_problem,
			     "%s; functions are as recorded, where %" PRIu64 " are left out",
			     module->problem, recorded->symbols_left_out);
	else
		r = asprintf(&module->own_problem, "%s; functions are as recorded",
			     module->problem);
	if (r < 0) {
		module->own_problem = NULL;
		return -ENOMEM;
	}
	module->problem = module->own_problem;
	return mt_symbols_new_recorded(recorded->symbols, recorded->symbols_len, &module->symbols);
}

/* Whether a file at the path could not be told from the one that was recorded, which was not
 * there then. */
static int is_elsewhere(const struct mt_run_module *recorded)
{
	return has_recorded(recorded) && !recorded->build_id_bytes;
}

static int open_module(struct mt_symbolizer *symbolizer, struct module *module,
		       const struct mt_run_module *recorded)
{
	Dwfl_Module *reported;
	int err;

	module->used = 1;
	if (recorded->flags & MT_MODULE_VDSO || recorded->path[0] != '/') {
		module->problem = "is not a file";
		return use_recorded(module, recorded);
	}
	if (is_elsewhere(recorded)) {
		module->problem = "was not there, and has no build-id";
		return use_recorded(module, recorded);
	}
	reported = find_file(symbolizer, module, recorded);
	if (module->twin) {
		module->problem = module->twin->problem;
		return 0;
	}
	if (!reported)
		return use_recorded(module, recorded);
	module->next = symbolizer->open;
	symbolizer->open = module;
	err = mt_symbols_new(reported, &module->symbols);
	if (err)
		return err;
	module->dwarf = dwfl_module_getdwarf(reported, &module->dwarf_bias);
	if (module->dwarf)
		return mt_scopes_new(module->dwarf, &module->scopes);
	module->problem = mt_symbols_count(module->symbols) ? "has no debug information"
							    : "has no symbols";
	return 0;
}

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* The frame keeps what it has if there is no name. */
static int name_scope(struct mt_frame *frame, Dwarf_Die *die)
{
	const char *linkage = string_of(die, DW_AT_linkage_name);
	const char *name;

	if (!linkage)
		linkage = string_of(die, DW_AT_MIPS_linkage_name);
	name = linkage ? linkage : dwarf_diename(die);
	if (!name)
		return 0;
	frame->linkage = linkage != NULL;
	frame->function = mt_demangle(name);
	return frame->function ? 0 : -ENOMEM;
}

static int set_file(struct mt_frame *frame, const char *file, unsigned int line)
{
	if (!file)
		return 0;
	frame->line = line;
	frame->file = strdup(file);
	return frame->file ? 0 : -ENOMEM;
}

/* Where the inlined call in die is: file and line of the function around it. */
static int set_call_site(struct mt_frame *frame, Dwarf_Die *die)
{
	Dwarf_Word file = 0, line = 0;
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t count;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &file) ||
	    !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, &count) ||
	    file >= count)
		return 0;
	dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line);
	return set_file(frame, dwarf_filesrc(files, file, NULL, NULL), (unsigned int)line);
}

static int set_line(struct mt_frame *frame, Dwarf_Die *unit, Dwarf_Addr address)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0;

	if (!line)
		return 0;
	dwarf_lineno(line, &number);
	return set_file(frame, dwarf_linesrc(line, NULL, NULL), (unsigned int)number);
}

/* From debug information: as many frames as there are calls at the address. */
static int name_by_dwarf(struct module *module, uint64_t address, struct mt_frames *frames)
{
	struct mt_scope scopes[MT_SCOPES_MAX];
	Dwarf_Die unit;
	Dwarf_Addr in_dwarf = address - module->dwarf_bias;
	int n = mt_scopes_find(module->scopes, in_dwarf, &unit, scopes);
	int err;

	if (n < 0)
		return n == -ENOENT ? 0 : n;
	if (n > 1) {
		size_t room = frames->len;

		err = mt_grow(&frames->frames, &room, (size_t)n, sizeof(*frames->frames));
		if (err)
			return err;
		frames->len = (size_t)n;
	}
	err = set_line(&frames->frames[0], &unit, in_dwarf);
	for (int i = 0; i < n && !err; i++) {
		err = name_scope(&frames->frames[i], &scopes[i].die);
		frames->frames[i].inlined = i + 1 < n;
		if (!err && i + 1 < n)
			err = set_call_site(&frames->frames[i + 1], &scopes[i].die);
	}
	return err;
}

static int name_address(struct module *module, uint64_t address, struct mt_frames *frames)
{
	struct mt_frame *outermost;
	const char *symbol;
	char *name;
	int err = 0;

	if (module->scopes)
		err = name_by_dwarf(module, address, frames);
	if (err)
		return err;
	outermost = &frames->frames[frames->len - 1];
	symbol = outermost->linkage ? NULL : mt_symbols_find(module->symbols, address);
	if (!symbol)
		return 0;
	name = mt_demangle(symbol);
	if (!name)
		return -ENOMEM;
	/* Debug information has the short name only of what is local to its file.  A symbol
	 * that is mangled says more; one that is not may be a part of the function. */
	if (outermost->function && !strcmp(name, symbol)) {
		free(name);
		return 0;
	}
	free(outermost->function);
	outermost->function = name;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int answer_new(uint64_t address, struct answer **ret)
{
	mt_cleanup(mt_freep) struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	answer->address = address;
	answer->frames.frames = calloc(1, sizeof(*answer->frames.frames));
	if (!answer->frames.frames)
		return -ENOMEM;
	answer->frames.len = 1;
	*ret = mt_take_ptr(answer);
	return 0;
}

/* module: NULL for an address in none. */
static int find_answer(void **answers, struct module *module, uint64_t address,
		       const struct mt_frames **ret)
{
	struct answer key = { .address = address };
	struct answer *answer, **found = tfind(&key, answers, by_address);
	int err;

	if (found) {
		*ret = &(*found)->frames;
		return 0;
	}
	err = answer_new(address, &answer);
	if (err)
		return err;
	if (module && module->symbols)
		err = name_address(module, address, &answer->frames);
	if (!err && !tsearch(answer, answers, by_address))
		err = -ENOMEM;
	if (err) {
		free_answer(answer);
		return err;
	}
	*ret = &answer->frames;
	return 0;
}

int mt_symbolizer_node(struct mt_symbolizer *symbolizer, uint32_t node,
		       const struct mt_frames **ret)
{
	const struct mt_run_node *mine = &symbolizer->run->nodes[node];
	uint64_t address = mine->exact || !mine->offset ? mine->offset : mine->offset - 1;
	struct module *module;

	if (mine->module == UINT32_MAX)
		return find_answer(&symbolizer->nowhere, NULL, address, ret);
	module = &symbolizer->modules[mine->module];
	if (!module->used) {
		int err = open_module(symbolizer, module, &symbolizer->run->modules[mine->module]);

		if (err)
			return err;
	}
	if (module->twin)
		module = module->twin;
	return find_answer(&module->answers, module, address, ret);
}

int mt_symbolizer_used(const struct mt_symbolizer *symbolizer, uint32_t module)
{
	return symbolizer->modules[module].used;
}

const char *mt_symbolizer_problem(const struct mt_symbolizer *symbolizer, uint32_t module)
{
	return symbolizer->modules[module].problem;
}
