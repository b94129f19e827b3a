/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_new.cc - operators new and delete of the executable's own, on top of malloc; also a
 * library's containers use them
 */
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

static const size_t head_bytes = 32;
static const size_t object_bytes = 20071;
static const size_t rounds = 50;
static long live;

static void *take(std::size_t bytes)
{
	void *block = std::malloc(bytes + head_bytes);

	if (!block)
		throw std::bad_alloc();
	live++;
	return static_cast<char *>(block) + head_bytes;
}

static void give(void *block)
{
	if (!block)
		return;
	live--;
	std::free(static_cast<char *>(block) - head_bytes);
}

void *operator new(std::size_t bytes)
{
	return take(bytes);
}

void operator delete(void *block) noexcept
{
	give(block);
}

void operator delete(void *block, std::size_t) noexcept
{
	give(block);
}

LEDGER_SITE static std::string *make_text()
{
	return new std::string(object_bytes - 1, 'x');
}

int main()
{
	for (size_t i = 0; i < rounds; i++) {
		std::vector<std::string *> texts{ make_text() };

		demand(texts[0]->size() == object_bytes - 1 && live == 3);
		delete texts[0];
	}
	demand(live == 0);
	ledger_took(nullptr, nullptr, object_bytes + head_bytes, rounds);
	ledger_gave(object_bytes + head_bytes, rounds);
	ledger_print();
}
