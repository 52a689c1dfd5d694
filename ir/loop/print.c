/* Text of a loop function. In legal functions +.i is an addition that does not overflow, +.n one of
 * what is not negative either (loop_known). Anonymous text numbers everything in order of first
 * appearance and leaves comments out, so that equal code has equal text whatever it was named
 * after.
 *
 * The form of a statement (LsRow) is its text, in which stand for:
 *   $v  the new variable and its type   $n  the variable         $m  memory and the dtype that lies
 * there $x $y $o  expressions, offset       $w  the mask, if any     $l  a gather by a load for
 * each lane $a  the arguments                   $u  buffers among them   $p  parameters among them
 *   $k $c  k, count                     $d  dtype                $s  the step, unless 1
 *   $b  the body $e the other block $j whether same_phase $z whether passing $t the text
 *   $f  a call of a user's operator     $i  whether in order     $r  lanes that are left out
 *   $g  the memory that is copied from */
#include "ir/loop/loop.h"
#include "ir/op/userop.h"

#include <string.h>

typedef struct {
	const LoopFn *f;
	Text *t;
	bool anonymous;
	const char **param, **buf; /* names, each another one; anonymous: NULL */
	uint32_t indent;
	uint32_t nvar, ntemp;
	uint32_t *var;   /* number by variable, 0 not yet met */
	uint32_t *temp;  /* by expression: number of a shared subexpression, 0 none */
	LoopShared shared;
} LoopPrinter;

static const LxData *at(const LoopPrinter *p, Lx x)
{
	return &p->f->lx.data[x.i];
}

static void line(LoopPrinter *p)
{
	for (uint32_t k = 0; k < p->indent; k++)
		text_add(p->t, "  ");
}

static void print_type(LoopPrinter *p, LType type)
{
	text_add(p->t, dtype_name(type.dtype));
	if (type.lanes != 1)
		text_printf(p->t, "x%u", type.lanes);
}

static void print_var(LoopPrinter *p, Lv v)
{
	if (!p->var[v.i])
		p->var[v.i] = ++p->nvar;
	if (p->anonymous)
		text_printf(p->t, "v%u", p->var[v.i]);
	else
		text_printf(p->t, "%s.%u", p->f->lv.data[v.i].name, p->var[v.i]);
}

static void print_expr(LoopPrinter *p, Lx x);

static void print_list(LoopPrinter *p, const Lx *in, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (k)
			text_add(p->t, ", ");
		print_expr(p, in[k]);
	}
}

static const char *infix(const LxData *d)
{
	if (d->kind != LX_SC || d->nin != 2)
		return NULL;
	switch (d->sc) {
	case SC_add: return "+";
	case SC_sub: return "-";
	case SC_mul: return "*";
	case SC_floordiv: return "/";
	case SC_rem: return "%";
	case SC_lt: return "<";
	case SC_le: return "<=";
	case SC_gt: return ">";
	case SC_ge: return ">=";
	default: return NULL;
	}
}

static void print_literal(LoopPrinter *p, const LxData *d)
{
	if (d->kind == LX_INT)
		text_printf(p->t, "%lld", (long long)d->u.i);
	else
		text_double(p->t, d->u.f);
	if (d->type.dtype == DT_i64 && d->type.lanes == 1)
		return;
	text_char(p->t, ':');
	print_type(p, d->type);
}

/* Prints what legal functions know of an operation. */
static void print_known(LoopPrinter *p, const LxData *d)
{
	if (d->kind == LX_SC && d->known)
		text_add(p->t, d->known & KNOWN_NONNEG ? ".n" : ".i");
}

static void print_call(LoopPrinter *p, const char *name, const LxData *d, bool typed)
{
	text_add(p->t, name);
	print_known(p, d);
	if (typed) {
		text_char(p->t, ':');
		print_type(p, d->type);
	}
	text_char(p->t, '(');
	print_list(p, d->in, d->nin);
	text_char(p->t, ')');
}

static void print_sc(LoopPrinter *p, const LxData *d)
{
	const char *op = infix(d);
	if (!op) {
		print_call(p, sc_name(d->sc), d,
			   d->sc == SC_convert || d->sc == SC_fit || d->sc == SC_bitcast);
		return;
	}
	text_char(p->t, '(');
	print_expr(p, d->in[0]);
	text_printf(p->t, " %s", op);
	print_known(p, d);
	text_char(p->t, ' ');
	print_expr(p, d->in[1]);
	text_char(p->t, ')');
}

