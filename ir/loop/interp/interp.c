/* Programs: regions, launches, and what is true of all of a call. */
#include "ir/loop/interp/priv.h"
#include "ir/scalar/priv.h"

#include <stdio.h>
#include <string.h>

/* ---- launches ---- */

/* Returns a permutation of 0 .. n-1. */
static uint32_t *permute(Arena *a, uint32_t n, uint64_t seed)
{
	uint32_t *order = ARENA_ARRAY(a, uint32_t, n);
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
	for (uint32_t k = 0; k < n; k++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint32_t j = (uint32_t)((x >> 33) % (k + 1));
		order[k] = order[j];
		order[j] = k;
	}
	return order;
}

static bool eval_size(const Interp *in, Sym e, uint64_t *out)
{
	int64_t v;
	bool ok = sym_eval(in->program->ir->syms, e, in->size, in->size_value, in->nsize, &v) &&
		  v >= 0;
	*out = ok ? (uint64_t)v : 0;
	return ok;
}

/* Returns the largest power of two, up to the region's alignment, that divides the address. */
static uint64_t alignment(const View *v)
{
	uint64_t low = v->first & (~v->first + 1);
	return v->first && low < v->region->align ? low : v->region->align;
}

static bool make_view(Exec *run, const LsData *s, const LoopFn *f, uint32_t k, View *v)
{
	Interp *in = run->at.in;
	const ProgramArg *known = program_call(in->entry, s->k)->arg;
	const LxData *d = &run->f->lx.data[s->arg[k].i];
	int64_t at;
	if (d->kind != LX_ADDR || d->u.k >= in->nregion)
		return loop_finding(&run->at, "argument %u is no address of a buffer", k);
	Region *r = &in->region[d->u.k];
	if (!exec_int(run, d->in[0], &at))
		return false;
	*v = (View){.name = known ? known[k].name : f->buf.data[k].name,
		    .region = r,
		    .first = (uint64_t)at};
	v->owner = known ? known[k].owner : 0;
	if (at < 0 || v->first > r->bytes)
		return loop_finding(&run->at,
				    "buffer %s begins at byte %lld of the %s, which has %llu",
				    v->name, (long long)at, r->name, (unsigned long long)r->bytes);
	v->bytes = r->bytes - v->first;
	if (known && !eval_size(in, known[k].bytes, &v->bytes))
		return loop_finding(&run->at, "buffer %s has no size", v->name);
	if (v->bytes > r->bytes - v->first)
		return loop_finding(
			&run->at, "buffer %s has %llu bytes at byte %lld of the %s, which has %llu",
			v->name, (unsigned long long)v->bytes, (long long)at, r->name,
			(unsigned long long)r->bytes);
	if (v->bytes && alignment(v) < f->buf.data[k].align)
		return loop_finding(
			&run->at,
			"buffer %s at byte %lld of the %s is not aligned to %u bytes, as promised",
			v->name, (long long)at, r->name, f->buf.data[k].align);
	return true;
}

/* Checks that memory of a restrict argument is reached through no other one, if either writes. */
static bool check_restrict(const Exec *run, const LoopFn *f, const View *v)
{
	for (uint32_t i = 0; i < f->buf.n; i++)
		for (uint32_t j = 0; j < i; j++) {
			const LArg *a = &f->buf.data[i], *b = &f->buf.data[j];
			bool meet = v[i].region == v[j].region &&
				    v[i].first < v[j].first + v[j].bytes &&
				    v[j].first < v[i].first + v[i].bytes;
			if (meet && (a->restrict_ok || b->restrict_ok) &&
			    (a->written || b->written))
				return loop_finding(&run->at,
						    "buffers %s and %s overlap, and one of them is "
						    "declared restrict",
						    v[j].name, v[i].name);
		}
	return true;
}

