/* Private to building programs. */
#ifndef WEFT_CODEGEN_PROGRAM_PRIV_H
#define WEFT_CODEGEN_PROGRAM_PRIV_H

#include "codegen/schedule/schedule.h"

enum {
	MAX_SYMBOLS = 256,
	PART = 256 /* launches or checks of one function: the time that compilers take for a function is not linear in its length */
};

/* Symbolic integers as expressions of a function in which variables have values. */
typedef struct {
	Ctx *ctx;
	SymTab *syms;
	LoopFn *f;
	uint32_t n;
	Sym var[MAX_SYMBOLS];
	Lx value[MAX_SYMBOLS];
} SymLower;

Lx sym_lower(SymLower *, Sym);
void sym_lower_set(SymLower *, Sym var, Lx value); /* later values hide earlier ones */

/* sizes.c */
void program_find_symbols(Program *);
bool program_sizes(Program *, const Graph *, Sym workspace);

#endif
