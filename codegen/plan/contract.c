/* The plan of a contraction: axes and operands are recognised, axes merged, sizes chosen. */
#include "codegen/plan/contract.h"

/* Predictions as near to each other do not decide. */
#define SURELY 0.9

/* ---- recognising ---- */

static uint64_t bit(uint32_t axis)
{
	return UINT64_C(1) << axis;
}

/* Returns the stride of an axis in an offset, at hint sizes; 0 if the offset is not linear in the
 * axis. */
static int64_t distance(const PlanInput *in, Sym offset, uint32_t axis)
{
	Sym coef;
	return nest_coef(in->nest, offset, axis, &coef) ? sym_hint(in->nest->syms, coef) : 0;
}

/* ---- axes ---- */

/* Sorts n axes by their stride in the offset, the largest first. */
static void sort_axes(const PlanInput *in, Sym offset, uint32_t *axis, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = i;
		     j > 0 && distance(in, offset, axis[j]) > distance(in, offset, axis[j - 1]);
		     j--) {
			uint32_t t = axis[j];
			axis[j] = axis[j - 1];
			axis[j - 1] = t;
		}
}

/* Merges neighbours among the summed axes that are contiguous in every access. The last axis stays
 * apart if its last group is not whole. */
static void merge_k(Nest *nest, ContractAxes *x)
{
	const uint32_t apart = x->nk && contract_has_tail(nest, x);
	for (uint32_t i = x->nblock; i + 1 + apart < x->nk;) {
		if (nest->n < MAX_AXES && axes_can_merge(nest, x->k[i], x->k[i + 1])) {
			x->k[i] = nest_merge_axes(nest, x->k[i], x->k[i + 1]);
			for (uint32_t j = i + 1; j + 1 < x->nk; j++)
				x->k[j] = x->k[j + 1];
			x->nk--;
		} else {
			i++;
		}
	}
}

/* Returns the candidate for the column axis: one with unit stride in the result and at least a
 * vector of elements; else the longest one, of equals that with unit stride. Returns NO_AXIS
 * without candidates. */
static uint32_t vector_axis(const PlanInput *in, uint64_t candidates)
{
	uint32_t best = NO_AXIS;
	Sym store = in->nest->store[in->last_store];
	for (uint32_t a = 0; a < in->nest->n; a++) {
		if (!in->nest->var[a].i || !(candidates >> a & 1))
			continue;
		if (nest_coef_is(in->nest, store, a, 1) &&
		    nest_hint(in->nest, a) >= (int64_t)contract_lanes(in))
			return a;
		if (best == NO_AXIS || nest_hint(in->nest, a) > nest_hint(in->nest, best) ||
		    (nest_hint(in->nest, a) == nest_hint(in->nest, best) &&
		     nest_coef_is(in->nest, store, a, 1)))
			best = a;
	}
	return best;
}

/* Divides the outer axes but the column axis x->n into row axes x->m, which only a depends on, and
 * batch axes, all others. in_a, in_b: the axes on which the operands depend, by bit. */
static void divide_axes(const PlanInput *in, uint64_t in_a, uint64_t in_b, ContractAxes *x)
{
	x->nm = x->nbatch = 0;
	for (uint32_t a = 0; a < in->nest->n; a++) {
		if (!in->nest->var[a].i || !(in->nest->outer >> a & 1) || a == x->n)
			continue;
		if ((in_a & ~in_b) >> a & 1)
			x->m[x->nm++] = a;
		else
			x->batch[x->nbatch++] = a;
	}
}

/* Fills in `half` and `nfield`. */
MUST_LOOK static bool find_fields(const PlanInput *in, ContractAxes *x)
{
	const uint64_t fields = in->contraction.fields;
	int64_t extent;
	if (in->contraction.half)
		x->half = in->contraction.half - 1;
	else if (fields)
		x->half = (uint32_t)__builtin_ctzll(fields);
	else
		return true;
	if (!sym_is_const(in->nest->syms, in->nest->extent[x->half], &extent) || extent < 1 ||
	    extent > MAX_FIELDS || fields & (fields - 1))
		return false;
	x->nfield = (uint32_t)extent;
	return true;
}

/* Finds the operands, b the one with the column axis, and the axes of the contraction; refuses if
 * the kernel does not have that form. */
