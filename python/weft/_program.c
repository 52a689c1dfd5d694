/* Compiled models and their instances. */
#include "_weft.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft_file.h"

static PyTypeObject *program_type;
PyTypeObject *instance_type;

/* ---- programs ---- */

PyObject *program_object(const WeftModel *m, void *library, PyObject *owner)
{
	Program *p = PyObject_New(Program, program_type);
	if (p) {
		p->model = m;
		p->library = library;
		p->owner = owner;
		Py_XINCREF(owner);
	}
	return (PyObject *)p;
}

static void program_dealloc(PyObject *self)
{
	Program *p = (Program *)self;
	PyTypeObject *type = Py_TYPE(self);
	if (p->library)
		dlclose(p->library);
	else if (!p->owner)
		weft_jit_free(p->model);
	Py_XDECREF(p->owner);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

/* Program.load(path, symbol) */
static PyObject *program_load(PyObject *module, PyObject *args)
{
	PyObject *path;
	const char *symbol, *wrong;
	(void)module;
	if (!PyArg_ParseTuple(args, "O&s", PyUnicode_FSConverter, &path, &symbol))
		return NULL;
	void *so = NULL;
	const char *file = PyBytes_AsString(path);
	WeftStatus status;
	int code;
	Py_BEGIN_ALLOW_THREADS
	code = weft_file_check(file, &status);
	if (!code)
		so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	Py_END_ALLOW_THREADS
	const WeftModel *(*model)(void) = so ? (const WeftModel *(*)(void))dlsym(so, symbol) : NULL;
	const WeftModel *m = model ? model() : NULL;
	PyObject *p = NULL;
	if (code)
		PyErr_Format(access(file, F_OK) ? PyExc_FileNotFoundError : PyExc_OSError, "%s",
			     status.message);
	else if (!so)
		PyErr_Format(PyExc_OSError, "%s", dlerror());
	else if (!model)
		PyErr_Format(weft_error, "%s: there is no function %s: this is no compiled model",
			     file, symbol);
	else if ((wrong = weft_model_check(m)))
		PyErr_Format(weft_error, "%s: %s", file, wrong);
	else
		p = program_object(m, so, NULL);
	if (so && !p)
		dlclose(so);
	Py_DECREF(path);
	return p;
}

/* ---- what a table says ---- */

static PyObject *dims_of(const WeftModel *m, const WeftTensorInfo *t)
{
	PyObject *dims = PyTuple_New(t->rank);
	for (uint32_t d = 0; dims && d < t->rank; d++) {
		const WeftDim *dim = weft_dim(m, t, d);
		tuple_put(&dims, d,
			  dim->value >= 0 ? PyLong_FromLongLong(dim->value)
					  : PyUnicode_FromString(dim->text));
	}
	return dims;
}

/* (name, dtype, dims, role, donates, requires_grad) */
static PyObject *tensor_info(const WeftModel *m, const WeftTensorInfo *t)
{
	return Py_BuildValue("(ssNziI)", t->name, dtype_text(t->dtype), dims_of(m, t), t->role,
			     (int)t->donates, (unsigned)t->requires_grad);
}

static PyObject *params_of(const WeftModel *m, bool source)
{
	uint32_t n = source ? m->nsource : m->nparam;
	PyObject *list = PyList_New(0);
	for (uint32_t k = 0; list && k < n; k++) {
		const WeftParamInfo *p = source ? weft_source(m, k) : weft_param(m, k);
		PyObject *dims = PyTuple_New(p->rank);
		for (uint32_t d = 0; dims && d < p->rank; d++)
			tuple_put(&dims, d, PyLong_FromLongLong(p->dim[d]));
		list_put(&list, Py_BuildValue("(ssNK)", p->name, dtype_text(p->dtype), dims,
					      (unsigned long long)p->bytes));
	}
	return list;
}

static PyObject *entry_info(const WeftModel *m, const WeftEntry *e)
{
	PyObject *in = PyList_New(0), *out = PyList_New(0), *sizes = PyList_New(0);
	for (uint32_t k = 0; in && k < e->ninput; k++)
		list_put(&in, tensor_info(m, weft_input(m, e, k)));
	for (uint32_t k = 0; out && k < e->noutput; k++)
		list_put(&out, tensor_info(m, weft_output(m, e, k)));
	for (uint32_t k = 0; sizes && k < e->nsymbol; k++) {
		const WeftSymbolInfo *s = weft_symbol(m, e, k);
		list_put(&sizes,
			 Py_BuildValue("(sLL)", s->name, (long long)s->lo, (long long)s->hi));
	}
	return Py_BuildValue("{s:s,s:N,s:N,s:N,s:d,s:I,s:I}", "name", e->name, "inputs", in,
			     "outputs", out, "symbols", sizes, "flops", e->flops, "kernels",
			     (unsigned)e->ncall, "flags", (unsigned)e->flags);
}

/* describe() -> dict: what the table of the model says. */
static PyObject *program_describe(PyObject *self, PyObject *none)
{
	const WeftModel *m = ((Program *)self)->model;
	const WeftManifest *f = m->manifest;
	PyObject *entries = PyList_New(0), *state = PyList_New(0);
	(void)none;
	for (uint32_t k = 0; entries && k < m->nentry; k++)
		list_put(&entries, entry_info(m, weft_entry(m, k)));
	for (uint32_t k = 0; state && k < m->nstate; k++)
		list_put(&state, tensor_info(m, weft_state_info(m, k)));
	return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:N,s:N,s:N,s:N,s:O,s:K,s:z}", "name", f->name,
			     "version", f->weft_version, "target", f->target, "features",
			     f->features, "hash", f->source_hash, "entries", entries, "state",
			     state, "parameters", params_of(m, false), "replaceable",
			     params_of(m, true), "has_replaceable",
			     m->replaceable ? Py_True : Py_False, "weight_bytes",
			     (unsigned long long)m->weights_bytes, "weights_file", m->weights_file);
}

