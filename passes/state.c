/* State that a call leaves as it is, is not written.
 *
 *   graph @main(%x: f32[8], %s: f32[8] buffer #1 "sum", %rng: u64[2] buffer #2 "weft.rng") {
 *     %y = add(%x, %s)
 *     %step = full(value=..., shape=[2], dtype=u64)
 *     %next = add(%rng, %step)
 *     return %y, %s -> "sum", %next -> "weft.rng"
 *   }
 * becomes
 *   graph @main(%x: f32[8], %s: f32[8] buffer #1 "sum") {
 *     %y = add(%x, %s)
 *     return %y
 *   }
 *
 * Calls of a model that writes state exclude each other; those of one that only reads it do not. The
 * state of random numbers goes when nothing draws.
 * Other state stays in the model's table, where it was: the functions of state set it as before.
 * Each change removes an output, so this ends. */
#include "ir/graph/state.h"
#include "passes/pass.h"
#include "passes/random.h"

bool pass_state(Graph *g, PassCtx *c)
{
	(void)c;
	bool changed = graph_keep_unchanged(g);
	return random_release(g) || changed;
}
