/* Statements of `sizes` and `run`: calls into the runtime. */
#include <string.h>

#include "codegen/legal/launches.h"
#include "codegen/print/llvm/fn.h"
#include "ir/graph/dtype_api.h"
#include "weft_model.h"

static LLVMValueRef call(Fn *f, const char *name, LLVMTypeRef type, LLVMValueRef *in, uint32_t nin)
{
	return LLVMBuildCall2(f->u->b, type, l_extern(f->u, name, type), in, nin, "");
}

static LLVMValueRef string(Fn *f, const char *s)
{
	LUnit *u = f->u;
	LLVMValueRef text = LLVMConstStringInContext2(u->c, s, strlen(s), false);
	LLVMValueRef g = LLVMAddGlobal(u->m, LLVMTypeOf(text), "");
	LLVMSetInitializer(g, text);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
	return g;
}

static LLVMTypeRef i32_of(Fn *f)
{
	return LLVMInt32TypeInContext(f->u->c);
}

/* Goes on where a call gave 0; else the call of the model ends. */
static void stop_unless_0(Fn *f, LLVMValueRef code)
{
	LUnit *u = f->u;
	LLVMBasicBlockRef here = LLVMGetInsertBlock(u->b),
			  next = LLVMAppendBasicBlockInContext(u->c, f->fn, "go_on");
	if (!f->stop) {
		f->stop = LLVMAppendBasicBlockInContext(u->c, f->fn, "stop");
		LLVMPositionBuilderAtEnd(u->b, f->stop);
		LLVMBuildRet(u->b, LLVMConstInt(i32_of(f), 1, 0));
		LLVMPositionBuilderAtEnd(u->b, here);
	}
	LLVMBuildCondBr(u->b, LLVMBuildIsNull(u->b, code, ""), next, f->stop);
	LLVMPositionBuilderAtEnd(u->b, next);
}

/* ---- launches ---- */

/* Allocates the arrays for the arguments of launches. All launches share them: a launch's arguments
 * are read before those of the next one are written. */
static void make_room(Fn *f)
{
	LUnit *u = f->u;
	uint32_t nbuf = 1, nparam = 1;
	for (uint32_t k = 0; k < f->f->ls.n; k++) {
		const LsData *s = &f->f->ls.data[k];
		if (s->kind != LS_LAUNCH)
			continue;
		nbuf = s->nbuf > nbuf ? s->nbuf : nbuf;
		nparam = s->narg - s->nbuf > nparam ? s->narg - s->nbuf : nparam;
	}
	LLVMTypeRef p = l_pointer(u);
	f->launch.buf = fn_alloca(f, LLVMArrayType2(p, nbuf), 16);
	f->launch.param = fn_alloca(f, LLVMArrayType2(LLVMInt64TypeInContext(u->c), nparam), 16);
}

static void fill(Fn *f, LLVMValueRef array, LLVMTypeRef type, const Lx *arg, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		LLVMValueRef at = l_i64(f->u, k), x = l_lx(f, arg[k]);
		LLVMBuildStore(f->u->b, x, LLVMBuildInBoundsGEP2(f->u->b, type, array, &at, 1, ""));
	}
}

static void launch(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef p = l_pointer(u), i64 = LLVMInt64TypeInContext(u->c),
		    i32 = LLVMInt32TypeInContext(u->c);
	if (!f->launch.buf)
		make_room(f);
	fill(f, f->launch.buf, p, s->arg, s->nbuf);
	fill(f, f->launch.param, i64, s->arg + s->nbuf, s->narg - s->nbuf);
	LLVMTypeRef kernel = LLVMFunctionType(i32, (LLVMTypeRef[]){p, i64, i64}, 3, false);
	LLVMTypeRef type = LLVMFunctionType(i32, (LLVMTypeRef[]){p, p, p, p, i32, i64}, 6, false);
	LLVMValueRef fn = l_extern(u, f->kernel_name[program_call(f->of, s->k)->fn], kernel);
	LLVMValueRef in[6] = {LLVMGetParam(f->fn, 0),
			      fn,
			      f->launch.buf,
			      f->launch.param,
			      LLVMConstInt(i32, launch_word(f->of, s), 0),
			      l_lx(f, s->x)};
	LLVMValueRef stop = call(f, "weft_phase", type, in, 6);
	if (!s->same_phase)
		stop_unless_0(f, stop);
}

/* Returns the address of a constant array of n integers, the lowest byte of each first, as on all
 * targets. */
static LLVMValueRef words(LUnit *u, const int64_t *word, uint32_t n)
{
	uint8_t *byte = ARENA_ARRAY(u->arena, uint8_t, 8 * (size_t)n);
	for (size_t k = 0; k < 8 * (size_t)n; k++)
		byte[k] = (uint8_t)((uint64_t)word[k / 8] >> k % 8 * 8);
	return l_constant(u,
			  LLVMConstStringInContext2(u->c, (const char *)byte, 8 * (size_t)n, true));
}

