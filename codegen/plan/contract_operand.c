/* How a contraction reads its operands: b in place, in panels that are packed, copied or gathered;
 * a in place or in panels of the rows of a tile. */
#include "codegen/plan/contract.h"

#include <math.h>

bool contract_linear(const PlanInput *in, Sym offset)
{
	Sym coef;
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && !nest_coef(in->nest, offset, a, &coef))
			return false;
	return true;
}

/* ---- operand b as a packed constant ---- */

/* Where an axis stands in the packed constant: (index of dimension `dim`) / divisor % extent. */
typedef struct {
	uint32_t dim;
	int64_t divisor;
} Digit;

/* The index of a dimension as a number whose digits are axes: idx = sum of axis * divisor. */
MUST_LOOK static bool find_digits(const PlanInput *in, Sym idx, uint32_t dim, Digit *digit)
{
	Sym rest = idx;
	int64_t product = 1;
	uint32_t left = 0;
	for (uint32_t a = 0; a < in->nest->n; a++)
		left += in->nest->var[a].i && sym_uses(in->nest->syms, idx, in->nest->var[a]);
	while (left) {
		uint32_t found = NO_AXIS;
		for (uint32_t a = 0; a < in->nest->n && found == NO_AXIS; a++) {
			Sym coef, other;
			if (in->nest->var[a].i &&
			    sym_uses(in->nest->syms, rest, in->nest->var[a]) &&
			    sym_linear(in->nest->syms, rest, in->nest->var[a], &coef, &other) &&
			    sym_is(in->nest->syms, coef, product))
				found = a;
		}
		int64_t extent;
		Sym coef;
		if (found == NO_AXIS ||
		    (left > 1 && !sym_is_const(in->nest->syms, in->nest->extent[found], &extent)) ||
		    !sym_linear(in->nest->syms, rest, in->nest->var[found], &coef, &rest))
			return false;
		digit[found] = (Digit){dim, product};
		product = left > 1 ? product * extent : product;
		left--;
	}
	return sym_is(in->nest->syms, rest, 0);
}

static void add_digit(Layout *out, const Digit *d, Sym extent)
{
	out->dim[out->n++] = (LayoutDim){d->dim, d->divisor, extent, extent};
}

/* Returns the axis of the kernel behind summed axis i: itself, or the axis whose groups it
 * counts. */
static uint32_t counted(const ContractAxes *x, uint32_t i)
{
	return micro_groups(x->row) && i + 1 == x->nk ? x->grouped : x->k[i];
}

/* Whether a partial last panel or group of the axis would run into the next digit of the same
 * dimension. */
static bool runs_over(const PlanInput *in, const Digit *digit, uint32_t axis, int64_t width)
{
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (a != axis && digit[a].dim == digit[axis].dim &&
		    digit[a].divisor > digit[axis].divisor &&
		    !sym_divides(in->nest->syms, width, in->nest->extent[axis]))
			return true;
	return false;
}

/* Dimensions in the order: batch, N panels, K by decreasing stride of a, columns of a panel, steps
 * of a group. */
MUST_LOOK static bool pack_layout(const PlanInput *in, const ContractAxes *x, const KxData *b,
				  int64_t width, Layout *out)
{
	Digit digit[MAX_AXES] = {{0}};
	for (uint32_t a = 0; a < in->nest->n; a++)
		digit[a].dim = NO_AXIS;
	for (uint32_t d = 0; d < b->nidx; d++)
		if (!find_digits(in, b->idx[d], d, digit))
			return false;
	*out = (Layout){0};
	const bool groups = micro_groups(x->row);
	if (digit[x->n].dim == NO_AXIS || x->nbatch + x->nk + 2 + groups > 2 * MAX_RANK)
		return false;
	for (uint32_t i = 0; i < x->nk; i++)
		if (digit[counted(x, i)].dim == NO_AXIS)
			return false;
	if (runs_over(in, digit, x->n, width) ||
	    (groups && runs_over(in, digit, x->grouped, x->row->group)))
		return false;
	for (uint32_t i = 0; i < x->nbatch; i++)
		if (digit[x->batch[i]].dim != NO_AXIS)
			add_digit(out, &digit[x->batch[i]], in->nest->extent[x->batch[i]]);
	Digit panel = {digit[x->n].dim, digit[x->n].divisor * width};
	add_digit(out, &panel,
		  sym_ceildiv(in->nest->syms, in->nest->extent[x->n],
			      sym_int(in->nest->syms, width)));
	for (uint32_t i = 0; i < x->nk; i++) {
		Digit k = digit[counted(x, i)];
		k.divisor *= groups && i + 1 == x->nk ? x->row->group : 1;
		add_digit(out, &k, in->nest->extent[x->k[i]]);
	}
	add_digit(out, &digit[x->n], sym_int(in->nest->syms, width));
	if (groups)
		add_digit(out, &digit[x->grouped], sym_int(in->nest->syms, x->row->group));
	return true;
}

