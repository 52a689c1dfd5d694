/* Trains a GRU on sounds as they come, one at a time, in plain C without malloc, threads and files:
 * gradients of several sounds are added up, clipped, and applied. All memory is static. The model
 * is the code that weft compile writes for keywords.pt2 (keywords.py says how):
 *
 *     cc -std=c11 -O2 -DWEFT_SERIAL -I keywords -c keywords.c keywords/model.c \
 *         keywords/kernels_*.c keywords/serial.c
 *     (cd keywords && cc -c weights.S)
 *     cc keywords.o model.o kernels_*.o serial.o keywords/weights.o -lm -o spot */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

enum { FRAMES = 16, BANDS = 8, WORDS = 4, PARTS = 8, UPDATES = 60 };
const WeftModel *weft_model(void);

static _Alignas(64) float sound[FRAMES * BANDS], score[WORDS], loss, norm;
static _Alignas(64) int64_t label;
static _Alignas(64) double weight = 1.0 / PARTS, lr = 0.02;
static _Alignas(64) unsigned char workspace[1 << 16], state[1 << 16];
static int64_t slot[64];
static WeftStatus status;
static uint64_t noise = 1;

static float random_number(void)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (float)(noise >> 40) / (float)(1 << 24) - 0.5f;
}

/* Makes a sound: each word is a tone that moves through the bands in its own way, not always at the
 * same time. */
static void listen(void)
{
	label = (int64_t)((random_number() + 0.5f) * WORDS) % WORDS;
	const float late = 2 * random_number();
	for (int t = 0; t < FRAMES; t++) {
		const float x = ((float)t + late) / FRAMES,
			    place = label == 0   ? 7 * x
				    : label == 1 ? 7 - 7 * x
				    : label == 2 ? 3.5f + 3 * sinf(12 * x)
						 : 3.5f;
		for (int b = 0; b < BANDS; b++) {
			const float apart = (float)b - place;
			sound[t * BANDS + b] = expf(-apart * apart) + 0.4f * random_number();
		}
	}
}

/* Runs an entry on buffers in the order of runtime.h: inputs, outputs, then the model's own. */
static int run(uint32_t entry, const int64_t *extents, void *const *buffer, int n)
{
	const WeftModel *m = weft_model();
	const WeftEntry *e = weft_entry(m, entry);
	void *all[8];
	memcpy(all, buffer, (size_t)n * sizeof *all);
	all[n] = (void *)(uintptr_t)m->weights;
	all[n + 1] = workspace;
	all[n + 2] = state;
	return e->nslot > sizeof slot / sizeof *slot || e->sizes_fn(extents, slot, &status) ||
	       slot[e->nslot - 1] > (int64_t)sizeof workspace ||
	       weft_serial_run(e, all, slot, &status);
}

static const int64_t one_sound[] = {1, FRAMES, BANDS, 1};

static int accumulate(void)
{
	return run(0, one_sound, (void *[]){sound, &label, &weight, &loss}, 4);
}

static int apply(void)
{
	return run(1, one_sound, (void *[]){&lr, &norm}, 2);
}

static int evaluate(void)
{
	return run(2, one_sound, (void *[]){sound, score}, 2);
}

/* Puts the state that the model begins with into memory. */
static int begin(void)
{
	const WeftModel *m = weft_model();
	if (m->state_bytes > sizeof state)
		return 1;
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *s = weft_state_info(m, k);
		if (s->init != WEFT_ZEROS)
			memcpy(state + s->offset, (const char *)m->weights + s->init,
			       (size_t)s->bytes);
	}
	return 0;
}

/* The part of 100 other sounds that is understood, in percent; -1 after a failure. */
static int understood(void)
{
	int right = 0;
	for (int k = 0; k < 100; k++) {
		int best = 0;
		listen();
		if (evaluate())
			return -1;
		for (int w = 1; w < WORDS; w++)
			best = score[w] > score[best] ? w : best;
		right += best == label;
	}
	return right;
}

int main(void)
{
	const WeftModel *m = weft_model();
	float sum = 0;
	if (begin())
		return puts("the state needs more room"), 1;
	printf("state %llu bytes, of %u tensors\n", (unsigned long long)m->state_bytes,
	       (unsigned)m->nstate);
	for (int update = 0; update < UPDATES; update++) {
		for (int part = 0; part < PARTS; part++) {
			listen();
			if (accumulate())
				return puts(status.message), 1;
			if (update == 0 && part == 0)
				printf("workspace %lld bytes\n",
				       (long long)slot[weft_entry(m, 0)->nslot - 1]);
			sum += loss;
		}
		if (apply())
			return puts(status.message), 1;
		if (update % 20 == 19) {
			printf("%d updates: loss %.2f, norm of gradients %.2f, %d %% are "
			       "understood\n",
			       update + 1, (double)(sum / (20 * PARTS)), (double)norm,
			       understood());
			sum = 0;
		}
	}
	return 0;
}
