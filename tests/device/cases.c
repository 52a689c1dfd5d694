/* What can go wrong with a model for a GPU, one case a process: cases MODEL.so CASE. Prints what
 * the model says; the exit status is 1 if something else is wrong.
 *
 *   open [N]  opens on GPU N
 *   table     the table of weft_model: its target, and what opening says; device-table: that of
 *             weft_model_device for GPU 0; other-table: for a GPU that there is not, on GPU 0
 *   run       opens and runs once
 *   cycles N  N times: load, open, run, clone, close, unload; nothing is left on the device after
 *             each
 *   device    tensors and workspace in memory of the device give the bits of tensors of the host;
 *             also tensors that are not aligned to what kernels move in one access
 *   places    tensors in pinned and managed memory are the host's; what another device has is
 *             refused
 *   threads   calls from several threads at once on one instance give the same bits
 *   check     an index out of range is told, a later call works
 *   streams   calls with two streams return before the device has executed them, side by side on
 *             one instance if no state is written, else one after the other
 *   weights CPU.so  other weights give the results of the same model for processors
 *   graphs    calls of the same sizes become a graph of the driver; other memory and other streams
 *             give the same bits
 *   later     an index out of range is told by the next call with the stream, or by `wait`
 *   captured  a call with a stream that the caller captures is refused
 *   lost      the same of a launch that the device fails to execute
 *   fork      a child uses an instance of its parent */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft_model.h"

enum { MOST = 8, RANK = 8 };

typedef struct {
	WeftTensor t;
	int64_t shape[RANK];
	size_t bytes;
} Tensor;

typedef struct {
	void *so;
	const WeftModel *m;
	WeftInstance *in;
	WeftStatus status;
} Model;

static _Noreturn void stop(const char *what)
{
	printf("FAIL %s\n", what);
	exit(1);
}

static Model load(const char *path)
{
	Model x = {.so = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
	const WeftModel *(*get)(void);
	if (!x.so)
		stop(dlerror());
	*(void **)&get = dlsym(x.so, "weft_model");
	x.m = get();
	return x;
}

/* Where the caller says that its tensors are: those of the host, and the number of the device. */
static WeftDevice host_place = {WEFT_CPU, 0};
static int32_t device_number;

/* Extents that are symbols become 3; floats small numbers, integers `index`. */
static Tensor make(const WeftTensorInfo *info, const int64_t *shape, int64_t index)
{
	Tensor x = {.t = {.device = host_place, .ndim = (int32_t)info->rank, .dtype = info->dtype},
		    .bytes = ((size_t)info->dtype.bits + 7) / 8};
	for (uint32_t d = 0; d < info->rank; d++) {
		x.shape[d] = shape ? shape[d] : info->dim[d].value >= 0 ? info->dim[d].value : 3;
		x.bytes *= (size_t)x.shape[d];
	}
	x.t.data = calloc(1, x.bytes + 8);
	for (size_t k = 0;
	     info->dtype.code == WEFT_FLOAT && info->dtype.bits == 32 && k < x.bytes / 4; k++)
		((float *)x.t.data)[k] = 0.125f * (float)(k % 7) - 0.25f;
	for (size_t k = 0;
	     info->dtype.code == WEFT_INT && info->dtype.bits == 64 && k < x.bytes / 8; k++)
		((int64_t *)x.t.data)[k] = index;
	return x;
}

/* The driver's functions that a caller with memory on the device uses. */
static struct {
	int (*alloc)(uint64_t *, size_t), (*free)(uint64_t),
		(*in)(uint64_t, const void *, size_t, void *),
		(*out)(void *, uint64_t, size_t, void *);
	int (*retain)(void **, int), (*push)(void *), (*live)(void), (*pending)(const void *);
	void *(*stream)(void);
	void (*graphs)(uint64_t[3]);
} cu;

static void find(void *so, const char *name, void *at)
{
	void *fn = dlsym(so, name);
	if (!fn)
		stop(name);
	memcpy(at, &fn, sizeof fn);
}

static void load_driver(void)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW);
	if (!so)
		stop(dlerror());
	find(so, "cuMemAlloc_v2", &cu.alloc);
	find(so, "cuMemFree_v2", &cu.free);
	find(so, "cuMemcpyHtoDAsync_v2", &cu.in);
	find(so, "cuMemcpyDtoHAsync_v2", &cu.out);
	find(so, "cuDevicePrimaryCtxRetain", &cu.retain);
	find(so, "cuCtxPushCurrent_v2", &cu.push);
	find(so, "standin_live", &cu.live);
	find(so, "standin_stream", &cu.stream);
	find(so, "standin_pending", &cu.pending);
	find(so, "standin_graphs", &cu.graphs);
}

