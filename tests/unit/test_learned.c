/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_learned.c - chains that a thread finds by itself: exactly those that a plain walk finds,
 *                  whatever changed on the stack since the last one
 *
 * Stacks are made of calls of functions of all kinds of rows, and then are damaged word by
 * word.  The oracle walks each from the beginning and knows chains by their addresses.
 */
#include "preload/learned.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTIONS 40
#define STACK_WORDS 2048
#define CHAINS_MAX 4000
#define EPOCH 77
#define SLOT 3
#define AREA 5
#define PLACES MT_LEARNED_CHAINS
#define POINT 0x123456789abcdefULL
#define BOTTOM (base + 8 * STACK_WORDS)
#define ROOM_BYTES (8 * STACK_WORDS)
#define GUARD_BYTES 65536

struct function {
	uint64_t pc;
	int kind;   /* MT_LEARNED_* */
	int offset; /* words */
	int rbp;    /* words from the CFA, 0: not saved */
};

struct chain {
	uint32_t n, how;
	uint64_t pcs[MT_LEARNED_FRAMES];
};

static struct function functions[FUNCTIONS];
static struct chain *chains; /* that were taught; the index is the name */
static uint32_t n_chains;
static struct mt_learned *learned;
static struct mt_trail *trail;
static uint64_t stack[STACK_WORDS] __attribute__((aligned(4096)));
static uint64_t base; /* the stack's address, as far as the walk knows */
static char *room;    /* for a copy of a window, with pages around it that can not be read */
static uint64_t state = 88172645463325252ULL;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % n;
}

static uint64_t *word(uint64_t at)
{
	return &stack[(at - base) / 8];
}

static bool put(struct mt_learned_entry *entries, uint64_t n, uint64_t place, uint64_t key,
		uint64_t value)
{
	for (int i = 0; i < MT_LEARNED_PROBES; i++) {
		struct mt_learned_entry *entry = &entries[(place + i) & (n - 1)];

		if (entry->key && entry->key != key)
			continue;
		*entry = (struct mt_learned_entry){ key, value };
		return true;
	}
	return false;
}

static void teach_rows(void)
{
	struct mt_learned_entry *rows = (struct mt_learned_entry *)mt_learned_rows(learned, AREA);

	for (int i = 0; i < FUNCTIONS; i++)
		ck_assert(put(rows, MT_LEARNED_ROWS, mt_learned_row_place(functions[i].pc),
			      functions[i].pc,
			      MT_LEARNED_ROW(functions[i].kind, 8 * functions[i].rbp,
					     8 * functions[i].offset)));
}

static void make_functions(void)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		struct function *f = &functions[i];

		*f = (struct function){ .pc = 0x400000 + 0x35 * (uint64_t)i, .kind = 1 + i % 3 };
		switch (f->kind) {
		case MT_LEARNED_RSP:
			f->offset = 2 + (int)random_below(6);
			f->rbp = random_below(2) ? -f->offset : 0;
			break;
		case MT_LEARNED_RBP:
			f->offset = 2;
			f->rbp = -2;
			break;
		default:
			f->offset = -1;
			break;
		}
	}
	functions[FUNCTIONS - 1].kind = MT_LEARNED_END;
}

static void setup(void)
{
	learned = aligned_alloc(4096, (MT_LEARNED_BYTES + 4095) / 4096 * 4096);
	trail = calloc(1, mt_trail_bytes());
	chains = calloc(CHAINS_MAX, sizeof(*chains));
	ck_assert(learned && trail && chains);
	memset(learned, 0, MT_LEARNED_BYTES);
	learned->slots[SLOT] = (struct mt_learned_slot){ .seq = 2, .epoch = EPOCH, .area = AREA };
	learned->powers[0] = POINT;
	for (int i = 1; i < MT_LEARNED_FRAMES; i++)
		learned->powers[i] = mt_learned_times(learned->powers[i - 1], POINT);
	n_chains = 0;
	base = (uint64_t)stack;
	room = mmap(NULL, ROOM_BYTES + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	ck_assert_ptr_ne(room, MAP_FAILED);
	room += GUARD_BYTES;
	ck_assert_int_eq(mprotect(room, ROOM_BYTES, PROT_READ | PROT_WRITE), 0);
	make_functions();
	teach_rows();
}

static void teardown(void)
{
	munmap(room - GUARD_BYTES, ROOM_BYTES + 2 * GUARD_BYTES);
	free(learned);
	free(trail);
	free(chains);
}

static const struct function *find_function(uint64_t pc)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (functions[i].pc == pc)
			return &functions[i];
	return NULL;
}

