/* The CUDA back end: kernels of blocks of threads as CUDA C, by NVRTC as images in a shared object,
 * whose other code is compiled by a C compiler. For AMD's GPUs only the kernels, as HIP. */
#include "driver/artifact/backend.h"

#include "codegen/print/cuda/cuda.h"
#include "driver/gpu/images.h"
#include "driver/gpu/nvrtc.h"
#include "driver/artifact/user_links.h"
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

/* The kernels of one level that blocks of threads execute; returns their number. */
static uint32_t kernels(const Compilation *c, const TargetLevel *level, LoopFn ***fn, const char ***name)
{
	const Program *p = level->program;
	Arena *arena = c->ctx->arena;
	*fn = ARENA_ARRAY(arena, LoopFn *, p->fn.n + 1);
	*name = ARENA_ARRAY(arena, const char *, p->fn.n + 1);
	return cuda_kernels(p, kernel_names(p, level->suffix), *fn, *name);
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	const bool hip = c->target->gpu->hip;
	Text t;
	if (hip != (kind == WEFT_EMIT_HIP))
		return ctx_error(c->ctx, NULL, "the kernels for %s are %s: expected --emit %s", c->target->isa.name, hip ? "HIP" : "CUDA C",
				 hip ? "hip" : "cuda");
	text_init(&t, c->ctx->arena);
	for (uint32_t k = 0; k < c->level.n; k++) {
		LoopFn **fn;
		const char **name;
		const uint32_t n = kernels(c, &c->level.data[k], &fn, &name);
		if (n)
			emit_cuda(fn, name, n, c->level.data[k].target, &t);
	}
	return file_write(c->ctx, p->out, t.n ? t.data : "", t.n);
}

/* ---- shared objects ---- */

/* What a shared object cannot have yet. NULL: nothing that is asked for. */
static const char *not_done(const Compilation *c)
{
	if (c->target->gpu->hip)
		return arena_printf(c->ctx->arena, "a shared object for %s is not done yet: --emit hip writes its kernels as text", c->target->isa.name);
	const char *no = c->target->gpu->arch ? nvrtc_missing(c->ctx->arena) : NULL;
	if (no)
		return arena_printf(c->ctx->arena, "kernels for %s are compiled by NVRTC: %s; --emit cuda writes them as text", c->target->isa.name, no);
	for (uint32_t k = 0; k < c->level.n; k++)
		if (c->level.n > 1 && !c->level.data[k].target->gpu->arch)
			return arena_printf(c->ctx->arena, "%s is no device: it stands alone", c->level.data[k].target->isa.name);
	if (user_ops(c).n > user_ops_of_user(c))
		return "eigenvalues, singular values and LDL factors in a model for a GPU are not done yet";
	return NULL;
}


/* For reports and the artifact's table: what the kernels of calls take of a multiprocessor. */
static void tell_use(const Compilation *c, const TargetLevel *level, LoopFn *const *fn, const GpuUse *use, uint32_t n)
{
	Program *p = level->program;
	Arena *a = c->ctx->arena;
	for (uint32_t k = 0; k < p->call.n; k++)
		for (uint32_t i = 0; i < n; i++) {
			ProgramCall *call = &p->call.data[k];
			if (p->fn.data[call->fn] != fn[i] || !use[i].registers)
				continue;
			const Gpu *g = level->target->gpu;
			const char *spills = use[i].spilled ? arena_printf(a, ", spills %u bytes", use[i].spilled) : "";
			call->algorithm = arena_printf(a, "%s; %u registers, %u bytes shared%s, %u of %u warps", call->algorithm, use[i].registers, use[i].shared,
						       spills, gpu_resident(g, fn[i]->threads, use[i].registers, use[i].shared), g->warps);
		}
}

/* For several targets: the program of the first one, and images of its kernels for each. */
static bool shared(Compilation *c, const Place *p)
{
	const TargetLevel *level = &c->level.data[0];
	EmitOptions o = compile_emit_options(c, level, p->weights_file);
	CudaImages images;
	LoopFn **fn;
	const char **name, *object;
	const char *no = not_done(c);
	if (no)
		return ctx_error(c->ctx, NULL, "%s", no);
	const uint32_t n = kernels(c, level, &fn, &name);
	GpuUse *use = ARENA_ARRAY(c->ctx->arena, GpuUse, n + 1);
	TRY(gpu_images(c, p->folder, fn, name, n, &images, use, &object));
	phase_end(c, "kernels");
	tell_use(c, level, fn, use, n);
	o.launched = true;
	o.export_name = c->o.symbol;
	o.hidden = false;
	emit_c(level->program, level->target, &o, &c->files);
	if (c->recipes.program) {
		const EmitOptions ro = compile_emit_options(c, &c->recipes, NULL);
		emit_c(c->recipes.program, c->recipes.target, &ro, &c->files);
	}
	phase_end(c, "print");
	EmitFile stubs = {.name = "images.c", .flags = level->target->isa.flags};
	text_init(&stubs.text, c->ctx->arena);
	emit_cuda_stubs(fn, name, n, &images, &stubs.text);
	array_push(c->ctx->arena, &c->files.file, stubs);
	c->images = object;
	bool ok = build_shared(c, p->folder, p->weights_object, p->out);
	c->program = level->program; /* for the report */
	c->target = level->target;
	/* build_shared counted its own units anew */
	c->w->report.objects += images.narch * images.nimage;
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
