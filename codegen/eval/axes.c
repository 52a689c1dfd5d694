/* Axes that are made, merged and renamed. */
#include "codegen/eval/priv.h"

static void merge_positions(Eval *e, uint32_t a, uint32_t b, uint32_t m)
{
	Sym size = sym_max(e->syms, e->axes.extent[b], sym_int(e->syms, 1)),
	    var[2] = {e->axes.var[a], e->axes.var[b]};
	Sym by[2] = {sym_floordiv(e->syms, e->axes.var[m], size),
		     sym_mod(e->syms, e->axes.var[m], size)};
	for (uint32_t i = 0; i < e->k->vvar.n; i++) {
		uint32_t n = e->k->vvar.data[i].nat;
		Sym *at = ARENA_ARRAY(e->arena, Sym, n);
		for (uint32_t k = 0; k < n; k++)
			at[k] = sym_subst(e->syms, e->state.position[i][k], var, by, 2);
		e->state.position[i] = at;
	}
}

/* rest + ca * a + cb * b becomes rest + cb * m. */
static Sym merged_offset(Eval *e, Sym offset, uint32_t a, uint32_t b, Sym m)
{
	Sym coef, rest, unused;
	if (!offset.i)
		return offset;
	if (!sym_linear(e->syms, offset, e->axes.var[a], &unused, &rest) ||
	    !sym_linear(e->syms, rest, e->axes.var[b], &coef, &rest))
		ctx_bug(e->l->ir->ctx, "kernel %s: axes are merged that an access takes apart",
			e->k->name);
	return sym_add(e->syms, rest, sym_mul(e->syms, coef, m));
}

uint32_t eval_add_axis(Eval *e, const char *name, Sym extent)
{
	e->axes.extent[e->axes.n] = extent;
	e->axes.var[e->axes.n] = sym_axis(e->syms, name, extent);
	return e->axes.n++;
}

uint32_t eval_merge_axes(Eval *e, uint32_t a, uint32_t b)
{
	uint32_t m = eval_add_axis(e, "m", sym_mul(e->syms, e->axes.extent[a], e->axes.extent[b]));
	for (uint32_t i = 1; i < e->k->kx.n; i++)
		e->offset[i] = merged_offset(e, e->offset[i], a, b, e->axes.var[m]);
	for (uint32_t i = 0; i < e->k->stage.n; i++)
		e->store[i] = merged_offset(e, e->store[i], a, b, e->axes.var[m]);
	merge_positions(e, a, b, m);
	e->axes.var[a] = e->axes.var[b] = (Sym){0};
	if (e->axes.outer >> a & 1)
		e->axes.outer = (e->axes.outer & ~(UINT64_C(1) << a) & ~(UINT64_C(1) << b)) |
				UINT64_C(1) << m;
	eval_find_deps(e);
	return m;
}

static Sym renamed(const Eval *e, Sym sym, uint32_t from, uint32_t to)
{
	return sym.i ? sym_subst(e->syms, sym, &e->axes.var[from], &e->axes.var[to], 1) : sym;
}

static const Sym *renamed_all(const Eval *e, const Sym *sym, uint32_t n, uint32_t from, uint32_t to)
{
	Sym *out = ARENA_ARRAY(e->arena, Sym, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = renamed(e, sym[i], from, to);
	return out;
}

void eval_rename_axis(Eval *e, uint32_t from, uint32_t to)
{
	Kernel *k = e->k;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		e->offset[i] = renamed(e, e->offset[i], from, to);
		k->kx.data[i].idx = renamed_all(e, k->kx.data[i].idx, k->kx.data[i].nidx, from, to);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		e->state.position[i] =
			renamed_all(e, e->state.position[i], k->vvar.data[i].nat, from, to);
	for (uint32_t i = 0; i < k->stage.n; i++)
		e->store[i] = renamed(e, e->store[i], from, to);
	e->axes.var[from] = (Sym){0};
}
