/* weft show --backends */
#include "tool.h"

bool load_backends(Weft *w, const StringList *library)
{
	for (uint32_t k = 0; k < library->n; k++)
		if (!weft_backend_load(w, library->item[k]))
			return false;
	return true;
}

static void print_all(const WeftBackendInfo *b, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		printf("%-18s %-9s  %s\n", b[k].name, b[k].available ? "here" : "not here",
		       b[k].about);
}

static void write_all(const WeftBackendInfo *b, uint32_t n)
{
	Json j = {.f = stdout};
	json_open(&j, NULL, '{');
	json_open(&j, "backends", '[');
	for (uint32_t k = 0; k < n; k++) {
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", b[k].name);
		json_put_string(&j, "about", b[k].about);
		json_put_bool(&j, "available", b[k].available);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

int show_backends(const StringList *libraries, bool json)
{
	uint32_t n;
	Weft *w = weft_new();
	const WeftBackendInfo *b = w && load_backends(w, libraries) ? weft_backends(w, &n) : NULL;
	if (!b)
		fail_messages(w);
	else
		(json ? write_all : print_all)(b, n);
	weft_free(w);
	return b ? 0 : 1;
}
