/* The driver of the ONNX importer: model -> symbols -> inputs, initializers, nodes, outputs. */
#include "frontend/onnx/onnx.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "frontend/files/file.h"
#include "frontend/frame.h"
#include "frontend/onnx/priv.h"
#include "ir/build/verify.h"

/* ---- types ---- */

/* The file has no size for which costs could be compared. */
enum { USUAL_SIZE = 16 };
/* The extent that old files state where they know none. */
enum { UNKNOWN = -1 };

/* Makes an identifier of a name of the file. */
static const char *symbol_name(Import *im, const char *text)
{
	char *name = arena_printf(im->ctx->scratch, "%s%s",
				  isalpha((unsigned char)*text) ? "" : "_", text);
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return name;
}

static bool is_taken(const Import *im, Sym s)
{
	for (uint32_t k = 0; s.i && k < im->dim.n; k++)
		if (im->dim.data[k].i == s.i)
			return true;
	return false;
}

/* Whether the text names no dimension: exporters write it wherever they know no extent ("?" of
 * Paddle, "unk__12" of tf2onnx, "None" and "-1" of others), so two of it need not be equal. */
static bool names_nothing(const char *text)
{
	static const char *const word[] = {"none",      "null", "nan",     "unk",     "unknown",
					   "undefined", "any",  "dynamic", "variable"};
	size_t letters = 0, n = strlen(text);
	for (size_t k = 0; k < sizeof word / sizeof *word; k++)
		if (!strcasecmp(text, word[k]))
			return true;
	if (!strncmp(text, "unk__", 5) && strspn(text + 5, "0123456789") == n - 5)
		return true;
	for (const char *p = text; *p; p++)
		letters += isalpha((unsigned char)*p) || (unsigned char)*p >= 0x80;
	return !letters;
}

/* Returns the symbol of a dimension's name. "a.b" and "a_b" are two. own: of a dimension without
 * a name, which no name of the file means. */
static Sym symbol(Import *im, const char *text, bool own, int64_t hint)
{
	bool fresh;
	const char *key = own ? arena_printf(im->ctx->scratch, "\n%s", text) : text;
	uint32_t id = intern(&im->dims, key, strlen(key), &fresh);
	if (!fresh)
		return im->dim.data[id - 1];
	const char *first = symbol_name(im, text), *name = first;
	Sym s;
	for (uint32_t k = 2; is_taken(im, s = sym_find(im->syms, name, (uint32_t)strlen(name)));
	     k++)
		name = arena_printf(im->ctx->scratch, "%s_%u", first, k);
	if (!s.i) {
		s = sym_var(im->syms, name, SYMVAR_SIZE, 0, SYM_INF);
		sym_set_hint(im->syms, s, hint ? hint : USUAL_SIZE);
	}
	array_push(im->ctx->arena, &im->dim, s);
	return s;
}

static bool input_dim(Import *im, const OnnxInfo *v, uint32_t k, const Tensor *hint, Sym *out)
{
	const OnnxDim *d = &v->type->tensor->shape->dim.data[k];
	int64_t at = hint && k < hint->rank ? hint->dim[k] : 0;
	if (d->has_value && d->value != UNKNOWN) {
		*out = sym_int(im->syms, d->value);
		return d->value >= 0 ||
		       ctx_error(im->ctx, NULL,
				 "input %s: dimension %u has the extent %lld, expected at least 0",
				 v->name, k, (long long)d->value);
	}
	bool own = !d->param || names_nothing(d->param);
	*out = symbol(im, own ? arena_printf(im->ctx->scratch, "%s_%u", v->name, k) : d->param, own,
		      at);
	return true;
}

