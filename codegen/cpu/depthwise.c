/* The schedule for depthwise convolutions and their gradients by weights (the roles of pixels and taps are changed then): no axis is
 * free in the second operand alone, so lanes run over channels.
 *
 *   task = one row of pixels (all row axes but the fastest), and of many taps one vector of channels;  for each vector of channels:
 *     for each tile of neighbouring pixels:  acc_t += x[pixel_t + tap] * w[tap], over the taps; epilogue
 *
 * Where taps and pixels step along the same line, neighbouring pixels read the same elements: of the innermost taps, which
 * are unrolled, each element is loaded once and multiplied for all of them.
 *
 * Weights are stored with channels fastest. What is left of a row is a tile of its own, in which pixels past the end repeat
 * the last one. */
#include "codegen/cpu/sums.h"

enum { MAX_TILE = MAX_SUMS, MANY_TAPS = 64, MAX_LINE = 8 };

typedef struct {
	Cpu *s;
	Kx x, w;
	uint32_t pixel;              /* the axis tiled in registers */
	uint32_t row[MAX_AXES], nrow; /* other row axes */
	uint32_t tile;
	Lx start;    /* first pixel of the tile */
	bool beyond; /* the tile may reach beyond the row */
	SumPlan sums; /* of the taps */
	uint32_t line, stride; /* innermost taps that are unrolled, and how many of them a pixel is from the next; 0: none */
} Depthwise;

/* The channel axis: in both operands and the result, unit stride in x; nothing else is in w but taps. */
static uint32_t channel_axis(const Cpu *s)
{
	Sym store = s->e.store[s->e.k->stage.n - 1];
	uint64_t w = eval_axes(&s->e, s->e.offset[s->shape.b.i]) & s->e.axes.outer;
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && w == UINT64_C(1) << a && eval_coef_is(&s->e, s->e.offset[s->shape.a.i], a, 1) && eval_axes(&s->e, store) & w)
			return a;
	return NO_AXIS;
}

/* Weights with the channel fastest. */
static Layout weights_layout(const Cpu *s, const KxData *w, uint32_t channel)
{
	const Buffer *buf = buf_of(s->e.l, w->buf);
	uint32_t perm[MAX_RANK], n = 0;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < buf->rank; i++)
			if (sym_uses(s->e.syms, w->idx[i], s->e.axes.var[channel]) == (pass == 1))
				perm[n++] = i;
	return layout_permuted(s->e.l->ir, buf->rank, buf->dim, perm);
}

static void transpose_weights(Depthwise *d, uint32_t channel)
{
	Cpu *s = d->s;
	const KxData *w = &s->e.k->kx.data[d->w.i];
	Layout layout = weights_layout(s, w, channel);
	if (!eval_may_repack(&s->e, d->w, &layout))
		return;
	eval_read(&s->e, d->w, eval_packed(&s->e, d->w, &layout), layout_offset(s->e.l->ir, &layout, w->idx));
}

static bool has_rows(const Cpu *s, uint32_t channel)
{
	for (uint32_t a = 0; a < s->e.axes.n; a++)
		if (s->e.axes.var[a].i && (s->e.axes.outer >> a & 1) && a != channel)
			return true;
	return false;
}

static int64_t ntaps(const Cpu *s)
{
	const Stage *st = &s->e.k->stage.data[0];
	int64_t n = 1;
	for (uint32_t i = 0; i < st->nred; i++)
		n *= axes_hint(s, st->red[i]);
	return n;
}

static void choose_tile(Depthwise *d)
{
	int64_t n = axes_hint(d->s, d->pixel), best = INT64_MAX;
	for (uint32_t t = MAX_TILE; t > 0; t--) {
		int64_t cost = (n + t - 1) / t * (t + 1);
		if (cost < best) {
			best = cost;
			d->tile = t;
		}
	}
}

static void plan_sums(Depthwise *d)
{
	const Stage *st = &d->s->e.k->stage.data[0];
	int64_t most[MAX_RANK];
	for (uint32_t i = 0; i < st->nred; i++)
		most[i] = sum_most(d->s, d->s->e.axes.extent[st->red[i]]);
	d->sums = sum_plan(most, st->nred, sum_limit(st->combine, st->acc, st->dtype));
}

static Lx pixel_at(Depthwise *d, uint32_t t)
{
	Cpu *s = d->s;
	Lx p = lx_add(s->e.f, d->start, lx_int(s->e.f, t));
	if (!d->beyond)
		return p;
	return lx_min(s->e.f, p, lx_sub(s->e.f, eval_size(&s->e, s->e.axes.extent[d->pixel]), lx_int(s->e.f, 1)));
}

