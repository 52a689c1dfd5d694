/* Damaged and hostile archives: one clear error, never a crash. Archives of tests/data are taken
 * apart, changed and put together again in memory. tests/data/mangled.txt: what is said where a
 * value is of another kind; changed: where it is another one of its kind, or is not there, with
 * a hash of the graph where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/hash.h"
#include "frontend/files/archive.h"
#include "frontend/files/file.h"
#include "frontend/pt2/pt2.h"
#include "ir/build/text.h"
#include "tests/help/golden.h"
#include "tests/help/zip_file.h"

/* ---- zip files in memory ---- */

static ZipFile unpack(const char *name)
{
	ZipFile z = {0};
	Ctx *ctx = ctx_new();
	Archive a;
	assert_true(archive_open(ctx, arena_printf(ctx->arena, "%s/%s.pt2", TEST_DATA, name), &a));
	for (uint32_t k = 0; k < a.member.n; k++) {
		Bytes raw;
		assert_true(archive_read(ctx, &a, &a.member.data[k], &raw));
		zip_put(&z, a.member.data[k].name, raw.data, raw.size);
	}
	ctx_free(ctx);
	return z;
}

static ZipEntry *member(ZipFile *z, const char *tail)
{
	for (uint32_t k = 0; k < z->n; k++) {
		size_t n = strlen(z->entry[k].name), t = strlen(tail);
		if (n >= t && !strcmp(z->entry[k].name + n - t, tail))
			return &z->entry[k];
	}
	fail_msg("no member %s", tail);
	return NULL;
}

/* Replace the first occurrence of a text. */
static void edit(ZipEntry *e, const char *from, const char *to)
{
	char *at = strstr((char *)e->data, from);
	if (!at)
		fail_msg("%s does not hold %s", e->name, from);
	size_t before = (size_t)(at - (char *)e->data), tail = e->size - before - strlen(from);
	uint8_t *data = malloc(before + strlen(to) + tail + 1);
	memcpy(data, e->data, before);
	memcpy(data + before, to, strlen(to));
	memcpy(data + before + strlen(to), at + strlen(from), tail + 1);
	free(e->data);
	e->data = data;
	e->size = before + strlen(to) + tail;
}

/* ---- loading ---- */

static bool tell_graph; /* of what loads: a hash of its text */

static uint32_t text_of(const Graph *g)
{
	Text t;
	text_init(&t, g->ir->ctx->arena);
	graph_print(g, &t);
	uint64_t h = hash_bytes(t.data, t.n, 0);
	return (uint32_t)(h ^ h >> 32);
}

static size_t fail_at; /* the allocation that fails while loading; 0: none */

/* Load from a copy of exactly this size. False when it is refused; the errors, or the types of what
 * the graph gives, go to *text. */
static bool loads(const uint8_t *data, size_t size, const char *model, char *text, size_t cap)
{
	uint8_t *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	Ctx *ctx = ctx_new();
	volatile bool ok = false;
	text[0] = 0;
	int unwound = setjmp(ctx->unwind);
	arena_fail_after(unwound ? 0 : fail_at);
	if (unwound == UNWIND_BUG)
		fail_msg("bug: %s", ctx->bug_text);
	if (!unwound) {
		Graph *g = pt2_load_bytes(ir_new(ctx), "test.pt2", copy, size,
					  &(Pt2Options){.model = model});
		Text t;
		text_init(&t, ctx->arena);
		ctx_print(ctx, &t);
		for (uint32_t k = 0; g && k < g->output.n; k++)
			text_printf(&t, "%s %s%s", k ? "," : "loads, gives",
				    type_str(g->ir, node_type_id(g, g->output.data[k].node)),
				    k + 1 == g->output.n && !tell_graph ? "\n" : "");
		if (g && tell_graph)
			text_printf(&t, "%s, graph %08x\n", g->output.n ? "" : "loads", text_of(g));
		snprintf(text, cap, "%s", t.data ? t.data : "");
		ok = g != NULL;
		if (!g && !ctx->nerror)
			fail_msg("refused without an error");
	}
	ctx_free(ctx);
	free(copy);
	return ok;
}

