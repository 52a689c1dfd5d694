/* The rewriting of statements and expressions; library.c has operations and functions. */
#include "codegen/legal/legalise.h"

#include <string.h>

#include "codegen/legal/launches.h"
#include "codegen/legal/legal_priv.h"

typedef ARRAY(uint32_t) StmtList;

typedef struct {
	Library lib;
	const ProgramEntry *entry; /* NULL: of a kernel */
	LoopFn *f;
	Arena *arena;
	LoopIndex index;       /* of the function as it was */
	const bool *is_mutable; /* by old expression */
	uint32_t nold, nvar;
	Lx *legal;             /* by old expression; none: not asked yet */
	Lx *packed; /* by old variable: the lanes of a loaded value that was converted; in blocks
	               of threads */
	LoopShared shared;
	Lx *name;              /* by expression of this statement: the variable that has its value,
	                          or what it became */
	uint32_t nname;
	ARRAY(Lx) named;       /* what is in name */
	StmtList *out;
	bool streams;          /* so far, past the caches */
} Legal;

/* ---- expressions ---- */

static Lx legal_expr(Legal *g, Lx x);

/* Reduces the lanes of a vector to one: lane k with lane k + half, then the halves again. Masks are
 * reduced by lx_any where that does, else as bytes. */
static Lx reduce(Legal *g, ScOp op, Lx x)
{
	LoopFn *f = g->f;
	LType t = lx_type(f, x);
	if (t.dtype == DT_bool && op == SC_or)
		return lx_any(f, x);
	if (t.dtype == DT_bool && op == SC_and) {
		Lx none = lx_any(f, lx_op(f, SC_not, t, &x, 1, 0));
		return lx_op(f, SC_not, (LType){DT_bool, 1}, &none, 1, 0);
	}
	if (t.dtype == DT_bool) {
		LType bytes = {DT_u8, t.lanes}, byte = {DT_u8, 1};
		Lx odd[2] = {reduce(g, op, lx_op(f, SC_convert, bytes, &x, 1, 0)),
			     lx_int_of(f, byte, 0)};
		return lx_op(f, SC_ne, (LType){DT_bool, 1}, odd, 2, 0);
	}
	for (t.lanes /= 2; t.lanes; t.lanes /= 2) {
		Lx half[2] = {lx_shuffle(f, SHUFFLE_LOW, x, x), lx_shuffle(f, SHUFFLE_HIGH, x, x)};
		x = library_op(&g->lib, op, t, half, 2, 0);
	}
	return x;
}

/* Returns n, at least 0 and at most the number of lanes. */
static Lx lane_count(Legal *g, Lx n, uint32_t lanes)
{
	const LType i64 = {DT_i64, 1};
	int64_t c;
	if (lx_is_int(g->f, n, &c))
		return lx_int(g->f, c < 0 ? 0 : c > lanes ? lanes : c);
	n = library_op(&g->lib, SC_min, i64, (Lx[]){n, lx_int(g->f, lanes)}, 2, KNOWN_INDEX);
	return lx_nonneg(g->f, n) ? n
				  : library_op(&g->lib, SC_max, i64, (Lx[]){n, lx_int(g->f, 0)}, 2,
					       KNOWN_INDEX);
}

/* Returns the converted lanes of a loaded vector in a kernel for blocks of threads, else the
 * vector. A thread loads several elements in one access, and converts them one by one. */
static Lx lanes_of(const Legal *g, Lx vector)
{
	const LxData *d = &g->f->lx.data[vector.i];
	return d->kind == LX_VAR && d->u.v.i < g->nvar && g->packed[d->u.v.i].i
		       ? g->packed[d->u.v.i]
		       : vector;
}

