/* The plan of a kernel that sums with weights (the backward pass of FlashAttention): products and
 * sums are recognised, operands get panels, sizes are chosen. */
#include <math.h>
#include <string.h>

#include "codegen/plan/attention/attention.h"
#include "ir/kernel/build.h"

bool weighted_is_asked(const PlanInput *in)
{
	WeightedStages is;
	return kernel_sums_weighted(in->nest->k, in->nest->arena, &is);
}

int64_t weighted_row(const WeightedPlan *p, int64_t n)
{
	return (n + p->vector.lanes - 1) / p->vector.lanes * p->vector.lanes;
}

int64_t weighted_pitch(const WeightedPlan *p)
{
	return weighted_row(p, p->block.cols + p->tile.mr) + p->vector.lanes;
}

/* ---- recognising ---- */

static bool depends(const PlanInput *in, Kx x, uint32_t axis)
{
	return in->nest->deps[x.i] >> axis & 1;
}

/* Returns the axis of most points of a set that are no axes of the batch alone; NO_AXIS: there is
 * none. */
static uint32_t longest(const Nest *n, uint64_t axes)
{
	uint32_t best = NO_AXIS;
	for (uint32_t a = 0; a < n->n; a++)
		if (axes >> a & 1 && nest_has_axis(n, a) &&
		    (best == NO_AXIS || nest_hint(n, a) > nest_hint(n, best)))
			best = a;
	return best;
}

/* Counts the loads, of which x is computed, that depend on one axis and not on the other. seen, by
 * expression: counted before. */
static uint32_t count_loads(const PlanInput *in, Kx x, uint32_t axis, uint32_t other, bool *seen)
{
	const KxData *d = &in->nest->k->kx.data[x.i];
	if (seen[x.i])
		return 0;
	seen[x.i] = true;
	uint32_t n = d->kind == KX_LOAD && depends(in, x, axis) && !depends(in, x, other);
	for (uint32_t i = 0; i < d->nin; i++)
		n += count_loads(in, d->in[i], axis, other, seen);
	return n;
}

/* Finds the axes along which weights are added up. */
static void find_added(const PlanInput *in, WeightedPlan *p)
{
	const Stage *st = &in->nest->k->stage.data[p->is.nscore];
	for (uint32_t i = 0; i < st->nred; i++)
		p->added.axis[p->added.n++] = st->red[i];
}

/* Finds the two axes: of rows, along which loads have a number a row, and of keys, which run over
 * lanes. */
static Refusal find_pair(const PlanInput *in, const Contractions *all, WeightedPlan *p)
{
	const Nest *n = in->nest;
	const Contraction *c = &all->contraction[0];
	uint64_t summed = 0;
	for (uint32_t i = 0; i < p->is.nsum; i++)
		summed |= UINT64_C(1) << n->k->stage.data[p->is.nscore + i].red[0];
	const uint64_t of_a = contraction_rows(c), of_b = contraction_columns(c);
	uint32_t a = longest(n, of_a & summed), b = longest(n, of_b & summed);
	a = a == NO_AXIS ? longest(n, of_a) : a;
	b = b == NO_AXIS ? longest(n, of_b) : b;
	if (a == NO_AXIS || b == NO_AXIS || summed & ~(UINT64_C(1) << a | UINT64_C(1) << b))
		return refuse_near("products have no axis of rows, or of keys");
	uint32_t rows_of_a = 0, rows_of_b = 0;
	for (uint32_t i = 0; i < p->is.nsum + !p->is.nsum; i++) {
		const Kx x = n->k->stage.data[p->is.nscore + i].value;
		rows_of_a += count_loads(in, x, a, b, ARENA_ARRAY(n->arena, bool, n->k->kx.n));
		rows_of_b += count_loads(in, x, b, a, ARENA_ARRAY(n->arena, bool, n->k->kx.n));
	}
	p->limits.row = rows_of_a >= rows_of_b ? a : b;
	p->limits.key = rows_of_a >= rows_of_b ? b : a;
	for (uint32_t i = 0; i < n->n; i++)
		if (nest_has_axis(n, i) && nest_is_outer(n, i) && i != a && i != b)
			p->batch.axis[p->batch.n++] = i;
	if (!p->is.nsum)
		find_added(in, p);
	return taken();
}

