/* How long the chains of roundings are: beside every lane of a value, which may be the bits of a
 * float, how many additions one after the other it went through at most since the inputs, each of
 * which rounds. A sum of n terms in one chain has n - 1, in a tree log2(n). The rounding of a
 * product does not count, nor do functions: what they are computed from has been rounded before
 * them. */
#include "ir/loop/interp/priv.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = UINT16_MAX };

static uint16_t deeper(uint16_t a, uint16_t b)
{
	return a > b ? a : b;
}

static uint16_t rounded(uint16_t a)
{
	return a < DEEPEST ? a + 1 : a;
}

static bool adds(const LxData *d)
{
	return dtype_is_float(d->type.dtype) &&
	       (d->sc == SC_add || d->sc == SC_sub || d->sc == SC_fma || sc_is_dot(d->sc));
}

void depth_init(Exec *e)
{
	Arena *a = e->at.in->arena;
	e->depth = ARENA_ARRAY(a, uint16_t *, e->f->lx.n);
	e->var_depth = ARENA_ARRAY(a, uint16_t *, e->f->lv.n);
}

uint16_t *depth_of_var(Exec *e, Lv v, uint64_t n)
{
	if (!e->var_depth[v.i])
		e->var_depth[v.i] = ARENA_ARRAY(e->at.in->arena, uint16_t, e->n * n);
	return e->var_depth[v.i];
}

uint16_t *depth_of(Exec *e, Lx x)
{
	const LxData *d = &e->f->lx.data[x.i];
	if (d->kind == LX_VAR)
		return depth_of_var(e, d->u.v, d->type.lanes);
	return e->depth[x.i];
}

/* Computes the chains of an operation lane by lane. */
static void of_operation(const Exec *e, const LxData *d, const uint16_t *const *in, uint16_t *out)
{
	uint32_t first = d->kind == LX_SC && d->sc == SC_select; /* what is selected, not by what */
	for (uint32_t k = 0; k < e->n * d->type.lanes; k++) {
		uint16_t most = 0;
		for (uint32_t i = first; i < d->nin; i++)
			most = deeper(most, in[i][k]);
		out[k] = d->kind == LX_SC && adds(d) ? rounded(most) : most;
	}
}

static void of_reduction(const Exec *e, const LxData *d, uint32_t lanes, const uint16_t *in,
			 uint16_t *out)
{
	for (uint32_t t = 0; t < e->n; t++) {
		uint16_t most = 0;
		for (uint32_t k = 0; k < lanes; k++)
			most = deeper(most, in[t * lanes + k]);
		for (uint32_t k = lanes; k > 1 && adds(d); k /= 2)
			most = rounded(most);
		out[t] = most;
	}
}

static void of_shuffle(const Exec *e, const LxData *d, uint32_t lanes, const uint16_t *const *in,
		       uint16_t *out)
{
	for (uint32_t t = 0; t < e->n; t++)
		for (uint32_t k = 0; k < d->type.lanes; k++) {
			uint32_t at = shuffle_lane((Shuffle)d->u.k, k, lanes);
			out[t * d->type.lanes + k] = in[at >= lanes][t * lanes + at % lanes];
		}
}

/* Computes the chains of an exchange in a warp. A vote is as deep as any of the warp. */
static void of_warp(const Exec *e, const LxData *d, const uint16_t *in, uint16_t *out)
{
	uint32_t lanes = d->type.lanes;
	const LxData *by = &e->f->lx.data[d->in[1].i];
	const int64_t *lane =
		(const int64_t *)(const void *)(by->kind == LX_VAR ? e->var[by->u.v.i]
								   : e->value[d->in[1].i]);
	for (uint32_t t = 0; t < e->n; t++) {
		uint32_t first = t - t % WARP, from = 0;
		if (!warp_is_vote((WarpOp)d->u.k)) {
			(void)block_lane((WarpOp)d->u.k, t % WARP, lane[t], &from);
			memcpy(out + t * lanes, in + (first + from) * lanes, lanes * sizeof *out);
			continue;
		}
		for (out[t] = 0; from < WARP; from++)
			out[t] = deeper(out[t], in[first + from]);
	}
}

void depth_compute(Exec *e, Lx x)
{
	const LxData *d = &e->f->lx.data[x.i];
	const uint16_t *in[4] = {NULL};
	if (!e->depth[x.i])
		e->depth[x.i] = ARENA_ARRAY(e->at.in->arena, uint16_t, e->n * d->type.lanes);
	if (!d->nin)
		return;
	uint16_t *out = e->depth[x.i];
	const uint32_t lanes = lx_type(e->f, d->in[0]).lanes;
	for (uint32_t k = 0; k < d->nin; k++)
		in[k] = depth_of(e, d->in[k]);
	switch (d->kind) {
	case LX_SC: case LX_FN: of_operation(e, d, in, out); break;
	case LX_HREDUCE: of_reduction(e, d, lanes, in[0], out); break;
	case LX_SHUFFLE: of_shuffle(e, d, lanes, in, out); break;
	case LX_WARP: of_warp(e, d, in[0], out); break;
	case LX_LANE:
		for (uint32_t t = 0; t < e->n; t++)
			out[t] = in[0][t * lanes + d->u.k];
		break;
	case LX_PACK:
		for (uint32_t k = 0; k < e->n * d->nin; k++)
			out[k] = in[k % d->nin][k / d->nin];
		break;
	case LX_SPLAT:
		for (uint32_t k = 0; k < e->n * d->type.lanes; k++)
			out[k] = in[0][k / d->type.lanes];
		break;
	default: break;
	}
}

void depth_define(Exec *e, const Active *a, Lv v, Lx x)
{
	uint32_t lanes = e->f->lv.data[v.i].type.lanes;
	const uint16_t *from = depth_of(e, x);
	uint16_t *to = depth_of_var(e, v, lanes);
	for (uint32_t t = 0; t < e->n; t++)
		if (a->on[t])
			memmove(to + t * lanes, from + t * lanes, lanes * sizeof *to);
}

void depth_note(Interp *in, uint16_t depth)
{
	LoopReport *r = in->report;
	if (depth <= r->depth)
		return;
	r->depth = depth;
	snprintf(r->deepest, sizeof r->deepest, "%s", in->call ? in->call : "");
}