static void *there(size_t bytes)
{
	uint64_t p = 0;
	if (cu.alloc(&p, bytes))
		stop("no memory of the device");
	return (void *)(uintptr_t)p;
}

/* One call of entry 0; the results in y. On the device tensors begin `shift` bytes into memory. */
static int call_shifted(Model *x, bool device, size_t shift, int64_t index, Tensor *y)
{
	const WeftEntry *e = weft_entry(x->m, 0);
	Tensor in[MOST];
	WeftTensor a[MOST], b[MOST];
	WeftSizes *sizes = malloc(e->sizes_bytes);
	WeftContext context = {.size = sizeof context};
	for (uint32_t k = 0; k < e->ninput; k++) {
		in[k] = make(weft_input(x->m, e, k), NULL, index);
		a[k] = in[k].t;
		a[k].shape = in[k].shape;
		if (device) {
			a[k].data = (char *)there(in[k].bytes + shift) + shift;
			a[k].device = (WeftDevice){WEFT_CUDA, device_number};
			cu.in((uintptr_t)a[k].data, in[k].t.data, in[k].bytes, NULL);
		}
	}
	int code = x->m->sizes(x->in, 0, a, sizes, &x->status);
	for (uint32_t k = 0; code == WEFT_OK && k < e->noutput; k++) {
		y[k] = make(weft_output(x->m, e, k), weft_output_shape(x->m, e, sizes, k), 0);
		b[k] = y[k].t;
		b[k].shape = y[k].shape;
		if (device) {
			b[k].data = (char *)there(y[k].bytes + shift) + shift;
			b[k].device = (WeftDevice){WEFT_CUDA, device_number};
		}
	}
	void *work = code != WEFT_OK ? NULL
		     : device        ? there(sizes->workspace_bytes)
				     : malloc(sizes->workspace_bytes);
	if (device)
		context.device = (WeftDevice){WEFT_CUDA, device_number}, context.stream = &context;
	if (code == WEFT_OK)
		code = x->m->run(x->in, sizes, a, b, work, &context, &x->status);
	if (code == WEFT_OK && device && cu.stream() != &context)
		stop("launches on another stream");
	for (uint32_t k = 0; device && k < e->ninput; k++)
		cu.free((uintptr_t)a[k].data - shift);
	for (uint32_t k = 0; device && k < e->noutput; k++) {
		cu.out(y[k].t.data, (uintptr_t)b[k].data, y[k].bytes, NULL);
		cu.free((uintptr_t)b[k].data - shift);
	}
	for (uint32_t k = 0; k < e->ninput; k++)
		free(in[k].t.data);
	if (device)
		cu.free((uintptr_t)work);
	else
		free(work);
	free(sizes);
	return code;
}

static int call(Model *x, bool device, int64_t index, Tensor *y)
{
	return call_shifted(x, device, 0, index, y);
}

static void drop(const Model *x, Tensor *y)
{
	for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
		free(y[k].t.data);
}

static int open_on(Model *x, int32_t id)
{
	const WeftOpen o = {.size = sizeof o, .device = {WEFT_CUDA, id}};
	return x->m->open(x->m, &o, &x->in, &x->status);
}

