#include "ir/loop/prelude.h"

#include <pthread.h>
#include <string.h>

static const PreludeRow none[] = {{0}};

const PreludeRow *prelude_rows(const Isa *isa)
{
	static const struct {
		const char *family;
		const PreludeRow *rows;
	} families[] = {
		{"x86-64", prelude_x86}, {"aarch64", prelude_neon}, {"riscv64", prelude_riscv}};
	for (uint32_t k = 0; isa->vector_bytes && k < sizeof families / sizeof *families; k++)
		if (!strcmp(families[k].family, isa->family))
			return families[k].rows;
	return none;
}

uint32_t prelude_bits(LType t)
{
	uint32_t size = t.dtype == DT_bool ? 4 : dtype_size(dtype_compute(t.dtype));
	return size * 8 * t.lanes;
}

static bool is_native(const Isa *isa, LType t)
{
	return prelude_bits(t) >= 128 && prelude_bits(t) <= isa->vector_bytes * 8;
}

/* Whether the instruction set has what a row needs and instruction sets may lack. */
static bool has_ops(const Isa *isa, uint32_t w)
{
	return (!(w & ROW_FMA) || isa_has(isa, ISA_FMA)) &&
	       (!(w & ROW_LESSER) || isa_has(isa, ISA_LESSER)) &&
	       (!(w & ROW_CONVERT) || isa_has(isa, ISA_CONVERT)) &&
	       (!(w & ROW_F16) || isa_has(isa, ISA_F16)) &&
	       (!(w & ROW_TILE_BF16) || isa_has(isa, ISA_TILE_BF16)) &&
	       (!(w & ROW_TILE_INT8) || isa_has(isa, ISA_TILE_INT8)) &&
	       (!(w & ROW_BF16) || isa_has(isa, ISA_BF16)) &&
	       (!(w & ROW_VNNI) || isa_has(isa, ISA_VNNI)) &&
	       (!(w & ROW_SDOT) || isa_has(isa, ISA_SDOT)) &&
	       (!(w & ROW_AVX) || isa->vector_bytes >= 32) &&
	       (!(w & ROW_BITS) || isa->masks == MASK_BITS) &&
	       (!(w & ROW_LANES) || isa->masks == MASK_VECTOR);
}

static bool row_fits(const Isa *isa, const PreludeRow *r, LType to, LType from, unsigned known)
{
	uint32_t w = r->when, bits = prelude_bits(from);
	if (r == isa->without || !(r->to & D1(to.dtype)) || !(r->from & D1(from.dtype)))
		return false;
	LType i32 = {DT_i32, from.lanes};
	return (!(w & ROW_SCALAR) || from.lanes == 1) && (!(w & ROW_VECTOR) || from.lanes > 1) &&
	       (!(w & ROW_NATIVE) || is_native(isa, from)) &&
	       (!(w & ROW_TONATIVE) || is_native(isa, to)) &&
	       (!(w & ROW_WIDE) || is_native(isa, i32)) && (!(w & ROW_512) || bits == 512) &&
	       (!(w & ROW_256) || bits == 256) && (!(w & ROW_128) || bits == 128) &&
	       (!(w & ROW_NARROW) || bits < 512) && (!(w & ROW_INDEX) || known & KNOWN_INDEX) &&
	       (!(w & ROW_NONNEG) || known & KNOWN_NONNEG) && has_ops(isa, w);
}

const PreludeRow *prelude_find(const Isa *isa, const PreludeRow *table, const char *op, LType to,
			       LType from, unsigned known, bool llvm)
{
	for (const PreludeRow *r = table; r->op; r++)
		if ((llvm ? r->llvm : r->c) && strcmp(r->op, op) == 0 &&
		    row_fits(isa, r, to, from, known))
			return r;
	return NULL;
}

/* Whether an operation works lane by lane, from and to values of as many bits, so that it can be
 * done in halves. */
static bool can_split(const char *name)
{
	for (ScOp op = SC_add; op < SC_call; op++)
		if (strcmp(sc_name(op), name) == 0)
			return op != SC_bitcast && op != SC_from_f16 && op != SC_to_f16 &&
			       op != SC_flush_bf16 && !sc_is_dot(op);
	return false;
}