static Refusal find_score(const PlanInput *in, const Contraction *c, WeightedScore *s,
			  const KeyLimits *l)
{
	const Nest *n = in->nest;
	const Stage *st = &n->k->stage.data[c->sum];
	const bool swapped = c->in_a >> l->key & 1;
	s->row = swapped ? c->b : c->a;
	s->key = swapped ? c->a : c->b;
	if (!attention_is_load(in, s->row) || !attention_is_load(in, s->key))
		return refuse_near("an operand is no plain load of f32");
	if (!depends(in, s->row, l->row) || depends(in, s->row, l->key) ||
	    depends(in, s->key, l->row) || !depends(in, s->key, l->key))
		return refuse_near("products are not of rows and keys");
	if (st->nred != 1 || !sym_is_const(n->syms, n->extent[st->red[0]], &s->depths) ||
	    s->depths < 1)
		return refuse_near("rows of an operand have no constant length");
	s->depth = s->step = st->red[0];
	return taken();
}

/* Returns the number of a weight, which is added if it is new. */
static uint32_t weight_of(WeightedPlan *p, Kx x)
{
	uint32_t i = 0;
	while (i < p->weights.n && p->weights.at[i].i != x.i)
		i++;
	if (i == p->weights.n)
		p->weights.at[p->weights.n++] = x;
	return i;
}

static Refusal find_sum(const PlanInput *in, WeightedPlan *p, uint32_t number)
{
	const Nest *n = in->nest;
	WeightedSum *s = &p->sum[number];
	s->stage = p->is.nscore + number;
	const Stage *st = &n->k->stage.data[s->stage];
	const KxData *product = &n->k->kx.data[st->value.i];
	const bool second = nest_next_read(n, product->in[1], 0) < p->is.nscore;
	const Kx weight = product->in[second];
	const uint64_t both = UINT64_C(1) << p->limits.row | UINT64_C(1) << p->limits.key;
	const AxisList inner = nest_inner(n, st);
	s->operand = product->in[!second];
	s->along = s->step = st->red[0];
	s->of_row = s->along == p->limits.key;
	const uint32_t kept = s->of_row ? p->limits.row : p->limits.key;
	s->column = longest(n, axes_set(inner.axis, inner.n) & ~both);
	if (!attention_is_load(in, s->operand))
		return refuse_near("an operand is no plain load of f32");
	if (s->column == NO_AXIS ||
	    (axes_set(inner.axis, inner.n) & ~both) != UINT64_C(1) << s->column ||
	    !depends(in, s->operand, s->column) || !depends(in, s->operand, s->along) ||
	    depends(in, s->operand, kept) || depends(in, weight, s->column) ||
	    nest_next_read(n, weight, p->is.nscore) < n->k->stage.n)
		return refuse_near("weights and what they are multiplied by do not have the axes "
				   "of a product");
	if (!sym_is_const(n->syms, n->extent[s->column], &s->columns) || s->columns < 1)
		return refuse_near("rows of a sum have no constant length");
	s->weight = weight_of(p, weight);
	return taken();
}

