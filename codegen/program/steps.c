/* The steps of `run`:
 *
 *   if @p { .. } else { .. }         read p; if p { .. } else { .. }
 *   while @p { test } do { body }    n = 0; go = true; while go { test; read p; go = p; if go {
 *                                    body; n = n + 1 } }
 *
 * Long step lists are cut; the pieces are outlined, which makes them functions of their own. */
#include "codegen/program/builder.h"

/* ---- sizes that depend on data ---- */

/* Adds assertions that input k has the extents of its type, for those extents that need the size
 * `var`, which has just become known. */
static void check_input(Builder *b, uint32_t k, const Type *type, Sym var)
{
	const ProgramTensor *t = &b->e->input.data[k];
	for (uint32_t d = 0; d < t->rank; d++) {
		Sym want = type->dim[d];
		if (want.i == t->dim[d].i || !sym_uses(b->syms, want, var) ||
		    !sym_lower_can(&b->known.sizes, want))
			continue;
		Text text;
		text_init(&text, b->arena);
		text_add(&text, "input \"");
		text_format(&text, t->name);
		text_printf(&text, "\" dimension %u: expected %s = %%lld, got %%lld", d,
			    sym_str(b->syms, want));
		Lx arg[2] = {sym_lower(&b->known.sizes, want),
			     sym_lower(&b->known.sizes, t->dim[d])};
		ls_assert(b->f, lx_cmp(b->f, SC_eq, arg[0], arg[1]),
			  program_message(b->p, text.data), arg, 2);
	}
}

/* Adds everything that waited for a size: checks of input extents, of bounds and of the model's
 * conditions, and the memory of outputs. */
static void after_size(Builder *b, Sym var)
{
	const Graph *main = b->l->graph;
	while (size_divisors_assert(b->known.bounds, &b->known.sizes, b->p, main, var))
		;
	for (uint32_t i = 0, k = 0; i < main->input.n; i++)
		if (main->input.data[i].kind == INPUT_USER)
			check_input(b, k++, node_type(main, main->input.data[i].node), var);
	for (uint32_t k = 0; k < b->known.guarded->guard.n; k++) {
		const GraphGuard *g = &b->known.guarded->guard.data[k];
		bool uses = sym_uses(b->syms, g->a, var) || sym_uses(b->syms, g->b, var);
		if (uses && sym_lower_can(&b->known.sizes, g->a) &&
		    sym_lower_can(&b->known.sizes, g->b))
			program_guard(b->p, &b->known.sizes, b->l->graph, g);
	}
	while (size_bounds_assert(b->known.bounds, &b->known.sizes, b->p, main, var))
		;
	for (uint32_t k = 0; k < b->noutput; k++) {
		const ProgramTensor *t = &b->e->output.data[k];
		bool known = true;
		for (uint32_t d = 0; d < t->rank && known; d++)
			known = sym_lower_can(&b->known.sizes, t->dim[d]);
		if (!known || b->memory.has_room[k])
			continue;
		Lx dim[MAX_RANK];
		for (uint32_t d = 0; d < t->rank; d++)
			dim[d] = sym_lower(&b->known.sizes, t->dim[d]);
		ls_room(b->f, b->ninput + k, dim, t->rank);
		b->memory.has_room[k] = true;
	}
}

/* Allocates the room of the buffers that waited for this STEP_SIZE, as they have no near bound.
 * Returns the room's number, 0 if none waited. */
static uint32_t make_room(Builder *b)
{
	uint32_t room = b->memory.plan.room_of[b->known.nsize++];
	Lx bytes = room ? sym_lower(&b->known.sizes, b->memory.plan.room_bytes[room]) : (Lx){0};
	if (room)
		ls_room(b->f, b->ninput + b->noutput + 2 + room, &bytes, 1);
	return room;
}

/* Makes a value, whose range was checked, that of the step's symbol from now on. lo: the symbol's
 * least value. */
