#include "frontend/files/checkpoint.h"

#include <string.h>

#include "frontend/files/json.h"
#include "frontend/files/npy.h"
#include "frontend/files/out_file.h"

typedef struct {
	Ctx *ctx;
	Checkpoint *out;
} CheckpointReader;

static bool add(CheckpointReader *r, SavedWeight w)
{
	bool fresh;
	const uint32_t id = intern(&r->out->names, w.name, strlen(w.name), &fresh);
	if (!fresh)
		return ctx_error(r->ctx, w.path, "weight %s is in %s, too", w.name,
				 r->out->weight.data[id - 1].path);
	array_push(r->ctx->arena, &r->out->weight, w);
	return true;
}

static bool add_gguf(CheckpointReader *r, const char *path)
{
	GgufFile f;
	TRY(gguf_open(r->ctx, path, &f));
	if (!r->out->gguf.tensor)
		r->out->gguf = f;
	for (uint32_t k = 0; k < f.n; k++)
		TRY(add(r, (SavedWeight){f.tensor[k].name, path, f.tensor[k].tensor,
					 f.tensor[k].blocks ? &f.tensor[k] : NULL}));
	return true;
}

static bool add_tensors(CheckpointReader *r, const char *path)
{
	StFile f = {0};
	out_spare(r->ctx, path);
	TRY(text_ends(path, ".npz") ? npz_open(r->ctx, path, &f) : st_open(r->ctx, path, &f));
	r->out->trained |= st_meta(&f, CHECKPOINT_META) != NULL;
	for (uint32_t k = 0; k < f.n; k++)
		TRY(add(r, (SavedWeight){f.tensor[k].name, path, f.tensor[k].tensor, NULL}));
	return true;
}

/* Adds the files that an index names: {"weight_map": {NAME: FILE}}, beside the index. */
static bool add_index(CheckpointReader *r, const char *path)
{
	FileMap file;
	Intern seen;
	const char *key;
	json_t *v;
	Ctx *ctx = r->ctx;
	TRY(file_map_full(ctx, path, &file));
	JsonDoc *doc = json_read(ctx, file.data, file.size, JSON_REJECT_DUPLICATES);
	json_t *map = json_object_get(doc->root, "weight_map");
	if (!json_is_object(map))
		return ctx_error(ctx, path, "no index of weights: expected \"weight_map\"") ||
		       ctx_kind(ctx, REFUSAL_FILE);
	intern_init(&seen, ctx->arena);
	json_object_foreach(map, key, v)
	{
		const char *part = json_string_value(v);
		bool fresh;
		if (!part || strchr(part, '/'))
			return ctx_error(ctx, path, "weight %s: expected the name of a file beside "
						    "the index", key);
		intern(&seen, part, strlen(part), &fresh);
		if (fresh)
			TRY(add_tensors(r, arena_printf(ctx->arena, "%.*s%s",
							(int)(file_base(path) - path), path,
							part)));
	}
	return true;
}

/* Whether the bytes begin as pickled files of PyTorch do. A safetensors file begins with any. */
static bool is_pickled(const FileMap *file)
{
	return !is_safetensors(file->data, file->size) && file->size >= 2 &&
	       (!memcmp(file->data, "PK", 2) || file->data[0] == 0x80);
}

static bool add_file(CheckpointReader *r, const char *path)
{
	FileMap file;
	out_spare(r->ctx, path);
	if (text_ends(path, ".json"))
		return add_index(r, path);
	if (text_ends(path, ".npz"))
		return add_tensors(r, path);
	TRY(file_map_full(r->ctx, path, &file));
	if (text_ends(path, ".gguf") || is_gguf(file.data, file.size))
		return add_gguf(r, path);
	if (is_pickled(&file))
		return ctx_error(r->ctx, path,
				 "a pickled file of PyTorch: save its weights by "
				 "safetensors.torch.save_file, then give that file") ||
		       ctx_kind(r->ctx, REFUSAL_FILE);
	return add_tensors(r, path);
}

bool checkpoint_open(Ctx *ctx, const char *const *path, uint32_t n, Checkpoint *out)
{
	*out = (Checkpoint){.path = n ? arena_strdup(ctx->arena, path[0]) : ""};
	CheckpointReader r = {ctx, out};
	intern_init(&out->names, ctx->arena);
	for (uint32_t k = 0; k < n; k++)
		TRY(add_file(&r, arena_strdup(ctx->arena, path[k])));
	return true;
}

const SavedWeight *checkpoint_find(const Checkpoint *c, const char *name)
{
	const uint32_t id = intern_find(&c->names, name, strlen(name));
	return id ? &c->weight.data[id - 1] : NULL;
}
