/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz_proc.c - whatever a process calls itself and what it maps, /proc is read right
 *
 * An input is a byte, the length of a name and whether what is mapped is looked at when a
 * process shakes hands, the name, and the name of a file that is mapped.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "artifact/writer.h"
#include "collector/modules.h"
#include "collector/proc_state.h"
#include "collector/watch.h"
#include "tests/cfi_bytes.h"
#include "tests/fuzz/fuzz.h"
#include "wire/ring.h"

#define COMM_BYTES 16
#define MEMFD_NAME_BYTES 240
#define LATER (2 * MT_WATCH_PATIENCE_NS)

static struct mt_writer *writer;
static struct mt_encode *encode;
static struct mt_modules *modules;

static void open_modules(void)
{
	static const struct mt_header header = { .machine = "x86_64", .program = "fuzz" };
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fuzz_must(fd >= 0 && mt_writer_new(fd, &header, &writer) == 0);
	fuzz_must(mt_encode_start(writer, NULL, &encode) == 0 &&
		  mt_modules_new(encode, &modules) == 0);
}

static void close_modules(void)
{
	mt_modules_free(modules);
	fuzz_must(mt_encode_stop(encode) == 0);
	mt_writer_free(writer);
	modules = NULL;
}

static int tell(void *ctx, uint32_t tgid, const char *what, const char *reason)
{
	const char **name = ctx;

	fuzz_must(*name && tgid == (uint32_t)getpid() && !strcmp(what, *name));
	*name = NULL;
	return 0;
}

static bool none(void *ctx, uint32_t tgid)
{
	return tgid != (uint32_t)getpid();
}

static void take_name(char comm[COMM_BYTES])
{
	const char *name = comm;
	struct mt_watch *watch;

	fuzz_must(prctl(PR_SET_NAME, comm) == 0);
	fuzz_must(mt_proc_state((uint32_t)getpid()) == 'R');
	comm[strcspn(comm, "\n")] = '\0';
	fuzz_must(mt_watch_new("no-such-shim.so", tell, &name, &watch) == 0);
	fuzz_must(mt_watch_scan(watch, (uint32_t)getpid(), 1, none, NULL) == 0);
	fuzz_must(mt_watch_tick(watch, LATER) == 0 && !name);
	mt_watch_free(watch);
}

/* Whether the kernel lets us at the files behind mappings. */
static bool can_open(const struct mt_module_record *head)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIx64 "-%" PRIx64,
		 (uint64_t)head->start, (uint64_t)head->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void map_file(const char *name, bool arrives)
{
	static struct cfi_bytes file;
	struct {
		struct mt_module_record head;
		char path[16];
	} record = { .head = { .len = sizeof(record),
			       .build_id_bytes = sizeof(record.head.build_id) },
		     .path = "/not/there" };
	struct elf_parts parts = { .with_sections = true };
	int fd = memfd_create(name, MFD_CLOEXEC);
	uint64_t missing;
	struct mt_space space, listing;
	void *at;

	if (!modules)
		open_modules();
	elf_put(&file, &parts);
	fuzz_must(fd >= 0 && write(fd, file.bytes, file.len) == (ssize_t)file.len);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	fuzz_must(at != MAP_FAILED);
	record.head.start = (uintptr_t)at;
	record.head.end = record.head.start + 4096;
	memcpy(record.head.build_id, ELF_BUILD_ID, sizeof(record.head.build_id));

	fuzz_must(!arrives || mt_modules_arrive(modules, (uint32_t)getpid()) == 0);
	missing = mt_modules_missing(modules) + !can_open(&record.head);
	mt_space_init(&space);
	mt_space_init(&listing);
	fuzz_must(mt_modules_apply(modules, &space, &listing, (uint32_t)getpid(), &record,
				   sizeof(record)) == 0);
	fuzz_must(mt_modules_missing(modules) == missing);
	mt_space_done(&space);
	mt_space_done(&listing);
	munmap(at, 4096);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char comm[COMM_BYTES] = "", before[COMM_BYTES], name[MEMFD_NAME_BYTES] = "";
	size_t comm_len = len ? bytes[0] % COMM_BYTES : 0;
	bool arrives = len && bytes[0] / COMM_BYTES % 2;

	if (!len)
		return 0;
	bytes++;
	len--;
	if (comm_len > len)
		comm_len = len;
	memcpy(comm, bytes, comm_len);
	len -= comm_len;
	memcpy(name, bytes + comm_len, len < sizeof(name) ? len : sizeof(name) - 1);
	fuzz_must(prctl(PR_GET_NAME, before) == 0);
	take_name(comm);
	map_file(name, arrives);
	fuzz_must(prctl(PR_SET_NAME, before) == 0);
	return 0;
}

void fuzz_corpus(void)
{
	static const char *const names[] = {
		"",
		"a",
		") Z 1",
		"a) T 1 1 1",
		"(((((",
		")))))",
		"a\nb",
		"\n",
		"a\\nb",
		"%s%n",
		"\xff\xfe\x80",
		"1-2 r-xp",
		" (deleted)",
		"\\012x 00",
		"/memfd:x 0",
		"\x1b[2J",
		"a b c d e f g h i j",
	};
	char bytes[1 + COMM_BYTES + MEMFD_NAME_BYTES + 16];
	const size_t n = sizeof(names) / sizeof(names[0]);

	for (size_t i = 0; i < n * n; i++) {
		const char *a = names[i / n], *b = names[i % n];

		bytes[0] = (char)(strnlen(a, COMM_BYTES - 1) + i % 2 * COMM_BYTES);
		snprintf(bytes + 1, sizeof(bytes) - 1, "%.15s%s", a, b);
		fuzz_try((const uint8_t *)bytes, strlen(bytes + 1) + 1);
	}
	memset(bytes, '\\', sizeof(bytes));
	fuzz_try((const uint8_t *)bytes, sizeof(bytes));
	if (modules)
		close_modules();
}
