/* Weights of classes that wrap tensors (torchao's quantised ones), which archives hold as
 * torch.save writes them: another archive, of a pickle and the contents of its tensors. The graph
 * names the inner tensors one by one (export.access_subclass_inner_tensor); each becomes a
 * constant. The class itself means nothing here. */
#include <string.h>

#include "frontend/pt2/priv.h"

enum { MAX_PICKLE = 1 << 20 };

static bool refuse(Import *im, const char *label, const char *why, const char *what)
{
	return ctx_error(im->ctx, NULL, "weight %s is pickled, and %s%s", label, why, what);
}

/* Returns what a message may say of a value. */
static const char *describe(const PickleValue *v)
{
	static const char *const kind[] = {
		[PICKLE_NONE] = "None",    [PICKLE_BOOL] = "a bool",
		[PICKLE_INT] = "a number", [PICKLE_FLOAT] = "a number",
		[PICKLE_TEXT] = "a text",  [PICKLE_TUPLE] = "a tuple",
		[PICKLE_LIST] = "a list",  [PICKLE_DICT] = "a dictionary",
		[PICKLE_CALL] = "a call",  [PICKLE_PERSISTENT] = "a storage",
		[PICKLE_MARK] = "a mark"};
	if (!v)
		return "nothing";
	const PickleValue *callee = v->kind == PICKLE_CALL ? pickle_item(v, 0) : v;
	return pickle_is(callee, PICKLE_GLOBAL, NULL) ? callee->text : kind[v->kind];
}

/* ---- tensors ---- */

static const struct {
	const char *storage, *dtype; /* of torch */
	DType is;
} dtypes[] = {
	{"ComplexDoubleStorage", "complex128", DT_c128},
	{"ComplexFloatStorage", "complex64", DT_c64},
	{"", "complex32", DT_c32},
	{"DoubleStorage", "float64", DT_f64},
	{"FloatStorage", "float32", DT_f32},
	{"HalfStorage", "float16", DT_f16},
	{"BFloat16Storage", "bfloat16", DT_bf16},
	{"LongStorage", "int64", DT_i64},
	{"IntStorage", "int32", DT_i32},
	{"ShortStorage", "int16", DT_i16},
	{"CharStorage", "int8", DT_i8},
	{"ByteStorage", "uint8", DT_u8},
	{"BoolStorage", "bool", DT_bool},
	{"", "uint16", DT_u16},
	{"", "uint32", DT_u32},
	{"", "uint64", DT_u64},
	{"", "float8_e4m3fn", DT_f8e4m3},
	{"", "float8_e5m2", DT_f8e5m2},
	{"", "float8_e4m3fnuz", DT_f8e4m3fnuz},
	{"", "float8_e5m2fnuz", DT_f8e5m2fnuz},
};

/* Returns the dtype of "torch float32" or "torch FloatStorage"; DT_none for others. */
static DType dtype_of(const PickleValue *v)
{
	if (!pickle_is(v, PICKLE_GLOBAL, NULL) || strncmp(v->text, "torch ", 6))
		return DT_none;
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (!strcmp(v->text + 6, dtypes[k].storage) ||
		    !strcmp(v->text + 6, dtypes[k].dtype))
			return dtypes[k].is;
	return DT_none;
}

/* Returns what a value is made from, if it is a parameter, or a value with attributes. */
static const PickleValue *bare(const PickleValue *v)
{
	for (int depth = 0; depth < 4; depth++) {
		const PickleValue *args = pickle_call_of(v, "torch._utils _rebuild_parameter");
		if (!args)
			args = pickle_call_of(v, "torch._utils _rebuild_parameter_with_state");
		if (!args)
			break;
		v = pickle_item(args, 0);
	}
	return v;
}

/* Returns the arguments of the function that makes the value, if it is that one: through a call
 * that sets a type and attributes too. Else NULL. */
static const PickleValue *made_by(const PickleValue *v, const char *function)
{
	const PickleValue *typed = pickle_call_of(v, "torch._tensor _rebuild_from_type_v2");
	if (!typed)
		return pickle_call_of(v, function);
	return pickle_is(pickle_item(typed, 0), PICKLE_GLOBAL, function) ? pickle_item(typed, 2)
									 : NULL;
}

