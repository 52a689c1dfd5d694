/* The language of .expand and of the rules of transforms: what ir/ops/expand.c evaluates and
 * ir/ops/derive.c asks of it. */
#ifndef WEFT_IR_EXPAND_PRIV_H
#define WEFT_IR_EXPAND_PRIV_H

#include "ir/ops/op.h"

/* An operand, a list of them, or an attribute (of which bool, int, float are weak scalars). */
typedef enum { VAL_none, VAL_node, VAL_nodes, VAL_attr, VAL_any } ValKind;

typedef struct {
	ValKind kind; /* VAL_any: only checking */
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

enum { MAX_LETS = 32, MAX_CALL = 32, MAX_DEPTH = 64 };

typedef struct {
	Build *b; /* NULL: only checking */
	bool user; /* of a user's definition: calls of users' operators, and what its author may get
	              wrong is checked */
	const struct UserOp *const *userop; /* which there are, when only checking */
	uint32_t nuserop;
	const char *p, *err, *errp;
	uint32_t depth, nlet;
	/* Asked of each value that a call or an operator gives; what it says is wrong with it is an
	 * error at `bad`. NULL: nothing. */
	const char *(*judge)(void *judged, const Val *);
	void *judged;
	Span bad, *item; /* item: where the elements of the last list stand, room for MAX_CALL;
	                    NULL: not asked for */
	Binding let[4 * MAX_ARGS + MAX_LETS]; /* arguments, those of a rule, and lets */
} Eval;

/* The arguments of the op, by name. With no graph (e->b NULL), all that is known of them is that
 * they are there. */
void expand_bind(Eval *, Op, const Node *in, uint32_t nin, AttrId);
void expand_let(Eval *, const char *name, Val);
/* The text at e->p up to its end. */
Val expand_program(Eval *);
/* The same times `by`, without multiplying by 0 or 1, and within the arms of `select`: which takes
 * one of two products, so that one that is not a number does not spoil the other. None of both:
 * zero. */
Val expand_scaled(Eval *, Val by);
/* user/rule.c: a call of the user's operator of that name, NULL: there is none; its value with
 * arguments in the order of its schema, NULL or what is wrong. */
const struct UserOp *expand_user_find(const Eval *, const char *name, uint32_t len);
const char *expand_user_call(Eval *, const struct UserOp *, const Val *slot, Val *out);
/* A tensor, of dtype d if it is a number; none after an error, which is recorded. */
Node expand_operand(Eval *, const Val *, DType d);

#endif
