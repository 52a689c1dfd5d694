/* How a contraction reads its operands: b in place, in panels that are packed, copied or gathered; a in place or in panels of the
 * rows of a tile. */
#include "codegen/cpu/contract.h"

bool contract_linear(const Cpu *s, Sym offset)
{
	Sym coef;
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && !eval_coef(&s->e, offset, a, &coef))
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
MUST_LOOK static bool find_digits(const Cpu *s, Sym idx, uint32_t dim, Digit *digit)
{
	Sym rest = idx;
	int64_t product = 1;
	uint32_t left = 0;
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		left += s->e.axes.var[a].i && sym_uses(s->e.syms, idx, s->e.axes.var[a]);
	while (left) {
		uint32_t found = NO_AXIS;
		for (uint32_t a = 0; a < s->e.axes.n && found == NO_AXIS; a++) {
			Sym coef, other;
			if (s->e.axes.var[a].i && sym_uses(s->e.syms, rest, s->e.axes.var[a]) &&
			    sym_linear(s->e.syms, rest, s->e.axes.var[a], &coef, &other) &&
			    sym_is(s->e.syms, coef, product))
				found = a;
		}
		int64_t extent;
		Sym coef;
		if (found == NO_AXIS ||
		    (left > 1 && !sym_is_const(s->e.syms, s->e.axes.extent[found], &extent)) ||
		    !sym_linear(s->e.syms, rest, s->e.axes.var[found], &coef, &rest))
			return false;
		digit[found] = (Digit){dim, product};
		product = left > 1 ? product * extent : product;
		left--;
	}
	return sym_is(s->e.syms, rest, 0);
}

static void add_digit(Layout *out, const Digit *d, Sym extent)
{
	out->dim[out->n++] = (LayoutDim){d->dim, d->divisor, extent, extent};
}

/* Dimensions in the order: batch, N panels, K by decreasing stride of a, columns of a panel. */
MUST_LOOK static bool pack_layout(const Cpu *s, const ContractAxes *x, const KxData *b,
				  int64_t width, Layout *out)
{
	Digit digit[MAX_AXES] = {{0}};
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		digit[a].dim = NO_AXIS;
	for (uint32_t d = 0; d < b->nidx; d++)
		if (!find_digits(s, b->idx[d], d, digit))
			return false;
	*out = (Layout){0};
	if (digit[x->n].dim == NO_AXIS || x->nbatch + x->nk + 2 > 2 * MAX_RANK)
		return false;
	for (uint32_t i = 0; i < x->nk; i++)
		if (digit[x->k[i]].dim == NO_AXIS)
			return false;
	/* a partial last panel would run into the next digit of the same dimension */
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (a != x->n && digit[a].dim == digit[x->n].dim && digit[a].divisor > digit[x->n].divisor &&
		    !sym_divides(s->e.syms, width, s->e.axes.extent[x->n]))
			return false;
	for (uint32_t i = 0; i < x->nbatch; i++)
		if (digit[x->batch[i]].dim != NO_AXIS)
			add_digit(out, &digit[x->batch[i]], s->e.axes.extent[x->batch[i]]);
	Digit panel = {digit[x->n].dim, digit[x->n].divisor * width};
	add_digit(out, &panel, sym_ceildiv(s->e.syms, s->e.axes.extent[x->n], sym_int(s->e.syms, width)));
	for (uint32_t i = 0; i < x->nk; i++)
		add_digit(out, &digit[x->k[i]], s->e.axes.extent[x->k[i]]);
	add_digit(out, &digit[x->n], sym_int(s->e.syms, width));
	return true;
}

/* A constant in the widest panels that are possible, at least one vector; 0 for others, and where it is stored otherwise. Returns vectors side by side. */
static uint32_t choose_panels(const Cpu *s, Kx load, const ContractAxes *x, Layout *out)
{
	const KxData *b = &s->e.k->kx.data[load.i];
	uint32_t width = target_panel(s->target) * (uint32_t)sizeof(float) / (uint32_t)contract_size(s), lanes = contract_lanes(s);
	if (buf_of(s->e.l, b->buf)->kind != BUF_CONST)
		return 0;
	while (width >= lanes && !(pack_layout(s, x, b, width, out) && eval_may_repack(&s->e, load, out)))
		width /= 2;
	return width / lanes;
}

/* Panels of an operand that has these columns (rows, of a): [batch][panel][k...][width]. */
static Panels place_panels(const Cpu *s, Kx load, const ContractAxes *x, uint32_t axis, int64_t step, int64_t width)
{
	Panels p = {.load = load, .axis = axis, .step = step, .width = width, .offset = sym_int(s->e.syms, 0)};
	Sym stride = sym_int(s->e.syms, width);
	uint64_t axes = eval_axes(&s->e, s->e.offset[load.i]);
	for (uint32_t i = x->nk; i-- > 0;) {
		p.offset = sym_add(s->e.syms, p.offset, sym_mul(s->e.syms, s->e.axes.var[x->k[i]], stride));
		stride = sym_mul(s->e.syms, stride, s->e.axes.extent[x->k[i]]);
	}
	p.stride = stride;
	p.count = sym_ceildiv(s->e.syms, s->e.axes.extent[axis], sym_int(s->e.syms, step));
	stride = sym_mul(s->e.syms, stride, p.count);
	for (uint32_t i = x->nbatch; i-- > 0;) {
		if (!(axes >> x->batch[i] & 1))
			continue;
		p.offset = sym_add(s->e.syms, p.offset, sym_mul(s->e.syms, s->e.axes.var[x->batch[i]], stride));
		stride = sym_mul(s->e.syms, stride, s->e.axes.extent[x->batch[i]]);
	}
	p.numel = stride;
	return p;
}

