#include "codegen/print/model_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "ir/graph/dtype_api.h"
#include "ir/loop/predict.h"
#include "ir/op/userop.h"
#include "runtime/runtime.h"

#define FIELD(type, name) offsetof(type, name)

/* Arrays of one type, without pointers: those with equal contents are one. Layers of a model have
 * the same shapes, and each array is a declaration that compilers take time for. */
typedef struct {
	Intern contents;
	ARRAY(uint64_t) at; /* by id - 1 */
} Shared;

typedef struct {
	ModelImage *im;
	const Program *p;
	const ProgramEntry *e; /* at hand */
	uint64_t messages;     /* where they are; the entries share them */
	Shared extents, layouts;
	const char **aliases;  /* ir_const_aliases */
} Builder;

/* ---- what structures hold ---- */

#define F(type, name, kind) {#name, IMAGE_##kind, offsetof(type, name)}
#define TYPE(id, type, ...)                                                                        \
	static const ImageField id##_fields[] = {__VA_ARGS__};                                     \
	static const ImageType id##_type = {#type, sizeof(type),                                   \
					    sizeof id##_fields / sizeof *id##_fields, id##_fields}

TYPE(i64, int64_t, {NULL, IMAGE_I64, 0});
TYPE(byte, uint8_t, {NULL, IMAGE_U8, 0});
TYPE(text, char *const, {NULL, IMAGE_POINTER, 0});
TYPE(entries, WeftEntry *const, {NULL, IMAGE_POINTER, 0});
TYPE(dim, WeftDim, F(WeftDim, value, I64), F(WeftDim, symbol, I32), F(WeftDim, text, POINTER));
TYPE(tensor, WeftTensorInfo, F(WeftTensorInfo, name, POINTER), F(WeftTensorInfo, dtype, DTYPE),
     F(WeftTensorInfo, rank, U32), F(WeftTensorInfo, dim, POINTER), F(WeftTensorInfo, donates, I32),
     F(WeftTensorInfo, requires_grad, U32), F(WeftTensorInfo, offset, U64),
     F(WeftTensorInfo, bytes, U64), F(WeftTensorInfo, init, U64),
     F(WeftTensorInfo, aliases, POINTER), F(WeftTensorInfo, role, POINTER),
     F(WeftTensorInfo, holder, POINTER), F(WeftTensorInfo, nlayout, U32),
     F(WeftTensorInfo, layout, POINTER));
TYPE(symbol, WeftSymbolInfo, F(WeftSymbolInfo, name, POINTER), F(WeftSymbolInfo, lo, I64),
     F(WeftSymbolInfo, hi, I64));
TYPE(call, WeftCallInfo, F(WeftCallInfo, name, POINTER), F(WeftCallInfo, algorithm, POINTER),
     F(WeftCallInfo, flops, F64), F(WeftCallInfo, bytes, F64), F(WeftCallInfo, line, POINTER),
     F(WeftCallInfo, nline, U32));
TYPE(layout, WeftLayoutDim, F(WeftLayoutDim, axis, U32), F(WeftLayoutDim, divisor, I64),
     F(WeftLayoutDim, extent, I64), F(WeftLayoutDim, padded, I64));
TYPE(param, WeftParamInfo, F(WeftParamInfo, name, POINTER), F(WeftParamInfo, dtype, DTYPE),
     F(WeftParamInfo, rank, U32), F(WeftParamInfo, dim, POINTER), F(WeftParamInfo, nlayout, U32),
     F(WeftParamInfo, layout, POINTER), F(WeftParamInfo, offset, U64), F(WeftParamInfo, bytes, U64),
     F(WeftParamInfo, aliases, POINTER));
#define E(name, kind) F(WeftEntry, name, kind)
TYPE(entry, WeftEntry, E(size, U32), E(flags, U32), E(name, POINTER), E(ninput, U32),
     E(noutput, U32), E(nsymbol, U32), E(ncall, U32), E(input, POINTER), E(output, POINTER),
     E(symbol, POINTER), E(call, POINTER), E(seen, POINTER), E(state_use, POINTER), E(flops, F64),
     E(sizes_bytes, U64), E(sizes_fn, POINTER), E(run_fn, POINTER), E(nslot, U32), E(nmessage, U32),
     E(message, POINTER), E(nroom, U32), E(launch, POINTER));
TYPE(launch, WeftLaunch, F(WeftLaunch, nbuf, U32), F(WeftLaunch, nparam, U32),
     F(WeftLaunch, ns, F64));
#define A(name) F(WeftManifest, name, POINTER)
TYPE(manifest, WeftManifest, A(name), A(weft_version), A(target), A(features), A(source_hash),
     A(compiler));
#define M(name, kind) F(WeftModel, name, kind)
#define STRIDE(kind)                                                                               \
	{                                                                                          \
		"stride[" #kind "]", IMAGE_U32,                                                    \
			offsetof(WeftModel, stride) + kind * sizeof(uint32_t)                      \
	}
