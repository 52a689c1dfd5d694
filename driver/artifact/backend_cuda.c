/* The CUDA back end: prints kernels of blocks of threads. */
#include "driver/artifact/backend.h"

#include "codegen/print/cuda/cuda.h"
#include "frontend/files/out_file.h"

static bool suits(const Compilation *c)
{
	(void)c;
	return true;
}

static uint32_t units(uint32_t kernels)
{
	(void)kernels;
	return 1;
}

/* The kernels of one program that blocks of threads execute; others call functions of the user. */
static void print_kernels(const Compilation *c, const TargetLevel *level, Text *out)
{
	const Program *p = level->program;
	Arena *arena = c->ctx->arena;
	LoopFn **fn = ARENA_ARRAY(arena, LoopFn *, p->fn.n + 1);
	const char **name = ARENA_ARRAY(arena, const char *, p->fn.n + 1);
	const uint32_t n = cuda_kernels(p, kernel_names(p, level->suffix), fn, name);
	if (n)
		emit_cuda(fn, name, n, level->target, out);
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	Text t;
	if (kind == WEFT_EMIT_SHARED)
		return ctx_error(c->ctx, NULL, "shared objects for GPUs are not made yet: --emit cuda writes the kernels of %s", c->target->isa.name);
	text_init(&t, c->ctx->arena);
	for (uint32_t k = 0; k < c->level.n; k++)
		print_kernels(c, &c->level.data[k], &t);
	return file_write(c->ctx, p->out, t.n ? t.data : "", t.n);
}

const Backend backend_cuda = {
	.name = "cuda",
	.about = "CUDA C of the kernels",
	.gpus = true,
	.suits = suits,
	.units = units,
	.texts = 1u << WEFT_EMIT_CUDA | 1u << WEFT_EMIT_SHARED,
	.emit = emit,
};
