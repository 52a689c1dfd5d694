/* The same model for the processor and for the double of a device (tests/device/double.c) gives
 * the same bits, codes and messages: device PROCESSOR.so DEVICE.so. Every entry is called several
 * times, with tensors of the host, tensors of the device, and strided ones; what one entry saves
 * the next ones take. State and weights are compared through the functions of the table. At last
 * every allocation fails once. Prints the number of calls that succeeded. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "device.h"

enum { MOST_RANK = 16, MOST_BYTES = 1 << 26, DOUBLE = 12 };

static int bad;
static uint32_t succeeded;

static void complain(const char *what, const char *name, const char *a, const char *b)
{
	printf("FAIL %s %s: %s, on the device: %s\n", what, name, a, b);
	bad = 1;
}

/* ---- models ---- */

typedef struct {
	const WeftModel *m;
	WeftInstance *in;
	const WeftDriver *driver; /* NULL: the processor */
	uint32_t (*live)(void);
	uint64_t (*launches)(void);
	void (*fail)(int64_t);
} Side;

static void *symbol(void *so, const char *name)
{
	void *p = dlsym(so, name);
	return p ? p : (fprintf(stderr, "no %s\n", name), exit(2), NULL);
}

static Side load(const char *path, bool device)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const WeftModel *(*get)(void);
	Side s = {0};
	if (!so) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&get = symbol(so, "weft_model");
	s.m = get();
	if (device) {
		s.driver = symbol(so, "weft_double");
		*(void **)&s.live = symbol(so, "weft_double_live");
		*(void **)&s.launches = symbol(so, "weft_double_launches");
		*(void **)&s.fail = symbol(so, "weft_double_fail");
	}
	return s;
}

/* ---- tensors ---- */

typedef struct {
	WeftTensor t;
	int64_t shape[MOST_RANK], strides[MOST_RANK];
	uint64_t bytes;
} Tensor;

static uint64_t elem_of(WeftDType d)
{
	return ((uint64_t)d.bits + 7) / 8;
}

/* Of a size that is no number: 0. */
static bool set_shape(const WeftTensorInfo *info, const int64_t *value, Tensor *x)
{
	memset(x, 0, sizeof *x);
	x->t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	x->bytes = elem_of(info->dtype);
	for (uint32_t d = 0; d < info->rank; d++) {
		const WeftDim *dim = &info->dim[d];
		if (dim->value < 0 && dim->symbol < 0)
			return false;
		x->shape[d] = dim->value >= 0 ? dim->value : value[dim->symbol];
		x->bytes *= (uint64_t)x->shape[d];
	}
	return x->bytes < MOST_BYTES;
}

/* Small values of every dtype, by position. */
static void put(WeftDType d, char *p, uint64_t k)
{
	static const float some[] = {0.5f, -0.25f, 1, 0, 0.75f, -1, 0.125f};
	const float f = some[k % 7];
	if (d.code == WEFT_COMPLEX && d.bits == 64)
		memcpy(p, (float[]){f, 0.5f}, 8);
	else if (d.code == WEFT_COMPLEX)
		memcpy(p, (double[]){(double)f, 0.5}, 16);
	else if (d.code == WEFT_FLOAT && d.bits == 64)
		memcpy(p, (double[]){(double)f}, 8);
	else if (d.code == WEFT_FLOAT && d.bits == 32)
		memcpy(p, &f, 4);
	else if (d.code == WEFT_FLOAT)
		memcpy(p, (uint16_t[]){k % 2 ? 0x3800 : 0x3c00}, 2);
	else if (d.code == WEFT_BFLOAT)
		memcpy(p, (uint16_t[]){k % 2 ? 0x3f00 : 0x3f80}, 2);
	else if (d.code == WEFT_INT || d.code == WEFT_UINT || d.code == WEFT_BOOL)
		p[0] = (char)(k % 3 == 1); /* little-endian; the rest is 0 */
	else
		p[0] = 0x38;
}