TYPE(model, WeftModel, M(size, U32), M(abi, U32), STRIDE(WEFT_DIM), STRIDE(WEFT_TENSOR_INFO),
     STRIDE(WEFT_SYMBOL_INFO), STRIDE(WEFT_CALL_INFO), STRIDE(WEFT_LAYOUT_DIM),
     STRIDE(WEFT_PARAM_INFO), STRIDE(WEFT_MANIFEST), M(manifest, POINTER), M(nentry, U32),
     M(nparam, U32), M(entry, POINTER), M(param, POINTER), M(replaceable, U32), M(nstate, U32),
     M(state, POINTER), M(state_bytes, U64), M(weights, POINTER), M(weights_file, POINTER),
     M(weights_hash, POINTER), M(weights_bytes, U64), M(user_ops, POINTER), M(open, POINTER),
     M(close, POINTER), M(sizes, POINTER), M(run, POINTER), M(threads_new, POINTER),
     M(threads_free, POINTER), M(set_weights, POINTER), M(state_get, POINTER),
     M(state_set, POINTER), M(state_reset, POINTER), M(clone, POINTER), M(nsource, U32),
     M(source, POINTER), M(recipes, POINTER), M(get_weights, POINTER), M(wait, POINTER));
TYPE(i32, int32_t, {NULL, IMAGE_I32, 0});
TYPE(from, WeftFrom, F(WeftFrom, source, I32), F(WeftFrom, group, I32), F(WeftFrom, output, I32));
TYPE(group, WeftGroup, F(WeftGroup, entry, U32), F(WeftGroup, ninput, U32),
     F(WeftGroup, source, POINTER), F(WeftGroup, stored, POINTER));
TYPE(recipes, WeftRecipes, F(WeftRecipes, model, POINTER), F(WeftRecipes, get, POINTER),
     F(WeftRecipes, ngroup, U32), F(WeftRecipes, from, POINTER), F(WeftRecipes, group, POINTER));
/* By WeftStruct: which it is, and its size in C. */
static const struct {
	const ImageType *type;
	const char *c_size;
} strides[] = {
#define SIZED(kind, id, type) [kind] = {&id##_type, "sizeof(" #type ")"}
	SIZED(WEFT_DIM, dim, WeftDim),
	SIZED(WEFT_TENSOR_INFO, tensor, WeftTensorInfo),
	SIZED(WEFT_SYMBOL_INFO, symbol, WeftSymbolInfo),
	SIZED(WEFT_CALL_INFO, call, WeftCallInfo),
	SIZED(WEFT_LAYOUT_DIM, layout, WeftLayoutDim),
	SIZED(WEFT_PARAM_INFO, param, WeftParamInfo),
	SIZED(WEFT_MANIFEST, manifest, WeftManifest),
};

/* ---- bytes ---- */

static uint64_t reserve(ModelImage *im, uint64_t bytes, uint64_t align)
{
	uint64_t at = (im->n + align - 1) / align * align, need = at + bytes;
	if (need > im->cap) {
		uint64_t cap = need > 2 * im->cap ? need + 4096 : 2 * im->cap;
		char *data = arena_alloc(im->arena, cap);
		if (im->n)
			memcpy(data, im->data, im->n);
		im->data = data;
		im->cap = cap;
	}
	im->n = need;
	return at;
}

static uint64_t add(ModelImage *im, const void *data, uint64_t bytes, uint64_t align)
{
	uint64_t at = reserve(im, bytes, align);
	if (bytes)
		memcpy(im->data + at, data, bytes);
	return at;
}

/* Appends n structures of a type to the image, all zero, and returns the offset of the first. Adds
 * an ImageObject of that name unless n is 0. */
static uint64_t object(ModelImage *im, const ImageType *type, const char *name, uint32_t n,
		       bool array)
{
	uint64_t at = reserve(im, (uint64_t)n * type->size, 16);
	if (n)
		array_push(im->arena, &im->object, (ImageObject){type, name, at, n, array});
	return at;
}

/* Returns the offset of an array of n structures with the contents `data`: of an equal one in `s`,
 * else of a new one, named stem_k. */
static uint64_t shared(ModelImage *im, Shared *s, const ImageType *type, const char *stem,
		       uint32_t k, const void *data, uint32_t n)
{
	bool fresh;
	uint64_t bytes = (uint64_t)n * type->size;
	uint32_t id = intern(&s->contents, data, bytes, &fresh);
	if (!fresh)
		return s->at.data[id - 1];
	uint64_t at = object(im, type, arena_printf(im->arena, "%s_%u", stem, k), n, true);
	memcpy(im->data + at, data, bytes);
	array_push(im->arena, &s->at, at);
	return at;
}

