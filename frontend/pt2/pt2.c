/* The driver of the .pt2 importer: archive -> JSON -> symbols -> inputs, nodes, outputs.
 *
 * The nodes are read twice when the graph writes parameters or buffers in place: which ones it
 * writes is known only at the end, and those must be inputs where the others are constants. */
#include "frontend/pt2/pt2.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/files/file.h"
#include "frontend/files/json.h"
#include "frontend/pt2/priv.h"
#include "ir/build/verify.h"

/* ---- archive members ---- */

typedef struct {
	JsonDoc *doc[3]; /* NULL: there is no such member */
} JsonRoots;

/* Makes strings of Infinity, -Infinity and NaN, which PyTorch 2.5 and 2.6 write though JSON does
 * not have them, as later versions do. */
static Bytes quote_numbers(Ctx *ctx, Bytes text)
{
	static const char *const word[] = {"-Infinity", "Infinity", "NaN"};
	const char *from = (const char *)text.data, *end = from + text.size, *kept = from;
	bool string = false;
	Text out;
	text_init(&out, ctx->scratch);
	for (const char *p = from; p < end; p++) {
		if (string && *p == '\\' && p + 1 < end)
			p++;
		else if (*p == '"')
			string = !string;
		for (size_t k = 0; k < sizeof word / sizeof *word && !string; k++) {
			size_t n = strlen(word[k]);
			if ((size_t)(end - p) < n || memcmp(p, word[k], n))
				continue;
			text_addn(&out, kept, (size_t)(p - kept));
			text_printf(&out, "\"%s\"", word[k]);
			kept = p + n;
			p = kept - 1;
			break;
		}
	}
	if (!out.n)
		return text;
	text_addn(&out, kept, (size_t)(end - kept));
	return (Bytes){(const uint8_t *)out.data, out.n};
}

/* Parses a text as JSON; numbers that JSON does not have are looked for only if it is none. */
static JsonDoc *parse_text(Ctx *ctx, Bytes text)
{
	JsonDoc *doc = json_read(ctx, text.data, text.size, 0);
	if (doc->root)
		return doc;
	const Bytes quoted = quote_numbers(ctx, text);
	if (quoted.data == text.data)
		return doc;
	json_release(doc);
	return json_read(ctx, quoted.data, quoted.size, 0);
}

/* Parses a member as JSON into *slot; an absent one leaves NULL. Returns false after ctx_error. */
static bool read_json(Import *im, const char *name, JsonDoc **slot)
{
	Bytes text;
	Member *m = archive_find(im->archive, name);
	if (!m)
		return true;
	TRY(archive_read_text(im->ctx, im->archive, m, &text));
	*slot = parse_text(im->ctx, text);
	const json_error_t *err = &(*slot)->error;
	if (!(*slot)->root)
		return ctx_error(im->ctx, NULL, "%s is not valid JSON: %s (line %d, column %d)",
				 name, err->text, err->line, err->column) ||
		       ctx_kind(im->ctx, REFUSAL_FILE);
	return json_is_object((*slot)->root) ||
	       ctx_error(im->ctx, NULL, "%s: expected an object", name) ||
	       ctx_kind(im->ctx, REFUSAL_FILE);
}

static bool check_text(Import *im, const char *name, const char *want, const char *why)
{
	Bytes text;
	Member *m = archive_find(im->archive, name);
	if (!m)
		return true;
	TRY(archive_read_text(im->ctx, im->archive, m, &text));
	size_t n = strlen(want);
	if (text.size >= n && !memcmp(text.data, want, n))
		return true;
	return ctx_error(im->ctx, NULL, "%s is \"%.*s\", expected \"%s\"%s", name,
			 text.size > 32 ? 32 : (int)text.size, (const char *)text.data, want, why);
}