TypeId onnx_type_of_info(Import *im, const OnnxInfo *v, const Tensor *hint)
{
	Sym dim[MAX_RANK];
	const OnnxTensorType *t = v->type ? v->type->tensor : NULL;
	if (!t) {
		ctx_error(im->ctx, NULL, "input %s is not a tensor: only tensors are supported",
			  v->name);
		return (TypeId){0};
	}
	DType d = onnx_dtype(t->elem);
	if (!d) {
		ctx_error(im->ctx, NULL, "input %s is of %s, which is not supported", v->name,
			  onnx_dtype_name(im->ctx, t->elem));
		ctx_kind(im->ctx, REFUSAL_DTYPE);
		return (TypeId){0};
	}
	if (!t->shape && !hint) {
		ctx_error(im->ctx, NULL, "input %s has no rank in the model", v->name);
		return (TypeId){0};
	}
	uint32_t rank = t->shape ? t->shape->dim.n : hint->rank;
	if (rank > MAX_RANK) {
		ctx_error(im->ctx, NULL, "input %s has %u dimensions, expected at most %d", v->name,
			  rank, MAX_RANK);
		return (TypeId){0};
	}
	for (uint32_t k = 0; k < rank; k++) {
		if (!t->shape)
			dim[k] = symbol(im, arena_printf(im->ctx->scratch, "%s_%u", v->name, k),
					true, hint->dim[k]);
		else if (!input_dim(im, v, k, hint, &dim[k]))
			return (TypeId){0};
	}
	return ir_type(im->ir, d, rank, dim);
}

/* Returns a type as the file states it, "FLOAT[N, 3]". */
static const char *stated(Import *im, const OnnxTensorType *t)
{
	Text text;
	text_init(&text, im->ctx->scratch);
	text_printf(&text, "%s[", onnx_dtype_name(im->ctx, t->elem));
	for (uint32_t k = 0; t->shape && k < t->shape->dim.n; k++) {
		const OnnxDim *d = &t->shape->dim.data[k];
		text_add(&text, k ? ", " : "");
		if (d->has_value)
			text_printf(&text, "%lld", (long long)d->value);
		else
			text_add(&text, d->param ? d->param : "?");
	}
	text_add(&text, "]");
	return text.data;
}

/* What the stated type contradicts: nothing, extents or the rank, or the dtype. */
typedef enum { AGREES, OTHER_SHAPE, OTHER_DTYPE } Agreement;

static Agreement agreement(Scope *s, const OnnxTensorType *t, const Value *v)
{
	uint32_t rank = onnx_value_rank(s, v);
	if (onnx_dtype(t->elem) && onnx_dtype(t->elem) != onnx_value_dtype(s, v))
		return OTHER_DTYPE;
	if (!t->shape)
		return AGREES;
	if (t->shape->dim.n != rank)
		return OTHER_SHAPE;
	for (uint32_t k = 0; k < rank; k++) {
		const OnnxDim *d = &t->shape->dim.data[k];
		if (d->has_value && d->value != UNKNOWN &&
		    sym_eq(s->im->syms, onnx_value_dim(s, v, k), sym_int(s->im->syms, d->value)) ==
			    NO)
			return OTHER_SHAPE;
	}
	return AGREES;
}

/* Returns the text "NAME: the model states the type FLOAT[2], but it is f32[N, 3]". */
static const char *contradiction(Scope *s, const OnnxInfo *info, Value *v)
{
	Sym dim[MAX_RANK];
	uint32_t rank = onnx_value_rank(s, v);
	for (uint32_t k = 0; k < rank; k++)
		dim[k] = onnx_value_dim(s, v, k);
	return arena_printf(
		s->im->ctx->scratch, "%s: the model states the type %s, but it is %s", info->name,
		stated(s->im, info->type->tensor),
		type_str(s->im->ir, ir_type(s->im->ir, onnx_value_dtype(s, v), rank, dim)));
}

static const OnnxTensorType *stated_tensor(const OnnxInfo *info, const Value *v)
{
	return v && !v->is_list && info->type ? info->type->tensor : NULL;
}

/* Checks an output against the type that the file states. A caller relies on its dtype; its
 * extents come with it. */
static bool check_output(Scope *s, const OnnxInfo *info, Value *v)
{
	const OnnxTensorType *t = stated_tensor(info, v);
	const Agreement a = t ? agreement(s, t, v) : AGREES;
	if (a == OTHER_DTYPE)
		return ctx_error(s->im->ctx, s->b.where, "%s", contradiction(s, info, v));
	if (a == OTHER_SHAPE)
		ctx_warn(s->im->ctx, s->b.where, "%s", contradiction(s, info, v));
	return true;
}

/* ---- inputs and initializers ---- */

