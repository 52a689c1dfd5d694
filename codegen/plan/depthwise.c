/* The plan of depthwise convolutions, see depthwise.c. */
#include <math.h>

#include "codegen/plan/depthwise.h"
#include "codegen/plan/predict.h"

enum {
	MANY_TAPS = 64,
	MOST_BYTES = 256 /* taps of bytes: 256 * 255 * 255 < 2^24, which f32 holds */
};

static const Stage *sum_of(const Nest *n)
{
	return &n->k->stage.data[kernel_first_contraction(n->k)];
}

/* Returns the channel axis: the only outer axis of w, on which the result depends, too, with unit
 * stride in x; NO_AXIS if there is none. */
static uint32_t channel_axis(const PlanInput *in)
{
	const Nest *n = in->nest;
	Sym store = n->store[in->last_store];
	uint64_t w = nest_axes(n, n->offset[in->contraction.b.i]) & n->outer;
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && w == UINT64_C(1) << a &&
		    nest_coef_is(n, n->offset[in->contraction.a.i], a, 1) &&
		    nest_axes(n, store) & w)
			return a;
	return NO_AXIS;
}

/* Returns the layout of the weights in which channels are contiguous. */
static Layout weights_layout(const Nest *n, const KxData *w, uint32_t channel)
{
	const Buffer *buf = buf_of(n->l, w->buf);
	uint32_t perm[MAX_RANK], count = 0;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < buf->rank; i++)
			if (sym_uses(n->syms, w->idx[i], n->var[channel]) == (pass == 1))
				perm[count++] = i;
	return layout_permuted(n->l->ir, buf->rank, buf->dim, perm);
}

/* Returns a copy of the nest that reads the constant w with channels contiguous; the nest itself if
 * w may not have another layout. */
static const Nest *transpose_weights(const Nest *n, Kx load, uint32_t channel)
{
	const KxData *w = &n->k->kx.data[load.i];
	const Layout layout = weights_layout(n, w, channel);
	if (!nest_may_repack(n, load, &layout))
		return n;
	Nest *turned = nest_copy(n, n->k);
	nest_read(turned, load, nest_packed(n, load, &layout),
		  layout_offset(n->l->ir, &layout, w->idx));
	return turned;
}

static bool has_rows(const Nest *n, uint32_t channel)
{
	for (uint32_t a = 0; a < n->n; a++)
		if (nest_has_axis(n, a) && nest_is_outer(n, a) && a != channel)
			return true;
	return false;
}

static int64_t ntaps(const Nest *n)
{
	const Stage *st = sum_of(n);
	int64_t taps = 1;
	for (uint32_t i = 0; i < st->nred; i++)
		taps *= nest_hint(n, st->red[i]);
	return taps;
}

static PixelTiles choose_tiles(const Nest *n, uint32_t pixel)
{
	int64_t pixels = nest_hint(n, pixel), best = INT64_MAX, left;
	PixelTiles p = {0};
	for (uint32_t t = MAX_PIXELS; t > 0; t--) {
		int64_t cost = (pixels + t - 1) / t * (t + 1);
		if (cost < best) {
			best = cost;
			p.size = t;
		}
	}
	const Sym rest = sym_modi(n->syms, n->extent[pixel], p.size);
	p.whole = sym_sub(n->syms, n->extent[pixel], rest);
	if (sym_is(n->syms, rest, 0))
		return p;
	p.beyond = !sym_is_const(n->syms, rest, &left);
	p.rest = p.beyond ? p.size : (uint32_t)left;
	return p;
}

/* Chooses the innermost taps to unroll, if they are few and step along the pixels' line; n is 0 if
 * not. */
