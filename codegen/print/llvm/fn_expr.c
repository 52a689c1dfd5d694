/* Expressions of loop IR. */
#include <string.h>

#include "codegen/print/llvm/fn.h"

/* ---- what functions are given ---- */

static void set_metadata(LUnit *u, LLVMValueRef x, const char *kind, LLVMMetadataRef *in, size_t n)
{
	unsigned id = LLVMGetMDKindIDInContext(u->c, kind, (unsigned)strlen(kind));
	LLVMSetMetadata(x, id, LLVMMetadataAsValue(u->c, LLVMMDNodeInContext2(u->c, in, n)));
}

/* Whether buffers and parameters are loaded once, at the function's entry, as in kernels. A program
 * may have thousands of them: each is loaded where it is used, so that few are alive at a time. */
static bool loads_at_entry(const Fn *f)
{
	return f->role == FN_KERNEL;
}

/* Loads element k of an array of buffers or parameters. fixed: the element does not change while
 * the function runs. */
static LLVMValueRef slot_of(Fn *f, LLVMTypeRef type, LLVMValueRef array, uint32_t k, bool fixed)
{
	LLVMValueRef at = l_i64(f->u, k);
	LLVMBuilderRef b = loads_at_entry(f) ? f->entry : f->u->b;
	LLVMValueRef p = LLVMBuildInBoundsGEP2(b, type, array, &at, 1, "");
	LLVMValueRef x = LLVMBuildLoad2(b, type, p, "");
	if (fixed)
		set_metadata(f->u, x, "invariant.load", NULL, 0);
	return x;
}

LLVMValueRef fn_buffer(Fn *f, uint32_t k)
{
	if (!f->buf[k] || !loads_at_entry(f)) {
		f->buf[k] = slot_of(f, l_pointer(f->u), f->frame.buffers, k,
				    f->role == FN_KERNEL || !program_is_room(f->of, k));
		if (f->role == FN_KERNEL) {
			LLVMMetadataRef align =
				LLVMValueAsMetadata(l_i64(f->u, f->f->buf.data[k].align));
			set_metadata(f->u, f->buf[k], "align", &align, 1);
		}
	}
	return f->buf[k];
}

/* Returns parameter k, loaded with LLVM's note that it is not negative: parameters are sizes. */
static LLVMValueRef parameter(Fn *f, uint32_t k)
{
	if (!f->param[k] || !loads_at_entry(f)) {
		bool slot = k < f->frame.nslot;
		f->param[k] = slot_of(f, LLVMInt64TypeInContext(f->u->c),
				      slot ? f->frame.slots : f->frame.params,
				      slot ? k : k - f->frame.nslot,
				      f->role != FN_SIZES || !slot); /* slots are results too */
		LLVMMetadataRef range[2] = {LLVMValueAsMetadata(l_i64(f->u, 0)),
		                            LLVMValueAsMetadata(l_i64(f->u, INT64_MAX))};
		set_metadata(f->u, f->param[k], "range", range, 2);
	}
	return f->param[k];
}

LLVMValueRef fn_alloca(Fn *f, LLVMTypeRef type, uint32_t align)
{
	LLVMValueRef p = LLVMBuildAlloca(f->entry, type, "");
	if (align)
		LLVMSetAlignment(p, align);
	return p;
}

/* ---- kinds ---- */

static LLVMValueRef variable(Fn *f, Lv v, LType type)
{
	LLVMValueRef x = f->var[v.i];
	return f->f->lv.data[v.i].is_mutable ? LLVMBuildLoad2(f->u->b, l_type(f->u, type), x, "")
					     : x;
}

static LLVMValueRef ramp(Fn *f, const LxData *d, LLVMValueRef *in)
{
	LUnit *u = f->u;
	LLVMValueRef step = l_splat(u, in[1], d->type.lanes);
	LLVMValueRef k = LLVMBuildMul(u->b, step, l_iota(u, d->type.dtype, d->type.lanes), "");
	return LLVMBuildAdd(u->b, l_splat(u, in[0], d->type.lanes), k, "");
}

