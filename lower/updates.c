/* Values that are stored, and read element by element by a later kernel of the same points:
 *
 *   kernel m (i<n) { m2[i] = b m[i] + (1 - b) g[i] }     kernel p (i<n) {
 *   kernel p (i<n) { p2[i] = p[i] - r m2[i] }         ->    x = b m[i] + (1 - b) g[i]
 *                                                           y = p[i] - r x
 *                                                           m2[i] = x;  p2[i] = y }
 *
 * The later kernel computes both and stores both: the update of a parameter by an optimizer reads
 * and writes each tensor once. This is done after steps have their order, so that state and donated
 * memory need no rules of their own: what the earlier kernel stores is stored later, which it may
 * be if no step between the two touches that, or writes what it is computed from.
 *
 * Such kernels compute each element at one point, from elements at the same point or from smaller
 * tensors, and cannot fail. All values are computed before the first is stored, since a store may
 * replace what another value is computed from.
 *
 * Values of rows are joined with what is computed of the same rows: a norm that keeps its mean and
 * its standard deviation for the backward pass reads its operand once.
 *
 *   kernel mean (i<m) { s = sum x[i, :];  mean[i] = s / n }
 *   kernel y (i<m, j<n) { y[i, j] = x[i, j] - mean[i] }      ->  one kernel (i<m)
 *
 * So are the scale of a row that is rounded to bytes, its integers, and their sum. */
#include "ir/kernel/contraction.h"
#include "lower/priv.h"

enum {
	MOST_STORES = 8,
	MOST_REDUCTIONS = 8,
	MOST_LOADS = 24 /* of a joined kernel */
};

/* Steps are counted from 1. */
typedef struct {
	Lowered *l;
	uint32_t step;            /* the present one */
	uint32_t *written, *read; /* by memory: the last step that writes it, that reads it */
	uint32_t *memory;         /* by buffer: the buffer whose memory it may have */
	bool *joined;             /* by step: a later kernel computes what it computed */
	bool *joins;              /* by step: its kernel computes what earlier ones did */
	bool joins_rows;          /* and of rows */
	uint32_t *place;          /* by node of the graph: its place in program order */
} Updates;

/* Sets u->memory, by buffer: an output whose memory is that of an input it may replace
 * (Lowered.donates) maps to that input, each other buffer to itself. */
static void find_memory(Updates *u)
{
	const Lowered *l = u->l;
	uint32_t most = 0;
	for (uint32_t i = 1; i < l->buf.n; i++)
		if (l->buf.data[i].kind == BUF_INPUT && l->buf.data[i].k >= most)
			most = l->buf.data[i].k + 1;
	uint32_t *input = ARENA_ARRAY(l->ir->ctx->scratch, uint32_t, most + 1);
	for (uint32_t i = 1; i < l->buf.n; i++)
		if (l->buf.data[i].kind == BUF_INPUT)
			input[l->buf.data[i].k] = i;
	for (uint32_t i = 1; i < l->buf.n; i++) {
		const Buffer *b = &l->buf.data[i];
		const bool donated = b->kind == BUF_OUTPUT && b->k < l->donates.n &&
				     l->donates.data[b->k] >= 0;
		u->memory[i] = donated ? input[l->donates.data[b->k]] : i;
	}
}

/* ---- kernels of points ---- */

/* Whether idx[n] are the first `outer` axes of the kernel, in their order, and 0 in dimensions
 * between. */
static bool is_outer(const SymTab *syms, const Kernel *k, const Sym *idx, uint32_t n,
		     uint32_t outer)
{
	uint32_t at = 0;
	for (uint32_t d = 0; d < n; d++) {
		if (at < outer && idx[d].i == k->axis.data[at].var.i)
			at++;
		else if (!sym_is(syms, idx[d], 0))
			return false;
	}
	return at == outer;
}

/* Whether idx[n] are the kernel's axes, in their order, and 0 in dimensions between: those of one
 * element have no axis. */
static bool is_point(const Updates *u, const Kernel *k, const Sym *idx, uint32_t n)
{
	return is_outer(u->l->ir->syms, k, idx, n, k->axis.n);
}

