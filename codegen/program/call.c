#include "codegen/program/call.h"

#include <string.h>

#include "codegen/program/program_priv.h"
#include "ir/op/userop.h"

typedef struct {
	const Lowered *l;
	const StepCall *c;
	LoopFn *f;
	SchedPhase *p;
	SymLower sizes; /* in f: size symbols are parameters */
	BufId *buf;
	uint32_t nbuf;
	SchedArg *arg;
	Sym *param;
	struct LoopCallTensor *tensor;
	uint32_t ntensor;
	ARRAY(Lx) value;
	Sym elements; /* of all buffers together, as bytes */
	Sym parts; /* of a divided operator: its tasks; 0: one */
} Calling;

/* Returns the value of an expression. Sizes of the model that it needs become parameters of the
 * function. */
static Lx value_of(Calling *k, Sym e)
{
	SymTab *t = graph_syms(k->l->graph);
	for (uint32_t i = 0; i < sym_nvars(t); i++) {
		Sym var = sym_var_at(t, i);
		if (!sym_uses(t, e, var) || sym_lower_can(&k->sizes, var))
			continue;
		sym_lower_set(&k->sizes, var, lx_param(k->f, loop_param(k->f, sym_name(t, var))));
		k->param[k->p->nparam++] = var;
	}
	return sym_lower(&k->sizes, e);
}

static void put(Calling *k, Sym e)
{
	array_push(k->l->ir->ctx->arena, &k->value, value_of(k, e));
}

static void put_int(Calling *k, int64_t v)
{
	array_push(k->l->ir->ctx->arena, &k->value, lx_int(k->f, v));
}

/* Returns the number of the function's argument for a buffer, which is added if it is new: a buffer
 * that is passed twice is one argument. Notes whether the call reads or writes it. */
static uint32_t argument(Calling *k, BufId id, bool write)
{
	uint32_t i = 0;
	while (i < k->nbuf && k->buf[i].i != id.i)
		i++;
	if (i == k->nbuf) {
		const Buffer *b = buf_of(k->l, id);
		loop_buf(k->f,
			 (LArg){.name = b->name, .dtype = b->dtype, .align = dtype_size(b->dtype)});
		k->arg[k->p->narg++] = (SchedArg){ARG_BUF, i, NULL};
		k->buf[k->nbuf++] = id;
	}
	k->f->buf.data[i].read |= !write;
	k->f->buf.data[i].written |= write;
	return i;
}

static void put_buffer(Calling *k, BufId id, bool write)
{
	SymTab *t = k->l->ir->syms;
	const Buffer *b = buf_of(k->l, id);
	Sym bytes = sym_int(t, dtype_size(b->dtype));
	k->tensor[k->ntensor++] =
		(struct LoopCallTensor){b->dtype, b->rank, 0, (int32_t)argument(k, id, write)};
	for (uint32_t d = 0; d < b->rank; d++) {
		put(k, b->dim[d]);
		bytes = sym_mul(t, bytes, b->dim[d]);
	}
	k->elements = sym_add(t, k->elements, bytes);
}

/* The integers of a divided operator. */
enum { PART, PARTS, MATRICES };

/* Adds the values and tensors of the operator's arguments, in the order of the schema. */
static void put_arguments(Calling *k)
{
	const StepCall *c = k->c;
	const Schema *s = &c->op->schema;
	const BufId *buf = c->buf;
	const Sym *ints = c->ints;
	const double *floats = c->floats;
	for (uint32_t i = 0; i < s->narg; i++) {
		int64_t bits, n = 1;
		if (s->arg[i].kind == ARG_tensor) {
			put_buffer(k, *buf++, false);
			continue;
		}
		struct LoopCallTensor t = {.dtype = DT_i64, .nvalue = 1, .buf = -1};
		if (s->arg[i].kind == ARG_float) {
			t.dtype = DT_f64;
			memcpy(&bits, floats++, sizeof bits);
			put_int(k, bits);
		} else if (s->arg[i].kind == ARG_ints) {
			n = sym_const(k->l->ir->syms, *ints++);
			t.rank = 1;
			t.nvalue = (uint32_t)n;
			put_int(k, n);
		} else if (s->arg[i].kind == ARG_bool) {
			t.dtype = DT_bool;
		}
		const uint32_t at = (uint32_t)(ints - c->ints);
		for (uint32_t j = 0; s->arg[i].kind != ARG_float && j < t.nvalue; j++, ints++) {
			if (k->parts.i && at == PART)
				array_push(k->l->ir->ctx->arena, &k->value,
					   lx_var(k->f, k->f->task));
			else
				put(k, k->parts.i && at == PARTS ? k->parts : *ints);
		}
		k->tensor[k->ntensor++] = t;
	}
}

