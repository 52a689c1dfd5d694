/* User operators (weft_op.h): definitions, and calls. */
#ifndef WEFT_IR_OPS_USER_USEROP_H
#define WEFT_IR_OPS_USER_USEROP_H

#include "ir/ops/op.h"
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
	/* Of the compiler's own operators (builtin.c). divided: the arguments behind the tensors
	 * are part, parts and count, as runtime/lapack.h says: several tasks may compute the
	 * matrices of one call, each with a workspace of its own. needs_lapack: the function calls
	 * a library that must be there. */
	bool divided, needs_lapack;
} UserOp;

/* The most tasks of one call of a divided operator. */
enum { MOST_PARTS = 8 };

/* Reads and checks a definition, but not its rules (userop_check_rules). where: the file it comes
 * from, for messages. Returns the operator, with copies of the definition's texts and of `where`,
 * in the context's arena; NULL after errors, which the context has recorded. */
const UserOp *userop_new(Ctx *, const char *where, const WeftOpDef *);
/* Returns the registered operator (Ir.userop) of that name, "mylib::decay", "mylib.decay" or
 * "mylib.decay.default". Of a name that begins with "weft::" or "weft.", returns the compiler's own
 * operator (userop_builtin), which nobody registers. NULL if there is none. */
const UserOp *userop_find(const Ir *, const char *name);
/* Returns the operator among op[n] of that name, as userop_find; NULL if there is none. */
const UserOp *userop_among(const UserOp *const *op, uint32_t n, const char *name);
/* The compiler's own operator of that name, which begins with "weft::" or "weft."; NULL if there is
 * none. */
const UserOp *userop_builtin(const Ir *, const char *name);
/* Returns the name, in the arena, of the symbol by which code that runs in this process refers to
 * WeftOpDef.user. No symbol of a C program has the name. */
const char *userop_user_symbol(Arena *, const UserOp *);
/* Returns the operator that a node of OP_call calls: a registered one, or the compiler's own (as
 * userop_find). NULL if there is no operator of that name. */
const UserOp *userop_of(const Graph *, Node);
/* Whether WeftOpDef.flags has the flag, WEFT_OP_EFFECT or another one. */
static inline bool userop_is(const UserOp *op, unsigned flag)
{
	return (op->def.flags & flag) != 0;
}

/* The arguments of a call that are no tensors. ints: int, bool and int[] arguments in order; in
 * front of an int[] its length. floats: float arguments. */
typedef struct {
	const Sym *ints;
	const double *floats;
	uint32_t nint, nfloat;
} UserScalars;

/* ---- derivatives (user/rule.c) ---- */

/* Checks the rules .vjp and .jvp of a definition, if it has any: they parse, give the right number
 * of values, call existing operators (of Weft, or userop[0] to userop[n - 1]), and are linear in
 * cotangents or tangents, as far as that is known without the types of a call; no argument has a
 * name of the language of rules. Returns false after errors. */
bool userop_check_rules(Ctx *, const UserOp *, const UserOp *const *userop, uint32_t n);
/* Checks that a rule (vjp, else jvp) is linear in cotangents or tangents for a call with these
 * types of operands, then results. Returns NULL if so, else a sentence in the arena of the Ir.
 * Returns NULL also if the rule does not fit the types at all, which userop_vjp reports. */
const char *userop_nonlinear(Ir *, const UserOp *, bool vjp, const TypeId *type,
			     const UserScalars *);
/* Returns userop_nonlinear for an example of a call: sizes are symbols, any dtype is f32, bool
 * arguments have their defaults. Makes the symbols in the Ir, so a second call for the same Ir and
 * the same `vjp` is an internal error. */
const char *userop_nonlinear_sample(Ir *, const UserOp *, bool vjp);
/* .adjoint (ir/ops/op.h) of OP_call, by the rule .vjp of the operator that n calls. An operator
 * without .vjp is an error. Returns false after errors. */
bool userop_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* .tangent (ir/ops/op.h) of OP_call, by the rule .jvp, which the operator must have. Returns false
 * after errors. */
bool userop_jvp(Build *, Node n, const Node *t, Node *ty);

/* ---- a call ---- */

/* A condition of a call that is neither proven nor refuted: `extent` is equal to `want`; if want is
 * none, extent is at least 0. */
typedef struct {
	Sym extent, want;
	const char *what;
} UserNeed;

/* The values of names in one call. */
typedef struct {
	Sym var[MAX_USER_VARS];
	DType any[MAX_USER_VARS];
	const Sym *leading;
	uint32_t nleading;
	const char *why; /* the reason if the types do not fit, in the arena of the Ir */
	ARRAY(UserNeed) need;
} UserSolution;

/* Finds the values of all names for a call with operand[k], the type of operand k, and these
 * scalars. Returns false, and sets s->why, if the types do not fit the definition; else s->need has
 * the conditions that are left to check at run time. */
bool userop_solve(Ir *, const UserOp *, const Type *operand, const UserScalars *, UserSolution *s);
/* Returns the type of tensor k with the values of names in s; tensors are operands, then
 * results. */
TypeId userop_type(Ir *, const UserOp *, const UserSolution *s, uint32_t k);
/* Returns the type of result k with the values of names in s. */
TypeId userop_result(Ir *, const UserOp *, const UserSolution *s, uint32_t k);
/* Returns the bytes of the workspace with the values of names in s; none (0) if the operator needs
 * no workspace. */
Sym userop_work(Ir *, const UserOp *, const UserSolution *s);
/* Returns the scalars of a node of OP_call; valid as long as the Ir. */
UserScalars userop_scalars(const Graph *, Node);
/* Fills in the attributes of OP_call for a call of the operator: value[k] is argument k of the
 * schema, where that is no tensor. Returns NULL, or what is wrong with an argument: it is of
 * another kind. */
const char *userop_attrs(Ir *, const UserOp *, const Attr *value, Attr attr[4]);
/* Returns argument k of the schema, which is no tensor, of a node of OP_call. */
Attr userop_argument(const Graph *, Node, const UserOp *, uint32_t k);

/* Calls the function in this process; the arguments are those of WeftOpFn (weft_op.h). The function
 * gets a copy of *context whose op_user is the definition's; context NULL: one thread, no
 * WeftContext. Returns false after a failure, also if the definition has no function in this
 * process, with code and message in *status. status is not NULL; *status is unchanged after
 * success. */
bool userop_call(const UserOp *, const WeftOpContext *context, const WeftTensor *in,
		 const WeftTensor *out, void *work, uint64_t bytes, WeftStatus *);

#endif