/* Chooses the layout of a constant in the widest panels that are possible, and returns the vectors
 * of columns in a panel. Returns 0 if the operand is no constant, or must keep another layout. */
static uint32_t choose_panels(const PlanInput *in, Kx load, const ContractAxes *x, Layout *out)
{
	const KxData *b = &in->nest->k->kx.data[load.i];
	uint32_t width = target_panel(in->target) * (uint32_t)sizeof(float) /
			 (uint32_t)contract_size(in),
		 lanes = contract_lanes(in);
	if (buf_of(in->nest->l, b->buf)->kind != BUF_CONST)
		return 0;
	while (width >= lanes &&
	       !(pack_layout(in, x, b, width, out) && nest_may_repack(in->nest, load, out)))
		width /= 2;
	return width / lanes;
}

Sym contract_most(const PlanInput *in, Sym extent)
{
	SymTab *syms = in->nest->syms;
	const Sym most = sym_uses_kind(syms, extent, SYMVAR_AXIS) ? sym_most(syms, extent) : extent;
	return most.i ? most : extent;
}

void contract_place_members(const PlanInput *in, const ContractAxes *x, Panels *p)
{
	SymTab *syms = in->nest->syms;
	const uint64_t axes = nest_axes(in->nest, in->nest->offset[p->load.i]);
	Sym stride = sym_mul(syms, p->stride, p->count);
	p->numel = sym_mul(syms, p->numel, contract_most(in, p->count));
	for (uint32_t i = x->nbatch; i-- > 0;) {
		const Sym extent = in->nest->extent[x->batch[i]];
		if (!(axes >> x->batch[i] & 1))
			continue;
		p->offset =
			sym_add(syms, p->offset, sym_mul(syms, in->nest->var[x->batch[i]], stride));
		stride = sym_mul(syms, stride, extent);
		p->numel = sym_mul(syms, p->numel, contract_most(in, extent));
	}
}

Panels contract_place_panels(const PlanInput *in, Kx load, const ContractAxes *x, uint32_t axis,
			     int64_t step, int64_t width, int64_t unit)
{
	Panels p = {.load = load,
		    .axis = axis,
		    .step = step,
		    .width = width,
		    .unit = unit,
		    .offset = sym_int(in->nest->syms, 0)};
	Sym stride = sym_int(in->nest->syms, width * unit), numel = stride;
	for (uint32_t i = x->nk; i-- > 0;) {
		p.offset = sym_add(in->nest->syms, p.offset,
				   sym_mul(in->nest->syms, in->nest->var[x->k[i]], stride));
		stride = sym_mul(in->nest->syms, stride, in->nest->extent[x->k[i]]);
		numel = sym_mul(in->nest->syms, numel,
				contract_most(in, in->nest->extent[x->k[i]]));
	}
	p.stride = stride;
	p.count =
		sym_ceildiv(in->nest->syms, in->nest->extent[axis], sym_int(in->nest->syms, step));
	p.numel = numel;
	contract_place_members(in, x, &p);
	return p;
}

int64_t contract_k_bound(const PlanInput *in, const ContractAxes *x)
{
	int64_t total = 1;
	for (uint32_t i = 0; i < x->nk; i++) {
		int64_t lo, hi;
		sym_range(in->nest->syms, in->nest->extent[x->k[i]], &lo, &hi);
		if (hi > MAX_PANEL || total * hi > MAX_PANEL)
			return 0;
		total *= hi;
	}
	return total;
}

static double extents(const PlanInput *in, const uint32_t *axis, uint32_t n)
{
	double all = 1;
	for (uint32_t i = 0; i < n; i++)
		all *= (double)plan_extent(in, axis[i]);
	return all;
}

