/* Which nodes a kernel evaluates: for reports. */
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"

static void add_all(Arena *arena, Kernel *k, const Kernel *from)
{
	for (uint32_t i = 0; i < from->evaluates.n; i++)
		array_push(arena, &k->evaluates, from->evaluates.data[i]);
}

void kernel_join_evaluated(Kernel *k, const Kernel *a, const Kernel *b, Arena *arena)
{
	k->evaluates.data = NULL;
	k->evaluates.n = k->evaluates.cap = 0;
	add_all(arena, k, a);
	add_all(arena, k, b);
}

typedef struct {
	uint32_t place;
	Node node;
} Placed;

static int by_place(const void *pa, const void *pb)
{
	const Placed *a = pa, *b = pb;
	return (a->place > b->place) - (a->place < b->place);
}

const Node *kernel_evaluated(const Kernel *k, const uint32_t *place, Arena *arena, uint32_t *n)
{
	const uint32_t most = k->computes.n + k->evaluates.n;
	Placed *all = ARENA_ARRAY(arena, Placed, most);
	Node *out = ARENA_ARRAY(arena, Node, most);
	for (uint32_t i = 0; i < most; i++) {
		const Node x = i < k->computes.n ? k->computes.data[i]
						 : k->evaluates.data[i - k->computes.n];
		all[i] = (Placed){place[x.i], x};
	}
	*n = 0;
	if (most)
		qsort(all, most, sizeof *all, by_place);
	for (uint32_t i = 0; i < most; i++)
		if (!i || all[i].place != all[i - 1].place)
			out[(*n)++] = all[i].node;
	return out;
}
