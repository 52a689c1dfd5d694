/* LLVM ends the process when it finds no memory, and after errors of its own that it cannot pass
 * on. The handler that the driver gives clears up and does the same. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <llvm-c/ErrorHandling.h>

#include "codegen/print/llvm/priv.h"

typedef void NewHandler(void);

/* Sets the handler of C++ for memory that ran out, since LLVM's C interface has none. */
extern NewHandler *set_new_handler(NewHandler *) __asm__("_ZSt15set_new_handlerPFvvE");
extern void install_bad_alloc_error_handler(void (*)(void *, const char *, bool), void *)
	__asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

static void end_process(const char *why)
{
	fprintf(stderr, "error: LLVM: %s\n", why);
	_exit(1);
}

static void (*handler)(const char *why) = end_process;
static NewHandler *_Atomic hosts; /* for threads that are not in LLVM */
static _Thread_local bool inside;

static void no_memory(void)
{
	if (inside)
		handler("out of memory");
	NewHandler *host = hosts;
	if (host)
		host();
	else
		set_new_handler(NULL); /* then `new` throws */
}

static void bad_alloc(void *user, const char *why, bool crash)
{
	(void)user, (void)why, (void)crash;
	handler("out of memory");
}

void llvm_on_fatal(void (*f)(const char *why))
{
	handler = f;
	LLVMInstallFatalErrorHandler(f);
	fatal_leave();
}

void fatal_enter(void)
{
	NewHandler *before = set_new_handler(no_memory);
	if (before != no_memory)
		hosts = before;
	inside = true;
}

void fatal_leave(void)
{
	inside = false;
}

/* Before LLVM's own constructors, which want memory too. */
__attribute__((constructor(101))) static void begin(void)
{
	install_bad_alloc_error_handler(bad_alloc, NULL);
	fatal_enter();
}
