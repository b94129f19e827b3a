/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * named_calls.cc - prints its own call chains, for report.test to have them named
 *
 * Each line is a chain of return addresses as the file has them (without the load bias), the
 * innermost first, in hexadecimal, up to main.  report.test looks for the line numbers by the
 * words in the comments.
 */
#include <cstdint>
#include <cstdio>
#include <execinfo.h>
#include <link.h>

/* A clone for what is constant in a call would have another name. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noipa))
#endif
#define INLINE inline __attribute__((always_inline))

/* What follows a call, so that it is none at its function's end. */
#define STAY() __asm__ volatile("" ::: "memory")

struct bounds {
	uintptr_t bias, start, end;
};

/* The first object is the program itself. */
static int find_bounds(struct dl_phdr_info *info, size_t, void *ret)
{
	struct bounds *bounds = static_cast<struct bounds *>(ret);

	bounds->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
			continue;
		bounds->start = bounds->bias + info->dlpi_phdr[i].p_vaddr;
		bounds->end = bounds->start + info->dlpi_phdr[i].p_memsz;
	}
	return 1;
}

/* The chain of its caller. */
NOINLINE static void print_chain()
{
	struct bounds bounds = { 0, 0, 0 };
	void *addresses[64];
	int n = backtrace(addresses, 64);

	dl_iterate_phdr(find_bounds, &bounds);
	for (int i = 1; i < n; i++) {
		uintptr_t address = reinterpret_cast<uintptr_t>(addresses[i]);

		if (address < bounds.start || address >= bounds.end)
			break;
		printf("%s%lx", i > 1 ? " " : "",
		       static_cast<unsigned long>(address - bounds.bias));
	}
	putchar('\n');
	STAY();
}

namespace shop
{
template <typename T> struct Shelf {
	T room;

	INLINE void lift()
	{
		print_chain(); /* in lift */
		STAY();
	}

	NOINLINE void grow(int more, const char *)
	{
		room += more;
		lift(); /* in grow */
		room--;
	}
};

INLINE void stock(Shelf<long> &shelf)
{
	shelf.grow(3, "more"); /* in stock */
	STAY();
}
} /* namespace shop */

extern "C" {
/* A C name, with two calls inlined into one another. */
NOINLINE long plain_c(long room)
{
	shop::Shelf<long> shelf = { room };

	shop::stock(shelf); /* in plain_c */
	STAY();
	return shelf.room;
}
}

int main()
{
	long room = plain_c(1); /* in main */

	STAY();
	return room > 100;
}
