/* Loop functions from their text, as print.c writes it: forms of statements are those of their
 * rows. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/loop/loop.h"
#include "ir/scalar/priv.h"

typedef struct {
	Ir *ir;
	Arena *arena;
	LoopFn *f;
	const char *text, *s, *furthest; /* all of it, what is left, how far statements were
	                                    understood */
	Intern name;        /* of variables, parameters and buffers, as written */
	ARRAY(uint32_t) is; /* by name - 1: the number of the variable, parameter or buffer */
	ARRAY(Lx) temp;     /* by number */
	Lb block;           /* that is filled */
} LoopParser;

/* ---- words ---- */

static bool skip(LoopParser *p, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(p->s, word, n))
		return false;
	p->s += n;
	return true;
}

/* Skips the absent expression, "none"; "none.3" and "nonempty" are names. */
static bool skip_none(LoopParser *p)
{
	const char behind = strncmp(p->s, "none", 4) ? 0 : p->s[4];
	return !isalnum((unsigned char)behind) && behind != '_' && behind != '.' && skip(p, "none");
}

/* Reads what precedes any of these characters. */
static const char *word(LoopParser *p, const char *until)
{
	size_t n = strcspn(p->s, until);
	const char *w = arena_strndup(p->arena, p->s, n);
	p->s += n;
	return w;
}

static bool number(LoopParser *p, int64_t *out)
{
	char *end;
	*out = strtoll(p->s, &end, 10);
	bool any = end > p->s;
	p->s = end;
	return any;
}

/* Parses a type: "f32", "f32x8". */
static bool type_of(const char *w, LType *t)
{
	size_t n = strlen(w), digits = n;
	while (digits && isdigit((unsigned char)w[digits - 1]))
		digits--;
	bool lanes = digits > 1 && digits < n && w[digits - 1] == 'x';
	t->dtype = dtype_parse(w, (uint32_t)(lanes ? digits - 1 : n));
	t->lanes = lanes ? (uint32_t)strtoul(w + digits, NULL, 10) : 1;
	return t->dtype != DT_none && t->lanes;
}

static void name_is(LoopParser *p, const char *name, uint32_t k)
{
	bool fresh;
	uint32_t id = intern(&p->name, name, strlen(name), &fresh);
	if (fresh)
		array_push(p->arena, &p->is, k);
	p->is.data[id - 1] = k;
}

static bool find_name(LoopParser *p, const char *name, uint32_t *k)
{
	bool fresh;
	uint32_t id = intern(&p->name, name, strlen(name), &fresh);
	if (fresh)
		array_push(p->arena, &p->is, UINT32_MAX);
	*k = p->is.data[id - 1];
	return *k != UINT32_MAX;
}

/* Does as name_is. Returns whether nothing else has the name. */
static bool name_new(LoopParser *p, const char *name, uint32_t k)
{
	uint32_t other;
	const bool taken = find_name(p, name, &other);
	name_is(p, name, k);
	return !taken;
}

/* ---- expressions ---- */

static bool expr(LoopParser *p, Lx *out);

static bool exprs(LoopParser *p, char end, Lx *x, uint32_t most, uint32_t *n)
{
	for (*n = 0; *p->s != end; ++*n)
		if (*n == most || (*n && !skip(p, ", ")) || !expr(p, &x[*n]) || !x[*n].i)
			return false;
	return true;
}

static bool find_op(const char *name, ScOp *op)
{
	for (*op = SC_add; *op < SC_call; ++*op)
		if (strcmp(sc_name(*op), name) == 0)
			return true;
	return false;
}

/* Cuts off what a legal function knows of the operation. */
static unsigned known_of(char *name)
{
	size_t n = strlen(name);
	if (n < 3 || name[n - 2] != '.' || !strchr("in", name[n - 1]))
		return 0;
	name[n - 2] = 0;
	return name[n - 1] == 'n' ? KNOWN_INDEX | KNOWN_NONNEG : KNOWN_INDEX;
}

static Lx operation(LoopParser *p, ScOp op, LType typed, const Lx *in, uint32_t nin, unsigned known)
{
	LType t = lx_type(p->f, in[op == SC_select]);
	if (typed.lanes)
		t = typed;
	else if (op >= SC_eq && op <= SC_ge)
		t.dtype = DT_bool;
	else if (sc_is_dot(op))
		t.dtype = sc_dot_acc(op);
	else if (op == SC_nearest)
		t.dtype = DT_i32;
	else if (op == SC_from_f16 || op == SC_to_f16)
		t.dtype = op == SC_from_f16 ? DT_f32 : DT_u16;
	else if (op == SC_flush_bf16)
		t.dtype = DT_u16;
	return lx_op(p->f, op, t, in, nin, known);
}

