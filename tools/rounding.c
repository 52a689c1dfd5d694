/* Whether results may differ because a value is rounded to another integer (weft check
 * --trace-rounding). What is rounded stands near the middle between two integers if it is rounded
 * to the other one when it changes by some units in the last place, as sums in another order do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "weft_graph.h"

enum { ULPS = 4 };

/* A node of a graph that rounds its operand number k. */
typedef struct {
	WeftNode node, of;
	uint32_t k;
} Rounding;

typedef struct {
	Weft *w;
	const WeftGraph *model;
	const WeftTensor *in;
	uint32_t nin, nout, n; /* n: nodes that round */
} RoundingTrace;

/* ---- which nodes round ---- */

static bool is_float(WeftDType t)
{
	return t.code == WEFT_FLOAT || t.code == WEFT_BFLOAT;
}

static bool is_narrow(WeftDType t)
{
	return t.code == WEFT_INT || t.code == WEFT_UINT || (t.bits == 8 && float_kind(t));
}

/* Whether the operator gives floats that are rounded to integers, or to multiples of a scale. */
static bool rounds_floats(const char *op)
{
	static const char *const name[] = {"aten.round", "aten.floor",         "aten.ceil",
					   "aten.trunc", "aten.fake_quantize", "onnx.Round",
					   "onnx.Floor", "onnx.Ceil"};
	for (size_t k = 0; k < sizeof name / sizeof *name; k++)
		if (!strncmp(op, name[k], strlen(name[k])))
			return true;
	return false;
}

/* Finds out whether a node rounds, and what: the operand that is rounded has the shape of the
 * result. */
static bool find_rounded(Weft *w, WeftNode n, Rounding *r)
{
	WeftDType to, from;
	int64_t shape[12], other[12];
	if (weft_node_kind(w, n) != WEFT_NODE_CALL || weft_node_nresult(w, n) != 1)
		return false;
	const int32_t rank = weft_node_shape(w, n, 0, &to, shape);
	if (rank < 0 || !(is_narrow(to) || (is_float(to) && rounds_floats(weft_node_op(w, n)))))
		return false;
	for (uint32_t k = 0; k < weft_node_noperand(w, n); k++) {
		WeftNode x = weft_node_operand(w, n, k);
		if (x.index && weft_node_nresult(w, x) == 1 &&
		    weft_node_shape(w, x, 0, &from, other) == rank && is_float(from) &&
		    !memcmp(shape, other, (size_t)rank * sizeof *shape)) {
			*r = (Rounding){n, x, k};
			return true;
		}
	}
	return false;
}

/* Lists the nodes that round in the order of the graph: the same in each copy. The caller frees
 * the list. */
static Rounding *roundings(Weft *w, WeftGraph *g, uint32_t *n)
{
	Rounding *list = NULL, r;
	*n = 0;
	for (WeftNode k = weft_node_first(w, g); k.index; k = weft_node_next(w, k)) {
		if (!find_rounded(w, k, &r))
			continue;
		Rounding *more = realloc(list, (*n + 1) * sizeof *list);
		if (!more)
			break;
		list = more;
		list[(*n)++] = r;
	}
	return list;
}

/* ---- three runs ---- */

static bool copy_tensor(const WeftTensor *from, WeftTensor *to)
{
	*to = *from;
	to->strides = NULL;
	to->byte_offset = 0;
	to->data = malloc(bytes_of(from) + 1);
	to->shape = malloc(((size_t)from->ndim + 1) * sizeof *to->shape);
	if (!to->data || !to->shape)
		return false;
	memcpy(to->shape, from->shape, (size_t)from->ndim * sizeof *to->shape);
	memcpy(to->data, (const char *)from->data + from->byte_offset, bytes_of(from));
	return true;
}

static void free_copies(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; t && k < n; k++) {
		free(t[k].data);
		free(t[k].shape);
	}
	free(t);
}

/* Interprets a graph with inputs behind the model's; returns copies of its results. */
static WeftTensor *interpret(const RoundingTrace *t, WeftGraph *g, const WeftTensor *more,
			     uint32_t nmore, uint32_t nout)
{
	WeftTensor *in = calloc(t->nin + nmore + 1, sizeof *in),
		   *out = calloc(nout + 1, sizeof *out), *copy = calloc(nout + 1, sizeof *copy);
	bool ok = in && out && copy;
	for (uint32_t k = 0; ok && k < t->nin + nmore; k++)
		in[k] = k < t->nin ? t->in[k] : more[k - t->nin];
	ok = ok && weft_interpret(t->w, g, in, t->nin + nmore, out);
	for (uint32_t k = 0; ok && k < nout; k++)
		ok = copy_tensor(&out[k], &copy[k]);
	free(in);
	free(out);
	if (ok)
		return copy;
	free_copies(copy, nout);
	return NULL;
}

/* Returns the model's results, what is rounded, and what becomes of that. */
static WeftTensor *first_run(const RoundingTrace *t)
{
	uint32_t n;
	char name[40];
	WeftGraph *g = weft_copy_graph(t->w, t->model);
	Rounding *r = g ? roundings(t->w, g, &n) : NULL;
	bool ok = r && n == t->n;
	for (uint32_t k = 0; ok && k < 2 * n; k++) {
		snprintf(name, sizeof name, "weft.rounding.%u", k);
		ok = weft_graph_add_output(t->w, g, name, k < n ? r[k].of : r[k - n].node);
	}
	free(r);
	return ok ? interpret(t, g, NULL, 0, t->nout + 2 * n) : NULL;
}

/* Returns the model's results, and what becomes of x[last - first], which nodes first to last -
 * 1 round in place of their operands. */