static bool is_wide(const Isa *isa, LType to, LType from)
{
	uint32_t a = prelude_bits(to), b = prelude_bits(from);
	return (a > b ? a : b) > isa->vector_bytes * 8 && from.lanes >= 4;
}

static bool splits(const Isa *isa, const PreludeRow *rows, const char *op, LType to, LType from)
{
	if (!is_wide(isa, to, from))
		return false;
	LType to_half = {to.dtype, to.lanes / 2}, from_half = {from.dtype, from.lanes / 2};
	return prelude_find(isa, rows, op, to_half, from_half, 0, false) ||
	       splits(isa, rows, op, to_half, from_half);
}

bool prelude_splits(const Isa *isa, const char *op, LType to, LType from)
{
	return is_wide(isa, to, from) && can_split(op) &&
	       splits(isa, prelude_rows(isa), op, to, from);
}

/* ---- operations ---- */

/* Rows by table and operation: most code is made of them. */
enum { GENERIC, X86, NEON, RISCV, TABLES, MOST = 14 };
static const PreludeRow *by_op[TABLES][SC_COUNT][MOST + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void index_rows(void)
{
	const PreludeRow *const table[TABLES] = {prelude_generic, prelude_x86, prelude_neon,
						 prelude_riscv};
	for (uint32_t t = 0; t < TABLES; t++)
		for (ScOp op = 0; op < SC_COUNT; op++)
			for (const PreludeRow *r = table[t], **to = by_op[t][op];
			     r->op && to < by_op[t][op] + MOST; r++)
				if (strcmp(r->op, sc_name(op)) == 0)
					*to++ = r;
}

static const PreludeRow *first_of(const Isa *isa, const PreludeRow *const *r, LType to, LType from,
				  unsigned known, bool llvm)
{
	uint32_t d = D1(to.dtype), s = D1(from.dtype);
	for (; *r; r++) /* most rows are of other dtypes */
		if ((*r)->to & d && (*r)->from & s && (llvm ? (*r)->llvm : (*r)->c) &&
		    row_fits(isa, *r, to, from, known))
			return *r;
	return NULL;
}

void prelude_types(ScOp op, LType *to, LType *from)
{
	if (op == SC_select)
		*from = *to;
	if (op == SC_from_f16 || op == SC_to_f16 || op == SC_flush_bf16)
		*to = *from = (LType){DT_f32, to->lanes};
}

const PreludeRow *prelude_of_op(const Isa *isa, ScOp op, LType to, LType from, unsigned known,
				bool llvm)
{
	pthread_once(&once, index_rows);
	const PreludeRow *rows = prelude_rows(isa), *own = NULL;
	uint32_t family = rows == prelude_x86     ? X86
			  : rows == prelude_neon  ? NEON
			  : rows == prelude_riscv ? RISCV
						  : GENERIC;
	prelude_types(op, &to, &from);
	if (family != GENERIC)
		own = first_of(isa, by_op[family][op], to, from, known, llvm);
	if (own || (!llvm && prelude_splits(isa, sc_name(op), to, from)))
		return own;
	return first_of(isa, by_op[GENERIC][op], to, from, known, llvm);
}

bool isa_takes(const Isa *isa, ScOp op, LType to, LType from, unsigned known)
{
	prelude_types(op, &to, &from);
	return prelude_of_op(isa, op, to, from, known, false) ||
	       prelude_splits(isa, sc_name(op), to, from);
}

const PreludeRow *prelude_of_statement(const Isa *isa, const char *name, bool llvm)
{
	const LType any = {DT_f32, 1};
	return prelude_find(isa, prelude_rows(isa), name, any, any, 0, llvm);
}

const PreludeRow *prelude_of_frag(const Isa *isa, FragOp op, bool llvm)
{
	return prelude_of_statement(isa, frag_row(op)->name, llvm);
}

bool isa_has_frag(const Isa *isa, FragOp op)
{
	return prelude_of_frag(isa, op, false) && prelude_of_frag(isa, op, true);
}

bool isa_streams(const Isa *isa, LType type)
{
	return prelude_find(isa, prelude_rows(isa), "stream", type, type, 0, false) &&
	       prelude_of_statement(isa, "fence", false) &&
	       prelude_of_statement(isa, "fence", true);
}