static Refusal find_axes(const PlanInput *in, Kx *a, Kx *b, ContractAxes *x)
{
	const Stage *st = &in->nest->k->stage.data[in->contraction.sum];
	uint64_t in_a = in->contraction.in_a, in_b = in->contraction.in_b;
	*x = (ContractAxes){.n = vector_axis(in, contraction_columns(&in->contraction)),
			    .half = NO_AXIS,
			    .nfield = 1,
			    .looked_up = in->contraction.looked_up,
			    .table = {in->contraction.table[0], in->contraction.table[1]},
			    .row = in->row};
	if (!find_fields(in, x))
		return refuse_near("words have many fields, or not along one axis");
	*a = in->contraction.a;
	*b = in->contraction.b;
	if (x->n == NO_AXIS) {
		*a = in->contraction.b;
		*b = in->contraction.a;
		in_a = in->contraction.in_b;
		in_b = in->contraction.in_a;
		x->n = vector_axis(in, contraction_rows(&in->contraction));
	}
	if (x->n == NO_AXIS)
		return refuse("no operand has a column of its own");
	if (!st->nred)
		return refuse("one product each, and no sum");
	const bool is_b = b->i == in->contraction.b.i;
	if (in->contraction.half && in->contraction.half_of_b != is_b)
		return refuse_near("the operand without columns has halves of bytes");
	if (in->contraction.decoded.i && !is_b)
		return refuse_near("the operand without columns is decoded");
	if (!contract_linear(in, in->nest->offset[a->i]))
		return refuse_near("operand a is read at an index that is not linear");
	const AxisList blocks = nest_inner(in->nest, st);
	for (uint32_t i = 0; i < blocks.n; i++)
		x->k[x->nk++] = blocks.axis[i];
	x->nblock = x->nk;
	for (uint32_t i = 0; i < st->nred; i++)
		if (st->red[i] != x->half)
			x->k[x->nk++] = st->red[i];
	if (x->nk == x->nblock)
		return refuse_near("all that is summed are fields of one word");
	divide_axes(in, in_a, in_b, x);
	sort_axes(in, in->nest->offset[a->i], x->k + x->nblock, x->nk - x->nblock);
	return taken();
}

/* ---- groups ---- */

bool contract_has_tail(const Nest *n, const ContractAxes *x)
{
	return micro_groups(x->row) && !sym_divides(n->syms, x->row->group, n->extent[x->grouped]);
}

static DType stored(const PlanInput *in, Kx load)
{
	return buf_of(in->nest->l, in->nest->k->kx.data[load.i].buf)->dtype;
}

/* Whether the sum of every other pair of neighbours' products in a block is one of 16 bits. */
static bool pairs_fit(const PlanInput *in, const ContractAxes *x)
{
	const Stage *st = &in->nest->k->stage.data[in->contraction.sum];
	int64_t sum = (int64_t)st->reduce.most[0] * st->reduce.most[1], extent;
	sum *= x->half == NO_AXIS ? 1 : 2;
	for (uint32_t i = x->nblock; i < x->nk; i++) {
		if (!sym_is_const(in->nest->syms, in->nest->extent[x->k[i]], &extent) ||
		    extent < 1 || sum > INT16_MAX / extent * 2)
			return false;
		sum *= extent;
	}
	return x->nblock && sum && (sum + 1) / 2 <= INT16_MAX;
}

/* Whether steps of a group of a, along the last summed axis, do not lie side by side. */
static bool are_apart(const PlanInput *in, const ContractAxes *x, Kx a)
{
	return micro_groups(in->row) &&
	       !nest_coef_is(in->nest, in->nest->offset[a.i], x->k[x->nk - 1], 1);
}

/* Whether a block is one step of fragments: its elements lie side by side in a, the fields of bytes
 * of b one behind the other, and are whole groups, no more than a fragment has. */
static bool is_one_step(const PlanInput *in, const ContractAxes *x, Kx a)
{
	const Sym offset = in->nest->offset[a.i];
	int64_t extent, all = 1;
	for (uint32_t i = x->nk; i-- > x->nblock;) {
		if (!sym_is_const(in->nest->syms, in->nest->extent[x->k[i]], &extent) ||
		    !nest_coef_is(in->nest, offset, x->k[i], all) ||
		    (i + 1 == x->nk && extent % in->row->group))
			return false;
		all *= extent;
	}
	return all * x->nfield <= in->row->k &&
	       (x->half == NO_AXIS ||
		(x->nk == x->nblock + 1 && nest_coef_is(in->nest, offset, x->half, all)));
}