static void refused(ZipFile *z, const char *model, const char *why)
{
	char text[4000];
	ZipBytes b = zip_pack(z);
	if (loads(b.data, b.size, model, text, sizeof text))
		fail_msg("loaded, expected: %s", why);
	if (!strstr(text, why))
		fail_msg("expected \"%s\", the error is: %s", why, text);
	if (strncmp(text, "test.pt2", 8))
		fail_msg("the error does not name the file: %s", text);
	free(b.data);
	zip_drop(z);
}

static void test_rebuilt(void **state)
{
	(void)state;
	char text[2000];
	ZipFile z = unpack("state");
	ZipBytes b = zip_pack(&z);
	assert_true(loads(b.data, b.size, NULL, text, sizeof text));
	assert_true(loads(b.data, b.size, "model", text, sizeof text));
	free(b.data);
	zip_drop(&z);
}

/* ---- one change each ---- */

static const struct {
	const char *archive, *member, *from, *to, *why;
} edits[] = {
	{"mlp", "byteorder", "little", "big", "big-endian archives are not supported"},
	{"mlp", "archive_format", "pt2", "pt3", "archive_format is \"pt3\""},
	{"mlp", "models/model.json", "{", "[", "models/model.json is not valid JSON: "},
	{"mlp", "models/model.json", "\"major\":8", "\"major\":6", "version 6 of PyTorch 2"},
	{"mlp", "models/model.json", "\"schema_version\"", "\"version\"", "no schema version"},
	{"mlp", "models/model.json", "aten.relu.default", "aten.frob.default",
	 "1 unsupported operator: torch.ops.aten.frob.default x1 (first at relu, "
	 "make_fixtures.py:81)"},
	{"mlp", "models/model.json", "aten.relu.default", "custom.relu.default",
	 "torch.ops.custom.relu.default x1"},
	{"mlp", "models/model.json", "{\"name\":\"self\"", "{\"name\":\"me\"",
	 "node relu (make_fixtures.py:"},
	{"mlp", "models/model.json", "{\"name\":\"weight\"", "{\"name\":\"wait\"",
	 "aten.linear has no argument wait"},
	{"mlp", "models/model.json", "{\"name\":\"p_a_weight\"}},\"kind\"",
	 "{\"name\":\"p_c\"}},\"kind\"", "tensor p_c is not defined"},
	{"mlp", "models/model.json", "\"dtype\":7", "\"dtype\":33",
	 "unsupported dtype f8e8m0fnu (code 33)"},
	{"mlp", "models/model.json", "\"layout\":7", "\"layout\":1", "is not strided"},
	{"mlp", "models/model.json", "{\"as_int\":8}", "{\"as_int\":9}",
	 "weight a.weight has another"},
	{"mlp", "models/model.json", "{\"as_int\":8}", "{\"as_int\":-8}", "negative"},
	{"mlp", "models/model.json", "{\"as_int\":8}",
	 "{\"as_expr\":{\"expr_str\":\"Foo(1)\",\"hint\":null}}", "unknown function Foo"},
	{"mlp", "models/model.json", "\"user_output\"", "\"token\"", "token outputs"},
	{"mlp", "models/model.json", "\"parameter\"", "\"custom_obj\"", "custom_obj inputs"},
	{"mlp", "weights_config.json", "\"weight_0\"", "\"weight_9\"",
	 "weight a.weight: the archive has no member data/weights/weight_9"},
	{"mlp", "weights_config.json", "\"a.weight\"", "\"z.weight\"",
	 "weight a.weight is in neither"},
	{"mlp", "weights_config.json", "\"use_pickle\":false", "\"use_pickle\":true",
	 "weight a.weight (data/weights/weight_0): error: not a zip archive"},
	{"mlp", "weights_config.json", "\"dtype\":7", "\"dtype\":33",
	 "unsupported dtype f8e8m0fnu"},
	{"mlp", "weights_config.json", "\"storage_offset\":{\"as_int\":0}",
	 "\"storage_offset\":{\"as_int\":1}",
	 "weight a.weight: member data/weights/weight_0 has 192"},
	{"mlp", "weights_config.json", "\"storage_offset\":{\"as_int\":0}",
	 "\"storage_offset\":{\"as_int\":-1}", "sizes, strides or offset are impossible"},
	{"mlp", "weights_config.json", "\"strides\":[{\"as_int\":6}",
	 "\"strides\":[{\"as_int\":4611686018427387904}",
	 "sizes, strides or offset are impossible"},
	{"mlp", "weights_config.json", "{\"config\"", "{\"confug\"", "is in neither weights"},
	{"scan", "models/model.json", "\"as_graph\"", "\"as_groph\"",
	 "argument 0: expected a graph"},
	{"control/size_branch", "models/model.json", "aten.cumsum.default", "aten.cumsum_.default",
	 "its graph writes one of its inputs"},
	{"control/while_in_while", "models/model.json", "aten.add.Tensor", "aten.add_.Tensor",
	 "its graph writes one of its inputs"},
	{"control/size_branch", "models/model.json", "\"as_tensors\"", "\"as_floats\"",
	 "operand 3: as_floats is not supported"},
	{"state", "models/model.json", "aten.copy_.default", "aten.copy__.default",
	 "torch.ops.aten.copy__.default"},
};

