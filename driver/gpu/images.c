#include "driver/gpu/images.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "driver/artifact/cache.h"
#include "driver/elf/elf_object.h"
#include "driver/artifact/jobs.h"
#include "driver/gpu/nvrtc.h"
#include "driver/targets/embed.h"

/* An image that is made: a file in the folder, and its entry in the cache; NULL: there is none. */
typedef struct {
	const char *name, *text; /* of a kernel, and its CUDA C */
	const char *path, *kept;
	bool made;               /* the file is there */
	const char *error;       /* by malloc; NULL: none */
	const char *warnings;    /* the same */
} Image;

/* What an image's file begins with; machine code and PTX follow, the latter with its final 0. */
typedef struct {
	uint64_t code, ptx; /* bytes */
	uint32_t registers, shared, stack, spilled; /* GpuUse */
} ImageHeader;

/* ---- by NVRTC ---- */

typedef struct {
	Image *image;
	uint32_t n;
	const char *arch;
	_Atomic uint32_t next, failed;
} ImageWork;

static bool write_image(Ctx *ctx, const Image *im, const GpuImage *made)
{
	ImageHeader h = {.code = made->cubin_bytes, .ptx = strlen(made->ptx) + 1};
	for (uint32_t k = 0; k < made->use.n; k++) {
		const GpuUse *u = &made->use.data[k];
		if (!strcmp(u->name, im->name))
			h.registers = u->registers, h.shared = u->shared, h.stack = u->stack,
			h.spilled = u->spilled;
	}
	char *data = arena_alloc(ctx->arena, sizeof h + h.code + h.ptx);
	memcpy(data, &h, sizeof h);
	memcpy(data + sizeof h, made->cubin, h.code);
	memcpy(data + sizeof h + h.code, made->ptx, h.ptx);
	return file_write(ctx, im->path, data, sizeof h + h.code + h.ptx);
}

static void compile_one(Ctx *ctx, Image *im, const char *arch)
{
	GpuImage made;
	im->made =
		nvrtc_compile(ctx, im->name, im->text, arch, &made) && write_image(ctx, im, &made);
	if (im->made && made.warnings)
		im->warnings = strdup(made.warnings);
}

static void *compile_some(void *arg)
{
	ImageWork *w = arg;
	const locale_t before = c_locale_begin(); /* threads do not inherit it */
	for (uint32_t k; !w->failed && (k = w->next++) < w->n;) {
		Image *im = &w->image[k];
		Ctx *ctx = im->made ? NULL : ctx_new();
		if (!ctx)
			continue;
		if (!setjmp(ctx->unwind))
			compile_one(ctx, im, w->arch);
		if (!im->made) {
			im->error = ctx->first ? strdup(ctx->first->text) : NULL;
			w->failed = 1;
		}
		ctx_free(ctx);
	}
	c_locale_end(before);
	return NULL;
}

static void compile_all(ImageWork *w, uint32_t jobs)
{
	enum { MOST = 64 };
	pthread_t thread[MOST];
	uint32_t n = 0;
	while (n + 1 < jobs && n + 1 < w->n && n < MOST &&
	       !pthread_create(&thread[n], NULL, compile_some, w))
		n++;
	compile_some(w);
	while (n)
		pthread_join(thread[--n], NULL);
}

static bool all_made(Compilation *c, const ImageWork *w)
{
	bool ok = true;
	for (uint32_t k = 0; k < w->n; k++) {
		if (!w->image[k].made && ok)
			ok = ctx_error(c->ctx, NULL, "%s",
				       w->image[k].error ? w->image[k].error
							 : "no memory to compile kernels");
		if (w->image[k].warnings)
			ctx_warn(c->ctx, NULL, "%s for %s: NVRTC: %.*s", w->image[k].name, w->arch,
				 (int)strcspn(w->image[k].warnings, "\n"), w->image[k].warnings);
		free((void *)w->image[k].error);
		free((void *)w->image[k].warnings);
	}
	return ok;
}