/* Returns the address of a constant WeftLaunches: kernels, shapes, words, the number of words. */
static LLVMValueRef launches_of(Fn *f, const LaunchTable *t)
{
	LUnit *u = f->u;
	LLVMTypeRef p = l_pointer(u), i64 = LLVMInt64TypeInContext(u->c),
		    i32 = LLVMInt32TypeInContext(u->c);
	LLVMTypeRef type = LLVMFunctionType(i32, (LLVMTypeRef[]){p, i64, i64}, 3, false);
	LLVMValueRef *kernel = ARENA_ARRAY(u->arena, LLVMValueRef, t->fn.n);
	for (uint32_t k = 0; k < t->fn.n; k++)
		kernel[k] = l_extern(u, f->kernel_name[t->fn.data[k]], type);
	LLVMValueRef field[4] = {l_constant(u, LLVMConstArray2(p, kernel, t->fn.n)),
				 words(u, t->shape.data, t->shape.n),
				 words(u, t->word.data, t->word.n), l_i64(u, t->word.n)};
	return l_constant(u, LLVMConstStructInContext(u->c, field, 4, false));
}

static void table(Fn *f, const LsData *s)
{
	const LaunchTable *t = s->launches;
	LUnit *u = f->u;
	LLVMTypeRef p = l_pointer(u), i64 = LLVMInt64TypeInContext(u->c);
	LLVMValueRef value = LLVMConstNull(p);
	if (t->value.n) {
		value = fn_alloca(f, LLVMArrayType2(i64, t->value.n), 16);
		fill(f, value, i64, s->arg, s->narg);
	}
	LLVMTypeRef type = LLVMFunctionType(i32_of(f), (LLVMTypeRef[]){p, p, p, p, p, p}, 6, false);
	LLVMValueRef in[6] = {LLVMGetParam(f->fn, 0),
			      launches_of(f, t),
			      LLVMGetParam(f->fn, 1),
			      value,
			      fn_alloca(f, LLVMArrayType2(p, t->nbuf + 1), 16),
			      fn_alloca(f, LLVMArrayType2(i64, t->nparam + 1), 16)};
	stop_unless_0(f, call(f, "weft_launches", type, in, 6));
}

static void read(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef p = l_pointer(u), i64 = LLVMInt64TypeInContext(u->c), i32 = i32_of(f);
	LLVMTypeRef type = LLVMFunctionType(i64, (LLVMTypeRef[]){p, p, i32, i32}, 4, false);
	const WeftDType d = dtype_to_api(s->dtype);
	LLVMValueRef in[4] = {LLVMGetParam(f->fn, 0), l_lx(f, s->x), LLVMConstInt(i32, d.code, 0),
			      LLVMConstInt(i32, d.bits, 0)};
	LLVMValueRef x = call(f, "weft_read", type, in, 4);
	f->var[s->v.i] = s->dtype == DT_bool ? LLVMBuildIsNotNull(u->b, x, "") : x;
}

static void copy(Fn *f, const LsData *s)
{
	LLVMTypeRef p = l_pointer(f->u), i64 = LLVMInt64TypeInContext(f->u->c);
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(f->u->c),
					    (LLVMTypeRef[]){p, p, p, i64}, 4, false);
	LLVMValueRef in[4] = {LLVMGetParam(f->fn, 0), l_lx(f, s->offset), l_lx(f, s->x),
			      l_lx(f, s->y)};
	call(f, "weft_copy", type, in, 4);
}

static void save(Fn *f, const LsData *s)
{
	LLVMTypeRef p = l_pointer(f->u), i64 = LLVMInt64TypeInContext(f->u->c);
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(f->u->c),
					    (LLVMTypeRef[]){p, p, p, p, p, i64, i64}, 7, false);
	LLVMValueRef in[7] = {LLVMGetParam(f->fn, 0),
			      l_lx(f, s->arg[0]),
			      l_lx(f, s->arg[1]),
			      l_lx(f, s->arg[2]),
			      s->nbuf > 3 ? l_lx(f, s->arg[3]) : LLVMConstNull(p),
			      l_lx(f, s->arg[s->nbuf]),
			      l_lx(f, s->arg[s->nbuf + 1])};
	call(f, "weft_save", type, in, 7);
}

static void room(Fn *f, const LsData *s)
{
	LLVMTypeRef p = l_pointer(f->u), i64 = LLVMInt64TypeInContext(f->u->c);
	LLVMTypeRef type = LLVMFunctionType(i32_of(f), (LLVMTypeRef[]){p, i32_of(f), p}, 3, false);
	LLVMValueRef in[3] = {LLVMGetParam(f->fn, 0), LLVMConstInt(i32_of(f), s->k, 0),
			      LLVMConstNull(p)};
	if (s->narg) {
		in[2] = fn_alloca(f, LLVMArrayType2(i64, s->narg), 16);
		fill(f, in[2], i64, s->arg, s->narg);
	}
	LLVMValueRef stop = call(f, "weft_room", type, in, 3);
	if (s->narg)
		stop_unless_0(f, stop);
}

/* ---- failures ---- */

