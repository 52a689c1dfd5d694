/* Models on GPUs by the CUDA driver. Empty in other runtimes (cuda.h). */
#include "instance_priv.h"
#include "cuda.h"
#include "cuda_driver.h"

#ifdef WEFT_WITH_CUDA
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const int32_t weft_device_type = WEFT_CUDA;
static const CudaDriver *const cu = &weft_cuda_driver;

/* ---- errors ---- */

/* Sets the status to a sentence about a result of the driver, behind what was done, and returns
 * its code. */
static int tell(WeftStatus *status, int rc, const char *what, const char *device)
{
	const char *name = NULL, *text = NULL;
	cu->error_name(rc, &name);
	cu->error_text(rc, &text);
	const bool dead = rc == CU_ILLEGAL_ADDRESS || (rc >= 714 && rc <= CU_LAUNCH_FAILED);
	return weft_fail(status, rc == CU_OUT_OF_MEMORY ? WEFT_ERR_MEMORY : WEFT_ERR_DEVICE,
			 "%s on %s: %s (%s)%s", what, device, name ? name : "an unknown error",
			 text ? text : "?",
			 dead ? "; this process cannot use the device any more"
			 : rc == CU_NOT_INITIALIZED
				 ? "; a process that was forked cannot use the device of its parent"
				 : "");
}

/* The first error of this thread's call that nobody was told. */
static _Thread_local WeftStatus pending;

/* ---- devices ---- */

typedef struct Gpu {
	WeftDriver driver;
	const WeftCuda *code; /* of the model that it is open for */
	uint32_t users; /* instances, and calls of weft_device_open */
	int ordinal, device;
	pid_t process;  /* that opened it */
	bool pools;     /* cuMemAllocAsync works */
	Pool *pool;     /* of our own; NULL: the device's */
	Context *context;
	Module **module;     /* by image */
	Function **function; /* by kernel */
	WeftProducts *products; /* NULL: kernels compute products */
	uint64_t work_bytes;    /* for a product */
	Stream *capture;        /* on which products are captured; NULL: they are not */
	pthread_mutex_t capturing;
	char name[96];
	struct Gpu *next;
} Gpu;
static Gpu *gpus;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const Gpu *g, int rc, const char *what)
{
	if (rc != CU_OK && rc != CU_DEINITIALIZED && pending.code == WEFT_OK)
		tell(&pending, rc, what, g->name);
}

static bool enter(const Gpu *g, const char *what)
{
	int rc = g->process == getpid() ? cu->push(g->context) : CU_NOT_INITIALIZED;
	note(g, rc, what);
	return rc == CU_OK;
}

static void leave(void)
{
	Context *c;
	cu->pop(&c);
}

/* Allocates memory that a stream may use from now on. */
static int alloc_ordered(const Gpu *g, Address *out, uint64_t bytes, Stream *stream)
{
	return g->pool ? cu->pool_alloc(out, (size_t)bytes, g->pool, stream)
		       : cu->alloc_async(out, (size_t)bytes, stream);
}

static void *gpu_alloc(void *self, uint64_t bytes, void *stream)
{
	const Gpu *g = self;
	Address a = 0;
	if (!enter(g, "allocating memory"))
		return NULL;
	int rc = g->pools ? alloc_ordered(g, &a, bytes, stream) : cu->alloc(&a, (size_t)bytes);
	if (rc != CU_OUT_OF_MEMORY)
		note(g, rc, "allocating memory");
	leave();
	return rc == CU_OK ? (void *)(uintptr_t)a : NULL;
}

static void gpu_free(void *self, void *p, void *stream)
{
	const Gpu *g = self;
	if (!p || !enter(g, "freeing memory"))
		return;
	note(g, g->pools ? cu->free_async((uintptr_t)p, stream) : cu->free((uintptr_t)p),
	     "freeing memory");
	leave();
}

