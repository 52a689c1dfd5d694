/* Expressions of loop IR as C: values, addresses, loads. */
#include "codegen/print/c/fn.h"

/* ---- expressions ---- */

static CExpr c_leaf(Fn *f, const LxData *d)
{
	switch (d->kind) {
	case LX_INT: return c_int(f->u, d->type, d->u.i);
	case LX_FLOAT: return c_float(f->u, d->type, d->u.f);
	case LX_PARAM:
		f->used.param[d->u.k] = true;
		return c_atom(f->param[d->u.k]);
	default: return c_atom(f->var[d->u.v.i]);
	}
}

static CExpr c_addr(Fn *f, const LxData *d, CExpr bytes)
{
	int64_t offset;
	f->used.bufs = true;
	CExpr base = {arena_printf(f->u->arena, "(char *)buf[%u]", d->u.k), PREC_UNARY};
	bool at_start = lx_is_int(f->f, d->in[0], &offset) && offset == 0;
	return at_start ? base : c_infix(f->u, base, "+", bytes, PREC_ADD);
}

static CExpr c_pack(CUnit *u, LType type, const CExpr *in)
{
	return c_call(u, c_pack_function(u, type), in, type.lanes);
}

CExpr c_lx(Fn *f, Lx x)
{
	static const char *const shuffle[SHUFFLE_COUNT] = {
		"lo",         "hi",        "reverse", "even",  "evens",  "odds",
		"turn_evens", "turn_odds", "lows",    "highs", "zip_lo", "zip_hi"};
	CUnit *u = f->u;
	const LxData *d = lx_at(f, x);
	CExpr in[4] = {{0}};
	for (uint32_t k = 0; k < d->nin; k++)
		in[k] = c_lx(f, d->in[k]);
	LType from = d->nin ? lx_at(f, d->in[0])->type : d->type;
	LType mask = {DT_bool, d->type.lanes};
	if (f->narrow && narrow_needs_cast(f->narrow, x))
		in[0] = (CExpr){arena_printf(u->arena, "(int64_t)%s", c_arg(u, in[0], PREC_UNARY)),
				PREC_UNARY};
	switch (d->kind) {
	case LX_SC:
		return c_op(u, d->sc, d->type, from, in, d->nin, d->known);
	case LX_FN:
		return c_call(u, c_library(u, f->f->ir, d->fn, d->type.lanes), in, d->nin);
	case LX_TABLE:
		return c_look_up(u, d->table, d->type.lanes, in[0]);
	case LX_SPLAT:
		return c_call(u, c_helper(u, "splat", d->type, d->type), in, 1);
	case LX_RAMP:
		return c_call(u, c_helper(u, "ramp", d->type, d->type), in, 2);
	case LX_MASK:
		return c_call(u, c_helper(u, "mask", mask, mask), in, 1);
	case LX_ANY:
		return c_call(u, c_helper(u, "any", from, from), in, 1);
	case LX_SHUFFLE:
		return c_call(u, c_helper(u, shuffle[d->u.k], from, from), in,
			      1 + shuffle_is_of_two((Shuffle)d->u.k));
	case LX_ADDR:
		return c_addr(f, d, in[0]);
	case LX_LANE:
		return c_atom(
			arena_printf(u->arena, "%s.at[%u]", c_arg(u, in[0], PREC_ATOM), d->u.k));
	case LX_PACK:
		return c_pack(u, d->type, in);
	case LX_THREAD:
		return c_atom(u->dialect->block->thread);
	case LX_WARP:
		return c_call(u, u->dialect->block->warp[d->u.k], in, d->nin);
	default:
		return c_leaf(f, d);
	}
}

/* ---- memory ---- */

const char *c_array(Fn *f, LMem m, bool write)
{
	Arena *arena = f->u->arena;
	const char *type = c_storage(m.dtype);
	if (lmem_is_array(m)) {
		DType declared = f->f->lv.data[m.k].type.dtype;
		const char *name = f->var[m.k];
		bool same = dtype_raw(declared) == dtype_raw(m.dtype);
		return same ? name : arena_printf(arena, "((%s *)%s)", type, name);
	}
	f->used.bufs = true;
	if (f->role != FN_KERNEL)
		return arena_printf(arena, "((%s%s *)buf[%u])", write ? "" : "const ", type, m.k);
	f->used.buf[m.k] = true;
	if (dtype_raw(f->f->buf.data[m.k].dtype) == dtype_raw(m.dtype))
		return f->buf[m.k];
	return arena_printf(arena, "((%s%s *)%s)", write ? "" : "const ", type, f->buf[m.k]);
}

CExpr c_pointer(Fn *f, LMem m, Lx offset, bool write)
{
	CExpr base = c_atom(c_array(f, m, write));
	int64_t c;
	if (lx_is_int(f->f, offset, &c) && c == 0)
		return base;
	return c_infix(f->u, base, "+", c_lx(f, offset), PREC_ADD);
}

CExpr c_element(Fn *f, const LsData *s, bool write)
{
	return c_atom(arena_printf(f->u->arena, "%s[%s]", c_array(f, s->mem, write),
				   text_of(f, s->offset)));
}

CExpr c_load(Fn *f, const LsData *s)
{
	CUnit *u = f->u;
	LType type = f->f->lv.data[s->v.i].type;
	bool gather = s->kind == LS_GATHER, masked = s->mask.i != 0;
	const bool groups = s->kind == LS_LOAD && ls_group(s->mem, type) > 1;
	if (type.lanes == 1 && !groups)
		return c_element(f, s, false);
	if (u->dialect->block)
		return c_atom(arena_printf(u->arena, "*(const %s *)(%s)", c_type(u, type),
					   c_pointer(f, s->mem, s->offset, false).s));
	CExpr in[3];
	uint32_t n = 0;
	in[n++] = c_pointer(f, s->mem, s->offset, false);
	if (groups)
		in[0] = c_atom(arena_printf(u->arena, "(const uint32_t *)(%s)", in[0].s));
	if (gather)
		in[n++] = c_lx(f, s->x);
	if (masked)
		in[n++] = c_lx(f, s->mask);
	const char *op = gather   ? masked ? "gather_masked" : "gather"
			 : masked ? "load_masked"
				  : "load";
	return c_call(u, c_helper(u, op, type, gather ? lx_at(f, s->x)->type : type), in, n);
}