/* Whether the row multiplies these operands; of a, groups that lie in one piece, or are joined by
 * the phase that copies a. */
static Refusal groups_fit(const PlanInput *in, const ContractAxes *x, Kx a, Kx b)
{
	const MicroKernel *row = in->row;
	if (in->contraction.decoded.i)
		return micro_groups(row) || row->nfrag || row->acc != DT_f32
			       ? refuse("what is decoded is multiplied element by element")
			       : taken();
	/* a half of a byte is an element of i8, too */
	const uint8_t *most = in->nest->k->stage.data[in->contraction.sum].reduce.most;
	const bool is_small = most[b.i == in->contraction.b.i] <= INT8_MAX,
		   is_signed = x->half != NO_AXIS && row->b == DT_i8 && is_small;
	const DType of_b = is_signed ? DT_i8 : stored(in, b);
	if (row->a != DT_none && (stored(in, a) != row->a || of_b != row->b))
		return refuse("operands have other dtypes");
	if (x->half != NO_AXIS &&
	    (!micro_groups(row) || x->nk == x->nblock ||
	     !sym_divides(in->nest->syms, row->group, in->nest->extent[x->k[x->nk - 1]])))
		return refuse_near("halves of bytes are multiplied, by whole groups");
	if (x->nblock && (row->biased || (row->nfrag && !is_one_step(in, x, a))))
		return refuse_near("sums of blocks are not what the instruction adds up");
	if (!x->nblock && x->half != NO_AXIS && row->nfrag)
		return refuse_near("fragments of halves of bytes are blocks");
	if (row->signs && (!most[0] || 2 * most[0] * most[1] > INT16_MAX ||
			   most[a.i != in->contraction.a.i] > INT8_MAX))
		return refuse("sums of pairs of 16 bits may overflow");
	if (row->pairs && !pairs_fit(in, x))
		return refuse("sums of 16 bits may overflow");
	if (!micro_groups(row))
		return taken();
	if (row->nfrag && contract_lanes(in) != row->cols)
		return refuse_near("a vector is not as wide as a fragment");
	const uint32_t last = x->k[x->nk - 1];
	if (are_apart(in, x, a) &&
	    (contract_lanes(in) == 1 || in->nest->k->kx.data[a.i].guard.i ||
	     (row->nfrag && x->nblock) || !contract_linear(in, in->nest->offset[a.i])))
		return refuse_near("steps of k are apart in a");
	if (nest_hint(in->nest, last) < 2 * row->group &&
	    !sym_divides(in->nest->syms, row->group, in->nest->extent[last]))
		return refuse_near("there are few steps of k beside each other");
	if (in->nest->n >= MAX_AXES)
		return refuse_near("there are too many axes");
	return taken();
}

/* Returns a copy of the nest in which a new axis, which counts groups, takes the place of the last
 * summed axis. Updates the axes of *c. */
static const Nest *count_groups(const PlanInput *in, ContractPlan *c, Kx b)
{
	ContractAxes *x = &c->axes;
	Nest *n = nest_copy(in->nest, in->nest->k);
	const Sym size = sym_int(n->syms, in->row->group);
	x->grouped = x->k[x->nk - 1];
	const uint32_t axis =
		nest_add_axis(n, "g", sym_ceildiv(n->syms, n->extent[x->grouped], size));
	const Sym from = n->var[x->grouped], to = sym_mul(n->syms, n->var[axis], size);
	x->k[x->nk - 1] = axis;
	c->axes.whole_groups = sym_floordiv(n->syms, n->extent[x->grouped], size);
	const Kx operand[2] = {c->a.load, b};
	for (uint32_t i = 0; i < 2; i++)
		n->offset[operand[i].i] =
			sym_subst(n->syms, n->offset[operand[i].i], &from, &to, 1);
	nest_find_deps(n);
	return n;
}

/* Returns the contraction's axes after merging contiguous axes of the nest: outer ones, and summed
 * ones that are neighbours. Row axes that are not contiguous stay apart, the largest stride first.
 * in->nest is the nest. */