/* Executes tasks in lockstep. Each thread is a call for some of the tasks. */
static bool run_lockstep(Exec *e, const uint32_t *order, uint32_t ntasks)
{
	bool on[LOCKSTEP] = {false};
	Active all = {on, e->n};
	memset(on, true, e->n);
	TRY(exec_top(e, &all, e->f->enter));
	for (uint32_t k = 0; k < ntasks; k += e->n) {
		Active a = {on, 0};
		for (uint32_t t = 0; t < e->n; t++) {
			a.n += on[t] = k + t < ntasks;
			e->task[t] = on[t] ? order[k + t] : 0;
		}
		TRY(exec_body(e, &a));
	}
	memset(on, true, e->n);
	return exec_top(e, &all, e->f->leave);
}

static bool run_blocks(Exec *e, const uint32_t *order, uint32_t ntasks)
{
	for (uint32_t k = 0; k < ntasks; k++)
		TRY(block_run(e, order[k]));
	return true;
}

static bool run_tasks(Interp *in, const LoopFn *f, FnPlan *plan, const View *view,
		      const int64_t *param, uint32_t ntasks)
{
	Exec e;
	ArenaMark mark = arena_mark(in->arena);
	bool blocks = f->threads > 1;
	uint32_t n = blocks ? f->threads : ntasks < LOCKSTEP ? ntasks : LOCKSTEP;
	const uint32_t *order = permute(in->arena, ntasks, in->report->seed + in->phase);
	exec_init(&e, in, f, plan, n);
	e.view = view;
	e.param = param;
	bool ok = (blocks ? run_blocks : run_lockstep)(&e, order, ntasks);
	arena_release(in->arena, mark);
	return ok;
}

static bool launch_args(Exec *run, const LsData *s, const LoopFn *f, View *view, int64_t *param,
			int64_t *ntasks)
{
	for (uint32_t k = 0; k < s->nbuf; k++)
		if (!make_view(run, s, f, k, &view[k]))
			return false;
	for (uint32_t k = 0; k < s->narg - s->nbuf; k++) {
		if (!exec_int(run, s->arg[s->nbuf + k], &param[k]))
			return false;
		if (param[k] < 0)
			return loop_finding(&run->at,
					    "parameter %s is %lld, and taken not to be negative",
					    f->param.data[k], (long long)param[k]);
	}
	if (!exec_int(run, s->x, ntasks))
		return false;
	if (*ntasks < 0)
		return loop_finding(&run->at, "the number of tasks is %lld", (long long)*ntasks);
	return check_restrict(run, f, view);
}

/* Stops with message k, in which %lld stands for the next argument and %% for a percent sign. */
static bool stop_with_message(Interp *in, uint32_t k, const int64_t *arg)
{
	Text t;
	text_init(&t, in->arena);
	for (const char *p = in->program->message.data[k]; *p; p++) {
		if (*p != '%') {
			text_char(&t, *p);
		} else if (!strncmp(p, "%lld", 4)) {
			text_printf(&t, "%lld", (long long)*arg++);
			p += 3;
		} else {
			text_char(&t, '%');
			p += p[1] == '%';
		}
	}
	return loop_stop(in, LOOP_FAILED, "%s", t.data);
}

static bool run_launch(Exec *run, const LsData *s)
{
	Interp *in = run->at.in;
	const ProgramCall *call = program_call(in->entry, s->k);
	const LoopFn *f = in->program->fn.data[call->fn];
	if (s->nbuf != f->buf.n || s->narg - s->nbuf != f->param.n)
		return loop_finding(&run->at,
				    "passes %u buffers and %u parameters, expected %u and %u",
				    s->nbuf, s->narg - s->nbuf, f->buf.n, f->param.n);
	View *view = ARENA_ARRAY(in->arena, View, f->buf.n);
	int64_t *param = ARENA_ARRAY(in->arena, int64_t, f->param.n), ntasks = 0;
	in->call = call->name;
	run->at.task = 0;
	run->at.f = f;
	bool ok = launch_args(run, s, f, view, param, &ntasks);
	if (ok && (uint64_t)ntasks > in->left)
		ok = loop_stop(in, LOOP_LIMIT,
			       "%s: %lld tasks: too much work for the interpreter of loop IR",
			       call->name, (long long)ntasks);
	in->phase += !in->same_phase;
	in->first_task = in->same_phase ? in->first_task : 0;
	bool failed = in->failure.id; /* in a launch before: that stands */
	struct Failure before = in->failure;
	ok = ok &&
	     (ntasks == 0 || run_tasks(in, f, in->plan[call->fn], view, param, (uint32_t)ntasks));
	if (failed)
		in->failure = before;
	in->first_task += (uint32_t)ntasks;
	in->same_phase = s->same_phase;
	if (ok && in->failure.id == FAILED_CALL && !s->same_phase)
		ok = loop_stop(in, LOOP_FAILED, "%s", in->failure.told);
	else if (ok && in->failure.id && !s->same_phase)
		ok = stop_with_message(in, in->failure.id, in->failure.arg);
	run->at.f = run->f;
	in->call = NULL;
	return ok;
}

