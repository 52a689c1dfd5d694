/* Arithmetic of sizes: what a model computes of shapes with tensors is computed at import, on
 * symbolic integers. A node whose result is not known so is imported as any other. */
#include <string.h>

#include "frontend/onnx/priv.h"

typedef struct {
	const Sym *v;
	uint32_t n;
	bool has_dim;
	uint32_t rows; /* of two dimensions; 0: at most one */
	DType dtype;
} SizeList;

typedef struct {
	const Item *it;
	SymTab *t;
	SizeList in[8];
	uint32_t nin;
	Sym out[MAX_SIZES];
	uint32_t n;
	bool has_dim;
	uint32_t rows;
	DType dtype;
} Fold;

/* ---- element-wise ---- */

typedef bool (*Element)(SymTab *, const Sym *x, Sym *out);

static bool add(SymTab *t, const Sym *x, Sym *out) { return *out = sym_add(t, x[0], x[1]), true; }
static bool sub(SymTab *t, const Sym *x, Sym *out) { return *out = sym_sub(t, x[0], x[1]), true; }
static bool mul(SymTab *t, const Sym *x, Sym *out) { return *out = sym_mul(t, x[0], x[1]), true; }
static bool least(SymTab *t, const Sym *x, Sym *out) { return *out = sym_min(t, x[0], x[1]), true; }
static bool greatest(SymTab *t, const Sym *x, Sym *out)
{
	return *out = sym_max(t, x[0], x[1]), true;
}
static bool neg(SymTab *t, const Sym *x, Sym *out) { return *out = sym_muli(t, x[0], -1), true; }

static bool not_negative(SymTab *t, Sym a)
{
	return sym_le(t, sym_int(t, 0), a) == YES;
}

/* Divides sizes. ONNX truncates, which is rounding down where neither is negative. */
static bool quotient(SymTab *t, const Sym *x, Sym *out)
{
	TRY(not_negative(t, x[0]) && sym_lt(t, sym_int(t, 0), x[1]) == YES);
	*out = sym_floordiv(t, x[0], x[1]);
	return true;
}

static bool modulo(SymTab *t, const Sym *x, Sym *out)
{
	TRY(not_negative(t, x[0]) && sym_lt(t, sym_int(t, 0), x[1]) == YES);
	*out = sym_mod(t, x[0], x[1]);
	return true;
}

static bool magnitude(SymTab *t, const Sym *x, Sym *out)
{
	*out = sym_max(t, x[0], sym_muli(t, x[0], -1));
	return true;
}

static bool truth(SymTab *t, Truth v, Sym *out)
{
	*out = sym_int(t, v == YES);
	return v != MAYBE;
}

static bool equal(SymTab *t, const Sym *x, Sym *out)
{
	return truth(t, sym_eq(t, x[0], x[1]), out);
}
static bool less(SymTab *t, const Sym *x, Sym *out) { return truth(t, sym_lt(t, x[0], x[1]), out); }
static bool less_equal(SymTab *t, const Sym *x, Sym *out)
{
	return truth(t, sym_le(t, x[0], x[1]), out);
}
static bool greater(SymTab *t, const Sym *x, Sym *out)
{
	return truth(t, sym_lt(t, x[1], x[0]), out);
}
static bool greater_equal(SymTab *t, const Sym *x, Sym *out)
{
	return truth(t, sym_le(t, x[1], x[0]), out);
}

static bool negate(SymTab *t, const Sym *x, Sym *out)
{
	int64_t v;
	TRY(sym_is_const(t, x[0], &v));
	*out = sym_int(t, !v);
	return true;
}

static bool both(SymTab *t, const Sym *x, Sym *out)
{
	int64_t a, b;
	TRY(sym_is_const(t, x[0], &a) && sym_is_const(t, x[1], &b));
	*out = sym_int(t, a && b);
	return true;
}

static bool either(SymTab *t, const Sym *x, Sym *out)
{
	int64_t a, b;
	TRY(sym_is_const(t, x[0], &a) && sym_is_const(t, x[1], &b));
	*out = sym_int(t, a || b);
	return true;
}

static bool choose(SymTab *t, const Sym *x, Sym *out)
{
	int64_t c;
	TRY(sym_is_const(t, x[0], &c));
	*out = x[c ? 1 : 2];
	return true;
}

