#include "codegen/print/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/print/cuda/print_priv.h"

/* NVRTC has no headers: what C's headers declare is declared here. */
static const char head[] =
	"#ifdef __CUDACC_RTC__\n"
	"typedef signed char int8_t;\n"
	"typedef unsigned char uint8_t;\n"
	"typedef short int16_t;\n"
	"typedef unsigned short uint16_t;\n"
	"typedef int int32_t;\n"
	"typedef unsigned int uint32_t;\n"
	"typedef long long int64_t;\n"
	"typedef unsigned long long uint64_t;\n"
	"#define INT64_C(x) x##ll\n"
	"#define UINT64_C(x) x##ull\n"
	"#define INT32_MIN (-2147483647 - 1)\n"
	"#define INT64_MIN (-9223372036854775807ll - 1)\n"
	"#define INFINITY __int_as_float(0x7f800000)\n"
	"#define NAN __int_as_float(0x7fc00000)\n"
	"#else\n"
	"#include <math.h>\n"
	"#include <stdint.h>\n"
	"#include <string.h>\n"
	"#endif\n" FAILURE_RECORD;

/* A thread behind the recorded one has nothing to record, and does not wait for the lock: when all
 * threads of a large grid fail, few take it. */
static const char checks[] = "\n"
			     "static __device__ void weft_fail(WeftFailure *f, int64_t launch, int "
			     "id, int64_t task, const int64_t *value, int n)\n"
			     "{\n"
			     "\tconst uint64_t key = ~(((uint64_t)launch << 42) + (uint64_t)(task "
			     "* blockDim.x + threadIdx.x));\n"
			     "\tvolatile WeftFailure *v = f;\n"
			     "\twhile (key > v->key) {\n"
			     "\t\tif (atomicCAS(&f->lock, 0, 1))\n"
			     "\t\t\tcontinue;\n"
			     "\t\t__threadfence();\n"
			     "\t\tif (key > v->key) {\n"
			     "\t\t\tv->id = id;\n"
			     "\t\t\tv->key = key;\n"
			     "\t\t\tfor (int k = 0; k < n; k++)\n"
			     "\t\t\t\tv->value[k] = value[k];\n"
			     "\t\t}\n"
			     "\t\t__threadfence();\n"
			     "\t\tatomicExch(&f->lock, 0);\n"
			     "\t}\n"
			     "}\n";

/* The stand-in for a GPU has its own copies and exchanges. */
static const char copies[] =
	"\n#ifndef WEFT_GPU_HOST\n"
	"#define WEFT_COPY(n, how, to, from, in) \\\n"
	"\tasm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #n \", %2;\" \\\n"
	"\t             ::\"r\"((uint32_t)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"((in) ? "
	"n : 0) : \"memory\")\n"
	"#define weft_copy_4(to, from, in) WEFT_COPY(4, \"ca\", to, from, in)\n"
	"#define weft_copy_8(to, from, in) WEFT_COPY(8, \"ca\", to, from, in)\n"
	"#define weft_copy_16(to, from, in) WEFT_COPY(16, \"cg\", to, from, in)\n"
	"#define weft_commit() asm volatile(\"cp.async.commit_group;\" ::: \"memory\")\n"
	"#define weft_wait(n) asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(n) : \"memory\")\n"
	"#endif\n";
static const char exchanges[] =
	"\n#ifndef WEFT_GPU_HOST\n"
	"#define WEFT_WARP 0xffffffffu\n"
	"#define weft_xor(x, k) __shfl_xor_sync(WEFT_WARP, x, (int)(k))\n"
	"#define weft_up(x, k) __shfl_up_sync(WEFT_WARP, x, (unsigned)(k))\n"
	"#define weft_down(x, k) __shfl_down_sync(WEFT_WARP, x, (unsigned)(k))\n"
	"#define weft_lane(x, k) __shfl_sync(WEFT_WARP, x, (int)(k))\n"
	"#define weft_any(x) (bool)__any_sync(WEFT_WARP, x)\n"
	"#define weft_all(x) (bool)__all_sync(WEFT_WARP, x)\n"
	"#define weft_ballot(x) __ballot_sync(WEFT_WARP, x)\n"
	"#endif\n";

/* What kernels call, and what the head of the text declares. */
static const char *const own[] = {
	"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "first", "failure", "launch", "failed", "value", NULL,
};

/* At least one block is resident: without the 1 the compiler spills registers for more of them. */
static const CBlock block = {
	.kernel = "extern \"C\" __global__ void __launch_bounds__(%u, 1)",
	.task = "blockIdx.x",
	.thread = "(int32_t)threadIdx.x",
	.sync = "__syncthreads",
	BLOCK_NAMES,
};

static const CDialect cuda = {
	DIALECT_WORDS,
	.own = own,
	.head = head,
	.block = &block,
};

const BlockLanguage cuda_language = {.dialect = &cuda,
				     .barrier = "",
				     .checks = checks,
				     .copies = copies,
				     .exchanges = exchanges};

uint32_t cuda_kernels(const Program *p, const char *const *all, LoopFn **fn, const char **name)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < p->fn.n; k++)
		if (loop_is_of_block(p->fn.data[k])) {
			fn[n] = p->fn.data[k];
			name[n++] = all[k];
		}
	return n;
}

