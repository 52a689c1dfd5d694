/* Rounds weights: by rows, each of which has numbers of its own, so that threads share nothing but
 * the counter of rows. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "transform/quantize/quantize.h"

enum {
	MOST_BYTE = 127,
	HALF = 8, /* 4 bits: integers from 0 to 15, or from -8 to 7 around this zero point */
	MOST_HALF = 15,
	TRIES = 9, /* scales that are tried on both sides of the first one */
	TRIED = 2 * TRIES + 1,
	CANDIDATES = TRIED + 1 /* one more than there are: compilers make vectors of them */
};
#define MOST_BF16 0x1.fep127 /* the largest finite number: one above it becomes that */
#define TRY_STEP 0.1 /* between candidates, of 8 steps of the scale */

/* A weight as rows, all elements with the same indices along the kept dimensions, of terms. */
typedef struct {
	const ProductWeight *w;
	const Const *c;
	Tensor from;
	int64_t rows, terms, *at; /* at[k]: where term k of a row is, from the row's first one */
	const RoundOptions *o;
	RoundedWeight *out;
	float *scale;           /* by row and group: before it is rounded to what is stored */
	uint8_t *zero;          /* by row and group */
	double *signal, *noise; /* by row */
	double *weighed;        /* by row: both, with terms by their importance */
	int64_t *wrong;         /* by row: the index of an element that is not finite, or -1 */
	double *room;           /* of each thread: the terms of a row */
	atomic_int_least64_t next;
	atomic_uint_least32_t thread;
	int phase;
} Rounding;

/* ---- where numbers are ---- */

static bool is_summed(const Rounding *r, uint32_t d)
{
	return r->w->summed >> d & 1;
}

/* Returns the number of the first element of a row in a tensor of the weight's rank, whose extents
 * along kept dimensions are the weight's: dim[] has its extents. */
static int64_t row_in(const Rounding *r, int64_t row, const int64_t *dim)
{
	int64_t at = 0, stride = 1;
	for (uint32_t d = r->c->rank; d-- > 0; stride *= dim[d])
		if (!is_summed(r, d)) {
			at += row % r->c->dim[d] * stride;
			row /= r->c->dim[d];
		}
	return at;
}

/* Returns the distance of neighbours along dimension `along`. */
static int64_t stride_of(const Rounding *r, const int64_t *dim, uint32_t along)
{
	int64_t stride = 1;
	for (uint32_t d = along + 1; d < r->c->rank; d++)
		stride *= dim[d];
	return stride;
}

static void place_terms(Arena *arena, Rounding *r)
{
	r->rows = r->terms = 1;
	for (uint32_t d = 0; d < r->c->rank; d++)
		*(is_summed(r, d) ? &r->terms : &r->rows) *= r->c->dim[d];
	r->at = ARENA_ARRAY(arena, int64_t, r->terms);
	for (int64_t k = 0; k < r->terms; k++) {
		int64_t rest = k, stride = 1;
		for (uint32_t d = r->c->rank; d-- > 0; stride *= r->c->dim[d])
			if (is_summed(r, d)) {
				r->at[k] += rest % r->c->dim[d] * stride;
				rest /= r->c->dim[d];
			}
	}
}

/* Sets x[] to the terms of a row. */
static void read_row(Rounding *r, int64_t row, double *x)
{
	const int64_t first = row_in(r, row, r->c->dim);
	r->wrong[row] = -1;
	for (int64_t k = 0; k < r->terms; k++) {
		x[k] = tensor_f64(&r->from, first + r->at[k]);
		if (!isfinite(x[k]) && r->wrong[row] < 0)
			r->wrong[row] = first + r->at[k];
	}
}

static double square(double x)
{
	return x * x;
}

/* Counts term k of a row, which was one number and is another one. */
static void count(Rounding *r, int64_t row, int64_t k, double was, double is)
{
	const double a = r->o->importance ? r->o->importance[k] : 1;
	r->signal[row] += square(was);
	r->noise[row] += square(was - is);
	r->weighed[2 * row] += a * square(was);
	r->weighed[2 * row + 1] += a * square(was - is);
}

/* Returns the integer next to x, halves to the even one, within small integer bounds. A sum with
 * this number is rounded to an integer: that is what compilers make vectors of, unlike rint. */
static double nearest(double x, double low, double high)
{
	static const double round = 0x1.8p52;
	const double least = x < low ? low : x;
	return (least > high ? high : least) + round - round;
}

/* ---- 8 bits, bf16 ---- */