/* Fills in an object. Bytes between the members stay 0: those of `data` are whatever they are. */
static void put(ModelImage *im, const ImageType *type, uint64_t at, const void *data)
{
	static const uint8_t size[] = {
		[IMAGE_U8] = 1,  [IMAGE_I32] = 4, [IMAGE_U32] = 4,   [IMAGE_I64] = 8,
		[IMAGE_U64] = 8, [IMAGE_F64] = 8, [IMAGE_DTYPE] = 4, [IMAGE_POINTER] = 8};
	for (uint32_t k = 0; k < type->nfield; k++) {
		const ImageField *f = &type->field[k];
		memcpy(im->data + at + f->at, (const char *)data + f->at, size[f->kind]);
	}
}

static uint64_t one(ModelImage *im, const ImageType *type, const char *name, const void *data)
{
	uint64_t at = object(im, type, name, 1, false);
	put(im, type, at, data);
	return at;
}

static void number(ModelImage *im, uint64_t at, const char *c)
{
	array_push(im->arena, &im->number, (ImageNumber){at, c});
}

static void point(ModelImage *im, uint64_t at, uint64_t to)
{
	array_push(im->arena, &im->pointer, (ImagePointer){.at = at, .to = to});
}

static void point_symbol(ModelImage *im, uint64_t at, const char *symbol)
{
	array_push(im->arena, &im->pointer, (ImagePointer){.at = at, .symbol = symbol});
}

static uint64_t add_text(ModelImage *im, const char *s)
{
	bool fresh;
	size_t bytes = strlen(s) + 1;
	uint32_t id = intern(&im->texts, s, bytes, &fresh);
	if (fresh)
		array_push(im->arena, &im->text, add(im, s, bytes, 1));
	return im->text.data[id - 1];
}

static void point_text(ModelImage *im, uint64_t at, const char *s)
{
	if (!s)
		s = "";
	array_push(im->arena, &im->pointer,
		   (ImagePointer){.at = at, .to = add_text(im, s), .text = s});
}

/* ---- tensors ---- */

/* Sets the pointer at byte `at` to the text of the aliases of constant c; leaves it NULL if there
 * are none. */
static void add_aliases(Builder *b, uint64_t at, ConstId c)
{
	if (b->aliases && b->aliases[c.i])
		point_text(b->im, at, b->aliases[c.i]);
}

/* Returns the name of a table of the current entry: the name alone for the first entry, then with
 * the entry's number behind. */
static const char *table_name(const Builder *b, const char *name)
{
	uint32_t k = (uint32_t)(b->e - b->p->entry.data);
	return k ? arena_printf(b->im->arena, "%s_%u", name, k) : name;
}

static int32_t symbol_index(const ProgramEntry *e, Sym s)
{
	for (uint32_t k = 0; e && k < e->symbol.n; k++)
		if (e->symbol.data[k].i == s.i)
			return (int32_t)k;
	return -1;
}

static uint64_t add_dims(Builder *b, const ProgramTensor *t, const char *name)
{
	ModelImage *im = b->im;
	uint64_t at = object(im, &dim_type, name, t->rank, true);
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t value = -1;
		if (!sym_is_const(b->p->ir->syms, t->dim[k], &value))
			value = -1;
		WeftDim d = {.value = value, .symbol = symbol_index(b->e, t->dim[k])};
		put(im, &dim_type, at + k * sizeof d, &d);
		point_text(im, at + k * sizeof d + FIELD(WeftDim, text),
			   sym_str(b->p->ir->syms, t->dim[k]));
	}
	return at;
}

/* Appends the table of an entry's inputs or outputs, one WeftTensorInfo each, and returns its
 * offset. */
static uint64_t add_tensors(Builder *b, bool input, const ProgramTensor *t, uint32_t n)
{
	ModelImage *im = b->im;
	const char *name = table_name(b, input ? "inputs" : "outputs");
	uint64_t at = object(im, &tensor_type, name, n, true), next = at;
	for (uint32_t k = 0; k < n; k++) {
		WeftTensorInfo info = {.dtype = dtype_to_api(t[k].dtype),
				       .rank = t[k].rank,
				       .donates = t[k].donates};
		put(im, &tensor_type, next, &info);
		point_text(im, next + FIELD(WeftTensorInfo, name), t[k].name);
		point_text(
			im, next + FIELD(WeftTensorInfo, role),
			input ? input_role(im->arena, INPUT_USER, t[k].name, t[k].dtype, t[k].rank)
			      : output_role(t[k].name));
		if (t[k].rank)
			point(im, next + FIELD(WeftTensorInfo, dim),
			      add_dims(b, &t[k], arena_printf(im->arena, "%s_dim_%u", name, k)));
		next += sizeof info;
	}
	return at;
}

/* ---- the entry's tables ---- */