static void fail_sizes(Fn *f, LLVMValueRef *in, uint32_t n)
{
	LLVMTypeRef p = l_pointer(f->u), i32 = LLVMInt32TypeInContext(f->u->c);
	LLVMTypeRef type = LLVMFunctionType(i32, (LLVMTypeRef[]){p, i32, p}, 3, true);
	in[0] = LLVMGetParam(f->fn, 2);
	in[1] = LLVMConstInt(i32, WEFT_ERR_INPUT, 0);
	LLVMBuildRet(f->u->b, call(f, "weft_fail", type, in, n + 2));
}

static void fail_run(Fn *f, LLVMValueRef *in, uint32_t n)
{
	LLVMTypeRef p = l_pointer(f->u);
	LLVMTypeRef type = LLVMFunctionType(i32_of(f), (LLVMTypeRef[]){p, p}, 2, true);
	in[1] = LLVMGetParam(f->fn, 0);
	LLVMBuildRet(f->u->b, call(f, "weft_region_fail", type, in + 1, n + 1));
}

/* Adds an LS_ASSERT. in[0] and in[1] are left for arguments in front of the message, which
 * fail_sizes and fail_run set. */
static void assertion(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMValueRef ok = l_lx(f, s->x), *in = ARENA_ARRAY(u->arena, LLVMValueRef, s->narg + 3);
	in[2] = string(f, f->of->program->message.data[s->k]);
	for (uint32_t k = 0; k < s->narg; k++)
		in[k + 3] = l_lx(f, s->arg[k]);
	LLVMBasicBlockRef bad = LLVMAppendBasicBlockInContext(u->c, f->fn, "fail");
	LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(u->c, f->fn, "ok");
	LLVMBuildCondBr(u->b, ok, next, bad);
	LLVMPositionBuilderAtEnd(u->b, bad);
	if (f->role == FN_SIZES)
		fail_sizes(f, in, s->narg + 1);
	else
		fail_run(f, in, s->narg + 1);
	LLVMPositionBuilderAtEnd(u->b, next);
}

/* Adds a call of a function outlined from `sizes`; a status other than 0 is returned. */
static void sizes_outlined(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef i64 = LLVMInt64TypeInContext(u->c);
	LLVMValueRef first = l_i64(u, (int64_t)s->count);
	LLVMValueRef fn = LLVMGetNamedFunction(u->m, f->of->sizes_outlined.data[s->k]->name);
	LLVMValueRef in[3] = {
		LLVMBuildInBoundsGEP2(u->b, i64, LLVMGetParam(f->fn, 0), &first, 1, ""),
		LLVMGetParam(f->fn, 1), LLVMGetParam(f->fn, 2)};
	LLVMValueRef code = LLVMBuildCall2(u->b, LLVMGlobalGetValueType(fn), fn, in, 3, "");
	LLVMValueRef ok = LLVMBuildICmp(u->b, LLVMIntEQ, code, LLVMConstNull(LLVMTypeOf(code)), "");
	LLVMBasicBlockRef bad = LLVMAppendBasicBlockInContext(u->c, f->fn, "fail");
	LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(u->c, f->fn, "ok");
	LLVMBuildCondBr(u->b, ok, next, bad);
	LLVMPositionBuilderAtEnd(u->b, bad);
	LLVMBuildRet(u->b, code);
	LLVMPositionBuilderAtEnd(u->b, next);
}

static void run_outlined(Fn *f, const LsData *s)
{
	LUnit *u = f->u;
	LLVMTypeRef i64 = LLVMInt64TypeInContext(u->c);
	LLVMValueRef fn = LLVMGetNamedFunction(u->m, f->of->run_outlined.data[s->k]->name);
	LLVMValueRef in[3] = {LLVMGetParam(f->fn, 0), LLVMGetParam(f->fn, 1),
			      LLVMGetParam(f->fn, 2)};
	if (s->narg) {
		in[2] = fn_alloca(f, LLVMArrayType2(i64, s->narg), 16);
		fill(f, in[2], i64, s->arg, s->narg);
	}
	stop_unless_0(f, LLVMBuildCall2(u->b, LLVMGlobalGetValueType(fn), fn, in, 3, ""));
}

static void result(Fn *f, const LsData *s)
{
	LLVMValueRef at = l_i64(f->u, s->k), slot = LLVMGetParam(f->fn, 1);
	LLVMTypeRef i64 = LLVMInt64TypeInContext(f->u->c);
	LLVMValueRef to = LLVMBuildInBoundsGEP2(f->u->b, i64, slot, &at, 1, "");
	LLVMBuildStore(f->u->b, l_lx(f, s->x), to);
}

void fn_program(Fn *f, const LsData *s)
{
	switch (s->kind) {
	case LS_LAUNCH: launch(f, s); break;
	case LS_READ: read(f, s); break;
	case LS_LAUNCHES: table(f, s); break;
	case LS_ROOM: room(f, s); break;
	case LS_COPY: copy(f, s); break;
	case LS_SAVE: save(f, s); break;
	case LS_ASSERT: assertion(f, s); break;
	case LS_OUTLINED: f->role == FN_SIZES ? sizes_outlined(f, s) : run_outlined(f, s); break;
	default: result(f, s); break;
	}
}
