/* A compiled digits_cnn as a microcontroller would have it: no memory but its own, no threads.
 * static INPUT OUTPUT: floats [rows, 1, 8, 8] in, [rows, 10] out. */
#include <stdio.h>

#include "runtime.h"

enum { ROWS = 16 }; /* at a time */
const WeftModel *weft_model(void);
static _Alignas(64) float input[ROWS][64], output[ROWS][10];
static _Alignas(64) unsigned char workspace[1 << 20];
static int64_t slot[16];

/* Returns the status code. */
static int classify(const WeftModel *m, int64_t rows, WeftStatus *status)
{
	const WeftEntry *e = weft_entry(m, 0);
	const int64_t extent[] = {rows, 1, 8, 8};
	void *const buf[] = {input, output, (void *)(uintptr_t)m->weights, workspace};
	if (e->sizes_fn(extent, slot, status))
		return status->code;
	if (slot[e->nslot - 1] > (int64_t)sizeof workspace)
		return weft_fail(status, WEFT_ERR_MEMORY, "the workspace is too small");
	return weft_serial_run(e, buf, slot, status);
}

int main(int argc, char **argv)
{
	const WeftModel *m = weft_model();
	static WeftStatus status;
	FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;
	if (!out || weft_entry(m, 0)->nslot > sizeof slot / sizeof *slot)
		return 2;
	for (size_t rows; (rows = fread(input, sizeof input[0], ROWS, in)) > 0;) {
		if (classify(m, (int64_t)rows, &status))
			return fprintf(stderr, "%s\n", status.message), 1;
		fwrite(output, sizeof output[0], rows, out);
	}
	fclose(in);
	return fclose(out) != 0;
}
