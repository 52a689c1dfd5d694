/* Basic operations: the expressions of their rows (ir/loop/prelude.h), built.
 *
 * An expression is an operand (a, b, c; of select m, a, b), a constant ($Y and $Z as in
 * codegen/print/c/prelude.c, false, an integer as i16:-1, a number of the operand's type), or a
 * function of such: an instruction by its name, with its flags or its predicate, or an
 * intrinsic. */
#include <stdlib.h>
#include <string.h>

#include "codegen/print/llvm/priv.h"
#include "ir/loop/prelude.h"

typedef LLVMValueRef V;

typedef struct {
	LUnit *u;
	const char *s; /* what is left of the text */
	LType to, from;
	const V *in;
	ScOp op;
	bool mask_first; /* m, a, b */
} Expr;

/* ---- instructions ---- */

static const struct {
	const char *name;
	V (*build)(LLVMBuilderRef, V, V, const char *);
} binary[] = {
	{"add", LLVMBuildAdd},   {"sub", LLVMBuildSub},   {"mul", LLVMBuildMul},
	{"fadd", LLVMBuildFAdd}, {"fsub", LLVMBuildFSub}, {"fmul", LLVMBuildFMul},
	{"fdiv", LLVMBuildFDiv}, {"sdiv", LLVMBuildSDiv}, {"udiv", LLVMBuildUDiv},
	{"srem", LLVMBuildSRem}, {"urem", LLVMBuildURem}, {"and", LLVMBuildAnd},
	{"or", LLVMBuildOr},     {"xor", LLVMBuildXor},   {"shl", LLVMBuildShl},
	{"ashr", LLVMBuildAShr}, {"lshr", LLVMBuildLShr},
};

static const struct {
	const char *name;
	V (*build)(LLVMBuilderRef, V, const char *);
} unary[] = {{"neg", LLVMBuildNeg}, {"fneg", LLVMBuildFNeg}, {"not", LLVMBuildNot}};

/* To the type of the result. */
static const struct {
	const char *name;
	V (*build)(LLVMBuilderRef, V, LLVMTypeRef, const char *);
} casts[] = {
	{"sitofp", LLVMBuildSIToFP}, {"uitofp", LLVMBuildUIToFP}, {"fptosi", LLVMBuildFPToSI},
	{"fpcast", LLVMBuildFPCast}, {"fpext", LLVMBuildFPExt},   {"bitcast", LLVMBuildBitCast},
};

static const struct {
	const char *name;
	LLVMIntPredicate predicate;
} integer[] = {
	{"eq", LLVMIntEQ},   {"ne", LLVMIntNE},   {"slt", LLVMIntSLT}, {"sle", LLVMIntSLE},
	{"sgt", LLVMIntSGT}, {"sge", LLVMIntSGE}, {"ult", LLVMIntULT}, {"ule", LLVMIntULE},
	{"ugt", LLVMIntUGT}, {"uge", LLVMIntUGE},
};

static const struct {
	const char *name;
	LLVMRealPredicate predicate;
} real[] = {
	{"oeq", LLVMRealOEQ}, {"une", LLVMRealUNE}, {"olt", LLVMRealOLT},
	{"ole", LLVMRealOLE}, {"ogt", LLVMRealOGT}, {"oge", LLVMRealOGE},
};

#define FIND(table, what)                                                                          \
	size_t k = 0;                                                                              \
	while (k < sizeof table / sizeof *table && strcmp(table[k].name, what))                    \
		k++;                                                                               \
	if (k == sizeof table / sizeof *table)                                                     \
		return NULL

static V compare(LUnit *u, const char *name, V *in)
{
	if (*name == 'i') {
		FIND(integer, name + 5);
		return LLVMBuildICmp(u->b, integer[k].predicate, in[0], in[1], "");
	}
	FIND(real, name + 5);
	return LLVMBuildFCmp(u->b, real[k].predicate, in[0], in[1], "");
}

/* Adds a binary operation with the flags that follow the name: "add.nsw". Returns NULL if the name
 * is none. */
static V build_binary(LUnit *u, char *name, V *in)
{
	char *flags = strchr(name, '.');
	if (flags)
		*flags++ = 0;
	FIND(binary, name);
	V x = binary[k].build(u->b, in[0], in[1], "");
	if (flags && LLVMIsAInstruction(x)) {
		LLVMSetNSW(x, true);
		LLVMSetNUW(x, strstr(flags, "nuw") != NULL);
	}
	return x;
}

static V build_unary(LUnit *u, const char *name, V x)
{
	FIND(unary, name);
	return unary[k].build(u->b, x, "");
}