/* Returns "a" of "<root>models/a.json"; NULL for other members. */
static const char *model_name(Import *im, const Member *m)
{
	size_t root = strlen(im->archive->root), n = strlen(m->name), dir = strlen("models/");
	if (n < root + dir + 6 || strncmp(m->name + root, "models/", dir) ||
	    strcmp(m->name + n - 5, ".json"))
		return NULL;
	return arena_strndup(im->ctx->arena, m->name + root + dir, n - root - dir - 5);
}

/* The other zip archives that hold something of a model, by a part of a member's name. */
static const struct {
	const char *member, *what;
} archives[] = {
	{"data/aotinductor/", "an AOTInductor archive holds compiled code and no graph"},
	{"/code/", "an archive of TorchScript (torch.jit.save)"},
	{"/data.pkl", "an archive of torch.save holds pickled tensors or modules and no graph"},
	{".npy", "an archive of NumPy holds arrays and no graph"},
	{"model.weights.h5", "an archive of Keras"},
};

static bool no_model(Import *im)
{
	for (size_t i = 0; i < sizeof archives / sizeof *archives; i++)
		for (uint32_t k = 0; k < im->archive->member.n; k++)
			if (strstr(im->archive->member.data[k].name, archives[i].member))
				return ctx_error(im->ctx, NULL,
						 "%s: save the program with torch.export.save",
						 archives[i].what);
	return ctx_error(im->ctx, NULL,
			 "no model in this archive (no member models/<name>.json)") ||
	       ctx_kind(im->ctx, REFUSAL_FILE);
}

static bool choose_model(Import *im, const char *want)
{
	Text all;
	uint32_t n = 0;
	text_init(&all, im->ctx->scratch);
	for (uint32_t k = 0; k < im->archive->member.n; k++) {
		const char *name = model_name(im, &im->archive->member.data[k]);
		if (!name)
			continue;
		text_printf(&all, "%s%s", n++ ? ", " : "", name);
		if (!want || !strcmp(want, name))
			im->model = im->model ? im->model : name;
	}
	if (!n)
		return no_model(im);
	if (!im->model)
		return ctx_error(im->ctx, NULL, "no model %s in this archive, it has %s", want,
				 all.data);
	if (!want && n > 1)
		return ctx_error(im->ctx, NULL, "this archive has several models, choose one of %s",
				 all.data);
	return true;
}

static bool check_version(Import *im)
{
	const json_t *v = json_object_get(im->root, "schema_version");
	const json_t *major = json_object_get(v, "major");
	const char *torch = json_str(im->root, "torch_version");
	if (!json_is_integer(major))
		return ctx_error(im->ctx, NULL, "no schema version: not a model of torch.export") ||
		       ctx_kind(im->ctx, REFUSAL_FILE);
	if (json_integer_value(major) < 7 || json_integer_value(major) > 8)
		return ctx_error(im->ctx, NULL,
				 "schema version %lld%s%s is not supported, expected 7 or 8 "
				 "(PyTorch 2.5 and later)",
				 (long long)json_integer_value(major), torch ? " of PyTorch " : "",
				 torch ? torch : "") ||
		       ctx_kind(im->ctx, REFUSAL_VERSION);
	return true;
}

static json_t *root_of(const JsonRoots *r, int k)
{
	return r->doc[k] ? r->doc[k]->root : NULL;
}

/* The members of the model: the graph, then the configurations and the dictionaries (PyTorch 2.8)
 * of weights and constants, around the model's name. */
static const struct {
	const char *before, *after;
} members[] = {{"models/", ".json"},
	       {"data/weights/", "_weights_config.json"},
	       {"data/constants/", "_constants_config.json"},
	       {"data/weights/", ".pt"},
	       {"data/constants/", ".pt"}};

static const char *member_of(Import *im, size_t k)
{
	return arena_printf(im->ctx->scratch, "%s%s%s", members[k].before, im->model,
			    members[k].after);
}

