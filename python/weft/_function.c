/* The call of a compiled model: arguments to tensors, sizes, outputs, run. */
#include "_function.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONG_CALL = 50000 /* ns */ };

static PyTypeObject *function_type;
static PyObject *word_out;

/* ---- calls ---- */

static void call_free(CallRoom *c)
{
	if (!c)
		return;
	free(c->sizes);
	free(c->work);
	free(c->given);
	free(c->made);
	free(c->in);
	free(c->out);
	free(c->in_view);
	free(c->out_view);
	free(c->shape);
	free(c->spent);
	free(c->range);
	free(c->shared);
	free(c);
}

static CallRoom *call_new(const Function *f)
{
	const WeftEntry *e = f->entry;
	CallRoom *c = calloc(1, sizeof *c);
	if (!c)
		return (CallRoom *)no_memory("a call");
	c->sizes = malloc(e->sizes_bytes);
	c->given = calloc(e->ninput + 1, sizeof *c->given);
	c->made = calloc(e->noutput + 1, sizeof *c->made);
	c->in = calloc(e->ninput + 1, sizeof *c->in);
	c->out = calloc(e->noutput + 1, sizeof *c->out);
	c->in_view = calloc(e->ninput + 1, sizeof *c->in_view);
	c->out_view = calloc(e->noutput + 1, sizeof *c->out_view);
	c->shape = calloc((size_t)e->noutput * MOST_RANK + 1, sizeof *c->shape);
	c->range = calloc(e->ninput + 1, sizeof *c->range);
	c->shared = calloc(e->ninput + 1, sizeof *c->shared);
	for (uint32_t k = 0; c->range && k < e->ninput; k++)
		c->range[k].input = k;
	if (c->sizes && c->given && c->made && c->in && c->out && c->in_view && c->out_view &&
	    c->shape && c->range && c->shared)
		return c;
	call_free(c);
	return (CallRoom *)no_memory("a call");
}

static CallRoom *call_begin(Function *f)
{
	CallRoom *c = f->spare;
	if (!c)
		return call_new(f);
	f->spare = c->next;
	return c;
}

static void call_end(Function *f, CallRoom *c)
{
	while (c->nin)
		view_close(&c->in_view[--c->nin]);
	while (c->nout)
		view_close(&c->out_view[--c->nout]);
	for (uint32_t k = 0; k < f->entry->noutput; k++)
		Py_CLEAR(c->made[k]);
	memset(c->given, 0, f->entry->ninput * sizeof *c->given);
	c->next = f->spare;
	f->spare = c;
}

/* ---- arguments ---- */

static const char *input_name(const Function *f, uint32_t k)
{
	return weft_input(f->model, f->entry, k)->name;
}

/* The names of a list, which is given away, as "a, b". NULL with an exception. */
static PyObject *joined(PyObject *list)
{
	PyObject *comma = PyUnicode_FromString(", "),
		 *text = list && comma ? PyUnicode_Join(comma, list) : NULL;
	Py_XDECREF(list);
	Py_XDECREF(comma);
	return text;
}

static PyObject *input_names(const Function *f)
{
	PyObject *list = PyList_New(0);
	for (uint32_t k = 0; list && k < f->entry->ninput; k++)
		PyList_Append(list, f->name[k]);
	return joined(list);
}

static int bad_count(const Function *f, Py_ssize_t n)
{
	PyObject *names = input_names(f);
	PyErr_Format(PyExc_TypeError, "%s takes %u inputs (%S), got %zd", f->entry->name,
		     (unsigned)f->entry->ninput, names, n);
	Py_XDECREF(names);
	return -1;
}

/* The number of the input of that name, or -1 without an exception. */
static int find_input(const Function *f, PyObject *name)
{
	for (uint32_t k = 0; k < f->entry->ninput; k++)
		if (f->name[k] == name)
			return (int)k;
	for (uint32_t k = 0; k < f->entry->ninput; k++)
		if (PyUnicode_Compare(f->name[k], name) == 0)
			return (int)k;
	return -1;
}

