/* Training: the tensors that a forward entry saves for its backward entry (docs/transforms.md), in
 * one block of memory instead of a tensor for each.
 *
 *     uint64_t bytes = weft_saved_bytes(m, forward, sizes);         -- sizes: filled in by m->sizes
 *     void *block = aligned_alloc(64, bytes);
 *     why = weft_saved_outputs(m, forward, sizes, block, bytes, y); -- sets y[k] of each saved.K
 *     m->run(in, sizes, x, y, work, NULL, &status);
 *     ...                                                           -- any calls in between
 *     why = weft_saved_inputs(m, backward, block, bytes, z);        -- sets z[k] of each saved.K
 *     m->sizes(in, 1, z, ...), m->run(in, ..., z, g, ...);
 *
 * Forward writes into the block and backward reads from it; nothing is copied. A block is plain
 * data: the header (below), then each tensor at a multiple of 64 bytes. It may be copied, stored,
 * and used on another machine of the same byte order.
 *
 * Wrong blocks are refused: a block that is truncated or has other tensors by weft_saved_inputs, a
 * block of another model with the same types by `run`, a block of other sizes by `sizes`. */
#ifndef WEFT_SAVED_H
#define WEFT_SAVED_H

#include <string.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_SAVED_MAGIC INT64_C(0x3130445641535457) /* "WTSAVD01" */
enum { WEFT_SAVED_ALIGN = 64, WEFT_SAVED_HEAD = 3, WEFT_SAVED_MOST_RANK = 64 };

/* The header of a block is 64-bit numbers: WEFT_SAVED_MAGIC, the bytes of the block, the number of
 * tensors; for each tensor its offset, its type (rank, bits, code, a byte each) and its extents. */

/* Private. Returns 1 if the name is saved.0, saved.1, ..., else 0; t may be NULL. */
static inline int weft_saved_is(const WeftTensorInfo *t)
{
	const char *p = t ? t->name : NULL;
	if (!p || strncmp(p, "saved.", 6) || !p[6])
		return 0;
	for (p += 6; *p; p++)
		if (*p < '0' || *p > '9')
			return 0;
	return 1;
}

/* Private. Returns the type of a tensor as one number of the header. */
static inline int64_t weft_saved_type(const WeftTensorInfo *t)
{
	return (int64_t)t->rank << 16 | (int64_t)t->dtype.bits << 8 | t->dtype.code;
}

/* Private. Returns n rounded up to a multiple of 64. */
static inline uint64_t weft_saved_round(uint64_t n)
{
	return (n + WEFT_SAVED_ALIGN - 1) / WEFT_SAVED_ALIGN * WEFT_SAVED_ALIGN;
}

/* Private. Sets *bytes to the bytes of a tensor. Returns 1, or 0 if an extent is negative or the
 * size overflows. */
static inline int weft_saved_size(WeftDType d, uint32_t rank, const int64_t *shape, uint64_t *bytes)
{
	uint64_t n = d.bits / 8;
	for (uint32_t k = 0; k < rank; k++) {
		if (shape[k] < 0 || (shape[k] > 0 && n > (UINT64_MAX >> 8) / (uint64_t)shape[k]))
			return 0;
		n *= (uint64_t)shape[k];
	}
	*bytes = n;
	return 1;
}

/* Private. Returns the number of 64-bit numbers in the header of a block of the forward entry e;
 * sets *count to the number of its tensors. */
static inline uint64_t weft_saved_head(const WeftModel *m, const WeftEntry *e, int64_t *count)
{
	uint64_t n = WEFT_SAVED_HEAD;
	*count = 0;
	for (uint32_t k = 0; k < e->noutput; k++)
		if (weft_saved_is(weft_output(m, e, k))) {
			n += 2 + weft_output(m, e, k)->rank;
			++*count;
		}
	return n;
}

/* Returns the bytes of a block for outputs of the sizes s, which `sizes` of the forward entry
 * filled in; a multiple of 64. Returns 0 if an argument is NULL, if the entry saves nothing, or if
 * an extent is negative or too large. */
static inline uint64_t weft_saved_bytes(const WeftModel *m, const WeftEntry *forward,
					const WeftSizes *s)
{
	int64_t count;
	if (!m || !forward || !s)
		return 0;
	uint64_t n = weft_saved_round(8 * weft_saved_head(m, forward, &count));
	for (uint32_t k = 0; k < forward->noutput; k++) {
		const WeftTensorInfo *t = weft_output(m, forward, k);
		uint64_t bytes;
		if (!weft_saved_is(t))
			continue;
		if (!weft_saved_size(t->dtype, t->rank, weft_output_shape(m, forward, s, k),
				     &bytes) ||
		    n > UINT64_MAX >> 1)
			return 0;
		n += weft_saved_round(bytes);
	}
	return count ? n : 0;
}

