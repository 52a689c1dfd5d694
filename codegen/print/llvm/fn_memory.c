/* Loads and stores of loop IR, with what is known about aliases. */
#include <string.h>

#include "codegen/print/llvm/fn.h"

/* ---- aliases ---- */

static LLVMMetadataRef named_node(LUnit *u, const char *name, LLVMMetadataRef domain)
{
	LLVMMetadataRef in[2] = {LLVMMDStringInContext2(u->c, name, strlen(name)), domain};
	return LLVMMDNodeInContext2(u->c, in, domain ? 2 : 1);
}

/* Makes alias scopes that say what C's restrict says: memory that is reached through such a buffer
 * is reached through no other one. */
void fn_aliases(Fn *f)
{
	LUnit *u = f->u;
	uint32_t n = f->f->buf.n;
	f->aliases.scope = ARENA_ARRAY(u->arena, LLVMMetadataRef, n);
	f->aliases.apart = ARENA_ARRAY(u->arena, LLVMValueRef, n);
	if (f->role != FN_KERNEL || n < 2)
		return;
	size_t length;
	const char *name = LLVMGetValueName2(f->fn, &length);
	LLVMMetadataRef domain = named_node(u, name, NULL),
			*others = ARENA_ARRAY(u->arena, LLVMMetadataRef, n);
	for (uint32_t k = 0; k < n; k++)
		if (f->f->buf.data[k].restrict_ok)
			f->aliases.scope[k] =
				named_node(u, arena_printf(u->arena, "%s.%u", name, k), domain);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t nother = 0;
		for (uint32_t j = 0; j < n; j++)
			if (j != k && f->aliases.scope[j])
				others[nother++] = f->aliases.scope[j];
		if (nother)
			f->aliases.apart[k] = LLVMMetadataAsValue(
				u->c, LLVMMDNodeInContext2(u->c, others, nother));
	}
}

static void mark_access(Fn *f, LMem m, LLVMValueRef access)
{
	LUnit *u = f->u;
	if (lmem_is_array(m) || f->role != FN_KERNEL)
		return;
	if (f->aliases.scope[m.k]) {
		LLVMMetadataRef list = LLVMMDNodeInContext2(u->c, &f->aliases.scope[m.k], 1);
		LLVMSetMetadata(access, LLVMGetMDKindIDInContext(u->c, "alias.scope", 11),
		                LLVMMetadataAsValue(u->c, list));
	}
	if (f->aliases.apart[m.k])
		LLVMSetMetadata(access, LLVMGetMDKindIDInContext(u->c, "noalias", 7),
				f->aliases.apart[m.k]);
}

/* ---- addresses ---- */

LLVMValueRef fn_element(Fn *f, LMem m, Lx offset)
{
	LLVMValueRef base = lmem_is_array(m) ? f->var[m.k] : fn_buffer(f, m.k),
		     at = l_lx(f, offset);
	int64_t c;
	if (lx_is_int(f->f, offset, &c) && c == 0)
		return base;
	return LLVMBuildInBoundsGEP2(f->u->b, l_raw(f->u, m.dtype), base, &at, 1, "");
}

static LLVMValueRef elements(Fn *f, LMem m, Lx offset, Lx index)
{
	LLVMValueRef base = fn_element(f, m, offset), at = l_lx(f, index);
	return LLVMBuildInBoundsGEP2(f->u->b, l_raw(f->u, m.dtype), base, &at, 1, "");
}

static uint32_t element_bytes(LMem m)
{
	return dtype_size(dtype_raw(m.dtype));
}

static LLVMValueRef align_of(Fn *f, LMem m)
{
	return LLVMConstInt(LLVMInt32TypeInContext(f->u->c), element_bytes(m), false);
}

static LLVMValueRef all_lanes(Fn *f, uint32_t lanes)
{
	return l_int(f->u, (LType){DT_bool, lanes}, 1);
}

/* ---- loads ---- */

static LLVMValueRef plain_load(Fn *f, const LsData *s, LLVMTypeRef type, LLVMValueRef p)
{
	LLVMValueRef x = LLVMBuildLoad2(f->u->b, type, p, "");
	LLVMSetAlignment(x, element_bytes(s->mem));
	LLVMSetVolatile(x, s->in_order); /* loads of neighbours come together otherwise, as soon as
	                                    there is one */
	mark_access(f, s->mem, x);
	return x;
}

