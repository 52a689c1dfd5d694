/* Other weights for an instance: what is stored is computed and rearranged anew, aside. Only models
 * that have state or replaceable weights carry this. */
#include "instance_priv.h"
#include "relayout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What a thread takes at once: a part of a parameter, which stays in a cache on its way. */
enum { PART = 1 << 20 };

typedef struct {
	const WeftModel *m, *code; /* code: whose entries compute; NULL: nothing is */
	WeftInstance *coder;
	const WeftContext *context; /* of the call */
	const char *from; /* the section in use */
	char *to;
	const WeftTensor **value; /* by source; NULL: as it was */
	bool *touched;            /* by group: its sources have values */
	uint64_t most;            /* bytes of the results of one of these */
	_Atomic uint32_t group;   /* that nobody has taken */
	_Atomic uint64_t next;    /* part nobody has taken, of all parameters that no group
	                             computes */
	_Atomic int failed;
	WeftStatus why; /* of the first that failed */
} Build;

/* ---- what can be set ---- */

/* Returns the number of parameters that values are given for. A model that was made by hand need
 * not say: all its parameters. */
static uint32_t source_count(const WeftModel *m)
{
	return m->recipes ? m->nsource : m->nparam;
}

static const WeftParamInfo *source_at(const WeftModel *m, uint32_t k)
{
	return m->recipes ? &m->source[k] : &m->param[k];
}

static WeftFrom from_of(const WeftModel *m, uint32_t param)
{
	return m->recipes ? m->recipes->from[param] : (WeftFrom){(int32_t)param, -1, -1};
}

static uint32_t group_count(const WeftModel *m)
{
	return m->recipes ? m->recipes->ngroup : 0;
}

/* One parameter under two names, as a state dict has it: its values are equal. */
SMALL static int again(const WeftParamInfo *p, const char *name, const WeftTensor *value,
		       const char *before, const WeftTensor *was, WeftStatus *status)
{
	uint64_t bytes = dtype_bytes(p->dtype);
	for (uint32_t d = 0; d < p->rank; d++)
		bytes *= (uint64_t)p->dim[d];
	if (!strcmp(name, before))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "weight %s is given twice", name);
	if (bytes && memcmp(data_of(was), data_of(value), bytes) != 0)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "weights %s and %s are one parameter, and have different values",
				 before, name);
	return WEFT_OK;
}

/* By source its new value. Names that the model does not have are passed over where the caller says
 * so. */
SMALL static int match(Build *b, uint32_t n, const char *const *names, const WeftTensor *values,
		       bool pass_over, WeftStatus *status)
{
	for (uint32_t i = 0; i < n; i++) {
		bool found = pass_over;
		if (!names[i])
			return weft_fail(status, WEFT_ERR_ARGUMENT,
					 "set_weights: name %u is a null pointer", (unsigned)i);
		for (uint32_t k = 0; k < source_count(b->m); k++) {
			const WeftParamInfo *p = source_at(b->m, k);
			if (!is_called(p->name, p->aliases, names[i]))
				continue;
			found = true;
			TRY(check_tensor(&(Expected){"weight", names[i], p->dtype, p->rank, p->dim},
					 &values[i], status));
			if (b->value[k])
				TRY(again(p, names[i], &values[i], names[b->value[k] - values],
					  b->value[k], status));
			b->value[k] = &values[i];
		}
		for (uint32_t k = 0; !found && k < b->m->nstate; k++)
			if (is_called(b->m->state[k].name, b->m->state[k].aliases, names[i]))
				return weft_fail(status, WEFT_ERR_ARGUMENT,
						 "%s is state, which set_weights does not change: "
						 "call state_set",
						 names[i]);
		if (!found)
			return weft_fail(status, WEFT_ERR_ARGUMENT, "the model has no weight %s",
					 names[i]);
	}
	return WEFT_OK;
}

static bool has_value(const Build *b, int32_t source)
{
	return source >= 0 && b->value[source];
}

/* The sources that a group lacks, as far as there is room. */
SMALL static int partners_missing(const Build *b, const WeftGroup *g, const char *name,
				  WeftStatus *status)
{
	char list[300] = "";
	size_t n = 0;
	for (uint32_t i = 0; i < g->ninput; i++) {
		if (has_value(b, g->source[i]) || g->stored[i] >= 0)
			continue;
		const char *missing = source_at(b->m, (uint32_t)g->source[i])->name;
		if (n + strlen(missing) + 6 > sizeof list) {
			memcpy(list + n, ", ...", sizeof ", ...");
			break;
		}
		n += (size_t)sprintf(list + n, "%s%s", n ? ", " : "", missing);
	}
	return weft_fail(status, WEFT_ERR_ARGUMENT,
			 "weight %.100s: set it together with %s: what the model stores is "
			 "computed from all of them",
			 name, list);
}

