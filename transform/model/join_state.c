/* State of several entries.
 *
 * What one graph writes is state in all of them: a constant of that name in another graph becomes
 * an input of state, which reads what was written. A name is one tensor, of one type, with one
 * first contents, except where Joining.private and Joining.same say otherwise. */
#include "transform/model/join.h"

#include <string.h>

#include "base/nearest.h"
#include "ir/op/op.h"

/* A tensor of that name, in whatever graphs have it. */
typedef struct {
	const char *name;
	uint32_t entry; /* the first that has it as state */
	ConstId init;   /* there */
	InputKind kind;
} State;

/* That a name of a file is another one here. */
typedef struct {
	uint32_t entry;
	const char *from, *to;
} Renamed;

typedef struct {
	const Joining *j;
	Ctx *ctx;
	Ir *ir;
	Intern names;        /* of state, and of what lies in the memory of state */
	ARRAY(State) state;
	ARRAY(uint32_t) of;  /* by id of names - 1: index into state */
	ARRAY(Renamed) renamed;
} States;

static const char *path_of(const States *s, uint32_t entry)
{
	return s->j->entry[entry].path;
}

/* ---- options ---- */

/* "a.x=b.y". */
typedef struct {
	uint32_t entry[2];
	const char *name[2];
} Same;

static bool find_entry(const States *s, const char *text, size_t n, uint32_t *out)
{
	for (*out = 0; *out < s->j->n; ++*out)
		if (strlen(s->j->entry[*out].name) == n &&
		    !strncmp(s->j->entry[*out].name, text, n))
			return true;
	return false;
}

static bool parse_same(const States *s, const char *text, Same *out)
{
	Arena *arena = s->ctx->arena;
	const char *p = text;
	for (int k = 0; k < 2; k++) {
		size_t n = strcspn(p, k ? "" : "="), dot = strcspn(p, ".");
		if (dot >= n || dot + 1 == n || (!k && !p[n]))
			return ctx_error(s->ctx, NULL,
					 "\"%s\" joins no state: expected ENTRY.NAME=ENTRY.NAME",
					 text);
		if (!find_entry(s, p, dot, &out->entry[k]))
			return ctx_error(s->ctx, NULL,
					 "\"%s\" joins no state: there is no entry %.*s", text,
					 (int)dot, p);
		out->name[k] = arena_strndup(arena, p + dot + 1, n - dot - 1);
		p += n + 1;
	}
	return true;
}

/* Returns how often a graph has the name, of state or of a constant. */
static uint32_t count_name(const States *s, uint32_t entry, const char *name)
{
	const Graph *g = s->j->entry[entry].g;
	uint32_t n = 0;
	for (uint32_t k = 0; k < g->input.n; k++)
		n += g->input.data[k].kind != INPUT_USER && !strcmp(g->input.data[k].name, name);
	for (uint32_t k = s->j->first[entry]; k < s->j->first[entry + 1]; k++)
		n += !strcmp(s->ir->constant.data[k].name, name);
	return n;
}

/* Returns the state or constant of a graph that may be meant. */
static const char *name_hint(const States *s, uint32_t entry, const char *name)
{
	const Graph *g = s->j->entry[entry].g;
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER)
			nearest_offer(&near, g->input.data[k].name);
	for (uint32_t k = s->j->first[entry]; k < s->j->first[entry + 1]; k++)
		nearest_offer(&near, s->ir->constant.data[k].name);
	return nearest_hint(s->ctx->arena, &near);
}

static void rename_tensor(const States *s, uint32_t entry, const char *from, const char *to)
{
	Graph *g = s->j->entry[entry].g;
	to = intern_str(&s->ir->strings, to);
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes >= 0 && !strcmp(g->output.data[k].name, from))
			g->output.data[k].name = to;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER && !strcmp(g->input.data[k].name, from))
			g->input.data[k].name = to;
	for (uint32_t k = s->j->first[entry]; k < s->j->first[entry + 1]; k++)
		if (!strcmp(s->ir->constant.data[k].name, from))
			s->ir->constant.data[k].name = to;
}

static bool join_same(States *s, const char *text)
{
	Same x;
	TRY(parse_same(s, text, &x));
	for (int k = 0; k < 2; k++)
		if (!count_name(s, x.entry[k], x.name[k]))
			return ctx_error(
				s->ctx, path_of(s, x.entry[k]),
				"\"%s\" joins no state: the graph has no parameter or buffer %s%s",
				text, x.name[k], name_hint(s, x.entry[k], x.name[k]));
	if (strcmp(x.name[0], x.name[1]) != 0 && count_name(s, x.entry[1], x.name[0]))
		return ctx_error(s->ctx, path_of(s, x.entry[1]),
				 "\"%s\" joins no state: the graph has a tensor %s of its own",
				 text, x.name[0]);
	rename_tensor(s, x.entry[1], x.name[1], x.name[0]);
	array_push(s->ctx->arena, &s->renamed, (Renamed){x.entry[1], x.name[1], x.name[0]});
	return true;
}

static bool is_state(const Graph *g, const char *name)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER && !strcmp(g->input.data[k].name, name))
			return true;
	return false;
}

/* Gives each graph that writes the state one of its own. */
static bool make_private(const States *s, const char *name)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < s->j->n; k++) {
		if (!is_state(s->j->entry[k].g, name))
			continue;
		rename_tensor(s, k, name,
			      arena_printf(s->ctx->arena, "%s.%s", s->j->entry[k].name, name));
		n++;
	}
	return n || ctx_error(s->ctx, NULL,
			      "no entry has state called \"%s\", which was to be private", name);
}

/* ---- identity ---- */

