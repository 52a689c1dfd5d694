/* Classify two rows by a compiled network:
 *
 *     weft compile net.pt2 -o net.so
 *     cc predict.c -Iinclude ./net.so -o predict && ./predict
 */
#include <stdio.h>
#include <stdlib.h>

#include "weft_model.h"

const WeftModel *weft_model(void); /* net.so */

int main(void)
{
	const WeftModel *m = weft_model();
	WeftInstance *net;
	WeftStatus status = {0};
	float x[2][4] = {{0.5f, -1, 0.25f, 2}, {1, 1, -1, 0}}, y[2][3];
	WeftTensor in = {.data = x, .device = {WEFT_CPU, 0}, .ndim = 2,
			 .dtype = {WEFT_FLOAT, 32, 1},
			 .shape = (int64_t[]){2, 4}};
	WeftTensor out = in;
	out.data = y;
	out.shape = (int64_t[]){2, 3};
	WeftSizes *sizes = malloc(weft_entry(m, 0)->sizes_bytes);
	if (m->open(m, NULL, &net, &status) || m->sizes(net, 0, &in, sizes, &status) ||
	    m->run(net, sizes, &in, &out, malloc(sizes->workspace_bytes + 1), NULL, &status))
		return fprintf(stderr, "%s\n", status.message), 1;
	for (int k = 0; k < 2; k++)
		printf("%.4f %.4f %.4f\n", (double)y[k][0], (double)y[k][1], (double)y[k][2]);
}
