#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"

static int entry_step_sizes(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	const int64_t x_0 = extent[0];
	const int64_t x_1 = extent[1];
	if (!((x_0 >= 1) && (x_0 <= 64)))
		return weft_fail(status, WEFT_ERR_INPUT, "input \"x\" dimension 0: expected s77 with 1 <= s77 <= 64, got %lld", (long long)x_0);
	slot[0] = x_0;
	if (!(x_1 == 3))
		return weft_fail(status, WEFT_ERR_INPUT, "input \"x\" dimension 1: expected %lld, got %lld", (long long)3, (long long)x_1);
	slot[1] = x_0;
	slot[2] = 3;
	slot[3] = 0;
	return WEFT_OK;
}

static int entry_step_run(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	const int64_t s77 = slot[0];
	const int64_t t = (s77 + 3) / 4;
	/* add_ */
	{
		void *const b[] = {(char *)buf[0], (char *)buf[5]};
		const int64_t p[] = {s77};
		weft_phase(r, k_add_, b, p, 0 | WEFT_JOINED, 1);
	}
	/* add__1 */
	{
		void *const b[] = {(char *)buf[5] + 64};
		if (weft_phase(r, k_add__1, b, NULL, 1, 1))
			return 1;
	}
	/* add */
	{
		void *const b[] = {(char *)buf[3] + 64, (char *)buf[0], (char *)buf[5], (char *)buf[1]};
		const int64_t p[] = {t, s77};
		weft_phase(r, k_add, b, p, 2 | WEFT_JOINED, t);
	}
	/* mul */
	{
		void *const b[] = {(char *)buf[5] + 64, (char *)buf[2]};
		if (weft_phase(r, k_mul, b, NULL, 3, 1))
			return 1;
	}
	return 0;
}

static int entry_peek_sizes(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	const int64_t scale_0 = extent[0];
	if (!(scale_0 == 3))
		return weft_fail(status, WEFT_ERR_INPUT, "input \"scale\" dimension 0: expected %lld, got %lld", (long long)3, (long long)scale_0);
	slot[0] = 3;
	slot[1] = 3;
	slot[2] = 0;
	return WEFT_OK;
}

static int entry_peek_run(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	/* mul */
	{
		void *const b[] = {(char *)buf[5], (char *)buf[0], (char *)buf[1]};
		weft_phase(r, k_mul_1, b, NULL, 0 | WEFT_JOINED, 1);
	}
	/* matmul */
	{
		void *const b[] = {(char *)buf[3] + 64, (char *)buf[5], (char *)buf[2]};
		if (weft_phase(r, k_matmul, b, NULL, 1, 1))
			return 1;
	}
	return 0;
}

extern const unsigned char running_weights[];

static const WeftManifest manifest = {
	.name = "running",
	.weft_version = "0.1.0",
	.target = "generic-c",
	.features = "",
	.source_hash = "ba1ef6264bca2603acc8d984a48f47b9",
	.compiler = ""
};

