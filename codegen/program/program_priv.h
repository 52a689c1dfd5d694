/* Private to codegen/program/: building the functions `sizes` (sizes.c) and `run` (builder.h) of an
 * entry, and the sections of a program. */
#ifndef WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H
#define WEFT_CODEGEN_PROGRAM_PROGRAM_PRIV_H

#include "codegen/program/schedule.h"

enum {
	OUTLINE_SIZE = 256 /* the most launches or checks of one function: compilers take more than
	                      linear time for a long one */
};

/* Turns symbolic integers into expressions of the loop function f. Sizes and other symbols get
 * values by sym_lower_set; expressions are remembered. */
typedef struct {
	Ctx *ctx;
	SymTab *syms;
	LoopFn *f;
	Intern sym;
	ARRAY(Lx) value;     /* by id of sym - 1; none: forgotten */
	ARRAY(uint32_t) log; /* the ids with values, in order */
} SymLower;

/* Begins with no values. */
void sym_lower_init(SymLower *, Ctx *, SymTab *, LoopFn *);
/* Returns the i64 expression of a symbolic integer, and remembers it. A symbol without a value is
 * an internal error. */
Lx sym_lower(SymLower *, Sym);
/* Gives a symbol or another symbolic integer a value, which replaces the one that it had.
 * Expressions that were lowered before keep their values. */
void sym_lower_set(SymLower *, Sym var, Lx value);
/* Whether sym_lower can lower the expression: all symbols in it have values. Lowers and remembers
 * the parts that can be lowered, also if the result is false. */
MUST_LOOK bool sym_lower_can(SymLower *, Sym);
/* Forgets the values that were set or computed since s->log.n was n. */
void sym_lower_forget(SymLower *, uint32_t n);

/* Returns the name of an entry's function. role: "sizes" or "run". The name is `role` itself for
 * the entry "run", else "entry_NAME_ROLE" in the arena of the Ir's context. */
const char *program_fn_name(const ProgramEntry *, const char *role);
/* Returns the name of function k, from 1, that is outlined from the entry's function `role`
 * ("sizes" or "run"), in the arena of the Ir's context. */
const char *program_outlined_name(const ProgramEntry *, const char *role, uint32_t k);

/* section.c: the weight section and the state section of a program. */
typedef struct {
	Program *p;
	Intern constant; /* source, dtype and layout; by id - 1: Program.constant */
	Intern state;    /* name; by id - 1: Program.state */
} Section;

/* Begins with empty sections. */
void section_init(Section *, Program *);
/* Returns the index in Program.state of the state of that name, which all entries use. New state
 * gets memory, and a constant with its initial contents unless they are zeros. */
uint32_t section_state(Section *, const LoweredState *);
/* Returns the index in Program.constant of the buffer's constant in a layout, and adds it if it is
 * new. */
uint32_t section_constant(Section *, const Buffer *, const Layout *);
/* Makes the weight section begin as that of another program: adds the constants of that program,
 * with their offsets. Both programs have the same state, in the same order. Call it after all
 * section_state and before section_constant. */
void section_share(Section *, const Program *);

/* bounds.c: conditions on sizes under which no arithmetic with them leaves 64 bits. */
typedef struct SizeBounds SizeBounds;
/* Returns an empty list. outer: the bounds of the graph around this one, or NULL; they are not
 * asserted again. */
SizeBounds *size_bounds_new(Ir *, const SizeBounds *outer);
/* Adds the bounds for an expression, unless others imply them. */
void size_bounds_add(SizeBounds *, Sym);
/* Adds the bound that the bytes of the workspace stay within 64 bits, unless others imply it. */
void size_bounds_add_bytes(SizeBounds *, Sym);
/* Adds the bounds for the extents and bytes of the types of the graph's nodes, for their attributes
 * and for the graph's guards; bodies of nodes have bounds of their own. */
void size_bounds_add_graph(SizeBounds *, const Graph *);
/* Adds the assertion (ls_assert) of one bound that is not asserted yet, whose symbols all have
 * values and which contains `var` (none: any bound). Returns false, and adds nothing, if there is
 * none. Messages name the inputs of the graph from which the symbols come. */
bool size_bounds_assert(SizeBounds *, SymLower *, Program *, const Graph *, Sym var);
/* Does as size_bounds_assert, but only with the bounds which say that a divisor is not 0. In the
 * list these come before the bounds that divide by it. */
bool size_divisors_assert(SizeBounds *, SymLower *, Program *, const Graph *, Sym var);

/* sizes.c */
/* Sets e->symbol. An input's dimension whose symbols only a step of `run` computes gets a symbol of
 * its own, which `run` compares with the dimension. */
void program_find_symbols(ProgramEntry *e, const Lowered *);
/* Makes e->sizes and the functions outlined from it: it computes the symbols from the extents of
 * the inputs, asserts ranges, and those bounds and guards whose symbols it knows (`run` asserts the
 * others), and returns the slots (see ProgramEntry.sizes), -1 for an extent of an output for which
 * program_finds is true. Adds the bound of the workspace to the SizeBounds. workspace: its bytes.
 * Returns false after an error: a symbol that cannot be computed from the extents. */
MUST_LOOK bool program_sizes(ProgramEntry *e, const Graph *, SizeBounds *, Sym workspace);
/* Adds the assertion of a guard to the current function. The message has both sides, their symbols,
 * and the inputs of the graph they come from. All symbols of the guard must have values. */
void program_guard(Program *, SymLower *, const Graph *, const GraphGuard *);
/* Appends " for B = %lld (input \"x\" dimension 0), .." to a message, for each symbol k with
 * used[k] (sym_var_at), and sets arg[narg], arg[narg + 1], ... to their values; the caller has
 * the room for them. Appends nothing if used[] has no true element. Returns the new number of
 * arguments. */
uint32_t program_say_symbols(SymLower *, const Graph *, const bool *used, Text *, Lx *arg,
			     uint32_t narg);

#endif