/* Groups compute from what the caller gives, and from what is stored: of large weights only what
 * was computed from them is. */
SMALL static int touch_groups(Build *b, WeftStatus *status)
{
	for (uint32_t k = 0; k < group_count(b->m); k++) {
		const WeftGroup *g = &b->m->recipes->group[k];
		const char *named = NULL;
		bool all = true;
		for (uint32_t i = 0; i < g->ninput; i++) {
			if (has_value(b, g->source[i]) && !named)
				named = source_at(b->m, (uint32_t)g->source[i])->name;
			all &= has_value(b, g->source[i]) || g->stored[i] >= 0;
		}
		if (named && !all)
			return partners_missing(b, g, named, status);
		b->touched[k] = named;
	}
	return WEFT_OK;
}

/* ---- rearranging ---- */

/* Packs bytes begin to begin + n - 1 of the place of a parameter, from all of its contents,
 * row-major. */
static void pack_bytes(const WeftParamInfo *p, const void *from, uint64_t begin, uint64_t n,
		       char *to)
{
	const size_t elem = dtype_bytes(p->dtype);
	const WeftPacking q = weft_packing(from, elem, p->rank, p->dim, p->nlayout, p->layout);
	const uint64_t first = begin / elem, most = q.count > first ? q.count - first : 0,
		       take = n / elem;
	weft_pack_part(&q, first, take < most ? take : most, to);
}

/* Returns the number of parts of a parameter; 0 where a group computes it. */
static uint64_t parts_of(const Build *b, uint32_t param)
{
	const int32_t group = from_of(b->m, param).group;
	return group >= 0 && b->touched[group] ? 0 : (b->m->param[param].bytes + PART - 1) / PART;
}

static void build_part(const Build *b, uint32_t k, uint64_t part)
{
	const WeftParamInfo *p = &b->m->param[k];
	const int32_t source = from_of(b->m, k).source;
	const WeftTensor *v = source >= 0 ? b->value[source] : NULL;
	uint64_t begin = part * PART, n = p->bytes - begin < PART ? p->bytes - begin : PART;
	char *to = b->to + p->offset + begin;
	if (v)
		pack_bytes(p, data_of(v), begin, n, to);
	else
		memcpy(to, b->from + p->offset + begin, (size_t)n);
	if (begin + n == p->bytes)
		memset(to + n, 0, (size_t)(-p->bytes % 64)); /* up to the next one */
}

/* ---- computing ---- */

/* A thread's, for one group after the other: its pages are new once only. */
typedef struct {
	char *at;
	uint64_t bytes;
} Memory;

static char *memory_of(Memory *m, uint64_t bytes, uint64_t most)
{
	if (bytes > m->bytes) {
		free(m->at);
		m->bytes = bytes > most ? bytes : most;
		m->at = section_alloc(m->bytes);
		m->bytes = m->at ? m->bytes : 0;
	}
	return m->at;
}

static WeftTensor tensor_of(const WeftTensorInfo *t, void *data, int64_t *shape)
{
	for (uint32_t d = 0; d < t->rank; d++)
		shape[d] = t->dim[d].value;
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = (int32_t)t->rank,
			    .dtype = t->dtype,
			    .shape = shape};
}

/* Returns the bytes of room for a result: more than 0, so that none is without a place of its
 * own. */
static uint64_t room_of(const WeftTensorInfo *t)
{
	uint64_t bytes = dtype_bytes(t->dtype);
	for (uint32_t d = 0; d < t->rank; d++)
		bytes *= (uint64_t)t->dim[d].value;
	return bytes / 64 * 64 + 64;
}

static uint64_t result_bytes(const WeftEntry *e)
{
	uint64_t bytes = 64;
	for (uint32_t i = 0; i < e->noutput; i++)
		bytes += room_of(&e->output[i]);
	return bytes;
}

/* Where what the group computes is stored. */
SMALL static void store(const Build *b, uint32_t group, const WeftTensor *y)
{
	for (uint32_t k = 0; k < b->m->nparam; k++) {
		const WeftFrom from = from_of(b->m, k);
		const WeftParamInfo *p = &b->m->param[k];
		if (from.group != (int32_t)group)
			continue;
		pack_bytes(p, y[from.output].data, 0, p->bytes, b->to + p->offset);
		memset(b->to + p->offset + p->bytes, 0, (size_t)(-p->bytes % 64));
	}
}

