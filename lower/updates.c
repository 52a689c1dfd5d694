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
 * replace what another value is computed from. */
#include "lower/priv.h"

enum {
	MOST_STORES = 8,
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
	uint32_t *place;          /* by node of the graph: its place in program order */
} Updates;

static bool is_stored(const Stage *st)
{
	return st->result == RESULT_GLOBAL;
}

/* The caller may pass one memory for an output and the input that it replaces. */
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

/* Whether idx[n] are the kernel's axes, in their order. */
static bool is_point(const Kernel *k, const Sym *idx, uint32_t n)
{
	for (uint32_t i = 0; i < n && n == k->axis.n; i++)
		if (idx[i].i != k->axis.data[i].var.i)
			return false;
	return n == k->axis.n;
}

/* Whether the stage stores all elements of a row-major buffer, one at each point. */
static bool stores_points(const Updates *u, const Kernel *k, const Stage *st)
{
	const Buffer *b = buf_of(u->l, st->buf);
	if (!is_point(k, st->idx, b->rank) || !layout_is_row_major(&b->layout, b->rank))
		return false;
	for (uint32_t d = 0; d < b->rank; d++)
		if (b->dim[d].i != k->axis.data[d].extent.i)
			return false;
	return true;
}

/* Whether the load reads the element of the point, or one of a smaller tensor whose dimensions are
 * axes in their order: no window, no transposition. */
static bool is_simple(const Updates *u, const Kernel *k, const KxData *x)
{
	const SymTab *syms = u->l->ir->syms;
	uint32_t at = 0;
	if (x->guard.i || !layout_is_row_major(&buf_of(u->l, x->buf)->layout, x->nidx))
		return false;
	for (uint32_t d = 0; d < x->nidx; d++) {
		if (sym_is(syms, x->idx[d], 0))
			continue;
		while (at < k->axis.n && k->axis.data[at].var.i != x->idx[d].i)
			at++;
		if (at++ >= k->axis.n)
			return false;
	}
	return true;
}

static bool is_of_points(const Updates *u, const Step *s)
{
	const Kernel *k = s->kernel;
	if (s->kind != STEP_KERNEL || !k->axis.n || k->axis.n != k->nouter || k->vvar.n ||
	    k->anchor)
		return false;
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->kind != STAGE_MAP || st->nmap || st->guard.i ||
		    st->result == RESULT_LOCAL || (is_stored(st) && !stores_points(u, k, st)))
			return false;
	}
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD && !is_simple(u, k, &k->kx.data[i]))
			return false;
	return true;
}

/* The number + 1 of the stage that stores into the buffer; 0: none. */
static uint32_t stage_of(const Kernel *k, BufId b)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (is_stored(&k->stage.data[i]) && k->stage.data[i].buf.i == b.i)
			return i + 1;
	return 0;
}

static bool stores_into(const Updates *u, const Kernel *k, uint32_t memory)
{
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (is_stored(&k->stage.data[i]) && u->memory[k->stage.data[i].buf.i] == memory)
			return true;
	return false;
}

/* ---- may two be joined? ---- */

/* The bytes of the smallest and the largest element that the kernel loads or stores: so many lanes
 * as there are of the smallest need several registers of the largest. */
static void note_sizes(const Updates *u, const Kernel *k, uint32_t *least, uint32_t *most)
{
	for (uint32_t i = 0; i < k->kx.n + k->stage.n; i++) {
		const KxData *x = i < k->kx.n ? &k->kx.data[i] : NULL;
		const Stage *st = x ? NULL : &k->stage.data[i - k->kx.n];
		const bool touches = x ? x->kind == KX_LOAD && x->nidx : is_stored(st);
		if (!touches)
			continue;
		const uint32_t size = dtype_size(buf_of(u->l, x ? x->buf : st->buf)->dtype);
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

static bool same_points(const Kernel *a, const Kernel *b)
{
	for (uint32_t i = 0; i < a->axis.n && a->axis.n == b->axis.n; i++)
		if (a->axis.data[i].extent.i != b->axis.data[i].extent.i)
			return false;
	return a->axis.n == b->axis.n;
}

static bool are_few(const Kernel *a, const Kernel *b)
{
	uint32_t nstore = 0, nload = 0;
	for (const Kernel *k = a;; k = b) {
		for (uint32_t i = 0; i < k->stage.n; i++)
			nstore += is_stored(&k->stage.data[i]);
		for (uint32_t i = 1; i < k->kx.n; i++)
			nload += k->kx.data[i].kind == KX_LOAD;
		if (k == b)
			return nstore <= MOST_STORES && nload <= MOST_LOADS;
	}
}

/* Whether a step behind step `from` touches what the kernel stores, or writes what it reads. */
static bool is_touched(const Updates *u, const Kernel *k, uint32_t from)
{
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const uint32_t m = u->memory[k->stage.data[i].buf.i];
		if (is_stored(&k->stage.data[i]) && (u->written[m] > from || u->read[m] > from))
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
		    (!is_point(reader, x->idx, x->nidx) || (by_buffer && !stage_of(of, x->buf))))
			return false;
	}
	return true;
}

