/* A node of the file becomes a call of an operator of ops/onnx. The schema says how:
 *
 *   - Arguments in front of "*" are the node's inputs, in order. A Tensor[] takes all that are
 *     left. An int, int[], float or bool is an input whose elements must be known at import: an int
 *     or int[] may depend on data.
 *   - If the node has no such input, the argument is an attribute of its name: most operators had
 *     attributes in old opsets where they have inputs now.
 *   - Arguments behind "*" are attributes of their names. A list of texts is one str, with blanks
 *     between. A Tensor is an attribute that holds a
 *     tensor. A ScalarType is the number of a data type. The int `outputs` is the number of results
 *     that the node has names for. The int `elem0` (`elem1`, ...) is the number of the data type of
 *     input 0, if the dtype only keeps its values (onnx_kept_type), else 0; `elem` is the number of
 *     the data type that the attribute `to` or `output_dtype` names, likewise.
 *
 * The number behind the operator's name is the first opset in which it means what the block
 * says. */
#include <string.h>

#include "frontend/onnx/priv.h"
#include "ops/rules/common.h"

typedef struct {
	const Item *it;
	Op op;
	const Schema *schema;
	Attr attr[MAX_ARGS];
	ARRAY(Node) in;
	uint32_t next; /* input */
	uint32_t used; /* attributes of the node that are arguments */
} OnnxCall;

/* Attributes whose names are not those of the inputs that they became, and attributes without a
 * meaning. */
static const struct {
	const char *op, *argument, *attr;
} renamed[] = {
	{"Pad", "pads", "paddings"},
	{"Pad", "constant_value", "value"},
	{"TopK", "K", "k"},
};

static const struct {
	const char *op, *attr; /* op NULL: of any operator */
} ignored[] = {
	{NULL, "consumed_inputs"},
	{NULL, "legacy_optimization_attribute"},
	{"BatchNormalization", "is_test"},
	{"Dropout", "is_test"},
};

bool onnx_is_main_domain(const char *domain)
{
	return !domain || !*domain || !strcmp(domain, "ai.onnx");
}

/* Returns the word for a domain in names of operators: "ai.onnx.ml" -> "onnx_ml", others with
 * "_" for ".". */
static const char *domain_word(Ctx *ctx, const char *domain)
{
	if (onnx_is_main_domain(domain))
		return "onnx";
	if (!strncmp(domain, "ai.", 3))
		domain += 3;
	char *word = arena_strdup(ctx->scratch, domain);
	for (char *p = word; *p; p++)
		if (*p == '.')
			*p = '_';
	return word;
}

Op op_find_onnx(Ctx *ctx, const char *domain, const char *name, int64_t opset)
{
	const char *word = domain_word(ctx, domain);
	Op op = OP_none;
	for (int64_t v = opset > 64 ? 64 : opset; v > 0 && !op; v--)
		op = op_find(arena_printf(ctx->scratch, "%s.%s.%d", word, name, (int)v));
	return op;
}

/* Offers the operators of a domain, and those that have no row in the table. */
static void offer_operators(Ctx *ctx, const char *domain, Nearest *near)
{
	const char *start = arena_printf(ctx->scratch, "%s.", domain_word(ctx, domain));
	const size_t n = strlen(start);
	for (uint32_t k = 1; k < op_count(); k++) {
		const char *of = op_name((Op)k), *version = strrchr(of, '.');
		if (!strncmp(of, start, n) && version > of + n)
			nearest_offer(near, arena_strndup(ctx->scratch, of + n,
							  (size_t)(version - of) - n));
	}
	onnx_offer_specials(domain, near);
}

const char *onnx_op_hint(Ctx *ctx, const char *domain, const char *name, int64_t opset)
{
	for (int64_t v = opset + 1; v <= 64; v++)
		if (op_find_onnx(ctx, domain, name, v))
			return arena_printf(ctx->scratch, "; opset %d has it", (int)v);
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	offer_operators(ctx, domain, &near);
	return nearest_hint(ctx->scratch, &near);
}

