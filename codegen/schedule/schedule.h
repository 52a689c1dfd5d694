/* Schedules: kernels become loop IR, and a Program around them. All decisions are taken here. */
#ifndef WEFT_CODEGEN_SCHEDULE_H
#define WEFT_CODEGEN_SCHEDULE_H

#include "ir/target/target.h"
#include "ir/loop/program.h"

typedef struct {
	bool no_plan; /* every buffer gets memory of its own */
	const Program *weights; /* the weight section begins with this program's: what both store the same way, they
	                           share. NULL: it is this program's own */
} ScheduleOptions;

/* The program of a lowered graph for a target. NULL after ctx_error. */
Program *schedule_program(Lowered *, const Target *, const ScheduleOptions *);

#endif
