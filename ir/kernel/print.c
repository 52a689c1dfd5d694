/* Text of kernels, for --dump and tests. */
#include "ir/build/text.h"
#include "ir/kernel/kernel.h"

#include <string.h>

#include "ir/op/userop.h"

typedef struct {
	const Lowered *l;
	const Kernel *k;
	Text *t;
	uint32_t nouter; /* kernel_nouter */
	uint32_t *name; /* number of a shared expression, 0 not printed yet */
	uint32_t *uses;
	uint32_t nname;
	uint32_t nvar; /* axes and value variables ... */
	Sym *var, *alias; /* ... and variables whose names differ */
} Printer;

static const char *const buf_kind[] = {"temp", "input", "output", "const", "state"};
static const char *const stage_kind[] = {"map", "reduce", "argreduce", "running", "sort", "scatter",
                                         "check", "factor", "fft"};
static const char *const factor_name[] = {"", "lu", "qr", "cholesky", "solve"};

static void print_syms(const Lowered *l, Text *t, const Sym *s, uint32_t n)
{
	text_char(t, '[');
	for (uint32_t k = 0; k < n; k++) {
		if (k)
			text_add(t, ", ");
		sym_print(l->ir->syms, s[k], t);
	}
	text_char(t, ']');
}

static void print_layout(const Lowered *l, Text *t, const Layout *lay)
{
	text_add(t, " layout(");
	for (uint32_t k = 0; k < lay->n; k++) {
		const LayoutDim *d = &lay->dim[k];
		text_printf(t, "%s%u", k ? ", " : "", d->axis);
		if (d->divisor != 1)
			text_printf(t, "/%lld", (long long)d->divisor);
		text_char(t, ':');
		sym_print(l->ir->syms, d->extent, t);
		if (d->padded.i == d->extent.i)
			continue;
		text_char(t, '^');
		sym_print(l->ir->syms, d->padded, t);
	}
	text_char(t, ')');
}

static void print_buf_name(const Lowered *l, Text *t, BufId b)
{
	const char *name = b.i < l->buf.n ? l->buf.data[b.i].name : NULL;
	text_printf(t, "@%u%s%s", b.i, name && *name ? "." : "", name ? name : "");
}

static void print_buf(const Lowered *l, Text *t, BufId id)
{
	const Buffer *b = &l->buf.data[id.i];
	print_buf_name(l, t, id);
	text_printf(t, ": %s", dtype_name(b->dtype));
	print_syms(l, t, b->dim, b->rank);
	text_printf(t, " %s", buf_kind[b->kind]);
	if (b->kind != BUF_TEMP)
		text_printf(t, " %u", b->k);
	if (b->donated)
		text_add(t, " donated");
	if (!layout_is_row_major(&b->layout, b->rank))
		print_layout(l, t, &b->layout);
	text_char(t, '\n');
}

/* ---- variables ---- */

/* Adds a variable with the name that is printed for it: axes that share a name are numbered. */
static void add_alias(Printer *p, Sym var, Sym extent)
{
	SymTab *t = p->l->ir->syms;
	const char *name = sym_name(t, var);
	uint32_t same = 0, number = 0;
	for (uint32_t k = 0; k < p->k->axis.n + p->k->vvar.n; k++) {
		bool axis = k < p->k->axis.n;
		Sym other = axis ? p->k->axis.data[k].var : p->k->vvar.data[k - p->k->axis.n].var;
		same += strcmp(name, sym_name(t, other)) == 0;
		if (other.i == var.i)
			number = same - 1;
	}
	if (same > 1)
		name = arena_printf(p->l->ir->ctx->scratch, "%s%u", name, number);
	p->var[p->nvar] = var;
	p->alias[p->nvar++] = same > 1 ? sym_axis(t, name, extent) : var;
}

static Sym renamed(const Printer *p, Sym s)
{
	return s.i ? sym_subst(p->l->ir->syms, s, p->var, p->alias, p->nvar) : s;
}

