/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live_cxx.cc - stacks of C++: the library's, and those of exceptions
 *
 * operator new is replaced, so that what libstdc++ allocates is captured with its frames.
 */
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/live_stack.h"

static bool capture_new;

/* Not inlined: gcc would see malloc() paired with operator delete. */
__attribute__((noinline)) void *operator new(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	if (capture_new) {
		capture_new = false;
		live_capture();
		capture_new = true;
	}
	return block;
}

__attribute__((noinline)) void operator delete(void *block) noexcept
{
	free(block);
}

__attribute__((noinline)) void operator delete(void *block, size_t) noexcept
{
	free(block);
}

struct capturing {
	~capturing()
	{
		live_capture();
	}
};

struct thrown {
	thrown()
	{
		live_capture();
	}
	thrown(const thrown &)
	{
		live_capture();
	}
	~thrown()
	{
		live_capture();
	}
};

__attribute__((noinline)) static int throw_from(int depth)
{
	capturing local;

	if (depth > 0)
		return throw_from(depth - 1) + 1;
	throw thrown();
}

void live_cxx_library(void)
{
	capture_new = true;
	{
		std::map<std::string, std::vector<int>> lengths;
		std::ostringstream out;
		std::string text = "memory of a program that is measured 12 34 567";
		std::function<void(int)> recurse = [&](int depth) {
			lengths[text.substr(0, (size_t)depth)].push_back(depth);
			if (depth > 0)
				recurse(depth - 1);
		};

		recurse(20);
		for (const auto &pair : lengths)
			out << std::setw(40) << pair.first << pair.second.size() << 1.5;
		text = out.str();
	}
	capture_new = false;
}

void live_cxx_unwinding(void)
{
	try {
		throw_from(5);
	} catch (const thrown &caught) {
		live_capture();
	}
}

void live_cxx_throw(void)
{
	try {
		try {
			throw_from(2);
		} catch (...) {
			capturing local;

			throw;
		}
	} catch (thrown caught) {
		live_capture();
	}
}