static bool same_type(const Const *a, const Const *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* Checks that the constant, which is called like a state, is that state. */
static bool check_same(const States *s, const State *state, uint32_t entry, ConstId c,
		       const char *name)
{
	const Const *a = ir_const_of(s->ir, state->init), *b = ir_const_of(s->ir, c);
	const char *what = !same_type(a, b)                          ? "type"
			   : memcmp(a->data, b->data, a->bytes) != 0 ? "first contents"
								     : NULL;
	return !what || ctx_error(s->ctx, path_of(s, entry),
				  "%s has another %s than %s, which %s writes: two tensors need "
				  "two names (a private one is called ENTRY.%s)",
				  name, what, state->name, path_of(s, state->entry), state->name);
}

static State *find(const States *s, const char *name)
{
	uint32_t id = intern_find(&s->names, name, strlen(name));
	return id ? &s->state.data[s->of.data[id - 1]] : NULL;
}

static void add_name(States *s, const char *name, uint32_t state)
{
	bool fresh;
	intern(&s->names, name, strlen(name), &fresh);
	if (fresh)
		array_push(s->ctx->arena, &s->of, state);
}

static bool gather(States *s, uint32_t entry)
{
	const Graph *g = s->j->entry[entry].g;
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		if (in->kind == INPUT_USER)
			continue;
		const State *other = find(s, in->name);
		if (!in->init.i)
			return ctx_error(s->ctx, path_of(s, entry),
					 "%s is state without first contents", in->name);
		if (other) {
			TRY(check_same(s, other, entry, in->init, in->name));
			continue;
		}
		array_push(s->ctx->arena, &s->state, (State){in->name, entry, in->init, in->kind});
		add_name(s, in->name, s->state.n - 1);
	}
	return true;
}

static const char *name_here(const States *s, uint32_t entry, const char *name)
{
	for (uint32_t k = 0; k < s->renamed.n; k++)
		if (s->renamed.data[k].entry == entry && !strcmp(s->renamed.data[k].from, name))
			return s->renamed.data[k].to;
	return name;
}

/* Adds the names of other tensors that a file has in the memory of a state. */
static void gather_parts(States *s, uint32_t entry)
{
	const Ir *file = s->j->from[entry]->ir;
	for (uint32_t k = 1; k < file->constant.n; k++) {
		ConstId holder = file->constant.data[k].holder;
		const State *state =
			holder.i ? find(s, name_here(s, entry, file->constant.data[holder.i].name))
				 : NULL;
		if (state && *file->constant.data[k].name)
			add_name(s, file->constant.data[k].name, (uint32_t)(state - s->state.data));
	}
}

/* ---- constants become state ---- */

static Node state_input(Graph *g, const State *state, const Const *c, ConstId init)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind != INPUT_USER &&
		    !strcmp(g->input.data[k].name, state->name))
			return g->input.data[k].node;
	TypeId type = ir_type_ints(g->ir, c->dtype, c->rank, c->dim);
	Node n = graph_add_input(g, state->name, state->kind, type);
	g->input.data[g->input.n - 1].init = init;
	return n;
}

/* Checks that branches and loops read no state: it would have to come in as an operand. */
static bool check_inner(const States *s, const Graph *g, uint32_t entry)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		ConstId c = node_const(g, n);
		if (c.i && find(s, ir_const_of(s->ir, c)->name))
			return ctx_error(s->ctx, path_of(s, entry),
					 "%s, which %s writes, is a constant of a branch or a "
					 "loop: not supported",
					 ir_const_of(s->ir, c)->name,
					 path_of(s, find(s, ir_const_of(s->ir, c)->name)->entry));
		const Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			TRY(check_inner(s, body, entry));
	}
	return true;
}

static bool replace_constant(States *s, uint32_t entry, Node n, ConstId id)
{
	Graph *g = s->j->entry[entry].g;
	const Const c = *ir_const_of(s->ir, id);
	const State *state = find(s, c.name);
	bool part = strcmp(c.name, state->name) != 0;
	if (part && (!same_type(&c, ir_const_of(s->ir, state->init)) ||
		     memcmp(c.data, ir_const_of(s->ir, state->init)->data, c.bytes) != 0))
		return ctx_error(s->ctx, path_of(s, entry),
				 "%s is part of the memory of %s, which %s writes: not supported",
				 c.name, state->name, path_of(s, state->entry));
	TRY(check_same(s, state, entry, id, c.name));
	Node in = state_input(g, state, &c, id);
	graph_replace(g, n, in);
	graph_erase(g, n);
	array_push(s->ctx->arena, s->j->joined, (JoinedConstant){state->name, entry});
	return true;
}

static bool replace_constants(States *s, uint32_t entry)
{
	Graph *g = s->j->entry[entry].g;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		ConstId c = node_const(g, n);
		if (c.i && node_nuses(g, n) && find(s, ir_const_of(s->ir, c)->name))
			TRY(replace_constant(s, entry, n, c));
		const Graph *body;
		for (uint32_t k = 0; !c.i && (body = node_next_body(g, n, &k));)
			TRY(check_inner(s, body, entry));
	}
	return true;
}

bool join_state(const Joining *j)
{
	Ir *ir = j->entry[0].g->ir;
	States s = {.j = j, .ctx = ir->ctx, .ir = ir};
	intern_init(&s.names, s.ctx->arena);
	for (uint32_t k = 0; k < j->nsame; k++)
		TRY(join_same(&s, j->same[k]));
	for (uint32_t k = 0; k < j->nprivate; k++)
		TRY(make_private(&s, j->private[k]));
	for (uint32_t k = 0; k < j->n; k++)
		TRY(gather(&s, k));
	for (uint32_t k = 0; k < j->n && s.state.n; k++)
		gather_parts(&s, k);
	for (uint32_t k = 0; k < j->n && s.state.n; k++)
		TRY(replace_constants(&s, k));
	return true;
}