static int give_named(const Function *f, CallRoom *c, PyObject *name, PyObject *value,
		      PyObject **out)
{
	int k = find_input(f, name);
	if (k >= 0 && c->given[k]) {
		PyErr_Format(PyExc_TypeError, "input %S is given twice", name);
		return -1;
	}
	if (k >= 0) {
		c->given[k] = value;
	} else if (PyUnicode_Compare(name, word_out) == 0) {
		*out = value == Py_None ? NULL : value;
	} else {
		PyObject *names = input_names(f);
		PyErr_Format(PyExc_TypeError, "%s has no input %R; its inputs are %S",
			     f->entry->name, name, names);
		Py_XDECREF(names);
		return -1;
	}
	return 0;
}

/* Results are no part of autograd's graph: says so of an input of which it would record. */
static int warn_of_gradient(const char *name)
{
	return PyErr_WarnFormat(
		PyExc_UserWarning, 1,
		"weft: input %s requires grad, and the results of a compiled model have no "
		"gradient: train with torch.compile(module, backend=\"weft\"), or call the model "
		"under torch.no_grad()",
		name);
}

/* Warns where autograd would record the call. */
static int check_recorded(const Function *f, const CallRoom *c)
{
	bool asked = false;
	for (uint32_t k = 0; k < f->entry->ninput; k++) {
		const unsigned code = c->in[k].dtype.code;
		if ((code != WEFT_FLOAT && code != WEFT_BFLOAT && code != WEFT_COMPLEX) ||
		    !is_exchanged(c->given[k]))
			continue;
		if (!asked && !autograd_records())
			return 0;
		asked = true;
		if (requires_grad(c->given[k]))
			return warn_of_gradient(input_name(f, k));
	}
	return 0;
}

static int open_inputs(const Function *f, CallRoom *c)
{
	int held = 0; /* some views are to be closed */
	for (; c->nin < f->entry->ninput; c->nin++) {
		const uint32_t k = c->nin;
		if (!c->given[k]) {
			PyErr_Format(PyExc_TypeError, "input %s is missing", input_name(f, k));
			return -1;
		}
		const int n = view_open(&c->in_view[k], c->given[k],
					&weft_input(f->model, f->entry, k)->dtype, false, "input",
					input_name(f, k), &c->in[k]);
		if (n < 0)
			return -1;
		held |= n;
	}
	if (!held)
		c->nin = 0;
	return check_recorded(f, c);
}

/* ---- outputs ---- */

/* A tensor of whose class outputs are: the first input that is exchanged. */
static PyObject *first_tensor(const Function *f, const CallRoom *c)
{
	for (uint32_t k = 0; k < f->entry->ninput; k++)
		if (is_exchanged(c->given[k]))
			return c->given[k];
	return f->like;
}

static bool is_row_major(const WeftTensor *t)
{
	int64_t step = 1;
	for (int32_t d = t->ndim; t->strides && d-- > 0;) {
		if (t->shape[d] != 1 && t->strides[d] != step)
			return false;
		step *= t->shape[d];
	}
	return true;
}

static int64_t elements(uint32_t rank, const int64_t *shape)
{
	int64_t n = 1;
	for (uint32_t d = 0; d < rank; d++)
		n *= shape[d];
	return n;
}

static int bad_out(const char *name, const char *what, const WeftTensorInfo *info,
		   const int64_t *shape)
{
	PyObject *extents = PyList_New(0), *text;
	for (uint32_t d = 0; extents && d < info->rank; d++)
		if ((text = PyLong_FromLongLong(shape[d])))
			PyList_Append(extents, text), Py_DECREF(text);
	PyErr_Format(PyExc_ValueError, "out: output %s is %s%S, row-major: %s", name,
		     dtype_text(info->dtype), extents, what);
	Py_XDECREF(extents);
	return -1;
}

