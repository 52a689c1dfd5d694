/* The C emitter: every operation on every dtype against the reference evaluator, memory access of
 * every storage type, control flow; compiled with the system's compiler for every target this
 * processor runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>

#include "codegen/print/c/emit.h"
#include "codegen/legal/legalise.h"
#include "codegen/cpu/host.h"
#include "ir/op/op.h"
#include "ir/scalar/priv.h"
#include "weft_model.h"

enum { N = 16 * 6 + 5 }; /* elements: whole vectors and a tail */

typedef struct {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
} Frame;
typedef int (*KernelFn)(const Frame *, int64_t, int64_t);

typedef struct {
	Ctx *ctx;
	Ir *ir;
	const Target *target;
	uint32_t lanes;
	Program *p;
	void *lib;
} Bench;

/* ---- compiling ---- */

static void run_command(const char *cmd)
{
	int rc = system(cmd);
	if (rc != 0)
		fail_msg("failed (%d): %s", rc, cmd);
}

static const char *flags_for(const Target *t)
{
	if (!t->isa.vector_bytes)
		return "-std=c11 -pedantic -Wall -Wextra -Werror -O1";
	/* optimising takes most of the test's time, so one vector target has to do */
	return t->isa.masks == MASK_BITS ? "-std=gnu11 -Wall -Wextra -Werror -O1"
	                             : "-std=gnu11 -Wall -Wextra -Werror -O0";
}

/* In place of the runtime: one thread. */
static const char stub[] =
	"#include \"runtime.h\"\n#include <stdarg.h>\n#include <stdio.h>\n#include <string.h>\n"
	"int weft_phase(WeftRegion *r, WeftKernel k, void *const *b, const int64_t *p, uint32_t "
	"call, int64_t n)\n"
	"{\n\t(void)r;\n\t(void)call;\n\treturn k(&(WeftFrame){b, p, NULL, NULL, r}, 0, n);\n}\n"
	"void weft_copy(WeftRegion *r, void *to, const void *from, int64_t n)\n"
	"{\n\t(void)r;\n\tmemcpy(to, from, (size_t)n);\n}\n"
	"int weft_fail(WeftStatus *s, int code, const char *fmt, ...)\n"
	"{\n\tva_list ap;\n\tva_start(ap, fmt);\n\tvsnprintf(s->message, sizeof s->message, fmt, "
	"ap);\n"
	"\tva_end(ap);\n\treturn s->code = code;\n}\n"
	"int weft_rt_open(const WeftModel *m, const WeftOpen *o, WeftInstance **i, WeftStatus *s)\n"
	"{\n\t(void)m;\n\t(void)o;\n\t(void)i;\n\t(void)s;\n\treturn 1;\n}\n"
	"void weft_rt_close(WeftInstance *i)\n{\n\t(void)i;\n}\n"
	"int weft_rt_sizes(const WeftInstance *i, uint32_t e, const WeftTensor *t, WeftSizes *z,\n"
	"                  WeftStatus *s)\n"
	"{\n\t(void)i;\n\t(void)e;\n\t(void)t;\n\t(void)z;\n\t(void)s;\n\treturn 1;\n}\n"
	"int weft_rt_run(WeftInstance *i, const WeftSizes *z, const WeftTensor *x,\n"
	"                WeftTensor *y, void *w, const WeftContext *c, WeftStatus *s)\n"
	"{\n\t(void)i;\n\t(void)z;\n\t(void)x;\n\t(void)y;\n\t(void)w;\n\t(void)c;\n\t(void)s;"
	"\n\treturn 1;\n}\n"
	"int weft_rt_clone(WeftInstance *i, WeftInstance **o, WeftStatus *s)\n"
	"{\n\t(void)i;\n\t(void)o;\n\t(void)s;\n\treturn 1;\n}\n"
	"int weft_rt_no_weights(WeftInstance *i, uint32_t n, const char *const *m, const "
	"WeftTensor *t,\n"
	"                       const WeftContext *c, WeftStatus *s)\n"
	"{\n\t(void)i;\n\t(void)n;\n\t(void)m;\n\t(void)t;\n\t(void)c;\n\t(void)s;\n\treturn "
	"1;\n}\n"
	"int weft_rt_no_state(WeftInstance *i, uint32_t k, const WeftTensor *t, WeftStatus *s)\n"
	"{\n\t(void)i;\n\t(void)k;\n\t(void)t;\n\t(void)s;\n\treturn 1;\n}\n"
	"int weft_rt_no_reset(WeftInstance *i, WeftStatus *s)\n{\n\t(void)i;\n\t(void)s;\n\treturn "
	"1;\n}\n"
	"WeftThreads *weft_rt_threads_new(WeftThreadsKind k, int32_t n, WeftStatus *s)\n"
	"{\n\t(void)k;\n\t(void)n;\n\t(void)s;\n\treturn NULL;\n}\n"
	"void weft_rt_threads_free(WeftThreads *t)\n{\n\t(void)t;\n}\n";

