/* Distinct kernels: a key of numbers for each, and a schedule for each new key; see distinct.h.
 *
 * After scheduling, integer literals in index arithmetic become parameters, and functions are
 * compared by their text: kernels that differ in such literals only (where they read from) share
 * one function, too. */
#include "codegen/program/distinct.h"
#include "codegen/program/call.h"
#include "ir/op/userop.h"

#include <string.h>

#include "codegen/legal/legalise.h"

enum { KEEP_LITERALS = 16 };

/* How an expression over axes begins in the key; others are themselves. */
enum { SYM_ITSELF = 0, SYM_MADE = 1 };

void distinct_init(DistinctKernels *d, const Lowered *l, Program *p, const Target *target)
{
	*d = (DistinctKernels){.l = l, .p = p, .target = target};
	intern_init(&d->key, l->ir->ctx->arena);
	intern_init(&d->fn_text, l->ir->ctx->arena);
}

void distinct_enter(DistinctKernels *d, const Lowered *l)
{
	d->l = l;
	d->kernel.n = d->ntemp = 0;
}

/* ---- the key ---- */

static void put(DistinctKernels *d, uint32_t word)
{
	array_push(d->l->ir->ctx->arena, &d->word, word);
}

static void put64(DistinctKernels *d, uint64_t word)
{
	put(d, (uint32_t)word);
	put(d, (uint32_t)(word >> 32));
}

static uint32_t number_sym(DistinctKernels *d, Sym e)
{
	while (d->of.n <= e.i) {
		array_push(d->l->ir->ctx->arena, &d->of, 0);
		array_push(d->l->ir->ctx->arena, &d->number, 0);
	}
	d->of.data[e.i] = d->now;
	return d->number.data[e.i] = d->nsym++;
}

static bool is_numbered(const DistinctKernels *d, Sym e)
{
	return e.i < d->of.n && d->of.data[e.i] == d->now;
}

/* Writes an expression to the key, each part where the key first has it, and returns its number. */
static uint32_t write_sym(DistinctKernels *d, Sym e)
{
	const SymTab *syms = d->l->ir->syms;
	if (is_numbered(d, e))
		return d->number.data[e.i];
	uint32_t n = e.i ? sym_nargs(syms, e) : 0;
	if (!n || !sym_uses_kind(syms, e, SYMVAR_AXIS)) {
		put(d, SYM_ITSELF);
		put(d, e.i);
		return number_sym(d, e);
	}
	uint32_t arg[32], *in = n <= 32 ? arg : ARENA_ARRAY(d->l->ir->ctx->arena, uint32_t, n);
	for (uint32_t k = 0; k < n; k++)
		in[k] = write_sym(d, sym_arg(syms, e, k));
	put(d, SYM_MADE);
	put(d, sym_kind(syms, e));
	put(d, n);
	for (uint32_t k = 0; k < n; k++)
		put(d, in[k]);
	return number_sym(d, e);
}

static void put_syms(DistinctKernels *d, const Sym *e, uint32_t n)
{
	put(d, n);
	for (uint32_t k = 0; k < n; k++)
		put(d, write_sym(d, e[k]));
}

static void put_buffer(DistinctKernels *d, const Buffer *b)
{
	put(d, b->kind == BUF_CONST ? 1 + b->layout_fixed : b->donated ? 3 : 0);
	put(d, b->dtype);
	put_syms(d, b->dim, b->rank);
	put_syms(d, b->inner_lo, b->inner_lo ? b->rank : 0);
	put_syms(d, b->inner_hi, b->inner_hi ? b->rank : 0);
	put(d, b->layout.n);
	for (uint32_t k = 0; k < b->layout.n; k++) {
		const LayoutDim *dim = &b->layout.dim[k];
		put(d, dim->axis);
		put64(d, (uint64_t)dim->divisor);
		put(d, write_sym(d, dim->extent));
		put(d, write_sym(d, dim->padded));
	}
}

static uint32_t find_buf(const DistinctKernels *d, BufId b)
{
	uint32_t k = 0;
	while (k < d->buf.n && d->buf.data[k].i != b.i)
		k++;
	return k;
}

static void put_buf(DistinctKernels *d, BufId b)
{
	uint32_t k = b.i ? find_buf(d, b) : UINT32_MAX;
	put(d, k);
	if (k != d->buf.n)
		return;
	array_push(d->l->ir->ctx->arena, &d->buf, b);
	put_buffer(d, buf_of(d->l, b));
}

