/* Graphs of the stand-in for the CUDA driver: nodes that follow each other, and streams that are
 * captured. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/* Nodes that follow each other. The parameters are laid out as in cuda.h. */
typedef struct Graph Graph;
typedef struct {
	Graph *of;
	Op op;
} Node;
struct Graph {
	Node **node;
	size_t n;
};
static uint64_t graphs[3]; /* made, launched, changed nodes */

EXPORT void standin_graphs(uint64_t out[3]);
void standin_graphs(uint64_t out[3])
{
	memcpy(out, graphs, sizeof graphs);
}

typedef struct {
	void *function;
	unsigned grid[3], block[3], shared;
	void **args, **extra;
} KernelNode;
typedef struct {
	Address to;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
} FillNode;
typedef struct {
	struct {
		size_t x, y, z, lod;
		int memory;
		void *host;
		Address device;
		void *array, *reserved;
		size_t pitch, height;
	} from, to;
	size_t width, height, depth;
} CopyNode;

static int kernel_op(const KernelNode *p, Op *op)
{
	const size_t bytes = p->extra && p->extra[3] ? *(const size_t *)p->extra[3] : 0;
	if (!p->grid[0] || p->grid[1] != 1 || p->grid[2] != 1 || !p->block[0] ||
	    p->block[0] > 1024 || p->block[1] != 1 || p->block[2] != 1 || p->shared || p->args ||
	    !bytes || bytes % 8 || bytes / 8 > ARGUMENTS || p->extra[0] != (void *)1 ||
	    p->extra[2] != (void *)2 || p->extra[4])
		return INVALID_VALUE;
	if (!launchable(p->function))
		return NOT_SUPPORTED;
	*op = (Op){.kind = LAUNCH,
		   .to = (uintptr_t)p->function,
		   .bytes = p->grid[0],
		   .value = (int64_t)(bytes / 8),
		   .arg = malloc(bytes)};
	memcpy(op->arg, p->extra[1], bytes);
	return OK;
}

static int fill_op(const FillNode *p, const void *context, Op *op)
{
	*op = (Op){.kind = FILL, .to = p->to, .value = p->value, .bytes = p->width};
	return p->element == 1 && p->height == 1 && context == &self && real_of(p->to, p->width)
		       ? OK
		       : INVALID_VALUE;
}

static int copy_op(const CopyNode *p, const void *context, Op *op)
{
	*op = (Op){.kind = COPY, .to = p->to.device, .from = p->from.device, .bytes = p->width};
	return p->to.memory == 2 && p->from.memory == 2 && p->height == 1 && p->depth == 1 &&
			       context == &self && real_of(p->to.device, p->width) &&
			       real_of(p->from.device, p->width)
		       ? OK
		       : INVALID_VALUE;
}

/* Behind the node that was added last, and no other. */
static int add(Node **out, Graph *g, Node *const *after, size_t n, int rc, Op op)
{
	if (rc != OK || n != (g->n > 0) || (n && after[0] != g->node[g->n - 1]))
		return free(op.arg), rc != OK ? rc : INVALID_VALUE;
	g->node = realloc(g->node, (g->n + 1) * sizeof *g->node);
	g->node[g->n++] = *out = malloc(sizeof(Node));
	**out = (Node){g, op};
	return state();
}

/* A graph that was made has copies of the nodes. */
static int set(Graph *exec, const Node *node, int rc, Op op)
{
	size_t k = 0;
	while (rc == OK && k < node->of->n && node->of->node[k] != node)
		k++;
	if (rc != OK || k == exec->n || exec->node[k]->op.kind != op.kind ||
	    (op.kind == LAUNCH && exec->node[k]->op.to != op.to))
		return free(op.arg), rc != OK ? rc : INVALID_VALUE;
	free(exec->node[k]->op.arg);
	exec->node[k]->op = op;
	graphs[2]++;
	return state();
}

EXPORT int cuGraphCreate(Graph **out, unsigned flags)
{
	*out = calloc(1, sizeof **out);
	self.events++;
	return flags ? INVALID_VALUE : state();
}

EXPORT int cuGraphDestroy(Graph *g)
{
	for (size_t k = 0; k < g->n; k++)
		free(g->node[k]->op.arg), free(g->node[k]);
	free(g->node);
	free(g);
	self.events--;
	return OK;
}

EXPORT int cuGraphExecDestroy(Graph *g)
{
	return cuGraphDestroy(g);
}

