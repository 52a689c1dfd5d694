/* Give the model that is shipped the weights of the one that was trained:
 *
 *     weft compile loss.pt2 --grad=params --replaceable-weights --symbol weft_loss -o loss.so
 *     weft compile net.pt2 --replaceable-weights -o net.so
 *     cc ship.c -Iinclude ./loss.so ./net.so -o ship && ./ship
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_call.h"

const WeftModel *weft_loss(void), *weft_model(void); /* loss.so, net.so */

static void check(int code, const WeftStatus *status)
{
	if (code)
		exit((fprintf(stderr, "%s\n", status->message), 1));
}

/* Stands for training: adds 1 to the last bias. */
static void train(WeftInstance *loss)
{
	float bias[3];
	const char *name = "net.out.bias";
	WeftTensor value = weft_tensor(bias, WEFT_F32, 1, (int64_t[]){3});
	WeftStatus status = {0};
	check(weft_loss()->get_weights(loss, 1, &name, &value, NULL, &status), &status);
	for (int k = 0; k < 3; k++)
		bias[k] += 1;
	check(weft_loss()->set_weights(loss, 1, &name, &value, NULL, &status), &status);
}

int main(void)
{
	const WeftModel *trained = weft_loss(), *shipped = weft_model();
	WeftInstance *loss;
	WeftCall net;
	WeftStatus status = {0};
	check(trained->open(trained, NULL, &loss, &status), &status);
	check(weft_call_open(&net, shipped, 0), &net.status);
	train(loss);

	enum { MOST = 16, BYTES = 4096 };
	static char text[MOST][256], data[MOST][BYTES];
	const char *theirs[MOST], *ours[MOST];
	WeftTensor value[MOST];
	uint32_t n = trained->nsource;
	if (n > MOST)
		return puts("more weights than this program has memory for"), 1;
	for (uint32_t k = 0; k < n; k++) {
		const WeftParamInfo *p = weft_source(trained, k);
		if (p->bytes > BYTES)
			return puts("a weight is larger than this program's memory"), 1;
		snprintf(text[k], sizeof text[k], "%s", p->name);
		theirs[k] = text[k];
		ours[k] = text[k] + (strncmp(text[k], "net.", 4) == 0 ? 4 : 0);
		value[k] = weft_tensor(data[k], p->dtype, (int32_t)p->rank, p->dim);
	}
	check(trained->get_weights(loss, n, theirs, value, NULL, &status), &status);
	check(shipped->set_weights(net.instance, n, ours, value, NULL, &status), &status);

	WeftTensor x = weft_tensor((float[]){0.5f, -1, 0.25f, 2}, WEFT_F32, 2, (int64_t[]){1, 4});
	check(weft_call_run(&net, &x), &net.status);
	const float *y = net.output[0].data;
	printf("%.4f %.4f %.4f\n", (double)y[0], (double)y[1], (double)y[2]);
	weft_call_close(&net);
	trained->close(loss);
}
