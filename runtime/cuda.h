/* Private to the runtime: models on GPUs of NVIDIA, by the CUDA driver (libcuda.so.1), which is
 * loaded when an instance is opened. It exists in runtimes that are compiled with WEFT_WITH_CUDA;
 * these are compiled with WEFT_DEVICES, too.
 *
 * An artifact has a model for each architecture that it was compiled for, with kernels of its own,
 * and may have models for processors. It holds images: machine code of some of the kernels, and
 * their PTX, which the driver compiles for later devices. Each kernel has a WeftKernel, an emitted
 * function that calls weft_cuda_launch with the kernel's number. */
#ifndef WEFT_RUNTIME_CUDA_H
#define WEFT_RUNTIME_CUDA_H

#include "device.h"

#ifdef WEFT_WITH_CUDA
typedef struct {
	uint64_t code;     /* where in WeftCuda.data machine code begins */
	uint64_t ptx;      /* where PTX begins, a text that ends with 0; 0: there is none */
} WeftCudaImage;

/* A kernel that computes a product, as LoopProduct says (ir/loop/loop.h). Types: 0 f32, 1 f16,
 * 2 bf16. */
typedef struct {
	uint32_t a_type, b_type, c_type;
	uint32_t a, b, c, bias;
	uint32_t a_rows, b_rows, relu, gelu;
	uint32_t least[3];
	uint32_t param;
} WeftCudaProduct;
/* The parameters of the kernel from `param` on. */
typedef struct {
	int64_t m, n, k, batch, stride[3], member[3], first[3], bias;
} WeftCudaSizes;

/* product: NULL if it computes none. */
typedef struct {
	const char *name;  /* of the function in the image */
	uint32_t image;    /* the number of the image that has the function */
	uint32_t threads;  /* of a block */
	uint32_t nbuf, nparam;
	uint32_t checks;   /* 1: a check in it may fail */
	const WeftCudaProduct *product;
} WeftCudaKernel;

/* What the emitted code says of the kernels of one model. A kernel has as parameters, 8 bytes each:
 * its buffers, its parameters, the task of the first block, the record of failed checks or NULL,
 * the number of the launch. */
typedef struct {
	const WeftModel *(*model)(void);
	const char *arch;      /* "sm_90"; NULL: of a stand-in for the driver */
	uint32_t major, minor; /* of the architecture */
	uint32_t nkernel, nimage;
	const WeftCudaKernel *kernel;
	const WeftCudaImage *image;
	const unsigned char *data;
	uint64_t weights;      /* as in WeftDriver */
} WeftCuda;

/* Defined by emitted code: those of the artifact's models for GPUs, the oldest architecture first;
 * NULL ends the list. Models that are not among them run on the processor. */
extern const WeftCuda *const weft_cuda[];
/* Returns the model for GPU number `id`: the one of the newest architecture whose code the GPU
 * runs; if there is none, or no such GPU, the first one of the list, whose `open` says why not. */
const WeftModel *weft_cuda_model(int32_t id);
/* Begins to execute the tasks begin .. end - 1 of kernel k as blocks, on the stream of the frame's
 * call, and does not wait. Returns 0 in every case: the next `wait` or `read` tells an error of the
 * launch, and a failed check is written to DeviceCall.record. */
int weft_cuda_launch(const WeftFrame *, uint32_t k, int64_t begin, int64_t end);

/* ---- cublas.c: products by cuBLASLt (libcublasLt.so), which is loaded at run time ---- */

typedef struct WeftProducts WeftProducts;
/* Loads the library, of which $WEFT_CUBLASLT may be the path ("none": no library), and makes a
 * handle for the current context, which weft_products_close frees. Returns NULL if that is not
 * possible: kernels compute the products then. */
WeftProducts *weft_products_open(void);
/* Frees a handle of weft_products_open; NULL is allowed. */
void weft_products_close(WeftProducts *);
/* Begins a product on a stream, in the current context, with that workspace of the device. buf and
 * p: of the kernel. Returns false, having begun nothing, if the library is slower at these sizes,
 * or refuses them: the kernel is launched then. */
bool weft_product(WeftProducts *, const WeftCudaProduct *, const uint64_t *buf, const int64_t *p,
		  uint64_t work, uint64_t work_bytes, void *stream);
/* Whether weft_product with these arguments would begin the product; begins nothing. Asks the
 * library about sizes that are new. */
bool weft_product_takes(WeftProducts *, const WeftCudaProduct *, const uint64_t *buf,
			const int64_t *p, uint64_t work_bytes);
#endif

#endif
