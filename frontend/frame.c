/* Lines of Python in stack traces. */
#include "frontend/frame.h"

#include <string.h>

#include "frontend/files/file.h"

/* Whether a path is one of PyTorch's own files: ".../site-packages/torch/nn/modules/linear.py".
 * The folder "torch" alone does not tell: a user may have one of that name. */
static bool is_torch_file(const char *path, size_t n)
{
	static const char *const inside[] = {"nn/",           "_",           "fx/",       "ao/",
					     "utils/",        "export/",     "autograd/", "jit/",
					     "functional.py", "distributed/"};
	for (const char *p = path; (p = strstr(p, "torch/")) && p < path + n; p++) {
		if (p > path && p[-1] != '/')
			continue;
		for (size_t k = 0; k < sizeof inside / sizeof *inside; k++)
			if (!strncmp(p + 6, inside[k], strlen(inside[k])))
				return true;
	}
	return false;
}

const char *frame_of_trace(Ctx *ctx, const char *trace)
{
	const char *user = NULL, *any = NULL, *next = trace;
	while (next && (next = strstr(next, "File \""))) {
		next += strlen("File \"");
		size_t n = strcspn(next, "\"\n");
		any = next;
		if (!is_torch_file(next, n))
			user = next;
	}
	const char *file = user ? user : any, *end = file ? strchr(file, '"') : NULL;
	if (!end)
		return NULL;
	const char *path = arena_strndup(ctx->scratch, file, (size_t)(end - file));
	const char *line = strstr(end, "line ");
	size_t n = line ? strspn(line + 5, "0123456789") : 0;
	if (!n)
		return file_base(path);
	return arena_printf(ctx->scratch, "%s:%.*s", file_base(path), (int)n, line + 5);
}