/* Opens an archive of PyTorch 2.8 and later. */
static bool open_archive(Import *im, const char *want, JsonRoots *roots)
{
	TRY(check_text(im, "archive_format", "pt2", ""));
	TRY(check_text(im, "byteorder", "little", ": big-endian archives are not supported"));
	TRY(choose_model(im, want));
	for (size_t k = 0; k < 3; k++)
		TRY(read_json(im, member_of(im, k), &roots->doc[k]));
	im->root = root_of(roots, 0);
	TRY(check_version(im));
	for (size_t k = 0; k < 2; k++)
		TRY(saved_open(im, member_of(im, 3 + k), &im->saved[k]));
	im->weights = json_object_get(root_of(roots, 1), "config");
	im->constants = json_object_get(root_of(roots, 2), "config");
	return true;
}

/* PyTorch 2.5 to 2.7: one model, without a folder. */
static const char flat_model[] = "serialized_exported_program.json";

static bool open_flat(Import *im, const char *want, JsonRoots *roots)
{
	im->model = "model";
	if (want && strcmp(want, im->model))
		return ctx_error(im->ctx, NULL, "no model %s in this archive, it has %s", want,
				 im->model);
	TRY(read_json(im, flat_model, &roots->doc[0]));
	im->root = root_of(roots, 0);
	TRY(check_version(im));
	TRY(saved_open(im, "serialized_state_dict.pt", &im->saved[0]));
	return saved_open(im, "serialized_constants.pt", &im->saved[1]);
}

static bool open_model(Import *im, const char *want, JsonRoots *roots)
{
	if (archive_find(im->archive, flat_model))
		TRY(open_flat(im, want, roots));
	else
		TRY(open_archive(im, want, roots));
	tree_read(im, "in_spec", &im->input_tree);
	tree_read(im, "out_spec", &im->output_tree);
	return true;
}

/* ---- signature ---- */

static const struct {
	const char *tag, *name;
	InputKind kind;
	bool is_param;
} spec_kinds[] = {
	{"parameter", "parameter_name", INPUT_PARAM, true},
	{"buffer", "buffer_name", INPUT_BUFFER, true},
	{"tensor_constant", "tensor_constant_name", INPUT_BUFFER, false},
};

/* Whether an input or output is a token: the order of operators with effects, which is that of
 * nodes here. */
static bool is_token(const json_t *spec)
{
	return json_object_get(spec, "token");
}

/* Reads the state behind each input spec, weights loaded. */
static bool read_state(Import *im)
{
	size_t i;
	json_t *spec, *v;
	im->state = ARENA_ARRAY(im->ctx->arena, StateSpec, json_array_size(im->inputs));
	json_array_foreach(im->inputs, i, spec)
	{
		const char *tag = json_tag(spec, &v);
		if (tag && (!strcmp(tag, "user_input") || !strcmp(tag, "constant_input") ||
			    is_token(spec)))
			continue;
		for (size_t k = 0; k < sizeof spec_kinds / sizeof *spec_kinds && tag; k++) {
			if (strcmp(tag, spec_kinds[k].tag))
				continue;
			const char *name = json_str(v, spec_kinds[k].name);
			if (!name)
				return ctx_error(im->ctx, NULL, "input %zu: %s without a name", i,
						 tag);
			im->state[i] = (StateSpec){.name = arena_strdup(im->ctx->arena, name),
						   .kind = spec_kinds[k].kind};
			TRY(weight_load(im, name, spec_kinds[k].is_param, &im->state[i]));
			Const *c = &im->ir->constant.data[im->state[i].constant.i];
			if (spec_kinds[k].kind == INPUT_BUFFER && im->state[i].constant.i) {
				c->is_buffer = true;
				c->transient = json_is_false(json_object_get(v, "persistent"));
			}
		}
		if (!im->state[i].name)
			return ctx_error(im->ctx, NULL, "input %zu: %s inputs are not supported", i,
					 tag ? tag : "malformed");
	}
	share_find(im, (uint32_t)i);
	return true;
}

static const struct {
	const char *tag, *name;
	bool of_user; /* the name is a user input's */
} mutations[] = {
	{"buffer_mutation", "buffer_name", false},
	{"parameter_mutation", "parameter_name", false},
	{"user_input_mutation", "user_input_name", true},
};