static void round_bytes(Rounding *r, int64_t row, const double *x)
{
	const int64_t first = row_in(r, row, r->c->dim);
	int8_t *q = r->out->q.data;
	double most = 0;
	for (int64_t k = 0; k < r->terms; k++)
		most = fmax(most, fabs(x[k]));
	float scale = (float)most / MOST_BYTE;
	if (isinf(scale * MOST_BYTE)) /* it was rounded up */
		scale = nextafterf(scale, 0);
	/* a magnitude so small that no float is a 127th of it is one like 0 */
	for (int64_t k = 0; k < r->terms; k++) {
		const float step = scale > 0 ? (float)x[k] / scale : 0;
		const double to = nearest((double)step, -MOST_BYTE, MOST_BYTE);
		q[first + r->at[k]] = (int8_t)to;
		count(r, row, k, x[k], (double)((float)to * scale));
	}
	((float *)r->out->scale.data)[row_in(r, row, r->out->scale.dim)] = scale;
}

static void round_bf16(Rounding *r, int64_t row, const double *x)
{
	const int64_t first = row_in(r, row, r->c->dim);
	for (int64_t k = 0; k < r->terms; k++) {
		const int64_t at = first + r->at[k];
		tensor_set_f64(&r->out->q, at, x[k]);
		if (isinf(tensor_f64(&r->out->q, at)))
			tensor_set_f64(&r->out->q, at, copysign(MOST_BF16, x[k]));
		count(r, row, k, x[k], tensor_f64(&r->out->q, at));
	}
}

/* ---- 4 bits ---- */

typedef struct {
	const double *x, *importance; /* of a group; importance NULL: 1 */
	int64_t n;
} Group;

/* What a group is rounded by. */
typedef struct {
	double scale;
	int zero;
} Choice;

/* Scales and zero points by which a group may be rounded, by candidate. */
typedef struct {
	double scale[CANDIDATES], low[CANDIDATES], high[CANDIDATES]; /* of the integers */
	int zero[CANDIDATES];
} Candidates;

/* Whether f16 holds a scale to its 11 bits. */
static bool fits_f16(float scale)
{
	return scale == 0 || (fabsf(scale) >= 0x1p-14f && fabsf(scale) <= 65504);
}

/* Returns what is stored of a scale: f16 where that holds it. */
static double as_stored(double scale)
{
	uint16_t bits;
	Tensor t = {.dtype = DT_f16, .data = &bits};
	if (!fits_f16((float)scale))
		return (double)(float)scale;
	tensor_set_f64(&t, 0, scale);
	return tensor_f64(&t, 0);
}

/* Sets a candidate; one of a scale that is no usable number gains nothing. */
static void offer(Candidates *c, uint32_t k, double scale, int zero)
{
	const bool usable = isfinite(1 / scale) && isfinite(scale);
	c->scale[k] = usable ? scale : 1;
	c->zero[k] = zero;
	c->low[k] = usable ? -zero : 0;
	c->high[k] = usable ? MOST_HALF - zero : 0; /* all integers are 0: nothing is gained */
}

/* Returns the candidate that gains most with the scale that fits its integers best: by whose
 * rounding the error is less than that of all zeros; a scale of 0 where none gains anything. */
static Choice best_of(const Group *g, const Candidates *c, int zero)
{
	double xq[CANDIDATES] = {0}, qq[CANDIDATES] = {0}, most = 0;
	Choice best = {.zero = zero};
	for (int64_t k = 0; k < g->n; k++) {
		const double a = g->importance ? g->importance[k] : 1, x = g->x[k], ax = a * x;
		for (uint32_t t = 0; t < CANDIDATES; t++) {
			const double q = nearest(x / c->scale[t], c->low[t], c->high[t]);
			xq[t] += ax * q;
			qq[t] += a * q * q;
		}
	}
	for (uint32_t t = 0; t < TRIED; t++) {
		const double fit = qq[t] > 0 ? as_stored(xq[t] / qq[t]) : 0,
			     gain = fit * (2 * xq[t] - fit * qq[t]);
		if (gain > most) {
			most = gain;
			best = (Choice){fit, c->zero[t]};
		}
	}
	return best;
}

/* Returns the best of the candidates whose scales are near one that puts the greatest magnitude at
 * the end of the range, -8. */
static Choice around_zero(const Group *g)
{
	Candidates c = {.scale[TRIED] = 1};
	double end = 0;
	for (int64_t k = 0; k < g->n; k++)
		end = fabs(g->x[k]) > fabs(end) ? g->x[k] : end;
	for (uint32_t t = 0; t < TRIED; t++)
		offer(&c, t, end / -(HALF + TRY_STEP * ((int)t - TRIES)), HALF);
	return best_of(g, &c, HALF);
}