static void fill(Tensor *x, uint64_t seed)
{
	x->t.data = calloc(1, x->bytes + 64);
	for (uint64_t k = 0; k < x->bytes / elem_of(x->t.dtype); k++)
		put(x->t.dtype, (char *)x->t.data + k * elem_of(x->t.dtype), k + seed);
}

/* The tensor with every element twice as far from the next. */
static Tensor spread(const Tensor *x)
{
	const uint64_t elem = elem_of(x->t.dtype);
	Tensor y = *x;
	int64_t stride = 2;
	y.t.data = calloc(1, 2 * x->bytes + 64);
	for (uint32_t d = (uint32_t)x->t.ndim; d-- > 0; stride *= x->shape[d])
		y.strides[d] = stride;
	for (uint64_t k = 0; k < x->bytes / elem; k++)
		memcpy((char *)y.t.data + 2 * k * elem, (char *)x->t.data + k * elem, elem);
	return y;
}

/* ---- one call ---- */

/* A loop that ends with these inputs on neither: the processor, which is called first, is in it. */
static bool on_device;

static void endless(int signal)
{
	(void)signal;
	_exit(on_device ? 78 : 77);
}

typedef enum { HOST, STRIDED, DEVICE } How;

typedef struct {
	uint32_t n;
	Tensor *out;
	WeftStatus status;
	int code;
} Result;

static void *alloc_on(const Side *s, bool there, uint64_t bytes)
{
	return there ? s->driver->alloc(s->driver->self, bytes, NULL) : malloc((size_t)bytes);
}

static void free_on(const Side *s, bool there, void *p)
{
	if (there)
		s->driver->free(s->driver->self, p, NULL);
	else
		free(p);
}

static void to_host(const Side *s, Tensor *x)
{
	void *p = malloc(x->bytes + 64);
	WeftStatus status;
	if (x->bytes &&
	    s->driver->read(s->driver->self, p, x->t.data, x->bytes, NULL, &status) != WEFT_OK)
		complain("read", "", "", status.message);
	s->driver->free(s->driver->self, x->t.byte_offset ? NULL : x->t.data, NULL);
	x->t.data = p;
	x->t.device.type = WEFT_CPU;
}

static uint64_t bytes_of(const Tensor *x)
{
	uint64_t n = elem_of(x->t.dtype);
	for (int32_t d = 0; d < x->t.ndim; d++)
		n *= (uint64_t)x->shape[d];
	return n;
}

/* Ends the process after so many seconds of processor time; 0: never. */
static void limit(int seconds)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

