/* weft run */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "Tensors", false},
	{"--inputs FILE",
	 "repeatable: one call after the other, on the state that the one before left. A file with "
	 "inputs for several calls numbers them: 0.x.0, 0.x.1, 1.x.0, ...; what a call has none of "
	 "is as before. Outputs of several calls are 0.y.0, 1.y.0, ...",
	 true},
	{"--outputs FILE",
	 ".safetensors, .npz or .npy; written whole or not at all, never over an input", true},
	{"--load-state FILE",
	 "begin with this state: a tensor for each one of the model's, named like it (also by a "
	 "tied one's other names, with equal values)",
	 false},
	{"--save-state FILE",
	 "write the state after the last call; may be the file it was loaded from", false},
	{"--json", "print shapes and time", true},
	PROGRESS_HELP,
	{NULL, "How it runs", false},
	{"--threads N", "default: as many as there are processors", true},
	{"--entry NAME", "which one to run where there are several", false},
	{"--backend jit|c|llvm|loops|gpu-host|interp",
	 "compiled in this process (jit: the default where weft has LLVM), to an object by a C "
	 "compiler (c) or by LLVM and a linker (llvm); its loop IR interpreted, "
	 "with every access to memory checked (loops: slow, needs no compiler); "
	 "of a target that is a GPU its CUDA C, "
	 "compiled by a C++ compiler for this processor (gpu-host); or the graph interpreted "
	 "(interp)",
	 true},
	{"--device cuda|cuda:N", "run on a GPU of this machine; a model file is compiled for it",
	 false},
	{"--target NAME|FILE", "for a model file: see weft compile", false},
	{"--tune NAME|FILE", "for a model file: see weft compile", false},
	{"--cc COMMAND", "for a model file: C compiler, and --backend c", false},
	MODE_HELP("(default: inputs)"),
	LOAD_HELP,
	{0}};

const Command command_run = {
	.name = "run",
	.summary = "run a model on tensors from a file",
	.usage = "MODEL|MODEL.so|NAME=MODEL... --inputs FILE --outputs FILE [options]",
	.about = "Run a model. Inputs are the tensors x.0, x.1, ... of a .safetensors or .npz "
		 "file, or those named like the model's inputs; outputs are y.0, y.1, ... A single "
		 "input or output may be a .npy file.",
	.more = "Complex tensors are stored as real pairs listed in the metadata of the file.",
	.row = rows,
	.run = run};

typedef struct {
	StringList inputs;
	const char *outputs, *backend, *device, *entry, *load_state, *save_state, *mode, *wrt;
	ModeArgs transform;
	int threads;
	bool json, progress;
	WeftOptions o;
	LoadArgs load;
} RunArgs;

/* What a call gave, while the next one runs. */
typedef struct {
	WeftTensor *tensor;
	uint32_t n;
} Outputs;

typedef struct {
	Weft *w; /* of the files */
	Runner *r;
	const RunArgs *a;
	Outputs *call;
	uint32_t ncall, capacity;
	bool numbered;
	double seconds;
} Session;

static bool is_tensor_file(const char *option, const char *path)
{
	static const char *const known[] = {".safetensors", ".npz", ".npy"};
	size_t n = strlen(path);
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (n > strlen(known[k]) && !strcmp(path + n - strlen(known[k]), known[k]))
			return true;
	return fail_usage("%s %s: the name ends with .safetensors, .npz or .npy, which says what "
		    "is written",
		    option, path),
	       false;
}