/* Whether the stage stores all elements of a row-major buffer, one at each outer point. */
static bool stores_points(const Updates *u, const Kernel *k, uint32_t nouter, const Stage *st)
{
	const SymTab *syms = u->l->ir->syms;
	const Buffer *b = buf_of(u->l, st->store.buf);
	uint32_t at = 0;
	if (!is_outer(syms, k, st->store.idx, b->rank, nouter) ||
	    !layout_is_row_major(&b->layout, b->rank))
		return false;
	for (uint32_t d = 0; d < b->rank; d++) {
		const bool axis = at < nouter && st->store.idx[d].i == k->axis.data[at].var.i;
		if (axis ? b->dim[d].i != k->axis.data[at++].extent.i : !sym_is(syms, b->dim[d], 1))
			return false;
	}
	return true;
}

/* Whether the load reads the element of the point, or one of a smaller tensor whose dimensions are
 * axes in their order, or constant places: no window, no transposition. */
static bool is_simple(const Updates *u, const Kernel *k, const KxData *x)
{
	const SymTab *syms = u->l->ir->syms;
	uint32_t at = 0;
	int64_t place;
	if (x->guard.i || !layout_is_row_major(&buf_of(u->l, x->buf)->layout, x->nidx))
		return false;
	for (uint32_t d = 0; d < x->nidx; d++) {
		if (sym_is_const(syms, x->idx[d], &place))
			continue;
		while (at < k->axis.n && k->axis.data[at].var.i != x->idx[d].i)
			at++;
		if (at++ >= k->axis.n)
			return false;
	}
	return true;
}

/* Whether the load reads dimensions whose indices are numbers with axes, in their order, as digits:
 * rows that are cut into shorter ones, or axes themselves. */
static bool is_cut(const Updates *u, const Kernel *k, const KxData *x)
{
	SymTab *syms = u->l->ir->syms;
	uint32_t at = 0;
	if (x->guard.i || !layout_is_row_major(&buf_of(u->l, x->buf)->layout, x->nidx))
		return false;
	for (uint32_t d = 0; d < x->nidx; d++) {
		Sym number = sym_int(syms, 0);
		while (at < k->axis.n && number.i != x->idx[d].i) {
			const Axis *axis = &k->axis.data[at++];
			number = sym_add(syms, sym_mul(syms, number, axis->extent), axis->var);
		}
		if (number.i != x->idx[d].i)
			return false;
	}
	return true;
}

/* Whether the step is a kernel of points, which stores elements at them. by_rows: rows that it
 * reads may be cut into shorter ones. */
static bool is_of_points(const Updates *u, const Step *s, bool by_rows)
{
	const Kernel *k = s->kernel;
	if (s->kind != STEP_KERNEL || !k->axis.n || k->vvar.n || kernel_contracts(k))
		return false;
	const uint32_t nouter = kernel_nouter(k);
	if (k->axis.n != nouter)
		return false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->kind != STAGE_MAP || st->where.i ||
		    (stage_stores(st) && !stores_points(u, k, nouter, st)))
			return false;
	}
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD && !is_simple(u, k, &k->kx.data[i]) &&
		    !(by_rows && is_cut(u, k, &k->kx.data[i])))
			return false;
	return true;
}

/* Whether the step is a kernel that reduces rows: each outer point is a row. only_rows: and stores
 * values of rows alone. */
static bool is_of_rows(const Updates *u, const Step *s, bool only_rows)
{
	const Kernel *k = s->kernel;
	bool reduces = false;
	if (s->kind != STEP_KERNEL || k->vvar.n || kernel_contracts(k))
		return false;
	const uint32_t nouter = kernel_nouter(k);
	if (!nouter || k->axis.n == nouter)
		return false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		const bool inner = st->nmap > nouter;
		if ((st->kind != STAGE_MAP && st->kind != STAGE_REDUCE) || st->where.i ||
		    (inner && (only_rows || !stage_stores(st))) ||
		    (st->kind == STAGE_REDUCE && stage_stores(st)) ||
		    (stage_stores(st) && !inner && !stores_points(u, k, nouter, st)))
			return false;
		reduces |= st->kind == STAGE_REDUCE;
	}
	return reduces;
}

