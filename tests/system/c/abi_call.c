/* Uses all of a model's table, of whatever version: abi_call MODEL.so. Prints what it finds and
 * what the entries compute, twice, and what becomes of the state. Status 3: a call had no memory.
 * tests/system/abi.py compiles it with headers of several versions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weft_model.h"

static const WeftModel *m;
static WeftStatus status;

static void must(int code, const char *what)
{
	if (code == WEFT_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, status.message);
	exit(code == WEFT_ERR_MEMORY ? 3 : 1);
}

/* n bytes, behind which there is nothing: a model that takes a structure to be longer than it says
 * crashes. */
static void *at_the_edge(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
		exit(2);
	return p + page - n;
}

static void *need(size_t n)
{
	void *p = malloc(n + 64);
	if (!p)
		exit(3);
	return memset(p, 0, n + 64);
}

/* ---- what it says ---- */

static void print_tensor(const char *what, const WeftTensorInfo *t)
{
	printf("%s %s %u %u [", what, t->name, t->dtype.code, t->dtype.bits);
	for (uint32_t d = 0; d < t->rank; d++)
		printf(" %s %lld %d", weft_dim(m, t, d)->text, (long long)weft_dim(m, t, d)->value,
		       weft_dim(m, t, d)->symbol);
	printf(" ] %d %s %u %s %u\n", t->donates, t->role, t->requires_grad,
	       t->holder ? t->holder : "-", t->nlayout);
}

static void print_entry(const WeftEntry *e)
{
	printf("entry %s %u\n", e->name, e->flags);
	for (uint32_t k = 0; k < e->ninput; k++)
		print_tensor("input", weft_input(m, e, k));
	for (uint32_t k = 0; k < e->noutput; k++)
		print_tensor("output", weft_output(m, e, k));
	for (uint32_t k = 0; k < e->nsymbol; k++)
		printf("symbol %s %lld %lld %lld\n", weft_symbol(m, e, k)->name,
		       (long long)weft_symbol(m, e, k)->lo, (long long)weft_symbol(m, e, k)->hi,
		       (long long)e->seen[k]);
	for (uint32_t k = 0; k < e->ncall; k++) {
		const WeftCallInfo *c = weft_call(m, e, k);
		printf("call %s %s %g %g", c->name, c->algorithm, c->flops, c->bytes);
		if (WEFT_HAS(m->stride[WEFT_CALL_INFO], WeftCallInfo, nline) && c->line)
			printf(" line %s of %u", c->line, c->nline);
		putchar('\n');
	}
	for (uint32_t k = 0; k < m->nstate; k++)
		printf("uses %u\n", e->state_use ? e->state_use[k] : 0);
}

static void print_param(const WeftParamInfo *p)
{
	printf("param %s %u %u [", p->name, p->dtype.code, p->dtype.bits);
	for (uint32_t d = 0; d < p->rank; d++)
		printf(" %lld", (long long)p->dim[d]);
	printf(" ] %llu %llu", (unsigned long long)p->offset, (unsigned long long)p->bytes);
	for (uint32_t d = 0; d < p->nlayout; d++)
		printf(" %u/%lld%%%lld", weft_layout_dim(m, p, d)->axis,
		       (long long)weft_layout_dim(m, p, d)->divisor,
		       (long long)weft_layout_dim(m, p, d)->extent);
	putchar('\n');
}

/* ---- what it does ---- */

/* Its data stands in front of its extents. */
static WeftTensor new_tensor(const WeftTensorInfo *info, const int64_t *shape)
{
	size_t n = (info->dtype.bits + 7u) / 8;
	for (uint32_t d = 0; d < info->rank; d++)
		n *= (size_t)shape[d];
	WeftTensor t = {.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	t.data = need(n);
	t.shape = need(info->rank * sizeof *shape);
	memcpy(t.shape, shape, info->rank * sizeof *shape);
	return t;
}

static int64_t numel(const WeftTensor *t)
{
	int64_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= t->shape[d];
	return n;
}

static WeftTensor constant_shape(const WeftTensorInfo *info)
{
	int64_t shape[16] = {0};
	for (uint32_t d = 0; d < info->rank && d < 16; d++)
		shape[d] = weft_dim(m, info, d)->value < 0 ? 3 : weft_dim(m, info, d)->value;
	return new_tensor(info, shape);
}

static void fill(WeftTensor *t, int64_t from)
{
	for (int64_t i = 0; i < numel(t); i++) {
		if (t->dtype.code == WEFT_FLOAT && t->dtype.bits == 32)
			((float *)t->data)[i] = (float)((from + i) % 7) / 4;
		if (t->dtype.code == WEFT_INT && t->dtype.bits == 64)
			((int64_t *)t->data)[i] = (from + i) % 2;
	}
}

static void print_values(const char *what, const WeftTensor *t)
{
	printf("%s:", what);
	for (int64_t i = 0; i < numel(t) && t->dtype.code == WEFT_FLOAT && t->dtype.bits == 32; i++)
		printf(" %.4g", (double)((float *)t->data)[i]);
	for (int64_t i = 0; i < numel(t) && t->dtype.code == WEFT_INT && t->dtype.bits == 64; i++)
		printf(" %lld", (long long)((int64_t *)t->data)[i]);
	putchar('\n');
}

static void drop(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		free(t[k].data);
		free(t[k].shape);
	}
	free(t);
}

