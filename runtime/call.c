/* The two calls of a model: sizes and run. What arrives is checked here, not in emitted code. */
#include "instance_priv.h"

#include <stdio.h>

enum { ALIGN = 64 };

/* Returns the error code after the message that an input or output is not as expected. */
#define BAD(status, ...) weft_fail(status, WEFT_ERR_INPUT, __VA_ARGS__)

static const char *dtype_text(WeftDType t, char buf[16])
{
	static const char *const letter[] = {"i", "u", "f", "opaque", "bf", "c", "bool"};
	if (t.code == WEFT_BOOL)
		return "bool";
	snprintf(buf, 16, "%s%u", t.code < 6 ? letter[t.code] : "f8 kind ", (unsigned)t.bits);
	return buf;
}

int check_kind(const Expected *x, const WeftTensor *t, WeftStatus *status)
{
	char want[16], got[16];
	if (t->dtype.code != x->dtype.code || t->dtype.bits != x->dtype.bits)
		return BAD(status, "%s %s has dtype %s, expected %s", x->role, x->name,
			   dtype_text(t->dtype, got), dtype_text(x->dtype, want));
	if (t->dtype.lanes != 1)
		return BAD(status, "%s %s has vectors of %u for elements, expected 1", x->role,
			   x->name, (unsigned)t->dtype.lanes);
	if (t->ndim != (int32_t)x->rank)
		return BAD(status, "%s %s has %d dimensions, expected %u", x->role, x->name,
			   (int)t->ndim, (unsigned)x->rank);
	if (x->rank && !t->shape)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "%s %s has no shape", x->role, x->name);
	if (!is_of_host(t) && !device_takes(t, x->role))
		return BAD(status, "%s %s is not in the processor's memory", x->role, x->name);
	return WEFT_OK;
}

/* Where a symbol got its value. */
typedef struct {
	const WeftTensorInfo *info;
	uint32_t dim;
	int64_t value;
} Origin;

static int check_dim(const WeftEntry *e, const WeftTensorInfo *info, uint32_t k, int64_t n,
		     Origin *origin, WeftStatus *status)
{
	const WeftDim *d = &info->dim[k];
	if (n < 0 || (d->value >= 0 && n != d->value))
		return BAD(status, "input %s: dimension %u is %lld, expected %s", info->name,
			   (unsigned)k, (long long)n, d->text);
	if (d->symbol < 0)
		return WEFT_OK;
	const WeftSymbolInfo *s = &e->symbol[d->symbol];
	Origin *o = &origin[d->symbol];
	if (!o->info) {
		char most[32] = "";
		*o = (Origin){info, k, n};
		if (n >= s->lo && n <= s->hi)
			return WEFT_OK;
		if (s->hi != INT64_MAX)
			snprintf(most, sizeof most, " to %lld", (long long)s->hi);
		return BAD(status, "input %s: dimension %u (%s) is %lld, expected %s%lld%s",
			   info->name, (unsigned)k, s->name, (long long)n, *most ? "" : "at least ",
			   (long long)s->lo, most);
	}
	if (o->value != n)
		return BAD(status,
			   "input %s: dimension %u (%s) is %lld, expected %lld as dimension %u of "
			   "input %s",
			   info->name, k, s->name, (long long)n, (long long)o->value, o->dim,
			   o->info->name);
	return WEFT_OK;
}

/* Returns the bytes of the workspace that a row-major copy of the tensor takes; 0 where none is
 * needed. */
static uint64_t copy_bytes(const WeftTensor *t)
{
	return tensor_row_major(t) ? 0 : (tensor_bytes(t) + ALIGN - 1) / ALIGN * ALIGN;
}

int weft_rt_sizes(const WeftInstance *in, uint32_t entry, const WeftTensor *inputs,
		  WeftSizes *sizes, WeftStatus *status)
{
	status_clear(status);
	if (!in || !sizes || entry >= in->model->nentry)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "sizes: no %s",
				 !in     ? "instance given"
				 : sizes ? "such entry"
					 : "room for the sizes given");
	const WeftEntry *e = in->model->entry[entry];
	const uint32_t ninput = e->ninput;
	if (!inputs && ninput)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "sizes: no inputs given");
	int64_t *extent = sizes->slot + e->nslot, *x = extent;
	Origin origin[e->nsymbol + 1];
	uint64_t copies = WEFT_WORKSPACE_BYTES(0);
#ifdef WEFT_DEVICES
	copies += DEVICE_WORK;
