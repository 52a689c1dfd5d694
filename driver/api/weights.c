/* Weights of files take the place of those of a model, behind the API. */
#include <string.h>

#include "driver/api/given.h"
#include "frontend/files/checkpoint.h"
#include "transform/model/weights.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	const char *const *path;
	uint32_t npath;
	const char *names;
	Checkpoint file;
	NameRules rules;
	bool *used;           /* by weight of the files */
	const char *missing;  /* a list */
	uint32_t nmissing;
	ARRAY(NewWeight) new;
} LoadingWeights;

enum { MOST_LISTED = 8 };

/* Appends a name to a list, of which the first MOST_LISTED are kept. */
static const char *listed(Arena *arena, const char *list, uint32_t n, const char *name)
{
	if (n > MOST_LISTED)
		return list;
	return n == MOST_LISTED ? arena_printf(arena, "%s ...", list)
				: arena_printf(arena, "%s%s%s", n ? list : "", n ? ", " : "", name);
}

/* ---- values ---- */

/* Orders rows that stand in heads whose halves are between each other: row i + s * half of a head
 * is row 2 * i + s of the file. bytes: of all rows of one element. */
static void *order_rows(Arena *arena, const void *data, int64_t rows, uint64_t bytes,
			uint32_t heads)
{
	uint8_t *out = arena_alloc(arena, bytes);
	const uint64_t row = bytes / (uint64_t)rows;
	const int64_t dim = rows / heads, half = dim / 2;
	for (int64_t r = 0; r < rows; r++) {
		const int64_t i = r % dim, from = r - i + i % half * 2 + i / half;
		memcpy(out + (uint64_t)r * row, (const uint8_t *)data + (uint64_t)from * row, row);
	}
	return out;
}

static void order_tensor(Arena *arena, Tensor *t, uint32_t heads)
{
	if (heads && t->data && t->dim[0])
		t->data = order_rows(arena, t->data, t->dim[0], tensor_bytes(t), heads);
}

static void order_numbers(Arena *arena, GroupNumbers *n, uint32_t heads)
{
	order_tensor(arena, &n->of_group, heads);
	order_tensor(arena, &n->unit, heads);
}

/* Returns the numbers in another float dtype. */
static void *converted(Arena *arena, const Tensor *from, DType to)
{
	enum { STEP = 1024 };
	Tensor out = *from;
	const int64_t n = tensor_numel(from);
	double part[STEP];
	out.dtype = to;
	out.data = arena_alloc(arena, tensor_bytes(&out));
	for (int64_t i = 0; i < n; i += STEP) {
		const int64_t m = n - i < STEP ? n - i : STEP;
		tensor_read_f64(from, i, m, part);
		tensor_write_f64(&out, i, m, part);
	}
	return out.data;
}

static bool same_shape(const Const *c, const Tensor *t)
{
	if (c->rank != t->rank)
		return false;
	for (uint32_t k = 0; k < t->rank; k++)
		if (c->dim[k] != t->dim[k])
			return false;
	return true;
}

static const char *type_of(Arena *arena, const SavedWeight *s)
{
	Tensor t = s->tensor;
	t.dtype = s->gguf ? DT_f32 : t.dtype;
	const char *text = tensor_type_str(arena, &t);
	return s->gguf ? arena_printf(arena, "%s%s", s->gguf->blocks->name, strchr(text, '['))
		       : text;
}

/* Whether the model's parameter can take the file's value. */
static bool fits(LoadingWeights *l, const Const *c, const SavedWeight *s, uint32_t heads)
{
	Arena *arena = weft_arena(l->w);
	const Tensor want = {.dtype = c->dtype, .rank = c->rank};
	Tensor as = want;
	memcpy(as.dim, c->dim, sizeof *c->dim * c->rank);
	const bool is_float = dtype_is_inexact(c->dtype) && !dtype_is_complex(c->dtype),
		   from_float = s->gguf || (dtype_is_inexact(s->tensor.dtype) &&
					    !dtype_is_complex(s->tensor.dtype));
	if (!same_shape(c, &s->tensor) ||
	    (c->dtype != s->tensor.dtype && !(is_float && from_float)))
		return ctx_error(l->w->ctx, s->path,
				 "weight %s is %s, expected %s of the model's %s", s->name,
				 type_of(arena, s), tensor_type_str(arena, &as), c->name) ||
		       ctx_kind(l->w->ctx, REFUSAL_TYPES);
	return !heads || (c->rank && c->dim[0] % (2 * (int64_t)heads) == 0) ||
	       ctx_error(l->w->ctx, s->path, "weight %s is %s: its rows are no pairs of %u heads",
			 s->name, type_of(arena, s), heads);
}