static void call(WeftInstance *in, uint32_t entry, int64_t from)
{
	const WeftEntry *e = weft_entry(m, entry);
	WeftTensor *x = need(e->ninput * sizeof *x), *y = need(e->noutput * sizeof *y);
	for (uint32_t k = 0; k < e->ninput; k++)
		fill((x[k] = constant_shape(weft_input(m, e, k)), &x[k]), from + k);
	WeftSizes *sizes = need(e->sizes_bytes);
	must(m->sizes(in, entry, x, sizes, &status), "sizes");
	for (uint32_t k = 0; k < e->noutput; k++)
		y[k] = new_tensor(weft_output(m, e, k), weft_output_shape(m, e, sizes, k));
	void *work = need(sizes->workspace_bytes);
	WeftContext *c = at_the_edge(sizeof *c);
	memset(c, 0, sizeof *c);
	c->size = sizeof *c;
	c->nthreads = 2;
#ifdef LATER
	c->later = -1;
#endif
	must(m->run(in, sizes, x, y, work, c, &status), "run");
	for (uint32_t k = 0; k < e->noutput; k++)
		print_values(weft_output(m, e, k)->name, &y[k]);
	drop(x, e->ninput);
	drop(y, e->noutput);
	free(work);
	free(sizes);
}

static void print_state(WeftInstance *in, const char *when)
{
	for (uint32_t k = 0; k < m->nstate; k++) {
		WeftTensor t = constant_shape(weft_state_info(m, k));
		must(m->state_get(in, k, &t, &status), "state_get");
		printf("%s ", when);
		print_values(weft_state_info(m, k)->name, &t);
		free(t.data);
		free(t.shape);
	}
}

static void print_first(WeftInstance *in)
{
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *info = weft_state_info(m, k);
		WeftTensor t = constant_shape(info);
		must(m->get_weights(in, 1, &info->name, &t, NULL, &status), "get_weights");
		printf("first ");
		print_values(info->name, &t);
		free(t.data);
		free(t.shape);
	}
}

static void set_state(WeftInstance *in)
{
	for (uint32_t k = 0; k < m->nstate; k++) {
		WeftTensor t = constant_shape(weft_state_info(m, k));
		fill(&t, 3);
		must(m->state_set(in, k, &t, &status), "state_set");
		free(t.data);
		free(t.shape);
	}
}

/* All parameters by name, as a state dict. */
static void set_weights(WeftInstance *in)
{
	const char **name = need(m->nsource * sizeof *name);
	WeftTensor *value = need(m->nsource * sizeof *value);
	uint32_t n = 0;
	for (uint32_t k = 0; k < m->nsource; k++) {
		const WeftParamInfo *p = weft_source(m, k);
		const WeftTensorInfo info = {.dtype = p->dtype, .rank = p->rank};
		if (!*p->name)
			continue;
		name[n] = p->name;
		fill((value[n] = new_tensor(&info, p->dim), &value[n]), k);
		n++;
	}
	must(m->set_weights(in, n, name, value, NULL, &status), "set_weights");
	drop(value, n);
	free(name);
}

static void use(void)
{
	WeftInstance *in, *copy;
	WeftOpen *o = at_the_edge(sizeof *o);
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
#ifdef LATER
	o->later = -1;
#endif
	must(m->open(m, o, &in, &status), "open");
	for (int round = 0; round < 2; round++)
		for (uint32_t k = 0; k < m->nentry; k++)
			call(in, k, round);
	print_state(in, "after");
	must(m->clone(in, &copy, &status), "clone");
	must(m->state_reset(in, &status), "state_reset");
	print_state(in, "reset");
	set_state(in);
	print_state(in, "set");
	print_first(in);
	if (m->replaceable) {
		set_weights(in);
		for (uint32_t k = 0; k < m->nentry; k++)
			call(in, k, 0);
	}
	m->close(in);
	print_state(copy, "clone");
	for (uint32_t k = 0; k < m->nentry; k++)
		call(copy, k, 5);
	m->close(copy);
}

int main(int argc, char **argv)
{
	const WeftModel *(*get)(void);
	void *so = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!so)
		return fprintf(stderr, "usage: abi_call MODEL.so %s\n", argc == 2 ? dlerror() : ""),
		       2;
	*(void **)&get = dlsym(so, "weft_model");
	m = get ? get() : NULL;
	if (weft_model_check(m))
		return fprintf(stderr, "%s\n", weft_model_check(m)), 1;
	printf("%s for %s, state of %llu bytes\n", m->manifest->name, m->manifest->target,
	       (unsigned long long)m->state_bytes);
	for (uint32_t k = 0; k < m->nentry; k++)
		print_entry(weft_entry(m, k));
	for (uint32_t k = 0; k < m->nparam; k++)
		print_param(weft_param(m, k));
	for (uint32_t k = 0; k < m->nstate; k++)
		print_tensor("state", weft_state_info(m, k));
	use();
	dlclose(so);
	return 0;
}