static void test_edits(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof edits / sizeof *edits; k++) {
		ZipFile z = unpack(edits[k].archive);
		edit(member(&z, edits[k].member), edits[k].from, edits[k].to);
		refused(&z, NULL, edits[k].why);
	}
}

static void test_unsupported_all(void **state)
{
	(void)state;
	ZipFile z = unpack("mlp");
	ZipEntry *e = member(&z, "models/model.json");
	edit(e, "aten.linear.default", "aten.frob.default");
	edit(e, "aten.linear.default", "aten.frob.default");
	edit(e, "aten.relu.default", "aten.burp.x");
	refused(&z, NULL,
		"2 unsupported operators: torch.ops.aten.burp.x x1 (first at relu, "
		"make_fixtures.py:81); "
		"torch.ops.aten.frob.default x2 (first at linear, linear.py:134)");
}

static void test_members(void **state)
{
	(void)state;
	ZipFile z = unpack("mlp");
	member(&z, "weight_0")->size = 100;
	refused(&z, NULL,
		"weight a.weight: member data/weights/weight_0 has 100 bytes, the tensor needs "
		"192");
	z = unpack("mlp");
	strcpy(member(&z, "models/model.json")->name, "mlp/nodels/model.json");
	refused(&z, NULL, "no model in this archive");
	z = unpack("mlp");
	refused(&z, "other", "no model other in this archive, it has model");
	z = unpack("mlp");
	zip_put(&z, "mlp/models/second.json", "{}", 2);
	refused(&z, NULL, "several models, choose one of model, second");
	z = (ZipFile){0};
	zip_put(&z, "m/data/aotinductor/model/x.so", "", 0);
	refused(&z, NULL, "AOTInductor");
	z = (ZipFile){0};
	zip_put(&z, "m/models/a.json", "{\"schema_version\":{\"major\":8}}", 30);
	zip_put(&z, "m/data/weights/a.pt", "text", 4); /* of PyTorch 2.8 */
	refused(&z, NULL, "data/weights/a.pt: error: not a zip archive");
	z = (ZipFile){0};
	static const char old[] = "{\"schema_version\":{\"major\":5}}",
			  flat[] = "{\"schema_version\":{\"major\":7}}";
	zip_put(&z, "serialized_exported_program.json", old, 30);
	zip_put(&z, "serialized_state_dict.pt", "text", 4); /* of PyTorch 2.7 and older */
	refused(&z, NULL, "schema version 5 is not supported, expected 7 or 8");
	z = (ZipFile){0};
	zip_put(&z, "serialized_exported_program.json", flat, 30);
	zip_put(&z, "serialized_state_dict.pt", "text", 4);
	refused(&z, "other", "no model other in this archive, it has model");
	z = (ZipFile){0};
	zip_put(&z, "serialized_exported_program.json", flat, 30);
	zip_put(&z, "serialized_state_dict.pt", "text", 4);
	refused(&z, NULL, "serialized_state_dict.pt: error: not a zip archive");
	z = (ZipFile){0};
	zip_put(&z, "same", "", 0);
	zip_put(&z, "same", "", 0);
	refused(&z, NULL, "two members are named same");
}

static void test_checksum(void **state)
{
	(void)state;
	char text[1000];
	ZipFile z = unpack("mlp");
	ZipBytes b = zip_pack(&z);
	uint8_t *weight = NULL;
	for (size_t k = 0; k + 8 < b.size && !weight; k++)
		if (!memcmp(b.data + k, member(&z, "weight_0")->data, 8))
			weight = b.data + k;
	weight[5] ^= 64;
	assert_false(loads(b.data, b.size, NULL, text, sizeof text));
	assert_non_null(strstr(text, "weight_0 is damaged: its checksum differs"));
	free(b.data);
	zip_drop(&z);
}