/* Its innermost taps, when they are few and lie in line with the pixels. */
static void choose_line(Depthwise *d)
{
	Cpu *s = d->s;
	const Stage *st = &s->e.k->stage.data[0];
	if (!st->nred) /* one tap */
		return;
	uint32_t tap = st->red[st->nred - 1];
	Sym offset = s->e.offset[d->x.i], of_tap, of_pixel;
	int64_t n;
	if (!sym_is_const(s->e.syms, s->e.axes.extent[tap], &n) || n < 2 || n > MAX_LINE || s->e.k->kx.data[d->x.i].guard.i ||
	    d->tile + n + 1 > s->target->isa.nvreg)
		return;
	if (!eval_coef(&s->e, offset, tap, &of_tap) || !eval_coef(&s->e, offset, d->pixel, &of_pixel) || sym_is(s->e.syms, of_tap, 0))
		return;
	for (uint32_t k = 1; k < n && !d->stride; k++)
		if (sym_muli(s->e.syms, of_tap, k).i == of_pixel.i)
			d->stride = k;
	d->line = d->stride ? (uint32_t)n : 0;
}

/* acc_t += x[t * stride + k] * w[k], in the order of the elements of x: by ascending k for each t. */
static void line_of_taps(Depthwise *d, Lv *acc, uint32_t tap)
{
	Cpu *s = d->s;
	Lx w[MAX_LINE];
	for (uint32_t k = 0; k < d->line; k++) {
		eval_at(&s->e, tap, lx_int(s->e.f, k));
		w[k] = eval_vector(&s->e, d->w);
	}
	for (uint32_t i = 0; i < (d->tile - 1) * d->stride + d->line; i++) {
		uint32_t last = i / d->stride < d->tile ? i / d->stride : d->tile - 1;
		eval_at(&s->e, d->pixel, pixel_at(d, last));
		eval_at(&s->e, tap, lx_int(s->e.f, i - last * d->stride));
		Lx x = eval_vector(&s->e, d->x);
		for (uint32_t t = 0; t <= last; t++) {
			uint32_t k = i - t * d->stride;
			if (k < d->line)
				ls_set(s->e.f, acc[t], cpu_fma(s, x, w[k], lx_var(s->e.f, acc[t])));
		}
	}
	eval_at(&s->e, tap, (Lx){0});
}

static void taps(Depthwise *d, Lv *acc, uint32_t next);

/* The loop over taps in [lo, hi), perhaps in chunks. */
static void tap_chunks(Depthwise *d, Lv *acc, uint32_t next, Lx lo, Lx hi)
{
	Cpu *s = d->s;
	const Stage *st = &s->e.k->stage.data[0];
	SumLoop sums = {.kind = st->combine, .n = d->tile, .width = 1};
	sums.ncut = sum_cuts(&d->sums, next, &sums.cut);
	if (sums.ncut)
		sum_open(s, &sums, &lo, &hi, acc);
	eval_for(&s->e, st->red[next], lo, hi, 1);
	taps(d, acc, next + 1);
	eval_end(&s->e);
	if (sums.ncut)
		sum_close(s, &sums, acc);
}

static void taps(Depthwise *d, Lv *acc, uint32_t next)
{
	Cpu *s = d->s;
	const Stage *st = &s->e.k->stage.data[0];
	if (next + 1 == st->nred && d->line && !d->beyond) {
		line_of_taps(d, acc, st->red[next]);
		return;
	}
	if (next < st->nred) {
		tap_chunks(d, acc, next, lx_int(s->e.f, 0), eval_size(&s->e, s->e.axes.extent[st->red[next]]));
		return;
	}
	Lx w = eval_vector(&s->e, d->w);
	for (uint32_t t = 0; t < d->tile; t++) {
		eval_at(&s->e, d->pixel, pixel_at(d, t));
		ls_set(s->e.f, acc[t], cpu_fma(s, eval_vector(&s->e, d->x), w, lx_var(s->e.f, acc[t])));
	}
}

static void pixel_tile(Depthwise *d)
{
	Cpu *s = d->s;
	Lv acc[MAX_TILE];
	LType v = {DT_f32, s->e.lanes.n};
	for (uint32_t t = 0; t < d->tile; t++)
		acc[t] = ls_var(s->e.f, arena_printf(s->e.arena, "acc_%u", t), lx_float(s->e.f, v, 0));
	taps(d, acc, 0);
	for (uint32_t t = 0; t < d->tile; t++) {
		eval_at(&s->e, d->pixel, pixel_at(d, t));
		eval_stage_value(&s->e, 0, lx_var(s->e.f, acc[t]));
		for (uint32_t i = 1; i < s->e.k->stage.n; i++)
			cpu_store(s, i, eval_value(&s->e, s->e.k->stage.data[i].value));
	}
	eval_stage_over(&s->e, 0);
}

static void tiles(Depthwise *d, Sym begin, Sym end)
{
	Cpu *s = d->s;
	d->start = lx_var(s->e.f, ls_for(s->e.f, "pixel", eval_size(&s->e, begin), eval_size(&s->e, end), d->tile));
	pixel_tile(d);
	ls_end(s->e.f);
}