/* Emit the program and load it; the files are compiled side by side. */
static void compile(Bench *b)
{
	EmitFiles files = {0};
	EmitOptions o = {.nunits = 3};
	Arena *arena = b->ctx->arena;
	for (uint32_t k = 0; k < b->p->fn.n; k++)
		legalise(b->p->fn.data[k], &b->target->isa);
	entry_legalise(&b->p->entry.data[0], &b->target->isa);
	assert_true(program_verify(b->p, &b->target->isa));
	emit_c(b->p, b->target, &o, &files);
	Text stub_text, cmd;
	text_init(&stub_text, arena);
	text_add(&stub_text, stub);
	array_push(arena, &files.file, (EmitFile){.name = "stub.c", .text = stub_text});
	const char *tmp = getenv("TMPDIR");
	char *dir = arena_printf(arena, "%s/weft-codegen-c-XXXXXX", tmp ? tmp : "/tmp");
	const char *root = TEST_DATA "/../..";
	assert_non_null(mkdtemp(dir));
	text_init(&cmd, arena);
	text_add(&cmd, "fail=0; pids=; ");
	for (uint32_t k = 0; k < files.file.n; k++) {
		const EmitFile *f = &files.file.data[k];
		assert_true(text_write_file(&f->text, arena_printf(arena, "%s/%s", dir, f->name)));
		if (!f->is_header)
			text_printf(&cmd,
				    "cc %s %s -fno-math-errno -ffp-contract=off -fPIC -I%s/include "
				    "-I%s/runtime -c %s/%s -o %s/%s.o & pids=\"$pids $!\"; ",
				    flags_for(b->target), b->target->isa.flags, root, root, dir,
				    f->name, dir, f->name);
	}
	text_printf(&cmd, "for p in $pids; do wait $p || fail=1; done; "
	            "test $fail = 0 && cc -shared -o %s/model.so %s/*.o -lm", dir, dir);
	run_command(cmd.data);
	b->lib = dlopen(arena_printf(arena, "%s/model.so", dir), RTLD_NOW | RTLD_LOCAL);
	if (!b->lib)
		fail_msg("%s", dlerror());
	if (!getenv("WEFT_KEEP"))
		run_command(arena_printf(arena, "rm -r %s", dir));
}

static KernelFn find(Bench *b, const char *name)
{
	KernelFn k;
	void *p = dlsym(b->lib, arena_printf(b->ctx->arena, "k_%s", name));
	if (!p)
		fail_msg("no kernel %s", name);
	memcpy(&k, &p, sizeof k);
	return k;
}

static LoopFn *kernel(Bench *b, const char *name)
{
	LoopFn *f = loop_new(b->ir, name);
	array_push(b->ctx->arena, &b->p->fn, f);
	return f;
}

static uint32_t arg(LoopFn *f, const char *name, DType d)
{
	return loop_buf(
		f, (LArg){.name = name, .dtype = d, .align = dtype_size(d), .restrict_ok = true});
}

static void finish(LoopFn *f)
{
	loop_simplify(f);
	if (!loop_verify(f, NULL)) {
		Text t;
		text_init(&t, f->ir->ctx->arena);
		ctx_print(f->ir->ctx, &t);
		loop_print(f, &t, false);
		fail_msg("%s", t.data);
	}
}

/* ---- point-wise kernels ---- */

typedef struct {
	ScOp op;
	const ScFn *fn; /* or this */
	int literal;    /* the operand replaced by the literal 0.0, or -1 */
	uint32_t nin;
	DType in[3], out; /* storage dtypes */
	const char *name;
	bool wild; /* a function that takes infinities and NaN */
} Point;

static Lx point_value(LoopFn *f, const Point *p, const Lx *in, uint32_t lanes)
{
	if (p->fn)
		return lx_fn(f, p->fn, lanes, in, p->nin);
	if (p->literal >= 0) {
		Lx arg2[2] = {in[0], in[1]};
		arg2[p->literal] = lx_float(f, (LType){p->out, lanes}, 0.0);
		return lx_sc(f, p->op, (LType){p->out, lanes}, arg2, 2);
	}
	if (p->op == SC_let) /* storage conversion only */
		return in[0];
	return lx_sc(f, p->op, (LType){dtype_compute(p->out), lanes}, in, p->nin);
}

static void point_body(LoopFn *f, const Point *p, Lx i, uint32_t lanes, Lx mask)
{
	static const char *const names[] = {"a", "b", "c"};
	Lx in[3];
	for (uint32_t k = 0; k < p->nin; k++) {
		LType type = {dtype_compute(p->in[k]), lanes};
		in[k] = lx_var(f, ls_load(f, names[k], lmem_buf(k, p->in[k]), i, type, mask));
	}
	Lv r = ls_let(f, "r", point_value(f, p, in, lanes));
	ls_store(f, lmem_buf(p->nin, p->out), i, lx_var(f, r), mask);
}