static Lx legal_kind(Legal *g, Lx x, const Lx *in)
{
	const LxData d = g->f->lx.data[x.i];
	switch (d.kind) {
	case LX_SC:
		return library_op(&g->lib, d.sc, d.type, in, d.nin,
				  d.known | loop_known(&g->index, x));
	case LX_FN:
		return library_call(&g->lib, d.fn, d.type.lanes, in, d.nin);
	case LX_HREDUCE:
		return reduce(g, d.sc, in[0]);
	case LX_LANE:
		return lx_lane(g->f, lanes_of(g, in[0]), d.u.k);
	case LX_MASK:
		return lx_mask(g->f, lane_count(g, in[0], d.type.lanes), d.type.lanes);
	default:
		return lx_with(g->f, x, in);
	}
}

static Lx legal_expr(Legal *g, Lx x)
{
	if (!x.i || g->legal[x.i].i)
		return g->legal[x.i];
	const LxData d = g->f->lx.data[x.i];
	Lx in[4] = {{0}};
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = legal_expr(g, d.in[k]);
	return g->legal[x.i] = d.nin ? legal_kind(g, x, in) : x;
}

/* ---- statements ---- */

static void put(Legal *g, LsData s)
{
	array_push(g->arena, &g->f->ls, s);
	array_push(g->arena, g->out, g->f->ls.n - 1);
}

static Lx let(Legal *g, const char *name, Lx x)
{
	array_push(g->arena, &g->f->lv,
		   (LvData){.type = lx_type(g->f, x), .name = name, .nonneg = lx_nonneg(g->f, x)});
	Lv v = {g->f->lv.n - 1};
	put(g, (LsData){.kind = LS_LET, .v = v, .x = x});
	return lx_var(g->f, v);
}

static Lx legal_of(void *legal, Lx x)
{
	return legal_expr(legal, x);
}

/* ---- shared subexpressions ---- */

static bool is_named(const Legal *g, Lx x)
{
	Lx to = g->name[x.i];
	return to.i && to.i != x.i && g->f->lx.data[to.i].kind == LX_VAR;
}

static uint32_t tree_size(const Legal *g, Lx x, uint32_t limit)
{
	const LxData *d = &g->f->lx.data[x.i];
	uint32_t n = 1;
	for (uint32_t k = 0; k < d->nin && n < limit; k++)
		n += is_named(g, d->in[k]) ? 1 : tree_size(g, d->in[k], limit - n);
	return n;
}

/* Whether a shared subexpression is computed once and gets a name. Short index arithmetic is
 * repeated instead. */
static bool worth_naming(const Legal *g, Lx x)
{
	const LxData *d = &g->f->lx.data[x.i];
	if (d->kind == LX_ADDR || (d->kind == LX_SPLAT && !g->f->lx.data[d->in[0].i].nin))
		return false;
	return d->type.lanes > 1 || d->type.dtype != DT_i64 || tree_size(g, x, 6) > 4;
}

static void set_name(Legal *g, Lx x, Lx to)
{
	g->name[x.i] = to;
	array_push(g->arena, &g->named, x);
}

/* Returns x with the variables of named subexpressions in their place. */
static Lx by_name(Legal *g, Lx x)
{
	if (!x.i || g->name[x.i].i)
		return g->name[x.i];
	const LxData d = g->f->lx.data[x.i];
	Lx in[4] = {{0}};
	bool same = true;
	for (uint32_t k = 0; k < d.nin; k++) {
		in[k] = by_name(g, d.in[k]);
		same = same && in[k].i == d.in[k].i;
	}
	Lx to = same ? x : lx_with(g->f, x, in);
	set_name(g, x, to);
	return to;
}

static Lx named_of(void *legal, Lx x)
{
	return by_name(legal, x);
}