/* Whether all stages store, one element at each point. */
static bool only_stores(const Kernel *k)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (!stage_stores(&k->stage.data[i]))
			return false;
	return true;
}

/* Returns 1 plus the index of the stage that stores into the buffer; 0 if there is none. */
static uint32_t stage_of(const Kernel *k, BufId b)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (stage_stores(&k->stage.data[i]) && k->stage.data[i].store.buf.i == b.i)
			return i + 1;
	return 0;
}

static bool stores_into(const Updates *u, const Kernel *k, uint32_t memory)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (stage_stores(&k->stage.data[i]) &&
		    u->memory[k->stage.data[i].store.buf.i] == memory)
			return true;
	return false;
}

/* ---- may two be joined? ---- */

/* Lowers *least and raises *most to the bytes of the smallest and of the largest element that the
 * kernel loads or stores. Vectors of as many lanes as the smallest element allows take several
 * registers of the largest. */
static void note_sizes(const Updates *u, const Kernel *k, uint32_t *least, uint32_t *most)
{
	for (uint32_t i = 0; i < k->kx.n + k->stage.n; i++) {
		const KxData *x = i < k->kx.n ? &k->kx.data[i] : NULL;
		const Stage *st = x ? NULL : &k->stage.data[i - k->kx.n];
		const bool touches = x ? x->kind == KX_LOAD && x->nidx : stage_stores(st);
		if (!touches)
			continue;
		const uint32_t size = dtype_size(buf_of(u->l, x ? x->buf : st->store.buf)->dtype);
		*least = size < *least ? size : *least;
		*most = size > *most ? size : *most;
	}
}

static bool similar_sizes(const Updates *u, const Kernel *a, const Kernel *b)
{
	uint32_t least = UINT32_MAX, most = 0;
	note_sizes(u, a, &least, &most);
	note_sizes(u, b, &least, &most);
	return most <= 2 * least;
}

/* Whether the kernel stores integers of 8 bits, as rows that are rounded: the scale of a row, its
 * integers and their sum are one kernel, although elements have different sizes, rows may be parts
 * of longer ones, and the integers are stored at points. */
static bool stores_bytes(const Updates *u, const Kernel *k)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		const DType d = stage_stores(st) ? buf_of(u->l, st->store.buf)->dtype : DT_none;
		if (d == DT_i8 || d == DT_u8)
			return true;
	}
	return false;
}

static bool same_points(const Kernel *a, const Kernel *b)
{
	for (uint32_t i = 0; i < a->axis.n && a->axis.n == b->axis.n; i++)
		if (a->axis.data[i].extent.i != b->axis.data[i].extent.i)
			return false;
	return a->axis.n == b->axis.n;
}

typedef struct {
	uint32_t stores, loads, reductions;
} Counts;

/* Adds those of a kernel. */
static void count(const Kernel *k, Counts *c)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		c->stores += stage_stores(&k->stage.data[i]);
		c->reductions += k->stage.data[i].kind == STAGE_REDUCE;
	}
	for (uint32_t i = 1; i < k->kx.n; i++)
		c->loads += k->kx.data[i].kind == KX_LOAD;
}

static bool are_few(const Kernel *a, const Kernel *b)
{
	Counts c = {0};
	count(a, &c);
	count(b, &c);
	return c.stores <= MOST_STORES && c.loads <= MOST_LOADS && c.reductions <= MOST_REDUCTIONS;
}

/* Whether a step behind step `from` touches what the kernel stores, or writes what it reads. */
static bool is_touched(const Updates *u, const Kernel *k, uint32_t from)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const uint32_t m = u->memory[k->stage.data[i].store.buf.i];
		if (stage_stores(&k->stage.data[i]) && (u->written[m] > from || u->read[m] > from))
			return true;
	}
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind == KX_LOAD && u->written[u->memory[x->buf.i]] > from)
			return true;
	}
	return false;
}

/* Whether each load by `reader` from memory into which `of` stores is of the point. by_buffer: and
 * from the buffer itself. */
static bool reads_points(const Updates *u, const Kernel *reader, const Kernel *of, bool by_buffer)
{
	for (uint32_t i = 1; i < reader->kx.n; i++) {
		const KxData *x = &reader->kx.data[i];
		if (x->kind == KX_LOAD && stores_into(u, of, u->memory[x->buf.i]) &&
		    (!is_point(u, reader, x->idx, x->nidx) || (by_buffer && !stage_of(of, x->buf))))
			return false;
	}
	return true;
}