/* Whole vectors, then the rest under a mask; with one lane the mask is a plain condition. */
static void point_kernel(Bench *b, const Point *p)
{
	static const char *const names[] = {"x", "y", "z"};
	LoopFn *f = kernel(b, p->name);
	for (uint32_t k = 0; k < p->nin; k++)
		arg(f, names[k], p->in[k]);
	arg(f, "out", p->out);
	Lx n = lx_param(f, loop_param(f, "n")), none = {0};
	int64_t step = b->lanes;
	Lx whole = lx_mul(f, lx_div(f, n, lx_int(f, step)), lx_int(f, step));
	Lv end = ls_let(f, "end", whole);
	Lv i = ls_for(f, "i", lx_int(f, 0), lx_var(f, end), step);
	point_body(f, p, lx_var(f, i), b->lanes, none);
	ls_end(f);
	Lx rest = lx_sub(f, n, lx_var(f, end));
	point_body(f, p, lx_var(f, end), b->lanes, lx_mask(f, rest, b->lanes));
	finish(f);
}

/* ---- data ---- */

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

static double special(uint32_t k)
{
	static const double v[] = {0.0,           -0.0,         1.0,     -1.0,     0.5,
				   1.5,           2.5,          -2.5,    INFINITY, -INFINITY,
				   NAN,           1e-40,        -1e-40,  3e38,     2147483648.0,
				   -2147483648.0, 4294967296.0, 255.5,   -0.7,     1e10,
				   9.3e18,        -9.3e18,      65504.0, 65520.0,  448.0,
				   464.0,         6e-8,         3e-8,    0x1p-126, 127.9};
	return v[k % (sizeof v / sizeof *v)];
}

static uint32_t natural_size(DType d)
{
	return dtype_is_float(d) && d != DT_f64 ? 4 : dtype_size(d);
}

/* Values in their natural representation (ir/scalar/priv.h). */
static void fill(DType d, void *p, uint32_t salt, bool wild)
{
	uint64_t s = 0x9e3779b97f4a7c15u * (salt + 1);
	for (uint32_t i = 0; i < N; i++) {
		uint64_t r = next_random(&s);
		ScVal v = {0};
		if (dtype_is_float(d)) {
			bool first = salt % 3 == 0 && i < 30; /* the first operand meets them all */
			bool sp = wild && (first || r % 3 == 0);
			v.f = sp ? special(first ? i : (uint32_t)(r >> 8))
				 : ((double)(int64_t)r) * 0x1p-60;
		} else if (d == DT_bool) {
			v.i = r & 1;
		} else {
			v.i = r % 4 == 0 ? (int64_t)(r >> 40) % 5 - 2 : (int64_t)(r >> (r & 31));
		}
		scalar_pack(d, (char *)p + i * natural_size(d), &v, 1);
	}
}

/* As it lies in memory. */
static void to_memory(DType d, void *mem, const void *natural)
{
	const float *f = natural;
	for (uint32_t i = 0; i < N; i++) {
		switch (d) {
		case DT_f16: ((uint16_t *)mem)[i] = f32_to_f16(f[i]); break;
		case DT_bf16: ((uint16_t *)mem)[i] = f32_to_bf16(f[i]); break;
		case DT_f8e4m3: case DT_f8e5m2: case DT_f8e4m3fnuz: case DT_f8e5m2fnuz:
			((uint8_t *)mem)[i] = (uint8_t)f32_to_narrow(d, f[i]);
			break;
		default:
			memcpy((char *)mem + i * dtype_size(d),
			       (const char *)natural + i * dtype_size(d), dtype_size(d));
		}
	}
}

static bool is_nan_at(DType d, const void *mem, uint32_t i)
{
	switch (d) {
	case DT_f32: return isnan(((const float *)mem)[i]);
	case DT_f64: return isnan(((const double *)mem)[i]);
	case DT_f16: return isnan(f16_to_f32(((const uint16_t *)mem)[i]));
	case DT_bf16: return isnan(bf16_to_f32(((const uint16_t *)mem)[i]));
	default: return false;
	}
}

