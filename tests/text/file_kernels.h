/* File tests of families of kernels. */
#ifndef WEFT_TESTS_TEXT_FILE_KERNELS_H
#define WEFT_TESTS_TEXT_FILE_KERNELS_H

#include "file_test.h"

/* The graph of the test, whose sizes are symbols, on targets of different widths: with the symbols,
 * with numbers in their place, and with numbers and constants for the inputs whose names begin with
 * w. Its loop IR is interpreted, which finds what is out of bounds, never written or written twice,
 * and gives what the graph's interpreter gives. Inputs of other sizes are refused.
 *
 *     ; sizes: M=1,N=w+1 M=r,N=3w-1     one execution each; w: lanes of the target, r: rows of its
 *                                       register tile
 *     ; targets: x86-64-v4 generic-c    instead of all
 *     ; forms: numbers constants         where a size cannot be a symbol
 *     ; draws: 2                         variants on each target, of what is large (below)
 *
 * Prints what differs; or how many executions agree. */
void file_kernels(const FileTest *, Text *out);

/* Variants of the graph, drawn by the test's seed (draw.h): operands behind index maps, operands
 * exchanged, results reordered; on each target, at the family's sizes, of which one in turn is 1 or
 * 0 (a symbol that is 1 at least otherwise, too); with symbols, numbers or constants. What the
 * graph's interpreter refuses at a size (windows larger than the image) is not run. Prints what
 * differs, with as few edits and outputs as it takes, or "no difference". */
void file_kernels_drawn(const FileTest *, Text *out);

#endif
