/* The code of GpuPointsPlan. */
#include "codegen/gpu/block.h"

typedef struct {
	Code *s;
	const GpuPointsPlan *p;
	Lx value[GPU_WIDE]; /* of a stage, by element of the access */
} Points;

/* ---- several elements in one access ---- */

static void load_all(Points *r, Lx x)
{
	for (uint32_t i = 0; i < r->p->nvector; i++)
		block_load_wide(r->s, r->p->vector[i], r->p->fast, x, r->p->wide);
}

/* Computes the elements of one access: stage by stage, and in each element by element. */
static void point_wide(Points *r, Lx x)
{
	Eval *e = &r->s->e;
	StageValue *result[GPU_WIDE];
	for (uint32_t k = 0; k < r->p->wide; k++)
		result[k] = ARENA_ARRAY(e->arena, StageValue, e->k->stage.n);
	for (uint32_t i = 0; i < e->k->stage.n; i++) {
		const Stage *st = &e->k->stage.data[i];
		for (uint32_t k = 0; k < r->p->wide; k++) {
			eval_stages(e, result[k]);
			eval_at(e, r->p->fast, lx_add(e->f, x, lx_int(e->f, k)));
			if (st->kind == STAGE_CHECK) {
				eval_check(e, i);
				continue;
			}
			r->value[k] =
				eval_convert(e, eval_value(e, st->value), dtype_compute(st->dtype));
			if (nest_keeps_value(e->nest, st))
				eval_stage_value(e, i, r->value[k] = eval_let(e, "r", r->value[k]));
		}
		if (stage_stores(st) && st->kind == STAGE_MAP)
			block_store_wide(r->s, i, r->p->fast, x, r->p->wide, r->value);
	}
}

/* ---- threads ---- */

/* Computes the chunk whose axes are set, or what is left of it at the end of the axis. */
static void run_chunk(Points *r)
{
	Eval *e = &r->s->e;
	const uint32_t fast = r->p->fast;
	if (r->p->wide == 1) {
		block_point(r->s);
		return;
	}
	const Lx x = e->at[fast], end = eval_size(e, e->nest->extent[fast]);
	const bool whole = sym_divides(e->syms, r->p->wide, e->nest->extent[fast]);
	if (!whole)
		ls_if(e->f, lx_cmp(e->f, SC_le, lx_add(e->f, x, lx_int(e->f, r->p->wide)), end));
	load_all(r, x);
	point_wide(r, x);
	if (whole)
		return;
	ls_else(e->f);
	eval_stages(e, ARENA_ARRAY(e->arena, StageValue, e->k->stage.n));
	eval_for(e, fast, x, end, 1);
	block_point(r->s);
	eval_end(e);
	ls_end(e->f);
}

static void decode(Points *r, Lx t)
{
	int64_t by[MAX_AXES];
	for (uint32_t i = 0; i < r->p->n; i++)
		by[i] = i + 1 == r->p->n ? r->p->wide : 1;
	block_decode(r->s, t, r->p->order, r->p->n, by);
}

static Lx chunk_number(Points *r, Lx first, uint32_t u)
{
	LoopFn *f = r->s->e.f;
	return eval_let(&r->s->e, "at", lx_add(f, first, lx_int(f, (int64_t)u * r->p->threads)));
}

/* Computes several chunks, with all their loads ahead. */
static void run_ahead(Points *r, Lx first)
{
	Eval *e = &r->s->e;
	Lx at[GPU_EACH][MAX_AXES];
	for (uint32_t u = 0; u < r->p->each; u++) {
		decode(r, chunk_number(r, first, u));
		for (uint32_t i = 0; i < r->p->n; i++)
			at[u][i] = e->at[r->p->order[i]];
		for (uint32_t i = 1; i < e->k->kx.n && r->p->wide == 1; i++)
			if (e->nest->offset[i].i && !e->k->kx.data[i].guard.i && !e->k->vvar.n)
				(void)eval_value(e, (Kx){i});
		if (r->p->wide > 1)
			load_all(r, e->at[r->p->fast]);
	}
	for (uint32_t u = 0; u < r->p->each; u++) {
		for (uint32_t i = 0; i < r->p->n; i++)
			eval_at(e, r->p->order[i], at[u][i]);
		if (r->p->wide > 1)
			point_wide(r, at[u][r->p->n - 1]);
		else
			block_point(r->s);
	}
}

/* Whether chunks may be loaded ahead where the block has all of its chunks: all of them are
 * whole. */
static bool may_run_ahead(const Points *r)
{
	const Nest *n = r->p->nest;
	return r->p->each > 1 && sym_divides(n->syms, r->p->wide, n->extent[r->p->fast]);
}