static bool read_sizes(Import *im, const PickleValue *v, uint32_t rank, const Sym **out)
{
	Sym *s = ARENA_ARRAY(im->ctx->arena, Sym, rank);
	bool ok = pickle_is(v, PICKLE_TUPLE, NULL) && v->item.n == rank && rank <= MAX_RANK;
	for (uint32_t k = 0; k < rank && ok; k++) {
		ok = pickle_is(v->item.data[k], PICKLE_INT, NULL);
		s[k] = sym_int(im->syms, ok ? v->item.data[k]->i : 0);
	}
	*out = s;
	return ok;
}

/* Reads shape and place; *key names the storage. args: of a call of _rebuild_tensor_v2; typed:
 * of _rebuild_tensor_v3. */
static bool read_tensor(Import *im, const PickleValue *args, bool typed, Meta *m, const char **key)
{
	const PickleValue *store = pickle_item(args, 0),
			  *where = pickle_is(store, PICKLE_PERSISTENT, NULL) ? pickle_item(store, 0)
									     : NULL;
	const PickleValue *size = pickle_item(args, 2), *offset = pickle_item(args, 1),
			  *id = pickle_item(where, 2);
	*m = (Meta){.dtype = dtype_of(typed ? pickle_item(args, 6) : pickle_item(where, 1))};
	if (!m->dtype || !size || !pickle_is(offset, PICKLE_INT, NULL) ||
	    !pickle_is(id, PICKLE_TEXT, NULL) ||
	    !pickle_is(pickle_item(where, 0), PICKLE_TEXT, "storage"))
		return false;
	m->rank = size->item.n;
	m->offset = sym_int(im->syms, offset->i);
	*key = id->text;
	return read_sizes(im, size, m->rank, &m->size) &&
	       read_sizes(im, pickle_item(args, 3), m->rank, &m->stride);
}

/* A plain tensor: its contents, and where they lie. */
typedef struct {
	ConstId constant;
	const Member *member;
	Meta meta;
	bool learns; /* requires a gradient by itself */
} Loaded;

static bool load_tensor(Import *im, const Wrapped *w, Loaded *out)
{
	const PickleValue *v2 = made_by(w->value, "torch._utils _rebuild_tensor_v2");
	const PickleValue *v3 = made_by(w->value, "torch._utils _rebuild_tensor_v3");
	const char *key;
	Bytes raw;
	if (!v2 && !v3)
		return refuse(im, w->label, "no tensor of its own nor one that wraps tensors: ",
			      describe(w->value));
	if (!read_tensor(im, v2 ? v2 : v3, !v2, &out->meta, &key))
		return refuse(im, w->label, "its shape, dtype or storage is not one that is read",
			      "");
	const PickleValue *learns = pickle_item(v2 ? v2 : v3, 4);
	out->learns = pickle_is(learns, PICKLE_BOOL, NULL) && learns->i;
	const char *name = arena_printf(im->ctx->scratch, "data/%s", key);
	Member *member = archive_find(w->archive, name);
	if (!member)
		return refuse(im, w->label, "its archive has no member ", name);
	out->member = member;
	TRY(archive_read(im->ctx, w->archive, member, &raw));
	return weight_contents(im, w->label, &out->meta, name, &raw, w->is_param, &out->constant);
}

/* ---- classes ---- */

/* Returns the members of a value that wraps tensors, NULL for others. */
static const PickleValue *members_of(const PickleValue *v)
{
	const PickleValue *typed = pickle_call_of(v, "torch._tensor _rebuild_from_type_v2");
	if (!pickle_is(pickle_item(typed, 0), PICKLE_GLOBAL,
		       "torch._utils _rebuild_wrapper_subclass"))
		return NULL;
	const PickleValue *state = pickle_item(typed, 3);
	/* with slots: a pair */
	return pickle_is(state, PICKLE_TUPLE, NULL) ? pickle_item(state, 0) : state;
}

/* Whether a tensor, or the parameter that it is of, requires a gradient. */
static bool learns(const PickleValue *v, const Loaded *tensor)
{
	const PickleValue *args = pickle_call_of(v, "torch._utils _rebuild_parameter");
	if (!args)
		args = pickle_call_of(v, "torch._utils _rebuild_parameter_with_state");
	const PickleValue *flag = pickle_item(args, 1);
	return args ? pickle_is(flag, PICKLE_BOOL, NULL) && flag->i : tensor->learns;
}