static bool store_apart(const Updates *u, const Kernel *a, const Kernel *b)
{
	for (uint32_t i = 0; i < b->stage.n; i++)
		if (is_stored(&b->stage.data[i]) &&
		    stores_into(u, a, u->memory[b->stage.data[i].buf.i]))
			return false;
	return true;
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
	SymTab *syms;
	Arena *arena;
	Kernel *k;
	const Kernel *of;
	Kx *to;           /* by expression of `of` */
	uint32_t *kept;   /* by stage of `of`: the stage of k that keeps its value */
	const Kernel *before;
	const uint32_t *kept_before; /* what a load from a buffer that `before` stores stands for */
	ARRAY(Stage) store;
} Joined;

/* Returns the value that a stage of k keeps; with the storage dtype d, as it would be loaded. */
static Kx kept_value(Joined *j, uint32_t stage, DType d)
{
	Kx x = kx_stage(j->k, j->arena, stage, j->k->stage.data[stage].dtype, 0, NULL);
	return dtype_compute(d) == d ? x : kx_round(j->k, j->arena, d, x);
}

static Kx copy_kx(Joined *j, const KxData *from, const Sym *var, const Sym *by)
{
	KxData x = *from;
	const uint32_t stored = x.kind == KX_LOAD && j->before ? stage_of(j->before, x.buf) : 0;
	if (stored)
		return kept_value(j, j->kept_before[stored - 1],
				  j->before->stage.data[stored - 1].dtype);
	if (x.kind == KX_STAGE)
		return kept_value(j, j->kept[x.stage], x.dtype);
	for (uint32_t k = 0; k < x.nin; k++)
		x.in[k] = j->to[x.in[k].i];
	x.guard = j->to[x.guard.i];
	x.other = j->to[x.other.i];
	Sym *idx = ARENA_ARRAY(j->arena, Sym, x.nidx + 1);
	for (uint32_t k = 0; k < x.nidx; k++)
		idx[k] = sym_subst(j->syms, x.idx[k], var, by, j->k->axis.n);
	x.idx = idx;
	return kx_copy(j->k, j->arena, &x);
}

/* Adds a stage that keeps a value, unless the value is that of such a stage. Returns its number. */
static uint32_t keep(Joined *j, Kx value, DType d)
{
	const KxData *x = &j->k->kx.data[value.i];
	if (x->kind == KX_STAGE)
		return x->stage;
	array_push(j->arena, &j->k->stage,
		   (Stage){.kind = STAGE_MAP, .value = value, .dtype = dtype_compute(d),
			   .acc = dtype_compute(d), .result = RESULT_REGISTER});
	return j->k->stage.n - 1;
}

/* Copies the values of the stages of `from` into k, and notes what they store. Expressions are
 * copied where a stage needs them, since they may read stages before. */
