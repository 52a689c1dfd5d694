/* Values of a row that are expensive and read by several stages (the exponentials of a softmax) get
 * a stage of their own with a task-local buffer, so that they are computed once. */
#include "ir/scalar/scalar.h"
#include "ir/target/work.h"
#include "lower/stage.h"

enum { SHARE_ELEMENTS = 16384 /* of a local array: what a task may have on its stack */ };

typedef struct {
	Lower *s;
	Kernel *k;
	uint32_t nouter;
	uint64_t *readers; /* by Kx: stages that reach it */
	uint64_t *deps;    /* by Kx: axes it depends on */
} Share;

static uint64_t sym_axes(const Share *h, Sym e)
{
	uint64_t mask = 0;
	const Kernel *k = h->k;
	for (uint32_t i = 0; i < k->axis.n; i++)
		if (sym_uses(h->s->ir->syms, e, k->axis.data[i].var))
			mask |= UINT64_C(1) << i;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (sym_uses(h->s->ir->syms, e, k->vvar.data[i].var))
			mask |= h->deps[k->vvar.data[i].value.i];
	return mask;
}

/* Finds the axes that each expression depends on. Expressions refer to earlier ones only, so one
 * pass in order is enough. */
static void find_deps(Share *h)
{
	for (uint32_t i = 1; i < h->k->kx.n; i++) {
		const KxData *x = &h->k->kx.data[i];
		uint64_t m = h->deps[x->guard.i] | h->deps[x->other.i];
		for (uint32_t j = 0; j < x->nin; j++)
			m |= h->deps[x->in[j].i];
		for (uint32_t j = 0; j < x->nidx; j++)
			m |= sym_axes(h, x->idx[j]);
		h->deps[i] = m;
	}
}

static void mark(Share *h, Kx x, uint64_t stage)
{
	if (!x.i || (h->readers[x.i] & stage))
		return;
	h->readers[x.i] |= stage;
	const KxData *d = &h->k->kx.data[x.i];
	for (uint32_t j = 0; j < d->nin; j++)
		mark(h, d->in[j], stage);
	mark(h, d->guard, stage);
	mark(h, d->other, stage);
	for (uint32_t j = 0; j < d->nidx; j++)
		for (uint32_t v = 0; v < h->k->vvar.n; v++)
			if (sym_uses(h->s->ir->syms, d->idx[j], h->k->vvar.data[v].var))
				mark(h, h->k->vvar.data[v].value, stage);
}

/* Whether storing and reading a value takes less time than evaluating it for every stage. */
static bool pays(const Share *h, const ScFn *fn, DType d, uint64_t readers)
{
	const Target *t = h->s->target;
	uint32_t n = 0;
	for (; readers; readers &= readers - 1)
		n++;
	return (n - 1) * fn->cost * target_cycles_at_once(t, MOP_add, d) >
	       target_cycles_at_once(t, MOP_store, d) + n * target_cycles_at_once(t, MOP_load, d);
}

static bool worth_sharing(const Share *h, uint32_t i)
{
	const KxData *x = &h->k->kx.data[i];
	uint64_t r = h->readers[i], inner = h->deps[i] >> h->nouter;
	if (x->kind != KX_OP || !op_is_scalar(x->op) || !(r & (r - 1)) || !inner ||
	    x->dtype == DT_bool)
		return false;
	DType in[4];
	for (uint32_t j = 0; j < x->nin; j++)
		in[j] = h->k->kx.data[x->in[j].i].dtype;
	const ScFn *fn = scalar_fn(x->op, in, x->nin);
	if (!fn || !pays(h, fn, x->dtype, r))
		return false;
	int64_t total = 1;
	for (uint32_t a = h->nouter; a < h->k->axis.n; a++) {
		int64_t lo, hi;
		if (!(h->deps[i] >> a & 1))
			continue;
		sym_range(h->s->ir->syms, h->k->axis.data[a].extent, &lo, &hi);
		if (hi > SHARE_ELEMENTS || total * hi > SHARE_ELEMENTS)
			return false;
		total *= hi;
	}
	return true;
}

static uint32_t lowest_bit(uint64_t m)
{
	uint32_t k = 0;
	while (!(m >> k & 1))
		k++;
	return k;
}

static void insert_stage(Kernel *k, Arena *arena, uint32_t at, Stage st)
{
	array_push(arena, &k->stage, st);
	for (uint32_t s = k->stage.n - 1; s > at; s--)
		k->stage.data[s] = k->stage.data[s - 1];
	k->stage.data[at] = st;
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_STAGE && k->kx.data[i].stage >= at)
			k->kx.data[i].stage++;
}

static void share(Share *h, uint32_t i)
{
	Kernel *k = h->k;
	Arena *arena = h->s->arena;
	KxData copy = k->kx.data[i];
	array_push(arena, &k->kx, copy);
	Stage st = {.kind = STAGE_MAP, .value = {k->kx.n - 1}, .dtype = copy.dtype};
	Sym *idx = ARENA_ARRAY(arena, Sym, k->axis.n);
	for (uint32_t a = 0; a < k->axis.n; a++) {
		if (a < h->nouter || (h->deps[i] >> a & 1)) {
			idx[st.nmap] = k->axis.data[a].var;
			st.map[st.nmap++] = (uint8_t)a;
		}
	}
	uint32_t at = lowest_bit(h->readers[i]);
	insert_stage(k, arena, at, st);
	k->kx.data[i] = (KxData){
		.kind = KX_STAGE, .dtype = copy.dtype, .stage = at, .nidx = st.nmap, .idx = idx};
}

void kernel_share_values(Lower *s, Kernel *k)
{
	for (;;) {
		uint32_t n = k->kx.n, found = 0;
		Share h = {.s = s,
			   .k = k,
			   .nouter = kernel_nouter(k),
			   .readers = ARENA_ARRAY(s->arena, uint64_t, n),
			   .deps = ARENA_ARRAY(s->arena, uint64_t, n)};
		find_deps(&h);
		for (uint32_t i = 0; i < k->stage.n && i < 64; i++)
			mark(&h, k->stage.data[i].value, UINT64_C(1) << i);
		for (uint32_t i = 1; i < n && !found; i++)
			if (worth_sharing(&h, i))
				found = i;
		if (!found)
			return;
		share(&h, found);
	}
}
