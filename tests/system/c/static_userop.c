/* A compiled graph of userop.py's operators test::named and test::bare without instances: what the
 * caller says arrives, also from a structure of an older program. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

const WeftModel *weft_model(void);
static _Alignas(64) float x[2];
static _Alignas(64) int64_t named[5], bare[5];
static _Alignas(64) unsigned char workspace[1 << 16];
static int64_t slot[64];

static int expect(const int64_t *got, int64_t number, int64_t user, int64_t other)
{
	const int64_t want[5] = {number, user, 0, WEFT_CPU, other};
	if (!memcmp(got, want, sizeof want))
		return 0;
	fprintf(stderr, "got %lld %lld %lld %lld %lld\n", (long long)got[0], (long long)got[1],
		(long long)got[2], (long long)got[3], (long long)got[4]);
	return 1;
}

int main(void)
{
	const WeftModel *m = weft_model();
	const WeftEntry *e = weft_entry(m, 0);
	void *const buf[] = {x, named, bare, (void *)(uintptr_t)m->weights, workspace};
	const int64_t extent[] = {2};
	WeftContext c = {.size = sizeof c, .user = x, .stream = x};
	WeftStatus status;
	if (e->sizes_fn(extent, slot, &status) || slot[e->nslot - 1] > (int64_t)sizeof workspace ||
	    weft_serial_run(e, buf, slot, &status))
		return fprintf(stderr, "%s\n", status.message), 1;
	if (expect(named, 77, 0, 0) || expect(bare, -1, 0, 0))
		return 1;
	if (weft_serial_run_with(e, buf, slot, NULL, &c, &status) || expect(named, 77, 1, 1) ||
	    expect(bare, -1, 1, 1))
		return 1;
	c.size = offsetof(WeftContext, device);
	return weft_serial_run_with(e, buf, slot, NULL, &c, &status) || expect(named, 77, 1, 0);
}
