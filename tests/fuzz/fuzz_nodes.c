/* Random changes of graphs through weft_graph.h, right ones and wrong ones: whatever they are, a
 * function refuses or obeys; no internal error, and a graph that verifies goes through planning, a
 * derivative and its own text, and the interpreters of the graph and of its loop IR give the same:
 *
 *     fuzz_nodes --seed N --count N --steps N FILE...
 *
 * A file is a file test; its graph is what is changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_call.h"
#include "weft_graph.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	WeftNode *node; /* in program order */
	uint32_t n;
	uint64_t state;
	uint32_t done, refused;
} Fuzz;

static uint32_t draw(Fuzz *f, uint32_t n)
{
	f->state = f->state * 6364136223846793005u + 1442695040888963407u;
	return n ? (uint32_t)(f->state >> 33) % n : 0;
}

static void list(Fuzz *f)
{
	f->n = 0;
	for (WeftNode k = weft_node_first(f->w, f->g); k.index; k = weft_node_next(f->w, k)) {
		f->node = realloc(f->node, (f->n + 1) * sizeof *f->node);
		if (!f->node)
			exit(1);
		f->node[f->n++] = k;
	}
}

/* One of the nodes in front of node k, mostly. */
static WeftNode earlier(Fuzz *f, uint32_t k)
{
	return f->node[draw(f, draw(f, 40) && k ? k : f->n)];
}

static void change(Fuzz *f, uint32_t at, WeftAttr *a, int64_t *number, WeftNode *nodes)
{
	switch (a->kind) {
	case WEFT_ATTR_NODE:
		a->u.node = draw(f, 2) ? a->u.node : earlier(f, at);
		break;
	case WEFT_ATTR_NODES:
		a->n = a->n < 16 ? a->n : 16;
		memcpy(nodes, a->u.nodes, a->n * sizeof *nodes);
		if (a->n)
			nodes[draw(f, a->n)] = earlier(f, at);
		a->u.nodes = nodes;
		break;
	case WEFT_ATTR_BOOL:
		a->u.b ^= draw(f, 2);
		break;
	case WEFT_ATTR_INT:
		a->u.i += (int64_t)draw(f, 3) - 1;
		break;
	case WEFT_ATTR_INTS:
		a->n = a->n < 16 ? a->n : 16;
		memcpy(number, a->u.ints, a->n * sizeof *number);
		if (a->n)
			number[draw(f, a->n)] += (int64_t)draw(f, 3) - 1;
		a->u.ints = number;
		break;
	default:
		break;
	}
}

/* A node like node k, with some arguments changed. */
static bool insert_like(Fuzz *f, uint32_t k)
{
	static WeftAttr a[64];
	static int64_t number[64][16];
	static WeftNode nodes[64][16];
	uint32_t n = weft_node_nattr(f->w, f->node[k]), at = draw(f, 3) ? k : draw(f, f->n);
	for (uint32_t j = 0; j < n && j < 64; j++) {
		if (!weft_node_attr_at(f->w, f->node[k], j, &a[j]))
			return false;
		if (draw(f, 3) == 0)
			change(f, at, &a[j], number[j], nodes[j]);
	}
	WeftNode made =
		weft_node_insert_before(f->w, f->node[at], weft_node_op(f->w, f->node[k]), a, n);
	return made.index && (draw(f, 4) ? weft_node_replace(f->w, f->node[at], made) : true);
}

static bool set_like(Fuzz *f, uint32_t k)
{
	WeftAttr a;
	int64_t number[16];
	WeftNode nodes[16];
	uint32_t n = weft_node_nattr(f->w, f->node[k]);
	if (!n || !weft_node_attr_at(f->w, f->node[k], draw(f, n), &a))
		return false;
	change(f, k, &a, number, nodes);
	return weft_node_set_attr(f->w, f->node[k], &a);
}