static bool has_statement(const LoopFn *f, LsKind kind)
{
	bool any = false;
	for (uint32_t k = 0; k < f->ls.n; k++)
		any = any || f->ls.data[k].kind == kind;
	return any;
}

static bool has_exchange(const LoopFn *f)
{
	bool any = false;
	for (uint32_t k = 1; k < f->lx.n; k++)
		any = any || f->lx.data[k].kind == LX_WARP;
	return any;
}

/* Prints the functions and all that they need; `suffix` is appended to the names of kernels. */
static void print_kernels(const BlockLanguage *l, LoopFn *const *fn, const char *const *name,
			  uint32_t n, const char *suffix, const Target *t, Text *out)
{
	CUnit u;
	Text body;
	bool barrier = false, check = false, copy = false, exchange = false;
	unit_init(&u, fn[0]->ir->ctx, t, l->dialect);
	text_init(&body, u.arena);
	for (uint32_t k = 0; k < n; k++) {
		barrier = barrier || has_statement(fn[k], LS_SYNC);
		check = check || has_statement(fn[k], LS_FAIL);
		copy = copy || has_statement(fn[k], LS_COPY_ASYNC);
		exchange = exchange || has_exchange(fn[k]);
		text_char(&body, '\n');
		c_function(&u, fn[k], arena_printf(u.arena, "%s%s", name[k], suffix), FN_KERNEL,
			   NULL, NULL, &body);
	}
	unit_head(&u, out, NULL, NULL);
	if (barrier)
		text_add(out, l->barrier);
	if (check)
		text_add(out, l->checks);
	if (copy)
		text_add(out, l->copies);
	if (exchange)
		text_add(out, l->exchanges);
	text_add(out, body.data);
}

void emit_cuda(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *t, Text *out)
{
	print_kernels(t->gpu->hip ? &hip_language : &cuda_language, fn, name, n, "", t, out);
}

/* ---- the stand-in ---- */

/* Returns "true" if threads of a block wait for each other, so that the stand-in needs a fibre for
 * each thread; else "false". */
static const char *needs_fibres(const LoopFn *f)
{
	return has_statement(f, LS_SYNC) || has_exchange(f) ? "true" : "false";
}

/* Prints a WeftKernel of that name, which executes on this CPU, for each task, the block of
 * NAME_blocks. */
static void print_adapter(const LoopFn *f, const char *name, Text *out)
{
	text_printf(out,
		    "\nextern \"C\" int %s(const WeftFrame *f, int64_t begin, int64_t "
		    "end)\n{\n\tWeftFailure failure = {};\n",
		    name);
	text_printf(out, "\tweft_blocks(begin, end, %u, %s, [&](int64_t task) {\n\t\t%s_blocks(",
		    f->threads, needs_fibres(f), name);
	for (uint32_t k = 0; k < f->buf.n; k++)
		text_printf(out, "(%s%s *)f->buf[%u], ", f->buf.data[k].written ? "" : "const ",
			    c_storage(f->buf.data[k].dtype), k);
	for (uint32_t k = 0; k < f->param.n; k++)
		text_printf(out, "f->p[%u], ", k);
	text_printf(out, "task, &failure, 0);\n\t});\n\treturn weft_failed(f, &failure, %u);\n}\n",
		    f->threads);
}

