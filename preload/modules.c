/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * modules.c - see modules.h
 *
 * Invariants
 *   - All of a list is sent inside one dl_iterate_phdr(), and the counters are taken over in
 *     its first call-back: a thread that sees them moved waits for the loader's lock, and
 *     then finds them equal and the list complete on the other's ring.
 *   - The loader's lock is recursive, but whoever takes it in a signal handler that came
 *     while the same thread was just taking it waits for ever: it is taken with signals
 *     blocked, and only when there is reason to.  The loader allocates whenever it loads
 *     something, through the stubs: an allocation of its own is the reason, for LOADER_NS.
 *   - Nor is it waited for while a call-back of the program's has it (loader_lock.h): the
 *     list is then sent with a later event.
 *   - As long as nothing but the objects of the start was ever loaded, which the end of the
 *     loader's own list tells, neither the lock nor a system call is needed: a sandboxed
 *     program may be killed for one.  Objects of the start are never unloaded.  One that has
 *     loaded others has them sent before it shuts itself in, and needs none until the loader
 *     loads again; for which it has to leave itself more calls than this one.
 *   - Before that lock is taken the stack that is needed under it has been touched: a stack
 *     overflow that the program handles by a longjmp happens without it.
 *   - What an object's calls are bound to is known some time after it is in the list; one
 *     that is bound lazily is looked at for as long as the loader is not idle.
 *   - The loader appends: where nothing was unloaded, what is new comes last.
 *   - No path is copied but a relative one; that of the executable is read once, where it is
 *     sent.
 */
#include "preload/modules.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/build_id.h"
#include "preload/binding.h"
#include "preload/glibc.h"
#include "preload/image.h"
#include "preload/loader_lock.h"
#include "preload/real.h"
#include "preload/sandbox.h"
#include "preload/sanitizer.h"
#include "preload/syscall.h"

/* What sending a list takes of the stack, the loader's part included. */
#define STACK_BYTES 1024

/* How long after an allocation of the loader's a list may change. */
#define LOADER_NS (1000 * 1000 * 1000)

#define BUILD_ID_MAX sizeof(((struct mt_module_record *)0)->build_id)

/* The list as it was sent; the loader's lock. */
static struct {
	uint64_t adds, subs;
	uint32_t objects;
	bool sent;
	bool namespace_told;
	/* The last object of the start, where they are all that was loaded and sent. */
	const struct link_map *start_end;
} list;

/* Whose calls were looked at; the loader's lock. */
#define TOLD_MAX 16
static struct {
	bool displaced;	  /* nobody's calls come to the shim */
	uint32_t started; /* objects that the image started with; these are not looked at */
	uint32_t bound;	  /* objects from the first on that need no look any more */
	uint32_t looks;	  /* since the list moved */
	uint64_t last_ns;
	uint64_t told[TOLD_MAX]; /* their biases */
	uint32_t n_told;
} bindings;

struct mt_loader mt_loader = { 0, ~0ULL };

/* When the loader allocated last, or 1 before it is known; 0: it has been idle since. */
static uint64_t loader_active_ns = 1;

/* Ever more than one thread? */
static int threaded;

static char exe[PATH_MAX];

/* An object that is not bound to the end is looked at so often, and then so seldom. */
#define BINDING_LOOKS 8
#define BINDING_NS (100 * 1000 * 1000)

/* One pass over what is loaded. */
struct pass {
	struct mt_self *self;
	uint64_t loaded; /* in all name spaces */
	uint32_t index;
	uint32_t skip; /* objects that were sent before */
	bool moved;    /* since the last list; of bindings: one was open */
};

/* Was the loader executed, with the program for an argument? */
static bool loader_is_exe(void)
{
	return !mt_libc.getauxval(AT_BASE);
}

