/* Nested inputs and outputs. The archive flattens them; the signature of the whole module, a
 * treespec of PyTorch's pytree as JSON within a JSON string, says what they were: [1, {"type",
 * "context", "children_spec"}]. Containers are told by their type, their members' names by the
 * context: [["a", "b"]] or the like, whatever the class. */
#include <string.h>

#include "frontend/files/json.h"
#include "frontend/pt2/priv.h"

enum { MAX_TREE_DEPTH = 32 };

typedef struct {
	Import *im;
	Tree *tree;
	PathKey path[MAX_TREE_DEPTH];
	ARRAY(JsonDoc *) doc; /* of JSON that stood in strings */
} TreeWalk;

static json_t *signature_of(const Import *im)
{
	json_t *entry, *graphs = json_object_get(json_object_get(im->root, "graph_module"),
						 "module_call_graph");
	size_t i;
	json_array_foreach(graphs, i, entry)
	{
		const char *fqn = json_str(entry, "fqn");
		if (fqn && !*fqn)
			return json_object_get(entry, "signature");
	}
	return NULL;
}

/* Parses a text; NULL for one that is absent or no JSON. */
static const json_t *parse(TreeWalk *w, const char *text)
{
	if (!text)
		return NULL;
	array_push(w->im->ctx->scratch, &w->doc,
		   json_read(w->im->ctx, text, strlen(text), JSON_DECODE_ANY));
	return w->doc.data[w->doc.n - 1]->root;
}

const char *tree_argument(const Import *im, size_t k)
{
	return json_string_value(
		json_array_get(json_object_get(signature_of(im), "forward_arg_names"), k));
}

/* Finds the list of n keys somewhere in a context: by itself, in a list or in an object. */
static const json_t *find_keys(const json_t *context, size_t n, int depth)
{
	const char *name;
	json_t *v;
	size_t i;
	if (depth > 3)
		return NULL;
	if (json_is_array(context) && json_array_size(context) == n) {
		bool keys = n > 0;
		json_array_foreach(context, i, v)
		{
			keys &= json_is_string(v) || json_is_integer(v);
		}
		if (keys)
			return context;
	}
	json_array_foreach(context, i, v)
	{
		const json_t *found = find_keys(v, n, depth + 1);
		if (found)
			return found;
	}
	json_object_foreach((json_t *)context, name, v)
	{
		const json_t *found = find_keys(v, n, depth + 1);
		if (found)
			return found;
	}
	return NULL;
}

/* Returns the fields of a named tuple. Its context is the name of its class, whose fields are
 * listed elsewhere. */
static const json_t *tuple_fields(const Import *im, const json_t *context)
{
	const json_t *all = json_object_get(json_object_get(im->root, "graph_module"),
					    "treespec_namedtuple_fields");
	const char *name = json_string_value(context);
	return name ? json_object_get(json_object_get(all, name), "field_names") : NULL;
}

static PathKey child_key(TreeWalk *w, const json_t *keys, size_t k)
{
	const json_t *v = json_array_get(keys, k);
	if (json_is_string(v))
		return (PathKey){arena_strdup(w->im->ctx->arena, json_string_value(v)), (int64_t)k};
	return (PathKey){NULL, json_is_integer(v) ? json_integer_value(v) : (int64_t)k};
}

static bool walk(TreeWalk *w, const json_t *spec, uint32_t depth)
{
	const json_t *children = json_object_get(spec, "children_spec");
	const char *type = json_str(spec, "type"), *context = json_str(spec, "context");
	Arena *arena = w->im->ctx->arena;
	if (!json_is_object(spec) || !json_is_array(children) || depth == MAX_TREE_DEPTH)
		return false;
	if (!type) {
		PathKey *key = ARENA_ARRAY(arena, PathKey, depth);
		memcpy(key, w->path, depth * sizeof *key);
		array_push(arena, &w->tree->leaf, (TreeLeaf){key, depth});
		return true;
	}
	const json_t *parsed = parse(w, context);
	const json_t *keys = strcmp(type, "collections.namedtuple")
				     ? find_keys(parsed, json_array_size(children), 0)
				     : tuple_fields(w->im, parsed);
	bool ok = true;
	for (size_t k = 0; k < json_array_size(children) && ok; k++) {
		w->path[depth] = child_key(w, keys, k);
		ok = walk(w, json_array_get(children, k), depth + 1);
	}
	return ok;
}

