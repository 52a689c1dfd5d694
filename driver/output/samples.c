#include "driver/output/samples.h"

#include <string.h>

#include "driver/artifact/backend.h"
#include "driver/artifact/compile.h"

enum { MOST_AT_ONCE = 16 };

/* ---- inputs ---- */

/* Returns the tensor of an input, called as this or x.<i>; NULL after an error. */
static const WeftTensor *tensor_of(const Samples *s, const WeftTensors *data, uint32_t k)
{
	Ctx *ctx = s->w->ctx;
	const char *name = s->input[k].name, *number = arena_printf(ctx->arena, "x.%u", k);
	const WeftTensor *t = weft_tensors_find(data, name);
	t = t ? t : weft_tensors_find(data, number);
	if (t)
		return t;
	ctx_error(ctx, "weft_quantize", "the data have no tensor %s or %s for input %u", name,
		  number, k);
	return NULL;
}

/* Sets how an input is cut into calls, and *calls to their number. */
static bool cut(Samples *s, uint32_t k, uint32_t *calls)
{
	const WeftTensorInfo *in = &s->input[k];
	const WeftTensor *t = s->from[k];
	Ctx *ctx = s->w->ctx;
	const int32_t rank = (int32_t)in->rank;
	s->apart[k] = t->ndim == rank + 1;
	if (t->ndim < 1 || (t->ndim != rank && !s->apart[k]))
		return ctx_error(ctx, "weft_quantize",
				 "the data of input %s have %d dimensions, expected %d, or %d of "
				 "which the first counts samples",
				 in->name, t->ndim, rank, rank + 1);
	const int64_t n = t->shape[0], batch = s->apart[k] ? 1 : in->dim[0].value;
	s->step[k] = batch > 0 ? batch : n < MOST_AT_ONCE ? n : MOST_AT_ONCE;
	if (n < 1 || n < s->step[k] || n > UINT32_MAX)
		return ctx_error(ctx, "weft_quantize",
				 "the data of input %s have %lld samples, expected at least %lld",
				 in->name, (long long)n, (long long)(batch > 0 ? batch : 1));
	if (batch > 0 && n % batch)
		ctx_note(ctx, in->name,
			 "the last %lld of %lld samples are left out: the model takes %lld",
			 (long long)(n % batch), (long long)n, (long long)batch);
	/* of a batch of any size, the rest is a call, too */
	*calls = (uint32_t)(batch > 0 ? n / s->step[k] : (n + s->step[k] - 1) / s->step[k]);
	return true;
}

bool samples_open(Weft *w, const WeftGraph *g, const WeftTensors *data, Samples *s)
{
	Arena *arena = weft_arena(w);
	*s = (Samples){.w = w};
	s->input = weft_inputs(w, g, &s->ninput);
	TRY(s->input);
	s->from = ARENA_ARRAY(arena, const WeftTensor *, s->ninput);
	s->apart = ARENA_ARRAY(arena, bool, s->ninput);
	s->step = ARENA_ARRAY(arena, int64_t, s->ninput);
	for (uint32_t k = 0; k < s->ninput; k++) {
		uint32_t calls;
		TRY((s->from[k] = tensor_of(s, data, k)) && cut(s, k, &calls));
		if (k && calls != s->ncall)
			return ctx_error(w->ctx, "weft_quantize",
					 "the data are %u calls by input %s and %u by input %s",
					 s->ncall, s->input[0].name, calls, s->input[k].name);
		s->ncall = calls;
	}
	return s->ncall || ctx_error(w->ctx, "weft_quantize",
				     "the model has no inputs: no data make a difference");
}

/* Sets in[] to the inputs of a call. */
static void inputs_of(const Samples *s, uint32_t call, WeftTensor *in)
{
	Arena *arena = weft_arena(s->w);
	for (uint32_t k = 0; k < s->ninput; k++) {
		const WeftTensor *t = s->from[k];
		const uint32_t first = s->apart[k];
		const int64_t at = call * s->step[k], left = t->shape[0] - at;
		uint64_t row = t->dtype.bits / 8;
		for (int32_t d = 1; d < t->ndim; d++)
			row *= (uint64_t)t->shape[d];
		in[k] = *t;
		in[k].shape = arena_dup(arena, t->shape, sizeof *t->shape * (size_t)t->ndim);
		in[k].shape[0] = left < s->step[k] ? left : s->step[k];
		in[k].shape += first;
		in[k].ndim -= (int32_t)first;
		in[k].data = (uint8_t *)t->data + (uint64_t)at * row;
	}
}

/* ---- calls ---- */

bool callee_open(Weft *w, WeftGraph *g, uint32_t jobs, Callee *c)
{
	*c = (Callee){.w = w, .g = g};
	const WeftOptions o = {.size = sizeof o, .jobs = jobs};
	const Compilation none = {.w = w, .ctx = w->ctx};
	uint32_t nout;
	TRY(weft_outputs(w, g, &nout));
	if (!backend_available(backend_here(), &none)) {
		c->nout = nout;
		c->out = ARENA_ARRAY(weft_arena(w), WeftTensor, nout + 1);
		return true;
	}
	const WeftModel *m = weft_jit(w, g, &o);
	TRY(m);
	if (weft_call_open(&c->call, m, 0))
		return ctx_error(w->ctx, g->path, "%s", c->call.status.message);
	c->nout = c->call.entry->noutput;
	return true;
}

bool callee_run(Callee *c, const Samples *s, uint32_t k)
{
	WeftTensor *in = ARENA_ARRAY(weft_arena(c->w), WeftTensor, s->ninput + 1);
	inputs_of(s, k, in);
	if (!c->call.model)
		return weft_interpret(c->w, c->g, in, s->ninput, c->out);
	WeftCall *call = &c->call;
	if (call->model->nstate && call->model->state_reset(call->instance, &call->status))
		return ctx_error(c->w->ctx, c->g->path, "%s", call->status.message);
	if (weft_call_run(call, in))
		return ctx_error(c->w->ctx, c->g->path, "%s", call->status.message);
	c->out = call->output;
	return true;
}

void callee_release(const Callee *c)
{
	if (c->call.model)
		return;
	weft_release(c->w);
	if (!c->w->results)
		ctx_out_of_memory(c->w->ctx);
}

int32_t callee_output(const Callee *c, const char *name)
{
	if (c->call.model)
		return weft_output_index(c->call.model, c->call.entry, name);
	uint32_t n;
	const WeftTensorInfo *out = weft_outputs(c->w, c->g, &n);
	for (uint32_t k = 0; out && k < n; k++)
		if (!strcmp(out[k].name, name))
			return (int32_t)k;
	return -1;
}

void callee_close(Callee *c)
{
	if (c->call.model)
		weft_call_close(&c->call);
	*c = (Callee){0};
}
