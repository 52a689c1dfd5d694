/* User operators (weft_op.h): reading of definitions, rules, and calls in graphs. */
#ifndef WEFT_OPS_USER_USEROP_H
#define WEFT_OPS_USER_USEROP_H

#include "ir/op/userop.h"

/* Makes an operator of a definition, which is read and checked, but for its rules
 * (userop_check_rules). where: the file it comes from, for messages. Returns the operator, with
 * copies of the definition's texts and of `where`, in the context's arena; NULL after errors,
 * which the context has recorded. */
const UserOp *userop_new(Ctx *, const char *where, const WeftOpDef *);
/* Returns the registered operator (Ir.userop) of that name, "mylib::decay", "mylib.decay" or
 * "mylib.decay.default". Of a name that begins with "weft::" or "weft.", returns the compiler's own
 * operator (userop_builtin), which nobody registers. NULL if there is none. */
const UserOp *userop_find(const Ir *, const char *name);
/* Returns the operator among op[n] of that name, as userop_find; NULL if there is none. */
const UserOp *userop_among(const UserOp *const *op, uint32_t n, const char *name);
/* Returns the compiler's own operator of that name, which begins with "weft::" or "weft."; NULL
 * if there is none. */
const UserOp *userop_builtin(const Ir *, const char *name);
/* Returns the compiler's own operator weft::STEM that communicates (ops/user/comm.c); NULL if there
 * is none. */
const UserOp *userop_collective(const Ir *, const char *stem);
/* Returns the operator that a node of OP_call calls: a registered one, or the compiler's own (as
 * userop_find). NULL if there is no operator of that name. */
const UserOp *userop_of(const Graph *, Node);
/* Returns the user operator that a node calls; NULL if the node calls none. */
const UserOp *userop_called(const Graph *, Node);
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
/* Computes the cotangents of OP_call, by the rule .vjp of the operator that n calls: .adjoint
 * (ir/op/op.h). An operator without .vjp is an error. Returns false after errors. */
bool userop_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Computes the tangents of OP_call, by the rule .jvp, which the operator must have: .tangent
 * (ir/op/op.h). Returns false after errors. */
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
/* Returns argument k of the schema, which is no tensor, of a node of OP_call. */
Attr userop_argument(const Graph *, Node, const UserOp *, uint32_t k);

#endif