static bool take(LoadingWeights *l, ConstId id, const SavedWeight *s, uint32_t heads)
{
	Arena *arena = weft_arena(l->w);
	const Const *c = ir_const_of(l->g->g->ir, id);
	NewWeight new = {.of = id, .value = s->tensor};
	TRY(fits(l, c, s, heads));
	if (s->gguf) {
		const GgufUnpacked u = gguf_unpack(arena, s->gguf);
		new.value = u.q;
		new.scale = (GroupNumbers){u.scale, u.scale_unit};
		new.offset = (GroupNumbers){u.offset, u.offset_unit};
		order_numbers(arena, &new.scale, heads);
		order_numbers(arena, &new.offset, heads);
	} else if (s->tensor.dtype != c->dtype) {
		new.value.data = converted(arena, &s->tensor, c->dtype);
		new.value.dtype = c->dtype;
	}
	order_tensor(arena, &new.value, heads);
	array_push(arena, &l->new, new);
	return true;
}

/* ---- names ---- */

/* Reads the rules of the user, behind which those stand that are known of the files. */
static bool read_rules(LoadingWeights *l)
{
	Ctx *ctx = l->w->ctx;
	FileMap text;
	const GgufMeta *m = gguf_meta(&l->file.gguf, "general.architecture");
	const NameRules known = m && m->text ? names_of_architecture(m->text) : (NameRules){0};
	if (!l->names) {
		l->rules = known;
		return true;
	}
	out_spare(ctx, l->names);
	TRY(file_map(ctx, l->names, &text) &&
	    names_parse(ctx, l->names, (const char *)text.data, text.size, &l->rules));
	NameRule *all = ARENA_ARRAY(ctx->arena, NameRule, l->rules.n + known.n);
	for (uint32_t k = 0; k < l->rules.n; k++)
		all[k] = l->rules.rule[k];
	for (uint32_t k = 0; k < known.n; k++)
		all[l->rules.n + k] = known.rule[k];
	l->rules = (NameRules){all, l->rules.n + known.n};
	return true;
}

/* Finds the value of a constant under one of its names in the model. */
static bool find(LoadingWeights *l, const char *name, const SavedWeight **out, SavedName *as)
{
	TRY(names_find(l->w->ctx, &l->rules, &l->file, name, as));
	*out = checkpoint_find(&l->file, as->name);
	return true;
}

/* Finds the value of a constant, which may have other names. */
static bool find_any(LoadingWeights *l, ConstId id, const SavedWeight **out, SavedName *as)
{
	const Ir *ir = l->g->g->ir;
	SavedName first;
	TRY(find(l, ir_const_of(ir, id)->name, out, as));
	first = *as;
	for (uint32_t k = 1; k < ir->constant.n && !*out; k++)
		if (ir->constant.data[k].same_as.i == id.i)
			TRY(find(l, ir->constant.data[k].name, out, as));
	if (!*out)
		*as = first;
	return true;
}

static const char *missing_name(Arena *arena, const char *model, const char *file)
{
	return strcmp(model, file) ? arena_printf(arena, "%s (%s in the file)", model, file)
				   : model;
}

static bool choose(LoadingWeights *l)
{
	Ir *ir = l->g->g->ir;
	Arena *arena = weft_arena(l->w);
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		const Const c = ir->constant.data[k];
		const SavedWeight *s;
		SavedName as;
		if (c.same_as.i || !*c.name || !(c.is_param || c.absent))
			continue;
		TRY(find_any(l, (ConstId){k}, &s, &as));
		if (s) {
			l->used[s - l->file.weight.data] = true;
			TRY(take(l, (ConstId){k}, s, as.heads));
		} else if (c.absent || !(c.transient || l->file.trained)) {
			l->missing = listed(arena, l->missing, l->nmissing++,
					    missing_name(arena, c.name, as.name));
		}
	}
	return true;
}

