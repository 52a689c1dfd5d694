/* User operators: attributes of calls, names, calls of the function. */
#include "ir/op/userop.h"

#include <stdio.h>
#include <string.h>

const char *userop_user_symbol(Arena *a, const UserOp *op)
{
	return arena_printf(a, "weft user of %s", op->name); /* no name that code could have */
}

bool userop_call(const UserOp *op, const WeftOpContext *context, const WeftTensor *in,
		 const WeftTensor *out, void *work, uint64_t bytes, WeftStatus *status)
{
	WeftStatus told = {0};
	WeftOpContext c =
		context ? *context
			: (WeftOpContext){.size = sizeof c, .threads = 1, .device = {WEFT_CPU, 0}};
	if (!op->def.fn) {
		status->code = WEFT_ERR_CHECK;
		snprintf(status->message, sizeof status->message,
			 "%s: it has no function in this process", op->said);
		return false;
	}
	c.op_user = op->def.user;
	int code = op->def.fn(&c, in, out, work, bytes, &told);
	if (!code)
		return true;
	told.message[sizeof told.message - 1] = 0;
	status->code = told.code ? told.code : WEFT_ERR_CHECK;
	if (told.message[0])
		snprintf(status->message, sizeof status->message, "%s: %.440s", op->said,
			 told.message);
	else
		snprintf(status->message, sizeof status->message, "%s: failed with %d", op->said,
			 code);
	return false;
}

/* ---- attributes ---- */

typedef struct {
	ARRAY(Sym) ints;
	ARRAY(double) floats;
} Scalars;

static double number(const Ir *ir, const Attr *a)
{
	if (a->kind == ATTR_int)
		return (double)sym_const_or(ir->syms, a->s, 0);
	return a->kind == ATTR_float ? a->f : a->b;
}

static bool is_number(const Ir *ir, const Attr *a)
{
	return a->kind == ATTR_float || a->kind == ATTR_bool ||
	       (a->kind == ATTR_int && sym_is_const(ir->syms, a->s, NULL));
}

/* Adds the value of an argument that is no tensor. Returns what is wrong, NULL if nothing is. */
static const char *add_scalar(Ir *ir, const Arg *arg, const Attr *a, Scalars *to)
{
	Arena *arena = ir->ctx->arena;
	SymTab *t = ir->syms;
	switch (arg->kind) {
	case ARG_float:
		if (!is_number(ir, a))
			return "expected a number for a float argument";
		array_push(arena, &to->floats, number(ir, a));
		return NULL;
	case ARG_bool:
		if (a->kind != ATTR_bool)
			return "expected true or false for a bool argument";
		array_push(arena, &to->ints, sym_int(t, a->b));
		return NULL;
	case ARG_ints:
		if (a->kind != ATTR_ints)
			return "expected a list of integers for an int[] argument";
		array_push(arena, &to->ints, sym_int(t, a->n));
		for (uint32_t k = 0; k < a->n; k++)
			array_push(arena, &to->ints, a->ints[k]);
		return NULL;
	default:
		if (a->kind != ATTR_int)
			return "expected an integer for an int argument";
		array_push(arena, &to->ints, a->s);
		return NULL;
	}
}

const char *userop_attrs(Ir *ir, const UserOp *op, const Attr *value, Attr attr[4])
{
	Scalars to = {0};
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		const char *err =
			arg->kind == ARG_tensor ? NULL : add_scalar(ir, arg, &value[k], &to);
		if (err)
			return err;
	}
	attr[0] = attr_int(ir, op->nin);
	attr[1] = attr_str(ir, op->name);
	attr[2] = attr_ints(to.ints.data, to.ints.n);
	attr[3] = (Attr){ATTR_floats, to.floats.n, {.floats = to.floats.data}};
	return NULL;
}
