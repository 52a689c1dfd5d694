/* Definitions of user operators (weft_op.h), as kernels and loop IR have them. ops/user/userop.h
 * reads and checks them. */
#ifndef WEFT_IR_OP_USEROP_H
#define WEFT_IR_OP_USEROP_H

#include "ir/op/op.h"
#include "weft_op.h"

enum { MAX_USER_VARS = 64 };

typedef enum {
	UX_INT,
	UX_VAR,
	UX_ADD,
	UX_SUB,
	UX_MUL,
	UX_DIV,
	UX_MOD,
	UX_MIN,
	UX_MAX
} UserExprKind;

/* An extent, or the bytes of the workspace. */
typedef struct UserExpr {
	UserExprKind kind;
	int64_t i;    /* INT: the value; DIV, MOD: the divisor */
	uint32_t var; /* VAR */
	const struct UserExpr *a, *b;
} UserExpr;

/* The type of an operand or a result. */
typedef struct {
	DType dtype;   /* DT_none: a dtype by name, number `any` */
	uint32_t any;
	bool leading;  /* "..." in front of the dimensions */
	uint32_t rank; /* the number of dimensions behind "..." */
	const UserExpr *dim[MAX_RANK];
} UserType;

typedef struct {
	const char *name;
	int32_t arg; /* the int argument of that name; -1: an extent */
} UserVar;

typedef struct UserOp {
	WeftOpDef def; /* a copy, texts included */
	Schema schema; /* its name is that of PyTorch: "mylib::decay", "mylib::decay.overload" */
	const char *name; /* the same without ".default" */
	const char *where; /* where the definition comes from, for messages */
	uint32_t nin, nout; /* the number of tensor operands, of results */
	const UserType *type; /* types of the operands, then of the results */
	ARRAY(UserVar) var;
	uint32_t nany; /* the number of names of dtypes */
	const UserExpr *work; /* NULL: none */
	const char *said; /* the name in messages of a call that fails */
	/* Of the compiler's own operators (builtin.c): the runtime has the function. divided: the
	 * arguments behind the tensors are part, parts and count, as runtime/lapack.h says: several
	 * tasks may compute the matrices of one call, each with a workspace of its own.
	 * needs_lapack: the function calls a library that must be there. collective: all ranks make
	 * the call, or none (runtime/comm/comm.h). */
	bool own, divided, needs_lapack, collective;
} UserOp;

/* The most tasks of one call of a divided operator. */
enum { MOST_PARTS = 8 };

/* Whether WeftOpDef.flags has the flag, WEFT_OP_EFFECT or another one. */
static inline bool userop_is(const UserOp *op, unsigned flag)
{
	return (op->def.flags & flag) != 0;
}

/* Returns the name, in the arena, of the symbol by which code that runs in this process refers to
 * WeftOpDef.user. No symbol of a C program has the name. */
const char *userop_user_symbol(Arena *, const UserOp *);
/* Fills in the attributes of OP_call for a call of the operator: value[k] is argument k of the
 * schema, where that is no tensor. Returns NULL, or what is wrong with an argument: it is of
 * another kind. */
const char *userop_attrs(Ir *, const UserOp *, const Attr *value, Attr attr[4]);
/* Calls the function in this process; the arguments are those of WeftOpFn (weft_op.h). The function
 * gets a copy of *context whose op_user is the definition's; context NULL: one thread, no
 * WeftContext. Returns false after a failure, also if the definition has no function in this
 * process, with code and message in *status. status is not NULL; *status is unchanged after
 * success. */
bool userop_call(const UserOp *, const WeftOpContext *context, const WeftTensor *in,
		 const WeftTensor *out, void *work, uint64_t bytes, WeftStatus *);

#endif
