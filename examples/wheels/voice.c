/* Finds speech in a WAV file (16 kHz, 16 bits, one channel) by silero-vad (fetch.sh). Prints the
 * time in seconds and the probability of speech, for each 32 ms.
 *
 *     weft compile FOLDER/silero_vad/data/silero_vad.onnx -o voice.so
 *     cc voice.c -I INCLUDE ./voice.so -o voice && ./voice speech.wav */
#include "weft_call.h"

enum { CHUNK = 512, BEFORE = 64, RATE = 16000 };
const WeftModel *weft_model(void); /* voice.so */

static long number(const unsigned char *b, int n)
{
	return n ? b[0] + 256 * number(b + 1, n - 1) : 0;
}

/* Reads up to the samples. Returns how many there are; 0 if the file is none of these. */
static long find_samples(FILE *f)
{
	unsigned char h[16], form[] = {1, 0, 1, 0, RATE % 256, RATE / 256, 0, 0};
	int ok = fread(h, 1, 12, f) == 12;
	for (long n; ok && fread(h, 1, 8, f) == 8; fseek(f, n, SEEK_CUR)) {
		n = number(h + 4, 4);
		if (!memcmp(h, "data", 4))
			return n / 2;
		if (!memcmp(h, "fmt ", 4)) {
			ok = fread(h, 1, 16, f) == 16 && !memcmp(h, form, 8) && h[14] == 16;
			n -= 16;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	float x[BEFORE + CHUNK] = {0}, state[2 * 128] = {0};
	const WeftTensor in[] = {weft_tensor(x, WEFT_F32, 2, (int64_t[]){1, BEFORE + CHUNK}),
				 weft_tensor(state, WEFT_F32, 3, (int64_t[]){2, 1, 128}),
				 weft_tensor(&(int64_t){RATE}, WEFT_I64, 0, NULL)};
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
	long n = f ? find_samples(f) : 0;
	WeftCall c;
	if (!n || weft_call_open(&c, weft_model(), 0))
		return puts(n ? c.status.message : "usage: voice FILE.wav (16 kHz, mono)"), 1;
	for (long k = 0; k < n; k += CHUNK) {
		memmove(x, x + CHUNK, BEFORE * sizeof *x);
		for (long i = 0; i < CHUNK; i++) { /* zeros behind the end */
			unsigned char b[2] = {0};
			size_t got = k + i < n ? fread(b, 1, 2, f) : 0;
			x[BEFORE + i] = got == 2 ? (float)(int16_t)number(b, 2) / 32768 : 0;
		}
		if (weft_call_run(&c, in))
			return puts(c.status.message), 1;
		printf("%.3f %.4f\n", (double)k / RATE, (double)*(float *)c.output[0].data);
		memcpy(state, c.output[1].data, sizeof state);
	}
}
