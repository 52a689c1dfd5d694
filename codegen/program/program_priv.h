/* Private to codegen/program/: sizes.c and run. */
#ifndef WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H
#define WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H

#include "codegen/program/schedule.h"

enum {
	PART = 256 /* the most launches or checks of one function: compilers take more than linear
	              time for a long one */
};

/* Turns symbolic integers into expressions of a loop function in which variables have values.
 * Remembers its results. */
typedef struct {
	Ctx *ctx;
	SymTab *syms;
	LoopFn *f;
	Intern sym;
	ARRAY(Lx) value;     /* by id of sym - 1; none: forgotten */
	ARRAY(uint32_t) log; /* the ids with values, in order */
} SymLower;

void sym_lower_init(SymLower *, Ctx *, SymTab *, LoopFn *);
Lx sym_lower(SymLower *, Sym);
void sym_lower_set(SymLower *, Sym var, Lx value);
/* Whether all variables of the value have values. */
MUST_LOOK bool sym_lower_can(SymLower *, Sym);
/* Forgets all values since log.n was n. */
void sym_lower_forget(SymLower *, uint32_t n);

/* Names of functions: of an entry's "sizes" or "run" (role), and of their parts, from 1. */
const char *program_fn_name(const ProgramEntry *, const char *role);
const char *program_part_name(const ProgramEntry *, const char *role, uint32_t part);

/* section.c: the weight section and the state section of a program. */
typedef struct {
	Program *p;
	Intern constant; /* source, dtype and layout; by id - 1: Program.constant */
	Intern state;    /* name; by id - 1: Program.state */
} Section;

void section_init(Section *, Program *);
/* Returns the number of the state of that name, which all entries use. New state gets memory, and a
 * constant with the initial contents. */
uint32_t section_state(Section *, const LoweredState *);
/* Returns the number of the constant of a buffer in a layout. */
uint32_t section_constant(Section *, const Buffer *, const Layout *);
/* Adds the constants of another program behind those of state; equal constants are added once. */
void section_share(Section *, const Program *);

/* bounds.c: conditions on sizes under which no arithmetic with them leaves 64 bits. */
typedef struct SizeBounds SizeBounds;
/* outer: the bounds of the graph around this one, or NULL; they are not asserted again. */
SizeBounds *size_bounds_new(Ir *, const SizeBounds *outer);
void size_bounds_add(SizeBounds *, Sym);
/* Adds a number of bytes that must fit memory: a smaller bound than 64 bits. */
void size_bounds_add_bytes(SizeBounds *, Sym);
/* Adds the types, attributes and guards of the graph's nodes; bodies of nodes have bounds of their
 * own. */
void size_bounds_add_graph(SizeBounds *, const Graph *);
/* Asserts one more bound whose symbols all have values, `var` (or none) among them. Returns false
 * if none is left. Messages name symbols as the graph's inputs have them. */
bool size_bounds_assert(SizeBounds *, SymLower *, Program *, const Graph *, Sym var);

/* sizes.c */
/* Lists the entry's symbols. An input's dimension whose symbols only a step of `run` computes gets
 * a symbol of its own, which `run` compares with the dimension. */
void program_find_symbols(ProgramEntry *, const Lowered *);
MUST_LOOK bool program_sizes(ProgramEntry *, const Graph *, SizeBounds *, Sym workspace);
/* Asserts a guard in the current function. The message has both sides, their symbols, and the
 * inputs of the graph they come from. All symbols of the guard must have values. */
void program_guard(Program *, SymLower *, const Graph *, const GraphGuard *);
/* Appends " for B = %lld (input \"x\" dimension 0), .." to a message, for the symbols in used[], as
 * the graph's inputs have them. arg[narg..] receive their values. Returns the new number of
 * arguments. */
uint32_t program_say_symbols(SymLower *, const Graph *, const bool *used, Text *, Lx *arg, uint32_t narg);

#endif
