/* A compiled model in three lines: open, make room, run.
 *
 *     const WeftModel *weft_model(void);   (declared by the program; the model defines it)
 *
 *     WeftCall c;
 *     WeftTensor x = weft_tensor(data, WEFT_F32, 2, shape);
 *     if (weft_call_open(&c, weft_model(), 0) || weft_call_run(&c, &x))
 *             return puts(c.status.message), 1;
 *     ... c.output[0].data, c.output[0].shape ...
 *     weft_call_close(&c);
 *
 * A WeftCall has an instance, the memory of its outputs and a workspace, which grow with the
 * inputs. One thread at a time uses it. Programs that count allocations, choose threads or share an
 * instance use the functions of weft_model.h, which are all that is called here. */
#ifndef WEFT_CALL_H
#define WEFT_CALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors and names ---- */

/* For weft_tensor. */
#define WEFT_F32     weft_dtype(WEFT_FLOAT, 32)
#define WEFT_F64     weft_dtype(WEFT_FLOAT, 64)
#define WEFT_F16     weft_dtype(WEFT_FLOAT, 16)
#define WEFT_BF16    weft_dtype(WEFT_BFLOAT, 16)
#define WEFT_I64     weft_dtype(WEFT_INT, 64)
#define WEFT_I32     weft_dtype(WEFT_INT, 32)
#define WEFT_I8      weft_dtype(WEFT_INT, 8)
#define WEFT_U8      weft_dtype(WEFT_UINT, 8)
#define WEFT_BOOLEAN weft_dtype(WEFT_BOOL, 8)

/* The dtype of a code (WEFT_FLOAT, ...) and a number of bits, with one lane. */
static inline WeftDType weft_dtype(int code, int bits)
{
	WeftDType d;
	d.code = (uint8_t)code;
	d.bits = (uint8_t)bits;
	d.lanes = 1;
	return d;
}

/* A row-major tensor in the processor's memory, of extents shape[rank]. data and shape are referred
 * to and must stay as long as the tensor is used; shape may be NULL if rank is 0. */
static inline WeftTensor weft_tensor(const void *data, WeftDType dtype, int32_t rank,
				     const int64_t *shape)
{
	WeftTensor t;
	memset(&t, 0, sizeof t);
	t.data = (void *)(uintptr_t)data;
	t.device.type = WEFT_CPU;
	t.dtype = dtype;
	t.ndim = rank;
	t.shape = (int64_t *)(uintptr_t)shape;
	return t;
}

/* The index of the entry of that name; -1 if there is none, or an argument is NULL. */
static inline int32_t weft_entry_index(const WeftModel *m, const char *name)
{
	for (uint32_t k = 0; m && name && k < m->nentry; k++)
		if (!strcmp(weft_entry(m, k)->name, name))
			return (int32_t)k;
	return -1;
}

/* The index of the input of that name in an entry; -1 if there is none, or an argument is NULL. */
static inline int32_t weft_input_index(const WeftModel *m, const WeftEntry *e, const char *name)
{
	for (uint32_t k = 0; m && e && name && k < e->ninput; k++)
		if (!strcmp(weft_input(m, e, k)->name, name))
			return (int32_t)k;
	return -1;
}

/* The index of the output of that name in an entry; -1 if there is none, or an argument is NULL. */
static inline int32_t weft_output_index(const WeftModel *m, const WeftEntry *e, const char *name)
{
	for (uint32_t k = 0; m && e && name && k < e->noutput; k++)
		if (!strcmp(weft_output(m, e, k)->name, name))
			return (int32_t)k;
	return -1;
}

/* The index of the state of that name in the model; -1 if there is none, or an argument is NULL. */
static inline int32_t weft_state_index(const WeftModel *m, const char *name)
{
	for (uint32_t k = 0; m && name && k < m->nstate; k++)
		if (!strcmp(weft_state_info(m, k)->name, name))
			return (int32_t)k;
	return -1;
}

/* ---- a call ---- */

typedef struct {
	const WeftModel *model;
	const WeftEntry *entry;
	uint32_t number;        /* of the entry */
	WeftInstance *instance; /* NULL: not open */
	WeftTensor *output;     /* entry->noutput, of the last run, until the next one */
	WeftStatus status;      /* of the last function; the message of a failure */
	const WeftContext *context; /* of the runs that follow; NULL, as after weft_call_open:
				       default options */
	/* Private. */
	WeftSizes *sizes;
	void *work;
	uint64_t work_bytes;
	int shares; /* the instance is another call's */
} WeftCall;

/* Private: sets code and message of c->status. Returns code. */
static inline int weft_call_fail(WeftCall *c, int code, const char *why)
{
	c->status.code = code;
	snprintf(c->status.message, sizeof c->status.message, "%s", why);
	return code;
}

/* Private: frees the outputs of the last run. */
static inline void weft_call_drop(WeftCall *c)
{
	for (uint32_t k = 0; c->output && k < c->entry->noutput; k++) {
		free(c->output[k].data);
		free(c->output[k].shape);
		memset(&c->output[k], 0, sizeof c->output[k]);
	}
}

/* Closes the call: frees its outputs, memory and instance, and sets *c to zeros. May be called
 * after any failure of weft_call_open, and twice; c may be NULL. */
static inline void weft_call_close(WeftCall *c)
{
	if (!c || !c->instance)
		return;
	weft_call_drop(c);
	free(c->output);
	free(c->sizes);
	free(c->work);
	if (!c->shares)
		c->model->close(c->instance);
	memset(c, 0, sizeof *c);
}