double contract_steps(const PlanInput *in, const ContractAxes *x)
{
	return extents(in, x->k, x->nk) * x->nfield;
}

double contract_members(const PlanInput *in, const ContractAxes *x)
{
	return extents(in, x->batch, x->nbatch);
}

/* Returns the elements of an operand at hint sizes: its columns (or rows) along `axis`, times steps
 * of k, times members of the batch. */
static double count_elements(const PlanInput *in, const ContractAxes *x, uint32_t axis)
{
	return (double)nest_hint(in->nest, axis) * contract_steps(in, x) * contract_members(in, x);
}

static CopyKind copy_kind(const PlanInput *in, Kx load, const ContractAxes *x)
{
	return contract_unit_axes(in, load, x).n ? COPY_TURNED : COPY_GATHERED;
}

/* Returns the blocks of rows whose parts of a fit L2: each gathers the panels of b again. */
static double row_blocks(const PlanInput *in, const ContractAxes *x)
{
	const int64_t most = tuning_block_elements(&in->target->machine, in->contraction.dtype);
	return fmax(1, ceil(extents(in, x->m, x->nm) * contract_steps(in, x) / (double)most));
}

/* Whether a phase that copies the operand into panels takes less time, with the price of a phase,
 * than gathering each panel for each block of rows. */
static bool copying_is_cheaper(const PlanInput *in, Kx load, const ContractAxes *x)
{
	double elements = count_elements(in, x, x->n);
	double saved = row_blocks(in, x) *
			       tuning_gathered_cycles(in->target, in->contraction.dtype, elements) -
		       tuning_copied_cycles(in->target, in->contraction.dtype, elements,
					    copy_kind(in, load, x));
	return saved * elements / contract_lanes(in) > in->target->machine.phase;
}

double contract_spacing(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const int64_t size =
		dtype_size(buf_of(in->nest->l, in->nest->k->kx.data[load.i].buf)->dtype);
	int64_t all = INT64_C(1) << 40;
	for (uint32_t i = 0; i < x->nk; i++) {
		Sym coef;
		if (nest_coef(in->nest, in->nest->offset[load.i], x->k[i], &coef))
			all |= sym_hint(in->nest->syms, coef) * size;
	}
	return (double)(all & -all);
}

/* Returns the steps of k of all tiles: rows of tiles times columns of tiles times the steps of
 * each. */
static double tile_steps(const PlanInput *in, const ContractAxes *x, TileSize tile)
{
	const int64_t rows = (int64_t)extents(in, x->m, x->nm),
		      width = (int64_t)tile.nv * contract_lanes(in);
	const int64_t tiles = (rows + tile.mr - 1) / tile.mr;
	return (double)tiles * count_elements(in, x, x->n) / (double)width;
}

/* Returns the cycles of a phase that copies so many vectors. */
static double copying_cycles(const PlanInput *in, double vectors)
{
	return vectors * tuning_copied_cycles(in->target, in->contraction.dtype,
					      vectors * contract_lanes(in), COPY_VECTORS) +
	       in->target->machine.phase;
}

/* Whether copying b into panels is faster than reading it in place: the lines of a panel in place
 * share few sets of the caches, so that every tile of rows fetches them from afar. */
static bool panels_are_nearer(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const Machine *m = &in->target->machine;
	const OperandB in_place = {.access = B_IN_PLACE};
	const TileSize tile = contract_choose_tile(in, x, &in_place);
	double row = (double)contract_size(in) * tile.nv * contract_lanes(in),
	       steps = contract_steps(in, x);
	double far = tuning_spaced_cycles(m, row, steps, row, contract_spacing(in, load, x)),
	       near = tuning_spaced_cycles(m, row, steps, row, 0);
	return tile_steps(in, x, tile) * (far - near) >
	       copying_cycles(in, count_elements(in, x, x->n) / contract_lanes(in));
}

static void copy_panels(const PlanInput *in, Kx load, const ContractAxes *x, OperandB *b)
{
	int64_t width = contract_lanes(in);
	b->access =
		nest_coef_is(in->nest, in->nest->offset[load.i], x->n, 1) ? B_BROUGHT : B_COPIED;
	b->vectors =
		1; /* columns past whole tiles of a symbolic number are done vector by vector */
	b->panels = contract_place_panels(in, load, x, x->n, width, width, 1);
}

