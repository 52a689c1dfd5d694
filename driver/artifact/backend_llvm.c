/* The LLVM back end: objects by weft_llvm.so, and a linker; code in this process. */
#include <string.h>

#include "driver/artifact/backend.h"
#include "driver/artifact/cache.h"
#include "driver/artifact/link.h"
#include "driver/artifact/llvm_library.h"
#include "driver/targets/embed.h"

/* ---- where it can be used ---- */

static const char *refuses(const Compilation *c)
{
	return c->o.cc ? "another C compiler is for the C back end, not for LLVM" : NULL;
}

/* Whether the build has the runtime for the target, which a shared object needs. */
static bool suits(const Compilation *c)
{
#ifdef WEFT_LLVM
	return !c->o.cc && runtime_object_for(c->target->isa.triple);
#else
	(void)c;
	return false;
#endif
}

static bool available(const Compilation *c)
{
	return llvm_is_there(c->o.llvm_folder);
}

static bool load(Compilation *c)
{
	return llvm_backend(c->ctx, c->o.llvm_folder);
}

/* Returns into how many units kernels are divided, which are compiled in parallel at no cost. */
static uint32_t units(uint32_t kernels)
{
	return kernels < 4 ? 1 : kernels < 16 ? 4 : 8;
}

/* ---- objects of earlier compilations ---- */

typedef struct {
	Compilation *c;
	const char *folder;
} KeptObjects;

static const char *kept_at(const KeptObjects *k, const char *const *key)
{
	return cache_path(k->c->ctx, k->folder, (const char *const[]){"llvm", NULL}, key);
}

static bool take_object(void *user, const char *const *key, const char **data, size_t *n)
{
	const KeptObjects *k = user;
	bool there = cache_read(k->c->ctx->arena, kept_at(k, key), data, n);
	k->c->w->report.cached += there;
	return there;
}

static void keep_object(void *user, const char *const *key, const char *data, size_t n)
{
	const KeptObjects *k = user;
	cache_write(k->c->ctx, data, n, kept_at(k, key));
}

/* Returns the cache of objects; NULL if there is none. */
static const ObjectCache *object_cache(Compilation *c)
{
	const char *folder = c->o.no_cache ? NULL : cache_folder(c->ctx);
	KeptObjects *k = ARENA_NEW(c->ctx->arena, KeptObjects);
	ObjectCache *cache = ARENA_NEW(c->ctx->arena, ObjectCache);
	*k = (KeptObjects){c, folder};
	*cache = (ObjectCache){k, take_object, keep_object};
	return folder ? cache : NULL;
}

/* ---- files ---- */

static bool emit_files(Compilation *c, LlvmKind kind, const char *weights_file, LlvmFiles *out)
{
	const LlvmBackend *llvm = llvm_backend(c->ctx, c->o.llvm_folder);
	TRY(llvm);
	const TargetLevel **level = ARENA_ARRAY(c->ctx->arena, const TargetLevel *, c->level.n + 1);
	for (uint32_t k = 0, n = compile_programs(c, level); k < n; k++) {
		EmitOptions o = compile_emit_options(c, level[k],
						     level[k] == &c->recipes ? NULL : weights_file);
		TRY(llvm->emit(level[k]->program, level[k]->target, &o, kind, c->o.jobs, out));
	}
	EmitSelect select = compile_select(c);
	TRY(select.n == 1 || llvm->select(c->ctx, &select, c->level.data[0].target, kind, out));
	c->w->report.objects = out->file.n;
	phase_end(c, "llvm");
	return true;
}

static bool objects(Compilation *c, const Place *p, LinkInput *in)
{
	Arena *a = weft_arena(c->w);
	LlvmFiles files = {0};
	TRY(emit_files(c, LLVM_OBJECT, p->weights_file, &files));
	for (uint32_t k = 0; k < files.file.n; k++) {
		const LlvmFile *f = &files.file.data[k];
		const char *path = arena_printf(a, "%s/%s", p->folder, f->name);
		TRY(file_write(c->ctx, path, f->data, f->n));
		array_push(a, &in->object, path);
	}
	if (p->weights_object)
		array_push(a, &in->object, p->weights_object);
	return true;
}

