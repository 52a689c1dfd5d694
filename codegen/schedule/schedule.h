/* Schedules: kernels become loop IR, and a Program around them. All decisions are taken here. */
#ifndef WEFT_CODEGEN_SCHEDULE_H
#define WEFT_CODEGEN_SCHEDULE_H

#include "codegen/target.h"
#include "ir/program.h"

typedef struct {
	bool no_plan; /* every buffer gets memory of its own */
} ScheduleOptions;

/* The program of a lowered graph for a target. NULL after ctx_error. */
Program *schedule_program(Lowered *, const Target *, const ScheduleOptions *);

#endif