static void check_same(const Bench *b, const Point *p, const void *got, const void *want,
                       void *const *buf)
{
	uint32_t size = dtype_size(p->out);
	for (uint32_t i = 0; i < N; i++) {
		uint64_t g = 0, w = 0, x = 0, y = 0;
		memcpy(&g, (const char *)got + i * size, size);
		memcpy(&w, (const char *)want + i * size, size);
		memcpy(&x, (const char *)buf[0] + i * dtype_size(p->in[0]), dtype_size(p->in[0]));
		if (p->nin > 1)
			memcpy(&y, (const char *)buf[1] + i * dtype_size(p->in[1]),
			       dtype_size(p->in[1]));
		if (g != w && !(is_nan_at(p->out, got, i) && is_nan_at(p->out, want, i)))
			fail_msg("%s %s [%u]: %llx, expected %llx (x = %llx, y = %llx)",
				 b->target->isa.name, p->name, i, (unsigned long long)g,
				 (unsigned long long)w, (unsigned long long)x,
				 (unsigned long long)y);
	}
	/* nothing behind the tail was touched */
	for (uint32_t i = N * size; i < (N + 16) * size; i++)
		assert_int_equal(((const uint8_t *)got)[i], 0xee);
}

static void expected(const Point *p, const void *const *natural, void *want)
{
	_Alignas(16) char value[N * 8];
	if (p->fn) {
		ScVal in[3][N], out[N];
		const ScVal *args[3] = {in[0], in[1], in[2]};
		for (uint32_t k = 0; k < p->nin; k++)
			scalar_unpack(p->in[k], in[k], natural[k], N);
		scalar_eval_n(p->fn, args, out, N);
		scalar_pack(p->out, value, out, N);
	} else if (p->op == SC_let) {
		ScIns ins = {.op = SC_convert, .dtype = p->out, .nin = 1};
		scalar_step(&ins, dtype_compute(p->in[0]), value, natural, N);
	} else {
		ScIns ins = {.op = p->op, .dtype = p->out, .nin = p->nin};
		scalar_step(&ins, p->op == SC_select ? p->in[1] : p->in[0], value, natural, N);
	}
	to_memory(p->out, want, value);
}

static void point_run(Bench *b, const Point *p)
{
	_Alignas(16) char natural[3][N * 8], mem[3][N * 8], got[(N + 16) * 8], want[N * 8];
	void *buf[4];
	const void *nat[3] = {natural[0], natural[1], natural[2]};
	bool wild = p->wild || !p->fn;
	for (uint32_t k = 0; k < p->nin; k++) {
		fill(p->in[k], natural[k], k + 3 * p->op, wild);
		/* some equal operands */
		for (uint32_t i = 4; k && p->in[k] == p->in[0] && i < N; i += 5)
			memcpy(natural[k] + i * natural_size(p->in[k]),
			       natural[0] + i * natural_size(p->in[k]), natural_size(p->in[k]));
		for (uint32_t i = 0; i < N && p->literal == (int)k; i++)
			scalar_pack(p->in[k], natural[k] + i * natural_size(p->in[k]),
				    &(ScVal){.f = 0.0}, 1);
		to_memory(p->in[k], mem[k], natural[k]);
		/* the value is what memory holds */
		if (dtype_size(p->in[k]) != natural_size(p->in[k])) {
			ScIns ins = {.op = SC_convert, .dtype = p->in[k], .nin = 1};
			_Alignas(16) char copy[N * 8];
			memcpy(copy, natural[k], sizeof copy);
			const void *from[] = {copy};
			scalar_step(&ins, DT_f32, natural[k], from, N);
		}
		buf[k] = mem[k];
	}
	buf[p->nin] = got;
	memset(got, 0xee, sizeof got);
	expected(p, nat, want);
	int64_t param[] = {N};
	assert_int_equal(find(b, p->name)(&(Frame){buf, param, NULL}, 0, 1), 0);
	check_same(b, p, got, want, buf);
}

/* ---- the list of point-wise kernels ---- */

typedef ARRAY(Point) Points;

static void add_literal(Bench *b, Points *list, ScOp op, uint32_t nin, DType in, DType out,
			int literal)
{
	Point p = {.op = op, .nin = nin, .in = {in, in, in}, .out = out, .literal = literal};
	if (op == SC_select)
		p.in[0] = DT_bool;
	p.name = arena_printf(b->ctx->arena, "%s_%s_%s_%d", op == SC_let ? "store" : sc_name(op),
	                      dtype_name(in), dtype_name(out), literal + 1);
	array_push(b->ctx->arena, list, p);
}

static void add(Bench *b, Points *list, ScOp op, uint32_t nin, DType in, DType out)
{
	add_literal(b, list, op, nin, in, out, -1);
}

static void add_conversion(Bench *b, Points *list, const ScFn *fn)
{
	Point p = {.fn = fn,
		   .nin = 1,
		   .in = {fn->param[0]},
		   .out = fn->result,
		   .literal = -1,
		   .wild = true};
	p.name = arena_printf(b->ctx->arena, "fn_%s", fn->name);
	array_push(b->ctx->arena, list, p);
}

