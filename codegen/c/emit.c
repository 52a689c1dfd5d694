#include "codegen/c/emit.h"

#include <string.h>

#include "codegen/c/emit_priv.h"

/* ---- files ---- */

static EmitFile *add_file(EmitFiles *out, Arena *arena, const char *name)
{
	EmitFile file = {.name = name};
	text_init(&file.text, arena);
	array_push(arena, &out->file, file);
	return &out->file.data[out->file.n - 1];
}

static void emit_header(const Program *p, const char *const *name, EmitFile *file)
{
	file->is_header = true;
	text_printf(&file->text, "/* Kernels of %s. */\n#ifndef WEFT_KERNELS_H\n#define WEFT_KERNELS_H\n\n"
	            "#include \"runtime.h\"\n\n", p->name);
	for (uint32_t k = 0; k < p->fn.n; k++)
		text_printf(&file->text, "int %s(const WeftFrame *f, int64_t begin, int64_t end);\n", name[k]);
	text_add(&file->text, "\n#endif\n");
}

static void emit_unit(const Program *p, const Target *t, const char *const *name, const uint32_t *unit,
                      uint32_t which, EmitFile *file)
{
	CUnit u;
	Text body;
	unit_init(&u, p->ir->ctx, t);
	text_init(&body, u.arena);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		if (unit[k] != which)
			continue;
		if (body.n)
			text_char(&body, '\n');
		c_function(&u, p->fn.data[k], name[k], FN_KERNEL, p, name, &body);
	}
	unit_head(&u, &file->text, "kernels.h");
	text_printf(&file->text, "\n%s", body.data ? body.data : "");
}

static void emit_model(const Program *p, const Target *t, const EmitOptions *o, const char *const *name,
                       EmitFile *file)
{
	CUnit u;
	Text body;
	unit_init(&u, p->ir->ctx, t);
	text_init(&body, u.arena);
	c_model(&u, p, o, name, &body);
	unit_head(&u, &file->text, "kernels.h");
	text_printf(&file->text, "\n%s", body.data);
	file->cost = 50 + (double)p->call.n;
}

bool emit_c(Program *p, const Target *t, const EmitOptions *o, EmitFiles *out)
{
	Arena *arena = p->ir->ctx->arena;
	for (uint32_t k = 0; k < p->fn.n; k++)
		loop_unroll(p->fn.data[k]);
	loop_unroll(p->sizes);
	loop_unroll(p->run);
	const char *const *name = kernel_names(p, o->suffix);
	uint32_t nunits = o->nunits ? o->nunits : 1;
	if (nunits > p->fn.n)
		nunits = p->fn.n;
	double *load = ARENA_ARRAY(arena, double, nunits);
	const uint32_t *unit = nunits ? kernel_units(p, nunits, load) : NULL;
	emit_header(p, name, add_file(out, arena, "kernels.h"));
	if (prelude_of(t)->header) {
		EmitFile *file = add_file(out, arena, "vector.h");
		file->is_header = true;
		vector_header(t, &file->text);
	}
	emit_model(p, t, o, name, add_file(out, arena, "model.c"));
	for (uint32_t k = 0; k < nunits; k++) {
		EmitFile *file = add_file(out, arena, arena_printf(arena, "kernels_%u.c", k));
		file->cost = load[k];
		emit_unit(p, t, name, unit, k, file);
	}
	return true;
}

bool emit_c_kernel(LoopFn *f, const Target *t, Text *out)
{
	CUnit u;
	Text body;
	loop_unroll(f);
	unit_init(&u, f->ir->ctx, t);
	text_init(&body, u.arena);
	const char *name = c_identifier(u.arena, f->name);
	c_function(&u, f, name, FN_KERNEL, NULL, NULL, &body);
	unit_head(&u, out, NULL);
	text_printf(out, "\ntypedef struct {\n\tvoid *const *buf;\n\tconst int64_t *p;\n} WeftFrame;\n\n"
	            "int %s(const WeftFrame *f, int64_t begin, int64_t end);\n\n%s", name, body.data);
	return true;
}