/* A tensor of the caller for output k. */
static int take_output(CallRoom *c, uint32_t k, PyObject *o, const WeftTensorInfo *info,
		       const int64_t *shape)
{
	WeftTensor *t = &c->out[k];
	if (view_open(&c->out_view[k], o, NULL, true, "out: output", info->name, t) < 0)
		return -1;
	c->nout = k + 1; /* the views before are zeros, or open */
	Py_INCREF(o);
	c->made[k] = o;
	if (t->dtype.code != info->dtype.code || t->dtype.bits != info->dtype.bits)
		return bad_out(info->name, "the tensor has another dtype", info, shape);
	if (t->ndim != (int32_t)info->rank ||
	    (info->rank && memcmp(t->shape, shape, info->rank * sizeof *shape)))
		return bad_out(info->name, "the tensor has another shape", info, shape);
	if (elements(info->rank, shape) && !is_row_major(t))
		return bad_out(info->name, "the tensor has other strides", info, shape);
	t->shape = (int64_t *)(uintptr_t)shape;
	t->strides = NULL;
	return 0;
}

/* The element of out= for output k; NULL: none. A new reference is not made: the tuple, list or
 * dict stays. */
static PyObject *chosen_output(const Function *f, PyObject *out, uint32_t k, const char *name)
{
	PyObject *o = out;
	if (out && PyDict_Check(out))
		o = PyDict_GetItemString(out, name);
	else if (out && PyTuple_Check(out))
		o = PyTuple_GetItem(out, k);
	else if (out && PyList_Check(out))
		o = PyList_GetItem(out, k);
	else if (out && f->entry->noutput > 1) {
		PyErr_Format(PyExc_TypeError,
			     "out: %u outputs: expected a tuple, list or dict of tensors",
			     (unsigned)f->entry->noutput);
		o = NULL;
	}
	return o == Py_None ? NULL : o;
}

/* Each name of a dict must be that of an output. */
static int check_names(const Function *f, PyObject *dict)
{
	Py_ssize_t found = 0, at = 0;
	PyObject *name = NULL, *value;
	for (uint32_t k = 0; k < f->entry->noutput; k++)
		found += PyDict_GetItemString(dict, weft_output(f->model, f->entry, k)->name) !=
			 NULL;
	if (found == PyDict_Size(dict))
		return 0;
	PyObject *list = PyList_New(0);
	for (uint32_t k = 0; list && k < f->entry->noutput; k++)
		list_put(&list, PyUnicode_FromString(weft_output(f->model, f->entry, k)->name));
	while (list && PyDict_Next(dict, &at, &name, &value) &&
	       PySequence_Contains(list, name) == 1)
		;
	PyObject *names = joined(list);
	if (names)
		PyErr_Format(PyExc_TypeError, "out: %s has no output %R; its outputs are %U",
			     f->entry->name, name, names);
	Py_XDECREF(names);
	return -1;
}

static int check_out(const Function *f, PyObject *out)
{
	if (out && PyDict_Check(out))
		return check_names(f, out);
	Py_ssize_t n = !out                 ? -1
		       : PyTuple_Check(out) ? PyTuple_Size(out)
		       : PyList_Check(out)  ? PyList_Size(out)
					    : -1;
	if (n >= 0 && n != f->entry->noutput) {
		PyErr_Format(PyExc_TypeError, "out: expected %u tensors, got %zd",
			     (unsigned)f->entry->noutput, n);
		return -1;
	}
	return 0;
}

/* ---- updates in place ---- */

/* The bytes between which all elements are, whatever the strides. */
static Range range_of(const WeftTensor *t, uint32_t input)
{
	const int64_t bytes = t->dtype.bits * t->dtype.lanes / 8;
	int64_t lo = 0, hi = bytes, step = bytes;
	for (int32_t d = t->ndim; d-- > 0;) {
		if (!t->shape[d])
			return (Range){0, 0, input};
		const int64_t far = (t->shape[d] - 1) * (t->strides ? t->strides[d] * bytes : step);
		lo += far < 0 ? far : 0;
		hi += far > 0 ? far : 0;
		step *= t->shape[d];
	}
	const uintptr_t at = (uintptr_t)t->data;
	return (Range){at + (uintptr_t)lo, at + (uintptr_t)hi, input};
}

