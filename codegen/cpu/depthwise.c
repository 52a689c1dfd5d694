/* The schedule for depthwise convolutions and their gradients by weights (the roles of pixels and
 * taps are changed then): no axis is free in the second operand alone, so lanes run over
 * channels.
 *
 *   task = one row of pixels (all row axes but the fastest), and of many taps one vector of
 * channels;  for each vector of channels: for each tile of neighbouring pixels:  acc_t += x[pixel_t
 * + tap] * w[tap], over the taps; epilogue
 *
 * Where taps and pixels step along the same line, neighbouring pixels read the same elements: of
 * the innermost taps, which are unrolled, each element is loaded once and multiplied for all of
 * them.
 *
 * Weights are stored with channels fastest. What is left of a row is a tile of its own, in which
 * pixels past the end repeat the last one. */
#include "codegen/cpu/cpu.h"
#include "codegen/plan/depthwise.h"

/* The code of a task, as far as it is written. */
typedef struct {
	Cpu *s;
	const DepthwisePlan *p;
	uint32_t sum;  /* the stage of the contraction */
	uint32_t tile; /* pixels of the tile at hand */
	Lx start;      /* its first pixel */
	bool beyond;   /* it may reach beyond the row */
} DepthwiseCode;

static Lx pixel_at(DepthwiseCode *d, uint32_t t)
{
	Cpu *s = d->s;
	Lx p = lx_add(s->e.f, d->start, lx_int(s->e.f, t));
	if (!d->beyond)
		return p;
	return lx_min(s->e.f, p,
		      lx_sub(s->e.f, eval_size(&s->e, s->e.nest->extent[d->p->pixel]),
			     lx_int(s->e.f, 1)));
}

/* Returns an operand as it is multiplied. A byte is converted to i32 and then to f32, because no
 * processor does both in one instruction. */
static Lx operand(DepthwiseCode *d, const char *name, Kx load)
{
	Eval *e = &d->s->e;
	Lx x = eval_vector(e, load);
	return d->p->bytes ? eval_let(e, name, eval_convert(e, eval_convert(e, x, DT_i32), DT_f32))
			   : x;
}

/* Adds the products of the unrolled taps, acc_t += x[t * stride + k] * w[k], in the order of the
 * elements of x, which is by ascending k for each t. */
static void line_of_taps(DepthwiseCode *d, Lv *acc, uint32_t tap)
{
	Cpu *s = d->s;
	Lx w[MAX_LINE];
	for (uint32_t k = 0; k < d->p->line.n; k++) {
		eval_at(&s->e, tap, lx_int(s->e.f, k));
		w[k] = operand(d, "w", d->p->w);
	}
	for (uint32_t i = 0; i < (d->tile - 1) * d->p->line.stride + d->p->line.n; i++) {
		uint32_t last =
			i / d->p->line.stride < d->tile ? i / d->p->line.stride : d->tile - 1;
		eval_at(&s->e, d->p->pixel, pixel_at(d, last));
		eval_at(&s->e, tap, lx_int(s->e.f, i - last * d->p->line.stride));
		Lx x = operand(d, "x", d->p->x);
		for (uint32_t t = 0; t <= last; t++) {
			uint32_t k = i - t * d->p->line.stride;
			if (k < d->p->line.n)
				ls_set(s->e.f, acc[t],
				       code_fma(&s->code, x, w[k], lx_var(s->e.f, acc[t])));
		}
	}
	eval_at(&s->e, tap, (Lx){0});
}

static void taps(DepthwiseCode *d, Lv *acc, uint32_t next);

/* Writes the loop over tap axis number `next` in [lo, hi), in chunks if the sums are cut. */
static void tap_chunks(DepthwiseCode *d, Lv *acc, uint32_t next, Lx lo, Lx hi)
{
	Cpu *s = d->s;
	const Stage *st = &s->e.k->stage.data[d->sum];
	SumLoop sums = {.kind = stage_combine(st), .n = d->tile, .width = 1};
	sums.ncut = sum_cuts(&d->p->sums, next, &sums.cut);
	if (sums.ncut)
		sum_open(&s->code, &sums, &lo, &hi, acc);
	eval_for(&s->e, st->red[next], lo, hi, 1);
	taps(d, acc, next + 1);
	eval_end(&s->e);
	if (sums.ncut)
		sum_close(&s->code, &sums, acc);
}

static void taps(DepthwiseCode *d, Lv *acc, uint32_t next)
{
	Cpu *s = d->s;
	const Stage *st = &s->e.k->stage.data[d->sum];
	if (next + 1 == st->nred && d->p->line.n && !d->beyond) {
		line_of_taps(d, acc, st->red[next]);
		return;
	}
	if (next < st->nred) {
		tap_chunks(d, acc, next, lx_int(s->e.f, 0),
			   eval_size(&s->e, s->e.nest->extent[st->red[next]]));
		return;
	}
	Lx w = operand(d, "w", d->p->w);
	for (uint32_t t = 0; t < d->tile; t++) {
		eval_at(&s->e, d->p->pixel, pixel_at(d, t));
		ls_set(s->e.f, acc[t],
		       code_fma(&s->code, operand(d, "x", d->p->x), w, lx_var(s->e.f, acc[t])));
	}
}