static bool read_link(const char *link)
{
	long n = mt_syscall3(SYS_readlink, (long)link, (long)exe, sizeof(exe) - 1);

	exe[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The program's, for which the loader has left no more than the argument. */
static bool read_program_path(void)
{
	const char *argument = (const char *)mt_libc.getauxval(AT_EXECFN);
	char link[32] = "/proc/self/fd/";
	size_t end = sizeof("/proc/self/fd/");
	long fd, rest;
	bool found;

	if (!argument)
		return false;
	fd = mt_syscall3(SYS_open, (long)argument, O_PATH | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	for (rest = fd; rest > 9; rest /= 10)
		end++;
	for (rest = fd; link[end - 1] != '/'; rest /= 10)
		link[--end] = (char)('0' + rest % 10);
	found = read_link(link);
	mt_syscall3(SYS_close, fd, 0, 0);
	return found;
}

static uint32_t length(const char *text)
{
	uint32_t n = 0;

	while (text[n])
		n++;
	return n;
}

/* The loader has a path as it was asked for it, or as LD_LIBRARY_PATH has its beginning.  One that
 * would get longer than a path can be stays as it is. */
static const char *absolute(const char *path)
{
	static char joined[PATH_MAX]; /* the loader's lock */
	const char *c = path;
	long n;

	while (*c && *c != '/')
		c++;
	if (!*c || c == path)
		return path; /* the vDSO's is a name */
	n = mt_syscall3(SYS_getcwd, (long)joined, sizeof(joined), 0);
	if (n <= 0 || joined[0] != '/')
		return path;
	c = path[0] == '.' && path[1] == '/' ? path + 2 : path;
	if (n + length(c) >= PATH_MAX)
		return path;
	joined[n - 1] = '/';
	do
		joined[n++] = *c;
	while (*c++);
	return joined;
}

static const char *path_of(const struct dl_phdr_info *info, uint32_t index)
{
	if (info->dlpi_name && info->dlpi_name[0])
		return absolute(info->dlpi_name);
	if (info->dlpi_addr == (uint64_t)__ehdr_start && mt_sanitizer_own_name())
		return mt_sanitizer_own_name();
	if (index)
		return "";
	if (!exe[0] && !(loader_is_exe() && read_program_path()))
		read_link("/proc/self/exe");
	return exe;
}

/* Appends a NUL-terminated text, padded with zeros to bytes, a multiple of 8. */
static void put_text(struct mt_piece_writer *writer, const char *text, uint32_t bytes)
{
	uint32_t i, at = 0;
	bool ended = false;

	for (; at < bytes; at += 8) {
		uint64_t word = 0;

		for (i = 0; i < 8 && !ended; i++) {
			unsigned char c = text[at + i];

			ended = !c;
			word |= (uint64_t)c << 8 * i;
		}
		mt_piece_word(writer, word);
	}
}

static uint32_t text_bytes(const char *text)
{
	uint32_t n = 0;

	while (text[n] && n < PATH_MAX - 1)
		n++;
	return (n + 8) & ~7U;
}

static uint16_t next_id(struct mt_self *self)
{
	return __atomic_fetch_add(&self->piece_id, 1, __ATOMIC_RELAXED);
}

static void put_record(struct mt_self *self, uint8_t kind, const void *record,
		       uint32_t record_bytes, const char *text)
{
	const uint64_t *words = record;
	struct mt_piece_writer writer;
	uint32_t i;

	mt_piece_begin(&writer, &self->ring, kind, next_id(self), record_bytes + text_bytes(text));
	for (i = 0; i < record_bytes / 8; i++)
		mt_piece_word(&writer, words[i]);
	put_text(&writer, text, text_bytes(text));
	mt_piece_end(&writer);
}

static void put_note(struct mt_self *self, uint32_t reason, const char *what)
{
	struct mt_note_record record = {
		.len = sizeof(record) + text_bytes(what),
		.reason = reason,
		.time_ns = mt_now_ns(),
	};

	put_record(self, MT_RECORD_NOTE, &record, sizeof(record), what);
}

static void read_notes(struct mt_module_record *record, uint64_t at, uint64_t bytes, uint64_t align)
{
	const uint8_t *found = mt_build_id_find((const void *)at, bytes, align, BUILD_ID_MAX,
						&record->build_id_bytes);
	uint32_t i;

	for (i = 0; found && i < record->build_id_bytes; i++)
		record->build_id[i] = found[i];
}

/* Is [vaddr, vaddr + bytes) of the object in its memory? */
static bool is_loaded(const struct dl_phdr_info *info, uint64_t vaddr, uint64_t bytes)
{
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_R && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr <= ph->p_filesz &&
		    bytes <= ph->p_filesz - (vaddr - ph->p_vaddr))
			return true;
	}
	return false;
}

static void read_headers(struct mt_module_record *record, const struct dl_phdr_info *info)
{
	uint64_t first = ~0ULL, last = 0;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD) {
			first = ph->p_vaddr < first ? ph->p_vaddr : first;
			last = ph->p_vaddr + ph->p_memsz > last ? ph->p_vaddr + ph->p_memsz : last;
		} else if (ph->p_type == PT_NOTE && !record->build_id_bytes &&
			   is_loaded(info, ph->p_vaddr, ph->p_filesz)) {
			read_notes(record, info->dlpi_addr + ph->p_vaddr, ph->p_filesz,
				   ph->p_align);
		}
	}
	record->bias = info->dlpi_addr;
	record->start = first < last ? info->dlpi_addr + first : 0;
	record->end = first < last ? info->dlpi_addr + last : 0;
}