static Refusal find_all(const PlanInput *in, const Contractions *all, WeightedPlan *p)
{
	WeightedStages is;
	if (!kernel_sums_weighted(in->nest->k, in->nest->arena, &is))
		return refuse("it does not sum with weights");
	p->is.nscore = is.nscore;
	p->is.nsum = is.nsum;
	if (is.nscore > MAX_WEIGHTED || is.nsum > MAX_WEIGHTED || all->n < is.nscore)
		return refuse_near("so many products");
	for (uint32_t i = 0; i < is.nscore; i++)
		if (all->contraction[i].sum != i)
			return refuse_near("a product's operands are no plain loads");
	Refusal no = find_pair(in, all, p);
	for (uint32_t i = 0; i < is.nscore && !no.why; i++)
		no = find_score(in, &all->contraction[i], &p->score[i], &p->limits);
	for (uint32_t i = 0; i < is.nsum && !no.why; i++)
		no = find_sum(in, p, i);
	if (!is.nsum)
		weight_of(p, in->nest->k->stage.data[is.nscore].value);
	return no;
}

/* ---- logits ---- */

static bool is_zero(const Kernel *k, Kx x)
{
	return k->kx.data[x.i].kind == KX_CONST && k->kx.data[x.i].c.f == 0;
}

/* Returns the value of which, where that is -inf, x is 0: what an exponential is of, but for what
 * is subtracted and is a number of the row. None: there is no such value. */
static Kx find_logits(const Nest *n, Kx x, uint32_t nscore)
{
	const Kernel *k = n->k;
	const KxData *d = &k->kx.data[x.i];
	const ScOp op = kx_basic(k, x);
	if (d->kind != KX_OP)
		return (Kx){0};
	if (op == SC_select)
		return is_zero(k, d->in[1])   ? find_logits(n, d->in[2], nscore)
		       : is_zero(k, d->in[2]) ? find_logits(n, d->in[1], nscore)
					      : (Kx){0};
	if (d->nin == 1 && scalar_fn(d->op, (DType[]){DT_f32}, 1) == scalar_lib("exp", DT_f32)) {
		const KxData *above = &k->kx.data[d->in[0].i];
		return kx_basic(k, d->in[0]) == SC_sub &&
				       nest_next_read(n, above->in[1], 0) >= nscore
			       ? above->in[0]
			       : (Kx){0};
	}
	const Kx first = op == SC_mul || op == SC_div || kx_unconverted(k, x).i != x.i
				 ? find_logits(n, d->in[0], nscore)
				 : (Kx){0};
	return !first.i && op == SC_mul ? find_logits(n, d->in[1], nscore) : first;
}

/* Finds what limits keys, if all weights are 0 outside. */
static void find_limits(const PlanInput *in, WeightedPlan *p)
{
	Kx logits = {0};
	for (uint32_t i = 0; i < p->weights.n; i++) {
		const Kx x = find_logits(in->nest, p->weights.at[i], p->is.nscore);
		if (!x.i || (logits.i && x.i != logits.i))
			return;
		logits = x;
	}
	attention_find_limits(in->nest, &p->limits, p->is.nscore, logits);
}

/* ---- sizes ---- */

enum {
	BLOCK_KEYS = 128,
	BOUNDED_KEYS = 64,      /* the smaller a block, the fewer of its keys are left out */
	BLOCK_TILES = 16,       /* tiles of rows in a block */
	LOCAL_ELEMENTS = 49152, /* of a task's arrays */
	SCALAR_ELEMENTS = 2048  /* of a target without vectors: stacks may be small */
};

static Sym product_of(const Nest *n, const uint32_t *axis, uint32_t count)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < count; i++)
		all = sym_mul(n->syms, all, n->extent[axis[i]]);
	return all;
}

/* Returns the elements of local arrays: those for a row of a block, and those for its keys. */
static int64_t row_elements(const WeightedPlan *p)
{
	const uint32_t arrays = p->is.nscore > p->weights.n ? p->is.nscore : p->weights.n;
	int64_t n = arrays * weighted_pitch(p);
	for (uint32_t i = 0; i < p->is.nsum && micro_groups(p->by.row); i++)
		n += weighted_pitch(p) / p->by.row->group;
	for (uint32_t i = 0; i < p->is.nscore; i++)
		n += weighted_row(p, p->score[i].depths);
	for (uint32_t i = 0; i < p->is.nsum && p->task == TASK_ROWS; i++)
		n += weighted_row(p, p->sum[i].columns);
	return p->task == TASK_PAIRS ? n + weighted_pitch(p) : n;
}

