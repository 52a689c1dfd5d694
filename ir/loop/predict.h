/* How long a machine takes for a loop function: a model, for comparing schedules and machines, not
 * a clock. Each block's operations keep the execution units, the load and the store ports busy,
 * whichever takes longest, or wait for each other's results where a sum is carried from round to
 * round; what a launch reads and writes comes from the smallest cache that holds it. */
#ifndef WEFT_IR_PREDICT_H
#define WEFT_IR_PREDICT_H

#include "ir/loop/program.h"
#include "ir/target/machine.h"

/* Cycles of one core for all tasks of a launch. param: values of the function's parameters; bytes:
 * that the launch reads and writes, each once. */
double loop_predict(const LoopFn *, const Machine *, const int64_t *param, int64_t ntasks, double bytes);
/* By call: cycles of all its launches in one run. value: of the entry's symbols; NULL: those seen
 * while exporting. */
void program_predict(const ProgramEntry *, const Machine *, const int64_t *value, double *cycles);
/* By call: cycles of one task of one launch, at the sizes seen while exporting; 0: not known, an
 * operator of the user's. */
void program_predict_tasks(const ProgramEntry *, const Machine *, double *cycles);

#endif