static ContractAxes merge_axes(const PlanInput *in, Nest *nest, Kx a, Kx b,
			       const ContractAxes *before)
{
	ContractAxes x = *before;
	merge_k(nest, &x);
	/* columns of packed panels are not in b's offset, as if it did not have them; what is
	 * decoded has the offset that b is stored at */
	const bool is_packed = in->contraction.decoded.i ||
			       !sym_uses(nest->syms, nest->offset[b.i], nest->var[x.n]);
	uint64_t column = is_packed ? bit(x.n) : 0;
	axes_merge_outer(nest, nest->outer & ~column);
	uint64_t in_a = nest_axes(nest, nest->offset[a.i]),
		 in_b = nest_axes(nest, nest->offset[b.i]);
	if (!nest_has_axis(nest, x.n))
		x.n = vector_axis(in, in_b & ~in_a & nest->outer);
	divide_axes(in, in_a, in_b, &x);
	sort_axes(in, nest->store[in->last_store], x.m, x.nm);
	return x;
}

Sym contract_product(const PlanInput *in, const uint32_t *axis, uint32_t n)
{
	Sym p = sym_int(in->nest->syms, 1);
	for (uint32_t i = 0; i < n; i++)
		p = sym_mul(in->nest->syms, p, in->nest->extent[axis[i]]);
	return p;
}

/* ---- tasks, copies, the epilogue ---- */

static ContractTasks count_tasks(const Nest *n, const ContractPlan *c)
{
	ContractTasks t = {.rows = sym_ceildiv(n->syms, c->rows, sym_int(n->syms, c->block.rows)),
			   .cols = sym_int(n->syms, 1)};
	if (c->block.cols)
		t.cols =
			sym_ceildiv(n->syms, n->extent[c->axes.n], sym_int(n->syms, c->block.cols));
	t.n = sym_mul(n->syms, t.rows, t.cols);
	for (uint32_t i = 0; i < c->axes.nbatch; i++)
		t.n = sym_mul(n->syms, t.n, n->extent[c->axes.batch[i]]);
	return t;
}

/* Adds a phase that copies an operand. Returns what later phases read. */
static SchedArg add_copy(const PlanInput *in, ContractPlan *c, const Panels *p)
{
	uint32_t k = 0;
	while (c->copy[k])
		k++;
	c->copy[k] = contract_plan_copy(in, p, &c->axes);
	return (SchedArg){ARG_TEMP, k, NULL}; /* each copy has one temporary */
}

/* Whether the load is read by the epilogue along columns, from another place for each row. Rows lie
 * so far apart that no processor prefetches them. */
static bool is_read_by_row(const PlanInput *in, const ContractPlan *c, Kx load)
{
	const Nest *n = in->nest;
	const KxData *x = &n->k->kx.data[load.i];
	if (x->kind != KX_LOAD || load.i == c->a.load.i || load.i == c->b.load.i || x->guard.i ||
	    !contract_linear(in, n->offset[load.i]) ||
	    !nest_coef_is(n, n->offset[load.i], c->axes.n, 1))
		return false;
	for (uint32_t i = 0; i < c->axes.nblock; i++) /* not read by the epilogue */
		if (sym_uses(n->syms, n->offset[load.i], n->var[c->axes.k[i]]))
			return false;
	for (uint32_t i = 0; i < c->axes.nm; i++)
		if (sym_uses(n->syms, n->offset[load.i], n->var[c->axes.m[i]]))
			return true;
	return false;
}

static LoadList find_fetched(const PlanInput *in, const ContractPlan *c)
{
	const uint32_t nkx = in->nest->k->kx.n;
	Kx *load = ARENA_ARRAY(in->nest->arena, Kx, nkx);
	LoadList list = {.load = load};
	for (uint32_t i = 1; i < nkx && c->vector.lanes > 1; i++)
		if (is_read_by_row(in, c, (Kx){i}))
			load[list.n++].i = i;
	return list;
}

/* ---- the plan ---- */

/* How b is read: across k, where it is decoded by each tile of rows; along k; or across, decoded
 * for all tiles of rows of a block. */
typedef enum { FORM_ACROSS, FORM_ALONG, FORM_SLABS } ContractForm;

/* Sets the parts of the plan that the kernel as it is decides. */
static Refusal recognise(PlanInput *in, ContractPlan *c, ContractForm form)
{
	Kx b;
	Refusal no = find_axes(in, &c->a.load, &b, &c->axes);
	no = no.why ? no : groups_fit(in, &c->axes, c->a.load, b);
	c->a.apart = !no.why && are_apart(in, &c->axes, c->a.load);
	if (!no.why && micro_groups(in->row))
		in->nest = count_groups(in, c, b);
	if (!no.why)
		no = form == FORM_ALONG ? contract_choose_along(in, c->a.load, b, &c->axes, &c->b)
					: contract_choose_b(in, b, &c->axes, &c->b);
	if (!no.why && in->contraction.decoded.i && c->b.access != B_PACKED)
		no = refuse_near("what is decoded is no constant that is packed");
	c->b.decoded = (DecodedB){.value = in->contraction.decoded, .slab = form == FORM_SLABS};
	if (!no.why && c->b.decoded.value.i)
		contract_find_factor(in, c);
	return no.why ? no : contract_panels_do_not_pay(in, c);
}

