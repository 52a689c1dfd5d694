/* Loop fusion of stages, whose inner axes are joined: stages over rows of the same shape share
 * them, so that one of them can be the vector axis of all; neighbours that are contiguous in every
 * access become one. A mean and a variance over [N, H, W] of each channel:
 *
 *   stage0 (n0, h0, w0)  stage1 (n1, h1, w1)   becomes   stage0 (n0, m)  stage1 (n0, m) */
#include "codegen/plan/axes.h"

static bool runs_over_rows(const Nest *nest, const Stage *st)
{
	return (st->kind == STAGE_REDUCE || st->kind == STAGE_MAP) && !nest_keeps_row(nest, st);
}

static uint64_t inner_axes(const Nest *nest, const Stage *st)
{
	const AxisList map = nest_inner(nest, st);
	return axes_set(map.axis, map.n) | axes_set(st->red, st->nred);
}

/* Returns the inner axes, by bit, that only reductions and maps over rows run over. */
static uint64_t free_axes(const Nest *nest)
{
	uint64_t rows = 0, other = nest->outer;
	for (uint32_t i = 0; i < nest->k->stage.n; i++) {
		const Stage *st = &nest->k->stage.data[i];
		if (runs_over_rows(nest, st))
			rows |= inner_axes(nest, st);
		else
			other |= inner_axes(nest, st);
	}
	for (uint32_t a = 0; a < nest->n; a++)
		if (!nest_axis_is_plain(nest, a))
			other |= UINT64_C(1) << a;
	for (uint32_t i = 1; i < nest->k->kx.n; i++)
		for (uint32_t j = 0;
		     nest->k->kx.data[i].kind == KX_STAGE && j < nest->k->kx.data[i].nidx; j++)
			other |= nest_axes(nest, nest->k->kx.data[i].idx[j]);
	return rows & ~other;
}

/* ---- sharing ---- */

static void rename_in(uint8_t *axis, uint32_t n, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < n; i++)
		axis[i] = axis[i] == from ? (uint8_t)to : axis[i];
}

static void rename_axis(Nest *nest, Kernel *k, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		Stage *st = &k->stage.data[i];
		rename_in(st->map, st->nmap, from, to);
		rename_in(st->red, st->nred, from, to);
	}
	nest_rename_axis(nest, k, from, to);
}

/* Lists the inner axes of a stage in the order of its dimensions. */
static uint32_t list_axes(const Nest *nest, const Stage *st, uint32_t *axis)
{
	const AxisList map = nest_inner(nest, st);
	for (uint32_t i = 0; i < map.n + st->nred; i++)
		axis[i] = i < map.n ? map.axis[i] : st->red[i - map.n];
	return map.n + st->nred;
}

static bool same_rows(const Nest *nest, const uint32_t *a, const uint32_t *b, uint32_t n,
		      uint64_t usable)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(usable >> a[i] & 1) || !(usable >> b[i] & 1) ||
		    nest->extent[a[i]].i != nest->extent[b[i]].i)
			return false;
	return n > 0;
}

/* Whether some stage runs over axes of both sets. */
static bool met(const Nest *nest, uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < nest->k->stage.n; i++) {
		uint64_t axes = inner_axes(nest, &nest->k->stage.data[i]);
		if ((axes & a) && (axes & b))
			return true;
	}
	return false;
}

static void share_rows(Nest *nest, Kernel *k, uint32_t from, uint32_t to)
{
	const Stage *x = &k->stage.data[from], *y = &k->stage.data[to];
	uint32_t a[2 * MAX_KERNEL_AXES], b[2 * MAX_KERNEL_AXES], n = list_axes(nest, x, a);
	bool one_kind =
		!(nest_maps_inner(nest, x) && x->nred) && !(nest_maps_inner(nest, y) && y->nred);
	if (!n || !one_kind || n != list_axes(nest, y, b) ||
	    met(nest, inner_axes(nest, x), inner_axes(nest, y)) ||
	    !same_rows(nest, a, b, n, free_axes(nest)))
		return;
	for (uint32_t i = 0; i < n; i++)
		rename_axis(nest, k, a[i], b[i]);
}

/* ---- merging ---- */

/* Whether every stage maps both axes, reduces both, or runs over neither. */
static bool together(const Nest *nest, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < nest->k->stage.n; i++) {
		const Stage *st = &nest->k->stage.data[i];
		uint64_t map = axes_set(st->map, st->nmap), red = axes_set(st->red, st->nred);
		if ((map >> a & 1) != (map >> b & 1) || (red >> a & 1) != (red >> b & 1))
			return false;
	}
	return true;
}

static uint8_t merge_in(uint8_t *axis, uint32_t n, uint32_t a, uint32_t b, uint32_t m)
{
	uint8_t left = 0;
	for (uint32_t i = 0; i < n; i++)
		if (axis[i] != b)
			axis[left++] = axis[i] == a ? (uint8_t)m : axis[i];
	return left;
}

static bool merge_one(Nest *nest, Kernel *k)
{
	uint64_t usable = free_axes(nest);
	for (uint32_t a = 0; a < nest->n; a++)
		for (uint32_t b = 0; b < nest->n && nest->n < MAX_AXES; b++) {
			bool both = a != b && nest->var[a].i && nest->var[b].i &&
				    usable >> a & usable >> b & 1;
			if (!both || !together(nest, a, b) || !axes_can_merge(nest, a, b))
				continue;
			uint32_t m = nest_merge_axes(nest, a, b);
			for (uint32_t i = 0; i < k->stage.n; i++) {
				Stage *st = &k->stage.data[i];
				st->nmap = merge_in(st->map, st->nmap, a, b, m);
				st->nred = merge_in(st->red, st->nred, a, b, m);
			}
			return true;
		}
	return false;
}

void axes_join_rows(Nest *nest, Kernel *k)
{
	for (uint32_t j = 1; j < nest->k->stage.n; j++)
		for (uint32_t i = 0; i < j; i++)
			if (runs_over_rows(nest, &nest->k->stage.data[i]) &&
			    runs_over_rows(nest, &nest->k->stage.data[j]))
				share_rows(nest, k, j, i);
	nest_find_deps(nest);
	while (merge_one(nest, k))
		;
}