static V build_cast(Expr *e, const char *name, V x)
{
	LUnit *u = e->u;
	LLVMTypeRef to = l_type(u, e->to),
		    half = LLVMVectorType(LLVMHalfTypeInContext(u->c), e->to.lanes),
		    bytes = LLVMVectorType(LLVMInt8TypeInContext(u->c), 4 * e->to.lanes),
		    words = LLVMVectorType(LLVMInt16TypeInContext(u->c), 2 * e->to.lanes);
	if (!strncmp(name, "intcast", 7))
		return LLVMBuildIntCast2(u->b, x, to, name[8] == 's', "");
	if (!strcmp(name, "half"))
		return LLVMBuildBitCast(u->b, x, half, "");
	if (!strcmp(name, "bytes"))
		return LLVMBuildBitCast(u->b, x, bytes, "");
	if (!strcmp(name, "words"))
		return LLVMBuildBitCast(u->b, x, words, "");
	if (!strcmp(name, "to.half"))
		return LLVMBuildFPTrunc(u->b, x, half, "");
	FIND(casts, name);
	return casts[k].build(u->b, x, to, "");
}

/* Returns, in each four lanes, lane 0 of two vectors and two zeros. */
static V build_table(LUnit *u, LType t, V *in)
{
	V lane[64], zero = LLVMConstNull(l_type(u, t));
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	for (uint32_t k = 0; k < t.lanes; k++)
		lane[k] = LLVMConstInt(i32, k % 2 * t.lanes, false);
	V both = LLVMBuildShuffleVector(u->b, in[0], in[1], LLVMConstVector(lane, t.lanes), "");
	for (uint32_t k = 0; k < t.lanes; k++)
		lane[k] = LLVMConstInt(i32, k % 4 < 2 ? k : t.lanes, false);
	return LLVMBuildShuffleVector(u->b, both, zero, LLVMConstVector(lane, t.lanes), "");
}

static V apply(Expr *e, char *name, V *in, uint32_t nin)
{
	LUnit *u = e->u;
	if (!strncmp(name, "llvm.", 5)) {
		V x = l_math(u, name, in, nin);
		return sc_is_dot(e->op) ? LLVMBuildBitCast(u->b, x, l_type(u, e->to), "") : x;
	}
	if (!strcmp(name, "table"))
		return build_table(u, e->to, in);
	if (!strcmp(name, "select"))
		return LLVMBuildSelect(u->b, in[0], in[1], in[2], "");
	if (nin == 1) {
		V x = build_unary(u, name, in[0]);
		return x ? x : build_cast(e, name, in[0]);
	}
	return !strncmp(name + 1, "cmp.", 4) ? compare(u, name, in) : build_binary(u, name, in);
}

/* ---- expressions ---- */

static V constant(Expr *e, const char *name)
{
	bool wide = e->to.dtype == DT_i64;
	if (!strcmp(name, "$Y"))
		return l_float(e->u, e->from, wide ? 0x1p63 : 0x1p31);
	if (!strcmp(name, "$Z"))
		return l_int(e->u, e->to, wide ? INT64_MIN : INT32_MIN);
	char *end;
	if (*name == 'i') {
		LLVMTypeRef type =
			LLVMIntTypeInContext(e->u->c, (unsigned)strtoul(name + 1, &end, 10));
		return LLVMConstInt(type, (unsigned long long)strtoll(end + 1, NULL, 10), true);
	}
	double x = strtod(name, &end);
	return end > name ? l_float(e->u, e->from, x)
			  : LLVMConstNull(LLVMInt1TypeInContext(e->u->c));
}

static V build(Expr *e)
{
	enum { MOST = 48 };
	char name[MOST] = "";
	V in[6] = {NULL};
	uint32_t nin = 0;
	size_t n = strcspn(e->s, "(), ");
	memcpy(name, e->s, n < MOST ? n : MOST - 1);
	e->s += n;
	if (*e->s != '(')
		return n > 1 ? constant(e, name)
			     : e->in[*name == 'm' ? 0 : *name - 'a' + e->mask_first];
	do {
		e->s += 1 + (nin > 0); /* "(" or ", " */
		in[nin++] = build(e);
	} while (*e->s == ',');
	e->s++;
	V x = apply(e, name, in, nin);
	if (!x)
		ctx_bug(e->u->ctx, "LLVM: no instruction %s", name);
	return x;
}

V l_op(LUnit *u, ScOp op, LType result, LType operand, V *in, unsigned known)
{
	const PreludeRow *row = prelude_of_op(&u->target->isa, op, result, operand, known, true);
	if (!row)
		ctx_bug(u->ctx, "LLVM: no %s of %s", sc_name(op), dtype_name(result.dtype));
	Expr e = {.u = u,
		  .op = op,
		  .s = row->llvm,
		  .to = result,
		  .from = operand,
		  .in = in,
		  .mask_first = op == SC_select};
	return build(&e);
}