/* Returns the best of the candidates whose range is near that of the group, with 0 in it. */
static Choice with_zero(const Group *g)
{
	Candidates c = {.scale[TRIED] = 1};
	double low = 0, high = 0;
	for (int64_t k = 0; k < g->n; k++) {
		low = fmin(low, g->x[k]);
		high = fmax(high, g->x[k]);
	}
	for (uint32_t t = 0; t < TRIED; t++) {
		const double scale = (high - low) / (MOST_HALF + TRY_STEP * ((int)t - TRIES));
		offer(&c, t, scale, scale > 0 ? (int)nearest(-low / scale, 0, MOST_HALF) : 0);
	}
	return best_of(g, &c, 0);
}

static void choose_scales(Rounding *r, int64_t row, const double *x)
{
	const int64_t size = r->o->group, groups = r->terms / size;
	for (int64_t g = 0; g < groups; g++) {
		const Group group = {x + g * size,
				     r->o->importance ? r->o->importance + g * size : NULL, size};
		Choice c = r->o->zero_points ? with_zero(&group) : around_zero(&group);
		/* where nothing that is not 0 counts, the error still should be small */
		if (c.scale == 0 && r->o->importance) {
			const Group plain = {group.x, NULL, size};
			c = r->o->zero_points ? with_zero(&plain) : around_zero(&plain);
		}
		r->scale[row * groups + g] = (float)c.scale;
		r->zero[row * groups + g] = (uint8_t)c.zero;
	}
}

/* Chooses what scales are stored in, once all are known. */
static DType scale_dtype(const Rounding *r)
{
	const int64_t n = r->rows * (r->terms / r->o->group);
	for (int64_t k = 0; k < n; k++)
		if (!fits_f16(r->scale[k]))
			return DT_f32;
	return DT_f16;
}

static void round_halves(Rounding *r, int64_t row, const double *x)
{
	RoundedWeight *out = r->out;
	const int64_t size = r->o->group, groups = r->terms / size;
	int64_t packed[MAX_RANK];
	memcpy(packed, r->c->dim, sizeof *packed * r->c->rank);
	packed[out->dim] /= 2;
	const int64_t first = row_in(r, row, packed), step = stride_of(r, packed, out->dim),
		      first_scale = row_in(r, row, out->scale.dim),
		      scale_step = stride_of(r, out->scale.dim, out->dim);
	uint8_t *q = out->q.data;
	for (int64_t g = 0; g < groups; g++) {
		const int64_t at = first_scale + g * scale_step;
		const int zero = r->zero[row * groups + g];
		tensor_set_f64(&out->scale, at, (double)r->scale[row * groups + g]);
		const double scale = tensor_f64(&out->scale, at);
		if (out->zero.data)
			((uint8_t *)out->zero.data)[at] = (uint8_t)zero;
		for (int64_t k = 0; k < size; k++) {
			const double v = x[g * size + k],
				     i = isfinite(1 / scale)
						 ? nearest(v / scale, -zero, MOST_HALF - zero)
						 : 0;
			const int64_t half = k / (size / 2),
				      byte = first + (g * (size / 2) + k % (size / 2)) * step;
			q[byte] |= (uint8_t)((int)i + zero) << 4 * half;
			count(r, row, g * size + k, v, i * scale);
		}
	}
}

/* ---- all rows ---- */

static void *work(void *arg)
{
	Rounding *r = arg;
	double *x = r->room + (int64_t)atomic_fetch_add(&r->thread, 1) * r->terms;
	int64_t row;
	while ((row = atomic_fetch_add(&r->next, 1)) < r->rows) {
		read_row(r, row, x);
		if (r->wrong[row] >= 0)
			continue;
		if (r->o->kind == WEIGHT_BF16)
			round_bf16(r, row, x);
		else if (r->o->kind == WEIGHT_INT8)
			round_bytes(r, row, x);
		else if (r->phase == 0)
			choose_scales(r, row, x);
		else
			round_halves(r, row, x);
	}
	return NULL;
}

static void run_rows(Rounding *r, int phase)
{
	r->phase = phase;
	atomic_store(&r->next, 0);
	atomic_store(&r->thread, 0);
	parallel_run(r->o->jobs, work, r);
}

static void make_room(Arena *arena, Tensor *t)
{
	t->data = arena_calloc(arena, tensor_bytes(t) + 1, 1);
}