static void all_points(Bench *b, Points *list)
{
	static const DType number[] = {DT_f32, DT_f64, DT_i32, DT_i64, DT_u8,
				       DT_i8,  DT_i16, DT_u16, DT_u32, DT_u64};
	static const ScOp floats1[] = {SC_neg,  SC_abs,   SC_sqrt, SC_floor,
				       SC_ceil, SC_trunc, SC_rint};
	static const ScOp floats2[] = {SC_add, SC_sub, SC_mul, SC_div, SC_min, SC_max};
	static const ScOp ints2[] = {SC_add, SC_sub, SC_mul, SC_min, SC_max, SC_floordiv, SC_rem,
	                             SC_and, SC_or, SC_xor, SC_shl, SC_shr};
	for (uint32_t k = 0; k < 10; k++) {
		DType d = number[k];
		if (k < 2) {
			for (uint32_t j = 0; j < 7; j++)
				add(b, list, floats1[j], 1, d, d);
			for (uint32_t j = 0; j < 6; j++)
				add(b, list, floats2[j], 2, d, d);
			add(b, list, SC_fma, 3, d, d);
			for (int j = 0; j < 2; j++) {
				add_literal(b, list, SC_min, 2, d, d, j);
				add_literal(b, list, SC_max, 2, d, d, j);
			}
		} else {
			for (uint32_t j = 0; j < 12; j++)
				add(b, list, ints2[j], 2, d, d);
			add(b, list, SC_neg, 1, d, d);
			add(b, list, SC_abs, 1, d, d);
			add(b, list, SC_not, 1, d, d);
		}
		for (ScOp op = SC_eq; op <= SC_ge; op++)
			if (k < 5 || op == SC_eq || op == SC_lt)
				add(b, list, op, 2, d, DT_bool);
		add(b, list, SC_select, 3, d, d);
		for (uint32_t j = 0; j < 10; j++)
			if (k < 2 && j >= 2)
				add_conversion(b, list, scalar_convert(d, number[j]));
			else if (j != k && (k < 2 || j < 5))
				add(b, list, SC_convert, 1, d, number[j]);
		add(b, list, SC_convert, 1, d, DT_bool);
		add(b, list, SC_convert, 1, DT_bool, d);
	}
	for (ScOp op = SC_and; op <= SC_xor; op++)
		add(b, list, op, 2, DT_bool, DT_bool);
	for (ScOp op = SC_eq; op <= SC_ge; op++)
		add(b, list, op, 2, DT_bool, DT_bool);
	add(b, list, SC_not, 1, DT_bool, DT_bool);
	add(b, list, SC_select, 3, DT_bool, DT_bool);
	add(b, list, SC_bitcast, 1, DT_f32, DT_i32);
	add(b, list, SC_bitcast, 1, DT_i32, DT_f32);
	add(b, list, SC_bitcast, 1, DT_f64, DT_u64);
	static const DType small[] = {DT_f16, DT_bf16, DT_f8e4m3, DT_f8e5m2, DT_f8e4m3fnuz,
				       DT_f8e5m2fnuz};
	for (uint32_t k = 0; k < sizeof small / sizeof *small; k++) {
		add(b, list, SC_let, 1, DT_f32, small[k]);
		add(b, list, SC_let, 1, small[k], DT_f32);
		add_conversion(b, list, scalar_round(small[k]));
	}
}

static void add_fn(Bench *b, Points *list, const char *name, DType d)
{
	Point p = {.fn = scalar_lib(name, d), .nin = 1, .in = {d}, .out = d, .literal = -1};
	assert_non_null(p.fn);
	p.name = arena_printf(b->ctx->arena, "fn_%s_%s", name, dtype_name(d));
	array_push(b->ctx->arena, list, p);
}

/* ---- other kernels ---- */

static void reduce_kernel(Bench *b, const char *name, ScOp op, DType d)
{
	LoopFn *f = kernel(b, name);
	uint32_t x = arg(f, "x", d), out = arg(f, "out", d);
	LType type = {d, b->lanes};
	Lv acc = {0};
	for (int64_t k = 0; k < 2; k++) {
		Lx at = lx_int(f, k * b->lanes);
		Lv v = ls_load(f, "v", lmem_buf(x, d), at, type, (Lx){0});
		if (k == 0)
			acc = ls_var(f, "acc", lx_var(f, v));
		else
			ls_set(f, acc, lx_sc(f, op, type, (Lx[]){lx_var(f, acc), lx_var(f, v)}, 2));
	}
	ls_store(f, lmem_buf(out, d), lx_var(f, f->task), lx_hreduce(f, op, lx_var(f, acc)),
		 (Lx){0});
	finish(f);
}