/* Returns a copy of the nest that reads b, and the constants beside it, from their panels. Adds the
 * phase that copies b, if there is one. */
static Nest *read_b(const PlanInput *in, ContractPlan *c)
{
	Nest *nest = nest_copy(in->nest, in->nest->k);
	if (c->b.access == B_PACKED)
		nest_read(nest, c->b.load, nest_packed(nest, c->b.load, &c->b.layout),
			  c->b.decoded.value.i ? nest->offset[c->b.load.i] : c->b.panels.offset);
	for (uint32_t i = 0; i < c->b.decoded.nbeside; i++) {
		const PanelLoad *s = &c->b.decoded.beside[i];
		nest_read(nest, s->load, nest_packed(nest, s->load, &s->layout),
			  nest->offset[s->load.i]);
	}
	for (uint32_t i = 0; i < c->sums.blocks.nscale; i++) {
		const PanelLoad *s = &c->sums.blocks.scale[i];
		nest_read(nest, s->load, nest_packed(nest, s->load, &s->layout),
			  nest->offset[s->load.i]);
	}
	if (is_copied(&c->b))
		nest_read(nest, c->b.load, add_copy(in, c, &c->b.panels), c->b.panels.offset);
	return nest;
}

/* Returns a copy of the nest that reads a from panels, and adds the phase that copies a into them,
 * if that saves time, or makes groups of steps that are apart; else the nest itself. */
static const Nest *read_a(const PlanInput *in, ContractPlan *c)
{
	SymTab *syms = in->nest->syms;
	c->a.turned = contract_turns_a(in, c, &c->a.panels);
	c->a.copied = !c->a.turned && contract_copies_a(in, c, &c->a.panels);
	if (!c->a.copied && !c->a.turned)
		return in->nest;
	Nest *nest = nest_copy(in->nest, in->nest->k);
	Sym offset = c->a.panels.offset;
	if (c->a.turned) {
		c->a.runs.distance = sym_divi(syms, c->a.panels.stride, c->a.panels.width);
		offset = sym_add(syms, offset,
				 sym_mul(syms, nest->var[c->axes.m[0]], c->a.runs.distance));
	}
	nest_read(nest, c->a.load, add_copy(in, c, &c->a.panels), offset);
	return nest;
}

/* Returns the bytes of what a tile's columns of b are as bytes (OperandB.bytes); 0: it is not
 * bounded. */
static int64_t bytes_of_columns(const PlanInput *in, const ContractPlan *c)
{
	return contract_k_bound(in, &c->axes) * c->axes.nfield * c->tile.nv * c->vector.lanes *
	       contract_size(in);
}

/* Whether taking halves of bytes apart once for all tiles of rows of a block pays. */
static bool makes_bytes(const PlanInput *in, const ContractPlan *c)
{
	const ContractAxes *x = &c->axes;
	if (x->half == NO_AXIS || !c->sums.blocks.stage || x->nk != x->nblock + 1)
		return false;
	const int64_t bytes = bytes_of_columns(in, c);
	return bytes && bytes <= MAX_BYTES && c->block.rows >= FEWEST_TILES * c->tile.mr;
}

/* Chooses, for a micro-kernel on fragments, the groups in a step of k and the rows of a that are
 * loaded in place. reads_all: see contract_reads_all. */
static void choose_fragments(const PlanInput *in, ContractPlan *c, bool reads_all)
{
	SymTab *syms = in->nest->syms;
	c->axes.step = contract_choose_step(in, &c->axes);
	if (c->b.bytes && bytes_of_columns(in, c) > MAX_BYTES)
		c->tile.nv = 1;
	c->a.runs = contract_find_runs(in, c, reads_all);
	const Runs *r = &c->a.runs;
	if (!r->used)
		return;
	const Sym all = sym_mul(syms, contract_product(in, c->axes.m, r->first), r->fragments);
	c->rows = sym_muli(syms, all, r->rows);
	c->tile.mr = r->rows * (sym_is(syms, all, 1) ? 1 : MAX_FRAG_ROWS);
	c->windows.n = 0; /* tiles of several lines of an image meet most taps */
}