static bool by_nvrtc(Compilation *c, Image *im, uint32_t n, const Target *t)
{
	ImageWork w = {.image = im, .n = n, .arch = t->gpu->arch};
	compile_all(&w, c->o.jobs ? c->o.jobs : jobs_default());
	return all_made(c, &w);
}

/* ---- by the C++ compiler of this machine ---- */

static const char *compiler(const Compilation *c)
{
	const char *env = getenv("CC");
	return c->o.cc ? c->o.cc : env && *env ? env : "cc";
}

static bool by_cc(Compilation *c, const char *folder, const Image *im)
{
	Arena *a = weft_arena(c->w);
	Ctx *ctx = c->ctx;
	Words w = {0};
	const char *source = arena_printf(a, "%s/images.cpp", folder),
		   *so = arena_printf(a, "%s/images.so", folder);
	size_t n;
	TRY(file_write(ctx, source, im->text, strlen(im->text)));
	TRY(file_write(ctx, arena_printf(a, "%s/gpu_host.hpp", folder), gpu_host_text,
		       strlen(gpu_host_text)));
	words_split(a, &w, compiler(c));
	words_split(a, &w,
		    "-O1 -ffp-contract=off -std=c++17 -fno-exceptions -fno-rtti -fPIC "
		    "-fvisibility=hidden -shared");
	words_split(a, &w, target_common_flags());
	words_add(a, &w, arena_printf(a, "-I%s", folder));
	words_add(a, &w, source);
	words_split(a, &w, "-lm -o");
	words_add(a, &w, so);
	Jobs one = {.limit = 1, .folder = folder};
	array_push(a, &one.job,
		   (Job){.argv = words_argv(a, &w),
			 .what = "images.cpp",
			 .makes = so,
			 .log = arena_printf(a, "%s/images.log", folder)});
	TRY(jobs_run(ctx, &one));
	const char *data = file_read(a, so, &n);
	if (!data)
		return ctx_error(ctx, so, "cannot read");
	return write_image(ctx, im, &(GpuImage){.cubin = data, .cubin_bytes = n, .ptx = ""});
}

/* ---- the cache ---- */

static void look_up(Compilation *c, const char *cache, Image *im, const Target *t)
{
	Ctx *ctx = c->ctx;
	const char *by = t->gpu->arch ? arena_printf(ctx->arena, "nvrtc %u", nvrtc_version())
				      : cache_compiler(ctx, compiler(c));
	const char *const argv[] = {"image 2", by, t->gpu->arch ? t->gpu->arch : "", NULL},
			  *const text[] = {im->text, t->gpu->arch ? "" : gpu_host_text, NULL};
	if (!cache)
		return;
	im->kept = cache_path(ctx, cache, argv, text);
	im->made = cache_take(ctx, im->kept, im->path);
	c->w->report.cached += im->made;
}

static bool make(Compilation *c, const char *folder, Image *im, uint32_t n, const Target *t)
{
	const char *cache = c->o.no_cache ? NULL : cache_folder(c->ctx);
	uint32_t missing = 0;
	bool *had = ARENA_ARRAY(c->ctx->arena, bool, n);
	for (uint32_t k = 0; k < n; k++) {
		look_up(c, cache, &im[k], t);
		had[k] = im[k].made;
		missing += !had[k];
	}
	if (missing)
		TRY(t->gpu->arch ? by_nvrtc(c, im, n, t) : by_cc(c, folder, im));
	for (uint32_t k = 0; k < n; k++)
		if (!had[k] && im[k].kept)
			cache_keep(c->ctx, im[k].path, im[k].kept);
	return true;
}

/* ---- the object ---- */

enum { START = 64 }; /* of the section, and the alignment of code in it */

