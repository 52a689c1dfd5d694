/* Private to codegen/program/: a call of a user operator is a kernel of one task and one
 * statement. */
#ifndef WEFT_CODEGEN_PROGRAM_CALL_H
#define WEFT_CODEGEN_PROGRAM_CALL_H

#include "codegen/program/schedule.h"

/* Returns the schedule of a call for a target. Sets buf[0 .. *nbuf - 1] to the different buffers of
 * the call in order of appearance, by which ARG_BUF numbers them; buf has room for as many as the
 * call has operands and results. */
Schedule *schedule_call(const Lowered *, const StepCall *, const Target *, BufId *buf,
			uint32_t *nbuf);

#endif
