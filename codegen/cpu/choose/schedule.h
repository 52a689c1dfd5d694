/* Schedules for processors. */
#ifndef WEFT_CODEGEN_CPU_SCHEDULE_H
#define WEFT_CODEGEN_CPU_SCHEDULE_H

#include "codegen/schedule/schedule.h"

/* For targets without a GPU (Target.gpu). */
ScheduleKernel cpu_schedule_kernel;
ScheduleWants cpu_schedule_wants;

#endif