static bool wrong(const OnnxCall *c, const Arg *a, const char *expected)
{
	return onnx_item_error(c->it, "%s: expected %s", a->name, expected);
}

/* ---- attributes ---- */

static const OnnxAttr *find_attr(OnnxCall *c, const Arg *a)
{
	const OnnxAttr *found = onnx_item_attr(c->it, a->name);
	for (size_t k = 0; k < sizeof renamed / sizeof *renamed && !found; k++)
		if (!strcmp(renamed[k].op, c->it->n->op) && !strcmp(renamed[k].argument, a->name))
			found = onnx_item_attr(c->it, renamed[k].attr);
	c->used += found != NULL;
	return found;
}

static bool text_attr(const OnnxCall *c, const Arg *a, const OnnxAttr *x, Attr *out)
{
	Ctx *ctx = c->it->s->im->ctx;
	if (x->strings.n) {
		Text text;
		text_init(&text, ctx->scratch);
		for (uint32_t k = 0; k < x->strings.n; k++) {
			text_add(&text, k ? " " : "");
			text_addn(&text, (const char *)x->strings.data[k].p, x->strings.data[k].n);
		}
		*out = attr_str(c->it->s->im->ir, text.data);
		return true;
	}
	if (x->s.n && memchr(x->s.p, 0, x->s.n))
		return wrong(c, a, "a text without NUL");
	*out = attr_str(c->it->s->im->ir,
			arena_strndup(ctx->scratch, (const char *)x->s.p, x->s.n));
	return true;
}

static Attr ints_attr(const OnnxCall *c, const OnnxAttr *x)
{
	Import *im = c->it->s->im;
	Sym *v = ARENA_ARRAY(im->ctx->arena, Sym, x->ints.n);
	for (uint32_t k = 0; k < x->ints.n; k++)
		v[k] = sym_int(im->syms, x->ints.data[k]);
	return attr_ints(v, x->ints.n);
}

static Attr floats_attr(const OnnxCall *c, const OnnxAttr *x)
{
	double *v = ARENA_ARRAY(c->it->s->im->ctx->arena, double, x->floats.n);
	for (uint32_t k = 0; k < x->floats.n; k++)
		v[k] = (double)x->floats.data[k];
	return (Attr){ATTR_floats, x->floats.n, {.floats = v}};
}

/* Returns what an argument of a kind expects of an attribute, which is stored by its
 * AttributeProto.type; NULL if the type is right. */
static const char *misses(ArgKind kind, int64_t type)
{
	enum { UNDEFINED, FLOAT, INT, STRING, FLOATS = 6, INTS, STRINGS };
	switch (kind) {
	case ARG_int:
	case ARG_bool:
	case ARG_dtype:
		return type == INT ? NULL : "an integer";
	case ARG_float:
		return type == FLOAT ? NULL : "a float";
	case ARG_scalar:
		return type == FLOAT || type == INT ? NULL : "a number";
	case ARG_ints:
		return type == INTS ? NULL : "integers";
	case ARG_floats:
		return type == FLOATS ? NULL : "floats";
	case ARG_str:
		return type == STRING || type == STRINGS ? NULL : "a text";
	default:
		return NULL;
	}
}