static void one_cycle(const char *path)
{
	Tensor y[MOST];
	WeftInstance *copy = NULL;
	Model x = load(path);
	if (open_on(&x, 0) || call(&x, false, 0, y) || x.m->clone(x.in, &copy, &x.status))
		stop(x.status.message);
	drop(&x, y);
	x.m->close(x.in);
	x.in = copy;
	if (call(&x, false, 0, y))
		stop(x.status.message);
	drop(&x, y);
	x.m->close(copy);
	if (cu.live())
		stop("something is left on the device");
	dlclose(x.so);
}

static void device(Model *x)
{
	Tensor y[MOST], z[MOST];
	void *context;
	if (open_on(x, 0) || call(x, false, 0, y))
		stop(x->status.message);
	cu.retain(&context, 0);
	cu.push(context);
	for (size_t shift = 0; shift <= 8; shift += 8) {
		if (call_shifted(x, true, shift, 0, z))
			stop(x->status.message);
		for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
			if (memcmp(y[k].t.data, z[k].t.data, y[k].bytes))
				stop("other results");
		drop(x, z);
	}
	printf("equal\n");
}

static void refused(Model *x, bool device)
{
	Tensor y[MOST];
	if (!call(x, device, 0, y))
		stop("a place is not refused");
	printf("%s\n", x->status.message);
}

/* Tensors at other places: pinned and managed memory is the host's; memory of a device that is not
 * the instance's is refused. */
static void places(Model *x)
{
	static const int32_t of_host[] = {3, 13};
	Tensor y[MOST], z[MOST];
	void *context;
	if (open_on(x, 0) || call(x, false, 0, y))
		stop(x->status.message);
	for (size_t k = 0; k < sizeof of_host / sizeof *of_host; k++) {
		host_place = (WeftDevice){of_host[k], 0};
		if (call(x, false, 0, z))
			stop(x->status.message);
		for (uint32_t i = 0; i < weft_entry(x->m, 0)->noutput; i++)
			if (memcmp(y[i].t.data, z[i].t.data, y[i].bytes))
				stop("other results");
		drop(x, z);
	}
	host_place = (WeftDevice){10, 0};
	refused(x, false);
	host_place = (WeftDevice){WEFT_CUDA, 1};
	refused(x, false);
	cu.retain(&context, 0);
	cu.push(context);
	device_number = 1;
	refused(x, true);
}

/* ---- calls that do not wait ---- */

/* A call whose memory lasts until it is read. */
typedef struct {
	WeftTensor a[MOST], b[MOST];
	Tensor in[MOST], out[MOST];
	WeftSizes *sizes;
	void *work;
	WeftContext context;
} Later;

static Later *later(Model *x, void *stream, int64_t index)
{
	const WeftEntry *e = weft_entry(x->m, 0);
	Later *l = calloc(1, sizeof *l);
	l->sizes = malloc(e->sizes_bytes);
	for (uint32_t k = 0; k < e->ninput; k++) {
		l->in[k] = make(weft_input(x->m, e, k), NULL, index);
		l->a[k] = l->in[k].t;
		l->a[k].shape = l->in[k].shape;
		l->a[k].data = there(l->in[k].bytes);
		l->a[k].device = (WeftDevice){WEFT_CUDA, 0};
		cu.in((uintptr_t)l->a[k].data, l->in[k].t.data, l->in[k].bytes, NULL);
	}
	if (x->m->sizes(x->in, 0, l->a, l->sizes, &x->status))
		stop(x->status.message);
	for (uint32_t k = 0; k < e->noutput; k++) {
		l->out[k] =
			make(weft_output(x->m, e, k), weft_output_shape(x->m, e, l->sizes, k), 0);
		l->b[k] = l->out[k].t;
		l->b[k].shape = l->out[k].shape;
		l->b[k].data = there(l->out[k].bytes);
		l->b[k].device = (WeftDevice){WEFT_CUDA, 0};
	}
	l->work = there(l->sizes->workspace_bytes);
	l->context = (WeftContext){
		.size = sizeof l->context, .device = {WEFT_CUDA, 0}, .stream = stream};
	return l;
}