/* x, y, sizes and the shapes have room. */
SMALL static int compute(Build *b, uint32_t group, WeftTensor *x, WeftTensor *y, int64_t *shape,
			 WeftSizes *sizes, Memory *memory, WeftStatus *status)
{
	const WeftGroup *g = &b->m->recipes->group[group];
	const WeftEntry *e = b->code->entry[g->entry];
	WeftContext alone = {.size = sizeof alone,
			     .nthreads = 1,
			     .user = b->context->user,
			     .device = b->context->device,
			     .stream = b->context->stream,
			     .comm = b->context->comm};
#ifdef WEFT_DEVICES
	alone.device.type = 0; /* of a model on a device, too, weights are computed from memory of
	                          the host */
	alone.stream = NULL;
#endif
	uint64_t bytes = result_bytes(e);
	for (uint32_t i = 0; i < e->ninput; shape += e->input[i++].rank) {
		const WeftTensor *v = has_value(b, g->source[i]) ? b->value[g->source[i]] : NULL;
		const void *data = v ? data_of(v) : b->from + b->m->param[g->stored[i]].offset;
		x[i] = tensor_of(&e->input[i], (void *)(uintptr_t)data, shape);
	}
	sizes->entry = g->entry;
	TRY(b->code->sizes(b->coder, g->entry, x, sizes, status));
	char *at = memory_of(memory, bytes + sizes->workspace_bytes, b->most);
	if (!at)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	for (uint32_t i = 0; i < e->noutput; shape += e->output[i++].rank) {
		y[i] = tensor_of(&e->output[i], at, shape);
		at += room_of(&e->output[i]);
	}
	TRY(b->code->run(b->coder, sizes, x, y, at, &alone, status));
	store(b, group, y);
	return WEFT_OK;
}

SMALL static int build_group(Build *b, uint32_t group, Memory *memory, WeftStatus *status)
{
	const WeftEntry *e = b->code->entry[b->m->recipes->group[group].entry];
	uint64_t ntensor = (uint64_t)e->ninput + e->noutput, nshape = 1;
	for (uint32_t i = 0; i < e->ninput; i++)
		nshape += e->input[i].rank;
	for (uint32_t i = 0; i < e->noutput; i++)
		nshape += e->output[i].rank;
	WeftTensor *x = calloc(ntensor, sizeof *x);
	int64_t *shape = calloc(nshape, sizeof *shape);
	WeftSizes *sizes = malloc((size_t)e->sizes_bytes);
	int code = x && shape && sizes
			   ? compute(b, group, x, x + e->ninput, shape, sizes, memory, status)
			   : weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	free(x);
	free(shape);
	free(sizes);
	return code;
}

SMALL static void build_groups(Build *b)
{
	Memory memory = {0};
	WeftStatus status;
	for (uint32_t k; (k = atomic_fetch_add(&b->group, 1)) < group_count(b->m) &&
			 !atomic_load(&b->failed);) {
		int none = 0;
		if (b->touched[k] && build_group(b, k, &memory, &status) != WEFT_OK &&
		    atomic_compare_exchange_strong(&b->failed, &none, 1))
			b->why = status;
	}
	free(memory.at);
}

/* ---- all ---- */

/* Builds what is left to be built: the first task does all of it unless others help. */
static int build_all(const WeftFrame *f, int64_t begin, int64_t end)
{
	Build *b = f->buf[0];
	uint64_t before = 0; /* parts of the parameters before k */
	(void)begin, (void)end;
	build_groups(b); /* they take longest */
	for (uint32_t k = 0; k < b->m->nparam;) {
		uint64_t part = atomic_fetch_add(&b->next, 1);
		for (; k < b->m->nparam && part - before >= parts_of(b, k); k++)
			before += parts_of(b, k);
		if (k < b->m->nparam)
			build_part(b, k, part - before);
	}
	return 0;
}

/* Makes one task for each thread. */
static void build_tasks(WeftRegion *r, void *build)
{
	const Launch l = {.kernel = build_all, .buf = (void *const[]){build}};
	region_launch(r, l, r->n, WORTH_IT, true);
}

/* Releases constants. Large memory that no clone uses is kept for the next ones, since new pages
 * take longer than what is written to them; until then the system may have them. */
