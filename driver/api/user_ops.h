/* Private to the driver: the user operators of a Weft. */
#ifndef WEFT_DRIVER_API_USER_OPS_H
#define WEFT_DRIVER_API_USER_OPS_H

#include "driver/api/driver_priv.h"

/* An Ir whose graphs may call the registered operators. */
Ir *user_ir(Weft *);

#endif