static bool make_constant(Fuzz *f, uint32_t k)
{
	static char zeros[1 << 16];
	WeftTensor t = {.data = zeros, .device = {WEFT_CPU, 0}};
	int64_t shape[12], size = 16;
	t.ndim = weft_node_shape(f->w, f->node[k], 0, &t.dtype, shape);
	t.shape = shape;
	for (int32_t d = 0; d < t.ndim; d++)
		size = shape[d] < 0 || size > 4096 ? -1 : size * shape[d];
	if (t.ndim < 0 || size < 0 || size > (1 << 16))
		return false;
	WeftNode c = weft_graph_constant(f->w, f->g, NULL, &t);
	return c.index && weft_node_replace(f->w, f->node[k], c);
}

/* Into a body of node k, if it has one, and out again. */
static bool go(Fuzz *f, WeftGraph *whole, uint32_t k)
{
	uint32_t n = weft_node_nattr(f->w, f->node[k]);
	WeftAttr a;
	f->g = whole;
	for (uint32_t j = 0; j < n; j++)
		if (weft_node_attr_at(f->w, f->node[k], j, &a) && a.kind == WEFT_ATTR_BODY &&
		    draw(f, 2))
			f->g = a.u.body;
	return true;
}

static bool one(Fuzz *f, WeftGraph *whole)
{
	uint32_t k = draw(f, f->n);
	WeftNode n = f->node[k];
	switch (draw(f, 12)) {
	case 0:
	case 1:
		return insert_like(f, k);
	case 2:
	case 3:
		return weft_node_replace(f->w, n, earlier(f, k));
	case 4:
	case 5:
		return weft_node_set_operand(f->w, n, draw(f, weft_node_noperand(f->w, n) + 1),
					     earlier(f, k));
	case 6:
		return set_like(f, k);
	case 7:
		return weft_node_erase(f->w, n);
	case 8:
		return weft_graph_set_output(f->w, f->g, draw(f, 2), n);
	case 9:
		return make_constant(f, k);
	case 10:
		return go(f, whole, k);
	default:
		return draw(f, 4) ? weft_node_result(f->w, n, draw(f, 2)).index != 0
				  : weft_graph_sweep(f->w, f->g) != 0;
	}
}

static const char *internal(Weft *w)
{
	for (uint32_t k = 0; k < weft_nmessages(w); k++)
		if (strstr(weft_message(w, k).text, "internal error"))
			return weft_message(w, k).text;
	return NULL;
}

/* ---- what the graph computes ---- */

/* Small numbers, which most operators take. */
static void fill(Fuzz *f, const WeftTensor *t, int64_t n)
{
	const uint32_t bytes = t->dtype.bits / 8u;
	for (int64_t k = 0; k < n * (t->dtype.code == WEFT_COMPLEX ? 2 : 1); k++) {
		const double v = (double)draw(f, 17) / 4 - 2;
		const int64_t i = (int64_t)draw(f, t->dtype.code == WEFT_BOOL ? 2 : 4);
		void *to =
			(char *)t->data + k * (t->dtype.code == WEFT_COMPLEX ? bytes / 2 : bytes);
		if (t->dtype.code == WEFT_FLOAT || t->dtype.code == WEFT_COMPLEX) {
			const uint32_t part = t->dtype.code == WEFT_COMPLEX ? bytes / 2 : bytes;
			const float single = (float)v;
			/* 1, 1.5, 2 */
			const uint16_t half = (uint16_t)(0x3c00 + draw(f, 3) * 0x200);
			memcpy(to,
			       part == 8   ? (const void *)&v
			       : part == 4 ? (const void *)&single
					   : &half,
			       part);
		} else if (t->dtype.code == WEFT_BFLOAT) {
			const float single = (float)v;
			memcpy(to, (const char *)&single + 2, 2);
		} else
			memcpy(to, &i, bytes);
	}
}

static int64_t count(const WeftTensor *t)
{
	int64_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= t->shape[d];
	return n;
}