/* Converts an attribute of the file to one of the argument's kind. */
static bool convert_attr(const OnnxCall *c, const Arg *a, const OnnxAttr *x, Attr *out)
{
	Ir *ir = c->it->s->im->ir;
	/* old files have no type */
	const char *expected = x->type ? misses(a->kind, x->type) : NULL;
	if (expected)
		return wrong(c, a, expected);
	switch (a->kind) {
	case ARG_int:
		*out = attr_int(ir, x->i);
		return true;
	case ARG_bool:
		*out = attr_bool(x->i != 0);
		return true;
	case ARG_float:
		*out = attr_float((double)x->f);
		return true;
	case ARG_scalar:
		*out = x->type == 2 || (x->has_i && !x->has_f) ? attr_int(ir, x->i)
							       : attr_float((double)x->f);
		return true;
	case ARG_ints:
		*out = ints_attr(c, x);
		return true;
	case ARG_floats:
		*out = floats_attr(c, x);
		return true;
	case ARG_str:
		return text_attr(c, a, x, out);
	case ARG_dtype:
		if (a->optional && !x->i) /* UNDEFINED */
			return true;
		*out = attr_dtype(onnx_dtype(x->i));
		return out->dtype != DT_none ||
		       onnx_item_error(c->it, "%s is %s, which is not supported", a->name,
				       onnx_dtype_name(c->it->s->im->ctx, x->i));
	default:
		return wrong(c, a, "an argument that attributes can be");
	}
}

/* Returns a tensor that the file gives as an attribute: numbers have the dtype of the first
 * operand. */
static Node attr_node(OnnxCall *c, const OnnxAttr *x)
{
	Scope *s = c->it->s;
	Import *im = s->im;
	Value *first = onnx_item_in(c->it, 0);
	DType d = first && !first->is_list ? onnx_value_dtype(s, first) : DT_f32;
	Tensor t;
	if (x->t) {
		if (!onnx_tensor(im->ctx, x->t, &im->folder,
				 arena_printf(im->ctx->scratch, "attribute %s", x->name), &t))
			return (Node){0};
		return onnx_value_node(s, onnx_value_known(im, &t));
	}
	if (x->ints.n) {
		t = (Tensor){.dtype = DT_i64, .rank = 1, .dim = {x->ints.n}, .data = x->ints.data};
		return onnx_value_node(s, onnx_value_known(im, &t));
	}
	if (x->floats.n) {
		t = (Tensor){
			.dtype = DT_f32, .rank = 1, .dim = {x->floats.n}, .data = x->floats.data};
		return onnx_value_node(s, onnx_value_known(im, &t));
	}
	return x->has_f || x->type == 1 ? b_full(&s->b, d, (double)x->f, 0, NULL)
					: b_full_int(&s->b, d, x->i, 0, NULL);
}

static bool take_attr(OnnxCall *c, const Arg *a, Attr *out)
{
	Ir *ir = c->it->s->im->ir;
	if (!strcmp(a->name, "outputs")) {
		*out = attr_int(ir, c->it->n->out.n);
		return true;
	}
	if (!strcmp(a->name, "elem")) {
		*out = attr_int(ir, onnx_kept_type(onnx_item_int(
					    c->it, "to", onnx_item_int(c->it, "output_dtype", 0))));
		return true;
	}
	if (!strncmp(a->name, "elem", 4) && a->name[4] >= '0' && a->name[4] <= '9') {
		const Value *v = onnx_item_in(c->it, (uint32_t)(a->name[4] - '0'));
		*out = attr_int(ir, v ? v->elem : 0);
		return true;
	}
	const OnnxAttr *x = find_attr(c, a);
	if (x)
		return convert_attr(c, a, x, out);
	*out = a->has_default ? op_default(ir, a) : attr_none();
	return a->has_default || a->optional ||
	       onnx_item_error(c->it, "attribute %s is missing", a->name);
}

/* ---- inputs ---- */

/* Whether the argument is the key of operators that draw random numbers (ops/prim/random.h). */
static bool is_key(const Arg *a)
{
	return a->kw_only && !strcmp(a->name, "rng");
}

