/* A model in this process: kernels by the back end that makes code here, weights arranged in
 * memory. */
#include "driver/jit/jit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/artifact/backend.h"
#include "driver/artifact/section.h"
#include "driver/jit/compute.h"
#include "driver/artifact/user_links.h"
#include "ir/loop/loop.h"
#include "ir/op/userop.h"
#include "runtime/lapack.h"
#include "runtime/runtime.h"

_Static_assert(1 + MAX_FAIL_ARGS == WEFT_FAILURE, "a task and the arguments of a failure");

/* What lives as long as the Weft. */
typedef struct {
	Here here;
	SectionMap *weights;
} Resident;

static void release(void *arg)
{
	Resident *r = arg;
	if (r->here.code)
		r->here.free(r->here.code);
	*r = (Resident){0};
}

/* Links the code with the runtime, of which the compiler has its own copy, and the weights. */
static bool link_here(Compilation *c, Resident *r, bool small)
{
#define F(name) {#name, (const void *)(uintptr_t)name}
	const HereSymbol runtime[] = {
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
		F(weft_rt_open_lapack),
		F(weft_rt_open_ranks),
		F(weft_rt_run_ranks),
		{c->weights_symbol, r->weights->data},
	};
#undef F
	uint32_t n = sizeof runtime / sizeof *runtime - (r->weights->data == NULL);
	const UserOps ops = user_ops(c);
	HereSymbol *symbol = ARENA_ARRAY(c->ctx->arena, HereSymbol, n + ops.n + c->w->userop.n);
	memcpy(symbol, runtime, n * sizeof *symbol);
	for (uint32_t k = 0; k < ops.n; k++) {
		const WeftOpDef *def = &ops.data[k]->def;
		if (!def->fn)
			return ctx_error(
				c->ctx, NULL,
				"%s has no function in this process: its definition's fn is NULL",
				ops.data[k]->name);
		symbol[n + k] = (HereSymbol){def->symbol, (const void *)(uintptr_t)def->fn};
	}
	n += ops.n;
	for (uint32_t k = 0; k < c->w->userop.n; k++) {
		const UserOp *op = c->w->userop.data[k];
		if (op->def.user)
			symbol[n++] =
				(HereSymbol){userop_user_symbol(c->ctx->arena, op), op->def.user};
	}
	return c->backend->here(c, symbol, n, small, &r->here);
}

static bool make(Compilation *c, Resident *r, bool small, const WeftModel **out)
{
	const WeftModel *(*get)(void);
	*r = (Resident){0};
	TRY(backend_load(c));
	ctx_defer(c->ctx, release, r);
	phase_end(c, "load");
	TRY(recipes_compute(c) && section_map(c->program, c->o.jobs, &r->weights));
	phase_end(c, "weights");
	TRY(link_here(c, r, small));
	*(void **)&get = r->here.entry;
	*out = get();
	return true;
}

bool jit_model(Compilation *c, const WeftModel **out)
{
	return make(c, ARENA_NEW(c->ctx->arena, Resident), false, out);
}

/* ---- models that outlive their Weft ---- */

typedef struct KeptModel {
	const WeftModel *model;
	Here here;
	SectionMap weights;
	struct KeptModel *next;
} KeptModel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KeptModel *kept;

bool jit_keep(Compilation *c, const WeftModel **out)
{
	Resident *r = ARENA_NEW(c->ctx->arena, Resident);
	if (user_ops_of_user(c))
		return ctx_error(c->ctx, NULL,
				 "the model calls operators of the user, whose libraries end with "
				 "the Weft: use weft_jit");
	TRY(make(c, r, true, out));
	KeptModel *k = malloc(sizeof *k);
	if (!k)
		ctx_out_of_memory(c->ctx);
	*k = (KeptModel){.model = *out, .here = r->here, .weights = *r->weights};
	r->here.code = NULL;
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
	KeptModel **at = &kept, *k;
	while (*at && (*at)->model != m)
		at = &(*at)->next;
	if ((k = *at))
		*at = k->next;
	pthread_mutex_unlock(&lock);
	if (!k)
		return;
	k->here.free(k->here.code);
	section_unmap(&k->weights);
	free(k);
}
