#include "ir/op/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const OpInfo op_none = {.schema = "none() -> ()", .infer = NULL};

/* Until a table is installed. */
static _Atomic(const Schema *) none_schema;
static _Atomic(const OpInfo *) none_overload;
static Op none_named[2];
static const OpTable only_none = {.n = 1,
				  .place = &(const OpPlace){.block = &op_none},
				  .schema = &none_schema,
				  .overload = &none_overload,
				  .named = none_named};

static const OpTable *table = &only_none;
/* Built once by op_init, then read only. */
static Intern by_name; /* name to an id; table->named has the op of that id */
static atomic_bool ready;
/* Schemas and overloads are built when they are first asked for: a program uses few of all
 * operators. */
static Arena *built; /* holds all of these */
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

void op_install(const OpTable *t)
{
	table = t;
}

/* Ends the process: a bad table cannot be a run-time condition. The unit test of the table meets
 * the error first. */
_Noreturn static void table_bug(Op op, const char *text)
{
	fprintf(stderr, "op table: op %u: %s\n", op, text);
	abort();
}

static const Overload *row_of(const OpPlace *p)
{
	return p->is_row ? &p->block->overloads[p->row] : NULL;
}

static const char *schema_text(Op op)
{
	const Overload *row = row_of(&table->place[op]);
	return row ? row->schema : table->place[op].block->schema;
}

static void add_name(Op op, const char *name, size_t n)
{
	bool fresh;
	uint32_t id = intern(&by_name, name, (uint32_t)n, &fresh);
	if (!fresh)
		table_bug(op, "a name is used twice");
	if (id >= 2 * table->n)
		table_bug(op, "too many names");
	table->named[id] = op;
}

static void add_names(Op op)
{
	const Overload *row = row_of(&table->place[op]);
	const char *text = schema_text(op),
		   *alias = row ? row->aliases : table->place[op].block->aliases;
	if (!text)
		table_bug(op, "no schema");
	add_name(op, text, strcspn(text, "("));
	for (size_t n; alias && *alias; alias += n + (alias[n] == ' ')) {
		n = strcspn(alias, " ");
		add_name(op, alias, n);
	}
}

static void build_names(Op op)
{
	(void)op;
	if (atomic_load(&ready))
		return;
	if (!built)
		built = arena_new(NULL);
	if (!built)
		arena_out_of_memory();
	intern_init(&by_name, built);
	for (uint32_t k = 0; k < table->n; k++)
		add_names((Op)k);
	atomic_store_explicit(&ready, true, memory_order_release);
}

static void build_schema(Op op)
{
	const char *err;
	if (atomic_load(&table->schema[op]))
		return;
	Schema *s = arena_alloc(built, sizeof *s);
	if (!schema_parse(built, schema_text(op), s, &err))
		table_bug(op, err);
	atomic_store_explicit(&table->schema[op], s, memory_order_release);
}

/* Makes i, a copy of the block of op, what the row of op says. */
static void adopt(OpInfo *i, Op op, const Overload *row)
{
	i->schema = row->schema;
	i->aliases = row->aliases;
	i->overloads = NULL;
	i->doc = row->doc ? row->doc : i->doc;
	i->narrow_scalars |= row->narrow_scalars;
	if (row->expand || row->build || row->build_as.f) {
		i->expand = row->expand;
		i->build = row->build;
		i->build_as = row->build_as;
	}
	if (row->sample || row->no_sample) {
		i->sample = row->sample;
		i->no_sample = row->no_sample;
	}
	if (atomic_load(&table->schema[op])->view !=
	    atomic_load(&table->schema[op_block(op)])->view) {
		i->view = VIEW_NONE;
		i->view_if = VIEW_ALWAYS;
		i->view_undo = NULL;
		i->itself = false;
	}
}

static void build_overload(Op op)
{
	if (atomic_load(&table->overload[op]))
		return;
	build_schema(op);
	build_schema(op_block(op));
	OpInfo *i = arena_dup(built, table->place[op].block, sizeof *i);
	adopt(i, op, row_of(&table->place[op]));
	atomic_store_explicit(&table->overload[op], i, memory_order_release);
}

typedef struct {
	void (*part)(Op);
	Op op;
} Building;

static void build_part(void *arg)
{
	const Building *b = arg;
	b->part(b->op);
}

/* Runs `part` for op while no other thread builds. Out of memory, the lock is given back first;
 * what is not complete is built at the next call. */
static void build(void (*part)(Op), Op op)
{
	pthread_mutex_lock(&building);
	const bool ok = arena_try(build_part, &(Building){part, op});
	pthread_mutex_unlock(&building);
	if (!ok)
		arena_out_of_memory();
}

