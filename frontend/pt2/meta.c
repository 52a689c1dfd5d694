#include <string.h>

#include "frontend/pt2/priv.h"

const char *json_str(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

const char *json_tag(const json_t *object, json_t **value)
{
	*value = NULL;
	if (json_object_size(object) != 1)
		return NULL;
	void *it = json_object_iter((json_t *)object);
	*value = json_object_iter_value(it);
	return json_object_iter_key(it);
}

/* ---- dtypes ---- */

static const struct {
	uint8_t code;
	DType dtype;
	const char *name; /* where there is no DType */
} dtypes[] = {
	{1, DT_u8, NULL},
	{2, DT_i8, NULL},
	{3, DT_i16, NULL},
	{4, DT_i32, NULL},
	{5, DT_i64, NULL},
	{6, DT_f16, NULL},
	{7, DT_f32, NULL},
	{8, DT_f64, NULL},
	{9, DT_c32, NULL},
	{10, DT_c64, NULL},
	{11, DT_c128, NULL},
	{12, DT_bool, NULL},
	{13, DT_bf16, NULL},
	{28, DT_u16, NULL},
	{29, DT_f8e4m3, NULL},
	{30, DT_f8e5m2, NULL},
	{34, DT_u32, NULL},
	{35, DT_u64, NULL},
	{31, DT_f8e4m3fnuz, NULL},
	{32, DT_f8e5m2fnuz, NULL},
	{33, DT_none, "f8e8m0fnu"},
};

DType pt2_dtype(int64_t code)
{
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (dtypes[k].code == code)
			return dtypes[k].dtype;
	return DT_none;
}

const char *pt2_dtype_name(int64_t code)
{
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (dtypes[k].code == code)
			return dtypes[k].name ? dtypes[k].name : dtype_name(dtypes[k].dtype);
	return "unknown";
}

/* ---- integers and tensors ---- */

static ExprEnv expr_env(Import *im)
{
	return (ExprEnv){.ctx = im->ctx, .syms = im->syms};
}

Sym meta_sym(Import *im, const json_t *json, const char *where)
{
	json_t *v;
	const char *tag = json_tag(json, &v);
	if (tag && !strcmp(tag, "as_int") && json_is_integer(v))
		return sym_int(im->syms, json_integer_value(v));
	const char *text = tag && !strcmp(tag, "as_expr") ? json_str(v, "expr_str") : NULL;
	if (!text) {
		ctx_error(im->ctx, where, "expected an integer or an expression as a size");
		return (Sym){0};
	}
	ExprEnv env = expr_env(im);
	Sym s = expr_int(&env, text);
	if (!s.i)
		ctx_error(im->ctx, where, "size expression not understood: %s", env.error);
	for (uint32_t k = 0; s.i && k < env.nneed; k++)
		array_push(im->ctx->arena, &im->need, (Need){env.need[k], text});
	return s;
}

bool meta_require_divisors(Import *im, Graph *g, const char *where)
{
	for (uint32_t k = 0; k < im->need.n; k++) {
		const Need *n = &im->need.data[k];
		TRY(meta_require(
			im, g, &n->cond, where,
			arena_printf(im->ctx->arena, "no division by zero in %s", n->text)));
	}
	im->need.n = 0;
	return true;
}

static bool read_syms(Import *im, const json_t *list, uint32_t n, const char *where,
		      const Sym **out)
{
	Sym *s = ARENA_ARRAY(im->ctx->arena, Sym, n);
	for (uint32_t k = 0; k < n; k++) {
		s[k] = meta_sym(im, json_array_get(list, k), where);
		TRY(s[k].i);
	}
	*out = s;
	return true;
}

/* Checks that a size is never negative: that bounds data-dependent sizes, and refuses damaged
 * files. */
static bool check_sizes(Import *im, const Meta *m, const char *name, const char *where)
{
	for (uint32_t k = 0; k < m->rank; k++) {
		int64_t lo, hi;
		sym_range(im->syms, m->size[k], &lo, &hi);
		if (hi < 0)
			return ctx_error(im->ctx, where, "size %u of tensor %s is negative", k,
					 name);
		if (lo < 0 && sym_kind(im->syms, m->size[k]) == SYM_VAR)
			sym_bound(im->syms, m->size[k], 0, SYM_INF);
	}
	return true;
}

bool meta_read(Import *im, const json_t *json, const char *name, const char *where, Meta *m)
{
	json_t *sizes = json_object_get(json, "sizes"), *strides = json_object_get(json, "strides");
	json_t *code = json_object_get(json, "dtype");
	if (!json_is_array(sizes) || !json_is_array(strides) || !json_is_integer(code))
		return ctx_error(im->ctx, where, "no description of tensor %s", name);
	*m = (Meta){.dtype = pt2_dtype(json_integer_value(code))};
	if (m->dtype == DT_none)
		return ctx_error(im->ctx, where, "tensor %s has unsupported dtype %s (code %lld)",
				 name, pt2_dtype_name(json_integer_value(code)),
				 (long long)json_integer_value(code)) ||
		       ctx_kind(im->ctx, REFUSAL_DTYPE);
	if (json_array_size(sizes) != json_array_size(strides))
		return ctx_error(im->ctx, where, "tensor %s has %zu sizes but %zu strides", name,
				 json_array_size(sizes), json_array_size(strides));
	if (json_array_size(sizes) > MAX_RANK)
		return ctx_error(im->ctx, where,
				 "tensor %s has %zu dimensions, at most %d are supported", name,
				 json_array_size(sizes), MAX_RANK);
	json_t *layout = json_object_get(json, "layout");
	if (json_is_integer(layout) && json_integer_value(layout) != 7)
		return ctx_error(im->ctx, where, "tensor %s is not strided (layout %lld)", name,
				 (long long)json_integer_value(layout));
	m->rank = (uint32_t)json_array_size(sizes);
	TRY(read_syms(im, sizes, m->rank, where, &m->size));
	TRY(read_syms(im, strides, m->rank, where, &m->stride));
	TRY(check_sizes(im, m, name, where));
	m->offset = meta_sym(im, json_object_get(json, "storage_offset"), where);
	return m->offset.i;
}

TypeId meta_type(Import *im, const Meta *m)
{
	return ir_type(im->ir, m->dtype, m->rank, m->size);
}

bool meta_is_contiguous(Import *im, const Meta *m)
{
	Sym expect = sym_int(im->syms, 1);
	for (uint32_t k = m->rank; k-- > 0;) {
		if (sym_is(im->syms, m->size[k], 0))
			return true;
		if (!sym_is(im->syms, m->size[k], 1) && m->stride[k].i != expect.i)
			return false;
		expect = sym_mul(im->syms, expect, m->size[k]);
	}
	return true;
}

/* ---- symbols ---- */

/* Reads a range. PyTorch writes its infinity as null, or as an integer next to the largest. */
static void read_range(const json_t *range, int64_t *lo, int64_t *hi)
{
	const json_t *min = json_object_get(range, "min_val"),
		     *max = json_object_get(range, "max_val");
	*lo = json_is_integer(min) ? json_integer_value(min) : -SYM_INF;
	*hi = json_is_integer(max) ? json_integer_value(max) : SYM_INF;
	if (*hi >= SYM_INF - 1)
		*hi = SYM_INF;
	if (*lo <= -(SYM_INF - 1))
		*lo = -SYM_INF;
}

/* Narrows var by lo <= coef * var + rest <= hi. Returns true when that says it all. */
static bool narrow(Import *im, Sym e, int64_t lo, int64_t hi)
{
	for (uint32_t k = 0; k < sym_nvars(im->syms); k++) {
		Sym var = sym_var_at(im->syms, k), coef, rest;
		int64_t c, r;
		if (!sym_uses(im->syms, e, var))
			continue;
		if (!sym_linear(im->syms, e, var, &coef, &rest) ||
		    !sym_is_const(im->syms, coef, &c) || !sym_is_const(im->syms, rest, &r) ||
		    c <= 0 || r <= -SYM_INF / 4 || r >= SYM_INF / 4)
			return false;
		int64_t l = -SYM_INF, h = SYM_INF;
		if (lo > -SYM_INF / 4)
			l = lo - r > 0 ? (lo - r + c - 1) / c : -((r - lo) / c);
		if (hi < SYM_INF / 4)
			h = hi - r >= 0 ? (hi - r) / c : -((r - hi + c - 1) / c);
		return sym_bound(im->syms, var, l, h);
	}
	return false;
}

/* Reads the hint of a symbol from that of a size: 32*s39 with the hint 224 tells that of s39. */
static void read_hint(Import *im, const json_t *size)
{
	const json_t *e = json_object_get(size, "as_expr");
	const json_t *hint = json_object_get(json_object_get(e, "hint"), "as_int");
	const char *text = json_str(e, "expr_str");
	ExprEnv env = expr_env(im);
	Sym s = text && json_is_integer(hint) ? expr_int(&env, text) : (Sym){0};
	if (!s.i)
		return;
	int64_t h = json_integer_value(hint);
	for (uint32_t k = 0; k < sym_nvars(im->syms); k++) {
		Sym var = sym_var_at(im->syms, k), coef, rest;
		int64_t c, r, d;
		if (sym_uses(im->syms, s, var) && sym_linear(im->syms, s, var, &coef, &rest) &&
		    sym_is_const(im->syms, coef, &c) && sym_is_const(im->syms, rest, &r) && c > 0 &&
		    !__builtin_sub_overflow(h, r, &d) && d % c == 0)
			sym_set_hint(im->syms, var, d / c);
	}
}

/* Finds sizes whose range is an assumption of export, which the model does not make: torchvision
 * says of the result of nms that it has an unknown size, and PyTorch takes such sizes for 2 at
 * least, "which are not 0 or 1". */
static void find_loose(Import *im, const json_t *graph, uint32_t depth)
{
	size_t i, k;
	json_t *node, *input, *out;
	json_array_foreach(json_object_get(graph, "nodes"), i, node)
	{
		const char *target = json_str(node, "target");
		json_array_foreach(json_object_get(node, "inputs"), k, input)
		{
			json_t *sub = json_object_get(
				json_object_get(json_object_get(input, "arg"), "as_graph"),
				"graph");
			if (sub && depth < 32)
				find_loose(im, sub, depth + 1);
		}
		if (!target || strcmp(target, "torch.ops.torchvision.nms.default"))
			continue;
		const char *tag = json_tag(json_array_get(json_object_get(node, "outputs"), 0),
					   &out),
			   *name = json_str(out, "name");
		json_t *tensor =
			tag && name ? json_object_get(json_object_get(graph, "tensor_values"), name)
				    : NULL;
		json_t *size = json_array_get(json_object_get(tensor, "sizes"), 0);
		const char *text = json_str(json_object_get(size, "as_expr"), "expr_str");
		if (!text || strncmp(text, "Symbol('", strlen("Symbol('")))
			continue;
		text += strlen("Symbol('");
		intern(&im->loose, text, (uint32_t)strcspn(text, "'"), NULL);
	}
}

static bool is_loose(const Import *im, const char *name)
{
	return intern_find(&im->loose, name, (uint32_t)strlen(name)) != 0;
}

/* Whether the symbol may be 0 although its range begins at lo. torch.export takes sizes of inputs
 * for 2 at least (Dim.DYNAMIC, Dim.AUTO, min=0 to 2), and no caller of the exported program is told
 * so: PyTorch checks bounds above 2 alone. A count of data (u0) is what the model says of it. */
static bool is_free_below(const Import *im, const char *name, int64_t lo)
{
	return name[0] == 'u' ? lo == 2 && is_loose(im, name) : lo < 0 || lo == 2;
}

bool meta_is_loose(const Import *im, const Cond *c)
{
	return !c->fixed && c->kind == GUARD_LE && sym_is(im->syms, c->a, 2) &&
	       sym_kind(im->syms, c->b) == SYM_VAR && is_loose(im, sym_name(im->syms, c->b));
}

bool meta_symbols(Import *im)
{
	const char *key;
	json_t *range, *tensor, *size;
	size_t k;
	ExprEnv env = expr_env(im);
	intern_init(&im->loose, im->ctx->arena);
	find_loose(im, json_object_get(json_object_get(im->root, "graph_module"), "graph"), 0);
	json_t *ranges = json_object_get(im->root, "range_constraints");
	json_object_foreach(ranges, key, range)
	{
		int64_t lo, hi;
		read_range(range, &lo, &hi);
		if (!text_is_identifier(key))
			continue;
		if (lo > hi)
			return ctx_error(im->ctx, NULL,
					 "range constraint of %s: %lld to %lld is empty", key,
					 (long long)lo, (long long)hi);
		if (is_free_below(im, key, lo))
			lo = 0;
		if (!expr_symbol(&env, key, lo, hi).i)
			return ctx_error(im->ctx, NULL, "range constraint of %s: %s", key,
					 env.error);
	}
	json_t *graph = json_object_get(json_object_get(im->root, "graph_module"), "graph");
	json_object_foreach(json_object_get(graph, "tensor_values"), key, tensor)
	{
		json_array_foreach(json_object_get(tensor, "sizes"), k, size)
		{
			read_hint(im, size);
		}
	}
	return true;
}

/* ---- guards ---- */

/* Returns the name of the tensor that leaf k of the user's inputs is, or NULL. */
static const char *leaf_tensor(const Import *im, int64_t k)
{
	size_t i;
	json_t *spec, *v, *arg;
	json_array_foreach(im->inputs, i, spec)
	{
		const char *tag = json_tag(spec, &v);
		bool user = tag && !strcmp(tag, "user_input");
		if (!user && (!tag || strcmp(tag, "constant_input")))
			continue;
		if (k--)
			continue;
		tag = json_tag(json_object_get(v, "arg"), &arg);
		return user && tag && !strcmp(tag, "as_tensor") ? json_str(arg, "name") : NULL;
	}
	return NULL;
}

static Sym input_dim(void *arg, const PathKey *path, uint32_t n, int64_t dim)
{
	Import *im = arg;
	json_t *graph = json_object_get(json_object_get(im->root, "graph_module"), "graph");
	int64_t leaf = tree_find(im, &im->input_tree, path, n);
	const char *name = leaf >= 0 ? leaf_tensor(im, leaf) : NULL;
	if (!im->input_tree.leaf.n && n == 1) /* no signature: the file's own name */
		name = path[0].name;
	json_t *sizes =
		name ? json_object_get(
			       json_object_get(json_object_get(graph, "tensor_values"), name),
			       "sizes")
		     : NULL;
	if (dim < 0)
		dim += (int64_t)json_array_size(sizes);
	if (dim < 0 || (size_t)dim >= json_array_size(sizes))
		return (Sym){0};
	return meta_sym(im, json_array_get(sizes, (size_t)dim), NULL);
}

bool meta_require(Import *im, Graph *g, const Cond *c, const char *where, const char *text)
{
	Truth t = cond_truth(im->syms, c);
	if (t == YES)
		return true;
	if (t == NO)
		return ctx_error(im->ctx, where, "this can never hold: %s", text);
	graph_guard(g, c->kind, c->a, c->b, arena_strdup(im->ctx->arena, text));
	return true;
}

static bool range_guard(Import *im, Graph *g, const char *key, const json_t *range)
{
	ExprEnv env = expr_env(im);
	int64_t lo, hi;
	read_range(range, &lo, &hi);
	Sym e = expr_int(&env, key);
	if (!e.i)
		return ctx_error(im->ctx, NULL, "range constraint of %s not understood: %s", key,
				 env.error);
	if (narrow(im, e, lo, hi))
		return true;
	const char *text =
		hi == SYM_INF
			? arena_printf(im->ctx->scratch, "%s at least %lld", key, (long long)lo)
		: lo == -SYM_INF
			? arena_printf(im->ctx->scratch, "%s at most %lld", key, (long long)hi)
			: arena_printf(im->ctx->scratch, "%s between %lld and %lld", key,
				       (long long)lo, (long long)hi);
	Cond low = {.kind = GUARD_LE, .a = sym_int(im->syms, lo), .b = e};
	Cond high = {.kind = GUARD_LE, .a = e, .b = sym_int(im->syms, hi)};
	TRY(lo == -SYM_INF || meta_require(im, g, &low, NULL, text));
	return hi == SYM_INF || meta_require(im, g, &high, NULL, text);
}

bool meta_is_ignored(Import *im, const char *text)
{
	bool ignored = false;
	for (uint32_t k = 0; k < im->options->nignore; k++)
		if (!strcmp(im->options->ignore_guard[k], text))
			ignored = im->ignored[k] = true;
	return ignored;
}

bool meta_cannot_check(Import *im, const char *where, const char *text, const char *reason)
{
	return ctx_error(im->ctx, where,
			 "the model requires %s, which weft cannot check (%s): with --ignore-guard "
			 "'TEXT' it is not checked, and results are wrong where it does not hold",
			 text, reason) ||
	       ctx_kind(im->ctx, REFUSAL_GUARD);
}

static bool guard(Import *im, Graph *g, ExprEnv *env, const char *text)
{
	const Cond *cond;
	uint32_t n;
	if (!expr_cond(env, text, &cond, &n))
		return meta_cannot_check(im, NULL, text, env->error);
	for (uint32_t k = 0; k < n; k++)
		TRY(meta_require(im, g, &cond[k], NULL, text));
	return true;
}

bool meta_guards(Import *im, Graph *g)
{
	const char *key;
	json_t *range, *code;
	size_t i;
	json_object_foreach(json_object_get(im->root, "range_constraints"), key, range)
	{
		if (!text_is_identifier(key))
			TRY(range_guard(im, g, key, range));
	}
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms, .input_dim = input_dim, .arg = im};
	bool ok = true;
	json_array_foreach(json_object_get(im->root, "guards_code"), i, code)
	{
		const char *text = json_string_value(code);
		if (!text)
			return ctx_error(im->ctx, NULL, "guards_code: expected texts");
		if (!meta_is_ignored(im, text))
			ok &= guard(im, g, &env, text);
	}
	for (uint32_t k = 0; k < im->options->nignore && ok; k++)
		if (!im->ignored[k])
			ok = ctx_error(im->ctx, NULL, "no guard to ignore is %s",
				       im->options->ignore_guard[k]);
	return ok;
}
