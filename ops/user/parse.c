/* Reading a WeftOpDef: the schema, the types of tensors, the size of the workspace.
 *
 *   types  = tensors "->" tensors
 *   tensor = dtype "[" [ "..." ] { dim } "]"             commas between
 *   dim    = sum; sum = product { ("+" | "-") product }; product = factor { ("*" | "/" | "%")
 *          factor }
 *   factor = integer | name | ("min" | "max") "(" sum "," sum ")" | "(" sum ")" */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "base/scan.h"
#include "ops/user/userop.h"

enum { MAX_DEPTH = 32 /* of brackets */, MAX_TEXT = 4096 };

typedef struct {
	Ctx *ctx;
	UserOp *op;
	const char *what, *text, *p; /* "types": the text being read */
	uint32_t depth;
	bool *own; /* by variable: a dimension by itself of an operand */
	bool results; /* being read */
	const char *any[MAX_USER_VARS];
	ARRAY(UserType) type;
} DefReader;

__attribute__((format(printf, 2, 3))) static bool(refuse)(DefReader *r, const char *fmt, ...)
{
	Text t;
	va_list ap;
	text_init(&t, r->ctx->scratch);
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	return ctx_error(r->ctx, r->op->where, "%s: %s",
			 r->op->name ? r->op->name : r->op->def.schema, t.data);
}
#define refuse(...) ctx_false(refuse(__VA_ARGS__))

static bool expected(DefReader *r, const char *what)
{
	return refuse(r, "%s: expected %s at \"%.24s\" in \"%s\"", r->what, what, r->p, r->text);
}

static void begin(DefReader *r, const char *what, const char *text)
{
	r->what = what;
	r->text = r->p = text;
	r->depth = 0;
}

/* Reads a word. Returns NULL if there is none. */
static const char *word(DefReader *r)
{
	scan_blanks(&r->p);
	const size_t n = scan_word(r->p);
	r->p += n;
	return n ? arena_strndup(r->ctx->arena, r->p - n, n) : NULL;
}

/* ---- expressions ---- */

static const UserExpr *sum(DefReader *r);

static const UserExpr *expr_new(DefReader *r, UserExpr e)
{
	UserExpr *x = ARENA_NEW(r->ctx->arena, UserExpr);
	*x = e;
	return x;
}

static int32_t int_argument(const DefReader *r, const char *name)
{
	const Schema *s = &r->op->schema;
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].kind == ARG_int && !strcmp(s->arg[k].name, name))
			return (int32_t)k;
	return -1;
}

static const UserExpr *variable(DefReader *r, const char *name)
{
	uint32_t k = 0;
	while (k < r->op->var.n && strcmp(r->op->var.data[k].name, name) != 0)
		k++;
	if (k == MAX_USER_VARS)
		return refuse(r, "%s: more than %d names", r->what, MAX_USER_VARS), NULL;
	if (k == r->op->var.n)
		array_push(r->ctx->arena, &r->op->var, (UserVar){name, int_argument(r, name)});
	return expr_new(r, (UserExpr){.kind = UX_VAR, .var = k});
}

static const UserExpr *number(DefReader *r)
{
	uint64_t v;
	if (!scan_number(&r->p, INT64_MAX, &v))
		return expected(r, "a number of 63 bits"), NULL;
	return expr_new(r, (UserExpr){.kind = UX_INT, .i = (int64_t)v});
}

static const UserExpr *factor(DefReader *r)
{
	const UserExpr *a, *b = NULL;
	scan_blanks(&r->p);
	if (scan_is_digit(*r->p))
		return number(r);
	const char *name = word(r);
	bool least = name && !strcmp(name, "min"), most = name && !strcmp(name, "max");
	if (name && !((least || most) && scan_accept(&r->p, "(")))
		return variable(r, name);
	if (!name && !scan_accept(&r->p, "("))
		return expected(r, "a number or a name"), NULL;
	if (++r->depth > MAX_DEPTH)
		return refuse(r, "%s: more than %d brackets in each other", r->what, MAX_DEPTH),
		       NULL;
	if (!(a = sum(r)))
		return NULL;
	if (name && !scan_accept(&r->p, ","))
		return expected(r, "\",\""), NULL;
	if (name && !(b = sum(r)))
		return NULL;
	if (!scan_accept(&r->p, ")"))
		return expected(r, "\")\""), NULL;
	r->depth--;
	return name ? expr_new(r, (UserExpr){.kind = least ? UX_MIN : UX_MAX, .a = a, .b = b}) : a;
}

static bool operand(void *reader, void *value)
{
	return (*(const UserExpr **)value = factor(reader));
}

static bool join(void *reader, int op, const char *from, void *left, const void *right)
{
	DefReader *r = reader;
	const UserExpr **a = left, *b = *(const UserExpr *const *)right;
	(void)from;
	if ((op == UX_DIV || op == UX_MOD) && (b->kind != UX_INT || b->i < 1))
		return expected(r, "a positive number to divide by before this");
	*a = expr_new(r, (UserExpr){.kind = (UserExprKind)op, .i = b->i, .a = *a, .b = b});
	return true;
}

