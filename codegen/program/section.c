/* What a program stores: constants in their layouts, each once, and state. */
#include "codegen/program/program_priv.h"

#include <string.h>

enum { WEIGHT_ALIGN = 64 };

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + WEIGHT_ALIGN - 1) / WEIGHT_ALIGN * WEIGHT_ALIGN;
}

void section_init(Section *s, Program *p)
{
	s->p = p;
	intern_init(&s->constant, p->ir->ctx->arena);
	intern_init(&s->state, p->ir->ctx->arena);
}

/* Returns the index of a constant in a layout in Program.constant. *fresh says whether it is new,
 * so that the caller adds it. */
static uint32_t find(Section *s, ConstId source, DType dtype, const Layout *layout, bool *fresh)
{
	uint64_t key[3 + 4 * 2 * MAX_RANK] = {source.i, dtype, layout->n}, n = 3;
	for (uint32_t i = 0; i < layout->n; i++) {
		key[n++] = layout->dim[i].axis;
		key[n++] = (uint64_t)layout->dim[i].divisor;
		key[n++] = layout->dim[i].extent.i;
		key[n++] = layout->dim[i].padded.i;
	}
	return intern(&s->constant, key, n * sizeof *key, fresh) - 1;
}

static void add_constant(Program *p, const ProgramConst *c)
{
	array_push(p->ir->ctx->arena, &p->constant, *c);
	p->weight_bytes += round_up(c->bytes);
}

uint32_t section_constant(Section *s, const Buffer *w, const Layout *layout)
{
	Program *p = s->p;
	bool fresh;
	uint32_t k = find(s, (ConstId){w->k}, w->dtype, layout, &fresh);
	if (!fresh)
		return k;
	uint64_t bytes = (uint64_t)sym_const(p->ir->syms, layout_numel(p->ir, layout)) *
			 dtype_size(w->dtype);
	add_constant(p, &(ProgramConst){.source = {w->k},
					.layout = *layout,
					.dtype = w->dtype,
					.offset = p->weight_bytes,
					.bytes = bytes,
					.name = w->name});
	return k;
}

void section_share(Section *s, const Program *with)
{
	Program *p = s->p;
	for (uint32_t i = p->constant.n; i < with->constant.n; i++) {
		const ProgramConst *c = &with->constant.data[i];
		bool fresh;
		find(s, c->source, c->dtype, &c->layout, &fresh);
		array_push(p->ir->ctx->arena, &p->constant, *c);
	}
	p->weight_bytes = with->weight_bytes;
}

/* ---- state ---- */

static bool is_zero(const Const *c)
{
	const char *data = c->data;
	return !c->bytes || (!*data && !memcmp(data, data + 1, c->bytes - 1));
}

/* Adds the initial contents of a state as a constant of their own: set_weights, which changes what
 * others read, must not change them. */
static void add_first_contents(Section *s, ProgramState *state, uint32_t number)
{
	Program *p = s->p;
	Sym dim[MAX_RANK];
	bool fresh;
	const uint64_t key[] = {UINT64_MAX, number};
	state->first = p->weight_bytes;
	for (uint32_t k = 0; k < state->rank; k++)
		dim[k] = sym_int(p->ir->syms, state->dim[k]);
	intern(&s->constant, key, sizeof key, &fresh);
	add_constant(p, &(ProgramConst){.source = state->init,
					.layout = layout_row_major(p->ir, state->rank, dim),
					.dtype = state->dtype,
					.offset = state->first,
					.bytes = state->bytes,
					.name = state->name,
					.first = true});
}

static void add_state(Section *s, const LoweredState *of)
{
	Program *p = s->p;
	ProgramState state = {.name = of->name,
			      .dtype = of->dtype,
			      .rank = of->rank,
			      .dim = of->dim,
			      .init = of->init,
			      .kind = of->kind,
			      .offset = p->state_bytes,
			      .bytes = dtype_size(of->dtype),
			      .first = PROGRAM_ZEROS};
	for (uint32_t d = 0; d < of->rank; d++)
		state.bytes *= (uint64_t)of->dim[d];
	if (!is_zero(ir_const_of(p->ir, of->init)))
		add_first_contents(s, &state, p->state.n);
	array_push(p->ir->ctx->arena, &p->state, state);
	p->state_bytes += round_up(state.bytes);
}

uint32_t section_state(Section *s, const LoweredState *state)
{
	bool fresh;
	uint32_t id = intern(&s->state, state->name, strlen(state->name), &fresh);
	if (fresh)
		add_state(s, state);
	return id - 1;
}