/* The documented tree: lane k with lane k + half. */
static void check_reduce(Bench *b, const char *name, bool max)
{
	float x[32], acc[16], out[3] = {7, 7, 7};
	uint32_t L = b->lanes;
	for (uint32_t k = 0; k < 32; k++)
		x[k] = (float)sin(k * 1.7) * (k % 5 == 0 ? 1e4f : 1.0f);
	for (uint32_t k = 0; k < L; k++)
		acc[k] = max ? fmaxf(x[k], x[k + L]) : x[k] + x[k + L];
	for (uint32_t h = L / 2; h; h /= 2)
		for (uint32_t k = 0; k < h; k++)
			acc[k] = max ? fmaxf(acc[k], acc[k + h]) : acc[k] + acc[k + h];
	void *buf[] = {x, out};
	assert_int_equal(find(b, name)(&(Frame){buf, NULL, NULL}, 1, 2), 0);
	assert_true(out[0] == 7 && out[2] == 7);
	assert_memory_equal(&out[1], acc, 4);
}

/* out[idx[i]] = x[idx[i]] * 2 where 0 <= idx[i] < n; the rest fails check 3. */
static void gather_kernel(Bench *b)
{
	LoopFn *f = kernel(b, "gather");
	uint32_t x = arg(f, "x", DT_f16), index = arg(f, "index", DT_i64),
		 out = arg(f, "out", DT_f32);
	Lx n = lx_param(f, loop_param(f, "n")), zero = lx_int(f, 0);
	LType ltype = {DT_i64, b->lanes};
	Lv v = ls_load(f, "i", lmem_buf(index, DT_i64),
		       lx_mul(f, lx_var(f, f->task), lx_int(f, b->lanes)), ltype, (Lx){0});
	Lx i = lx_var(f, v);
	Lx ok = lx_and(f, lx_cmp(f, SC_ge, i, zero), lx_cmp(f, SC_lt, i, n));
	Lv valid = ls_let(f, "valid", ok);
	ls_if(f, lx_any(f, lx_fails(f, lx_var(f, valid), (Lx){0})));
	ls_fail(f, 3, (Lx[]){n}, 1);
	ls_end(f);
	Lv g = ls_gather(f, "g", lmem_buf(x, DT_f16), zero, i, DT_f32, lx_var(f, valid));
	Lx twice = lx_mul(f, lx_var(f, g), lx_float(f, (LType){DT_f32, 1}, 2.0));
	ls_if(f, lx_any(f, lx_var(f, valid)));
	ls_scatter(f, lmem_buf(out, DT_f32), zero, i, twice, lx_var(f, valid));
	ls_end(f);
	finish(f);
}

static void check_gather(Bench *b)
{
	uint16_t x[40];
	int64_t index[32];
	float out[40] = {0}, want[40] = {0};
	for (uint32_t k = 0; k < 40; k++)
		x[k] = f32_to_f16((float)k + 0.25f);
	for (uint32_t k = 0; k < 32; k++) {
		index[k] = k * 7 % 40;
		want[index[k]] = 2 * ((float)index[k] + 0.25f);
	}
	void *buf[] = {x, index, out};
	int64_t n = 40, tasks = 32 / b->lanes, failure[2];
	KernelFn k = find(b, "gather");
	assert_int_equal(k(&(Frame){buf, &n, failure}, 0, tasks), 0);
	assert_memory_equal(out, want, sizeof out);
	index[5] = -1;
	index[31] = 40;
	memset(out, 0, sizeof out);
	want[35] = 0; /* index 5 is gone; 31 * 7 % 40 == 17 is too */
	want[17] = 0;
	assert_int_equal(k(&(Frame){buf, &n, failure}, 0, tasks), 3);
	assert_int_equal(failure[0], 5 / b->lanes);
	assert_int_equal(failure[1], 40);
	assert_memory_equal(out, want, sizeof out);
}

/* Collatz steps by while, if, else; a local array and an unrolled loop that fills it. */
static void control_kernel(Bench *b)
{
	LoopFn *f = kernel(b, "control");
	uint32_t out = arg(f, "out", DT_i64);
	LMem tile = ls_local(f, "tile", DT_i64, 4);
	Lx one = lx_int(f, 1);
	Lv v = ls_var(f, "double", lx_add(f, lx_var(f, f->task), one)); /* a keyword in C */
	Lv steps = ls_var(f, "steps", lx_int(f, 0));
	ls_while(f, lx_cmp(f, SC_ne, lx_var(f, v), one));
	Lx odd = lx_cmp(f, SC_eq, lx_and(f, lx_var(f, v), one), one);
	ls_if(f, odd);
	ls_set(f, v, lx_add(f, lx_mul(f, lx_var(f, v), lx_int(f, 3)), one));
	ls_else(f);
	ls_set(f, v, lx_div(f, lx_var(f, v), lx_int(f, 2)));
	ls_end(f);
	ls_set(f, steps, lx_add(f, lx_var(f, steps), one));
	ls_end(f);
	Lv k = ls_for(f, "k", lx_int(f, 0), lx_int(f, 4), 1);
	Lv t = ls_let(f, "t", lx_mul(f, lx_var(f, k), lx_var(f, steps)));
	ls_store(f, tile, lx_var(f, k), lx_add(f, lx_var(f, t), lx_var(f, k)), (Lx){0});
	ls_end(f);
	Lv sum = ls_var(f, "sum", lx_int(f, 0));
	k = ls_for(f, "k", lx_int(f, 0), lx_int(f, 4), 1);
	Lv e = ls_load(f, "e", tile, lx_var(f, k), (LType){DT_i64, 1}, (Lx){0});
	ls_set(f, sum, lx_add(f, lx_var(f, sum), lx_var(f, e)));
	ls_end(f);
	ls_store(f, lmem_buf(out, DT_i64), lx_var(f, f->task), lx_var(f, sum), (Lx){0});
	finish(f);
}