void onnx_init_names(const OnnxGraph *g, Intern *names)
{
	for (uint32_t k = 0; k < g->init.n; k++)
		if (g->init.data[k].name)
			intern(names, g->init.data[k].name, strlen(g->init.data[k].name), NULL);
	for (uint32_t k = 0; k < g->sparse_init.n; k++) {
		const OnnxTensor *v = g->sparse_init.data[k].values;
		if (v && v->name)
			intern(names, v->name, strlen(v->name), NULL);
	}
}

static bool add_init(Scope *s, const char *name, int64_t type, const Tensor *t)
{
	Value *v = onnx_value_known(s->im, t);
	v->elem = onnx_kept_type(type);
	v->is_init = dtype_is_float(t->dtype) && t->rank > 0;
	return onnx_scope_bind(s, name, v);
}

bool onnx_scope_inits(Scope *s, const OnnxGraph *g)
{
	Import *im = s->im;
	Tensor t;
	for (uint32_t k = 0; k < g->init.n; k++) {
		const OnnxTensor *x = &g->init.data[k];
		const char *what = arena_printf(im->ctx->scratch, "initializer %s",
						x->name ? x->name : "without a name");
		TRY(onnx_tensor(im->ctx, x, &im->folder, what, &t) &&
		    add_init(s, x->name ? x->name : "", x->type, &t));
	}
	for (uint32_t k = 0; k < g->sparse_init.n; k++) {
		const OnnxSparse *x = &g->sparse_init.data[k];
		const char *name = x->values && x->values->name ? x->values->name : "";
		TRY(onnx_sparse(im->ctx, x, &im->folder,
				arena_printf(im->ctx->scratch, "initializer %s", name), &t) &&
		    add_init(s, name, x->values->type, &t));
	}
	return true;
}

static const Tensor *given_value(const Import *im, const char *name)
{
	for (uint32_t i = 0; im->options && i < im->options->nvalue; i++)
		if (!strcmp(im->options->value[i].name, name))
			return &im->options->value[i].tensor;
	return NULL;
}

/* Returns the value of a tensor that is an input, by its key (x.0) or by its name. */
static const Tensor *given_input(const Import *im, const char *key, const char *name)
{
	const Tensor *t = given_value(im, key);
	return t ? t : given_value(im, name);
}

/* Returns the value that the caller gave, where it may decide a shape: it is small, and of the
 * type. Else NULL. */
static const Tensor *deciding(const Tensor *t, DType d)
{
	return t && t->dtype == d && tensor_numel(t) <= MAX_SIZES ? t : NULL;
}

/* Adds an input of the graph. given: the value that the caller gave, or NULL. */
static Value *tensor_input(Scope *s, const OnnxInfo *info, const Tensor *given)
{
	Import *im = s->im;
	TypeId type = onnx_type_of_info(im, info, given);
	if (!type.i)
		return NULL;
	Value *v = onnx_value_of(s, graph_add_input(s->b.g, info->name, INPUT_USER, type));
	if (!node_fits(s->b.g, v->node)) {
		ctx_error(im->ctx, NULL,
			  "input %s: %s is too large: expected fewer than 2^48 bytes", info->name,
			  type_str(im->ir, type));
		return NULL;
	}
	v->elem = onnx_kept_type(info->type->tensor->elem);
	v->known = deciding(given, node_dtype(s->b.g, v->node));
	v->input = v->known ? (int32_t)im->checked.n : -1;
	array_push(im->ctx->arena, &im->checked, false);
	array_push(im->ctx->arena, &im->input, v);
	return v;
}

/* Returns the type of a sequence's tensor, with sizes of its own. */
static OnnxType *own_sizes(Import *im, const OnnxTensorType *t)
{
	OnnxType *type = ARENA_NEW(im->ctx->arena, OnnxType);
	type->tensor = arena_dup(im->ctx->arena, t, sizeof *t);
	if (!t->shape)
		return type;
	OnnxShape *shape = type->tensor->shape = ARENA_NEW(im->ctx->arena, OnnxShape);
	for (uint32_t k = 0; k < t->shape->dim.n; k++) {
		OnnxDim dim = t->shape->dim.data[k];
		dim.param = NULL;
		array_push(im->ctx->arena, &shape->dim, dim);
	}
	return type;
}