static int by_first(const void *a, const void *b)
{
	const Range *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

/* Notes the inputs that have memory in common with others. Mostly their memory is that of the last
 * call, and in order already. */
static void find_shared(const Function *f, CallRoom *c)
{
	const uint32_t n = f->entry->ninput;
	bool sorted = true;
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t input = c->range[k].input;
		c->range[k] = range_of(&c->in[input], input);
		sorted &= !k || c->range[k - 1].first <= c->range[k].first;
	}
	memset(c->shared, 0, n * sizeof *c->shared);
	if (!sorted)
		qsort(c->range, n, sizeof *c->range, by_first);
	const Range *last = c->range; /* of those so far, the one that ends last */
	for (uint32_t k = 1; k < n; k++) {
		const Range *r = &c->range[k];
		if (r->first < last->end && r->first < r->end)
			c->shared[r->input] = c->shared[last->input] = true;
		if (r->end > last->end)
			last = r;
	}
}

/* Whether output k takes the memory of the input that it replaces. */
static bool update_in_place(const Function *f, CallRoom *c, uint32_t k)
{
	const int32_t in = f->entry->flags & WEFT_ENTRY_HALF_UPDATES
				   ? -1
				   : weft_output(f->model, f->entry, k)->donates;
	if (in < 0 || c->shared[in] || (c->nin && c->in_view[in].copy) ||
	    !is_exchanged(c->given[in]) || !is_row_major(&c->in[in]))
		return false;
	c->out[k] = c->in[in];
	c->out[k].strides = NULL;
	Py_INCREF(Py_None);
	c->made[k] = Py_None;
	return true;
}

static int open_outputs(const Function *f, CallRoom *c, PyObject *out, bool update)
{
	PyObject *like = NULL;
	bool asked = false;
	const int64_t *shape = c->sizes->slot + f->entry->nsymbol;
	if (check_out(f, out) < 0)
		return -1;
	for (uint32_t k = 0; k < f->entry->noutput; k++) {
		const WeftTensorInfo *info = weft_output(f->model, f->entry, k);
		bool known = true;
		for (uint32_t d = 0; d < info->rank; d++)
			known &= shape[d] >= 0;
		PyObject *o = chosen_output(f, out, k, info->name);
		if (PyErr_Occurred())
			return -1;
		if (!known) {
			int64_t *later = c->shape + (size_t)k * MOST_RANK;
			if (o)
				return bad_out(
					info->name,
					"out= cannot be given for a size that depends on data",
					info, shape);
			memcpy(later, shape, info->rank * sizeof *shape);
			c->out[k] = (WeftTensor){
				NULL, {WEFT_CPU, 0}, (int32_t)info->rank, info->dtype, later, NULL,
				0};
		} else if (o) {
			if (take_output(c, k, o, info, shape) < 0)
				return -1;
		} else if (!update || !update_in_place(f, c, k)) {
			if (!asked)
				like = first_tensor(f, c), asked = true;
			if (!(c->made[k] = make_tensor(like, info->dtype, info->rank, shape,
						       info->name, &c->out[k])))
				return -1;
		}
		shape += info->rank;
	}
	return 0;
}

/* Outputs that `run` allocated become tensors of Python. */
static int adopt_outputs(const Function *f, CallRoom *c, bool failed)
{
	for (uint32_t k = 0; k < f->entry->noutput; k++) {
		WeftTensor made, *t = &c->out[k];
		if (c->made[k] || t->shape != c->shape + (size_t)k * MOST_RANK)
			continue;
		const WeftTensorInfo *info = weft_output(f->model, f->entry, k);
		if (!failed &&
		    (c->made[k] = make_tensor(first_tensor(f, c), info->dtype, info->rank, t->shape,
					      info->name, &made))) {
			size_t bytes =
				(size_t)elements(info->rank, t->shape) * (info->dtype.bits / 8);
			if (bytes)
				memcpy(made.data, t->data, bytes);
		} else {
			failed = true;
		}
		free(t->data);
		t->data = NULL;
	}
	return failed ? -1 : 0;
}

static PyObject *results(const Function *f, CallRoom *c, bool update)
{
	PyObject *out;
	if (f->entry->noutput == 1 && !update) {
		out = c->made[0];
		c->made[0] = NULL;
		return out;
	}
	uint32_t inside = 0; /* outputs that are in the memory of inputs */
	while (update && inside < f->entry->noutput && c->made[inside] == Py_None)
		inside++;
	if (inside == f->entry->noutput && inside)
		Py_RETURN_NONE;
	out = PyTuple_New(f->entry->noutput);
	for (uint32_t k = 0; out && k < f->entry->noutput; k++) {
		PyTuple_SetItem(out, k, c->made[k]);
		c->made[k] = NULL;
	}
	if (!out || !f->record || f->record == Py_None || update)
		return out;
	PyObject *record = PyObject_CallFunctionObjArgs(f->record, out, NULL);
	Py_DECREF(out);
	return record;
}