/* Whether a checkpoint of weft train has the name for what is no weight. */
static bool is_of_training(const LoadingWeights *l, const char *name)
{
	static const char *const begin[] = {"state.", "optimizer.", "weft.", "grad.", "ema."};
	for (size_t k = 0; l->file.trained && k < sizeof begin / sizeof *begin; k++)
		if (!strncmp(name, begin[k], strlen(begin[k])))
			return true;
	return false;
}

/* Lists the weights of the files that no parameter took. */
static void list_unused(LoadingWeights *l)
{
	const char *list = "";
	uint32_t n = 0;
	for (uint32_t k = 0; k < l->file.weight.n; k++)
		if (!l->used[k] && !is_of_training(l, l->file.weight.data[k].name))
			list = listed(weft_arena(l->w), list, n++, l->file.weight.data[k].name);
	if (n)
		ctx_warn(l->w->ctx, l->file.path, "%u weight%s of no parameter of the model: %s", n,
			 n == 1 ? " is" : "s are", list);
}

void graph_warn_absent(const WeftGraph *g)
{
	Ir *ir = g->entry[0].g->ir;
	const char *first = NULL;
	uint32_t n = 0;
	for (uint32_t k = 1; k < ir->constant.n && !ir->told_absent; k++)
		if (ir->constant.data[k].absent && !n++)
			first = ir->constant.data[k].name;
	ir->told_absent |= n;
	if (n)
		ctx_warn(ir->ctx, g->path,
			 "the file has no values of %u weight%s (%s%s), which were on \"meta\" "
			 "when it was exported: they are 0; give them by --weights-from "
			 "(weights_from=)",
			 n, n == 1 ? "" : "s", first, n == 1 ? "" : ", ...");
}

/* Whether weft_load_weights has put weights in blocks into a graph of the Ir: their parameters have
 * no names any more. */
static bool has_blocks(const Ir *ir)
{
	for (uint32_t k = 1; k < ir->constant.n; k++)
		if (ir->constant.data[k].in_blocks)
			return true;
	return false;
}

static bool load_weights(void *arg)
{
	static const char here[] = "weft_load_weights";
	LoadingWeights *l = arg;
	Ctx *ctx = l->w->ctx;
	TRY(given_graph(l->w, here, l->g) && graph_is_one(l->w, l->g));
	TRY(given_texts(l->w, here, "paths", l->path, l->npath));
	if (!l->npath)
		return ctx_error(ctx, here, "no file of weights is given");
	if (l->g->transformed)
		return ctx_error(ctx, l->g->path,
				 "the graph was transformed: load the weights of the graph that "
				 "was loaded, then transform it");
	if (has_blocks(l->g->g->ir))
		return ctx_error(ctx, l->g->path,
				 "weights of the graph are in blocks of few bits already: load all "
				 "files at once, or into the graph that was loaded");
	TRY(checkpoint_open(ctx, l->path, l->npath, &l->file) && read_rules(l));
	l->used = ARENA_ARRAY(weft_arena(l->w), bool, l->file.weight.n);
	TRY(choose(l));
	if (l->nmissing)
		return ctx_error(ctx, l->file.path,
				 "%u parameter%s not in it: %s; a file of names (--weight-names) "
				 "says what they are called there, also of two that share memory",
				 l->nmissing,
				 l->nmissing == 1 ? " of the model is" : "s of the model are",
				 l->missing);
	if (l->file.trained && !l->new.n)
		return ctx_error(ctx, l->file.path,
				 "no weight of this checkpoint is called like a parameter of the "
				 "model");
	list_unused(l);
	ctx->file = l->g->path;
	return transform_weights(l->g->g, l->new.data, l->new.n);
}

bool weft_load_weights(Weft *w, WeftGraph *g, const char *const *path, uint32_t n,
		       const char *names)
{
	LoadingWeights l = {.w = w, .g = g, .path = path, .npath = n, .names = names};
	return boundary(w, load_weights, &l);
}
