#include "codegen/model_image.h"

#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

#define FIELD(type, name) offsetof(type, name)

typedef struct {
	ModelImage *im;
	const Program *p;
} Build;

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

static void point(ModelImage *im, uint64_t at, uint64_t to)
{
	array_push(im->arena, &im->pointer, (ImagePointer){.at = at, .to = to});
}

static void point_symbol(ModelImage *im, uint64_t at, const char *symbol)
{
	array_push(im->arena, &im->pointer, (ImagePointer){.at = at, .symbol = symbol});
}

static void point_text(ModelImage *im, uint64_t at, const char *s)
{
	if (!s)
		s = "";
	point(im, at, add(im, s, strlen(s) + 1, 1));
}

/* ---- tensors ---- */

/* The code of DLPack. */
static WeftDType dtype_code(DType d)
{
	int code = dtype_is_complex(d) ? WEFT_COMPLEX : dtype_is_float(d) ? WEFT_FLOAT : dtype_is_signed(d) ? WEFT_INT : WEFT_UINT;
	if (d == DT_bf16)
		code = WEFT_BFLOAT;
	else if (d == DT_bool)
		code = WEFT_BOOL;
	else if (d == DT_f8e4m3)
		code = WEFT_F8_E4M3FN;
	else if (d == DT_f8e5m2)
		code = WEFT_F8_E5M2;
	return (WeftDType){(uint8_t)code, (uint8_t)(dtype_size(d) * 8), 1};
}

static int32_t symbol_index(const Program *p, Sym s)
{
	for (uint32_t k = 0; k < p->symbol.n; k++)
		if (p->symbol.data[k].i == s.i)
			return (int32_t)k;
	return -1;
}

static uint64_t add_dims(Build *b, const ProgramTensor *t)
{
	ModelImage *im = b->im;
	uint64_t at = reserve(im, t->rank * sizeof(WeftDim), 16);
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t value = -1;
		if (!sym_is_const(b->p->ir->syms, t->dim[k], &value))
			value = -1;
		WeftDim d = {.value = value, .symbol = symbol_index(b->p, t->dim[k])};
		memcpy(im->data + at + k * sizeof d, &d, sizeof d);
		point_text(im, at + k * sizeof d + FIELD(WeftDim, text), sym_str(b->p->ir->syms, t->dim[k]));
	}
	return at;
}

/* Tensors of one kind, one after the other; how many is left in *count. */
static uint64_t add_tensors(Build *b, const ProgramTensor *t, uint32_t n, bool state, uint32_t *count)
{
	ModelImage *im = b->im;
	*count = 0;
	for (uint32_t k = 0; k < n; k++)
		*count += t[k].is_state == state;
	uint64_t at = reserve(im, *count * sizeof(WeftTensorInfo), 16), next = at;
	for (uint32_t k = 0; k < n; k++) {
		if (t[k].is_state != state)
			continue;
		WeftTensorInfo info = {.dtype = dtype_code(t[k].dtype), .rank = t[k].rank, .offset = t[k].offset};
		memcpy(im->data + next, &info, sizeof info);
		point_text(im, next + FIELD(WeftTensorInfo, name), t[k].name);
		if (t[k].rank)
			point(im, next + FIELD(WeftTensorInfo, dim), add_dims(b, &t[k]));
		next += sizeof info;
	}
	return at;
}

/* ---- the entry's tables ---- */

static uint64_t add_symbols(Build *b)
{
	const Program *p = b->p;
	uint64_t at = reserve(b->im, p->symbol.n * sizeof(WeftSymbolInfo), 16);
	for (uint32_t k = 0; k < p->symbol.n; k++) {
		WeftSymbolInfo s = {0};
		sym_range(p->ir->syms, p->symbol.data[k], &s.lo, &s.hi);
		if (s.hi == SYM_INF)
			s.hi = INT64_MAX;
		memcpy(b->im->data + at + k * sizeof s, &s, sizeof s);
		point_text(b->im, at + k * sizeof s + FIELD(WeftSymbolInfo, name),
		           sym_str(p->ir->syms, p->symbol.data[k]));
	}
	return at;
}

static uint64_t add_seen(Build *b)
{
	const Program *p = b->p;
	uint64_t at = reserve(b->im, p->symbol.n * sizeof(int64_t), 16);
	for (uint32_t k = 0; k < p->symbol.n; k++) {
		int64_t seen = sym_hint(p->ir->syms, p->symbol.data[k]);
		memcpy(b->im->data + at + k * sizeof seen, &seen, sizeof seen);
	}
	return at;
}