/* ---- other statements of programs ---- */

static bool follow(Interp *in, Region *r)
{
	if (r->bytes > LOOP_INTERP_BYTES)
		return loop_stop(in, LOOP_LIMIT,
				 "the %s of %llu bytes: too large for the interpreter of loop IR",
				 r->name, (unsigned long long)r->bytes);
	r->shadow = ARENA_ARRAY(in->arena, Shadow, r->bytes);
	if (in->blocks)
		r->cell = ARENA_ARRAY(in->arena, Cell, r->bytes);
	if (in->report->depths)
		r->depth = ARENA_ARRAY(in->arena, uint16_t, r->bytes);
	return true;
}

static bool copy_end(Exec *run, Lx address, uint32_t owner, uint32_t n, bool write, char **out)
{
	Interp *in = run->at.in;
	const LxData *d = &run->f->lx.data[address.i];
	int64_t at;
	if (d->kind != LX_ADDR || d->u.k >= in->nregion)
		return loop_finding(&run->at, "copies go between addresses");
	Region *r = &in->region[d->u.k];
	View all = {.name = r->name, .region = r, .bytes = r->bytes, .owner = owner};
	return exec_int(run, d->in[0], &at) && view_touch(&run->at, &all, at, n, write, out);
}

static bool run_copy(Exec *run, const LsData *s)
{
	int64_t n;
	char *to, *from;
	run->at.in->phase++;
	if (!exec_int(run, s->y, &n))
		return false;
	if (n < 0 || n > LOOP_INTERP_BYTES)
		return loop_finding(&run->at, "copies %lld bytes", (long long)n);
	if (!copy_end(run, s->x, 0, (uint32_t)n, false, &from) ||
	    !copy_end(run, s->offset, 0, (uint32_t)n, true, &to))
		return false;
	memmove(to, from, (size_t)n);
	return true;
}

/* ---- state that is put back ---- */

typedef struct Saved {
	View state, values, at; /* at.region NULL: one after the other */
	uint64_t n;
	uint32_t bytes;
	struct Saved *before;
} Saved;

static bool saved_view(Exec *run, Lx address, uint64_t bytes, uint32_t owner, View *v)
{
	Interp *in = run->at.in;
	const LxData *d = &run->f->lx.data[address.i];
	int64_t at;
	if (d->kind != LX_ADDR || d->u.k >= in->nregion || !exec_int(run, d->in[0], &at))
		return loop_finding(&run->at, "saves what has no address");
	Region *r = &in->region[d->u.k];
	if (at < 0 || (uint64_t)at > r->bytes || bytes > r->bytes - (uint64_t)at)
		return loop_finding(&run->at,
				    "saves %llu bytes at byte %lld of the %s, which has %llu",
				    (unsigned long long)bytes, (long long)at, r->name,
				    (unsigned long long)r->bytes);
	*v = (View){.name = r->name,
		    .region = r,
		    .first = (uint64_t)at,
		    .bytes = bytes,
		    .owner = owner};
	return true;
}