/* Returns the name of a graph input that is a tensor. */
static const char *input_name(Import *im, const json_t *graph, size_t i)
{
	json_t *v;
	(void)im;
	const char *tag = json_tag(json_array_get(json_object_get(graph, "inputs"), i), &v);
	return tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
}

/* Returns the input spec that an output spec writes, or -1; sets *value to the tensor written. */
static int32_t mutation_of(Import *im, const json_t *graph, const json_t *output,
			   const char **value)
{
	json_t *v;
	const char *tag = json_tag(output, &v);
	for (size_t k = 0; k < sizeof mutations / sizeof *mutations && tag; k++) {
		const char *name = json_str(v, mutations[k].name);
		if (strcmp(tag, mutations[k].tag) || !name)
			continue;
		*value = json_str(json_object_get(v, "arg"), "name");
		for (size_t i = 0; i < json_array_size(im->inputs); i++) {
			const char *in =
				mutations[k].of_user ? input_name(im, graph, i) : im->state[i].name;
			if (in && !strcmp(in, name) && (mutations[k].of_user == !im->state[i].name))
				return (int32_t)i;
		}
	}
	return -1;
}

static bool is_mutation(const json_t *output)
{
	json_t *v;
	const char *tag = json_tag(output, &v);
	for (size_t k = 0; k < sizeof mutations / sizeof *mutations && tag; k++)
		if (!strcmp(tag, mutations[k].tag))
			return true;
	return false;
}

/* ---- one pass ---- */

typedef struct {
	Scope scope;
	State state;
	int32_t *input_of; /* graph input by spec, or -1 */
} Pass;

static bool check_weight(Import *im, const StateSpec *spec, const Meta *m)
{
	const Const *c = ir_const_of(im->ir, spec->constant);
	bool same = c->dtype == m->dtype && c->rank == m->rank;
	for (uint32_t k = 0; k < m->rank && same; k++)
		same = sym_is(im->syms, m->size[k], c->dim[k]);
	return same || ctx_error(im->ctx, NULL,
				 "weight %s has another dtype or shape in the weights "
				 "config than in the graph",
				 spec->name);
}

static bool add_input(Pass *p, size_t i)
{
	Import *im = p->state.im;
	StateSpec *spec = &im->state[i];
	const char *name = input_name(im, p->scope.graph, i);
	const StateSpec *owner = &im->state[spec->owner];
	Meta m;
	if (!name)
		return ctx_error(im->ctx, NULL,
				 "input %zu is not a tensor: only tensor inputs are supported", i);
	if (spec->wrapped && spec->written)
		return ctx_error(im->ctx, NULL,
				 "weight %s wraps tensors and is written: that is not supported",
				 spec->name);
	if (spec->wrapped) {
		wrapped_bind(im, name, spec->wrapped);
		return true;
	}
	TRY(scope_meta(&p->scope, name, &m));
	if (spec->same_as != i && !owner->written)
		return scope_bind(&p->scope, name, im->state[spec->same_as].value);
	Node n;
	if (spec->name)
		TRY(check_weight(im, spec, &m));
	if (owner != spec && owner->written) {
		uint32_t view = share_view(&p->scope, (uint32_t)i, owner->value, name);
		return view && scope_bind(&p->scope, name, view);
	}
	if (spec->member && spec->written)
		m = spec->meta; /* as its views count */
	if (!spec->name || spec->written) {
		n = graph_add_input(p->state.g, spec->name ? spec->name : name, spec->kind,
				    meta_type(im, &m));
		p->input_of[i] = (int32_t)p->state.g->input.n - 1;
		p->state.g->input.data[p->input_of[i]].init =
			spec->name ? spec->constant : (ConstId){0};
	} else {
		n = b_const(&p->scope.b, spec->constant);
		graph_set_name(p->state.g, n, name);
	}
	uint32_t v = value_new(&p->state, n, &m);
	p->state.storage.data[p->state.value.data[v].storage].spec = (int32_t)i;
	spec->value = v;
	return scope_bind(&p->scope, name, v);
}