/* Adds as many inputs NAME.0, NAME.1, ... as the caller gave values for. */
static Value *sequence_input(Scope *s, const OnnxInfo *info, const OnnxType *elem, const char *key)
{
	Import *im = s->im;
	Value *list = onnx_value_list(im, NULL, 0);
	const Tensor *given;
	for (uint32_t k = 0;
	     (given = given_value(im, arena_printf(im->ctx->scratch, "%s.%u", key, k))); k++) {
		OnnxInfo one = {arena_printf(im->ctx->arena, "%s.%u", info->name, k),
				own_sizes(im, elem->tensor)};
		Value *v = tensor_input(s, &one, given);
		if (!v)
			return NULL;
		array_push(im->ctx->arena, &list->item, v);
	}
	return list;
}

/* Adds the inputs of a sequence, an optional, or an optional sequence of tensors. */
static Value *list_input(Scope *s, const OnnxInfo *info, const char *key)
{
	Import *im = s->im;
	const OnnxType *type = info->type->optional ? info->type->optional->elem : info->type;
	const char *what = info->type->sequence ? "a sequence" : "an optional";
	const OnnxType *elem = type && type->sequence ? type->sequence->elem : NULL;
	if (!type || !(type->tensor || (elem && elem->tensor))) {
		ctx_error(im->ctx, NULL,
			  "input %s is %s of other values than tensors, which is not supported",
			  info->name, what);
		return NULL;
	}
	if (!im->options || !im->options->nvalue) {
		ctx_error(im->ctx, NULL,
			  "input %s is %s: what it holds must be given when the model is read, as "
			  "values %s%s",
			  info->name, what, key,
			  elem ? arena_printf(im->ctx->scratch, ".0, %s.1, ...", key) : "");
		return NULL;
	}
	if (elem)
		return sequence_input(s, info, elem, key);
	const Tensor *given = given_input(im, key, info->name);
	OnnxInfo held = {info->name, (OnnxType *)type};
	return given ? tensor_input(s, &held, given) : onnx_value_list(im, NULL, 0);
}

static bool add_input(Scope *s, const OnnxInfo *info, uint32_t k)
{
	Import *im = s->im;
	const char *key = arena_printf(im->ctx->scratch, "x.%u", k);
	if (!info->name || !*info->name)
		return ctx_error(im->ctx, NULL, "input %u has no name", k);
	bool list = info->type && (info->type->sequence || info->type->optional);
	Value *v = list ? list_input(s, info, key)
			: tensor_input(s, info, given_input(im, key, info->name));
	return v && onnx_scope_bind(s, info->name, v);
}

/* Checks that every given value has the name of an input. Names with a dot are of references: x.0,
 * y.0. */
static bool check_values(Import *im, const OnnxGraph *g)
{
	for (uint32_t i = 0; im->options && i < im->options->nvalue; i++) {
		const char *name = im->options->value[i].name;
		Nearest near = {.word = name, .most = nearest_most(strlen(name))};
		bool known = strchr(name, '.');
		for (uint32_t k = 0; k < g->in.n && !known; k++) {
			const char *of = g->in.data[k].name;
			known = of && !strcmp(of, name);
			if (of)
				nearest_offer(&near, of);
		}
		if (!known)
			return ctx_error(im->ctx, NULL, "the values have %s, which is no input%s",
					 name, nearest_hint(im->ctx->scratch, &near)) ||
			       ctx_kind(im->ctx, REFUSAL_INPUT);
	}
	return true;
}

static bool add_inputs(Scope *s, const OnnxGraph *g)
{
	uint32_t n = 0;
	Intern inits;
	intern_init(&inits, s->im->ctx->scratch);
	onnx_init_names(g, &inits);
	for (uint32_t k = 0; k < g->in.n; k++) {
		const char *name = g->in.data[k].name;
		if (!name || !intern_find(&inits, name, strlen(name)))
			TRY(add_input(s, &g->in.data[k], n++));
	}
	return check_values(s->im, g);
}

static bool add_output(Scope *s, const char *name, Value *v)
{
	Node n = onnx_value_node(s, v);
	TRY(n.i);
	graph_add_output(s->b.g, name, n, -1);
	return true;
}

