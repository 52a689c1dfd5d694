/* The replacement takes the places of a pattern. All of it is built before anything is rewired, so
 * that an error leaves the graph as it was. */
#include "ir/build/build.h"
#include "ir/build/text.h"
#include "transform/pattern/priv.h"

#include <string.h>

/* ---- both graphs ---- */

static bool wrong(const Graph *g, const char *which, const char *text)
{
	return ctx_error(g->ir->ctx, "weft_replace_pattern", "the %s %s", which, text);
}

static bool is_plain(const Graph *g, const char *which)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER)
			return wrong(g, which, "has state, or draws random numbers");
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes >= 0)
			return wrong(g, which, "writes an input");
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_has_graph(g, n))
			return wrong(g, which, "has control flow");
	return true;
}

/* Spreads over operands and readers. Constants do not connect: each place may have its own. */
static bool is_connected(const Graph *p)
{
	bool *seen = ARENA_ARRAY(p->ir->ctx->scratch, bool, p->node.n), more = true;
	seen[p->output.data[0].node.i] = true;
	while (more) {
		more = false;
		for (Node n = p->first; n.i; n = node_next(p, n)) {
			for (uint32_t k = 0; k < node_nin(p, n); k++) {
				Node in = node_in(p, n, k);
				if (!in.i || seen[in.i] == seen[n.i] ||
				    (node_const(p, in).i && seen[in.i]))
					continue;
				seen[in.i] = seen[n.i] = more = true;
			}
		}
	}
	for (Node n = p->first; n.i; n = node_next(p, n))
		if (!seen[n.i] && !node_const(p, n).i)
			return false;
	return true;
}

static bool check_pattern(const Graph *p)
{
	uint32_t n = 0;
	TRY(is_plain(p, "pattern"));
	for (Node k = p->first; k.i; k = node_next(p, k))
		n++;
	if (n > MAX_PATTERN)
		return wrong(p, "pattern", "has more than 4096 nodes");
	if (!p->output.n)
		return wrong(p, "pattern", "has no output");
	for (uint32_t k = 0; k < p->output.n; k++)
		if (!pattern_is_call(p, p->output.data[k].node))
			return wrong(p, "pattern", "has an output that no operator computes");
	for (uint32_t k = 0; k < p->output.n; k++)
		for (uint32_t j = 0; j < k; j++)
			if (p->output.data[k].node.i == p->output.data[j].node.i)
				return wrong(p, "pattern", "has two outputs that are one value");
	return is_connected(p) ||
	       wrong(p, "pattern",
		     "has an input or a call that is not connected with its first output");
}

/* Sets *out to the sizes that a graph uses. */
static void find_sizes(const Graph *p, Sym **out, uint32_t *n)
{
	const uint32_t nvar = sym_nvars(graph_syms(p));
	bool *used = ARENA_ARRAY(p->ir->ctx->scratch, bool, nvar);
	*out = ARENA_ARRAY(p->ir->ctx->scratch, Sym, nvar);
	graph_used_symbols(p, used);
	for (uint32_t v = 0; v < nvar; v++)
		if (used[v])
			(*out)[(*n)++] = sym_var_at(graph_syms(p), v);
}

static bool check_sizes(Patterns *x)
{
	find_sizes(x->pattern, &x->size.data, &x->size.n);
	find_sizes(x->replacement, &x->new_size.data, &x->new_size.n);
	Sym s = sizes_unknown(x->pattern, x->size.data, x->size.n);
	return !s.i || ctx_error(x->g->ir->ctx, "weft_replace_pattern",
				 "the pattern has the size %s, whose value does not follow from "
				 "the extents of its values",
				 sym_name(graph_syms(x->g), s));
}

static bool check_both(Patterns *x)
{
	const Graph *p = x->pattern, *r = x->replacement;
	TRY(check_pattern(p) && check_sizes(x) && is_plain(r, "replacement"));
	if (p->input.n != r->input.n)
		return ctx_error(p->ir->ctx, "weft_replace_pattern",
				 "the pattern has %u inputs, the replacement %u", p->input.n,
				 r->input.n);
	return p->output.n == r->output.n ||
	       ctx_error(p->ir->ctx, "weft_replace_pattern",
			 "the pattern has %u outputs, the replacement %u", p->output.n,
			 r->output.n);
}