static bool take_tensor(OnnxCall *c, const Arg *a)
{
	const OnnxAttr *x;
	Node n = {0};
	Value *v = a->kw_only ? NULL : onnx_item_in(c->it, c->next);
	c->next += !a->kw_only;
	if (is_key(a)) {
		n = b_full_int(&c->it->s->b, DT_u64, 0, 1, (Sym[]){b_int(&c->it->s->b, 2)});
	} else if (v && !(v->is_list && !v->item.n && a->optional)) {
		n = onnx_value_node(c->it->s, v);
		TRY(n.i);
	} else if ((x = find_attr(c, a))) {
		n = attr_node(c, x);
		TRY(n.i);
	} else if (!a->optional) {
		return onnx_item_error(c->it, "input %s is missing", a->name);
	}
	array_push(c->it->s->im->ctx->scratch, &c->in, n);
	return true;
}

static bool take_tensors(OnnxCall *c, Attr *out)
{
	uint32_t n = 0;
	for (; c->next < c->it->nin; c->next++, n++) {
		Value *v = c->it->in[c->next];
		Node x = v ? onnx_value_node(c->it->s, v) : (Node){0};
		TRY(x.i || !v);
		array_push(c->it->s->im->ctx->scratch, &c->in, x);
	}
	*out = attr_int(c->it->s->im->ir, n);
	return true;
}

/* Takes the elements of an input as integers. */
static bool take_ints(OnnxCall *c, const Arg *a, Value *v, Attr *out)
{
	const Sym *size;
	uint32_t n;
	TRY(onnx_value_to_sizes(c->it->s, v, a->name, &size, &n));
	if (a->kind == ARG_ints) {
		*out = attr_ints(size, n);
		return true;
	}
	*out = attr_sym(n ? size[0] : (Sym){0});
	return n == 1 || wrong(c, a, "one integer");
}

static bool take_known(OnnxCall *c, const Arg *a, Value *v, Attr *out)
{
	Import *im = c->it->s->im;
	const Tensor *t = onnx_value_elements(c->it->s, v);
	int64_t n = t ? tensor_numel(t) : 0;
	if (!t)
		return wrong(c, a,
			     "a constant, or an input whose value is given when the model is read");
	if (a->kind == ARG_floats) {
		double *f = ARENA_ARRAY(im->ctx->arena, double, n);
		tensor_read_f64(t, 0, n, f);
		*out = (Attr){ATTR_floats, (uint32_t)n, {.floats = f}};
		return true;
	}
	if (n != 1)
		return wrong(c, a, "one number");
	*out = a->kind == ARG_bool ? attr_bool(tensor_f64(t, 0) != 0)
				   : attr_float(tensor_f64(t, 0));
	return true;
}

static bool take_positional(OnnxCall *c, const Arg *a, Attr *out)
{
	Value *v = onnx_item_in(c->it, c->next++);
	if (!v || (v->is_list && !v->item.n))
		return take_attr(c, a, out);
	bool ints = a->kind == ARG_ints || a->kind == ARG_int;
	return ints ? take_ints(c, a, v, out) : take_known(c, a, v, out);
}

static bool take_arg(OnnxCall *c, uint32_t k)
{
	const Arg *a = &c->schema->arg[k];
	c->attr[k] = attr_none();
	if (a->kind == ARG_tensor)
		return take_tensor(c, a);
	if (a->kind == ARG_tensors)
		return take_tensors(c, &c->attr[k]);
	return a->kw_only ? take_attr(c, a, &c->attr[k]) : take_positional(c, a, &c->attr[k]);
}

/* Returns the attribute that may be meant: one that the node does not have. */
static const char *attr_hint(const OnnxCall *c, const char *name)
{
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	for (uint32_t k = 0; k < c->schema->narg; k++)
		if (!onnx_item_attr(c->it, c->schema->arg[k].name))
			nearest_offer(&near, c->schema->arg[k].name);
	return nearest_hint(c->it->s->im->ctx->scratch, &near);
}

