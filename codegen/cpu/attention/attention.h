/* The schedules of attention and of sums with weights. */
#ifndef WEFT_CODEGEN_CPU_ATTENTION_ATTENTION_H
#define WEFT_CODEGEN_CPU_ATTENTION_ATTENTION_H

#include "codegen/cpu/cpu.h"

EmitFn emit_attention, emit_weighted;

#endif