/* Whether an input spec is no input: Python values that were baked into the graph, and tokens,
 * are none. */
static bool is_no_input(Import *im, size_t i, const json_t *graph)
{
	json_t *v;
	if (is_token(json_array_get(im->inputs, i)))
		return true;
	const char *tag = json_tag(json_array_get(json_object_get(graph, "inputs"), i), &v);
	if (im->state[i].name || !tag)
		return false;
	return strcmp(tag, "as_tensor") != 0 && strncmp(tag, "as_sym_", 7) != 0;
}

static bool add_inputs(Pass *p)
{
	Import *im = p->state.im;
	size_t n = json_array_size(im->inputs);
	if (json_array_size(json_object_get(p->scope.graph, "inputs")) != n)
		return ctx_error(im->ctx, NULL, "the signature lists %zu inputs, the graph %zu", n,
				 json_array_size(json_object_get(p->scope.graph, "inputs")));
	for (int round = 0; round < 3; round++) /* users', written state, constants and views of
	                                           state */
		for (size_t i = 0; i < n; i++) {
			const StateSpec *s = &im->state[i];
			int when = !s->name ? 0 : s->written && s->owner == i ? 1 : 2;
			if (when == round && !is_no_input(im, i, p->scope.graph))
				TRY(add_input(p, i));
		}
	return true;
}

/* Adds the output of a user: a tensor, or a number as a 0-d tensor. None has no output. */
static bool add_user_output(Pass *p, const json_t *arg, size_t i, const char *named)
{
	Scope *s = &p->scope;
	json_t *v;
	const char *tag = json_tag(arg, &v), *name = json_str(v, "name");
	const char *label =
		named ? named : arena_printf(p->state.im->ctx->scratch, "output_%zu", i);
	Sym sym;
	if (tag && !strcmp(tag, "as_none"))
		return true;
	if (tag && (!strcmp(tag, "as_int") || !strcmp(tag, "as_sym_int"))) {
		TRY(arg_sym(s, tag, v, &sym));
		graph_add_output(p->state.g, label, b_from_size(&s->b, sym), -1);
		return true;
	}
	uint32_t number = 0;
	if (tag && !strcmp(tag, "as_sym_float") && json_str(v, "as_name"))
		number = scope_find(s, json_str(v, "as_name"));
	if (number) {
		Node x = b_convert(&s->b, value_read(&p->state, &s->b, number), DT_f32);
		graph_add_output(p->state.g, label, x, -1);
		return true;
	}
	if (tag && (!strcmp(tag, "as_float") || !strcmp(tag, "as_bool"))) {
		Attr x;
		TRY(arg_scalar(s, label, tag, v, &x));
		graph_add_output(
			p->state.g, label,
			b_full_attr(&s->b, x.kind == ATTR_bool ? DT_bool : DT_f32, x, 0, NULL), -1);
		return true;
	}
	uint32_t value = tag && !strcmp(tag, "as_tensor") && name ? scope_find(s, name) : 0;
	if (!value)
		return ctx_error(p->state.im->ctx, NULL, "output %zu: %s %s is not supported", i,
				 tag ? tag : "malformed", name ? name : "");
	graph_add_output(p->state.g, named ? named : name, value_read(&p->state, &s->b, value), -1);
	return true;
}

static bool is_output(const Graph *g, const char *name)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!strcmp(g->output.data[k].name, name))
			return true;
	return false;
}

/* Returns what the model calls its k-th result: the keys of dictionaries, the fields of classes.
 * NULL when it has no name, or another one has it. */
static const char *output_name(Pass *p, size_t k)
{
	const Tree *tree = &p->state.im->output_tree;
	const char *name = k < tree->leaf.n ? tree_name(p->state.im, &tree->leaf.data[k]) : NULL;
	return name && !is_output(p->state.g, name) ? name : NULL;
}