static bool shared(Compilation *c, const Place *p)
{
	LinkInput in = {0};
	TRY(objects(c, p, &in));
	phase_begin(c, "link");
	TRY(link_shared(c, p->folder, &in, p->out));
	phase_end(c, "link");
	return true;
}

/* Writes the texts of all units, one after the other. */
static bool emit_text(Compilation *c, LlvmKind kind, const char *out)
{
	const LlvmBackend *llvm = llvm_backend(c->ctx, c->o.llvm_folder);
	LlvmFiles files = {0};
	Text t;
	TRY(llvm && emit_files(c, kind, NULL, &files));
	text_init(&t, c->ctx->arena);
	if (kind == LLVM_TEXT)
		text_printf(&t, "; %s, before its passes\n", llvm->version(c->ctx->arena));
	for (uint32_t k = 0; k < files.file.n; k++) {
		text_printf(&t, "%s ---- %s\n", kind == LLVM_TEXT ? ";" : "#",
			    files.file.data[k].name);
		text_addn(&t, files.file.data[k].data, files.file.data[k].n);
	}
	return file_write(c->ctx, out, t.data, t.n);
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	LinkInput in = {0};
	if (kind == WEFT_EMIT_LLVM || kind == WEFT_EMIT_ASM)
		return emit_text(c, kind == WEFT_EMIT_LLVM ? LLVM_TEXT : LLVM_ASM, p->out);
	TRY(objects(c, p, &in));
	return kind == WEFT_EMIT_OBJECT ? link_object(c, p->folder, &in, p->out)
					: link_archive(c, p->folder, &in, p->out);
}

/* ---- in this process ---- */

static void free_here(void *code)
{
	llvm_loaded()->free(code);
}

static bool emit_here(Compilation *c, const LlvmBackend *llvm, bool small, LlvmFiles *files)
{
	const TargetLevel *level[2];
	const ObjectCache *cache = small ? object_cache(c) : NULL;
	for (uint32_t k = 0, n = compile_programs(c, level); k < n; k++) {
		EmitOptions o = compile_emit_options(c, level[k], NULL);
		o.nunits = small ? 1 : o.nunits; /* each has pages of its own */
		o.here = true;
		o.cache = cache;
		TRY(llvm->emit(level[k]->program, level[k]->target, &o, LLVM_OBJECT, c->o.jobs,
			       files));
	}
	c->w->report.objects = files->file.n;
	phase_end(c, "llvm");
	return true;
}

static bool here(Compilation *c, const HereSymbol *symbol, uint32_t n, bool small, Here *out)
{
	const LlvmBackend *llvm = llvm_backend(c->ctx, c->o.llvm_folder);
	LlvmFiles files = {0};
	JitSymbol *s = ARENA_ARRAY(c->ctx->arena, JitSymbol, n);
	TRY(llvm && emit_here(c, llvm, small, &files));
	for (uint32_t k = 0; k < n; k++)
		s[k] = (JitSymbol){symbol[k].name, symbol[k].address};
	Jit *jit = llvm->link(c->ctx, &files, s, n);
	TRY(jit);
	*out = (Here){.code = jit, .free = free_here};
	out->entry = llvm->find(c->ctx, jit, c->o.symbol ? c->o.symbol : "weft_model");
	phase_end(c, "link");
	return out->entry;
}

static bool trusted(const Compilation *c)
{
	(void)c;
	return true;
}

const Backend backend_llvm = {
	.name = "llvm",
	.about = "objects by LLVM and a linker",
	.refuses = refuses,
	.suits = suits,
	.available = available,
	.absent = "the LLVM back end (weft_llvm.so) is not found: a C compiler is used "
		  "($WEFT_LLVM_FOLDER may name its folder)",
	.load = load,
	.units = units,
	.shared = shared,
	.texts = 1u << WEFT_EMIT_LLVM | 1u << WEFT_EMIT_ASM,
	.objects = 1u << WEFT_EMIT_OBJECT | 1u << WEFT_EMIT_ARCHIVE,
	.emit = emit,
	.here = here,
	.trusted = trusted,
};