static uint64_t add_symbols(Builder *b)
{
	const ProgramEntry *e = b->e;
	uint64_t at = object(b->im, &symbol_type, table_name(b, "symbols"), e->symbol.n, true);
	for (uint32_t k = 0; k < e->symbol.n; k++) {
		WeftSymbolInfo s = {0};
		sym_range(b->p->ir->syms, e->symbol.data[k], &s.lo, &s.hi);
		if (s.hi == SYM_INF)
			s.hi = INT64_MAX;
		put(b->im, &symbol_type, at + k * sizeof s, &s);
		point_text(b->im, at + k * sizeof s + FIELD(WeftSymbolInfo, name),
		           sym_str(b->p->ir->syms, e->symbol.data[k]));
	}
	return at;
}

static uint64_t add_seen(Builder *b)
{
	const ProgramEntry *e = b->e;
	uint64_t at = object(b->im, &i64_type, table_name(b, "seen"), e->symbol.n, true);
	for (uint32_t k = 0; k < e->symbol.n; k++) {
		int64_t seen = sym_hint(b->p->ir->syms, e->symbol.data[k]);
		memcpy(b->im->data + at + k * sizeof seen, &seen, sizeof seen);
	}
	return at;
}

static uint64_t add_calls(Builder *b)
{
	const ProgramEntry *e = b->e;
	uint64_t at = object(b->im, &call_type, table_name(b, "calls"), e->ncall, true);
	for (uint32_t k = 0; k < e->ncall; k++) {
		const ProgramCall *c = program_call(e, k);
		ProgramCount n = program_count(e, k, NULL);
		WeftCallInfo info = {.flops = n.flops, .bytes = n.bytes, .nline = c->lines.nline};
		uint64_t here = at + k * sizeof info;
		put(b->im, &call_type, here, &info);
		point_text(b->im, here + FIELD(WeftCallInfo, name), c->name);
		point_text(b->im, here + FIELD(WeftCallInfo, algorithm), c->algorithm);
		if (c->lines.nline)
			point_text(b->im, here + FIELD(WeftCallInfo, line),
				   ir_loc_text(b->p->ir, c->lines.at));
	}
	return at;
}

/* Appends the table of the entry's launches, and returns its offset. From the time of a task that
 * the table has, the runtime decides which launches are worth sharing among threads. */
static uint64_t add_launches(Builder *b, const Machine *m)
{
	const ProgramEntry *e = b->e;
	double *cycles = ARENA_ARRAY(b->im->arena, double, e->ncall);
	uint64_t at = object(b->im, &launch_type, table_name(b, "tasks"), e->ncall, true);
	program_predict_tasks(e, m, cycles);
	for (uint32_t k = 0; k < e->ncall; k++) {
		const LoopFn *f = b->p->fn.data[program_call(e, k)->fn];
		WeftLaunch l = {.nbuf = f->buf.n,
				.nparam = f->param.n,
				.ns = ceil(cycles[k] / (double)m->ghz)};
		put(b->im, &launch_type, at + k * sizeof l, &l);
	}
	return at;
}

static uint64_t add_messages(Builder *b)
{
	uint32_t n = b->p->message.n;
	uint64_t at = object(b->im, &text_type, "messages", n, true);
	for (uint32_t k = 0; k < n; k++)
		point_text(b->im, at + k * sizeof(char *), b->p->message.data[k]);
	return at;
}

/* Sets the pointer at byte `at` to byte `to`, where n elements lie; leaves it NULL if n is 0. */
static void point_some(ModelImage *im, uint64_t at, uint64_t to, uint32_t n)
{
	if (n)
		point(im, at, to);
}

/* ---- state ---- */

static uint64_t add_state(Builder *b)
{
	const Program *p = b->p;
	ModelImage *im = b->im;
	uint64_t at = object(im, &tensor_type, "state", p->state.n, true);
	b->e = NULL;
	for (uint32_t k = 0; k < p->state.n; k++) {
		const ProgramState *s = &p->state.data[k];
		Sym dim[MAX_RANK];
		for (uint32_t d = 0; d < s->rank; d++)
			dim[d] = sym_int(p->ir->syms, s->dim[d]);
		ProgramTensor t = {.rank = s->rank, .dim = dim};
		WeftTensorInfo info = {.dtype = dtype_to_api(s->dtype),
				       .rank = s->rank,
				       .donates = -1,
				       .offset = s->offset,
				       .requires_grad = s->kind == INPUT_PARAM &&
							const_requires_grad(p->ir, s->init),
				       .bytes = s->bytes,
				       .init = s->first == PROGRAM_ZEROS ? WEFT_ZEROS : s->first};
		uint64_t here = at + k * sizeof info;
		put(im, &tensor_type, here, &info);
		if (s->first == PROGRAM_ZEROS)
			number(im, here + FIELD(WeftTensorInfo, init), "WEFT_ZEROS");
		point_text(im, here + FIELD(WeftTensorInfo, name), s->name);
		point_text(im, here + FIELD(WeftTensorInfo, role),
			   input_role(im->arena, s->kind, s->name, s->dtype, s->rank));
		if (const_holder(p->ir, s->init))
			point_text(im, here + FIELD(WeftTensorInfo, holder),
				   const_holder(p->ir, s->init));
		add_aliases(b, here + FIELD(WeftTensorInfo, aliases), s->init);
		if (s->rank)
			point(im, here + FIELD(WeftTensorInfo, dim),
			      add_dims(b, &t, arena_printf(im->arena, "state_dim_%u", k)));
	}
	return at;
}

