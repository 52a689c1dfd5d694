/* The plan of attention by online softmax: stages are recognised, keys and values get panels, sizes
 * are chosen. */
#include "codegen/plan/attention/attention.h"

#include <math.h>

#include "ir/kernel/build.h"

/* ---- recognising ---- */

/* Whether the stage is a sum along the keys, at each point of rows, of exponentials above the
 * maximum of the logits. */
static bool is_sum_of_weights(const Nest *n, uint32_t stage, uint32_t high, uint32_t key)
{
	const Stage *st = &n->k->stage.data[stage];
	return st->kind == STAGE_REDUCE && !stage_stores(st) && st->reduce.acc == DT_f32 &&
	       st->reduce.level == high + 1 && st->nred == 1 && st->red[0] == key;
}

bool attention_is_asked(const PlanInput *in)
{
	const Kernel *k = in->nest->k;
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (k->stage.data[i].kind == STAGE_REDUCE && k->stage.data[i].reduce.level)
			return true;
	return false;
}

/* Finds the stages, which are the first four; all others store, at points of rows and columns or of
 * rows alone. */
static Refusal find_stages(const PlanInput *in, AttentionPlan *p)
{
	const Nest *n = in->nest;
	const Kernel *k = n->k;
	const Refusal no = refuse("more than attention, or less");
	if (k->stage.n < 5 || kernel_first_contraction(k) != 0 ||
	    k->stage.data[0].reduce.acc != DT_f32 || !kx_is_product(k, k->stage.data[0].value))
		return no;
	const AxisList keys = nest_inner(n, &k->stage.data[0]);
	p->stage.high = 1;
	p->stage.sum = 2;
	p->stage.result = 3;
	if (!nest_is_term(n, &k->stage.data[0]) || keys.n != 1)
		return no;
	p->axis.key = keys.axis[0];
	const Stage *high = &k->stage.data[1];
	if (high->kind != STAGE_REDUCE || high->nred != 1 || high->red[0] != p->axis.key ||
	    !is_sum_of_weights(n, 2, 1, p->axis.key) || !is_sum_of_weights(n, 3, 1, p->axis.key) ||
	    !nest_is_term(n, &k->stage.data[3]))
		return no;
	for (uint32_t i = 4; i < k->stage.n; i++)
		if (k->stage.data[i].kind != STAGE_MAP || !stage_stores(&k->stage.data[i]))
			return no;
	return taken();
}

/* Whether x reads no stage but that one. */
static bool reads_only(const Nest *n, Kx x, uint32_t stage)
{
	uint32_t i = nest_next_read(n, x, 0);
	if (i == stage)
		i = nest_next_read(n, x, stage + 1);
	return i >= n->k->stage.n;
}

/* Whether x is the weights, converted or not, or a product of that and of what reads no stage. */
static bool is_of_weights(const Nest *n, Kx x, Kx weights)
{
	const Kernel *k = n->k;
	for (;;) {
		x = x.i == weights.i ? x : kx_unconverted(k, x);
		if (x.i == weights.i)
			return true;
		if (!kx_is_product(k, x))
			return false;
		const Kx *in = k->kx.data[x.i].in;
		const uint32_t other = nest_next_read(n, in[0], 0) == k->stage.n ? 0 : 1;
		if (nest_next_read(n, in[other], 0) != k->stage.n)
			return false;
		x = in[1 - other];
	}
}

/* Finds the expressions: logits, their exponentials, and products of these with values. */
static Refusal find_values(const PlanInput *in, AttentionPlan *p)
{
	const Nest *n = in->nest;
	const Kernel *k = n->k;
	p->value.logits = k->stage.data[p->stage.high].value;
	p->value.weights = k->stage.data[p->stage.sum].value;
	const KxData *product = &k->kx.data[k->stage.data[p->stage.result].value.i];
	if (!reads_only(n, p->value.logits, p->stage.scores) || product->nin != 2 ||
	    !is_of_weights(n, product->in[0], p->value.weights))
		return refuse_near("what is summed is no exponential, or product with one");
	p->value.factor = product->in[0];
	p->value.v = product->in[1];
	return taken();
}

DType attention_stored(const PlanInput *in, Kx load)
{
	return buf_of(in->nest->l, in->nest->k->kx.data[load.i].buf)->dtype;
}

