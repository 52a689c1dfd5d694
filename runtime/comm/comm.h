/* Collectives: functions of operators (weft_op.h) that the compiler defines itself
 * (ops/user/comm.c). They move bytes between ranks by WeftContext.comm; sums are kernels of the
 * model. All ranks make the same calls in the same order.
 *
 * The operands behind x:
 *
 *   ranks   the number of ranks for which the model was compiled
 *   group   the bytes of the group's name, one integer each; none: all ranks
 *   more    see the function
 *
 * x and the result have one dtype. work: WEFT_COMM_WORK bytes for each rank. A call fails
 * (WEFT_ERR_COMM) at once if the provider has no such group or another number of
 * ranks, and on every rank if ranks disagree on what is sent. One rank needs no provider. */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H

#include "weft_model.h"

#define WEFT_COMM_WORK 128

#define WEFT_COMM_FUNCTION(name)                                                                   \
	int name(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,        \
		 void *work, uint64_t work_bytes, WeftStatus *status)

/* x [n] -> [ranks, n]: row r is rank r's x. */
WEFT_COMM_FUNCTION(weft_comm_all_gather);
/* x [m], give [ranks], take [ranks] -> [sum of take]: the elements of x, give[r] of them for rank
 * r; what came from the ranks, take[r] elements of rank r. */
WEFT_COMM_FUNCTION(weft_comm_all_to_all);
/* x [n], source -> [n]: rank source's x. */
WEFT_COMM_FUNCTION(weft_comm_broadcast);
/* x [n] -> [n]: the other rank's x, of two ranks. */
WEFT_COMM_FUNCTION(weft_comm_swap);
/* x [n], target -> [ranks, n]: on rank target as all_gather, on others zeros. */
WEFT_COMM_FUNCTION(weft_comm_gather);

#endif