static double number(const WeftTensor *t, int64_t k)
{
	const char *p = (const char *)t->data + k * (t->dtype.bits / 8u);
	double d;
	float s;
	int64_t i = 0;
	memcpy(&d, p, t->dtype.bits == 64 ? 8 : 0);
	memcpy(&s, p, t->dtype.bits == 32 ? 4 : 0);
	memcpy(&i, p, t->dtype.bits / 8u < 8 ? t->dtype.bits / 8u : 8);
	return t->dtype.code == WEFT_FLOAT && t->dtype.bits == 64   ? d
	       : t->dtype.code == WEFT_FLOAT && t->dtype.bits == 32 ? (double)s
								    : (double)i;
}

/* Whether two results are one but for rounding; numbers of other dtypes than f32, f64 and integers
 * are not looked at. */
static bool like(const WeftTensor *a, const WeftTensor *b)
{
	const int64_t n = count(a);
	const bool floats = a->dtype.code == WEFT_FLOAT && a->dtype.bits >= 32;
	bool same = a->ndim == b->ndim && n == count(b);
	for (int32_t d = 0; same && d < a->ndim; d++)
		same = a->shape[d] == b->shape[d];
	if (!same || (!floats && a->dtype.code != WEFT_INT && a->dtype.code != WEFT_UINT &&
		      a->dtype.code != WEFT_BOOL))
		return same;
	for (int64_t k = 0; k < n; k++) {
		const double x = number(a, k), y = number(b, k), by = x < y ? y - x : x - y;
		const double size = (x < 0 ? -x : x) + 1;
		if (x == x || y == y) /* not both NaN */
			if (!(x == y || (floats && by <= 1e-3 * size)))
				return false;
	}
	return true;
}

/* Interprets the graph and its loop IR on the same inputs: both refuse them, or give the same. */
static const char *compare(Fuzz *f, WeftGraph *g)
{
	enum { MOST = 64, ROOM = 1 << 18 };
	static char data[MOST][ROOM];
	static int64_t shape[MOST][12];
	WeftTensor in[MOST], want[MOST];
	int64_t value[MOST], total = 0;
	uint32_t nin, nout, nsym;
	const WeftTensorInfo *info = weft_inputs(f->w, g, &nin);
	const WeftSymbolInfo *sym = weft_symbols(f->w, g, &nsym);
	weft_outputs(f->w, g, &nout);
	if (!info || !sym || nin > MOST || nout > MOST || nsym > MOST ||
	    strstr(weft_graph_text(f->w, g, NULL), "= while("))
		return NULL; /* loops may be endless */
	for (uint32_t k = 0; k < nsym; k++)
		value[k] = sym[k].lo > 1000 || sym[k].lo < 0 ? 1 : sym[k].lo + (int64_t)draw(f, 5);
	for (uint32_t k = 0; k < nsym; k++)
		value[k] = value[k] > sym[k].hi ? sym[k].hi : value[k];
	for (uint32_t k = 0; k < nin; k++) {
		if (!weft_input_shape(f->w, g, k, value, shape[k]))
			return NULL;
		in[k] = (WeftTensor){.data = data[k],
				     .device = {WEFT_CPU, 0},
				     .dtype = info[k].dtype,
				     .ndim = (int32_t)info[k].rank,
				     .shape = shape[k]};
		for (uint32_t d = 0; d < info[k].rank; d++)
			if (shape[k][d] < 0 || shape[k][d] > 1024)
				return NULL;
		const int64_t n = count(&in[k]);
		total += n;
		if (n > ROOM / 16 || total > ROOM / 16)
			return NULL;
		fill(f, &in[k], n);
	}
	const uint32_t before = weft_nmessages(f->w);
	const bool fine = weft_interpret(f->w, g, in, nin, want);
	const char *why = weft_nmessages(f->w) > before ? weft_message(f->w, before).text : "";
	const WeftModel *m = weft_loops(f->w, g, NULL);
	WeftCall c;
	if (!m)
		return internal(f->w) ? "it cannot be compiled" : NULL;
	if (weft_call_open(&c, m, 0))
		return "it cannot be opened";
	static char said[1200];
	const int code = weft_call_run(&c, in);
	snprintf(said, sizeof said, "interpreter: %s; loops: %s", fine ? "fine" : why,
		 code ? c.status.message : "fine");
	const char *wrong = strstr(said, "statements") ? NULL : fine != !code ? said : NULL;
	for (uint32_t k = 0; !wrong && fine && !code && k < nout; k++)
		if (!like(&want[k], &c.output[k])) {
			snprintf(said, sizeof said, "output %u differs", k);
			wrong = said;
		}
	weft_call_close(&c);
	weft_release(f->w);
	return wrong;
}

