/* Loading model files the way the command line says. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

const char *load_option_given(const LoadArgs *a)
{
	static const LoadArgs none;
	a = a ? a : &none;
	const OptUse all[] = {{.given = a->values, .option = "--values"},
			      {.given = a->ignore_guard.n, .option = "--ignore-guard"},
			      {.given = a->output_names.n, .option = "--output-names"},
			      {.given = a->ops.n, .option = "--ops"},
			      {.given = a->ranks, .option = "--ranks"},
			      {.given = a->loop_bound.n, .option = "--loop-bound"},
			      {.given = a->mode.n, .option = "--set-mode"},
			      {.given = a->precision.n, .option = "--precision"},
			      {.given = a->activations.n, .option = "--activations"},
			      {.given = a->weights_from.n, .option = "--weights-from"},
			      {.given = a->weight_names, .option = "--weight-names"},
			      {.given = a->private_state.n, .option = "--private"},
			      {.given = a->same_state.n, .option = "--state"},
			      {.given = a->seed, .option = "--seed"},
			      {.given = a->rng, .option = "--rng"},
			      {.given = a->rng_cipher, .option = "--rng-cipher"}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k].given)
			return all[k].option;
	return NULL;
}

/* ---- NAME=FILE ---- */

/* Returns the length of NAME in "NAME=TEXT"; 0 if there is none. */
static size_t name_length(const char *text)
{
	size_t n = 0;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return text[n] == '=' && !isdigit((unsigned char)*text) ? n : 0;
}

bool is_entry(const char *arg)
{
	return name_length(arg) && access(arg, F_OK) != 0;
}

bool add_entry(LoadArgs *a, char *arg)
{
	size_t n = name_length(arg);
	if (a->entry.n == MAX_LIST)
		return fail_usage("more than %d entries", MAX_LIST), false;
	if (!arg[n + 1])
		return fail_usage("%s: expected NAME=FILE, a model file behind the =", arg), false;
	arg[n] = 0;
	a->entry.item[a->entry.n++] = arg;
	a->file.item[a->file.n++] = arg + n + 1;
	return true;
}

bool take_entries(LoadArgs *a, int *argc, char **argv)
{
	int n = 1;
	for (int k = 1; k < *argc; k++)
		if (!is_entry(argv[k]))
			argv[n++] = argv[k];
		else if (!add_entry(a, argv[k]))
			return false;
	*argc = n;
	return !a->entry.n || n == 1 ||
	       (fail_usage("%s: among several models each is named, as in NAME=%s", argv[1],
			   argv[1]),
		false);
}

const char *entry_file(const LoadArgs *a, const char *entry)
{
	char all[1000] = "";
	Guess g = {.word = entry ? entry : ""};
	for (uint32_t k = 0; k < a->entry.n; k++) {
		guess_offer(&g, a->entry.item[k], a->entry.item[k]);
		size_t n = strlen(all);
		if (entry ? !strcmp(a->entry.item[k], entry) : a->entry.n == 1)
			return a->file.item[k];
		snprintf(all + n, sizeof all - n, "%s%s", k ? ", " : "", a->entry.item[k]);
	}
	if (entry)
		return fail("no entry %s: there are %s%s", entry, all, guess_text(&g)), NULL;
	return fail("choose one of the entries with --entry: %s", all), NULL;
}

/* Returns TEXT of "NAME=TEXT"; NULL if it is of another one. */
static const char *of_entry(const char *text, const char *name)
{
	size_t n = strlen(name);
	return name_length(text) == n && !strncmp(text, name, n) ? text + n + 1 : NULL;
}

/* ---- one file ---- */

/* Picks what is said of one of the entries; NULL: of the only file. */
static uint32_t pick(const StringList *from, const char *entry, const char **out)
{
	uint32_t found = 0;
	for (uint32_t k = 0; k < from->n; k++) {
		const char *text = entry ? of_entry(from->item[k], entry) : from->item[k];
		if (text)
			out[found++] = text;
	}
	return found;
}

