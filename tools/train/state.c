/* weft state */
#include <fnmatch.h>
#include <stdlib.h>

#include "tools/tool.h"
#include "weft_checkpoint.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is taken", false},
	{"--only PATTERN",
	 "tensors whose names are like it, as a shell matches files: 'state.*' (repeatable; "
	 "default: all)",
	 true},
	{"--from FILE", "of set: the checkpoint or shared object that has the new values", true},
	{NULL, "What is written", false},
	{"-o FILE", "of get and set: .safetensors, or .npz", true},
	{0}};

const Command command_state = {
	.name = "state",
	.summary = "list, read and change the state of models that train",
	.usage = "list|get|set STEP.so|CHECKPOINT [options]",
	.about = "list prints name, type and role of each tensor of the state with which a shared "
		 "object begins, or of a checkpoint. get writes these tensors into a file, which "
		 "weft_checkpoint_load, weft train --resume, weft compile --weights-from and "
		 "safetensors in Python read. set writes a checkpoint in which tensors have the "
		 "values of another file: --from STEP.so --only 'state.*' begins with a new state "
		 "of the optimiser.",
	.more = "",
	.row = rows,
	.run = run};

typedef struct {
	const char *out, *from;
	StringList only;
} StateArgs;

/* Tensors of a file, or of a shared object, in memory of its own. */
typedef struct {
	const char *path;
	Runner r;
	WeftTensors *tensors;
	void **memory; /* by state */
} Source;

/* ---- what is read ---- */

/* Adds the tensors of state k, whose data are in memory. */
static bool add_state(Weft *w, Source *s, uint32_t k)
{
	const WeftModel *m = s->r.model;
	const WeftTensorInfo *info = weft_state_info(m, k);
	uint32_t first;
	const uint32_t parts = weft_checkpoint_parts(m, k, &first);
	int64_t shape[WEFT_CHECKPOINT_RANK];
	char name[WEFT_CHECKPOINT_NAME], *data = s->memory[k];
	WeftTensor t = {.device = {WEFT_CPU, 0}, .dtype = info->dtype, .shape = shape};
	t.ndim = parts ? 0 : (int32_t)info->rank;
	for (int32_t d = 0; d < t.ndim; d++)
		shape[d] = weft_dim(m, info, (uint32_t)d)->value;
	for (uint32_t i = 0; i < weft_checkpoint_tensors(m, k); i++) {
		t.data = data + (size_t)i * (t.dtype.bits / 8u);
		if (weft_checkpoint_name(m, k, i, name) ||
		    !weft_tensors_add(w, s->tensors, name, &t))
			return fail_messages(w), false;
	}
	return true;
}

static bool read_model(Weft *w, Source *s)
{
	const RunnerOptions o = {.any_entry = true};
	WeftStatus status;
	if (!runner_open(&s->r, s->path, &o))
		return false;
	const WeftModel *m = s->r.model;
	if (weft_checkpoint_check(m, s->r.instance, s->path, &status))
		return fail("%s", status.message), false;
	s->tensors = weft_tensors_new(w);
	s->memory = calloc(m->nstate, sizeof *s->memory);
	if (!s->tensors || !s->memory)
		return fail("out of memory"), false;
	for (uint32_t k = 0; k < m->nstate; k++) {
		s->memory[k] = malloc(weft_checkpoint_bytes(m, weft_state_info(m, k)) + 1);
		if (!s->memory[k])
			return fail("out of memory"), false;
		if (weft_checkpoint_move(m, s->r.instance, k, 0, s->memory[k], &status))
			return fail("%s: %s", s->path, status.message), false;
		if (!add_state(w, s, k))
			return false;
	}
	return true;
}

static bool read_source(Weft *w, Source *s, const char *path)
{
	s->path = path;
	if (is_shared_object(path))
		return read_model(w, s);
	s->tensors = weft_tensors_read(w, path);
	return s->tensors || (fail_messages(w), false);
}

static void close_source(Source *s)
{
	for (uint32_t k = 0; s->memory && k < s->r.model->nstate; k++)
		free(s->memory[k]);
	free(s->memory);
	runner_close(&s->r);
}

/* ---- patterns ---- */

static bool is_chosen(const StateArgs *a, const char *name)
{
	bool any = !a->only.n;
	for (uint32_t k = 0; k < a->only.n; k++)
		any |= !fnmatch(a->only.item[k], name, 0);
	return any;
}

/* Refuses a pattern that no tensor is like. */
static bool check_patterns(const StateArgs *a, const Source *s)
{
	for (uint32_t k = 0; k < a->only.n; k++) {
		bool any = false;
		for (uint32_t i = 0; i < weft_tensors_count(s->tensors); i++)
			any |= !fnmatch(a->only.item[k], weft_tensors_name(s->tensors, i), 0);
		if (!any)
			return fail("%s: no tensor is like %s", s->path, a->only.item[k]), false;
	}
	return true;
}

/* ---- what is done ---- */