static int64_t key_elements(const WeightedPlan *p)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < p->is.nsum; i++)
		n += p->sum[i].of_row
			     ? 0
			     : (p->block.cols + p->tile.mr) * weighted_row(p, p->sum[i].columns);
	return n;
}

static void choose_blocks(const PlanInput *in, WeightedPlan *p)
{
	const Nest *n = in->nest;
	const int64_t lanes = p->vector.lanes, most = lanes == 1 ? SCALAR_ELEMENTS : LOCAL_ELEMENTS,
		      keys = p->limits.nbound || p->limits.nmask ? BOUNDED_KEYS : BLOCK_KEYS;
	p->block.cols = weighted_row(p, lanes == 1 ? keys / 8 : keys);
	while (key_elements(p) > most / 2 && p->block.cols > lanes * p->by.row->group)
		p->block.cols = weighted_row(p, p->block.cols / 2);
	/* whole groups of rows */
	const int64_t mr =
		p->tile.mr % p->by.row->group ? p->tile.mr * p->by.row->group : p->tile.mr;
	int64_t tiles = (most - key_elements(p)) / row_elements(p) / mr;
	tiles = tiles > BLOCK_TILES ? BLOCK_TILES : tiles < 1 ? 1 : tiles;
	/* blocks of equally many tiles */
	const int64_t all = (nest_hint(n, p->limits.row) + mr - 1) / mr,
		      blocks = all ? (all + tiles - 1) / tiles : 1;
	tiles = (all + blocks - 1) / blocks;
	p->block.rows = (tiles < 1 ? 1 : tiles) * mr;
	p->members = product_of(n, p->batch.axis, p->batch.n);
	const Sym rows = sym_ceildiv(n->syms, n->extent[p->limits.row],
				     sym_int(n->syms, p->block.rows)),
		  cols = sym_ceildiv(n->syms, n->extent[p->limits.key],
				     sym_int(n->syms, p->block.cols));
	p->parts = p->task == TASK_MEMBER ? sym_int(n->syms, 1)
		   : p->task == TASK_ROWS ? rows
		   : p->task == TASK_KEYS ? cols
					  : sym_mul(n->syms, rows, cols);
}

static void choose_tasks(WeightedPlan *p)
{
	bool rows = false, keys = false;
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		rows |= p->sum[i].of_row;
		keys |= !p->sum[i].of_row;
	}
	p->task = !p->is.nsum    ? TASK_PAIRS
		  : rows && keys ? TASK_MEMBER
		  : rows         ? TASK_ROWS
				 : TASK_KEYS;
}

/* ---- rows and panels ---- */

/* Returns the row by which products are computed: that of the operands' dtype, if all have one, and
 * it multiplies pairs at most, which are what weights of neighbouring rows become. */
static const MicroKernel *choose_row(const PlanInput *in, const WeightedPlan *p)
{
	const DType d = attention_stored(in, p->score[0].key);
	int64_t steps[MAX_WEIGHTED];
	bool same = in->nest->n + p->is.nscore + p->is.nsum <= MAX_AXES;
	for (uint32_t i = 0; i < p->is.nscore; i++) {
		steps[i] = p->score[i].depths;
		same = same && d == attention_stored(in, p->score[i].key) &&
		       d == attention_stored(in, p->score[i].row);
	}
	for (uint32_t i = 0; i < p->is.nsum; i++)
		same = same && d == attention_stored(in, p->sum[i].operand);
	const MicroKernel *row = attention_choose_row(in, d, same, steps, p->is.nscore);
	return row->group <= 2 ? row : attention_choose_row(in, DT_f32, true, steps, 0);
}

