/* Private to codegen/print/c: a function that is being printed, and its expressions. */
#ifndef WEFT_CODEGEN_PRINT_C_FN_H
#define WEFT_CODEGEN_PRINT_C_FN_H

#include "codegen/print/c/emit_priv.h"

/* What the text refers to. */
typedef struct {
	bool checks, fails, bufs, slots, extents;
	bool *buf, *param; /* by number */
} Used;

typedef struct {
	CUnit *u;
	const LoopFn *f;
	FnRole role;
	const ProgramEntry *entry; /* NULL: a kernel or a library function */
	const char *const *kernel_name; /* by index into Program.fn */
	const char *name;
	Text *out;                 /* one of `top` */
	Text top[LOOP_TOPS];  /* by top-level block */
	uint32_t indent;
	Names names;
	const char **var;   /* C name by variable */
	const char **buf, **param;
	const Narrow *narrow; /* of blocks of threads; NULL: all indices have 64 bits */
	Used used;
} Fn;

static inline const LxData *lx_at(const Fn *f, Lx x)
{
	return &f->f->lx.data[x.i];
}

/* Each of these notes in f->used what the text refers to. */

/* Returns an expression of the function as C. Variables that it reads have names. */
CExpr c_lx(Fn *f, Lx x);
/* Returns the text of c_lx. */
static inline const char *text_of(Fn *f, Lx x)
{
	return c_lx(f, x).s;
}
/* Returns the first element of a memory as a pointer or array of its element type, to const unless
 * `write`. */
const char *c_array(Fn *f, LMem, bool write);
/* Returns a pointer to the element at an offset, as c_array has it. */
CExpr c_pointer(Fn *f, LMem, Lx offset, bool write);
/* Returns the element that a load or store of one element, s, accesses. */
CExpr c_element(Fn *f, const LsData *s, bool write);
/* Returns the value of a load or gather s. */
CExpr c_load(Fn *f, const LsData *s);

#endif