/* ---- the call ---- */

static int make_room(CallRoom *c)
{
	if (c->sizes->workspace_bytes <= c->work_bytes)
		return 0;
	free(c->work);
	c->work = malloc(c->sizes->workspace_bytes);
	c->work_bytes = c->work ? c->sizes->workspace_bytes : 0;
	if (!c->work)
		PyErr_Format(PyExc_MemoryError, "no memory for a workspace of %zu bytes",
			     (size_t)c->sizes->workspace_bytes);
	return c->work ? 0 : -1;
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void forget(Function *f, const CallRoom *c)
{
	CallRoom **at = &f->running;
	while (*at != c)
		at = &(*at)->running;
	*at = c->running;
}

/* cancel(): ends the calls in progress early. Returns how many there are. */
static PyObject *function_cancel(PyObject *self, PyObject *none)
{
	(void)none;
	long n = 0;
	for (CallRoom *c = ((Function *)self)->running; c; c = c->running, n++)
		__atomic_store_n(&c->cancel, 1, __ATOMIC_RELAXED);
	return PyLong_FromLong(n);
}

/* The instance counts the call. Short calls do not pay for OpenMP's threads. */
static PyObject *execute(Function *f, CallRoom *c, PyObject *out, bool update)
{
	const WeftModel *m = f->model;
	WeftInstance *in = f->instance->instance;
	WeftStatus status = {0};
	WeftContext context = {.size = sizeof context,
			       .nthreads = f->threads,
			       .cancel = &c->cancel,
			       .comm = comm_of(f->comm),
			       .memory_limit = f->memory_limit};
	int code;
	if (open_inputs(f, c) < 0)
		return NULL;
	code = m->sizes(in, f->number, c->in, c->sizes, &status);
	if (code)
		return weft_raise(code, status.message);
	bool measured = profile_is_on();
	if (update)
		find_shared(f, c);
	if (open_outputs(f, c, out, update) < 0 || make_room(c) < 0 ||
	    (measured && profile_begin_call(f, c) < 0))
		return NULL;
	if (measured) {
		context.profile = profile_spend;
		context.profile_user = c->spent;
	}
	if (f->threads > 1 && f->took >= LONG_CALL)
		context.threads = torch_threads();
	const int64_t begin = now();
	if (f->timeout > 0)
		context.deadline = begin + (int64_t)(f->timeout * 1e9);
	c->cancel = 0;
	c->running = f->running;
	f->running = c;
	Py_BEGIN_ALLOW_THREADS code =
		m->run(in, c->sizes, c->in, c->out, c->work, &context, &status);
	Py_END_ALLOW_THREADS f->took = now() - begin;
	forget(f, c);
	if (measured)
		profile_end_call(f, c);
	if (f->entry->flags & WEFT_ENTRY_DATA_SIZES) {
		if (code) /* run freed what it allocated */
			for (uint32_t k = 0; k < f->entry->noutput; k++)
				c->out[k].data = c->made[k] ? c->out[k].data : NULL;
		if (adopt_outputs(f, c, code) < 0 && !code)
			return NULL;
	}
	return code ? weft_raise(code, status.message) : results(f, c, update);
}

/* The rest of a call whose arguments are in c->given, unless they were wrong. */
static PyObject *finish(Function *f, CallRoom *c, PyObject *out, bool wrong, bool update)
{
	PyObject *result = NULL;
	f->instance->running++;
	if (!wrong)
		result = execute(f, c, out, update);
	f->instance->running--;
	call_end(f, c);
	return result;
}

/* f(*inputs, out=None, **named) */
static PyObject *function_call(PyObject *self, PyObject *args, PyObject *named)
{
	Function *f = (Function *)self;
	Py_ssize_t n = PyTuple_Size(args), at = 0;
	PyObject *key, *value, *out = NULL;
	if (!instance_ready(f->instance))
		return NULL;
	CallRoom *c = call_begin(f);
	if (!c)
		return NULL;
	int wrong = n > f->entry->ninput ? bad_count(f, n) : 0;
	for (Py_ssize_t k = 0; !wrong && k < n; k++)
		c->given[k] = PyTuple_GetItem(args, k);
	while (!wrong && named && PyDict_Next(named, &at, &key, &value))
		wrong = give_named(f, c, key, value, &out);
	return finish(f, c, out, wrong, false);
}

/* Begins a call with n inputs by position; args NULL: the caller gives them. Returns NULL after an
 * error without a call; sets *wrong after one that finish() ends. */
static CallRoom *begin_with(Function *f, PyObject *const *args, Py_ssize_t n, int *wrong)
{
	CallRoom *c = instance_ready(f->instance) ? call_begin(f) : NULL;
	if (!c)
		return NULL;
	*wrong = n > f->entry->ninput ? bad_count(f, n) : 0;
	for (Py_ssize_t k = 0; args && !*wrong && k < n; k++)
		c->given[k] = args[k];
	return c;
}

/* run(*inputs, out=None, **named): the same call, a little faster. */
static PyObject *function_run(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	Function *f = (Function *)self;
	PyObject *out = NULL;
	int wrong = 0;
	CallRoom *c = begin_with(f, args, n, &wrong);
	if (!c)
		return NULL;
	Py_ssize_t nnamed = names ? PyTuple_Size(names) : 0;
	for (Py_ssize_t k = 0; !wrong && k < nnamed; k++)
		wrong = give_named(f, c, PyTuple_GetItem(names, k), args[n + k], &out);
	return finish(f, c, out, wrong, false);
}

/* update(inputs): a call with a list or tuple of inputs that stores outputs in the memory of the
 * inputs that they replace, as far as that is row-major and no other input has parts of it. Returns
 * a tuple, with None for these outputs; None if all are such. No input is changed by a call that
 * fails. */
static PyObject *function_update(PyObject *self, PyObject *inputs)
{
	Function *f = (Function *)self;
	const bool list = PyList_Check(inputs);
	if (!list && !PyTuple_Check(inputs))
		return PyErr_Format(PyExc_TypeError, "update: expected a list or tuple");
	const Py_ssize_t n = list ? PyList_Size(inputs) : PyTuple_Size(inputs);
	int wrong = 0;
	CallRoom *c = begin_with(f, NULL, n, &wrong);
	for (Py_ssize_t k = 0; c && !wrong && k < n; k++)
		c->given[k] = list ? PyList_GetItem(inputs, k) : PyTuple_GetItem(inputs, k);
	return c ? finish(f, c, NULL, wrong, true) : NULL;
}

/* ---- the class ---- */

static void function_dealloc(PyObject *self)
{
	Function *f = (Function *)self;
	PyTypeObject *type = Py_TYPE(self);
	for (CallRoom *c = f->spare, *next; c; c = next) {
		next = c->next;
		call_free(c);
	}
	for (uint32_t k = 0; f->name && k < f->entry->ninput; k++)
		Py_XDECREF(f->name[k]);
	free(f->name);
	free(f->spent);
	Py_XDECREF(f->like);
	Py_XDECREF(f->comm);
	Py_XDECREF(f->record);
	Py_XDECREF((PyObject *)f->instance);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

/* Function(instance, entry): entry is a number. */
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
	PyObject *in;
	unsigned number = 0;
	if (named && PyDict_Size(named))
		return PyErr_Format(PyExc_TypeError, "no named arguments");
	if (!PyArg_ParseTuple(args, "O!|I", instance_type, &in, &number))
		return NULL;
	const WeftModel *m = ((Instance *)in)->program->model;
	if (!weft_entry(m, number))
		return weft_raise(WEFT_ERR_ARGUMENT, "the model has no entry of this number");
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	Function *f = (Function *)alloc(type, 0);
	if (!f)
		return NULL;
	Py_INCREF(in);
	f->instance = (Instance *)in;
	f->model = m;
	f->number = number;
	f->took = LONG_CALL;
	f->entry = weft_entry(m, number);
	f->name = calloc(f->entry->ninput + 1, sizeof *f->name);
	for (uint32_t k = 0; f->name && k < f->entry->ninput; k++)
		f->name[k] = PyUnicode_InternFromString(input_name(f, k));
	return (PyObject *)f;
}

static PyObject *threads_get(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(((Function *)self)->threads);
}

static int threads_set(PyObject *self, PyObject *value, void *unused)
{
	(void)unused;
	PyObject *whole = value ? PyNumber_Index(value) : NULL;
	int overflow = 0;
	long long n = whole ? PyLong_AsLongLongAndOverflow(whole, &overflow) : -1;
	Py_XDECREF(whole);
	if (!whole || overflow || n < 0 || n > INT32_MAX) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_ValueError, "threads: expected 0 to %d, got %R",
				     INT32_MAX, value ? value : Py_None);
		return -1;
	}
	((Function *)self)->threads = (int32_t)n;
	return 0;
}