/* ---- many changes ---- */

static void test_truncated(void **state)
{
	(void)state;
	char text[4000];
	ZipFile z = unpack("mlp");
	ZipBytes b = zip_pack(&z);
	for (size_t n = 0; n < b.size; n += n < 64 || b.size - n < 1200 ? 1 : 97)
		if (loads(b.data, n, NULL, text, sizeof text))
			fail_msg("%zu of %zu bytes loaded", n, b.size);
	assert_true(loads(b.data, b.size, NULL, text, sizeof text));
	assert_false(loads(b.data, b.size - 30, NULL, text, sizeof text));
	assert_non_null(strstr(text, "truncated archive"));
	free(b.data);
	zip_drop(&z);
}

/* Anything may come of a changed byte, except a crash. */
static void test_flipped_bytes(void **state)
{
	(void)state;
	char text[4000];
	ZipFile z = unpack("mlp");
	ZipBytes b = zip_pack(&z);
	uint32_t seed = 1;
	for (int k = 0; k < 3000; k++) {
		seed = seed * 1664525 + 1013904223;
		size_t tail = k % 2 ? 1200 : b.size; /* every other one hits the directory */
		size_t at = b.size - 1 - seed % tail;
		uint8_t old = b.data[at];
		b.data[at] = (uint8_t)(seed >> 24);
		loads(b.data, b.size, NULL, text, sizeof text);
		b.data[at] = old;
	}
	free(b.data);
	zip_drop(&z);
}

/* Visit every value below `v` in order; the k-th is replaced. */
static bool replace_kth(json_t *v, uint32_t *k, json_t *by)
{
	const char *key;
	size_t i;
	json_t *x;
	void *tmp;
	if (json_is_object(v))
		json_object_foreach_safe(v, tmp, key, x)
		{
			if ((*k)-- == 0)
				return json_object_set(v, key, by) == 0;
			if (replace_kth(x, k, by))
				return true;
		}
	json_array_foreach(v, i, x)
	{
		if ((*k)-- == 0)
			return json_array_set(v, i, by) == 0;
		if (replace_kth(x, k, by))
			return true;
	}
	return false;
}

/* Another value of its kind; NULL for what is to go. *last is the string before this one. */
static json_t *other_value(const json_t *v, uint32_t which, const char **last)
{
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		return json_integer(which % 2 && json_integer_value(v) ? 0
								       : json_integer_value(v) + 1);
	case JSON_REAL: return json_real(json_real_value(v) + 1);
	case JSON_TRUE: return json_false();
	case JSON_FALSE: return json_true();
	case JSON_STRING:
		return json_string(*last && strcmp(*last, json_string_value(v)) != 0 ? *last : "x");
	default: return NULL;
	}
}

/* The other kind of changes: one less, a whole number for a fraction, a number for a bool, a longer
 * text or none, a list with its first twice or empty, an empty object, a number for nothing. */
static json_t *odd_value(const json_t *v, uint32_t which)
{
	json_t *list;
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		return json_integer(which % 2 ? -json_integer_value(v) : json_integer_value(v) - 1);
	case JSON_REAL:
		return which % 2 ? json_integer((json_int_t)json_real_value(v))
				 : json_string("Infinity");
	case JSON_TRUE: return json_integer(1);
	case JSON_FALSE: return json_integer(0);
	case JSON_STRING:
		return which % 2 ? json_string("") : json_sprintf("%s_1", json_string_value(v));
	case JSON_ARRAY:
		list = json_array();
		if (which % 2 && json_array_size(v)) {
			json_array_extend(list, (json_t *)v);
			json_array_append(list, json_array_get(v, 0));
		}
		return list;
	case JSON_OBJECT: return json_object();
	default: return json_integer(3);
	}
}

static bool odd; /* changes are of the other kind */

