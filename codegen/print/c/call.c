/* Calls of user operators: what is called, and what it is given (WeftOpCall of runtime.h). */
#include "codegen/print/c/emit_priv.h"
#include "ir/graph/dtype_api.h"
#include "ir/op/userop.h"

const char *c_dtype_code(WeftDType d)
{
	switch (d.code) {
	case WEFT_INT: return "WEFT_INT";
	case WEFT_UINT: return "WEFT_UINT";
	case WEFT_FLOAT: return "WEFT_FLOAT";
	case WEFT_BFLOAT: return "WEFT_BFLOAT";
	case WEFT_BOOL: return "WEFT_BOOL";
	case WEFT_F8_E4M3FN: return "WEFT_F8_E4M3FN";
	case WEFT_F8_E4M3FNUZ: return "WEFT_F8_E4M3FNUZ";
	case WEFT_F8_E5M2FNUZ: return "WEFT_F8_E5M2FNUZ";
	default: return "WEFT_F8_E5M2";
	}
}

/* Returns how many different calls of f come before a call. Statements that share one LoopCall, as
 * legalising makes copies, count once. */
static uint32_t number(const LoopFn *f, const LoopCall *c)
{
	uint32_t n = 0;
	for (uint32_t k = 0; f->ls.data[k].call != c; k++)
		n += f->ls.data[k].kind == LS_CALL && number(f, f->ls.data[k].call) == n;
	return n;
}

static const char *table_name(CUnit *u, const char *kernel, const LoopFn *f, const LoopCall *c)
{
	uint32_t n = number(f, c);
	return arena_printf(u->arena, n ? "%s_op_%u" : "%s_op", kernel, n);
}

const char *c_user_call(CUnit *u, const char *kernel, const LoopFn *f, const LsData *s)
{
	return table_name(u, kernel, f, s->call);
}

static void print_table(CUnit *u, const LoopCall *c, const char *name, Text *out)
{
	const WeftOpDef *def = &c->op->def;
	text_printf(out,
		    "int %s(const WeftOpContext *context, const WeftTensor *in, const WeftTensor "
		    "*out, void *work, uint64_t work_bytes, "
		    "WeftStatus *status);\n",
		    def->symbol);
	if (def->user_symbol)
		text_printf(out, "extern char %s[];\n", def->user_symbol);
	if (c->nin + c->nout)
		text_printf(out, "static const WeftOpTensor %s_tensor[] = {", name);
	for (uint32_t k = 0; k < c->nin + c->nout; k++) {
		const struct LoopCallTensor *t = &c->tensor[k];
		WeftDType d = dtype_to_api(t->dtype);
		text_printf(out, "%s{{%s, %u, 1}, %u, %d}", k ? ", " : "", c_dtype_code(d), d.bits,
			    t->rank, (int)t->buf);
	}
	text_printf(out, "%sstatic const WeftOpCall %s = {%s, %s, %s, %s%s, %u, %u, %d%s};\n\n",
		    c->nin + c->nout ? "};\n" : "", name, c_string(u->arena, c->op->said),
		    def->symbol, def->user_symbol ? def->user_symbol : "NULL",
		    c->nin + c->nout ? name : "NULL", c->nin + c->nout ? "_tensor" : "", c->nin,
		    c->nout, (int)c->work, userop_is(c->op, WEFT_OP_DEVICE) ? ", 1" : ", 0");
}

void c_user_tables(CUnit *u, const LoopFn *f, const char *kernel, Text *out)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < f->ls.n; k++) {
		const LoopCall *c = f->ls.data[k].kind == LS_CALL ? f->ls.data[k].call : NULL;
		if (c && number(f, c) == n) {
			print_table(u, c, table_name(u, kernel, f, c), out);
			n++;
		}
	}
}