static void pixel_tile(DepthwiseCode *d)
{
	Cpu *s = d->s;
	Lv acc[MAX_PIXELS];
	LType v = {DT_f32, s->e.lanes.n};
	for (uint32_t t = 0; t < d->tile; t++)
		acc[t] = ls_var(s->e.f, arena_printf(s->e.arena, "acc_%u", t),
				lx_float(s->e.f, v, 0));
	uint32_t from[MAX_PIXELS + 1];
	taps(d, acc, 0);
	for (uint32_t t = 0; t < d->tile; t++) {
		from[t] = ls_place(s->e.f);
		eval_at(&s->e, d->p->pixel, pixel_at(d, t));
		Lx sum = lx_var(s->e.f, acc[t]);
		cpu_store_sum(s, d->sum,
			      d->p->bytes ? eval_let(&s->e, "sum", eval_convert(&s->e, sum, DT_i32))
					  : sum);
	}
	from[d->tile] = ls_place(s->e.f);
	if (d->p->together)
		ls_interleave(s->e.f, from, d->tile);
}

static void tiles(DepthwiseCode *d, Sym begin, Sym end)
{
	Cpu *s = d->s;
	Lx last = eval_size(&s->e, end), first = eval_size(&s->e, begin);
	d->start = lx_var(s->e.f, ls_for(s->e.f, "pixel", first, last, d->tile));
	pixel_tile(d);
	ls_end(s->e.f);
}

static void row(DepthwiseCode *d)
{
	Cpu *s = d->s;
	const PixelTiles *t = &d->p->tiles;
	if (!sym_is(s->e.syms, t->whole, 0))
		tiles(d, sym_int(s->e.syms, 0), t->whole);
	if (!t->rest)
		return;
	d->tile = t->rest;
	d->beyond = t->beyond;
	tiles(d, t->whole, s->e.nest->extent[d->p->pixel]);
	d->tile = t->size;
	d->beyond = false;
}

static void channels(Cpu *s, void *data)
{
	DepthwiseCode *d = data;
	uint64_t known = UINT64_C(1) << s->e.lanes.axis;
	for (uint32_t i = 0; i < d->p->nrow; i++)
		known |= UINT64_C(1) << d->p->row[i];
	cpu_hoist_stores(s, d->sum, known);
	row(d);
}

static void decode_rows(const DepthwisePlan *p, Cpu *s, Lx t)
{
	for (uint32_t i = p->nrow; i-- > 0;) {
		uint32_t a = p->row[i];
		Lx v = t;
		if (i) {
			v = lx_mod(s->e.f, t, eval_size(&s->e, s->e.nest->extent[a]));
			t = lx_var(s->e.f, ls_let(s->e.f, "rest",
						  lx_div(s->e.f, t,
							 eval_size(&s->e, s->e.nest->extent[a]))));
		}
		eval_at(&s->e, a, lx_var(s->e.f, ls_let(s->e.f, "i", v)));
	}
}

/* Sets [*begin, *end) to the channels of the task, and the row axes to its row of pixels. */
static void decode_task(const DepthwisePlan *p, Cpu *s, Lx *begin, Lx *end)
{
	Lx task = lx_var(s->e.f, s->e.f->task);
	*begin = lx_int(s->e.f, 0);
	*end = eval_size(&s->e, s->e.nest->extent[p->channel]);
	if (p->vectors.i) {
		Lx count = eval_size(&s->e, p->vectors), lanes = lx_int(s->e.f, p->lanes);
		*begin = eval_let(&s->e, "lo", lx_mul(s->e.f, lx_mod(s->e.f, task, count), lanes));
		*end = eval_let(&s->e, "hi", lx_min(s->e.f, lx_add(s->e.f, *begin, lanes), *end));
		task = eval_let(&s->e, "row", lx_div(s->e.f, task, count));
	}
	decode_rows(p, s, task);
}

void emit_depthwise(Cpu *s, const Plan *plan)
{
	const DepthwisePlan *p = plan->of.depthwise;
	DepthwiseCode d = {
		.s = s, .p = p, .sum = kernel_first_contraction(p->nest->k), .tile = p->tiles.size};
	Lx begin, end;
	cpu_begin_phase(s, p->nest);
	eval_lanes(&s->e, p->channel, p->lanes);
	decode_task(p, s, &begin, &end);
	cpu_vector_loop(s, p->channel, begin, end,
			sym_divides(s->e.syms, p->lanes, p->nest->extent[p->channel]), channels,
			&d);
	cpu_finish_phase(s, p->ntasks, p->cost);
}