static void name_shared(Legal *g, LsData *s)
{
	uint32_t n = g->f->lx.n;
	if (g->nname < n) {
		g->nname = 2 * n;
		g->name = ARENA_ARRAY(g->arena, Lx, g->nname);
	}
	loop_shared(g->f, s, &g->shared);
	uint32_t names = 0;
	for (uint32_t k = 0; k < g->shared.x.n; k++) {
		Lx x = g->shared.x.data[k];
		if (!worth_naming(g, x))
			continue;
		Lx value = by_name(g, x); /* remembered as what x became: the name comes in its
		                             place */
		g->name[x.i] = let(g, "t", value);
		names++;
	}
	if (names)
		ls_map(g->f, s, named_of, g);
	while (g->named.n)
		g->name[g->named.data[--g->named.n].i] = (Lx){0};
}

/* ---- memory ---- */

/* Returns the offset of the element that a gather or scatter of one lane accesses: the index is
 * part of it. */
static Lx element_offset(Legal *g, Lx offset, Lx index)
{
	LoopFn *f = g->f;
	LType i64 = {DT_i64, 1};
	int64_t zero;
	if (lx_type(f, index).dtype != DT_i64)
		index = lx_op(f, SC_convert, i64, &index, 1, 0);
	if (lx_is_int(f, offset, &zero) && zero == 0)
		return index;
	return lx_op(f, SC_add, i64, (Lx[]){offset, index}, 2, KNOWN_INDEX);
}

static Lx further(Legal *g, Lx offset, int64_t by)
{
	int64_t c;
	if (lx_is_int(g->f, offset, &c))
		return lx_int(g->f, c + by);
	return lx_op(g->f, SC_add, (LType){DT_i64, 1}, (Lx[]){offset, lx_int(g->f, by)}, 2,
		     KNOWN_INDEX);
}

static Lb block_of(Legal *g, StmtList list)
{
	array_push(g->arena, &g->f->block, (struct LBlock){{list.data, list.n, list.cap}});
	return (Lb){g->f->block.n - 1};
}

static Lv new_variable(Legal *g, const char *name, LType type)
{
	array_push(g->arena, &g->f->lv, (LvData){.type = type, .name = name});
	return (Lv){g->f->lv.n - 1};
}

/* Adds a load or store of one element inside a branch on its mask. Where the mask does not hold, a
 * load gives 0. */
static void put_one(Legal *g, LsData s)
{
	StmtList *outer = g->out, body = {0};
	Lx where = s.mask;
	Lv to = s.v;
	s.mask = (Lx){0};
	if (s.kind == LS_LOAD) {
		LvData *v = &g->f->lv.data[to.i];
		LType t = v->type;
		v->is_mutable = true;
		s.v = new_variable(g, v->name, t);
		put(g, (LsData){.kind = LS_VAR,
				.v = to,
				.x = dtype_is_float(t.dtype) ? lx_float(g->f, t, 0)
							     : lx_int_of(g->f, t, 0)});
	}
	g->out = &body;
	put(g, s);
	if (s.kind == LS_LOAD)
		put(g, (LsData){.kind = LS_SET, .v = to, .x = lx_var(g->f, s.v)});
	g->out = outer;
	put(g, (LsData){.kind = LS_IF, .x = where, .body = block_of(g, body)});
}

static void put_access(Legal *g, LsData s, LType type)
{
	if (type.lanes == 1 && s.mask.i)
		put_one(g, s);
	else
		put(g, s);
}

/* Adds a load of the bits in memory, and returns them as a new variable. */
static Lx raw_load(Legal *g, LsData s, LType type)
{
	s.v = new_variable(g, g->f->lv.data[s.v.i].name, type);
	put_access(g, s, type);
	return lx_var(g->f, s.v);
}

/* Adds the loads and the shuffle for elements with a stride of -1 or 2. Stride 2 takes every second
 * element of two vectors. The second vector begins one element early, so that nothing beyond the
 * last element is touched. */
