/* Private to the driver: the user operators of a Weft. */
#ifndef WEFT_DRIVER_API_USER_OPS_H
#define WEFT_DRIVER_API_USER_OPS_H

#include "driver/api/driver_priv.h"

/* Returns a new Ir in the Weft's memory; its graphs may call the user operators that are registered
 * so far, not those registered later. */
Ir *user_ir(Weft *);
/* Returns the operator of that name that is registered so far; NULL if there is none. */
const struct UserOp *user_op(const Weft *, const char *name);

#endif