static uint64_t add_calls(Build *b)
{
	const Program *p = b->p;
	uint64_t at = reserve(b->im, p->call.n * sizeof(WeftCallInfo), 16);
	for (uint32_t k = 0; k < p->call.n; k++) {
		const ProgramCall *c = &p->call.data[k];
		ProgramCount n = program_count(p, k, NULL);
		WeftCallInfo info = {.flops = n.flops, .bytes = n.bytes};
		uint64_t here = at + k * sizeof info;
		memcpy(b->im->data + here, &info, sizeof info);
		point_text(b->im, here + FIELD(WeftCallInfo, name), c->name);
		point_text(b->im, here + FIELD(WeftCallInfo, algorithm), c->algorithm);
	}
	return at;
}

static uint64_t add_messages(Build *b)
{
	uint32_t n = b->p->message.n;
	uint64_t at = reserve(b->im, n * sizeof(char *), 16);
	for (uint32_t k = 0; k < n; k++)
		point_text(b->im, at + k * sizeof(char *), b->p->message.data[k]);
	return at;
}

/* A pointer field that stays NULL when there is nothing. */
static void point_some(ModelImage *im, uint64_t at, uint64_t to, uint32_t n)
{
	if (n)
		point(im, at, to);
}

static uint64_t add_entry(Build *b, uint32_t nstate)
{
	const Program *p = b->p;
	ModelImage *im = b->im;
	uint32_t nextent = program_nextent(p), nslot = program_nslot(p), nin, nout;
	uint64_t in = add_tensors(b, p->input.data, p->input.n, false, &nin);
	uint64_t out = add_tensors(b, p->output.data, p->output.n, false, &nout);
	uint64_t symbols = add_symbols(b), seen = add_seen(b), calls = add_calls(b), messages = add_messages(b);
	WeftEntry e = {.size = sizeof e, .flags = nstate ? WEFT_ENTRY_MUTATES : 0, .ninput = nin, .noutput = nout,
	               .nsymbol = p->symbol.n, .ncall = p->call.n, .flops = program_total(p, NULL).flops, .nslot = nslot,
	               .sizes_bytes = sizeof(WeftSizes) + ((uint64_t)nslot + nextent) * sizeof(int64_t),
	               .nmessage = p->message.n};
	uint64_t at = add(im, &e, sizeof e, 16);
	point_text(im, at + FIELD(WeftEntry, name), p->name);
	point_some(im, at + FIELD(WeftEntry, input), in, nin);
	point_some(im, at + FIELD(WeftEntry, output), out, nout);
	point_some(im, at + FIELD(WeftEntry, symbol), symbols, p->symbol.n);
	point_some(im, at + FIELD(WeftEntry, seen), seen, p->symbol.n);
	point_some(im, at + FIELD(WeftEntry, call), calls, p->call.n);
	point_symbol(im, at + FIELD(WeftEntry, sizes_fn), IMAGE_SIZES);
	point_symbol(im, at + FIELD(WeftEntry, run_fn), IMAGE_RUN);
	point(im, at + FIELD(WeftEntry, message), messages);
	return at;
}

/* ---- parameters ---- */

static uint64_t add_layout(Build *b, const Layout *l)
{
	uint64_t at = reserve(b->im, l->n * sizeof(WeftLayoutDim), 16);
	for (uint32_t d = 0; d < l->n; d++) {
		WeftLayoutDim w = {.axis = l->dim[d].axis, .divisor = l->dim[d].divisor};
		sym_is_const(b->p->ir->syms, l->dim[d].extent, &w.extent);
		sym_is_const(b->p->ir->syms, l->dim[d].padded, &w.padded);
		memcpy(b->im->data + at + d * sizeof w, &w, sizeof w);
	}
	return at;
}

