/* What changes an instance: its state and its weights. Only models that have state or replaceable weights carry this. */
#include "instance_priv.h"
#include "relayout.h"

#include <stdlib.h>
#include <string.h>

static int same_shape(const WeftTensor *t, WeftDType dtype, uint32_t rank, const int64_t *dim)
{
	int same = t->ndim == (int32_t)rank && t->dtype.code == dtype.code && t->dtype.bits == dtype.bits &&
		   t->device.type == WEFT_CPU;
	for (uint32_t k = 0; same && k < rank; k++)
		same = t->shape[k] == dim[k];
	return same && tensor_row_major(t) && (t->data || tensor_bytes(t) == 0);
}

static void *data_of(const WeftTensor *t)
{
	return (char *)t->data + t->byte_offset;
}

/* ---- state ---- */

/* The tensor is one for state k. */
static int check_state(WeftInstance *in, uint32_t k, const WeftTensor *t, WeftStatus *status)
{
	int64_t dim[64];
	status_clear(status);
	if (!in || !t || k >= in->model->nstate)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state: a null pointer or no such state");
	const WeftTensorInfo *s = &in->model->state[k];
	for (uint32_t d = 0; d < s->rank; d++)
		dim[d] = s->dim[d].value;
	if (!same_shape(t, s->dtype, s->rank, dim))
		return weft_fail(status, WEFT_ERR_INPUT, "state %s: other dtype, shape or layout than the model's", s->name);
	return WEFT_OK;
}

int weft_rt_state_get(WeftInstance *in, uint32_t k, const WeftTensor *to, WeftStatus *status)
{
	TRY(check_state(in, k, to, status));
	TRY(instance_enter(in, false, status));
	if (tensor_bytes(to))
		memcpy(data_of(to), in->state + in->model->state[k].offset, (size_t)tensor_bytes(to));
	instance_leave(in, false);
	return WEFT_OK;
}

int weft_rt_state_set(WeftInstance *in, uint32_t k, const WeftTensor *from, WeftStatus *status)
{
	TRY(check_state(in, k, from, status));
	TRY(instance_enter(in, true, status));
	if (tensor_bytes(from))
		memcpy(in->state + in->model->state[k].offset, data_of(from), (size_t)tensor_bytes(from));
	instance_leave(in, true);
	return WEFT_OK;
}

int weft_rt_state_reset(WeftInstance *in, WeftStatus *status)
{
	status_clear(status);
	if (!in)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "state_reset: a null pointer");
	TRY(instance_enter(in, true, status));
	if (in->state)
		state_begin(in);
	instance_leave(in, true);
	return WEFT_OK;
}

/* ---- weights ---- */

/* What a thread takes at once: a part of a parameter, which stays in a cache on its way. */
enum { PART = 1 << 20 };

typedef struct {
	const WeftModel *m;
	const char *from; /* the section in use */
	char *to;
	const WeftTensor **value; /* by parameter; NULL: as it was */
	_Atomic uint64_t next;    /* part nobody has taken, of all parameters */
} Build;

/* By parameter its new value. */
static int match(Build *b, uint32_t n, const char *const *names, const WeftTensor *values, WeftStatus *status)
{
	for (uint32_t i = 0; i < n; i++) {
		bool found = false;
		for (uint32_t k = 0; k < b->m->nparam; k++) {
			const WeftParamInfo *p = &b->m->param[k];
			if (strcmp(p->name, names[i]) || !*p->name)
				continue;
			found = true;
			b->value[k] = &values[i];
			if (!same_shape(&values[i], p->dtype, p->rank, p->dim))
				return weft_fail(status, WEFT_ERR_INPUT, "weight %s: other dtype, shape or layout than the model's",
						 names[i]);
		}
		if (!found)
			return weft_fail(status, WEFT_ERR_ARGUMENT, "the model has no weight %s", names[i]);
	}
	return WEFT_OK;
}

static uint64_t parts_of(const WeftParamInfo *p)
{
	return (p->bytes + PART - 1) / PART;
}

static void build_part(const Build *b, uint32_t k, uint64_t part)
{
	const WeftParamInfo *p = &b->m->param[k];
	const WeftTensor *v = b->value[k];
	uint64_t begin = part * PART, n = p->bytes - begin < PART ? p->bytes - begin : PART;
	char *to = b->to + p->offset + begin;
	if (v) {
		const size_t elem = dtype_bytes(p->dtype);
		const WeftPacking q = weft_packing(data_of(v), elem, p->rank, p->dim, p->nlayout, p->layout);
		const uint64_t first = begin / elem, most = q.count > first ? q.count - first : 0, take = n / elem;
		weft_pack_part(&q, first, take < most ? take : most, to);
	} else {
		memcpy(to, b->from + p->offset + begin, (size_t)n);
	}
	if (begin + n == p->bytes)
		memset(to + n, 0, (size_t)(-p->bytes % 64)); /* up to the next one */
}

static void build_parts(void *arg, int32_t thread, int32_t nthreads)
{
	Build *b = arg;
	uint64_t before = 0; /* parts of the parameters before k */
	(void)thread, (void)nthreads;
	for (uint32_t k = 0; k < b->m->nparam;) {
		uint64_t part = atomic_fetch_add(&b->next, 1);
		for (; k < b->m->nparam && part - before >= parts_of(&b->m->param[k]); k++)
			before += parts_of(&b->m->param[k]);
		if (k < b->m->nparam)
			build_part(b, k, part - before);
	}
}

/* The instance is this call's alone. */
static int build(WeftInstance *in, Build *b, const WeftContext *ctx, WeftStatus *status)
{
	const WeftThreads *t;
	Constants *c = calloc(1, sizeof *c);
	char *section = c ? section_alloc(b->m->weights_bytes) : NULL;
	if (!section) {
		free(c);
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	}
	*c = (Constants){.instances = 1, .weights = section, .built = section};
	b->from = in->constants->weights;
	b->to = section;
	for (uint32_t k = 0; k < b->m->nstate; k++)
		if (b->m->state[k].init != WEFT_ZEROS)
			memcpy(section + b->m->state[k].init, b->from + b->m->state[k].init, (size_t)b->m->state[k].bytes);
	int32_t n = threads_wanted(in, ctx, &t);
	if (n > 1)
		t->parallel(t->user, n, build_parts, b);
	else
		build_parts(b, 0, 1);
	constants_replace(in, c);
	return WEFT_OK;
}

int weft_rt_set_weights(WeftInstance *in, uint32_t n, const char *const *names, const WeftTensor *values,
			const WeftContext *given, WeftStatus *status)
{
	WeftContext ctx;
	status_clear(status);
	if (!in || (n && (!names || !values)))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "set_weights: a null pointer");
	if (!take_struct(&ctx, sizeof ctx, given, given ? given->size : 0))
		return weft_fail(status, WEFT_ERR_ABI, "set_weights: WeftContext.size is not set");
	if (!in->model->replaceable)
		return weft_rt_no_weights(in, n, names, values, given, status);
	Build b = {.m = in->model, .value = calloc(in->model->nparam + 1, sizeof *b.value)};
	if (!b.value)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	int code = match(&b, n, names, values, status);
	code = code == WEFT_OK ? instance_enter(in, true, status) : code;
	if (code == WEFT_OK) {
		code = build(in, &b, &ctx, status);
		instance_leave(in, true);
	}
	free(b.value);
	return code;
}