void op_init(void)
{
	if (!atomic_load_explicit(&ready, memory_order_acquire))
		build(build_names, OP_none);
}

uint32_t op_count(void)
{
	return table->n;
}

/* Returns the block of an operator that is a row of another one's. Apart, because op_info is asked
 * so often that saving registers for this would show. */
__attribute__((noinline)) static const OpInfo *overload_info(Op op)
{
	const OpInfo *i = atomic_load_explicit(&table->overload[op], memory_order_acquire);
	if (i)
		return i;
	op_init();
	build(build_overload, op);
	return atomic_load(&table->overload[op]);
}

const OpInfo *op_info(Op op)
{
	const OpPlace *p = &table->place[op < table->n ? op : OP_none];
	return p->is_row ? overload_info(op) : p->block;
}

Op op_block(Op op)
{
	return table->place[op < table->n ? op : OP_none].op;
}

OpKind op_kind(Op op)
{
	const OpInfo *i = op_info(op);
	if (i->scalar)
		return OP_SCALAR;
	return i->expand || op_builds(i) ? OP_COMPOSITE : OP_PRIMITIVE;
}

const OpLower *op_lower(Op op)
{
	static const OpLower scalar = {
		.role = LOWER_MAP, .fuses = FUSE_CHEAP, .keeps = KEEPS_INDEX};
	return op_is_scalar(op) ? &scalar : &op_info(op)->lower;
}

const Schema *op_schema(Op op)
{
	op = op < table->n ? op : OP_none;
	const Schema *s = atomic_load_explicit(&table->schema[op], memory_order_acquire);
	if (s)
		return s;
	op_init();
	build(build_schema, op);
	return atomic_load(&table->schema[op]);
}

const char *op_name(Op op)
{
	return op_schema(op)->name;
}

Op op_find(const char *name)
{
	static const char tail[] = ".default";
	const size_t n = strlen(name), cut = sizeof tail - 1;
	op_init();
	uint32_t id = intern_find(&by_name, name, (uint32_t)n);
	if (!id && n > cut && !strcmp(name + n - cut, tail) &&
	    memchr(name, '.', n - cut)) /* a primitive has no overloads */
		id = intern_find(&by_name, name, (uint32_t)(n - cut));
	return id ? table->named[id] : OP_none;
}

int op_arg_index(Op op, const char *name)
{
	const Schema *s = op_schema(op);
	for (uint32_t k = 0; k < s->narg; k++)
		if (strcmp(s->arg[k].name, name) == 0)
			return (int)k;
	return -1;
}

/* ---- defaults ---- */

static int64_t default_int(const char *text)
{
	if (strcmp(text, "Mean") == 0)
		return 1;
	if (strcmp(text, "Sum") == 0)
		return 2;
	return strtoll(text, NULL, 10);
}

static Attr default_scalar(Ir *ir, const char *text)
{
	if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
		return attr_bool(*text == 'T');
	if (strpbrk(text, ".eEni"))
		return attr_float(strtod(text, NULL));
	return attr_int(ir, strtoll(text, NULL, 10));
}

/* Sets item[] to the texts of the elements of "[0, 1]", or to a lone "1" for each of arg->size
 * elements. Returns their number, at most max. */
static uint32_t default_items(const Arg *arg, const char **item, uint32_t max)
{
	const char *p = arg->text;
	uint32_t n = 0;
	if (*p != '[') {
		for (; n < (arg->size ? arg->size : 1) && n < max; n++)
			item[n] = p;
		return n;
	}
	for (p++; *p && *p != ']' && n < max; p += strcspn(p, ",]"), p += *p == ',') {
		p += strspn(p, " ");
		if (*p != ']')
			item[n++] = p;
	}
	return n;
}

static Attr default_list(Ir *ir, const Arg *arg)
{
	const char *item[MAX_ARGS];
	uint32_t n = default_items(arg, item, MAX_ARGS);
	Sym ints[MAX_ARGS];
	double floats[MAX_ARGS];
	bool bools[MAX_ARGS];
	for (uint32_t k = 0; k < n; k++) {
		ints[k] = sym_int(ir->syms, strtoll(item[k], NULL, 10));
		floats[k] = strtod(item[k], NULL);
		bools[k] = item[k][0] == 'T';
	}
	Arena *a = ir->ctx->arena;
	if (arg->kind == ARG_ints)
		return attr_ints(arena_dup(a, ints, n * sizeof *ints), n);
	if (arg->kind == ARG_floats)
		return (Attr){ATTR_floats, n, {.floats = arena_dup(a, floats, n * sizeof *floats)}};
	return (Attr){ATTR_bools, n, {.bools = arena_dup(a, bools, n * sizeof *bools)}};
}