/* Appends a byte for each state, whether the entry reads and writes the state, and sets *at to the
 * first byte's offset. Returns the flags of all states together. */
static uint32_t add_state_use(Builder *b, uint64_t *at)
{
	const ProgramEntry *e = b->e;
	uint32_t flags = 0;
	*at = object(b->im, &byte_type, table_name(b, "state_use"), e->state_use.n, true);
	for (uint32_t k = 0; k < e->state_use.n; k++) {
		uint8_t use = 0;
		use |= e->state_use.data[k] & PROGRAM_READS ? WEFT_ENTRY_READS_STATE : 0;
		use |= e->state_use.data[k] & PROGRAM_WRITES ? WEFT_ENTRY_WRITES_STATE : 0;
		b->im->data[*at + k] = (char)use;
		flags |= use;
	}
	return flags;
}

/* ---- entries ---- */

static bool has_data_sizes(const ProgramEntry *e)
{
	for (uint32_t k = 0; k < e->output.n; k++)
		if (program_is_found(e, k))
			return true;
	return false;
}

static uint64_t add_entry(Builder *b, const ProgramEntry *e, const Machine *m)
{
	b->e = e;
	ModelImage *im = b->im;
	uint32_t nextent = program_nextent(e), nslot = program_nslot(e), nin = e->input.n,
		 nout = e->output.n;
	uint64_t in = add_tensors(b, true, e->input.data, nin),
		 out = add_tensors(b, false, e->output.data, nout);
	uint64_t symbols = add_symbols(b), seen = add_seen(b), calls = add_calls(b),
		 launches = add_launches(b, m);
	if (!b->messages)
		b->messages = add_messages(b);
	uint64_t use;
	uint32_t flags = add_state_use(b, &use);
	flags |= e->half_updates ? WEFT_ENTRY_HALF_UPDATES : 0;
	flags |= e->cancellable ? WEFT_ENTRY_CANCELLABLE : 0;
	WeftEntry w = {.size = sizeof w,
		       .flags = flags | (has_data_sizes(e) ? WEFT_ENTRY_DATA_SIZES : 0),
		       .nroom = e->nroom,
		       .ninput = nin,
		       .noutput = nout,
		       .nsymbol = e->symbol.n,
		       .ncall = e->ncall,
		       .flops = program_total(e, NULL).flops,
		       .nslot = nslot,
		       .sizes_bytes =
			       sizeof(WeftSizes) + ((uint64_t)nslot + nextent) * sizeof(int64_t),
		       .nmessage = b->p->message.n};
	uint64_t at = one(im, &entry_type, table_name(b, "entry"), &w);
	number(im, at + FIELD(WeftEntry, size), "sizeof(WeftEntry)");
	number(im, at + FIELD(WeftEntry, sizes_bytes),
	       arena_printf(im->arena, "WEFT_SIZES_BYTES(%u, %u)", nslot, nextent));
	point_text(im, at + FIELD(WeftEntry, name), e->name);
	point_some(im, at + FIELD(WeftEntry, input), in, nin);
	point_some(im, at + FIELD(WeftEntry, output), out, nout);
	point_some(im, at + FIELD(WeftEntry, symbol), symbols, e->symbol.n);
	point_some(im, at + FIELD(WeftEntry, seen), seen, e->symbol.n);
	point_some(im, at + FIELD(WeftEntry, call), calls, e->ncall);
	point_some(im, at + FIELD(WeftEntry, state_use), use, e->state_use.n);
	point_some(im, at + FIELD(WeftEntry, launch), launches, e->ncall);
	point_symbol(im, at + FIELD(WeftEntry, sizes_fn), e->sizes->name);
	point_symbol(im, at + FIELD(WeftEntry, run_fn), e->run->name);
	point(im, at + FIELD(WeftEntry, message), b->messages);
	return at;
}

/* ---- parameters ---- */

static uint64_t add_layout(Builder *b, const Layout *l, const char *stem, uint32_t k)
{
	/* zeros between its members, too */
	WeftLayoutDim *w = ARENA_ARRAY(b->im->arena, WeftLayoutDim, l->n);
	for (uint32_t d = 0; d < l->n; d++) {
		w[d].axis = l->dim[d].axis;
		w[d].divisor = l->dim[d].divisor;
		w[d].extent = sym_const(b->p->ir->syms, l->dim[d].extent);
		w[d].padded = sym_const(b->p->ir->syms, l->dim[d].padded);
	}
	return shared(b->im, &b->layouts, &layout_type, stem, k, w, l->n);
}

