/* The names that rules of users' operators may use. */
#ifndef WEFT_IR_OPS_USER_RULE_H
#define WEFT_IR_OPS_USER_RULE_H

#include "ir/ops/expand_priv.h"
#include "ir/ops/user/userop.h"

/* A call's arguments under the names of the operator's schema; in NULL: that they are there. */
void userop_bind_arguments(Eval *, const UserOp *, const Node *in, const UserScalars *);
/* "y", or "y0", "y1", ... of several results; the same of cotangents. value[k]: of result k. */
void userop_bind_results(Eval *, Arena *, const UserOp *, const char *name, const Val *value);
/* "t_NAME", of the tensor arguments in order. */
void userop_bind_tangents(Eval *, Arena *, const UserOp *, const Val *value);
/* Where the rule begins, behind what it binds. */
const char *userop_rule_value(const char *text);
/* NULL, or why an argument cannot have that name where the operator has rules. */
const char *userop_name_taken(const char *name);

#endif