static bool run_save(Exec *run, const LsData *s)
{
	Interp *in = run->at.in;
	Saved *x = ARENA_NEW(in->arena, Saved);
	int64_t n, bytes;
	if (!exec_int(run, s->arg[s->nbuf], &n) || !exec_int(run, s->arg[s->nbuf + 1], &bytes))
		return false;
	*x = (Saved){.n = (uint64_t)n, .bytes = (uint32_t)bytes, .before = in->saved};
	in->saved = x;
	View record;
	uint64_t all = x->n * x->bytes;
	if (!saved_view(run, s->arg[0], SAVE_RECORD, 0, &record) ||
	    !saved_view(run, s->arg[1], 0, 0, &x->state) ||
	    !saved_view(run, s->arg[2], all, s->k, &x->values))
		return false;
	x->state.bytes = x->state.region->bytes - x->state.first;
	return s->nbuf == 3 ||
	       saved_view(run, s->arg[3], x->n * sizeof(int64_t), (uint32_t)s->count, &x->at);
}

/* Puts back what was saved, newest first. It is read like any buffer: nobody may have taken its
 * place. */
static bool put_back(Interp *in, const LoopFn *f)
{
	Access a = {.in = in, .f = f};
	for (const Saved *s = in->saved; s; s = s->before) {
		in->phase++;
		for (uint64_t k = 0; k < s->n; k++) {
			char *to, *from, *at = NULL;
			int64_t place = (int64_t)k;
			if (s->at.region && !view_touch(&a, &s->at, (int64_t)(k * sizeof place),
							sizeof place, false, &at))
				return false;
			if (at)
				memcpy(&place, at, sizeof place);
			if (!view_touch(&a, &s->values, (int64_t)(k * s->bytes), s->bytes, false,
					&from) ||
			    !view_touch(&a, &s->state, place * s->bytes, s->bytes, true, &to))
				return false;
			memcpy(to, from, s->bytes);
		}
	}
	return true;
}

/* Remembers the symbol's value, in place of the one that it had in the iteration before. */
static void remember_size(Interp *in, Sym size, int64_t value)
{
	uint32_t k = 0;
	while (k < in->nsize && in->size[k].i != size.i)
		k++;
	in->size[k] = size;
	in->size_value[k] = value;
	in->nsize += k == in->nsize;
}

static bool run_read(Exec *run, const LsData *s)
{
	char *from;
	ScVal v;
	run->at.in->phase++;
	if (!copy_end(run, s->x, s->k, dtype_size(s->dtype), false, &from))
		return false;
	scalar_unpack(s->dtype, &v, from, 1);
	exec_define(run, s->v, v.i);
	if (s->count)
		remember_size(run->at.in, (Sym){(uint32_t)s->count}, v.i);
	return true;
}

/* Makes room: memory that nobody has written. */
static bool run_room(Exec *run, const LsData *s)
{
	Interp *in = run->at.in;
	Region *r = &in->region[s->k];
	int64_t *p = ARENA_ARRAY(in->arena, int64_t, s->narg);
	uint32_t out = s->k - in->entry->input.n;
	bool output = out < in->entry->output.n;
	in->phase++;
	for (uint32_t k = 0; k < s->narg; k++)
		if (!exec_int(run, s->arg[k], &p[k]))
			return false;
	if (!in->report->room || !in->report->room(in->report->user, s->k, s->narg ? p : NULL))
		return loop_stop(in, LOOP_NO_ROOM, "no room");
	r->data = in->buf[s->k];
	r->bytes = !s->narg ? 0
		   : output ? dtype_size(in->entry->output.data[out].dtype)
			    : (uint64_t)p[0];
	for (uint32_t k = 0; k < s->narg && output; k++)
		r->bytes *= (uint64_t)p[k];
	return follow(in, r);
}

/* Executes an assertion; stops with its text if it fails. */
static bool run_assert(Exec *run, const LsData *s)
{
	const Active all = {(const bool[]){true}, 1};
	const uint8_t *ok = exec_value(run, &all, s->x);
	if (!ok || *ok)
		return ok;
	int64_t *arg = ARENA_ARRAY(run->at.in->arena, int64_t, s->narg);
	for (uint32_t k = 0; k < s->narg; k++)
		if (!exec_int(run, s->arg[k], &arg[k]))
			return false;
	return stop_with_message(run->at.in, s->k, arg);
}

static bool run_function(Interp *in, const LoopFn *f, const int64_t *param);

/* Executes an outlined function. Parameters of a function outlined from `sizes` are slots and
 * extents; from `run` they are arguments, or those of the caller. */