/* `data` is the operand whose dtype the result has. */
static const struct {
	const char *op;
	uint32_t nin;
	Element element;
	uint32_t data;
	DType dtype; /* of the result; DT_none: that of `data` */
} elements[] = {
	{"Add", 2, add, 0, DT_none},
	{"Sub", 2, sub, 0, DT_none},
	{"Mul", 2, mul, 0, DT_none},
	{"Div", 2, quotient, 0, DT_none},
	{"Mod", 2, modulo, 0, DT_none},
	{"Min", 2, least, 0, DT_none},
	{"Max", 2, greatest, 0, DT_none},
	{"Neg", 1, neg, 0, DT_none},
	{"Abs", 1, magnitude, 0, DT_none},
	{"Where", 3, choose, 1, DT_none},
	{"Equal", 2, equal, 0, DT_bool},
	{"Less", 2, less, 0, DT_bool},
	{"LessOrEqual", 2, less_equal, 0, DT_bool},
	{"Greater", 2, greater, 0, DT_bool},
	{"GreaterOrEqual", 2, greater_equal, 0, DT_bool},
	{"Not", 1, negate, 0, DT_bool},
	{"And", 2, both, 0, DT_bool},
	{"Or", 2, either, 0, DT_bool},
};

static bool fold_elements(Fold *f, Element element, uint32_t nin)
{
	TRY(f->nin == nin);
	f->n = 1;
	for (uint32_t k = 0; k < nin; k++) {
		f->has_dim |= f->in[k].has_dim;
		if (f->in[k].has_dim && f->in[k].n != 1) {
			TRY(f->n == 1 || f->n == f->in[k].n);
			f->n = f->in[k].n;
		}
	}
	for (uint32_t i = 0; i < f->n; i++) {
		Sym x[3];
		for (uint32_t k = 0; k < nin; k++) {
			TRY(f->in[k].n);
			x[k] = f->in[k].v[f->in[k].n == 1 ? 0 : i];
		}
		TRY(element(f->t, x, &f->out[i]));
	}
	return true;
}

/* ---- others ---- */

static bool push(Fold *f, Sym v)
{
	TRY(f->n < MAX_SIZES);
	f->out[f->n++] = v;
	return true;
}

static bool constant(const Fold *f, uint32_t k, uint32_t i, int64_t *out)
{
	return k < f->nin && i < f->in[k].n && sym_is_const(f->t, f->in[k].v[i], out);
}

/* Whether the attribute names the one dimension that there is. */
static bool first_axis(const Fold *f, int64_t otherwise)
{
	int64_t axis = onnx_item_int(f->it, "axis", otherwise);
	return axis == 0 || axis == -1;
}

static bool gather(Fold *f)
{
	TRY(f->nin == 2 && f->in[0].has_dim && first_axis(f, 0));
	f->has_dim = f->in[1].has_dim;
	for (uint32_t k = 0; k < f->in[1].n; k++) {
		int64_t at;
		TRY(constant(f, 1, k, &at));
		at += at < 0 ? f->in[0].n : 0;
		TRY(at >= 0 && at < f->in[0].n && push(f, f->in[0].v[at]));
	}
	return true;
}