static bool add_outputs(Scope *s, const OnnxGraph *g)
{
	if (!g->out.n)
		return ctx_error(s->im->ctx, NULL, "the graph has no outputs");
	for (uint32_t k = 0; k < g->out.n; k++) {
		const OnnxInfo *info = &g->out.data[k];
		Value *v = info->name ? onnx_scope_find(s, info->name) : NULL;
		if (!v)
			return ctx_error(s->im->ctx, NULL, "no node gives output %s",
					 info->name ? info->name : "without a name");
		TRY(check_output(s, info, v));
		for (uint32_t i = 0; v->is_list && i < v->item.n; i++)
			if (v->item.data[i]->repeats.i)
				return ctx_error(
					s->im->ctx, NULL,
					"output %s is a sequence to which a loop adds: its "
					"number of rounds must be known when the model is "
					"read",
					info->name);
		for (uint32_t i = 0; v->is_list && i < v->item.n; i++)
			TRY(add_output(s, arena_printf(s->im->ctx->arena, "%s.%u", info->name, i),
				       v->item.data[i]));
		TRY(v->is_list || add_output(s, info->name, v));
	}
	return true;
}

/* ---- operators that are not known ---- */

typedef struct {
	Import *im;
	Intern seen;
	Text list;
} Unknown;

static int64_t version_of(const OnnxOpsets *o, const char *domain)
{
	for (uint32_t k = 0; k < o->n; k++) {
		const char *d = o->data[k].domain;
		bool same = onnx_is_main_domain(d) ? onnx_is_main_domain(domain)
						   : domain && !strcmp(d, domain);
		if (same)
			return o->data[k].version;
	}
	return onnx_is_main_domain(domain) ? 0 : 1;
}

static const char *function_key(Import *im, const char *domain, const char *name,
				const char *overload)
{
	return arena_printf(im->ctx->scratch, "%s:%s:%s", onnx_is_main_domain(domain) ? "" : domain,
			    name, overload ? overload : "");
}

static const OnnxFunction *function_of(Import *im, const OnnxNode *n)
{
	const char *key = function_key(im, n->domain, n->op, n->overload);
	uint32_t id = intern_find(&im->functions, key, strlen(key));
	return id ? &im->model->function.data[id - 1] : NULL;
}

static void list_unknown(Unknown *u, const OnnxOpsets *opset, const OnnxNode *node, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const OnnxNode *x = &node[k];
		bool fresh;
		for (uint32_t a = 0; a < x->attr.n; a++)
			if (x->attr.data[a].g)
				list_unknown(u, opset, x->attr.data[a].g->node.data,
					     x->attr.data[a].g->node.n);
		if (!x->op || function_of(u->im, x) || onnx_special_importer(x))
			continue;
		int64_t version = version_of(opset, x->domain);
		if (op_find_onnx(u->im->ctx, x->domain, x->op, version))
			continue;
		const char *why = onnx_refusal(x), *meant = "";
		if (!why && *(meant = onnx_op_hint(u->im->ctx, x->domain, x->op, version)))
			why = meant + strlen("; ");
		const char *name = arena_printf(u->im->ctx->scratch, "%s%s%s of opset %lld%s%s%s",
						onnx_is_main_domain(x->domain) ? "" : x->domain,
						onnx_is_main_domain(x->domain) ? "" : ".", x->op,
						(long long)version, why ? " (" : "", why ? why : "",
						why ? ")" : "");
		intern(&u->seen, name, strlen(name), &fresh);
		if (fresh)
			text_printf(&u->list, "%s%s", u->list.n ? ", " : "", name);
	}
}

/* Checks the opset: operators may mean something else in later versions. */
static bool check_version(Import *im, const OnnxOpsets *o)
{
	enum { NEWEST = 28 }; /* of ONNX 1.23 */
	int64_t version = version_of(o, "");
	return version <= NEWEST ||
	       ctx_error(im->ctx, NULL, "the model has opset %lld, expected at most %d",
			 (long long)version, NEWEST) ||
	       ctx_kind(im->ctx, REFUSAL_VERSION);
}