/* Returns the products of a sum that a slab has at once; more than fit, if they are not bounded. */
static int64_t slab_steps(const PlanInput *in, const ContractPlan *c)
{
	const int64_t bound = contract_k_bound(in, &c->axes),
		      steps = c->k_block.used ? c->k_block.steps * c->k_block.inner
			      : bound         ? bound
					      : MAX_PANEL;
	return steps * c->axes.nfield;
}

/* Chooses how b is read, the tile, the cache block and the chunks of the sums, after axes are
 * merged. row_elements: see contract_row_elements; reads_all: see contract_reads_all. */
static void choose_sizes(const PlanInput *in, ContractPlan *c, const Windows *windows,
			 int64_t row_elements, bool reads_all)
{
	const Nest *n = in->nest;
	if (!has_panels(&c->b) && c->b.access != B_ALONG)
		c->b.access = nest_coef_is(n, n->offset[c->b.load.i], c->axes.n, 1) ? B_IN_PLACE
										    : B_GATHERED;
	c->rows = contract_product(in, c->axes.m, c->axes.nm);
	c->tile = c->b.access == B_ALONG ? contract_choose_dots(in, &c->axes, c->a.load, &c->b)
					 : contract_choose_tile(in, &c->axes, &c->b);
	c->b.bytes = c->axes.row->nfrag && c->axes.half != NO_AXIS;
	c->sums.held = contract_has_blocks(c) && contract_holds_sums(in, c->tile);
	c->windows = contract_useful_windows(in, &c->axes, c->tile, windows);
	if (c->axes.row->nfrag)
		choose_fragments(in, c, reads_all);
	if (c->axes.row->biased || c->b.access == B_ALONG || contract_has_blocks(c) ||
	    c->b.decoded.slab)
		c->windows.n = 0; /* the sums of columns, and slabs, are those of all taps */
	contract_choose_blocks(in, c, row_elements);
	if (c->b.access == B_GATHERED)
		c->b.gathered = contract_k_bound(in, &c->axes) * c->tile.nv * c->vector.lanes;
	c->b.bytes |= makes_bytes(in, c);
	if (c->b.bytes)
		c->axes.step = contract_choose_step(in, &c->axes);
	if (c->b.bytes)
		c->b.gathered = bytes_of_columns(in, c) / contract_size(in);
	if (c->b.decoded.slab)
		c->b.gathered = slab_steps(in, c) * c->tile.nv * c->vector.lanes;
}

static void decide(const PlanInput *in, ContractPlan *c, Plan *p)
{
	const ContractAxes before = c->axes;
	const int64_t row_elements = contract_row_elements(in, c->a.load, &before);
	const Windows windows = contract_find_windows(in, c->a.load, &before);
	const bool reads_all = contract_reads_all(in, c->a.load);
	if (c->sums.blocks.stage && c->b.access == B_PACKED)
		contract_pack_scales(in, c);
	if (c->b.decoded.value.i)
		contract_pack_beside(in, c);
	Nest *nest = read_b(in, c);
	PlanInput merged = *in;
	merged.nest = nest;
	c->axes = merge_axes(&merged, nest, c->a.load, c->b.load, &before);
	if (c->b.decoded.value.i)
		contract_place_decoded(&merged, c);
	choose_sizes(&merged, c, &windows, row_elements, reads_all);
	merged.nest = c->nest = read_a(&merged, c);
	contract_choose_columns(&merged, c);
	c->fetched = find_fetched(&merged, c);
	c->tasks = count_tasks(c->nest, c);
	p->cycles = contract_cycles(&merged, c);
	merged.at = in->larger;
	p->larger = contract_cycles(&merged, c);
}