/* in[]: of the host, row-major. */
static Result call(const Side *s, uint32_t entry, const Tensor *in, How how)
{
	const WeftEntry *e = s->m->entry[entry];
	const bool there = how == DEVICE && s->driver;
	WeftTensor x[e->ninput + 1], y[e->noutput + 1];
	Tensor own[e->ninput + 1];
	enum { SECONDS = 10 };
	on_device = s->driver;
	limit(on_device ? 6 * SECONDS : SECONDS);
	Result r = {.n = e->noutput, .out = calloc(e->noutput + 1, sizeof *r.out)};
	WeftSizes *sizes = calloc(1, (size_t)e->sizes_bytes);
	for (uint32_t k = 0; k < e->ninput; k++) {
		own[k] = how == STRIDED ? spread(&in[k]) : in[k];
		own[k].t.shape = own[k].shape;
		own[k].t.strides = how == STRIDED ? own[k].strides : NULL;
		if (there && own[k].bytes) {
			own[k].t.data = alloc_on(s, true, own[k].bytes);
			own[k].t.device.type = DOUBLE;
			s->driver->copy(s->driver->self, own[k].t.data, in[k].t.data, own[k].bytes,
					WEFT_TO_DEVICE, NULL);
		}
		x[k] = own[k].t;
	}
	r.code = s->m->sizes(s->in, entry, x, sizes, &r.status);
	for (uint32_t k = 0; k < e->noutput && r.code == WEFT_OK; k++) {
		Tensor *o = &r.out[k];
		const int64_t *shape = weft_output_shape(s->m, e, sizes, k);
		bool known = true;
		o->t = (WeftTensor){.device = {there ? DOUBLE : WEFT_CPU, 0},
				    .ndim = (int32_t)e->output[k].rank,
				    .dtype = e->output[k].dtype,
				    .shape = o->shape};
		for (uint32_t d = 0; d < e->output[k].rank; d++)
			known &= (o->shape[d] = shape[d]) >= 0;
		o->bytes = known ? bytes_of(o) : 0;
		if (known)
			o->t.data = alloc_on(s, there, o->bytes + 64);
		y[k] = o->t;
	}
	if (r.code == WEFT_OK) {
		const WeftContext context = {
			.size = sizeof context, .device = {there ? DOUBLE : 0, 0}, .nthreads = 2};
		void *work = alloc_on(s, there, sizes->workspace_bytes);
		r.code = s->m->run(s->in, sizes, x, y, work, &context, &r.status);
		free_on(s, there, work);
		for (uint32_t k = 0; k < e->noutput; k++) {
			r.out[k].t.data = y[k].data;
			r.out[k].bytes = y[k].data && r.code == WEFT_OK ? bytes_of(&r.out[k]) : 0;
			if (there)
				to_host(s, &r.out[k]);
		}
	}
	for (uint32_t k = 0; k < e->ninput; k++)
		if (own[k].t.data != in[k].t.data)
			free_on(s, there, own[k].t.data);
	free(sizes);
	limit(0);
	return r;
}

static void drop(Result *r)
{
	for (uint32_t k = 0; k < r->n; k++)
		free(r->out[k].t.data);
	free(r->out);
}

/* ---- comparing ---- */

static void compare_results(const WeftEntry *e, const char *what, const Result *a, const Result *b)
{
	if (a->code != b->code || (a->code && strcmp(a->status.message, b->status.message)))
		complain(what, e->name, a->code ? a->status.message : "succeeds",
			 b->code ? b->status.message : "succeeds");
	for (uint32_t k = 0; k < a->n && !a->code && !b->code; k++)
		if (a->out[k].bytes != b->out[k].bytes ||
		    memcmp(a->out[k].shape, b->out[k].shape, sizeof a->out[k].shape) ||
		    (a->out[k].bytes &&
		     memcmp(a->out[k].t.data, b->out[k].t.data, a->out[k].bytes)))
			complain(what, e->output[k].name, "one value", "another");
}

static Tensor state_of(const Side *s, WeftInstance *in, uint32_t k, bool there)
{
	Tensor x;
	WeftStatus status;
	set_shape(&s->m->state[k], NULL, &x);
	x.t.shape = x.shape;
	x.t.data = alloc_on(s, there, x.bytes + 64);
	x.t.device.type = there ? DOUBLE : WEFT_CPU;
	if (s->m->state_get(in, k, &x.t, &status) != WEFT_OK)
		complain("state_get", s->m->state[k].name, "", status.message);
	if (there)
		to_host(s, &x);
	return x;
}

static void compare_state(const Side *a, WeftInstance *ain, const Side *b, WeftInstance *bin,
			  const char *when)
{
	for (uint32_t k = 0; k < a->m->nstate; k++)
		for (int there = 0; there < 2; there++) {
			Tensor x = state_of(a, ain, k, false), y = state_of(b, bin, k, there);
			if (x.bytes && memcmp(x.t.data, y.t.data, x.bytes))
				complain(when, a->m->state[k].name, "one value", "another");
			free(x.t.data);
			free(y.t.data);
		}
}

/* ---- all entries ---- */

/* Outputs by name, for inputs of that name: what gradients need was saved. */
typedef struct {
	const char *name;
	Tensor x;
} Kept;