/* Checks that all operators are supported. One error names all that are not. */
static bool check_operators(Import *im)
{
	TRY(check_version(im, &im->model->opset));
	for (uint32_t k = 0; k < im->model->function.n; k++)
		TRY(check_version(im, &im->model->function.data[k].opset));
	Unknown u = {.im = im};
	intern_init(&u.seen, im->ctx->scratch);
	text_init(&u.list, im->ctx->scratch);
	list_unknown(&u, &im->model->opset, im->model->graph->node.data, im->model->graph->node.n);
	for (uint32_t k = 0; k < im->model->function.n; k++)
		list_unknown(&u, &im->model->function.data[k].opset,
			     im->model->function.data[k].node.data,
			     im->model->function.data[k].node.n);
	return !u.list.n ||
	       ctx_error(im->ctx, NULL, "the model has operators that are not supported: %s",
			 u.list.data) ||
	       ctx_kind(im->ctx, REFUSAL_OPERATOR);
}

/* ---- nodes ---- */

bool onnx_item_error(const Item *it, const char *fmt, ...)
{
	va_list ap;
	Text text;
	text_init(&text, it->s->im->ctx->scratch);
	va_start(ap, fmt);
	text_vprintf(&text, fmt, ap);
	va_end(ap);
	return ctx_error(it->s->im->ctx, it->s->b.where, "%s", text.data);
}

bool onnx_item_bind(const Item *it, uint32_t k, Value *v)
{
	if (k >= it->n->out.n || !*it->n->out.data[k])
		return true;
	if (v->node.i && v->home == it->s->b.g && node_op(v->home, v->node) != OP_input)
		graph_set_name(v->home, v->node, it->n->out.data[k]);
	return onnx_scope_bind(it->s, it->n->out.data[k], v);
}

static const OnnxAttr *attr_by_name(const OnnxAttr *attr, uint32_t n, const char *name)
{
	for (uint32_t k = 0; k < n; k++)
		if (attr[k].name && !strcmp(attr[k].name, name))
			return &attr[k];
	return NULL;
}

/* Returns an attribute of the call that the scope's function inlines. */
static const OnnxAttr *attr_of_call(const Scope *s, const char *name)
{
	if (!s->function)
		return NULL;
	const OnnxAttr *a = attr_by_name(s->call->attr.data, s->call->attr.n, name);
	if (a && a->refers)
		return attr_of_call(s->caller, a->refers);
	return a ? a
		 : attr_by_name(s->function->attr_default.data, s->function->attr_default.n, name);
}

const OnnxAttr *onnx_item_attr(const Item *it, const char *name)
{
	const OnnxAttr *a = attr_by_name(it->n->attr.data, it->n->attr.n, name);
	return a && a->refers && *a->refers ? attr_of_call(it->s, a->refers) : a;
}

int64_t onnx_item_int(const Item *it, const char *name, int64_t otherwise)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	return a ? a->i : otherwise;
}

static bool import_function(const Item *it, const OnnxFunction *f)
{
	Scope *outer = it->s, s;
	onnx_scope_init(&s, outer->im, outer->b.g, NULL, &f->opset);
	s.b.where = outer->b.where;
	s.loc = outer->b.loc;
	s.function = f;
	s.call = it->n;
	s.caller = outer;
	s.depth = outer->depth + 1;
	if (s.depth > MAX_CALLS)
		return onnx_item_error(it, "functions call each other more than %d deep",
				       MAX_CALLS);
	for (uint32_t k = 0; k < f->in.n; k++) {
		Value *v = onnx_item_in(it, k);
		TRY(onnx_scope_bind(&s, f->in.data[k], v ? v : onnx_value_list(s.im, NULL, 0)));
	}
	TRY(onnx_scope_nodes(&s, f->node.data, f->node.n, f->out));
	for (uint32_t k = 0; k < f->out.n && k < it->n->out.n; k++) {
		Value *v = onnx_scope_find(&s, f->out.data[k]);
		if (!v)
			return onnx_item_error(it, "no node of function %s gives its result %s",
					       f->name, f->out.data[k]);
		TRY(onnx_item_bind(it, k, v));
	}
	return true;
}

static bool read_inputs(Item *it)
{
	const OnnxNode *n = it->n;
	it->nin = n->in.n;
	it->in = ARENA_ARRAY(it->s->im->ctx->scratch, Value *, n->in.n);
	for (uint32_t k = 0; k < n->in.n; k++) {
		if (!*n->in.data[k])
			continue;
		it->in[k] = onnx_scope_find(it->s, n->in.data[k]);
		if (!it->in[k])
			return onnx_item_error(it,
					       "input %s is the result of no node before this one",
					       n->in.data[k]);
	}
	return true;
}

