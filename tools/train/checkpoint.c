#include "tools/train/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>

#include "weft_checkpoint.h"

static const char key[] = "weft.train", key_of_settings[] = "weft.options";

enum { PLACE = 400 };

static void place_text(const Place *p, char out[PLACE])
{
	snprintf(out, PLACE,
		 "version=1 seed=%" PRIu64 " data=%" PRIu64 " rows=%" PRId64 " batch=%" PRId64
		 " epoch=%" PRId64 " done=%" PRId64 " step=%" PRId64 " parts=%" PRId64
		 " epochs=%" PRId64 " loss=%.17g seen=%" PRId64 " lost=%" PRId64
		 " skipped=%" PRId64,
		 p->seed, p->data, p->rows, p->batch, p->epoch, p->done, p->step, p->parts,
		 p->epochs, p->loss, p->seen, p->lost, p->skipped);
}

static bool read_place(const char *text, Place *p)
{
	return sscanf(text,
		      "version=1 seed=%" SCNu64 " data=%" SCNu64 " rows=%" SCNd64 " batch=%" SCNd64
		      " epoch=%" SCNd64 " done=%" SCNd64 " step=%" SCNd64 " parts=%" SCNd64
		      " epochs=%" SCNd64 " loss=%lf seen=%" SCNd64 " lost=%" SCNd64
		      " skipped=%" SCNd64,
		      &p->seed, &p->data, &p->rows, &p->batch, &p->epoch, &p->done, &p->step,
		      &p->parts, &p->epochs, &p->loss, &p->seen, &p->lost, &p->skipped) == 13;
}

bool checkpoint_save(const Runner *r, const char *path, const Place *place, const char *settings)
{
	char text[PLACE];
	const char *const meta[] = {key, text, key_of_settings, settings, NULL};
	WeftStatus status;
	place_text(place, text);
	return !weft_checkpoint_save(r->model, r->instance, path, meta, &status) ||
	       (fail("%s", status.message), false);
}

bool checkpoint_place(const char *path, Place *place)
{
	char text[PLACE];
	WeftStatus status;
	const int code = weft_checkpoint_meta(path, key, text, sizeof text, &status);
	if (code && code != WEFT_ERR_ARGUMENT)
		return fail("%s", status.message), false;
	return (!code && read_place(text, place)) ||
	       (fail("%s: no checkpoint of weft train; to begin with weights of another file, use "
		     "--weights-from",
		     path),
		false);
}

bool checkpoint_load(const Runner *r, const char *path, Place *place)
{
	WeftStatus status;
	return checkpoint_place(path, place) &&
	       (!weft_checkpoint_load(r->model, r->instance, path, &status) ||
		(fail("%s", status.message), false));
}

char *checkpoint_settings(const char *path)
{
	enum { ROOM = 1 << 20 };
	char *out = malloc(ROOM);
	WeftStatus status;
	if (!out)
		return fail("out of memory"), NULL;
	const int code = weft_checkpoint_meta(path, key_of_settings, out, ROOM, &status);
	if (code == WEFT_ERR_ARGUMENT) /* none of weft train: what reads the place says so */
		*out = 0;
	else if (code) {
		free(out);
		return fail("%s", status.message), NULL;
	}
	return out;
}