static void give_size(Builder *b, const Step *s, Lx value, int64_t lo)
{
	LoopFn *f = b->f;
	/* so that all see that it is not negative */
	value = lo >= 0 ? lx_max(f, value, lx_int(f, 0)) : value;
	sym_lower_set(&b->known.sizes, s->size,
		      lx_var(f, ls_let(f, sym_name(b->syms, s->size), value)));
	array_push(b->arena, &b->known.born, (BornSize){.var = s->size});
	uint32_t at = b->known.born.n - 1;
	b->known.born.data[at].room = make_room(b);
	after_size(b, s->size);
}

static void emit_size(Builder *b, const Step *s)
{
	LoopFn *f = b->f;
	const Buffer *buf = buf_of(b->l, s->pred);
	int64_t lo, hi;
	Lx value = lx_var(f, ls_read(f, "size", DT_i64, builder_address(b, s->pred, &buf->layout),
				     builder_owner(b, s->pred.i)));
	sym_range(b->syms, s->size, &lo, &hi);
	if (sym_lower_can(&b->known.sizes, s->size)) {
		Lx known = sym_lower(&b->known.sizes, s->size);
		ls_assert(f, lx_cmp(f, SC_eq, value, known), program_message(b->p, s->differs),
			  (Lx[]){value, known}, 2);
		b->known.nsize++;
		return;
	}
	if (sym_kind(b->syms, s->size) != SYM_VAR) {
		ctx_error(b->l->ir->ctx, NULL,
			  "the size %s depends on data, and its symbols have no values",
			  sym_str(b->syms, s->size));
		return;
	}
	uint32_t message = program_message(b->p, s->message);
	ls_reads_size(f, s->size);
	Lx ok = lo > -SYM_INF ? lx_cmp(f, SC_ge, value, lx_int(f, lo)) : (Lx){0};
	if (hi < SYM_INF) {
		Lx less = lx_cmp(f, SC_le, value, lx_int(f, hi));
		ok = ok.i ? lx_and(f, ok, less) : less;
	}
	if (ok.i)
		ls_assert(f, ok, message, &value, 1);
	give_size(b, s, value, lo);
}

/* Forgets all data-dependent sizes but the first n at the end of their list, and frees their
 * rooms. */
static void forget_sizes(Builder *b, uint32_t n)
{
	for (uint32_t k = b->known.born.n; k-- > n;)
		if (b->known.born.data[k].room)
			ls_room(b->f, b->ninput + b->noutput + 2 + b->known.born.data[k].room, NULL,
				0);
	b->known.born.n = n;
}

/* Enters the graph of a body: adds what the graph demands of sizes that are known, bounds and
 * guards. */
static void enter_graph(Builder *b, const Graph *g)
{
	b->known.guarded = g;
	b->known.bounds = size_bounds_new(b->l->ir, b->known.bounds);
	size_bounds_add_graph(b->known.bounds, g);
	while (size_bounds_assert(b->known.bounds, &b->known.sizes, b->p, b->l->graph, (Sym){0}))
		;
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *w = &g->guard.data[k];
		if (sym_lower_can(&b->known.sizes, w->a) && sym_lower_can(&b->known.sizes, w->b))
			program_guard(b->p, &b->known.sizes, b->l->graph, w);
	}
}

/* Emits a list inside a step. Sizes and counts that are found out in the list are not known behind
 * it. */
static void emit_list(Builder *b, const StepList *list)
{
	uint32_t scope = b->known.sizes.log.n, ended = b->nest.ended.n, born = b->known.born.n;
	const Graph *guarded = b->known.guarded;
	SizeBounds *bounds = b->known.bounds;
	if (list->graph)
		enter_graph(b, list->graph);
	builder_steps(b, list);
	forget_sizes(b, born);
	b->known.guarded = guarded;
	b->known.bounds = bounds;
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.ended.n = ended;
}

static void enter(Builder *b, const Step *step, Lx index)
{
	LoopFn *f = b->f;
	array_push(b->arena, &b->nest.around, (Around){step, index});
	if (step->kind == STEP_WHILE)
		return;
	const Lx last = lx_sub(f, sym_lower(&b->known.sizes, step->extent), lx_int(f, 1)),
		 down = lx_sub(f, last, index);
	sym_lower_set(&b->known.sizes, step->var, step->reverse ? down : index);
	for (uint32_t k = 0; k < step->nalso; k++)
		sym_lower_set(&b->known.sizes, step->also[k].var,
			      step->also[k].reverse ? down : index);
}

