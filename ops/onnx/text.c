/* Features of texts, as numbers of words. */
#include "ops/onnx/priv.h"

#include <string.h>

enum { MAX_SKIPS = 1000 }; /* each distance is looked for on its own */

typedef struct {
	Node x;        /* i64 [B, C] */
	Sym rows, len; /* B, C */
} Texts;

/* The n-grams of the model: those of one word, then those of two, ... */
typedef struct {
	const int64_t *pool, *start, *column; /* start[n - 1]: where those of n words begin; the
						 column of the result for each n-gram */
	uint32_t npool, nsize, ngram;
	int64_t width; /* columns */
} Grams;

/* Returns the elements `by` places behind each, [B, C]: 0 behind the end. */
static Node ahead(Build *b, const Texts *t, int64_t by)
{
	Sym zero = b_int(b, 0), low[2] = {zero, zero}, high[2] = {zero, b_int(b, by)};
	Node x = b_pad(b, t->x, low, high, b_scalar(b, DT_i64, 0));
	return b_slice(b, x, 1, b_int(b, by), sym_addi(b_syms(b), t->len, by), b_int(b, 1));
}

/* Counts, f32 [B, G], how often each of the n-grams, i64 [G, n], stands in each text, whose
 * elements stand `step` apart. */
static Node count_grams(Build *b, const Texts *t, const int64_t *gram, int64_t n, int64_t count,
			int64_t step)
{
	Sym m = b_int(b, count), dim[] = {t->rows, t->len, m};
	int64_t *column = ARENA_ARRAY(b->g->ir->ctx->scratch, int64_t, count);
	/* those that end within the text */
	Node last = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, t->len), (double)((n - 1) * step));
	Node same = b_bin(b, OP_lt, last, aten_size(b, t->len, DT_i64));
	same = b_broadcast(b, b_unsqueeze(b, same, 1), 3, dim);
	for (int64_t k = 0; k < n; k++) {
		for (int64_t g = 0; g < count; g++)
			column[g] = gram[g * n + k];
		same = b_bin(b, OP_bit_and, same,
			     b_bin(b, OP_eq, b_unsqueeze(b, ahead(b, t, k * step), 2),
				   aten_const_ints(b, column, count)));
	}
	return aten_reduce(b, REDUCE_SUM, b_convert(b, same, DT_f32), 2, false);
}

static const int64_t *constants(Build *b, Node n, const char *name, uint32_t *count)
{
	*count = 0;
	const Sym *v = aten_has(b, n, name) ? node_ints(b->g, n, name, count) : NULL;
	int64_t *out = ARENA_ARRAY(b->g->ir->ctx->scratch, int64_t, *count + 1);
	for (uint32_t k = 0; k < *count; k++)
		if (!aten_const(b, v[k], &out[k]))
			return NULL;
	return out;
}

static bool read_grams(Build *b, Node n, Grams *g)
{
	uint32_t total = 0;
	if (aten_has(b, n, "pool_strings"))
		return b_error(b, "pool_strings: strings are not supported, only pool_int64s").i;
	g->pool = constants(b, n, "pool_int64s", &g->npool);
	g->start = constants(b, n, "ngram_counts", &g->nsize);
	g->column = constants(b, n, "ngram_indexes", &g->ngram);
	TRY(g->pool && g->start && g->column);
	for (uint32_t k = 0; k < g->nsize; k++) {
		int64_t end = k + 1 < g->nsize ? g->start[k + 1] : g->npool;
		if (g->start[k] < 0 || end < g->start[k] || end > g->npool ||
		    (end - g->start[k]) % (k + 1))
			return b_error(b,
				       "ngram_counts: n-grams of %u words from %lld to %lld of a "
				       "pool of %u",
				       k + 1, (long long)g->start[k], (long long)end, g->npool)
				.i;
		total += (uint32_t)(end - g->start[k]) / (k + 1);
	}
	if (total != g->ngram)
		return b_error(b, "ngram_indexes has %u elements for %u n-grams", g->ngram, total)
			.i;
	const Attr *w = node_attr(b->g, n, "weights");
	if (w->kind == ATTR_floats && w->n && w->n != total)
		return b_error(b, "weights has %u elements for %u n-grams", w->n, total).i;
	for (uint32_t k = 0; k < g->ngram; k++) {
		if (g->column[k] < 0 || g->column[k] > INT32_MAX)
			return b_error(b, "ngram_indexes: %lld is no column",
				       (long long)g->column[k])
				.i;
		g->width = g->column[k] >= g->width ? g->column[k] + 1 : g->width;
	}
	return true;
}

/* Adds the counts [B, G] of the n-grams of numbers first, first + 1, ... to their columns of f32
 * [B, width]. */