/*
 * One call more on the stack whose innermost frame is the caller's: its return address and
 * frame are put below sp.  rbp: the caller's, and then the function's.
 */
static uint64_t call(uint64_t sp, uint64_t *rbp, uint64_t ret, const struct function *f)
{
	uint64_t cfa = sp, frame;

	*word(cfa - 8) = ret;
	switch (f->kind) {
	case MT_LEARNED_RSP:
		frame = cfa - 8 * (uint64_t)f->offset;
		for (uint64_t at = frame; at < cfa - 8; at += 8)
			*word(at) = random_below(4) ? random_below(1000) : functions[3].pc;
		if (f->rbp) {
			*word(cfa + 8 * (uint64_t)(int64_t)f->rbp) = *rbp;
			*rbp = random_below(1 << 20);
		}
		return frame;
	case MT_LEARNED_RBP:
		*word(cfa - 16) = *rbp;
		*rbp = cfa - 16;
		frame = cfa - 16 - 8 * random_below(5);
		for (uint64_t at = frame; at < cfa - 16; at += 8)
			*word(at) = random_below(1000);
		return frame;
	default: /* the caller's rbp where rbp points to, the CFA below that */
		*word(cfa - 24) = *rbp;
		*word(cfa - 32) = cfa;
		*rbp = cfa - 24;
		return cfa - 32;
	}
}

/* A stack of calls, from bottom on down; returns the window's start. */
static uint64_t make_stack(uint64_t bottom, uint32_t depth)
{
	uint64_t sp = bottom, rbp = 0, start, pc = 0;
	uint32_t i;

	for (i = 0; i < depth && sp > base + 8 * 64; i++) {
		const struct function *f = &functions[random_below(FUNCTIONS - 1)];

		/* The outermost is returned from to nowhere, or has no caller. */
		if (!i && random_below(2))
			f = &functions[FUNCTIONS - 1];
		sp = call(sp, &rbp, pc, f->kind == MT_LEARNED_END ? &functions[0] : f);
		pc = f->pc;
	}
	start = sp - 8 * MT_SAVED_WORDS;
	for (int r = 0; r < MT_SAVED_WORDS; r++)
		*word(start + 8 * (uint64_t)r) = random_below(1000);
	*word(start + 8 * MT_SAVED_RBP) = rbp;
	*word(start + 8 * MT_SAVED_RIP) = pc;
	return start;
}

static bool read_at(uint64_t start, uint64_t end, uint64_t at, uint64_t *ret)
{
	if (at < start || at >= end || at % 8)
		return false;
	*ret = *word(at);
	return true;
}

/* The plain walk; false: no chain that could be taught. */
static bool oracle_walk(uint64_t start, uint64_t end, struct chain *ret)
{
	uint64_t pc, sp = start + 8 * MT_SAVED_WORDS, rbp_at = start + 8 * MT_SAVED_RBP;

	*ret = (struct chain){ .how = MT_LEARNED_ENDED };
	if (!read_at(start, end, start + 8 * MT_SAVED_RIP, &pc) || !pc)
		return false;
	while (pc) {
		const struct function *f = find_function(pc);
		uint64_t cfa, missing = 0, rbp;
		bool has_rbp;

		if (!f || ret->n == MT_LEARNED_FRAMES)
			return false;
		ret->pcs[ret->n++] = pc;
		if (f->kind == MT_LEARNED_END)
			return true;
		has_rbp = read_at(start, end, rbp_at, &rbp);
		cfa = sp + 8 * (uint64_t)(int64_t)f->offset;
		if (f->kind != MT_LEARNED_RSP && !has_rbp) {
			missing = rbp_at;
		} else if (f->kind != MT_LEARNED_RSP) {
			cfa = rbp + 8 * (uint64_t)(int64_t)f->offset;
			if (f->kind == MT_LEARNED_CFA_AT_RBP) {
				missing = read_at(start, end, cfa, &cfa) ? 0 : cfa;
				rbp_at = rbp;
			}
			if (!missing && cfa <= sp)
				return false;
		}
		if (!missing && f->rbp)
			rbp_at = cfa + 8 * (uint64_t)(int64_t)f->rbp;
		if (!missing && !read_at(start, end, cfa - 8, &pc))
			missing = cfa - 8;
		if (missing) {
			ret->how = MT_LEARNED_TRUNCATED;
			return missing >= end && missing % 8 == 0;
		}
		sp = cfa;
	}
	return true;
}

