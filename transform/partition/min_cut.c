/* Dinic's algorithm: flow is sent along shortest paths, all of one length in a phase, until no path
 * is left. What can still send to the sink then is its side of the cut.
 *
 * The networks of partition.c have a source or a sink beside nearly every vertex, so paths and
 * phases are few; without recursion, since a path may be as long as a model is deep. */
#include "transform/partition/min_cut.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"

static const uint32_t END = UINT32_MAX;

/* Edge 2k is edge k, 2k + 1 the way back, whose room is the flow. */
typedef struct {
	uint32_t to, next; /* next: of the same vertex, or END */
	int64_t room;
} Edge;

struct Network {
	Arena *arena;
	uint32_t nvertex;
	uint32_t *first; /* edge by vertex */
	ARRAY(Edge) edge;
	ARRAY(int64_t) capacity; /* by number */
	/* Of a cut. */
	uint32_t *away; /* by vertex: edges to the sink; 0: there is no way */
	uint32_t *at;   /* the edge that is tried next */
	uint32_t *list; /* vertices to visit, or edges of a path */
};

Network *network_new(Arena *a, uint32_t nvertex)
{
	Network *w = ARENA_NEW(a, Network);
	*w = (Network){.arena = a,
		       .nvertex = nvertex,
		       .first = ARENA_ARRAY(a, uint32_t, nvertex),
		       .away = ARENA_ARRAY(a, uint32_t, nvertex),
		       .at = ARENA_ARRAY(a, uint32_t, nvertex),
		       .list = ARENA_ARRAY(a, uint32_t, nvertex)};
	memset(w->first, 0xff, nvertex * sizeof *w->first);
	return w;
}

static void add(Network *w, uint32_t from, uint32_t to)
{
	array_push(w->arena, &w->edge, (Edge){.to = to, .next = w->first[from]});
	w->first[from] = w->edge.n - 1;
}

void network_edge(Network *w, uint32_t from, uint32_t to, int64_t capacity)
{
	assert(from < w->nvertex && to < w->nvertex && capacity >= 0);
	add(w, from, to);
	add(w, to, from);
	array_push(w->arena, &w->capacity, capacity);
}

void network_set_capacity(Network *w, uint32_t k, int64_t capacity)
{
	w->capacity.data[k] = capacity;
}

/* Measures how far each vertex is from the sink, by edges that have room. Returns the source's
 * distance, 0 where there is no way. */
static uint32_t measure(Network *w, uint32_t source, uint32_t sink)
{
	uint32_t n = 0;
	memset(w->away, 0, w->nvertex * sizeof *w->away);
	w->away[sink] = 1;
	w->list[n++] = sink;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t v = w->list[k], e = w->first[v]; e != END; e = w->edge.data[e].next) {
			uint32_t from = w->edge.data[e].to;
			if (w->away[from] || !w->edge.data[e ^ 1].room)
				continue;
			w->away[from] = w->away[v] + 1;
			w->list[n++] = from;
		}
	return w->away[source];
}

/* Sends along the path of n edges what has room on all of them. Returns how many edges, from the
 * source, have room afterwards. */
static uint32_t send(Network *w, uint32_t n)
{
	int64_t room = INT64_MAX;
	uint32_t kept = n;
	for (uint32_t k = 0; k < n; k++)
		if (w->edge.data[w->list[k]].room < room)
			room = w->edge.data[w->list[k]].room;
	for (uint32_t k = n; k-- > 0;) {
		uint32_t e = w->list[k];
		w->edge.data[e].room -= room;
		w->edge.data[e ^ 1].room += room;
		if (!w->edge.data[e].room)
			kept = k;
	}
	return kept;
}

/* Returns the next edge of v that has room and is one nearer to the sink; END if there is none. */
static uint32_t forward(Network *w, uint32_t v)
{
	for (; w->at[v] != END; w->at[v] = w->edge.data[w->at[v]].next) {
		const Edge *e = &w->edge.data[w->at[v]];
		if (e->room && w->away[e->to] + 1 == w->away[v] && w->away[e->to])
			return w->at[v];
	}
	return END;
}

/* Sends what it can along all shortest paths. */
static void fill(Network *w, uint32_t source, uint32_t sink)
{
	uint32_t n = 0, v = source;
	memcpy(w->at, w->first, w->nvertex * sizeof *w->at);
	for (;;) {
		uint32_t e = v == sink ? END : forward(w, v);
		if (e != END) {
			w->list[n++] = e;
			v = w->edge.data[e].to;
			continue;
		}
		if (v == sink) {
			n = send(w, n);
		} else { /* no further from here in this phase */
			if (!n)
				return;
			w->away[v] = 0;
			n--;
		}
		v = w->edge.data[w->list[n] ^ 1].to;
	}
}

void network_cut(Network *w, uint32_t source, uint32_t sink, bool *below)
{
	assert(source != sink);
	for (uint32_t k = 0; k < w->capacity.n; k++) {
		w->edge.data[2 * k].room = w->capacity.data[k];
		w->edge.data[2 * k + 1].room = 0;
	}
	while (measure(w, source, sink))
		fill(w, source, sink);
	for (uint32_t v = 0; v < w->nvertex; v++)
		below[v] = w->away[v] != 0;
}