static Lx strided_load(Legal *g, LsData s, LType type, int stride)
{
	Lx at = s.offset;
	s.kind = LS_LOAD;
	s.x = (Lx){0};
	if (stride < 0) {
		s.offset = further(g, at, 1 - (int64_t)type.lanes);
		Lx a = raw_load(g, s, type);
		return lx_shuffle(g->f, SHUFFLE_REVERSE, a, a);
	}
	s.drops = DROPS_ODD;
	Lx a = raw_load(g, s, type);
	s.drops = DROPS_EVEN;
	s.offset = further(g, at, (int64_t)type.lanes - 1);
	return lx_shuffle(g->f, SHUFFLE_EVEN, a, raw_load(g, s, type));
}

static Lx unpack_lanes(Legal *g, DType storage, Lx x, uint32_t lanes)
{
	Lx lane[4];
	for (uint32_t k = 0; k < lanes; k++)
		lane[k] = let(g, "x", library_unpack(&g->lib, storage, lx_lane(g->f, x, k)));
	return lx_pack(g->f, lane, lanes);
}

static Lx packed_for_memory(Legal *g, DType storage, Lx x)
{
	const LxData d = g->f->lx.data[x.i];
	Lx lane[4];
	if (d.kind != LX_PACK)
		return library_pack(&g->lib, storage, x);
	for (uint32_t k = 0; k < d.nin; k++)
		lane[k] = library_pack(&g->lib, storage, d.in[k]);
	return lx_pack(g->f, lane, d.nin);
}

static void legal_load(Legal *g, LsData s)
{
	LType type = g->f->lv.data[s.v.i].type;
	DType storage = s.mem.dtype;
	LType raw = {dtype_raw(storage), type.lanes};
	int stride = ls_stride(g->f, &s);
	s.mem.dtype = raw.dtype;
	if (s.kind == LS_LOAD && ls_group(s.mem, type) > 1) {
		put_access(g, s, type);
		return;
	}
	if (s.kind == LS_GATHER && type.lanes == 1) {
		s.kind = LS_LOAD;
		s.offset = element_offset(g, s.offset, s.x);
		s.x = (Lx){0};
	}
	if (s.kind == LS_GATHER)
		s.k = !s.mask.i && !isa_has(g->lib.isa, ISA_GATHER);
	if (!stride && raw.dtype == type.dtype) {
		put_access(g, s, type);
		return;
	}
	Lx x = stride ? strided_load(g, s, raw, stride) : raw_load(g, s, raw);
	if (type.lanes > 1 && g->lib.isa->of_block)
		g->packed[s.v.i] = unpack_lanes(g, storage, x, type.lanes);
	else
		put(g,
		    (LsData){.kind = LS_LET, .v = s.v, .x = library_unpack(&g->lib, storage, x)});
}

static void legal_store(Legal *g, LsData s)
{
	DType storage = s.mem.dtype;
	s.mem.dtype = dtype_raw(storage);
	s.x = packed_for_memory(g, storage, s.x);
	if (s.kind == LS_SCATTER && lx_type(g->f, s.x).lanes == 1) {
		s.kind = LS_STORE;
		s.offset = element_offset(g, s.offset, s.y);
		s.y = (Lx){0};
	}
	if (s.kind == LS_STREAM && !isa_streams(g->lib.isa, lx_type(g->f, s.x)))
		s.kind = LS_STORE;
	g->streams = g->streams || s.kind == LS_STREAM;
	put_access(g, s, lx_type(g->f, s.x));
}

/* ---- blocks ---- */

static void legal_block(Legal *g, Lb b);

