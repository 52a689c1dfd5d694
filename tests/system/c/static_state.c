/* A compiled tests/data/state/checked.pt2 without instances: state lies in the caller's memory,
 * begins with what the table says, and is as it was after a call that fails. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

enum { N = 32 };
const WeftModel *weft_model(void);
static _Alignas(64) float x[N], limit[2], y[N];
static _Alignas(64) unsigned char workspace[1 << 16], state[1 << 14], before[1 << 14];
static int64_t slot[64];

static int step(const WeftModel *m, int k, WeftStatus *status)
{
	const WeftEntry *e = weft_entry(m, 0);
	const int64_t extent[] = {1, N, 2};
	void *const buf[] = {x, limit, y, (void *)(uintptr_t)m->weights, workspace, state};
	for (int i = 0; i < N; i++)
		x[i] = (float)((k * 7 + i * 3) % 11) - 5;
	limit[0] = k % 6 == 2 ? 0 : 1e6f;
	limit[1] = k % 6 == 5 ? 0 : 1e6f;
	return e->sizes_fn(extent, slot, status) ? status->code
						 : weft_serial_run(e, buf, slot, status);
}

int main(void)
{
	const WeftModel *m = weft_model();
	static WeftStatus status;
	int failed = 0;
	if (m->state_bytes > sizeof state || weft_entry(m, 0)->nslot > sizeof slot / sizeof *slot)
		return 2;
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *s = weft_state_info(m, k);
		if (s->init != WEFT_ZEROS)
			memcpy(state + s->offset, (const char *)m->weights + s->init,
			       (size_t)s->bytes);
	}
	for (int k = 0; k < 30; k++) {
		memcpy(before, state, sizeof state);
		int code = step(m, k, &status), same = !memcmp(before, state, sizeof state);
		if (code != (k % 3 == 2 ? WEFT_ERR_CHECK : WEFT_OK) || same != (code != WEFT_OK))
			return fprintf(stderr, "step %d: %d %s\n", k, code, status.message), 1;
		failed += code != WEFT_OK;
	}
	printf("30 steps, %d failed\n", failed);
	return 0;
}