static void gpu_copy(void *self, void *to, const void *from, uint64_t bytes, WeftWay way,
		     void *stream)
{
	const Gpu *g = self;
	if (!bytes || !enter(g, "copying"))
		return;
	int rc = way == WEFT_TO_DEVICE ? cu->in((uintptr_t)to, from, (size_t)bytes, stream)
		 : way == WEFT_TO_HOST
			 ? cu->out(to, (uintptr_t)from, (size_t)bytes, stream)
			 : cu->within((uintptr_t)to, (uintptr_t)from, (size_t)bytes, stream);
	note(g, rc, "copying");
	leave();
}

static void gpu_fill(void *self, void *to, uint8_t with, uint64_t bytes, void *stream)
{
	const Gpu *g = self;
	if (!bytes || !enter(g, "filling memory"))
		return;
	note(g, cu->fill((uintptr_t)to, with, (size_t)bytes, stream), "filling memory");
	leave();
}

/* Returns the first error of this thread that nobody was told, with its message, and forgets
 * it. */
static int told(WeftStatus *status)
{
	const int code = pending.code;
	if (code != WEFT_OK && status)
		*status = pending;
	pending.code = WEFT_OK;
	return code;
}

static int gpu_wait(void *self, void *stream, WeftStatus *status)
{
	const Gpu *g = self;
	if (enter(g, "waiting")) {
		note(g, cu->wait(stream), "executing kernels");
		leave();
	}
	return told(status);
}

static int gpu_mark(void *self, void **mark, void *stream, WeftStatus *status)
{
	const Gpu *g = self;
	if (enter(g, "marking a stream")) {
		Event *event = *mark;
		int rc = event ? CU_OK : cu->event(&event, CU_NO_TIME);
		*mark = rc == CU_OK ? event : NULL;
		note(g, rc == CU_OK ? cu->event_record(event, stream) : rc, "marking a stream");
		leave();
	}
	return told(status);
}

static int gpu_passed(void *self, void *mark, bool wait, bool *done, WeftStatus *status)
{
	const Gpu *g = self;
	int rc = g->process == getpid() ? cu->push(g->context) : CU_NOT_INITIALIZED;
	if (rc == CU_OK) {
		rc = wait ? cu->event_wait(mark) : cu->event_query(mark);
		leave();
	}
	*done = rc == CU_OK;
	return rc == CU_OK || rc == CU_NOT_READY || rc == CU_DEINITIALIZED
		       ? WEFT_OK
		       : tell(status, rc, "executing kernels", g->name);
}

/* Returns why the stream cannot be used, NULL if it can: marks and graphs of our own cannot be in
 * a graph of the caller. */
static const char *gpu_refuses(void *self, void *stream)
{
	int captured = 0;
	if (!enter(self, "asking a stream"))
		return NULL;
	note(self, cu->is_captured(stream, &captured), "asking a stream");
	leave();
	return captured ? "the stream is being captured, and a model makes its own graphs: call it "
			  "outside of the capture"
			: NULL;
}

static void gpu_unmark(void *self, void *mark)
{
	const Gpu *g = self;
	if (g->process == getpid() && cu->push(g->context) == CU_OK) {
		cu->event_drop(mark);
		leave();
	}
}

static void *gpu_host_alloc(void *self, uint64_t bytes)
{
	void *p = NULL;
	if (!enter(self, "allocating memory of the host"))
		return NULL;
	int rc = cu->host_alloc(&p, (size_t)bytes, 0);
	leave();
	return rc == CU_OK ? p : NULL;
}

static void gpu_host_free(void *self, void *p)
{
	const Gpu *g = self;
	if (p && g->process == getpid() && cu->push(g->context) == CU_OK) {
		cu->host_free(p);
		leave();
	}
}

static int gpu_read(void *self, void *to, const void *from, uint64_t bytes, void *stream,
		    WeftStatus *status)
{
	gpu_copy(self, to, from, bytes, WEFT_TO_HOST, stream);
	return gpu_wait(self, stream, status);
}

