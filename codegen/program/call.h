/* Private to building programs: a call of a user's operator is a kernel of one task and one
 * statement. */
#ifndef WEFT_CODEGEN_PROGRAM_CALL_H
#define WEFT_CODEGEN_PROGRAM_CALL_H

#include "codegen/program/schedule.h"

/* Its schedule. ARG_BUF counts buffers in order of appearance, which are put into buf[]: at most as
 * many as it has operands and results. */
Schedule *schedule_call(const Lowered *, const StepCall *, BufId *buf, uint32_t *nbuf);

#endif
