/* What a call that fails has to put back: of every step that replaces state and after which, or in
 * which, a check may fail, the elements that it is to overwrite are copied to the workspace
 * before.
 *
 *   save:   @values[i] = @cache[v + i], @at[i] = offset of that; save @cache[@at] -> @values;
 *           update_row -> @cache[v + i]
 *
 * With LowerOptions.cancellable, a call may end before any step.
 *
 * A step that replaces most of it has all of it copied, once. Indices that are out of range are
 * found by a step of its own, before: then nothing needs to be saved for them. */
#include <string.h>

#include "lower/stage.h"
#include "lower/state.h"

/* ---- what may fail ---- */

static bool has_checks(const Kernel *k)
{
	bool found = false;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		found |= k->vvar.data[i].check != 0;
	for (uint32_t i = 0; i < k->stage.n; i++)
		found |= k->stage.data[i].kind == STAGE_CHECK;
	return found;
}

bool lower_step_fails(const Step *s)
{
	StepList *inner[MAX_STEP_LISTS];
	bool fails = s->kind == STEP_KERNEL ? has_checks(s->kernel)
					    : s->kind == STEP_CALL || s->kind == STEP_SIZE;
	for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++) {
		fails |= inner[k]->graph && inner[k]->graph->guard.n;
		for (uint32_t i = 0; i < inner[k]->step.n; i++)
			fails |= lower_step_fails(&inner[k]->step.data[i]);
	}
	return fails;
}

bool lower_step_has_effect(const Step *s)
{
	StepList *inner[MAX_STEP_LISTS];
	bool effect = s->kind == STEP_CALL;
	for (uint32_t k = 0; s->kind == STEP_KERNEL && k < s->kernel->stage.n; k++)
		effect |= s->kernel->stage.data[k].kind == STAGE_CHECK &&
			  s->kernel->stage.data[k].check.message;
	for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
		for (uint32_t i = 0; i < inner[k]->step.n; i++)
			effect |= lower_step_has_effect(&inner[k]->step.data[i]);
	return effect;
}

/* ---- kernels made of others ---- */

/* Drops the contents of expressions that no stage uses: they would name axes that are gone. */
static void drop_unused(Lower *s, Kernel *k)
{
	bool *mark = ARENA_ARRAY(s->arena, bool, k->kx.n);
	kernel_reached(k, 0, k->stage.n, mark);
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (!mark[i])
			k->kx.data[i] = (KxData){.kind = KX_CONST, .dtype = DT_i64};
}

static bool uses_axis(const Lower *s, const Kernel *k, const bool *mark, Sym var)
{
	SymTab *syms = s->ir->syms;
	for (uint32_t i = 1; i < k->kx.n; i++)
		for (uint32_t d = 0; mark[i] && d < k->kx.data[i].nidx; d++)
			if (sym_uses(syms, k->kx.data[i].idx[d], var))
				return true;
	for (uint32_t i = 0; i < k->vvar.n; i++)
		for (uint32_t d = 0; d < k->vvar.data[i].nat; d++)
			if (sym_uses(syms, k->vvar.data[i].at[d], var))
				return true;
	return false;
}

/* Drops the axes that no check uses. An axis that may have no points stays: then nothing is
 * checked. */
static void keep_axes(Lower *s, Kernel *k)
{
	bool *mark = ARENA_ARRAY(s->arena, bool, k->kx.n);
	kernel_reached(k, 0, 0, mark);
	uint32_t n = 0;
	for (uint32_t i = 0; i < k->axis.n; i++) {
		bool some =
			sym_lt(s->ir->syms, sym_int(s->ir->syms, 0), k->axis.data[i].extent) == YES;
		if (!some || uses_axis(s, k, mark, k->axis.data[i].var))
			k->axis.data[n++] = k->axis.data[i];
	}
	k->axis.n = n;
}

static Kernel *check_kernel(Lower *s, const Kernel *of)
{
	Kernel *k = kernel_copy(s->arena, of);
	k->name = arena_printf(s->arena, "check_%s", of->name);
	k->stage.n = 0;
	keep_axes(s, k);
	for (uint32_t i = 0; i < k->vvar.n; i++) {
		if (!k->vvar.data[i].check)
			continue;
		/* the variable's own check is what may fail */
		Kx in[2] = {kx_index(k, s->arena, k->vvar.data[i].var),
			    kx_const_int(k, s->arena, DT_i64, 0)};
		Stage st = {.kind = STAGE_CHECK,
			    .dtype = DT_bool,
			    .value = kx_op(k, s->arena, OP_ge, DT_bool, in, 2)};
		stage_map_first(&st, k->axis.n);
		array_push(s->arena, &k->stage, st);
	}
	drop_unused(s, k);
	return k;
}

static bool checked_before(const Lower *s, const Kernel *k, Node index)
{
	for (uint32_t i = 0; i < s->state->checked.n; i++) {
		const StateChecked *c = &s->state->checked.data[i];
		bool same = c->index == index.i && c->n == k->vvar.n;
		for (uint32_t j = 0; same && j < c->n; j++)
			same = c->var[j].extent.i == k->vvar.data[j].extent.i &&
			       !c->var[j].check == !k->vvar.data[j].check;
		if (same)
			return true;
	}
	return false;
}