static void print_fresh(LoopPrinter *p, const LxData *d)
{
	switch (d->kind) {
	case LX_INT:
	case LX_FLOAT:
		print_literal(p, d);
		break;
	case LX_PARAM:
		if (p->anonymous || d->u.k >= p->f->param.n)
			text_printf(p->t, "p%u", d->u.k);
		else
			text_printf(p->t, "$%s", p->param[d->u.k]);
		break;
	case LX_VAR:
		print_var(p, d->u.v);
		break;
	case LX_SC:
		print_sc(p, d);
		break;
	case LX_FN:
		print_call(p, d->fn->name, d, false);
		break;
	case LX_SPLAT:
		print_call(p, "splat", d, true);
		break;
	case LX_RAMP:
		print_call(p, "ramp", d, true);
		break;
	case LX_MASK:
		print_call(p, "mask", d, true);
		break;
	case LX_HREDUCE:
		text_add(p->t, "reduce_");
		print_call(p, sc_name(d->sc), d, false);
		break;
	case LX_ANY:
		print_call(p, "any", d, false);
		break;
	case LX_SHUFFLE:
		print_call(p, shuffle_name((Shuffle)d->u.k), d, false);
		break;
	case LX_TABLE:
		print_call(p, d->table->name, d, false);
		break;
	case LX_LANE:
		print_call(p, arena_printf(p->f->ir->ctx->scratch, "lane_%u", d->u.k), d, false);
		break;
	case LX_PACK:
		print_call(p, "pack", d, false);
		break;
	case LX_THREAD:
		text_add(p->t, "thread");
		break;
	case LX_WARP:
		print_call(p, warp_name((WarpOp)d->u.k), d, false);
		break;
	case LX_ADDR:
		text_printf(p->t, "&b%u", d->u.k);
		print_call(p, "", d, false);
		break;
	}
}

static void print_expr(LoopPrinter *p, Lx x)
{
	if (!x.i)
		text_add(p->t, "none");
	else if (p->temp[x.i])
		text_printf(p->t, "t%u", p->temp[x.i]);
	else
		print_fresh(p, at(p, x));
}

/* ---- statements ---- */

/* Prints shared subexpressions once, ahead of the statement. */
static void print_shared(LoopPrinter *p, const LsData *s)
{
	loop_shared(p->f, s, &p->shared);
	for (uint32_t k = 0; k < p->shared.x.n; k++) {
		Lx x = p->shared.x.data[k];
		line(p);
		text_printf(p->t, "t%u = ", p->ntemp + 1);
		print_fresh(p, at(p, x));
		text_char(p->t, '\n');
		p->temp[x.i] = ++p->ntemp;
	}
}

static void forget_shared(LoopPrinter *p, const LsData *s)
{
	loop_shared(p->f, s, &p->shared);
	for (uint32_t k = 0; k < p->shared.x.n; k++)
		p->temp[p->shared.x.data[k].i] = 0;
}

static void print_mem(LoopPrinter *p, LMem m)
{
	if (lmem_is_array(m))
		print_var(p, (Lv){m.k});
	else if (p->anonymous || m.k >= p->f->buf.n)
		text_printf(p->t, "b%u", m.k);
	else
		text_printf(p->t, "@%s", p->buf[m.k]);
	text_printf(p->t, ".%s", dtype_name(m.dtype));
}

static void print_mask(LoopPrinter *p, Lx mask)
{
	if (!mask.i)
		return;
	text_add(p->t, " where ");
	print_expr(p, mask);
}

static void print_def(LoopPrinter *p, Lv v)
{
	print_var(p, v);
	text_add(p->t, ": ");
	print_type(p, p->f->lv.data[v.i].type);
}

static void print_stmt(LoopPrinter *p, const LsData *s);

static void print_stmts(LoopPrinter *p, Lb b)
{
	for (uint32_t k = 0; b.i && k < p->f->block.data[b.i].stmt.n; k++)
		print_stmt(p, &p->f->ls.data[p->f->block.data[b.i].stmt.data[k]]);
}