/* Private: opens entry number `entry` of a model in the instance, or in one of its own if that is
 * NULL. */
static inline int weft_call_open_in(WeftCall *c, const WeftModel *m, uint32_t entry,
				    WeftInstance *in)
{
	memset(c, 0, sizeof *c);
	if (!weft_entry(m, entry))
		return weft_call_fail(c, WEFT_ERR_ARGUMENT,
				      "the model has no entry of this number");
	c->model = m;
	c->number = entry;
	c->entry = weft_entry(m, entry);
	c->instance = in;
	c->shares = in != NULL;
	if (!in && m->open(m, NULL, &c->instance, &c->status))
		return c->instance = NULL, c->status.code;
	c->output = (WeftTensor *)calloc(c->entry->noutput + 1, sizeof *c->output);
	c->sizes = (WeftSizes *)malloc(c->entry->sizes_bytes);
	if (c->output && c->sizes)
		return WEFT_OK;
	weft_call_close(c);
	return weft_call_fail(c, WEFT_ERR_MEMORY, "out of memory");
}

/* Opens entry number `entry` of the model with weights of its own or the file beside it
 * (weft_model.h, open). What *c held before is not freed: it may be uninitialised. Returns WEFT_OK,
 * or an error code with the reason in c->status.message; nothing is open then. c NULL gives
 * WEFT_ERR_ARGUMENT, m NULL WEFT_ERR_ABI. */
static inline int weft_call_open(WeftCall *c, const WeftModel *m, uint32_t entry)
{
	const char *wrong = weft_model_check(m);
	if (!c)
		return WEFT_ERR_ARGUMENT;
	memset(c, 0, sizeof *c);
	if (wrong)
		return weft_call_fail(c, WEFT_ERR_ABI, wrong);
	return weft_call_open_in(c, m, entry, NULL);
}

/* Opens another entry, by name, of the instance of `of`, whose state it shares: `eval` of a model
 * that trains. Is closed before `of`; the two run one after the other. Returns as
 * weft_call_open. */
static inline int weft_call_open_beside(WeftCall *c, const WeftCall *of, const char *name)
{
	const int32_t entry = of && of->instance ? weft_entry_index(of->model, name) : -1;
	if (!c)
		return WEFT_ERR_ARGUMENT;
	memset(c, 0, sizeof *c);
	if (entry < 0)
		return weft_call_fail(c, WEFT_ERR_ARGUMENT,
				      "the model has no entry of this name, or is not open");
	return weft_call_open_in(c, of->model, (uint32_t)entry, of->instance);
}

/* Private: allocates output k, of the shape that `sizes` found. An output whose size depends on
 * data gets its memory from `run`. Returns WEFT_OK or an error code. */
static inline int weft_call_room(WeftCall *c, uint32_t k)
{
	const WeftTensorInfo *info = weft_output(c->model, c->entry, k);
	const int64_t *shape = weft_output_shape(c->model, c->entry, c->sizes, k);
	int64_t *copy = (int64_t *)calloc(info->rank + 1, sizeof *copy);
	uint64_t bytes = info->dtype.bits / 8;
	int known = 1;
	if (!copy)
		return weft_call_fail(c, WEFT_ERR_MEMORY, "out of memory");
	for (uint32_t d = 0; d < info->rank; d++) {
		copy[d] = shape[d];
		known &= shape[d] >= 0;
		bytes *= shape[d] > 0 ? (uint64_t)shape[d] : 0;
	}
	c->output[k] = weft_tensor(NULL, info->dtype, (int32_t)info->rank, copy);
	if (known && !(c->output[k].data = aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64)))
		return weft_call_fail(c, WEFT_ERR_MEMORY, "out of memory");
	return WEFT_OK;
}

/* Runs the entry on inputs[c->entry->ninput], in the model's order. Sets c->output[] to the
 * outputs, in memory of c until the next run or weft_call_close; those of the run before are freed.
 * Returns WEFT_OK, or an error code with the reason in c->status.message; after an error there are
 * no outputs, and c may be used again. */
static inline int weft_call_run(WeftCall *c, const WeftTensor *inputs)
{
	if (!c)
		return WEFT_ERR_ARGUMENT;
	if (!c->instance)
		return weft_call_fail(c, WEFT_ERR_ARGUMENT, "the call is not open");
	if (!inputs && c->entry->ninput)
		return weft_call_fail(c, WEFT_ERR_ARGUMENT, "the inputs are missing: NULL");
	weft_call_drop(c);
	int code = c->model->sizes(c->instance, c->number, inputs, c->sizes, &c->status);
	for (uint32_t k = 0; !code && k < c->entry->noutput; k++)
		code = weft_call_room(c, k);
	if (!code && c->sizes->workspace_bytes > c->work_bytes) {
		free(c->work);
		c->work = malloc((size_t)c->sizes->workspace_bytes);
		c->work_bytes = c->work ? c->sizes->workspace_bytes : 0;
		if (!c->work)
			code = weft_call_fail(c, WEFT_ERR_MEMORY, "out of memory");
	}
	if (!code)
		code = c->model->run(c->instance, c->sizes, inputs, c->output, c->work, c->context,
				     &c->status);
	if (code)
		weft_call_drop(c);
	return code;
}

#ifdef __cplusplus
}
#endif
#endif