EXPORT int cuGraphInstantiateWithFlags(Graph **out, const Graph *g, unsigned long long flags)
{
	int rc = cuGraphCreate(out, 0);
	Node *last = NULL;
	for (size_t k = 0; k < g->n && rc == OK; k++) {
		Op op = g->node[k]->op;
		const size_t bytes = op.arg ? (size_t)op.value * 8 : 0;
		op.arg = bytes ? memcpy(malloc(bytes), op.arg, bytes) : NULL;
		rc = add(&last, *out, &last, k > 0, OK, op);
	}
	graphs[0]++;
	return flags ? INVALID_VALUE : rc;
}

EXPORT int cuGraphAddKernelNode(Node **out, Graph *g, Node *const *after, size_t n,
				const KernelNode *p)
{
	Op op = {0};
	int rc = kernel_op(p, &op);
	return add(out, g, after, n, rc, op);
}

EXPORT int cuGraphAddMemsetNode(Node **out, Graph *g, Node *const *after, size_t n,
				const FillNode *p, const void *context)
{
	Op op = {0};
	int rc = fill_op(p, context, &op);
	return add(out, g, after, n, rc, op);
}

EXPORT int cuGraphAddMemcpyNode(Node **out, Graph *g, Node *const *after, size_t n,
				const CopyNode *p, const void *context)
{
	Op op = {0};
	int rc = copy_op(p, context, &op);
	return add(out, g, after, n, rc, op);
}

EXPORT int cuGraphExecKernelNodeSetParams(Graph *exec, const Node *node, const KernelNode *p)
{
	Op op = {0};
	int rc = kernel_op(p, &op);
	return set(exec, node, rc, op);
}

EXPORT int cuGraphExecMemsetNodeSetParams(Graph *exec, const Node *node, const FillNode *p,
					  const void *context)
{
	Op op = {0};
	int rc = fill_op(p, context, &op);
	return set(exec, node, rc, op);
}

EXPORT int cuGraphExecMemcpyNodeSetParams(Graph *exec, const Node *node, const CopyNode *p,
					  const void *context)
{
	Op op = {0};
	int rc = copy_op(p, context, &op);
	return set(exec, node, rc, op);
}

/* Of a captured graph with one node. */
EXPORT int cuGraphAddChildGraphNode(Node **out, Graph *g, Node *const *after, size_t n,
				    const Graph *child)
{
	if (child->n != 1)
		return INVALID_VALUE;
	Op op = child->node[0]->op;
	op.arg = memcpy(malloc((size_t)op.value * 8), op.arg, (size_t)op.value * 8);
	return add(out, g, after, n, OK, op);
}

EXPORT int cuStreamCreate(void **out, unsigned flags)
{
	*out = malloc(1);
	self.events++;
	return flags == 1 ? state() : INVALID_VALUE;
}

EXPORT int cuStreamDestroy_v2(void *stream)
{
	drain(stream, 0);
	free(stream);
	self.events--;
	return OK;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
	if (mode != 1 || captured_stream || !stream)
		return INVALID_VALUE;
	captured_stream = stream;
	return state();
}

EXPORT int cuStreamIsCapturing(void *stream, int *is)
{
	*is = stream && stream == captured_stream;
	return state();
}

EXPORT int cuStreamEndCapture(void *stream, Graph **out)
{
	Node *node;
	Op *op = capture_op;
	if (stream != captured_stream)
		return INVALID_VALUE;
	captured_stream = capture_op = NULL;
	int rc = cuGraphCreate(out, 0);
	if (rc == OK && op)
		rc = add(&node, *out, NULL, 0, OK, *op);
	free(op);
	return rc;
}

/* For the stand-in for cuBLASLt: fn(arg) is work of the stream; arg has n values. */
EXPORT int standin_call(int (*fn)(int64_t *), const int64_t *arg, size_t n, void *stream);
int standin_call(int (*fn)(int64_t *), const int64_t *arg, size_t n, void *stream)
{
	self.stream = stream;
	return give((Op){.kind = CALL,
			 .stream = stream,
			 .from = (uintptr_t)fn,
			 .value = (int64_t)n,
			 .arg = memcpy(malloc(n * 8), arg, n * 8)});
}

/* The real address of bytes of one block; NULL: there are none. */
EXPORT void *standin_real(Address p, uint64_t bytes);
void *standin_real(Address p, uint64_t bytes)
{
	return real_of(p, bytes);
}

EXPORT int cuGraphLaunch(const Graph *exec, void *stream)
{
	int rc = state();
	graphs[1]++;
	self.stream = stream;
	for (size_t k = 0; k < exec->n && rc == OK; k++) {
		Op op = exec->node[k]->op;
		const size_t bytes = op.arg ? (size_t)op.value * 8 : 0;
		op.stream = stream;
		op.arg = bytes ? memcpy(malloc(bytes), op.arg, bytes) : NULL;
		rc = give(op);
	}
	return rc;
}
