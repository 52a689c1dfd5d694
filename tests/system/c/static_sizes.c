/* A compiled tests/data/sizes/head.pt2 without instances: how many rows its outputs have is told in
 * their shapes. static_sizes INPUT OUTPUT: floats [rows, 6] in; boxes, scores and labels out, each
 * after the number of its rows. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

enum { ROWS = 64, MOST = 7 };
const WeftModel *weft_model(void);
static _Alignas(64) float input[ROWS][6], boxes[MOST][4], scores[MOST];
static _Alignas(64) int64_t labels[MOST];
static _Alignas(64) unsigned char workspace[1 << 20];
static int64_t slot[256], shape[3][2];
static WeftTensor output[3];
static WeftStatus status;

/* With room for so many rows. */
static int run(const WeftModel *m, int64_t rows, int64_t most, int sized)
{
	const WeftEntry *e = weft_entry(m, 0);
	const int64_t extent[] = {rows, 6};
	void *const buf[] = {input,    boxes, scores, labels, (void *)(uintptr_t)m->weights,
			     workspace};
	for (int k = 0; k < 3; k++) {
		shape[k][0] = most;
		shape[k][1] = 4;
		output[k].shape = shape[k];
	}
	if (e->sizes_fn(extent, slot, &status))
		return status.code;
	if (slot[e->nslot - 1] > (int64_t)sizeof workspace)
		return weft_fail(&status, WEFT_ERR_MEMORY, "the workspace is too small");
	return sized ? weft_serial_run_sized(e, buf, slot, output, &status)
		     : weft_serial_run(e, buf, slot, &status);
}

static int expect(int good, const char *what)
{
	if (!good)
		fprintf(stderr, "%s: %s\n", what, status.message);
	return good;
}

int main(int argc, char **argv)
{
	const WeftModel *m = weft_model();
	FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;
	if (!out || weft_entry(m, 0)->nslot > sizeof slot / sizeof *slot)
		return 2;
	int64_t rows = (int64_t)fread(input, sizeof input[0], ROWS, in);
	fclose(in);
	if (!expect(run(m, rows, MOST, 0) == WEFT_ERR_CHECK &&
			    strstr(status.message, "weft_serial_run_sized"),
		    "not sized"))
		return 1;
	if (!expect(run(m, rows, MOST, 1) == WEFT_OK, "run"))
		return 1;
	const int64_t n = shape[0][0];
	if (!expect(shape[0][1] == 4 && shape[1][0] == n && shape[2][0] == n, "shapes"))
		return 1;
	fwrite(&n, sizeof n, 1, out);
	fwrite(boxes, sizeof boxes[0], (size_t)n, out);
	fwrite(scores, sizeof scores[0], (size_t)n, out);
	fwrite(labels, sizeof labels[0], (size_t)n, out);
	if (n && !expect(run(m, rows, n - 1, 1) == WEFT_ERR_CHECK &&
				 strstr(status.message, "and there is room for"),
			 "too small"))
		return 1;
	return fclose(out) != 0;
}
