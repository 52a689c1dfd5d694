/* Units of kernels to LLVM modules, and these through LLVM's passes and code generator, several at
 * a time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/c_locale.h"
#include "base/hash.h"
#include "codegen/print/llvm/priv.h"

/* Loop IR arrives tiled, unrolled and vectorised; what is left is to find registers for variables,
 * common subexpressions and invariants. */
static const char kernel_passes[] =
	"always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
	"loop-mssa(licm),early-cse<memssa>,instcombine<no-verify-fixpoint>,adce)";
static const char model_passes[] = "function(sroa,early-cse)";

/* ---- targets ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT, once_all = PTHREAD_ONCE_INIT;

/* Sets LLVM's options, once for the process. LLVM's scheduler is off: loop IR is in the order that
 * schedules chose, and moving loads up would spill the registers of tiles. The pass of x86 that
 * moves integers into mask registers is off: it finds nothing in our code, and takes time that is
 * quadratic in the length of a block, two fifths of all for AES. */
static void set_options(void)
{
	static const char *const options[] = {
		"weft",
		"-enable-misched=false",
#ifdef WEFT_LLVM_X86
		"-disable-x86-domain-reassignment",
#endif
	};
	LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, "");
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
}

/* Registers the back ends that targets can name and this LLVM has; the build defines the list,
 * T(X86) T(AArch64) T(RISCV). */
static void add_targets(void)
{
#define T(name)                                                                                    \
	LLVMInitialize##name##TargetInfo();                                                        \
	LLVMInitialize##name##Target();                                                            \
	LLVMInitialize##name##TargetMC();                                                          \
	LLVMInitialize##name##AsmPrinter();
	WEFT_LLVM_TARGETS
#undef T
}

/* Finds LLVM's target for a triple. Returns false, with a message, if there is none. All back ends
 * are only registered where this machine's does not do: registering takes a millisecond. */
static bool find_target(const char *triple, LLVMTargetRef *target, char **message)
{
	pthread_once(&once, set_options);
	if (!LLVMGetTargetFromTriple(triple, target, message))
		return true;
	LLVMDisposeMessage(*message);
	pthread_once(&once_all, add_targets);
	return !LLVMGetTargetFromTriple(triple, target, message);
}

/* Creates a target machine, which one module at a time may use. Returns NULL after ctx_error. */
static LLVMTargetMachineRef machine_new(Ctx *ctx, const Target *t)
{
	char *host = t->isa.triple ? NULL : LLVMGetDefaultTargetTriple(), *message = NULL;
	const char *triple = arena_strdup(ctx->arena, t->isa.triple ? t->isa.triple : host);
	LLVMDisposeMessage(host);
	LLVMTargetRef target;
	if (!find_target(triple, &target, &message)) {
		ctx_error(ctx, NULL, "target %s: %s", t->isa.name, message);
		LLVMDisposeMessage(message);
		return NULL;
	}
	LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();
	if (t->isa.cpu)
		LLVMTargetMachineOptionsSetCPU(o, t->isa.cpu);
	if (t->isa.attributes)
		LLVMTargetMachineOptionsSetFeatures(o, t->isa.attributes);
	if (t->isa.abi)
		LLVMTargetMachineOptionsSetABI(o, t->isa.abi);
	LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LLVMCodeGenLevelDefault);
	LLVMTargetMachineOptionsSetRelocMode(o, LLVMRelocPIC);
	LLVMTargetMachineRef tm = LLVMCreateTargetMachineWithOptions(target, triple, o);
	LLVMDisposeTargetMachineOptions(o);
	return tm;
}

/* ---- one unit ---- */

typedef struct {
	LUnit u;
	LLVMTargetMachineRef machine;
	const char *passes, *name;
	double cost;
	LlvmKind kind;
	char *error; /* malloced; without it and without out there was no memory for it */
	LLVMMemoryBufferRef out;
	const char *const *key; /* in the cache of objects; NULL: there is none */
	LlvmFile kept;          /* what the cache has */
} Unit;

static bool optimise(Unit *x)
{
	LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
	LLVMErrorRef e = LLVMRunPasses(x->u.m, x->passes, x->machine, o);
	LLVMDisposePassBuilderOptions(o);
	if (!e)
		return true;
	char *text = LLVMGetErrorMessage(e);
	x->error = strdup(text);
	LLVMDisposeErrorMessage(text);
	return false;
}

/* Compiles a unit: sets x->out, or x->error. Any thread may call it: it touches nothing but x. */
static void compile_unit(Unit *x)
{
	char *message = NULL;
	if (LLVMVerifyModule(x->u.m, LLVMReturnStatusAction, &message)) {
		x->error = message;
		return;
	}
	LLVMDisposeMessage(message);
	if (x->kind == LLVM_TEXT) {
		char *text = LLVMPrintModuleToString(x->u.m);
		x->out = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), x->name);
		LLVMDisposeMessage(text);
		return;
	}
	if (!optimise(x))
		return;
	LLVMCodeGenFileType type = x->kind == LLVM_ASM ? LLVMAssemblyFile : LLVMObjectFile;
	message = NULL;
	if (LLVMTargetMachineEmitToMemoryBuffer(x->machine, x->u.m, type, &message, &x->out))
		x->error = message;
}