static bool store_apart(const Updates *u, const Kernel *a, const Kernel *b)
{
	for (uint32_t i = 0; i < b->stage.n; i++)
		if (stage_stores(&b->stage.data[i]) &&
		    stores_into(u, a, u->memory[b->stage.data[i].store.buf.i]))
			return false;
	return true;
}

/* Whether kernel k, whose rows have `outer` axes, loads elements of a row that lie side by side
 * (and no column, whose sums are divided among tasks). */
static bool reads_row(const SymTab *syms, const Kernel *k, const KxData *x, uint32_t outer)
{
	for (uint32_t i = outer; i < k->axis.n && x->kind == KX_LOAD && x->nidx; i++)
		if (sym_uses(syms, x->idx[x->nidx - 1], k->axis.data[i].var))
			return true;
	return false;
}

/* Whether both read rows of one tensor. */
static bool share_rows(const Updates *u, const Kernel *a, const Kernel *b)
{
	const SymTab *syms = u->l->ir->syms;
	const uint32_t nouter = kernel_nouter(a);
	for (uint32_t i = 1; i < a->kx.n; i++)
		for (uint32_t k = 1; k < b->kx.n && reads_row(syms, a, &a->kx.data[i], nouter); k++)
			if (b->kx.data[k].buf.i == a->kx.data[i].buf.i &&
			    reads_row(syms, b, &b->kx.data[k], nouter))
				return true;
	return false;
}

/* Whether there is a task for each of several threads, or little to do. */
static bool has_tasks(const Updates *u, const Kernel *rows)
{
	enum { FEW_ROWS = 8, SHORT_ROW = 1 << 14 };
	const SymTab *syms = u->l->ir->syms;
	const uint32_t nouter = kernel_nouter(rows);
	double outer = 1, inner = 1;
	for (uint32_t i = 0; i < rows->axis.n; i++)
		*(i < nouter ? &outer : &inner) *=
			(double)sym_hint(syms, rows->axis.data[i].extent);
	return outer >= FEW_ROWS || inner <= SHORT_ROW;
}

/* Whether kernel a, of which b reads values of rows only, can be joined with b, a kernel of the
 * same rows or of their points. at: the number of a's step, from 1 on. */
static bool can_join_rows(const Updates *u, const Kernel *a, uint32_t at, const Kernel *b)
{
	const SymTab *syms = u->l->ir->syms;
	const uint32_t outer = kernel_nouter(a), of_b = kernel_nouter(b);
	const bool points = of_b > outer;
	if (b->axis.n <= outer || (points ? !only_stores(b) : of_b != outer) ||
	    a->axis.n + b->axis.n > MAX_KERNEL_AXES)
		return false;
	for (uint32_t i = 0; i < outer; i++)
		if (a->axis.data[i].extent.i != b->axis.data[i].extent.i)
			return false;
	for (uint32_t i = 1; i < b->kx.n; i++) {
		const KxData *x = &b->kx.data[i];
		if (x->kind == KX_LOAD && stores_into(u, a, u->memory[x->buf.i]) &&
		    (x->guard.i || !stage_of(a, x->buf) ||
		     !is_outer(syms, b, x->idx, x->nidx, outer)))
			return false;
	}
	for (uint32_t i = 1; i < a->kx.n; i++)
		if (a->kx.data[i].kind == KX_LOAD &&
		    stores_into(u, b, u->memory[a->kx.data[i].buf.i]))
			return false;
	return are_few(a, b) && store_apart(u, a, b) && !is_touched(u, a, at) &&
	       share_rows(u, a, b) && has_tasks(u, a);
}

static bool can_join(const Updates *u, const Kernel *a, uint32_t at, const Kernel *b)
{
	return same_points(a, b) && are_few(a, b) && similar_sizes(u, a, b) &&
	       store_apart(u, a, b) && !is_touched(u, a, at) && reads_points(u, b, a, true) &&
	       reads_points(u, a, b, false);
}

/* ---- joining ---- */

