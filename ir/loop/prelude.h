/* The instructions of targets for operations of legal loop IR, as tables of rows by operation,
 * dtypes and lanes. An operation is legal for a target if there is a row for it; legalising
 * replaces other operations (codegen/legal/library.c). Both emitters print an operation by its
 * row. Each family of targets has a table; prelude_generic serves all, behind those. `to` is the
 * type of the result, `from` that of the first operand; known: KNOWN_ bits (ir/loop/loop.h); llvm:
 * rows with LLVM text are wanted, not with C text. */
#ifndef WEFT_IR_LOOP_PRELUDE_H
#define WEFT_IR_LOOP_PRELUDE_H

#include "ir/loop/loop.h"
#include "ir/target/target.h"

typedef struct {
	const char *op;    /* the name of a ScOp, of a helper of the C emitter, or of a statement
	                      without operands */
	uint32_t to, from; /* sets of dtypes of the result, of the operands */
	uint32_t when;     /* ROW_* */
	const char *c;     /* C: the body of a helper function, or after = an expression
	                      (codegen/print/c); NULL: see other rows */
	const char *llvm;  /* LLVM: an expression (codegen/print/llvm/ops.c); NULL: see other
	                      rows */
} PreludeRow;

enum {
	ROW_SCALAR = 1, /* one lane */
	ROW_VECTOR = 2, /* several lanes */
	ROW_NATIVE = 4, /* operands fill a whole register of the target */
	ROW_BITS = 8,   /* masks in mask registers */
	ROW_LANES = 16, /* masks as vectors */
	ROW_AVX = 32,   /* registers of 32 bytes and more: x86-64-v3 */
	ROW_512 = 64,   /* operands of 64 bytes */
	ROW_NARROW = 128, /* operands of 16 or 32 bytes */
	ROW_WIDE = 512, /* the i32 vector of as many lanes is native */
	ROW_TONATIVE = 1024, /* the result fills a whole register */
	ROW_INDEX = 2048,  /* KNOWN_INDEX */
	ROW_NONNEG = 4096, /* and KNOWN_NONNEG */
	/* what not every instruction set has */
	ROW_TILE_BF16 = 1 << 28, ROW_TILE_INT8 = 1 << 29,
	ROW_FMA = 256, ROW_LESSER = 8192, ROW_CONVERT = 16384, ROW_F16 = 32768,
	ROW_BF16 = 1 << 16, ROW_VNNI = 1 << 17, ROW_SDOT = 1 << 18,
	ROW_256 = 1 << 19, ROW_128 = 1 << 20 /* operands of 32, of 16 bytes */
};

#define D1(d) (1u << (d))
enum {
	SET_SINT = D1(DT_i8) | D1(DT_i16) | D1(DT_i32) | D1(DT_i64),
	SET_UINT = D1(DT_u8) | D1(DT_u16) | D1(DT_u32) | D1(DT_u64),
	SET_INT = SET_SINT | SET_UINT,
	SET_F32 = D1(DT_f32), SET_F64 = D1(DT_f64),
	SET_FLOAT = SET_F32 | SET_F64,
	SET_BOOL = D1(DT_bool),
	SET_NUMBER = SET_INT | SET_FLOAT,
	SET_ANY = SET_NUMBER | SET_BOOL,
	SET_4 = D1(DT_f32) | D1(DT_i32) | D1(DT_u32),
	SET_8 = D1(DT_f64) | D1(DT_i64) | D1(DT_u64),
	SET_SMALL = D1(DT_i8) | D1(DT_u8) | D1(DT_i16) | D1(DT_u16),
};

/* The last row of a table has op NULL. */
extern const PreludeRow prelude_generic[], prelude_x86[], prelude_neon[], prelude_riscv[];
/* Returns the table of the target's family; an empty one for scalar targets and for families
 * without a table. */
const PreludeRow *prelude_rows(const Isa *);

/* Returns how many bits all lanes of a value of the type have in registers; a bool has 32 in each
 * lane. */
uint32_t prelude_bits(LType);
/* Returns the first row of a table (prelude_rows, prelude_generic) that is for the operation `op`
 * (PreludeRow.op) and these types, that the instruction set has, and that has the wanted text; NULL
 * if there is none. */
const PreludeRow *prelude_find(const Isa *, const PreludeRow *table, const char *op, LType to,
			       LType from, unsigned known, bool llvm);
/* Whether the C emitter splits the operation `op` (sc_name), if it has no row, into operations on
 * halves: its operands or its result are wider than a register, and the family has a row for a
 * half, a quarter, ... False for an operation that is not lane by lane, and for bitcasts and
 * conversions of f16. */
bool prelude_splits(const Isa *, const char *op, LType to, LType from);
/* Changes *to and *from, the types of the result and the first operand, to the types by which rows
 * of the operation are found: for selections that of the selected values, for conversions of f16
 * that of the f32. Other functions here call it themselves, except prelude_find and
 * prelude_splits. */
void prelude_types(ScOp, LType *to, LType *from);
/* Returns the row by which an emitter prints an operation; NULL if the C emitter splits it, and if
 * there is none. */
const PreludeRow *prelude_of_op(const Isa *, ScOp, LType to, LType from, unsigned known, bool llvm);
/* Whether the operation is legal for the target: prelude_of_op finds a row for C, or the C emitter
 * splits it. */
bool isa_takes(const Isa *, ScOp, LType to, LType from, unsigned known);
/* Returns the row of a statement without operands ("fence"): the text is C's expression, or LLVM's
 * intrinsic. NULL if the target's family has none; prelude_generic is not searched. */
const PreludeRow *prelude_of_statement(const Isa *, const char *name, bool llvm);
/* Returns the row of an instruction on fragments: the text is the name of C's function, or LLVM's
 * intrinsic. NULL if the instruction set does not have it. */
const PreludeRow *prelude_of_frag(const Isa *, FragOp, bool llvm);
/* Whether the instruction set has the operation on fragments. */
bool isa_has_frag(const Isa *, FragOp);
/* Whether the target has streaming stores of values of this type, and a fence. */
bool isa_streams(const Isa *, LType);

#endif
