/* Executing a model, compiled or by the interpreter, through one interface. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"
#include "weft_file.h"

bool is_shared_object(const char *path)
{
	unsigned char magic[4] = {0};
	struct stat st;
	/* a FIFO would wait */
	FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	if (!f)
		return false;
	size_t n = fread(magic, 1, sizeof magic, f);
	fclose(f);
	return n == 4 && !memcmp(magic, "\177ELF", 4);
}

bool parse_backend(const char *text, RunBackend *out)
{
	static const char *const name[] = {"", "jit", "c", "llvm", "loops", "gpu-host", "interp"};
	*out = RUN_DEFAULT;
	for (int k = RUN_JIT; text && k <= RUN_INTERP; k++)
		if (!strcmp(text, name[k]))
			*out = (RunBackend)k;
	return !text || *out ||
	       (fail_usage("--backend is jit, c, llvm, loops, gpu-host or interp, not %s", text),
		false);
}

RunBackend backend_resolve(RunBackend b, const WeftOptions *o)
{
	return b != RUN_DEFAULT ? b : (o && o->cc) || !weft_has_llvm() ? RUN_C : RUN_JIT;
}

bool runner_backend_takes(RunBackend b, const WeftOptions *o)
{
	const char *given = !o          ? NULL
			    : o->target ? "--target"
			    : o->tune   ? "--tune"
			    : o->cc     ? "--cc"
					: o->op_by_op ? "--op-by-op" : NULL;
	if (b == RUN_INTERP && given)
		return fail_usage("%s is for compiled code: --backend interp interprets the graph",
				  given),
		       false;
	return !o || !o->cc || (b != RUN_JIT && b != RUN_LOOPS) ||
	       (fail_usage("--cc is for --backend c: no C compiler takes part in %s",
			   b == RUN_JIT ? "jit" : "loops"),
		false);
}

void backend_note(RunBackend b)
{
	static bool said;
	if (b == RUN_DEFAULT && !said && !weft_has_llvm())
		fprintf(stderr, "weft: note: the LLVM back end (weft_llvm.so) is not found: a C "
				"compiler is used ($WEFT_LLVM_FOLDER may "
				"name its folder)\n");
	said |= b == RUN_DEFAULT;
}

const WeftTensorInfo *tensor_info(const WeftModel *m, const WeftTensorInfo *first, uint32_t k)
{
	return m ? weft_element(m, WEFT_TENSOR_INFO, first, k) : &first[k];
}

const WeftDim *tensor_dim(const WeftModel *m, const WeftTensorInfo *t, uint32_t d)
{
	return m ? weft_dim(m, t, d) : &t->dim[d];
}

const WeftTensorInfo *runner_input(const Runner *r, uint32_t k)
{
	return tensor_info(r->model, r->input, k);
}

const WeftTensorInfo *runner_output(const Runner *r, uint32_t k)
{
	return tensor_info(r->model, r->output, k);
}

static bool find_entry(Runner *r, const char *path)
{
	char all[1000] = "";
	Guess g = {.word = r->want ? r->want : ""};
	uint32_t n = r->model->nentry;
	for (uint32_t k = 0; k < n; k++) {
		const char *name = weft_entry(r->model, k)->name;
		guess_offer(&g, name, name);
		size_t length = strlen(all);
		r->which = k;
		if (r->want ? !strcmp(name, r->want) : r->any || n == 1)
			return true;
		snprintf(all + length, sizeof all - length, "%s%s", k ? ", " : "", name);
	}
	if (r->want)
		return fail("%s: no entry %s: there %s %s%s", path, r->want, n == 1 ? "is" : "are",
			    all, guess_text(&g)),
		       false;
	return fail("%s: choose one of its entries with --entry: %s", path, all), false;
}

/* Parses "cuda", "cuda:1"; NULL: the first. */
static bool parse_device(const char *text, WeftDevice *out)
{
	const size_t n = strlen("cuda");
	char *end = NULL;
	*out = (WeftDevice){0};
	if (!text)
		return true;
	out->type = WEFT_CUDA;
	if (!strncmp(text, "cuda", n) && text[n] == ':' && text[n + 1] >= '0' && text[n + 1] <= '9')
		out->id = (int32_t)strtol(text + n + 1, &end, 10);
	return !strcmp(text, "cuda") || (end && !*end) ||
	       (fail_usage("--device is cuda or cuda:N, not %s", text), false);
}

