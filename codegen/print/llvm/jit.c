/* Objects linked into this process by ORC. */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>

#include "codegen/print/llvm/priv.h"

struct Jit {
	LLVMOrcLLJITRef lljit;
};

/* True when there is no error. */
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
	LLVMOrcJITDylibRef lib = LLVMOrcLLJITGetMainJITDylib(j->lljit);
	LLVMOrcCSymbolMapPairs pair = ARENA_ARRAY(ctx->arena, LLVMOrcCSymbolMapPair, n);
	for (uint32_t k = 0; k < n; k++) {
		pair[k].Name = LLVMOrcLLJITMangleAndIntern(j->lljit, symbol[k].name);
		pair[k].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbol[k].address;
		pair[k].Sym.Flags.GenericFlags = LLVMJITSymbolGenericFlagsExported;
	}
	if (n)
		TRY(fine(ctx, LLVMOrcJITDylibDefine(lib, LLVMOrcAbsoluteSymbols(pair, n))));
	LLVMOrcDefinitionGeneratorRef process;
	TRY(fine(ctx, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
			      &process, LLVMOrcLLJITGetGlobalPrefix(j->lljit), NULL, NULL)));
	LLVMOrcJITDylibAddGenerator(lib, process);
	return true;
}

static bool add_objects(Ctx *ctx, Jit *j, const LlvmFiles *files)
{
	LLVMOrcJITDylibRef lib = LLVMOrcLLJITGetMainJITDylib(j->lljit);
	for (uint32_t k = 0; k < files->file.n; k++) {
		const LlvmFile *f = &files->file.data[k];
		LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(f->data, f->n, f->name);
		TRY(fine(ctx, LLVMOrcLLJITAddObjectFile(j->lljit, lib, copy)));
	}
	return true;
}

Jit *jit_link(Ctx *ctx, const LlvmFiles *files, const JitSymbol *symbol, uint32_t n)
{
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	Jit *j = calloc(1, sizeof *j);
	if (!j)
		ctx_out_of_memory(ctx);
	if (fine(ctx, LLVMOrcCreateLLJIT(&j->lljit, NULL)) && define_symbols(ctx, j, symbol, n) &&
	    add_objects(ctx, j, files))
		return j;
	jit_free(j);
	return NULL;
}

void *jit_find(Ctx *ctx, Jit *j, const char *name)
{
	LLVMOrcExecutorAddress address = 0;
	if (!fine(ctx, LLVMOrcLLJITLookup(j->lljit, &address, name)))
		return NULL;
	return (void *)(uintptr_t)address;
}

void jit_free(Jit *j)
{
	if (j && j->lljit)
		LLVMConsumeError(LLVMOrcDisposeLLJIT(j->lljit));
	free(j);
}