/* Returns what the tensor of that name is for; "": that is not known. */
static const char *role_of(const Source *s, const char *name)
{
	char own[WEFT_CHECKPOINT_NAME];
	for (uint32_t k = 0; s->r.model && k < s->r.model->nstate; k++)
		for (uint32_t i = 0; i < weft_checkpoint_tensors(s->r.model, k); i++)
			if (!weft_checkpoint_name(s->r.model, k, i, own) && !strcmp(own, name))
				return weft_state_info(s->r.model, k)->role;
	return "";
}

static bool list(const StateArgs *a, const Source *s)
{
	char type[16];
	for (uint32_t k = 0; k < weft_tensors_count(s->tensors); k++) {
		const char *name = weft_tensors_name(s->tensors, k), *role = role_of(s, name);
		const WeftTensor *t = weft_tensors_at(s->tensors, k);
		if (!is_chosen(a, name))
			continue;
		printf("%s  %s[", name, dtype_text(t->dtype, type));
		for (int32_t d = 0; d < t->ndim; d++)
			printf("%s%lld", d ? ", " : "", (long long)t->shape[d]);
		printf("]%s%s\n", *role ? "  " : "", role);
	}
	return true;
}

/* Returns the value that the tensor gets; NULL after a message. */
static const WeftTensor *value_of(const StateArgs *a, const Source *from, const char *name,
				  const WeftTensor *old)
{
	const WeftTensor *t =
		from->tensors && is_chosen(a, name) ? weft_tensors_find(from->tensors, name) : old;
	if (!t)
		return fail("%s: no tensor %s", from->path, name), NULL;
	if (memcmp(&t->dtype, &old->dtype, sizeof t->dtype) != 0 || t->ndim != old->ndim ||
	    memcmp(t->shape, old->shape, (size_t)t->ndim * sizeof *t->shape) != 0)
		return fail("%s: %s has another dtype or shape", from->path, name), NULL;
	return t;
}

/* Copies the texts of a file; a shared object has none. */
static bool copy_texts(Weft *w, const Source *s, WeftTensors *out)
{
	const char *key;
	if (s->r.model)
		return weft_tensors_set_meta(w, out, "weft.checkpoint", "1");
	for (uint32_t k = 0; (key = weft_tensors_meta_key(s->tensors, k)); k++)
		if (strcmp(key, "complex") != 0 && /* is written anew */
		    !weft_tensors_set_meta(w, out, key, weft_tensors_meta(s->tensors, key)))
			return false;
	return true;
}

/* Writes the tensors: of get those that are chosen, of set all of them, with values of `from`. */
static bool write_tensors(Weft *w, const StateArgs *a, const Source *s, const Source *from)
{
	WeftTensors *out = weft_tensors_new(w);
	bool ok = out && copy_texts(w, s, out);
	for (uint32_t k = 0; ok && k < weft_tensors_count(s->tensors); k++) {
		const char *name = weft_tensors_name(s->tensors, k);
		if (!from->tensors && !is_chosen(a, name))
			continue;
		const WeftTensor *t = value_of(a, from, name, weft_tensors_at(s->tensors, k));
		if (!t)
			return false;
		ok = weft_tensors_add(w, out, name, t);
	}
	return (ok && weft_tensors_write(w, out, a->out)) || (fail_messages(w), false);
}

static bool parse(StateArgs *a, int *argc, char **argv)
{
	const Opt opt[] = {{"--only", OPT_LIST, &a->only},
			   {"--from", OPT_STRING, &a->from},
			   {"-o", OPT_STRING, &a->out},
			   {0}};
	if (!options_parse(&command_state, opt, argc, argv))
		return false;
	if (*argc != 3)
		return fail_usage("state takes list, get or set, and one file; see weft state "
				  "--help"),
		       false;
	const bool lists = !strcmp(argv[1], "list"), sets = !strcmp(argv[1], "set");
	if (!lists && !sets && strcmp(argv[1], "get") != 0)
		return fail_usage("state: list, get or set, not %s", argv[1]), false;
	if (lists == !!a->out)
		return fail_usage(lists ? "state list prints: -o is for get and set"
					: "state %s writes a file: name it with -o",
				  argv[1]),
		       false;
	if (sets == !a->from)
		return fail_usage(sets ? "state set: name the file with the values by --from"
				       : "--from is for state set"),
		       false;
	return !a->out || has_suffix(a->out, ".safetensors") || has_suffix(a->out, ".npz") ||
	       (fail_usage("-o %s: the name ends with .safetensors or .npz", a->out), false);
}

static bool act(Weft *w, const StateArgs *a, const char *path, Source *s, Source *from)
{
	if (!read_source(w, s, path) || (a->from && !read_source(w, from, a->from)) ||
	    !check_patterns(a, s))
		return false;
	return a->out ? write_tensors(w, a, s, from) : list(a, s);
}

static int run(int argc, char **argv)
{
	StateArgs a = {0};
	Source s = {0}, from = {0};
	if (!parse(&a, &argc, argv))
		return argc == -1 ? 0 : 1;
	Weft *w = weft_new();
	const bool ok = w ? act(w, &a, argv[2], &s, &from) : (fail("out of memory"), false);
	close_source(&s);
	close_source(&from);
	weft_free(w);
	return ok ? 0 : 1;
}