/* Checks that every attribute is an argument: another one would change what the node means. */
static bool check_attrs(const OnnxCall *c)
{
	const OnnxNode *n = c->it->n;
	for (uint32_t k = 0; k < n->attr.n; k++) {
		const char *name = n->attr.data[k].name;
		bool known = !name || op_arg_index(c->op, name) >= 0;
		for (size_t j = 0; j < sizeof renamed / sizeof *renamed && !known; j++)
			known = !strcmp(renamed[j].op, n->op) && !strcmp(renamed[j].attr, name);
		for (size_t j = 0; j < sizeof ignored / sizeof *ignored && !known; j++)
			known = (!ignored[j].op || !strcmp(ignored[j].op, n->op)) &&
				!strcmp(ignored[j].attr, name);
		if (!known)
			return onnx_item_error(c->it, "attribute %s is not supported%s", name,
					       attr_hint(c, name));
	}
	return true;
}

/* Returns the data type of results that are kept in another dtype: the one that the node names,
 * that of a target or zero point, or the first operand's, whose elements it moves. */
static int64_t result_elem(const Item *it)
{
	const char *op = it->n->op;
	static const struct {
		const char *op, *attr;
		int32_t like; /* operand; -1: none */
	} named[] = {{"Cast", "to", -1},
		     {"CastLike", NULL, 1},
		     {"QuantizeLinear", "output_dtype", 2},
		     {"DequantizeLinear", "output_dtype", -1}};
	for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
		if (strcmp(named[k].op, op) != 0)
			continue;
		int64_t to = named[k].attr ? onnx_item_int(it, named[k].attr, 0) : 0;
		Value *like = named[k].like >= 0 ? onnx_item_in(it, (uint32_t)named[k].like) : NULL;
		return to ? onnx_kept_type(to) : like ? like->elem : 0;
	}
	Value *first = onnx_item_in(it, 0);
	return first ? first->elem : 0;
}

static bool bind_results(const Item *it, Node y)
{
	int64_t elem = result_elem(it);
	Scope *s = it->s;
	Graph *g = s->b.g;
	uint32_t n = node_is_tensor(g, y) ? 1 : node_nresult(g, y);
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		if (!*it->n->out.data[k])
			continue;
		if (k >= n)
			return onnx_item_error(it, "result %u (%s) is not supported", k,
					       it->n->out.data[k]);
		Node r = node_is_tensor(g, y) ? y : b_get(&s->b, y, k);
		Value *v = onnx_value_of(s, r);
		v->elem = elem && onnx_dtype(elem) == node_dtype(g, r) ? elem : 0;
		TRY(onnx_item_bind(it, k, v));
	}
	return true;
}

/* Removes a node's key, once its type is known; random_attach (passes/random.h) gives the node
 * the model's key. */
static void drop_key(Graph *g, Node n)
{
	uint32_t at;
	node_args(g, n, "rng", &at);
	graph_set_operand(g, n, at, (Node){0});
}

bool onnx_import_call(const Item *it, Op op)
{
	OnnxCall c = {.it = it, .op = op, .schema = op_schema(op)};
	for (uint32_t k = 0; k < c.schema->narg; k++)
		TRY(take_arg(&c, k));
	for (; c.next < it->nin; c.next++)
		if (it->in[c.next])
			return onnx_item_error(it, "has %u inputs, more than %s takes", it->nin,
					       op_name(op));
	TRY(check_attrs(&c));
	Build *b = &it->s->b;
	Node y = b_call(b, op, c.in.data, c.in.n, c.attr, c.schema->narg);
	if (y.i && op_arg_index(op, "rng") >= 0)
		drop_key(b->g, y);
	/* an expansion finds sizes in data anew each time: it is the one here, and the call goes,
	 * as no body is rid of nodes without readers */
	if (y.i && node_has_data_size(b->g, y)) {
		Node called = y;
		y = b_node(b, op, c.in.data, c.in.n, c.attr, c.schema->narg);
		if (y.i && y.i != called.i && !node_nuses(b->g, called))
			graph_erase(b->g, called);
	}
	return y.i && bind_results(it, y);
}
