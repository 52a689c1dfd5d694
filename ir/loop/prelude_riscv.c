/* RISC-V from C: gcc 12 has no vectors for it, but its scalar instructions do these exactly and at
 * once. */
#include "ir/loop/prelude.h"

const PreludeRow prelude_riscv[] = {
	{"fma", SET_F32, SET_F32, ROW_VECTOR | ROW_FMA, "($T){$each(fmaf(a[@], b[@], c[@]))}", "llvm.fma(a, b, c)"},
	{"fma", SET_F64, SET_F64, ROW_VECTOR | ROW_FMA, "($T){$each(fma(a[@], b[@], c[@]))}", "llvm.fma(a, b, c)"},
	{0},
};