static bool run_outlined(Exec *run, const LsData *s)
{
	Interp *in = run->at.in;
	const ProgramEntry *e = in->entry;
	const LoopFn *f = in->extent ? e->sizes_outlined.data[s->k] : e->run_outlined.data[s->k];
	int64_t *param = ARENA_ARRAY(in->arena, int64_t, f->param.n);
	uint32_t nslot = in->extent ? program_nslot_params(e, f) : 0;
	bool ok = true;
	for (uint32_t k = 0; k < f->param.n && ok; k++)
		if (in->extent)
			param[k] = k < nslot ? in->slot[k] : in->extent[s->count + k - nslot];
		else if (s->narg)
			ok = exec_int(run, s->arg[k], &param[k]);
		else
			param[k] = run->param[k];
	ArenaMark mark = arena_mark(in->arena); /* after the caller's values */
	ok = ok && run_function(in, f, param);
	arena_release(in->arena, mark);
	return ok;
}

static bool run_program(Exec *run, const LsData *s)
{
	Interp *in = run->at.in;
	switch (s->kind) {
	case LS_LAUNCH: return run_launch(run, s);
	case LS_READ: return run_read(run, s);
	case LS_ROOM: return run_room(run, s);
	case LS_COPY: return run_copy(run, s);
	case LS_SAVE: return run_save(run, s);
	case LS_ASSERT: return run_assert(run, s);
	case LS_OUTLINED: return run_outlined(run, s);
	default: return s->k < program_nslot(in->entry) && exec_int(run, s->x, &in->slot[s->k]);
	}
}

/* ---- calls ---- */

static bool check_params(Exec *e)
{
	for (uint32_t k = 0; k < e->f->param.n; k++)
		if (e->param[k] < 0)
			return loop_finding(&e->at,
					    "parameter %s is %lld, and taken not to be negative",
					    e->f->param.data[k], (long long)e->param[k]);
	return true;
}

static bool run_function(Interp *in, const LoopFn *f, const int64_t *param)
{
	Exec e;
	const Active all = {(const bool[]){true}, 1};
	exec_init(&e, in, f, loop_plan(f, in->arena), 1);
	e.param = param;
	e.program = run_program;
	return check_params(&e) && exec_body(&e, &all);
}

uint64_t statement_limit(const Interp *in)
{
	const uint64_t most = in->blocks ? (uint64_t)LOOP_INTERP_OF_BLOCKS * LOOP_INTERP_STATEMENTS
					 : LOOP_INTERP_STATEMENTS;
	return in->report->limit ? in->report->limit : most;
}

static void begin(Interp *in, const ProgramEntry *e, Arena *a, LoopReport *r)
{
	*in = (Interp){.program = e->program, .entry = e, .arena = a, .report = r};
	in->plan = ARENA_ARRAY(a, FnPlan *, e->program->fn.n);
	for (uint32_t k = 0; k < e->program->fn.n; k++)
		in->blocks |= e->program->fn.data[k]->threads > 1;
	in->left = statement_limit(in);
	r->message[0] = 0;
}

static LoopOutcome finish(Interp *in)
{
	in->report->statements = statement_limit(in) - in->left;
	return in->outcome;
}

LoopOutcome loop_interp_sizes(const ProgramEntry *e, Arena *a, const int64_t *extent, int64_t *slot,
			      LoopReport *r)
{
	Interp in;
	begin(&in, e, a, r);
	in.slot = slot;
	in.extent = extent;
	run_function(&in, e->sizes, extent);
	return finish(&in);
}

/* Whether the program is for blocks of threads. A GPU's tensors are aligned to what one access
 * of a thread moves. */
static bool is_for_blocks(const Program *p)
{
	for (uint32_t k = 0; k < p->fn.n; k++)
		if (p->fn.data[k]->threads > 1)
			return true;
	return false;
}

