/* A step of k of a contraction: what is multiplied of either operand, elements or groups, how b is
 * decoded, and how the products are added up (MicroKernel). */
#include "codegen/cpu/contract.h"

static Lx int_of(Cpu *s, int64_t v)
{
	return lx_int(s->e.f, v);
}

/* ---- operand b ---- */

Lx contract_b_offset(ContractCode *c, uint32_t j, Lx panel_base)
{
	Cpu *s = c->s;
	if (c->p->b.access == B_GATHERED) {
		Lx at = int_of(s, 0);
		for (uint32_t i = 0; i < c->p->axes.nk; i++)
			at = lx_add(s->e.f,
				    lx_mul(s->e.f, at,
					   eval_size(&s->e, s->e.nest->extent[c->p->axes.k[i]])),
				    s->e.at[c->p->axes.k[i]]);
		at = lx_mul(s->e.f, at, int_of(s, (int64_t)c->p->tile.nv * s->e.lanes.n));
		return lx_add(s->e.f, at, int_of(s, (int64_t)j * s->e.lanes.n));
	}
	if (has_panels(&c->p->b)) {
		Lx at = lx_add(s->e.f, panel_base,
			       eval_index(&s->e, s->e.nest->offset[c->p->b.load.i]));
		at = lx_add(s->e.f, at,
			    lx_mul(s->e.f, eval_size(&s->e, c->p->b.panels.stride),
				   int_of(s, j / c->p->b.vectors)));
		return lx_add(s->e.f, at,
			      int_of(s, (int64_t)(j % c->p->b.vectors) * s->e.lanes.n *
						c->p->b.panels.unit));
	}
	eval_at(&s->e, c->p->axes.n, lx_add(s->e.f, c->col, int_of(s, (int64_t)j * s->e.lanes.n)));
	return eval_index(&s->e, s->e.nest->offset[c->p->b.load.i]);
}

LMem contract_b_memory(ContractCode *c)
{
	Cpu *s = c->s;
	if (c->p->b.access == B_GATHERED)
		return c->local_b;
	return eval_load_memory(&s->e, c->p->b.load);
}

static LMem a_memory(ContractCode *c)
{
	Cpu *s = c->s;
	return eval_load_memory(&s->e, c->p->a.load);
}

Lx contract_first_panel(ContractCode *c, const Panels *p)
{
	Cpu *s = c->s;
	Lx panel = lx_div(s->e.f, c->col, int_of(s, (int64_t)c->p->b.vectors * s->e.lanes.n));
	return eval_let(&s->e, "panel", lx_mul(s->e.f, panel, eval_size(&s->e, p->stride)));
}

/* ---- a step ---- */

Lx contract_load_b(ContractCode *c, uint32_t j, const TileCode *how, Lx panel, Lx mask)
{
	Cpu *s = c->s;
	const LMem m = contract_b_memory(c);
	const LType b = contract_b_type(c->p),
		    t = {micro_groups(c->p->axes.row) ? b.dtype : dtype_compute(m.dtype), b.lanes};
	Lv v = (how->tight ? ls_load_in_order : ls_load)(s->e.f, "b", m,
							 contract_b_offset(c, j, panel), t, mask);
	return eval_convert(&s->e, lx_var(s->e.f, v), b.dtype);
}

/* Returns step k of the group of a at that offset, shifted to its place in the group; 0 if k is not
 * less than `left`, the steps that the operand has. */
static Lx step_of_group(ContractCode *c, LMem m, Lx offset, Lx left, uint32_t k)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const uint32_t bits = 32 / c->p->axes.row->group;
	const LType u32 = {DT_u32, 1};
	m.dtype = dtype_raw(m.dtype);
	Lx at = lx_min(f, int_of(s, k), lx_sub(f, left, int_of(s, 1)));
	Lx x = lx_var(f,
		      ls_load(f, "step", m, lx_add(f, offset, at), (LType){m.dtype, 1}, (Lx){0}));
	x = lx_sc(f, SC_convert, u32, &x, 1);
	x = lx_sc(f, SC_and, u32, (Lx[]){x, lx_int_of(f, u32, (INT64_C(1) << bits) - 1)}, 2);
	x = lx_sc(f, SC_shl, u32, (Lx[]){x, lx_int_of(f, u32, bits * k)}, 2);
	return lx_select(f, lx_cmp(f, SC_lt, int_of(s, k), left), x, lx_int_of(f, u32, 0));
}