/* ---- one place ---- */

static const char *type_text(const Graph *g, Node n)
{
	return arena_strdup(g->ir->ctx->scratch, type_str(g->ir, node_type_id(g, n)));
}

/* Returns false if a size has no value that fits. */
static bool solve_inputs(const Patterns *x, Sizes *sizes, const Node *map)
{
	const Graph *r = x->replacement;
	uint32_t before;
	do {
		before = sizes->var.n;
		for (uint32_t k = 0; k < r->input.n; k++) {
			Node in = r->input.data[k].node;
			TRY(sizes_solve(r->ir, sizes, node_type_id(r, in),
					node_type_id(x->g, map[in.i])));
		}
	} while (sizes->var.n > before);
	return true;
}

static bool put_inputs(const Patterns *x, const PatternPlace *place, Sizes *sizes, Node *map)
{
	Graph *g = x->g, *r = x->replacement;
	sizes->all = x->new_size.data;
	sizes->nall = x->new_size.n;
	for (uint32_t k = 0; k < r->input.n; k++) {
		Node in = r->input.data[k].node,
		     value = place->node[x->pattern->input.data[k].node.i];
		map[in.i] = value;
		if (!sizes_unify(g->ir, sizes, node_type_id(r, in), node_type_id(g, value)))
			return ctx_error(g->ir->ctx, node_near(g, place->before),
					 "weft_replace_pattern: input %s of the replacement is %s, "
					 "the value is %s",
					 r->input.data[k].name, type_text(r, in),
					 type_text(g, value));
	}
	return solve_inputs(x, sizes, map) ||
	       ctx_error(g->ir->ctx, node_near(g, place->before),
			 "weft_replace_pattern: the sizes of the replacement do not fit the values "
			 "that its inputs take");
}

static void put_attrs(const Patterns *x, const Sizes *sizes, Node n, Attr *out)
{
	Ir *ir = x->g->ir;
	for (uint32_t k = 0; k < op_schema(node_op(x->replacement, n))->narg; k++) {
		out[k] = *ir_attr(ir, node_data(x->replacement, n)->attr, k);
		if (out[k].kind == ATTR_int)
			out[k].s = sizes_put(ir, sizes, out[k].s);
		Sym *v = out[k].kind == ATTR_ints ? ARENA_ARRAY(ir->ctx->scratch, Sym, out[k].n)
						  : NULL;
		for (uint32_t i = 0; v && i < out[k].n; i++)
			v[i] = sizes_put(ir, sizes, out[k].ints[i]);
		if (v)
			out[k].ints = v;
	}
}

static Node put_node(const Patterns *x, Build *b, Sizes *sizes, Node n, const Node *map)
{
	Graph *g = x->g, *r = x->replacement;
	Attr attr[MAX_ARGS];
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, node_nin(r, n));
	if (node_const(r, n).i)
		return b_const(b, node_const(r, n));
	for (uint32_t k = 0; k < node_nin(r, n); k++)
		in[k] = map[node_in(r, n, k).i];
	put_attrs(x, sizes, n, attr);
	Node made =
		b_call(b, node_op(r, n), in, node_nin(r, n), attr, op_schema(node_op(r, n))->narg);
	if (made.i && node_type_id(g, made).i)
		sizes_unify(g->ir, sizes, node_type_id(r, n),
			    node_type_id(g, made)); /* sizes that depend on data */
	return made;
}

static bool is_equal_type(const Graph *g, Node a, Node b)
{
	const Type *s = node_type(g, a), *t = node_type(g, b);
	bool same = s->dtype == t->dtype && s->n == t->n && s->dtype != DT_none;
	for (uint32_t k = 0; same && k < s->n; k++)
		same = sym_eq(graph_syms(g), s->dim[k], t->dim[k]) == YES;
	return same;
}

