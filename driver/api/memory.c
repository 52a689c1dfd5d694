/* Memory of others that graphs refer to, until the Weft is freed. */
#include "driver/api/given.h"

#include <stdlib.h>

struct Held {
	WeftMemory memory;
	struct Held *next;
};

static void release(const WeftMemory *m)
{
	if (m->release)
		m->release(m->user, m->data);
}

void release_held(Weft *w)
{
	for (struct Held *h = w->held, *next; h; h = next) {
		next = h->next;
		release(&h->memory);
		free(h);
	}
	w->held = NULL;
}

typedef struct {
	Weft *w;
	const WeftMemory *memory;
	struct Held *held; /* NULL: no memory for it */
} Holding;

static bool hold(void *arg)
{
	const Holding *x = arg;
	TRY(given(x->w, "weft_hold", "the memory", x->memory));
	if (!x->held)
		ctx_out_of_memory(x->w->ctx);
	TRY(given(x->w, "weft_hold", "the data", x->memory->data));
	return x->memory->bytes || ctx_error(x->w->ctx, "weft_hold", "the memory is empty");
}

/* Takes memory, outside of the boundary: the memory is released whatever happens there. */
bool weft_hold(Weft *w, const WeftMemory *memory)
{
	Holding x = {.w = w, .memory = memory, .held = w && memory ? malloc(sizeof *x.held) : NULL};
	if (x.held) {
		*x.held = (struct Held){*memory, w->held};
		w->held = x.held;
	} else if (memory) {
		release(memory);
	}
	return boundary(w, hold, &x);
}
