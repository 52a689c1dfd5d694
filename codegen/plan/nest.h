/* A kernel as a nest of loops: its axes, and its accesses as offsets of them, in the layouts of its
 * buffers. Schedules plan with a const Nest. A plan that merges axes, or reads an operand
 * elsewhere, makes a Nest of its own by nest_copy, and changes it before anybody else sees it. */
#ifndef WEFT_CODEGEN_PLAN_NEST_H
#define WEFT_CODEGEN_PLAN_NEST_H

#include "codegen/schedule/schedule.h"

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
	uint32_t nouter; /* kernel_nouter: the outer axes before any were merged */
	uint64_t *deps;                      /* by Kx: the axes it depends on */
	const uint64_t *reads; /* by Kx: stages that it reads, as many bits as there are stages, in
				  whole words */
	Sym *offset;           /* by Kx: the offset of a KX_LOAD, in elements */
	SchedArg *from;        /* by Kx: what a KX_LOAD reads */
	Sym *store;            /* by stage: the offset at which it stores, in elements */
	const Sym **position;  /* by value variable: ValueVar.at, in terms of var[] */
} Nest;

/* Returns the nest of a kernel of l, in the arena of the Ir's context: the kernel's axes, its
 * accesses in the present layouts of their buffers. Keeps pointers to l and k: the kernel must not
 * change any more, and layouts must be final. */
const Nest *nest_new(const Lowered *l, const Kernel *k);
/* Returns a copy that may be changed, in the same arena. k: the kernel of the copy: that of the
 * nest if only axes are merged and loads are moved, or a kernel_copy of that kernel, for functions
 * that change the kernel, too (they take it as a Kernel *). */
Nest *nest_copy(const Nest *, const Kernel *k);

/* ---- changes ---- */

/* Adds an axis without any access, and returns its number. The nest has less than MAX_AXES axes.
 * The axis is not among `outer`. */
uint32_t nest_add_axis(Nest *, const char *name, Sym extent);
/* Replaces axes a and b by a new axis that runs over both, b fastest, and returns its number.
 * axes_can_merge holds for a and b, and the nest has less than MAX_AXES axes. Both or none of a and
 * b are outer axes, and so is the new one. Lists of axes in the kernel's stages stay as they
 * are. */
uint32_t nest_merge_axes(Nest *, uint32_t a, uint32_t b);
/* Puts axis `to` in the place of axis `from`, of the same extent, in all accesses and in the
 * indices of k, the nest's own kernel (a kernel_copy); axis `from` is no more. Lists of axes in the
 * kernel's stages stay as they are. `deps` is out of date until nest_find_deps. */
void nest_rename_axis(Nest *, Kernel *k, uint32_t from, uint32_t to);
/* Computes `deps` anew, after accesses or axes were changed by hand or by nest_rename_axis. The
 * other functions here keep `deps` right. */
void nest_find_deps(Nest *);
/* Makes a load read `from`, at an offset that is an expression of axes, in elements. The load's
 * indices in the kernel stay as they are. */
void nest_read(Nest *, Kx load, SchedArg from, Sym offset);

/* ---- questions ---- */

/* Returns the argument for nest_read by which a load reads its buffer, a constant, in a layout of
 * its own. Changes nothing; copies the layout to the nest's arena. */
SchedArg nest_packed(const Nest *, Kx load, const Layout *);
/* Whether a load may read its buffer in the layout by nest_packed: the buffer is a constant, and no
 * other layout was chosen for all kernels (Buffer.layout_fixed). */
MUST_LOOK bool nest_may_repack(const Nest *, Kx load, const Layout *);
/* Returns the axes, by bit, on which an expression of axes and value variables depends. A value
 * variable depends on the axes of its value. */
uint64_t nest_axes(const Nest *, Sym);
/* Sets *coef to the stride of an axis in an offset, 0 if the offset does not depend on the axis. If
 * the offset is not linear in the axis, or has a value variable that depends on the axis, returns
 * false, and *coef means nothing. */
MUST_LOOK bool nest_coef(const Nest *, Sym offset, uint32_t axis, Sym *coef);
/* Whether nest_coef returns true with this stride. */
MUST_LOOK bool nest_coef_is(const Nest *, Sym offset, uint32_t axis, int64_t value);
/* Returns the first stage, from `stage` on, whose result x reads, or an expression of which x is
 * computed; the number of stages if there is none. Values of value variables in indices count. */
uint32_t nest_next_read(const Nest *, Kx x, uint32_t stage);
/* Returns the points of an axis at hint sizes, of one with bounds Axis.mean; may be 0, as sym_hint.
 */
int64_t nest_hint(const Nest *, uint32_t axis);

/* Returns the inner axes that a stage of the nest's kernel maps. */
static inline AxisList nest_inner(const Nest *n, const Stage *st)
{
	return stage_inner(st, n->nouter);
}
/* Whether the stage maps inner axes. */
static inline bool nest_maps_inner(const Nest *n, const Stage *st)
{
	return st->nmap > n->nouter;
}
/* Returns stage_keeps_row, stage_keeps_value of a stage of the nest's kernel. */
static inline bool nest_keeps_row(const Nest *n, const Stage *st)
{
	return stage_keeps_row(st, n->nouter);
}
static inline bool nest_keeps_value(const Nest *n, const Stage *st)
{
	return stage_keeps_value(st, n->nouter);
}
/* Returns stage_is_term of a stage of the nest's kernel. */
static inline bool nest_is_term(const Nest *n, const Stage *st)
{
	return stage_is_term(st, n->nouter);
}
/* Whether the axis is still there: it was not merged into another, nor renamed. */
static inline bool nest_has_axis(const Nest *n, uint32_t axis)
{
	return n->var[axis].i != 0;
}
/* Whether an axis, perhaps one made by merging, has no bounds (Axis.lo, hi). */
bool nest_axis_is_plain(const Nest *, uint32_t axis);
/* Whether the axis has no bounds, and no bound of another axis depends on it: such axes may be
 * merged, and lanes may run along them. */
bool nest_axis_is_free(const Nest *, uint32_t axis);
/* Whether the extent of some axis is the number 0: then nothing is summed, or nothing stored. What
 * a schedule evaluates ahead of a loop over such an axis may read tensors without elements. */
bool nest_is_empty(const Nest *);
/* Whether the axis, which is still there (nest_has_axis), is an outer one: each stage runs at every
 * point of the outer axes. */
static inline bool nest_is_outer(const Nest *n, uint32_t axis)
{
	return n->outer >> axis & 1;
}

#endif