static int begin(Model *x, Later *l)
{
	return x->m->run(x->in, l->sizes, l->a, l->b, l->work, &l->context, &x->status);
}

static void begin_well(Model *x, Later *l)
{
	if (begin(x, l))
		stop(x->status.message);
	if (!cu.pending(l->context.stream))
		stop("the call waits");
}

static int wait_for(Model *x, void *stream, uint32_t flags)
{
	const WeftContext c = {.size = sizeof c, .flags = flags, .stream = stream};
	return weft_wait(x->m, x->in, &c, &x->status);
}

/* What the call gave, which somebody waited for. */
static Tensor *results(Model *x, Later *l)
{
	for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
		if (cu.out(l->out[k].t.data, (uintptr_t)l->b[k].data, l->out[k].bytes, NULL))
			stop("reading results");
	return l->out;
}

static void compare(const Model *x, const Tensor *y, const Tensor *z)
{
	for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
		if (memcmp(y[k].t.data, z[k].t.data, y[k].bytes))
			stop("other results");
}

static void done(const Model *x, Later *l)
{
	const WeftEntry *e = weft_entry(x->m, 0);
	for (uint32_t k = 0; k < e->ninput; k++)
		cu.free((uintptr_t)l->a[k].data), free(l->in[k].t.data);
	for (uint32_t k = 0; k < e->noutput; k++)
		cu.free((uintptr_t)l->b[k].data), free(l->out[k].t.data);
	cu.free((uintptr_t)l->work);
	free(l->sizes);
	free(l);
}

static void open_there(Model *x)
{
	void *context;
	if (open_on(x, 0))
		stop(x->status.message);
	cu.retain(&context, 0);
	cu.push(context);
}

/* State that is written excludes other streams, until the device has executed the call. */
static void streams_of_writers(Model *x, Later *a, Later *b)
{
	Tensor s = make(weft_state_info(x->m, 0), NULL, 0);
	s.t.shape = s.shape;
	begin_well(x, a);
	if (begin(x, b) != WEFT_ERR_BUSY ||
	    x->m->state_get(x->in, 0, &s.t, &x->status) != WEFT_ERR_BUSY)
		stop("state is written, and another call begins");
	begin_well(x, a); /* the same stream */
	if (wait_for(x, a->context.stream, 0))
		stop(x->status.message);
	begin_well(x, b);
	if (wait_for(x, NULL, 0) || x->m->state_get(x->in, 0, &s.t, &x->status))
		stop(x->status.message);
	free(s.t.data);
}

static void streams(Model *x)
{
	Tensor y[MOST];
	int one, two;
	open_there(x);
	Later *a = later(x, &one, 0), *b = later(x, &two, 0);
	if (weft_entry(x->m, 0)->flags & WEFT_ENTRY_WRITES_STATE)
		streams_of_writers(x, a, b);
	else {
		begin_well(x, a);
		begin_well(x, b);
		begin_well(x, a);
		if (wait_for(x, NULL, WEFT_POLL) != WEFT_ERR_BUSY || !cu.pending(&one) ||
		    !cu.pending(&two))
			stop("nothing is left to do");
		if (wait_for(x, &two, 0) || wait_for(x, &two, WEFT_POLL) || cu.pending(&two) ||
		    !cu.pending(&one))
			stop("waiting for a stream");
		if (wait_for(x, NULL, 0) || cu.pending(&one))
			stop("waiting for all");
		if (call(x, false, 0, y))
			stop(x->status.message);
		compare(x, y, results(x, a));
		compare(x, y, results(x, b));
		drop(x, y);
	}
	begin_well(x, b); /* closing waits */
	x->m->close(x->in);
	if (cu.pending(&one) || cu.pending(&two))
		stop("work is left after closing");
	done(x, a);
	done(x, b);
	if (cu.live() != 1)
		stop("something is left on the device");
	printf("equal\n");
}