static DType default_dtype(const char *text)
{
	static const struct {
		const char *name;
		DType dtype;
	} names[] = {{"long", DT_i64},
		     {"int", DT_i32},
		     {"float", DT_f32},
		     {"double", DT_f64},
		     {"bool", DT_bool}};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strcmp(names[k].name, text) == 0)
			return names[k].dtype;
	return dtype_parse(text, (uint32_t)strlen(text));
}

Attr op_default(Ir *ir, const Arg *arg)
{
	size_t n = strlen(arg->text);
	if (!arg->has_default || strcmp(arg->text, "None") == 0)
		return attr_none();
	switch (arg->kind) {
	case ARG_int:
		return attr_int(ir, default_int(arg->text));
	case ARG_float:
		return attr_float(strtod(arg->text, NULL));
	case ARG_bool:
		return attr_bool(strcmp(arg->text, "True") == 0);
	case ARG_scalar:
		return default_scalar(ir, arg->text);
	case ARG_str: /* quoted */
		return attr_str(ir,
				n < 2 ? "" : arena_strndup(ir->ctx->scratch, arg->text + 1, n - 2));
	case ARG_dtype:
		return attr_dtype(default_dtype(arg->text));
	case ARG_ints:
	case ARG_floats:
	case ARG_bools:
		return default_list(ir, arg);
	default:
		return attr_none();
	}
}

/* Whether the n characters at s, all of them, are a number. */
static bool is_number(const char *s, size_t n, bool integer)
{
	char *end;
	const char *digits = s + (*s == '-' || *s == '+');
	bool named = !strncmp(digits, "inf", 3) || !strncmp(digits, "nan", 3);
	errno = 0;
	double v = integer ? (double)strtoll(s, &end, 10) : strtod(s, &end);
	if (end != s + n || n == 0)
		return false;
	if (!integer && named)
		return true;
	return !strpbrk(s, "xX") && (isdigit((unsigned char)*digits) || *digits == '.') &&
	       (integer ? errno != ERANGE : isfinite(v));
}

static bool reads_ints(const Arg *arg)
{
	const char *p = arg->text, *end = p + strlen(p) - 1;
	if (*p != '[')
		return arg->size && is_number(p, strlen(p), true);
	if (*end != ']')
		return false;
	p += 1 + strspn(p + 1, " ");
	for (size_t n; p < end; p += n) {
		n = strcspn(p, " ,]");
		if (!is_number(p, n, true))
			return false;
		n += strspn(p + n, " ");
		if (p + n != end && (p[n++] != ',' || p + n + strspn(p + n, " ") == end))
			return false;
		n += strspn(p + n, " ");
	}
	return p == end;
}

bool op_default_reads(const Arg *arg)
{
	const char *text = arg->text;
	size_t n = strlen(text);
	if (!arg->has_default || (arg->optional && !strcmp(text, "None")))
		return true;
	switch (arg->kind) {
	case ARG_int:
		return is_number(text, n, true) || !strcmp(text, "Mean") || !strcmp(text, "Sum");
	case ARG_float:
		return is_number(text, n, false);
	case ARG_bool:
		return !strcmp(text, "True") || !strcmp(text, "False");
	case ARG_ints:
		return reads_ints(arg);
	default:
		return true;
	}
}

bool op_attr_fits(const Ir *ir, const Arg *arg, const Attr *a)
{
	static const AttrKind expected[] = {
		[ARG_tensors] = ATTR_int, [ARG_int] = ATTR_int,       [ARG_ints] = ATTR_ints,
		[ARG_float] = ATTR_float, [ARG_floats] = ATTR_floats, [ARG_bool] = ATTR_bool,
		[ARG_bools] = ATTR_bools, [ARG_str] = ATTR_str,       [ARG_dtype] = ATTR_dtype,
		[ARG_graph] = ATTR_graph, [ARG_const] = ATTR_const};
	if (arg->kind == ARG_tensor || arg->kind == ARG_ignored)
		return a->kind == ATTR_none;
	if (arg->kind == ARG_tensors)
		return a->kind == ATTR_int && sym_is_const(ir->syms, a->s, NULL);
	if (a->kind == ATTR_none)
		return arg->optional;
	if (arg->kind == ARG_scalar)
		return attr_weak_dtype(a) != DT_none;
	return a->kind == expected[arg->kind];
}

/* ---- expansions ---- */

Node op_expand(Build *b, Op op, const Node *in, uint32_t nin, AttrId attr)
{
	return table->expand(b, op, in, nin, attr);
}

Node op_expand_node(Build *b, Node n)
{
	return table->expand_node(b, n);
}

Node op_complex(Build *b, Node n)
{
	return table->complex(b, n);
}
