/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * test_teach.c - collector/teach.h: a chain that a thread was taught keeps its name; and where
 *                there is no room to teach in
 *
 * One module, whose only function is left by its frame pointer; a process that lacks the
 * module's image has to guess that.
 */
#include "collector/teach.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/cfi_bytes.h"
#include "wire/reference.h"

#define BIAS 0x100000
#define FUNCTION 0x1000
#define STACK 0x7fff00001000
#define WORDS 64
#define EPOCH 7
#define SLOT 3

static struct cfi_bytes eh_frame, file;
static struct mt_image *image;
static struct mt_space known, unknown; /* with the image, and without */
static struct mt_unwinder *unwinder;
static struct mt_call_tree tree;
static struct mt_segments *segments;
static struct mt_teach *teach;
static uint64_t words[WORDS];
static const struct mt_window window = {
	.start = STACK,
	.end = STACK + 8 * WORDS,
	.words = words,
	.mask = WORDS - 1,
};

static void make_space(struct mt_space *space, struct mt_image *its_image)
{
	struct mt_space_range range = {
		.start = BIAS,
		.end = BIAS + 0x6000,
		.bias = BIAS,
		.image = its_image,
	};

	mt_space_init(space);
	ck_assert_int_eq(mt_space_add(space, &range), 0);
}

static const struct mt_segments_config config = {
	.budget_bytes = MT_BUDGET_MIN_BYTES,
	.ring_bytes = MT_PAGE_BYTES,
	.learned = true,
	.control_fd = -1,
	.bpf_references_fd = -1,
};

static void setup(void)
{
	static const struct elf_parts parts = { .eh_frame = &eh_frame, .with_sections = true };
	size_t cie;

	eh_frame = (struct cfi_bytes){ .vaddr = ELF_EH_FRAME };
	cie = cfi_put_cie(&eh_frame, "zR", 0x1b, CFI_CALL, CFI_CALL_LEN);
	/* cfa = rbp + 16, rbp at cfa - 16 */
	cfi_put_fde(&eh_frame, cie, 0x1b, FUNCTION, 0x40, "\x0c\x06\x10\x86\x02", 5);
	elf_put(&file, &parts);
	ck_assert_int_eq(mt_image_new_memory(file.bytes, file.len, &image), 0);
	make_space(&known, image);
	make_space(&unknown, NULL);
	ck_assert_int_eq(mt_unwinder_new(&unwinder), 0);
	ck_assert_int_eq(mt_call_tree_init(&tree, UINT32_MAX), 0);
	ck_assert_int_eq(mt_segments_open(&config, &segments), 0);
	ck_assert_ptr_nonnull(segments->learned);
	ck_assert_int_eq(mt_teach_new(segments, &teach), 0);
}

static void teardown(void)
{
	mt_teach_free(teach);
	mt_segments_close(segments);
	mt_call_tree_done(&tree);
	mt_unwinder_free(unwinder);
	mt_space_done(&known);
	mt_space_done(&unknown);
	mt_image_unref(image);
}

static void put(uint64_t address, uint64_t word)
{
	words[(address / 8) & window.mask] = word;
}

/* What is made of the window. */
static uint32_t unwind_again(struct mt_space *space)
{
	uint32_t node;

	ck_assert_int_eq(mt_unwind(unwinder, space, &window, &tree, &node), 0);
	ck_assert_uint_ge(node, MT_NODE_FIRST);
	return node;
}

/* Calls of the function by itself, so many deep; returns what was made of them. */
static uint32_t unwind(struct mt_space *space, unsigned int depth)
{
	uint64_t at = STACK + 8 * MT_SAVED_WORDS;

	put(STACK + 8 * MT_SAVED_RIP, BIAS + FUNCTION + 0x10);
	put(STACK + 8 * MT_SAVED_RBP, at);
	for (; depth > 1; depth--, at += 16) {
		put(at, at + 16);
		put(at + 8, BIAS + FUNCTION + 0x10 + depth);
	}
	put(at, 0);
	put(at + 8, 0);
	return unwind_again(space);
}