#endif
	memset(origin, 0, sizeof origin);
	for (uint32_t i = 0; i < ninput; i++) {
		const WeftTensor *t = &inputs[i];
		TRY(check_info("input", &e->input[i], t, status));
		for (uint32_t k = 0; k < e->input[i].rank; k++) {
			TRY(check_dim(e, &e->input[i], k, t->shape[k], origin, status));
			*x++ = t->shape[k];
		}
		if (__builtin_add_overflow(copies, copy_bytes(t), &copies))
			return BAD(status, "the inputs are too large to copy");
	}
	TRY(e->sizes_fn(extent, sizes->slot, status));
	sizes->entry = entry;
	sizes->nslot = e->nslot;
	if (__builtin_add_overflow((uint64_t)sizes->slot[e->nslot - 1], copies,
				   &sizes->workspace_bytes))
		return BAD(status, "the workspace would be too large");
	return WEFT_OK;
}

/* ---- run ---- */

/* A call being prepared. */
typedef struct {
	WeftInstance *in;
	const WeftEntry *e;
	const WeftSizes *sizes;
	const Constants *constants;
	void *state;
	char *work; /* aligned; what is left of the workspace */
	char *work_end;
	int strict;
	WeftStatus *status;
#ifdef WEFT_DEVICES
	DeviceCall *device; /* NULL: the processor */
	Flight *flight;     /* NULL: the call waits */
#endif
} Call;

static int bind_data(Call *c, const char *role, const WeftTensorInfo *info, const WeftTensor *t,
		     void **data)
{
	size_t elem = dtype_bytes(t->dtype);
	size_t align = t->dtype.code == WEFT_COMPLEX ? elem / 2 : elem;
	char *p = data_of(t);
	*data = p;
	if (tensor_bytes(t) == 0)
		return *data = c->work, WEFT_OK;
	if (!t->data)
		return weft_fail(c->status, WEFT_ERR_ARGUMENT, "%s %s has no data", role,
				 info->name);
	if ((uintptr_t)p % align)
		return BAD(c->status, "%s %s is not aligned to %u bytes", role, info->name,
			   (unsigned)align);
#ifdef WEFT_DEVICES
	if (c->device)
		return device_bind(c->device, role[0] == 'o', info->name, t, data, c->status);
	if (t->device.type != WEFT_CPU)
		return BAD(c->status, "%s %s is not in the processor's memory", role, info->name);
#endif
	uint64_t bytes = copy_bytes(t);
	if (bytes == 0)
		return WEFT_OK;
	if (c->strict || role[0] == 'o')
		return BAD(c->status, "%s %s is not row-major", role, info->name);
	if (bytes > (uint64_t)(c->work_end - c->work))
		return BAD(c->status, "input %s has other strides than when sizes were computed",
			   info->name);
	copy_strided(c->work, p, t, 0, elem);
	*data = c->work;
	c->work += bytes;
	return WEFT_OK;
}

/* Checks that a tensor is as the table says and has the given shape; role: "input" or "output". */
static int check_shape(const Call *c, const char *role, const WeftTensorInfo *info,
		       const int64_t *shape, const WeftTensor *t)
{
	TRY(check_info(role, info, t, c->status));
	for (uint32_t k = 0; k < info->rank; k++)
		if (t->shape[k] != shape[k])
			return BAD(c->status,
				   "%s %s: dimension %u is %lld, expected %lld as found by sizes",
				   role, info->name, k, (long long)t->shape[k],
				   (long long)shape[k]);
	return WEFT_OK;
}

/* Whether `run` finds out the shape: an extent of it is not known yet. */
static int is_found(const WeftTensorInfo *info, const int64_t *shape)
{
	uint32_t k = 0;
	while (k < info->rank && shape[k] >= 0)
		k++;
	return k < info->rank;
}