Lx contract_load_a(ContractCode *c, Lx offset, Lx left)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const LMem m = a_memory(c);
	const LType u32 = {DT_u32, 1};
	left = c->p->a.copied ? (Lx){0} : left; /* panels have whole groups */
	if (!micro_groups(c->p->axes.row)) {
		Lv v = ls_load(f, "a", m, offset, (LType){dtype_compute(m.dtype), 1}, (Lx){0});
		return eval_convert(&s->e, lx_var(f, v), c->p->vector.dtype);
	}
	Lx x = left.i ? step_of_group(c, m, offset, left, 0)
		      : lx_var(f, ls_load(f, "a", m, offset, u32, (Lx){0}));
	for (uint32_t k = 1; left.i && k < c->p->axes.row->group; k++)
		x = lx_sc(f, SC_or, u32, (Lx[]){x, step_of_group(c, m, offset, left, k)}, 2);
	return c->p->axes.row->biased
		       ? lx_sc(f, SC_xor, u32, (Lx[]){x, lx_int_of(f, u32, 0x80808080)}, 2)
		       : x;
}

/* Returns element k, 0 or 1, of groups of two bf16, as f32. */
static Lx bf16_of_group(ContractCode *c, Lx group, uint32_t k)
{
	LoopFn *f = c->s->e.f;
	const LType u32 = lx_type(f, group);
	Lx bits = k ? lx_sc(f, SC_and, u32, (Lx[]){group, lx_int_of(f, u32, 0xffff0000)}, 2)
		    : lx_sc(f, SC_shl, u32, (Lx[]){group, lx_int_of(f, u32, 16)}, 2);
	return lx_sc(f, SC_bitcast, (LType){DT_f32, u32.lanes}, &bits, 1);
}

/* Adds two sums of 16 bits in each lane of `pairs` to a sum. */
static Lx add_pairs(ContractCode *c, Lx pairs, Lx sum)
{
	LoopFn *f = c->s->e.f;
	const LType u32 = {DT_u32, c->p->vector.lanes};
	const Lx two = lx_sc(f, SC_bitcast, u32, &pairs, 1), ones = lx_int_of(f, u32, 0x10001);
	return lx_sc(f, SC_dot2_s16, c->p->vector, (Lx[]){two, ones, sum}, 3);
}

Lx contract_add_product(ContractCode *c, Lx a, Lx b, Lx sum)
{
	Cpu *s = c->s;
	if (micro_groups(c->p->axes.row) && c->p->axes.row->op == SC_fma) {
		for (uint32_t k = c->p->axes.row->group; k-- > 0;)
			sum = code_fma(&s->code, bf16_of_group(c, a, k), bf16_of_group(c, b, k),
				       sum);
		return sum;
	}
	if (c->p->axes.row->signs)
		return add_pairs(c,
				 lx_sc(s->e.f, c->p->axes.row->op, c->p->vector,
				       (Lx[]){a, b, contract_zero(c)}, 3),
				 sum);
	if (micro_groups(c->p->axes.row)) {
		const bool turned = c->p->axes.row->turned;
		return lx_sc(s->e.f, c->p->axes.row->op, c->p->vector,
			     (Lx[]){turned ? b : a, turned ? a : b, sum}, 3);
	}
	if (!dtype_is_float(c->p->vector.dtype))
		return lx_add(s->e.f, sum, lx_mul(s->e.f, a, b));
	return code_fma(&s->code, a, b, sum);
}

/* Adds the two sums of 16 bits of a row that keeps such. */
Lx contract_block_sum(ContractCode *c, Lx accumulator)
{
	return c->p->axes.row->pairs ? add_pairs(c, accumulator, contract_zero(c)) : accumulator;
}

/* Returns the bytes of a table that the bytes of x, below 16, number. */
static Lx look_up(LoopFn *f, LType t, Lx x, const uint64_t table[2])
{
	enum { WORD_BITS = 32, EIGHTS = 0x08080808 };
	Lx part[2];
	x = lx_var(f, ls_let(f, "number", x));
	for (uint32_t k = 0; k < 2; k++) {
		const Lx low = lx_int_of(f, t, (uint32_t)table[k]),
			 high = lx_int_of(f, t, (int64_t)(table[k] >> WORD_BITS)),
			 at = k ? lx_sc(f, SC_xor, t, (Lx[]){x, lx_int_of(f, t, EIGHTS)}, 2) : x;
		part[k] = lx_sc(f, SC_lookup8, t, (Lx[]){at, low, high}, 3);
	}
	return lx_sc(f, SC_or, t, part, 2);
}