static int find_taught(const struct chain *chain)
{
	for (uint32_t i = 0; i < n_chains; i++)
		if (chains[i].n == chain->n && chains[i].how == chain->how &&
		    !memcmp(chains[i].pcs, chain->pcs, chain->n * sizeof(chain->pcs[0])))
			return (int)i;
	return -1;
}

static uint64_t key_of(const struct chain *chain)
{
	uint64_t digest = chain->how;

	for (uint32_t i = chain->n; i-- > 0;)
		digest = mt_learned_digest_frame(digest, chain->pcs[i],
						 learned->powers[chain->n - 1 - i]);
	return mt_learned_digest_key(digest);
}

static void teach(const struct chain *chain)
{
	struct mt_learned_entry *entries = (struct mt_learned_entry *)mt_learned_chains(learned,
											AREA);
	uint64_t key = key_of(chain);

	if (n_chains == CHAINS_MAX)
		return;
	if (!put(entries, PLACES, mt_learned_chain_place(key), key, n_chains))
		return; /* its places are taken */
	chains[n_chains++] = *chain;
	learned->places[AREA] = PLACES;
}

static uint32_t found, unknown, untaught;

/* Puts the window's words elsewhere, with nothing that could be read before them, or behind. */
static void move_away(struct mt_learned_window *window)
{
	uint64_t bytes = window->end - window->start;
	char *at = random_below(2) ? room : room + ROOM_BYTES - bytes;

	memcpy(at, word(window->start), bytes);
	window->shift = (uint64_t)at - window->start;
}

/* Both walks of the window as it is now; what is new is taught one time in two. */
static void compare(uint64_t start, uint64_t end)
{
	struct mt_learned_window window = { .start = start, .end = end, .epoch = EPOCH };
	struct chain chain;
	bool whole = oracle_walk(start, end, &chain);
	int taught = whole ? find_taught(&chain) : -1;
	struct mt_chain is;
	bool is_found;

	if (random_below(4))
		move_away(&window);
	is_found = mt_learned_chain(learned, SLOT, trail, &window, &is);
	ck_assert_msg(!is_found || (taught >= 0 && is.name == (uint32_t)taught),
		      "a chain that is not the window's: %u instead of %d", is.name, taught);
	ck_assert(is_found || taught < 0);
	ck_assert_uint_eq(is.key, whole && learned->places[AREA] ? key_of(&chain) : 0);
	ck_assert_uint_eq(is.epoch, EPOCH);
	found += is_found;
	unknown += !whole;
	untaught += whole && taught < 0;
	if (whole && taught < 0 && random_below(2))
		teach(&chain);
}

/* Another value for one word of the stack; often one that means something. */
static void damage(uint64_t start, uint64_t end)
{
	uint64_t at = start + 8 * random_below((end - start) / 8);

	switch (random_below(5)) {
	case 0:
		*word(at) = functions[random_below(FUNCTIONS)].pc;
		break;
	case 1:
		*word(at) = start + 8 * random_below((end - start) / 8 + 4);
		break;
	case 2:
		*word(at) = *word(start + 8 * random_below((end - start) / 8));
		break;
	case 3:
		*word(at) = 0;
		break;
	default:
		*word(at) ^= 1ULL << random_below(64);
		break;
	}
}

START_TEST(any_stack)
{
	for (int round = 0; round < 3000; round++) {
		uint64_t bottom = BOTTOM - 8 * random_below(3);
		uint64_t start = make_stack(bottom, 1 + (uint32_t)random_below(60));

		compare(start, bottom);
		for (int i = 0; i < 30; i++) {
			uint64_t end = bottom;

			if (random_below(3))
				damage(start, bottom);
			/* What the budget cuts. */
			if (!random_below(4))
				end = start + 8 * random_below((bottom - start) / 8 + 1);
			compare(start, end);
			/* A window that begins further out, or further in, over the same words. */
			if (!random_below(4) && start > base + 64)
				start -= 8;
			else if (!random_below(4) && start + 1024 < bottom)
				start += 8 * random_below(16);
		}
	}
	ck_assert_uint_gt(found, 1000);
	ck_assert_uint_gt(unknown, 1000);
	ck_assert_uint_gt(untaught, 1000);
}
END_TEST

