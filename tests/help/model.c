#include "model.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/temp.h"

static bool open_object(Model *m, Ctx *ctx, const char *path)
{
	const WeftModel *(*get)(void);
	m->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m->object)
		return ctx_error(ctx, NULL, "%s", dlerror());
	*(void **)&get = dlsym(m->object, "weft_model");
	if (!get)
		return ctx_error(ctx, NULL, "no function weft_model");
	m->model = get();
	if (m->model->open(m->model, NULL, &m->instance, &m->status) != WEFT_OK)
		return ctx_error(ctx, NULL, "open: %s", m->status.message);
	return true;
}

bool model_open(Model *m, Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	*m = (Model){0};
	const char *folder = folder_temp(w->ctx);
	TRY(folder);
	const char *path = arena_printf(w->ctx->arena, "%s/model.so", folder);
	bool ok = weft_compile(w, g, o, path) && open_object(m, w->ctx, path);
	temp_remove(folder);
	temp_end(folder);
	return ok;
}

static bool open_table(Model *m, Weft *w, const WeftModel *model)
{
	*m = (Model){.model = model};
	return m->model && (m->model->open(m->model, NULL, &m->instance, &m->status) == WEFT_OK ||
			    ctx_error(w->ctx, NULL, "open: %s", m->status.message));
}

bool model_open_jit(Model *m, Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	return open_table(m, w, weft_jit(w, g, o));
}

bool model_open_loops(Model *m, Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	return open_table(m, w, weft_loops(w, g, o));
}

/* ---- memory with guards ---- */

enum { GUARD = 256 }; /* bytes on either side */

static char *guarded(Arena *a, uint64_t n)
{
	char *p = arena_alloc(a, n + 2 * GUARD + 64);
	p += 64 - (uintptr_t)p % 64;
	memset(p, 0x5a, n + 2 * GUARD);
	return p + GUARD;
}

static bool guards_hold(const char *p, uint64_t n)
{
	for (uint64_t k = 0; k < GUARD; k++)
		if (p[n + k] != 0x5a || p[(int64_t)k - GUARD] != 0x5a)
			return false;
	return true;
}

static int damaged(Model *m, const char *what)
{
	snprintf(m->status.message, sizeof m->status.message, "memory around the %s was written",
		 what);
	return m->status.code = WEFT_ERR_MEMORY;
}

/* ---- calls ---- */

/* Memory that the test's arena frees. */
static void *take(void *arena, uint64_t bytes, uint64_t align)
{
	char *p = arena_alloc(arena, bytes + align);
	return p + (align - (uintptr_t)p % align) % align;
}

static void give(void *arena, void *p, uint64_t bytes)
{
	(void)arena;
	memset(p, 0x5a, bytes);
}

static int call(Model *m, const WeftSizes *s, const WeftTensor *in, WeftTensor *out,
		int32_t nthreads, Arena *a)
{
	WeftContext c = {.size = sizeof c, .flags = WEFT_SHARE_ALL, .nthreads = nthreads, .alloc = take, .free = give, .alloc_user = a};
	char *work = guarded(a, s->workspace_bytes);
	int code = m->model->run(m->instance, s, in, out, work, &c, &m->status);
	if (code == WEFT_OK && !guards_hold(work, s->workspace_bytes))
		return damaged(m, "workspace");
	return code;
}

bool model_gave_up(const Model *m)
{
	return strstr(m->status.message, "for the interpreter of loop IR");
}

static bool is_found(const Tensor *t)
{
	bool found = false;
	for (uint32_t k = 0; k < t->rank; k++)
		found |= t->dim[k] < 0;
	return found;
}

static int run(Model *m, const Tensor *in, uint32_t nin, Tensor *out, int32_t nthreads, bool in_place, Arena *a)
{
	const WeftEntry *e = weft_entry(m->model, 0);
	WeftTensor *x = ARENA_ARRAY(a, WeftTensor, nin),
		   *y = ARENA_ARRAY(a, WeftTensor, e->noutput);
	WeftSizes *s = arena_alloc(a, e->sizes_bytes);
	m->status = (WeftStatus){0};
	for (uint32_t k = 0; k < nin; k++)
		x[k] = tensor_to_api(a, &in[k]);
	if (m->model->sizes(m->instance, 0, x, s, &m->status) != WEFT_OK)
		return m->status.code;
	for (uint32_t k = 0; k < e->noutput; k++) {
		const int64_t *dim = weft_output_shape(m->model, e, s, k);
		const WeftTensorInfo *info = weft_output(m->model, e, k);
		out[k] = (Tensor){.dtype = dtype_from_api(info->dtype), .rank = info->rank};
		memcpy(out[k].dim, dim, out[k].rank * sizeof *dim);
		if (is_found(&out[k])) { /* `run` finds out, and asks take() for memory */
			out[k].data = NULL;
			y[k] = (WeftTensor){.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype, .shape = out[k].dim};
			continue;
		}
		out[k].data = guarded(a, tensor_bytes(&out[k]));
		int32_t donates = in_place ? weft_output(m->model, e, k)->donates : -1;
		if (donates >= 0) { /* the same memory */
			memcpy(out[k].data, in[donates].data, tensor_bytes(&out[k]));
			x[donates].data = out[k].data;
		}
		y[k] = tensor_to_api(a, &out[k]);
	}
	int code = call(m, s, x, y, nthreads, a);
	for (uint32_t k = 0; k < e->noutput && code == WEFT_OK; k++)
		if (!out[k].data)
			out[k].data = y[k].data;
		else if (!guards_hold(out[k].data, tensor_bytes(&out[k])))
			code = damaged(m, "outputs");
	return code;
}

int model_run(Model *m, const Tensor *in, uint32_t nin, Tensor *out, int32_t nthreads, Arena *a)
{
	return run(m, in, nin, out, nthreads, false, a);
}

int model_run_in_place(Model *m, const Tensor *in, uint32_t nin, Tensor *out, int32_t nthreads, Arena *a)
{
	return run(m, in, nin, out, nthreads, true, a);
}

void model_close(Model *m)
{
	if (m->instance)
		m->model->close(m->instance);
	if (m->object)
		dlclose(m->object);
	*m = (Model){0};
}