Lx contract_half(ContractCode *c, Lx bytes, uint32_t number)
{
	enum { HALF_BITS = 4, LOW_HALVES = 0x0f0f0f0f };
	LoopFn *f = c->s->e.f;
	const LType t = lx_type(f, bytes);
	if (number)
		bytes = lx_sc(f, SC_shr, t, (Lx[]){bytes, lx_int_of(f, t, HALF_BITS)}, 2);
	const Lx half = lx_sc(f, SC_and, t, (Lx[]){bytes, lx_int_of(f, t, LOW_HALVES)}, 2),
		 value = c->p->axes.looked_up ? look_up(f, t, half, c->p->axes.table) : half;
	return lx_var(f, ls_let(f, "half", value));
}

/* ---- halves of bytes as bytes ---- */

Lx contract_place_of_bytes(ContractCode *c, uint32_t j)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const ContractAxes *x = &c->p->axes;
	Lx at = int_of(s, 0);
	for (uint32_t i = 0; i < x->nblock; i++)
		at = lx_add(f, lx_mul(f, at, eval_size(&s->e, s->e.nest->extent[x->k[i]])),
			    s->e.at[x->k[i]]);
	at = lx_add(f, lx_mul(f, at, int_of(s, c->p->tile.nv)), int_of(s, j));
	return lx_mul(f, at, int_of(s, (int64_t)x->step * s->e.lanes.n));
}

static LMem bytes_memory(const ContractCode *c)
{
	LMem m = c->local_b;
	m.dtype = DT_u32;
	return m;
}

/* Returns the place of vector j of the group that is `more` behind the current one of the block. */
static Lx place_of_group(ContractCode *c, uint32_t j, int64_t more)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const Lx group = lx_add(f, s->e.at[c->p->axes.k[c->p->axes.nk - 1]], int_of(s, more));
	return lx_add(f, contract_place_of_bytes(c, j), lx_mul(f, group, int_of(s, s->e.lanes.n)));
}

/* Writes the halves of b's bytes of the current group of a block as bytes. */
static void fill_group(ContractCode *c, const TileCode *how, Lx panel)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const ContractAxes *x = &c->p->axes;
	const int64_t half = x->step / x->nfield;
	for (uint32_t j = 0; j < how->nv; j++) {
		const Lx b = contract_load_b(c, j, how, panel, (Lx){0});
		for (uint32_t k = 0; k < x->nfield; k++) {
			const Lx byte = contract_half(c, b, k), at = place_of_group(c, j, k * half);
			ls_store(f, bytes_memory(c), at, byte, (Lx){0});
		}
	}
}

void contract_fill_bytes(ContractCode *c, const TileCode *how)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	const Lx panel = contract_first_panel(c, &c->p->b.panels);
	for (uint32_t i = 0; i < x->nk; i++)
		eval_for(&s->e, x->k[i], int_of(s, 0), eval_size(&s->e, s->e.nest->extent[x->k[i]]),
			 1);
	fill_group(c, how, panel);
	for (uint32_t i = 0; i < x->nk; i++)
		eval_end(&s->e);
}

Lx contract_load_byte_group(ContractCode *c, uint32_t j, uint32_t half)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	const Lx at = place_of_group(c, j, half * (x->step / x->nfield));
	return lx_var(s->e.f,
		      ls_load(s->e.f, "b", bytes_memory(c), at, contract_b_type(c->p), (Lx){0}));
}

/* ---- sums of columns ---- */

static void add_columns(ContractCode *c, const TileCode *how, Lx panel, const Lv *sum,
			uint32_t next)
{
	Cpu *s = c->s;
	if (next < c->p->axes.nk) {
		const uint32_t axis = c->p->axes.k[next];
		eval_for(&s->e, axis, int_of(s, 0), eval_size(&s->e, s->e.nest->extent[axis]), 1);
		add_columns(c, how, panel, sum, next + 1);
		eval_end(&s->e);
		return;
	}
	Lx offset = lx_int_of(s->e.f, (LType){DT_u32, s->e.lanes.n}, 0x80808080);
	for (uint32_t j = 0; j < how->nv; j++)
		ls_set(s->e.f, sum[j],
		       contract_add_product(c, offset, contract_load_b(c, j, how, panel, (Lx){0}),
					    lx_var(s->e.f, sum[j])));
}

/* Adds up the columns of b times 128: so much a micro-kernel that adds 128 to the elements of a
 * adds to the sums. */