static uint64_t add_extents(Builder *b, const Const *c, const char *stem, uint32_t k)
{
	return shared(b->im, &b->extents, &i64_type, stem, k, c->dim, c->rank);
}

static uint64_t add_params(Builder *b)
{
	const Program *p = b->p;
	ModelImage *im = b->im;
	uint64_t at = object(im, &param_type, "params", p->constant.n, true);
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *pc = &p->constant.data[k];
		const Const *c = ir_const_of(p->ir, pc->source);
		bool plain = pc->layout.n == 0 || layout_is_row_major(&pc->layout, c->rank);
		WeftParamInfo info = {.dtype = dtype_to_api(pc->dtype),
				      .rank = c->rank,
				      .nlayout = plain ? 0 : pc->layout.n,
				      .offset = pc->offset,
				      .bytes = pc->bytes};
		uint64_t here = at + k * sizeof info;
		put(im, &param_type, here, &info);
		point_text(im, here + FIELD(WeftParamInfo, name), c->is_param ? c->name : "");
		add_aliases(b, here + FIELD(WeftParamInfo, aliases), pc->source);
		if (c->rank)
			point(im, here + FIELD(WeftParamInfo, dim),
			      add_extents(b, c, "param_dim", k));
		if (!plain)
			point(im, here + FIELD(WeftParamInfo, layout),
			      add_layout(b, &pc->layout, "param_layout", k));
	}
	return at;
}

/* ---- replaceable weights ---- */

/* By constant: where weights that are set come in. */
typedef struct {
	int32_t source, group, output, stored; /* -1: none; stored: which of Program.constant has
	                                          its bytes as they are */
} Role;

static Role *find_roles(const Builder *b)
{
	const Program *p = b->p;
	const ProgramRecipes *w = p->recipes;
	Role *role = ARENA_ARRAY(b->im->arena, Role, p->ir->constant.n);
	for (uint32_t k = 0; k < p->ir->constant.n; k++)
		role[k] = (Role){-1, -1, -1, -1};
	for (uint32_t k = 0; k < w->source.n; k++)
		role[w->source.data[k].i].source = (int32_t)k;
	for (uint32_t k = 0; k < w->group.n; k++)
		for (uint32_t i = 0; i < w->group.data[k].output.n; i++) {
			Role *r = &role[w->group.data[k].output.data[i].i];
			r->group = (int32_t)k;
			r->output = (int32_t)i;
		}
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *c = &p->constant.data[k];
		if (!c->first &&
		    layout_is_row_major(&c->layout, ir_const_of(p->ir, c->source)->rank))
			role[const_root(p->ir, c->source).i].stored = (int32_t)k;
	}
	return role;
}

/* Appends the table of parameters as the model's file has them (WeftModel.source), and returns its
 * offset. */
static uint64_t add_sources(Builder *b)
{
	const ProgramRecipes *w = b->p->recipes;
	ModelImage *im = b->im;
	uint64_t at = object(im, &param_type, "sources", w->source.n, true);
	for (uint32_t k = 0; k < w->source.n; k++) {
		const Const *c = ir_const_of(b->p->ir, w->source.data[k]);
		WeftParamInfo info = {.dtype = dtype_to_api(c->dtype),
				      .rank = c->rank,
				      .bytes = dtype_size(c->dtype)};
		for (uint32_t d = 0; d < c->rank; d++)
			info.bytes *= (uint64_t)c->dim[d];
		uint64_t here = at + k * sizeof info;
		put(im, &param_type, here, &info);
		point_text(im, here + FIELD(WeftParamInfo, name), c->name);
		add_aliases(b, here + FIELD(WeftParamInfo, aliases), w->source.data[k]);
		if (c->rank)
			point(im, here + FIELD(WeftParamInfo, dim),
			      add_extents(b, c, "source_dim", k));
	}
	return at;
}

static uint64_t add_from(Builder *b, const Role *role)
{
	const Program *p = b->p;
	uint64_t at = object(b->im, &from_type, "from", p->constant.n, true);
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const Role *r = &role[const_root(p->ir, p->constant.data[k].source).i];
		WeftFrom from = {r->source, r->group, r->output};
		if (p->constant.data[k].first)
			from = (WeftFrom){-1, -1, -1};
		put(b->im, &from_type, at + k * sizeof from, &from);
	}
	return at;
}