/* Returns a mask whose lane k is k < n. */
static LLVMValueRef mask(Fn *f, uint32_t lanes, LLVMValueRef n)
{
	LUnit *u = f->u;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	n = l_splat(u, LLVMBuildTrunc(u->b, n, i32, ""), lanes);
	return LLVMBuildICmp(u->b, LLVMIntSLT, l_iota(u, DT_i32, lanes), n, "");
}

static LLVMValueRef address(Fn *f, uint32_t buffer, LLVMValueRef bytes)
{
	LLVMTypeRef i8 = LLVMInt8TypeInContext(f->u->c);
	return LLVMBuildInBoundsGEP2(f->u->b, i8, fn_buffer(f, buffer), &bytes, 1, "");
}

static LLVMValueRef shuffle(Fn *f, const LxData *d, uint32_t from, LLVMValueRef *in)
{
	LUnit *u = f->u;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	uint32_t lanes = d->type.lanes;
	LLVMValueRef *at = ARENA_ARRAY(u->arena, LLVMValueRef, lanes);
	for (uint32_t k = 0; k < lanes; k++)
		at[k] = LLVMConstInt(i32, shuffle_lane((Shuffle)d->u.k, k, from), false);
	if (lanes == 1)
		return LLVMBuildExtractElement(u->b, in[0], at[0], "");
	LLVMValueRef other =
		shuffle_is_of_two((Shuffle)d->u.k) ? in[1] : LLVMGetPoison(LLVMTypeOf(in[0]));
	return LLVMBuildShuffleVector(u->b, in[0], other, LLVMConstVector(at, lanes), "");
}

static LLVMValueRef fresh(Fn *f, Lx x)
{
	LUnit *u = f->u;
	const LxData *d = fn_lx(f, x);
	LLVMValueRef in[4] = {NULL};
	for (uint32_t k = 0; k < d->nin; k++)
		in[k] = l_lx(f, d->in[k]);
	LType from = d->nin ? fn_lx(f, d->in[0])->type : d->type;
	switch (d->kind) {
	case LX_INT: return l_int(u, d->type, d->u.i);
	case LX_FLOAT: return l_float(u, d->type, d->u.f);
	case LX_PARAM: return parameter(f, d->u.k);
	case LX_VAR: return variable(f, d->u.v, d->type);
	case LX_SC: return l_op(u, d->sc, d->type, from, in, d->known);
	case LX_FN: return l_library(u, f->f->ir, d->fn, d->type.lanes, in, d->nin);
	case LX_TABLE: return l_look_up(u, d->table, d->type.lanes, in[0]);
	case LX_SPLAT: return l_splat(u, in[0], d->type.lanes);
	case LX_RAMP: return ramp(f, d, in);
	case LX_MASK: return mask(f, d->type.lanes, in[0]);
	case LX_ANY: return from.lanes == 1 ? in[0] : l_math(u, "llvm.vector.reduce.or", in, 1);
	case LX_SHUFFLE: return shuffle(f, d, from.lanes, in);
	case LX_ADDR: return address(f, d->u.k, in[0]);
	case LX_HREDUCE: case LX_LANE: case LX_PACK: case LX_THREAD: case LX_WARP: break;
	}
	ctx_bug(u->ctx, "LLVM: expression of unknown kind");
}

/* ---- each once ---- */

LLVMValueRef l_lx(Fn *f, Lx x)
{
	if (f->values.value[x.i])
		return f->values.value[x.i];
	LLVMValueRef v = fresh(f, x);
	f->values.value[x.i] = v;
	if (f->values.is_mutable[x.i])
		array_push(f->u->arena, &f->values.passing, x);
	else
		array_push(f->u->arena, &f->values.known, x);
	return v;
}

uint32_t fn_push(Fn *f)
{
	return f->values.known.n;
}

void fn_pop(Fn *f, uint32_t mark)
{
	while (f->values.known.n > mark)
		f->values.value[f->values.known.data[--f->values.known.n].i] = NULL;
}

void fn_forget(Fn *f)
{
	while (f->values.passing.n)
		f->values.value[f->values.passing.data[--f->values.passing.n].i] = NULL;
}
