/* Two back ends outside of Weft: `listing` prints a program as one text, `parts` writes a folder
 * with a file for each kernel, the functions that kernels call, and the weights. Built with the
 * headers alone:
 *
 *     cc -shared -fPIC -I include examples/backend/listing.c -o liblisting.so
 *     weft compile model.pt2 --backend-library ./liblisting.so --backend listing -o model.listing
 */
#include <stdio.h>
#include <string.h>

#include "weft_backend.h"

/* file NULL: the output is one file. */
static bool add(WeftBackendOutput *out, const char *file, const char *text)
{
	return out->add(out, file, text, strlen(text));
}

static bool functions(const WeftBackendProgram *p, WeftBackendOutput *out, const char *file)
{
	for (uint32_t k = 0; k < p->ntable; k++) {
		char head[300];
		const WeftBackendTable *t = &p->table[k];
		snprintf(head, sizeof head, "table %s: %u elements of %u bits\n", t->name,
			 (unsigned)t->n, (unsigned)t->dtype.bits);
		if (!add(out, file, head))
			return false;
	}
	for (uint32_t k = 0; k < p->nfunction; k++)
		if (!add(out, file, p->function[k].text))
			return false;
	return true;
}

/* How `run` uses the kernels. */
static bool entries(const WeftBackendProgram *p, WeftBackendOutput *out, const char *file)
{
	for (uint32_t k = 0; k < p->nentry; k++) {
		const WeftEntry *e = weft_entry(p->model, k);
		char line[600];
		snprintf(line, sizeof line, "entry %s: %u inputs, %u outputs\n", e->name,
			 (unsigned)e->ninput, (unsigned)e->noutput);
		if (!add(out, file, line))
			return false;
		for (uint32_t c = 0; c < e->ncall; c++) {
			snprintf(line, sizeof line, "call %u: %s\n", (unsigned)c,
				 p->kernel[p->entry[k].kernel[c]].name);
			if (!add(out, file, line))
				return false;
		}
		if (!add(out, file, p->entry[k].sizes.text) ||
		    !add(out, file, p->entry[k].run.text))
			return false;
	}
	return true;
}

static int listing(void *user, const WeftBackendProgram *p, WeftBackendOutput *out)
{
	(void)user;
	bool ok = entries(p, out, NULL) && functions(p, out, NULL);
	for (uint32_t k = 0; ok && k < p->nkernel; k++)
		ok = add(out, NULL, p->kernel[k].text);
	return !ok;
}

/* `user` tells the two apart: the most kernels, 0 for any number. */
static int parts(void *user, const WeftBackendProgram *p, WeftBackendOutput *out)
{
	const uint32_t *most = user;
	if (*most && p->nkernel > *most)
		return weft_backend_fail(out, "%s has %u kernels, expected at most %u", p->name,
					 (unsigned)p->nkernel, (unsigned)*most);
	bool ok = entries(p, out, "entries.txt") && functions(p, out, "functions.txt");
	for (uint32_t k = 0; ok && k < p->nkernel; k++) {
		char name[300];
		snprintf(name, sizeof name, "%.280s.loop", p->kernel[k].name);
		ok = add(out, name, p->kernel[k].text);
	}
	return !(ok && out->add(out, "weights.bin", p->model->weights, p->model->weights_bytes));
}

static const char *scalar_only(void *user, const WeftTargetInfo *t)
{
	(void)user;
	return t->vector_bytes ? "has vectors: expected a target with one lane, generic-c" : NULL;
}

const WeftBackendLibrary *weft_backends_of(void);
const WeftBackendLibrary *weft_backends_of(void)
{
	static const uint32_t any = 0, two = 2;
	static const WeftBackendDef one_text = {.size = sizeof one_text,
						.name = "listing",
						.about = "the program as one text",
						.emit = listing};
	static const WeftBackendDef folder = {.size = sizeof folder,
					      .folder = true,
					      .name = "parts",
					      .about = "a folder with a file for each kernel",
					      .user = (void *)(uintptr_t)&any,
					      .refuses = scalar_only,
					      .emit = parts};
	static const WeftBackendDef small = {.size = sizeof small,
					     .folder = true,
					     .name = "two-parts",
					     .user = (void *)(uintptr_t)&two,
					     .emit = parts};
	static const WeftBackendDef *const list[] = {&one_text, &folder, &small, NULL};
	static const WeftBackendLibrary library = {WEFT_BACKEND_VERSION, list};
	return &library;
}