/* Makes the nest of the input that in which operands are read by groups. */
static void find_steps(PlanInput *in, WeightedPlan *p)
{
	if (!micro_groups(in->row))
		return;
	Nest *n = nest_copy(in->nest, in->nest->k);
	for (uint32_t i = 0; i < p->is.nscore; i++)
		p->score[i].step =
			attention_count_groups(in, n, p->score[i].key, p->score[i].depth);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		p->sum[i].step = attention_count_groups(in, n, p->sum[i].operand, p->sum[i].along);
	nest_find_deps(n);
	in->nest = n;
}

/* Returns how many members of the batch have products. */
static double all_members(const PlanInput *in, const WeightedPlan *p)
{
	return (double)plan_size(in, p->members) *
	       (double)plan_size(in, product_of(in->nest, p->added.axis, p->added.n));
}

static double tiles_of(const PlanInput *in, const WeightedPlan *p, bool of_rows)
{
	return all_members(in, p) *
	       ceil((double)plan_extent(in, of_rows ? p->limits.row : p->limits.key) / p->tile.mr);
}

/* Makes p->nest the nest in which operands are read from panels. */
static void find_panels(const PlanInput *in, WeightedPlan *p)
{
	uint32_t ntemp = 0, member[MAX_AXES];
	memcpy(member, p->batch.axis, sizeof member);
	memcpy(member + p->batch.n, p->added.axis, p->added.n * sizeof *member);
	Nest *nest = nest_copy(in->nest, in->nest->k);
	for (uint32_t i = 0; i < p->is.nscore; i++) {
		WeightedScore *s = &p->score[i];
		const PanelAxes x = {p->limits.key, s->step, s->depth, member,
				     p->batch.n + p->added.n};
		s->copy = attention_plan_panels(in, s->key, &x, &s->panels);
		nest_read(nest, s->key, (SchedArg){ARG_TEMP, ntemp++, NULL}, s->panels.offset);
	}
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		WeightedSum *s = &p->sum[i];
		const PanelAxes x = {s->column, s->step, s->along, p->batch.axis, p->batch.n};
		const CopyPlan *copy = attention_plan_panels(in, s->operand, &x, &s->panels);
		const double steps = (double)(s->of_row ? p->block.cols : p->block.rows),
			     times = tiles_of(in, p, s->of_row) * (double)plan_extent(in, s->along);
		if (attention_reads_in_place(in, s->operand, &x, s->columns, steps, times, copy))
			continue;
		s->copy = copy;
		nest_read(nest, s->operand, (SchedArg){ARG_TEMP, ntemp++, NULL}, s->panels.offset);
	}
	p->nest = nest;
}

/* ---- cycles ---- */

static double cycles(const PlanInput *in, const WeightedPlan *p)
{
	const double rows = (double)plan_extent(in, p->limits.row),
		     keys = (double)plan_extent(in, p->limits.key), members = all_members(in, p),
		     wide = (double)(p->tile.nv * p->vector.lanes),
		     tile = tuning_tile_cycles(in->target, in->row, p->tile.mr, p->tile.nv);
	double all =
		in->target->machine.phase +
		members * rows * ceil(keys / p->vector.lanes) * predict_epilogue(in->nest->k) *
			machine_cycles(&in->target->machine, MOP_simple, DT_f32, p->vector.lanes);
	for (uint32_t i = 0; i < p->is.nscore; i++)
		all += tiles_of(in, p, true) * ceil(keys / wide) * (double)p->score[i].depths /
			       p->by.row->group * tile +
		       contract_copy_cycles(in, p->score[i].copy);
	for (uint32_t i = 0; i < p->is.nsum; i++) {
		const WeightedSum *s = &p->sum[i];
		all += tiles_of(in, p, s->of_row) * ceil((double)s->columns / wide) *
		       ceil((double)plan_extent(in, s->along) / p->by.row->group) * tile;
		if (s->copy)
			all += contract_copy_cycles(in, s->copy);
	}
	return all;
}