static bool concat(Fold *f)
{
	f->has_dim = true;
	TRY(first_axis(f, 1)); /* which opset 1 takes for a missing one */
	for (uint32_t k = 0; k < f->nin; k++) {
		TRY(f->in[k].has_dim);
		for (uint32_t i = 0; i < f->in[k].n; i++)
			TRY(push(f, f->in[k].v[i]));
	}
	return true;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Takes a slice, of opset 10 on, where starts are an input; of two dimensions the rows. */
static bool slice(Fold *f)
{
	const SizeList *x = &f->in[0];
	int64_t start, end, step = 1, axis = 0, n = x->rows ? x->rows : x->n,
			    wide = x->rows ? x->n / x->rows : 1;
	TRY(f->nin < 4 || (f->in[3].n == 1 && constant(f, 3, 0, &axis) &&
			   (axis == 0 || axis == (x->rows ? -2 : -1))));
	TRY(f->nin >= 3 && f->in[0].has_dim && f->in[1].n == 1 && constant(f, 1, 0, &start) &&
	    constant(f, 2, 0, &end));
	TRY(f->nin < 5 || (constant(f, 4, 0, &step) && step));
	start = clamp(start < 0 ? start + n : start, 0, step > 0 ? n : n - 1);
	end = clamp(end < 0 && end > -n - 1 ? end + n : end, -1, n);
	if (step > 0 && end < 0)
		end = 0;
	f->has_dim = true;
	step = clamp(step, -MAX_SIZES, MAX_SIZES); /* n is at most MAX_SIZES */
	for (int64_t k = start; step > 0 ? k < end : k > end; k += step)
		for (int64_t j = 0; j < wide; j++)
			TRY(push(f, x->v[k * wide + j]));
	f->rows = x->rows ? f->n / (uint32_t)wide : 0;
	return !x->rows || f->rows;
}

static bool copy(Fold *f, bool has_dim)
{
	f->has_dim = has_dim;
	for (uint32_t k = 0; k < f->in[0].n; k++)
		TRY(push(f, f->in[0].v[k]));
	return has_dim || f->n == 1;
}

static bool squeeze(Fold *f)
{
	return f->in[0].n == 1 && copy(f, false);
}

static bool unsqueeze(Fold *f)
{
	const OnnxAttr *axes = onnx_item_attr(f->it, "axes");
	TRY(f->nin == 2 ? f->in[1].n == 1 : axes && axes->ints.n == 1);
	return !f->in[0].has_dim && copy(f, true);
}

static bool reshape(Fold *f)
{
	int64_t n[2], have = f->in[0].n;
	TRY(f->nin == 2 && f->in[1].has_dim && f->in[1].n <= 2);
	if (f->in[1].n == 0)
		return copy(f, false);
	for (uint32_t k = 0; k < f->in[1].n; k++)
		TRY(constant(f, 1, k, &n[k]));
	if (f->in[1].n == 1)
		return (n[0] == -1 || n[0] == have) && copy(f, true);
	if (n[0] == -1 && n[1] > 0)
		n[0] = have / n[1];
	if (n[1] == -1 && n[0] > 0)
		n[1] = have / n[0];
	TRY(n[0] > 0 && n[1] > 0 && n[0] <= have && n[1] <= have && n[0] * n[1] == have &&
	    copy(f, true));
	f->rows = (uint32_t)n[0];
	return true;
}

static bool transpose(Fold *f)
{
	const OnnxAttr *perm = onnx_item_attr(f->it, "perm");
	const SizeList *x = &f->in[0];
	bool turned = x->rows && (!perm || (perm->ints.n == 2 && perm->ints.data[0] == 1 &&
					    perm->ints.data[1] == 0));
	TRY(f->nin == 1 && turned);
	f->rows = x->n / x->rows;
	f->has_dim = true;
	for (uint32_t k = 0; k < x->n; k++)
		TRY(push(f, x->v[k % x->rows * f->rows + k / x->rows]));
	return true;
}

static bool identity(Fold *f)
{
	f->rows = f->in[0].rows;
	return f->nin == 1 && copy(f, f->in[0].has_dim);
}

/* Makes integers of one value. */
static bool constant_of_shape(Fold *f)
{
	const OnnxAttr *a = onnx_item_attr(f->it, "value");
	Import *im = f->it->s->im;
	Tensor t;
	int64_t n;
	TRY(f->nin == 1 && f->in[0].has_dim && f->in[0].n == 1 && constant(f, 0, 0, &n) && n >= 0 &&
	    n <= MAX_SIZES);
	TRY(a && a->t && dtype_is_int(onnx_dtype(a->t->type)) &&
	    onnx_tensor(im->ctx, a->t, &im->folder, "attribute value", &t) &&
	    tensor_numel(&t) == 1);
	f->dtype = t.dtype;
	f->has_dim = true;
	for (int64_t k = 0; k < n; k++)
		TRY(push(f, sym_int(f->t, tensor_i64(&t, 0))));
	return true;
}

static bool reduce(Fold *f, Element element, int64_t neutral)
{
	TRY(f->in[0].has_dim);
	Sym x[2] = {sym_int(f->t, neutral)};
	for (uint32_t k = 0; k < f->in[0].n; k++) {
		x[1] = f->in[0].v[k];
		TRY(element(f->t, x, &x[0]));
	}
	f->has_dim = onnx_item_int(f->it, "keepdims", 1) != 0;
	return onnx_item_int(f->it, "noop_with_empty_axes", 0) == 0 && push(f, x[0]);
}

static bool reduce_sum(Fold *f) { return reduce(f, add, 0); }
static bool reduce_prod(Fold *f) { return reduce(f, mul, 1); }

static bool range(Fold *f)
{
	int64_t start, limit, step;
	TRY(f->nin == 3 && constant(f, 0, 0, &start) && constant(f, 1, 0, &limit) &&
	    constant(f, 2, 0, &step) && step);
	f->has_dim = true;
	for (int64_t k = start; step > 0 ? k < limit : k > limit;) {
		TRY(push(f, sym_int(f->t, k)));
		if (__builtin_add_overflow(k, step, &k))
			break;
	}
	return true;
}

/* Makes a row of one number. */
static bool expand(Fold *f)
{
	int64_t n;
	TRY(f->nin == 2 && f->in[1].n == 1 && f->in[1].has_dim && f->in[0].n == 1 &&
	    constant(f, 1, 0, &n) && n <= MAX_SIZES && n > 0);
	f->has_dim = true;
	for (int64_t k = 0; k < n; k++)
		TRY(push(f, f->in[0].v[0]));
	return true;
}

static bool cast(Fold *f)
{
	DType d = onnx_dtype(onnx_item_int(f->it, "to", 0));
	f->dtype = d;
	TRY((d == DT_i64 || d == DT_i32 || d == DT_bool) && identity(f));
	for (uint32_t k = 0; d == DT_bool && k < f->n; k++) {
		int64_t v;
		TRY(sym_is_const(f->t, f->out[k], &v));
		f->out[k] = sym_int(f->t, v != 0);
	}
	return true;
}

static bool cast_like(Fold *f)
{
	TRY(f->nin == 2);
	f->dtype = f->in[1].dtype;
	return (f->dtype == DT_i64 || f->dtype == DT_i32) && copy(f, f->in[0].has_dim);
}

static const struct {
	const char *op;
	bool (*fold)(Fold *);
	bool rows; /* also of two dimensions */
} others[] = {
	{"Gather", gather, false},
	{"Concat", concat, false},
	{"Slice", slice, true},
	{"Squeeze", squeeze, false},
	{"Unsqueeze", unsqueeze, false},
	{"Reshape", reshape, true},
	{"Transpose", transpose, true},
	{"Identity", identity, true},
	{"ReduceSum", reduce_sum, false},
	{"ReduceProd", reduce_prod, false},
	{"Range", range, false},
	{"Expand", expand, false},
	{"ConstantOfShape", constant_of_shape, false},
	{"Cast", cast, true},
	{"CastLike", cast_like, false},
};

/* ---- of shapes ---- */

static bool shape(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	if (!v || v->is_list)
		return onnx_item_error(it, "expected a tensor");
	Sym dim[MAX_RANK];
	int64_t rank = onnx_value_rank(it->s, v), start = onnx_item_int(it, "start", 0),
		end = onnx_item_int(it, "end", rank);
	start = clamp(start < 0 ? start + rank : start, 0, rank);
	end = clamp(end < 0 ? end + rank : end, start, rank);
	for (int64_t k = start; k < end; k++)
		dim[k - start] = onnx_value_dim(it->s, v, (uint32_t)k);
	return onnx_item_bind(
		it, 0, onnx_value_sizes(it->s->im, DT_i64, dim, (uint32_t)(end - start), true));
}

static bool size(const Item *it)
{
	Value *v = onnx_item_in(it, 0);
	if (!v || v->is_list)
		return onnx_item_error(it, "expected a tensor");
	Sym n = sym_int(it->s->im->syms, 1);
	for (uint32_t k = 0; k < onnx_value_rank(it->s, v); k++)
		n = sym_mul(it->s->im->syms, n, onnx_value_dim(it->s, v, k));
	return onnx_item_bind(it, 0, onnx_value_sizes(it->s->im, DT_i64, &n, 1, false));
}

/* ---- dispatch ---- */

/* Finds the operands' sizes. Returns false if those of one are not known. */
static bool operands(Fold *f)
{
	const Item *it = f->it;
	TRY(it->nin && it->nin <= 8);
	for (uint32_t k = 0; k < it->nin; k++) {
		Value *v = it->in[k];
		SizeList *x = &f->in[k];
		x->rows = v && v->size ? v->rows : 0;
		if (x->rows) {
			x->v = v->size;
			x->n = v->nsize;
		} else {
			TRY(v && !v->is_list && onnx_value_as_sizes(it->s, v, &x->v, &x->n));
		}
		x->dtype = onnx_value_dtype(it->s, v);
		x->has_dim = onnx_value_rank(it->s, v) > 0;
	}
	f->nin = it->nin;
	return true;
}

static bool fold(Fold *f)
{
	const char *op = f->it->n->op;
	bool rows = false;
	f->dtype = f->in[0].dtype;
	for (uint32_t k = 0; k < f->nin; k++)
		rows |= f->in[k].rows != 0;
	for (size_t k = 0; k < sizeof elements / sizeof *elements; k++)
		if (!strcmp(elements[k].op, op)) {
			TRY(f->nin > elements[k].data && !rows);
			f->dtype = elements[k].dtype ? elements[k].dtype
						     : f->in[elements[k].data].dtype;
			return fold_elements(f, elements[k].element, elements[k].nin);
		}
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		if (!strcmp(others[k].op, op))
			return (!rows || others[k].rows) && others[k].fold(f);
	return false;
}

bool onnx_import_sizes(const Item *it, bool *done)
{
	*done = true;
	if (!strcmp(it->n->op, "Shape"))
		return shape(it);
	if (!strcmp(it->n->op, "Size"))
		return size(it);
	Fold *f = ARENA_NEW(it->s->im->ctx->scratch, Fold);
	f->it = it;
	f->t = it->s->im->syms;
	*done = operands(f) && fold(f);
	if (!*done)
		return true;
	Value *v = onnx_value_sizes(it->s->im, f->dtype, f->out, f->n, f->has_dim);
	v->rows = f->rows;
	return onnx_item_bind(it, 0, v);
}

/* ---- comparisons ---- */

static const Sym *pair(Import *im, Sym less, Sym than)
{
	return arena_dup(im->ctx->arena, (Sym[]){less, than}, 2 * sizeof(Sym));
}

/* Finds a comparison of one size and one other. strict: x < y, else x <= y. */
static const Sym *compared(const Item *it, Value *x, Value *y, bool strict)
{
	SymTab *t = it->s->im->syms;
	const Sym *a, *b;
	uint32_t na, nb;
	if (!x || !y || x->is_list || y->is_list || !onnx_value_as_sizes(it->s, x, &a, &na) ||
	    !onnx_value_as_sizes(it->s, y, &b, &nb) || na != 1 || nb != 1)
		return NULL;
	return pair(it->s->im, a[0], strict ? b[0] : sym_addi(t, b[0], 1));
}

static const Sym *both_hold(const Item *it, Value *x, Value *y)
{
	Value *in[] = {x, y};
	const Sym *size;
	uint32_t n;
	for (int k = 0; k < 2; k++)
		if (in[k] && !in[k]->is_list && onnx_value_as_sizes(it->s, in[k], &size, &n) &&
		    n == 1 && sym_is(it->s->im->syms, size[0], 1))
			return in[!k] ? in[!k]->below : NULL;
	return NULL;
}

void onnx_note_comparison(const Item *it)
{
	const char *op = it->n->op;
	Value *x = onnx_item_in(it, 0), *y = onnx_item_in(it, 1),
	      *out = it->n->out.n ? onnx_scope_find(it->s, it->n->out.data[0]) : NULL;
	if (!out || out->is_list)
		return;
	if (!strcmp(op, "Less"))
		out->below = compared(it, x, y, true);
	else if (!strcmp(op, "LessOrEqual"))
		out->below = compared(it, x, y, false);
	else if (!strcmp(op, "Greater"))
		out->below = compared(it, y, x, true);
	else if (!strcmp(op, "GreaterOrEqual"))
		out->below = compared(it, y, x, false);
	else if (!strcmp(op, "And"))
		out->below = both_hold(it, x, y);
	else if (!strcmp(op, "Not") && x && x->below) /* not a < b: b < a + 1 */
		out->below = pair(it->s->im, x->below[1],
				  sym_addi(it->s->im->syms, x->below[0], 1));
	else if ((!strcmp(op, "Cast") || !strcmp(op, "Reshape") || !strcmp(op, "Squeeze") ||
		  !strcmp(op, "Unsqueeze")) &&
		 x && onnx_value_dtype(it->s, out) == DT_bool)
		out->below = x->below;
}