/* The kernel k, which becomes both; of: the kernel that is being copied into k. */
typedef struct {
	const Lowered *l;
	SymTab *syms;
	Arena *arena;
	Kernel *k;
	uint32_t nouter; /* outer axes of k */
	const Kernel *of;
	uint32_t *axis;   /* by axis of `of`: that of k */
	Sym *var, *by;    /* by axis of `of`: its variable, and that of k's axis */
	Kx *to;           /* by expression of `of`; none: not copied yet */
	uint32_t *kept;   /* by stage of `of`: the stage of k that keeps its value */
	const Kernel *before;
	const uint32_t *kept_before; /* what a load from a buffer that `before` stores stands for */
	ARRAY(Stage) store;
} Joined;

/* Returns the value that a stage of k keeps; with the storage dtype d, as it would be loaded. */
static Kx kept_value(Joined *j, uint32_t stage, DType d)
{
	const DType c = dtype_compute(j->k->stage.data[stage].dtype);
	Sym at[MAX_KERNEL_AXES];
	for (uint32_t i = 0; i < j->nouter; i++)
		at[i] = j->k->axis.data[i].var;
	Kx x = kx_stage(j->k, j->arena, stage, c, j->nouter, at);
	return dtype_compute(d) == d ? x : kx_round(j->k, j->arena, d, x);
}

static const Sym *copy_index(Joined *j, const Sym *idx, uint32_t n)
{
	Sym *out = ARENA_ARRAY(j->arena, Sym, n + 1);
	for (uint32_t k = 0; k < n; k++)
		out[k] = sym_subst(j->syms, idx[k], j->var, j->by, j->of->axis.n);
	return out;
}

static Kx copy_kx(Joined *j, Kx from)
{
	KxData x = j->of->kx.data[from.i];
	const uint32_t stored = x.kind == KX_LOAD && j->before ? stage_of(j->before, x.buf) : 0;
	if (!from.i || j->to[from.i].i)
		return j->to[from.i];
	if (stored) {
		j->to[from.i] = kept_value(j, j->kept_before[stored - 1],
					   j->before->stage.data[stored - 1].dtype);
	} else if (x.kind == KX_STAGE) {
		j->to[from.i] = kept_value(j, j->kept[x.stage], x.dtype);
	} else {
		for (uint32_t k = 0; k < x.nin; k++)
			x.in[k] = copy_kx(j, x.in[k]);
		x.guard = copy_kx(j, x.guard);
		x.other = copy_kx(j, x.other);
		x.idx = copy_index(j, x.idx, x.nidx);
		j->to[from.i] = kx_copy(j->k, j->arena, &x);
	}
	return j->to[from.i];
}

static uint32_t push_stage(Joined *j, Stage st)
{
	array_push(j->arena, &j->k->stage, st);
	return j->k->stage.n - 1;
}

/* Adds a stage that keeps a value of an outer point, unless the value is that of such a stage.
 * Returns its number. */
static uint32_t keep(Joined *j, Kx value, DType d)
{
	const KxData *x = &j->k->kx.data[value.i];
	const DType c = dtype_compute(d);
	Stage st = {.kind = STAGE_MAP, .value = value, .dtype = c};
	if (x->kind == KX_STAGE)
		return x->stage;
	stage_map_first(&st, j->nouter);
	return push_stage(j, st);
}

/* Returns the stage with the axes of k. */
static Stage with_axes(const Joined *j, Stage st)
{
	for (uint32_t i = 0; i < st.nmap; i++)
		st.map[i] = (uint8_t)j->axis[st.map[i]];
	for (uint32_t i = 0; i < st.nred; i++)
		st.red[i] = (uint8_t)j->axis[st.red[i]];
	return st;
}

/* Copies the stages of `from` into k. What is stored at an outer point is kept, and noted in
 * j->store. */