static bool lanes_call(LoopParser *p, const char *name, LType t, const Lx *in, uint32_t nin,
		       Lx *out)
{
	ScOp op;
	*out = (Lx){0};
	if (!strcmp(name, "splat") && nin == 1)
		*out = lx_splat(p->f, in[0], t.lanes);
	if (!strcmp(name, "ramp") && nin == 2)
		*out = lx_ramp(p->f, in[0], in[1], t.lanes);
	if (!strcmp(name, "mask") && nin == 1)
		*out = lx_mask(p->f, in[0], t.lanes);
	if (!strcmp(name, "any") && nin == 1)
		*out = lx_any(p->f, in[0]);
	if (!strncmp(name, "reduce_", 7) && nin == 1 && find_op(name + 7, &op))
		*out = lx_hreduce(p->f, op, in[0]);
	if (!strncmp(name, "lane_", 5) && nin == 1)
		*out = lx_lane(p->f, in[0], (uint32_t)strtoul(name + 5, NULL, 10));
	if (!strcmp(name, "pack"))
		*out = lx_pack(p->f, in, nin);
	for (WarpOp k = 0; k < WARP_COUNT; k++)
		if (!strcmp(name, warp_name(k)) && nin == (warp_is_vote(k) ? 1 : 2))
			*out = lx_warp(p->f, k, in[0], in[1]);
	for (Shuffle k = 0; k < SHUFFLE_COUNT && nin == 2; k++)
		if (!strcmp(name, shuffle_name(k)))
			*out = lx_shuffle(p->f, k, in[0], in[1]);
	return out->i;
}

/* Parses NAME(..), NAME:type(..). */
static bool call(LoopParser *p, char *name, Lx *out)
{
	LType t = {DT_none, 0};
	Lx in[4] = {{0}};
	uint32_t nin;
	ScOp op;
	if (skip(p, ":") && !type_of(word(p, "("), &t))
		return false;
	if (!skip(p, "(") || !exprs(p, ')', in, 4, &nin) || !skip(p, ")") || !nin)
		return false;
	if (lanes_call(p, name, t, in, nin, out))
		return true;
	unsigned known = known_of(name);
	const ScFn *fn = scalar_by_name(name);
	const ScTable *table = lib_table(name);
	if (find_op(name, &op) && sc_arity(op) == nin)
		*out = operation(p, op, t, in, nin, known);
	else if (fn && fn->nparam == nin)
		*out = lx_fn(p->f, fn, lx_type(p->f, in[0]).lanes, in, nin);
	else if (table)
		*out = lx_table(p->f, table, in[0]);
	return out->i;
}

/* Parses (a + b). */
static bool infix(LoopParser *p, Lx *out)
{
	static const char *const name[] = {"+", "-", "*", "/", "%", "<", "<=", ">", ">="};
	static const ScOp op[] = {SC_add, SC_sub, SC_mul, SC_floordiv, SC_rem,
				  SC_lt,  SC_le,  SC_gt,  SC_ge};
	Lx in[2];
	if (!expr(p, &in[0]) || !in[0].i || !skip(p, " "))
		return false;
	char *w = arena_strndup(p->arena, p->s, strcspn(p->s, " "));
	p->s += strlen(w);
	if (!skip(p, " ") || !expr(p, &in[1]) || !in[1].i || !skip(p, ")"))
		return false;
	unsigned known = known_of(w);
	for (uint32_t k = 0; k < sizeof op / sizeof *op; k++)
		if (!strcmp(name[k], w))
			return *out = operation(p, op[k], (LType){DT_none, 0}, in, 2, known), true;
	return false;
}

static bool literal(LoopParser *p, Lx *out)
{
	const char *w = word(p, ":, )]{}\n;");
	LType t = {DT_i64, 1};
	if (skip(p, ":") && !type_of(word(p, ", )]{}\n;"), &t))
		return false;
	bool real = dtype_is_float(t.dtype);
	*out = real ? lx_float(p->f, t, strtod(w, NULL))
		    : lx_int_of(p->f, t, (int64_t)strtoll(w, NULL, 10));
	return *w;
}