static void row(Depthwise *d)
{
	Cpu *s = d->s;
	Sym n = s->e.axes.extent[d->pixel], left = sym_modi(s->e.syms, n, d->tile), whole = sym_sub(s->e.syms, n, left);
	int64_t nleft;
	if (!sym_is(s->e.syms, whole, 0))
		tiles(d, sym_int(s->e.syms, 0), whole);
	if (sym_is(s->e.syms, left, 0))
		return;
	uint32_t tile = d->tile;
	d->beyond = !sym_is_const(s->e.syms, left, &nleft);
	d->tile = d->beyond ? tile : (uint32_t)nleft;
	tiles(d, whole, n);
	d->tile = tile;
	d->beyond = false;
}

static void channels(Cpu *s, void *data)
{
	Depthwise *d = data;
	uint64_t known = UINT64_C(1) << s->e.lanes.axis;
	for (uint32_t i = 0; i < d->nrow; i++)
		known |= UINT64_C(1) << d->row[i];
	for (uint32_t i = 1; i < s->e.k->stage.n; i++)
		eval_hoist(&s->e, s->e.k->stage.data[i].value, known);
	row(d);
}

static Sym decode_rows(Depthwise *d, Lx t)
{
	Cpu *s = d->s;
	Sym ntasks = sym_int(s->e.syms, 1);
	for (uint32_t i = d->nrow; i-- > 0;) {
		uint32_t a = d->row[i];
		Lx v = t;
		if (i) {
			v = lx_mod(s->e.f, t, eval_size(&s->e, s->e.axes.extent[a]));
			t = lx_var(s->e.f, ls_let(s->e.f, "rest", lx_div(s->e.f, t, eval_size(&s->e, s->e.axes.extent[a]))));
		}
		eval_at(&s->e, a, lx_var(s->e.f, ls_let(s->e.f, "i", v)));
		ntasks = sym_mul(s->e.syms, ntasks, s->e.axes.extent[a]);
	}
	return ntasks;
}

/* The channel axis. */
static Refusal recognise(const Cpu *s, uint32_t *channel)
{
	if (s->shape.no_product)
		return refuse(s->shape.no_product);
	if (s->shape.dtype != DT_f32)
		return refuse("its products are not of f32");
	if (target_width(s->target) == 1)
		return refuse("the target has no vectors");
	*channel = channel_axis(s);
	if (*channel == NO_AXIS)
		return refuse("weights are not a vector of channels that are neighbours in the operand");
	bool constant = buf_of(s->e.l, s->e.k->kx.data[s->shape.b.i].buf)->kind == BUF_CONST;
	if (ntaps(s) > MANY_TAPS && !constant && !eval_coef_is(&s->e, s->e.offset[s->shape.b.i], *channel, 1))
		return refuse_near(arena_printf(s->e.arena, "more than %u terms, and channels are no neighbours in the second operand", MANY_TAPS));
	return has_rows(s, *channel) ? taken() : refuse_near("there is one pixel");
}

Refusal depthwise_wants(const Cpu *s, LayoutWant *want)
{
	uint32_t channel;
	Refusal no = recognise(s, &channel);
	const KxData *w = &s->e.k->kx.data[s->shape.b.i];
	if (!no.why && buf_of(s->e.l, w->buf)->kind == BUF_CONST)
		*want = (LayoutWant){s->shape.b, weights_layout(s, w, channel)};
	return no;
}

Refusal schedule_depthwise(Cpu *s)
{
	Depthwise d = {.s = s, .x = s->shape.a, .w = s->shape.b, .pixel = NO_AXIS};
	uint32_t channel;
	Refusal no = recognise(s, &channel);
	if (no.why)
		return no;
	eval_lanes(&s->e, channel, target_width(s->target));
	uint32_t n = axes_outer_order(s, d.row);
	d.pixel = d.row[n - 1];
	d.nrow = n - 1;
	transpose_weights(&d, channel);
	choose_tile(&d);
	choose_line(&d);
	plan_sums(&d);
	Lx begin = lx_int(s->e.f, 0), end = eval_size(&s->e, s->e.axes.extent[channel]), task = lx_var(s->e.f, s->e.f->task);
	Sym vectors = sym_int(s->e.syms, 1);
	if (ntaps(s) > MANY_TAPS) {
		vectors = sym_ceildiv(s->e.syms, s->e.axes.extent[channel], sym_int(s->e.syms, s->e.lanes.n));
		Lx count = eval_size(&s->e, vectors), lanes = lx_int(s->e.f, s->e.lanes.n);
		begin = eval_let(&s->e, "lo", lx_mul(s->e.f, lx_mod(s->e.f, task, count), lanes));
		end = eval_let(&s->e, "hi", lx_min(s->e.f, lx_add(s->e.f, begin, lanes), end));
		task = eval_let(&s->e, "row", lx_div(s->e.f, task, count));
	}
	Sym ntasks = sym_mul(s->e.syms, decode_rows(&d, task), vectors);
	cpu_vector_loop(s, channel, begin, end, sym_divides(s->e.syms, s->e.lanes.n, s->e.axes.extent[channel]), channels, &d);
	s->out->algorithm = arena_printf(s->e.arena, "depthwise, %u pixels x %u channels", d.tile, s->e.lanes.n);
	s->out->why = "each channel has its own weights, and channels are neighbours";
	cpu_finish_phase(s, ntasks, s->cost);
	return taken();
}