static void print_block(LoopPrinter *p, Lb b)
{
	text_add(p->t, " {\n");
	p->indent++;
	print_stmts(p, b);
	p->indent--;
	line(p);
	text_char(p->t, '}');
}

static void print_arg_name(LoopPrinter *p, int32_t buf)
{
	if (buf >= 0 && p->anonymous)
		text_printf(p->t, "b%d ", (int)buf);
	else if (buf >= 0)
		text_printf(p->t, "@%s ", p->buf[buf]);
}

/* Prints "lib::op(@x f32[n, 3], i64[] 5) -> (@y f32[n]) work @w n". */
static void print_user_call(LoopPrinter *p, const LsData *s)
{
	const LoopCall *c = s->call;
	const Lx *arg = s->arg;
	text_printf(p->t, "%s(", c->op->name);
	for (uint32_t k = 0; k < c->nin + c->nout; k++) {
		const struct LoopCallTensor *t = &c->tensor[k];
		text_add(p->t, k == c->nin ? ") -> (" : k ? ", " : "");
		print_arg_name(p, t->buf);
		text_printf(p->t, "%s[", dtype_name(t->dtype));
		print_list(p, arg, t->rank);
		text_add(p->t, t->nvalue ? "] " : "]");
		print_list(p, arg + t->rank, t->nvalue);
		arg += t->rank + t->nvalue;
	}
	text_printf(p->t, "%s) work ", c->nout ? "" : ") -> (");
	print_arg_name(p, c->work);
	print_expr(p, *arg);
}

static void print_frag(LoopPrinter *p, LFrag r)
{
	print_var(p, r.of);
	text_printf(p->t, "[%u]", r.k);
}

/* Prints what a letter of a form stands for. */
static void print_field(LoopPrinter *p, const LsData *s, char letter)
{
	switch (letter) {
	case 'v': print_def(p, s->v); break;
	case 'n': print_var(p, s->v); break;
	case 'x': print_expr(p, s->x); break;
	case 'y': print_expr(p, s->y); break;
	case 'o': print_expr(p, s->offset); break;
	case 'm': print_mem(p, s->mem); break;
	case 'g': print_mem(p, s->from); break;
	case 'w': print_mask(p, s->mask); break;
	case 'l': text_add(p->t, s->k ? " by lanes" : ""); break;
	case 's':
		if (s->step != 1)
			text_printf(p->t, " step %lld", (long long)s->step);
		break;
	case 'b': print_block(p, s->body); break;
	case 'e':
		if (s->other.i) {
			text_add(p->t, " else");
			print_block(p, s->other);
		}
		break;
	case 'k': text_printf(p->t, "%u", s->k); break;
	case 'c': text_printf(p->t, "%llu", (unsigned long long)s->count); break;
	case 'd': text_add(p->t, dtype_name(s->dtype)); break;
	case 'a': print_list(p, s->arg, s->narg); break;
	case 'u': print_list(p, s->arg, s->nbuf); break;
	case 'p': print_list(p, s->arg + s->nbuf, s->narg - s->nbuf); break;
	case 'f': print_user_call(p, s); break;
	case '0': case '1': case '2': print_frag(p, s->frag[letter - '0']); break;
	case 'h': text_printf(p->t, "%u, %u", s->rows, s->cols); break;
	case 'q': text_add(p->t, s->k < FRAG_OPS ? frag_row((FragOp)s->k)->name : "?"); break;
	case 'i': text_add(p->t, s->in_order ? " in order" : ""); break;
	case 'r':
		text_add(p->t, s->drops == DROPS_ODD    ? " without odd"
			       : s->drops == DROPS_EVEN ? " without even"
							: "");
		break;
	case 'z': text_add(p->t, s->passing ? " passing" : ""); break;
	case 'j': text_add(p->t, s->same_phase ? " same_phase" : ""); break;
	default: text_add(p->t, s->text); break;
	}
}

static void print_form(LoopPrinter *p, const LsData *s)
{
	for (const char *c = ls_row(s->kind)->form; *c; c++)
		if (*c == '$')
			print_field(p, s, *++c);
		else
			text_char(p->t, *c);
}