bool attention_is_load(const PlanInput *in, Kx x)
{
	const KxData *d = &in->nest->k->kx.data[x.i];
	return d->kind == KX_LOAD && !d->guard.i && d->dtype == DT_f32 &&
	       contract_linear(in, in->nest->offset[x.i]);
}

/* Finds which operand of the scores has keys, and the axes. */
static Refusal find_axes(const PlanInput *in, AttentionPlan *p)
{
	const Nest *n = in->nest;
	const Stage *scores = &n->k->stage.data[p->stage.scores];
	const AxisList columns = nest_inner(n, &n->k->stage.data[p->stage.result]);
	const Kx *factor = n->k->kx.data[scores->value.i].in;
	const bool swapped = n->deps[factor[0].i] >> p->axis.key & 1;
	p->value.q = factor[swapped];
	p->value.k = factor[!swapped];
	if (!attention_is_load(in, p->value.q))
		return refuse_near("rows of queries are no plain load of f32");
	if (scores->nred != 1 || columns.n != 1)
		return refuse_near("rows of queries or values have several axes");
	p->axis.depth = scores->red[0];
	p->axis.column = columns.axis[0];
	const uint64_t of_q = n->deps[p->value.q.i], of_k = n->deps[p->value.k.i],
		       of_v = n->deps[p->value.v.i];
	if (of_q >> p->axis.key & 1 || !(of_k >> p->axis.key & 1) || !(of_v >> p->axis.key & 1))
		return refuse_near("keys are an axis of queries, or not of keys and values");
	p->axis.row = NO_AXIS;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && nest_is_outer(n, a) && of_q >> a & 1 &&
		    !((of_k | of_v) >> a & 1) &&
		    (p->axis.row == NO_AXIS || nest_hint(n, a) > nest_hint(n, p->axis.row)))
			p->axis.row = a;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && nest_is_outer(n, a) && a != p->axis.row)
			p->axis.batch[p->axis.nbatch++] = a;
	if (!sym_is_const(n->syms, n->extent[p->axis.depth], &p->axis.depths) ||
	    !sym_is_const(n->syms, n->extent[p->axis.column], &p->axis.columns) ||
	    p->axis.depths < 1 || p->axis.columns < 1)
		return refuse_near("rows of queries or values have no constant length");
	return taken();
}

/* ---- sizes ---- */

enum {
	MANY_VECTORS = 32, /* registers for tiles of four vectors */
	BLOCK_KEYS = 128,
	BOUNDED_KEYS = 64,      /* the smaller a block, the fewer of its keys are left out */
	BLOCK_TILES = 16,       /* tiles of rows in a block */
	LOCAL_ELEMENTS = 49152, /* of a task's arrays */
	SCALAR_ELEMENTS = 2048  /* of a target without vectors: stacks may be small */
};

static int64_t round_up(int64_t x, int64_t to)
{
	return (x + to - 1) / to * to;
}

TileSize attention_choose_tile(const PlanInput *in, uint32_t lanes, int64_t columns)
{
	const uint32_t all = in->target->isa.nvreg,
		       vectors = (uint32_t)((columns + lanes - 1) / lanes);
	TileSize t = {.nv = all >= MANY_VECTORS ? 4 : 2};
	while (t.nv > vectors)
		t.nv /= 2;
	t.mr = 3 * all / 4 / (t.nv * tuning_registers(in->target, DT_f32));
	t.mr = t.mr > MAX_TILE_ROWS / 2 ? MAX_TILE_ROWS / 2 : t.mr ? t.mr : 1;
	return t;
}

static Sym rows_of(const Nest *n, const AttentionPlan *p)
{
	return p->axis.row == NO_AXIS ? sym_int(n->syms, 1) : n->extent[p->axis.row];
}

Sym attention_members(const Nest *n, const AttentionPlan *p)
{
	Sym all = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < p->axis.nbatch; i++)
		all = sym_mul(n->syms, all, n->extent[p->axis.batch[i]]);
	return all;
}

int64_t attention_pitch(const AttentionPlan *p)
{
	return p->block.cols + (p->by.frag ? p->vector.lanes * p->by.frag->group : 0);
}

static bool leaves_keys_out(const AttentionPlan *p)
{
	return p->limits.nbound || p->limits.nmask;
}

/* Returns the most tiles of rows in a block. Where keys are left out, a block of rows reads all
 * that some row sees: fewer rows read fewer keys of which others see none. */