static bool tensor_region(Interp *in, const char *role, const ProgramTensor *t, void *data,
                          Region *r)
{
	uint32_t size = dtype_size(t->dtype), align = dtype_is_complex(t->dtype) ? size / 2 : size;
	align = is_for_blocks(in->program) && align < SHARED_ALIGN ? SHARED_ALIGN : align;
	*r = (Region){.data = data, .bytes = size, .align = align};
	r->name = arena_printf(in->arena, "%s %s", role, t->name);
	for (uint32_t k = 0; k < t->rank; k++) {
		uint64_t n;
		if (!eval_size(in, t->dim[k], &n) || __builtin_mul_overflow(r->bytes, n, &r->bytes))
			return loop_stop(in, LOOP_FINDING, "loop IR of run: the %s has no size",
					 r->name);
	}
	return true;
}

/* Makes a region of which there is no byte until LS_ROOM. */
static void later_region(Interp *in, uint32_t k, const char *name)
{
	in->region[k] = (Region){.name = name, .align = 64};
}

/* Makes the regions, in the order of the buffers that `run` has. */
static bool make_regions(Interp *in, void *const *buf, const int64_t *slot)
{
	const ProgramEntry *e = in->entry;
	uint32_t nin = e->input.n, nout = e->output.n;
	in->nregion = nin + nout + 3 + e->nroom;
	in->region = ARENA_ARRAY(in->arena, Region, in->nregion);
	for (uint32_t k = 0; k < nin; k++)
		if (!tensor_region(in, "input", &e->input.data[k], buf[k], &in->region[k]))
			return false;
	for (uint32_t k = 0; k < nout; k++)
		if (program_is_found(e, k))
			later_region(in, nin + k,
				     arena_printf(in->arena, "output %s", e->output.data[k].name));
		else if (!tensor_region(in, "output", &e->output.data[k], buf[nin + k],
					&in->region[nin + k]) ||
			 !follow(in, &in->region[nin + k]))
			return false;
	for (uint32_t k = 0; k < e->nroom; k++)
		later_region(in, nin + nout + 3 + k, "room");
	Region *last = &in->region[nin + nout];
	last[0] = (Region){.name = "weights",
			   .data = buf[nin + nout],
			   .bytes = in->program->weight_bytes,
			   .align = 64};
	last[1] = (Region){.name = "workspace", .data = buf[nin + nout + 1],
	                   .bytes = (uint64_t)slot[program_nslot(e) - 1], .align = 64};
	last[2] = (Region){.name = "state",
			   .data = buf[nin + nout + 2],
			   .bytes = in->program->state_bytes,
			   .align = 64};
	if (!follow(in, &last[1]) || !follow(in, &last[2]))
		return false;
	for (uint64_t k = 0; k < last[2].bytes; k++)
		last[2].shadow[k].write.phase = BEFORE_THE_CALL;
	return true;
}

static uint32_t count_sizes(const LoopFn *f)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < f->ls.n; k++)
		n += f->ls.data[k].kind == LS_READ && f->ls.data[k].count;
	return n;
}

static void start_sizes(Interp *in)
{
	const ProgramEntry *e = in->entry;
	uint32_t room = e->symbol.n + count_sizes(e->run);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		room += count_sizes(e->run_outlined.data[k]);
	in->size = ARENA_ARRAY(in->arena, Sym, room);
	in->size_value = ARENA_ARRAY(in->arena, int64_t, room);
	for (uint32_t k = 0; k < e->symbol.n; k++)
		remember_size(in, e->symbol.data[k], in->slot[k]);
}

LoopOutcome loop_interp_run(const ProgramEntry *e, Arena *a, void *const *buf, const int64_t *slot,
			    LoopReport *r)
{
	Interp in;
	begin(&in, e, a, r);
	in.slot = (int64_t *)(uintptr_t)slot; /* `run` has no results */
	in.buf = buf;
	start_sizes(&in);
	for (uint32_t k = 0; k < e->program->fn.n; k++)
		in.plan[k] = loop_plan(e->program->fn.data[k], a);
	bool ok = make_regions(&in, buf, slot) && run_function(&in, e->run, slot);
	if (!ok && in.outcome == LOOP_FAILED)
		put_back(&in, e->run);
	for (uint32_t k = 0; k < e->output.n && ok; k++)
		ok = region_complete(&(Access){.in = &in, .f = e->run}, &in.region[e->input.n + k]);
	return finish(&in);
}