static void copy_stages(Joined *j, const Kernel *from)
{
	j->of = from;
	j->to = ARENA_ARRAY(j->arena, Kx, from->kx.n);
	j->kept = ARENA_ARRAY(j->arena, uint32_t, from->stage.n);
	for (uint32_t s = 0; s < from->stage.n; s++) {
		Stage st = with_axes(j, from->stage.data[s]);
		st.value = copy_kx(j, st.value);
		if (stage_stores(&st))
			st.store.idx =
				copy_index(j, st.store.idx, buf_of(j->l, st.store.buf)->rank);
		if (st.kind == STAGE_REDUCE || st.nmap > j->nouter) {
			j->kept[s] = push_stage(j, st);
			continue;
		}
		j->kept[s] = keep(j, st.value, st.dtype);
		if (!stage_stores(&st))
			continue;
		st.value = kept_value(j, j->kept[s], dtype_compute(st.dtype));
		array_push(j->arena, &j->store, st);
	}
}

/* Sets the axes of j->k that those of `from` become: the outer ones are the first of both; an inner
 * one is an axis of the same extent that no other one became, or a new axis. */
static void find_axes(Joined *j, const Kernel *from)
{
	const uint32_t n = from->axis.n;
	uint64_t taken = 0;
	j->axis = ARENA_ARRAY(j->arena, uint32_t, n);
	j->var = ARENA_ARRAY(j->arena, Sym, n);
	j->by = ARENA_ARRAY(j->arena, Sym, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i < j->nouter ? i : j->nouter;
		for (; at < j->k->axis.n; at++)
			if (!(taken >> at & 1) &&
			    j->k->axis.data[at].extent.i == from->axis.data[i].extent.i)
				break;
		if (at == j->k->axis.n)
			array_push(j->arena, &j->k->axis, from->axis.data[i]);
		taken |= UINT64_C(1) << at;
		j->axis[i] = at;
		j->var[i] = from->axis.data[i].var;
		j->by[i] = j->k->axis.data[at].var;
	}
}

/* Sets what k computes to the nodes of a and b in program order, and k's source lines to theirs. */
static void describe(const Updates *u, Kernel *k, const Kernel *a, const Kernel *b)
{
	const uint32_t n = a->computes.n + b->computes.n;
	k->computes.data = NULL;
	k->computes.n = k->computes.cap = 0;
	k->graph = b->graph ? b->graph : a->graph;
	kernel_join_evaluated(k, a, b, u->l->ir->ctx->arena);
	for (uint32_t i = 0, of_a = 0, of_b = 0; i < n; i++) {
		const bool first =
			of_b == b->computes.n ||
			(of_a < a->computes.n &&
			 u->place[a->computes.data[of_a].i] < u->place[b->computes.data[of_b].i]);
		array_push(u->l->ir->ctx->arena, &k->computes,
			   first ? a->computes.data[of_a++] : b->computes.data[of_b++]);
	}
	const SourceLines lines = n ? lower_computed_lines(k->graph, k->computes.data, n)
				    : (SourceLines){0};
	if (lines.nline)
		k->lines = lines;
}

static Kernel *join(Updates *u, const Kernel *a, const Kernel *b)
{
	Arena *arena = u->l->ir->ctx->arena;
	Kernel *k = arena_dup(arena, b, sizeof *k);
	Joined j = {.l = u->l,
		    .syms = u->l->ir->syms,
		    .arena = arena,
		    .k = k,
		    .nouter = kernel_nouter(a)};
	k->kx.data = NULL;
	k->stage.data = NULL;
	k->axis.data = arena_dup(arena, b->axis.data, b->axis.n * sizeof *b->axis.data);
	k->axis.cap = b->axis.n;
	k->kx.n = k->kx.cap = k->stage.n = k->stage.cap = 0;
	array_push(arena, &k->kx, (KxData){0});
	find_axes(&j, a);
	copy_stages(&j, a);
	j.before = a;
	j.kept_before = j.kept;
	find_axes(&j, b);
	copy_stages(&j, b);
	for (uint32_t i = 0; i < j.store.n; i++)
		push_stage(&j, j.store.data[i]);
	describe(u, k, a, b);
	return k;
}

/* ---- steps ---- */

static void note(void *data, BufId b, bool write)
{
	Updates *u = data;
	(write ? u->written : u->read)[u->memory[b.i]] = u->step;
}

/* Whether the nodes that the kernel computes are of the graph at hand, and of no body in it. */
static bool is_of_graph(const Updates *u, const Kernel *k)
{
	return !k->graph || k->graph == u->l->graph;
}