static void teach_slot(uint32_t slot, const struct mt_space *space, uint32_t epoch, uint32_t node)
{
	ck_assert_int_eq(mt_teach_chain(teach, slot, epoch, unwinder, space, &window, node), 0);
}

static void teach_node(const struct mt_space *space, uint32_t epoch, uint32_t node)
{
	teach_slot(SLOT, space, epoch, node);
}

/* Whether the slot's area has a chain of that name. */
static bool has(uint32_t slot, uint32_t node)
{
	const struct mt_learned *learned = mt_segments_learned(segments, slot);
	const struct mt_learned_slot *its = &learned->slots[slot % MT_CHUNK_SLOTS];
	const struct mt_learned_entry *chains = mt_learned_chains(learned, its->area);

	for (uint32_t i = 0; its->seq && i < MT_LEARNED_CHAINS; i++)
		if (chains[i].key && chains[i].value == node)
			return true;
	return false;
}

/* The other process guesses right: the chain, by its modules, is the same. */
START_TEST(also_had_by_a_guess)
{
	uint32_t node = unwind(&known, 3);

	ck_assert(!mt_teach_used(teach, SLOT, node));
	teach_node(&known, EPOCH, node);
	ck_assert(mt_teach_used(teach, SLOT, node));
	ck_assert_uint_eq(unwind(&unknown, 3), node);
	teach_node(&unknown, EPOCH + 1, node);
	ck_assert(mt_teach_used(teach, SLOT, node));
}
END_TEST

START_TEST(guesses_are_not_taught)
{
	uint32_t node = unwind(&unknown, 4);

	teach_node(&unknown, EPOCH, node);
	ck_assert(!mt_teach_used(teach, SLOT, node));
	ck_assert_uint_eq(mt_segments_learned(segments, SLOT)->places[0], 0);
}
END_TEST

/* The threads of one process have it of each other, as far as they are in one chunk; those of
 * another do not. */
START_TEST(told_to_others)
{
	uint32_t first = unwind(&known, 3), node;

	teach_slot(SLOT, &known, EPOCH, first);
	teach_slot(SLOT + 1, &known, EPOCH, first);
	teach_slot(SLOT + 2, &known, EPOCH + 1, first);
	teach_slot(SLOT + MT_CHUNK_SLOTS, &known, EPOCH, first);
	node = unwind(&known, 4);
	teach_node(&known, EPOCH, node);
	ck_assert(has(SLOT, node));
	ck_assert(has(SLOT + 1, node));
	ck_assert(!has(SLOT + 2, node));
	ck_assert(!has(SLOT + 4, node));
	ck_assert(!has(SLOT + MT_CHUNK_SLOTS, node));
}
END_TEST

/* What an epoch knows lasts, however many others its chunk's other slots go through. */
START_TEST(areas_last)
{
	uint32_t node = unwind(&known, 3);

	teach_slot(SLOT, &known, EPOCH, node);
	teach_slot(SLOT + 1, &known, EPOCH, node);
	for (uint32_t i = 1; i <= 3 * MT_CHUNK_SLOTS; i++) {
		teach_slot(SLOT, &known, EPOCH + i, unwind(&known, 4));
		ck_assert(!has(SLOT, node));
		ck_assert(has(SLOT + 1, node));
	}
	teach_slot(SLOT, &known, EPOCH, node);
	ck_assert(has(SLOT, node));
	ck_assert_uint_eq(mt_segments_learned(segments, SLOT)->slots[SLOT].area,
			  mt_segments_learned(segments, SLOT)->slots[SLOT + 1].area);
}
END_TEST

#define CALLS 40

