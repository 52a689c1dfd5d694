/* Fragments of instruction sets that have them, and what stands for them elsewhere: local arrays of
 * groups (u32) and of sums, and loops over rows, vectors of columns and groups. */
#include "codegen/legal/legal_priv.h"

typedef struct {
	LoopFn *f;
	const Isa *isa;
	ARRAY(LsData) frag; /* the declarations */
	ARRAY(LMem) array;  /* what stands for each */
} Expand;

static Arena *arena_of(const LoopFn *f)
{
	return f->ir->ctx->arena;
}

static Lx sum3(LoopFn *f, Lx a, Lx b, Lx c)
{
	return lx_add(f, lx_add(f, a, b), c);
}

/* ---- arrays for fragments ---- */

/* Returns the position of a fragment's declaration among all. */
static uint32_t declaration(const Expand *x, LFrag r)
{
	uint32_t k = 0;
	while (k + 1 < x->frag.n && x->frag.data[k].v.i != r.of.i)
		k++;
	return k;
}

static const LsData *shape_of(const Expand *x, LFrag r)
{
	return &x->frag.data[declaration(x, r)];
}

/* Sums lie as themselves; of operands the array is seen as elements, or as groups. */
static LMem array_as(const Expand *x, LFrag r, DType d)
{
	LMem m = x->array.data[declaration(x, r)];
	m.dtype = d;
	return m;
}

/* Returns the index of the fragment's first element in its array, if elements have `size` bytes. */
static Lx first_of(const Expand *x, LFrag r, uint32_t size)
{
	const LsData *d = shape_of(x, r);
	return lx_int(x->f, (int64_t)r.k * d->rows * d->cols * dtype_size(d->dtype) / size);
}

static void declare(Expand *x, const LsData *s)
{
	const bool sums = dtype_size(s->dtype) == 4;
	const uint64_t bytes = s->count * s->rows * s->cols * dtype_size(s->dtype);
	array_push(arena_of(x->f), &x->frag, *s);
	LMem array =
		ls_local(x->f, x->f->lv.data[s->v.i].name, sums ? s->dtype : DT_u32, bytes / 4);
	array_push(arena_of(x->f), &x->array, array);
}

/* ---- vectors of columns ---- */

/* Opens a loop over n elements in vectors of `lanes`, or, in a second round, over what is left one
 * by one. Returns false if there is nothing left. */
static bool open_columns(LoopFn *f, uint32_t n, uint32_t lanes, bool rest, Lx *at)
{
	const uint32_t whole = n / lanes * lanes;
	if (rest ? lanes == 1 || whole == n : !whole)
		return false;
	*at = lx_var(f, ls_for(f, "n", lx_int(f, rest ? whole : 0), lx_int(f, rest ? n : whole),
			       rest ? 1 : lanes));
	return true;
}

static uint32_t lanes_of(const Isa *isa)
{
	return isa->vector_bytes ? isa->vector_bytes / 4 : 1;
}

/* Expands an LS_FRAG_LOAD or LS_FRAG_STORE: copies rows between memory and the fragment's array,
 * element by element as they lie. */
static void move_rows(Expand *x, const LsData *s)
{
	LoopFn *f = x->f;
	const LsData *d = shape_of(x, s->frag[0]);
	const DType raw = dtype_raw(d->dtype);
	const Lx none = {0}, cols = lx_int(f, d->cols);
	LMem array = array_as(x, s->frag[0], raw), mem = s->mem;
	mem.dtype = raw;
	Lx m = lx_var(f, ls_for(f, "m", lx_int(f, 0), lx_int(f, d->rows), 1)), n;
	for (uint32_t rest = 0; rest < 2; rest++) {
		const uint32_t lanes = rest ? 1 : lanes_of(x->isa);
		if (!open_columns(f, d->cols, lanes_of(x->isa), rest, &n))
			continue;
		Lx inside =
			sum3(f, first_of(x, s->frag[0], dtype_size(raw)), lx_mul(f, m, cols), n);
		Lx outside = sum3(f, s->offset, lx_mul(f, m, s->y), n);
		const bool load = s->kind == LS_FRAG_LOAD;
		Lv v = ls_load(f, "row", load ? mem : array, load ? outside : inside,
			       (LType){raw, lanes}, none);
		ls_store(f, load ? array : mem, load ? inside : outside, lx_var(f, v), none);
		ls_end(f);
	}
	ls_end(f);
}