/* ---- all units ---- */

typedef struct {
	Unit *unit;
	uint32_t n, next, done;
	pthread_mutex_t lock;
	const EmitOptions *o;
	pthread_t caller; /* who tells how far it is */
} Queue;

/* Takes the next unit of the queue and returns its number; q->n if none is left. done: the caller
 * has compiled one more. */
static uint32_t take_unit(Queue *q, bool done)
{
	pthread_mutex_lock(&q->lock);
	const uint32_t k = q->next < q->n ? q->next++ : q->n;
	q->done += done;
	pthread_mutex_unlock(&q->lock);
	return k;
}

static void tell_done(Queue *q)
{
	pthread_mutex_lock(&q->lock);
	const uint32_t done = q->done;
	pthread_mutex_unlock(&q->lock);
	q->o->progress(q->o->progress_user, "llvm", done, q->n);
}

static void *work(void *arg)
{
	Queue *q = arg;
	const locale_t before = c_locale_begin(); /* threads do not inherit it */
	fatal_enter();
	uint32_t k = take_unit(q, false);
	while (k < q->n) {
		if (!q->unit[k].kept.data)
			compile_unit(&q->unit[k]);
		k = take_unit(q, true);
		if (q->o->progress && pthread_equal(pthread_self(), q->caller))
			tell_done(q);
	}
	c_locale_end(before);
	return NULL;
}

static void compile_all(Unit *unit, uint32_t n, uint32_t jobs, const EmitOptions *o)
{
	enum { MAX = 64 };
	pthread_t thread[MAX];
	Queue q = {.unit = unit,
		   .n = n,
		   .lock = PTHREAD_MUTEX_INITIALIZER,
		   .o = o,
		   .caller = pthread_self()};
	if (o->progress)
		o->progress(o->progress_user, "llvm", 0, n);
	long here = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t wanted = jobs ? jobs : here > 0 ? (uint32_t)here : 1, started = 0;
	if (wanted > n)
		wanted = n;
	while (started + 1 < wanted && started < MAX &&
	       !pthread_create(&thread[started], NULL, work, &q))
		started++;
	work(&q);
	for (uint32_t k = 0; k < started; k++)
		pthread_join(thread[k], NULL);
	pthread_mutex_destroy(&q.lock);
}

/* What LLVM holds is freed even when building unwinds. */
typedef struct {
	Unit *unit;
	uint32_t n;
} Units;

static void units_free(void *arg)
{
	Units *x = arg;
	for (uint32_t k = 0; k < x->n; k++) {
		Unit *u = &x->unit[k];
		if (u->u.c)
			lunit_free(&u->u);
		if (u->machine)
			LLVMDisposeTargetMachine(u->machine);
		if (u->out)
			LLVMDisposeMemoryBuffer(u->out);
		free(u->error);
	}
	x->n = 0;
}

static bool unit_begin(Unit *x, Ctx *ctx, const Target *t, LlvmKind kind, const char *name)
{
	static const char *const extension[] = {
		[LLVM_OBJECT] = "o", [LLVM_ASM] = "s", [LLVM_TEXT] = "ll"};
	x->kind = kind;
	x->name = arena_printf(ctx->arena, "%s.%s", name, extension[kind]);
	x->machine = machine_new(ctx, t);
	TRY(x->machine);
	lunit_init(&x->u, ctx, t, name);
	char *triple = LLVMGetTargetMachineTriple(x->machine);
	LLVMSetTarget(x->u.m, triple);
	LLVMDisposeMessage(triple);
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(x->machine);
	LLVMSetModuleDataLayout(x->u.m, layout);
	LLVMDisposeTargetData(layout);
	return true;
}

static int by_cost(const void *a, const void *b)
{
	const Unit *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return strcmp(x->name, y->name);
}

static bool build_units(Program *p, const Target *t, const EmitOptions *o, LlvmKind kind, Units *x)
{
	Ctx *ctx = p->ir->ctx;
	uint32_t nunits = x->n - 1;
	double *load = ARENA_ARRAY(ctx->arena, double, nunits + 1);
	const uint32_t *unit = nunits ? kernel_units(p, nunits, load) : NULL;
	const char *const *name = kernel_names(p, o->suffix);
	const char *suffix = o->suffix ? o->suffix : "";
	for (uint32_t k = 0; k < nunits; k++) {
		TRY(unit_begin(&x->unit[k], ctx, t, kind,
			       arena_printf(ctx->arena, "kernels_%u%s", k, suffix)));
		x->unit[k].passes = kernel_passes;
		x->unit[k].u.here = o->here;
		x->unit[k].cost = load[k];
	}
	for (uint32_t k = 0; unit && k < p->fn.n; k++)
		l_function(&x->unit[unit[k]].u, p->fn.data[k], name[k], FN_KERNEL, NULL, NULL);
	Unit *model = &x->unit[nunits];
	TRY(unit_begin(model, ctx, t, kind, arena_printf(ctx->arena, "model%s", suffix)));
	model->passes = model_passes;
	model->cost = 50 + (double)p->call.n;
	l_model(&model->u, p, o, name);
	qsort(x->unit, x->n, sizeof *x->unit, by_cost);
	return true;
}