static void print_indices(Printer *p, const Sym *s, uint32_t n)
{
	Sym *idx = ARENA_ARRAY(p->l->ir->ctx->scratch, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		idx[k] = renamed(p, s[k]);
	print_syms(p->l, p->t, idx, n);
}

/* ---- expressions ---- */

static void print_kx(Printer *p, Kx x);

static void print_guard(Printer *p, const KxData *d)
{
	if (!d->guard.i)
		return;
	text_add(p->t, " if ");
	print_kx(p, d->guard);
	text_add(p->t, " else ");
	print_kx(p, d->other);
}

static void print_kx_data(Printer *p, const KxData *d)
{
	switch (d->kind) {
	case KX_CONST:
		if (dtype_is_float(d->dtype))
			text_double(p->t, d->c.f);
		else
			text_printf(p->t, "%lld", (long long)d->c.i);
		text_printf(p->t, ":%s", dtype_name(d->dtype));
		break;
	case KX_INDEX:
		text_add(p->t, "index");
		print_indices(p, d->idx, 1);
		break;
	case KX_INRANGE:
		text_add(p->t, "inrange");
		print_indices(p, d->idx, 3);
		break;
	case KX_LOAD:
		print_buf_name(p->l, p->t, d->buf);
		print_indices(p, d->idx, d->nidx);
		print_guard(p, d);
		break;
	case KX_STAGE:
		text_printf(p->t, "stage%u", d->stage);
		print_indices(p, d->idx + p->nouter, d->nidx - p->nouter);
		break;
	case KX_OP:
		text_printf(p->t, "%s:%s", op_name(d->op),
			    dtype_name(d->round ? d->round : d->dtype));
		text_printf(p->t, d->bits ? "[%s](" : "(", dtype_name(d->bits));
		for (uint32_t k = 0; k < d->nin; k++) {
			if (k)
				text_add(p->t, ", ");
			print_kx(p, d->in[k]);
		}
		text_char(p->t, ')');
		break;
	}
}

static void print_kx(Printer *p, Kx x)
{
	if (!x.i)
		text_add(p->t, "none");
	else if (p->name[x.i])
		text_printf(p->t, "%%%u", p->name[x.i]);
	else
		print_kx_data(p, &p->k->kx.data[x.i]);
}

static void count_uses(Printer *p, Kx x)
{
	if (!x.i || p->uses[x.i]++)
		return;
	const KxData *d = &p->k->kx.data[x.i];
	for (uint32_t k = 0; k < d->nin; k++)
		count_uses(p, d->in[k]);
	count_uses(p, d->guard);
	count_uses(p, d->other);
}

/* Prints each expression inside x that has several readers on a line of its own, operands
 * first. */
static void print_shared(Printer *p, Kx x)
{
	if (!x.i || !p->uses[x.i])
		return;
	const KxData *d = &p->k->kx.data[x.i];
	bool shared = p->uses[x.i] > 1 && d->kind != KX_CONST;
	p->uses[x.i] = 0;
	for (uint32_t k = 0; k < d->nin; k++)
		print_shared(p, d->in[k]);
	print_shared(p, d->guard);
	print_shared(p, d->other);
	if (!shared || p->name[x.i])
		return;
	text_printf(p->t, "    %%%u = ", p->nname + 1);
	print_kx_data(p, d);
	text_char(p->t, '\n');
	p->name[x.i] = ++p->nname;
}

/* ---- stages and kernels ---- */

static void print_bounds(Printer *p, const Axis *a)
{
	const uint32_t bound[] = {a->lo, a->hi};
	for (uint32_t k = 0; k < 2 && !axis_is_plain(a); k++) {
		text_add(p->t, k ? ", " : " in [");
		if (bound[k] && bound[k] <= p->k->vvar.n)
			sym_print(p->l->ir->syms, renamed(p, p->k->vvar.data[bound[k] - 1].var),
				  p->t);
		else if (bound[k])
			text_printf(p->t, "?%u", bound[k]);
	}
	if (!axis_is_plain(a))
		text_char(p->t, ')');
}

static void print_axes(Printer *p, const uint8_t *axis, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (axis[k] >= p->k->axis.n) {
			text_printf(p->t, "%s?%u", k ? ", " : "", axis[k]);
			continue;
		}
		const Axis *a = &p->k->axis.data[axis[k]];
		text_add(p->t, k ? ", " : "");
		sym_print(p->l->ir->syms, renamed(p, a->var), p->t);
		text_char(p->t, '<');
		sym_print(p->l->ir->syms, renamed(p, a->extent), p->t);
		print_bounds(p, a);
	}
}

static void print_flags(Printer *p, const Stage *s)
{
	const bool runs = s->kind == STAGE_RUNNING, sorts = s->kind == STAGE_SORT,
		   transforms = s->kind == STAGE_FFT,
		   combines = s->kind == STAGE_REDUCE || s->kind == STAGE_ARGREDUCE || runs ||
			      s->kind == STAGE_SCATTER;
	if (combines)
		text_printf(p->t, " %s", reduce_name(stage_combine(s)));
	if (stage_acc(s) != s->dtype)
		text_printf(p->t, " acc %s", dtype_name(stage_acc(s)));
	if (s->kind == STAGE_REDUCE && s->reduce.contraction)
		text_add(p->t, " contraction");
	if (s->kind == STAGE_REDUCE && s->reduce.most[0])
		text_printf(p->t, " most %d %d", s->reduce.most[0], s->reduce.most[1]);
	if (s->kind == STAGE_REDUCE && s->reduce.level)
		text_printf(p->t, " level stage%u", s->reduce.level - 1);
	if (s->kind == STAGE_REDUCE && s->reduce.half)
		text_printf(p->t, " half %d", s->reduce.half);
	if ((runs && s->running.reverse) || (transforms && s->fft.inverse))
		text_add(p->t, " reverse");
	if (transforms && s->fft.real)
		text_add(p->t, " real");
	if (sorts)
		text_printf(p->t, "%s%s", s->sort.descending ? " descending" : "",
			    s->sort.stable ? " stable" : "");
	if (s->kind == STAGE_FACTOR)
		text_printf(p->t, " %s%s%s", factor_name[s->factor.kind],
			    s->factor.upper ? " upper" : "", s->factor.unit ? " unit" : "");
	if (stage_next(s))
		text_printf(p->t, " out2 stage%u", stage_next(s));
	if (s->kind == STAGE_CHECK && s->check.message)
		text_printf(p->t, " check %u", s->check.message);
}

