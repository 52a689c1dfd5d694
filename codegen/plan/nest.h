/* A kernel as a nest of loops: its axes, and its accesses as offsets of them, in the layouts of its
 * buffers. Schedules plan with a const Nest. A plan that merges axes, or reads an operand
 * elsewhere, makes a Nest of its own by nest_copy, and changes it before anybody else sees it. */
#ifndef WEFT_CODEGEN_PLAN_NEST_H
#define WEFT_CODEGEN_PLAN_NEST_H

#include "codegen/program/schedule.h"

enum { MAX_AXES = 2 * MAX_KERNEL_AXES }; /* the kernel's axes, and those made by merging */

#define NO_AXIS UINT32_MAX

typedef struct Nest {
	const Lowered *l;
	const Kernel *k;
	SymTab *syms;
	Arena *arena;
	uint32_t n;                          /* axes */
	Sym var[MAX_AXES], extent[MAX_AXES]; /* var none: the axis was merged into another */
	uint64_t outer;                      /* the outer axes, by bit */
	uint64_t *deps;                      /* by Kx: the axes it depends on */
	const uint64_t *reads; /* by Kx: stages that it reads, as many bits as there are stages, in
				  whole words */
	Sym *offset;           /* by Kx: the offset of a KX_LOAD, in elements */
	SchedArg *from;        /* by Kx: what a KX_LOAD reads */
	Sym *store;            /* by stage: the offset of a RESULT_GLOBAL, in elements */
	const Sym **position;  /* by value variable: ValueVar.at, in terms of var[] */
} Nest;

/* The nest of a kernel, which must not change any more. Layouts of l are final. */
const Nest *nest_new(const Lowered *l, const Kernel *k);
/* A copy that may be changed. k: a copy of the kernel, which changes with it; or the same. */
Nest *nest_copy(const Nest *, const Kernel *k);

/* ---- changes ---- */

/* A new axis, its number. */
uint32_t nest_add_axis(Nest *, const char *name, Sym extent);
/* Replaces axes a and b, which are contiguous in every access, by a new axis that runs over both.
 * Returns its number. */
uint32_t nest_merge_axes(Nest *, uint32_t a, uint32_t b);
/* Axis `to` stands for `from`; k: the nest's kernel, which is changed, too. The caller calls
 * nest_find_deps after the last one. */
void nest_rename_axis(Nest *, Kernel *k, uint32_t from, uint32_t to);
void nest_find_deps(Nest *);
/* Makes a load read elsewhere, at an offset that is an expression of axes, in elements. */
void nest_read(Nest *, Kx load, SchedArg from, Sym offset);

/* ---- questions ---- */

/* The load's constant in a layout of its own. */
SchedArg nest_packed(const Nest *, Kx load, const Layout *);
/* Whether a load may read its constant in the layout: no layout was chosen for all kernels. */
MUST_LOOK bool nest_may_repack(const Nest *, Kx load, const Layout *);
/* The axes on which an expression of axes and value variables depends, by bit. */
uint64_t nest_axes(const Nest *, Sym);
/* Sets *coef to the stride of an axis in an offset. Returns false if the offset is not linear in
 * the axis. */
MUST_LOOK bool nest_coef(const Nest *, Sym offset, uint32_t axis, Sym *coef);
MUST_LOOK bool nest_coef_is(const Nest *, Sym offset, uint32_t axis, int64_t value);
/* Whether x reads the stage; whether every stage that x reads is one of the first n. */
bool nest_reads(const Nest *, Kx x, uint32_t stage);
bool nest_reads_below(const Nest *, Kx x, uint32_t n);
/* The extent of an axis at hint sizes. */
int64_t nest_hint(const Nest *, uint32_t axis);

static inline bool nest_has_axis(const Nest *n, uint32_t axis)
{
	return n->var[axis].i != 0;
}
static inline bool nest_is_outer(const Nest *n, uint32_t axis)
{
	return n->outer >> axis & 1;
}

#endif
