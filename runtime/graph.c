/* Graphs of the driver: what a call gives its stream, kept by the sizes of the call and given again
 * as a whole. Empty in runtimes for processors.
 *
 * The first call with a stream, an entry and sizes is executed as always. The second one is
 * recorded, and begun as a graph. Later ones with the same addresses begin the graph without
 * executing `run`; with other addresses `run` is executed, and changes the arguments of the graph.
 * That `run` does the same each time is known if it reads no values of tensors: where it does, and
 * where memory is made on the way, recording ends, and calls of these sizes have no graph. */
#include "instance_priv.h"

#ifdef WEFT_DEVICES
#include <pthread.h>

enum { KEPT = 8, SHORT = 3 /* launches; a graph of less saves nothing */ };

typedef struct CachedGraph {
	const WeftEntry *entry; /* NULL: unused */
	void *stream;
	int64_t *slot; /* of sizes, then the addresses of the last call */
	void **buf;
	void *graph;     /* NULL: not recorded yet */
	bool busy, none; /* a call uses it; calls of these sizes have no graph */
	bool recorded;   /* a kernel of it may write the record */
	uint64_t used;
} CachedGraph;

typedef struct Graphs {
	pthread_mutex_t lock;
	uint64_t time;
	CachedGraph kept[KEPT];
} Graphs;

void graphs_open(WeftInstance *in)
{
	in->graphs = in->driver && in->driver->graph_new ? calloc(1, sizeof *in->graphs) : NULL;
	if (in->graphs)
		pthread_mutex_init(&in->graphs->lock, NULL);
}

static void forget(const WeftDriver *v, CachedGraph *c)
{
	if (c->graph)
		v->graph_free(v->self, c->graph);
	free(c->slot);
	*c = (CachedGraph){0};
}

void graphs_close(WeftInstance *in)
{
	if (!in->graphs)
		return;
	for (uint32_t k = 0; k < KEPT; k++)
		forget(in->driver, &in->graphs->kept[k]);
	pthread_mutex_destroy(&in->graphs->lock);
	free(in->graphs);
	in->graphs = NULL;
}

static uint32_t buffers(const WeftEntry *e)
{
	return e->ninput + e->noutput + 3;
}

static bool is_of(const CachedGraph *c, const WeftEntry *e, const void *stream, const int64_t *slot)
{
	return c->entry == e && c->stream == stream &&
	       !memcmp(c->slot, slot, e->nslot * sizeof *slot);
}

/* Returns the graph for these sizes, or a new one in place of the one that was used longest ago;
 * NULL if all are in use, or there is no memory. */
static CachedGraph *take(Graphs *all, const WeftDriver *v, const WeftEntry *e, void *stream,
			 const int64_t *slot, bool *found)
{
	CachedGraph *oldest = NULL;
	for (CachedGraph *c = all->kept; c < all->kept + KEPT; c++) {
		if (c->entry && is_of(c, e, stream, slot))
			return *found = true, c->busy ? NULL : c;
		if (!c->busy && (!oldest || c->used < oldest->used))
			oldest = c;
	}
	*found = false;
	if (!oldest)
		return NULL;
	forget(v, oldest);
	int64_t *copy = malloc((e->nslot + buffers(e)) * sizeof *copy);
	if (!copy)
		return NULL;
	*oldest = (CachedGraph){.entry = e,
				.stream = stream,
				.slot = memcpy(copy, slot, e->nslot * sizeof *copy),
				.buf = (void **)(copy + e->nslot)};
	return oldest;
}

bool device_play(WeftRegion *r)
{
	DeviceCall *d = r->device;
	const WeftDriver *v = d->driver;
	const WeftEntry *e = r->entry;
	bool found;
	if (!d->graphs || d->nstaged || e->nroom || e->flags & WEFT_ENTRY_DATA_SIZES ||
	    e->ncall < SHORT)
		return false;
	pthread_mutex_lock(&d->graphs->lock);
	CachedGraph *c = take(d->graphs, v, e, d->stream, r->slot, &found);
	const bool use = c && found && !c->none;
	if (c)
		c->used = ++d->graphs->time;
	if (use)
		c->busy = true;
	pthread_mutex_unlock(&d->graphs->lock);
	if (!use)
		return false;
	d->cached = c;
	const bool same = c->graph && !memcmp(c->buf, r->buf, buffers(e) * sizeof *c->buf);
	if (same && v->graph_play(v->self, c->graph, d->stream)) {
		d->recorded = c->recorded;
		return true;
	}
	if (same)
		c->none = true;
	else if (c->graph)
		v->graph_again(c->graph);
	else
		c->graph = v->graph_new(v->self);
	memcpy(c->buf, r->buf, buffers(e) * sizeof *c->buf);
	d->graph = same ? NULL : c->graph;
	return false;
}

void device_direct(DeviceCall *d)
{
	void *graph = d->graph;
	if (!graph)
		return;
	d->graph = NULL;
	d->cached->none = true;
	d->driver->graph_flush(d->driver->self, graph, d->stream);
}

void graph_end(DeviceCall *d, bool failed)
{
	CachedGraph *c = d->cached;
	if (!c)
		return;
	if (d->graph && (failed || !d->driver->graph_play(d->driver->self, d->graph, d->stream)))
		device_direct(d);
	if (d->graph)
		c->recorded = d->recorded;
	d->graph = NULL;
	d->cached = NULL;
	pthread_mutex_lock(&d->graphs->lock);
	c->busy = false;
	pthread_mutex_unlock(&d->graphs->lock);
}
#endif