void contract_sum_columns(ContractCode *c, const TileCode *how)
{
	Cpu *s = c->s;
	Lv sum[MAX_TILE_VECTORS];
	Lx panel = contract_first_panel(c, &c->p->b.panels);
	c->bias = ls_local(s->e.f, "bias", c->p->vector.dtype, (uint64_t)how->nv * s->e.lanes.n);
	for (uint32_t j = 0; j < how->nv; j++)
		sum[j] = ls_var(s->e.f, "column", contract_zero(c));
	add_columns(c, how, panel, sum, 0);
	for (uint32_t j = 0; j < how->nv; j++)
		ls_store(s->e.f, c->bias, int_of(s, (int64_t)j * s->e.lanes.n),
			 lx_var(s->e.f, sum[j]), (Lx){0});
}

Lx contract_zero(const ContractCode *c)
{
	const LType t = c->p->vector;
	return dtype_is_float(t.dtype) ? lx_float(c->s->e.f, t, 0) : lx_int_of(c->s->e.f, t, 0);
}

/* ---- operands that are decoded ----
 *
 * By each tile of rows, on the vectors right before they are multiplied, or for all tiles of a
 * block, into a local array, a slab:
 *
 *     for each tile of columns, block of k:
 *       slab[k][j] = value of b[k, n + j * lanes]
 *       for each tile of rows:  for k: ... b_j = slab[k][j] ...
 *
 * What does not depend on the inner summed axes, as the scale of a group, is computed ahead of
 * their loops. */

static const DecodedB *decoded(const ContractCode *c)
{
	return &c->p->b.decoded;
}

/* Returns vector j of a load's panels at the current steps of k. first: of the panels. */
static Lx load_panel(ContractCode *c, const ContractTile *t, const Panels *p, Kx load, Lx first,
		     uint32_t j)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const uint32_t vectors = c->p->b.vectors, lanes = s->e.lanes.n;
	const LMem m = eval_load_memory(&s->e, load);
	Lx at = lx_add(f, first, eval_index(&s->e, p->offset));
	at = lx_add(f, at, lx_mul(f, eval_size(&s->e, p->stride), int_of(s, j / vectors)));
	at = lx_add(f, at, int_of(s, (int64_t)(j % vectors) * lanes));
	if (load.i != c->p->b.load.i)
		contract_fetch_next(c, t, p, m, at);
	const Lv v = ls_load(f, "b", m, at, (LType){dtype_compute(m.dtype), lanes}, (Lx){0});
	return eval_convert(&s->e, lx_var(f, v), s->e.k->kx.data[load.i].dtype);
}

void contract_start_decoding(ContractCode *c, ContractTile *t)
{
	t->panel = contract_first_panel(c, &c->p->b.panels);
	for (uint32_t i = 0; i < decoded(c)->nbeside; i++)
		t->scale[i] = contract_first_panel(c, &decoded(c)->beside[i].panels);
}

static void go_to_column(ContractCode *c, const ContractTile *t, uint32_t j)
{
	Cpu *s = c->s;
	eval_at(&s->e, c->p->axes.n, lx_add(s->e.f, c->col, int_of(s, (int64_t)j * s->e.lanes.n)));
	eval_mask(&s->e, j + 1 == t->how->nv ? t->mask : (Lx){0});
}

static void leave_columns(ContractCode *c)
{
	eval_mask(&c->s->e, (Lx){0});
	eval_at(&c->s->e, c->p->axes.n, (Lx){0});
}

/* Returns the axes that have values when the first `n` summed axes have. */
static uint64_t known_axes(const ContractCode *c, uint32_t n)
{
	uint64_t known = UINT64_C(1) << c->p->axes.n;
	for (uint32_t i = 0; i < c->p->axes.nbatch; i++)
		known |= UINT64_C(1) << c->p->axes.batch[i];
	for (uint32_t i = 0; i < n; i++)
		known |= UINT64_C(1) << c->p->axes.k[i];
	return known;
}

/* Says what the loads beside b are that depend on known axes, for vector j. */
static void load_beside(ContractCode *c, const ContractTile *t, uint32_t j, uint64_t known)
{
	Cpu *s = c->s;
	const DecodedB *d = decoded(c);
	for (uint32_t i = 0; i < d->nbeside; i++) {
		const Kx load = d->beside[i].load;
		if (!(s->e.nest->deps[load.i] & ~known) && !eval_known(&s->e, load).i)
			eval_assume(&s->e, load,
				    load_panel(c, t, &d->beside[i].panels, load, t->scale[i], j));
	}
}

/* Computes what depends on known axes, and perhaps on the field. */
static void hoist_fields(ContractCode *c, uint64_t known)
{
	Cpu *s = c->s;
	const uint32_t axis = c->p->axes.half;
	eval_hoist(&s->e, decoded(c)->value, known);
	if (decoded(c)->factor.i)
		eval_hoist(&s->e, decoded(c)->factor, known);
	for (uint32_t field = 0; axis != NO_AXIS && field < c->p->axes.nfield; field++) {
		eval_at(&s->e, axis, int_of(s, field));
		eval_hoist(&s->e, decoded(c)->value, known | UINT64_C(1) << axis);
		eval_at(&s->e, axis, (Lx){0});
	}
}

