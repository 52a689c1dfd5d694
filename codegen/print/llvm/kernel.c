/* Statements of loop IR, and functions made of them. */
#include "codegen/print/llvm/fn.h"
#include "ir/loop/prelude.h"

static void build_block(Fn *f, Lb b);

static LLVMBasicBlockRef new_block(Fn *f, const char *name)
{
	return LLVMAppendBasicBlockInContext(f->u->c, f->fn, name);
}

/* ---- variables ---- */

static void build_var(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	f->var[s->v.i] = fn_alloca(f, l_type(u, f->f->lv.data[s->v.i].type), 0);
	LLVMBuildStore(u->b, l_lx(f, s->x), f->var[s->v.i]);
}

static void build_local(Fn *f, const LsData *s)
{
	LLVMTypeRef type = LLVMArrayType2(l_raw(f->u, s->dtype), s->count);
	f->var[s->v.i] = fn_alloca(f, type, 64);
}

/* ---- control flow ---- */

static void build_body(Fn *f, Lb b)
{
	uint32_t mark = fn_push(f);
	build_block(f, b);
	fn_pop(f, mark);
}

typedef struct {
	LLVMValueRef hi;
	int64_t step;
	LLVMBasicBlockRef body, exit;
	LLVMValueRef iv;
} Loop;

static bool starts_below(LLVMValueRef lo, LLVMValueRef hi)
{
	return LLVMIsAConstantInt(lo) && LLVMIsAConstantInt(hi) &&
	       LLVMConstIntGetSExtValue(lo) < LLVMConstIntGetSExtValue(hi);
}

/* Opens a loop over [lo, hi), in whose body the builder is left. The condition is tested before the
 * first round, unless literal bounds say that there is one, and after every round. */
static Loop loop_open(Fn *f, LLVMValueRef lo, LLVMValueRef hi, int64_t step)
{
	LUnit *u = f->u;
	Loop l = {hi, step, new_block(f, "loop"), new_block(f, "done"), NULL};
	LLVMBasicBlockRef before = LLVMGetInsertBlock(u->b);
	if (starts_below(lo, hi))
		LLVMBuildBr(u->b, l.body);
	else
		LLVMBuildCondBr(u->b, LLVMBuildICmp(u->b, LLVMIntSLT, lo, hi, ""), l.body, l.exit);
	LLVMPositionBuilderAtEnd(u->b, l.body);
	l.iv = LLVMBuildPhi(u->b, LLVMInt64TypeInContext(u->c), "");
	LLVMAddIncoming(l.iv, &lo, &before, 1);
	return l;
}

static void loop_close(Fn *f, Loop l)
{
	LUnit *u = f->u;
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(u->b);
	LLVMValueRef next = LLVMBuildNSWAdd(u->b, l.iv, l_i64(u, l.step), "");
	LLVMAddIncoming(l.iv, &next, &latch, 1);
	LLVMBuildCondBr(u->b, LLVMBuildICmp(u->b, LLVMIntSLT, next, l.hi, ""), l.body, l.exit);
	LLVMPositionBuilderAtEnd(u->b, l.exit);
}

static void build_for(Fn *f, const LsData *s)
{
	LLVMValueRef lo = l_lx(f, s->x), hi = l_lx(f, s->y);
	fn_forget(f);
	Loop l = loop_open(f, lo, hi, s->step);
	f->var[s->v.i] = l.iv;
	build_body(f, s->body);
	loop_close(f, l);
}

static void build_while(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMBasicBlockRef test = new_block(f, "while"), body = new_block(f, "body"),
			  exit = new_block(f, "done");
	LLVMBuildBr(u->b, test);
	LLVMPositionBuilderAtEnd(u->b, test);
	uint32_t mark = fn_push(f);
	LLVMBuildCondBr(u->b, l_lx(f, s->x), body, exit);
	fn_forget(f);
	LLVMPositionBuilderAtEnd(u->b, body);
	build_block(f, s->body);
	LLVMBuildBr(u->b, test);
	fn_pop(f, mark);
	LLVMPositionBuilderAtEnd(u->b, exit);
}

