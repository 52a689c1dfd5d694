#include "codegen/c/emit.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/c/emit_priv.h"

/* ---- cost ---- */

static double block_cost(const LoopFn *f, Lb b)
{
	double cost = 0;
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->ls.data[f->block.data[b.i].stmt.data[k]];
		cost += 1 + block_cost(f, s->body) + block_cost(f, s->other);
	}
	return cost;
}

double loop_cost(const LoopFn *f)
{
	double cost = 20 + block_cost(f, f->body);
	for (uint32_t k = 1; k < f->lx.n; k++)
		if (f->lx.data[k].kind == LX_FN)
			cost += 0.5 * f->lx.data[k].fn->cost;
	return cost;
}

/* ---- grouping ---- */

typedef struct {
	double cost;
	uint32_t fn;
} Weight;

static int heavier(const void *a, const void *b)
{
	const Weight *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->fn < y->fn ? -1 : 1;
}

/* Heaviest kernels first, each to the lightest unit so far. Returns the unit of every kernel. */
static uint32_t *balance(const Program *p, uint32_t nunits, double *load)
{
	Arena *arena = p->ir->ctx->arena;
	uint32_t *unit = ARENA_ARRAY(arena, uint32_t, p->fn.n);
	Weight *w = ARENA_ARRAY(arena, Weight, p->fn.n);
	for (uint32_t k = 0; k < p->fn.n; k++)
		w[k] = (Weight){loop_cost(p->fn.data[k]), k};
	qsort(w, p->fn.n, sizeof *w, heavier);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		uint32_t best = 0;
		for (uint32_t j = 1; j < nunits; j++)
			if (load[j] < load[best])
				best = j;
		unit[w[k].fn] = best;
		load[best] += w[k].cost;
	}
	return unit;
}

/* ---- files ---- */

static EmitFile *add_file(EmitFiles *out, Arena *arena, const char *name)
{
	EmitFile file = {.name = name};
	text_init(&file.text, arena);
	array_push(arena, &out->file, file);
	return &out->file.data[out->file.n - 1];
}

static const char *const *name_kernels(const Program *p)
{
	Arena *arena = p->ir->ctx->arena;
	const char **name = ARENA_ARRAY(arena, const char *, p->fn.n);
	Names names;
	names_init(&names, arena);
	for (uint32_t k = 0; k < p->fn.n; k++)
		name[k] = names_add(&names, arena_printf(arena, "k_%s", p->fn.data[k]->name));
	return name;
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
	const char *const *name = name_kernels(p);
	uint32_t nunits = o->nunits ? o->nunits : 1;
	if (nunits > p->fn.n)
		nunits = p->fn.n;
	double *load = ARENA_ARRAY(arena, double, nunits);
	const uint32_t *unit = nunits ? balance(p, nunits, load) : NULL;
	emit_header(p, name, add_file(out, arena, "kernels.h"));
	if (t->vector_bytes) {
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