static int32_t put_work(Calling *k, Schedule *s)
{
	if (!k->c->work.i) {
		put_int(k, 0);
		return -1;
	}
	Sym work = k->parts.i ? sym_mul(k->l->ir->syms, k->c->work, k->parts) : k->c->work;
	array_push(k->l->ir->ctx->arena, &s->temp,
		   (SchedTemp){.name = "work", .dtype = DT_u8, .numel = work});
	k->arg[k->p->narg++] = (SchedArg){ARG_TEMP, 0, NULL};
	put(k, work);
	return (int32_t)loop_buf(
		k->f,
		(LArg){.name = "work", .dtype = DT_u8, .read = true, .written = true, .align = 64});
}

Schedule *schedule_call(const Lowered *l, const StepCall *c, const Target *t, BufId *buf,
			uint32_t *nbuf)
{
	Arena *arena = l->ir->ctx->arena;
	const UserOp *op = c->op;
	Schedule *s = ARENA_NEW(arena, Schedule);
	SchedPhase p = {.f = loop_new(l->ir, c->name), .ntasks = sym_int(l->ir->syms, 1)};
	Calling k = {
		.l = l, .c = c, .f = p.f, .p = &p, .buf = buf, .elements = sym_int(l->ir->syms, 0)};
	LoopCall *call = ARENA_NEW(arena, LoopCall);
	k.arg = ARENA_ARRAY(arena, SchedArg, op->nin + op->nout + 1);
	k.param = ARENA_ARRAY(arena, Sym, sym_nvars(graph_syms(l->graph)));
	k.tensor = ARENA_ARRAY(arena, struct LoopCallTensor, op->schema.narg + op->nout);
	sym_lower_init(&k.sizes, l->ir->ctx, l->ir->syms, p.f);
	p.f->comment = c->text;
	/* Each call copies all tensors from the device, and back. */
	const int most = t->gpu ? 1 : MOST_PARTS;
	if (op->divided)
		p.ntasks = k.parts =
			sym_min(l->ir->syms, c->ints[MATRICES], sym_int(l->ir->syms, most));
	put_arguments(&k);
	for (uint32_t i = 0; i < op->nout; i++)
		put_buffer(&k, c->buf[op->nin + i], true);
	*call = (LoopCall){.op = op,
			   .nin = op->schema.narg,
			   .nout = op->nout,
			   .tensor = k.tensor,
			   .work = put_work(&k, s)};
	ls_call(p.f, call, k.value.data, k.value.n);
	p.arg = k.arg;
	p.param = k.param;
	p.cost = (KernelCost){.flops = cost_number(arena, 0), .bytes = cost_sym(arena, k.elements)};
	p.alone = !userop_is(op, WEFT_OP_THREAD_SAFE);
	p.opens = p.alone || userop_is(op, WEFT_OP_EFFECT);
	s->algorithm = "call";
	s->why = op->divided ? arena_printf(arena, "%s, at most %d task%s", op->name, most,
					    most == 1 ? ", by the host" : "s")
			     : arena_printf(arena, "the user's operator %s, by %s", op->name,
					    p.alone ? "the thread that called run" : "any thread");
	array_push(arena, &s->phase, p);
	s->bytes = (double)sym_hint(l->ir->syms, k.elements);
	s->code = 1;
	*nbuf = k.nbuf;
	return s;
}