static void mark_rare(LUnit *u, LLVMValueRef branch)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	LLVMMetadataRef in[3] = {LLVMMDStringInContext2(u->c, "branch_weights", 14),
	                         LLVMValueAsMetadata(LLVMConstInt(i32, 1, 0)),
	                         LLVMValueAsMetadata(LLVMConstInt(i32, 1 << 20, 0))};
	LLVMValueRef weights = LLVMMetadataAsValue(u->c, LLVMMDNodeInContext2(u->c, in, 3));
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(u->c, "prof", 4), weights);
}

static void build_if(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	bool other = s->other.i && f->f->block.data[s->other.i].stmt.n;
	LLVMValueRef c = l_lx(f, s->x);
	fn_forget(f);
	LLVMBasicBlockRef then = new_block(f, "then"), end = new_block(f, "end");
	LLVMBasicBlockRef otherwise = other ? new_block(f, "else") : end;
	LLVMValueRef branch = LLVMBuildCondBr(u->b, c, then, otherwise);
	if (s->rare)
		mark_rare(u, branch);
	LLVMPositionBuilderAtEnd(u->b, then);
	build_body(f, s->body);
	LLVMBuildBr(u->b, end);
	if (other) {
		LLVMPositionBuilderAtEnd(u->b, otherwise);
		build_body(f, s->other);
		LLVMBuildBr(u->b, end);
	}
	LLVMPositionBuilderAtEnd(u->b, end);
}

static void build_stream(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LType t = fn_lx(f, s->x)->type;
	LLVMValueRef x = l_lx(f, s->x), p = fn_element(f, s->mem, s->offset);
	LLVMValueRef at = LLVMBuildPtrToInt(u->b, p, LLVMInt64TypeInContext(u->c), "");
	LLVMValueRef beyond =
		LLVMBuildAnd(u->b, at, l_i64(u, t.lanes * dtype_size(t.dtype) - 1), "");
	LLVMBasicBlockRef block[2] = {new_block(f, "unaligned"), new_block(f, "stream")},
			  end = new_block(f, "end");
	LLVMBuildCondBr(u->b, LLVMBuildIsNull(u->b, beyond, ""), block[1], block[0]);
	for (uint32_t k = 0; k < 2; k++) {
		LLVMPositionBuilderAtEnd(u->b, block[k]);
		fn_stream(f, s->mem, x, p, k);
		LLVMBuildBr(u->b, end);
	}
	LLVMPositionBuilderAtEnd(u->b, end);
}

/* Opens a block that is only executed while this call of the kernel has recorded no failure.
 * Returns the block behind. */
static LLVMBasicBlockRef unless_failed(Fn *f)
{
	LUnit *u = f->u;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	if (!f->failed) {
		f->failed = fn_alloca(f, i32, 0);
		LLVMBuildStore(f->entry, LLVMConstNull(i32), f->failed);
	}
	LLVMBasicBlockRef first = new_block(f, "first"), end = new_block(f, "end");
	LLVMValueRef none = LLVMBuildIsNull(u->b, LLVMBuildLoad2(u->b, i32, f->failed, ""), "");
	LLVMBuildCondBr(u->b, none, first, end);
	LLVMPositionBuilderAtEnd(u->b, first);
	return end;
}

static void build_fail(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c), i64 = LLVMInt64TypeInContext(u->c),
		    p = l_pointer(u);
	LLVMBasicBlockRef end = unless_failed(f);
	uint32_t mark = fn_push(f);
	LLVMBuildStore(u->b, LLVMConstInt(i32, s->k, 0), f->failed);
	LLVMValueRef at = l_i64(u, 2),
		     to = LLVMBuildInBoundsGEP2(u->b, p, LLVMGetParam(f->fn, 0), &at, 1, "");
	to = LLVMBuildLoad2(u->b, p, to, "");
	LLVMBuildStore(u->b, f->var[f->f->task.i], to);
	for (uint32_t k = 0; k < s->narg; k++) {
		at = l_i64(u, k + 1);
		LLVMValueRef slot = LLVMBuildInBoundsGEP2(u->b, i64, to, &at, 1, "");
		LLVMBuildStore(u->b, l_lx(f, s->arg[k]), slot);
	}
	fn_forget(f);
	fn_pop(f, mark);
	LLVMBuildBr(u->b, end);
	LLVMPositionBuilderAtEnd(u->b, end);
}