void contract_decode_ahead(ContractCode *c, const ContractTile *t, uint32_t n)
{
	const uint64_t known = known_axes(c, n);
	for (uint32_t j = 0; j < t->how->nv; j++) {
		go_to_column(c, t, j);
		load_beside(c, t, j, known);
		hoist_fields(c, known);
	}
	leave_columns(c);
}

Lx contract_decoded(ContractCode *c, const ContractTile *t, uint32_t j, uint32_t field)
{
	Cpu *s = c->s;
	const Kx load = c->p->b.load;
	const uint32_t axis = c->p->axes.half;
	go_to_column(c, t, j);
	load_beside(c, t, j, UINT64_MAX);
	if (!eval_known(&s->e, load).i)
		eval_assume(&s->e, load, load_panel(c, t, &c->p->b.panels, load, t->panel, j));
	if (axis != NO_AXIS)
		eval_at(&s->e, axis, int_of(s, field));
	const Lx x = eval_vector(&s->e, decoded(c)->value);
	if (axis != NO_AXIS)
		eval_at(&s->e, axis, (Lx){0});
	leave_columns(c);
	return x;
}

Lx contract_factor(ContractCode *c, const ContractTile *t, uint32_t j)
{
	go_to_column(c, t, j);
	load_beside(c, t, j, known_axes(c, c->p->axes.nblock));
	const Lx x = eval_vector(&c->s->e, decoded(c)->factor);
	leave_columns(c);
	return x;
}

/* ---- slabs ---- */

/* Returns the place in the slab of vector j of a field of the current step of k. */
static Lx place_in_slab(ContractCode *c, uint32_t j, uint32_t field)
{
	Cpu *s = c->s;
	LoopFn *f = s->e.f;
	const KBlock *block = &c->p->k_block;
	const ContractAxes *x = &c->p->axes;
	const uint32_t first = block->used ? block->k : 0;
	Lx at = int_of(s, 0);
	for (uint32_t i = first; i < x->nk; i++) {
		const Lx k = s->e.at[x->k[i]];
		at = lx_mul(f, at, eval_size(&s->e, s->e.nest->extent[x->k[i]]));
		at = lx_add(f, at, block->used && i == first ? lx_sub(f, k, c->k.lo) : k);
	}
	at = lx_add(f, lx_mul(f, at, int_of(s, x->nfield)), int_of(s, field));
	at = lx_mul(f, at, int_of(s, (int64_t)c->p->tile.nv * s->e.lanes.n));
	return lx_add(f, at, int_of(s, (int64_t)j * s->e.lanes.n));
}

Lx contract_load_slab(ContractCode *c, uint32_t j, uint32_t field)
{
	Cpu *s = c->s;
	return lx_var(s->e.f, ls_load(s->e.f, "b", c->local_b, place_in_slab(c, j, field),
				      c->p->vector, (Lx){0}));
}

static void store_in_slab(ContractCode *c, const ContractTile *t, uint32_t j, uint32_t field)
{
	const Lx x = contract_decoded(c, t, j, field), at = place_in_slab(c, j, field);
	ls_store(c->s->e.f, c->local_b, at, x, (Lx){0});
}

/* Fills a slab, in loops over the summed axes from number `next` on. */
static void fill_slab(ContractCode *c, const ContractTile *t, uint32_t next)
{
	Cpu *s = c->s;
	const ContractAxes *x = &c->p->axes;
	const KBlock *block = &c->p->k_block;
	if (next == x->nk) {
		for (uint32_t field = 0; field < x->nfield; field++)
			for (uint32_t j = 0; j < t->how->nv; j++)
				store_in_slab(c, t, j, field);
		return;
	}
	const bool cut = block->used && next == block->k;
	contract_decode_ahead(c, t, next);
	eval_for(&s->e, x->k[next], cut ? c->k.lo : int_of(s, 0),
		 cut ? c->k.hi : eval_size(&s->e, s->e.nest->extent[x->k[next]]), 1);
	fill_slab(c, t, next + 1);
	eval_end(&s->e);
}

void contract_fill_slab(ContractCode *c, ContractTile *t)
{
	contract_start_decoding(c, t);
	fill_slab(c, t, c->p->k_block.used ? c->p->k_block.k : 0);
}
