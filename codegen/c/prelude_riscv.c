/* RISC-V from C: gcc 12 has no vectors for it, but its scalar instructions do these exactly and at once. */
#include "codegen/c/emit_priv.h"

const HelperRow prelude_riscv[] = {
	{"fma", SET_F32, SET_F32, ROW_VECTOR, "($T){$each(fmaf(a[@], b[@], c[@]))}"},
	{"fma", SET_F64, SET_F64, ROW_VECTOR, "($T){$each(fma(a[@], b[@], c[@]))}"},
	{0},
};