/* changed: arguments of a graph, or the graph was made anew. */
static void expect_graphs(uint64_t made, uint64_t launched, bool changed)
{
	static uint64_t before[3];
	uint64_t now[3];
	cu.graphs(now);
	const bool other = changed ? now[0] == before[0] && now[2] == before[2]
				   : now[0] - before[0] != made || now[2] != before[2];
	if (other || now[1] - before[1] != launched) {
		printf("%llu made, %llu launched, %llu changed: ",
		       (unsigned long long)(now[0] - before[0]),
		       (unsigned long long)(now[1] - before[1]),
		       (unsigned long long)(now[2] - before[2]));
		stop("other graphs than expected");
	}
	memcpy(before, now, sizeof now);
}

/* Of the call, which is executed. */
static void expect_results(Model *x, Later *l, const Tensor *want)
{
	if (wait_for(x, l->context.stream, 0))
		stop(x->status.message);
	compare(x, want, results(x, l));
	/* the next one writes it again */
	for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
		cu.in((uintptr_t)l->b[k].data, l->in[0].t.data,
		      l->out[k].bytes < l->in[0].bytes ? l->out[k].bytes : l->in[0].bytes, NULL);
}

/* The model reads no values of tensors. */
static void graphs(Model *x)
{
	enum { STREAMS = 12 };
	char stream[STREAMS];
	Tensor y[MOST];
	open_there(x);
	if (call(x, false, 0, y))
		stop(x->status.message);
	Later *a = later(x, &stream[0], 0), *b = later(x, &stream[0], 0);
	expect_graphs(0, 0, false); /* memory of the host */
	for (int k = 0; k < 4; k++) {
		begin_well(x, a);
		expect_graphs(k == 1, k > 0, false);
		expect_results(x, a, y);
	}
	begin_well(x, a);
	begin_well(x, b); /* other addresses: the graph changes while it is executed */
	begin_well(x, b);
	expect_graphs(0, 3, true);
	expect_results(x, a, y);
	expect_results(x, b, y);
	begin_well(x, a);
	expect_graphs(0, 1, true);
	expect_results(x, a, y);
	for (int k = 0; k < 2 * STREAMS; k++) { /* more than are kept */
		a->context.stream = &stream[k % STREAMS];
		begin_well(x, a);
		begin_well(x, a);
		expect_results(x, a, y);
	}
	for (int k = 0; k < 2; k++) { /* the call waits */
		a->context.stream = NULL;
		if (begin(x, a))
			stop(x->status.message);
		compare(x, y, results(x, a));
	}
	x->m->close(x->in);
	drop(x, y);
	done(x, a);
	done(x, b);
	if (cu.live() != 1)
		stop("something is left on the device");
	printf("equal\n");
}

/* All weights become numbers that depend on their names: models of one file for different targets
 * may list them in different orders. */
static void set_all(Model *x)
{
	const char *name[64];
	WeftTensor value[64];
	static int64_t shape[64][RANK];
	uint32_t n = x->m->nsource < 64 ? x->m->nsource : 64;
	for (uint32_t k = 0; k < n; k++) {
		const WeftParamInfo *p = weft_source(x->m, k);
		size_t count = 1, first = 0;
		for (const char *c = p->name; *c; c++)
			first += (unsigned char)*c;
		for (uint32_t d = 0; d < p->rank; d++)
			count *= (size_t)(shape[k][d] = p->dim[d]);
		float *data = calloc(count, 8);
		for (size_t i = 0; i < count && p->dtype.code == WEFT_FLOAT; i++)
			data[i] = 0.0625f * (float)((i + first) % 11) + 0.25f;
		name[k] = p->name;
		value[k] = (WeftTensor){.data = data,
					.device = {WEFT_CPU, 0},
					.ndim = (int32_t)p->rank,
					.dtype = p->dtype,
					.shape = shape[k]};
	}
	if (x->m->set_weights(x->in, n, name, value, NULL, &x->status))
		stop(x->status.message);
	for (uint32_t k = 0; k < n; k++)
		free(value[k].data);
}