static uint64_t add_params(Build *b)
{
	const Program *p = b->p;
	ModelImage *im = b->im;
	uint64_t at = reserve(im, p->constant.n * sizeof(WeftParamInfo), 16);
	for (uint32_t k = 0; k < p->constant.n; k++) {
		const ProgramConst *pc = &p->constant.data[k];
		const Const *c = ir_const_of(p->ir, pc->source);
		bool plain = pc->layout.n == 0 || layout_is_row_major(&pc->layout, c->rank);
		WeftParamInfo info = {.dtype = dtype_code(pc->dtype), .rank = c->rank,
		                      .nlayout = plain ? 0 : pc->layout.n, .offset = pc->offset, .bytes = pc->bytes};
		uint64_t here = at + k * sizeof info;
		memcpy(im->data + here, &info, sizeof info);
		point_text(im, here + FIELD(WeftParamInfo, name), c->is_param ? c->name : "");
		if (c->rank)
			point(im, here + FIELD(WeftParamInfo, dim), add(im, c->dim, c->rank * sizeof *c->dim, 16));
		if (!plain)
			point(im, here + FIELD(WeftParamInfo, layout), add_layout(b, &pc->layout));
	}
	return at;
}

/* ---- the model ---- */

static const char *features(const ModelImage *im, const Target *t)
{
	const char *more = t->isa.attribute_features;
	return more && *more ? arena_printf(im->arena, "%s %s", t->isa.features, more) : t->isa.features;
}

static uint64_t add_manifest(Build *b, const Target *t, const EmitOptions *o)
{
	ModelImage *im = b->im;
	uint64_t at = reserve(im, sizeof(WeftManifest), 16);
	point_text(im, at + FIELD(WeftManifest, name), b->p->name);
	point_text(im, at + FIELD(WeftManifest, weft_version), o->version);
	point_text(im, at + FIELD(WeftManifest, target), t->isa.name);
	point_text(im, at + FIELD(WeftManifest, features), features(im, t));
	point_text(im, at + FIELD(WeftManifest, source_hash), o->source_hash);
	point_text(im, at + FIELD(WeftManifest, compiler), o->compiler);
	return at;
}

static void point_runtime(ModelImage *im, uint64_t model)
{
	static const struct {
		size_t at;
		const char *name;
	} fn[] = {
		{FIELD(WeftModel, open), "weft_rt_open"}, {FIELD(WeftModel, close), "weft_rt_close"},
		{FIELD(WeftModel, sizes), "weft_rt_sizes"}, {FIELD(WeftModel, run), "weft_rt_run"},
		{FIELD(WeftModel, step), "weft_rt_step"}, {FIELD(WeftModel, set_weights), "weft_rt_set_weights"},
		{FIELD(WeftModel, threads_new), "weft_rt_threads_new"},
		{FIELD(WeftModel, threads_free), "weft_rt_threads_free"},
	};
	for (uint32_t k = 0; k < sizeof fn / sizeof *fn; k++)
		point_symbol(im, model + fn[k].at, fn[k].name);
}

static int by_place(const void *a, const void *b)
{
	const ImagePointer *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

void model_image(ModelImage *im, const Program *p, const Target *t, const EmitOptions *o)
{
	*im = (ModelImage){.arena = p->ir->ctx->arena};
	Build b = {im, p};
	uint32_t nstate;
	uint64_t states = add_tensors(&b, p->input.data, p->input.n, true, &nstate);
	uint64_t entry = add_entry(&b, nstate), params = add_params(&b), manifest = add_manifest(&b, t, o);
	uint64_t entries = reserve(im, sizeof(void *), 16);
	point(im, entries, entry);
	WeftModel m = {.size = sizeof m, .abi = WEFT_ABI_VERSION, .nentry = 1, .nparam = p->constant.n,
	               .replaceable = o->replaceable, .weights_bytes = p->weight_bytes, .state_bytes = p->state_bytes,
	               .state_init = p->state_init, .nstate = nstate};
	im->model = add(im, &m, sizeof m, 16);
	point(im, im->model + FIELD(WeftModel, manifest), manifest);
	point(im, im->model + FIELD(WeftModel, entry), entries);
	point_some(im, im->model + FIELD(WeftModel, param), params, p->constant.n);
	point_some(im, im->model + FIELD(WeftModel, state), states, nstate);
	if (o->weights_symbol)
		point_symbol(im, im->model + FIELD(WeftModel, weights), o->weights_symbol);
	if (o->weights_file)
		point_text(im, im->model + FIELD(WeftModel, weights_file), o->weights_file);
	if (o->weights_hash)
		point_text(im, im->model + FIELD(WeftModel, weights_hash), o->weights_hash);
	point_runtime(im, im->model);
	qsort(im->pointer.data, im->pointer.n, sizeof *im->pointer.data, by_place);
}
