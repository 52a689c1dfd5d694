/* Reads the text of an image of one line (PPM, P6) by rapidocr (fetch.sh). The characters, one a
 * line, are in the ONNX file; compare.py writes them.
 *
 *     weft compile FOLDER/rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx -o read_line.so
 *     cc read_line.c -I INCLUDE ./read_line.so -lm -o read_line
 *     ./read_line characters.txt line.ppm */
#include <math.h>

#include "weft_call.h"

enum { H = 48, LEAST = 320, MOST = 4096 };
const WeftModel *weft_model(void); /* read_line.so */
static char text[1 << 18], *character[1 << 15];
static float x[3 * H * MOST];

/* The pixel between four others, rounded as images are, from -1 to 1. */
static float pixel(const unsigned char *p, int w, int h, int c, double u, double v)
{
	u = fmin(fmax(u - 0.5, 0), w - 1), v = fmin(fmax(v - 0.5, 0), h - 1);
	int i = (int)u, j = (int)v, right = i + 1 < w ? 3 : 0, down = j + 1 < h ? 3 * w : 0;
	const unsigned char *q = p + 3 * (j * w + i) + c, *r = q + down;
	double above = q[0] + (u - i) * (q[right] - q[0]);
	double below = r[0] + (u - i) * (r[right] - r[0]);
	return (float)(floor(above + (v - j) * (below - above) + 0.5) / 127.5 - 1);
}

int main(int argc, char **argv)
{
	int w = 0, h = 0, n = 1;
	FILE *names = argc == 3 ? fopen(argv[1], "rb") : NULL;
	FILE *f = names ? fopen(argv[2], "rb") : NULL;
	if (!f || !fread(text, 1, sizeof text - 1, names) || fscanf(f, "P6 %d %d 255", &w, &h) != 2)
		return puts("usage: read_line CHARACTERS LINE.ppm"), 1;
	fgetc(f);
	size_t pixels = (size_t)w * (size_t)h;
	unsigned char *p = calloc(pixels, 3);
	double wanted = H * ((double)w / h);
	int all = wanted > LEAST ? (int)wanted : LEAST;
	int wide = wanted < all ? (int)ceil(wanted) : all;
	if (!p || fread(p, 3, pixels, f) != pixels || wanted > MOST)
		return puts("no such image, or too wide"), 1;
	for (char *s = strtok(text, "\r\n"); s; s = strtok(NULL, "\r\n"))
		character[n++] = s;
	character[n] = " ";
	for (int k = 0; k < 3 * H * wide; k++) { /* blue, green, red */
		double u = (k % wide + 0.5) * w / wide, v = (k / wide % H + 0.5) * h / H;
		x[k / wide * all + k % wide] = pixel(p, w, h, 2 - k / wide / H, u, v);
	}
	WeftCall call;
	WeftTensor in = weft_tensor(x, WEFT_F32, 4, (int64_t[]){1, 3, H, all});
	if (weft_call_open(&call, weft_model(), 0) || weft_call_run(&call, &in))
		return puts(call.status.message), 1;
	const float *y = call.output[0].data;
	const int64_t steps = call.output[0].shape[1], kinds = call.output[0].shape[2];
	for (int64_t t = 0, last = 0, best; t < steps; t++, last = best, y += kinds) {
		best = 0;
		for (int64_t k = 1; k < kinds; k++)
			best = y[k] > y[best] ? k : best;
		if (best && best != last) /* 0: no character */
			fputs(character[best], stdout);
	}
	puts("");
}