/* Splits a copy of "a,b" in place; returns the number of items. */
static uint32_t split(char *list, const char **item)
{
	uint32_t n = 0;
	for (char *p = list;; p++) {
		item[n++] = p;
		p += strcspn(p, ",");
		if (!*p)
			return n;
		*p = 0;
	}
}

/* Takes what is said of random numbers. */
static bool random_options(const LoadArgs *a, WeftLoadOptions *o)
{
	char *end = NULL;
	errno = 0;
	if (a->seed)
		o->seed = strtoull(a->seed, &end, 0);
	if (a->seed && (errno || *end || !isdigit((unsigned char)*a->seed)))
		return fail_usage("--seed is a number of 64 bits, not %s", a->seed), false;
	if (a->rng && strcmp(a->rng, "state") && strcmp(a->rng, "input"))
		return fail_usage("--rng is state or input, not %s", a->rng), false;
	if (a->rng_cipher && strcmp(a->rng_cipher, "philox") && strcmp(a->rng_cipher, "aes128-ctr"))
		return fail_usage("--rng-cipher is philox or aes128-ctr, not %s", a->rng_cipher),
		       false;
	o->rng_cipher = a->rng_cipher && strcmp(a->rng_cipher, "philox") ? a->rng_cipher : NULL;
	o->rng_input = a->rng && !strcmp(a->rng, "input");
	return !o->rng_input || !a->seed ||
	       (fail_usage("--seed is for --rng state: an input has the seed in it"), false);
}

static bool has_rng(const WeftTensorInfo *t, uint32_t n)
{
	for (uint32_t k = 0; t && k < n; k++)
		if (!strcmp(t[k].name, "weft.rng"))
			return true;
	return false;
}

static bool draws(Weft *w, const WeftGraph *g)
{
	uint32_t ns, ni;
	const WeftTensorInfo *s = weft_states(w, g, &ns), *i = weft_inputs(w, g, &ni);
	return has_rng(s, ns) || has_rng(i, ni);
}

/* Checks that one of the graphs at least draws what the options are about. */
static bool check_random(Weft *w, WeftGraph *const *g, uint32_t n, const LoadArgs *a)
{
	const char *given = a->seed         ? "--seed"
			    : a->rng        ? "--rng"
			    : a->rng_cipher ? "--rng-cipher"
					    : NULL;
	for (uint32_t k = 0; given && k < n; k++)
		if (draws(w, g[k]))
			return true;
	return !given ||
	       (fail("%s is for models that draw random numbers: none are drawn here", given),
		false);
}

/* Limits the rounds of loops by "NODE=N"; of several models NAME=NODE=N. */
static bool bound_loops(Weft *w, WeftGraph *g, const LoadArgs *a, const char *entry)
{
	const char *item[MAX_LIST];
	uint32_t n = pick(&a->loop_bound, entry, item);
	for (uint32_t k = 0; k < n; k++) {
		const char *equals = strrchr(item[k], '=');
		char node[256], *end = NULL;
		long long rounds = equals ? strtoll(equals + 1, &end, 10) : 0;
		size_t length = equals ? (size_t)(equals - item[k]) : 0;
		if (!length || length >= sizeof node || !isdigit((unsigned char)equals[1]) || *end)
			return fail_usage(
				       "--loop-bound %s: expected NODE=N, the name of a loop and a "
				       "number",
				       item[k]),
			       false;
		memcpy(node, item[k], length);
		node[length] = 0;
		if (!weft_bound_loop(w, g, node, rounds))
			return false;
	}
	return true;
}

/* Returns the last of an option's values for the entry, which counts; NULL: there is none. */
static const char *last_of(const StringList *list, const char *entry)
{
	const char *item[MAX_LIST];
	const uint32_t n = pick(list, entry, item);
	return n ? item[n - 1] : NULL;
}