/* Chooses the first of these ways that fits: a packed constant; panels that are copied, for groups;
 * in place, with unit stride along n, unless panels are nearer; panels that are gathered, of
 * bounded size, or copied. */
Refusal contract_choose_b(const PlanInput *in, Kx load, const ContractAxes *x, OperandB *b)
{
	int64_t lanes = contract_lanes(in);
	*b = (OperandB){.load = load, .access = B_PACKED};
	b->vectors = choose_panels(in, load, x, &b->layout);
	if (b->vectors) {
		b->panels = contract_place_panels(in, load, x, x->n, b->vectors * lanes,
						  b->vectors * lanes,
						  micro_groups(x->row) ? x->row->group : 1);
		return taken();
	}
	if (!contract_linear(in, in->nest->offset[load.i]))
		return refuse_near("operand b is read at an index that is not linear");
	if (micro_groups(x->row)) {
		copy_panels(in, load, x, b);
		b->access = B_COPIED;
		return taken();
	}
	int64_t k = contract_k_bound(in, x);
	bool small = k && k * contract_size(in) * lanes <= MAX_PANEL;
	if (nest_coef_is(in->nest, in->nest->offset[load.i], x->n, 1)) {
		b->access = B_IN_PLACE;
		if (lanes > 1 && panels_are_nearer(in, load, x))
			copy_panels(in, load, x, b);
		return taken();
	}
	b->access = B_GATHERED;
	if (!small && lanes == 1)
		return refuse_near("the columns of operand b are apart, and its panels may be "
				   "larger than a local array");
	if (lanes > 1 && (!small || copying_is_cheaper(in, load, x)))
		copy_panels(in, load, x, b);
	return taken();
}

/* Whether a load is of a constant that differs by column, and perhaps by block, but not else. */
static bool is_scale(const PlanInput *in, const ContractAxes *x, Kx load)
{
	const KxData *d = &in->nest->k->kx.data[load.i];
	uint64_t axes = UINT64_C(1) << x->n;
	if (d->kind != KX_LOAD || d->guard.i || buf_of(in->nest->l, d->buf)->kind != BUF_CONST)
		return false;
	const uint64_t of = nest_axes(in->nest, in->nest->offset[load.i]);
	if (!(of & axes))
		return false;
	for (uint32_t i = 0; i < x->nblock; i++)
		axes |= UINT64_C(1) << x->k[i];
	return of == axes;
}

/* Returns the axes with those of k[] only on which the load depends. */
static ContractAxes axes_beside(const Nest *n, const ContractAxes *x, Kx load)
{
	const uint64_t of = nest_axes(n, n->offset[load.i]);
	ContractAxes own = *x;
	own.nk = own.nbatch = 0;
	for (uint32_t i = 0; i < x->nk; i++)
		if (of >> x->k[i] & 1)
			own.k[own.nk++] = x->k[i];
	own.nblock = own.nk;
	return own;
}

void contract_pack_scales(const PlanInput *in, ContractPlan *p)
{
	const Nest *n = in->nest;
	const uint32_t lanes = contract_lanes(in), width = p->b.vectors * lanes;
	ContractAxes blocks = p->axes;
	blocks.nk = blocks.nblock;
	blocks.row = micro_row(&in->target->isa, DT_f32, DT_f32, DT_f32, 0);
	bool *reached = ARENA_ARRAY(n->arena, bool, n->k->kx.n);
	kernel_reached(n->k, p->sums.blocks.stage, p->sums.blocks.stage + 1, reached);
	for (uint32_t i = 1; i < n->k->kx.n && p->sums.blocks.nscale < MAX_SCALES; i++) {
		PanelLoad s = {.load = {i}};
		if (!reached[i] || i == p->a.load.i || i == p->b.load.i ||
		    n->k->kx.data[i].kind != KX_LOAD)
			continue;
		/* groups may have several blocks */
		const ContractAxes x = axes_beside(n, &blocks, s.load);
		if (!is_scale(in, &x, s.load) ||
		    !pack_layout(in, &x, &n->k->kx.data[i], width, &s.layout) ||
		    !nest_may_repack(n, s.load, &s.layout))
			continue;
		s.panels = contract_place_panels(in, s.load, &x, x.n, width, width, 1);
		p->sums.blocks.scale[p->sums.blocks.nscale++] = s;
	}
}