static void put_module(struct pass *pass, const struct dl_phdr_info *info)
{
	const char *path = path_of(info, pass->index);
	struct mt_module_record record = {
		.len = sizeof(record) + text_bytes(path),
		.flags = pass->index ? 0 : MT_MODULE_FIRST | MT_MODULE_MAIN,
		.time_ns = mt_now_ns(),
	};
	const char *file = pass->index || loader_is_exe() ? path : "/proc/self/exe";
	uint64_t vdso = mt_libc.getauxval(AT_SYSINFO_EHDR);
	struct stat st;

	read_headers(&record, info);
	if (vdso && vdso >= record.start && vdso < record.end)
		record.flags |= MT_MODULE_VDSO;
	/* Without a build-id the file has to be known by its number. */
	if (!record.build_id_bytes && !(record.flags & MT_MODULE_VDSO) &&
	    !mt_syscall3(SYS_stat, (long)file, (long)&st, 0)) {
		record.dev = st.st_dev;
		record.ino = st.st_ino;
	}
	put_record(pass->self, MT_RECORD_MODULE, &record, sizeof(record), path);
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct pass *pass = arg;

	if (!pass->index) {
		if (list.sent && list.adds == info->dlpi_adds && list.subs == info->dlpi_subs)
			return 1;
		pass->moved = true;
		pass->skip = list.sent && list.subs == info->dlpi_subs ? list.objects : 0;
		pass->loaded = info->dlpi_adds - info->dlpi_subs;
		bindings.looks = 0;
		if (!pass->skip)
			bindings.bound = bindings.started;
		list.adds = info->dlpi_adds;
		list.subs = info->dlpi_subs;
		list.sent = true;
		list.objects = 0;
	}
	if (pass->index >= pass->skip)
		put_module(pass, info);
	pass->index++;
	list.objects = pass->index;
	return 0;
}

static __attribute__((noinline)) void touch_stack(void)
{
	char below[STACK_BYTES];

	below[0] = 0;
	__asm__ volatile("" : : "r"(below) : "memory");
}

static void notice_threads(void)
{
	if (&__libc_single_threaded && !__libc_single_threaded)
		threaded = 1;
}

/* Is the list of what is loaded complete, as far as the loader says? */
static bool is_consistent(void)
{
	return !&_r_debug || _r_debug.r_state == RT_CONSISTENT;
}

static void expect(void)
{
	__atomic_store_n(&loader_active_ns, mt_now_ns(), __ATOMIC_RELAXED);
}

void mt_modules_expect(void)
{
	/* It allocates for each thread, too. */
	notice_threads();
	/* And for a thread's data of what is loaded long since, for which nobody is to die. */
	if (!mt_sandbox || !is_consistent())
		expect();
}

