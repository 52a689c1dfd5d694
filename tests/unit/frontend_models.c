/* Models that torch.export writes seldom, or that are wrong: what they become, or what is said of
 * them. Each case of a file in tests/unit/models is
 *
 *     ; ---- what it is
 *     graph @model(...) {...}          the model, and graphs for `body`
 *     set nodes.0.target "..."         then changes of its JSON, one per line
 *     =>                               and what it becomes
 *
 * set PATH JSON; drop PATH; body PATH NAME: an argument that is that graph; weight KIND TENSOR NAME
 * MEMBER: an input is a parameter, buffer or tensor_constant in that member; member NAME BYTES.
 * Paths begin at the graph, with @ at the root, with # at the configuration of weights. BLESS=1 in
 * the environment writes what comes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/pt2.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "tests/help/exported.h"
#include "tests/help/golden.h"

enum { MAX_GRAPHS = 6 };

typedef struct {
	Ctx *ctx;
	json_t *root, *weights;
	uint32_t ngraph;
	Graph *graph[MAX_GRAPHS]; /* the first is the model */
	ZipFile members;
} Model;

/* ---- changes ---- */

/* The place that a path names: what it is in, and the last word in *key. */
static json_t *find(Model *m, const char *path, const char **key)
{
	json_t *at = *path == '@' ? m->root : *path == '#' ? m->weights : exported_graph(m->root);
	path += *path == '@' || *path == '#';
	for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
		const char *word = arena_strndup(m->ctx->arena, path, (size_t)(dot - path));
		at = json_is_array(at) ? json_array_get(at, strtoul(word, NULL, 10))
				       : json_object_get(at, word);
	}
	if (!json_is_array(at) && !json_is_object(at))
		fail_msg("nothing is at %s", path);
	*key = path;
	return at;
}

static void set(Model *m, const char *path, json_t *value)
{
	const char *key;
	json_t *in = find(m, path, &key);
	if (!value)
		fail_msg("%s: no JSON", path);
	if (!json_is_array(in))
		assert_int_equal(json_object_set_new(in, key, value), 0);
	else if (strtoul(key, NULL, 10) < json_array_size(in))
		assert_int_equal(json_array_set_new(in, strtoul(key, NULL, 10), value), 0);
	else
		assert_int_equal(json_array_append_new(in, value), 0);
}

static void drop(Model *m, const char *path)
{
	const char *key;
	json_t *in = find(m, path, &key);
	assert_int_equal(json_is_array(in) ? json_array_remove(in, strtoul(key, NULL, 10))
					   : json_object_del(in, key),
			 0);
}

static void body(Model *m, const char *path, const char *name)
{
	for (uint32_t k = 1; k < m->ngraph; k++)
		if (!strcmp(m->graph[k]->name, name)) {
			json_t *root = exported(m->graph[k], ARGS_SHORT);
			set(m, path,
			    json_pack("{s:{s:s, s:O}}", "as_graph", "name", name, "graph",
				      exported_graph(root)));
			json_decref(root);
			return;
		}
	fail_msg("no graph %s", name);
}

/* The user input of that name is a weight. */
static void weight(Model *m, const char *kind, const char *tensor, const char *name,
		   const char *member)
{
	json_t *graph = exported_graph(m->root), *inputs = json_object_get(graph, "inputs");
	json_t *specs = json_object_get(
		json_object_get(json_object_get(m->root, "graph_module"), "signature"),
		"input_specs");
	for (size_t k = 0; k < json_array_size(inputs); k++)
		if (!strcmp(json_string_value(json_object_get(
				    json_object_get(json_array_get(inputs, k), "as_tensor"),
				    "name")),
			    tensor))
			json_array_set_new(
				specs, k,
				json_pack("{s:{s:{s:s}, s:s}}", kind, "arg", "name", tensor,
					  arena_printf(m->ctx->arena, "%s_name", kind), name));
	json_object_set_new(m->weights, name,
			    json_pack("{s:s, s:b, s:b, s:o}", "path_name", member, "is_param",
				      !strcmp(kind, "parameter"), "use_pickle", 0, "tensor_meta",
				      json_deep_copy(exported_tensor(m->root, tensor))));
}

static void member(Model *m, const char *name, size_t size)
{
	uint8_t *data = arena_alloc(m->ctx->arena, size);
	for (size_t k = 0; k < size; k++)
		data[k] = (uint8_t)(k * 7 % 64);
	zip_put(&m->members, arena_printf(m->ctx->arena, "m/data/weights/%s", name), data, size);
}

/* The next word of a line. */
static const char *word(Model *m, const char **p)
{
	*p += strspn(*p, " ");
	size_t n = strcspn(*p, " ");
	const char *w = arena_strndup(m->ctx->arena, *p, n);
	*p += n;
	return w;
}