static Kept kept[512];
static uint32_t nkept;

static void keep(const WeftEntry *e, Result *r)
{
	for (uint32_t k = 0; k < r->n && !r->code; k++) {
		uint32_t i = 0;
		while (i < nkept && strcmp(kept[i].name, e->output[k].name))
			i++;
		if (i == sizeof kept / sizeof *kept || strncmp(e->output[k].name, "saved.", 6))
			continue;
		free(i < nkept ? kept[i].x.t.data : NULL);
		nkept += i == nkept;
		kept[i] = (Kept){e->output[k].name, r->out[k]};
		r->out[k].t.data = NULL;
	}
}

/* At sizes that graphs without examples can do with. */
static bool make_inputs(const WeftEntry *e, Tensor *in, uint64_t seed)
{
	enum { LEAST = 4 };
	bool fits = true;
	int64_t value[e->nsymbol + 1];
	for (uint32_t k = 0; k < e->nsymbol; k++) {
		const int64_t least = e->symbol[k].hi < LEAST ? e->symbol[k].hi : LEAST;
		value[k] = e->seen[k] < least ? least : e->seen[k];
	}
	for (uint32_t k = 0; k < e->ninput; k++) {
		const Tensor *from = NULL;
		for (uint32_t i = 0; i < nkept; i++)
			from = strcmp(kept[i].name, e->input[k].name) ? from : &kept[i].x;
		fits &= set_shape(&e->input[k], value, &in[k]) || from;
		if (!fits) {
			in[k].bytes = 0;
			continue;
		}
		if (from) {
			memcpy(in[k].shape, from->shape, sizeof from->shape);
			in[k].bytes = from->bytes;
		}
		fill(&in[k], seed + 3 * k);
		if (from && from->bytes)
			memcpy(in[k].t.data, from->t.data, from->bytes);
	}
	return fits;
}

static void call_both(const Side *a, const Side *b, uint32_t entry, How how, const char *what)
{
	const WeftEntry *e = a->m->entry[entry];
	Tensor in[e->ninput + 1];
	memset(in, 0, sizeof in);
	if (make_inputs(e, in, how)) {
		Result x = call(a, entry, in, how), y = call(b, entry, in, how);
		compare_results(e, what, &x, &y);
		succeeded += !x.code && !y.code;
		keep(e, &x);
		drop(&x);
		drop(&y);
	}
	for (uint32_t k = 0; k < e->ninput; k++)
		free(in[k].t.data);
}

static void call_all(const Side *a, const Side *b, const char *what)
{
	for (How how = HOST; how <= DEVICE; how++)
		for (uint32_t k = 0; k < a->m->nentry; k++)
			call_both(a, b, k, how, what);
}

/* ---- state and weights ---- */

static void set_state(const Side *s, uint32_t k, bool there)
{
	Tensor x;
	WeftStatus status;
	set_shape(&s->m->state[k], NULL, &x);
	fill(&x, 5);
	x.t.shape = x.shape;
	void *host = x.t.data;
	if (there && x.bytes) {
		x.t.data = alloc_on(s, true, x.bytes);
		x.t.device.type = DOUBLE;
		s->driver->copy(s->driver->self, x.t.data, host, x.bytes, WEFT_TO_DEVICE, NULL);
	}
	if (s->m->state_set(s->in, k, &x.t, &status) != WEFT_OK)
		complain("state_set", s->m->state[k].name, "", status.message);
	if (x.t.data != host)
		free_on(s, true, x.t.data);
	free(host);
}

