/* The instructions of targets for operations of legal loop IR: rows by operation, dtypes and lanes.
 * The rows decide what is legal (codegen/program/library.c writes other operations), and both
 * emitters print by them. Rows of a family come before generic rows. */
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
	ROW_FMA = 256, ROW_LESSER = 8192, ROW_CONVERT = 16384, ROW_F16 = 32768
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
/* The table of the target's family. */
const PreludeRow *prelude_rows(const Isa *);

/* The bits of a value in registers. */
uint32_t prelude_bits(LType);
/* The first row of a table for these types with a C text (or LLVM text, if `llvm`); NULL: none. */
const PreludeRow *prelude_find(const Isa *, const PreludeRow *table, const char *op, LType to, LType from, unsigned known,
                               bool llvm);
/* Whether C splits the operation: operands are wider than a register, and the family has a row for
 * a part. */
bool prelude_splits(const Isa *, const char *op, LType to, LType from);
/* Sets the types by which rows of an operation are found. Given: of the result and the first
 * operand. Selections use the type of the selected values, conversions of f16 the f32. */
void prelude_types(ScOp, LType *to, LType *from);
/* The row by which an emitter prints an operation; NULL if C splits the operation, and if there is
 * none. */
const PreludeRow *prelude_of_op(const Isa *, ScOp, LType to, LType from, unsigned known, bool llvm);
/* Whether the operation, with a first operand of that type, is legal. */
bool isa_takes(const Isa *, ScOp, LType to, LType from, unsigned known);
/* The row of a statement without operands: C's expression, LLVM's intrinsic. NULL: the target has
 * none. */
const PreludeRow *prelude_of_statement(const Isa *, const char *name, bool llvm);
/* Whether the target has streaming stores of such values, and a fence. */
bool isa_streams(const Isa *, LType);

#endif