/* Gathers by a load for each lane: faster than the gather instructions of processors that execute
 * them as many loads too. */
static LLVMValueRef load_lanes(Fn *f, const LsData *s, LLVMTypeRef type, LLVMValueRef index,
			       uint32_t lanes)
{
	LLVMBuilderRef b = f->u->b;
	LLVMValueRef base = fn_element(f, s->mem, s->offset), x = LLVMGetUndef(type);
	for (uint32_t k = 0; k < lanes; k++) {
		LLVMValueRef lane = LLVMConstInt(LLVMInt32TypeInContext(f->u->c), k, false);
		LLVMValueRef at = LLVMBuildExtractElement(b, index, lane, "");
		LLVMValueRef p =
			LLVMBuildInBoundsGEP2(b, l_raw(f->u, s->mem.dtype), base, &at, 1, "");
		x = LLVMBuildInsertElement(b, x, plain_load(f, s, LLVMGetElementType(type), p),
					   lane, "");
	}
	return x;
}

/* Returns n lanes from lane `first` on of the vectors x and y, one behind the other. */
static LLVMValueRef some_lanes(Fn *f, LLVMValueRef x, LLVMValueRef y, uint32_t first, uint32_t n)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(f->u->c);
	LLVMValueRef *at = ARENA_ARRAY(f->u->arena, LLVMValueRef, n);
	for (uint32_t k = 0; k < n; k++)
		at[k] = LLVMConstInt(i32, first + k, false);
	return LLVMBuildShuffleVector(f->u->b, x, y, LLVMConstVector(at, n), "");
}

/* Returns n lanes of a mask from lane `first` on. The result is the constant 0 if one side of an
 * `and` in the mask is 0 in all these lanes. */
static LLVMValueRef mask_lanes(Fn *f, LLVMValueRef mask, uint32_t first, uint32_t n)
{
	if (!LLVMIsAInstruction(mask) || LLVMGetInstructionOpcode(mask) != LLVMAnd)
		return some_lanes(f, mask, LLVMGetPoison(LLVMTypeOf(mask)), first, n);
	LLVMValueRef a = mask_lanes(f, LLVMGetOperand(mask, 0), first, n);
	if (LLVMIsNull(a))
		return a;
	LLVMValueRef b = mask_lanes(f, LLVMGetOperand(mask, 1), first, n);
	return LLVMIsNull(b) ? b : LLVMBuildAnd(f->u->b, a, b, "");
}

/* Loads under a mask. A vector of several registers is split into a load for each register, and
 * registers whose lanes are all off are not loaded. LLVM 19 would split it, too, but reads without
 * a mask where it finds only then that a computed mask is off for a whole register. */
static LLVMValueRef masked_load(Fn *f, const LsData *s, LLVMTypeRef type, LLVMValueRef p,
				LLVMValueRef mask, uint32_t lanes)
{
	LUnit *u = f->u;
	const uint32_t elem = element_bytes(s->mem), widest = u->target->isa.vector_bytes;
	if (LLVMIsNull(mask))
		return LLVMConstNull(type);
	if (lanes > 1 && lanes * elem > widest && widest / elem > 1) {
		const uint32_t half = lanes / 2;
		LLVMTypeRef part = LLVMVectorType(LLVMGetElementType(type), half);
		LLVMValueRef at = l_i64(u, half * ls_group(s->mem, f->f->lv.data[s->v.i].type));
		LLVMValueRef next =
			LLVMBuildInBoundsGEP2(u->b, l_raw(u, s->mem.dtype), p, &at, 1, "");
		LLVMValueRef low = masked_load(f, s, part, p, mask_lanes(f, mask, 0, half), half);
		LLVMValueRef high =
			masked_load(f, s, part, next, mask_lanes(f, mask, half, half), half);
		return some_lanes(f, low, high, 0, lanes);
	}
	LLVMValueRef in[4] = {p, align_of(f, s->mem), mask, LLVMConstNull(type)};
	LLVMTypeRef over[2] = {type, LLVMTypeOf(p)};
	LLVMValueRef x = l_intrinsic(u, "llvm.masked.load", over, 2, in, 4);
	mark_access(f, s->mem, x);
	return x;
}