void emit_cuda_host(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *t,
		    Text *out)
{
	text_add(out, "#include \"gpu_host.hpp\"\n");
	print_kernels(&cuda_language, fn, name, n, "_blocks", t, out);
	text_add(out, "\nstatic int weft_failed(const WeftFrame *f, const WeftFailure *failure, "
		      "int threads)\n{\n"
		      "\tif (!failure->id)\n\t\treturn 0;\n"
		      "\tf->failure[0] = (int64_t)~failure->key / threads;\n"
		      "\tmemcpy(f->failure + 1, failure->value, sizeof failure->value);\n"
		      "\treturn failure->id;\n}\n");
	for (uint32_t k = 0; k < n; k++)
		print_adapter(fn[k], name[k], out);
}

/* ---- images ---- */

static unsigned library_type(DType t)
{
	return t == DT_f32 ? 0 : t == DT_f16 ? 1 : 2;
}

/* Prints a WeftCudaProduct for each kernel that computes a product: a library can compute the
 * product in the kernel's place. */
static void print_products(const CudaProgram *x, Text *out)
{
	for (uint32_t k = 0; k < x->n; k++) {
		const LoopProduct *p = x->fn[k]->product;
		if (p)
			text_printf(out,
				    "static const WeftCudaProduct product_%u = {%u, %u, %u, %u, "
				    "%u, %u, %uu, %d, %d, %d, %d, {%u, %u, %u}, %u};\n",
				    k, library_type(p->a_type), library_type(p->b_type),
				    library_type(p->c_type), p->a, p->b, p->c, p->bias, p->a_rows,
				    p->b_rows, p->relu, p->gelu, p->least[0], p->least[1],
				    p->least[2], p->param);
	}
}

static void print_includes(Text *out)
{
	text_add(out, "#define WEFT_DEVICES\n#define WEFT_WITH_CUDA\n#include \"cuda.h\"\n\n");
}

/* Returns the number of the target's architecture: 90 of "sm_90"; 0 if the target names none. */
static unsigned version_of(const Target *t)
{
	return t->gpu->arch ? (unsigned)strtoul(t->gpu->arch + strlen("sm_"), NULL, 10) : 0;
}

void emit_cuda_stubs(const CudaProgram *x, Text *out)
{
	const unsigned version = version_of(x->target);
	const char *arch = x->target->gpu->arch;
	text_add(out, "/* The images of the kernels, and what launches them. */\n");
	print_includes(out);
	text_printf(out,
		    "extern const unsigned char %s[];\nconst WeftModel *%s(void);\n\nstatic const "
		    "WeftCudaImage image[] = {\n",
		    x->data, x->model);
	for (uint32_t k = 0; k < x->nimage; k++)
		text_printf(out, "\t{%llu, %llu},\n", (unsigned long long)x->image[k].code,
			    (unsigned long long)x->image[k].ptx);
	text_add(out, "};\n\n");
	print_products(x, out);
	text_add(out, "static const WeftCudaKernel kernel[] = {\n");
	for (uint32_t k = 0; k < x->n; k++)
		text_printf(out, "\t{\"%s\", %u, %u, %u, %u, %d, %s},\n", x->name[k], x->of[k],
			    x->fn[k]->threads, x->fn[k]->buf.n, x->fn[k]->param.n,
			    has_statement(x->fn[k], LS_FAIL),
			    x->fn[k]->product ? arena_printf(out->arena, "&product_%u", k)
					      : "NULL");
	text_printf(out,
		    "};\n\nextern const WeftCuda weft_code%s;\nconst WeftCuda weft_code%s = {%s, "
		    "%s, %u, %u, %u, %u, kernel, image, %s, %lluu};\n",
		    x->suffix, x->suffix, x->model,
		    arch ? arena_printf(out->arena, "\"%s\"", arch) : "NULL", version / 10,
		    version % 10, x->n, x->nimage, x->data, (unsigned long long)x->weights);
	for (uint32_t k = 0; k < x->n; k++)
		text_printf(out,
			    "\nint %s(const WeftFrame *f, int64_t begin, int64_t end);\nint "
			    "%s(const WeftFrame *f, int64_t begin, int64_t end)\n{\n"
			    "\treturn weft_cuda_launch(f, %u, begin, end);\n}\n",
			    x->name[k], x->name[k], k);
}