/* Notes where carried buffers lie in the loop: even iterations read `from` and write `to`, odd ones
 * the other way round. */
static void swap_inside(Builder *b, const Step *step)
{
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->memory.plan.offset[step->carry[c].from.i],
		    to = b->memory.plan.offset[step->carry[c].to.i];
		b->memory.place[step->carry[c].from.i] =
			(CarryPlace){.even = from, .odd = to, .loop = b->nest.around.n};
		b->memory.place[step->carry[c].to.i] =
			(CarryPlace){.even = to, .odd = from, .loop = b->nest.around.n};
	}
}

static void swap_after(Builder *b, const Step *step, Sym count, uint32_t ended)
{
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->memory.plan.offset[step->carry[c].from.i],
		    to = b->memory.plan.offset[step->carry[c].to.i];
		b->memory.place[step->carry[c].from.i] = (CarryPlace){0};
		b->memory.place[step->carry[c].to.i] =
			(CarryPlace){.even = from, .odd = to, .count = count, .ended = ended};
	}
}

static void emit_loop(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	uint32_t scope = b->known.sizes.log.n;
	Lx n = sym_lower(&b->known.sizes, step->extent);
	enter(b, step, lx_var(f, ls_for(f, "i", lx_int(f, 0), n, 1)));
	swap_inside(b, step);
	const Cost *times = b->nest.times;
	b->nest.times = cost_mul(b->arena, times, cost_sym(b->arena, step->extent));
	emit_list(b, step->body);
	b->nest.times = times;
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.around.n--;
	ls_end(f);
	swap_after(b, step, step->extent, 0);
}

static Lx read_pred(Builder *b, BufId pred)
{
	const Buffer *buf = buf_of(b->l, pred);
	Lx at = builder_address(b, pred, &buf->layout);
	return lx_var(b->f, ls_read(b->f, "holds", DT_bool, at, builder_owner(b, pred.i)));
}

static void emit_if(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	ls_if(f, read_pred(b, step->pred));
	emit_list(b, step->body);
	ls_else(f);
	emit_list(b, step->other);
	ls_end(f);
}

static void emit_while(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	uint32_t scope = b->known.sizes.log.n;
	Lv n = ls_var(f, "n", lx_int(f, 0)),
	   go = ls_var(f, "go", lx_int_of(f, (LType){DT_bool, 1}, 1));
	ls_while(f, lx_var(f, go));
	enter(b, step, lx_var(f, n));
	swap_inside(b, step);
	emit_list(b, step->test);
	ls_set(f, go, read_pred(b, step->pred));
	ls_if(f, lx_var(f, go));
	emit_list(b, step->body);
	ls_set(f, n, lx_add(f, lx_var(f, n), lx_int(f, 1)));
	ls_end(f);
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.around.n--;
	ls_end(f);
	array_push(b->arena, &b->nest.ended, (Ended){f, lx_var(f, n)});
	swap_after(b, step, (Sym){0}, b->nest.ended.n);
}

/* ---- outlining ---- */

static bool may_be_negative(const Builder *b, uint32_t born)
{
	int64_t lo, hi;
	sym_range(b->syms, b->known.born.data[born].var, &lo, &hi);
	return lo < 0;
}

void builder_start(Builder *b, LoopFn *f)
{
	b->f = f;
	sym_lower_init(&b->known.sizes, b->l->ir->ctx, b->syms, f);
	for (uint32_t i = 0; i < b->e->symbol.n; i++) {
		uint32_t k = loop_param(f, sym_name(b->syms, b->e->symbol.data[i]));
		sym_lower_set(&b->known.sizes, b->e->symbol.data[i], lx_param(f, k));
	}
	uint32_t n = b->nest.around.n;
	b->nest.around.n = 0;
	for (uint32_t i = 0; i < n; i++)
		enter(b, b->nest.around.data[i].step, lx_param(f, loop_param(f, "i")));
	for (uint32_t i = 0; i < b->known.born.n; i++) {
		const char *name = sym_name(b->syms, b->known.born.data[i].var);
		Lx value = lx_param(f, loop_param(f, name));
		if (may_be_negative(b, i)) /* the difference of two that are not */
			value = lx_sub(f, value, lx_param(f, loop_param(f, name)));
		sym_lower_set(&b->known.sizes, b->known.born.data[i].var, value);
	}
}

