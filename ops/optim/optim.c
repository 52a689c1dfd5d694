/* Texts of optimisers: lists, conditions, and one step as nodes. */
#include "ops/optim/optim.h"

#include <math.h>
#include <string.h>

#include "base/scan.h"
#include "ops/rules/expand_priv.h"

/* ---- lists ---- */

/* Returns the text between two places without blanks around it. */
static const char *trimmed(Arena *a, const char *from, const char *to)
{
	scan_blanks(&from);
	while (to > from && strchr(" \t\n", to[-1]))
		to--;
	return arena_strndup(a, from, (size_t)(to > from ? to - from : 0));
}

/* Returns the end of the piece of text that begins at s: where `mark` stands, or the end. */
static const char *before(const char *s, const char *end, const char *mark)
{
	const size_t n = strlen(mark);
	for (const char *p = s; p + n <= end; p++)
		if (!memcmp(p, mark, n))
			return p;
	return end;
}

/* Takes the condition off the text from s to *end. */
static const char *condition(Arena *a, const char *s, const char **end)
{
	static const char mark[] = " if ";
	const char *at = before(s, *end, mark), *all = *end;
	*end = at;
	return at == all ? "" : trimmed(a, at + sizeof mark - 1, all);
}

static OptimItem item(Arena *a, const char *s, const char *end)
{
	OptimItem out = {.condition = condition(a, s, &end)};
	const char *key = before(s, end, ":"), *value = before(s, key, "="),
		   *mark = before(s, value, "[]");
	out.number = mark != value;
	out.name = trimmed(a, s, mark);
	out.value = value == key ? "" : trimmed(a, value + 1, key);
	out.key = key == end ? out.name : trimmed(a, key + 1, end);
	return out;
}

OptimList optim_list(Arena *a, const char *text)
{
	OptimList out = {0};
	for (const char *s = text, *end; *s && out.n < OPTIM_MAX_ITEMS; s = *end ? end + 1 : end) {
		end = s + strcspn(s, ";");
		out.item[out.n++] = item(a, s, end);
	}
	return out;
}

int optim_item(const OptimList *list, const char *name)
{
	for (uint32_t k = 0; k < list->n; k++)
		if (!strcmp(list->item[k].name, name))
			return (int)k;
	return -1;
}

bool optim_flag(const OptimList *scalars, const OptimItem *flag, const bool *is)
{
	const int of = optim_item(scalars, flag->key);
	return of >= 0 ? is[of] : *flag->value == '1';
}

bool optim_holds(const OptimList *flags, const bool *flag, const char *s)
{
	scan_blanks(&s);
	while (*s) {
		const bool no = scan_accept(&s, "not ");
		scan_blanks(&s);
		const size_t n = scan_word(s);
		bool found = false;
		for (uint32_t k = 0; k < flags->n; k++)
			if (strlen(flags->item[k].name) == n && !memcmp(flags->item[k].name, s, n))
				found = flag[k] != no;
		if (!found)
			return false;
		s += n;
		scan_accept(&s, "and ");
	}
	return true;
}

/* Returns the statements of a text whose conditions hold, as a program of .expand. */
static const char *program(Arena *a, const OptimList *flags, const bool *flag, const char *text)
{
	char *out = arena_calloc(a, strlen(text) + 4, 1);
	for (const char *s = text, *end; *s; s = *end ? end + 1 : end) {
		end = s + strcspn(s, ";");
		const char *statement = end;
		if (!optim_holds(flags, flag, condition(a, s, &statement)))
			continue;
		strncat(out, s, (size_t)(statement - s));
		strcat(out, "; ");
	}
	return strcat(out, "0");
}

/* ---- a step ---- */

typedef struct {
	Build *b;
	const OptimStep *s;
	OptimList scalars, flags, states; /* states: those that are there */
	uint32_t at[OPTIM_MAX_ITEMS];     /* by state: its first value among s->state */
	Eval before;                      /* .before, when it has been computed */
} Steps;

static Val val_node(Node n)
{
	return (Val){.kind = VAL_node, .node = n};
}

/* Returns the last binding of a name, or NULL. */
static const Val *bound(const Eval *e, const char *name)
{
	for (uint32_t k = e->nlet; k-- > 0;)
		if (e->let[k].len == strlen(name) && !memcmp(e->let[k].name, name, e->let[k].len))
			return &e->let[k].val;
	return NULL;
}

/* Keeps the states that are there, and finds where the values of each begin. Returns false after
 * an error: there are more or fewer values. */