static bool open_model(Runner *r, const char *path, const RunnerOptions *o)
{
	WeftStatus status = {0};
	WeftOpen how = {.size = sizeof how, .flags = o->verify ? WEFT_OPEN_VERIFY : 0};
	if (!parse_device(o->device, &how.device))
		return false;
	const char *wrong = weft_model_check(r->model);
	if (wrong)
		return fail("%s: %s", path, wrong), r->model = NULL, false;
	int code = r->model->open(r->model, &how, &r->instance, &status);
	if (code != WEFT_OK && !(o->shown && code == WEFT_ERR_DEVICE))
		return fail_status(path, code, status.message), false;
	if (WEFT_HAS(r->model->size, WeftModel, wait) && r->model->wait)
		r->device = (WeftDevice){WEFT_CUDA, how.device.id};
	if (!find_entry(r, path))
		return false;
	r->entry = weft_entry(r->model, r->which);
	r->input = r->entry->input;
	r->output = r->entry->output;
	r->ninput = r->entry->ninput;
	r->noutput = r->entry->noutput;
	r->sizes = malloc(r->entry->sizes_bytes);
	return r->sizes || (fail("out of memory"), false);
}

/* Whether the loader can be given the file. */
static bool is_whole(const char *path)
{
	WeftStatus status;
	if (!weft_file_check(path, &status))
		return true;
	const bool foreign = strstr(status.message, "is for another machine");
	return fail_id(foreign ? "W0011" : "W0003", "%s%s", status.message,
		       foreign ? "; run it there, or its model file with weft check --runner" : ""),
	       false;
}

static bool open_object(Runner *r, const char *path, const RunnerOptions *o)
{
	char full[4096];
	WeftDevice device;
	const WeftModel *(*get)(void), *(*get_device)(int32_t, int32_t);
	if (!parse_device(o->device, &device) || !is_whole(path))
		return false;
	snprintf(full, sizeof full, "%s%s", strchr(path, '/') ? "" : "./", path);
	r->so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!r->so)
		return fail("%s", dlerror()), false;
	*(void **)&get = dlsym(r->so, "weft_model");
	if (!get)
		return fail("%s: no compiled model: it has no function weft_model", path), false;
	*(void **)&get_device = dlsym(r->so, "weft_model_device");
	if (o->device && !get_device)
		return fail("%s has no code for a GPU: it was compiled for processors", path),
		       false;
	r->model = o->device ? get_device(device.type, device.id) : get();
	return open_model(r, path, o);
}

static void remove_folder(Runner *r)
{
	char path[4096];
	if (!*r->folder)
		return;
	snprintf(path, sizeof path, "%s/model.so", r->folder);
	unlink(path);
	rmdir(r->folder);
	weft_not_temporary(r->folder);
	*r->folder = 0;
}

/* Asks the graph what the model takes and gives. */
static bool open_graph(Runner *r)
{
	r->input = weft_inputs(r->w, r->one, &r->ninput);
	r->output = weft_results(r->w, r->one, &r->noutput);
	return r->output || r->noutput == 0 || (fail_messages(r->w), false);
}

/* Compiles into a temporary file that is gone once it is loaded, or at the end where another
 * program loads it. */