static void print_stage(Printer *p, uint32_t n)
{
	const Stage *s = &p->k->stage.data[n];
	count_uses(p, s->value);
	print_shared(p, s->value);
	count_uses(p, s->where);
	print_shared(p, s->where);
	text_printf(p->t, "  stage%u %s (", n, stage_kind[s->kind]);
	print_axes(p, s->map + p->nouter, s->nmap - p->nouter);
	if (s->nred) {
		text_add(p->t, "; ");
		print_axes(p, s->red, s->nred);
	}
	text_printf(p->t, ") %s", dtype_name(s->dtype));
	print_flags(p, s);
	text_printf(p->t, " -> %s",
		    stage_stores(s)                 ? "global"
		    : stage_keeps_row(s, p->nouter) ? "local"
						    : "register");
	if (stage_stores(s)) {
		text_char(p->t, ' ');
		print_buf_name(p->l, p->t, s->store.buf);
		uint32_t rank =
			s->store.buf.i < p->l->buf.n ? p->l->buf.data[s->store.buf.i].rank : 0;
		print_indices(p, s->store.idx, s->store.idx ? rank : 0);
	}
	if (s->value.i) {
		text_add(p->t, "\n    = ");
		print_kx(p, s->value);
	}
	if (s->where.i) {
		text_add(p->t, " if ");
		print_kx(p, s->where);
	}
	text_char(p->t, '\n');
}

static void print_vvar(Printer *p, const ValueVar *v)
{
	count_uses(p, v->value);
	print_shared(p, v->value);
	text_add(p->t, "  where ");
	sym_print(p->l->ir->syms, renamed(p, v->var), p->t);
	text_add(p->t, " < ");
	sym_print(p->l->ir->syms, v->extent, p->t);
	text_add(p->t, " is ");
	print_kx(p, v->value);
	if (v->check)
		text_printf(p->t, v->listed ? " check %u of [" : " check %u at [", v->check);
	for (uint32_t k = 0; v->check && k < v->nat; k++) {
		text_add(p->t, k ? ", " : "");
		sym_print(p->l->ir->syms, renamed(p, v->at[k]), p->t);
	}
	text_add(p->t, v->check ? "]\n" : "\n");
}

const char *kernel_text(const Kernel *k, Arena *arena)
{
	Text t;
	text_init(&t, arena);
	for (uint32_t i = 0; i < k->computes.n; i++)
		graph_print_node(k->graph, k->computes.data[i], &t);
	if (t.n && t.data[t.n - 1] == '\n')
		t.data[--t.n] = 0;
	return t.data;
}

void kernel_print(const Lowered *l, const Kernel *k, Text *t)
{
	Arena *arena = l->ir->ctx->scratch;
	Printer p = {.l = l, .k = k, .t = t};
	p.name = ARENA_ARRAY(arena, uint32_t, k->kx.n + 1);
	p.uses = ARENA_ARRAY(arena, uint32_t, k->kx.n + 1);
	p.var = ARENA_ARRAY(arena, Sym, k->axis.n + k->vvar.n);
	p.alias = ARENA_ARRAY(arena, Sym, k->axis.n + k->vvar.n);
	for (uint32_t i = 0; i < k->axis.n; i++)
		add_alias(&p, k->axis.data[i].var, k->axis.data[i].extent);
	for (uint32_t i = 0; i < k->vvar.n; i++)
		add_alias(&p, k->vvar.data[i].var, k->vvar.data[i].extent);
	Stage outer = {0};
	p.nouter = kernel_nouter(k);
	stage_map_first(&outer, p.nouter);
	text_printf(t, "kernel %s (", k->name);
	print_axes(&p, outer.map, outer.nmap);
	text_char(t, ')');
	text_add(t, " {\n");
	for (uint32_t i = 0; i < k->vvar.n; i++)
		print_vvar(&p, &k->vvar.data[i]);
	for (uint32_t i = 0; i < k->stage.n; i++)
		print_stage(&p, i);
	text_add(t, "}\n");
}