static Node add_counts(Build *b, const Grams *g, Node sum, Node counts, uint32_t first,
		       int64_t count)
{
	uint32_t axis = 1;
	Node column = b_unsqueeze(b, aten_const_ints(b, g->column + first, count), -1);
	return b_scatter_as(b, sum, column, b_transpose(b, counts, 0, 1), 0, &axis, 1, "add",
			    "promise");
}

/* Returns [count] of the weights, which are of the n-grams in their order, from `first` on. */
static Node weights_of(Build *b, const Attr *w, uint32_t first, int64_t count)
{
	Ir *ir = b->g->ir;
	float *v = ARENA_ARRAY(ir->ctx->arena, float, count);
	for (int64_t k = 0; k < count; k++)
		v[k] = (float)w->floats[first + k];
	Const c = {.name = "",
		   .dtype = DT_f32,
		   .rank = 1,
		   .data = v,
		   .bytes = (uint64_t)count * sizeof *v};
	c.dim = arena_dup(ir->ctx->arena, &count, sizeof count);
	return b_const(b, ir_const(ir, c));
}

/* Counts [B, count] of the n-grams from `first` on; or whether there are any; times their
 * weights. */
static Node weighted(Build *b, Node n, Node counts, uint32_t first, int64_t count)
{
	const Attr *w = node_attr(b->g, n, "weights");
	if (aten_is(b, n, "mode", "IDF"))
		counts = b_convert(b, b_bin_scalar(b, OP_gt, counts, 0), DT_f32);
	bool has_weights = !aten_is(b, n, "mode", "TF") && w->kind == ATTR_floats && w->n;
	return has_weights ? b_bin(b, OP_mul, counts, weights_of(b, w, first, count)) : counts;
}

/* Counts how often each n-gram stands in each text, its words 1, 2, ... skips + 1 places apart. */
static Node frequencies(Build *b, Node n, const Grams *g, const Texts *t)
{
	int64_t least = aten_int(b, n, "min_gram_length"), most = aten_int(b, n, "max_gram_length"),
		skips = aten_int(b, n, "max_skip_count");
	Node sum = b_full(b, DT_f32, 0, 2, (Sym[]){t->rows, b_int(b, g->width)});
	uint32_t first = 0;
	if (least < 1 || most < least || skips < 0 || skips > MAX_SKIPS)
		return b_error(b, "n-grams of %lld to %lld words, %lld of them skipped",
			       (long long)least, (long long)most, (long long)skips);
	for (int64_t size = 1; size <= g->nsize; size++) {
		int64_t end = size < g->nsize ? g->start[size] : g->npool,
			count = (end - g->start[size - 1]) / size;
		Node all = {0};
		/* the places of one word do not depend on distances */
		for (int64_t step = 1;
		     count && size >= least && size <= most && step <= (size > 1 ? skips + 1 : 1);
		     step++) {
			Node some =
				count_grams(b, t, g->pool + g->start[size - 1], size, count, step);
			all = all.i ? b_bin(b, OP_add, all, some) : some;
		}
		if (all.i)
			sum = add_counts(b, g, sum, weighted(b, n, all, first, count), first,
					 count);
		first += (uint32_t)count;
	}
	return sum;
}

static Node build_tf_idf(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	Shape s = aten_shape(b, x);
	Grams g = {0};
	if (!aten_check_word(b, n, "mode", "TF IDF TFIDF") || !read_grams(b, n, &g))
		return (Node){0};
	if (!x.i || s.rank > 2 || !dtype_is_int(node_dtype(b->g, x)))
		return b_error(b, "X is of %s and rank %u, expected integers of rank 0 to 2",
			       dtype_name(aten_dtype(b, x)), s.rank);
	Texts t = {.rows = s.rank == 2 ? s.dim[0] : b_int(b, 1),
		   .len = s.rank ? s.dim[s.rank - 1] : b_int(b, 1)};
	t.x = b_reshape(b, b_convert(b, x, DT_i64), 2, (Sym[]){t.rows, t.len});
	Node y = frequencies(b, n, &g, &t);
	Sym width = b_int(b, g.width);
	return s.rank == 2 ? y : b_reshape(b, y, 1, &width);
}

OP(onnx_TfIdfVectorizer_9){
	.schema = "onnx.TfIdfVectorizer.9(Tensor X, *, int max_gram_length, int max_skip_count, "
		  "int min_gram_length, str mode, "
		  "int[] ngram_counts, int[] ngram_indexes, int[]? pool_int64s=None, "
		  "str? pool_strings=None, float[]? weights=None) -> Tensor",
	.build = build_tf_idf,
	.no_sample = NODE_TESTS,
};