static LLVMValueRef load_many(Fn *f, const LsData *s, LLVMTypeRef type, LLVMValueRef p,
			      uint32_t lanes)
{
	LUnit *u = f->u;
	bool gather = s->kind == LS_GATHER;
	if (!gather && !s->mask.i)
		return plain_load(f, s, type, p);
	LLVMValueRef mask = s->mask.i ? l_lx(f, s->mask) : all_lanes(f, lanes);
	if (!gather)
		return masked_load(f, s, type, p, mask, lanes);
	LLVMValueRef in[4] = {p, align_of(f, s->mem), mask, LLVMConstNull(type)};
	LLVMTypeRef over[2] = {type, LLVMTypeOf(p)};
	LLVMValueRef x = l_intrinsic(u, "llvm.masked.gather", over, 2, in, 4);
	mark_access(f, s->mem, x);
	return x;
}

LLVMValueRef fn_load(Fn *f, const LsData *s)
{
	LType t = f->f->lv.data[s->v.i].type;
	LLVMTypeRef type = l_type(f->u, t);
	if (s->kind == LS_GATHER && s->k)
		return load_lanes(f, s, type, l_lx(f, s->x), t.lanes);
	LLVMValueRef p = s->kind == LS_GATHER ? elements(f, s->mem, s->offset, s->x)
					      : fn_element(f, s->mem, s->offset);
	return load_many(f, s, type, p, t.lanes);
}

/* ---- stores ---- */

static LLVMValueRef plain_store(Fn *f, LMem m, LLVMValueRef x, LLVMValueRef p)
{
	LLVMValueRef store = LLVMBuildStore(f->u->b, x, p);
	LLVMSetAlignment(store, element_bytes(m));
	mark_access(f, m, store);
	return store;
}

void fn_stream(Fn *f, LMem m, LLVMValueRef x, LLVMValueRef p, bool aligned)
{
	LUnit *u = f->u;
	LLVMValueRef store = plain_store(f, m, x, p);
	if (!aligned)
		return;
	LLVMMetadataRef one =
		LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(u->c), 1, false));
	LLVMSetAlignment(store, element_bytes(m) * LLVMGetVectorSize(LLVMTypeOf(x)));
	LLVMSetMetadata(store, LLVMGetMDKindIDInContext(u->c, "nontemporal", 11),
	                LLVMMetadataAsValue(u->c, LLVMMDNodeInContext2(u->c, &one, 1)));
}

static void store_many(Fn *f, const LsData *s, LLVMValueRef x, LLVMValueRef p, uint32_t lanes)
{
	bool scatter = s->kind == LS_SCATTER;
	if (!scatter && !s->mask.i) {
		plain_store(f, s->mem, x, p);
		return;
	}
	LLVMValueRef mask = s->mask.i ? l_lx(f, s->mask) : all_lanes(f, lanes);
	LLVMValueRef in[4] = {x, p, align_of(f, s->mem), mask};
	LLVMTypeRef over[2] = {LLVMTypeOf(x), LLVMTypeOf(p)};
	const char *name = scatter ? "llvm.masked.scatter" : "llvm.masked.store";
	mark_access(f, s->mem, l_intrinsic(f->u, name, over, 2, in, 4));
}

void fn_store(Fn *f, const LsData *s)
{
	uint32_t lanes = fn_lx(f, s->x)->type.lanes;
	LLVMValueRef x = l_lx(f, s->x);
	LLVMValueRef p = s->kind == LS_SCATTER ? elements(f, s->mem, s->offset, s->y)
					       : fn_element(f, s->mem, s->offset);
	store_many(f, s, x, p, lanes);
}

void fn_prefetch(Fn *f, const LsData *s)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(f->u->c), over = l_pointer(f->u);
	LLVMValueRef in[4] = {fn_element(f, s->mem, s->offset), LLVMConstInt(i32, 0, 0),
			      LLVMConstInt(i32, ls_locality(s), 0), LLVMConstInt(i32, 1, 0)};
	l_intrinsic(f->u, "llvm.prefetch", &over, 1, in, 4);
}