/* Parses a temporary, a parameter, a variable; or a call. */
static bool named(LoopParser *p, Lx *out)
{
	uint32_t k;
	char *w = arena_strndup(p->arena, p->s, strcspn(p->s, "(:, )]{}\n;"));
	p->s += strlen(w);
	if (*p->s == '(' || *p->s == ':')
		return call(p, w, out);
	if (*w == 't' && isdigit((unsigned char)w[1]) && !strchr(w, '.')) {
		k = (uint32_t)strtoul(w + 1, NULL, 10);
		*out = k < p->temp.n ? p->temp.data[k] : (Lx){0};
		return out->i;
	}
	if (!strcmp(w, "thread"))
		return *out = lx_thread(p->f), true;
	if (!find_name(p, w, &k))
		return false;
	bool param = *w == '$' || (*w == 'p' && isdigit((unsigned char)w[1]) && !strchr(w, '.'));
	*out = param ? lx_param(p->f, k) : lx_var(p->f, (Lv){k});
	return true;
}

static bool expr(LoopParser *p, Lx *out)
{
	int64_t k;
	*out = (Lx){0};
	if (skip_none(p))
		return true;
	if (skip(p, "("))
		return infix(p, out);
	if (skip(p, "&b"))
		return number(p, &k) && skip(p, "(") && expr(p, out) && out->i && skip(p, ")") &&
		       (*out = lx_addr(p->f, (uint32_t)k, *out), true);
	bool value = isdigit((unsigned char)*p->s) || *p->s == '-' || !strncmp(p->s, "inf:", 4) ||
		     !strncmp(p->s, "nan:", 4);
	return value ? literal(p, out) : named(p, out);
}

/* ---- statements ---- */

static bool block(LoopParser *p, Lb *out);

static bool new_variable(LoopParser *p, const char *name, LType t, LsVariable how, Lv *v)
{
	const char *dot = strrchr(name, '.');
	const char *stem = dot ? arena_strndup(p->arena, name, (size_t)(dot - name)) : name;
	array_push(p->arena, &p->f->lv,
		   (LvData){.type = t, .name = stem, .is_mutable = how == V_VAR || how == V_ARRAY});
	*v = (Lv){p->f->lv.n - 1};
	name_is(p, name, v->i);
	return *name;
}

static bool variable(LoopParser *p, LsVariable how, bool typed, Lv *v)
{
	LType t = {DT_i64, 1};
	const char *name = word(p, ": {\n");
	if (how == V_SET)
		return find_name(p, name, &v->i);
	return (!typed || (skip(p, ": ") && type_of(word(p, " "), &t))) &&
	       new_variable(p, name, t, how, v);
}

static bool is_shared(const LoopFn *f, uint32_t v)
{
	for (uint32_t k = 0; k < f->ls.n; k++)
		if (f->ls.data[k].kind == LS_SHARED && f->ls.data[k].v.i == v)
			return true;
	return false;
}

/* Parses @x.f32, b0.f32, a.7.f32. */
static bool memory(LoopParser *p, LMem *m)
{
	const char *w = word(p, "[\n"), *dot = strrchr(w, '.');
	uint32_t k;
	if (!dot || !find_name(p, arena_strndup(p->arena, w, (size_t)(dot - w)), &k))
		return false;
	bool buffer =
		*w == '@' || (*w == 'b' && isdigit((unsigned char)w[1]) && strchr(w, '.') == dot);
	LMemKind kind = buffer ? MEM_BUFFER : is_shared(p->f, k) ? MEM_SHARED : MEM_LOCAL;
	*m = (LMem){kind, k, dtype_parse(dot + 1, (uint32_t)strlen(dot + 1))};
	return m->dtype != DT_none;
}

static bool arguments(LoopParser *p, char letter, LsData *s)
{
	enum { MOST = 4096 };
	Lx *x = ARENA_ARRAY(p->arena, Lx, MOST);
	uint32_t n, before = letter == 'p' ? s->nbuf : 0;
	memcpy(x, s->arg ? s->arg : x, before * sizeof *x);
	if (!exprs(p, letter == 'u' ? ';' : ')', x + before, MOST - before, &n))
		return false;
	s->arg = x;
	s->narg = before + n;
	s->nbuf = letter == 'u' ? n : s->nbuf;
	return true;
}