static void drop_constants(WeftInstance *in, void *constants)
{
	Constants *old = constants;
#ifdef MADV_FREE
	enum { LARGE = 8 << 20 };
	const uint64_t bytes = in->model->weights_bytes;
	if (old->built && bytes >= LARGE && atomic_load(&old->instances) == 1 &&
	    madvise(old->built, (size_t)bytes, MADV_FREE) == 0) {
		free(atomic_exchange(&in->spare, old->built));
		old->built = NULL;
	}
#endif
	constants_release(old);
}

/* Runs go on with the old ones. */
SMALL static int build(WeftInstance *in, Build *b, const WeftContext *ctx, WeftStatus *status)
{
	const WeftThreads *t;
	Constants *c = calloc(1, sizeof *c);
	char *section = c ? atomic_exchange(&in->spare, NULL) : NULL;
	section = c && !section ? section_alloc(b->m->weights_bytes) : section;
	if (!c || !section) {
		free(c);
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	}
	*c = (Constants){.instances = 1, .weights = section, .built = section};
	b->from = ((const Constants *)current_now(&in->weights))->weights;
	b->to = section;
	for (uint32_t k = 0; k < b->m->nstate; k++)
		if (b->m->state[k].init != WEFT_ZEROS)
			memcpy(section + b->m->state[k].init, b->from + b->m->state[k].init,
			       (size_t)b->m->state[k].bytes);
	int32_t n = threads_wanted(in, ctx, &t);
	WeftRegion r = {.share_all = true};
	region_with_threads(&r, t, n, build_tasks, b);
	int code = b->failed ? weft_fail(status, b->why.code, "%s", b->why.message) : WEFT_OK;
#ifdef WEFT_DEVICES
	code = code == WEFT_OK ? constants_load(in, c, status) : code;
#endif
	code = code == WEFT_OK ? current_replace(in, &in->weights, c, drop_constants, status)
			       : code;
	if (code == WEFT_OK)
		return code;
	constants_release(c);
	return code;
}

/* The code that computes is a model of its own. */
SMALL static int open_code(Build *b, WeftStatus *status)
{
	const WeftRecipes *p = b->m->recipes;
	bool any = false;
	for (uint32_t k = 0; k < group_count(b->m); k++)
		any |= b->touched[k];
	if (!any)
		return WEFT_OK;
	b->code = p->model ? p->model : p->get();
	for (uint32_t k = 0; k < group_count(b->m); k++) {
		uint64_t bytes =
			b->touched[k] ? result_bytes(b->code->entry[p->group[k].entry]) : 0;
		b->most = bytes > b->most ? bytes : b->most;
	}
	return b->code->open(b->code, NULL, &b->coder, status);
}

/* value and touched have room. */
SMALL static int set_weights(WeftInstance *in, Build *b, uint32_t n, const char *const *names,
			     const WeftTensor *values, const WeftContext *ctx, WeftStatus *status)
{
	TRY(match(b, n, names, values, ctx->flags & WEFT_IGNORE_UNKNOWN, status));
	TRY(touch_groups(b, status));
	if (atomic_exchange(&in->calls->replaces_weights, 1))
		return weft_fail(status, WEFT_ERR_BUSY, "another call replaces the weights");
	int code = open_code(b, status);
	code = code == WEFT_OK ? build(in, b, ctx, status) : code;
	if (b->coder)
		b->code->close(b->coder);
	atomic_store(&in->calls->replaces_weights, 0);
	return code;
}

SMALL int weft_rt_set_weights(WeftInstance *in, uint32_t n, const char *const *names,
			      const WeftTensor *values, const WeftContext *given,
			      WeftStatus *status)
{
	WeftContext ctx;
	status_clear(status);
	if (!in || (n && (!names || !values)))
		return weft_fail(status, WEFT_ERR_ARGUMENT, "set_weights: no %s given",
				 !in     ? "instance"
				 : names ? "values"
					 : "names");
	TRY(take_context(&ctx, given, "set_weights", status));
	if (!in->model->replaceable)
		return weft_rt_no_weights(in, n, names, values, given, status);
	Build b = {.m = in->model,
		   .context = &ctx,
		   .value = calloc(source_count(in->model) + 1, sizeof *b.value),
		   .touched = calloc(group_count(in->model) + 1, sizeof *b.touched)};
	int code = b.value && b.touched
			   ? set_weights(in, &b, n, names, values, &ctx, status)
			   : weft_fail(status, WEFT_ERR_MEMORY, "no memory for other weights");
	free(b.value);
	free(b.touched);
	return code;
}
