/* transform_text MODE... < GRAPH > RESULT: the text of a graph after transforms, vjp, jvp and vmap
 * (a batch of 3 of all inputs), one after the other; on the other stream the processor time of each
 * in seconds. For scripts/scaling.py and tests/system/chains.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

static char *read_all(FILE *f)
{
	size_t n = 0, room = 1 << 16;
	char *text = malloc(room);
	while (text) {
		n += fread(text + n, 1, room - n - 1, f);
		if (n + 1 < room)
			break;
		char *more = realloc(text, room *= 2);
		if (!more)
			free(text);
		text = more;
	}
	if (text)
		text[n] = 0;
	return text;
}

static WeftGraph *transformed(Weft *w, const WeftGraph *g, const char *mode)
{
	if (!strcmp(mode, "vjp"))
		return weft_vjp(w, g, NULL);
	if (!strcmp(mode, "jvp"))
		return weft_jvp(w, g, NULL);
	return weft_vmap(w, g, &(WeftVmapOptions){.size = sizeof(WeftVmapOptions), .extent = 3});
}

int main(int argc, char **argv)
{
	char *text = read_all(stdin);
	Weft *w = weft_new();
	WeftGraph *g = text && w ? weft_parse(w, text, "graph") : NULL;
	for (int k = 1; k < argc && g; k++) {
		clock_t before = clock();
		g = transformed(w, g, argv[k]);
		fprintf(stderr, "%s %.3f\n", argv[k], (double)(clock() - before) / CLOCKS_PER_SEC);
	}
	const char *result = g ? weft_graph_text(w, g, NULL) : NULL;
	if (result)
		fputs(result, stdout);
	else if (w)
		fputs(weft_messages(w), stderr);
	weft_free(w);
	free(text);
	return !result;
}
