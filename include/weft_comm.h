/* Providers of communication (WeftComm of weft_model.h) between ranks of one machine: threads of
 * one process, or processes that share memory. Part of libweft.
 *
 *     WeftRank *rank[2];
 *     weft_ranks_threads(2, 60, rank, &status);
 *     ... in thread k: context.comm = weft_rank_comm(rank[k]); model->run(..., &context, ...)
 *     weft_rank_close(rank[k]);
 *
 * In a process of several, `weft_rank_open("/job7", k, 2, 60, &status)`. A call that waits for a
 * rank longer than the time-out fails, and so does one if a rank has ended or has called `abort`;
 * all ranks then report one sentence, and every later call fails with it, too. */
#ifndef WEFT_COMM_API_H
#define WEFT_COMM_API_H

#include <stdbool.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank. */
typedef struct WeftRank WeftRank;

/* Makes the ranks 0 to ranks - 1 for threads of this process, in rank[ranks], each closed by
 * weft_rank_close. timeout: seconds, above 0. 1 <= ranks <= 1024. Returns WEFT_OK, or an error code
 * with a sentence in *status (which may be NULL), after which there are none. */
int weft_ranks_threads(int32_t ranks, double timeout, WeftRank **rank, WeftStatus *status);
/* Joins the job of that name ("/" and letters, as of shm_open) as one of its ranks, which are
 * processes of one machine, and waits until all have joined, or for the time-out. The name is in
 * use until then, and no longer. Returns NULL after an error: with a sentence in *status (which may
 * be NULL). */
WeftRank *weft_rank_open(const char *name, int32_t rank, int32_t ranks, double timeout,
			 WeftStatus *status);
/* Returns the provider, for WeftContext.comm of one call of `run` at a time; valid until
 * weft_rank_close. */
const WeftComm *weft_rank_comm(const WeftRank *);
/* Leaves the job; NULL: does nothing. Other ranks that wait for this one fail. */
void weft_rank_close(WeftRank *);

#ifdef __cplusplus
}
#endif
#endif