/* Describes the last call. */
static void describe(const Session *s)
{
	Json j = {.f = stdout};
	char type[16];
	json_open(&j, NULL, '{');
	json_put_number(&j, "seconds", s->seconds);
	json_put_number(&j, "calls", s->ncall);
	json_open(&j, "outputs", '[');
	for (uint32_t k = 0; s->ncall && k < s->r->noutput; k++) {
		const WeftTensor *t = &s->call[s->ncall - 1].tensor[k];
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", runner_output(s->r, k)->name);
		json_put_string(&j, "dtype", dtype_text(t->dtype, type));
		json_open(&j, "shape", '[');
		for (int32_t d = 0; d < t->ndim; d++)
			json_put_number(&j, NULL, (double)t->shape[d]);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* ---- outputs ---- */

static void free_outputs(Outputs *o)
{
	for (uint32_t k = 0; o->tensor && k < o->n; k++) {
		free(o->tensor[k].data);
		free(o->tensor[k].shape);
	}
	free(o->tensor);
}

static bool copy_tensor(const WeftTensor *from, WeftTensor *to)
{
	size_t rank = (size_t)from->ndim, n = bytes_of(from);
	*to = (WeftTensor){.device = from->device, .ndim = from->ndim, .dtype = from->dtype};
	to->data = malloc(n + 1);
	to->shape = malloc((rank + 1) * sizeof *to->shape);
	if (!to->data || !to->shape)
		return false;
	memcpy(to->data, (char *)from->data + from->byte_offset, n);
	memcpy(to->shape, from->shape, rank * sizeof *to->shape);
	return true;
}

/* Keeps the results, which the runner has until its next call. */
static bool keep_outputs(Session *s)
{
	if (s->ncall == s->capacity) {
		uint32_t capacity = 2 * s->capacity + 4;
		Outputs *more = realloc(s->call, capacity * sizeof *more);
		if (!more)
			return fail("out of memory"), false;
		s->call = more;
		s->capacity = capacity;
	}
	Outputs *o = &s->call[s->ncall++];
	*o = (Outputs){calloc(s->r->noutput + 1, sizeof *o->tensor), s->r->noutput};
	bool ok = o->tensor;
	for (uint32_t k = 0; ok && k < o->n; k++)
		ok = copy_tensor(&s->r->result[k], &o->tensor[k]);
	return ok || (fail("out of memory"), false);
}

static bool write_outputs(const Session *s)
{
	WeftTensors *t = weft_tensors_new(s->w);
	bool ok = t;
	for (uint32_t c = 0; c < s->ncall; c++)
		for (uint32_t k = 0; ok && k < s->r->noutput; k++) {
			char text[512];
			TensorKey key;
			if (!runner_output_key(s->r, k, &key))
				continue;
			key_text(&key, s->numbered || s->ncall > 1 ? (int)c : -1, text,
				 sizeof text);
			ok = weft_tensors_add(s->w, t, text, &s->call[c].tensor[k]);
		}
	ok = ok && weft_tensors_write(s->w, t, s->a->outputs);
	return ok || (fail_messages(s->w), false);
}

/* ---- calls ---- */

static bool call(Session *s, const WeftTensor *in)
{
	Runner *r = s->r;
	if (!runner_prepare(r, in))
		return false;
	double start = now();
	progress_show("call %u", (unsigned)s->ncall + 1);
	bool ok = runner_call(r, in, s->a->threads, NULL, NULL);
	s->seconds += now() - start;
	return ok && keep_outputs(s);
}

static bool call_with(Session *s, const char *file)
{
	WeftTensors *t = weft_tensors_read(s->w, file);
	if (!t)
		return fail_messages(s->w), false;
	WeftTensor *in = calloc(s->r->ninput + 1, sizeof *in);
	bool ok = (in || (fail("out of memory"), false)) && runner_takes_all(s->r, t, file);
	int n = runner_calls(t);
	s->numbered |= n > 0;
	if (ok && !n)
		ok = runner_inputs(s->r, t, file, in) && call(s, in);
	for (int k = 0; ok && k < n; k++)
		ok = runner_call_inputs(s->r, t, file, k, in) && call(s, in);
	free(in);
	return ok;
}

static bool execute(Weft *w, Runner *r, const RunArgs *a)
{
	Session s = {.w = w, .r = r, .a = a};
	if ((a->load_state || a->save_state) && !runner_nstate(r))
		return fail("the model has no state"), false;
	bool ok = !a->load_state || runner_load_state(r, w, a->load_state);
	for (uint32_t k = 0; ok && k < a->inputs.n; k++)
		ok = call_with(&s, a->inputs.item[k]);
	progress_show("writing %s", a->outputs);
	ok = ok && write_outputs(&s) && (!a->save_state || runner_save_state(r, w, a->save_state));
	progress_end();
	if (ok && a->json)
		describe(&s);
	for (uint32_t k = 0; k < s.ncall; k++)
		free_outputs(&s.call[k]);
	free(s.call);
	return ok;
}

/* Checks that neither output is written over what is read. */
static bool check_paths(const RunArgs *a, const char *model)
{
	const char *out[] = {a->outputs, a->save_state};
	if (!is_tensor_file("--outputs", a->outputs) ||
	    (a->save_state && !is_tensor_file("--save-state", a->save_state)))
		return false;
	for (size_t o = 0; o < 2; o++) {
		if (!out[o])
			continue;
		if (!keep_input(out[o], model) || !keep_input(a->outputs, a->load_state))
			return false;
		for (uint32_t k = 0; k < a->inputs.n; k++)
			if (!keep_input(out[o], a->inputs.item[k]))
				return false;
	}
	bool same = a->save_state &&
		    (!strcmp(a->outputs, a->save_state) || !keep_input(a->save_state, a->outputs));
	return !same || (fail_usage("--outputs and --save-state are one file"), false);
}

/* Finds out what is asked for with --mode: what the first file has. */
static bool ask(Weft *w, RunArgs *a)
{
	a->transform.path = a->inputs.item[0];
	a->transform.file = a->transform.mode ? weft_tensors_read(w, a->transform.path) : NULL;
	return !a->transform.mode || a->transform.file || (fail_messages(w), false);
}

static bool run_model(RunArgs *a, const char *model)
{
	Runner r;
	RunnerOptions ro = {.compile = &a->o,
			    .load = &a->load,
			    .entry = a->entry,
			    .mode = &a->transform,
			    .device = a->device};
	if (!parse_backend(a->backend, &ro.backend) || !parse_mode(a->mode, a->wrt, &a->transform))
		return false;
	Weft *w = weft_new();
	bool ok = w ? ask(w, a) : (fail("out of memory"), false);
	if (ok && runner_open(&r, model, &ro)) {
		if (r.w && weft_nmessages(r.w)) /* warnings */
			progress_clear(), fputs(weft_messages(r.w), stderr);
		ok = execute(w, &r, a);
		runner_close(&r);
	} else {
		ok = false;
	}
	weft_free(w);
	return ok;
}

static int run(int argc, char **argv)
{
	RunArgs a = {.o = {.size = sizeof a.o}};
	const Opt opt[] = {{"--entry", OPT_STRING, &a.entry},
			   {"--inputs", OPT_LIST, &a.inputs},
			   {"--outputs", OPT_STRING, &a.outputs},
			   {"--load-state", OPT_STRING, &a.load_state},
			   {"--save-state", OPT_STRING, &a.save_state},
			   {"--backend", OPT_STRING, &a.backend},
			   {"--mode", OPT_STRING, &a.mode},
			   {"--wrt", OPT_STRING, &a.wrt},
			   {"--randomness", OPT_STRING, &a.transform.randomness},
			   {"--in-dims", OPT_STRING, &a.transform.in_dims},
			   {"--out-dims", OPT_STRING, &a.transform.out_dims},
			   {"--threads", OPT_INT, &a.threads},
			   {"--device", OPT_STRING, &a.device},
			   {"--target", OPT_STRING, &a.o.target},
			   {"--tune", OPT_STRING, &a.o.tune},
			   {"--cc", OPT_STRING, &a.o.cc},
			   {"--json", OPT_FLAG, &a.json},
			   {"--progress", OPT_FLAG, &a.progress},
			   LOAD_OPTIONS(&a.load),
			   {0}};
	if (!options_parse(&command_run, opt, &argc, argv))
		return argc == -1 ? 0 : 1;
	if (!take_entries(&a.load, &argc, argv))
		return 1;
	if (argc != (a.load.entry.n ? 1 : 2) || !a.inputs.n || !a.outputs)
		return fail_usage("run takes a model, --inputs and --outputs; see weft run --help");
	const char *model = a.load.entry.n ? entry_file(&a.load, a.entry) : argv[1];
	if (!model || !check_paths(&a, model))
		return 1;
	progress_begin(a.progress);
	progress_show("reading %s", model);
	a.o.progress = progress_phase;
	return run_model(&a, model) ? 0 : 1;
}
