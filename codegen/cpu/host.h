/* Targets and the machine this process runs on. */
#ifndef WEFT_CODEGEN_CPU_HOST_H
#define WEFT_CODEGEN_CPU_HOST_H

#include "ir/target/target.h"

/* Whether this process can run code that was compiled for the target. False for a GPU. */
bool target_runs_here(const Target *);
/* Returns the best built-in target that runs here, with all features that the processor has
 * ("x86-64-v4+vnni+bf16") and the machine that is most like it; never NULL, because generic-c runs
 * everywhere. */
const Target *target_native(void);
/* Returns the machine that is most like an x86 processor of that vendor and family (CPUID) with
 * those features; NULL: none. */
const Machine *machine_like(const char *vendor, uint32_t family, bool (*has)(const char *features));
/* Returns the built-in target of that name (target_find); "native" is target_native(). NULL if
 * there is none. */
const Target *target_named(const char *name);

#endif