static bool find_states(Steps *x)
{
	uint32_t n = 0, at = 0;
	for (uint32_t k = 0; k < x->states.n; k++) {
		const OptimItem *i = &x->states.item[k];
		if (!optim_holds(&x->flags, x->s->flag, i->condition))
			continue;
		x->at[n] = at;
		at += i->number ? 1 : x->s->n;
		x->states.item[n++] = *i;
	}
	x->states.n = n;
	if (at == x->s->nstate)
		return true;
	b_error(x->b, "%s of %u parameters has %u states, expected %u", x->s->of->name, x->s->n,
		x->s->nstate, at);
	return false;
}

static bool same_shape(const Build *b, Node x, Node y)
{
	if (node_rank(b->g, x) != node_rank(b->g, y))
		return false;
	for (uint32_t d = 0; d < node_rank(b->g, x); d++)
		if (node_dim(b->g, x, d).i != node_dim(b->g, y, d).i)
			return false;
	return true;
}

static bool wrong(const Steps *x, const char *what, uint32_t k, const char *expected)
{
	b_error(x->b, "%s: %s of parameter %u: expected %s", x->s->of->name, what, k, expected);
	return false;
}

/* Checks types. Returns false after an error. */
static bool check(const Steps *x)
{
	const Graph *g = x->b->g;
	const OptimStep *s = x->s;
	for (uint32_t k = 0; k < s->n; k++) {
		if (!dtype_is_float(node_dtype(g, s->p[k])))
			return wrong(x, "the dtype", k, "real floats");
		if (s->of->matrix && node_rank(g, s->p[k]) != 2)
			return wrong(x, "the shape", k,
				     "two dimensions (give the others another optimizer, by a "
				     "group)");
		if (!dtype_is_float(node_dtype(g, s->g[k])) || !same_shape(x->b, s->p[k], s->g[k]))
			return wrong(x, "the gradient", k, "floats of the parameter's shape");
	}
	for (uint32_t j = 0; j < x->states.n; j++) {
		const OptimItem *i = &x->states.item[j];
		const Node *v = s->state + x->at[j];
		if (i->number) {
			const int64_t n =
				node_rank(g, *v) != 1
					? 0
					: sym_const_or(b_syms(x->b), node_dim(g, *v, 0), 0);
			if (!dtype_is_float(node_dtype(g, *v)) || !n || (n != 1 && n != s->n))
				return wrong(x, i->name, 0, "one float, or one for each parameter");
			continue;
		}
		for (uint32_t k = 0; k < s->n; k++)
			if (!dtype_is_float(node_dtype(g, v[k])) ||
			    !same_shape(x->b, v[k], s->p[k]))
				return wrong(x, i->name, k, "floats of the parameter's shape");
	}
	return true;
}

/* Evaluates the statements of a text under flags. Returns false after an error. A mistake in the
 * text is a bug of Weft's. */
static bool evaluate(const Steps *x, const bool *flag, Eval *e, const char *text)
{
	Ctx *ctx = x->b->g->ir->ctx;
	const uint32_t errors = ctx->nerror;
	e->b = x->b;
	e->p = program(ctx->scratch, &x->flags, flag, text);
	expand_program(e);
	if (e->err)
		ctx_bug(ctx, "optimiser %s: %s at \"%s\"", x->s->of->name, e->err, e->errp);
	return ctx->nerror == errors;
}

static bool compute_before(Steps *x)
{
	const OptimStep *s = x->s;
	for (uint32_t k = 0; k < x->scalars.n; k++)
		expand_let(&x->before, x->scalars.item[k].name,
			   s->scalar[k].i
				   ? val_node(b_convert(x->b, s->scalar[k], DT_f64))
				   : (Val){.kind = VAL_attr, .attr = attr_float(s->number[k])});
	for (uint32_t j = 0; j < x->states.n; j++)
		if (x->states.item[j].number)
			expand_let(&x->before, x->states.item[j].name,
				   val_node(b_convert(x->b, s->state[x->at[j]], DT_f64)));
	return evaluate(x, s->flag, &x->before, s->of->before);
}

/* Whether a text mentions a name. */
static bool mentions(const char *text, const char *name, uint32_t len)
{
	for (const char *p = text; *p;) {
		const size_t n = scan_word(p);
		if (n == len && !memcmp(p, name, n))
			return true;
		p += n ? n : 1;
	}
	return false;
}

/* Returns what a value of .before is for parameter k: a number in dtype d. */
static Val of_parameter(const Steps *x, const Val *v, uint32_t k, DType d)
{
	Node y = v->node;
	if (v->kind != VAL_node || !y.i)
		return *v;
	if (node_rank(x->b->g, y)) {
		const bool one = sym_const_or(b_syms(x->b), node_dim(x->b->g, y, 0), 0) == 1;
		y = b_select_dim(x->b, y, 0, sym_int(b_syms(x->b), one ? 0 : k));
	}
	return val_node(b_convert(x->b, y, d));
}

