/* Calls of a model for GPUs whose tensors and workspace lie in the GPU's memory, as a program that
 * stays on the GPU makes them: for `weft bench` and `weft check`. */
#ifndef WEFT_TOOLS_ON_DEVICE_H
#define WEFT_TOOLS_ON_DEVICE_H

#include "tool.h"

typedef struct OnDevice OnDevice;

/* Whether the model runs on a GPU, and its outputs have sizes that are known before a call. */
bool on_device_can(const Runner *);
/* Copies inputs[r->ninput], row-major and of the shapes that runner_prepare saw, to the GPU that
 * the runner is open on, and takes memory there for outputs and workspace, and a stream. The runner
 * must outlive the result; runner_prepare makes it useless. Returns NULL after a message. */
OnDevice *on_device_new(Runner *, const WeftTensor *inputs);
/* Gives a call to the stream. The second one makes a CUDA graph, later ones begin the graph.
 * Returns false after a message. */
bool on_device_begin(OnDevice *);
/* Waits for all calls. Returns false after a message: a call failed. */
bool on_device_wait(OnDevice *);
/* Copies output k to out[bytes], the size of the output, after waiting for it. Returns false
 * after a message. */
bool on_device_output(OnDevice *, uint32_t k, void *out, uint64_t bytes);
/* Does nothing to NULL. */
void on_device_free(OnDevice *);

#endif