static void zero(Expand *x, LFrag r)
{
	LoopFn *f = x->f;
	const LsData *d = shape_of(x, r);
	const bool sums = dtype_size(d->dtype) == 4;
	const LType type = {sums ? d->dtype : DT_u32, 1};
	Lx first = first_of(x, r, 4),
	   words = lx_int(f, (int64_t)d->rows * d->cols * dtype_size(d->dtype) / 4);
	Lx n = lx_var(f, ls_for(f, "n", lx_int(f, 0), words, 1));
	ls_store(f, array_as(x, r, type.dtype), lx_add(f, first, n),
		 type.dtype == DT_f32 ? lx_float(f, type, 0) : lx_int_of(f, type, 0), (Lx){0});
	ls_end(f);
}

/* ---- operations ---- */

static Lx op2(LoopFn *f, ScOp op, Lx a, Lx b)
{
	return lx_sc(f, op, lx_type(f, a), (Lx[]){a, b}, 2);
}

static Lx call(LoopFn *f, const char *name, const Lx *in, uint32_t nin)
{
	return lx_fn(f, scalar_lib(name, DT_f32), lx_type(f, in[0]).lanes, in, nin);
}

static Lx flush(LoopFn *f, Lx x)
{
	return call(f, "flush", &x, 1);
}

/* Returns the bf16 of step k, 0 or 1, in each group, as an f32. */
static Lx bf16_of(LoopFn *f, Lx group, uint32_t k)
{
	const LType u32 = lx_type(f, group), f32 = {DT_f32, u32.lanes};
	Lx bits = k ? op2(f, SC_and, group, lx_int_of(f, u32, 0xffff0000))
		    : op2(f, SC_shl, group, lx_int_of(f, u32, 16));
	return flush(f, lx_sc(f, SC_bitcast, f32, &bits, 1));
}

static Lx int8_of(LoopFn *f, Lx group, uint32_t k, bool has_sign)
{
	const LType u32 = lx_type(f, group), i32 = {DT_i32, u32.lanes};
	Lx top = op2(f, SC_shl, group, lx_int_of(f, u32, 24 - 8 * (int64_t)k));
	if (has_sign)
		return op2(f, SC_shr, lx_sc(f, SC_bitcast, i32, &top, 1), lx_int_of(f, i32, 24));
	top = op2(f, SC_shr, top, lx_int_of(f, u32, 24));
	return lx_sc(f, SC_bitcast, i32, &top, 1);
}

static Lx int8_products(LoopFn *f, FragOp op, Lx sum, Lx a, Lx b)
{
	for (uint32_t k = 0; k < 4; k++) {
		Lx x = int8_of(f, a, k, frag_row(op)->a == DT_i8),
		   y = int8_of(f, b, k, frag_row(op)->b == DT_i8);
		sum = lx_add(f, sum, lx_mul(f, lx_splat(f, x, lx_type(f, y).lanes), y));
	}
	return sum;
}

/* Adds the products of row m of a and `lanes` columns of b from n on to the sums of the result. */
static void dot_columns(Expand *x, const LsData *s, Lx m, Lx n, uint32_t lanes)
{
	LoopFn *f = x->f;
	const FragOp op = (FragOp)s->k;
	const FragRow *r = frag_row(op);
	const LsData *c = shape_of(x, s->frag[0]), *a = shape_of(x, s->frag[1]);
	const uint32_t groups = a->cols / r->group, nsum = op == FRAG_TILE_BF16 ? 2 : 1;
	const LType type = {r->acc, lanes};
	const Lx none = {0};
	LMem sums = array_as(x, s->frag[0], r->acc);
	Lx at = sum3(f, first_of(x, s->frag[0], 4), lx_mul(f, m, lx_int(f, c->cols)), n);
	Lx before = lx_var(f, ls_load(f, "c", sums, at, type, none));
	Lv sum[2];
	for (uint32_t k = 0; k < nsum; k++)
		sum[k] = ls_var(f, "sum", r->acc == DT_f32 ? lx_float(f, type, 0) : before);
	Lx g = lx_var(f, ls_for(f, "g", lx_int(f, 0), lx_int(f, groups), 1));
	Lx at_a = sum3(f, first_of(x, s->frag[1], 4), lx_mul(f, m, lx_int(f, groups)), g);
	Lx at_b = sum3(f, first_of(x, s->frag[2], 4), lx_mul(f, g, lx_int(f, c->cols)), n);
	Lx of_a = lx_var(f, ls_load(f, "a", array_as(x, s->frag[1], DT_u32), at_a,
				    (LType){DT_u32, 1}, none));
	Lx of_b = lx_var(f, ls_load(f, "b", array_as(x, s->frag[2], DT_u32), at_b,
				    (LType){DT_u32, lanes}, none));
	for (uint32_t k = 0; k < nsum; k++) {
		Lx old = lx_var(f, sum[k]);
		Lx in[3] = {lx_splat(f, bf16_of(f, of_a, k), lanes), bf16_of(f, of_b, k), old};
		ls_set(f, sum[k],
		       nsum == 2 ? call(f, "flush_fma", in, 3)
				 : int8_products(f, op, old, of_a, of_b));
	}
	ls_end(f);
	Lx after = lx_var(f, sum[0]);
	if (nsum == 2)
		after = flush(f, lx_add(f, flush(f, before),
					flush(f, lx_add(f, after, lx_var(f, sum[1])))));
	ls_store(f, sums, at, after, none);
}