static const char *metadata(const OnnxNode *n, const char *key)
{
	for (uint32_t k = 0; k < n->metadata.n; k++)
		if (n->metadata.data[k].key && n->metadata.data[k].value &&
		    !strcmp(n->metadata.data[k].key, key))
			return n->metadata.data[k].value;
	return NULL;
}

/* Returns the module around a node: "layers.0" of "['', 'layers.0', 'relu']"; "" without any. */
static const char *module_of(Import *im, const OnnxNode *n)
{
	const char *scopes = metadata(n, "pkg.torch.onnx.name_scopes"),
		   *last = scopes ? strrchr(scopes, ',') : NULL;
	const char *start = last;
	while (start && start > scopes && start[-1] != ',' && start[-1] != '[')
		start--;
	if (!last || last - start < 2)
		return "";
	start += strspn(start, " '");
	return last - start > 1 ? arena_strndup(im->ctx->scratch, start, (size_t)(last - start - 1))
				: "";
}

/* Returns the source line "net.py:12 in layers.0", which PyTorch's exporter states; NULL if the
 * file does not. */
static const char *source_of(Import *im, const OnnxNode *n)
{
	const char *frame = frame_of_trace(im->ctx, metadata(n, "pkg.torch.onnx.stack_trace")),
		   *module = module_of(im, n);
	return frame && *module ? arena_printf(im->ctx->scratch, "%s in %s", frame, module) : frame;
}

/* Returns "/layer1/conv1/Conv in /layer1/conv1" of a name that is a path, as exporters write it;
 * NULL if the name is none. */
static const char *path_of(Import *im, const OnnxNode *n)
{
	const char *last = n->name ? strrchr(n->name, '/') : NULL;
	if (!last || !last[1])
		return NULL;
	return last == n->name ? n->name
			       : arena_printf(im->ctx->scratch, "%s in %.*s", n->name,
					      (int)(last - n->name), n->name);
}

/* Sets the place for messages and nodes. A node without a line has its name, if that is a path,
 * else the place of the call around it. */
static void set_place(Scope *s, const OnnxNode *n)
{
	Import *im = s->im;
	const char *label = n->name && *n->name ? n->name
			    : n->out.n          ? n->out.data[0]
						: "",
		   *source = source_of(im, n), *path = source ? source : path_of(im, n);
	s->b.where = arena_printf(im->ctx->arena, "%s: node %s (%s%s%s)",
				  im->ctx->file ? im->ctx->file : "model", label,
				  n->op ? n->op : "?", source ? ", " : "", source ? source : "");
	s->b.loc = path ? ir_loc(im->ir, path) : s->loc;
}

static bool import_node(Scope *s, const OnnxNode *n)
{
	Import *im = s->im;
	bool done = false;
	set_place(s, n);
	Item it = {.s = s, .n = n, .opset = version_of(s->opset, n->domain)};
	if (!n->op)
		return onnx_item_error(&it, "a node without an operator");
	TRY(read_inputs(&it));
	bool inner = s->outer || s->function;
	if (inner && ++im->nexpanded > MAX_EXPANDED)
		return onnx_item_error(
			&it, "functions and bodies that are inlined have more than %d nodes",
			MAX_EXPANDED);
	const OnnxFunction *f = function_of(im, n);
	if (f)
		return import_function(&it, f);
	if (onnx_is_main_domain(n->domain))
		TRY(onnx_import_sizes(&it, &done));
	if (done)
		return true;
	Importer special = onnx_special_importer(n);
	if (special)
		return special(&it);
	Op op = op_find_onnx(im->ctx, n->domain, n->op, it.opset);
	if (!op)
		return onnx_item_error(&it, "the operator is not supported") ||
		       ctx_kind(im->ctx, REFUSAL_OPERATOR);
	TRY(onnx_import_call(&it, op));
	if (onnx_is_main_domain(n->domain))
		onnx_note_comparison(&it);
	return true;
}

/* Whether memory can hold all that was added behind node `last`. */
static bool check_sizes(Scope *s, Node last)
{
	const Graph *g = s->b.g;
	for (Node n = last.i ? node_next(g, last) : g->first; n.i; n = node_next(g, n))
		if (!node_fits(g, n))
			return ctx_error(s->im->ctx, s->b.where,
					 "a tensor %s is too large: expected fewer than 2^48 bytes",
					 type_str(s->im->ir, node_type_id(g, n)));
	return true;
}

