/* Statements on fragments: the intrinsics whose registers are numbers. LLVM allocates registers for
 * others (.internal), and configures them. */
#include "codegen/print/llvm/fn.h"
#include "ir/loop/prelude.h"

static LLVMValueRef number_of(Fn *f, LFrag r)
{
	return LLVMConstInt(LLVMInt8TypeInContext(f->u->c), loop_frag_number(f->f, r), false);
}

static void intrinsic(Fn *f, const char *name, LLVMValueRef *in, uint32_t nin)
{
	l_intrinsic(f->u, name, NULL, 0, in, nin);
}

static void configure(Fn *f)
{
	uint8_t config[FRAG_CONFIG_BYTES];
	LLVMValueRef byte[FRAG_CONFIG_BYTES];
	LLVMTypeRef i8 = LLVMInt8TypeInContext(f->u->c);
	loop_frag_config(f->f, config);
	for (uint32_t k = 0; k < FRAG_CONFIG_BYTES; k++)
		byte[k] = LLVMConstInt(i8, config[k], false);
	LLVMValueRef tiles = l_constant(f->u, LLVMConstArray2(i8, byte, FRAG_CONFIG_BYTES));
	LLVMSetAlignment(tiles, FRAG_CONFIG_BYTES);
	intrinsic(f, "llvm.x86.ldtilecfg", &tiles, 1);
}

static void move_rows(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMValueRef p = fn_element(f, s->mem, s->offset);
	LLVMValueRef bytes =
		LLVMBuildMul(u->b, l_lx(f, s->y), l_i64(u, dtype_size(s->mem.dtype)), "");
	LLVMValueRef in[3] = {number_of(f, s->frag[0]), p, bytes};
	intrinsic(f,
		  s->kind == LS_FRAG_STORE ? "llvm.x86.tilestored64"
		  : s->passing             ? "llvm.x86.tileloaddt164"
					   : "llvm.x86.tileloadd64",
		  in, 3);
}

void fn_frag(Fn *f, const LsData *s)
{
	LLVMValueRef in[3];
	for (uint32_t k = 0; k < ls_row(s->kind)->frags; k++)
		in[k] = number_of(f, s->frag[k]);
	switch (s->kind) {
	case LS_FRAG_ZERO: intrinsic(f, "llvm.x86.tilezero", in, 1); break;
	case LS_FRAG_LOAD: case LS_FRAG_STORE: move_rows(f, s); break;
	case LS_FRAG_DOT:
		intrinsic(f, prelude_of_frag(&f->u->target->isa, (FragOp)s->k, true)->llvm, in, 3);
		break;
	case LS_FRAG_CONFIG: configure(f); break;
	case LS_FRAG_RELEASE: intrinsic(f, "llvm.x86.tilerelease", NULL, 0); break;
	default: break; /* a declaration: registers */
	}
}
