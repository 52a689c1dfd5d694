/* The C back end: prints C text; a C compiler makes objects of it. */
#include "driver/artifact/backend.h"

#include "codegen/print/cuda/cuda.h"

#include <stdlib.h>

/* Prints the programs of all levels. weights_file: NULL if weights are embedded. */
static bool print(Compilation *c, const char *weights_file)
{
	const TargetLevel **level = ARENA_ARRAY(c->ctx->arena, const TargetLevel *, c->level.n + 1);
	for (uint32_t k = 0, n = compile_programs(c, level); k < n; k++) {
		EmitOptions o = compile_emit_options(c, level[k],
						     level[k] == &c->recipes ? NULL : weights_file);
		emit_c(level[k]->program, level[k]->target, &o, &c->files);
		emit_cuda_blocks(level[k]->program, level[k]->target, &o, &c->files);
	}
	EmitSelect select = compile_select(c);
	if (select.n > 1)
		emit_c_select(c->ctx->arena, &select, c->level.data[0].target, &c->files);
	phase_end(c, "print");
	return true;
}

static bool suits(const Compilation *c)
{
	(void)c;
	return true;
}

/* Returns into how many units kernels are divided. Few: each costs a C compiler a quarter of a
 * second for its own vector header. */
static uint32_t units(uint32_t kernels)
{
	return kernels < 4 ? 1 : kernels < 16 ? 2 : kernels < 100 ? 4 : 8;
}

static bool shared(Compilation *c, const Place *p)
{
	return print(c, p->weights_file) && build_shared(c, p->folder, p->weights_object, p->out);
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	(void)kind;
	return print(c, NULL) && write_sources(c, p->out);
}

static bool trusted(const Compilation *c)
{
	const char *cc = getenv("CC");
	return !c->o.cc && !(cc && *cc);
}

static const char *refuses_several(const Compilation *c)
{
	return c->level.n > 1 ? "the back end gpu-host is for one target" : NULL;
}

/* The stand-in for a GPU: the same text of kernels, executed by this CPU. */
const Backend backend_gpu_host = {
	.name = "gpu-host",
	.about = "kernels of a GPU, which this CPU executes: for tests",
	.gpus = true,
	.refuses = refuses_several,
	.units = units,
	.shared = shared,
	.trusted = trusted,
};

const Backend backend_c = {
	.name = "c",
	.about = "C text and a C compiler",
	.suits = suits,
	.units = units,
	.shared = shared,
	.folders = 1u << WEFT_EMIT_C,
	.emit = emit,
	.trusted = trusted,
};