static void copy_stages(Joined *j, const Kernel *from)
{
	Arena *a = j->arena;
	const uint32_t n = j->k->axis.n;
	Sym *var = ARENA_ARRAY(a, Sym, n), *by = ARENA_ARRAY(a, Sym, n);
	for (uint32_t i = 0; i < n; i++) {
		var[i] = from->axis.data[i].var;
		by[i] = j->k->axis.data[i].var;
	}
	j->of = from;
	j->to = ARENA_ARRAY(a, Kx, from->kx.n);
	j->kept = ARENA_ARRAY(a, uint32_t, from->stage.n);
	uint32_t done = 1;
	for (uint32_t s = 0; s < from->stage.n; s++) {
		Stage st = from->stage.data[s];
		for (; done <= st.value.i; done++)
			j->to[done] = copy_kx(j, &from->kx.data[done], var, by);
		j->kept[s] = keep(j, j->to[st.value.i], st.dtype);
		if (!is_stored(&st))
			continue;
		Sym *idx = ARENA_ARRAY(a, Sym, n);
		for (uint32_t d = 0; d < n; d++)
			idx[d] = by[d];
		st.value = kept_value(j, j->kept[s], dtype_compute(st.dtype));
		st.idx = idx;
		array_push(a, &j->store, st);
	}
}

/* What the kernel computes, in program order, and the lines of that. */
static void describe(const Updates *u, Kernel *k, const Kernel *a, const Kernel *b)
{
	const uint32_t n = a->computes.n + b->computes.n;
	k->computes.data = NULL;
	k->computes.n = k->computes.cap = 0;
	k->graph = b->graph ? b->graph : a->graph;
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
	Joined j = {.syms = u->l->ir->syms, .arena = arena, .k = k};
	k->kx.data = NULL;
	k->stage.data = NULL;
	k->kx.n = k->kx.cap = k->stage.n = k->stage.cap = 0;
	array_push(arena, &k->kx, (KxData){0});
	copy_stages(&j, a);
	j.before = a;
	j.kept_before = j.kept;
	copy_stages(&j, b);
	for (uint32_t i = 0; i < j.store.n; i++)
		array_push(arena, &k->stage, j.store.data[i]);
	describe(u, k, a, b);
	return k;
}

/* ---- steps ---- */

static void note(void *data, BufId b, bool write)
{
	Updates *u = data;
	(write ? u->written : u->read)[u->memory[b.i]] = u->step;
}

/* Joins kernels whose results the present step reads with the present step. */
static void join_with(Updates *u, Step *steps)
{
	Step *s = &steps[u->step - 1];
	for (uint32_t i = 1; is_of_points(u, s) && i < s->kernel->kx.n; i++) {
		const KxData *x = &s->kernel->kx.data[i];
		const uint32_t at = x->kind == KX_LOAD ? u->written[u->memory[x->buf.i]] : 0;
		if (!at || !is_point(s->kernel, x->idx, x->nidx))
			continue;
		const Step *from = &steps[at - 1];
		if (!is_of_points(u, from) || !stage_of(from->kernel, x->buf) ||
		    !can_join(u, from->kernel, at, s->kernel))
			continue;
		s->kernel = join(u, from->kernel, s->kernel);
		u->joined[at - 1] = u->joins[u->step - 1] = true;
		i = 0; /* its expressions are others */
	}
}

static void note_read(void *data, BufId b, bool write)
{
	bool *read = data;
	read[b.i] |= !write;
}

/* A temporary tensor that only the kernel itself read is not stored. */
static void drop_unread(Updates *u)
{
	const StepList *list = &u->l->steps;
	bool *read = ARENA_ARRAY(u->l->ir->ctx->scratch, bool, u->l->buf.n);
	for (uint32_t i = 0; i < list->step.n; i++)
		if (!u->joined[i])
			step_buffers(&list->step.data[i], u->l->ir->ctx->scratch, note_read, read);
	for (uint32_t i = 0; i < list->step.n; i++) {
		Kernel *k = list->step.data[i].kernel;
		if (u->joined[i] || !u->joins[i])
			continue;
		uint32_t n = 0;
		for (uint32_t s = 0; s < k->stage.n; s++) {
			const Stage st = k->stage.data[s];
			const bool unread = is_stored(&st) && !read[st.buf.i] &&
					    buf_of(u->l, st.buf)->kind == BUF_TEMP;
			if (!unread)
				k->stage.data[n++] = st;
		}
		k->stage.n = n;
	}
}

void lower_join_updates(Lowered *l)
{
	Arena *scratch = l->ir->ctx->scratch;
	StepList *list = &l->steps;
	const uint32_t n = list->step.n;
	Updates u = {.l = l,
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
