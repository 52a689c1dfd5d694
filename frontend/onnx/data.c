/* Folders of ONNX's test data. A file says not what it holds: the type of the model's input or
 * output does. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/files/file.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/priv.h"

enum { MAX_FILES = 256, MAX_TENSORS = 4096 };

/* What the backend tests of ONNX allow of floats: rtol, atol, units in the last place. */
static const char tolerance[] = "1e-3 1e-7 0", tolerance_bf16[] = "0x1p-6 1e-7 0";

typedef struct {
	Ctx *ctx;
	const char *folder;
	ARRAY(const OnnxType *) type[2]; /* of inputs without an initializer; of outputs: empty
	                                    without a model beside the folder */
	StFile *f;
	bool lists;
} Data;

/* ---- types ---- */

/* Reads the model beside the folder of data. */
static bool read_model(Data *d)
{
	FileMap map;
	const char *path = arena_printf(d->ctx->arena, "%s/../model.onnx", d->folder),
		   *before = d->ctx->file;
	if (access(path, R_OK))
		return true;
	TRY(file_map(d->ctx, path, &map));
	d->ctx->file = path;
	OnnxModel *m = onnx_model_read(d->ctx, map.data, map.size);
	d->ctx->file = before;
	TRY(m);
	Intern inits;
	intern_init(&inits, d->ctx->scratch);
	onnx_init_names(m->graph, &inits);
	for (uint32_t k = 0; k < m->graph->in.n; k++) {
		const OnnxInfo *in = &m->graph->in.data[k];
		if (!in->name || !intern_find(&inits, in->name, strlen(in->name)))
			array_push(d->ctx->arena, &d->type[0], in->type);
	}
	for (uint32_t k = 0; k < m->graph->out.n; k++)
		array_push(d->ctx->arena, &d->type[1], m->graph->out.data[k].type);
	return true;
}

/* ---- values ---- */

static bool add_tensor(Data *d, const char *key, const OnnxTensor *t)
{
	StFile *f = d->f;
	if (f->n == MAX_TENSORS)
		return ctx_error(d->ctx, d->folder, "more than %d tensors", MAX_TENSORS);
	f->tensor[f->n].name = key;
	return onnx_tensor(d->ctx, t, NULL, "the tensor", &f->tensor[f->n++].tensor);
}

/* Adds what a file holds: a sequence's tensors are KEY.0, KEY.1, ..., an optional's value is
 * KEY, or is not there. */
static bool add_held(Data *d, const char *key, const OnnxType *type, const OnnxHeld *h)
{
	d->lists = true;
	if (type->optional && type->optional->elem && type->optional->elem->sequence)
		return !h->sequence.n ||
		       add_held(d, key, type->optional->elem, &h->sequence.data[0]);
	if (h->sequence.n || h->optional.n)
		return ctx_error(d->ctx, NULL,
				 "a sequence of other values than tensors is not supported");
	if (type->optional)
		return !h->tensor.n || add_tensor(d, key, &h->tensor.data[0]);
	for (uint32_t k = 0; k < h->tensor.n; k++)
		TRY(add_tensor(d, arena_printf(d->ctx->arena, "%s.%u", key, k),
			       &h->tensor.data[k]));
	return true;
}

static bool read_value(Data *d, const char *key, const OnnxType *type, const FileMap *map)
{
	OnnxHeld held = {0};
	OnnxTensor t = {0};
	if (type && (type->sequence || type->optional))
		return onnx_held_read(d->ctx, map->data, map->size, &held) &&
		       add_held(d, key, type, &held);
	return onnx_tensor_read(d->ctx, map->data, map->size, &t) && add_tensor(d, key, &t);
}

/* Reads a file: input_3.pb is x.3; files of other names are skipped. */
static bool read_file(Data *d, const char *file)
{
	static const char *const kind[2] = {"input_", "output_"};
	Ctx *ctx = d->ctx;
	FileMap map;
	int k = strncmp(file, kind[1], strlen(kind[1])) == 0;
	size_t n = strlen(kind[k]),
	       digits = strncmp(file, kind[k], n) ? 0 : strspn(file + n, "0123456789");
	if (!digits || digits > 5 || strcmp(file + n + digits, ".pb") != 0)
		return true;
	const char *path = arena_printf(ctx->arena, "%s/%s", d->folder, file), *before = ctx->file;
	const char *key = arena_printf(ctx->arena, "%c.%.*s", k ? 'y' : 'x', (int)digits, file + n);
	TRY(file_map(ctx, path, &map));
	ctx->file = path;
	uint32_t number = (uint32_t)strtoul(file + n, NULL, 10);
	bool ok = read_value(d, key, number < d->type[k].n ? d->type[k].data[number] : NULL, &map);
	ctx->file = before;
	return ok;
}

static int by_name(const void *a, const void *b)
{
	return name_compare(((const NamedTensor *)a)->name, ((const NamedTensor *)b)->name);
}

/* Adds what is allowed of each float output, and whether there are lists. */
static void add_meta(Data *d)
{
	StFile *f = d->f;
	uint32_t output = 0;
	f->meta = ARENA_ARRAY(d->ctx->arena, StMeta, f->n + 1);
	for (uint32_t k = 0; k < f->n; k++) {
		if (*f->tensor[k].name != 'y')
			continue;
		DType type = f->tensor[k].tensor.dtype;
		if (dtype_is_float(type))
			f->meta[f->nmeta++] =
				(StMeta){arena_printf(d->ctx->arena, "allow.%u", output),
					 type == DT_bf16 ? tolerance_bf16 : tolerance};
		output++;
	}
	if (d->lists)
		f->meta[f->nmeta++] = (StMeta){"lists", "yes"};
}

bool onnx_open_data(Ctx *ctx, const char *folder, StFile *f)
{
	Data d = {.ctx = ctx, .folder = folder, .f = f};
	*f = (StFile){.tensor = ARENA_ARRAY(ctx->arena, NamedTensor, MAX_TENSORS)};
	TRY(read_model(&d));
	DIR *dir = opendir(folder);
	bool ok = true;
	uint32_t files = 0;
	if (!dir)
		return ctx_error(ctx, folder, "cannot be opened");
	for (struct dirent *e; ok && (e = readdir(dir));) {
		ok = read_file(&d, e->d_name);
		if (++files > MAX_FILES)
			ok = ctx_error(ctx, folder, "more than %d files", MAX_FILES);
	}
	closedir(dir);
	if (f->n)
		qsort(f->tensor, f->n, sizeof *f->tensor, by_name);
	add_meta(&d);
	return ok;
}