static uint64_t gpu_left(void *self)
{
	size_t left = 0, all = 0;
	if (enter(self, "asking for free memory")) {
		cu->room(&left, &all);
		leave();
	}
	return left;
}

/* ---- launches ---- */

static void gpu_launch(void *self, WeftDeviceLaunch *l, void *stream)
{
	(void)stream; /* the call's */
	const WeftFrame f = {l->buf, l->p, l->failure, &l->told, l->region};
	if (!enter(self, "beginning kernels"))
		return;
	l->failed = l->kernel(&f, 0, l->ntasks);
	leave();
}

/* A piece of work for a stream: a launch, or one of these. */
enum { FILL = -1, COPY = -2 };
typedef struct {
	int32_t kernel;
	unsigned blocks;
	int64_t *arg;  /* of a fill: address, value, bytes; of a copy: to, from, bytes */
	uint32_t narg;
	bool library;  /* the kernel's product, by the library */
	bool changed;  /* since the graph was made */
	CuNode *node;
} Work;

/* What calls have recorded. */
typedef struct {
	Work *work;
	uint32_t n, most;
	uint32_t at; /* what the current call has recorded */
	CuGraph *graph;
	CuExec *exec; /* NULL: not made yet */
	Event *played; /* behind the last time */
	Address room;  /* the workspace of its products */
	uint32_t made; /* how often */
} Graph;

static void arguments(const Work *w, void *extra[5], size_t *bytes)
{
	*bytes = w->narg * sizeof *w->arg;
	extra[0] = (void *)(uintptr_t)CU_PARAM_BUFFER;
	extra[1] = w->arg;
	extra[2] = (void *)(uintptr_t)CU_PARAM_SIZE;
	extra[3] = bytes;
	extra[4] = (void *)(uintptr_t)CU_PARAM_END;
}

static const char *work_name(const Gpu *g, const Work *w)
{
	return w->kernel == FILL   ? "filling memory"
	       : w->kernel == COPY ? "copying"
				   : g->code->kernel[w->kernel].name;
}

static bool product_begin(const Gpu *g, const Work *w, Address room, Stream *stream)
{
	const WeftCudaKernel *k = &g->code->kernel[w->kernel];
	return weft_product(g->products, k->product, (const uint64_t *)w->arg, w->arg + k->nbuf,
			    room, g->work_bytes, stream);
}

/* Begins a product by the library, if there is memory for it. Returns whether it did. */
static bool product_now(const Gpu *g, const Work *w, Stream *stream)
{
	Address room = 0;
	if (g->work_bytes && alloc_ordered(g, &room, g->work_bytes, stream) != CU_OK)
		return false;
	const bool begun = product_begin(g, w, room, stream);
	if (room)
		note(g, cu->free_async(room, stream), "freeing memory");
	return begun;
}

static void work_begin(const Gpu *g, const Work *w, Stream *stream)
{
	void *extra[5];
	size_t bytes;
	const int64_t *x = w->arg;
	if (w->library && product_now(g, w, stream))
		return;
	arguments(w, extra, &bytes);
	note(g,
	     w->kernel == FILL ? cu->fill((Address)x[0], (unsigned char)x[1], (size_t)x[2], stream)
	     : w->kernel == COPY
		     ? cu->within((Address)x[0], (Address)x[1], (size_t)x[2], stream)
		     : cu->launch(g->function[w->kernel], w->blocks, 1, 1,
				  g->code->kernel[w->kernel].threads, 1, 1, 0, stream, NULL, extra),
	     work_name(g, w));
}

