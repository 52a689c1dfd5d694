/* How targets spell the operations of legal loop IR: rows by operation, dtypes and lanes, one
 * source for legality (an operation without a row is written otherwise, codegen/program/library.c)
 * and for both emitters. Rows of a family of targets come before the generic ones. */
#ifndef WEFT_IR_LOOP_PRELUDE_H
#define WEFT_IR_LOOP_PRELUDE_H

#include "ir/loop/loop.h"
#include "ir/target/target.h"

typedef struct {
	const char *op;    /* a ScOp's name, a helper of the C emitter, or a statement without
	                      operands */
	uint32_t to, from; /* sets of dtypes */
	uint32_t when;     /* ROW_* */
	const char *c;     /* the body of a helper function, or after = an expression in place
	                      (codegen/print/c); NULL: see other rows */
	const char *llvm;  /* an expression (codegen/print/llvm/ops.c); NULL: see other rows */
} PreludeRow;

enum {
	ROW_SCALAR = 1, /* one lane */
	ROW_VECTOR = 2, /* more */
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

/* Tables end with op NULL. */
extern const PreludeRow prelude_generic[], prelude_x86[], prelude_neon[], prelude_riscv[];
/* Of the target's family. */
const PreludeRow *prelude_rows(const Isa *);

/* Bits of a value in registers. */
uint32_t prelude_bits(LType);
/* The first row of a table for these types that has a C spelling, or one for LLVM; NULL: none. */
const PreludeRow *prelude_find(const Isa *, const PreludeRow *table, const char *op, LType to, LType from, unsigned known,
                               bool llvm);
/* Wider than a register, and the family has a row for a part. */
bool prelude_splits(const Isa *, const char *op, LType to, LType from);
/* By which types the rows of an operation are found: from its result and its first operand, those
 * of what is selected, and of conversions of f16 the f32. */
void prelude_types(ScOp, LType *to, LType *from);
/* The row that either emitter prints an operation by; NULL where C's is split, and where there is
 * none. */
const PreludeRow *prelude_of_op(const Isa *, ScOp, LType to, LType from, unsigned known, bool llvm);
/* Legal code may hold this operation, with that first operand. */
bool isa_takes(const Isa *, ScOp, LType to, LType from, unsigned known);
/* The row of a statement without operands: C's expression, LLVM's intrinsic. NULL: the target has
 * none. */
const PreludeRow *prelude_of_statement(const Isa *, const char *name, bool llvm);
/* It has stores of such values that go past the caches, and a fence. */
bool isa_streams(const Isa *, LType);

#endif
