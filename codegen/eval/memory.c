/* Arguments of the function, what loads read, temporaries, and results of stages. */
#include "codegen/eval/priv.h"

/* ---- arguments ---- */

static LMem argument(Eval *e, SchedArg a, const char *name, DType dtype, bool donated)
{
	uint32_t i = 0;
	while (i < e->args.arg.n &&
	       (e->args.arg.data[i].kind != a.kind || e->args.arg.data[i].k != a.k ||
		e->args.arg.data[i].packed != a.packed))
		i++;
	if (i == e->args.arg.n) {
		array_push(e->arena, &e->args.arg, a);
		loop_buf(e->f, (LArg){.name = name,
				      .dtype = dtype,
				      .restrict_ok = !donated,
				      .align = dtype_size(dtype)});
	}
	return lmem_buf(i, dtype);
}

LMem eval_memory(Eval *e, BufId b)
{
	const Buffer *buf = buf_of(e->l, b);
	return argument(e, (SchedArg){ARG_BUF, b.i, NULL}, buf->name, buf->dtype, buf->donated);
}

LMem eval_temp_memory(Eval *e, uint32_t temp)
{
	const SchedTemp *t = &e->args.made->temp.data[temp];
	return argument(e, (SchedArg){ARG_TEMP, temp, NULL}, t->name, t->dtype, false);
}

LMem eval_load_memory(Eval *e, Kx load)
{
	const Buffer *buf = buf_of(e->l, e->k->kx.data[load.i].buf);
	if (e->nest->from[load.i].kind == ARG_TEMP)
		return eval_temp_memory(e, e->nest->from[load.i].k);
	return argument(e, e->nest->from[load.i], buf->name, buf->dtype, buf->donated);
}

/* ---- temporaries ---- */

Lx eval_load_temp(Eval *e, uint32_t temp, Sym offset)
{
	LMem mem = eval_temp_memory(e, temp);
	bool vector = e->lanes.axis != NO_AXIS && (nest_axes(e->nest, offset) >> e->lanes.axis & 1);
	LType t = {dtype_compute(mem.dtype), vector ? e->lanes.n : 1};
	const char *name = e->args.made->temp.data[temp].name;
	return lx_var(e->f, ls_load(e->f, name, mem, eval_index(e, offset), t,
				    vector ? e->lanes.mask : (Lx){0}));
}

void eval_store_temp(Eval *e, uint32_t temp, Sym offset, Lx value)
{
	bool vector = e->lanes.axis != NO_AXIS && (nest_axes(e->nest, offset) >> e->lanes.axis & 1);
	ls_store(e->f, eval_temp_memory(e, temp), eval_index(e, offset),
		 vector ? eval_splat(e, value) : value, vector ? e->lanes.mask : (Lx){0});
}

/* ---- results ---- */

EvalAddress eval_vector_address(Eval *e, Sym offset)
{
	Sym coef;
	if (!nest_coef(e->nest, offset, e->lanes.axis, &coef))
		return (EvalAddress){lx_int(e->f, 0), eval_index_lanes(e, offset), true};
	Lx at = eval_index(e, offset);
	if (sym_is(e->syms, coef, 1))
		return (EvalAddress){at, {0}, true};
	return (EvalAddress){at, lx_ramp(e->f, lx_int(e->f, 0), eval_size(e, coef), e->lanes.n),
			     true};
}

EvalAddress eval_address(Eval *e, uint32_t stage)
{
	if (e->lanes.axis != NO_AXIS &&
	    (nest_axes(e->nest, e->nest->store[stage]) >> e->lanes.axis & 1))
		return eval_vector_address(e, e->nest->store[stage]);
	return (EvalAddress){eval_index(e, e->nest->store[stage]), {0}, false};
}

Lx eval_load_at(Eval *e, uint32_t stage, EvalAddress a)
{
	LMem mem = eval_memory(e, e->k->stage.data[stage].store.buf);
	const char *name = e->f->buf.data[mem.k].name;
	DType d = dtype_compute(mem.dtype);
	LType t = {d, a.vector ? e->lanes.n : 1};
	Lv v = a.index.i
		       ? ls_gather(e->f, name, mem, a.offset, a.index, d, e->lanes.mask)
		       : ls_load(e->f, name, mem, a.offset, t, a.vector ? e->lanes.mask : (Lx){0});
	return lx_var(e->f, v);
}

void eval_store_at(Eval *e, uint32_t stage, EvalAddress a, Lx value)
{
	LMem mem = eval_memory(e, e->k->stage.data[stage].store.buf);
	value = eval_convert(e, value, dtype_compute(mem.dtype));
	if (a.vector)
		value = eval_splat(e, value);
	if (a.index.i)
		ls_scatter(e->f, mem, a.offset, a.index, value, e->lanes.mask);
	else
		ls_store(e->f, mem, a.offset, value, a.vector ? e->lanes.mask : (Lx){0});
}

/* ---- stages that later ones read ---- */

void eval_stage_value(Eval *e, uint32_t stage, Lx value)
{
	e->stage[stage].value = value;
	e->stage[stage].run = ++e->state.nrun;
}

void eval_stage_stored(Eval *e, uint32_t stage)
{
	e->stage[stage].run = ++e->state.nrun;
}

void eval_stage_over(Eval *e, uint32_t stage)
{
	e->stage[stage].run = 0;
}

/* Orders the axes of a stage's local row. The lane axis is last, so that lanes are neighbours in
 * memory. */
static void order_row(const Eval *e, StageValue *out, const Stage *st)
{
	out->nmap = 0;
	for (uint32_t last = 0; last < 2; last++)
		for (uint32_t i = e->nest->nouter; i < st->nmap; i++)
			if ((st->map[i] == e->lanes.axis) == last) {
				out->from[out->nmap] = i;
				out->map[out->nmap++] = st->map[i];
			}
}

void eval_stage_local(Eval *e, uint32_t stage, uint64_t elements)
{
	const Stage *st = &e->k->stage.data[stage];
	StageValue *out = &e->stage[stage];
	order_row(e, out, st);
	out->local = ls_local(e->f, "row", st->dtype,
			      elements * (eval_outer_vector(e) ? e->lanes.n : 1));
}

void eval_store_local(Eval *e, uint32_t stage, Lx v)
{
	const StageValue *out = &e->stage[stage];
	Lx offset = lx_int(e->f, 0);
	bool vector = false;
	for (uint32_t i = 0; i < out->nmap; i++) {
		offset = lx_mul(e->f, offset, eval_size(e, e->nest->extent[out->map[i]]));
		offset = lx_add(e->f, offset, e->at[out->map[i]]);
		vector |= out->map[i] == e->lanes.axis;
	}
	if (eval_outer_vector(e)) /* what a tail reads of the other lanes does not matter, but is
				     there */
		ls_store(e->f, out->local, lx_mul(e->f, offset, lx_int(e->f, e->lanes.n)),
			 eval_splat(e, v), (Lx){0});
	else
		ls_store(e->f, out->local, offset, vector ? eval_splat(e, v) : v,
			 vector ? e->lanes.mask : (Lx){0});
}

void eval_stages(Eval *e, StageValue *stage)
{
	e->stage = stage;
}