static const UserExpr *sum(DefReader *r)
{
	static const ScanInfix infix[] = {{"*", 2, UX_MUL},
					  {"/", 2, UX_DIV},
					  {"%", 2, UX_MOD},
					  {"+", 1, UX_ADD},
					  {"->", 0},
					  {"-", 1, UX_SUB},
					  {NULL}};
	static const ScanGrammar sums = {infix, sizeof(UserExpr *), operand, join};
	const UserExpr *e;
	return scan_expression(&sums, &r->p, r, &e) ? e : NULL;
}

/* ---- types ---- */

static bool element_type(DefReader *r, UserType *t)
{
	const char *name = word(r);
	if (!name)
		return expected(r, "a dtype");
	t->dtype = dtype_parse(name, (uint32_t)strlen(name));
	if (dtype_is_complex(t->dtype))
		return refuse(r, "types: complex numbers (%s) are not supported", name);
	if (t->dtype != DT_none)
		return true;
	if (!isupper((unsigned char)*name))
		return refuse(r, "types: no dtype %s", name);
	while (t->any < r->op->nany && strcmp(r->any[t->any], name) != 0)
		t->any++;
	if (t->any < r->op->nany)
		return true;
	if (r->results)
		return refuse(r, "types: the dtype %s is no operand's", name);
	if (r->op->nany == MAX_USER_VARS)
		return refuse(r, "types: more than %d names of dtypes", MAX_USER_VARS);
	r->any[r->op->nany++] = name;
	return true;
}

static bool tensor(DefReader *r)
{
	UserType t = {0};
	TRY(element_type(r, &t));
	if (!scan_accept(&r->p, "["))
		return expected(r, "\"[\"");
	t.leading = scan_accept(&r->p, "...");
	bool more = !scan_accept(&r->p, "]");
	if (t.leading && more && !scan_accept(&r->p, ","))
		return expected(r, "\",\" or \"]\"");
	for (; more; more = !scan_accept(&r->p, "]")) {
		if (t.rank && !scan_accept(&r->p, ","))
			return expected(r, "\",\" or \"]\"");
		if (t.rank == MAX_RANK)
			return refuse(r, "types: more than %d dimensions", MAX_RANK);
		const UserExpr *e = sum(r);
		TRY(e);
		if (e->kind == UX_VAR && !r->results)
			r->own[e->var] = true;
		t.dim[t.rank++] = e;
	}
	array_push(r->ctx->arena, &r->type, t);
	return true;
}

/* Reads the types of `want` tensors, up to `end` ("" is that of the text). */
static bool tensors(DefReader *r, const char *end, uint32_t want, const char *what)
{
	uint32_t first = r->type.n;
	while (*end ? !scan_accept(&r->p, end) : (scan_blanks(&r->p), *r->p != 0)) {
		if (r->type.n > first && !scan_accept(&r->p, ","))
			return expected(r, *end ? "\",\" or \"->\"" : "\",\" or the end");
		if (r->type.n - first == want)
			return refuse(r, "types: more %s than the schema has, which is %u", what,
				      want);
		TRY(tensor(r));
	}
	return r->type.n - first == want ||
	       refuse(r, "types: %u %s, the schema has %u", r->type.n - first, what, want);
}

/* Checks that each name is what an operand or an argument gives, and that "..." is an operand's. */
static bool check_names(DefReader *r)
{
	bool leading = false;
	for (uint32_t k = 0; k < r->op->var.n; k++)
		if (r->op->var.data[k].arg < 0 && !r->own[k])
			return refuse(r,
				      "%s: %s is neither a dimension of its own of an operand nor "
				      "an int argument",
				      r->what, r->op->var.data[k].name);
	for (uint32_t k = 0; k < r->op->nin; k++)
		leading |= r->type.data[k].leading;
	for (uint32_t k = r->op->nin; k < r->type.n; k++)
		if (r->type.data[k].leading && !leading)
			return refuse(r,
				      "types: the dimensions \"...\" of a result are no operand's");
	return true;
}

static bool read_types(DefReader *r)
{
	UserOp *op = r->op;
	bool own[MAX_USER_VARS] = {false};
	r->own = own;
	begin(r, "types", op->def.types);
	TRY(tensors(r, "->", op->nin, "operands"));
	r->results = true;
	TRY(tensors(r, "", op->nout, "results"));
	TRY(check_names(r));
	op->type = r->type.data;
	if (!op->def.work_bytes)
		return true;
	begin(r, "work_bytes", op->def.work_bytes);
	op->work = sum(r);
	TRY(op->work);
	scan_blanks(&r->p);
	return *r->p ? expected(r, "the end") : check_names(r);
}

/* ---- the schema ---- */