static Node converted_back(const Steps *x, const Eval *e, const char *name, Node old)
{
	const Val *v = bound(e, name);
	return b_convert(x->b, v->node, node_dtype(x->b->g, old));
}

/* Binds what an update of a matrix knows of its shape. */
static bool let_shape(const Steps *x, Node p, Eval *e, bool *flag)
{
	const SymTab *syms = b_syms(x->b);
	const int64_t rows = sym_const_or(syms, node_dim(x->b->g, p, 0), 0),
		      columns = sym_const_or(syms, node_dim(x->b->g, p, 1), 0);
	const double ratio = (double)rows / (double)columns;
	const int tall = optim_item(&x->flags, "tall");
	if (rows < 1 || columns < 1)
		return wrong(x, "the shape", 0, "known sizes, from 1 on");
	const struct {
		const char *name;
		double value;
	} all[] = {{"ratio", sqrt(ratio)},
		   {"aspect", sqrt(fmax(1, ratio))},
		   {"width", sqrt((double)(rows > columns ? rows : columns))}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		expand_let(e, all[k].name,
			   (Val){.kind = VAL_attr, .attr = attr_float(all[k].value)});
	flag[tall] = rows > columns;
	return true;
}

static bool update(const Steps *x, uint32_t k, Node *out)
{
	const OptimStep *s = x->s;
	const Graph *g = x->b->g;
	const DType own = node_dtype(g, s->p[k]), d = own == DT_f64 ? own : DT_f32;
	Eval e = {0};
	bool flag[OPTIM_MAX_ITEMS];
	for (uint32_t i = 0; i < x->before.nlet; i++) {
		const Binding *l = &x->before.let[i];
		bool last = true; /* a later binding hides it */
		for (uint32_t j = i + 1; j < x->before.nlet; j++)
			last &= x->before.let[j].len != l->len ||
				memcmp(x->before.let[j].name, l->name, l->len) != 0;
		if (last && mentions(s->of->update, l->name, l->len))
			e.let[e.nlet++] =
				(Binding){l->name, l->len, of_parameter(x, &l->val, k, d)};
	}
	for (uint32_t j = 0; j < x->states.n; j++)
		if (!x->states.item[j].number)
			expand_let(&e, x->states.item[j].name,
				   val_node(b_convert(x->b, s->state[x->at[j] + k], d)));
	expand_let(&e, "p", val_node(b_convert(x->b, s->p[k], d)));
	expand_let(&e, "g", val_node(b_convert(x->b, s->g[k], d)));
	memcpy(flag, s->flag, x->flags.n * sizeof *flag);
	if (s->of->matrix && !let_shape(x, s->p[k], &e, flag))
		return false;
	if (!evaluate(x, flag, &e, s->of->update))
		return false;
	out[k] = converted_back(x, &e, "p", s->p[k]);
	for (uint32_t j = 0; j < x->states.n; j++)
		if (!x->states.item[j].number)
			out[s->n + x->at[j] + k] = converted_back(x, &e, x->states.item[j].name,
								  s->state[x->at[j] + k]);
	return true;
}

/* Sets out[] of the states that are numbers. */
static void numbers(Steps *x, Node *out)
{
	for (uint32_t j = 0; j < x->states.n; j++) {
		if (!x->states.item[j].number)
			continue;
		const Node old = x->s->state[x->at[j]];
		const Sym dim = node_dim(x->b->g, old, 0);
		const Val *v = bound(&x->before, x->states.item[j].name);
		const Node y = expand_operand(&x->before, v, DT_f64);
		out[x->s->n + x->at[j]] =
			b_broadcast(x->b, b_convert(x->b, y, node_dtype(x->b->g, old)), 1, &dim);
	}
}

bool optim_step(Build *b, const OptimStep *s, Node *out)
{
	Arena *a = b->g->ir->ctx->scratch;
	Steps *x = arena_calloc(a, 1, sizeof *x);
	*x = (Steps){.b = b,
		     .s = s,
		     .scalars = optim_list(a, s->of->scalars),
		     .flags = optim_list(a, s->of->flags),
		     .states = optim_list(a, s->of->states)};
	if (!find_states(x) || !check(x) || !compute_before(x))
		return false;
	numbers(x, out);
	for (uint32_t k = 0; k < s->n; k++)
		if (!update(x, k, out))
			return false;
	return true;
}