/* Returns false if the graph was recorded with other work, or if there is no memory. */
static bool graph_record(Graph *x, const Work *w)
{
	const size_t bytes = w->narg * sizeof *w->arg;
	if (x->at == x->n && x->exec)
		return false;
	if (x->at == x->most) {
		const uint32_t most = x->most ? 2 * x->most : 64;
		Work *all = realloc(x->work, most * sizeof *all);
		if (!all)
			return false;
		x->work = all;
		x->most = most;
	}
	Work *old = &x->work[x->at];
	if (x->at < x->n) {
		if (old->kernel != w->kernel || old->blocks != w->blocks || old->narg != w->narg ||
		    old->library != w->library)
			return false;
		old->changed = old->changed || memcmp(old->arg, w->arg, bytes) != 0;
		memcpy(old->arg, w->arg, bytes);
		x->at++;
		return true;
	}
	*old = *w;
	if (!(old->arg = malloc(bytes)))
		return false;
	memcpy(old->arg, w->arg, bytes);
	x->n = ++x->at;
	return true;
}

/* Records the work, or begins it. */
static void work_give(const Gpu *g, DeviceCall *d, const Work *w)
{
	if (d->graph && graph_record(d->graph, w))
		return;
	device_direct(d);
	work_begin(g, w, d->stream);
}

/* Whether the library computes the product. It computes what it is given, also behind a check that
 * failed: where state could be overwritten, kernels compute, which look. */
static bool by_library(const Gpu *g, const WeftFrame *f, const WeftCudaKernel *k,
		       const int64_t *arg)
{
	const DeviceCall *d = f->region->device;
	if (!g->products || !k->product ||
	    (d->recorded && f->region->entry->flags & WEFT_ENTRY_WRITES_STATE))
		return false;
	return weft_product_takes(g->products, k->product, (const uint64_t *)arg, arg + k->nbuf,
				  g->work_bytes);
}

int weft_cuda_launch(const WeftFrame *f, uint32_t k, int64_t begin, int64_t end)
{
	enum { GRID = INT32_MAX };
	DeviceCall *d = f->region->device;
	const Gpu *g = d->driver->self;
	const WeftCudaKernel *kernel = &g->code->kernel[k];
	const uint32_t n = kernel->nbuf + kernel->nparam;
	int64_t arg[n + 3], clear[] = {(int64_t)(uintptr_t)d->record, 0, WEFT_RECORD};
	if (kernel->checks && !d->recorded) {
		work_give(g, d, &(Work){.kernel = FILL, .arg = clear, .narg = 3});
		d->recorded = true;
	}
	for (uint32_t i = 0; i < kernel->nbuf; i++)
		arg[i] = (int64_t)(uintptr_t)f->buf[i];
	for (uint32_t i = 0; i < kernel->nparam; i++)
		arg[kernel->nbuf + i] = f->p[i];
	arg[n + 1] = d->recorded ? (int64_t)(uintptr_t)d->record : 0;
	arg[n + 2] = d->launches;
	const bool library = by_library(g, f, kernel, arg);
	for (; begin < end; begin += GRID) {
		arg[n] = begin;
		work_give(g, d,
			  &(Work){.kernel = (int32_t)k,
				  .blocks = (unsigned)(end - begin < GRID ? end - begin : GRID),
				  .arg = arg,
				  .narg = n + 3,
				  .library = library});
		if (library)
			break;
	}
	return 0;
}

/* ---- graphs ---- */

static void *gpu_graph_new(void *self)
{
	(void)self;
	return calloc(1, sizeof(Graph));
}

static void gpu_graph_again(void *graph)
{
	((Graph *)graph)->at = 0;
}

static void gpu_graph_copy(void *self, DeviceCall *d, void *to, const void *from, uint64_t bytes)
{
	int64_t arg[] = {(int64_t)(uintptr_t)to, (int64_t)(uintptr_t)from, (int64_t)bytes};
	if (enter(self, "copying")) {
		work_give(self, d, &(Work){.kernel = COPY, .arg = arg, .narg = 3});
		leave();
	}
}

static void gpu_graph_flush(void *self, void *graph, void *stream)
{
	const Graph *x = graph;
	if (!enter(self, "beginning kernels"))
		return;
	for (uint32_t k = 0; k < x->at; k++)
		work_begin(self, &x->work[k], stream);
	leave();
}

/* Adds the library's work to a graph, captured from a stream of ours. Returns the driver's
 * result. */