static void tell_binding(struct mt_self *self, const struct dl_phdr_info *info, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < bindings.n_told; i++)
		if (bindings.told[i] == info->dlpi_addr)
			return;
	if (i == TOLD_MAX)
		return;
	bindings.told[bindings.n_told++] = info->dlpi_addr;
	put_note(self, MT_NOTE_BOUND_ELSEWHERE, path_of(info, index));
}

static int look_at_binding(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct pass *pass = arg;
	enum mt_binding binding = MT_BINDING_OURS;
	struct mt_image image;

	if (pass->index++ < pass->skip)
		return 0;
	if (mt_image_object(&image, info))
		binding = mt_binding_of(&image);
	if (binding == MT_BINDING_ELSEWHERE)
		tell_binding(pass->self, info, pass->index - 1);
	if (binding == MT_BINDING_OPEN)
		pass->moved = true;
	else if (!pass->moved)
		bindings.bound = pass->index;
	return 0;
}

/* Where RTLD_DEEPBIND took an object's calls elsewhere, says so. */
static void check_bindings(struct mt_self *self)
{
	struct pass pass = { .self = self, .skip = bindings.bound };
	uint64_t now;

	if (bindings.displaced || bindings.bound >= list.objects)
		return;
	now = mt_now_ns();
	if (bindings.looks >= BINDING_LOOKS && now - bindings.last_ns < BINDING_NS)
		return;
	bindings.looks++;
	bindings.last_ns = now;
	mt_libc.dl_iterate_phdr(look_at_binding, &pass);
}

/* Other threads' stacks are unwound with what was before, until all is there. */
static void end_list(struct mt_self *self)
{
	struct mt_module_record record = {
		.len = sizeof(record) + text_bytes(""),
		.flags = MT_MODULE_END,
		.time_ns = mt_now_ns(),
	};

	put_record(self, MT_RECORD_MODULE, &record, sizeof(record), "");
}

/* Signals are blocked. */
static void send_list(struct mt_self *self)
{
	struct pass pass = { .self = self };

	mt_libc.dl_iterate_phdr(look, &pass);
	if (pass.moved && !pass.skip)
		end_list(self);
	if (!bindings.started)
		bindings.started = bindings.bound = list.objects;
	check_bindings(self);
	if (pass.moved && pass.loaded > pass.index && !list.namespace_told) {
		list.namespace_told = true;
		put_note(self, MT_NOTE_OTHER_NAMESPACE, "dlmopen");
	}
}

/* The end of the loader's list, if that has no more than what the image started with. */
static const struct link_map *end_of_start(void)
{
	const struct link_map *map;
	unsigned n = 1;

	/* Before 2.35 another name space can not be told. */
	if (!&_r_debug || !&__rseq_size || _r_debug.r_version != 1 || !_r_debug.r_map)
		return NULL;
	for (map = _r_debug.r_map; map->l_next; map = map->l_next)
		n++;
	return n == mt_real_started() ? map : NULL;
}

/* Is all that was ever loaded on a ring? */
static bool nothing_new(void)
{
	const struct link_map *end = __atomic_load_n(&list.start_end, __ATOMIC_ACQUIRE);

	return end && !__atomic_load_n(&end->l_next, __ATOMIC_ACQUIRE) && _r_debug.r_version == 1;
}

/* False: not now, since a call-back of the program's has the loader's lock. */
static bool check_list(struct mt_self *self)
{
	uint64_t mask;
	bool locked;

	touch_stack();
	mask = mt_signals_block();
	locked = mt_loader_lock();
	if (locked) {
		send_list(self);
		mt_loader_unlock();
	}
	mt_signals_restore(mask);
	return locked;
}