static bool count_field(LoopParser *p, char letter, LsData *s)
{
	int64_t n;
	bool ok = number(p, &n);
	if (letter == 'k')
		s->k = (uint32_t)n;
	else if (letter == 'c')
		s->count = (uint64_t)n;
	else
		s->step = n;
	return ok;
}

static bool dtype_field(LoopParser *p, LsData *s)
{
	const char *w = word(p, " [\n");
	s->dtype = dtype_parse(w, (uint32_t)strlen(w));
	if (ls_row(s->kind)->v == V_ARRAY)
		p->f->lv.data[s->v.i].type.dtype = s->dtype;
	return s->dtype != DT_none;
}

/* Parses acc.3[1]. */
static bool fragment(LoopParser *p, LFrag *r)
{
	int64_t k;
	if (!find_name(p, word(p, "[ \n"), &r->of.i) || !skip(p, "[") || !number(p, &k) ||
	    !skip(p, "]"))
		return false;
	r->k = (uint32_t)k;
	return true;
}

/* Parses 16, 32. */
static bool shape(LoopParser *p, LsData *s)
{
	int64_t rows, cols;
	if (!number(p, &rows) || !skip(p, ", ") || !number(p, &cols))
		return false;
	s->rows = (uint32_t)rows;
	s->cols = (uint32_t)cols;
	return true;
}

static bool frag_op(LoopParser *p, LsData *s)
{
	const char *w = word(p, " \n");
	for (s->k = 0; s->k < FRAG_OPS && strcmp(frag_row((FragOp)s->k)->name, w); s->k++)
		;
	return s->k < FRAG_OPS;
}

/* Notes whether the variable is not negative, which is asked for when expressions over the
 * variable are made. */
static void know_sign(LoopParser *p, const LsData *s)
{
	LsVariable v = ls_row(s->kind)->v;
	if (v == V_LET || v == V_LOOP)
		p->f->lv.data[s->v.i].nonneg = lx_nonneg(p->f, s->x);
}

static bool field(LoopParser *p, char letter, LsData *s)
{
	switch (letter) {
	case 'v': case 'n': return variable(p, ls_row(s->kind)->v, letter == 'v', &s->v);
	case 'x': return expr(p, &s->x);
	case 'y': return expr(p, &s->y);
	case 'o': return expr(p, &s->offset);
	case 'm': return memory(p, &s->mem);
	case 'g': return memory(p, &s->from);
	case 'w': return !skip(p, " where ") || expr(p, &s->mask);
	case 'l': s->k = skip(p, " by lanes"); return true;
	case 's': s->step = 1; return !skip(p, " step ") || count_field(p, letter, s);
	case 'b': know_sign(p, s); return block(p, &s->body);
	case 'e': return !skip(p, " else") || block(p, &s->other);
	case 'k': case 'c': return count_field(p, letter, s);
	case 'd': return dtype_field(p, s);
	case 'a': case 'u': case 'p': return arguments(p, letter, s);
	case 'i': s->in_order = skip(p, " in order"); return true;
	case 'r':
		s->drops = skip(p, " without odd")    ? DROPS_ODD
			   : skip(p, " without even") ? DROPS_EVEN
						      : DROPS_NONE;
		return true;
	case '0': case '1': case '2': return fragment(p, &s->frag[letter - '0']);
	case 'h': return shape(p, s);
	case 'q': return frag_op(p, s);
	case 'z': s->passing = skip(p, " passing"); return true;
	case 'j': s->same_phase = skip(p, " same_phase"); return true;
	case 't': s->text = word(p, "\n"); return true;
	default: return false; /* what text does not tell: a user's operator */
	}
}

static bool form(LoopParser *p, LsData *s)
{
	for (const char *c = ls_row(s->kind)->form; *c; c++) {
		p->furthest = p->s > p->furthest ? p->s : p->furthest;
		if (!(*c == '$' ? field(p, *++c, s) : *c == *p->s && p->s++))
			return false;
	}
	return *p->s == '\n';
}