/* Returns how many of the first axes of k[] are in the set, if no others are summed ones of it;
 * else nk + 1. */
static uint32_t first_summed(const ContractAxes *x, uint64_t axes)
{
	uint32_t n = 0;
	while (n < x->nk && axes >> x->k[n] & 1)
		n++;
	for (uint32_t i = n; i < x->nk; i++)
		if (axes >> x->k[i] & 1)
			return x->nk + 1;
	return x->half != NO_AXIS && axes >> x->half & 1 ? x->nk + 1 : n;
}

void contract_find_factor(const PlanInput *in, ContractPlan *p)
{
	enum { FEW_ROWS = 8, MOST_STEPS = 256 /* of a chain of f32 */ };
	const Nest *n = in->nest;
	DecodedB *d = &p->b.decoded;
	const KxData *x = &n->k->kx.data[d->value.i];
	if (d->slab || !kx_is_product(n->k, d->value) ||
	    plan_size(in, contract_product(in, p->axes.m, p->axes.nm)) > FEW_ROWS)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t first = first_summed(&p->axes, n->deps[x->in[i].i]);
		double steps = p->axes.nfield;
		for (uint32_t k = first; k < p->axes.nk; k++)
			steps *= (double)sum_most(n->syms, n->extent[p->axes.k[k]]);
		if (first >= p->axes.nk || (first && steps > MOST_STEPS))
			continue;
		d->factor = x->in[i];
		d->value = x->in[!i];
		p->axes.nblock = first;
		return;
	}
}

void contract_pack_beside(const PlanInput *in, ContractPlan *p)
{
	const Nest *n = in->nest;
	const uint32_t width = p->b.vectors * contract_lanes(in);
	DecodedB *d = &p->b.decoded;
	bool *reached = ARENA_ARRAY(n->arena, bool, n->k->kx.n);
	kernel_reached(n->k, in->contraction.sum, in->contraction.sum + 1, reached);
	for (uint32_t i = 1; i < n->k->kx.n && d->nbeside < MAX_SCALES; i++) {
		PanelLoad s = {.load = {i}};
		if (!reached[i] || i == p->a.load.i || i == p->b.load.i ||
		    n->k->kx.data[i].kind != KX_LOAD)
			continue;
		const ContractAxes x = axes_beside(n, &p->axes, s.load);
		if (is_scale(in, &x, s.load) &&
		    pack_layout(in, &x, &n->k->kx.data[i], width, &s.layout) &&
		    nest_may_repack(n, s.load, &s.layout))
			d->beside[d->nbeside++] = s;
	}
}

void contract_place_decoded(const PlanInput *in, ContractPlan *p)
{
	const Nest *n = in->nest;
	const int64_t width = (int64_t)p->b.vectors * contract_lanes(in);
	DecodedB *d = &p->b.decoded;
	p->b.panels = contract_place_panels(in, p->b.load, &p->axes, p->axes.n, width, width, 1);
	for (uint32_t i = 0; i < d->nbeside; i++) {
		const ContractAxes x = axes_beside(n, &p->axes, d->beside[i].load);
		d->beside[i].panels =
			contract_place_panels(in, d->beside[i].load, &x, x.n, width, width, 1);
	}
}

/* Whether steps of the last summed axis, or its groups, are neighbours in both operands. */
static bool lie_along(const PlanInput *in, Kx a, Kx b, const ContractAxes *x)
{
	const uint32_t last = x->k[x->nk - 1], step = micro_groups(x->row) ? x->row->group : 1;
	return nest_coef_is(in->nest, in->nest->offset[a.i], last, step) &&
	       nest_coef_is(in->nest, in->nest->offset[b.i], last, step);
}

Refusal contract_choose_along(const PlanInput *in, Kx a, Kx b, const ContractAxes *x,
			      OperandB *out)
{
	*out = (OperandB){.load = b, .access = B_ALONG};
	if (x->row->nfrag || x->row->biased)
		return refuse("the instruction wants panels");
	if (contract_has_tail(in->nest, x))
		return refuse("the last group is not whole");
	if (contract_lanes(in) == 1 || contract_lanes(in) > MAX_DOT_LANES)
		return refuse("the target has no vectors, or vectors that are too wide");
	if (buf_of(in->nest->l, in->nest->k->kx.data[b.i].buf)->kind == BUF_CONST)
		return refuse("a constant is packed");
	if (!contract_linear(in, in->nest->offset[b.i]))
		return refuse_near("operand b is read at an index that is not linear");
	return lie_along(in, a, b, x) ? taken() : refuse("steps of k are apart");
}

