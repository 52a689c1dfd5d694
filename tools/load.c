/* Loading a model file the way the command line says. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

bool load_args_given(const LoadArgs *a)
{
	return a && (a->ignore_guard.n || a->output_names || a->ops.n);
}

/* Split a copy of "a,b" in place; the number of items. */
static uint32_t split(char *list, const char **item)
{
	uint32_t n = 0;
	for (char *p = list;; p++) {
		item[n++] = p;
		p += strcspn(p, ",");
		if (!*p)
			return n;
		*p = 0;
	}
}

WeftGraph *load_model(Weft *w, const char *path, const LoadArgs *a)
{
	WeftLoadOptions o = {.size = sizeof o};
	if (!load_args_given(a))
		return weft_load(w, path);
	for (uint32_t k = 0; k < a->ops.n; k++)
		if (!weft_op_load(w, a->ops.item[k]))
			return NULL;
	size_t length = a->output_names ? strlen(a->output_names) : 0;
	char *text = malloc(length + 1);
	const char **item = malloc((length + 1) * sizeof *item);
	WeftGraph *g = NULL;
	if (text && item) {
		o.nignore_guard = a->ignore_guard.n;
		o.ignore_guard = a->ignore_guard.item;
		if (a->output_names) {
			memcpy(text, a->output_names, length + 1);
			o.output_name = item;
			o.noutput_name = split(text, item);
		}
		g = weft_load_with(w, path, &o);
	}
	free(item);
	free(text);
	return g;
}

void link_with_ops(WeftOptions *o, const LoadArgs *a)
{
	if (o->nlink || !a)
		return;
	o->nlink = a->ops.n;
	o->link = a->ops.item;
}
