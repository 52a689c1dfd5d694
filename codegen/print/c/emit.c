#include "codegen/print/c/emit.h"

#include <string.h>

#include "codegen/legal/legalise.h"
#include "codegen/print/c/emit_priv.h"

/* ---- files ---- */

/* What the files of one program share. */
typedef struct {
	const Program *p;
	const Target *target;
	const EmitOptions *o;
	const char *suffix;
	const char *const *kernel; /* names */
	const char *kernels, *vector; /* headers */
	EmitFiles *out;
} Emission;

EmitFile *emit_add_file(EmitFiles *out, Arena *arena, const Target *t, const char *name)
{
	EmitFile file = {.name = name, .flags = t->isa.flags};
	text_init(&file.text, arena);
	array_push(arena, &out->file, file);
	return &out->file.data[out->file.n - 1];
}

static const char *file_name(const Emission *e, const char *stem, const char *extension)
{
	return arena_printf(e->p->ir->ctx->arena, "%s%s.%s", stem, e->suffix, extension);
}

static EmitFile *add(const Emission *e, const char *name)
{
	return emit_add_file(e->out, e->p->ir->ctx->arena, e->target, name);
}

static void emit_header(const Emission *e)
{
	EmitFile *file = add(e, e->kernels);
	file->is_header = true;
	text_printf(&file->text,
		    "/* Kernels of %s. */\n#ifndef WEFT_KERNELS%s_H\n#define WEFT_KERNELS%s_H\n\n"
		    "#include \"runtime.h\"\n\n",
		    e->p->name, e->suffix, e->suffix);
	for (uint32_t k = 0; k < e->p->fn.n; k++)
		text_printf(&file->text,
			    "int %s(const WeftFrame *f, int64_t begin, int64_t end);\n",
			    e->kernel[k]);
	text_add(&file->text, "\n#endif\n");
}

static void emit_vector(const Emission *e)
{
	EmitFile *file = add(e, e->vector);
	file->is_header = true;
	text_printf(&file->text, "/* Vector intrinsics: of gcc's only what this target uses. */\n"
	            "#ifndef WEFT_VECTOR%s_H\n#define WEFT_VECTOR%s_H\n\n", e->suffix, e->suffix);
	prelude_of(e->target)->header(e->target, &file->text);
	text_add(&file->text, "\n#endif\n");
}

static void emit_unit(const Emission *e, const uint32_t *unit, uint32_t which, double cost)
{
	CUnit u;
	Text body;
	const Program *p = e->p;
	EmitFile *file =
		add(e, file_name(e, arena_printf(p->ir->ctx->arena, "kernels_%u", which), "c"));
	file->cost = cost;
	unit_init(&u, p->ir->ctx, e->target, &c_dialect);
	text_init(&body, u.arena);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		if (unit[k] != which || loop_is_of_block(p->fn.data[k]))
			continue;
		if (body.n)
			text_char(&body, '\n');
		c_function(&u, p->fn.data[k], e->kernel[k], FN_KERNEL, NULL, NULL, &body);
	}
	unit_head(&u, &file->text, e->kernels, e->vector);
	text_printf(&file->text, "\n%s", body.data ? body.data : "");
}

static void emit_model(const Emission *e)
{
	CUnit u;
	Text body;
	EmitFile *file = add(e, file_name(e, "model", "c"));
	/* Tables, and code that is executed once a call. Above -O1 gcc takes more than linear time
	 * for many launches (of 9,000: 24 s, not 2), and makes one group of all loads of addresses,
	 * gaps included: gigabytes for thousands of tensors. */
	file->flags = arena_printf(e->p->ir->ctx->arena, "%s -O1", file->flags);
	unit_init(&u, e->p->ir->ctx, e->target, &c_dialect);
	text_init(&body, u.arena);
	c_model(&u, e->p, e->o, e->kernel, &body);
	unit_head(&u, &file->text, e->kernels, e->vector);
	text_printf(&file->text, "\n%s", body.data);
	file->cost = 50 + (double)e->p->call.n;
}

void emit_c(Program *p, const Target *t, const EmitOptions *o, EmitFiles *out)
{
	Emission e = {
		.p = p, .target = t, .o = o, .suffix = o->suffix ? o->suffix : "", .out = out};
	e.kernel = kernel_names(p, o->suffix);
	e.kernels = file_name(&e, "kernels", "h");
	e.vector = prelude_of(t)->header ? file_name(&e, "vector", "h") : NULL;
	uint32_t nunits = o->nunits ? o->nunits : 1;
	if (nunits > p->fn.n)
		nunits = p->fn.n;
	double *load = ARENA_ARRAY(p->ir->ctx->arena, double, nunits);
	const uint32_t *unit = nunits ? kernel_units(p, nunits, load) : NULL;
	emit_header(&e);
	if (e.vector)
		emit_vector(&e);
	emit_model(&e);
	for (uint32_t k = 0; k < nunits; k++)
		emit_unit(&e, unit, k, load[k]);
}

void emit_c_function(const LoopFn *f, const Target *target, const char *name, Text *out)
{
	CUnit u;
	unit_init(&u, f->ir->ctx, target, &c_dialect);
	c_function(&u, f, name, FN_KERNEL, NULL, NULL, out);
}

void emit_c_select(Arena *arena, const EmitSelect *s, const Target *least, EmitFiles *out)
{
	EmitFile *file = emit_add_file(out, arena, least, "select.c");
	Text *t = &file->text;
	text_add(
		t,
		"/* Which level of the processor family runs here. */\n#include \"runtime.h\"\n\n");
	for (uint32_t k = 0; k < s->n; k++)
		text_printf(t, "const WeftModel *%s(void);\n", s->level_export[k]);
	text_add(t, "\n");
	c_export(t, s->export_name);
	text_add(t, "{\n\tstatic const WeftModel *(*const level[])(void) = {");
	for (uint32_t k = 0; k < s->n; k++)
		text_printf(t, "%s%s", k ? ", " : "", s->level_export[k]);
	text_printf(t, "};\n\treturn weft_rt_select(level, %u);\n}\n", s->n);
}

void c_head_comment(const LoopFn *l, Text *out)
{
	if (!l->comment || !*l->comment)
		return;
	text_add(out, "/* ");
	size_t n = strlen(l->comment);
	while (n && l->comment[n - 1] == '\n')
		n--;
	c_comment(out, arena_strndup(out->arena, l->comment, n), "\n * ");
	text_add(out, " */\n");
}

void emit_c_kernel(LoopFn *f, const Target *t, Text *out)
{
	CUnit u;
	Text body;
	legalise(f, &t->isa);
	unit_init(&u, f->ir->ctx, t, &c_dialect);
	text_init(&body, u.arena);
	const char *name = c_identifier(u.arena, f->name);
	c_function(&u, f, name, FN_KERNEL, NULL, NULL, &body);
	unit_head(&u, out, NULL, NULL);
	text_printf(out,
		    "\ntypedef struct {\n\tvoid *const *buf;\n\tconst int64_t *p;\n\tint64_t "
		    "*failure;\n} WeftFrame;\n\n"
		    "int %s(const WeftFrame *f, int64_t begin, int64_t end);\n\n%s",
		    name, body.data);
}