static WeftTensor *run_with(const RoundingTrace *t, const WeftTensor *x, uint32_t first,
			    uint32_t last)
{
	uint32_t n;
	char name[40];
	WeftGraph *g = weft_copy_graph(t->w, t->model);
	Rounding *r = g ? roundings(t->w, g, &n) : NULL;
	bool ok = r && n == t->n;
	for (uint32_t k = first; ok && k < last; k++) {
		snprintf(name, sizeof name, "weft.rounding.%u", k);
		const char *type = weft_node_type(t->w, r[k].of, 0);
		WeftNode p = type ? weft_graph_add_input(t->w, g, name, type) : (WeftNode){0};
		ok = p.index && weft_node_set_operand(t->w, r[k].node, r[k].k, p) &&
		     weft_graph_add_output(t->w, g, name, r[k].node);
	}
	free(r);
	return ok ? interpret(t, g, x, last - first, t->nout + last - first) : NULL;
}

/* ---- units in the last place ---- */

/* Moves values to the next number away from 0, or towards it; zeros and what is not finite stay. */
static void nudge(WeftTensor *t, bool away)
{
	const size_t bytes = t->dtype.bits / 8;
	const uint64_t sign = 1ull << (t->dtype.bits - 1);
	for (int64_t i = 0; i < numel_of(t); i++) {
		char *p = (char *)t->data + (size_t)i * bytes;
		uint64_t v = 0;
		memcpy(&v, p, bytes);
		const uint64_t size = v & (sign - 1);
		const double x = value_at(t, i);
		if (!isfinite(x) || size <= ULPS)
			continue;
		v = (v & sign) | (away ? size + ULPS : size - ULPS);
		memcpy(p, &v, bytes);
	}
}

/* Whether all values are integers. Nothing is rounded there: another node has rounded. */
static bool are_integers(const WeftTensor *t)
{
	for (int64_t i = 0; i < numel_of(t); i++) {
		const double x = value_at(t, i);
		if (x != floor(x))
			return false;
	}
	return true;
}

static int64_t count_differing(const WeftTensor *a, const WeftTensor *b)
{
	int64_t n = 0;
	for (int64_t i = 0; i < values_of(a); i++)
		n += value_at(a, i) != value_at(b, i);
	return n;
}

static double largest_difference(const WeftTensor *a, const WeftTensor *b, uint32_t n)
{
	double most = 0;
	for (uint32_t k = 0; k < n; k++)
		for (int64_t i = 0; i < values_of(&a[k]); i++) {
			double d = value_at(&a[k], i) - value_at(&b[k], i);
			d = d < 0 ? -d : d;
			most = d > most ? d : most;
		}
	return most;
}

/* ---- the answer ---- */

typedef struct {
	uint32_t node; /* the first that rounds otherwise */
	int64_t values, of;
	double change; /* of the results, if it alone does */
} Otherwise;

/* Finds a node that rounds otherwise. Returns false if none does, or there is no answer. */
static bool rounds_otherwise(const RoundingTrace *t, const WeftTensor *all, bool away,
			     Otherwise *found)
{
	const WeftTensor *x = all + t->nout, *q = x + t->n;
	WeftTensor *near = calloc(t->n + 1, sizeof *near);
	bool ok = near, is = false;
	for (uint32_t k = 0; ok && k < t->n; k++)
		if ((ok = copy_tensor(&x[k], &near[k])) && !are_integers(&x[k]))
			nudge(&near[k], away);
	WeftTensor *other = ok ? run_with(t, near, 0, t->n) : NULL;
	for (uint32_t k = 0; other && !is && k < t->n; k++) {
		const int64_t values = count_differing(&q[k], &other[t->nout + k]);
		WeftTensor *one = values ? run_with(t, &near[k], k, k + 1) : NULL;
		if ((is = one))
			*found = (Otherwise){k, values, values_of(&q[k]),
					     largest_difference(all, one, t->nout)};
		free_copies(one, one ? t->nout + 1 : 0);
	}
	free_copies(other, other ? t->nout + t->n : 0);
	free_copies(near, t->n);
	return is;
}

static void tell(const RoundingTrace *t, const Rounding *r, const Otherwise *o, char *text,
		 size_t size)
{
	const char *line = weft_node_line(t->w, r->node);
	snprintf(
		text, size,
		"%%%s (%.60s%s%.60s) rounds %lld of %lld values to other ones if they change by %d "
		"units in the last place; the results change by %.3g then",
		weft_node_name(t->w, r->node), weft_node_op(t->w, r->node), *line ? ", " : "", line,
		(long long)o->values, (long long)o->of, ULPS, o->change);
}

void trace_rounding(Weft *w, const WeftGraph *g, const WeftTensor *in, uint32_t nin, uint32_t nout,
		    char *text, size_t size)
{
	RoundingTrace t = {.w = w, .model = g, .in = in, .nin = nin, .nout = nout};
	WeftGraph *own = weft_copy_graph(w, g);
	Rounding *r = own ? roundings(w, own, &t.n) : NULL;
	WeftTensor *all = r ? first_run(&t) : NULL;
	Otherwise away = {0}, back = {0};
	const bool a = all && rounds_otherwise(&t, all, true, &away),
		   b = all && rounds_otherwise(&t, all, false, &back);
	if (!r)
		snprintf(text, size, "no operator rounds to integers or to 8 bits");
	else if (!all)
		snprintf(text, size, "rounding cannot be traced");
	else if (!a && !b)
		snprintf(text, size,
			 "no value is rounded to another one if it changes by %d units in the "
			 "last place",
			 ULPS);
	else if (!b || (a && away.change >= back.change))
		tell(&t, &r[away.node], &away, text, size);
	else
		tell(&t, &r[back.node], &back, text, size);
	free_copies(all, all ? t.nout + 2 * t.n : 0);
	free(r);
}
