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

/* section.c: the weight section and the state section of a program. */
typedef struct {
	Program *p;
	Intern constant; /* source, dtype and layout; by id - 1: Program.constant */
	Intern state;    /* name; by id - 1: Program.state */
} Section;

void section_init(Section *, Program *);
/* The number of the state of that name, which entries share; a new one gets memory, and a constant for its first contents. */
uint32_t section_state(Section *, const LoweredState *);
/* The number of the constant that a buffer is, in a layout. */
uint32_t section_constant(Section *, const Buffer *, const Layout *);
/* The constants of another program follow those of state, where they are there. */
void section_share(Section *, const Program *);

/* bounds.c: what must hold of sizes so that no arithmetic with them leaves 64 bits. */
typedef struct SizeBounds SizeBounds;
/* `outer`: of the graph around this one, or NULL; what holds there is not asserted again. */
SizeBounds *size_bounds_new(Ir *, const SizeBounds *outer);
void size_bounds_add(SizeBounds *, Sym);
/* Of bytes that memory has to hold: a bound that may be a small part of what 64 bits hold. */
void size_bounds_add_bytes(SizeBounds *, Sym);
/* The types, attributes and guards of its nodes; those of its bodies have bounds of their own. */
void size_bounds_add_graph(SizeBounds *, const Graph *);
/* Assert one more of those whose symbols have values, var (or none) among them. False: there is none left. Symbols are named as
 * that graph's inputs have them. */
bool size_bounds_assert(SizeBounds *, SymLower *, Program *, const Graph *, Sym var);

/* sizes.c */
/* Dimensions of inputs that nobody can solve for their symbols, since a step of `run` finds these
 * out, get symbols of their own; those of the graph's inputs are compared with them in `run`. Then
 * the entry's symbols are listed. */
void program_find_symbols(ProgramEntry *, const Lowered *);
MUST_LOOK bool program_sizes(ProgramEntry *, const Graph *, SizeBounds *, Sym workspace);
/* Assert a condition of the model in the function at hand: its message has its two sides, and the
 * symbols in it with the inputs of the graph they come from. All of its symbols have values. */
void program_guard(Program *, SymLower *, const Graph *, const GraphGuard *);
/* Append " for B = %lld (input "x" dimension 0), .." to a message: the symbols that are used, as that graph's inputs have them;
 * arg[narg..] become their values. Returns the number of arguments then. */
uint32_t program_say_symbols(SymLower *, const Graph *, const bool *used, Text *, Lx *arg, uint32_t narg);

#endif