/* ---- the plan ---- */

static const char *describe(const PlanInput *in, const WeightedPlan *p)
{
	return arena_printf(
		in->nest->arena, "%s, %s%s%ux%u tile, blocks of %lld rows x %lld keys%s",
		p->is.nsum ? "sums with weights" : "sums of weights",
		micro_groups(p->by.row) ? p->by.row->name : "", micro_groups(p->by.row) ? ", " : "",
		p->tile.mr, p->tile.nv * p->vector.lanes, (long long)p->block.rows,
		(long long)p->block.cols,
		p->limits.nbound  ? ", bounded keys"
		: p->limits.nmask ? ", masked blocks left out"
				  : "");
}

Refusal plan_weighted(const PlanInput *given, Plan *plan)
{
	const Contractions all = kernel_contractions(given->nest->syms, given->nest->k);
	WeightedPlan *p = ARENA_NEW(given->nest->arena, WeightedPlan);
	PlanInput in = *given;
	const Refusal no = find_all(&in, &all, p);
	if (no.why)
		return no;
	if (nest_is_empty(in.nest))
		return refuse("it is empty");
	in.contraction = all.contraction[0];
	in.row = p->by.row = choose_row(&in, p);
	p->vector = (LType){DT_f32, contract_lanes(&in)};
	p->cost = in.cost;
	int64_t columns = p->is.nsum ? 0 : BLOCK_KEYS;
	for (uint32_t i = 0; i < p->is.nsum; i++)
		columns = p->sum[i].columns > columns ? p->sum[i].columns : columns;
	int64_t depths[MAX_WEIGHTED];
	for (uint32_t i = 0; i < p->is.nscore; i++)
		depths[i] = p->score[i].depths;
	p->by.frag = attention_choose_frag(&in, p->by.row, depths, p->is.nscore);
	p->tile = p->by.frag ? (TileSize){.mr = p->by.frag->rows, .nv = 1}
			     : attention_choose_tile(&in, p->vector.lanes, columns);
	find_limits(&in, p);
	choose_tasks(p);
	choose_blocks(&in, p);
	if (p->block.cols < p->tile.nv * p->vector.lanes) { /* of wide rows few fit */
		p->tile = attention_choose_tile(&in, p->vector.lanes, p->block.cols);
		choose_blocks(&in, p);
	}
	find_steps(&in, p);
	find_panels(&in, p);
	plan->cycles = cycles(&in, p);
	in.at = in.larger;
	plan->larger = cycles(&in, p);
	plan->algorithm = describe(given, p);
	plan->why = "products are made by blocks, and never lie in memory";
	plan->of.weighted = p;
	return taken();
}

void print_weighted(const Plan *plan, Text *out)
{
	const WeightedPlan *p = plan->of.weighted;
	const Nest *n = p->nest;
	plan_print_axes(n, "rows", &p->limits.row, 1, out);
	plan_print_axes(n, ", keys", &p->limits.key, 1, out);
	for (uint32_t i = 0; i < p->is.nscore; i++)
		plan_print_axes(n, i ? "" : ", depth", &p->score[i].depth, 1, out);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		plan_print_axes(n, p->sum[i].of_row ? ", columns of rows" : ", columns of keys",
				&p->sum[i].column, 1, out);
	plan_print_axes(n, ", batch", p->batch.axis, p->batch.n, out);
	plan_print_axes(n, ", added", p->added.axis, p->added.n, out);
	attention_print_blocks(p->tile, p->vector.lanes, p->block, &p->limits, out);
	plan_print_tasks(n, sym_mul(n->syms, p->members, p->parts), out);
	for (uint32_t i = 0; i < p->is.nscore; i++)
		plan_print_copy(p->score[i].copy, out);
	for (uint32_t i = 0; i < p->is.nsum; i++)
		if (p->sum[i].copy)
			plan_print_copy(p->sum[i].copy, out);
}