static int64_t most_block_tiles(const AttentionPlan *p)
{
	if (!leaves_keys_out(p) || p->vector.lanes == 1)
		return BLOCK_TILES;
	const int64_t rows = p->by.frag ? p->block.cols : p->block.cols / 2;
	return rows > p->tile.mr ? rows / p->tile.mr : 1;
}

static void choose_blocks(const PlanInput *in, AttentionPlan *p)
{
	const Nest *n = in->nest;
	const uint32_t lanes = p->vector.lanes;
	const bool scalar = lanes == 1;
	const int64_t wide = (int64_t)p->tile.nv * lanes, mr = p->tile.mr,
		      most = scalar ? SCALAR_ELEMENTS : LOCAL_ELEMENTS,
		      rows = sym_hint(n->syms, rows_of(n, p));
	const int64_t keys =
		(leaves_keys_out(p) ? BOUNDED_KEYS : BLOCK_KEYS) * (p->by.frag ? 2 : 1);
	p->block.cols = round_up(scalar ? keys / 8 : keys, wide);
	const int64_t row =
		p->block.cols + round_up(p->axis.depths, lanes) + round_up(p->axis.columns, lanes);
	int64_t tiles = most / row / mr, most_tiles = most_block_tiles(p);
	tiles = tiles > most_tiles ? most_tiles : tiles < 1 ? 1 : tiles;
	/* blocks of equally many tiles, as many as keep processors busy */
	const int64_t all = (rows + mr - 1) / mr,
		      members = sym_hint(n->syms, attention_members(n, p)),
		      tasks = tuning_tasks(&in->target->machine);
	int64_t blocks = (all + tiles - 1) / tiles;
	while (members * blocks < tasks && 4 * blocks < all)
		blocks++;
	if (blocks < 1)
		blocks = 1;
	tiles = (all + blocks - 1) / blocks;
	p->block.rows = (tiles < 1 ? 1 : tiles) * mr;
	p->blocks = sym_ceildiv(n->syms, rows_of(n, p), sym_int(n->syms, p->block.rows));
	p->ntasks = sym_mul(n->syms, attention_members(n, p), p->blocks);
}

/* ---- rows and panels ---- */

const MicroKernel *attention_choose_row(const PlanInput *in, DType d, bool same,
					const int64_t *steps, uint32_t n)
{
	const MicroKernel *row;
	for (uint32_t k = 0; (row = micro_row(&in->target->isa, d, d, DT_f32, k)); k++) {
		bool whole = same && !row->nfrag && row->op != SC_fma && row->a == d;
		for (uint32_t i = 0; i < n; i++)
			whole &= steps[i] % row->group == 0;
		if (row->group == 1 || whole)
			return row;
	}
	return micro_row(&in->target->isa, DT_f32, DT_f32, DT_f32, 0);
}

const MicroKernel *attention_choose_frag(const PlanInput *in, const MicroKernel *row,
					 const int64_t *steps, uint32_t n)
{
	const MicroKernel *frag;
	const uint32_t lanes = contract_lanes(in);
	for (uint32_t k = 0; (frag = micro_row(&in->target->isa, row->a, row->b, DT_f32, k)); k++) {
		bool whole = frag->nfrag && micro_groups(row) && frag->a == row->a &&
			     frag->b == row->b && frag->group == row->group &&
			     frag->rows == lanes && frag->cols == lanes;
		for (uint32_t i = 0; i < n; i++)
			whole = whole && steps[i] % frag->k == 0;
		if (whole)
			return frag;
	}
	return NULL;
}

static const MicroKernel *choose_row(const PlanInput *in, const AttentionPlan *p)
{
	const DType d = attention_stored(in, p->value.k);
	const bool same =
		d == attention_stored(in, p->value.q) && d == attention_stored(in, p->value.v);
	return attention_choose_row(in, d, same && in->nest->n + 2 <= MAX_AXES, &p->axis.depths, 1);
}

uint32_t attention_count_groups(const PlanInput *in, Nest *n, Kx load, uint32_t axis)
{
	const Sym size = sym_int(n->syms, in->row->group);
	const uint32_t groups = nest_add_axis(n, "g", sym_ceildiv(n->syms, n->extent[axis], size));
	const Sym from = n->var[axis], to = sym_mul(n->syms, n->var[groups], size);
	n->offset[load.i] = sym_subst(n->syms, n->offset[load.i], &from, &to, 1);
	return groups;
}