/* Of three frames, which chain i. */
static uint32_t unwind_one_of_many(unsigned int i)
{
	unwind(&known, 3);
	put(STACK + 8 * MT_SAVED_RIP, BIAS + FUNCTION + 0x10 + i % CALLS);
	put(STACK + 8 * MT_SAVED_WORDS + 8, BIAS + FUNCTION + 0x10 + i / CALLS);
	return unwind_again(&known);
}

/* There are more places where more chains are, and none is lost. */
START_TEST(places_grow)
{
	const struct mt_learned *learned = mt_segments_learned(segments, SLOT);
	uint32_t nodes[CALLS * CALLS], found = 0;

	for (unsigned int i = 0; i < CALLS * CALLS; i++) {
		nodes[i] = unwind_one_of_many(i);
		teach_node(&known, EPOCH, nodes[i]);
		teach_node(&known, EPOCH, nodes[i]);
	}
	ck_assert_uint_ge(learned->places[learned->slots[SLOT].area], 4 * MT_LEARNED_CHAINS_MIN);
	ck_assert_uint_eq(learned->slots[SLOT].seq % 2, 0);
	for (unsigned int i = 0; i < CALLS * CALLS; i++) {
		ck_assert(mt_teach_used(teach, SLOT, nodes[i]));
		found += has(SLOT, nodes[i]);
	}
	ck_assert_uint_eq(found, CALLS * CALLS);
}
END_TEST

/* A name that was never given. */
START_TEST(never_taught)
{
	ck_assert(!mt_teach_used(teach, SLOT, 0));
	ck_assert(!mt_teach_used(teach, SLOT, UINT32_MAX));
	ck_assert(!mt_teach_used(teach, SLOT, unwind(&known, 5)));
}
END_TEST

static uint64_t address_space_bytes(void)
{
	unsigned long pages;
	FILE *statm = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(statm);
	ck_assert_int_eq(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A limit that the areas alone do not fit in: the run goes on without them. */
START_TEST(no_room)
{
	struct mt_welcome welcome = { 0 };
	struct mt_segments *small;
	struct rlimit was, limit;

	ck_assert_int_eq(getrlimit(RLIMIT_AS, &was), 0);
	limit = was;
	limit.rlim_cur = address_space_bytes() + MT_LEARNED_BYTES * (rlim_t)MT_CHUNKS / 2;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(mt_segments_open(&config, &small), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &was), 0);
	ck_assert_ptr_null(small->learned);
	ck_assert_int_eq(mt_segments_give_chunk(small, false, 1, &welcome), 0);
	ck_assert_uint_eq(welcome.learned_bytes, 0);
	mt_segments_close(small);
}
END_TEST

/* A limit that leaves room for a part, most is taken by others: there are as many slots as that. */
START_TEST(little_room)
{
	const size_t taken = (size_t)64 << 30;
	struct mt_welcome welcome = { 0 };
	struct mt_segments *small;
	struct rlimit was, limit;
	uint32_t n = 0;
	void *others;

	others = mmap(NULL, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(others, MAP_FAILED);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &was), 0);
	limit = was;
	limit.rlim_cur = address_space_bytes() + (64 << 20);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(mt_segments_open(&config, &small), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &was), 0);
	while (mt_segments_give_chunk(small, false, 1, &welcome) == 0)
		n++;
	ck_assert_uint_eq(n, small->n_chunks);
	ck_assert_uint_lt(n, MT_CHUNKS);
	mt_segments_close(small);
	munmap(others, taken);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("teach");
	TCase *tcase = tcase_create("teach");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, also_had_by_a_guess);
	tcase_add_test(tcase, guesses_are_not_taught);
	tcase_add_test(tcase, told_to_others);
	tcase_add_test(tcase, areas_last);
	tcase_add_test(tcase, places_grow);
	tcase_add_test(tcase, never_taught);
	tcase_add_test(tcase, no_room);
	suite_add_tcase(suite, tcase);
	/* Without what others have mapped. */
	tcase = tcase_create("limits");
	tcase_add_test(tcase, little_room);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