void lower_state_check(Lower *s, Kernel *k, Node index)
{
	if (!has_checks(k))
		return;
	if (!checked_before(s, k, index)) {
		lower_push_kernel(s, check_kernel(s, k));
		const ValueVar *var = arena_dup(s->arena, k->vvar.data, k->vvar.n * sizeof *var);
		array_push(s->arena, &s->state->checked, (StateChecked){index.i, var, k->vvar.n});
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		k->vvar.data[i].check = 0;
}

/* ---- saving ---- */

typedef struct {
	Lower *s;
	const Step *step;
	StepList *to;
	bool *whole; /* by state: all of it is saved */
} Undo;

static BufId temporary(Lower *s, DType dtype, uint32_t rank, const Sym *dim, const char *name)
{
	BufId b = lowered_buf(s->l, BUF_TEMP, 0, dtype, rank, dim, name);
	buf_of(s->l, b)->layout_fixed = true;
	return b;
}

static BufId record(Lower *s)
{
	Sym bytes = sym_int(s->ir->syms, SAVE_RECORD);
	return temporary(s, DT_u8, 1, &bytes, "record");
}

static void push_save(Undo *u, StepSave save)
{
	array_push(u->s->arena, &u->to->step,
	           (Step){.kind = STEP_SAVE, .save = arena_dup(u->s->arena, &save, sizeof save)});
}

/* Whether the step is a kernel of one stage, which stores to less than half of the state. */
static bool is_small(const Lower *s, const Step *step, BufId state)
{
	const Kernel *k = step->kernel;
	int64_t points = 1;
	if (step->kind != STEP_KERNEL || k->stage.n != 1 || k->axis.n > MAX_RANK)
		return false;
	for (uint32_t i = 0; i < k->axis.n; i++)
		points *= sym_hint(s->ir->syms, k->axis.data[i].extent);
	return 2 * points <
	       sym_hint(s->ir->syms, layout_numel(s->ir, &buf_of(s->l, state)->layout));
}

static void save_part(Undo *u, BufId state)
{
	Lower *s = u->s;
	Kernel *k = kernel_copy(s->arena, u->step->kernel);
	const Stage old = k->stage.data[0];
	const Buffer b = *buf_of(s->l, state);
	Sym dim[MAX_RANK], n = sym_int(s->ir->syms, 1),
			   *idx = ARENA_ARRAY(s->arena, Sym, k->axis.n);
	for (uint32_t i = 0; i < k->axis.n; i++) {
		dim[i] = k->axis.data[i].extent;
		idx[i] = k->axis.data[i].var;
		n = sym_mul(s->ir->syms, n, dim[i]);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		k->vvar.data[i].check = 0;
	k->stage.n = 0;
	k->name = arena_printf(s->arena, "save_%s", k->name);
	StepSave save = {.state = state, .n = n, .record = record(s)};
	save.values = temporary(s, b.dtype, k->axis.n, dim,
				arena_printf(s->arena, "old_%s", s->l->state.data[b.k].name));
	save.at = temporary(s, DT_i64, k->axis.n, dim,
			    arena_printf(s->arena, "at_%s", s->l->state.data[b.k].name));
	Stage st = {.kind = STAGE_MAP, .dtype = b.dtype, .store = {.buf = save.values, .idx = idx}};
	stage_map_first(&st, k->axis.n);
	st.value = kx_load(k, s->arena, state, dtype_compute(b.dtype), b.rank, old.store.idx,
			   (Kx){0}, (Kx){0});
	array_push(s->arena, &k->stage, st);
	st.dtype = DT_i64;
	st.store.buf = save.at;
	st.value = kx_index(k, s->arena, layout_offset(s->ir, &b.layout, old.store.idx));
	array_push(s->arena, &k->stage, st);
	drop_unused(s, k);
	array_push(s->arena, &u->to->step, (Step){.kind = STEP_KERNEL, .kernel = k});
	push_save(u, save);
}

static void save_whole(Undo *u, BufId state)
{
	Lower *s = u->s;
	const Buffer b = *buf_of(s->l, state);
	StepSave save = {.state = state, .n = layout_numel(s->ir, &b.layout), .record = record(s)};
	save.values = temporary(s, b.dtype, b.rank, b.dim,
				arena_printf(s->arena, "old_%s", s->l->state.data[b.k].name));
	u->whole[b.k] = true;
	push_save(u, save);
}

static void save_written(void *data, BufId b, bool write)
{
	Undo *u = data;
	const Buffer *buf = buf_of(u->s->l, b);
	if (!write || buf->kind != BUF_STATE || u->whole[buf->k])
		return;
	if (is_small(u->s, u->step, b))
		save_part(u, b);
	else
		save_whole(u, b);
}

void lower_save_state(Lower *s)
{
	StepList *list = &s->l->steps, all = *list;
	uint32_t end = all.step.n;
	while (end && !s->opt->cancellable && !lower_step_fails(&all.step.data[end - 1]))
		end--;
	memset(&list->step, 0, sizeof list->step);
	Undo u = {.s = s, .to = list, .whole = ARENA_ARRAY(s->arena, bool, s->l->state.n)};
	for (uint32_t k = 0; k < all.step.n; k++) {
		u.step = &all.step.data[k];
		if (k < end)
			step_buffers(u.step, s->arena, save_written, &u);
		array_push(s->arena, &list->step, all.step.data[k]);
	}
}
