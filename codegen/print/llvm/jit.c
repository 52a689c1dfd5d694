/* Objects linked into this process by ORC. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>

#include "codegen/print/llvm/priv.h"

/* One session for the process, which is never ended: a session of its own, with LLVM's description
 * of the processor, would be most of a small model. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LLVMOrcLLJITRef session;
static unsigned serial;

/* The objects of one model. */
struct Jit {
	LLVMOrcJITDylibRef lib;
};

/* Records an error of LLVM in the context. Returns true if there is none. */
static bool fine(Ctx *ctx, LLVMErrorRef e)
{
	if (!e)
		return true;
	char *text = LLVMGetErrorMessage(e);
	ctx_error(ctx, NULL, "JIT: %s", text);
	LLVMDisposeErrorMessage(text);
	return false;
}

static bool define_symbols(Ctx *ctx, Jit *j, const JitSymbol *symbol, uint32_t n)
{
	LLVMOrcJITDylibRef lib = j->lib;
	LLVMOrcCSymbolMapPairs pair = ARENA_ARRAY(ctx->arena, LLVMOrcCSymbolMapPair, n);
	for (uint32_t k = 0; k < n; k++) {
		pair[k].Name = LLVMOrcLLJITMangleAndIntern(session, symbol[k].name);
		pair[k].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbol[k].address;
		pair[k].Sym.Flags.GenericFlags = LLVMJITSymbolGenericFlagsExported;
	}
	if (n)
		TRY(fine(ctx, LLVMOrcJITDylibDefine(lib, LLVMOrcAbsoluteSymbols(pair, n))));
	LLVMOrcDefinitionGeneratorRef process;
	TRY(fine(ctx, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
			      &process, LLVMOrcLLJITGetGlobalPrefix(session), NULL, NULL)));
	LLVMOrcJITDylibAddGenerator(lib, process);
	return true;
}

static bool add_objects(Ctx *ctx, Jit *j, const LlvmFiles *files)
{
	LLVMOrcJITDylibRef lib = j->lib;
	for (uint32_t k = 0; k < files->file.n; k++) {
		const LlvmFile *f = &files->file.data[k];
		LLVMMemoryBufferRef copy =
			LLVMCreateMemoryBufferWithMemoryRangeCopy(f->data, f->n, f->name);
		TRY(fine(ctx, LLVMOrcLLJITAddObjectFile(session, lib, copy)));
	}
	return true;
}

static bool begin(Ctx *ctx, Jit *j)
{
	char name[32];
	pthread_mutex_lock(&lock);
	bool ok = session || fine(ctx, LLVMOrcCreateLLJIT(&session, NULL));
	snprintf(name, sizeof name, "model%u", serial++);
	pthread_mutex_unlock(&lock);
	j->lib = ok ? LLVMOrcExecutionSessionCreateBareJITDylib(
			      LLVMOrcLLJITGetExecutionSession(session), name)
		    : NULL;
	return ok;
}

Jit *jit_link(Ctx *ctx, const LlvmFiles *files, const JitSymbol *symbol, uint32_t n)
{
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	Jit *j = calloc(1, sizeof *j);
	if (!j)
		ctx_out_of_memory(ctx);
	if (begin(ctx, j) && define_symbols(ctx, j, symbol, n) && add_objects(ctx, j, files))
		return j;
	jit_free(j);
	return NULL;
}

typedef struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_there;
	LLVMErrorRef error;
	void *address;
} Found;

/* Takes the result of a look-up. LLVM calls it on the thread that linked the last object, which may
 * be a thread that looks for a symbol of another model: the session has one queue of objects to
 * link. */
static void found(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pair, size_t n, void *arg)
{
	Found *f = arg;
	pthread_mutex_lock(&f->lock);
	f->error = error;
	f->address = !error && n ? (void *)(uintptr_t)pair[0].Sym.Address : NULL;
	f->is_there = true;
	pthread_cond_signal(&f->ended);
	pthread_mutex_unlock(&f->lock);
}

/* Links. */
void *jit_find(Ctx *ctx, Jit *j, const char *name)
{
	Found f = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
	LLVMOrcCJITDylibSearchOrderElement in = {j->lib, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
	LLVMOrcCLookupSetElement of = {LLVMOrcLLJITMangleAndIntern(session, name),
				       LLVMOrcSymbolLookupFlagsRequiredSymbol};
	LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(session),
				      LLVMOrcLookupKindStatic, &in, 1, &of, 1, found, &f);
	pthread_mutex_lock(&f.lock);
	while (!f.is_there)
		pthread_cond_wait(&f.ended, &f.lock);
	pthread_mutex_unlock(&f.lock);
	pthread_cond_destroy(&f.ended);
	pthread_mutex_destroy(&f.lock);
	return fine(ctx, f.error) ? f.address : NULL;
}

void jit_free(Jit *j)
{
	if (j && j->lib)
		LLVMConsumeError(LLVMOrcJITDylibClear(j->lib));
	free(j);
}