static void print_exported(const char *name, const char *suffix, const char *args, Text *out)
{
	text_printf(out,
		    "\n__attribute__((visibility(\"default\")))\nconst WeftModel "
		    "*%s%s(%s);\n\nconst WeftModel *%s%s(%s)\n",
		    name, suffix, args, name, suffix, args);
}

void emit_cuda_select(const CudaProgram *x, uint32_t n, const EmitSelect *cpu, bool only, Text *out)
{
	const char *name = cpu->export_name ? cpu->export_name : "weft_model";
	text_add(out, "/* Which table is for which device. */\n");
	print_includes(out);
	for (uint32_t k = 0; k < n; k++)
		text_printf(out, "extern const WeftCuda weft_code%s;\n", x[k].suffix);
	for (uint32_t k = 0; k < cpu->n; k++)
		text_printf(out, "const WeftModel *%s(void);\n", cpu->level_export[k]);
	text_add(out, "\nconst WeftCuda *const weft_cuda[] = {");
	for (uint32_t k = 0; k < n; k++)
		text_printf(out, "&weft_code%s, ", x[k].suffix);
	text_add(out, "NULL};\n");
	if (only) {
		text_printf(out, "\nconst WeftModel *%s(void);\n", name);
	} else {
		print_exported(name, "", "void", out);
		text_add(out, "{\n");
		if (cpu->n) {
			text_add(out, "\tstatic const WeftModel *(*const level[])(void) = {");
			for (uint32_t k = 0; k < cpu->n; k++)
				text_printf(out, "%s%s", k ? ", " : "", cpu->level_export[k]);
			text_printf(out, "};\n\treturn weft_rt_select(level, %u);\n}\n", cpu->n);
		} else {
			text_add(out, "\treturn weft_cuda_model(0);\n}\n");
		}
	}
	print_exported(name, "_device", "int32_t type, int32_t id", out);
	text_printf(out, "{\n\treturn type == WEFT_CUDA ? weft_cuda_model(id) : %s();\n}\n", name);
}

static void print_run(const LoopFn *f, const char *name, Text *out)
{
	const uint32_t n = f->buf.n + f->param.n;
	text_printf(out,
		    "\nextern \"C\" __attribute__((visibility(\"default\"))) void %s_run(const "
		    "int64_t *arg, int64_t blocks)\n{\n",
		    name);
	text_printf(out,
		    "\tweft_blocks(0, blocks, %u, %s, [&](int64_t task) {\n\t\tblockIdx.x = "
		    "(unsigned)task;\n\t\t%s(",
		    f->threads, needs_fibres(f), name);
	for (uint32_t k = 0; k < f->buf.n; k++)
		text_printf(out, "(%s%s *)arg[%u], ", f->buf.data[k].written ? "" : "const ",
			    c_storage(f->buf.data[k].dtype), k);
	for (uint32_t k = f->buf.n; k < n; k++)
		text_printf(out, "arg[%u], ", k);
	text_printf(out, "arg[%u], (WeftFailure *)arg[%u], arg[%u]);\n\t});\n}\n", n, n + 1, n + 2);
}

void emit_cuda_standin(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *t,
		       Text *out)
{
	text_add(out, "#include \"gpu_host.hpp\"\n");
	print_kernels(&cuda_language, fn, name, n, "", t, out);
	for (uint32_t k = 0; k < n; k++)
		print_run(fn[k], name[k], out);
}
