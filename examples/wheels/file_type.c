/* Names the types of files by magika (fetch.sh). Prints each file, its type and the probability.
 *
 *     weft compile FOLDER/magika/models/standard_v3_3/model.onnx -o file_type.so
 *     cc file_type.c -I INCLUDE ./file_type.so -o file_type
 *     ./file_type FOLDER/magika/models/standard_v3_3/config.min.json FILE... */
#include <ctype.h>

#include "weft_call.h"

enum { BLOCK = 4096, PART = 1024, NONE = 256 };
const WeftModel *weft_model(void); /* file_type.so */

/* The first and the last PART bytes, without white space around the whole. */
static void read_ends(FILE *f, int32_t *x)
{
	unsigned char b[BLOCK];
	size_t n = fread(b, 1, BLOCK, f), first = 0;
	while (first < n && isspace(b[first]))
		first++;
	for (size_t k = 0; k < PART; k++)
		x[k] = first + k < n ? b[first + k] : NONE;
	if (fseek(f, -BLOCK, SEEK_END))
		rewind(f);
	n = fread(b, 1, BLOCK, f);
	while (n && isspace(b[n - 1]))
		n--;
	for (size_t k = 0; k < PART; k++)
		x[2 * PART - 1 - k] = k < n ? b[n - 1 - k] : NONE;
}

int main(int argc, char **argv)
{
	static char names[1 << 16];
	int32_t x[2 * PART];
	WeftTensor in = weft_tensor(x, WEFT_I32, 2, (int64_t[]){1, 2 * PART});
	FILE *f = argc > 2 ? fopen(argv[1], "rb") : NULL;
	WeftCall c;
	if (!f || !fread(names, 1, sizeof names - 1, f) || weft_call_open(&c, weft_model(), 0))
		return puts(f ? c.status.message : "usage: file_type config.min.json FILE..."), 1;
	for (int i = 2; i < argc; i++) {
		if (!(f = fopen(argv[i], "rb")))
			return perror(argv[i]), 1;
		read_ends(f, x);
		fclose(f);
		if (weft_call_run(&c, &in))
			return puts(c.status.message), 1;
		const float *p = c.output[0].data;
		int best = 0;
		for (int k = 1; k < c.output[0].shape[1]; k++)
			best = p[k] > p[best] ? k : best;
		const char *s = strchr(strstr(names, "\"target_labels_space\""), '[');
		for (int k = 0; k < 2 * best + 1; k++) /* quotation marks before the name */
			s = strchr(s + 1, '"');
		int n = (int)strcspn(++s, "\"");
		printf("%s: %.*s %.4f\n", argv[i], n, s, (double)p[best]);
	}
}