static uint64_t add_groups(Builder *b, const Role *role)
{
	const ProgramRecipes *w = b->p->recipes;
	ModelImage *im = b->im;
	uint64_t at = object(im, &group_type, "groups", w->group.n, true);
	for (uint32_t k = 0; k < w->group.n; k++) {
		const ProgramGroup *g = &w->group.data[k];
		WeftGroup info = {.entry = g->entry, .ninput = g->input.n};
		uint64_t here = at + k * sizeof info;
		uint64_t source =
			object(im, &i32_type, arena_printf(im->arena, "group_source_%u", k),
			       g->input.n, true);
		uint64_t stored =
			object(im, &i32_type, arena_printf(im->arena, "group_stored_%u", k),
			       g->input.n, true);
		put(im, &group_type, here, &info);
		for (uint32_t i = 0; i < g->input.n; i++) {
			const Role *r = &role[const_root(b->p->ir, g->input.data[i]).i];
			memcpy(im->data + source + i * sizeof r->source, &r->source,
			       sizeof r->source);
			memcpy(im->data + stored + i * sizeof r->stored, &r->stored,
			       sizeof r->stored);
		}
		point(im, here + FIELD(WeftGroup, source), source);
		point(im, here + FIELD(WeftGroup, stored), stored);
	}
	return at;
}

static void point_recipes(Builder *b, uint64_t model, const EmitOptions *o)
{
	const ProgramRecipes *w = b->p->recipes;
	ModelImage *im = b->im;
	const Role *role = find_roles(b);
	uint64_t sources = add_sources(b), from = add_from(b, role), groups = add_groups(b, role);
	WeftRecipes info = {.ngroup = w->group.n};
	uint64_t at = one(im, &recipes_type, "recipes", &info);
	if (w->group.n)
		point_symbol(im, at + FIELD(WeftRecipes, get), o->recipes_export);
	point_some(im, at + FIELD(WeftRecipes, from), from, b->p->constant.n);
	point_some(im, at + FIELD(WeftRecipes, group), groups, w->group.n);
	point_some(im, model + FIELD(WeftModel, source), sources, w->source.n);
	point(im, model + FIELD(WeftModel, recipes), at);
}

/* ---- the model ---- */

static uint64_t add_manifest(Builder *b, const Target *t, const char *features,
			     const EmitOptions *o)
{
	ModelImage *im = b->im;
	uint64_t at = object(im, &manifest_type, "manifest", 1, false);
	point_text(im, at + FIELD(WeftManifest, name), b->p->name);
	point_text(im, at + FIELD(WeftManifest, weft_version), o->version);
	point_text(im, at + FIELD(WeftManifest, target), t->isa.name);
	point_text(im, at + FIELD(WeftManifest, features), features);
	point_text(im, at + FIELD(WeftManifest, source_hash), o->source_hash);
	point_text(im, at + FIELD(WeftManifest, compiler), o->compiler);
	return at;
}

/* Whether it calls an operator that has only a library for a function. */
static bool needs_lapack(const Program *p)
{
	const UserOp **op;
	uint32_t n = program_user_ops(p, &op);
	while (n && !op[n - 1]->needs_lapack)
		n--;
	return n;
}

/* Whether it has collectives. */
static bool communicates(const Program *p)
{
	const UserOp **op;
	uint32_t n = program_user_ops(p, &op);
	while (n && !op[n - 1]->collective)
		n--;
	return n;
}

/* Sets the function pointers of the WeftModel to functions of the runtime. variable: the model has
 * state, or weights that may be replaced. */
static void point_runtime(ModelImage *im, uint64_t model, const Program *p, bool variable,
			  const EmitOptions *o)
{
	const struct {
		size_t at;
		const char *name;
	} fn[] = {
		{FIELD(WeftModel, open), communicates(p)   ? "weft_rt_open_ranks"
					 : needs_lapack(p) ? "weft_rt_open_lapack"
							   : "weft_rt_open"},
		{FIELD(WeftModel, close), "weft_rt_close"},
		{FIELD(WeftModel, sizes), "weft_rt_sizes"},
		{FIELD(WeftModel, run), communicates(p) ? "weft_rt_run_ranks" : "weft_rt_run"},
		{FIELD(WeftModel, threads_new), "weft_rt_threads_new"},
		{FIELD(WeftModel, threads_free), "weft_rt_threads_free"},
		{FIELD(WeftModel, set_weights),
		 variable ? "weft_rt_set_weights" : "weft_rt_no_weights"},
		{FIELD(WeftModel, state_get), variable ? "weft_rt_state_get" : "weft_rt_no_state"},
		{FIELD(WeftModel, state_set), variable ? "weft_rt_state_set" : "weft_rt_no_state"},
		{FIELD(WeftModel, state_reset),
		 variable ? "weft_rt_state_reset" : "weft_rt_no_reset"},
		{FIELD(WeftModel, clone), "weft_rt_clone"},
		{FIELD(WeftModel, get_weights),
		 variable ? "weft_rt_get_weights" : "weft_rt_no_weights"},
	};
	for (uint32_t k = 0; k < sizeof fn / sizeof *fn; k++)
		point_symbol(im, model + fn[k].at, fn[k].name);
	if (o->launched)
		point_symbol(im, model + FIELD(WeftModel, wait), "weft_rt_wait");
}