int64_t contract_k_bound(const Cpu *s, const ContractAxes *x)
{
	int64_t total = 1;
	for (uint32_t i = 0; i < x->nk; i++) {
		int64_t lo, hi;
		sym_range(s->e.syms, s->e.axes.extent[x->k[i]], &lo, &hi);
		if (hi > MAX_PANEL || total * hi > MAX_PANEL)
			return 0;
		total *= hi;
	}
	return total;
}

static double extents(const Cpu *s, const uint32_t *axis, uint32_t n)
{
	double all = 1;
	for (uint32_t i = 0; i < n; i++)
		all *= (double)axes_hint(s, axis[i]);
	return all;
}

double contract_steps(const Cpu *s, const ContractAxes *x)
{
	return extents(s, x->k, x->nk);
}

double contract_members(const Cpu *s, const ContractAxes *x)
{
	return extents(s, x->batch, x->nbatch);
}

/* Of an operand: columns (or rows) and summed, in all of the batch. */
static double count_elements(const Cpu *s, const ContractAxes *x, uint32_t axis)
{
	return (double)axes_hint(s, axis) * contract_steps(s, x) * contract_members(s, x);
}

static CopyKind copy_kind(const Cpu *s, Kx load, const ContractAxes *x)
{
	return contract_turned_axis(s, load, x) != NO_AXIS ? COPY_TURNED : COPY_GATHERED;
}

/* Than gathering each panel once: a phase has its price. */
static bool copying_is_cheaper(const Cpu *s, Kx load, const ContractAxes *x)
{
	double elements = count_elements(s, x, x->n);
	double saved = tuning_gathered_cycles(s->target, s->shape.dtype, 0, elements) -
	               tuning_copied_cycles(s->target, s->shape.dtype, 0, elements, copy_kind(s, load, x));
	return saved * elements / contract_lanes(s) > s->target->machine.phase;
}

/* A power of two of which every step of k is a multiple, in bytes of memory. */
static double spacing(const Cpu *s, Kx load, const ContractAxes *x)
{
	const int64_t size = dtype_size(buf_of(s->e.l, s->e.k->kx.data[load.i].buf)->dtype);
	int64_t all = INT64_C(1) << 40;
	for (uint32_t i = 0; i < x->nk; i++) {
		Sym coef;
		if (eval_coef(&s->e, s->e.offset[load.i], x->k[i], &coef))
			all |= sym_hint(s->e.syms, coef) * size;
	}
	return (double)(all & -all);
}

/* Steps of k of all tiles: rows x columns. */
static double tile_steps(const Cpu *s, const ContractAxes *x, TileSize tile)
{
	const int64_t rows = (int64_t)extents(s, x->m, x->nm), width = (int64_t)tile.nv * contract_lanes(s);
	const int64_t tiles = (rows + tile.mr - 1) / tile.mr;
	return (double)tiles * count_elements(s, x, x->n) / (double)width;
}

/* What a phase that copies so many vectors takes. */
static double copying_cycles(const Cpu *s, double vectors)
{
	return vectors * tuning_copied_cycles(s->target, s->shape.dtype, 0, vectors * contract_lanes(s), COPY_VECTORS) + s->target->machine.phase;
}

/* b could be read in place, but the lines of a panel share few places of the caches, so that every tile of rows reads it from afar. */
static bool panels_are_nearer(const Cpu *s, Kx load, const ContractAxes *x)
{
	const Machine *m = &s->target->machine;
	const OperandB in_place = {.access = B_IN_PLACE};
	const TileSize tile = contract_choose_tile(s, x, &in_place);
	double row = (double)contract_size(s) * tile.nv * contract_lanes(s), steps = contract_steps(s, x);
	double far = tuning_spaced_cycles(m, row, steps, row, spacing(s, load, x)), near = tuning_spaced_cycles(m, row, steps, row, 0);
	return tile_steps(s, x, tile) * (far - near) > copying_cycles(s, count_elements(s, x, x->n) / contract_lanes(s));
}

static void copy_panels(const Cpu *s, Kx load, const ContractAxes *x, OperandB *b)
{
	int64_t width = contract_lanes(s);
	b->access = eval_coef_is(&s->e, s->e.offset[load.i], x->n, 1) ? B_BROUGHT : B_COPIED;
	b->vectors = 1; /* columns past whole tiles of a symbolic number are done vector by vector */
	b->panels = place_panels(s, load, x, x->n, width, width);
}