void tree_read(Import *im, const char *which, Tree *tree)
{
	TreeWalk w = {.im = im, .tree = tree};
	*tree = (Tree){0};
	if (!walk(&w, json_array_get(parse(&w, json_str(signature_of(im), which)), 1), 0))
		*tree = (Tree){0};
	for (uint32_t k = 0; k < w.doc.n; k++)
		json_release(w.doc.data[k]);
}

/* ---- the paths of guards ---- */

static bool key_matches(const PathKey *have, const PathKey *want)
{
	if (want->name)
		return have->name && !strcmp(have->name, want->name);
	return have->index == want->index; /* of a named tuple's member too */
}

static bool rest_matches(const TreeLeaf *leaf, uint32_t from, const PathKey *path, uint32_t n)
{
	if (leaf->n - from != n)
		return false;
	for (uint32_t k = 0; k < n; k++)
		if (!key_matches(&leaf->key[from + k], &path[k]))
			return false;
	return true;
}

/* Whether argument k is the member `index` of *name. It is called name_index then. */
static bool is_variadic(const Import *im, int64_t k, const char *name, int64_t index)
{
	const char *have = tree_argument(im, (size_t)k);
	size_t n = strlen(name);
	char digits[24];
	snprintf(digits, sizeof digits, "_%lld", (long long)index);
	return have && !strncmp(have, name, n) && !strcmp(have + n, digits);
}

/* Whether a leaf is what the path names. A leaf's first key is 0 for a positional argument, 1
 * for one by keyword; the second says which. */
static bool leaf_matches(const Import *im, const TreeLeaf *leaf, const PathKey *path, uint32_t n)
{
	if (leaf->n < 2)
		return false;
	const PathKey *arg = &leaf->key[1];
	if (leaf->key[0].index == 0) {
		const char *name = tree_argument(im, (size_t)arg->index);
		if (name && !strcmp(name, path[0].name) && rest_matches(leaf, 2, path + 1, n - 1))
			return true;
		return n > 1 && !path[1].name &&
		       is_variadic(im, arg->index, path[0].name, path[1].index) &&
		       rest_matches(leaf, 2, path + 2, n - 2);
	}
	if (arg->name && !strcmp(arg->name, path[0].name))
		return rest_matches(leaf, 2, path + 1, n - 1);
	for (size_t k = 0; tree_argument(im, k); k++)
		if (!strcmp(tree_argument(im, k), path[0].name))
			return false; /* another argument, not **name */
	return n > 1 && rest_matches(leaf, 1, path + 1, n - 1);
}

int64_t tree_find(const Import *im, const Tree *tree, const PathKey *path, uint32_t n)
{
	int64_t found = -1;
	if (!n || !path[0].name)
		return -1;
	if (!strcmp(path[0].name, "flat_args") && n == 2 && !path[1].name)
		return path[1].index >= 0 && path[1].index < (int64_t)tree->leaf.n ? path[1].index
										   : -1;
	for (uint32_t k = 0; k < tree->leaf.n; k++) {
		if (!leaf_matches(im, &tree->leaf.data[k], path, n))
			continue;
		if (found >= 0)
			return -1; /* it could be either */
		found = k;
	}
	return found;
}

const char *tree_name(Import *im, const TreeLeaf *leaf)
{
	Text text;
	bool named = false;
	text_init(&text, im->ctx->arena);
	for (uint32_t k = 0; k < leaf->n; k++) {
		text_add(&text, k ? "_" : "");
		if (leaf->key[k].name)
			text_add(&text, leaf->key[k].name);
		else
			text_printf(&text, "%lld", (long long)leaf->key[k].index);
		named |= leaf->key[k].name && *leaf->key[k].name;
	}
	return named ? text.data : NULL;
}