static void put_kx(DistinctKernels *d, const KxData *x)
{
	put(d, x->kind);
	put(d, x->dtype);
	put(d, x->op);
	put(d, x->round);
	put(d, x->bits);
	put(d, x->nin);
	for (uint32_t k = 0; k < x->nin; k++)
		put(d, x->in[k].i);
	put64(d, (uint64_t)x->c.i);
	put_buf(d, x->buf);
	put(d, x->stage);
	put_syms(d, x->idx, x->nidx);
	put(d, x->guard.i);
	put(d, x->other.i);
}

static void put_axes(DistinctKernels *d, const uint8_t *axis, uint32_t n)
{
	put(d, n);
	for (uint32_t k = 0; k < n; k++)
		put(d, axis[k]);
}

/* Adds what the stage's kind alone has. */
static void put_of_kind(DistinctKernels *d, const Stage *st)
{
	switch (st->kind) {
	case STAGE_REDUCE:
	case STAGE_ARGREDUCE:
		put(d, st->reduce.combine);
		put(d, st->reduce.acc);
		put(d, (uint32_t)(st->reduce.enlarged | st->reduce.contraction << 1 |
				  st->reduce.most[0] << 8 | st->reduce.most[1] << 16));
		put(d, st->reduce.half);
		put(d, st->reduce.level);
		break;
	case STAGE_RUNNING:
		put(d, st->running.combine);
		put(d, st->running.acc);
		put(d, st->running.reverse);
		break;
	case STAGE_SORT:
		put(d, st->sort.next);
		put(d, (uint32_t)(st->sort.descending | st->sort.stable << 1));
		break;
	case STAGE_SCATTER:
		put(d, st->scatter.combine);
		break;
	case STAGE_CHECK:
		put(d, st->check.message);
		break;
	case STAGE_FACTOR:
		put(d, st->factor.next);
		put(d, st->factor.kind);
		put(d, (uint32_t)(st->factor.upper | st->factor.unit << 1));
		break;
	case STAGE_FFT:
		put(d, st->fft.next);
		put(d, (uint32_t)(st->fft.inverse | st->fft.real << 1));
		break;
	case STAGE_MAP:
		break;
	}
}

static void put_stage(DistinctKernels *d, const Stage *st)
{
	put(d, st->kind);
	put_axes(d, st->map, st->nmap);
	put_axes(d, st->red, st->nred);
	put(d, st->value.i);
	put(d, st->where.i);
	put(d, st->dtype);
	put_buf(d, st->store.buf);
	put_syms(d, st->store.idx, stage_stores(st) ? buf_of(d->l, st->store.buf)->rank : 0);
	put_of_kind(d, st);
}

static void put_axis(DistinctKernels *d, const Axis *a)
{
	uint64_t mean;
	memcpy(&mean, &a->mean, sizeof mean);
	put(d, write_sym(d, a->extent));
	put(d, a->lo);
	put(d, a->hi);
	put64(d, mean);
}

/* Writes the key of a kernel, d->word. Axes and value variables have the first numbers. */
static void write_key(DistinctKernels *d, const Kernel *k)
{
	d->word.n = d->buf.n = d->nsym = 0;
	d->now++;
	put(d, k->axis.n);
	put(d, k->vvar.n);
	put(d, k->kx.n);
	for (uint32_t i = 0; i < k->axis.n; i++)
		number_sym(d, k->axis.data[i].var);
	for (uint32_t i = 0; i < k->vvar.n; i++)
		number_sym(d, k->vvar.data[i].var);
	for (uint32_t i = 0; i < k->axis.n; i++)
		put_axis(d, &k->axis.data[i]);
	for (uint32_t i = 0; i < k->vvar.n; i++) {
		put(d, k->vvar.data[i].value.i);
		put(d, write_sym(d, k->vvar.data[i].extent));
		put(d, k->vvar.data[i].check);
		put(d, k->vvar.data[i].wraps);
		put(d, k->vvar.data[i].listed);
		put_syms(d, k->vvar.data[i].at, k->vvar.data[i].nat);
	}
	for (uint32_t i = 1; i < k->kx.n; i++)
		put_kx(d, &k->kx.data[i]);
	for (uint32_t i = 0; i < k->stage.n; i++)
		put_stage(d, &k->stage.data[i]);
}

/* ---- schedules ---- */

/* Prints a product to the key of a function: the text of the function does not say it. */
static void print_product(const LoopProduct *p, Text *t)
{
	text_printf(t, "product %u %u %u; %u %u %u %u; %d %d %d %d; %u %u %u; %u\n", p->a_type,
		    p->b_type, p->c_type, p->a, p->b, p->c, p->bias, p->a_rows, p->b_rows, p->relu,
		    p->gelu, p->least[0], p->least[1], p->least[2], p->param);
}