static void check_control(Bench *b)
{
	int64_t out[30];
	void *buf[] = {out};
	assert_int_equal(find(b, "control")(&(Frame){buf, NULL, NULL}, 0, 30), 0);
	for (int64_t i = 0; i < 30; i++) {
		int64_t v = i + 1, steps = 0;
		for (; v != 1; steps++)
			v = v & 1 ? 3 * v + 1 : v / 2;
		assert_int_equal(out[i], 6 * steps + 6);
	}
}

static Lx lane(LoopFn *f, Lx x, uint32_t k)
{
	for (uint32_t half = lx_type(f, x).lanes / 2; half; half /= 2, k %= half ? 2 * half : 1)
		x = lx_shuffle(f, k >= half ? SHUFFLE_HIGH : SHUFFLE_LOW, x, x);
	return x;
}

/* out[i] = index arithmetic on negative values, and ramps and lanes taken from them. */
static void index_kernel(Bench *b)
{
	LoopFn *f = kernel(b, "index");
	uint32_t out = arg(f, "out", DT_i64);
	Lx i = lx_sub(f, lx_var(f, f->task), lx_int(f, 10)), none = {0};
	Lx base = lx_mul(f, lx_var(f, f->task), lx_int(f, 5));
	Lx value[5] = {lx_div(f, i, lx_int(f, 4)), lx_mod(f, i, lx_int(f, 4)),
		       lx_div(f, i, lx_int(f, 3)), lx_mod(f, i, lx_int(f, 3))};
	Lx ramp = lx_ramp(f, i, lx_int(f, 3), b->lanes);
	value[4] = lane(f, ramp, b->lanes / 2);
	for (int64_t k = 0; k < 5; k++)
		ls_store(f, lmem_buf(out, DT_i64), lx_add(f, base, lx_int(f, k)), value[k], none);
	finish(f);
}

static void check_index(Bench *b)
{
	int64_t out[100];
	void *buf[] = {out};
	assert_int_equal(find(b, "index")(&(Frame){buf, NULL, NULL}, 0, 20), 0);
	for (int64_t t = 0; t < 20; t++) {
		int64_t i = t - 10, *o = out + 5 * t;
		assert_true(o[0] == (int64_t)floor((double)i / 4) && o[1] == i - 4 * o[0]);
		assert_true(o[2] == (int64_t)floor((double)i / 3) && o[3] == i - 3 * o[2]);
		assert_true(o[4] == i + 3 * (b->lanes / 2));
	}
}

/* ---- program ---- */

/* sizes(n): n must be positive; run: the kernel "control" over n tasks, then a copy. */
static void program(Bench *b)
{
	Program *p = b->p;
	ProgramEntry *e = program_entry(p, "test");
	SymTab *st = b->ir->syms;
	Sym s0 = sym_var(st, "s0", SYMVAR_SIZE, 1, 64);
	Sym *dim = arena_dup(b->ctx->arena, &s0, sizeof s0);
	array_push(b->ctx->arena, &e->symbol, s0);
	array_push(b->ctx->arena, &e->input, (ProgramTensor){"x", DT_f32, 1, dim});
	array_push(b->ctx->arena, &e->output, (ProgramTensor){"y", DT_i64, 1, dim});
	uint32_t fn = 0;
	while (strcmp(p->fn.data[fn]->name, "control") != 0)
		fn++;
	Arena *arena = b->ctx->arena;
	ProgramCost cost = {cost_number(arena, 1e3), cost_number(arena, 8), cost_number(arena, 1)};
	program_add_call(e, &(ProgramCall){.fn = fn,
					   .name = "control \"1\"",
					   .algorithm = "by hand",
					   .cost = cost});
	uint32_t message =
		program_message(p, "input x, dimension 0: expected at least %lld, got %lld");
	e->sizes = loop_new(b->ir, "sizes");
	Lx n = lx_param(e->sizes, loop_param(e->sizes, "x_dim_0")), one = lx_int(e->sizes, 1);
	ls_assert(e->sizes, lx_cmp(e->sizes, SC_ge, n, one), message, (Lx[]){one, n}, 2);
	ls_result(e->sizes, 0, n);
	ls_result(e->sizes, 1, n);
	ls_result(e->sizes, 2, lx_mul(e->sizes, n, lx_int(e->sizes, 8)));
	e->run = loop_new(b->ir, "run");
	LoopFn *r = e->run;
	Lx size = lx_param(r, loop_param(r, "s0"));
	Lx work = lx_addr(r, 3, lx_int(r, 0)), y = lx_addr(r, 1, lx_int(r, 0));
	ls_launch(r, 0, size, (Lx[]){work}, 1, 1);
	ls_copy(r, y, work, lx_mul(r, size, lx_int(r, 8)));
	assert_true(loop_verify(e->sizes, NULL) && loop_verify(e->run, NULL));
}

