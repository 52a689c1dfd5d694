/* The CUDA back end: kernels of blocks of threads as CUDA C, by NVRTC as images in a shared object,
 * whose other code is compiled by a C compiler. For AMD's GPUs only the kernels, as HIP. */
#include "driver/artifact/backend.h"

#include <string.h>

#include "codegen/print/cuda/cuda.h"
#include "driver/gpu/images.h"
#include "driver/gpu/nvrtc.h"
#include "driver/artifact/user_links.h"
#include "frontend/files/out_file.h"
#include "ir/op/userop.h"

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

/* Returns the kernels of one level that blocks of threads execute. */
static CudaProgram kernels(const Compilation *c, const TargetLevel *level)
{
	const Program *p = level->program;
	Arena *arena = c->ctx->arena;
	LoopFn **fn = ARENA_ARRAY(arena, LoopFn *, p->fn.n + 1);
	const char **name = ARENA_ARRAY(arena, const char *, p->fn.n + 1);
	const uint32_t n = cuda_kernels(p, kernel_names(p, level->suffix), fn, name);
	return (CudaProgram){.target = level->target,
			     .suffix = level->suffix,
			     .fn = fn,
			     .name = name,
			     .n = n,
			     .weights = level->own_bytes};
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	const Target *first = c->level.data[0].target;
	const bool hip = first->gpu->hip;
	Text t;
	if (hip != (kind == WEFT_EMIT_HIP))
		return ctx_error(c->ctx, NULL, "the kernels for %s are %s: expected --emit %s",
				 first->isa.name, hip ? "HIP" : "CUDA C", hip ? "hip" : "cuda");
	text_init(&t, c->ctx->arena);
	for (uint32_t k = 0; k < compile_gpus(c); k++) {
		const CudaProgram x = kernels(c, &c->level.data[k]);
		if (x.n)
			emit_cuda(x.fn, x.name, x.n, x.target, &t);
	}
	return file_write(c->ctx, p->out, t.n ? t.data : "", t.n);
}

/* ---- shared objects ---- */

/* Says what a shared object cannot have yet; NULL if it can have all that is asked for. */
static const char *not_done(const Compilation *c)
{
	const Target *first = c->level.data[0].target;
	if (first->gpu->hip)
		return arena_printf(c->ctx->arena,
				    "a shared object for %s is not done yet: --emit hip writes its "
				    "kernels as text",
				    first->isa.name);
	const char *no = first->gpu->arch ? nvrtc_missing(c->ctx->arena) : NULL;
	if (no)
		return arena_printf(
			c->ctx->arena,
			"kernels for %s are compiled by NVRTC: %s; --emit cuda writes them as text",
			first->isa.name, no);
	if (compile_gpus(c) > 1 && !first->gpu->arch)
		return arena_printf(c->ctx->arena, "%s is no device: no other GPU goes with it",
				    first->isa.name);
	return NULL;
}

/* Notes, for reports and the artifact's table, what the kernels of calls take of a
 * multiprocessor. */
static void tell_use(const Compilation *c, const TargetLevel *level, const CudaProgram *x,
		     const GpuUse *use)
{
	Program *p = level->program;
	Arena *a = c->ctx->arena;
	for (uint32_t k = 0; k < p->call.n; k++)
		for (uint32_t i = 0; i < x->n; i++) {
			ProgramCall *call = &p->call.data[k];
			if (p->fn.data[call->fn] != x->fn[i] || !use[i].registers)
				continue;
			const Gpu *g = level->target->gpu;
			const char *spills = use[i].spilled ? arena_printf(a, ", spills %u bytes",
									   use[i].spilled)
							    : "";
			call->algorithm = arena_printf(
				a, "%s; %u registers, %u bytes shared%s, %u of %u warps",
				call->algorithm, use[i].registers, use[i].shared, spills,
				gpu_resident(g, x->fn[i]->threads, use[i].registers, use[i].shared),
				g->warps);
		}
}

static EmitFile *add_file(Compilation *c, const char *stem, const char *suffix)
{
	return emit_add_file(&c->files, c->ctx->arena, c->level.data[0].target,
			     arena_printf(c->ctx->arena, "%s%s.c", stem, suffix));
}

/* Prints the code of all levels, and what chooses between them. */
static void print(Compilation *c, const Place *p, CudaProgram *x, uint32_t n)
{
	const TargetLevel **level = ARENA_ARRAY(c->ctx->arena, const TargetLevel *, c->level.n + 1);
	const uint32_t nlevel = compile_programs(c, level);
	for (uint32_t k = 0; k < nlevel; k++) {
		EmitOptions o = compile_emit_options(
			c, level[k], level[k] == &c->recipes ? NULL : p->weights_file);
		o.launched = k < n;
		emit_c(level[k]->program, level[k]->target, &o, &c->files);
		emit_cuda_blocks(level[k]->program, level[k]->target, &o, &c->files);
		if (k >= n)
			continue;
		x[k].model = o.export_name;
		emit_cuda_stubs(&x[k], &add_file(c, "images", level[k]->suffix)->text);
	}
	EmitSelect cpu = compile_select(c);
	cpu.n = c->level.n - n; /* the GPUs are the last ones there */
	emit_cuda_select(x, n, &cpu, c->level.n == 1, &add_file(c, "select", "")->text);
}

static bool shared(Compilation *c, const Place *p)
{
	Arena *a = c->ctx->arena;
	const char *no = not_done(c), *object;
	const uint32_t n = compile_gpus(c);
	CudaProgram *x = ARENA_ARRAY(a, CudaProgram, n);
	GpuUse **use = ARENA_ARRAY(a, GpuUse *, n);
	uint32_t nimage = 0;
	if (no)
		return ctx_error(c->ctx, NULL, "%s", no);
	for (uint32_t k = 0; k < n; k++) {
		x[k] = kernels(c, &c->level.data[k]);
		use[k] = ARENA_ARRAY(a, GpuUse, x[k].n + 1);
	}
	TRY(gpu_images(c, p->folder, x, n, use, &object));
	phase_end(c, "kernels");
	for (uint32_t k = 0; k < n; k++) {
		tell_use(c, &c->level.data[k], &x[k], use[k]);
		nimage += x[k].nimage;
	}
	print(c, p, x, n);
	phase_end(c, "print");
	c->images = object;
	bool ok = build_shared(c, p->folder, p->weights_object, p->out);
	/* build_shared counted its own units anew */
	c->w->report.objects += nimage;
	return ok;
}

static bool trusted(const Compilation *c)
{
	return backend_c.trusted(c);
}

const Backend backend_cuda = {
	.name = "cuda",
	.about = "CUDA C of the kernels, by NVRTC in a shared object; for AMD HIP, as text",
	.gpus = true,
	.suits = suits,
	.units = units,
	.shared = shared,
	.texts = 1u << WEFT_EMIT_CUDA | 1u << WEFT_EMIT_HIP,
	.emit = emit,
	.trusted = trusted,
};