/* Writes the header into the block, and sets outputs[k] for each output k of forward that is a
 * saved.K: its memory and its shape are in the block. Other outputs stay. block: `bytes` bytes, at
 * least weft_saved_bytes, aligned to 8 (64 is best). Returns NULL, or a sentence that says what is
 * wrong. */
static inline const char *weft_saved_outputs(const WeftModel *m, const WeftEntry *forward,
					     const WeftSizes *s, void *block, uint64_t bytes,
					     WeftTensor *outputs)
{
	int64_t *head = (int64_t *)block, count;
	if (!m || !forward || !s || !outputs)
		return "the model, the entry, its sizes or the outputs are missing: NULL";
	uint64_t need = weft_saved_bytes(m, forward, s),
		 at = weft_saved_round(8 * weft_saved_head(m, forward, &count));
	if (!need)
		return "the entry saves nothing";
	if (!block || (uintptr_t)block % 8 || bytes < need)
		return "the block is too small, or not aligned to 8 bytes";
	*head++ = WEFT_SAVED_MAGIC;
	*head++ = (int64_t)need;
	*head++ = count;
	for (uint32_t k = 0; k < forward->noutput; k++) {
		const WeftTensorInfo *t = weft_output(m, forward, k);
		uint64_t size = 0;
		if (!weft_saved_is(t))
			continue;
		*head++ = (int64_t)at;
		*head++ = weft_saved_type(t);
		memcpy(head, weft_output_shape(m, forward, s, k), t->rank * sizeof *head);
		memset(&outputs[k], 0, sizeof outputs[k]);
		outputs[k].data = (char *)block + at;
		outputs[k].device.type = WEFT_CPU;
		outputs[k].ndim = (int32_t)t->rank;
		outputs[k].dtype = t->dtype;
		outputs[k].shape = head;
		weft_saved_size(t->dtype, t->rank, head, &size);
		at += weft_saved_round(size);
		head += t->rank;
	}
	return NULL;
}

/* Sets inputs[k] for each input k of backward that is a saved.K: its memory and its shape are in
 * the block, which is only read and must stay until the run has ended. Other inputs stay. Returns
 * NULL, or a sentence that says why this is no block of the entry; some inputs[k] may be set
 * then. */
static inline const char *weft_saved_inputs(const WeftModel *m, const WeftEntry *backward,
					    void *block, uint64_t bytes, WeftTensor *inputs)
{
	static const char *const broken = "this is no block of saved tensors, or not all of it";
	static const char *const other = "the block was saved by another entry";
	const int64_t *all = (const int64_t *)block;
	uint64_t words = bytes / 8, at = WEFT_SAVED_HEAD;
	int64_t count = 0;
	if (!m || !backward || !inputs)
		return "the model, the entry or the inputs are missing: NULL";
	if (!block || (uintptr_t)block % 8 || words < at || all[0] != WEFT_SAVED_MAGIC ||
	    all[1] < 0 || (uint64_t)all[1] > bytes)
		return broken;
	for (uint32_t k = 0; k < backward->ninput; k++) {
		const WeftTensorInfo *t = weft_input(m, backward, k);
		uint64_t size;
		if (!weft_saved_is(t))
			continue;
		if (++count > all[2])
			return other;
		if (t->rank > WEFT_SAVED_MOST_RANK || words < at + 2 + t->rank)
			return broken;
		if (all[at + 1] != weft_saved_type(t))
			return other;
		if (!weft_saved_size(t->dtype, t->rank, all + at + 2, &size) || all[at] < 0 ||
		    all[at] % 8 || (uint64_t)all[at] > bytes || size > bytes - (uint64_t)all[at])
			return broken;
		memset(&inputs[k], 0, sizeof inputs[k]);
		inputs[k].data = (char *)block + all[at];
		inputs[k].device.type = WEFT_CPU;
		inputs[k].ndim = (int32_t)t->rank;
		inputs[k].dtype = t->dtype;
		inputs[k].shape = (int64_t *)block + at + 2;
		at += 2 + t->rank;
	}
	return count && count == all[2] ? NULL : other;
}

#ifdef __cplusplus
}
#endif
#endif
