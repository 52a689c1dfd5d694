#include "driver/targets/embed.h"

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

/* Whose runtime the build makes where it finds the compiler, and Debian's packages for that. */
static const struct {
	const char *triple, *compiler, *libc;
} crosses[] = {
	{"x86_64-linux-gnu", "gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"},
	{"aarch64-linux-gnu", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"},
	{"riscv64-linux-gnu", "gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"},
};

const char *runtime_object_missing(Arena *a, const char *triple)
{
	for (size_t k = 0; k < sizeof crosses / sizeof *crosses; k++)
		if (!strcmp(crosses[k].triple, triple))
			return arena_printf(a,
					    "this weft was built without the runtime for %s: "
					    "install %s and %s, "
					    "and build weft again",
					    triple, crosses[k].compiler, crosses[k].libc);
	return arena_printf(a,
			    "no runtime for %s, only for x86_64-linux-gnu, aarch64-linux-gnu and "
			    "riscv64-linux-gnu: use --backend c and a C compiler for it",
			    triple);
}