static bool append(Ctx *ctx, Text *t, const char *path, CudaImage *out, GpuUse *use)
{
	ImageHeader h;
	size_t n;
	ArenaMark mark = arena_mark(ctx->scratch);
	const char *data = file_read(ctx->scratch, path, &n);
	if (!data || n < sizeof h)
		return ctx_error(ctx, path, "cannot read");
	memcpy(&h, data, sizeof h);
	while (t->n % START)
		text_addn(t, "", 1);
	*use = (GpuUse){.registers = h.registers,
			.shared = h.shared,
			.stack = h.stack,
			.spilled = h.spilled};
	*out = (CudaImage){.code = t->n - START, .ptx = h.ptx > 1 ? t->n - START + h.code : 0};
	text_addn(t, data + sizeof h, h.code + h.ptx);
	arena_release(ctx->scratch, mark);
	return true;
}

static bool write_object(Compilation *c, const Image *made, uint32_t n, const char *symbol,
			 CudaImage *const *image, GpuUse *const *use, const char *path)
{
	Ctx *ctx = c->ctx;
	Text t;
	text_init(&t, ctx->arena);
	for (uint32_t k = 0; k < START; k++)
		text_addn(&t, "", 1);
	for (uint32_t k = 0; k < n; k++)
		TRY(append(ctx, &t, made[k].path, image[k], use[k]));
	const uint64_t bytes = t.n - START, all = elf_object_bytes(START, bytes, symbol);
	while (t.n < all)
		text_addn(&t, "", 1);
	elf_object_write(t.data, t.data + START + bytes, START, bytes, symbol, NULL);
	return file_write(ctx, path, t.data, t.n);
}

/* Makes the images of a program, which are files of the folder. */
static bool make_program(Compilation *c, const char *folder, const CudaProgram *p, Image *made)
{
	Arena *a = weft_arena(c->w);
	const Target *t = p->target;
	const char *arch = t->gpu->arch ? t->gpu->arch : "host";
	for (uint32_t k = 0; k < p->nimage; k++) {
		Text text;
		text_init(&text, a);
		if (t->gpu->arch)
			emit_cuda(p->fn + k, p->name + k, 1, t, &text);
		else
			emit_cuda_standin(p->fn, p->name, p->n, t, &text);
		made[k] = (Image){.name = p->name[k],
				  .text = text.data,
				  .path = arena_printf(a, "%s/%s_%u.image", folder, arch, k)};
	}
	return make(c, folder, made, p->nimage, t);
}

/* Returns the number of images. For the stand-in all kernels are one. */
static uint32_t count_images(const CudaProgram *p)
{
	return p->target->gpu->arch ? p->n : p->n > 0;
}

bool gpu_images(Compilation *c, const char *folder, CudaProgram *p, uint32_t n, GpuUse *const *use,
		const char **object)
{
	Arena *a = weft_arena(c->w);
	const char *data = arena_printf(a, "%s_images", c->name);
	uint32_t all = 0, at = 0;
	for (uint32_t k = 0; k < n; k++)
		all += count_images(&p[k]);
	Image *made = ARENA_ARRAY(a, Image, all + 1);
	CudaImage **image = ARENA_ARRAY(a, CudaImage *, all + 1);
	GpuUse **of_image = ARENA_ARRAY(a, GpuUse *, all + 1);
	for (uint32_t k = 0; k < n; k++) {
		p[k].nimage = count_images(&p[k]);
		CudaImage *own = ARENA_ARRAY(a, CudaImage, p[k].nimage + 1);
		uint32_t *of = ARENA_ARRAY(a, uint32_t, p[k].n + 1);
		for (uint32_t i = 0; i < p[k].n; i++)
			of[i] = p[k].nimage == p[k].n ? i : 0;
		TRY(make_program(c, folder, &p[k], made + at));
		for (uint32_t i = 0; i < p[k].nimage; i++, at++) {
			image[at] = &own[i];
			of_image[at] = &use[k][i];
		}
		p[k].data = data;
		p[k].image = own;
		p[k].of = of;
	}
	*object = arena_printf(a, "%s/images.o", folder);
	return write_object(c, made, all, data, image, of_image, *object);
}