/* Adds the call of a user operator, unless a check of this call of the kernel has failed. */
static void build_call(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef i64 = LLVMInt64TypeInContext(u->c);
	LLVMValueRef value = fn_alloca(f, LLVMArrayType2(i64, s->narg), 16);
	LLVMBasicBlockRef end = unless_failed(f);
	uint32_t mark = fn_push(f);
	for (uint32_t k = 0; k < s->narg; k++) {
		LLVMValueRef at = l_i64(u, k);
		LLVMValueRef slot = LLVMBuildInBoundsGEP2(u->b, i64, value, &at, 1, "");
		LLVMBuildStore(u->b, l_lx(f, s->arg[k]), slot);
	}
	LLVMBuildStore(u->b, fn_user_call(f, s->call, value), f->failed);
	fn_forget(f);
	fn_pop(f, mark);
	LLVMBuildBr(u->b, end);
	LLVMPositionBuilderAtEnd(u->b, end);
}

static void build_statement(Fn *f, const LsData *s)
{
	switch (s->kind) {
	case LS_LET: f->var[s->v.i] = l_lx(f, s->x); break;
	case LS_VAR: build_var(f, s); break;
	case LS_SET: LLVMBuildStore(f->u->b, l_lx(f, s->x), f->var[s->v.i]); break;
	case LS_LOAD: case LS_GATHER: f->var[s->v.i] = fn_load(f, s); break;
	case LS_STORE: case LS_SCATTER: fn_store(f, s); break;
	case LS_STREAM: build_stream(f, s); break;
	case LS_FOR: build_for(f, s); break;
	case LS_WHILE: build_while(f, s); break;
	case LS_IF: build_if(f, s); break;
	case LS_LOCAL: build_local(f, s); break;
	case LS_FAIL: build_fail(f, s); break;
	case LS_CALL: build_call(f, s); break;
	case LS_PREFETCH: fn_prefetch(f, s); break;
	case LS_FENCE:
		l_intrinsic(f->u, prelude_of_statement(&f->u->target->isa, "fence", true)->llvm,
			    NULL, 0, NULL, 0);
		break;
	case LS_COMMENT: break;
	case LS_FRAG:
	case LS_FRAG_ZERO:
	case LS_FRAG_LOAD:
	case LS_FRAG_STORE:
	case LS_FRAG_DOT:
	case LS_FRAG_CONFIG:
	case LS_FRAG_RELEASE:
		fn_frag(f, s);
		break;
	default: fn_program(f, s); break;
	}
}

static void build_block(Fn *f, Lb b)
{
	for (uint32_t k = 0; b.i && k < f->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &f->f->ls.data[f->f->block.data[b.i].stmt.data[k]];
		build_statement(f, s);
		fn_forget(f);
	}
}

/* ---- functions ---- */

static LLVMTypeRef library_type(LUnit *u, const LoopFn *l)
{
	LLVMTypeRef *arg = ARENA_ARRAY(u->arena, LLVMTypeRef, l->arg.n);
	for (uint32_t k = 0; k < l->arg.n; k++)
		arg[k] = l_type(u, l->lv.data[l->arg.data[k].i].type);
	return LLVMFunctionType(l_type(u, lx_type(l, l->result)), arg, l->arg.n, false);
}

static LLVMTypeRef signature(LUnit *u, const LoopFn *f, FnRole role)
{
	if (role == FN_LIBRARY)
		return library_type(u, f);
	LLVMTypeRef p = l_pointer(u), i64 = LLVMInt64TypeInContext(u->c),
		    i32 = LLVMInt32TypeInContext(u->c);
	if (role == FN_KERNEL)
		return LLVMFunctionType(i32, (LLVMTypeRef[]){p, i64, i64}, 3, false);
	return LLVMFunctionType(i32, (LLVMTypeRef[]){p, p, p}, 3, false);
}

/* Sets f->frame: buffers and parameters are in the frame of a kernel, and arguments of `sizes` and
 * `run`. */
static void find_arrays(Fn *f)
{
	LLVMTypeRef p = l_pointer(f->u);
	LLVMValueRef frame = LLVMGetParam(f->fn, 0), one = l_i64(f->u, 1);
	if (f->role == FN_KERNEL) {
		f->frame.buffers = LLVMBuildLoad2(f->entry, p, frame, "");
		LLVMValueRef second = LLVMBuildInBoundsGEP2(f->entry, p, frame, &one, 1, "");
		f->frame.params = LLVMBuildLoad2(f->entry, p, second, "");
		return;
	}
	f->frame.buffers = LLVMGetParam(f->fn, 1);
	f->frame.params = LLVMGetParam(f->fn, f->role == FN_SIZES ? 0 : 2);
	f->frame.slots = f->frame.buffers;
	f->frame.nslot = f->role == FN_SIZES ? program_nslot_params(f->of, f->f) : 0;
}

