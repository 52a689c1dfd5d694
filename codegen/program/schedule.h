/* Programs: all kernels scheduled, and a Program around them (ir/loop/program.h). */
#ifndef WEFT_CODEGEN_PROGRAM_SCHEDULE_H
#define WEFT_CODEGEN_PROGRAM_SCHEDULE_H

#include "codegen/schedule/schedule.h"

/* kernel.c: by the schedules of processors, or for a GPU (Target.gpu) by its own. For a GPU no
 * constant is wanted in a layout. */
ScheduleKernel schedule_kernel;
ScheduleWants schedule_wants;

/* ---- constants ---- */

/* A graph lowered for one level of a family of targets. */
typedef struct {
	Lowered *lowered;
	const Target *target;
} ScheduleLevel;

/* Chooses one layout for each large constant that kernels of the n > 0 levels want in different
 * layouts: the one with the least predicted time of all these kernels. A file then holds the
 * constant once. Sets and fixes the layouts of the constant's buffers; other constants stay
 * unchanged. Call it before scheduling any of the levels. */
void choose_const_layouts(const ScheduleLevel *, uint32_t n);

/* ---- programs ---- */

typedef struct {
	bool no_plan; /* no two buffers have memory in common (plan_memory) */
	const Program *weights; /* the weight section begins with this program's section, and equal
	                           constants are stored once; NULL: a section of its own */
	bool plain; /* nothing is legalised */
	const char *name; /* the program's name; NULL: that of the first graph */
} ScheduleOptions;

/* An entry of a program: a graph lowered for the program's target, after the graph of the entry
 * before (LowerOptions.after). */
typedef struct {
	const char *name; /* an identifier; the entry "run" has the functions `run` and `sizes`,
	                     others `entry_NAME_run` and the like */
	Lowered *lowered;
} ScheduleEntry;

/* Returns the program of n > 0 lowered graphs, one an entry, for a target, in the arena of the Ir's
 * context; legal unless `plain`. The options are not NULL. Returns NULL after an error: a size that
 * cannot be computed from the inputs, or the size of an output that is known within a branch or
 * loop only. */
Program *schedule_program(const ScheduleEntry *, uint32_t n, const Target *,
			  const ScheduleOptions *);

#endif
