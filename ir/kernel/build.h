/* Makes expressions (Kx) of kernels, for lowering; kernel.h has the basic ones. All add expressions
 * to the kernel, in the arena, and return the last one; an equal expression is not added twice. A
 * compute dtype is a real one for which dtype_compute is the identity: bool, an integer, f32 or
 * f64. Kernels have no complex values: pass_split_complex makes them pairs. */
#ifndef WEFT_IR_KERNEL_BUILD_H
#define WEFT_IR_KERNEL_BUILD_H

#include "ir/kernel/kernel.h"
#include "ir/scalar/scalar.h"

/* Returns the constant 0 of a compute dtype; false of bool. */
Kx kx_zero(Kernel *, Arena *, DType compute);
/* Returns a and b, two bools. If one is none (true), returns the other one; none if both are. */
Kx kx_and(Kernel *, Arena *, Kx a, Kx b);
/* Returns cond ? yes : no. cond is a bool; yes and no have one dtype, which the result has. */
Kx kx_select(Kernel *, Arena *, Kx cond, Kx yes, Kx no);
/* Returns in[0] * in[1], both of the compute dtype, which the result has. */
Kx kx_product(Kernel *, Arena *, DType compute, const Kx in[2]);
/* Returns x converted to a compute dtype; x itself if it has the dtype. */
Kx kx_to(Kernel *, Arena *, DType compute, Kx x);
/* Returns x converted to the compute dtype of the dtype, and rounded to a value of the dtype if it
 * is f16, bf16 or f8. */
Kx kx_as(Kernel *, Arena *, DType, Kx x);

/* Returns the operand if x is a conversion or a rounding (kx_round); else x. Adds nothing. */
Kx kx_unconverted(const Kernel *, Kx x);

/* Returns the basic operation that x is of its operands, in order; SC_const if x is none. */
ScOp kx_basic(const Kernel *, Kx x);

/* Returns field `number` of the integer x, of so many bits, from the lowest bits on. */
Kx kx_field(const Lowered *, Kernel *, Kx x, Sym number, uint32_t bits);
/* Returns the byte of a table that is numbered by a field of 4 bits: low has the first eight bytes,
 * from the lowest bits on, high the others. */
Kx kx_look_up(const Lowered *, Kernel *, Kx field, uint64_t low, uint64_t high);
/* Returns the field that numbers x, a kx_look_up, perhaps converted, and sets the table; none if x
 * is something else. */
Kx kx_looked_up(const Kernel *, Kx x, uint64_t table[2]);
/* Returns the integer of which `field`, a kx_field of 4 bits, perhaps looked up and converted, is a
 * field, if its number is an axis of the kernel, of extent 2: sets *axis to the axis' number + 1.
 * Else none. */
Kx kx_half(SymTab *, const Kernel *, Kx field, uint32_t *axis);

/* Returns v < 0 ? v + extent : v, of an i64 v. */
Kx kx_wrap(Kernel *, Arena *, Kx v, Sym extent);
/* Returns the bool: cond, and 0 <= v < extent, of an i64 v. cond may be none, which is true. */
Kx kx_below(Kernel *, Arena *, Kx cond, Kx v, Sym extent);

/* Returns the value of a node with a scalar operator, OP_convert or OP_bitcast, whose operands in[]
 * have the graph's dtype `from` and whose result has the dtype `to`, both perhaps storage dtypes.
 * OP_convert and OP_bitcast take a value of a storage dtype rounded; the result of OP_convert is a
 * value of `to`. The result of another operator is in the compute dtype of `to` and is not rounded
 * to `to`. */
Kx kx_map(const Lowered *, Kernel *, Op, DType from, DType to, const Kx *in, uint32_t nin);

#endif
