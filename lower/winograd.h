/* Private to lowering: the transforms of Winograd's convolutions
 * (ir/target/winograd_matrices.h). */
#ifndef WEFT_LOWER_WINOGRAD_H
#define WEFT_LOWER_WINOGRAD_H

#include "lower/trace.h"

/* Adds the steps of OP_winograd_input: one kernel, whose points are the tiles of each channel. */
void lower_winograd_input(Lower *, Node);
/* Does as lower_build_kernel, for a root in whose kernel `met` has found a node of role
 * LOWER_TILES: the kernel's points are the tiles, and each stores all elements of its tile. */
MUST_LOOK bool lower_build_tiles(Lower *, const Trace *met, Kernel **out, StoredFirst *first);

#endif