/* The loader has been idle since it was seen to be active, then. */
static void expect_no_more(uint64_t then)
{
	__atomic_compare_exchange_n(&loader_active_ns, &then, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void mt_modules_check(struct mt_self *self)
{
	uint64_t active = __atomic_load_n(&loader_active_ns, __ATOMIC_RELAXED);

	if (!active || mt_session.modules_fixed || (mt_sandbox && mt_sandbox_is_strict()))
		return;
	notice_threads();
	if (!nothing_new() && !check_list(self))
		return;
	if (mt_now_ns() - active > LOADER_NS)
		expect_no_more(active);
}

void mt_modules_settle(struct mt_self *self)
{
	uint64_t active = __atomic_load_n(&loader_active_ns, __ATOMIC_RELAXED);

	if (!active || mt_session.modules_fixed)
		return;
	notice_threads();
	/* Where another thread is about to load something, what that is comes later. */
	if ((nothing_new() || check_list(self)) && is_consistent())
		expect_no_more(active);
}

/* Whose malloc is not tracked. */
struct displacer {
	const void *at;
	struct mt_self *self;
	uint32_t index;
	uint32_t reason; /* MT_NOTE_* */
};

static int look_displacer(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct displacer *displacer = arg;
	uint64_t at = (uint64_t)displacer->at - info->dlpi_addr;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || at - ph->p_vaddr >= ph->p_memsz)
			continue;
		put_note(displacer->self, displacer->reason, path_of(info, displacer->index));
		return 1;
	}
	displacer->index++;
	return 0;
}

void mt_modules_begin(void)
{
	bool sanitizes = mt_real_sanitizes();
	struct displacer displacer = {
		.at = sanitizes ? mt_real[MT_FN_malloc] : mt_real_displaced(),
		.reason = sanitizes ? MT_NOTE_SANITIZER : MT_NOTE_OWN_ALLOCATOR,
	};
	const struct link_map *end = end_of_start();
	struct mt_image loader;

	mt_loader_lock_find();
	if (mt_image_loader(&loader)) {
		mt_loader.start = loader.start;
		mt_loader.bytes = loader.end - loader.start;
	}
	/* Now: a program that shuts itself in may do so before it allocates. */
	displacer.self = mt_thread_self(__builtin_frame_address(0));
	if (!displacer.self)
		return;
	check_list(displacer.self);
	__atomic_store_n(&list.start_end, end, __ATOMIC_RELEASE);
	if (!displacer.at)
		return;
	bindings.displaced = true;
	mt_libc.dl_iterate_phdr(look_displacer, &displacer);
}

static int look_subs(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_subs;
	return 1;
}

/* How many objects were unloaded; false where that can not be told now. */
static bool unloads(uint64_t *ret)
{
	uint64_t mask = mt_signals_block();
	bool locked = mt_loader_lock();

	if (locked) {
		mt_libc.dl_iterate_phdr(look_subs, ret);
		mt_loader_unlock();
	}
	mt_signals_restore(mask);
	return locked;
}

/* Stacks that were known may mean other functions now. */
static void forget_stacks(void)
{
	if (mt_session_decided() && mt_session.on)
		mt_session_move_epoch();
}

/*
 * The loader frees what it had of an object once that is unmapped, before another can be mapped
 * there: it has its lock, and its state says so.  Also where no dlclose() of the program's led
 * to it, but iconv() or a dlopen() that failed; and where a thread is waiting for the lock with
 * another object.
 */
void mt_modules_freed(void)
{
	if (!&_r_debug || _r_debug.r_state != RT_DELETE)
		return;
	forget_stacks();
	mt_real_forget();
}

/* Where the loader's blocks do not come by here, dlclose() does. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	bool counted = mt_session_usable() && mt_session.on && !mt_session.modules_fixed;
	uint64_t before = 0, after = 0;
	int ret;

	counted = counted && unloads(&before);
	ret = mt_real_dlclose(handle);
	if (!counted || !unloads(&after) || after != before) {
		forget_stacks();
		__atomic_store_n(&list.start_end, NULL, __ATOMIC_RELEASE);
		mt_real_forget();
		expect();
	}
	return ret;
}

void mt_modules_fork(void)
{
	notice_threads();
	if (!mt_loader_lock_survived(threaded))
		mt_session.modules_fixed = 1;
}