/* Refuses where steps of k are neighbours in both operands: a thread of a block would gather its
 * panel into its own memory, which is slow, and the generic schedule reads whole lines. */
Refusal contract_panels_do_not_pay(const PlanInput *in, const ContractPlan *c)
{
	const Nest *n = in->nest;
	const ContractAxes *x = &c->axes;
	if (!in->target->isa.of_block || c->b.access != B_GATHERED)
		return taken();
	for (uint32_t i = 0; i < x->nk; i++)
		if (nest_coef_is(n, n->offset[c->a.load.i], x->k[i], 1) &&
		    nest_coef_is(n, n->offset[c->b.load.i], x->k[i], 1))
			return refuse_near("columns of b are apart, and a thread has no memory "
					   "near it for panels");
	return taken();
}

/* Whether copying a into panels of `width` rows saves time: its rows are neighbours in memory and
 * its steps of k apart, so that each step reads a line, of which a tile wants few rows, from
 * afar, or waits for it. Panels are read in order, ahead of their use. */
static bool copies_a(const PlanInput *in, const ContractPlan *c, int64_t width)
{
	const Machine *m = &in->target->machine;
	const ContractAxes *x = &c->axes;
	double line = m->line, apart = contract_spacing(in, c->a.load, x),
	       rows = (double)contract_size(in) * (double)c->block.rows,
	       block = rows > line ? rows : line,
	       steps = c->k_block.used ? (double)(c->k_block.steps * c->k_block.inner)
				       : contract_steps(in, x);
	if (tuning_waiting_cycles(m, steps, line, apart) == 0)
		return false; /* the next tiles find what is left of each line */
	const double panel = (double)contract_size(in) * (double)width,
		     tiles = (double)(c->block.rows / c->tile.mr),
		     longer = tuning_spaced_cycles(m, line, steps, block, apart) -
			      tuning_spaced_cycles(m, panel, steps, panel * tiles, 0),
		     waits = tuning_waiting_cycles(m, steps, block, apart);
	return tile_steps(in, x, c->tile) * (longer > waits ? longer : waits) >
	       copying_cycles(in, count_elements(in, x, x->m[0]) / c->tile.mr * (double)width /
					  contract_lanes(in));
}

bool contract_copies_a(const PlanInput *in, const ContractPlan *c, Panels *p)
{
	const ContractAxes *x = &c->axes;
	int64_t lanes = contract_lanes(in), width = (c->tile.mr + lanes - 1) / lanes * lanes;
	if (lanes == 1 || x->nm != 1 || x->row->nfrag || (micro_groups(x->row) && !c->a.apart) ||
	    c->windows.n || !nest_coef_is(in->nest, in->nest->offset[c->a.load.i], x->m[0], 1) ||
	    (!c->a.apart && !copies_a(in, c, width)))
		return false;
	*p = contract_place_panels(in, c->a.load, x, x->m[0], c->tile.mr, width, 1);
	return true;
}

/* ---- runs of rows of a ---- */

/* Whether the index takes every value of a dimension of that size, and no other, in the nest. */
MUST_LOOK static bool takes_all(const PlanInput *in, Sym idx, int64_t size)
{
	const Nest *n = in->nest;
	int64_t coef[MAX_AXES], extent[MAX_AXES], reach = 1;
	uint32_t count = 0;
	for (uint32_t a = 0; a < n->n; a++) {
		Sym c;
		if (!n->var[a].i || !sym_uses(n->syms, idx, n->var[a]))
			continue;
		TRY(sym_linear(n->syms, idx, n->var[a], &c, &idx) &&
		    sym_is_const(n->syms, c, &coef[count]) &&
		    sym_is_const(n->syms, n->extent[a], &extent[count]) && coef[count] > 0);
		count++;
	}
	while (count) {
		uint32_t least = 0;
		for (uint32_t i = 1; i < count; i++)
			least = coef[i] < coef[least] ? i : least;
		TRY(coef[least] <= reach);
		reach += coef[least] * (extent[least] - 1);
		count--;
		coef[least] = coef[count];
		extent[least] = extent[count];
	}
	return sym_is(n->syms, idx, 0) && reach == size;
}