static bool check_argument(DefReader *r, const Arg *a)
{
	bool known = a->kind == ARG_tensor || a->kind == ARG_int || a->kind == ARG_ints ||
		     a->kind == ARG_float || a->kind == ARG_bool;
	r->op->nin += a->kind == ARG_tensor;
	if (a->writes)
		return refuse(r, "schema: argument %s is written: return its new value as a result",
			      a->name);
	if (a->optional || !known)
		return refuse(r, "schema: argument %s is no Tensor, int, float, bool or int[]",
			      a->name);
	if (a->shares)
		return refuse(r, "schema: argument %s is a view: results have memory of their own",
			      a->name);
	return op_default_reads(a) ||
	       refuse(r, "schema: the default of %s is \"%s\", expected %s", a->name, a->text,
	              a->kind == ARG_int     ? "an integer of 64 bits"
	              : a->kind == ARG_float ? "a number"
	              : a->kind == ARG_bool  ? "True or False"
	                                     : "a list of integers of 64 bits");
}

static bool check_name(DefReader *r, const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	bool ok = n && !strncmp(name + n, "::", 2) && strlen(name) > n + 2 &&
		  !strchr(name + n + 2, ':');
	for (const char *p = name; *p && ok; p++)
		ok = isalnum((unsigned char)*p) || strchr("_:.", *p);
	return ok || refuse(r, "schema: expected a name as mylib::decay, got \"%s\"", name);
}

static bool read_schema(DefReader *r)
{
	UserOp *op = r->op;
	const char *err;
	if (!schema_parse(r->ctx->arena, op->def.schema, &op->schema, &err))
		return refuse(r, "schema: %s", err);
	TRY(check_name(r, op->schema.name));
	op->name = op->schema.name;
	size_t n = strlen(op->name), tail = strlen(".default");
	if (n > tail && !strcmp(op->name + n - tail, ".default"))
		op->name = arena_strndup(r->ctx->arena, op->name, n - tail);
	op->said = op->name;
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		TRY(check_argument(r, &op->schema.arg[k]));
		for (uint32_t j = 0; j < k; j++)
			if (!strcmp(op->schema.arg[j].name, op->schema.arg[k].name))
				return refuse(r, "schema: two arguments are called %s",
					      op->schema.arg[k].name);
	}
	if (!op->schema.tensor_results)
		return refuse(r, "schema: results are Tensors");
	op->nout = op->schema.nresult;
	if (op->nout > MAX_ARGS)
		return refuse(r, "schema: more than %d results", MAX_ARGS);
	return op->nout || userop_is(op, WEFT_OP_EFFECT) ||
	       refuse(r, "schema: it has no results, so without WEFT_OP_EFFECT it would never be "
			 "called");
}

static const char *copy(Ctx *ctx, const char *s)
{
	return s ? arena_strdup(ctx->arena, s) : NULL;
}

static bool is_long(const char *s)
{
	return s && strlen(s) > MAX_TEXT;
}

const UserOp *userop_new(Ctx *ctx, const char *where, const WeftOpDef *def)
{
	if (def->size != sizeof *def) {
		ctx_error(ctx, where,
			  "its definition has %u bytes, expected %zu: it was compiled with another "
			  "weft_op.h",
			  def->size, sizeof *def);
		return NULL;
	}
	if (!def->schema || !def->types || !def->symbol) {
		ctx_error(ctx, where, "%s: its definition has no %s",
			  def->schema ? def->schema : "?",
			  !def->schema  ? "schema"
			  : !def->types ? "types"
					: "symbol");
		return NULL;
	}
	if (is_long(def->schema) || is_long(def->types) || is_long(def->work_bytes) ||
	    is_long(def->vjp) || is_long(def->jvp)) {
		ctx_error(ctx, where, "%.64s...: texts have at most %d characters", def->schema,
			  MAX_TEXT);
		return NULL;
	}
	UserOp *op = ARENA_NEW(ctx->arena, UserOp);
	*op = (UserOp){.def = *def, .where = copy(ctx, where)};
	op->def.schema = copy(ctx, def->schema);
	op->def.types = copy(ctx, def->types);
	op->def.work_bytes = copy(ctx, def->work_bytes);
	op->def.symbol = copy(ctx, def->symbol);
	op->def.user_symbol = copy(ctx, def->user_symbol);
	op->def.vjp = copy(ctx, def->vjp);
	op->def.jvp = copy(ctx, def->jvp);
	DefReader r = {.ctx = ctx, .op = op};
	enum {
		KNOWN = WEFT_OP_EFFECT | WEFT_OP_BATCH_LEADING | WEFT_OP_THREAD_SAFE |
			WEFT_OP_DEVICE
	};
	if (def->flags & ~(uint32_t)KNOWN)
		return refuse(&r, "flags of a later version of weft_op.h"), NULL;
	return read_schema(&r) && read_types(&r) ? op : NULL;
}