static bool add_outputs(Pass *p)
{
	Import *im = p->state.im;
	size_t i, user = 0;
	json_t *spec, *v, *outputs = json_object_get(p->scope.graph, "outputs");
	if (json_array_size(outputs) != json_array_size(im->outputs))
		return ctx_error(im->ctx, NULL, "the signature lists %zu outputs, the graph %zu",
				 json_array_size(im->outputs), json_array_size(outputs));
	json_array_foreach(im->outputs, i, spec)
	{
		const char *tag = json_tag(spec, &v);
		const char *token =
			is_token(spec) ? json_str(json_object_get(v, "arg"), "name") : NULL;
		if (token && !scope_find(&p->scope, token))
			continue;
		if (!tag || is_token(spec)) /* a tensor as a token */
			return ctx_error(im->ctx, NULL, "output %zu: %s outputs are not supported",
					 i, tag ? tag : "malformed");
		if (is_mutation(spec))
			continue;
		TRY(add_user_output(p, json_array_get(outputs, i), i, output_name(p, user)));
		user++;
	}
	return true;
}

static const char *spec_label(Pass *p, int32_t spec)
{
	const char *name = p->state.im->state[spec].name;
	return name ? name : input_name(p->state.im, p->scope.graph, (size_t)spec);
}

/* Adds outputs that replace inputs: stated by the signature, or written in place. */
static bool add_writes(Pass *p)
{
	Import *im = p->state.im;
	size_t i, n = json_array_size(im->inputs);
	uint32_t *value = ARENA_ARRAY(im->ctx->scratch, uint32_t, n);
	json_t *output;
	for (uint32_t k = 1; k < p->state.storage.n; k++) {
		const Storage *s = &p->state.storage.data[k];
		if (s->spec >= 0 && s->version > 0)
			value[s->spec] = s->base;
	}
	json_array_foreach(im->outputs, i, output)
	{
		if (!is_mutation(output))
			continue;
		const char *name = NULL;
		int32_t spec = mutation_of(im, p->scope.graph, output, &name);
		uint32_t v = name ? scope_find(&p->scope, name) : 0;
		if (spec < 0 || !v)
			return ctx_error(im->ctx, NULL,
					 "output %zu writes an unknown input or value", i);
		if (im->state[spec].owner != (uint32_t)spec)
			return ctx_error(im->ctx, NULL,
					 "output %zu replaces %s, which is part of the memory of "
					 "%s: expected in-place operators",
					 i, im->state[spec].name,
					 im->state[im->state[spec].owner].name);
		value[spec] = v;
	}
	for (i = 0; i < n; i++) {
		if (!value[i])
			continue;
		Node node = value_read(&p->state, &p->scope.b, value[i]);
		if (p->input_of[i] >= 0) {
			if (node_type_id(p->state.g, node).i !=
			    node_type_id(p->state.g, p->state.g->input.data[p->input_of[i]].node).i)
				return ctx_error(im->ctx, NULL,
						 "the value written to %s has another type",
						 spec_label(p, (int32_t)i));
			graph_add_output(p->state.g, spec_label(p, (int32_t)i), node,
					 p->input_of[i]);
		}
		share_written(im, (uint32_t)i);
	}
	return true;
}

/* Imports the graph once. Sets *again if state turned out to be written that this pass took for
 * constant. */
static bool run_pass(Import *im, Graph **out, bool *again)
{
	json_t *graph = json_object_get(json_object_get(im->root, "graph_module"), "graph");
	size_t n = json_array_size(im->inputs);
	Pass p;
	*out = graph_new(im->ir, im->model);
	state_init(&p.state, im, *out);
	scope_init(&p.scope, &p.state, graph);
	p.input_of = ARENA_ARRAY(im->ctx->arena, int32_t, n);
	memset(p.input_of, -1, n * sizeof *p.input_of);
	TRY(share_check(im, (uint32_t)n));
	TRY(add_inputs(&p));
	TRY(scope_nodes(&p.scope));
	TRY(add_outputs(&p));
	TRY(add_writes(&p));
	if (p.state.rewrote)
		graph_dce(*out);
	*again = false;
	for (size_t i = 0; i < n; i++)
		*again |= im->state[i].written && im->state[i].owner == i && p.input_of[i] < 0;
	return true;
}