/* open(weights=None, verify=False) -> Instance */
static PyObject *program_open(PyObject *self, PyObject *args)
{
	Program *p = (Program *)self;
	PyObject *path = NULL;
	int verify = 0;
	if (!PyArg_ParseTuple(args, "|Op", &path, &verify))
		return NULL;
	PyObject *bytes = NULL;
	if (path && path != Py_None && !PyUnicode_FSConverter(path, &bytes))
		return NULL;
	WeftOpen how = {.size = sizeof how,
			.flags = verify ? WEFT_OPEN_VERIFY : 0,
			.weights_path = bytes ? PyBytes_AsString(bytes) : NULL};
	WeftStatus status = {0};
	WeftInstance *in = NULL;
	int code;
	Py_BEGIN_ALLOW_THREADS
	code = p->model->open(p->model, &how, &in, &status);
	Py_END_ALLOW_THREADS
	Py_XDECREF(bytes);
	if (code)
		return weft_raise(code, status.message);
	Instance *out = PyObject_New(Instance, instance_type);
	if (!out) {
		p->model->close(in);
		return NULL;
	}
	Py_INCREF(self);
	*out = (Instance){.ob_base = out->ob_base, .program = p, .instance = in};
	return (PyObject *)out;
}

static PyMethodDef program_methods[] = {
	{"describe", program_describe, METH_NOARGS, "What the table of the model says, as a dict."},
	{"open", program_open, METH_VARARGS, "open(weights=None, verify=False): a new Instance."},
	{0},
};
static PyType_Slot program_slots[] = {
	{Py_tp_dealloc, program_dealloc},
	{Py_tp_methods, program_methods},
	{Py_tp_doc, "A compiled model that is loaded."},
	{0, NULL},
};
static PyType_Spec program_spec = {"weft._weft.Program", sizeof(Program), 0,
				   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				   program_slots};

/* ---- instances ---- */

bool instance_ready(const Instance *in)
{
	if (!in->instance)
		PyErr_SetString(PyExc_ValueError, "the model is closed");
	return in->instance;
}