static void weights(Model *x, const char *other)
{
	Tensor y[MOST], z[MOST], before[MOST];
	Model cpu = load(other);
	if (open_on(x, 0) || cpu.m->open(cpu.m, NULL, &cpu.in, &cpu.status) ||
	    call(x, false, 0, before))
		stop(x->status.message);
	set_all(x);
	set_all(&cpu);
	if (call(x, false, 0, y) || call(&cpu, false, 0, z))
		stop(x->status.message);
	if (!memcmp(before[0].t.data, y[0].t.data, y[0].bytes))
		stop("other weights change nothing");
	for (uint32_t k = 0; k < weft_entry(x->m, 0)->noutput; k++)
		for (size_t i = 0; i < y[k].bytes / 4; i++) {
			const float a = ((float *)y[k].t.data)[i], b = ((float *)z[k].t.data)[i];
			if (!(a - b < 1e-4f * (1 + (b < 0 ? -b : b)) &&
			      b - a < 1e-4f * (1 + (b < 0 ? -b : b))))
				stop("other results than of the processor");
		}
	x->m->close(x->in);
	cpu.m->close(cpu.in);
	if (cu.live())
		stop("something is left on the device");
	printf("equal\n");
}

static void told_later(Model *x)
{
	int one, two;
	open_there(x);
	Later *bad = later(x, &one, 105), *good = later(x, &one, 7), *other = later(x, &two, 7);
	begin_well(x, bad);
	begin_well(x, good); /* not told yet */
	begin_well(x, other);
	if (wait_for(x, &two, 0))
		stop("another stream is told");
	cu.out(good->out[0].t.data, (uintptr_t)good->b[0].data, good->out[0].bytes, NULL);
	if (begin(x, good) != WEFT_ERR_CHECK || cu.pending(&one))
		stop("the next call does not tell");
	printf("%s\n", x->status.message);
	begin_well(x, good); /* told once */
	begin_well(x, bad);
	begin_well(x, bad);
	if (wait_for(x, &one, 0) != WEFT_ERR_CHECK || wait_for(x, NULL, 0))
		stop("wait does not tell once");
	printf("%s\n", x->status.message);
	compare(x, results(x, good), results(x, other));
	x->m->close(x->in);
	done(x, bad);
	done(x, good);
	done(x, other);
	if (cu.live() != 1)
		stop("something is left on the device");
}

static void captured(Model *x)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW), *stream, *graph;
	int (*make)(void **, unsigned), (*begin_capture)(void *, int),
		(*end_capture)(void *, void **);
	find(so, "cuStreamCreate", &make);
	find(so, "cuStreamBeginCapture_v2", &begin_capture);
	find(so, "cuStreamEndCapture", &end_capture);
	open_there(x);
	make(&stream, 1);
	Later *a = later(x, stream, 0);
	begin_capture(stream, 1);
	if (begin(x, a) != WEFT_ERR_ARGUMENT)
		stop("the call begins");
	printf("%s\n", x->status.message);
	end_capture(stream, &graph);
	begin_well(x, a);
	x->m->close(x->in);
}

static void lost(Model *x)
{
	int one;
	open_there(x);
	Later *a = later(x, &one, 0);
	begin_well(x, a);
	if (wait_for(x, &one, 0) != WEFT_ERR_DEVICE)
		stop("the device works");
	printf("%s\n", x->status.message);
	if (begin(x, a) != WEFT_ERR_DEVICE)
		stop("the device works again");
	printf("%s\n", x->status.message);
	x->m->close(x->in);
}

typedef struct {
	const Model *x;
	const Tensor *want;
} Caller;

static void *call_often(void *arg)
{
	const Caller *c = arg;
	Model x = *c->x; /* with a status of its own */
	for (int k = 0; k < 100; k++) {
		Tensor y[MOST];
		if (call(&x, false, 0, y))
			stop(x.status.message);
		for (uint32_t i = 0; i < weft_entry(x.m, 0)->noutput; i++)
			if (memcmp(y[i].t.data, c->want[i].t.data, y[i].bytes))
				stop("other results");
		drop(&x, y);
	}
	return NULL;
}