static void emit_copy(Builder *b, const Step *s)
{
	const Buffer *from = buf_of(b->l, s->from), *to = buf_of(b->l, s->to);
	Sym bytes =
		sym_muli(b->syms, layout_numel(b->l->ir, &from->layout), dtype_size(from->dtype));
	Lx source = builder_address(b, s->from, &from->layout);
	ls_copy(b->f, builder_address(b, s->to, &to->layout), source,
		sym_lower(&b->known.sizes, bytes));
}

/* Emits a record of old state. The values are copied here, unless a step before has read them
 * (`at`). */
static void emit_save(Builder *b, const StepSave *s)
{
	LoopFn *f = b->f;
	const Buffer *state = buf_of(b->l, s->state), *at = buf_of(b->l, s->at);
	uint32_t size = dtype_size(state->dtype), n = 0;
	Lx items = sym_lower(&b->known.sizes, s->n), arg[6];
	arg[n++] = builder_address(b, s->record, &buf_of(b->l, s->record)->layout);
	arg[n++] = builder_address(b, s->state, &state->layout);
	arg[n++] = builder_address(b, s->values, &buf_of(b->l, s->values)->layout);
	if (s->at.i)
		arg[n++] = builder_address(b, s->at, &at->layout);
	else
		ls_copy(f, arg[2], arg[1], lx_mul(f, items, lx_int(f, size)));
	arg[n] = items;
	arg[n + 1] = lx_int(f, size);
	ls_save(f, arg, n, n + 2, builder_owner(b, s->values.i),
		s->at.i ? builder_owner(b, s->at.i) : 0);
	uint64_t each = size + (s->at.i ? sizeof(int64_t) : 0);
	b->e->saved_hint += SAVE_RECORD + (uint64_t)sym_hint(b->syms, s->n) * each;
}

static void emit_step(Builder *b, const Step *s)
{
	switch (s->kind) {
	case STEP_KERNEL:
	case STEP_CALL:
		builder_launch(b, &b->kernels.kernel.data[b->next++]);
		break;
	case STEP_COPY: emit_copy(b, s); break;
	case STEP_SAVE: emit_save(b, s->save); break;
	case STEP_LOOP: emit_loop(b, s); break;
	case STEP_IF: emit_if(b, s); break;
	case STEP_WHILE: emit_while(b, s); break;
	case STEP_SIZE: emit_size(b, s); break;
	}
}

/* Emits the call of an outlined function. Where it needs more than its caller's parameters, it gets
 * the symbols, the indices of the loops around, the sizes that depend on data, and the counts that
 * it asked for, number first_asked and the following. */
static void call_outlined(Builder *b, uint32_t number, uint32_t first_asked)
{
	uint32_t n = 0, nasked = b->nest.asked.n - first_asked, nsymbol = b->e->symbol.n;
	Asked *asked = nasked ? arena_dup(b->arena, b->nest.asked.data + first_asked,
					  nasked * sizeof *asked)
			      : NULL;
	Lx *arg = ARENA_ARRAY(b->arena, Lx,
			      nsymbol + b->nest.around.n + 2 * b->known.born.n + nasked);
	b->nest.asked.n = first_asked;
	for (uint32_t k = 0; k < nasked; k++)
		b->nest.ended.data[asked[k].ended] = asked[k].before;
	for (uint32_t k = 0; (nasked || b->nest.around.n || b->known.born.n) && k < nsymbol; k++)
		arg[n++] = lx_param(b->f, k);
	for (uint32_t k = 0; k < b->nest.around.n; k++)
		arg[n++] = b->nest.around.data[k].index;
	for (uint32_t k = 0; k < b->known.born.n; k++) {
		Lx value = sym_lower(&b->known.sizes, b->known.born.data[k].var),
		   zero = lx_int(b->f, 0);
		arg[n++] = may_be_negative(b, k) ? lx_max(b->f, value, zero) : value;
		if (may_be_negative(b, k))
			arg[n++] = lx_max(b->f, lx_sub(b->f, zero, value), zero);
	}
	for (uint32_t k = 0; k < nasked; k++)
		arg[n++] = builder_count(b, asked[k].ended);
	ls_outlined(b->f, number, 0, arg, n);
}

