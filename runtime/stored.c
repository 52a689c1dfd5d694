/* Values of the weight section as the model's file has them: row-major. Only models that have state
 * or replaceable weights carry this. */
#include "instance_priv.h"

#include <string.h>

SMALL bool is_called(const char *name, const char *aliases, const char *wanted)
{
	size_t n = strlen(wanted);
	if (!*name || !strcmp(name, wanted))
		return *name;
	for (const char *at = aliases, *end; at && (end = strchr(at, '\n')); at = end + 1)
		if ((size_t)(end - at) == n && !memcmp(at, wanted, n))
			return true;
	return false;
}

SMALL int check_tensor(const Expected *x, const WeftTensor *t, WeftStatus *status)
{
	int64_t stride = 1;
	TRY(check_kind(x, t, status));
	for (uint32_t k = 0; k < x->rank; k++)
		if (t->shape[k] != x->dim[k])
			return weft_fail(status, WEFT_ERR_INPUT,
					 "%s %s: dimension %u is %lld, expected %lld", x->role,
					 x->name, (unsigned)k, (long long)t->shape[k],
					 (long long)x->dim[k]);
	for (uint32_t k = x->rank; k-- > 0 && !tensor_row_major(t); stride *= x->dim[k])
		if (t->shape[k] != 1 && t->strides[k] != stride)
			return weft_fail(status, WEFT_ERR_INPUT,
					 "%s %s: the stride of dimension %u is %lld, expected "
					 "%lld, row-major",
					 x->role, x->name, (unsigned)k, (long long)t->strides[k],
					 (long long)stride);
	return t->data || tensor_bytes(t) == 0
		       ? WEFT_OK
		       : weft_fail(status, WEFT_ERR_INPUT, "%s %s has no data", x->role, x->name);
}

/* Copies a parameter from its place, packed as `is` says, into row-major order. */
static void unpack(const WeftParamInfo *is, const char *from, uint64_t bytes, char *to)
{
	const size_t elem = is->nlayout ? dtype_bytes(is->dtype) : (size_t)bytes;
	int64_t index[is->rank + 1];
	memset(index, 0, sizeof index);
	for (uint64_t done = 0; done < bytes; done += elem) {
		int64_t at = 0;
		for (uint32_t d = 0; d < is->nlayout; d++) {
			const WeftLayoutDim *l = &is->layout[d];
			at = at * l->padded + index[l->axis] / l->divisor % l->extent;
		}
		memcpy(to + done, from + (size_t)at * elem, elem);
		for (uint32_t d = is->rank; d-- > 0 && ++index[d] == is->dim[d];)
			index[d] = 0;
	}
}

/* A weight or state of that name: what the model's file says of it, and where it is stored. */
typedef struct {
	WeftParamInfo info;
	const WeftParamInfo *at; /* NULL: nowhere */
	int64_t dim[64];
} Found;

SMALL static bool find_state(const WeftModel *m, const char *name, Found *f)
{
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *s = &m->state[k];
		if (!is_called(s->name, s->aliases, name))
			continue;
		for (uint32_t d = 0; d < s->rank; d++)
			f->dim[d] = s->dim[d].value;
		f->info = (WeftParamInfo){
			.dtype = s->dtype, .rank = s->rank, .dim = f->dim, .offset = s->init};
		f->at = &f->info;
		return true;
	}
	return false;
}

SMALL static bool find_weight(const WeftModel *m, const char *name, Found *f)
{
	const WeftParamInfo *p = m->recipes ? m->source : m->param;
	for (uint32_t k = 0; k < (m->recipes ? m->nsource : m->nparam); k++, p++) {
		if (!is_called(p->name, p->aliases, name))
			continue;
		f->info = *p;
		f->at = m->recipes ? NULL : p;
		for (uint32_t i = 0; m->recipes && i < m->nparam; i++)
			if (m->recipes->from[i].source == (int32_t)k)
				f->at = &m->param[i];
		return true;
	}
	return false;
}

SMALL static int get_one(const WeftModel *m, const char *weights, const char *name,
			 const WeftTensor *to, bool pass_over, WeftStatus *status)
{
	Found f;
	if (!find_state(m, name, &f) && !find_weight(m, name, &f))
		return pass_over ? WEFT_OK
				 : weft_fail(status, WEFT_ERR_ARGUMENT,
					     "the model has no weight %s", name);
	if (!f.at)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "weight %s is not stored: only what is computed from it is", name);
	TRY(check_tensor(&(Expected){"weight", name, f.info.dtype, f.info.rank, f.info.dim}, to,
			 status));
	char *data = data_of(to);
	const uint64_t bytes = tensor_bytes(to);
	if (f.at->offset != WEFT_ZEROS)
		unpack(f.at, weights + f.at->offset, bytes, data);
	else if (bytes)
		memset(data, 0, (size_t)bytes);
	return WEFT_OK;
}

SMALL int weft_rt_get_weights(WeftInstance *in, uint32_t n, const char *const *names,
			      const WeftTensor *values, const WeftContext *given,
			      WeftStatus *status)
{
	int code = WEFT_OK;
	status_clear(status);
	if (!in || (n && (!names || !values)))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "get_weights: no %s given",
				 !in     ? "instance"
				 : names ? "values"
					 : "names");
	if (given && given->size < 2 * sizeof(uint32_t))
		return weft_fail(status, WEFT_ERR_ABI, "get_weights: WeftContext.size is not set");
	const uint32_t w = current_begin(&in->weights);
	const char *weights = ((const Constants *)current_at(&in->weights, w))->weights;
	for (uint32_t k = 0; k < n && code == WEFT_OK; k++)
		code = names[k] ? get_one(in->model, weights, names[k], &values[k],
					  given && given->flags & WEFT_IGNORE_UNKNOWN, status)
				: weft_fail(status, WEFT_ERR_ARGUMENT,
					    "get_weights: name %u is a null pointer", (unsigned)k);
	current_end(in, &in->weights, w);
	return code;
}
