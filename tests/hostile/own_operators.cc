/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own_operators.cc - a program with operators new and delete of its own, global and of
 * classes, over malloc(); arrays with a count in front of them, classes with a stricter
 * alignment, members whose constructors throw, memory resources, objects of threads and
 * coroutines: each block once, with the size that malloc() was asked for
 */
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <thread>
#include <vector>

#include "fixtures/ledger.h"

namespace
{

constexpr std::size_t header_bytes = 16;
/* Smaller ones are also those of the runtime. */
constexpr std::size_t counted_bytes = 1000;
constexpr std::size_t plain_bytes = 30589;
constexpr std::size_t class_bytes = 30593;
constexpr std::size_t member_bytes = 30597;
constexpr std::size_t in_array = 10;
int destroyed;

} /* namespace */

/* Each block has its size in front. */
void *operator new(std::size_t size)
{
	void *block = std::malloc(size + header_bytes);

	if (!block)
		throw std::bad_alloc();
	*static_cast<std::size_t *>(block) = size;
	if (size >= counted_bytes)
		ledger_took(nullptr, nullptr, size + header_bytes, 1);
	return static_cast<char *>(block) + header_bytes;
}

void operator delete(void *at) noexcept
{
	if (!at)
		return;
	at = static_cast<char *>(at) - header_bytes;
	if (*static_cast<std::size_t *>(at) >= counted_bytes)
		ledger_gave(*static_cast<std::size_t *>(at) + header_bytes, 1);
	std::free(at);
}

void operator delete(void *at, std::size_t) noexcept
{
	operator delete(at);
}

namespace
{

struct with_destructor {
	char bytes[100];

	~with_destructor()
	{
		destroyed++;
	}
};

struct alignas(256) strict {
	char bytes[1024];
};

struct with_operators {
	char bytes[class_bytes];

	static void *operator new(std::size_t size)
	{
		ledger_took(nullptr, nullptr, size, 1);
		return ledger_block(std::malloc(size));
	}
	static void operator delete(void *at)
	{
		ledger_gave(class_bytes, 1);
		std::free(at);
	}
};

struct fails {
	char bytes[member_bytes];

	fails()
	{
		throw 1;
	}
};

struct task {
	struct promise_type {
		task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			failed = true;
		}
		bool failed = false;
	};
	std::coroutine_handle<promise_type> handle;
};

task take_thrice()
{
	for (int i = 0; i < 3; i++) {
		char *block = new char[plain_bytes];

		co_await std::suspend_always{};
		delete[] block;
	}
	throw 1;
}

void run_coroutine()
{
	task running = take_thrice();

	while (!running.handle.done())
		running.handle.resume();
	if (!running.handle.promise().failed)
		std::abort();
	running.handle.destroy();
}

void run_round()
{
	static thread_local std::vector<int> of_thread;
	std::pmr::monotonic_buffer_resource resource(3000);
	std::pmr::vector<int> numbers(&resource);

	delete[] new char[plain_bytes];
	delete[] new with_destructor[in_array];
	delete new with_operators;
	try {
		delete new fails;
		std::abort();
	} catch (int) {
	}
	for (int i = 0; i < 1000; i++) {
		numbers.push_back(i);
		of_thread.push_back(i);
	}
	strict *aligned = new strict;
	if (reinterpret_cast<std::uintptr_t>(aligned) % alignof(strict))
		std::abort();
	ledger_took(nullptr, nullptr, sizeof(strict), 1);
	ledger_gave(sizeof(strict), 1);
	delete aligned;
	run_coroutine();
}

void run_rounds()
{
	for (int i = 0; i < 20; i++)
		run_round();
}

} /* namespace */

int main()
{
	/* Not in the main thread, whose objects go after all is counted. */
	for (int i = 0; i < 2; i++)
		std::thread(run_rounds).join();
	if (destroyed != 2 * 20 * static_cast<int>(in_array))
		return 4;
	ledger_print();
	return 0;
}
