/* Private to building programs. */
#ifndef WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H
#define WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H

#include "codegen/program/schedule.h"

enum {
	PART = 256 /* launches or checks of one function: the time that compilers take for a
	              function is not linear in its length */
};

/* Symbolic integers as expressions of a function in which variables have values. What was lowered
 * is remembered. */
typedef struct {
	Ctx *ctx;
	SymTab *syms;
	LoopFn *f;
	Intern sym;
	ARRAY(Lx) value;     /* by id of sym - 1; none: forgotten */
	ARRAY(uint32_t) log; /* the ids that have values, in order */
} SymLower;

void sym_lower_init(SymLower *, Ctx *, SymTab *, LoopFn *);
Lx sym_lower(SymLower *, Sym);
void sym_lower_set(SymLower *, Sym var, Lx value);
/* All of its variables have values. */
MUST_LOOK bool sym_lower_can(SymLower *, Sym);
/* Forget what was set and lowered since log.n was n. */
void sym_lower_forget(SymLower *, uint32_t n);

/* Of a function of an entry, "sizes" or "run", and of its parts, from 1. */
const char *program_fn_name(const ProgramEntry *, const char *role);
const char *program_part_name(const ProgramEntry *, const char *role, uint32_t part);

/* sizes.c */
/* Dimensions of inputs that nobody can solve for their symbols, since a step of `run` finds these
 * out, get symbols of their own; those of the graph's inputs are compared with them in `run`. Then
 * the entry's symbols are listed. */
void program_find_symbols(ProgramEntry *, const Lowered *);
MUST_LOOK bool program_sizes(ProgramEntry *, const Graph *, Sym workspace);
/* Assert a condition of the model in the function at hand: its message has its two sides, and the
 * symbols in it with the inputs of the graph they come from. All of its symbols have values. */
void program_guard(Program *, SymLower *, const Graph *, const GraphGuard *);

#endif