/* Whether the graph is decomposed. The archive names the dialect it was checked as: TRAINING as
 * exported, else what is left of that by run_decompositions(). */
static bool is_decomposed(const json_t *root)
{
	size_t i;
	const json_t *v, *verifiers = json_object_get(root, "verifiers");
	json_array_foreach(verifiers, i, v)
	{
		if (json_is_string(v) && !strcmp(json_string_value(v), "TRAINING"))
			return false;
	}
	return json_array_size(verifiers) > 0;
}

static bool import_graph(Import *im, Graph **out)
{
	json_t *module = json_object_get(im->root, "graph_module");
	json_t *graph = json_object_get(module, "graph");
	json_t *signature = json_object_get(module, "signature");
	im->inputs = json_object_get(signature, "input_specs");
	im->outputs = json_object_get(signature, "output_specs");
	if (!json_is_object(graph) || !json_is_array(im->inputs) || !json_is_array(im->outputs))
		return ctx_error(im->ctx, NULL, "models/%s.json has no graph or no signature",
				 im->model);
	im->decomposed = is_decomposed(im->root);
	TRY(targets_check(im, graph));
	TRY(meta_symbols(im));
	TRY(read_state(im));
	size_t i;
	json_t *output;
	json_array_foreach(im->outputs, i, output)
	{
		const char *value;
		int32_t spec = mutation_of(im, graph, output, &value);
		if (spec >= 0)
			share_written(im, (uint32_t)spec);
	}
	bool again;
	TRY(run_pass(im, out, &again));
	if (again)
		TRY(run_pass(im, out, &again));
	if (again)
		return ctx_error(im->ctx, NULL, "cannot tell which buffers the graph writes");
	(*out)->decomposed = im->decomposed;
	(*out)->exported = true;
	TRY(meta_guards(im, *out));
	TRY(graph_verify(*out)); /* adopted types may contradict what primitives compute */
	return true;
}

Graph *pt2_load_archive(Ir *ir, Archive *archive, const Pt2Options *options)
{
	static const Pt2Options none;
	Ctx *ctx = ir->ctx;
	ctx->file = archive->path;
	Import im = {.ir = ir,
		     .ctx = ctx,
		     .syms = ir->syms,
		     .archive = archive,
		     .options = options ? options : &none};
	JsonRoots roots = {0};
	Graph *g = NULL;
	im.ignored = ARENA_ARRAY(ctx->arena, bool, im.options->nignore);
	intern_init(&im.wrapped_name, ctx->arena);
	uint32_t before = ctx->nerror;
	bool ok = open_model(&im, im.options->model, &roots) && import_graph(&im, &g);
	if (!ok && ctx->nerror == before)
		ctx_error(ctx, NULL, "cannot be imported");
	for (int k = 0; k < 3; k++)
		if (roots.doc[k])
			json_release(roots.doc[k]);
	if (ok && ctx->nerror == before)
		return g;
	ctx_kind(ctx, REFUSAL_FORM);
	return NULL;
}

Graph *pt2_load_bytes(Ir *ir, const char *path, const void *data, size_t size,
		      const Pt2Options *options)
{
	Archive archive;
	ir->ctx->file = arena_strdup(ir->ctx->arena, path);
	if (!archive_open_bytes(ir->ctx, path, data, size, &archive))
		return NULL;
	return pt2_load_archive(ir, &archive, options);
}

Graph *pt2_load(Ir *ir, const char *path, const Pt2Options *options)
{
	FileMap map;
	if (!file_map_full(ir->ctx, path, &map))
		return NULL;
	return pt2_load_bytes(ir, path, map.data, map.size, options);
}