static PyObject *timeout_get(PyObject *self, void *unused)
{
	(void)unused;
	const double seconds = ((Function *)self)->timeout;
	if (seconds <= 0)
		Py_RETURN_NONE;
	return PyFloat_FromDouble(seconds);
}

static int timeout_set(PyObject *self, PyObject *value, void *unused)
{
	(void)unused;
	const bool none = value == Py_None;
	const double seconds = none || !value ? 0 : PyFloat_AsDouble(value);
	if (!none && (!value || !(seconds > 0 && seconds < 1e9))) {
		if (!PyErr_Occurred())
			PyErr_Format(
				PyExc_ValueError,
				"timeout: expected a number of seconds above 0, or None, got %R",
				value ? value : Py_None);
		return -1;
	}
	((Function *)self)->timeout = seconds;
	return 0;
}

static PyGetSetDef function_fields[] = {
	{"threads", threads_get, threads_set,
	 "The most threads of a call; "
	 "0: the number of processors.",
	 NULL},
	{"timeout", timeout_get, timeout_set,
	 "The seconds that a call may take; a longer one raises TimeoutError. None: any.", NULL},
	{0},
};
static PyMemberDef function_members[] = {
	{"instance", T_OBJECT, offsetof(Function, instance), READONLY,
	 "The instance whose weights "
	 "and state the calls use."},
	{"like", T_OBJECT, offsetof(Function, like), 0,
	 "A tensor of whose class the outputs of "
	 "calls without tensors are."},
	{"comm", T_OBJECT, offsetof(Function, comm), 0,
	 "The Comm by which the model's collectives communicate; None: this process is alone."},
	{"memory_limit", T_ULONGLONG, offsetof(Function, memory_limit), 0,
	 "The bytes that a call may use besides inputs, outputs of known size and weights; 0: "
	 "any."},
	{"record", T_OBJECT, offsetof(Function, record), 0,
	 "A function that makes the result of a call of the tuple of several results; None: the "
	 "tuple "
	 "is the result."},
	{0},
};
static PyMethodDef function_methods[] = {
	{"run", METHOD(function_run), METH_FASTCALL | METH_KEYWORDS, "The same as a call."},
	{"cancel", function_cancel, METH_NOARGS,
	 "cancel(): ends the calls in progress of other threads, which raise CancelledError. "
	 "Returns "
	 "their number."},
	{"update", function_update, METH_O,
	 "update(inputs): a call that stores outputs in the memory of the inputs that they "
	 "replace, where it can. A tuple; None: an output that is stored so, or all are."},
	{0},
};
static PyType_Slot function_slots[] = {
	{Py_tp_new, function_new},
	{Py_tp_dealloc, function_dealloc},
	{Py_tp_call, function_call},
	{Py_tp_members, function_members},
	{Py_tp_getset, function_fields},
	{Py_tp_methods, function_methods},
	{Py_tp_doc, "An entry of an instance, to be called."},
	{0, NULL},
};
static PyType_Spec function_spec = {"weft._weft.Function", sizeof(Function), 0,
				    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, function_slots};

int function_setup(PyObject *module)
{
	word_out = PyUnicode_InternFromString("out");
	if (!word_out || class_add(module, &function_spec, "Function", &function_type) < 0)
		return -1;
	return profile_setup(module);
}
