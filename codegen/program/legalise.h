/* After scheduling, before equal functions are found by their text: loop functions are rewritten
 * until every operation is one that the target has, so that emitters print and decide nothing. What
 * is decided here, once for all back ends:
 *
 * - small loops of constant bounds are unrolled; bounds that change are evaluated once;
 * - scalar functions of one operation become that operation; others stay calls of library
 *   functions, whose bodies
 *   library_function gives, slow paths (any(mask), if, call) included;
 * - what an instruction set lacks (fma, conversion of small floats, minimum and maximum with NaN)
 *   becomes library text
 *   (ir/scalar/math.c);
 * - loads and stores move what lies in memory; conversions of storage types are operations;
 * - reversed and every second element: loads and a shuffle; gathers: one instruction, or a load for
 *   each lane;
 * - horizontal reductions: shuffles and operations, in the documented tree;
 * - many launches that follow each other become a table;
 * - shared subexpressions are named, and what is known of index arithmetic is noted in the
 *   expressions. */
#ifndef WEFT_CODEGEN_PROGRAM_LEGALISE_H
#define WEFT_CODEGEN_PROGRAM_LEGALISE_H

#include "ir/loop/program.h"
#include "ir/target/target.h"

/* In place; a legal function stays as it is. Results have the same bits. */
void legalise(LoopFn *, const Isa *);
/* `sizes`, `run` and their parts; kernels were legalised one by one, when they were scheduled. */
void entry_legalise(ProgramEntry *, const Isa *);
/* A library function on that many lanes, legal: parameters are LoopFn.arg, the result
 * LoopFn.result. */
LoopFn *library_function(Ir *, const ScFn *, uint32_t lanes, const Isa *);

#endif
