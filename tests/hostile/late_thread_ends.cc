/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * late_thread_ends.cc - threads that allocate and free while they end: a thread_local's
 * destructor, and a key's, which arms itself again as often as the C library allows
 */
#include <climits>
#include <cstdlib>
#include <pthread.h>

#include "fixtures/ledger.h"
#include "tests/hostile/demand.h"

static const size_t local_bytes = 20129;
static const size_t key_bytes = 20143;
static const int rounds = 20, threads = 8;
static pthread_key_t key;
static int ended;

LEDGER_SITE static void take_in_pass(void *pass)
{
	long number = reinterpret_cast<long>(pass);

	std::free(ledger_block(std::malloc(key_bytes)));
	if (number < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, reinterpret_cast<void *>(number + 1));
	else
		__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

struct Holder {
	void *block;
	LEDGER_SITE Holder() : block(std::malloc(local_bytes))
	{
	}
	~Holder()
	{
		std::free(block);
	}
};

static thread_local Holder holder;

static void *work(void *)
{
	demand(holder.block);
	pthread_setspecific(key, reinterpret_cast<void *>(1));
	return nullptr;
}

int main()
{
	const size_t all = rounds * threads, passes = all * PTHREAD_DESTRUCTOR_ITERATIONS;

	demand(!pthread_key_create(&key, take_in_pass));
	for (int i = 0; i < rounds; i++) {
		pthread_t started[threads];

		for (pthread_t &thread : started)
			demand(!pthread_create(&thread, nullptr, work, nullptr));
		for (pthread_t &thread : started)
			demand(!pthread_join(thread, nullptr));
	}
	demand(ended == rounds * threads);
	ledger_took(nullptr, nullptr, local_bytes, all);
	ledger_gave(local_bytes, all);
	ledger_took("take_in_pass", LEDGER_END, key_bytes, passes);
	ledger_gave(key_bytes, passes);
	ledger_print();
}