static void instance_dealloc(PyObject *self)
{
	Instance *in = (Instance *)self;
	PyTypeObject *type = Py_TYPE(self);
	if (in->instance)
		in->program->model->close(in->instance);
	Py_XDECREF((PyObject *)in->program);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static PyObject *instance_close(PyObject *self, PyObject *none)
{
	Instance *in = (Instance *)self;
	(void)none;
	if (in->running)
		return weft_raise(WEFT_ERR_BUSY, "a call of the model is in progress");
	if (in->instance)
		in->program->model->close(in->instance);
	in->instance = NULL;
	Py_RETURN_NONE;
}

static PyObject *instance_clone(PyObject *self, PyObject *none)
{
	Instance *in = (Instance *)self;
	WeftStatus status = {0};
	WeftInstance *copy = NULL;
	(void)none;
	if (!instance_ready(in))
		return NULL;
	int code = in->program->model->clone(in->instance, &copy, &status);
	if (code)
		return weft_raise(code, status.message);
	Instance *out = PyObject_New(Instance, instance_type);
	if (!out) {
		in->program->model->close(copy);
		return NULL;
	}
	Py_INCREF((PyObject *)in->program);
	*out = (Instance){.ob_base = out->ob_base, .program = in->program, .instance = copy};
	return (PyObject *)out;
}

/* state_get(k, into), state_set(k, from) */
static PyObject *instance_state(PyObject *self, PyObject *args, bool set)
{
	Instance *in = (Instance *)self;
	unsigned k;
	PyObject *o;
	View v = {0};
	WeftTensor t;
	WeftStatus status = {0};
	if (!PyArg_ParseTuple(args, "IO", &k, &o) || !instance_ready(in))
		return NULL;
	const WeftModel *m = in->program->model;
	const WeftTensorInfo *info = weft_state_info(m, k);
	if (!info)
		return weft_raise(WEFT_ERR_ARGUMENT, "the model has no state of this number");
	if (view_open(&v, o, set ? &info->dtype : NULL, !set, "state", info->name, &t) < 0)
		return NULL;
	int code = (set ? m->state_set : m->state_get)(in->instance, k, &t, &status);
	view_close(&v);
	if (code)
		return weft_raise(code, status.message);
	Py_RETURN_NONE;
}

static PyObject *instance_state_get(PyObject *self, PyObject *args)
{
	return instance_state(self, args, false);
}

static PyObject *instance_state_set(PyObject *self, PyObject *args)
{
	return instance_state(self, args, true);
}

static PyObject *instance_state_reset(PyObject *self, PyObject *none)
{
	Instance *in = (Instance *)self;
	WeftStatus status = {0};
	(void)none;
	if (!instance_ready(in))
		return NULL;
	int code = in->program->model->state_reset(in->instance, &status);
	if (code)
		return weft_raise(code, status.message);
	Py_RETURN_NONE;
}

/* set_weights(dict, ignore_unknown), get_weights(dict): the tensors are read, or written. */
static PyObject *instance_weights(PyObject *self, PyObject *args, bool set)
{
	Instance *in = (Instance *)self;
	PyObject *named, *key, *value;
	int ignore = 0, code = -1;
	if (!PyArg_ParseTuple(args, "O|p", &named, &ignore) || !instance_ready(in))
		return NULL;
	Py_ssize_t n = PyDict_Size(named), at = 0, k = 0;
	const char **name = list_memory(n, sizeof *name);
	WeftTensor *t = name ? list_memory(n, sizeof *t) : NULL;
	View *v = t ? list_memory(n, sizeof *v) : NULL;
	WeftStatus status = {0};
	WeftContext c = {.size = sizeof c, .flags = ignore ? WEFT_IGNORE_UNKNOWN : 0};
	while (v && k < n && PyDict_Next(named, &at, &key, &value)) {
		name[k] = PyUnicode_AsUTF8AndSize(key, NULL);
		if (!name[k] || view_open(&v[k], value, NULL, !set, "weight", name[k], &t[k]) < 0)
			break;
		k++;
	}
	if (v && k == n && !PyErr_Occurred()) {
		in->running++;
		Py_BEGIN_ALLOW_THREADS code =
			(set ? in->program->model->set_weights : in->program->model->get_weights)(
				in->instance, (uint32_t)n, name, t, &c, &status);
		Py_END_ALLOW_THREADS
		in->running--;
	}
	while (k--)
		view_close(&v[k]);
	free(name);
	free(t);
	free(v);
	if (code > 0)
		return weft_raise(code, status.message);
	if (code < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *instance_set_weights(PyObject *self, PyObject *args)
{
	return instance_weights(self, args, true);
}

static PyObject *instance_get_weights(PyObject *self, PyObject *args)
{
	return instance_weights(self, args, false);
}

static PyMethodDef instance_methods[] = {
	{"close", instance_close, METH_NOARGS, "Closes the instance; later calls are errors."},
	{"clone", instance_clone, METH_NOARGS, "Another instance: the same weights, "
					       "a copy of the state."},
	{"state_get", instance_state_get, METH_VARARGS, "state_get(k, into): copies state k out."},
	{"state_set", instance_state_set, METH_VARARGS, "state_set(k, value): copies a value into "
							"state k."},
	{"state_reset", instance_state_reset, METH_NOARGS, "Sets all state to its initial "
							   "contents."},
	{"set_weights", instance_set_weights, METH_VARARGS, "set_weights(dict, "
							    "ignore_unknown=False)"},
	{"get_weights", instance_get_weights, METH_VARARGS, "get_weights(dict): fills in the "
							    "tensors."},
	{0},
};
static PyType_Slot instance_slots[] = {
	{Py_tp_dealloc, instance_dealloc},
	{Py_tp_methods, instance_methods},
	{Py_tp_doc, "An instance of a compiled model: weights, and state of its own."},
	{0, NULL},
};
static PyType_Spec instance_spec = {"weft._weft.Instance", sizeof(Instance), 0,
				    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				    instance_slots};

static PyMethodDef functions[] = {
	{"load", program_load, METH_VARARGS, "load(path, symbol): a Program of a shared object."},
	{0},
};

int program_setup(PyObject *module)
{
	if (class_add(module, &program_spec, "Program", &program_type) < 0 ||
	    class_add(module, &instance_spec, "Instance", &instance_type) < 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}
