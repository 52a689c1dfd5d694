/* Kernels of a GPU for this CPU, as files beside those of the C emitter. */
#include "codegen/print/cuda/cuda.h"

void emit_cuda_blocks(const Program *p, const Target *t, const EmitOptions *o, EmitFiles *out)
{
	Arena *arena = p->ir->ctx->arena;
	LoopFn **fn = ARENA_ARRAY(arena, LoopFn *, p->fn.n + 1);
	const char **name = ARENA_ARRAY(arena, const char *, p->fn.n + 1);
	const uint32_t n = t->gpu && !o->launched
				   ? cuda_kernels(p, kernel_names(p, o->suffix), fn, name)
				   : 0;
	if (!n)
		return;
	EmitFile *file = emit_add_file(
		out, arena, t, arena_printf(arena, "blocks%s.cpp", o->suffix ? o->suffix : ""));
	file->is_cpp = true;
	emit_cuda_host(fn, name, n, t, &file->text);
	file = emit_add_file(out, arena, t, "gpu_host.hpp");
	file->is_header = true;
	text_add(&file->text, gpu_host_text);
}
