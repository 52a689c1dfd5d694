#include "driver/artifact/native.h"

#include <string.h>

#include "driver/artifact/backend.h"
#include "driver/artifact/link.h"

static bool emit_files(Compilation *c, LlvmKind kind, const char *weights_file, LlvmFiles *out)
{
	const LlvmBackend *llvm = llvm_backend(c->ctx, c->o.llvm_folder);
	TRY(llvm);
	const TargetLevel **level = ARENA_ARRAY(c->ctx->arena, const TargetLevel *, c->level.n + 1);
	for (uint32_t k = 0, n = compile_programs(c, level); k < n; k++) {
		EmitOptions o = compile_emit_options(c, level[k], level[k] == &c->prepare ? NULL : weights_file);
		TRY(llvm->emit(level[k]->program, level[k]->target, &o, kind, c->o.jobs, out));
	}
	EmitSelect select = compile_select(c);
	TRY(select.n == 1 || llvm->select(c->ctx, &select, c->level.data[0].target, kind, out));
	c->w->report.objects = out->file.n;
	phase_end(c, "llvm");
	return true;
}

static bool objects(Compilation *c, const char *folder, const char *weights_object, const char *weights_file,
		    LinkInput *in)
{
	Arena *a = weft_arena(c->w);
	LlvmFiles files = {0};
	TRY(emit_files(c, LLVM_OBJECT, weights_file, &files));
	for (uint32_t k = 0; k < files.file.n; k++) {
		const LlvmFile *f = &files.file.data[k];
		const char *path = arena_printf(a, "%s/%s", folder, f->name);
		TRY(file_write(c->ctx, path, f->data, f->n));
		array_push(a, &in->object, path);
	}
	if (weights_object)
		array_push(a, &in->object, weights_object);
	return true;
}

bool native_shared(Compilation *c, const char *folder, const char *weights_object, const char *weights_file,
		   const char *out)
{
	LinkInput in = {0};
	TRY(objects(c, folder, weights_object, weights_file, &in));
	TRY(link_shared(c, folder, &in, out));
	phase_end(c, "link");
	return true;
}

/* Texts of all units, one after the other. */
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
		text_printf(&t, "%s ---- %s\n", kind == LLVM_TEXT ? ";" : "#", files.file.data[k].name);
		text_addn(&t, files.file.data[k].data, files.file.data[k].n);
	}
	return file_write(c->ctx, out, t.data, t.n);
}

bool native_emit(Compilation *c, WeftEmit kind, const char *folder, const char *weights_object, const char *out)
{
	LinkInput in = {0};
	if (kind == WEFT_EMIT_LLVM || kind == WEFT_EMIT_ASM)
		return emit_text(c, kind == WEFT_EMIT_LLVM ? LLVM_TEXT : LLVM_ASM, out);
	TRY(objects(c, folder, weights_object, NULL, &in));
	return kind == WEFT_EMIT_OBJECT ? link_object(c, folder, &in, out) : link_archive(c, folder, &in, out);
}