/* Sets the types of what is stored; scales of 4 bits are made once their dtype is known. */
static void make_results(Arena *arena, Rounding *r)
{
	RoundedWeight *out = r->out;
	out->q = r->from;
	out->q.dtype = r->o->kind == WEIGHT_BF16 ? DT_bf16 : DT_i8;
	out->scale = r->from;
	out->scale.data = NULL;
	out->scale.dtype = DT_f32;
	if (r->o->kind == WEIGHT_INT4) {
		const uint32_t dim = (uint32_t)__builtin_ctz(r->w->summed);
		out->dim = dim;
		out->group = r->o->group;
		out->q.dtype = DT_u8;
		out->q.rank++;
		for (uint32_t d = out->q.rank - 1; d > dim; d--)
			out->q.dim[d] = out->q.dim[d - 1];
		out->scale.dim[dim] = out->q.dim[dim] = r->terms / r->o->group;
		out->q.dim[dim + 1] = r->o->group / 2;
	} else if (r->o->kind == WEIGHT_INT8) {
		for (uint32_t d = 0; d < r->c->rank; d++)
			if (is_summed(r, d))
				out->scale.dim[d] = 1;
		make_room(arena, &out->scale);
	}
	make_room(arena, &out->q);
}

static void store_scales(Arena *arena, Rounding *r)
{
	r->out->scale.dtype = scale_dtype(r);
	make_room(arena, &r->out->scale);
	if (!r->o->zero_points)
		return;
	r->out->zero = r->out->scale;
	r->out->zero.dtype = DT_u8;
	make_room(arena, &r->out->zero);
}

uint64_t rounded_bytes(const RoundedWeight *w)
{
	uint64_t n = tensor_bytes(&w->q);
	n += w->scale.data ? tensor_bytes(&w->scale) : 0;
	return n + (w->zero.data ? tensor_bytes(&w->zero) : 0);
}

/* Names the first number that is not finite. */
static bool all_finite(Ir *ir, const Rounding *r)
{
	for (int64_t row = 0; row < r->rows; row++)
		if (r->wrong[row] >= 0)
			return ctx_error(
				ir->ctx, NULL,
				"weight %s has the number %g (element %lld): expected finite "
				"numbers; a rule of --keep leaves it in float",
				r->c->name, tensor_f64(&r->from, r->wrong[row]),
				(long long)r->wrong[row]);
	return true;
}

bool quantize_round(Ir *ir, const ProductWeight *w, const RoundOptions *o, RoundedWeight *out)
{
	enum { MOST_THREADS = 16 };
	Ctx *ctx = ir->ctx;
	Arena *scratch = ctx->scratch;
	Rounding r = {.w = w, .c = ir_const_of(ir, w->of), .o = o, .out = out};
	r.from = (Tensor){
		.dtype = r.c->dtype, .rank = r.c->rank, .data = (void *)(uintptr_t)r.c->data};
	memcpy(r.from.dim, r.c->dim, sizeof *r.c->dim * r.c->rank);
	const ArenaMark mark = arena_mark(scratch);
	place_terms(scratch, &r);
	const int64_t groups = o->kind == WEIGHT_INT4 ? r.terms / o->group : 0;
	r.scale = ARENA_ARRAY(scratch, float, r.rows *groups);
	r.zero = ARENA_ARRAY(scratch, uint8_t, r.rows *groups);
	r.signal = ARENA_ARRAY(scratch, double, r.rows);
	r.noise = ARENA_ARRAY(scratch, double, r.rows);
	r.weighed = ARENA_ARRAY(scratch, double, 2 * r.rows);
	r.wrong = ARENA_ARRAY(scratch, int64_t, r.rows);
	r.room = ARENA_ARRAY(scratch, double, r.terms *MOST_THREADS);
	*out = (RoundedWeight){.of = w->of, .kind = o->kind};
	make_results(ctx->arena, &r);
	run_rows(&r, 0);
	if (o->kind == WEIGHT_INT4 && all_finite(ir, &r)) {
		store_scales(ctx->arena, &r);
		run_rows(&r, 1);
	}
	double weighed[2] = {0, 0};
	for (int64_t row = 0; row < r.rows; row++) {
		out->signal += r.signal[row];
		out->noise += r.noise[row];
		weighed[0] += r.weighed[2 * row];
		weighed[1] += r.weighed[2 * row + 1];
	}
	out->harm = weighed[0] > 0 ? weighed[1] / weighed[0] : 0;
	const bool ok = o->kind == WEIGHT_INT4 ? out->scale.data != NULL : all_finite(ir, &r);
	arena_release(scratch, mark);
	return ok;
}