bool onnx_scope_nodes(Scope *s, const OnnxNode *node, uint32_t n, OnnxNames results)
{
	const char *where = s->b.where;
	s->rest = (Rest){.next = node, .end = node ? node + n : node, .results = results};
	while (s->rest.next < s->rest.end) {
		Node last = s->b.g->last;
		TRY(import_node(s, s->rest.next++) && check_sizes(s, last));
	}
	s->b.where = where;
	return true;
}

bool onnx_scope_graph(Scope *s, const OnnxGraph *g)
{
	OnnxNames results = {0};
	for (uint32_t k = 0; k < g->out.n; k++)
		if (g->out.data[k].name)
			array_push(s->im->ctx->scratch, &results, g->out.data[k].name);
	return onnx_scope_inits(s, g) && onnx_scope_nodes(s, g->node.data, g->node.n, results);
}

/* ---- the model ---- */

static bool add_functions(Import *im)
{
	intern_init(&im->functions, im->ctx->scratch);
	intern_init(&im->dims, im->ctx->scratch);
	for (uint32_t k = 0; k < im->model->function.n; k++) {
		const OnnxFunction *f = &im->model->function.data[k];
		bool fresh;
		if (!f->name)
			return ctx_error(im->ctx, NULL, "function %u has no name", k);
		const char *key = function_key(im, f->domain, f->name, f->overload);
		intern(&im->functions, key, strlen(key), &fresh);
		if (!fresh)
			return ctx_error(im->ctx, NULL, "function %s is defined twice", f->name);
	}
	return true;
}

/* Checks the types that the file states of values inside: nothing is computed from them, so one
 * warning says where they are wrong. */
static void check_infos(Scope *s, const OnnxGraph *g)
{
	const char *first = NULL;
	uint32_t more = 0;
	for (uint32_t k = 0; k < g->info.n; k++) {
		const OnnxInfo *info = &g->info.data[k];
		Value *v = info->name ? onnx_scope_find(s, info->name) : NULL;
		const OnnxTensorType *t = stated_tensor(info, v);
		if (!t || agreement(s, t, v) == AGREES)
			continue;
		more += first != NULL;
		first = first ? first : contradiction(s, info, v);
	}
	if (first)
		ctx_warn(s->im->ctx, s->b.where, "%s%s", first,
			 more ? arena_printf(s->im->ctx->scratch,
					     " (so do value_infos of %u other values)", more)
			      : "");
}

static Graph *import_model(Import *im)
{
	const OnnxGraph *g = im->model->graph;
	Scope s;
	if (!add_functions(im) || !check_operators(im))
		return NULL;
	im->main = graph_new(im->ir, g->name ? symbol_name(im, g->name) : "main");
	onnx_scope_init(&s, im, im->main, NULL, &im->model->opset);
	s.b.where = NULL;
	if (!add_inputs(&s, g) || !onnx_scope_graph(&s, g) || !add_outputs(&s, g))
		return NULL;
	check_infos(&s, g);
	graph_dce(im->main);
	return im->main;
}

static OnnxFolder folder_of(Ctx *ctx, const char *path)
{
	const char *base = file_base(path);
	size_t n = (size_t)(base - path);
	OnnxFolder folder = {.path = n > 1 ? arena_strndup(ctx->arena, path, n - 1) : n ? "/" : ""};
	intern_init(&folder.name, ctx->arena);
	return folder;
}

Graph *onnx_load_bytes(Ir *ir, const char *path, const void *data, size_t size,
		       const OnnxOptions *options)
{
	Import *im = ARENA_NEW(ir->ctx->arena, Import);
	CtxMark mark = ctx_mark(ir->ctx);
	*im = (Import){.ir = ir,
		       .ctx = ir->ctx,
		       .syms = ir->syms,
		       .options = options,
		       .folder = folder_of(ir->ctx, path)};
	im->model = onnx_model_read(ir->ctx, data, size);
	Graph *g = im->model ? import_model(im) : NULL;
	if (ctx_first_only(ir->ctx, mark))
		return g;
	ctx_kind(ir->ctx, REFUSAL_FORM);
	return NULL;
}
