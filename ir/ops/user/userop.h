/* Operators of the user (weft_op.h): what a definition says, and what a call of one means. */
#ifndef WEFT_IR_OPS_USER_USEROP_H
#define WEFT_IR_OPS_USER_USEROP_H

#include "ir/ops/op.h"
#include "weft_op.h"

enum { MAX_USER_VARS = 64 };

typedef enum { UX_INT, UX_VAR, UX_ADD, UX_SUB, UX_MUL, UX_DIV, UX_MOD, UX_MIN, UX_MAX } UserExprKind;

/* An extent, or the bytes of the workspace. */
typedef struct UserExpr {
	UserExprKind kind;
	int64_t i;    /* INT; the divisor of DIV and MOD */
	uint32_t var; /* VAR */
	const struct UserExpr *a, *b;
} UserExpr;

/* The type of an operand or a result. */
typedef struct {
	DType dtype;   /* DT_none: any, number `any` */
	uint32_t any;
	bool leading;  /* "..." ahead of the dimensions */
	uint32_t rank; /* of what follows */
	const UserExpr *dim[MAX_RANK];
} UserType;

typedef struct {
	const char *name;
	int32_t arg; /* the int argument that it is; -1: an extent */
} UserVar;

typedef struct UserOp {
	WeftOpDef def; /* with texts of its own */
	Schema schema; /* its name as in PyTorch: "mylib::decay", "mylib::decay.overload" */
	const char *name; /* that without ".default" */
	const char *where; /* the definition comes from, for messages */
	uint32_t nin, nout; /* tensors */
	const UserType *type; /* of operands, then of results */
	ARRAY(UserVar) var;
	uint32_t nany; /* names of dtypes */
	const UserExpr *work; /* NULL: none */
} UserOp;

/* A definition, read and checked. NULL after ctx_error. `where`: for messages, the file it comes
 * from. */
const UserOp *userop_new(Ctx *, const char *where, const WeftOpDef *);
/* By its name in a graph or in PyTorch ("mylib::decay", "mylib.decay.default"). NULL: none. */
const UserOp *userop_find(const Ir *, const char *name);
/* The symbol that has the address WeftOpDef.user in code for this process. */
const char *userop_user_symbol(Arena *, const UserOp *);
/* Of a call; NULL: its name is nobody's. */
const UserOp *userop_of(const Graph *, Node);
static inline bool userop_is(const UserOp *op, unsigned flag)
{
	return (op->def.flags & flag) != 0;
}

/* The arguments that are no tensors, as a call keeps them: ints holds those of int, bool and int[]
 * arguments in order, of an int[] its length before; floats the others. */
typedef struct {
	const Sym *ints;
	const double *floats;
	uint32_t nint, nfloat;
} UserScalars;

/* ---- derivatives (user/rule.c) ---- */

/* Its rules parse, have as many results as they must, call operators that exist: those of Weft and
 * userop[0..n), and are linear in cotangents or tangents, as far as that can be told without a
 * call. False after ctx_error. */
bool userop_check_rules(Ctx *, const UserOp *, const UserOp *const *userop, uint32_t n);
/* The same of linearity alone, for a call whose tensors (operands, then results) have these types
 * (user/linear.c). NULL, or what is wrong, in the arena of the Ir. NULL also where nothing can be
 * made of the rule with these types, which another message will say. */
const char *userop_nonlinear(Ir *, const UserOp *, bool vjp, const TypeId *type, const UserScalars *);
/* The same for a call with types and scalars that it may have: sizes are symbols, any dtype is f32,
 * flags are as their defaults. */
const char *userop_nonlinear_sample(Ir *, const UserOp *, bool vjp);
/* OP_call's .adjoint and .tangent, by the rules of the operator that n calls. */
bool userop_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool userop_jvp(Build *, Node n, const Node *t, Node *ty);

/* ---- a call ---- */

/* What must hold in a call, and is known neither to hold nor not to: `extent` is `want`, or, where
 * that is none, at least 0. */
typedef struct {
	Sym extent, want;
	const char *what;
} UserNeed;

/* What the names stand for in one call. */
typedef struct {
	Sym var[MAX_USER_VARS];
	DType any[MAX_USER_VARS];
	const Sym *leading;
	uint32_t nleading;
	const char *why; /* where it does not fit: in the arena of the Ir */
	ARRAY(UserNeed) need;
} UserSolution;

/* operand[k]: the type of operand k. False where they do not fit the definition: s->why. */
bool userop_solve(Ir *, const UserOp *, const Type *operand, const UserScalars *, UserSolution *s);
/* Of operand k, or of a result after these, where names stand for what s says. */
TypeId userop_type(Ir *, const UserOp *, const UserSolution *s, uint32_t k);
/* Of result k, after that. */
TypeId userop_result(Ir *, const UserOp *, const UserSolution *, uint32_t k);
/* Bytes of the workspace; none where the definition asks for none. */
Sym userop_work(Ir *, const UserOp *, const UserSolution *);
/* Of a node that was inferred. */
UserScalars userop_scalars(const Graph *, Node);

/* Call the function in this process; context (but op_user; NULL: one thread, nothing else), in[] and
 * out[] as weft_op.h says. False: the message in status. */
bool userop_call(const UserOp *, const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out, void *work, uint64_t bytes, WeftStatus *);

#endif