static bool put_outputs(const Patterns *x, PatternPlace *place, const Node *map)
{
	Graph *g = x->g;
	place->made = ARENA_ARRAY(g->ir->ctx->scratch, Node, x->replacement->output.n);
	for (uint32_t k = 0; k < x->replacement->output.n; k++) {
		Node old = place->node[x->pattern->output.data[k].node.i],
		     made = map[x->replacement->output.data[k].node.i];
		if (!is_equal_type(g, made, old))
			return ctx_error(g->ir->ctx, node_near(g, old),
					 "weft_replace_pattern: output %u of the replacement is "
					 "%s, expected %s",
					 k, type_text(g, made), type_text(g, old));
		place->made[k] = made;
	}
	return true;
}

static bool put_guards(const Patterns *x, const PatternPlace *place, const Sizes *sizes)
{
	Graph *g = x->g;
	for (uint32_t k = 0; k < x->replacement->guard.n; k++) {
		const GraphGuard *o = &x->replacement->guard.data[k];
		Sym a = sizes_put(g->ir, sizes, o->a), b = sizes_put(g->ir, sizes, o->b);
		if (sym_uses_kind(graph_syms(g), a, SYMVAR_UNBACKED) ||
		    sym_uses_kind(graph_syms(g), b, SYMVAR_UNBACKED))
			return ctx_error(g->ir->ctx, node_near(g, place->before),
					 "weft_replace_pattern: the replacement requires of a size "
					 "that depends "
					 "on data what cannot be checked (%s)",
					 o->why);
		graph_guard(g, o->kind, a, b, o->why);
	}
	return true;
}

static bool put(const Patterns *x, PatternPlace *place)
{
	Graph *r = x->replacement;
	Sizes sizes = {0};
	Node *map = ARENA_ARRAY(r->ir->ctx->scratch, Node, r->node.n);
	Build b = {.g = x->g,
		   .before = place->before,
		   .loc = node_data(x->g, place->node[x->pattern->output.data[0].node.i])->loc};
	TRY(put_inputs(x, place, &sizes, map));
	for (Node n = r->first; n.i; n = node_next(r, n)) {
		b.where = arena_printf(r->ir->ctx->scratch, "%s: replacement, node %s",
				       node_near(x->g, place->before), graph_last_name(r, n));
		if (!map[n.i].i) /* no input */
			map[n.i] = put_node(x, &b, &sizes, n, map);
		TRY(map[n.i].i);
	}
	return put_guards(x, place, &sizes) && put_outputs(x, place, map);
}

/* ---- all places ---- */

static void take_back(const Patterns *x, uint32_t guards)
{
	Graph *g = x->g;
	for (uint32_t i = g->node.n; i-- > x->nnode;)
		if (node_op(g, (Node){i}) != OP_none)
			graph_erase(g, (Node){i});
	g->guard.n = guards;
}

/* Makes readers read what replaces an output, which may itself be an output that was replaced
 * before. */
static void rewire(const Patterns *x)
{
	Graph *g = x->g;
	Node *moved = ARENA_ARRAY(g->ir->ctx->scratch, Node, g->node.n);
	for (uint32_t i = 0; i < x->place.n; i++) {
		const PatternPlace *place = &x->place.data[i];
		for (uint32_t k = 0; k < x->pattern->output.n; k++) {
			Node old = place->node[x->pattern->output.data[k].node.i],
			     by = place->made[k];
			while (moved[by.i].i)
				by = moved[by.i];
			moved[old.i] = by;
			graph_replace(g, old, by);
		}
	}
}

static void erase_places(const Patterns *x)
{
	for (uint32_t i = x->place.n; i-- > 0;)
		for (Node n = x->pattern->last; n.i; n = node_prev(x->pattern, n))
			if (pattern_is_call(x->pattern, n) &&
			    !node_nuses(x->g, x->place.data[i].node[n.i]))
				graph_erase(x->g, x->place.data[i].node[n.i]);
}

bool pattern_replace(Graph *g, Graph *pattern, Graph *replacement, uint32_t *places)
{
	Patterns x = {.g = g, .pattern = pattern, .replacement = replacement, .nnode = g->node.n};
	uint32_t guards = g->guard.n;
	TRY(check_both(&x));
	pattern_find(&x);
	for (uint32_t i = 0; i < x.place.n; i++) {
		if (!put(&x, &x.place.data[i])) {
			take_back(&x, guards);
			return false;
		}
	}
	rewire(&x);
	erase_places(&x);
	if (x.moves)
		pattern_order(g);
	*places = x.place.n;
	return true;
}
