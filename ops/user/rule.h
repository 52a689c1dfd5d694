/* Private to ops/user: binds the names that the rules of a user operator (WeftOpDef.vjp, .jvp)
 * may use. Bound values are read while the rule is evaluated and must stay valid until then. */
#ifndef WEFT_OPS_USER_RULE_H
#define WEFT_OPS_USER_RULE_H

#include "ops/rules/expand_priv.h"
#include "ops/user/userop.h"

/* Binds the names of the schema to the arguments of a call: in[k] is tensor operand k, and the
 * scalars. in NULL: the rule is only checked, and the values are VAL_any. */
void userop_bind_arguments(Eval *, const UserOp *, const Node *in, const UserScalars *);
/* Binds `name` ("y": results; "g": cotangents) to value[0]; of several results name0, name1, ... to
 * value[0], value[1], ... The names are in the arena. */
void userop_bind_results(Eval *, Arena *, const UserOp *, const char *name, const Val *value);
/* Binds t_NAME, for each tensor argument NAME in order, to value[0], value[1], ... */
void userop_bind_tangents(Eval *, Arena *, const UserOp *, const Val *value);
/* Returns the place in `text` behind its last ";" and blanks, or behind its blanks if it has no
 * ";": the expression that is the rule's value. */
const char *userop_rule_value(const char *text);
/* Returns NULL if an argument of an operator with rules may have that name, else a reason: the
 * language of rules uses the name. */
const char *userop_name_taken(const char *name);

#endif