static const WeftDim inputs_dim_0[] = {
	{.value = -1, .text = "s77"},
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftTensorInfo inputs[] = {
	{.name = "x", .dtype = {2, 32, 1}, .rank = 2, .dim = inputs_dim_0, .donates = -1, .role = "input"},
};

static const WeftDim outputs_dim_0[] = {
	{.value = -1, .text = "s77"},
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftTensorInfo outputs[] = {
	{.name = "add", .dtype = {2, 32, 1}, .rank = 2, .dim = outputs_dim_0, .donates = -1, .role = "output"},
	{.name = "mul", .dtype = {0, 64, 1}, .donates = -1, .role = "output"},
};

static const WeftSymbolInfo symbols[] = {
	{.name = "s77", .lo = 1, .hi = 64},
};

static const WeftCallInfo calls[] = {
	{.name = "add_", .algorithm = "generic", .flops = 15, .bytes = 72, .line = "make_golden.py:18", .nline = 1},
	{.name = "add__1", .algorithm = "generic", .flops = 1, .bytes = 16, .line = "make_golden.py:19", .nline = 1},
	{.name = "add", .algorithm = "gemm, packed b, 4x2 tile, 4-row blocks", .flops = 84, .bytes = 144, .line = "make_golden.py:20", .nline = 1},
	{.name = "mul", .algorithm = "generic", .flops = 1, .bytes = 16, .line = "make_golden.py:20", .nline = 1},
};

static const int64_t seen[] = {4};

static const uint8_t state_use[] = {3, 3};

static const char *const messages[] = {
	"",
	"input \"x\" dimension 0: expected s77 with 1 <= s77 <= 64, got %lld",
	"input \"x\" dimension 1: expected %lld, got %lld",
	"input \"scale\" dimension 0: expected %lld, got %lld",
};

static const WeftLaunch tasks[] = {
	{.nbuf = 2, .nparam = 1, .ns = 347},
	{.nbuf = 1, .ns = 322},
	{.nbuf = 4, .nparam = 2, .ns = 364},
	{.nbuf = 2, .ns = 322},
};

static const WeftEntry entry = {
	.size = sizeof(WeftEntry),
	.flags = 3,
	.name = "step",
	.ninput = 1,
	.noutput = 2,
	.nsymbol = 1,
	.ncall = 4,
	.input = inputs,
	.output = outputs,
	.symbol = symbols,
	.call = calls,
	.seen = seen,
	.state_use = state_use,
	.flops = 101,
	.sizes_bytes = WEFT_SIZES_BYTES(4, 2),
	.sizes_fn = entry_step_sizes,
	.run_fn = entry_step_run,
	.nslot = 4,
	.nmessage = 4,
	.message = messages,
	.launch = tasks
};

static const WeftDim inputs_1_dim_0[] = {
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftTensorInfo inputs_1[] = {
	{.name = "scale", .dtype = {2, 32, 1}, .rank = 1, .dim = inputs_1_dim_0, .donates = -1, .role = "input"},
};

static const WeftDim outputs_1_dim_0[] = {
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftDim outputs_1_dim_1[] = {
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftTensorInfo outputs_1[] = {
	{.name = "mul", .dtype = {2, 32, 1}, .rank = 1, .dim = outputs_1_dim_0, .donates = -1, .role = "output"},
	{.name = "matmul", .dtype = {2, 32, 1}, .rank = 1, .dim = outputs_1_dim_1, .donates = -1, .role = "output"},
};

static const WeftCallInfo calls_1[] = {
	{.name = "mul", .algorithm = "generic", .flops = 3, .bytes = 36, .line = "make_golden.py:25", .nline = 1},
	{.name = "matmul", .algorithm = "gemm, packed b, 1x3 tile, 1-row blocks", .flops = 18, .bytes = 60, .line = "make_golden.py:25", .nline = 1},
};

static const uint8_t state_use_1[] = {1, 0};

static const WeftLaunch tasks_1[] = {
	{.nbuf = 3, .ns = 323},
	{.nbuf = 3, .ns = 331},
};

static const WeftEntry entry_1 = {
	.size = sizeof(WeftEntry),
	.flags = 1,
	.name = "peek",
	.ninput = 1,
	.noutput = 2,
	.ncall = 2,
	.input = inputs_1,
	.output = outputs_1,
	.call = calls_1,
	.state_use = state_use_1,
	.flops = 21,
	.sizes_bytes = WEFT_SIZES_BYTES(3, 1),
	.sizes_fn = entry_peek_sizes,
	.run_fn = entry_peek_run,
	.nslot = 3,
	.nmessage = 4,
	.message = messages,
	.launch = tasks_1
};

static const WeftEntry *const entries[] = {
	&entry,
	&entry_1,
};

static const int64_t param_dim_0[] = {3};

static const int64_t param_dim_1[] = {3, 3};

static const WeftLayoutDim param_layout_1[] = {
	{.axis = 1, .divisor = 1, .extent = 3, .padded = 3},
	{.divisor = 1, .extent = 3, .padded = 3},
	{.axis = 1, .divisor = 1, .extent = 1, .padded = 1},
};

static const WeftParamInfo params[] = {
	{.name = "total", .dtype = {2, 32, 1}, .rank = 1, .dim = param_dim_0, .bytes = 12},
	{.name = "w", .dtype = {2, 32, 1}, .rank = 2, .dim = param_dim_1, .nlayout = 3, .layout = param_layout_1, .offset = 64, .bytes = 36},
};

static const WeftDim state_dim_0[] = {
	{.value = 3, .symbol = -1, .text = "3"},
};

static const WeftTensorInfo state[] = {
	{.name = "total", .dtype = {2, 32, 1}, .rank = 1, .dim = state_dim_0, .donates = -1, .bytes = 12, .role = "buffer"},
	{.name = "calls", .dtype = {0, 64, 1}, .donates = -1, .offset = 64, .bytes = 8, .init = WEFT_ZEROS, .role = "buffer"},
};

static const WeftModel model = {
	.size = sizeof(WeftModel),
	.abi = 3,
	.stride[WEFT_DIM] = sizeof(WeftDim),
	.stride[WEFT_TENSOR_INFO] = sizeof(WeftTensorInfo),
	.stride[WEFT_SYMBOL_INFO] = sizeof(WeftSymbolInfo),
	.stride[WEFT_CALL_INFO] = sizeof(WeftCallInfo),
	.stride[WEFT_LAYOUT_DIM] = sizeof(WeftLayoutDim),
	.stride[WEFT_PARAM_INFO] = sizeof(WeftParamInfo),
	.stride[WEFT_MANIFEST] = sizeof(WeftManifest),
	.manifest = &manifest,
	.nentry = 2,
	.nparam = 2,
	.entry = entries,
	.param = params,
	.nstate = 2,
	.state = state,
	.state_bytes = 128,
	.weights = running_weights,
	.weights_bytes = 128,
	WEFT_RUNTIME_FUNCTIONS,
	WEFT_STATE_FUNCTIONS
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const WeftModel *weft_model(void);

const WeftModel *weft_model(void)
{
	return &model;
}