static void emit_part(Builder *b, const Step *step, uint32_t n)
{
	ProgramEntry *e = b->e;
	LoopFn *outer = b->f, *f = loop_new(b->p->ir, "");
	SymLower sizes = b->known.sizes;
	uint32_t naround = b->nest.around.n, nended = b->nest.ended.n,
		 first_asked = b->nest.asked.n;
	Around *around = arena_dup(b->arena, b->nest.around.data, naround * sizeof *around);
	bool tight = b->nest.tight;
	f->buf.data = e->run->buf.data; /* of the same buffers, read only */
	f->buf.n = f->buf.cap = e->run->buf.n;
	builder_start(b, f);
	b->nest.tight = false;
	for (uint32_t k = 0; k < n; k++)
		emit_step(b, &step[k]);
	b->nest.tight = tight;
	b->f = outer;
	b->known.sizes = sizes;
	b->nest.ended.n = nended;
	for (uint32_t k = 0; k < naround; k++)
		b->nest.around.data[k] = around[k];
	array_push(b->arena, &e->run_outlined, f);
	f->name = program_outlined_name(e, "run", e->run_outlined.n);
	call_outlined(b, e->run_outlined.n - 1, first_asked);
}

/* Returns the number of launches of a step. *kernel: the number of the step's first kernel; becomes
 * that of the first one behind the step. */
static uint32_t count_launches(const Builder *b, const Step *s, uint32_t *kernel)
{
	StepList *inner[MAX_STEP_LISTS];
	uint32_t n = 0, lists = step_lists(s, inner);
	if (step_is_launch(s))
		return b->kernels.kernel.data[(*kernel)++].schedule->phase.n;
	for (uint32_t k = 0; k < lists; k++)
		for (uint32_t i = 0; i < inner[k]->step.n; i++)
			n += count_launches(b, &inner[k]->step.data[i], kernel);
	return n;
}

/* Sets size[] to how many launches each step adds to the function that it is in: of long lists
 * inside it, which are outlined, a call each. Returns the number of all launches. */
static uint32_t find_sizes(const Builder *b, const StepList *list, uint32_t *size)
{
	uint32_t all = 0, kernel = b->next;
	for (uint32_t i = 0; i < list->step.n; i++) {
		uint32_t n = count_launches(b, &list->step.data[i], &kernel);
		size[i] = n <= OUTLINE_SIZE ? n : n / OUTLINE_SIZE + 1;
		all += n;
	}
	return all;
}

/* Emits a WHILE of a list that is cut. The loop stays in the current function, because steps behind
 * it need its count; everything in it is outlined. */
static void emit_whole_while(Builder *b, const Step *s)
{
	bool tight = b->nest.tight;
	b->nest.tight = true;
	emit_while(b, s);
	b->nest.tight = tight;
}

/* Returns how many steps from the first on are outlined together. */
static uint32_t outline_length(const Step *step, const uint32_t *size, uint32_t n)
{
	uint32_t sum = size[0], k = 1;
	for (; k < n && step[k].kind != STEP_WHILE && step[k].kind != STEP_SIZE &&
	       sum + size[k] <= OUTLINE_SIZE;
	     k++)
		sum += size[k];
	return k;
}

void builder_steps(Builder *b, const StepList *list)
{
	const Step *step = list->step.data;
	uint32_t *size = ARENA_ARRAY(b->arena, uint32_t, list->step.n);
	bool cut = find_sizes(b, list, size) > (b->nest.tight ? 0 : OUTLINE_SIZE);
	for (uint32_t i = 0, n; i < list->step.n; i += n) {
		n = 1;
		if (!cut) {
			emit_step(b, &step[i]);
		} else if (step[i].kind == STEP_WHILE) {
			emit_whole_while(b, &step[i]);
		} else if (step[i].kind == STEP_SIZE) { /* what comes after it needs its value */
			emit_step(b, &step[i]);
		} else {
			n = outline_length(&step[i], &size[i], list->step.n - i);
			emit_part(b, &step[i], n);
		}
	}
}