/* The innermost calls return and others are made, as programs do: the trail's daily work. */
START_TEST(calls_and_returns)
{
	for (int round = 0; round < 300; round++) {
		uint64_t start = make_stack(BOTTOM, 40), pc, rbp, sp;

		for (int i = 0; i < 100; i++) {
			compare(start, BOTTOM);
			sp = start + 8 * MT_SAVED_WORDS;
			pc = *word(start + 8 * MT_SAVED_RIP);
			rbp = *word(start + 8 * MT_SAVED_RBP);
			if (sp < base + 8 * 64)
				break;
			for (uint64_t calls = random_below(3); calls; calls--) {
				const struct function *f = &functions[random_below(8)];

				if (f->kind == MT_LEARNED_END)
					continue;
				sp = call(sp, &rbp, pc, f);
				pc = f->pc;
			}
			start = sp - 8 * MT_SAVED_WORDS;
			*word(start + 8 * MT_SAVED_RIP) = pc;
			*word(start + 8 * MT_SAVED_RBP) = rbp;
		}
	}
	ck_assert_uint_gt(found, 1000);
}
END_TEST

/* Few functions that call each other from one place each, as by a pointer: what a frame is
 * returned to from is often what another was. */
START_TEST(recursion)
{
	struct {
		uint64_t sp, rbp, pc;
	} frames[65];

	for (int round = 0; round < 2000; round++) {
		uint32_t n_functions = 1 + (uint32_t)random_below(3);
		uint32_t first = (uint32_t)random_below(FUNCTIONS - 4), depth = 0;

		frames[0].sp = BOTTOM;
		frames[0].rbp = frames[0].pc = 0;
		for (int i = 0; i < 40; i++) {
			uint32_t next = 1 + (uint32_t)random_below(24);
			uint64_t start;

			depth = depth < next ? depth : next;
			for (; depth < next; depth++) {
				const struct function
					*f = &functions[first + random_below(n_functions)];

				frames[depth + 1] = frames[depth];
				frames[depth + 1].sp = call(frames[depth].sp,
							    &frames[depth + 1].rbp,
							    frames[depth].pc, f);
				frames[depth + 1].pc = f->pc;
			}
			start = frames[depth].sp - 8 * MT_SAVED_WORDS;
			*word(start + 8 * MT_SAVED_RBP) = frames[depth].rbp;
			*word(start + 8 * MT_SAVED_RIP) = frames[depth].pc;
			compare(start, BOTTOM);
			/* What lies there was overwritten. */
			if (depth && *word(start + 8 * MT_SAVED_RIP) == frames[depth].pc)
				depth -= depth > 1;
		}
	}
	ck_assert_uint_gt(found, 1000);
}
END_TEST

/* Nothing is found in an area that is being emptied, is another's or has nothing; nor by who
 * interrupts a look-up. */
START_TEST(not_now)
{
	uint64_t start = make_stack(BOTTOM, 10);
	struct mt_learned_window window = { .start = start, .end = BOTTOM, .epoch = EPOCH };
	struct chain chain;
	struct mt_chain is;

	while (!oracle_walk(start, BOTTOM, &chain))
		start = window.start = make_stack(BOTTOM, 10);
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.key, 0); /* no place for a chain: nor are there rows */
	learned->places[AREA] = PLACES;
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.key, key_of(&chain));
	teach(&chain);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.name, 0);

	learned->slots[SLOT].seq = 3;
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.key, 0);
	learned->slots[SLOT].seq = 4;
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	window.epoch++;
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.key, 0);
	window.epoch--;
	learned->places[AREA] = 0;
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	learned->places[AREA] = PLACES;

	memcpy(trail, &start, sizeof(start)); /* in use */
	ck_assert_uint_eq(mt_trail_in_use(trail), start);
	ck_assert(!mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.key, 0);
	mt_trail_forget(trail);
	ck_assert_uint_eq(mt_trail_in_use(trail), 0);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
}
END_TEST