static int by_first_byte(const void *a, const void *b)
{
	const Range *x = *(const Range *const *)a, *y = *(const Range *const *)b;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Checks that outputs overlap neither inputs, but for those they replace and stand exactly at, nor
 * each other nor the workspace, and inputs not the workspace. A step for a thousand parameters has
 * thousands of tensors, so their ranges are sorted. */
static int check_overlap(const Call *c, const WeftTensor *x, const WeftTensor *y, const void *work)
{
	const WeftEntry *e = c->e;
	const uint32_t nx = e->ninput, n = 1 + nx + e->noutput;
	Range r[n], *in = r + 1, *out = in + nx;
	const Range none = {0, 0}, *p[n], *last = &none; /* last: the output before, in order */
	uintptr_t inputs = 0;                            /* the end of inputs before */
	uint32_t m = 0;
	r[0] = (Range){(uintptr_t)work, (uintptr_t)work + c->sizes->workspace_bytes};
	for (uint32_t k = 0; k < nx; k++) {
		in[k] = range_of(&x[k]);
		if (overlap(in[k], r[0]))
			return weft_fail(c->status, WEFT_ERR_ARGUMENT,
					 "input %s overlaps the workspace", e->input[k].name);
		if (!tensor_row_major(&x[k])) /* copied before an output is written */
			in[k].end = in[k].first;
	}
	for (uint32_t k = 0; k < e->noutput; k++) {
		const int32_t d = e->output[k].donates;
		out[k] = y[k].data ? range_of(&y[k]) : none;
		if (d >= 0 && in[d].first == out[k].first && in[d].end == out[k].end)
			in[d].end = in[d].first;
	}
	for (uint32_t k = 0; k < n; k++)
		if (r[k].first != r[k].end)
			p[m++] = &r[k];
	qsort(p, m, sizeof *p, by_first_byte);
	for (uint32_t k = 0; k < m; k++) {
		const Range *t = p[k] < out ? last : p[k];
		if (p[k]->first < last->end || (t == p[k] && t->first < inputs))
			return weft_fail(c->status, WEFT_ERR_ARGUMENT,
					 "output %s overlaps another tensor or the workspace",
					 e->output[t - out].name);
		inputs = p[k] < out && p[k]->end > inputs ? p[k]->end : inputs;
		last = t;
	}
	return WEFT_OK;
}

int32_t threads_wanted(const WeftInstance *in, const WeftContext *ctx, const WeftThreads **t)
{
	*t = ctx->threads ? ctx->threads : threads_default();
	int32_t n = ctx->nthreads > 0 ? ctx->nthreads : (*t)->nthreads;
	return n > 0 ? n : in->ncpu;
}

#ifdef WEFT_DEVICES
static int call_there(Call *, const WeftTensor *x, WeftTensor *y, void *workspace,
		      const WeftContext *);
#endif

static int call(Call *c, const WeftTensor *x, WeftTensor *y, void *workspace,
		const WeftContext *ctx)
{
#ifdef WEFT_DEVICES
	if (c->in->driver && !c->device)
		return call_there(c, x, y, workspace, ctx);
#endif
	const WeftEntry *e = c->e;
	const WeftThreads *t;
	void *buf[e->ninput + e->noutput + 3 + e->nroom], **b = buf;
	uint64_t held[e->noutput + e->nroom + 1];
	char *base = (char *)(((uintptr_t)workspace + ALIGN - 1) / ALIGN * ALIGN);
	c->work = base + (c->sizes->slot[e->nslot - 1] + ALIGN - 1) / ALIGN * ALIGN;
	c->work_end = c->work + (c->sizes->workspace_bytes -
				 WEFT_WORKSPACE_BYTES(c->sizes->slot[e->nslot - 1]));
	const int64_t *shape = c->sizes->slot + e->nslot;
	for (uint32_t i = 0; i < e->ninput; shape += e->input[i++].rank)
		TRY(check_shape(c, "input", &e->input[i], shape, &x[i]));
	shape = c->sizes->slot + e->nsymbol;
	for (uint32_t i = 0; i < e->noutput; shape += e->output[i++].rank)
		TRY(is_found(&e->output[i], shape)
			    ? check_info("output", &e->output[i], &y[i], c->status)
			    : check_shape(c, "output", &e->output[i], shape, &y[i]));
	TRY(check_overlap(c, x, y, workspace)); /* before inputs are copied into the workspace */
	for (uint32_t i = 0; i < e->ninput; i++)
		TRY(bind_data(c, "input", &e->input[i], &x[i], b++));
	shape = c->sizes->slot + e->nsymbol;
	for (uint32_t i = 0; i < e->noutput; shape += e->output[i++].rank, b++)
		if (y[i].data || !is_found(&e->output[i], shape))
			TRY(bind_data(c, "output", &e->output[i], &y[i], b));
	b[0] = (void *)(uintptr_t)c->constants->weights;
	b[1] = base;
	b[2] = c->state;
	int32_t n = threads_wanted(c->in, ctx, &t);
	WeftRegion r = {.entry = e,
			.buf = buf,
			.room = buf,
			.output = y,
			.context = ctx,
			.left = ctx->memory_limit - c->sizes->workspace_bytes,
			.held = memset(held, 0, sizeof held),
			.slot = c->sizes->slot,
			.profile = ctx->profile,
			.profile_user = ctx->profile_user,
			.status = c->status,
			.share_all = ctx->flags & WEFT_SHARE_ALL,
			.watched = ctx->cancel || ctx->deadline,
			.unsaved = (e->flags & WEFT_ENTRY_WRITES_STATE) &&
				   !(e->flags & WEFT_ENTRY_CANCELLABLE),
			.state = c->state,
			.state_bytes = c->state ? c->in->model->state_bytes : 0};
#ifdef WEFT_DEVICES
	r.device = c->device;
	n = c->device ? 1 : n;
	b[0] = c->device ? c->constants->there : b[0];
#endif
	int code = region_run(&r, t, n);
	if (r.leave)
		r.leave(&r, code);
	return code;
}

#ifdef WEFT_DEVICES
/* Makes the call with tensors and workspace on the device. */
static int call_there(Call *c, const WeftTensor *x, WeftTensor *y, void *workspace,
		      const WeftContext *ctx)
{
	Staged staged[c->e->ninput + c->e->noutput + 1];
	DeviceCall device;
	TRY(device_begin(&device, c->in->driver, ctx, staged, c->sizes->workspace_bytes, &workspace,
			 c->flight, c->status));
	c->device = &device;
	device.graphs = device.aware && !ctx->profile ? c->in->graphs : NULL;
	return device_end(&device, call(c, x, y, workspace, ctx), c->status);
}
#endif

static int use_begin(WeftInstance *in, const WeftEntry *e,
		     __attribute__((unused)) const WeftContext *ctx, Use *u, WeftStatus *status)
{
	u->as = e->flags & WEFT_ENTRY_WRITES_STATE  ? STATE_WRITE
		: e->flags & WEFT_ENTRY_READS_STATE ? STATE_READ
						    : 0;
#ifdef WEFT_DEVICES
	u->flight = NULL;
	if (in->flights && ctx->stream && ctx->device.type == in->driver->type)
		TRY(flight_begin(in, e, ctx->stream, u, status));
	else
#endif
		if (u->as)
		TRY(instance_enter(in, (StateUse)u->as, status));
	u->weights = in->model->replaceable ? current_begin(&in->weights) : 0;
	u->state = u->as ? current_begin(&in->state) : 0;
	return WEFT_OK;
}

static void use_end(WeftInstance *in, const Use *u)
{
#ifdef WEFT_DEVICES
	if (u->flight) {
		flight_end(in, u);
		return;
	}
#endif
	use_drop(in, u);
	if (u->as)
		instance_leave(in, (StateUse)u->as);
}

static int run(WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs,
	       WeftTensor *outputs, void *workspace, const WeftContext *given, WeftStatus *status)
{
	WeftContext ctx;
	status_clear(status);
	if (!in || !sizes || !workspace || sizes->entry >= in->model->nentry)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "run: no %s",
				 !in         ? "instance given"
				 : !sizes    ? "sizes given"
				 : workspace ? "such entry"
					     : "workspace given");
	const WeftEntry *e = in->model->entry[sizes->entry];
	if (sizes->nslot != e->nslot)
		return weft_fail(status, WEFT_ERR_ABI, "run: sizes of another model");
	TRY(take_context(&ctx, given, "run", status));
	if (ctx.device.type && ctx.device.type != WEFT_CPU && !device_of(in))
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "run: the model is for the processor, not for a device of type %d",
				 (int)ctx.device.type);
	if (ctx.memory_limit && sizes->workspace_bytes > ctx.memory_limit)
		return weft_fail(status, WEFT_ERR_MEMORY,
				 "run: a workspace of %llu bytes, and the call's limit is %llu",
				 (unsigned long long)sizes->workspace_bytes,
				 (unsigned long long)ctx.memory_limit);
	if ((!inputs && e->ninput) || (!outputs && e->noutput))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "run: no %s given",
				 inputs || !e->ninput ? "outputs" : "inputs");
	Call c = {.in = in,
		  .e = e,
		  .sizes = sizes,
		  .strict = ctx.flags & WEFT_STRICT,
		  .status = status};
	Use use;
	TRY(use_begin(in, e, &ctx, &use, status));
	c.constants = current_at(&in->weights, use.weights);
	c.state = use.as ? current_at(&in->state, use.state) : NULL;
#ifdef WEFT_DEVICES
	c.flight = use.flight;
#endif
	int code = call(&c, inputs, outputs, workspace, &ctx);
	use_end(in, &use);
	return code;
}

static void count(uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit((_Atomic uint64_t *)counter, n, memory_order_relaxed);
}

int weft_rt_run(WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs,
		WeftTensor *outputs, void *workspace, const WeftContext *given, WeftStatus *status)
{
	WeftCounters *c =
		given && WEFT_HAS(given->size, WeftContext, counters) ? given->counters : NULL;
	if (!c)
		return run(in, sizes, inputs, outputs, workspace, given, status);
	const int64_t begin = region_now();
	count(&c->busy, 1);
	const int code = run(in, sizes, inputs, outputs, workspace, given, status);
	count(&c->busy, (uint64_t)-1);
	count(&c->ns, (uint64_t)(region_now() - begin));
	count(&c->failed, code != WEFT_OK);
	count(&c->calls, 1);
	return code;
}