static void fn_init(Fn *f)
{
	Arena *a = f->u->arena;
	const LoopFn *l = f->f;
	f->var = ARENA_ARRAY(a, LLVMValueRef, l->lv.n);
	f->values.value = ARENA_ARRAY(a, LLVMValueRef, l->lx.n);
	f->values.is_mutable = loop_find_mutable(l, a);
	uint32_t nbuf = l->buf.n;
	for (uint32_t k = 1; k < l->lx.n; k++) /* of programs, buffers are not declared */
		if (l->lx.data[k].kind == LX_ADDR && l->lx.data[k].u.k >= nbuf)
			nbuf = l->lx.data[k].u.k + 1;
	for (uint32_t k = 0; k < l->ls.n; k++)
		if (!lmem_is_array(l->ls.data[k].mem) && l->ls.data[k].mem.k >= nbuf)
			nbuf = l->ls.data[k].mem.k + 1;
	f->buf = ARENA_ARRAY(a, LLVMValueRef, nbuf);
	f->param = ARENA_ARRAY(a, LLVMValueRef, l->param.n);
	fn_aliases(f);
}

static LLVMValueRef declare(LUnit *u, const LoopFn *f, const char *name, FnRole role)
{
	LLVMValueRef fn = l_extern(u, name, signature(u, f, role));
	if (role == FN_KERNEL)
		LLVMSetVisibility(fn, LLVMHiddenVisibility);
	else
		LLVMSetLinkage(fn, LLVMInternalLinkage);
	if (role == FN_LIBRARY)
		LLVMSetFunctionCallConv(fn, LLVMFastCallConv);
	if (role == FN_LIBRARY && f->is_inline)
		l_attribute(u, fn, "alwaysinline");
	l_attribute(u, fn, "nounwind");
	return fn;
}

/* Adds a loop that executes the body for every task from `begin` to `end`, the function's
 * arguments; `enter` stands ahead of the loop, `leave` behind. */
static void build_tasks(Fn *f)
{
	LUnit *u = f->u;
	build_block(f, f->f->enter);
	fn_forget(f);
	Loop l = loop_open(f, LLVMGetParam(f->fn, 1), LLVMGetParam(f->fn, 2), 1);
	f->var[f->f->task.i] = l.iv;
	build_body(f, f->f->body);
	loop_close(f, l);
	build_block(f, f->f->leave);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c);
	LLVMBuildRet(u->b,
		     f->failed ? LLVMBuildLoad2(u->b, i32, f->failed, "") : LLVMConstNull(i32));
}

LLVMValueRef l_function(LUnit *u, const LoopFn *l, const char *name, FnRole role,
			const ProgramEntry *of, const char *const *kernel_name)
{
	Fn f = {.u = u, .f = l, .role = role, .of = of, .kernel_name = kernel_name};
	if (loop_is_of_block(l))
		ctx_bug(l->ir->ctx, "LLVM: %s is executed by a block of threads", l->name);
	f.fn = declare(u, l, name, role);
	fn_init(&f);
	LLVMBasicBlockRef entry = new_block(&f, "entry"), start = new_block(&f, "start");
	f.entry = LLVMCreateBuilderInContext(u->c);
	LLVMPositionBuilderAtEnd(f.entry, entry);
	LLVMPositionBuilderBefore(f.entry, LLVMBuildBr(f.entry, start));
	if (role != FN_LIBRARY)
		find_arrays(&f);
	for (uint32_t k = 0; k < l->arg.n; k++)
		f.var[l->arg.data[k].i] = LLVMGetParam(f.fn, k);
	LLVMPositionBuilderAtEnd(u->b, start);
	if (role == FN_KERNEL) {
		build_tasks(&f);
	} else {
		build_block(&f, l->body);
		LLVMBuildRet(u->b, role == FN_LIBRARY
					   ? l_lx(&f, l->result)
					   : LLVMConstNull(LLVMInt32TypeInContext(u->c)));
	}
	LLVMDisposeBuilder(f.entry);
	return f.fn;
}