/* As replace_kth, by another value of its kind; what is a list or an object goes, with its key. */
static bool change_kth(json_t *v, uint32_t which, uint32_t *k, const char **last)
{
	const char *key;
	size_t i = 0;
	json_t *x;
	void *tmp;
	if (json_is_object(v))
		json_object_foreach_safe(v, tmp, key, x)
		{
			if ((*k)-- == 0) {
				json_t *by =
					odd ? odd_value(x, which) : other_value(x, which, last);
				return by ? json_object_set_new(v, key, by) == 0
					  : json_object_del(v, key) == 0;
			}
			*last = json_is_string(x) ? json_string_value(x) : *last;
			if (change_kth(x, which, k, last))
				return true;
		}
	for (i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		x = json_array_get(v, i);
		if ((*k)-- == 0) {
			json_t *by = odd ? odd_value(x, which) : other_value(x, which, last);
			return by ? json_array_set_new(v, i, by) == 0
				  : json_array_remove(v, i) == 0;
		}
		*last = json_is_string(x) ? json_string_value(x) : *last;
		if (change_kth(x, which, k, last))
			return true;
	}
	return false;
}

/* Every step-th value of a member becomes another one of its kind, or goes: what is said, or what
 * the graph becomes. */
static void change(const char *name, const char *file, uint32_t step, Text *out)
{
	char text[4000];
	ZipFile z = unpack(name);
	ZipEntry *e = member(&z, file);
	uint8_t *original = e->data;
	size_t size = e->size;
	tell_graph = true;
	for (uint32_t k = 0, done = 0; !done; k += step) {
		uint32_t left = k;
		const char *last = NULL;
		json_t *root = json_loadb((const char *)original, size, 0, NULL);
		done = !change_kth(root, k / step, &left, &last);
		e->data = (uint8_t *)json_dumps(root, JSON_COMPACT);
		e->size = strlen((char *)e->data);
		ZipBytes b = zip_pack(&z);
		if (!done) {
			loads(b.data, b.size, NULL, text, sizeof text);
			text_printf(out, "%s %u: %s", name, k, text);
		}
		free(b.data);
		free(e->data);
		json_decref(root);
	}
	tell_graph = false;
	e->data = original;
	e->size = size;
	zip_drop(&z);
}

/* Every step-th value of a member, in the order of the text, gives way to another one; what is said
 * of it goes to out, once for neighbours. */
static void mangle(const char *name, const char *file, uint32_t step, Text *out)
{
	char text[4000], last[4000] = "";
	ZipFile z = unpack(name);
	ZipEntry *e = member(&z, file);
	uint8_t *original = e->data;
	size_t size = e->size;
	json_t *by[] = {json_null(),
			json_integer(-3),
			json_string("x"),
			json_array(),
			json_object(),
			json_integer(1LL << 40),
			json_pack("{s:i}", "as_int", 7),
			json_true()};
	for (uint32_t k = 0;; k += step) {
		uint32_t left = k;
		json_t *root = json_loadb((const char *)original, size, 0, NULL);
		bool done = !replace_kth(root, &left, by[k / step % 8]);
		e->data = (uint8_t *)json_dumps(root, JSON_COMPACT);
		e->size = strlen((char *)e->data);
		ZipBytes b = zip_pack(&z);
		loads(b.data, b.size, NULL, text, sizeof text);
		if (!done && strcmp(text, last) != 0)
			text_printf(out, "%s %s %u: %s", name, file, k, text);
		memcpy(last, text, sizeof text);
		free(b.data);
		free(e->data);
		json_decref(root);
		if (done)
			break;
	}
	for (int k = 0; k < 8; k++)
		json_decref(by[k]);
	e->data = original;
	zip_drop(&z);
}

static void test_mangled_json(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	Text said;
	assert_non_null(ctx);
	assert_int_equal(setjmp(ctx->unwind), 0);
	text_init(&said, ctx->arena);
	mangle("mlp", "models/model.json", 1, &said);
	mangle("mlp", "weights_config.json", 1, &said);
	mangle("tied", "constants_config.json", 1, &said);
	mangle("state", "models/model.json", 3, &said);
	mangle("scan", "models/model.json", 3, &said);
	mangle("control/size_branch", "models/model.json", 2, &said);
	mangle("control/while_in_while", "models/model.json", 5, &said);
	mangle("dynamic", "models/model.json", 3, &said);
	mangle("views", "models/model.json", 5, &said);
	mangle("batch_norm", "models/model.json", 3, &said);
	golden_check(TEST_DATA "/mangled.txt", said.data);
	ctx_free(ctx);
}

