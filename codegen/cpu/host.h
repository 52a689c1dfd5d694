/* Targets and the machine this process runs on. */
#ifndef WEFT_CODEGEN_CPU_HOST_H
#define WEFT_CODEGEN_CPU_HOST_H

#include "ir/target/target.h"

/* This process can run code compiled for it. */
bool target_runs_here(const Target *);
/* The best of the built-in targets that runs here. */
const Target *target_native(void);
/* As target_find; "native" is target_native(). */
const Target *target_named(const char *name);

#endif