static TapLine choose_line(const PlanInput *in, const DepthwisePlan *d)
{
	const Nest *n = d->nest;
	const Stage *st = sum_of(n);
	TapLine line = {0};
	if (!st->nred) /* one tap */
		return line;
	uint32_t tap = st->red[st->nred - 1];
	Sym offset = n->offset[d->x.i], of_tap, of_pixel;
	int64_t taps;
	if (!sym_is_const(n->syms, n->extent[tap], &taps) || taps < 2 || taps > MAX_LINE ||
	    n->k->kx.data[d->x.i].guard.i || d->tiles.size + taps + 1 > in->target->isa.nvreg)
		return line;
	if (!nest_coef(n, offset, tap, &of_tap) || !nest_coef(n, offset, d->pixel, &of_pixel) ||
	    sym_is(n->syms, of_tap, 0))
		return line;
	for (uint32_t k = 1; k < taps && !line.stride; k++)
		if (sym_muli(n->syms, of_tap, k).i == of_pixel.i)
			line.stride = k;
	line.n = line.stride ? (uint32_t)taps : 0;
	return line;
}

static SumPlan plan_sums(const Nest *n)
{
	const Stage *st = sum_of(n);
	int64_t most[MAX_RANK];
	for (uint32_t i = 0; i < st->nred; i++)
		most[i] = sum_most(n->syms, n->extent[st->red[i]]);
	return sum_plan(most, st->nred, sum_limit(stage_combine(st), stage_acc(st), st->dtype));
}

/* Counts the tasks: one for each row of pixels; with many taps, one for each of its vectors of
 * channels. */
static void choose_tasks(DepthwisePlan *d)
{
	const Nest *n = d->nest;
	const bool many = ntaps(n) > MANY_TAPS;
	d->ntasks = sym_int(n->syms, 1);
	for (uint32_t i = 0; i < d->nrow; i++)
		d->ntasks = sym_mul(n->syms, d->ntasks, n->extent[d->row[i]]);
	if (!many)
		return;
	d->vectors = sym_ceildiv(n->syms, n->extent[d->channel], sym_int(n->syms, d->lanes));
	d->ntasks = sym_mul(n->syms, d->ntasks, d->vectors);
}

/* Whether sums of products of bytes are whole numbers that f32 holds. */
static bool holds_sums(const PlanInput *in)
{
	const Nest *n = in->nest;
	const Stage *st = sum_of(n);
	const Kx operand[2] = {in->contraction.a, in->contraction.b};
	int64_t taps = 1;
	for (uint32_t k = 0; k < 2; k++)
		if (dtype_size(n->k->kx.data[operand[k].i].dtype) != 1)
			return false;
	for (uint32_t i = 0; i < st->nred && taps <= MOST_BYTES; i++) {
		const int64_t most = sum_most(n->syms, n->extent[st->red[i]]);
		taps = most > MOST_BYTES ? most : taps * most;
	}
	return in->contraction.dtype == DT_i32 && taps <= MOST_BYTES;
}

/* ---- cycles ---- */

/* Adds what the products of all tiles keep busy. With a line of unrolled taps each element is
 * loaded once for all pixels of a tile. */
static void count_taps(const PlanInput *in, const DepthwisePlan *d, Busy *busy)
{
	const Nest *n = d->nest;
	const Machine *m = &in->target->machine;
	const bool fused = isa_has(&in->target->isa, ISA_FMA);
	const Stage *st = sum_of(n);
	const double pixels = (double)plan_extent(in, d->pixel), size = d->tiles.size;
	double rows = ceil((double)plan_extent(in, d->channel) / d->lanes), taps = 1;
	for (uint32_t i = 0; i < d->nrow; i++)
		rows *= (double)plan_extent(in, d->row[i]);
	for (uint32_t i = 0; i < st->nred; i++)
		taps *= (double)plan_extent(in, st->red[i]);
	const double tiles = rows * ceil(pixels / size), products = rows * pixels * taps;
	const double loads = d->line.n ? (size - 1) * d->line.stride / d->line.n + 2 : size + 1;
	busy->units += products * machine_cycles(m, fused ? MOP_fma : MOP_add, DT_f32, d->lanes);
	busy->units += fused ? 0 : products * machine_cycles(m, MOP_mul, DT_f32, d->lanes);
	busy->loads += tiles * taps * loads * machine_cycles(m, MOP_load, DT_f32, d->lanes);
	if (d->bytes) /* to i32, to f32, and back */
		busy->units += (2 * tiles * taps * loads + rows * pixels) *
			       machine_cycles(m, MOP_convert, DT_f32, d->lanes);
	busy->waits +=
		tiles * fmax(taps - 1, 0) * machine_latency(m, fused ? MOP_fma : MOP_add, DT_f32);
}