static void threads(Model *x)
{
	enum { N = 4 };
	pthread_t thread[N];
	Tensor y[MOST];
	if (open_on(x, 0) || call(x, false, 0, y))
		stop(x->status.message);
	Caller c = {x, y};
	for (int k = 0; k < N; k++)
		if (pthread_create(&thread[k], NULL, call_often, &c))
			stop("no thread");
	for (int k = 0; k < N; k++)
		pthread_join(thread[k], NULL);
	x->m->close(x->in);
	if (cu.live())
		stop("something is left on the device");
	printf("equal\n");
}

static void check(Model *x)
{
	Tensor y[MOST];
	if (open_on(x, 0))
		stop(x->status.message);
	if (call(x, false, 105, y) != WEFT_ERR_CHECK)
		stop("the index is in range");
	printf("%s\n", x->status.message);
	drop(x, y);
	if (call(x, false, 7, y))
		stop(x->status.message);
	for (size_t k = 0; k < y[0].bytes / 4; k++)
		if (((float *)y[0].t.data)[k] != 2 * (0.125f * (float)(7 % 7) - 0.25f))
			stop("other results");
}

static void in_child(Model *x)
{
	Tensor y[MOST];
	int status;
	if (open_on(x, 0))
		stop(x->status.message);
	fflush(stdout);
	if (fork() == 0) {
		int code = call(x, false, 0, y);
		printf("%s\n", x->status.message);
		x->in = NULL;
		code = open_on(x, 0) == WEFT_ERR_DEVICE && code == WEFT_ERR_DEVICE ? 0 : 1;
		printf("%s\n", x->status.message);
		fflush(stdout);
		_exit(code);
	}
	wait(&status);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		stop("the child");
}

/* By one of the functions of the object that return a table. */
static void table(Model *x, const char *what)
{
	const WeftModel *(*get)(int32_t, int32_t);
	*(void **)&get = dlsym(x->so, "weft_model_device");
	if (!get || get(WEFT_CPU, 0) != x->m)
		stop("weft_model_device of a processor");
	if (strcmp(what, "table"))
		x->m = get(WEFT_CUDA, strcmp(what, "other-table") ? 0 : 7);
	const int code = open_on(x, 0);
	printf("%s: %s\n", x->m->manifest->target, code ? x->status.message : "opened");
	x->m->close(x->in);
}

int main(int argc, char **argv)
{
	Tensor y[MOST];
	if (argc < 3)
		return 2;
	const char *what = argv[2];
	if (!strcmp(what, "cycles")) {
		load_driver();
		const int n = argc > 3 ? atoi(argv[3]) : 0;
		for (int k = 0; k < n; k++)
			one_cycle(argv[1]);
		printf("%d cycles\n", n);
		return 0;
	}
	Model x = load(argv[1]);
	if (strstr(what, "table"))
		return table(&x, what), 0;
	if (!strcmp(what, "open") || !strcmp(what, "run")) {
		int code = open_on(&x, argc > 3 ? atoi(argv[3]) : 0);
		if (code == WEFT_OK && !strcmp(what, "run"))
			code = call(&x, false, 0, y);
		printf("%s\n", code ? x.status.message : "opened");
		x.m->close(x.in);
		return code && !*x.status.message;
	}
	load_driver();
	if (!strcmp(what, "device"))
		device(&x);
	else if (!strcmp(what, "places"))
		places(&x);
	else if (!strcmp(what, "threads"))
		threads(&x);
	else if (!strcmp(what, "check"))
		check(&x);
	else if (!strcmp(what, "streams"))
		streams(&x);
	else if (!strcmp(what, "weights"))
		weights(&x, argv[3]);
	else if (!strcmp(what, "graphs"))
		graphs(&x);
	else if (!strcmp(what, "later"))
		told_later(&x);
	else if (!strcmp(what, "captured"))
		captured(&x);
	else if (!strcmp(what, "lost"))
		lost(&x);
	else if (!strcmp(what, "fork"))
		in_child(&x);
	else
		return 2;
	return 0;
}