static void dot(Expand *x, const LsData *s)
{
	LoopFn *f = x->f;
	const LsData *c = shape_of(x, s->frag[0]);
	Lx m = lx_var(f, ls_for(f, "m", lx_int(f, 0), lx_int(f, c->rows), 1)), n;
	for (uint32_t rest = 0; rest < 2; rest++) {
		if (!open_columns(f, c->cols, lanes_of(x->isa), rest, &n))
			continue;
		dot_columns(x, s, m, n, rest ? 1 : lanes_of(x->isa));
		ls_end(f);
	}
	ls_end(f);
}

/* ---- functions ---- */

static void expand_block(Expand *x, Lb b);

static void expand_stmt(Expand *x, uint32_t at)
{
	const LsData s = x->f->ls.data[at];
	switch (s.kind) {
	case LS_FRAG: declare(x, &s); return;
	case LS_FRAG_ZERO: zero(x, s.frag[0]); return;
	case LS_FRAG_LOAD: case LS_FRAG_STORE: move_rows(x, &s); return;
	case LS_FRAG_DOT: dot(x, &s); return;
	default: break;
	}
	const Lb open = x->f->open.data[x->f->open.n - 1];
	array_push(arena_of(x->f), &x->f->block.data[open.i].stmt, at);
	expand_block(x, s.body);
	expand_block(x, s.other);
}

/* Rewrites a block without statements on fragments. The block is open meanwhile, so that builders
 * add to it. */
static void expand_block(Expand *x, Lb b)
{
	LoopFn *f = x->f;
	if (!b.i)
		return;
	struct LBlock *block = &f->block.data[b.i];
	const uint32_t *at = block->stmt.data, n = block->stmt.n;
	block->stmt.data = NULL;
	block->stmt.n = block->stmt.cap = 0;
	array_push(arena_of(f), &f->open, b);
	for (uint32_t k = 0; k < n; k++)
		expand_stmt(x, at[k]);
	f->open.n--;
}

static bool has_all(const LoopFn *f, const Isa *isa)
{
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (f->ls.data[k].kind == LS_FRAG_DOT &&
		    !isa_has_frag(isa, (FragOp)f->ls.data[k].k))
			return false;
	for (FragOp op = 0; op < FRAG_OPS; op++) /* without operations: any instruction set with
	                                            fragments */
		if (isa_has_frag(isa, op))
			return true;
	return false;
}

static bool is_configured(const LoopFn *f)
{
	const struct LBlock *b = &f->block.data[f->enter.i];
	for (uint32_t k = 0; f->enter.i && k < b->stmt.n; k++)
		if (f->ls.data[b->stmt.data[k]].kind == LS_FRAG_CONFIG)
			return true;
	return false;
}

static void put_last(LoopFn *f, LsKind kind, Lb b)
{
	array_push(arena_of(f), &f->ls, (LsData){.kind = kind});
	array_push(arena_of(f), &f->block.data[b.i].stmt, f->ls.n - 1);
}

void legalise_frags(LoopFn *f, const Isa *isa)
{
	Expand x = {.f = f, .isa = isa};
	if (!loop_has_frags(f) || is_configured(f))
		return;
	if (!has_all(f, isa)) {
		for (uint32_t k = 0; k < LOOP_TOPS; k++)
			expand_block(&x, loop_top(f, k));
		return;
	}
	const uint32_t open = f->open.n;
	loop_leave(f);
	f->open.n = open;
	put_last(f, LS_FRAG_CONFIG, f->enter);
	put_last(f, LS_FRAG_RELEASE, f->leave);
}