/* Makes the nest of the input that in which keys and values are read by groups. */
static void find_steps(PlanInput *in, AttentionPlan *p)
{
	p->axis.k_step = p->axis.depth;
	p->axis.v_step = p->axis.key;
	if (!micro_groups(in->row))
		return;
	Nest *n = nest_copy(in->nest, in->nest->k);
	p->axis.k_step = attention_count_groups(in, n, p->value.k, p->axis.depth);
	p->axis.v_step = attention_count_groups(in, n, p->value.v, p->axis.key);
	nest_find_deps(n);
	in->nest = n;
}

static ContractAxes panel_axes(const PlanInput *in, const PanelAxes *p)
{
	ContractAxes x = {
		.n = p->across, .k = {p->along}, .nk = 1, .half = NO_AXIS, .row = in->row};
	if (micro_groups(in->row)) {
		x.grouped = p->grouped;
		x.whole_groups = sym_floordiv(in->nest->syms, in->nest->extent[x.grouped],
					      sym_int(in->nest->syms, in->row->group));
	}
	for (uint32_t i = 0; i < p->nbatch; i++)
		x.batch[x.nbatch++] = p->batch[i];
	return x;
}

const CopyPlan *attention_plan_panels(const PlanInput *in, Kx load, const PanelAxes *p,
				      Panels *panels)
{
	const ContractAxes x = panel_axes(in, p);
	const uint32_t lanes = contract_lanes(in);
	*panels = contract_place_panels(in, load, &x, p->across, lanes, lanes, 1);
	return contract_plan_copy(in, panels, &x);
}

bool attention_reads_in_place(const PlanInput *in, Kx load, const PanelAxes *p, int64_t columns,
			      double steps, double times, const CopyPlan *copy)
{
	const Machine *m = &in->target->machine;
	const ContractAxes x = panel_axes(in, p);
	if (columns % contract_lanes(in) || attention_stored(in, load) != DT_f32 ||
	    !nest_coef_is(in->nest, in->nest->offset[load.i], p->across, 1))
		return false;
	const double row = (double)contract_size(in) * (double)columns,
		     far = tuning_spaced_cycles(m, row, steps, row, contract_spacing(in, load, &x)),
		     near = tuning_spaced_cycles(m, row, steps, row, 0);
	return times * (far - near) <= contract_copy_cycles(in, copy);
}

/* Lets a phase before ask the masks, if members of the batch share them. */
static void plan_seen(const PlanInput *in, AttentionPlan *p)
{
	const Nest *n = in->nest;
	uint64_t deps = 0;
	Sym apart = sym_int(n->syms, 1), tasks = p->blocks;
	for (uint32_t i = 0; i < p->limits.nmask; i++)
		deps |= n->deps[p->limits.mask[i].value.i];
	for (uint32_t i = 0; i < p->axis.nbatch; i++) {
		const uint32_t a = p->axis.batch[i];
		if (deps >> a & 1) {
			p->limits.seen.axis[p->limits.seen.n++] = a;
			tasks = sym_mul(n->syms, tasks, n->extent[a]);
		} else {
			apart = sym_mul(n->syms, apart, n->extent[a]);
		}
	}
	const Sym keys = sym_muli(n->syms, n->extent[p->axis.key], p->block.rows);
	p->limits.seen.ntasks = tasks;
	p->limits.seen.cost =
		(KernelCost){.flops = cost_number(n->arena, 0),
			     .bytes = cost_sym(n->arena, sym_mul(n->syms, tasks, keys))};
	p->limits.seen.asked = p->limits.nmask && sym_hint(n->syms, apart) > 1;
}