static void print_stmt(LoopPrinter *p, const LsData *s)
{
	if (s->kind == LS_COMMENT && p->anonymous)
		return;
	print_shared(p, s);
	line(p);
	print_form(p, s);
	text_char(p->t, '\n');
	forget_shared(p, s);
}

static void print_buf(LoopPrinter *p, uint32_t k)
{
	const LArg *b = &p->f->buf.data[k];
	if (p->anonymous)
		text_printf(p->t, "  b%u", k);
	else
		text_printf(p->t, "  @%s", p->buf[k]);
	text_printf(p->t, ": %s%s%s%s align %u\n", dtype_name(b->dtype), b->read ? " read" : "",
	            b->written ? " written" : "", b->restrict_ok ? " restrict" : "", b->align);
}

/* Prints "fn name(x.1: f32) -> f32 {" statements " result expression" "}". */
static void print_library_function(LoopPrinter *p)
{
	const LoopFn *f = p->f;
	text_printf(p->t, "fn %s(", f->name);
	for (uint32_t k = 0; k < f->arg.n; k++) {
		text_add(p->t, k ? ", " : "");
		print_def(p, f->arg.data[k]);
	}
	text_add(p->t, ") -> ");
	print_type(p, lx_type(f, f->result));
	text_add(p->t, " {\n");
	p->indent++;
	print_stmts(p, f->body);
	line(p);
	text_add(p->t, "result ");
	print_expr(p, f->result);
	text_add(p->t, "\n}\n");
}

static void print_part(LoopPrinter *p, const char *name, Lb b)
{
	if (!b.i)
		return;
	text_add(p->t, name);
	print_block(p, b);
	text_char(p->t, '\n');
}

/* Returns the name, or a name with the number k behind it that is not in the table yet. */
static const char *another(Intern *taken, const char *name, uint32_t k)
{
	bool fresh;
	for (intern(taken, name, strlen(name), &fresh); !fresh;
	     intern(taken, name, strlen(name), &fresh))
		name = arena_printf(taken->arena, "%s.%u", name, k);
	return name;
}

/* Gives parameters and buffers names of their own: those of equal sizes, or of one value that is
 * two operands, are equal in the function. */
static void name_arguments(LoopPrinter *p)
{
	Arena *arena = p->f->ir->ctx->arena;
	Intern params, bufs;
	intern_init(&params, arena);
	intern_init(&bufs, arena);
	p->param = ARENA_ARRAY(arena, const char *, p->f->param.n + 1);
	p->buf = ARENA_ARRAY(arena, const char *, p->f->buf.n + 1);
	for (uint32_t k = 0; k < p->f->param.n; k++)
		p->param[k] = another(&params, p->f->param.data[k], k + 1);
	for (uint32_t k = 0; k < p->f->buf.n; k++)
		p->buf[k] = another(&bufs, p->f->buf.data[k].name, k + 1);
}

void loop_print(const LoopFn *f, Text *t, bool anonymous)
{
	Arena *arena = f->ir->ctx->arena;
	LoopPrinter p = {.f = f, .t = t, .anonymous = anonymous};
	p.var = ARENA_ARRAY(arena, uint32_t, f->lv.n);
	p.temp = ARENA_ARRAY(arena, uint32_t, f->lx.n);
	if (!anonymous)
		name_arguments(&p);
	if (f->result.i) {
		print_library_function(&p);
		return;
	}
	text_printf(t, "loop %s(", anonymous ? "" : f->name);
	for (uint32_t k = 0; k < f->param.n; k++)
		if (anonymous)
			text_printf(t, "%sp%u", k ? ", " : "", k);
		else
			text_printf(t, "%s$%s", k ? ", " : "", p.param[k]);
	text_add(t, ")\n");
	for (uint32_t k = 0; k < f->buf.n; k++)
		print_buf(&p, k);
	if (f->threads != 1)
		text_printf(t, "threads %u shared %llu\n", f->threads,
			    (unsigned long long)f->shared_most);
	print_part(&p, "enter", f->enter);
	text_add(t, "task ");
	print_var(&p, f->task);
	print_block(&p, f->body);
	text_char(t, '\n');
	print_part(&p, "leave", f->leave);
}
