/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * leaving_handlers.cc - frames of malloc() and operator new that are left by other ways
 * than a return: a new handler that throws, or jumps, in several threads; destructors and
 * cleanups that allocate while a stack unwinds, for an exception, for pthread_exit(), for a
 * cancellation; an exception that goes on in another thread
 */
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <thread>

#include "fixtures/ledger.h"

namespace
{

constexpr std::size_t destructor_bytes = 30601;
constexpr std::size_t after_bytes = 30607;
volatile std::size_t too_much = std::size_t(1) << 60;
thread_local int refusals;
thread_local std::jmp_buf out;

struct allocates_when_destroyed {
	~allocates_when_destroyed()
	{
		std::free(ledger_block(std::malloc(destructor_bytes)));
		ledger_took(nullptr, nullptr, destructor_bytes, 1);
		ledger_gave(destructor_bytes, 1);
	}
};

LEDGER_SITE void take_after()
{
	::operator delete(::operator new(after_bytes));
	ledger_took(__func__, LEDGER_ANY, after_bytes, 1);
	ledger_gave(after_bytes, 1);
}

void throw_at_third()
{
	if (++refusals % 3 == 0)
		throw std::bad_alloc();
}

void jump_out()
{
	std::longjmp(out, 1);
}

LEDGER_SITE void descend(int depth, void (*end)())
{
	allocates_when_destroyed guard;

	if (depth)
		descend(depth - 1, end);
	else
		end();
}

void ask_too_much()
{
	ledger_block(::operator new(too_much));
}

void run_throwing()
{
	int caught = 0;

	for (int i = 0; i < 20; i++) {
		try {
			descend(5, ask_too_much);
		} catch (const std::bad_alloc &) {
			caught++;
		}
		take_after();
	}
	if (caught != 20 || refusals != 60)
		std::abort();
}

void run_jumping()
{
	for (volatile int i = 0; i < 20; i = i + 1) {
		if (!setjmp(out))
			ask_too_much();
		take_after();
	}
}

void throw_text()
{
	throw std::runtime_error(std::string(3000, 'e'));
}

void run_carrying()
{
	std::exception_ptr carried;
	std::thread thrower([&carried] {
		try {
			descend(3, throw_text);
		} catch (...) {
			carried = std::current_exception();
		}
	});

	thrower.join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::runtime_error &error) {
		if (std::string(error.what()).size() != 3000)
			std::abort();
	}
	take_after();
}

sem_t waiting;

void leave_thread()
{
	pthread_exit(nullptr);
}

void wait_for_cancellation()
{
	sem_post(&waiting);
	for (;;)
		pthread_testcancel();
}

extern "C" void *unwind_thread(void *end)
{
	descend(4, reinterpret_cast<void (*)()>(end));
	return nullptr;
}

void run_unwinding(void (*end)(), bool cancel)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, unwind_thread, reinterpret_cast<void *>(end)))
		std::abort();
	if (cancel) {
		sem_wait(&waiting);
		pthread_cancel(thread);
	}
	pthread_join(thread, nullptr);
	take_after();
}

} /* namespace */

int main()
{
	if (sem_init(&waiting, 0, 0))
		return 3;
	std::set_new_handler(throw_at_third);
	std::thread other(run_throwing);
	run_throwing();
	other.join();
	std::set_new_handler(jump_out);
	std::thread jumper(run_jumping);
	run_jumping();
	jumper.join();
	std::set_new_handler(nullptr);
	if (::operator new(too_much, std::nothrow))
		return 4;
	for (int i = 0; i < 10; i++) {
		run_carrying();
		run_unwinding(leave_thread, false);
		run_unwinding(wait_for_cancellation, true);
	}
	ledger_print();
	return 0;
}