static void check_program(Bench *b)
{
	const WeftModel *(*get)(void);
	void *sym = dlsym(b->lib, "weft_model");
	assert_non_null(sym);
	memcpy(&get, &sym, sizeof get);
	const WeftEntry *e = weft_entry(get(), 0);
	assert_string_equal(get()->manifest->target, b->target->isa.name);
	assert_string_equal(e->input[0].dim[0].text, "s0");
	assert_int_equal(e->output[0].dim[0].symbol, 0);
	assert_int_equal(e->symbol[0].hi, 64);
	assert_string_equal(e->call[0].name, "control \"1\"");
	int64_t extent = 30, slot[3] = {0};
	WeftStatus status;
	assert_int_equal(e->sizes_fn(&extent, slot, &status), WEFT_OK);
	assert_true(slot[0] == 30 && slot[1] == 30 && slot[2] == 240);
	extent = 0;
	assert_int_equal(e->sizes_fn(&extent, slot, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "input x, dimension 0: expected at least 1, got 0");
	int64_t x[30], y[30] = {0}, work[30];
	slot[0] = 30;
	void *buf[] = {x, y, NULL, work, NULL};
	assert_int_equal(e->run_fn(NULL, buf, slot), 0);
	assert_int_equal(y[26], 6 * 111 + 6);
}

/* ---- per target ---- */

static void on_target(const char *name)
{
	const Target *t = target_named(name);
	assert_non_null(t);
	if (!target_runs_here(t))
		skip();
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s", ctx->bug_text);
	op_init();
	Bench bench = {ctx, ir_new(ctx), t, target_width(t), NULL, NULL}, *b = &bench;
	b->p = program_new(b->ir, "test");
	Points points = {0};
	all_points(b, &points);
	static const char *const fns[] = {"exp", "log", "tanh", "sin", "erf"};
	for (uint32_t k = 0; k < 5; k++) {
		add_fn(b, &points, fns[k], DT_f32);
		add_fn(b, &points, fns[k], DT_f64);
	}
	for (uint32_t k = 0; k < points.n; k++)
		point_kernel(b, &points.data[k]);
	reduce_kernel(b, "reduce_add", SC_add, DT_f32);
	reduce_kernel(b, "reduce_max", SC_max, DT_f32);
	gather_kernel(b);
	control_kernel(b);
	index_kernel(b);
	program(b);
	compile(b);
	for (uint32_t k = 0; k < points.n; k++)
		point_run(b, &points.data[k]);
	if (b->lanes > 1) {
		check_reduce(b, "reduce_add", false);
		check_reduce(b, "reduce_max", true);
	}
	check_gather(b);
	check_control(b);
	check_index(b);
	check_program(b);
	dlclose(b->lib);
	ctx_free(ctx);
}

static void test_generic(void **state)
{
	(void)state;
	on_target("generic-c");
}

static void test_v2(void **state)
{
	(void)state;
	on_target("x86-64-v2");
}

static void test_v3(void **state)
{
	(void)state;
	on_target("x86-64-v3");
}

static void test_v4(void **state)
{
	(void)state;
	on_target("x86-64-v4");
}

/* What blocks of threads execute has no meaning in C; the instruction sets of CPUs refuse it. */
static void test_no_blocks(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	const Target *t = target_find("x86-64-v3");
	Text text;
	assert_non_null(ctx);
	if (!setjmp(ctx->unwind)) {
		LoopFn *f = loop_new(ir_new(ctx), "k");
		text_init(&text, ctx->arena);
		loop_block(f, 64, 0);
		ls_let(f, "t", lx_thread(f));
		assert_true(loop_verify(f, NULL));
		assert_false(loop_verify(f, &t->isa));
		emit_c_kernel(f, t, &text);
		fail_msg("printed");
	}
	assert_non_null(strstr(ctx->bug_text, "C: k is executed by a block of threads"));
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_blocks),
		cmocka_unit_test(test_generic),
		cmocka_unit_test(test_v2),
		cmocka_unit_test(test_v3),
		cmocka_unit_test(test_v4),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
