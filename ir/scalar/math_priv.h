/* Private to ir/scalar/math*.c: the lists of definitions (LibDef) that make up the function
 * library, one a file. */
#ifndef WEFT_IR_MATH_PRIV_H
#define WEFT_IR_MATH_PRIV_H

#include "ir/scalar/priv.h"

enum { EXPAND = 1 }; /* LibDef.expand: always inlined, a part of other functions */

extern const LibDef lib_f32[], lib_f64[], lib_special[], lib_bessel[], lib_igamma[], lib_random[],
	lib_aes[], lib_euclid[], lib_bessel_jyk[];

#endif