static void run_chunks(Points *r)
{
	Eval *e = &r->s->e;
	const GpuPointsPlan *p = r->p;
	const int64_t per = (int64_t)p->threads * p->each;
	Lx begin = lx_mul(e->f, block_number(r->s), lx_int(e->f, per)),
	   chunks = eval_size(e, p->chunks);
	Lx first = eval_let(e, "first", lx_add(e->f, begin, block_thread(r->s)));
	if (may_run_ahead(r)) {
		ls_if(e->f, lx_cmp(e->f, SC_le, lx_add(e->f, begin, lx_int(e->f, per)), chunks));
		run_ahead(r, first);
		ls_else(e->f);
		eval_stages(e, ARENA_ARRAY(e->arena, StageValue, e->k->stage.n));
	}
	Lx at = first;
	if (p->each > 1) {
		Lx end = lx_add(e->f, first, lx_int(e->f, per));
		at = lx_var(e->f, ls_for(e->f, "at", first, lx_min(e->f, end, chunks), p->threads));
	} else {
		ls_if(e->f, lx_cmp(e->f, SC_lt, first, chunks));
	}
	decode(r, at);
	run_chunk(r);
	ls_end(e->f);
	if (may_run_ahead(r))
		ls_end(e->f);
}

/* ---- tiles ---- */

typedef struct {
	Lx x, y;       /* the first point of the tile, along fast and across */
	Lx nx, ny;     /* the extents */
	Lx lane, row;  /* of the thread */
	LMem tile[GPU_TURNED];
} Tile;

static Lx plus(Points *r, Lx a, int64_t b)
{
	return lx_add(r->s->e.f, a, lx_int(r->s->e.f, b));
}

/* Opens the branch of points that are there, one along `along` for each lane, others along the
 * rows. */
static void open_point(Points *r, const Tile *t, bool turned, uint32_t k)
{
	Eval *e = &r->s->e;
	Lx down = plus(r, t->row, k);
	Lx x = eval_let(e, "x", lx_add(e->f, t->x, turned ? down : t->lane));
	Lx y = eval_let(e, "y", lx_add(e->f, t->y, turned ? t->lane : down));
	ls_if(e->f, lx_and(e->f, lx_cmp(e->f, SC_lt, x, t->nx), lx_cmp(e->f, SC_lt, y, t->ny)));
	eval_at(e, r->p->fast, x);
	eval_at(e, r->p->turned.across, y);
}

/* Returns the position of element (column, row + k) in a tile. Rows of a tile have one element
 * more, so that neither way two lanes of a warp meet in one bank. */
static Lx place(Points *r, Lx row, uint32_t k, Lx column)
{
	LoopFn *f = r->s->e.f;
	return lx_add(f, lx_mul(f, plus(r, row, k), lx_int(f, GPU_TILE + 1)), column);
}

static void read_tile(Points *r, Tile *t)
{
	Eval *e = &r->s->e;
	const Turned *turned = &r->p->turned;
	for (uint32_t i = 0; i < turned->n; i++)
		t->tile[i] = ls_shared(e->f, "tile", e->k->kx.data[turned->load[i].i].dtype,
				       GPU_TILE * (GPU_TILE + 1));
	for (uint32_t k = 0; k < GPU_TILE; k += GPU_TILE_ROWS) {
		open_point(r, t, true, k);
		for (uint32_t i = 0; i < turned->n; i++)
			ls_store(e->f, t->tile[i], place(r, t->row, k, t->lane),
				 eval_value(e, turned->load[i]), (Lx){0});
		ls_end(e->f);
	}
	ls_sync(e->f);
}

static void use_tile(Points *r, const Tile *t)
{
	Eval *e = &r->s->e;
	const Turned *turned = &r->p->turned;
	for (uint32_t k = 0; k < GPU_TILE; k += GPU_TILE_ROWS) {
		open_point(r, t, false, k);
		for (uint32_t i = 0; i < turned->n; i++) {
			Lx at = place(r, t->lane, 0, plus(r, t->row, k));
			LType type = {e->k->kx.data[turned->load[i].i].dtype, 1};
			eval_assume(e, turned->load[i],
				    lx_var(e->f,
					   ls_load(e->f, "turned", t->tile[i], at, type, (Lx){0})));
		}
		block_point(r->s);
		ls_end(e->f);
	}
}

static void run_tiles(Points *r)
{
	Eval *e = &r->s->e;
	const GpuPointsPlan *p = r->p;
	uint32_t axis[MAX_AXES + 1];
	int64_t by[MAX_AXES + 1];
	for (uint32_t i = 0; i < p->n; i++) {
		axis[i] = p->order[i];
		by[i] = i + 1 == p->n ? GPU_TILE : 1;
	}
	axis[p->n] = p->turned.across;
	by[p->n] = GPU_TILE;
	block_decode(r->s, block_number(r->s), axis, p->n + 1, by);
	Tile t = {.x = e->at[p->fast],
		  .y = e->at[p->turned.across],
		  .nx = eval_size(e, e->nest->extent[p->fast]),
		  .ny = eval_size(e, e->nest->extent[p->turned.across]),
		  .lane = eval_let(e, "lane", block_column(r->s, GPU_TILE)),
		  .row = eval_let(e, "row", block_row(r->s, GPU_TILE))};
	read_tile(r, &t);
	use_tile(r, &t);
}

void emit_gpu_points(Code *s, const Plan *plan)
{
	const GpuPointsPlan *p = plan->of.gpu_points;
	Points r = {.s = s, .p = p};
	block_begin(s, p->nest, p->threads);
	if (p->turned.n)
		run_tiles(&r);
	else
		run_chunks(&r);
	code_finish_phase(s, p->nblock, p->cost);
}