/* Plans the panels of keys and of values, unless they are read in place, and sets p->nest. */
static void find_panels(const PlanInput *in, AttentionPlan *p)
{
	const PanelAxes k = {p->axis.key, p->axis.k_step, p->axis.depth, p->axis.batch,
			     p->axis.nbatch},
			v = {p->axis.column, p->axis.v_step, p->axis.key, p->axis.batch,
			     p->axis.nbatch};
	const CopyPlan *copy[2] = {attention_plan_panels(in, p->value.k, &k, &p->k_panels),
				   attention_plan_panels(in, p->value.v, &v, &p->v_panels)};
	const double rows = (double)plan_size(in, rows_of(in->nest, p)),
		     times = (double)plan_size(in, attention_members(in->nest, p)) *
			     ceil(rows / p->tile.mr) * (double)plan_extent(in, p->axis.key);
	const Kx load[2] = {p->value.k, p->value.v};
	const Sym offset[2] = {p->k_panels.offset, p->v_panels.offset};
	Nest *nest = nest_copy(in->nest, in->nest->k);
	uint32_t ntemp = 0;
	int64_t keys;
	if (!sym_is_const(in->nest->syms, in->nest->extent[p->axis.key], &keys) ||
	    !attention_reads_in_place(in, p->value.k, &k, keys, (double)p->axis.depths,
				      times / (double)p->block.cols, copy[0]))
		p->copy[0] = copy[0];
	if (!attention_reads_in_place(in, p->value.v, &v, p->axis.columns, (double)p->block.cols,
				      times, copy[1]))
		p->copy[1] = copy[1];
	for (uint32_t i = 0; i < 2; i++)
		if (p->copy[i])
			nest_read(nest, load[i], (SchedArg){ARG_TEMP, ntemp++, NULL}, offset[i]);
	p->nest = nest;
}

/* ---- cycles ---- */

/* Returns the cycles, at in->at, of all tiles of one product. */
static double product_cycles(const PlanInput *in, const AttentionPlan *p, double columns,
			     double steps)
{
	const double rows = (double)plan_size(in, rows_of(in->nest, p)),
		     members = (double)plan_size(in, attention_members(in->nest, p)),
		     tiles = ceil(rows / p->tile.mr) *
			     ceil(columns / (double)(p->tile.nv * p->vector.lanes));
	return members * tiles * steps *
	       tuning_tile_cycles(in->target, in->row, p->tile.mr, p->tile.nv);
}

double attention_logit_cycles(const PlanInput *in, const AttentionPlan *p, double rows, double keys)
{
	return (double)plan_size(in, attention_members(in->nest, p)) * rows *
	       ceil(keys / p->vector.lanes) * predict_epilogue(in->nest->k) *
	       machine_cycles(&in->target->machine, MOP_simple, DT_f32, p->vector.lanes);
}

static double cycles(const PlanInput *in, const AttentionPlan *p)
{
	if (p->few.rows)
		return attention_few_cycles(in, p);
	const double keys = (double)plan_extent(in, p->axis.key),
		     rows = (double)plan_size(in, rows_of(in->nest, p)), group = p->by.row->group;
	double all = product_cycles(in, p, keys, (double)p->axis.depths / group) +
		     product_cycles(in, p, (double)p->axis.columns, ceil(keys / group)) +
		     attention_logit_cycles(in, p, rows, keys);
	for (uint32_t i = 0; i < 2; i++)
		all += p->copy[i] ? contract_copy_cycles(in, p->copy[i]) : 0;
	return all + in->target->machine.phase;
}

/* ---- the plan ---- */

static const char *describe(const PlanInput *in, const AttentionPlan *p)
{
	const char *limits = p->limits.nbound  ? ", bounded keys"
			     : p->limits.nmask ? ", masked blocks left out"
					       : "";
	if (p->few.rows)
		return arena_printf(in->nest->arena,
				    "attention, keys and values in place, %lld rows, blocks of "
				    "%lld keys%s%s",
				    (long long)p->block.rows, (long long)p->block.cols,
				    p->few.keys ? arena_printf(in->nest->arena, ", parts of %lld",
							       (long long)p->few.keys)
						: "",
				    limits);
	return arena_printf(
		in->nest->arena, "attention, %s%s%ux%u tile, blocks of %lld rows x %lld keys%s",
		p->by.frag                ? p->by.frag->name
		: micro_groups(p->by.row) ? p->by.row->name
					  : "",
		micro_groups(p->by.row) ? ", " : "", p->tile.mr, p->tile.nv * p->vector.lanes,
		(long long)p->block.rows, (long long)p->block.cols, limits);
}

/* Completes the plan of tiles. */
static void plan_tiles(PlanInput *in, AttentionPlan *p)
{
	in->row = p->by.row = choose_row(in, p);
	p->by.frag = attention_choose_frag(in, p->by.row, &p->axis.depths, 1);
	p->tile = p->by.frag ? (TileSize){.mr = p->by.frag->rows, .nv = 1}
			     : attention_choose_tile(in, p->vector.lanes, p->axis.columns);
	choose_blocks(in, p);
	find_steps(in, p);
	find_panels(in, p);
	plan_seen(in, p);
}