/* Sets the mode. The last one counts, as of other options. */
static bool set_mode(Weft *w, WeftGraph *g, const LoadArgs *a, const char *entry)
{
	const char *mode = last_of(&a->mode, entry);
	if (mode && strcmp(mode, "train") && strcmp(mode, "eval"))
		return fail_usage("--set-mode is train or eval, not %s", mode), false;
	return !mode || weft_set_mode(w, g, strcmp(mode, "train") ? WEFT_EVAL : WEFT_TRAIN);
}

const char *precision_given(const LoadArgs *a, const char *entry)
{
	return last_of(&a->precision, entry);
}

const char *activations_given(const LoadArgs *a, const char *entry)
{
	return last_of(&a->activations, entry);
}

static uint32_t count_operators(Weft *w, const WeftGraph *g)
{
	uint32_t n, all = 0;
	const WeftOpCount *op = weft_operators(w, g, &n);
	for (uint32_t k = 0; op && k < n; k++)
		all += op[k].count;
	return all;
}

/* Sets the precision. Refuses a model of ONNX that the precision does not change: what autocast
 * changes gets conversions. */
static bool set_precision(Weft *w, WeftGraph *g, const char *path, const LoadArgs *a,
			  const char *entry)
{
	const char *to = precision_given(a, entry);
	if (to && strcmp(to, "bf16") && strcmp(to, "f16"))
		return fail_usage("--precision is bf16 or f16, not %s", to), false;
	const uint32_t before = count_operators(w, g);
	if (to && !weft_set_precision(w, g,
				      strcmp(to, "f16") ? WEFT_PRECISION_BF16 : WEFT_PRECISION_F16))
		return false;
	return !to || !has_suffix(path, ".onnx") || count_operators(w, g) != before ||
	       (fail("%s: --precision changes nothing: no operator of the model would compute in "
		     "%s",
		     path, to),
		false);
}

/* Sets the activations. The last ones count, as of other options. */
static bool set_activations(Weft *w, WeftGraph *g, const LoadArgs *a, const char *entry)
{
	const char *to = activations_given(a, entry);
	if (to && strcmp(to, "int8") && strcmp(to, "exact"))
		return fail_usage("--activations is int8 or exact, not %s", to), false;
	return !to ||
	       weft_set_activations(
		       w, g, strcmp(to, "exact") ? WEFT_ACTIVATIONS_INT8 : WEFT_ACTIVATIONS_EXACT);
}

/* Returns the file that --weights-from gives the entry: FILE, of NAME=FILE that of the entry NAME
 * only; NULL: it is of another entry. */
static const char *weights_of(const LoadArgs *a, const char *text, const char *entry)
{
	for (uint32_t k = 0; k < a->entry.n; k++) {
		const char *file = of_entry(text, a->entry.item[k]);
		if (file)
			return strcmp(a->entry.item[k], entry) ? NULL : file;
	}
	return text;
}

static bool load_weights(Weft *w, WeftGraph *g, const LoadArgs *a, const char *entry)
{
	const char *file[MAX_LIST];
	uint32_t n = 0;
	for (uint32_t k = 0; k < a->weights_from.n; k++)
		if ((file[n] = weights_of(a, a->weights_from.item[k], entry)))
			n++;
	return !n || weft_load_weights(w, g, file, n, a->weight_names);
}

