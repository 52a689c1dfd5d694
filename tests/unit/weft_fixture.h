/* A Weft, and a folder for files, of tests that share one static set. */
#ifndef WEFT_TESTS_UNIT_WEFT_FIXTURE_H
#define WEFT_TESTS_UNIT_WEFT_FIXTURE_H

#include <stdio.h>

#include "weft_trace.h"

static char dir[] = "/tmp/weft-XXXXXX";
static Weft *w;

static int make_weft(void **state)
{
	(void)state;
	w = weft_new();
	return w ? 0 : -1;
}

static int free_weft(void **state)
{
	(void)state;
	weft_free(w);
	return 0;
}

/* Returns the path of a file in the folder; valid until the fourth call after this one. */
static const char *path(const char *name)
{
	static char text[4][128];
	static unsigned next;
	char *out = text[next++ % 4];
	snprintf(out, sizeof text[0], "%s/%s", dir, name);
	return out;
}

#endif