static void predict(PlanInput *in, const AttentionPlan *p, Plan *plan)
{
	in->at = (PlanSizes){0};
	plan->cycles = cycles(in, p);
	in->at = in->larger;
	plan->larger = cycles(in, p);
	plan->of.attention = p;
}

/* Takes the plan of few rows if there is none of tiles, or that takes longer; or refuses it. */
static Refusal consider_few(PlanInput *in, AttentionPlan *p, bool tiles, Plan *plan)
{
	Plan few = {0};
	Refusal no = attention_plan_few(in, p, tiles);
	if (!no.why) {
		predict(in, p, &few);
		if (!tiles || plan_worst(&few, plan) <= plan_worst(plan, &few)) {
			*plan = few;
			return taken();
		}
		no = refuse_near("tiles are predicted to take less time");
	}
	if (!tiles)
		return refuse_near("keys or values are decoded, and rows are many");
	no.schedule = "few rows";
	if (no.near)
		plan->refused[plan->nrefused++] = no;
	return taken();
}

Refusal plan_attention(const PlanInput *given, Plan *plan)
{
	const Contractions all = kernel_contractions(given->nest->syms, given->nest->k);
	AttentionPlan *p = ARENA_NEW(given->nest->arena, AttentionPlan);
	PlanInput in = *given, few = *given;
	Refusal no = find_stages(&in, p);
	if (no.why)
		return no;
	no = find_values(&in, p);
	if (no.why)
		return no;
	if (all.n && all.contraction[0].sum == 0)
		in.contraction = all.contraction[0];
	in.contraction.dtype = DT_f32;
	few.contraction = in.contraction;
	no = find_axes(&in, p);
	if (no.why)
		return no;
	if (nest_is_empty(in.nest))
		return refuse("it is empty");
	few.row = p->by.row = micro_row(&in.target->isa, DT_f32, DT_f32, DT_f32, 0);
	p->vector = (LType){DT_f32, contract_lanes(&in)};
	p->cost = in.cost;
	p->limits.row = p->axis.row;
	p->limits.key = p->axis.key;
	attention_find_limits(in.nest, &p->limits, 1, p->value.logits);
	AttentionPlan *other = arena_dup(in.nest->arena, p, sizeof *p);
	const bool tiles = all.n && all.contraction[0].sum == 0 &&
			   attention_is_load(&in, p->value.k) && attention_is_load(&in, p->value.v);
	if (tiles) {
		plan_tiles(&in, p);
		predict(&in, p, plan);
	}
	no = consider_few(&few, other, tiles, plan);
	if (no.why)
		return no;
	p = plan->of.attention == other ? other : p;
	plan->algorithm = describe(given, p);
	plan->why = "scores are made by blocks of keys, and never lie in memory";
	return taken();
}

void attention_print_blocks(TileSize tile, uint32_t lanes, BlockSize block, const KeyLimits *l,
			    Text *out)
{
	text_printf(out, "; tile %u x %u vectors of %u; block of %lld rows x %lld keys", tile.mr,
		    tile.nv, lanes, (long long)block.rows, (long long)block.cols);
	if (l->nbound)
		text_printf(out, ", %u bounds of keys", l->nbound);
	if (l->nmask)
		text_printf(out, ", %u masks read", l->nmask);
}

void print_attention(const Plan *plan, Text *out)
{
	const AttentionPlan *p = plan->of.attention;
	const Nest *n = p->nest;
	plan_print_axes(n, "rows", &p->axis.row, p->axis.row != NO_AXIS, out);
	plan_print_axes(n, "", p->limits.inner.axis, p->limits.inner.n, out);
	plan_print_axes(n, p->axis.row != NO_AXIS ? ", keys" : "keys", &p->axis.key, 1, out);
	plan_print_axes(n, ", depth", &p->axis.depth, 1, out);
	plan_print_axes(n, ", columns", &p->axis.column, 1, out);
	plan_print_axes(n, ", batch", p->axis.batch, p->axis.nbatch, out);
	attention_print_blocks(p->tile, p->vector.lanes, p->block, &p->limits, out);
	plan_print_tasks(n, p->ntasks, out);
	for (uint32_t i = 0; i < 2; i++)
		if (p->copy[i])
			plan_print_copy(p->copy[i], out);
}