/* What verifies can be used. */
static const char *use(Fuzz *f, WeftGraph *g)
{
	const char *text = weft_graph_text(f->w, g, NULL);
	WeftGraph *again = text ? weft_parse_like(f->w, g, text, "again") : NULL;
	if (!again)
		return "its text cannot be read";
	if (strcmp(weft_graph_text(f->w, again, NULL), text) != 0)
		return "its text becomes another one";
	weft_plan(f->w, g, NULL);
	weft_vjp(f->w, g, NULL);
	const char *wrong = compare(f, g);
	return wrong ? wrong : internal(f->w);
}

/* The graph of a file test. */
static char *graph_of(const char *path)
{
	static char data[1 << 16];
	FILE *file = fopen(path, "rb");
	size_t n = file ? fread(data, 1, sizeof data - 1, file) : 0;
	if (file)
		fclose(file);
	data[n] = 0;
	char *text = strstr(data, "\ngraph @"), *end = text ? strstr(text, "\n; ----") : NULL;
	if (end)
		end[1] = 0;
	return text;
}

static int run(const char *path, uint64_t seed, uint32_t steps, uint32_t *used)
{
	Fuzz f = {.w = weft_new(), .state = seed};
	char *text = graph_of(path);
	WeftGraph *g = text ? weft_parse(f.w, text, path) : NULL;
	const char *wrong = NULL;
	f.g = g;
	for (uint32_t k = 0; g && k < steps && !wrong; k++) {
		uint32_t before = weft_nmessages(f.w);
		list(&f);
		if (!f.n)
			break;
		bool ok = one(&f, g);
		f.done += ok, f.refused += !ok;
		wrong = internal(f.w);
		if (ok && weft_nmessages(f.w) > before + 1)
			wrong = "it succeeded, and there is a message";
	}
	if (g && !wrong && weft_graph_verify(f.w, g)) {
		wrong = use(&f, g);
		++*used;
	}
	if (wrong && getenv("FUZZ_TEXT"))
		printf("%s\n", weft_graph_text(f.w, g, NULL));
	if (wrong)
		printf("FAIL %s --seed %llu: %s\n%s", path, (unsigned long long)seed, wrong,
		       weft_messages(f.w));
	free(f.node);
	weft_free(f.w);
	return wrong != NULL;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	uint32_t count = 1, steps = 6, used = 0, total = 0;
	int bad = 0, k = 1;
	for (; k + 1 < argc && argv[k][0] == '-'; k += 2) {
		if (!strcmp(argv[k], "--seed"))
			seed = strtoull(argv[k + 1], NULL, 10);
		else if (!strcmp(argv[k], "--count"))
			count = (uint32_t)strtoul(argv[k + 1], NULL, 10);
		else if (!strcmp(argv[k], "--steps"))
			steps = (uint32_t)strtoul(argv[k + 1], NULL, 10);
		else
			return 2;
	}
	for (; k < argc; k++)
		for (uint32_t i = 0; i < count; i++, total++)
			bad += run(argv[k], seed + i, steps, &used);
	printf("%u graphs, %u verify and were used, %d failures\n", total, used, bad);
	return bad != 0 || used * 4 < total;
}