static void print_steps(const Lowered *l, const StepList *list, Text *t);

/* Prints what is said of a step ahead of its first list. */
static void print_head(const Lowered *l, const Step *s, Text *t)
{
	if (s->kind == STEP_IF)
		text_add(t, "if ");
	else if (s->kind == STEP_WHILE)
		text_add(t, "while ");
	else
		text_add(t, s->reverse ? "loop down " : "loop ");
	if (s->kind != STEP_LOOP) {
		print_buf_name(l, t, s->pred);
	} else {
		sym_print(l->ir->syms, s->var, t);
		for (uint32_t k = 0; k < s->nalso; k++) {
			text_add(t, s->also[k].reverse ? ", down " : ", ");
			sym_print(l->ir->syms, s->also[k].var, t);
		}
		text_add(t, " < ");
		sym_print(l->ir->syms, s->extent, t);
	}
	for (uint32_t c = 0; c < s->ncarry; c++) {
		text_add(t, c ? ", " : " carry ");
		print_buf_name(l, t, s->carry[c].from);
		text_add(t, " -> ");
		print_buf_name(l, t, s->carry[c].to);
	}
}

static void print_nested(const Lowered *l, const Step *s, Text *t)
{
	StepList *list[MAX_STEP_LISTS];
	uint32_t n = step_lists(s, list);
	print_head(l, s, t);
	for (uint32_t k = 0; k < n; k++) {
		text_add(t, k == 0 ? " {\n" : s->kind == STEP_IF ? "} else {\n" : "} do {\n");
		print_steps(l, list[k], t);
	}
	text_add(t, "}\n");
}

static void print_call(const Lowered *l, const StepCall *c, Text *t)
{
	uint32_t nin = c->op->nin, n = nin + c->op->nout;
	text_printf(t, "call %s: %s(", c->name, c->op->name);
	for (uint32_t k = 0; k < nin; k++) {
		text_add(t, k ? ", " : "");
		print_buf_name(l, t, c->buf[k]);
	}
	for (uint32_t k = 0; k < c->nint; k++) {
		text_add(t, k ? ", " : "; ints ");
		sym_print(l->ir->syms, c->ints[k], t);
	}
	for (uint32_t k = 0; k < c->nfloat; k++) {
		text_add(t, k ? ", " : "; floats ");
		text_double(t, c->floats[k]);
	}
	text_add(t, ") -> (");
	for (uint32_t k = nin; k < n; k++) {
		text_add(t, k > nin ? ", " : "");
		print_buf_name(l, t, c->buf[k]);
	}
	text_char(t, ')');
	if (c->work.i) {
		text_add(t, " work ");
		sym_print(l->ir->syms, c->work, t);
	}
	text_char(t, '\n');
}

static void print_save(const Lowered *l, const StepSave *s, Text *t)
{
	text_add(t, "save ");
	print_buf_name(l, t, s->state);
	if (s->at.i) {
		text_add(t, "[");
		print_buf_name(l, t, s->at);
		text_add(t, "]");
	}
	text_add(t, " -> ");
	print_buf_name(l, t, s->values);
	text_add(t, " items ");
	sym_print(l->ir->syms, s->n, t);
	text_char(t, '\n');
}

static void print_copy(const Lowered *l, const Step *s, Text *t)
{
	text_add(t, "copy ");
	print_buf_name(l, t, s->from);
	text_add(t, " -> ");
	print_buf_name(l, t, s->to);
	text_char(t, '\n');
}

static void print_size(const Lowered *l, const Step *s, Text *t)
{
	text_add(t, "size ");
	sym_print(l->ir->syms, s->size, t);
	text_add(t, " = ");
	print_buf_name(l, t, s->pred);
	text_char(t, '\n');
}

static void print_steps(const Lowered *l, const StepList *list, Text *t)
{
	for (uint32_t k = 0; k < list->step.n; k++) {
		const Step *s = &list->step.data[k];
		if (s->kind == STEP_KERNEL)
			kernel_print(l, s->kernel, t);
		else if (s->kind == STEP_CALL)
			print_call(l, s->call, t);
		else if (s->kind == STEP_SAVE)
			print_save(l, s->save, t);
		else if (s->kind == STEP_COPY)
			print_copy(l, s, t);
		else if (s->kind == STEP_SIZE)
			print_size(l, s, t);
		else
			print_nested(l, s, t);
	}
}

void lowered_print(const Lowered *l, Text *t)
{
	for (uint32_t k = 1; k < l->buf.n; k++)
		print_buf(l, t, (BufId){k});
	for (uint32_t k = 1; k < l->check.n; k++)
		text_printf(t, "check %u: %s\n", k, l->check.data[k]);
	print_steps(l, &l->steps, t);
}
