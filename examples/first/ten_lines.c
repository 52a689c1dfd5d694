#include "weft_call.h"
const WeftModel *weft_model(void); /* net.so: weft compile net.pt2 -o net.so */
int main(void)
{
	WeftCall c;
	WeftTensor x = weft_tensor((float[]){0.5f, -1, 0.25f, 2}, WEFT_F32, 2, (int64_t[]){1, 4});
	if (weft_call_open(&c, weft_model(), 0) || weft_call_run(&c, &x))
		return puts(c.status.message);
	printf("%.4f\n", (double)((float *)c.output[0].data)[0]);
}