static const char *describe(const PlanInput *in, const ContractPlan *c)
{
	return arena_printf(
		in->nest->arena, "gemm, %s%s%s%s%s, %ux%u tile, %lld-row blocks%s%s%s%s",
		micro_groups(c->axes.row) ? c->axes.row->name : "",
		micro_groups(c->axes.row) ? ", " : "",
		c->b.access == B_PACKED  ? "packed b"
		: is_copied(&c->b)       ? "copied b"
		: c->b.access == B_ALONG ? "b along k"
					 : "b in place",
		!c->b.decoded.value.i ? ""
		: c->b.decoded.slab   ? " decoded in slabs"
				      : " decoded",
		c->a.copied || c->a.turned ? ", copied a" : "", c->tile.mr,
		c->tile.nv * c->vector.lanes, (long long)c->block.rows,
		c->block.cols ? ", column blocks" : "", c->k_block.used ? ", blocks of k" : "",
		c->windows.n ? ", borders left out" : "",
		c->sums.blocks.stage ? ", scaled sums of blocks" : "");
}

/* Whether the operator adds: it is linear in both operands together, and they may change places. */
static bool is_sum(Op op)
{
	return op_info(op)->linear == LINEAR_TOGETHER && op_info(op)->commutes;
}

/* Fills in begun and start of the plan's blocks, if one operation reads the sum of a block and adds
 * a number of each row. */
static void find_start(const PlanInput *in, BlockSums *blocks, uint32_t columns)
{
	const Nest *n = in->nest;
	const Kernel *k = n->k;
	Kx begun = {0}, start = {0};
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		for (uint32_t j = 0; x->kind == KX_OP && j < x->nin; j++) {
			const KxData *of = &k->kx.data[x->in[j].i];
			if (of->kind != KX_STAGE || of->stage != in->contraction.sum)
				continue;
			if (begun.i || !is_sum(x->op))
				return;
			begun.i = i;
			start = x->in[!j];
		}
	}
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const KxData *of = &k->kx.data[k->stage.data[i].value.i];
		if (of->kind == KX_STAGE && of->stage == in->contraction.sum)
			return;
	}
	if (!begun.i || k->kx.data[start.i].kind != KX_LOAD || n->deps[start.i] >> columns & 1)
		return;
	blocks->begun = begun;
	blocks->start = start;
}

/* Returns the plan of that form by the micro-kernel in->row; NULL, with the reason in *no, if it is
 * refused. */
static const ContractPlan *plan_row(const PlanInput *in, ContractForm form, Plan *p, Refusal *no)
{
	PlanInput grouped = *in;
	ContractPlan *c = ARENA_NEW(in->nest->arena, ContractPlan);
	const uint32_t blocks = in->contraction.blocks, lanes = contract_lanes(in);
	*c = (ContractPlan){.vector = {in->contraction.dtype, lanes},
			    .sums = {.result = {blocks ? DT_f32 : in->contraction.dtype, lanes},
				     .blocks = {.stage = blocks}},
			    .cost = in->cost};
	*no = recognise(&grouped, c, form);
	if (no->why)
		return NULL;
	if (blocks && !in->row->nfrag && !in->row->pairs)
		find_start(&grouped, &c->sums.blocks, c->axes.n);
	decide(&grouped, c, p);
	if (c->a.apart && !c->a.copied && !c->a.turned)
		*no = refuse_near("steps of k are apart in a, and rows are not neighbours");
	if (c->axes.row->nfrag && c->sums.cuts.n && !contract_has_blocks(c))
		*no = refuse_near("sums are too long for fragments");
	if (c->axes.row->nfrag && contract_has_blocks(c) && !c->a.runs.used)
		*no = refuse_near("there may be fewer rows than a fragment has, or rows are apart");
	if (c->b.bytes && (!c->b.gathered || c->b.gathered * contract_size(in) > MAX_BYTES))
		*no = refuse_near(
			"the bytes of a tile's columns are more than a local array holds");
	if (form == FORM_SLABS && c->b.gathered * contract_size(in) > MAX_PANEL)
		*no = refuse_near("a slab is larger than a local array");
	return no->why ? NULL : c;
}

/* Takes that plan if it takes less than *least cycles, those of *best with its page walks; one that
 * reads b along k, or in slabs, if it surely takes less, at larger sizes too. p gets the cycles
 * without page walks, as other schedules predict them. */
static void consider(const PlanInput *by, ContractForm form, Plan *p, const ContractPlan **best,
		     double *least, Refusal *no)
{
	Plan plan = {0};
	const ContractPlan *c = plan_row(by, form, &plan, no);
	const double cycles = c ? plan.cycles + contract_page_cycles(by, c) : 0;
	if (!c || (*best && (form ? plan_worst(&plan, p) >= SURELY * plan_worst(p, &plan)
				  : cycles >= *least)))
		return;
	*best = c;
	*least = cycles;
	p->cycles = plan.cycles;
	p->larger = plan.larger;
}