bool contract_reads_all(const PlanInput *in, Kx load)
{
	const KxData *x = &in->nest->k->kx.data[load.i];
	const Buffer *buf = buf_of(in->nest->l, x->buf);
	for (uint32_t d = 0; d < x->nidx; d++) {
		int64_t size;
		TRY(sym_is_const(in->nest->syms, buf->dim[d], &size) &&
		    takes_all(in, x->idx[d], size));
	}
	return !x->guard.i;
}

static Sym row_distance(const PlanInput *in, const ContractPlan *c, uint32_t i)
{
	Sym coef = {0};
	return nest_coef(in->nest, in->nest->offset[c->a.load.i], c->axes.m[i], &coef) ? coef
										       : (Sym){0};
}

/* The places of row axis i, if rows of the axis before it go on at the same distance behind
 * them. */
MUST_LOOK static bool places_of(const PlanInput *in, const ContractPlan *c, uint32_t i, bool all,
				Sym *wide)
{
	SymTab *syms = in->nest->syms;
	const Sym here = row_distance(in, c, i), before = row_distance(in, c, i - 1),
		  rows = in->nest->extent[c->axes.m[i]];
	int64_t a, b, n;
	*wide = rows;
	if (here.i && sym_eq(syms, before, sym_mul(syms, here, rows)) == YES)
		return true;
	if (!all || !here.i || !sym_is_const(syms, here, &a) || !sym_is_const(syms, before, &b) ||
	    !sym_is_const(syms, rows, &n) || a < 1 || b % a || b / a < n)
		return false;
	*wide = sym_int(syms, b / a);
	return true;
}

/* Fragments of a run of so many places: as many as needed, of equally many places. False: there may
 * be fewer places than a fragment has. */
MUST_LOOK static bool cut_run(const PlanInput *in, const ContractPlan *c, Runs *r)
{
	SymTab *syms = in->nest->syms;
	const int64_t most = c->axes.row->rows;
	int64_t length, high;
	if (sym_is_const(syms, r->length, &length)) {
		const int64_t n = (length + most - 1) / most;
		r->rows = (uint32_t)(n > 0 ? (length + n - 1) / n : 0);
		r->fragments = sym_int(syms, n);
		return n > 0;
	}
	sym_range(syms, r->length, &length, &high);
	r->rows = (uint32_t)most;
	r->fragments = sym_ceildiv(syms, r->length, sym_int(syms, most));
	return length >= most;
}

Runs contract_find_runs(const PlanInput *in, const ContractPlan *c, bool all)
{
	SymTab *syms = in->nest->syms;
	const uint32_t nm = c->axes.nm;
	const Sym one = sym_int(syms, 1);
	Runs best = {0}, r = {.first = nm ? nm - 1 : 0,
			      .length = nm ? in->nest->extent[c->axes.m[nm - 1]] : one};
	r.distance = nm ? row_distance(in, c, nm - 1) : sym_int(syms, c->axes.row->k);
	Sym line = one; /* places from one row of axis r.first to the next */
	int64_t fewest = 0;
	while (r.distance.i) {
		const int64_t runs = sym_hint(syms, contract_product(in, c->axes.m, r.first));
		if (cut_run(in, c, &r) &&
		    (!best.used || runs * sym_hint(syms, r.fragments) < fewest)) {
			best = r;
			best.used = true;
			fewest = runs * sym_hint(syms, r.fragments);
		}
		if (!r.first || !places_of(in, c, r.first, all, &r.wide[r.first]))
			break;
		line = sym_mul(syms, line, r.wide[r.first]);
		r.first--;
		/* the last line ends with its last row */
		const Sym lines = sym_sub(syms, in->nest->extent[c->axes.m[r.first]], one);
		r.length = sym_add(syms, sym_mul(syms, lines, line), r.length);
	}
	return best;
}

/* ---- windows of a padded operand, and whether tiles gain by leaving out taps, see
 * contract_border.c ---- */

enum { WORTH = 16 /* of so many steps, one is saved */, MAX_COUNTED = 1 << 16 };

