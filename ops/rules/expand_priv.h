/* Private to ops: the evaluator of the texts in blocks (.expand, .vjp, .jvp, .deriv, .complex;
 * the grammar is in ops/rules/expand.c) and of the rules of user operators. To evaluate a text: set
 * b, p and the fields that are asked for in an Eval of zeros, bind names (expand_bind, expand_let),
 * call expand_program once, look at `err`.
 *
 * A weak scalar is a bool, int or float that takes the dtype of the tensor beside it, as a Python
 * number does. Without a graph (b NULL) a text is only checked: names and calls are known, numbers
 * of arguments right; every value is VAL_any. */
#ifndef WEFT_OPS_RULES_EXPAND_PRIV_H
#define WEFT_OPS_RULES_EXPAND_PRIV_H

#include "ops/rules/rules.h"

/* A value of the language. */
typedef enum {
	VAL_none,  /* "none": an absent argument; a zero, of rules */
	VAL_node,  /* a tensor, or a tuple */
	VAL_nodes, /* a list of tensors; none stands for an absent one */
	VAL_attr,  /* an attribute; a bool, int or float is a weak scalar */
	VAL_any    /* unknown: the text is only checked */
} ValKind;

typedef struct {
	ValKind kind;
	Node node;
	uint32_t n;
	const Node *nodes;
	Attr attr;
} Val;

typedef struct {
	const char *name;
	uint32_t len;
	Val val;
} Binding;

/* A piece of the text. */
typedef struct {
	const char *p;
	uint32_t len;
} Span;

enum { MAX_LETS = 96, MAX_CALL = 32, MAX_DEPTH = 64 };

typedef struct {
	Build *b;  /* where nodes are added; NULL: the text is only checked */
	bool user; /* the text is of a user operator: it may call user operators, and mistakes of
		      its author are errors, not bugs of Weft */
	const struct UserOp *const *userop; /* the user operators, if b is NULL */
	uint32_t nuserop;
	const char *p;    /* the text that is left */
	const char *err;  /* what is wrong; NULL: nothing. A static text, or one of judge */
	const char *errp; /* the place of the error in the text */
	uint32_t depth, nlet;
	/* NULL, or called with each value that a call or an arithmetic operator gives. Returns
	 * NULL, or an error, whose piece of text is then `bad`. */
	const char *(*judge)(void *judged, const Val *);
	void *judged;
	Span bad, *item; /* item[MAX_CALL], or NULL: receives the texts of the elements of the last
			    list */
	Binding let[4 * MAX_ARGS + MAX_LETS]; /* the bound names; later ones hide earlier ones */
} Eval;

/* Binds the names of the op's schema: to the operands in[nin] and the attributes of a node. in[] is
 * kept and must stay valid. Absent arguments are VAL_none; if e->b is NULL, all are VAL_any. */
void expand_bind(Eval *, Op, const Node *in, uint32_t nin, AttrId);
/* Binds a name, which is not copied and must stay valid. There is room for 4 * MAX_ARGS names,
 * those of expand_bind included, which is not checked. A later binding hides an earlier one. */
void expand_let(Eval *, const char *name, Val);
/* Evaluates the text at e->p to its end: "name = expression; ...; expression". Returns the value of
 * the last expression; VAL_none after an error in the text, with e->err and e->errp set. A node
 * that could not be built is no node in the value, with the error in the context. */
Val expand_program(Eval *);
/* Evaluates the text as expand_program does, and returns the product of its value and `by`. A
 * factor 0 gives VAL_none (zero); 1 gives `by`, -1 the negated `by`. If the value is a call of
 * `select`, each of its alternatives is multiplied, so that a NaN of one does not get into the
 * other. */
Val expand_scaled(Eval *, Val by);
/* Returns the user operator whose name is the len characters at `name` ("mylib::decay"), or NULL:
 * of e->b's graph, without a graph of e->userop (user_call.c). */
const struct UserOp *expand_user_find(const Eval *e, const char *name, uint32_t len);
/* Calls a user operator; slot[k] is argument k of its schema. VAL_none stands for the default of an
 * argument that is no tensor. Sets *out to the result, a tuple if there are several; to no node if
 * the call could not be built, with the error in the context; without a graph, to VAL_any. Returns
 * NULL, or what is wrong: a static text. */
const char *expand_user_call(Eval *, const struct UserOp *, const Val *slot, Val *out);
/* Returns a value as a tensor; a weak scalar becomes one without dimensions, of dtype d. Other
 * values are errors (b_error), which set e->err and return no node. Needs a graph. */
Node expand_operand(Eval *, const Val *, DType d);

#endif