static void forget_row(uint64_t pc)
{
	struct mt_learned_entry *rows = (struct mt_learned_entry *)mt_learned_rows(learned, AREA);

	for (size_t i = 0; i < MT_LEARNED_ROWS; i++)
		if (rows[i].key == pc)
			rows[i].key = 0;
}

/* A stack of so many calls of outer, and of inner by those: what is found of it the second time
 * needs no row of outer. */
static void remembers(const struct function *outer, int n_outer, const struct function *inner,
		      int n_inner)
{
	uint64_t sp = BOTTOM, rbp = 0, pc = 0, start;
	struct mt_learned_window window = { .end = BOTTOM, .epoch = EPOCH };
	struct chain chain;
	struct mt_chain is;

	for (int i = 0; i < n_outer + n_inner; i++) {
		const struct function *f = i < n_outer ? outer : inner;

		sp = call(sp, &rbp, pc, f);
		pc = f->pc;
	}
	window.start = start = sp - 8 * MT_SAVED_WORDS;
	*word(start + 8 * MT_SAVED_RBP) = rbp;
	*word(start + 8 * MT_SAVED_RIP) = pc;
	ck_assert(oracle_walk(start, BOTTOM, &chain));
	ck_assert_uint_eq(chain.n, (uint32_t)(n_outer + n_inner));
	teach(&chain);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	forget_row(outer->pc);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.name, n_chains - 1);
}

/* The trail has the outer frames, as far as there is room, however many frames are new. */
START_TEST(deep_stacks)
{
	static const struct function by_rsp = { .kind = MT_LEARNED_RSP, .offset = 2 };
	static const struct function at_rbp = { .kind = MT_LEARNED_CFA_AT_RBP, .offset = -1 };
	const struct function made[] = { by_rsp, by_rsp, at_rbp, at_rbp };

	for (int i = 0; i < 4; i++) {
		functions[i] = made[i];
		functions[i].pc = 0x500000 + 0x35 * (uint64_t)i;
	}
	teach_rows();
	remembers(&functions[0], 240, &functions[1], 10);
	remembers(&functions[2], 160, &functions[3], 60);
}
END_TEST

static struct mt_learned_window handlers;
static char *closed; /* a page */
static struct mt_chain handlers_is;
static bool handlers_found;

static void on_fault(int signal)
{
	(void)signal;
	mprotect(closed, 4096, PROT_READ | PROT_WRITE);
	mt_trail_forget(trail);
	handlers_found = mt_learned_chain(learned, SLOT, trail, &handlers, &handlers_is);
}

/* The window of a stack of calls, of which the outermost is the first of so many functions. */
static struct mt_learned_window call_all(const int *which, int n)
{
	struct mt_learned_window window = { .end = BOTTOM, .epoch = EPOCH };
	uint64_t sp = BOTTOM, rbp = 0, pc = 0;

	for (int i = 0; i < n; i++) {
		sp = call(sp, &rbp, pc, &functions[which[i]]);
		pc = functions[which[i]].pc;
	}
	window.start = sp - 8 * MT_SAVED_WORDS;
	*word(window.start + 8 * MT_SAVED_RBP) = rbp;
	*word(window.start + 8 * MT_SAVED_RIP) = pc;
	return window;
}

/*
 * A handler on a stack of its own that lies in a frame of the thread's takes what it interrupts for
 * gone, and uses the trail: nothing of that may come to be of the chain that was looked up.  The
 * handler comes where the walk has made a step and reads what leads from its second frame.
 */