static void check_state(const Side *a, const Side *b)
{
	WeftInstance *x, *y;
	WeftStatus status;
	compare_state(a, a->in, b, b->in, "state after calls");
	for (uint32_t k = 0; k < a->m->nstate; k++) {
		set_state(a, k, false);
		set_state(b, k, k % 2);
	}
	compare_state(a, a->in, b, b->in, "state that was set");
	if (a->m->clone(a->in, &x, &status) || b->m->clone(b->in, &y, &status)) {
		complain("clone", "", "", status.message);
		return;
	}
	compare_state(a, x, b, y, "state of a clone");
	a->m->close(x);
	b->m->close(y);
	call_all(a, b, "call after state_set");
	if (a->m->state_reset(a->in, &status) || b->m->state_reset(b->in, &status))
		complain("state_reset", "", "", status.message);
	compare_state(a, a->in, b, b->in, "state after reset");
}

static void set_weights(const Side *s, bool partly)
{
	const uint32_t n = s->m->nsource / (partly ? 2 : 1);
	const char *name[n + 1];
	Tensor x[n + 1];
	WeftTensor value[n + 1];
	WeftStatus status;
	for (uint32_t k = 0; k < n; k++) {
		const WeftParamInfo *p = &s->m->source[k];
		x[k] = (Tensor){.t = {.device = {WEFT_CPU, 0},
				      .ndim = (int32_t)p->rank,
				      .dtype = p->dtype}};
		for (uint32_t d = 0; d < p->rank; d++)
			x[k].shape[d] = p->dim[d];
		x[k].bytes = bytes_of(&x[k]);
		fill(&x[k], 11 + k);
		x[k].t.shape = x[k].shape;
		value[k] = x[k].t;
		name[k] = p->name;
	}
	const WeftContext context = {.size = sizeof context, .nthreads = 2};
	int code = s->m->set_weights(s->in, n, name, value, &context, &status);
	if (code != WEFT_OK && !partly)
		complain("set_weights", "", "", status.message);
	for (uint32_t k = 0; k < n; k++)
		free(x[k].t.data);
}

/* ---- allocations that fail ---- */

static void check_failures(const Side *b)
{
	WeftStatus status;
	for (int64_t left = 0; left < 200 && !bad; left++) {
		Side s = *b;
		s.in = NULL;
		s.fail(left);
		int code = s.m->open(s.m, NULL, &s.in, &status);
		for (uint32_t k = 0; code == WEFT_OK && k < s.m->nentry; k++) {
			const WeftEntry *e = s.m->entry[k];
			Tensor in[e->ninput + 1];
			memset(in, 0, sizeof in);
			if (make_inputs(e, in, 0)) {
				Result r = call(&s, k, in, HOST);
				code = r.code;
				status = r.status;
				drop(&r);
			}
			for (uint32_t i = 0; i < e->ninput; i++)
				free(in[i].t.data);
		}
		s.fail(-1);
		s.m->close(s.in);
		if (s.live())
			complain("memory of the device", "", "", "is left behind");
		if (code == WEFT_OK || code != WEFT_ERR_MEMORY)
			return; /* nothing failed any more, or the call fails by itself */
		if (!strstr(status.message, "memory"))
			complain("no memory", "", "", status.message);
	}
}

int main(int argc, char **argv)
{
	WeftStatus status;
	if (argc != 3)
		return 2;
	signal(SIGPROF, endless);
	Side a = load(argv[1], false), b = load(argv[2], true);
	if (a.m->open(a.m, NULL, &a.in, &status) || b.m->open(b.m, NULL, &b.in, &status)) {
		printf("FAIL open: %s\n", status.message);
		return 1;
	}
	call_all(&a, &b, "call");
	if (a.m->nstate)
		check_state(&a, &b);
	for (int partly = 0; partly < 2 && a.m->replaceable; partly++) {
		set_weights(&a, partly);
		set_weights(&b, partly);
		call_all(&a, &b, "call after set_weights");
	}
	const uint64_t launches = b.launches();
	a.m->close(a.in);
	b.m->close(b.in);
	if (b.live())
		complain("memory of the device", "", "", "is left behind");
	check_failures(&b);
	printf("%u calls, %llu launches\n", (unsigned)succeeded, (unsigned long long)launches);
	return bad;
}
