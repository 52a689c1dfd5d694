/* A model in this process: kernels by LLVM, weights arranged in memory. */
#include "driver/jit/jit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/artifact/backend.h"
#include "driver/artifact/section.h"
#include "driver/jit/compute.h"
#include "driver/artifact/user_links.h"
#include "ir/loop/loop.h"
#include "ir/ops/user/userop.h"
#include "runtime/runtime.h"

_Static_assert(1 + MAX_FAIL_ARGS == WEFT_FAILURE, "a task and the arguments of a failure");

/* What lives as long as the Weft. */
typedef struct {
	const LlvmBackend *llvm;
	Jit *jit;
	SectionMap *weights;
} Resident;

static void release(void *arg)
{
	Resident *r = arg;
	if (r->jit)
		r->llvm->free(r->jit);
	*r = (Resident){0};
}

/* The runtime, of which the compiler has its own copy, and the weights. */
static bool link_here(Compilation *c, Resident *r, const LlvmFiles *files)
{
#define F(name) {#name, (const void *)(uintptr_t)name}
	const JitSymbol runtime[] = {
		F(weft_phase),
		F(weft_launches),
		F(weft_copy),
		F(weft_room),
		F(weft_save),
		F(weft_read),
		F(weft_region_fail),
		F(weft_fail),
		F(weft_rt_open),
		F(weft_rt_close),
		F(weft_rt_sizes),
		F(weft_rt_run),
		F(weft_rt_clone),
		F(weft_rt_get_weights),
		F(weft_rt_threads_new),
		F(weft_rt_threads_free),
		F(weft_rt_set_weights),
		F(weft_rt_state_get),
		F(weft_rt_state_set),
		F(weft_rt_state_reset),
		F(weft_rt_no_weights),
		F(weft_rt_no_state),
		F(weft_rt_no_reset),
		F(weft_op_call),
		{c->weights_symbol, r->weights->data},
	};
#undef F
	uint32_t n = sizeof runtime / sizeof *runtime - (r->weights->data == NULL);
	const UserOps ops = user_ops(c);
	JitSymbol *symbol = ARENA_ARRAY(c->ctx->arena, JitSymbol, n + ops.n + c->w->userop.n);
	memcpy(symbol, runtime, n * sizeof *symbol);
	for (uint32_t k = 0; k < ops.n; k++) {
		const WeftOpDef *def = &ops.data[k]->def;
		if (!def->fn)
			return ctx_error(c->ctx, NULL, "%s has no function in this process: its definition's fn is NULL", ops.data[k]->name);
		symbol[n + k] = (JitSymbol){def->symbol, (const void *)(uintptr_t)def->fn};
	}
	n += ops.n;
	for (uint32_t k = 0; k < c->w->userop.n; k++) {
		const UserOp *op = c->w->userop.data[k];
		if (op->def.user)
			symbol[n++] = (JitSymbol){userop_user_symbol(c->ctx->arena, op), op->def.user};
	}
	r->jit = r->llvm->link(c->ctx, files, symbol, n);
	return r->jit;
}

static bool make(Compilation *c, Resident *r, bool small, const WeftModel **out)
{
	LlvmFiles files = {0};
	const char *symbol = c->o.symbol ? c->o.symbol : "weft_model";
	const WeftModel *(*get)(void);
	*r = (Resident){.llvm = llvm_backend(c->ctx, c->o.llvm_folder)};
	TRY(r->llvm);
	ctx_defer(c->ctx, release, r);
	phase_end(c, "load LLVM");
	TRY(recipes_compute(c) && section_map(c->program, c->o.jobs, &r->weights));
	phase_end(c, "weights");
	const TargetLevel *level[2];
	for (uint32_t k = 0, n = compile_programs(c, level); k < n; k++) {
		EmitOptions o = compile_emit_options(c, level[k], NULL);
		o.nunits = small ? 1 : o.nunits; /* each has pages of its own */
		o.here = true;
		TRY(r->llvm->emit(level[k]->program, level[k]->target, &o, LLVM_OBJECT, c->o.jobs, &files));
	}
	c->w->report.objects = files.file.n;
	phase_end(c, "llvm");
	TRY(link_here(c, r, &files));
	*(void **)&get = r->llvm->find(c->ctx, r->jit, symbol);
	TRY(get);
	*out = get();
	phase_end(c, "link");
	return true;
}

bool jit_model(Compilation *c, const WeftModel **out)
{
	return make(c, ARENA_NEW(c->ctx->arena, Resident), false, out);
}

/* ---- models that outlive their Weft ---- */

typedef struct Kept {
	const WeftModel *model;
	const LlvmBackend *llvm;
	Jit *jit;
	SectionMap weights;
	struct Kept *next;
} Kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kept *kept;

bool jit_keep(Compilation *c, const WeftModel **out)
{
	Resident *r = ARENA_NEW(c->ctx->arena, Resident);
	if (user_ops(c).n)
		return ctx_error(c->ctx, NULL,
				 "the model calls operators of the user, whose libraries end with "
				 "the Weft: use weft_jit");
	TRY(make(c, r, true, out));
	Kept *k = malloc(sizeof *k);
	if (!k)
		ctx_out_of_memory(c->ctx);
	*k = (Kept){.model = *out, .llvm = r->llvm, .jit = r->jit, .weights = *r->weights};
	r->jit = NULL;
	r->weights->data = NULL;
	pthread_mutex_lock(&lock);
	k->next = kept;
	kept = k;
	pthread_mutex_unlock(&lock);
	return true;
}

void weft_jit_free(const WeftModel *m)
{
	pthread_mutex_lock(&lock);
	Kept **at = &kept, *k;
	while (*at && (*at)->model != m)
		at = &(*at)->next;
	if ((k = *at))
		*at = k->next;
	pthread_mutex_unlock(&lock);
	if (!k)
		return;
	k->llvm->free(k->jit);
	section_unmap(&k->weights);
	free(k);
}
