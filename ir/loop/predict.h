/* Predicts the cycles of a loop function on a machine: a model for comparing schedules and
 * machines. A block's operations keep execution units, load and store ports busy, whichever takes
 * longest; or they wait for each other if a sum is carried from round to round. The bytes of a
 * launch come from the smallest cache that holds them. */
#ifndef WEFT_IR_PREDICT_H
#define WEFT_IR_PREDICT_H

#include "ir/loop/program.h"
#include "ir/target/machine.h"

/* Returns the cycles of one core for all ntasks tasks of a launch, plus an eighth of Machine.phase;
 * calls of user operators count 0. param: the values of the function's parameters. bytes: the
 * number of different bytes that the launch reads and writes. */
double loop_predict(const LoopFn *, const Machine *, const int64_t *param, int64_t ntasks,
		    double bytes);
/* Sets cycles[k], for each call k that a statement of `run` launches, to the cycles of one core for
 * all its launches in one run. value[i]: the value of the entry's symbol i; value NULL: the
 * hints. */
void program_predict(const ProgramEntry *, const Machine *, const int64_t *value, double *cycles);
/* Sets cycles[k], for each call k that a statement of `run` launches, to the cycles of one task of
 * one launch, at hint sizes; 0: unknown, because the kernel calls a user operator. */
void program_predict_tasks(const ProgramEntry *, const Machine *, double *cycles);

#endif