bool wrapped_load(Import *im, const char *label, const PickleValue *v, Archive *a, bool is_param,
		  StateSpec *out)
{
	Wrapped *w = ARENA_NEW(im->ctx->arena, Wrapped);
	*w = (Wrapped){arena_strdup(im->ctx->arena, label), bare(v), a, is_param, {0}};
	if (members_of(w->value)) {
		out->wrapped = w;
		return true;
	}
	Loaded tensor = {0};
	TRY(load_tensor(im, w, &tensor));
	out->constant = tensor.constant;
	out->member = tensor.member;
	out->meta = tensor.meta;
	im->ir->constant.data[out->constant.i].frozen = !learns(v, &tensor);
	return true;
}

bool wrapped_read(Import *im, const char *label, const char *member, const Bytes *raw,
		  bool is_param, StateSpec *out)
{
	const char *what = arena_printf(im->ctx->arena, "weight %s", label);
	Archive *a;
	const PickleValue *v = saved_read(im, what, member, raw, MAX_PICKLE, &a);
	return v && wrapped_load(im, label, v, a, is_param, out);
}

/* ---- the graph ---- */

void wrapped_bind(Import *im, const char *name, Wrapped *w)
{
	bool fresh;
	uint32_t id = intern(&im->wrapped_name, name, strlen(name), &fresh);
	if (fresh)
		array_push(im->ctx->arena, &im->wrapped, w);
	else /* of an earlier pass */
		im->wrapped.data[id - 1] = w;
}

Wrapped *wrapped_find(const Import *im, const char *name)
{
	uint32_t id = intern_find(&im->wrapped_name, name, strlen(name));
	return id ? im->wrapped.data[id - 1] : NULL;
}

/* Returns "qdata, scale", the names of members that are tensors or wrap tensors. */
static const char *member_names(Import *im, const PickleValue *members)
{
	Text t;
	text_init(&t, im->ctx->scratch);
	for (uint32_t k = 0; members && k + 1 < members->item.n; k += 2)
		if (pickle_is(members->item.data[k], PICKLE_TEXT, NULL) &&
		    pickle_is(members->item.data[k + 1], PICKLE_CALL, NULL))
			text_printf(&t, "%s%s", t.n ? ", " : "", members->item.data[k]->text);
	return t.n ? t.data : "none";
}

static bool bind_constant(Scope *s, const char *name, const Wrapped *w)
{
	Meta m;
	const Const *c = ir_const_of(s->st->im->ir, w->constant);
	TRY(scope_meta(s, name, &m));
	bool same = c->dtype == m.dtype && c->rank == m.rank;
	for (uint32_t k = 0; k < m.rank && same; k++)
		same = sym_is(s->st->im->syms, m.size[k], c->dim[k]);
	if (!same)
		return ctx_error(
			s->st->im->ctx, s->where,
			"weight %s has another dtype or shape in its pickle than in the graph",
			w->label);
	Node n = b_const(&s->b, w->constant);
	graph_set_name(s->st->g, n, name);
	return scope_bind(s, name, value_new(s->st, n, &m));
}

bool import_inner_tensor(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	const char *tag, *of = json_str(arg_find(node, "src_subclass_tensor", 0, &tag), "name");
	const json_t *attr = arg_find(node, "attr", 1, &tag);
	json_t *v;
	const char *out_tag = json_tag(json_array_get(json_object_get(node, "outputs"), 0), &v),
		   *name = json_str(v, "name");
	Wrapped *from = of ? wrapped_find(im, of) : NULL;
	if (!json_is_string(attr) || !out_tag || strcmp(out_tag, "as_tensor") || !name)
		return ctx_error(im->ctx, s->where,
				 "expected the name of a member and a tensor for it");
	if (!from)
		return ctx_error(im->ctx, s->where,
				 "%s is not a weight that wraps tensors: inputs of such classes "
				 "are not supported",
				 of ? of : "what it reads");
	const PickleValue *members = members_of(from->value),
			  *member = bare(pickle_get(members, json_string_value(attr)));
	if (!pickle_is(member, PICKLE_CALL, NULL))
		return ctx_error(im->ctx, s->where, "weight %s has no tensor %s, it has %s",
				 from->label, json_string_value(attr), member_names(im, members));
	Wrapped *w = ARENA_NEW(im->ctx->arena, Wrapped);
	*w = (Wrapped){arena_printf(im->ctx->arena, "%s.%s", from->label, json_string_value(attr)),
		       member,
		       from->archive,
		       from->is_param,
		       {0}};
	if (members_of(member)) {
		wrapped_bind(im, name, w);
		return true;
	}
	Loaded tensor = {0};
	TRY(load_tensor(im, w, &tensor));
	w->constant = tensor.constant;
	return bind_constant(s, name, w);
}