static int product_node(Gpu *g, Graph *x, Work *w, CuNode *before)
{
	CuGraph *child = NULL;
	int rc = x->room || !g->work_bytes ? CU_OK : cu->alloc(&x->room, g->work_bytes);
	if (rc != CU_OK)
		return x->room = 0, rc;
	pthread_mutex_lock(&g->capturing);
	rc = cu->capture(g->capture, CU_OF_THREAD);
	const bool begun = rc == CU_OK && product_begin(g, w, x->room, g->capture);
	rc = rc == CU_OK ? cu->captured(g->capture, &child) : rc;
	pthread_mutex_unlock(&g->capturing);
	if (rc == CU_OK)
		rc = begun ? cu->add_child(&w->node, x->graph, &before, before != NULL, child)
			   : CU_LAUNCH_FAILED;
	if (child)
		cu->graph_drop(child);
	return rc;
}

/* Adds the node of a graph behind the one before, or changes the arguments of the node of one that
 * was made. */
static int graph_node(Gpu *g, Graph *x, Work *w, CuNode *before)
{
	void *extra[5];
	size_t bytes;
	const size_t n = before != NULL;
	const int64_t *arg = w->arg;
	if (w->kernel == FILL) {
		const FillNode p = {.to = (Address)arg[0],
				    .value = (unsigned)arg[1],
				    .element = 1,
				    .width = (size_t)arg[2],
				    .height = 1};
		return x->exec ? cu->set_fill(x->exec, w->node, &p, g->context)
			       : cu->add_fill(&w->node, x->graph, &before, n, &p, g->context);
	}
	if (w->kernel == COPY) {
		const CopyNode p = {.from = {.memory = CU_ON_DEVICE, .device = (Address)arg[1]},
				    .to = {.memory = CU_ON_DEVICE, .device = (Address)arg[0]},
				    .width = (size_t)arg[2],
				    .height = 1,
				    .depth = 1};
		return x->exec ? cu->set_copy(x->exec, w->node, &p, g->context)
			       : cu->add_copy(&w->node, x->graph, &before, n, &p, g->context);
	}
	if (w->library)
		return product_node(g, x, w, before);
	arguments(w, extra, &bytes);
	const KernelNode p = {.function = g->function[w->kernel],
			      .grid = {w->blocks, 1, 1},
			      .block = {g->code->kernel[w->kernel].threads, 1, 1},
			      .extra = extra};
	return x->exec ? cu->set_kernel(x->exec, w->node, &p)
		       : cu->add_kernel(&w->node, x->graph, &before, n, &p);
}

static void graph_unmake(Graph *x)
{
	if (x->played) {
		cu->event_wait(x->played);
		cu->event_drop(x->played);
	}
	if (x->exec)
		cu->exec_drop(x->exec);
	if (x->graph)
		cu->graph_drop(x->graph);
	x->played = NULL;
	x->exec = NULL;
	x->graph = NULL;
}

/* Makes the graph, or changes what has changed. */
static int graph_ready(Gpu *g, Graph *x)
{
	enum { OFTEN = 4 };
	int rc = CU_OK;
	bool again = false;
	for (uint32_t k = 0; k < x->n; k++)
		again = again || (x->exec && x->work[k].library && x->work[k].changed);
	if (again && x->made == OFTEN)
		return CU_NOT_READY; /* no gain where addresses change all the time */
	if (again) /* what was captured has no arguments that change */
		graph_unmake(x);
	const bool made = x->exec;
	x->made += !made;
	if (!made && (rc = cu->graph_new(&x->graph, 0)) != CU_OK)
		return x->graph = NULL, rc;
	for (uint32_t k = 0; k < x->n && rc == CU_OK; k++) {
		Work *w = &x->work[k];
		if (!made || w->changed)
			rc = graph_node(g, x, w, k ? x->work[k - 1].node : NULL);
		w->changed = false;
	}
	if (!made && rc == CU_OK && (rc = cu->make(&x->exec, x->graph, 0)) != CU_OK)
		x->exec = NULL;
	if (!made && rc == CU_OK && (rc = cu->event(&x->played, CU_NO_TIME)) != CU_OK)
		x->played = NULL;
	return rc;
}