/* b is read with unit stride along n, or through a local panel of bounded size, or a copy. */
Refusal contract_choose_b(const Cpu *s, Kx load, const ContractAxes *x, OperandB *b)
{
	int64_t lanes = contract_lanes(s);
	*b = (OperandB){.access = B_PACKED};
	b->vectors = choose_panels(s, load, x, &b->layout);
	if (b->vectors) {
		b->panels = place_panels(s, load, x, x->n, b->vectors * lanes, b->vectors * lanes);
		return taken();
	}
	if (!contract_linear(s, s->e.offset[load.i]))
		return refuse_near("operand b is read at an index that is not linear");
	int64_t k = contract_k_bound(s, x);
	bool small = k && k * contract_size(s) * lanes <= MAX_PANEL;
	if (eval_coef_is(&s->e, s->e.offset[load.i], x->n, 1)) {
		b->access = B_IN_PLACE;
		if (lanes > 1 && panels_are_nearer(s, load, x))
			copy_panels(s, load, x, b);
		return taken();
	}
	b->access = B_GATHERED;
	if (!small && lanes == 1)
		return refuse_near("the columns of operand b are apart, and its panels may be larger than a local array");
	if (lanes > 1 && (!small || copying_is_cheaper(s, load, x)))
		copy_panels(s, load, x, b);
	return taken();
}

/* Cycles of a step of k, of all rows and a vector of columns, with what it takes to make panels. */
static double panel_cycles(const Cpu *s, const Contract *c, double rows)
{
	double elements = count_elements(s, &c->axes, c->axes.n);
	if (c->operand.access == B_GATHERED)
		return tuning_gathered_cycles(s->target, s->shape.dtype, rows, elements);
	return tuning_copied_cycles(s->target, s->shape.dtype, rows, elements, copy_kind(s, c->b, &c->axes));
}

/* Columns of b are apart, and rows are so few that panels of b do not pay: refused. Steps of k may be neighbours in both
 * operands, and else b is gathered anew for each row. Without vectors panels save loads only, and take memory that small targets
 * do not have. */
Refusal contract_panels_do_not_pay(const Cpu *s, const Contract *c)
{
	const ContractAxes *x = &c->axes;
	if (c->operand.access != B_GATHERED && c->operand.access != B_COPIED)
		return taken();
	double rows = (double)sym_hint(s->e.syms, contract_product(s, x->m, x->nm)), elements = count_elements(s, x, x->n), cycles = panel_cycles(s, c, rows);
	for (uint32_t i = 0; i < x->nk; i++) {
		double k = (double)axes_hint(s, x->k[i]);
		bool near = eval_coef_is(&s->e, s->e.offset[c->a.i], x->k[i], 1) && eval_coef_is(&s->e, s->e.offset[c->b.i], x->k[i], 1);
		if (near && (contract_lanes(s) == 1 || tuning_summed_cycles(s->target, s->shape.dtype, rows, elements, k) < cycles))
			return refuse_near("columns of b are apart and rows are few: sums along k take less time than gathering panels");
	}
	if (c->operand.access == B_COPIED && rows * tuning_gathered_cycles(s->target, s->shape.dtype, 1, elements) < cycles)
		return refuse_near("columns of b are apart and rows are few: gathering them for each takes less time than panels");
	return taken();
}

/* Rows of a are neighbours in memory, and its steps of k are apart: a line of each is read for the few rows of a tile, and from afar. */
static bool copies_a(const Cpu *s, const Contract *c, int64_t width)
{
	const Machine *m = &s->target->machine;
	const ContractAxes *x = &c->axes;
	double line = m->line, steps = contract_steps(s, x), apart = spacing(s, c->a, x);
	double rows = (double)contract_size(s) * (double)c->block.rows, block = rows > line ? rows : line;
	double far = tuning_spaced_cycles(m, line, steps, line, apart), panel = (double)contract_size(s) * (double)width;
	if (far <= machine_memory_cycles(m, line, 0))
		return false; /* the next tiles find what is left of each line */
	far = tuning_spaced_cycles(m, line, steps, block, apart);
	const int64_t tiles = c->block.rows / c->tile.mr;
	double near = tuning_spaced_cycles(m, panel, steps, panel * (double)tiles, 0);
	return tile_steps(s, x, c->tile) * (far - near) > copying_cycles(s, count_elements(s, x, x->m[0]) / c->tile.mr * (double)width / s->e.lanes.n);
}

bool contract_copies_a(const Cpu *s, const Contract *c, Panels *p)
{
	const ContractAxes *x = &c->axes;
	int64_t lanes = s->e.lanes.n, width = (c->tile.mr + lanes - 1) / lanes * lanes;
	if (lanes == 1 || x->nm != 1 || c->windows.n || !eval_coef_is(&s->e, s->e.offset[c->a.i], x->m[0], 1) || !copies_a(s, c, width))
		return false;
	*p = place_panels(s, c->a, x, x->m[0], c->tile.mr, width);
	return true;
}
