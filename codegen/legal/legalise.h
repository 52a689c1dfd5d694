/* Legalising: loop functions are rewritten after scheduling, until every operation is one that the
 * target has. Emitters then print and decide nothing. (Equal functions are found afterwards by
 * their text.) Decided here, once for all back ends:
 *
 * - Small loops of constant bounds are unrolled; bounds that change are hoisted.
 * - A scalar function of one operation becomes that operation; another stays a call of a library
 *   function (library_function), slow paths included.
 * - Operations without an instruction (fma, conversions of small floats, minimum and maximum with
 *   NaN) become library text (ir/scalar/math.c).
 * - Loads and stores move the bits in memory; conversions of storage dtypes are operations.
 * - Reversed and strided accesses become loads and a shuffle; gathers one instruction, or a load
 *   for each lane.
 * - Fragments get their registers configured; an instruction set without an operation on them gets
 *   loops over local arrays, with the bits of the operation's definition (ir/loop/frag.h).
 * - Horizontal reductions become shuffles and operations, in the documented tree.
 * - Many consecutive launches become a table.
 * - Common subexpressions are named, and facts about index arithmetic are noted in the
 *   expressions. */
#ifndef WEFT_CODEGEN_LEGAL_LEGALISE_H
#define WEFT_CODEGEN_LEGAL_LEGALISE_H

#include "ir/loop/program.h"
#include "ir/target/target.h"

/* Legalises a kernel in place; a legal function stays unchanged. It computes the same bits. Tables
 * of launches are entry_legalise's. A function with a result is library_function's. */
void legalise(LoopFn *, const Isa *);
/* Legalises `sizes`, `run` and the functions outlined from them. Kernels were legalised when they
 * were scheduled. */
void entry_legalise(ProgramEntry *, const Isa *);
/* Returns a scalar function for `lanes` lanes as a new legal loop function: its parameters are
 * LoopFn.arg, its result is LoopFn.result. */
LoopFn *library_function(Ir *, const ScFn *, uint32_t lanes, const Isa *);

#endif