static bool is_row(const ContractAxes *x, uint32_t axis)
{
	for (uint32_t i = 0; i < x->nm; i++)
		if (x->m[i] == axis)
			return true;
	return false;
}

/* idx == coef * row + step * k + start? */
MUST_LOOK static bool read_window(const PlanInput *in, const ContractAxes *x, Sym idx, uint32_t k,
				  Window *w)
{
	Sym step, coef, rest;
	TRY(sym_linear(in->nest->syms, idx, in->nest->var[k], &step, &rest) &&
	    sym_is_const(in->nest->syms, step, &w->step) && w->step > 0);
	w->k = k;
	w->row = NO_AXIS;
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && sym_uses(in->nest->syms, rest, in->nest->var[a])) {
			TRY(w->row == NO_AXIS && is_row(x, a));
			w->row = a;
		}
	return w->row != NO_AXIS &&
	       sym_linear(in->nest->syms, rest, in->nest->var[w->row], &coef, &w->start) &&
	       sym_is_const(in->nest->syms, coef, &w->coef) && w->coef > 0;
}

Windows contract_find_windows(const PlanInput *in, Kx load, const ContractAxes *x)
{
	const KxData *a = &in->nest->k->kx.data[load.i];
	const Buffer *buf = buf_of(in->nest->l, a->buf);
	Windows found = {0};
	for (uint32_t d = 0; buf->inner_lo && d < a->nidx; d++)
		for (uint32_t i = 0; i < x->nk; i++) {
			Window w = {.lo = buf->inner_lo[d], .hi = buf->inner_hi[d]};
			if (found.n < MAX_WINDOWS &&
			    sym_uses(in->nest->syms, a->idx[d], in->nest->var[x->k[i]]) &&
			    read_window(in, x, a->idx[d], x->k[i], &w))
				found.at[found.n++] = w;
		}
	return found;
}

/* ---- is it worth it? ---- */

/* Returns in how many steps of the row axis `row` the rows of one tile lie, at hint sizes. */
static int64_t span_of(const PlanInput *in, const ContractAxes *x, TileSize tile, uint32_t row)
{
	int64_t faster = 1;
	for (uint32_t i = x->nm; i-- > 0 && x->m[i] != row;)
		faster *= nest_hint(in->nest, x->m[i]);
	return (tile.mr - 1) / (faster > 0 ? faster : 1) + 1;
}

static bool is_dead(const PlanInput *in, const Window *w, int64_t first, int64_t last, int64_t k)
{
	int64_t at = w->step * k + sym_hint(in->nest->syms, w->start);
	return w->coef * last + at < sym_hint(in->nest->syms, w->lo) ||
	       w->coef * first + at >= sym_hint(in->nest->syms, w->hi);
}

/* Returns the share of steps of k that tiles leave out because of the window's border, at hint
 * sizes. A tile that wraps around to the next line counts as one that sees all rows. */
static double saved_by(const PlanInput *in, const ContractAxes *x, TileSize tile, const Window *w)
{
	int64_t rows = nest_hint(in->nest, w->row), taps = nest_hint(in->nest, w->k),
		span = span_of(in, x, tile, w->row), dead = 0;
	if (rows < 1 || taps < 1 || rows > MAX_COUNTED || taps > MAX_COUNTED / rows)
		return 0;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < taps; k++)
			dead += r + span > rows ? is_dead(in, w, 0, rows - 1, k)
						: is_dead(in, w, r, r + span - 1, k);
	return (double)dead / ((double)rows * (double)taps);
}

static bool still_there(const PlanInput *in, const ContractAxes *x, const Window *w)
{
	bool outer_loop = false; /* the innermost is unrolled */
	for (uint32_t i = 0; i + 1 < x->nk; i++)
		outer_loop |= x->k[i] == w->k;
	return outer_loop && in->nest->var[w->row].i && is_row(x, w->row);
}

Windows contract_useful_windows(const PlanInput *in, const ContractAxes *x, TileSize tile,
				const Windows *all)
{
	Windows useful = {0};
	double saved = 0;
	for (uint32_t i = 0; i < all->n; i++) {
		double share =
			still_there(in, x, &all->at[i]) ? saved_by(in, x, tile, &all->at[i]) : 0;
		saved += share;
		if (share > 0)
			useful.at[useful.n++] = all->at[i];
	}
	return saved * WORTH >= 1 ? useful : (Windows){0};
}
