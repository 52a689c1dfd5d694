/* Inputs, state and numbers of a step that is made. */
#include "transform/step/making.h"

#include <string.h>

#include "ir/interp/tensor.h"
#include "ir/op/op.h"

#define COUNTER "weft.step"

/* ---- state ---- */

int32_t making_input_named(const Graph *g, const char *name)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (!strcmp(g->input.data[k].name, name))
			return (int32_t)k;
	return -1;
}

bool making_is_free(const Graph *g, const char *name)
{
	return making_input_named(g, name) < 0 ||
	       ctx_error(g->ir->ctx, g->ir->ctx->file,
			 "an input or state of the model is called %s, as the step's own would be",
			 name);
}

int32_t making_state_of(const Graph *g, ConstId c)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER && g->input.data[k].init.i == c.i)
			return (int32_t)k;
	return -1;
}

/* Returns the contents of a state, in which all elements are the number. */
static const void *contents(Making *m, DType d, int64_t n, double begins)
{
	Arena *a = m->ctx->arena;
	const uint64_t bytes = (uint64_t)n * dtype_size(d);
	if (begins == 0) {
		if (bytes > m->nzeros || !m->zeros) {
			m->zeros = arena_calloc(a, bytes + 1, 1);
			m->nzeros = bytes;
		}
		return m->zeros;
	}
	Tensor t = {.dtype = d, .rank = 1, .dim = {n}, .data = arena_calloc(a, bytes + 1, 1)};
	for (int64_t i = 0; i < n; i++)
		tensor_set_f64(&t, i, begins);
	return t.data;
}

static int64_t numel(uint32_t rank, const int64_t *dim)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < rank; k++)
		n *= dim[k];
	return n;
}

bool making_add_state_of(Making *m, const char *name, DType d, uint32_t rank, const int64_t *dim,
			 const void *data, Node *out)
{
	Graph *g = m->g;
	TRY(making_is_free(g, name));
	const ConstId c =
		ir_const(g->ir, (Const){.name = name,
					.dtype = d,
					.rank = rank,
					.dim = arena_dup(m->ctx->arena, dim, rank * sizeof *dim),
					.bytes = (uint64_t)numel(rank, dim) * dtype_size(d),
					.data = data,
					.is_param = true,
					.is_buffer = true});
	*out = graph_add_input(g, name, INPUT_BUFFER, ir_type_ints(g->ir, d, rank, dim));
	g->input.data[g->input.n - 1].init = c;
	return true;
}

bool making_add_state(Making *m, const char *name, DType d, uint32_t rank, const int64_t *dim,
		      double begins, Node *out)
{
	const void *data = contents(m, d, numel(rank, dim), begins);
	return making_add_state_of(m, name, d, rank, dim, data, out);
}

uint32_t making_input_of(const Graph *g, Node n)
{
	uint32_t k = 0;
	while (g->input.data[k].node.i != n.i)
		k++;
	return k;
}

void making_set(Making *m, uint32_t input, Node value)
{
	array_push(m->ctx->scratch, &m->write, ((Write){input, value, false}));
}

void making_set_always(Making *m, Node state, Node value)
{
	array_push(m->ctx->scratch, &m->write,
		   ((Write){making_input_of(m->g, state), value, true}));
}

/* ---- numbers ---- */

/* Adds the count of steps before this one, and counts. */
static bool add_count(Making *m)
{
	Node state;
	if (m->count.i)
		return true;
	TRY(making_add_state(m, COUNTER, DT_i64, 0, (int64_t[]){0}, 0, &state));
	m->count = b_convert(&m->b, state, DT_f64);
	making_set(m, making_input_of(m->g, state), b_bin_scalar(&m->b, OP_add, state, 1));
	return true;
}

bool making_number_node(Making *m, const StepNumber *n, Node *out)
{
	*out = (Node){0};
	if (n->input) {
		const int32_t at = making_input_named(m->g, n->input);
		TRY(at >= (int32_t)m->nown || making_is_free(m->g, n->input));
		*out = at >= 0 ? m->g->input.data[at].node
			       : graph_add_input(m->g, n->input, INPUT_USER,
						 ir_type(m->g->ir, DT_f64, 0, NULL));
		return true;
	}
	if (!n->schedule)
		return true;
	TRY(add_count(m));
	*out = formula_value(&m->b, n->schedule, &m->count, n->argument);
	return out->i;
}

bool making_number(Making *m, const StepNumber *n, Node *out)
{
	TRY(making_number_node(m, n, out));
	if (!out->i)
		*out = b_scalar(&m->b, DT_f64, n->number);
	return true;
}