static double predict(const PlanInput *in, const DepthwisePlan *d, PlanSizes at)
{
	PlanInput of = *in;
	PlanLoops loops = {.lane_axis = d->channel, .lanes = d->lanes, .turned = NO_AXIS};
	Busy busy = {0};
	of.nest = d->nest;
	of.at = at;
	count_taps(&of, d, &busy);
	for (uint32_t i = 0; i < d->nrow; i++)
		loops.axis[loops.n++] = d->row[i];
	loops.axis[loops.n++] = d->channel;
	loops.axis[loops.n++] = d->pixel;
	for (uint32_t i = 1; i < d->nest->k->stage.n; i++)
		predict_stage(&of, &loops, i, 1, &busy);
	return predict_phase(&of, &busy, &d->cost);
}

/* ---- the plan ---- */

static Refusal recognise(const PlanInput *in, uint32_t *channel)
{
	const Nest *n = in->nest;
	if (in->no_contraction)
		return refuse(in->no_contraction);
	if (in->contraction.dtype != DT_f32 && !holds_sums(in))
		return refuse("its products are not of f32, nor of bytes, few of them");
	if (target_width(in->target) == 1)
		return refuse("the target has no vectors");
	*channel = channel_axis(in);
	if (*channel == NO_AXIS)
		return refuse(
			"weights are not a vector of channels that are neighbours in the operand");
	bool constant = buf_of(n->l, n->k->kx.data[in->contraction.b.i].buf)->kind == BUF_CONST;
	if (ntaps(n) > MANY_TAPS && !constant &&
	    !nest_coef_is(n, n->offset[in->contraction.b.i], *channel, 1))
		return refuse_near(arena_printf(
			n->arena,
			"more than %u terms, and channels are no neighbours in the second operand",
			MANY_TAPS));
	return has_rows(n, *channel) ? taken() : refuse_near("there is one pixel");
}

static const DepthwisePlan *decide(const PlanInput *in, uint32_t channel)
{
	DepthwisePlan *d = ARENA_NEW(in->nest->arena, DepthwisePlan);
	*d = (DepthwisePlan){.x = in->contraction.a,
			     .w = in->contraction.b,
			     .bytes = in->contraction.dtype == DT_i32,
			     .channel = channel,
			     .lanes = target_width(in->target),
			     .cost = in->cost};
	d->nrow = axes_outer_order(in->nest, channel, d->row) - 1;
	d->pixel = d->row[d->nrow];
	d->nest = transpose_weights(in->nest, d->w, channel);
	d->tiles = choose_tiles(d->nest, d->pixel);
	d->line = choose_line(in, d);
	d->sums = plan_sums(d->nest);
	d->together = predict_is_long(d->nest->k);
	choose_tasks(d);
	return d;
}

Refusal plan_depthwise(const PlanInput *in, Plan *p)
{
	const Nest *n = in->nest;
	uint32_t channel;
	const Refusal no = recognise(in, &channel);
	if (no.why)
		return no;
	const DepthwisePlan *d = decide(in, channel);
	const KxData *w = &n->k->kx.data[d->w.i];
	p->of.depthwise = d;
	p->cycles = predict(in, d, in->at);
	p->larger = predict(in, d, in->larger);
	if (buf_of(n->l, w->buf)->kind == BUF_CONST)
		p->want = (LayoutWant){d->w, weights_layout(n, w, channel)};
	p->algorithm = arena_printf(n->arena, "depthwise, %u pixels x %u channels", d->tiles.size,
				    d->lanes);
	p->why = "each channel has its own weights, and channels are neighbours";
	return taken();
}