/* Tries all micro-kernels of the target in all forms, and keeps the plan with the fewest cycles in
 * *best, *p and *least. Stops before a row that converts elements when a plan by groups without
 * copies is found: unpacking groups is faster. */
static void plan_rows(const PlanInput *in, Plan *p, const ContractPlan **best, double *least,
		      Refusal *no)
{
	PlanInput by = *in;
	for (uint32_t k = 0; (by.row = micro_at(k)); k++) {
		if (by.row->acc != in->contraction.dtype || !micro_has(&in->target->isa, by.row))
			continue;
		/* what converts elements takes longer than what takes groups apart; only copies
		 * may cost more */
		if (*best && !by.row->needs && by.row->group == 1 &&
		    micro_groups((*best)->axes.row) && !(*best)->copy[0])
			break;
		Refusal refused;
		consider(&by, FORM_ACROSS, p, best, least, no);
		if (in->contraction.decoded.i)
			consider(&by, FORM_SLABS, p, best, least, &refused);
		else if (!in->contraction.blocks)
			consider(&by, FORM_ALONG, p, best, least, &refused);
	}
}

/* Whether results lie side by side along an axis of the set that has a vector's length. */
static bool stores_along(const PlanInput *in, uint64_t axes)
{
	const Sym store = in->nest->store[in->last_store];
	for (uint32_t a = 0; a < in->nest->n; a++)
		if (in->nest->var[a].i && axes >> a & 1 && nest_coef_is(in->nest, store, a, 1) &&
		    nest_hint(in->nest, a) >= (int64_t)contract_lanes(in))
			return true;
	return false;
}

/* Returns the input with both operands exchanged, so that the rows of a are the columns. Merges
 * outer axes before b is chosen, which is no constant then, so that its columns may be the places
 * of an image. */
static PlanInput turned(const PlanInput *in)
{
	PlanInput t = *in;
	Nest *nest = nest_copy(in->nest, in->nest->k);
	axes_merge_outer(nest, nest->outer);
	t.nest = nest;
	t.contraction.a = in->contraction.b;
	t.contraction.b = in->contraction.a;
	t.contraction.in_a = nest_axes(nest, nest->offset[t.contraction.a.i]) & nest->outer;
	t.contraction.in_b = nest_axes(nest, nest->offset[t.contraction.b.i]) & nest->outer;
	return t;
}

static bool is_constant(const PlanInput *in, Kx load)
{
	return buf_of(in->nest->l, in->nest->k->kx.data[load.i].buf)->kind == BUF_CONST;
}

Refusal plan_contract(const PlanInput *in, Plan *p)
{
	static const char *const why_so[] = {
		[B_IN_PLACE] = "the columns of b are neighbours",
		[B_GATHERED] = "the columns of b are apart: each panel is gathered",
		[B_PACKED] = "b is a constant: its panels are packed before",
		[B_COPIED] = "the columns of b are apart: panels are copied in a phase before",
		[B_BROUGHT] =
			"what a tile reads of b is far apart: panels are copied in a phase before",
		[B_ALONG] = "steps of k are neighbours in both operands: sums are dot products",
	};
	Refusal no = {0};
	if (in->no_contraction && !in->contraction.blocks && !in->contraction.decoded.i)
		return refuse(in->no_contraction);
	if (nest_is_empty(in->nest))
		return refuse("it is empty");
	const ContractPlan *best = NULL;
	double least = 0;
	plan_rows(in, p, &best, &least, &no);
	const Plan first = *p;
	if (!in->contraction.blocks && !in->contraction.decoded.i &&
	    !is_constant(in, in->contraction.a) &&
	    !stores_along(in, contraction_columns(&in->contraction)) &&
	    stores_along(in, contraction_rows(&in->contraction))) {
		Refusal refused = {0};
		const PlanInput other = turned(in);
		const ContractPlan *as_they_are = best;
		least *= SURELY;
		plan_rows(&other, p, &best, &least, best ? &refused : &no);
		if (as_they_are && best->b.access == B_GATHERED) {
			best = as_they_are;
			*p = first;
		}
	}
	if (!best)
		return no;
	p->of.contract = best;
	p->algorithm = describe(in, best);
	p->why = why_so[best->b.access];
	if (best->b.access == B_PACKED)
		p->want = (LayoutWant){best->b.load, best->b.layout};
	return taken();
}