static uint32_t add_function(DistinctKernels *d, LoopFn *f)
{
	Text key;
	text_init(&key, d->l->ir->ctx->arena);
	loop_print(f, &key, true);
	if (f->product)
		print_product(f->product, &key);
	bool fresh;
	uint32_t id = intern(&d->fn_text, key.data, key.n, &fresh);
	if (fresh)
		array_push(d->l->ir->ctx->arena, &d->p->fn, f);
	return id - 1;
}

/* Turns large literals of a phase's function into parameters, so that others may share it,
 * legalises it, and adds it to the program. Returns its index in Program.fn. */
static uint32_t add_phase(DistinctKernels *d, SchedPhase *p)
{
	p->nliteral = loop_parametrise(p->f, KEEP_LITERALS, &p->literal);
	if (!d->plain)
		legalise(p->f, &d->target->isa);
	return add_function(d, p->f);
}

static LoopRange range_of(SymTab *syms, Sym s)
{
	LoopRange r;
	sym_range(syms, s, &r.lo, &r.hi);
	return r;
}

void note_launch(SymTab *syms, LoopFn *f, const SchedPhase *p)
{
	const LoopRange tasks = range_of(syms, p->ntasks);
	const bool fresh = !f->given.n;
	for (uint32_t j = 0; j < p->nparam + p->nliteral; j++) {
		const int64_t literal = j < p->nparam ? 0 : p->literal[j - p->nparam];
		const LoopRange now =
			j < p->nparam ? range_of(syms, p->param[j]) : (LoopRange){literal, literal};
		if (fresh)
			array_push(f->ir->ctx->arena, &f->given, now);
		LoopRange *all = &f->given.data[j];
		*all = (LoopRange){now.lo < all->lo ? now.lo : all->lo,
				   now.hi > all->hi ? now.hi : all->hi};
	}
	const int64_t most = tasks.hi > 1 ? tasks.hi : 1;
	f->tasks_most = most > f->tasks_most ? most : f->tasks_most;
}

/* Schedules the kernel whose key was written last. The schedule numbers buffers by order of
 * appearance, since it serves equal kernels, too. */
static Scheduled schedule(DistinctKernels *d, const Kernel *k)
{
	Arena *arena = d->l->ir->ctx->arena;
	Schedule *s = schedule_kernel(d->l, k, d->target);
	uint32_t *fn = ARENA_ARRAY(arena, uint32_t, s->phase.n);
	for (uint32_t i = 0; i < s->phase.n; i++) {
		SchedPhase *p = &s->phase.data[i];
		SchedArg *arg = arena_dup(arena, p->arg, p->narg * sizeof *arg);
		for (uint32_t a = 0; a < p->narg; a++)
			if (arg[a].kind == ARG_BUF)
				arg[a].k = find_buf(d, (BufId){arg[a].k});
		p->arg = arg;
		fn[i] = add_phase(d, p);
	}
	return (Scheduled){.schedule = s, .fn = fn};
}

uint32_t distinct_key(DistinctKernels *d, const Kernel *k, bool *fresh)
{
	write_key(d, k);
	return intern(&d->key, d->word.data, d->word.n * sizeof *d->word.data, fresh);
}

static void add_kernel(DistinctKernels *d, Scheduled k)
{
	k.temp = d->ntemp;
	d->ntemp += k.schedule->temp.n;
	array_push(d->l->ir->ctx->arena, &d->kernel, k);
}

void distinct_kernel(DistinctKernels *d, const Kernel *k)
{
	bool fresh;
	Arena *arena = d->l->ir->ctx->arena;
	uint32_t id = distinct_key(d, k, &fresh);
	if (fresh)
		array_push(arena, &d->distinct, schedule(d, k));
	Scheduled here = d->distinct.data[id - 1];
	here.name = k->name;
	here.stored = k->stored;
	here.lines = k->lines;
	here.kernel = k;
	here.buf = arena_dup(arena, d->buf.data, d->buf.n * sizeof *d->buf.data);
	add_kernel(d, here);
}

void distinct_call(DistinctKernels *d, const StepCall *c)
{
	Arena *arena = d->l->ir->ctx->arena;
	uint32_t nbuf, *fn = ARENA_NEW(arena, uint32_t);
	BufId *buf = ARENA_ARRAY(arena, BufId, c->op->nin + c->op->nout);
	Schedule *s = schedule_call(d->l, c, d->target, buf, &nbuf);
	*fn = add_phase(d, &s->phase.data[0]);
	add_kernel(
		d,
		(Scheduled){
			.name = c->name, .lines = c->lines, .schedule = s, .fn = fn, .buf = buf});
}