START_TEST(handler_uses_the_trail)
{
	static const int offsets[] = { 2, 2, 600, 600, 20, 40 };
	static const int outer[] = { 0, 0, 0, 1 }, one[] = { 0, 0, 0, 2, 3, 4 },
			 other[] = { 0, 0, 0, 2, 3, 5 };
	struct sigaction action = { .sa_handler = on_fault };
	struct mt_learned_window window;
	struct chain chain;
	struct mt_chain is;
	bool is_found;

	for (int i = 0; i < 6; i++)
		functions[i] = (struct function){ 0x500000 + 0x35 * (uint64_t)i, MT_LEARNED_RSP,
						  offsets[i], 0 };
	teach_rows();
	window = call_all(one, 6);
	ck_assert(oracle_walk(window.start, BOTTOM, &chain));
	teach(&chain);
	handlers = call_all(other, 6);
	ck_assert(oracle_walk(handlers.start, BOTTOM, &chain));
	teach(&chain);
	/* So that the trail has no more than the outer frames. */
	window = call_all(outer, 4);
	mt_learned_chain(learned, SLOT, trail, &window, &is);
	handlers = call_all(other, 6);
	window = call_all(one, 6);

	closed = (char *)word(BOTTOM - 8192);
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	ck_assert_int_eq(mprotect(closed, 4096, PROT_NONE), 0);
	is_found = mt_learned_chain(learned, SLOT, trail, &window, &is);
	signal(SIGSEGV, SIG_DFL);
	ck_assert(handlers_found);
	ck_assert_uint_eq(handlers_is.name, 1);
	ck_assert_msg(!is_found || is.name == 0, "found the handler's chain");
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	ck_assert_uint_eq(is.name, 0);
}
END_TEST

/* The caller of the outermost frame lies behind the window, as a word of that frame says: with
 * another word it is another chain. */
START_TEST(behind_the_end)
{
	const struct function inner = { 0x500000, MT_LEARNED_RSP, 2, 0 };
	const struct function outer = { 0x500035, MT_LEARNED_CFA_AT_RBP, -1, 0 };
	struct mt_learned_window window = { .end = BOTTOM, .epoch = EPOCH };
	uint64_t rbp = 0, sp, outer_sp, outer_rbp;
	struct chain chain;
	struct mt_chain is;

	functions[0] = inner;
	functions[1] = outer;
	teach_rows();
	outer_sp = call(BOTTOM, &rbp, 0, &outer);
	outer_rbp = rbp;
	*word(outer_rbp - 8) = BOTTOM + 64;
	sp = call(outer_sp, &rbp, outer.pc, &inner);
	window.start = sp - 8 * MT_SAVED_WORDS;
	*word(window.start + 8 * MT_SAVED_RBP) = rbp;
	*word(window.start + 8 * MT_SAVED_RIP) = inner.pc;
	ck_assert(oracle_walk(window.start, BOTTOM, &chain));
	ck_assert_uint_eq(chain.how, MT_LEARNED_TRUNCATED);
	teach(&chain);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	/* The trail has it. */
	forget_row(outer.pc);
	ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	teach_rows();
	for (uint64_t cfa = window.start; cfa <= BOTTOM + 8; cfa += 4) {
		bool whole;

		*word(outer_rbp - 8) = cfa;
		whole = oracle_walk(window.start, BOTTOM, &chain) && find_taught(&chain) >= 0;
		ck_assert_int_eq(mt_learned_chain(learned, SLOT, trail, &window, &is), whole);
		*word(outer_rbp - 8) = BOTTOM + 64;
		ck_assert(mt_learned_chain(learned, SLOT, trail, &window, &is));
	}
}
END_TEST

/* The digest is the polynomial of the header, by long multiplication. */
START_TEST(digest_is_the_polynomial)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t a = (state ^ random_below(UINT64_MAX)) & MT_LEARNED_PRIME;
		uint64_t b = (state * 3 ^ random_below(UINT64_MAX)) & MT_LEARNED_PRIME;
		uint64_t pc = state * 5;
		unsigned __int128 product = (unsigned __int128)a * b;

		ck_assert_uint_eq(mt_learned_times(a, b) % MT_LEARNED_PRIME,
				  (uint64_t)(product % MT_LEARNED_PRIME));
		product = (unsigned __int128)(pc % MT_LEARNED_PRIME) * b;
		ck_assert_uint_eq(mt_learned_digest_frame(a, pc, b) % MT_LEARNED_PRIME,
				  (uint64_t)((product + a) % MT_LEARNED_PRIME));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("learned");
	TCase *tcase = tcase_create("learned");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, any_stack);
	tcase_add_test(tcase, calls_and_returns);
	tcase_add_test(tcase, recursion);
	tcase_add_test(tcase, not_now);
	tcase_add_test(tcase, deep_stacks);
	tcase_add_test(tcase, handler_uses_the_trail);
	tcase_add_test(tcase, behind_the_end);
	tcase_add_test(tcase, digest_is_the_polynomial);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
