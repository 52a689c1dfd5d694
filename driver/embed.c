#include "driver/embed.h"

#include <string.h>

const EmbeddedFile *runtime_object_for(const char *triple)
{
	if (!triple)
		return runtime_object; /* this machine's is the first */
	for (const EmbeddedFile *f = runtime_object; f->name; f++) {
		size_t n = strlen("runtime-"), k = strlen(triple);
		if (!strncmp(f->name + n, triple, k) && !strcmp(f->name + n + k, ".o"))
			return f;
	}
	return NULL;
}

const char *runtime_object_missing(Arena *a, const char *triple)
{
	size_t n = strcspn(triple, "-");
	const char *arch = arena_strndup(a, triple, n);
	return arena_printf(a,
			    "this weft was built without the runtime for %s: install gcc-%s and "
			    "libc6-dev-%s-cross, and build weft again",
			    triple, !strcmp(arch, "x86_64") ? "x86-64-linux-gnu" : triple,
			    !strcmp(arch, "aarch64")  ? "arm64"
			    : !strcmp(arch, "x86_64") ? "amd64"
						      : arch);
}
