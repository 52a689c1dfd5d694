/* Folders of ONNX's test data. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/onnx/model.h"
#include "frontend/onnx/onnx.h"

enum { MAX_FILES = 256 };

/* "x.3" of "input_3.pb"; NULL: another file. */
static const char *key_of(Ctx *ctx, const char *file)
{
	static const char *const kind[2] = {"input_", "output_"};
	for (int k = 0; k < 2; k++) {
		size_t n = strlen(kind[k]);
		if (strncmp(file, kind[k], n) != 0)
			continue;
		size_t digits = strspn(file + n, "0123456789");
		if (digits && digits < 6 && !strcmp(file + n + digits, ".pb"))
			return arena_printf(ctx->arena, "%c.%.*s", k ? 'y' : 'x', (int)digits, file + n);
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return name_compare(((const NamedTensor *)a)->name, ((const NamedTensor *)b)->name);
}

static bool read_file(Ctx *ctx, const char *folder, const char *file, const char *key, StFile *f)
{
	FileMap map;
	const char *path = arena_printf(ctx->arena, "%s/%s", folder, file), *before = ctx->file;
	if (f->n == MAX_FILES)
		return ctx_error(ctx, folder, "more than %d files of tensors", MAX_FILES);
	f->tensor[f->n].name = key;
	TRY(file_map(ctx, path, &map));
	ctx->file = path;
	bool ok = onnx_tensor_read(ctx, map.data, map.size, &f->tensor[f->n++].tensor);
	ctx->file = before;
	return ok;
}

bool onnx_open_data(Ctx *ctx, const char *folder, StFile *f)
{
	*f = (StFile){.tensor = ARENA_ARRAY(ctx->arena, NamedTensor, MAX_FILES)};
	DIR *dir = opendir(folder);
	bool ok = true;
	if (!dir)
		return ctx_error(ctx, folder, "cannot be opened");
	for (struct dirent *e; ok && (e = readdir(dir));) {
		const char *key = key_of(ctx, e->d_name);
		ok = !key || read_file(ctx, folder, e->d_name, key, f);
	}
	closedir(dir);
	if (f->n)
		qsort(f->tensor, f->n, sizeof *f->tensor, by_name);
	return ok;
}