static bool gpu_graph_play(void *self, void *graph, void *stream)
{
	Graph *x = graph;
	if (x->at != x->n || !x->n || !enter(self, "beginning a graph"))
		return false;
	const bool ready = graph_ready(self, x) == CU_OK;
	if (ready) {
		note(self, cu->graph_launch(x->exec, stream), "beginning a graph");
		cu->event_record(x->played, stream);
	}
	leave();
	return ready;
}

static void gpu_graph_free(void *self, void *graph)
{
	const Gpu *g = self;
	Graph *x = graph;
	if (g->process == getpid() && cu->push(g->context) == CU_OK) {
		graph_unmake(x);
		if (x->room)
			cu->free(x->room);
		leave();
	}
	for (uint32_t k = 0; k < x->n; k++)
		free(x->work[k].arg);
	free(x->work);
	free(x);
}

/* ---- opening ---- */

/* Loads the images: code for this architecture, or PTX. */
static int load_images(Gpu *g, bool ptx, WeftStatus *status)
{
	char log[256] = "";
	int option[] = {CU_ERROR_LOG, CU_ERROR_LOG_BYTES};
	void *value[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
	for (uint32_t k = 0; k < g->code->nimage; k++) {
		const WeftCudaImage *im = &g->code->image[k];
		int rc = cu->load(&g->module[k], g->code->data + (ptx ? im->ptx : im->code),
				  ptx ? 2 : 0, option, value);
		if (rc == CU_OK)
			continue;
		size_t left = 0, all = 0;
		cu->room(&left, &all);
		char what[400];
		snprintf(what, sizeof what, "loading kernels (%llu bytes of memory are free)%s%s",
			 (unsigned long long)left, *log ? ": " : "", log);
		return tell(status, rc, what, g->name);
	}
	for (uint32_t k = 0; k < g->code->nkernel; k++) {
		const WeftCudaKernel *kernel = &g->code->kernel[k];
		int rc = cu->function(&g->function[k], g->module[kernel->image], kernel->name);
		if (rc != CU_OK)
			return tell(status, rc, kernel->name, g->name);
	}
	return WEFT_OK;
}

/* Opens a pool that keeps memory which calls gave back: the device's own gives it to the system
 * whenever somebody waits, and takes it again for the next call. */
static void open_pool(Gpu *g)
{
	const PoolProps p = {.kind = CU_PINNED, .place = CU_PLACE_DEVICE, .id = g->device};
	const uint64_t all = UINT64_MAX;
	if (!g->pools || !cu->pool || cu->pool(&g->pool, &p) != CU_OK) {
		g->pool = NULL;
		return;
	}
	cu->pool_set(g->pool, CU_POOL_KEEPS, &all);
}

/* Opens the library for products, if kernels have some and it is there. */
static void open_products(Gpu *g, int major)
{
	enum { MB = 1 << 20 };
	bool any = false;
	for (uint32_t k = 0; k < g->code->nkernel; k++)
		any = any || g->code->kernel[k].product;
	g->products = any ? weft_products_open() : NULL;
	g->work_bytes = !g->pools ? 0 : major >= 9 ? 32 * MB : 4 * MB;
	pthread_mutex_init(&g->capturing, NULL);
	if (g->products && cu->graph_new && cu->stream(&g->capture, CU_OF_ITS_OWN) != CU_OK)
		g->capture = NULL;
	if (g->products && !g->capture)
		g->driver.graph_new = NULL;
}

static int version_of(const WeftCuda *c)
{
	return (int)(10 * c->major + c->minor);
}

/* Whether the code runs on devices of that version: machine code on those of its major version
 * that are not older, PTX on all that are not older. */
static bool runs_on(const WeftCuda *c, int version)
{
	return !c->arch || version_of(c) <= version;
}

/* Returns 10 * major + minor of the device's version. */
static int device_version(int device)
{
	int major = 0, minor = 0;
	cu->attribute(&major, CU_MAJOR, device);
	cu->attribute(&minor, CU_MINOR, device);
	return 10 * major + minor;
}

/* Returns the code for devices of that version; NULL if there is none. */
static const WeftCuda *choose(int version)
{
	const WeftCuda *best = NULL;
	for (const WeftCuda *const *c = weft_cuda; *c; c++)
		if (runs_on(*c, version))
			best = *c; /* the newest one that is not newer */
	return best;
}

const WeftModel *weft_cuda_model(int32_t id)
{
	int n = 0, device = 0;
	const bool there = !weft_cuda_load() && cu->state == CU_OK && cu->count(&n) == CU_OK &&
			   id >= 0 && id < n && cu->device(&device, id) == CU_OK;
	const WeftCuda *best = there ? choose(device_version(device)) : NULL;
	return (best ? best : weft_cuda[0])->model();
}

static int check_device(const WeftModel *m, Gpu *g, bool *ptx, WeftStatus *status)
{
	int pools = 0;
	char list[128] = "";
	cu->name(g->name, sizeof g->name, g->device);
	cu->attribute(&pools, CU_POOLS, g->device);
	g->pools = g->driver.ordered = pools;
	const int version = device_version(g->device);
	const WeftCuda *best = choose(version);
	*ptx = g->code->arch && (int)g->code->major != version / 10;
	if (runs_on(g->code, version))
		return WEFT_OK;
	if (best)
		return weft_fail(status, WEFT_ERR_DEVICE,
				 "%s: this table is for %s, and device %d (%s) is sm_%d: "
				 "weft_model_device gives the table for it",
				 m->manifest->name, g->code->arch, g->ordinal, g->name, version);
	for (uint32_t k = 0, n = 0; weft_cuda[k] && n < sizeof list - 16; k++)
		n += (uint32_t)snprintf(list + n, sizeof list - n, "%s%.10s", k ? ", " : "",
					weft_cuda[k]->arch);
	return weft_fail(status, WEFT_ERR_DEVICE,
			 "%s has kernels for %s, and device %d (%s) is sm_%d: compile the model "
			 "with --target cuda-sm_%d",
			 m->manifest->name, list, g->ordinal, g->name, version, version);
}

/* Frees what there is of it. */
static void gpu_drop(Gpu *g)
{
	if (g->context && g->process == getpid() && cu->push(g->context) == CU_OK) {
		weft_products_close(g->products);
		if (g->pool)
			cu->pool_drop(g->pool);
		if (g->capture)
			cu->stream_drop(g->capture);
		for (uint32_t k = 0; g->module && k < g->code->nimage; k++)
			if (g->module[k])
				cu->unload(g->module[k]);
		leave();
		cu->release(g->device);
	}
	free(g->module);
	free(g->function);
	free(g);
}

static int gpu_begin(Gpu *g, const WeftModel *m, int ordinal, WeftStatus *status)
{
	bool ptx;
	g->ordinal = ordinal;
	g->process = getpid();
	g->driver = (WeftDriver){.size = sizeof g->driver,
				 .type = WEFT_CUDA,
				 .name = g->name,
				 .self = g,
				 .weights = g->code->weights,
				 .alloc = gpu_alloc,
				 .free = gpu_free,
				 .copy = gpu_copy,
				 .fill = gpu_fill,
				 .read = gpu_read,
				 .launch = gpu_launch,
				 .wait = gpu_wait,
				 .left = gpu_left,
				 .mark = gpu_mark,
				 .passed = gpu_passed,
				 .unmark = gpu_unmark,
				 .host_alloc = gpu_host_alloc,
				 .host_free = gpu_host_free,
				 .graph_new = cu->graph_new ? gpu_graph_new : NULL,
				 .graph_again = gpu_graph_again,
				 .graph_copy = gpu_graph_copy,
				 .graph_play = gpu_graph_play,
				 .graph_flush = gpu_graph_flush,
				 .graph_free = gpu_graph_free,
				 .refuses = cu->graph_new ? gpu_refuses : NULL};
	int rc = cu->device(&g->device, ordinal);
	snprintf(g->name, sizeof g->name, "CUDA device %d", ordinal);
	if (rc != CU_OK)
		return tell(status, rc, "opening", g->name);
	TRY(check_device(m, g, &ptx, status));
	if ((rc = cu->retain(&g->context, g->device)) != CU_OK)
		return g->context = NULL, tell(status, rc, "opening", g->name);
	g->module = calloc(g->code->nimage + 1, sizeof *g->module);
	g->function = calloc(g->code->nkernel + 1, sizeof *g->function);
	if (!g->module || !g->function)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
	if ((rc = cu->push(g->context)) != CU_OK)
		return tell(status, rc, "opening", g->name);
	open_pool(g);
	int code = load_images(g, ptx, status);
	open_products(g, device_version(g->device) / 10);
	leave();
	return code;
}

static int check_driver(const WeftModel *m, int ordinal, WeftStatus *status)
{
	int n = 0;
	const char *name = m->manifest->name, *missing = weft_cuda_load();
	if (missing)
		return weft_fail(status, WEFT_ERR_DEVICE, "%s is for a GPU, and %s", name, missing);
	int rc = cu->state == CU_OK ? cu->count(&n) : cu->state;
	if (rc == CU_NO_DEVICE || (rc == CU_OK && n == 0))
		return weft_fail(status, WEFT_ERR_DEVICE,
				 "%s is for a GPU, and NVIDIA's driver finds none", name);
	if (rc != CU_OK)
		return tell(status, rc, "beginning", "NVIDIA's driver");
	if (ordinal < 0 || ordinal >= n)
		return weft_fail(status, WEFT_ERR_DEVICE, "%s: there is no GPU %d, only 0 to %d",
				 name, ordinal, n - 1);
	return WEFT_OK;
}

static int open_locked(const WeftModel *m, const WeftCuda *code, int ordinal,
		       const WeftDriver **out, WeftStatus *status)
{
	Gpu *g = gpus;
	while (g && (g->ordinal != ordinal || g->code != code))
		g = g->next;
	if (g && g->process != getpid())
		return weft_fail(status, WEFT_ERR_DEVICE,
				 "%s: a process that was forked cannot use the GPU of its parent",
				 m->manifest->name);
	if (!g) {
		TRY(check_driver(m, ordinal, status));
		if (!(g = calloc(1, sizeof *g)))
			return weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
		g->code = code;
		const int failed = gpu_begin(g, m, ordinal, status);
		if (failed != WEFT_OK)
			return gpu_drop(g), failed;
		g->next = gpus;
		gpus = g;
	}
	g->users++;
	*out = &g->driver;
	return WEFT_OK;
}

int weft_device_open(const WeftModel *m, int32_t ordinal, const WeftDriver **out,
		     WeftStatus *status)
{
	const WeftCuda *const *code = weft_cuda;
	*out = NULL;
	while (*code && (*code)->model() != m)
		code++;
	if (!*code)
		return WEFT_OK;
	pthread_mutex_lock(&lock);
	int failed = open_locked(m, *code, ordinal, out, status);
	pthread_mutex_unlock(&lock);
	return failed;
}

void weft_device_close(const WeftDriver *v)
{
	if (!v)
		return;
	Gpu *g = v->self, **at = &gpus;
	pthread_mutex_lock(&lock);
	if (--g->users == 0) {
		while (*at != g)
			at = &(*at)->next;
		*at = g->next;
		gpu_drop(g);
	}
	pthread_mutex_unlock(&lock);
}

int32_t weft_device_ordinal(const WeftDriver *v)
{
	return ((const Gpu *)v->self)->ordinal;
}
#endif
