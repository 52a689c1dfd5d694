/* weft run */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int run(int argc, char **argv);

const Command command_run = {
	"run", "run a model on tensors from a file",
	"MODEL|MODEL.so|NAME=MODEL... --inputs FILE --outputs FILE [options]",
	"Run a model. Inputs are the tensors x.0, x.1, ... of a .safetensors or .npz file, or "
	"those named\n"
	"like the model's inputs; outputs are y.0, y.1, ... A single input or output may be a .npy "
	"file.\n"
	"Complex tensors are stored as real pairs listed in the metadata of the file.\n\n"
	"  --entry NAME         which one to run where there are several\n"
	"  --inputs FILE        \n"
	"  --outputs FILE       .safetensors, .npz or .npy; written whole or not at all, never "
	"over an input\n"
	"  --backend jit|c|llvm|loops|interp   compiled in this process (the default where weft has "
	"LLVM), to an\n"
	"                       object by a C compiler or by LLVM and a linker; its loop IR interpreted, with\n"
	"                       every access to memory checked (slow, needs no compiler); or the graph "
	"interpreted\n"
	"  --threads N          default: as OpenMP says\n"
	"  --target NAME, --tune NAME, --cc COMMAND   for a model file: see weft compile\n"
	LOAD_HELP
	"  --json               print shapes and time\n",
	run};

typedef struct {
	const char *inputs, *outputs, *backend, *entry;
	int threads;
	bool json;
	WeftOptions o;
	LoadArgs load;
} Args;

static bool is_tensor_file(const char *path)
{
	static const char *const known[] = {".safetensors", ".npz", ".npy"};
	size_t n = strlen(path);
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (n > strlen(known[k]) && !strcmp(path + n - strlen(known[k]), known[k]))
			return true;
	return fail("--outputs %s: the name ends with .safetensors, .npz or .npy, which says what "
		    "is written",
		    path),
	       false;
}

static void describe(const Runner *r, double seconds)
{
	Json j = {.f = stdout};
	char type[16];
	json_open(&j, NULL, '{');
	json_number(&j, "seconds", seconds);
	json_open(&j, "outputs", '[');
	for (uint32_t k = 0; k < r->noutput; k++) {
		const WeftTensor *t = &r->result[k];
		json_open(&j, NULL, '{');
		json_string(&j, "name", runner_output(r, k)->name);
		json_string(&j, "dtype", dtype_text(t->dtype, type));
		json_open(&j, "shape", '[');
		for (int32_t d = 0; d < t->ndim; d++)
			json_number(&j, NULL, (double)t->shape[d]);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

static bool write_results(Weft *w, const Runner *r, const char *path)
{
	WeftTensors *t = weft_tensors_new(w);
	bool ok = t;
	for (uint32_t k = 0; ok && k < r->noutput; k++) {
		char key[32];
		snprintf(key, sizeof key, "y.%u", (unsigned)k);
		ok = weft_tensors_add(w, t, key, &r->result[k]);
	}
	ok = ok && weft_tensors_write(w, t, path);
	return ok || (fail_messages(w), false);
}

static bool execute(Weft *w, Runner *r, const Args *a)
{
	WeftTensors *t = weft_tensors_read(w, a->inputs);
	if (!t)
		return fail_messages(w), false;
	WeftTensor *in = calloc(r->ninput + 1, sizeof *in);
	if (!in)
		return fail("out of memory"), false;
	bool ok = runner_inputs(r, t, a->inputs, in) && runner_prepare(r, in);
	double start = now();
	ok = ok && runner_call(r, in, a->threads, NULL, NULL);
	double seconds = now() - start;
	ok = ok && write_results(w, r, a->outputs);
	if (ok && a->json)
		describe(r, seconds);
	free(in);
	return ok;
}

static int run(int argc, char **argv)
{
	Args a = {.o = {.size = sizeof a.o}};
	const Opt opt[] = {{"--entry", OPT_STRING, &a.entry},
			   {"--inputs", OPT_STRING, &a.inputs},
			   {"--outputs", OPT_STRING, &a.outputs},
			   {"--backend", OPT_STRING, &a.backend},
			   {"--threads", OPT_INT, &a.threads},
			   {"--target", OPT_STRING, &a.o.target},
			   {"--tune", OPT_STRING, &a.o.tune},
			   {"--cc", OPT_STRING, &a.o.cc},
			   {"--json", OPT_FLAG, &a.json},
			   LOAD_OPTIONS(&a.load),
			   {0}};
	if (!options_parse(&command_run, opt, &argc, argv))
		return argc == -1 ? 0 : 1;
	if (!take_entries(&a.load, &argc, argv))
		return 1;
	if (argc != (a.load.entry.n ? 1 : 2) || !a.inputs || !a.outputs)
		return fail("run takes a model, --inputs and --outputs; see weft run --help");
	const char *model = a.load.entry.n ? entry_file(&a.load, a.entry) : argv[1];
	if (!model || !is_tensor_file(a.outputs) || !keep_input(a.outputs, model) || !keep_input(a.outputs, a.inputs))
		return 1;
	Runner r;
	RunnerOptions ro = {.compile = &a.o, .load = &a.load, .entry = a.entry};
	if (!parse_backend(a.backend, &ro.backend))
		return 1;
	if (!runner_open(&r, model, &ro))
		return 1;
	Weft *w = weft_new();
	if (r.w && weft_nmessages(r.w)) /* warnings */
		fputs(weft_messages(r.w), stderr);
	bool ok = w ? execute(w, &r, &a) : (fail("out of memory"), false);
	weft_free(w);
	runner_close(&r);
	return ok ? 0 : 1;
}