static void test_changed_json(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t step;
	} models[] = {{"mlp", 1},
		      {"control/size_branch", 3},
		      {"control/while_in_while", 7},
		      {"dynamic", 3},
		      {"views", 7},
		      {"batch_norm", 5},
		      {"scan", 5},
		      {"state", 5},
		      {"import/bodies", 11},
		      {"import/numbers", 13},
		      {"import/items", 17},
		      {"import/calls", 7},
		      {"import/writes", 23},
		      {"import/weights", 11},
		      {"import/copies", 11},
		      {"import/memory", 11},
		      {"import/norms", 13},
		      {"import/complex", 7},
		      {"import/derived", 5},
		      {"import/outputs", 3},
		      {"import/divided", 5},
		      {"import/flags", 5},
		      {"import/tangle", 9},
		      {"import/operators", 17}};
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	assert_int_equal(setjmp(ctx->unwind), 0);
	for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
		Text said;
		text_init(&said, ctx->arena);
		change(models[k].name, "models/model.json", models[k].step, &said);
		golden_check(arena_printf(ctx->arena, TEST_DATA "/changed/%s.txt", models[k].name),
			     said.data);
	}
	ctx_free(ctx);
}

/* The other kind, and other models; configurations of weights too. */
static void test_odd_json(void **state)
{
	(void)state;
	static const char model[] = "models/model.json", weights[] = "weights_config.json";
	static const struct {
		const char *name, *file;
		uint32_t step;
	} members[] = {{"mlp", model, 7},
		       {"wrapped", model, 7},
		       {"wrapped", weights, 1},
		       {"torchao", model, 15},
		       {"tied", weights, 1},
		       {"import/weights", weights, 3},
		       {"import/tangle", weights, 3},
		       {"nested", model, 11},
		       {"nested_strict", model, 15},
		       {"control/branch", model, 15},
		       {"control/complex_loop", model, 15},
		       {"control/size_branch", model, 15},
		       {"sizes/uneven", model, 15},
		       {"sizes/head", model, 15},
		       {"import/fractions", model, 35},
		       {"import/in_place_views", model, 23},
		       {"import/items", model, 59},
		       {"import/numbers", model, 35},
		       {"import/norms", model, 47},
		       {"import/bodies", model, 23},
		       {"import/memory", model, 27},
		       {"import/writes", model, 63},
		       {"import/calls", model, 15},
		       {"import/outputs", model, 7},
		       {"import/derived", model, 15},
		       {"import/idle", model, 11},
		       {"import/flags", model, 15},
		       {"state", model, 11},
		       {"scan", model, 11},
		       {"dynamic", model, 11}};
	Ctx *ctx = ctx_new();
	Text said;
	assert_non_null(ctx);
	assert_int_equal(setjmp(ctx->unwind), 0);
	text_init(&said, ctx->arena);
	odd = true;
	for (size_t k = 0; k < sizeof members / sizeof *members; k++)
		change(members[k].name, members[k].file, members[k].step, &said);
	odd = false;
	golden_check(TEST_DATA "/../unit/models/changed.txt", said.data);
	ctx_free(ctx);
}

/* Every allocation of memory from the system fails once: the load unwinds and leaks nothing. */
static void test_out_of_memory(void **state)
{
	(void)state;
	char text[1000];
	ZipFile z = unpack("mlp_deflated");
	ZipBytes b = zip_pack(&z);
	bool ok = false;
	for (size_t n = 1; !ok && n < 1000; n++) {
		fail_at = n;
		ok = loads(b.data, b.size, NULL, text, sizeof text);
	}
	fail_at = 0;
	arena_fail_after(0);
	assert_true(ok);
	free(b.data);
	zip_drop(&z);
}

/* With an argument: the changes of the other kind alone. */
int main(int argc, char **argv)
{
	(void)argv;
	const struct CMUnitTest more[] = {cmocka_unit_test(test_odd_json)};
	if (argc > 1)
		return cmocka_run_group_tests(more, NULL, NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rebuilt),         cmocka_unit_test(test_edits),
		cmocka_unit_test(test_unsupported_all), cmocka_unit_test(test_members),
		cmocka_unit_test(test_checksum),        cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_flipped_bytes),   cmocka_unit_test(test_mangled_json),
		cmocka_unit_test(test_changed_json),    cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