static void change(Model *m, const char *line)
{
	const char *what = word(m, &line), *first = word(m, &line);
	if (!strcmp(what, "set")) {
		set(m, first, json_loads(line, JSON_DECODE_ANY, NULL));
	} else if (!strcmp(what, "drop")) {
		drop(m, first);
	} else if (!strcmp(what, "body")) {
		body(m, first, word(m, &line));
	} else if (!strcmp(what, "weight")) {
		const char *tensor = word(m, &line), *name = word(m, &line);
		weight(m, first, tensor, name, word(m, &line));
	} else if (!strcmp(what, "member")) {
		member(m, first, strtoul(line, NULL, 10));
	} else {
		fail_msg("no change: %s", what);
	}
}

/* ---- cases ---- */

/* The graphs in front, then the changes. */
static void make(Model *m, const char *text)
{
	Ir *ir = ir_new(m->ctx);
	const char *end;
	for (; !strncmp(text, "graph ", 6); text = end) {
		end = strstr(text, "\n}\n") + 3;
		assert_true(m->ngraph < MAX_GRAPHS);
		const char *one = arena_strndup(m->ctx->arena, text, (size_t)(end - text));
		m->graph[m->ngraph] = graph_parse(ir, one, one);
		if (!m->graph[m->ngraph++]) {
			Text said;
			text_init(&said, m->ctx->arena);
			ctx_print(m->ctx, &said);
			fail_msg("%s", said.data);
		}
		if (m->ngraph == 1)
			m->root = exported(m->graph[0], ARGS_SHORT);
	}
	assert_non_null(m->root);
	for (; *text; text = end) {
		size_t n = strcspn(text, "\n");
		end = text + n + (text[n] == '\n');
		change(m, arena_strndup(m->ctx->arena, text, n));
	}
}

/* What the archive becomes. */
static void load(Ctx *ctx, const ZipBytes *b, Text *out)
{
	Text t;
	text_init(&t, ctx->arena);
	Graph *g = pt2_load_bytes(ir_new(ctx), "m.pt2", b->data, b->size, NULL);
	ctx_print(ctx, &t);
	assert_true(g || ctx->nerror);
	if (g) {
		assert_true(graph_verify(g));
		graph_print(g, &t);
	}
	text_add(out, t.data);
}

static void run(const char *text, Text *out)
{
	Ctx *ctx = ctx_new(), *other = ctx_new();
	assert_true(ctx && other);
	if (setjmp(ctx->unwind) || setjmp(other->unwind))
		fail_msg("%s: %s%s", text, ctx->bug_text, other->bug_text);
	Model m = {.ctx = ctx, .weights = json_object()};
	make(&m, text);
	ZipFile z = m.members;
	char *config = json_dumps(m.weights, JSON_COMPACT),
	     *model = json_dumps(m.root, JSON_COMPACT);
	const char *wrapped = arena_printf(ctx->arena, "{\"config\":%s}", config);
	zip_put(&z, "m/models/model.json", model, strlen(model));
	zip_put(&z, "m/data/weights/model_weights_config.json", wrapped, strlen(wrapped));
	ZipBytes b = zip_pack(&z);
	load(other, &b, out);
	ctx_free(other); /* constants are in these bytes */
	free(b.data);
	zip_drop(&z);
	free(config);
	free(model);
	json_decref(m.root);
	json_decref(m.weights);
	ctx_free(ctx);
}

static char *whole_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size_t n = (size_t)ftell(f);
	rewind(f);
	char *text = malloc(n + 1);
	assert_int_equal(fread(text, 1, n, f), n);
	text[n] = 0;
	fclose(f);
	return text;
}

/* All cases of a file. */
static void check_file(const char *name)
{
	static const char begin[] = "; ---- ", arrow[] = "\n=>\n";
	char path[1000];
	snprintf(path, sizeof path, "%s/../unit/models/%s.txt", TEST_DATA, name);
	char *text = whole_file(path);
	Ctx *ctx = ctx_new();
	Text all;
	assert_non_null(ctx);
	text_init(&all, ctx->arena);
	for (const char *p = text; p && *p;) {
		const char *graph = strchr(p, '\n') + 1, *end = strstr(graph, arrow);
		if (strncmp(p, begin, strlen(begin)) != 0 || !end)
			fail_msg("no case: %.60s", p);
		text_addn(&all, p, (size_t)(end - p) + strlen(arrow));
		run(arena_strndup(ctx->arena, graph, (size_t)(end - graph) + 1), &all);
		p = strstr(end, "\n; ---- ");
		p += p != NULL;
	}
	golden_check(path, all.data);
	free(text);
	ctx_free(ctx);
}

static void test_arguments(void **state)
{
	(void)state;
	check_file("arguments");
}

static void test_memory(void **state)
{
	(void)state;
	check_file("memory");
}

static void test_sizes(void **state)
{
	(void)state;
	check_file("sizes");
}

static void test_names(void **state)
{
	(void)state;
	check_file("names");
}

static void test_weights(void **state)
{
	(void)state;
	check_file("weights");
}

static void test_control(void **state)
{
	(void)state;
	check_file("control");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_sizes),     cmocka_unit_test(test_names),
		cmocka_unit_test(test_weights),   cmocka_unit_test(test_control),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