/* Parses a statement, as the kind whose form fits. */
static bool statement(LoopParser *p)
{
	const char *start = p->s;
	uint32_t nvar = p->f->lv.n, nblock = p->f->block.n;
	for (LsKind kind = 0; kind < LS_COUNT; kind++) {
		LsData s = {.kind = kind};
		if (form(p, &s)) {
			know_sign(p, &s);
			array_push(p->arena, &p->f->ls, s);
			array_push(p->arena, &p->f->block.data[p->block.i].stmt, p->f->ls.n - 1);
			return skip(p, "\n");
		}
		p->s = start;
		p->f->lv.n = nvar;
		p->f->block.n = nblock;
	}
	return false;
}

static void indent(LoopParser *p)
{
	p->s += strspn(p->s, " ");
}

/* Parses tN = EXPR. */
static bool temporary(LoopParser *p)
{
	const char *start = p->s;
	int64_t k;
	Lx x;
	if (!skip(p, "t") || !isdigit((unsigned char)*p->s) || !number(p, &k) || !skip(p, " = ") ||
	    !expr(p, &x) || !skip(p, "\n")) {
		p->s = start;
		return false;
	}
	while (p->temp.n <= (uint64_t)k)
		array_push(p->arena, &p->temp, (Lx){0});
	p->temp.data[k] = x;
	return true;
}

static bool statements(LoopParser *p)
{
	for (indent(p); *p->s != '}'; indent(p))
		if (!temporary(p) && !statement(p))
			return false;
	return skip(p, "}");
}

static bool block(LoopParser *p, Lb *out)
{
	Lb outer = p->block;
	if (!skip(p, " {\n"))
		return false;
	array_push(p->arena, &p->f->block, (struct LBlock){{0}});
	p->block = *out = (Lb){p->f->block.n - 1};
	bool ok = statements(p);
	p->block = outer;
	return ok;
}

/* ---- functions ---- */

/* Parses " @x: f32 read written restrict align 4". */
static bool buffer(LoopParser *p)
{
	const char *name = word(p, ":\n");
	LType t;
	int64_t align;
	if (!skip(p, ": ") || !type_of(word(p, " "), &t))
		return false;
	LArg arg = {.name = name + (*name == '@'), .dtype = t.dtype};
	arg.read = skip(p, " read");
	arg.written = skip(p, " written");
	arg.restrict_ok = skip(p, " restrict");
	if (!skip(p, " align ") || !number(p, &align) || !skip(p, "\n"))
		return false;
	arg.align = (uint32_t)align;
	return name_new(p, name, loop_buf(p->f, arg));
}

/* Parses "threads 128 shared 49152", if that stands there. */
static bool threads(LoopParser *p)
{
	int64_t n, shared;
	if (!skip(p, "threads "))
		return true;
	TRY(number(p, &n) && skip(p, " shared ") && number(p, &shared) && skip(p, "\n"));
	loop_block(p->f, (uint32_t)n, (uint64_t)shared);
	return true;
}

static bool part(LoopParser *p, Lb *out)
{
	return block(p, out) && skip(p, "\n");
}

static bool function(LoopParser *p)
{
	if (!skip(p, "loop "))
		return false;
	p->f = loop_new(p->ir, word(p, "("));
	for (skip(p, "("); !skip(p, ")"); skip(p, ", ")) {
		const char *name = word(p, ",)\n");
		if (!*name)
			return false;
		TRY(name_new(p, name, loop_param(p->f, name + (*name == '$'))));
	}
	if (!skip(p, "\n"))
		return false;
	while (skip(p, "  "))
		if (!buffer(p))
			return false;
	p->f->open.n = 0;
	if (!threads(p) || (skip(p, "enter") && !part(p, &p->f->enter)) || !skip(p, "task "))
		return false;
	name_is(p, word(p, " \n"), p->f->task.i);
	p->block = p->f->body;
	return skip(p, " {\n") && statements(p) && skip(p, "\n") &&
	       (!skip(p, "leave") || part(p, &p->f->leave));
}

LoopFn *loop_parse(Ir *ir, const char *text)
{
	LoopParser p = {
		.ir = ir, .arena = ir->ctx->arena, .text = text, .s = text, .furthest = text};
	intern_init(&p.name, p.arena);
	if (function(&p))
		return p.f;
	uint32_t line = 1;
	const char *at = p.s > p.furthest ? p.s : p.furthest;
	for (const char *c = text; c < at; c++)
		line += *c == '\n';
	ctx_error(ir->ctx, NULL, "loop IR, line %u: unexpected \"%.40s\"", line, at);
	return NULL;
}