/* ---- objects of earlier compilations ---- */

/* The module before LLVM's passes, as bitcode, and what else decides on the object. */
static const char *const *unit_key(Ctx *ctx, const Unit *x, const Target *t)
{
	LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(x->u.m);
	const char *data = LLVMGetBufferStart(code);
	const size_t n = LLVMGetBufferSize(code);
	const unsigned long long sum[2] = {hash_bytes(data, n, 31), hash_bytes(data, n, 32)};
	LLVMDisposeMemoryBuffer(code);
	const char *isa[] = {t->isa.triple, t->isa.cpu, t->isa.attributes, t->isa.abi};
	const char **key = ARENA_ARRAY(ctx->arena, const char *, 9);
	for (uint32_t k = 0; k < 4; k++)
		key[k] = isa[k] ? isa[k] : "";
	key[4] = x->passes;
	key[5] = llvm_version(ctx->arena);
	key[6] = x->name;
	key[7] = arena_printf(ctx->arena, "%zu %016llx%016llx", n, sum[0], sum[1]);
	return key;
}

static void take_kept(Ctx *ctx, Units *x, const Target *t, const ObjectCache *cache)
{
	for (uint32_t k = 0; k < x->n; k++) {
		Unit *u = &x->unit[k];
		u->key = unit_key(ctx, u, t);
		if (cache->take(cache->user, u->key, &u->kept.data, &u->kept.n))
			u->kept.name = u->name;
		else
			u->kept.data = NULL;
	}
}

static void keep_made(const Units *x, const ObjectCache *cache)
{
	for (uint32_t k = 0; k < x->n; k++) {
		const Unit *u = &x->unit[k];
		if (!u->kept.data && !u->error && u->out)
			cache->keep(cache->user, u->key, LLVMGetBufferStart(u->out),
				    LLVMGetBufferSize(u->out));
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const LlvmFile *)a)->name, ((const LlvmFile *)b)->name);
}

static bool collect(Ctx *ctx, Units *x, LlvmFiles *out)
{
	for (uint32_t k = 0; k < x->n; k++) {
		Unit *u = &x->unit[k];
		if (u->error)
			ctx_bug(ctx, "LLVM: %s: %s", u->name, u->error);
		if (u->kept.data) {
			array_push(ctx->arena, &out->file, u->kept);
			continue;
		}
		if (!u->out)
			ctx_out_of_memory(ctx);
		size_t n = LLVMGetBufferSize(u->out);
		char *data = arena_alloc(ctx->arena, n + 1);
		memcpy(data, LLVMGetBufferStart(u->out), n);
		array_push(ctx->arena, &out->file, (LlvmFile){u->name, data, n});
	}
	if (out->file.n > 1)
		qsort(out->file.data, out->file.n, sizeof *out->file.data, by_name);
	return true;
}

bool emit_llvm(Program *p, const Target *t, const EmitOptions *o, LlvmKind kind, uint32_t jobs,
	       LlvmFiles *out)
{
	Ctx *ctx = p->ir->ctx;
	uint32_t nunits = o->nunits ? o->nunits : 1;
	if (nunits > p->fn.n)
		nunits = p->fn.n;
	Units *x = ARENA_NEW(ctx->arena, Units);
	x->unit = ARENA_ARRAY(ctx->arena, Unit, nunits + 1);
	x->n = nunits + 1;
	ctx_defer(ctx, units_free, x);
	const ObjectCache *cache = kind == LLVM_OBJECT ? o->cache : NULL;
	bool ok = build_units(p, t, o, kind, x);
	if (ok) {
		if (cache)
			take_kept(ctx, x, t, cache);
		compile_all(x->unit, x->n, jobs, o);
		if (cache)
			keep_made(x, cache);
		ok = collect(ctx, x, out);
	}
	units_free(x);
	return ok;
}

/* Allocates one unit, which is freed with the context at the latest. */
static Units *single_unit(Ctx *ctx)
{
	Units *x = ARENA_NEW(ctx->arena, Units);
	x->unit = ARENA_ARRAY(ctx->arena, Unit, 1);
	x->n = 1;
	ctx_defer(ctx, units_free, x);
	return x;
}

bool emit_llvm_select(Ctx *ctx, const EmitSelect *s, const Target *least, LlvmKind kind,
		      LlvmFiles *out)
{
	Units *x = single_unit(ctx);
	TRY(unit_begin(x->unit, ctx, least, kind, "select"));
	x->unit->passes = model_passes;
	l_select(&x->unit->u, s);
	compile_unit(x->unit);
	collect(ctx, x, out);
	units_free(x);
	return true;
}

const char *llvm_version(Arena *a)
{
	unsigned v[3];
	LLVMGetVersion(&v[0], &v[1], &v[2]);
	return arena_printf(a, "LLVM %u.%u.%u", v[0], v[1], v[2]);
}