static WeftGraph *load_file(Weft *w, const char *path, const LoadArgs *a, const char *entry)
{
	const char *guard[MAX_LIST], *names[MAX_LIST];
	WeftLoadOptions o = {.size = sizeof o, .ignore_guard = guard};
	o.nignore_guard = pick(&a->ignore_guard, entry, guard);
	if (!random_options(a, &o))
		return NULL;
	if (a->values && !(o.values = weft_tensors_read(w, a->values)))
		return NULL;
	uint32_t n = pick(&a->output_names, entry, names);
	size_t length = n ? strlen(names[n - 1]) : 0;
	char *text = malloc(length + 1);
	const char **item = malloc((length + 1) * sizeof *item);
	WeftGraph *g = NULL;
	if (text && item) {
		if (n) {
			memcpy(text, names[n - 1], length + 1);
			o.output_name = item;
			o.noutput_name = split(text, item);
		}
		g = weft_load_with(w, path, &o);
	} else {
		fail("out of memory");
	}
	free(item);
	free(text);
	if (!g || !load_weights(w, g, a, entry) || !bound_loops(w, g, a, entry))
		return NULL;
	return set_mode(w, g, a, entry) && set_precision(w, g, path, a, entry) &&
			       set_activations(w, g, a, entry)
		       ? g
		       : NULL;
}

/* ---- all of them ---- */

/* Checks that every text is of an entry that is there. */
static bool check_texts(const char *option, const StringList *text, const StringList *entry)
{
	for (uint32_t k = 0; entry->n && k < text->n; k++) {
		uint32_t e = 0;
		while (e < entry->n && !of_entry(text->item[k], entry->item[e]))
			e++;
		if (e == entry->n)
			return fail_usage("%s %s: of several models say of which, as in %s=%s",
					  option, text->item[k], entry->item[0], text->item[k]),
			       false;
	}
	return true;
}

static bool load_ops(Weft *w, const LoadArgs *a)
{
	for (uint32_t k = 0; k < a->ops.n; k++)
		if (!weft_op_load(w, a->ops.item[k]))
			return false;
	if (!a->ranks)
		return true;
	char *end;
	const long ranks = strtol(a->ranks, &end, 10);
	if (*end || end == a->ranks || ranks < 1 || ranks > 1 << 20)
		return fail_usage("--ranks %s: expected a number from 1 on", a->ranks), false;
	weft_ranks(w, (uint32_t)ranks);
	return true;
}

WeftGraph *load_model(Weft *w, const char *path, const LoadArgs *a, WeftGraph **one)
{
	static const LoadArgs none;
	WeftGraph *graph[MAX_LIST];
	a = a ? a : &none;
	one = one ? one : graph;
	if (!check_texts("--ignore-guard", &a->ignore_guard, &a->entry) ||
	    !check_texts("--loop-bound", &a->loop_bound, &a->entry) ||
	    !check_texts("--set-mode", &a->mode, &a->entry) ||
	    !check_texts("--precision", &a->precision, &a->entry) ||
	    !check_texts("--activations", &a->activations, &a->entry) ||
	    !check_texts("--output-names", &a->output_names, &a->entry) || !load_ops(w, a))
		return NULL;
	if (a->weight_names && !a->weights_from.n)
		return fail_usage("--weight-names is for --weights-from"), NULL;
	if (!a->entry.n && (a->private_state.n || a->same_state.n))
		return fail_usage("--private and --state are for several models, NAME=FILE"), NULL;
	if (!a->entry.n) {
		*one = load_file(w, path, a, NULL);
		return *one && check_random(w, one, 1, a) ? *one : NULL;
	}
	for (uint32_t k = 0; k < a->entry.n; k++)
		if (!(one[k] = load_file(w, a->file.item[k], a, a->entry.item[k])))
			return NULL;
	if (!check_random(w, one, a->entry.n, a))
		return NULL;
	const WeftJoinOptions o = {.size = sizeof o,
				   .nprivate = a->private_state.n,
				   .private_state = a->private_state.item,
				   .nsame = a->same_state.n,
				   .same_state = a->same_state.item};
	return weft_join_with(w, a->entry.n, a->entry.item, one, &o);
}

void link_with_ops(WeftOptions *o, const LoadArgs *a)
{
	if (o->nlink || !a)
		return;
	o->nlink = a->ops.n;
	o->link = a->ops.item;
}