/* Legalises a statement, as the row of its kind says (LsRow). */
static void legal_stmt(Legal *g, LsData s)
{
	const LsRow *row = ls_row(s.kind);
	Lx old_end = s.y;
	ls_map(g->f, &s, legal_of, g);
	if (!row->anew)
		name_shared(g, &s);
	if (row->mem == MEM_READ) {
		legal_load(g, s);
	} else if (row->mem == MEM_WRITE) {
		legal_store(g, s);
	} else if (row->mem == MEM_READ_ROWS || row->mem == MEM_WRITE_ROWS) {
		s.mem.dtype = dtype_raw(s.mem.dtype);
		put(g, s);
	} else if (row->mem == MEM_COPY) {
		s.mem.dtype = dtype_raw(s.mem.dtype);
		s.from.dtype = dtype_raw(s.from.dtype);
		put(g, s);
	} else if (s.kind == LS_FENCE ? g->streams
				      : row->mem != MEM_HINT || g->lib.isa->vector_bytes) {
		if (row->v == V_LOOP && g->is_mutable[old_end.i]) /* it is evaluated once */
			s.y = let(g, "end", s.y);
		s.rare = g->lib.isa->vector_bytes && ls_is_rare(g->f, &s);
		put(g, s);
		legal_block(g, row->legal ? (Lb){0} : s.body); /* legal from before */
		legal_block(g, s.other);
	}
}

/* Legalises the launches at the beginning of at[], and returns how many they are. Many launches
 * become a table. */
static uint32_t legal_launches(Legal *g, const uint32_t *at, uint32_t n)
{
	uint32_t count = 0;
	while (count < n && g->f->ls.data[at[count]].kind == LS_LAUNCH)
		count++;
	LsData *launch = ARENA_ARRAY(g->arena, LsData, count);
	for (uint32_t k = 0; k < count; k++) {
		launch[k] = g->f->ls.data[at[k]];
		ls_map(g->f, &launch[k], legal_of, g);
		name_shared(g, &launch[k]);
	}
	StmtList *outer = g->out, body = {0};
	const LaunchTable *table = g->entry ? launch_table(g->entry, g->f, launch, count) : NULL;
	g->out = table ? &body : outer;
	for (uint32_t k = 0; k < count; k++)
		put(g, launch[k]);
	g->out = outer;
	if (table)
		put(g, (LsData){.kind = LS_LAUNCHES,
				.launches = table,
				.body = block_of(g, body),
				.arg = table->value.data,
				.narg = table->value.n});
	return count;
}

static void legal_block(Legal *g, Lb b)
{
	StmtList *outer = g->out, out = {0};
	if (!b.i)
		return;
	g->out = &out;
	const uint32_t *at = g->f->block.data[b.i].stmt.data, n = g->f->block.data[b.i].stmt.n;
	for (uint32_t k = 0; k < n;) {
		if (g->f->ls.data[at[k]].kind == LS_LAUNCH)
			k += legal_launches(g, at + k, n - k);
		else
			legal_stmt(g, g->f->ls.data[at[k++]]);
	}
	struct LBlock *block = &g->f->block.data[b.i];
	block->stmt.data = out.data;
	block->stmt.n = out.n;
	block->stmt.cap = out.cap;
	g->out = outer;
}

static void legalise_in(const ProgramEntry *e, LoopFn *f, const Isa *isa)
{
	Arena *arena = f->ir->ctx->arena;
	legalise_frags(f, isa);
	loop_unroll(f);
	Legal g = {.lib = {f, isa}, .entry = e, .f = f, .arena = arena, .nold = f->lx.n};
	g.is_mutable = loop_find_mutable(f, arena);
	g.legal = ARENA_ARRAY(arena, Lx, f->lx.n);
	g.nvar = f->lv.n;
	g.packed = ARENA_ARRAY(arena, Lx, f->lv.n);
	loop_index_init(&g.index, f, arena);
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		legal_block(&g, loop_top(f, k));
}

void legalise(LoopFn *f, const Isa *isa)
{
	legalise_in(NULL, f, isa);
}

void entry_legalise(ProgramEntry *e, const Isa *isa)
{
	for (uint32_t k = 0; k < e->sizes_outlined.n; k++)
		legalise_in(e, e->sizes_outlined.data[k], isa);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		legalise_in(e, e->run_outlined.data[k], isa);
	legalise_in(e, e->sizes, isa);
	legalise_in(e, e->run, isa);
}