static int by_place(const void *a, const void *b)
{
	const ImagePointer *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Lists the user operators whose functions the model calls, with their symbols: "mylib::decay
 * mylib_decay, mylib::smooth mylib_smooth". Returns NULL if there are none. */
static const char *name_user_ops(const Program *p)
{
	const UserOp **op;
	uint32_t n = program_user_ops(p, &op);
	Text t;
	text_init(&t, p->ir->ctx->arena);
	for (uint32_t k = 0; k < n; k++)
		if (!op[k]->own)
			text_printf(&t, "%s%s %s", t.n ? ", " : "", op[k]->name, op[k]->def.symbol);
	return t.n ? t.data : NULL;
}

void model_image(ModelImage *im, const Program *p, const Target *t, const char *features,
		 const EmitOptions *o)
{
	*im = (ModelImage){.arena = p->ir->ctx->arena};
	intern_init(&im->texts, im->arena);
	Builder b = {.im = im, .p = p};
	b.aliases = ir_const_aliases(p->ir, im->arena);
	intern_init(&b.extents.contents, im->arena);
	intern_init(&b.layouts.contents, im->arena);
	uint64_t *entry = ARENA_ARRAY(im->arena, uint64_t, p->entry.n);
	for (uint32_t k = 0; k < p->entry.n; k++)
		entry[k] = add_entry(&b, &p->entry.data[k], &t->machine);
	uint64_t state = add_state(&b), params = add_params(&b),
		 manifest = add_manifest(&b, t, features, o);
	uint64_t entries = object(im, &entries_type, "entries", p->entry.n, true);
	for (uint32_t k = 0; k < p->entry.n; k++)
		point(im, entries + k * sizeof(char *), entry[k]);
	const char *user_ops = name_user_ops(p);
	ImageType *type = memcpy(arena_alloc(im->arena, sizeof *type), &model_type, sizeof *type);
	if (!o->launched) /* a model for processors: the table ends where it did before `wait` */
		type->nfield--, type->size = offsetof(WeftModel, wait);
	WeftModel m = {.size = (uint32_t)type->size,
		       .abi = WEFT_ABI_VERSION,
		       .nentry = p->entry.n,
		       .nparam = p->constant.n,
		       .nstate = p->state.n,
		       .replaceable = p->recipes != NULL,
		       .nsource = p->recipes ? p->recipes->source.n : 0,
		       .weights_bytes = p->weight_bytes,
		       .state_bytes = p->state_bytes};
	for (uint32_t k = 0; k < sizeof strides / sizeof *strides; k++)
		m.stride[k] = strides[k].type->size;
	im->model = one(im, type, "model", &m);
	number(im, im->model + FIELD(WeftModel, size), "sizeof(WeftModel)");
	for (uint32_t k = 0; k < sizeof strides / sizeof *strides; k++)
		number(im, im->model + FIELD(WeftModel, stride) + k * sizeof *m.stride,
		       strides[k].c_size);
	point(im, im->model + FIELD(WeftModel, manifest), manifest);
	point(im, im->model + FIELD(WeftModel, entry), entries);
	point_some(im, im->model + FIELD(WeftModel, param), params, p->constant.n);
	point_some(im, im->model + FIELD(WeftModel, state), state, p->state.n);
	if (o->weights_symbol)
		point_symbol(im, im->model + FIELD(WeftModel, weights), o->weights_symbol);
	if (o->weights_file)
		point_text(im, im->model + FIELD(WeftModel, weights_file), o->weights_file);
	if (o->weights_hash)
		point_text(im, im->model + FIELD(WeftModel, weights_hash), o->weights_hash);
	if (user_ops)
		point_text(im, im->model + FIELD(WeftModel, user_ops), user_ops);
	point_runtime(im, im->model, p, m.replaceable || m.nstate, o);
	if (p->recipes)
		point_recipes(&b, im->model, o);
	qsort(im->pointer.data, im->pointer.n, sizeof *im->pointer.data, by_place);
}

const ImagePointer *image_pointer(const ModelImage *im, uint64_t at)
{
	const ImagePointer key = {.at = at};
	return im->pointer.n ? bsearch(&key, im->pointer.data, im->pointer.n, sizeof key, by_place)
			     : NULL;
}

static int by_start(const void *a, const void *b)
{
	const ImageObject *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

const ImageObject *image_object(const ModelImage *im, uint64_t at)
{
	const ImageObject key = {.at = at};
	return im->object.n ? bsearch(&key, im->object.data, im->object.n, sizeof key, by_start)
			    : NULL;
}