static bool open_compiled(Runner *r, const WeftOptions *o, const RunnerOptions *how)
{
	const char *base = getenv("TMPDIR");
	char path[4096];
	snprintf(r->folder, sizeof r->folder, "%s/weft-run-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(r->folder))
		return fail("cannot make a temporary folder %s", r->folder), *r->folder = 0, false;
	weft_temporary(r->folder);
	snprintf(path, sizeof path, "%s/model.so", r->folder);
	bool ok = weft_compile(r->w, r->g, o, path);
	if (!ok)
		fail_messages(r->w);
	if (r->remote)
		return ok && open_graph(r);
	ok = ok && open_object(r, path, how);
	remove_folder(r);
	return ok;
}

/* Opens the model in this process: by LLVM, or as loop IR that is interpreted. */
static bool open_in_process(Runner *r, const char *path, const WeftOptions *o, bool loops,
			    const RunnerOptions *how)
{
	r->model = (loops ? weft_loops : weft_jit)(r->w, r->g, o);
	return r->model ? open_model(r, path, how) : (fail_messages(r->w), false);
}

/* Loads the file, or those that are joined, and finds what is the entry. */
static bool load_graph(Runner *r, const char *path, const LoadArgs *a)
{
	WeftGraph *one[MAX_LIST];
	uint32_t n = a ? a->entry.n : 0;
	r->g = r->w ? load_model(r->w, path, a, one) : NULL;
	if (!r->g)
		return fail_messages(r->w), false;
	if (!n && r->want && strcmp(r->want, "run") != 0)
		return fail("%s: no entry %s: there is run", path, r->want), false;
	r->one = n ? NULL : one[0];
	for (uint32_t k = 0; k < n; k++)
		if (!r->want ? n == 1 : !strcmp(a->entry.item[k], r->want))
			r->one = one[k];
	return r->one || entry_file(a, r->want);
}

/* Chooses the back end. Another program needs a file, made as weft compile would. */
static RunBackend choose(const RunnerOptions *o)
{
	return o->remote || (o->device && o->backend == RUN_DEFAULT)
		       ? o->backend
		       : backend_resolve(o->backend, o->compile);
}

static WeftBackend compiler_of(RunBackend b)
{
	return b == RUN_LLVM ? WEFT_BACKEND_LLVM
	       : b == RUN_C  ? WEFT_BACKEND_C
			     : WEFT_BACKEND_DEFAULT;
}

/* Checks that no option is for compiling: a compiled file has its target, and is not compiled
 * again. */
static bool takes_no_target(const char *path, const WeftOptions *c)
{
	const char *given = !c          ? NULL
			    : c->target ? "--target"
			    : c->tune   ? "--tune"
			    : c->cc     ? "--cc"
					: c->op_by_op ? "--op-by-op" : NULL;
	return !given || (fail("%s is compiled: %s is for model files", path, given), false);
}

/* Opens what has been loaded. */
static bool open_loaded(Runner *r, const char *path, const RunnerOptions *o, RunBackend backend)
{
	WeftOptions c = {.size = sizeof c};
	if (o->compile)
		c = *o->compile;
	if (o->device && o->backend != RUN_DEFAULT)
		return fail_usage("--device chooses the back end: give no --backend"), false;
	if (o->device && !c.target)
		c.target = o->device;
	c.backend = compiler_of(backend);
	c.backend_name = backend == RUN_GPU_HOST ? "gpu-host" : NULL;
	link_with_ops(&c, o->load);
	if (r->interp)
		return open_graph(r) && runner_begin_state(r);
	return backend == RUN_JIT || backend == RUN_LOOPS
		       ? open_in_process(r, path, &c, backend == RUN_LOOPS, o)
		       : open_compiled(r, &c, o);
}

static bool open_runner(Runner *r, const char *path, const RunnerOptions *o)
{
	WeftDevice device;
	RunBackend backend = choose(o);
	if (!parse_device(o->device, &device))
		return false;
	r->interp = backend == RUN_INTERP;
	r->remote = o->remote;
	bool in_process = backend == RUN_JIT || backend == RUN_LOOPS;
	if (r->remote && (in_process || r->interp))
		return fail("with a runner --backend is c or llvm: it needs a file"), false;
	if (is_shared_object(path)) {
		if (r->remote)
			return fail("%s: with a runner name the model file", path), false;
		if (o->backend != RUN_DEFAULT)
			return fail("%s is compiled: --backend is for model files", path), false;
		if (o->mode && o->mode->mode)
			return fail("%s is compiled: --mode is for model files", path), false;
		if (load_option_given(o->load))
			return fail("%s is compiled: %s is for model files", path,
				    load_option_given(o->load)),
			       false;
		return takes_no_target(path, o->compile) && open_object(r, path, o);
	}
	if (!runner_backend_takes(backend, o->compile))
		return false;
	if (!o->remote)
		backend_note(o->backend);
	r->w = weft_new();
	if (!load_graph(r, path, o->load) || (o->mode && o->mode->mode && !mode_apply(r, o->mode)))
		return false;
	return open_loaded(r, path, o, backend);
}

static bool end_open(Runner *r, bool ok)
{
	if (ok)
		r->result = calloc(r->noutput + 1, sizeof *r->result);
	if (ok && !r->result)
		ok = (fail("out of memory"), false);
	if (!ok)
		runner_close(r);
	return ok;
}

bool runner_open(Runner *r, const char *path, const RunnerOptions *o)
{
	*r = (Runner){
		.path = path, .want = o->entry, .any = o->any_entry, .share_all = o->share_all};
	return end_open(r, open_runner(r, path, o));
}

bool runner_take(Runner *r, Weft *w, WeftGraph *g, const char *path, const RunnerOptions *o)
{
	const RunBackend backend = choose(o);
	*r = (Runner){.path = path,
		      .want = o->entry,
		      .any = o->any_entry,
		      .w = w,
		      .lent = true,
		      .g = g,
		      .one = g,
		      .interp = backend == RUN_INTERP,
		      .share_all = o->share_all};
	return end_open(r, runner_backend_takes(backend, o->compile) &&
				   open_loaded(r, path, o, backend));
}

static void free_results(Runner *r)
{
	for (uint32_t k = 0; r->result && (r->model || r->remote) && k < r->noutput; k++) {
		free(r->result[k].data);
		free(r->result[k].shape);
	}
	if (r->result)
		memset(r->result, 0, r->noutput * sizeof *r->result);
}

/* Whether `run` finds out the shape of the result, and gives it memory. */
static bool is_found(const Runner *r, uint32_t k)
{
	const int64_t *shape = weft_output_shape(r->model, r->entry, r->sizes, k);
	bool found = false;
	for (uint32_t d = 0; d < runner_output(r, k)->rank; d++)
		found |= shape[d] < 0;
	return found;
}

static bool alloc_result(Runner *r, uint32_t k)
{
	const WeftTensorInfo *info = runner_output(r, k);
	WeftTensor *t = &r->result[k];
	*t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	t->shape = malloc((info->rank + 1) * sizeof(int64_t));
	if (!t->shape)
		return false;
	memcpy(t->shape, weft_output_shape(r->model, r->entry, r->sizes, k),
	       info->rank * sizeof(int64_t));
	if (is_found(r, k))
		return true;
	t->data = aligned_alloc(64, (bytes_of(t) + 127) / 64 * 64);
	return t->data;
}

bool runner_prepare(Runner *r, const WeftTensor *inputs)
{
	WeftStatus status = {0};
	free_results(r);
	if (r->remote)
		return true;
	if (r->interp) {
		weft_release(r->w);
		return true;
	}
	if (r->model->sizes(r->instance, r->which, inputs, r->sizes, &status) != WEFT_OK)
		return fail_status(r->path, status.code, status.message), false;
	for (uint32_t k = 0; k < r->noutput; k++)
		if (!alloc_result(r, k))
			return fail("out of memory"), false;
	if (r->sizes->workspace_bytes > r->work_bytes) {
		free(r->work);
		r->work_bytes = r->sizes->workspace_bytes;
		r->work = aligned_alloc(64, (r->work_bytes + 63) / 64 * 64);
	}
	return r->work || (fail("no memory for the workspace"), false);
}

bool runner_call(Runner *r, const WeftTensor *inputs, int threads, WeftProfile profile, void *user)
{
	if (r->interp)
		return weft_interpret_all(r->w, r->one, r->state, inputs, r->ninput, r->result) ||
		       (fail_messages(r->w), false);
	if (r->remote)
		return free_results(r), remote_call(r, inputs, threads);
	for (uint32_t k = 0; k < r->noutput; k++)
		if (is_found(r, k)) { /* of the call before */
			free(r->result[k].data);
			r->result[k].data = NULL;
		}
	WeftStatus status = {0};
	WeftContext c = {.size = sizeof c,
			 .flags = r->share_all ? WEFT_SHARE_ALL : 0,
			 .nthreads = threads,
			 .profile = profile,
			 .profile_user = user};
	if (r->model->run(r->instance, r->sizes, inputs, r->result, r->work, &c, &status) !=
	    WEFT_OK)
		return fail_status(r->path, status.code, status.message), false;
	return true;
}

bool runner_reset(Runner *r)
{
	WeftStatus status = {0};
	if (r->interp)
		return !r->nstate || weft_first_state(r->w, r->one, r->state) ||
		       (fail_messages(r->w), false);
	if (!r->model || !r->model->nstate ||
	    r->model->state_reset(r->instance, &status) == WEFT_OK)
		return true;
	return fail_status(NULL, status.code, status.message), false;
}

void runner_close(Runner *r)
{
	free_results(r);
	runner_end_state(r);
	mode_close(r);
	free(r->result);
	free(r->sizes);
	free(r->work);
	if (r->instance)
		r->model->close(r->instance);
	if (r->so)
		dlclose(r->so);
	remove_folder(r);
	if (!r->lent)
		weft_free(r->w);
	*r = (Runner){0};
}

/* Finds "x.0" or the input's name; of a file with several calls "0.x.0", "1.x.0", ... or
 * "0.NAME". */
const WeftTensor *runner_find_input(const Runner *r, const WeftTensors *t, int call, uint32_t k)
{
	char text[512];
	const char *name = runner_input(r, k)->name;
	const TensorKey key = runner_input_key(r, k);
	const WeftTensor *v = key_find(t, &key, call);
	const char *own = strchr(name, '.');
	/* "ct.1" of an output called 1 is that of output 1 */
	if (v || (key.kind[0] != 'x' && own && isdigit((unsigned char)own[1])))
		return v;
	if (call < 0)
		return weft_tensors_find(t, name);
	snprintf(text, sizeof text, "%d.%s", call, name);
	return weft_tensors_find(t, text);
}

static bool has_call(const WeftTensors *t, int call)
{
	char start[16];
	size_t n = (size_t)snprintf(start, sizeof start, "%d.", call);
	for (uint32_t k = 0; k < weft_tensors_count(t); k++)
		if (!strncmp(weft_tensors_name(t, k), start, n))
			return true;
	return false;
}

int runner_calls(const WeftTensors *t)
{
	int n = 0;
	while (has_call(t, n))
		n++;
	return n;
}

/* Returns the name of a tensor without the number of its call. */
static const char *without_call(const char *name)
{
	size_t n = strspn(name, "0123456789");
	return n && name[n] == '.' ? name + n + 1 : name;
}

/* Returns which input a name asks for: "x.2" input 2; -1 if it has another form. */
static int64_t asked_input(const char *name)
{
	char *end;
	long k = !strncmp(name, "x.", 2) && isdigit((unsigned char)name[2])
			 ? strtol(name + 2, &end, 10)
			 : -1;
	return k < 0 || *end ? -1 : k;
}

static bool is_input_name(const Runner *r, const char *name)
{
	for (uint32_t k = 0; k < r->ninput; k++)
		if (!strcmp(runner_input(r, k)->name, name))
			return true;
	return false;
}

/* Lists "x, mask", in the order of x.0, x.1, ...; of many the first. */
static const char *names_of_inputs(const Runner *r, char text[400])
{
	size_t n = 0;
	*text = 0;
	for (uint32_t k = 0; k < r->ninput; k++) {
		const char *name = runner_input(r, k)->name;
		if (n + strlen(name) + 30 > 400) {
			snprintf(text + n, 400 - n, ", ... (%u more)", (unsigned)(r->ninput - k));
			break;
		}
		n += (size_t)snprintf(text + n, 400 - n, "%s%s", k ? ", " : "", name);
	}
	return text;
}

bool runner_takes_all(const Runner *r, const WeftTensors *t, const char *file)
{
	bool named = false, numbered = has_suffix(file, ".npy"); /* a .npy is named as it likes */
	for (uint32_t k = 0; k < weft_tensors_count(t); k++) {
		named |= is_input_name(r, without_call(weft_tensors_name(t, k)));
		numbered |= asked_input(without_call(weft_tensors_name(t, k))) >= 0;
	}
	named |= !numbered; /* or nothing of the file is an input */
	for (uint32_t k = 0; k < weft_tensors_count(t); k++) {
		const char *name = without_call(weft_tensors_name(t, k));
		if (is_input_name(r, name) ||
		    !(asked_input(name) >= (int64_t)r->ninput || (named && !strchr(name, '.'))))
			continue;
		Guess g = {.word = name};
		char names[400];
		for (uint32_t i = 0; i < r->ninput; i++)
			guess_offer(&g, runner_input(r, i)->name, runner_input(r, i)->name);
		return fail_id("W0008", "%s: tensor %s is no input of %s, which takes %u%s%s%s%s",
			       file, weft_tensors_name(t, k), r->path, (unsigned)r->ninput,
			       r->ninput ? ": " : "", names_of_inputs(r, names), guess_text(&g),
			       has_suffix(r->path, ".onnx")
				       ? " (an initializer that is a graph input "
					 "too is a constant: docs/onnx.md)"
				       : ""),
		       false;
	}
	return true;
}

bool runner_call_inputs(Runner *r, const WeftTensors *t, const char *file, int call, WeftTensor *in)
{
	for (uint32_t k = 0; k < r->ninput; k++) {
		const WeftTensor *v = runner_find_input(r, t, call, k);
		if (!v && call == 0 && !(v = runner_absent(r, k, t, file, call)))
			return false;
		in[k] = v ? *v : in[k];
	}
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);
	return n > e && !strcmp(text + n - e, end);
}

bool runner_inputs(Runner *r, const WeftTensors *t, const char *file, WeftTensor *out)
{
	bool npy = ends_with(file, ".npy");
	for (uint32_t k = 0; k < r->ninput; k++) {
		const WeftTensor *v = runner_find_input(r, t, -1, k);
		if (!v && r->ninput == 1 && npy)
			v = weft_tensors_at(t, 0);
		if (!v && r->ninput > 1 && npy)
			return fail_id("W0008",
				       "%s: a .npy file holds one tensor, and the model takes %u: "
				       "put "
				       "them into a .npz or .safetensors "
				       "file as x.0, x.1, ...",
				       file, (unsigned)r->ninput),
			       false;
		if (!v && !(v = runner_absent(r, k, t, file, -1)))
			return false;
		out[k] = *v;
	}
	return true;
}