static bool may_join(const Updates *u, const Step *steps, uint32_t at, const Step *s)
{
	const Step *from = &steps[at - 1];
	if (!is_of_graph(u, from->kernel) || !is_of_graph(u, s->kernel))
		return false;
	if (is_of_points(u, s, false) && is_of_points(u, from, false))
		return can_join(u, from->kernel, at, s->kernel);
	const bool bytes = stores_bytes(u, from->kernel) || stores_bytes(u, s->kernel);
	return u->joins_rows && (bytes || similar_sizes(u, from->kernel, s->kernel)) &&
	       (is_of_points(u, s, bytes) || is_of_rows(u, s, false)) &&
	       is_of_rows(u, from, !bytes) && can_join_rows(u, from->kernel, at, s->kernel);
}

/* Joins kernels whose results the present step reads with the present step. */
static void join_with(Updates *u, Step *steps)
{
	Step *s = &steps[u->step - 1];
	for (uint32_t i = 1; s->kind == STEP_KERNEL && i < s->kernel->kx.n; i++) {
		const KxData *x = &s->kernel->kx.data[i];
		const uint32_t at = x->kind == KX_LOAD ? u->written[u->memory[x->buf.i]] : 0;
		if (!at || steps[at - 1].kind != STEP_KERNEL ||
		    !stage_of(steps[at - 1].kernel, x->buf) || !may_join(u, steps, at, s))
			continue;
		const Step *from = &steps[at - 1];
		s->kernel = join(u, from->kernel, s->kernel);
		u->joined[at - 1] = u->joins[u->step - 1] = true;
		i = 0; /* its expressions are others */
	}
}

/* How often steps read and write a buffer. */
typedef struct {
	uint32_t read, written;
} Touches;

static void count_touch(void *data, BufId b, bool write)
{
	Touches *t = data;
	*(write ? &t[b.i].written : &t[b.i].read) += 1;
}

/* Drops stores of temporary tensors that nobody reads, unless another step writes into the tensor,
 * too: a scatter that combines reads what was stored. */
static void drop_unread(Updates *u)
{
	const StepList *list = &u->l->steps;
	Touches *t = ARENA_ARRAY(u->l->ir->ctx->scratch, Touches, u->l->buf.n);
	for (uint32_t i = 0; i < list->step.n; i++)
		if (!u->joined[i])
			step_buffers(&list->step.data[i], u->l->ir->ctx->scratch, count_touch, t);
	for (uint32_t i = 0; i < list->step.n; i++) {
		Kernel *k = list->step.data[i].kernel;
		if (u->joined[i] || !u->joins[i])
			continue;
		uint32_t n = 0;
		for (uint32_t s = 0; s < k->stage.n; s++) {
			const Stage st = k->stage.data[s];
			const bool unread = stage_stores(&st) && !t[st.store.buf.i].read &&
					    t[st.store.buf.i].written == 1 &&
					    buf_of(u->l, st.store.buf)->kind == BUF_TEMP;
			if (!unread)
				k->stage.data[n++] = st;
		}
		k->stage.n = n;
	}
}

void lower_join_updates(Lowered *l, bool rows)
{
	Arena *scratch = l->ir->ctx->scratch;
	StepList *list = &l->steps;
	const uint32_t n = list->step.n;
	Updates u = {.l = l,
		     .joins_rows = rows,
		     .written = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		     .read = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		     .memory = ARENA_ARRAY(scratch, uint32_t, l->buf.n),
		     .joined = ARENA_ARRAY(scratch, bool, n),
		     .joins = ARENA_ARRAY(scratch, bool, n),
		     .place = ARENA_ARRAY(scratch, uint32_t, l->graph->node.n)};
	uint32_t place = 0;
	find_memory(&u);
	for (Node x = l->graph->first; x.i; x = node_next(l->graph, x))
		u.place[x.i] = ++place;
	for (u.step = 1; u.step <= n; u.step++) {
		join_with(&u, list->step.data);
		step_buffers(&list->step.data[u.step - 1], scratch, note, &u);
	}
	drop_unread(&u);
	list->step.n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!u.joined[i])
			list->step.data[list->step.n++] = list->step.data[i];
}
