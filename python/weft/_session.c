/* The compiler: sessions and graphs. */
#include "_weft.h"

#include <stdlib.h>
#include <string.h>

#include "weft_graph.h"
#include "weft_trace.h"

PyTypeObject *session_type, *graph_type;

/* ---- messages ---- */

/* "where: text" */
static PyObject *message_line(WeftMessage m)
{
	return *m.where ? PyUnicode_FromFormat("%s: %s", m.where, m.text)
			: PyUnicode_FromString(m.text);
}

/* What is said where an earlier error is why nothing was done: that error. */
static PyObject *earlier_error(Session *s)
{
	for (uint32_t k = weft_nmessages(s->w); k--;)
		if (weft_message(s->w, k).severity == WEFT_ERROR) {
			PyObject *line = message_line(weft_message(s->w, k));
			PyObject *text =
				line ? PyUnicode_FromFormat(
					       "an earlier error of this graph or trace: %U", line)
				     : NULL;
			Py_XDECREF(line);
			return text;
		}
	return PyUnicode_FromString("no message was given");
}

PyObject *session_raise(Session *s)
{
	PyObject *lines = PyList_New(0), *newline = PyUnicode_FromString("\n"), *text = NULL;
	uint32_t n = weft_nmessages(s->w);
	if (PyErr_Occurred()) { /* of a callback: what the compiler says follows from it */
		s->told = n;
		Py_XDECREF(lines);
		Py_XDECREF(newline);
		return NULL;
	}
	for (uint32_t k = s->told; lines && k < n; k++) {
		WeftMessage m = weft_message(s->w, k);
		if (m.severity != WEFT_ERROR)
			continue;
		list_put(&lines, message_line(m));
	}
	s->told = n;
	if (lines && newline)
		text = PyList_Size(lines) ? PyUnicode_Join(newline, lines) : earlier_error(s);
	if (text)
		PyErr_SetObject(weft_error, text);
	Py_XDECREF(text);
	Py_XDECREF(lines);
	Py_XDECREF(newline);
	return NULL;
}

/* Gives warnings since the last message that was told to Python's warnings. Returns false after an
 * exception: a filter makes them errors. */
static bool session_warn(Session *s)
{
	const uint32_t from = s->told, n = weft_nmessages(s->w);
	s->told = n;
	for (uint32_t k = from; k < n; k++) {
		const WeftMessage m = weft_message(s->w, k);
		PyObject *line = m.severity == WEFT_WARNING ? message_line(m) : NULL;
		const int failed = line ? PyErr_WarnFormat(PyExc_UserWarning, 2, "%U", line) : 0;
		Py_XDECREF(line);
		if (failed || (m.severity == WEFT_WARNING && !line))
			return false;
	}
	return true;
}

bool session_failed(const Session *s)
{
	for (uint32_t k = s->told; k < weft_nmessages(s->w); k++)
		if (weft_message(s->w, k).severity == WEFT_ERROR)
			return true;
	return false;
}

bool session_ready(const Session *s)
{
	if (s->busy)
		PyErr_SetString(weft_error, "another thread uses this Session");
	return !s->busy;
}

/* A Weft is used by one thread at a time, also while the lock of the interpreter is released. */
static bool session_enter(Session *s)
{
	return session_ready(s) && (s->busy = true);
}

#define RELEASED(s, statement)                                                                     \
	do {                                                                                       \
		Py_BEGIN_ALLOW_THREADS                                                             \
		statement;                                                                         \
		Py_END_ALLOW_THREADS                                                               \
		(s)->busy = false;                                                                 \
	} while (0)

static PyObject *session_messages(PyObject *self, PyObject *none)
{
	Session *s = (Session *)self;
	static const char *const kinds[] = {"error", "warning", "note"};
	PyObject *list = session_ready(s) ? PyList_New(0) : NULL;
	(void)none;
	for (uint32_t k = 0; list && k < weft_nmessages(s->w); k++) {
		WeftMessage m = weft_message(s->w, k);
		list_put(&list, Py_BuildValue("(sss)", kinds[m.severity], m.where, m.text));
	}
	return list;
}

/* ---- sessions ---- */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
	(void)args, (void)named;
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	Session *s = (Session *)alloc(type, 0);
	if (!s)
		return NULL;
	s->w = weft_new();
	s->held = PyList_New(0);
	if (s->w && s->held)
		return (PyObject *)s;
	Py_DECREF((PyObject *)s);
	return no_memory("a session");
}

static void session_dealloc(PyObject *self)
{
	Session *s = (Session *)self;
	PyTypeObject *type = Py_TYPE(self);
	weft_free(s->w);
	Py_XDECREF(s->held);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

PyObject *graph_object(Session *s, WeftGraph *g)
{
	if (!g)
		return session_raise(s);
	GraphObject *out = PyObject_New(GraphObject, graph_type);
	if (!out)
		return NULL;
	Py_INCREF((PyObject *)s);
	*out = (GraphObject){.ob_base = out->ob_base, .session = s, .graph = g};
	return (PyObject *)out;
}

static void graph_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF((PyObject *)((GraphObject *)self)->session);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

/* Texts of a list or tuple, for the time of a call; free the result. Sets *n. NULL with an
 * exception, or for None. */
static const char **texts_of(PyObject *list, uint32_t *n)
{
	*n = 0;
	if (!list || list == Py_None)
		return NULL;
	Py_ssize_t count = PySequence_Size(list);
	const char **out = list_memory(count, sizeof *out);
	for (Py_ssize_t k = 0; out && k < count; k++) {
		PyObject *item = PySequence_GetItem(list, k);
		out[k] = item ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
		Py_XDECREF(item); /* the list has it */
		if (!out[k]) {
			free(out);
			return NULL;
		}
	}
	*n = out ? (uint32_t)count : 0;
	return out;
}

/* load(path or buffer, name, rng_input=False, seed=0, ignore_guards=None) -> Graph */
static PyObject *session_load(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *from, *ignore = NULL, *path = NULL, *view = NULL;
	const char *name;
	int rng_input = 0;
	unsigned long long seed = 0;
	if (!PyArg_ParseTuple(args, "Os|pKO", &from, &name, &rng_input, &seed, &ignore))
		return NULL;
	WeftLoadOptions o = {.size = sizeof o, .seed = seed, .rng_input = rng_input};
	const char **guards = texts_of(ignore, &o.nignore_guard);
	o.ignore_guard = guards;
	WeftGraph *g = NULL;
	if (PyErr_Occurred() || !session_enter(s)) {
		free(guards);
		return NULL;
	}
	if (PyObject_CheckBuffer(from)) {
		Py_buffer b;
		/* The memoryview keeps the memory where it is. */
		view = PyMemoryView_FromObject(from);
		if (view && !PyList_Append(s->held, view) &&
		    !PyObject_GetBuffer(view, &b, PyBUF_SIMPLE)) {
			WeftMemory m = {.data = b.buf, .bytes = (size_t)b.len};
			RELEASED(s, g = weft_load_memory_with(s->w, &m, name, &o));
			PyBuffer_Release(&b);
		}
		Py_XDECREF(view);
	} else if (PyUnicode_FSConverter(from, &path)) {
		const char *file = PyBytes_AsString(path);
		RELEASED(s, g = weft_load_with(s->w, file, &o));
		Py_DECREF(path);
	}
	s->busy = false;
	free(guards);
	return PyErr_Occurred() ? NULL : graph_object(s, g);
}

/* ops(path): registers the operators of a library. */
static PyObject *session_ops(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *path;
	bool done = false;
	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
		return NULL;
	if (session_ready(s)) {
		done = weft_op_load(s->w, PyBytes_AsString(path));
		s->has_ops |= done;
		if (!done)
			session_raise(s);
	}
	Py_DECREF(path);
	if (!done)
		return NULL;
	Py_RETURN_NONE;
}

/* ranks(n): the ranks of groups of which collectives do not say it. */
static PyObject *session_ranks(PyObject *self, PyObject *args)
{
	unsigned n;
	if (!PyArg_ParseTuple(args, "I", &n) || !session_ready((Session *)self))
		return NULL;
	weft_ranks(((Session *)self)->w, n);
	Py_RETURN_NONE;
}

static PyObject *session_parse(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	const char *text, *name;
	return PyArg_ParseTuple(args, "ss", &text, &name) && session_ready(s)
		       ? graph_object(s, weft_parse(s->w, text, name))
		       : NULL;
}

static bool graph_of(Session *s, PyObject *o, WeftGraph **g);

/* parse_like(graph, text, name): constants are those of the graph. */
static PyObject *session_parse_like(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *like;
	const char *text, *name;
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "Oss", &like, &text, &name) || !graph_of(s, like, &g) ||
	    !session_ready(s))
		return NULL;
	return graph_object(s, weft_parse_like(s->w, g, text, name));
}

static bool graph_of(Session *s, PyObject *o, WeftGraph **g)
{
	if (!PyObject_TypeCheck(o, graph_type) || ((GraphObject *)o)->session != s) {
		PyErr_SetString(PyExc_TypeError, "expected a Graph of this Session");
		return false;
	}
	*g = ((GraphObject *)o)->graph;
	return true;
}

/* ---- transforms ---- */

/* Fills in the fields of WeftGradOptions that have texts and numbers. */
static int grad_options(PyObject *args, Session *s, WeftGraph **g, WeftGradOptions *o,
			const char ***wrt, uint32_t **outputs, double *budget)
{
	PyObject *graph, *by = NULL, *out = NULL, *most = NULL;
	*wrt = NULL;
	*outputs = NULL;
	if (!PyArg_ParseTuple(args, "O|OOO", &graph, &by, &out, &most) || !graph_of(s, graph, g))
		return -1;
	*o = (WeftGradOptions){.size = sizeof *o};
	o->wrt = *wrt = texts_of(by, &o->nwrt);
	Py_ssize_t n = out && out != Py_None ? PySequence_Size(out) : 0;
	o->output = *outputs = n ? list_memory(n, sizeof **outputs) : NULL;
	for (Py_ssize_t k = 0; *outputs && k < n; k++) {
		PyObject *item = PySequence_GetItem(out, k);
		(*outputs)[k] = item ? (uint32_t)PyLong_AsLong(item) : 0;
		Py_XDECREF(item);
	}
	o->noutput = *outputs ? (uint32_t)n : 0;
	if (most && most != Py_None) {
		*budget = PyFloat_AsDouble(most);
		o->memory_budget = budget;
	}
	return PyErr_Occurred() ? -1 : 0;
}

typedef WeftGraph *Derive(Weft *, const WeftGraph *, const WeftGradOptions *);

static PyObject *derive(PyObject *self, PyObject *args, Derive *f)
{
	Session *s = (Session *)self;
	WeftGradOptions o;
	WeftGraph *g, *out = NULL;
	const char **wrt;
	uint32_t *outputs;
	double budget;
	bool given =
		grad_options(args, s, &g, &o, &wrt, &outputs, &budget) == 0 && session_enter(s);
	if (given)
		RELEASED(s, out = f(s->w, g, &o));
	free(wrt);
	free(outputs);
	return given ? graph_object(s, out) : NULL;
}

static PyObject *session_vjp(PyObject *self, PyObject *args)
{
	return derive(self, args, weft_vjp);
}

static PyObject *session_jvp(PyObject *self, PyObject *args)
{
	return derive(self, args, weft_jvp);
}

/* split(graph, wrt, outputs, budget) -> (forward, backward) */
static PyObject *session_split(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	WeftGradOptions o;
	WeftGraph *g, *forward = NULL, *backward = NULL;
	const char **wrt;
	uint32_t *outputs;
	double budget;
	bool given =
		grad_options(args, s, &g, &o, &wrt, &outputs, &budget) == 0 && session_enter(s);
	if (given)
		RELEASED(s, weft_vjp_split(s->w, g, &o, &forward, &backward));
	free(wrt);
	free(outputs);
	if (!given)
		return NULL;
	PyObject *a = graph_object(s, forward), *b = a ? graph_object(s, backward) : NULL;
	PyObject *both = b ? PyTuple_Pack(2, a, b) : NULL;
	Py_XDECREF(a);
	Py_XDECREF(b);
	return both;
}

static int32_t *dims_of(PyObject *list, uint32_t *n)
{
	*n = 0;
	if (!list || list == Py_None)
		return NULL;
	Py_ssize_t count = PySequence_Size(list);
	int32_t *out = list_memory(count, sizeof *out);
	for (Py_ssize_t k = 0; out && k < count; k++) {
		PyObject *item = PySequence_GetItem(list, k);
		out[k] = !item || item == Py_None ? WEFT_NO_BATCH : (int32_t)PyLong_AsLong(item);
		Py_XDECREF(item);
	}
	*n = out ? (uint32_t)count : 0;
	return out;
}

/* vmap(graph, extent, in_dims, out_dims, randomness) */
static PyObject *session_vmap(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	WeftVmapOptions o = {.size = sizeof o};
	PyObject *graph, *in = NULL, *out = NULL;
	long long extent = 0;
	int random = 0;
	WeftGraph *g, *result = NULL;
	if (!PyArg_ParseTuple(args, "O|LOOi", &graph, &extent, &in, &out, &random) ||
	    !graph_of(s, graph, &g))
		return NULL;
	o.extent = extent;
	o.randomness = (WeftRandomness)random;
	int32_t *in_dim = dims_of(in, &o.nin_dim), *out_dim = dims_of(out, &o.nout_dim);
	o.in_dim = in_dim;
	o.out_dim = out_dim;
	bool ready = !PyErr_Occurred() && session_enter(s);
	if (ready)
		RELEASED(s, result = weft_vmap(s->w, g, &o));
	free(in_dim);
	free(out_dim);
	return ready ? graph_object(s, result) : NULL;
}

/* join(names, graphs) */
static PyObject *session_join(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *names, *graphs;
	uint32_t n;
	if (!PyArg_ParseTuple(args, "OO", &names, &graphs))
		return NULL;
	const char **name = texts_of(names, &n);
	WeftGraph **g = name ? list_memory(n, sizeof *g) : NULL, *out = NULL;
	bool ready = g && session_ready(s);
	for (uint32_t k = 0; ready && k < n; k++) {
		PyObject *item = PySequence_GetItem(graphs, k);
		ready = item && graph_of(s, item, &g[k]);
		Py_XDECREF(item);
	}
	if (ready)
		out = weft_join(s->w, n, name, g);
	free(name);
	free(g);
	return ready ? graph_object(s, out) : NULL;
}

/* transform(graph, pass): in place */
static PyObject *session_transform(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph;
	const char *pass;
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "Os", &graph, &pass) || !graph_of(s, graph, &g) ||
	    !session_ready(s))
		return NULL;
	if (!weft_transform(s->w, g, pass))
		return session_raise(s);
	Py_RETURN_NONE;
}

/* set_mode(graph, train): in place */
static PyObject *session_set_mode(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph;
	int train;
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "Op", &graph, &train) || !graph_of(s, graph, &g) ||
	    !session_ready(s))
		return NULL;
	if (!weft_set_mode(s->w, g, train ? WEFT_TRAIN : WEFT_EVAL))
		return session_raise(s);
	Py_RETURN_NONE;
}

/* set_precision(graph, "bf16" or "f16"): in place */
static PyObject *session_set_precision(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph;
	const char *text;
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "Os", &graph, &text) || !graph_of(s, graph, &g) ||
	    !session_ready(s))
		return NULL;
	if (strcmp(text, "bf16") && strcmp(text, "f16"))
		return PyErr_Format(PyExc_ValueError,
				    "precision is \"bf16\" or \"f16\", not \"%s\"", text);
	if (!weft_set_precision(s->w, g,
				strcmp(text, "f16") ? WEFT_PRECISION_BF16 : WEFT_PRECISION_F16))
		return session_raise(s);
	Py_RETURN_NONE;
}

/* set_activations(graph, "int8" or "exact"): in place */
static PyObject *session_set_activations(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph;
	const char *text;
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "Os", &graph, &text) || !graph_of(s, graph, &g) ||
	    !session_ready(s))
		return NULL;
	if (strcmp(text, "int8") && strcmp(text, "exact"))
		return PyErr_Format(PyExc_ValueError,
				    "activations is \"int8\" or \"exact\", not \"%s\"", text);
	if (!weft_set_activations(s->w, g,
				  strcmp(text, "exact") ? WEFT_ACTIVATIONS_INT8
							: WEFT_ACTIVATIONS_EXACT))
		return session_raise(s);
	Py_RETURN_NONE;
}

/* load_weights(graph, paths, names or None): in place */
static PyObject *session_load_weights(PyObject *self, PyObject *args)
{
	enum { MOST_FILES = 1024 };
	Session *s = (Session *)self;
	PyObject *graph, *paths;
	const char *names, *path[MOST_FILES];
	WeftGraph *g;
	if (!PyArg_ParseTuple(args, "OO!z", &graph, &PyTuple_Type, &paths, &names) ||
	    !graph_of(s, graph, &g) || !session_ready(s))
		return NULL;
	const Py_ssize_t n = PyTuple_Size(paths);
	if (n > MOST_FILES)
		return PyErr_Format(PyExc_ValueError, "more than %d files", MOST_FILES);
	for (Py_ssize_t k = 0; k < n; k++)
		if (!(path[k] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(paths, k), NULL)))
			return NULL;
	if (!weft_load_weights(s->w, g, path, (uint32_t)n, names))
		return session_raise(s);
	if (!session_warn(s))
		return NULL;
	Py_RETURN_NONE;
}

/* ---- compiling ---- */

static const struct {
	const char *name;
	size_t at;
	enum { IS_TEXT, IS_BOOL, IS_COUNT, IS_LINK } kind;
} option_fields[] = {
	{"target", offsetof(WeftOptions, target), IS_TEXT},
	{"tune", offsetof(WeftOptions, tune), IS_TEXT},
	{"name", offsetof(WeftOptions, name), IS_TEXT},
	{"symbol", offsetof(WeftOptions, symbol), IS_TEXT},
	{"cc", offsetof(WeftOptions, cc), IS_TEXT},
	{"backend", offsetof(WeftOptions, backend_name), IS_TEXT},
	{"dump", offsetof(WeftOptions, dump), IS_TEXT},
	{"replaceable", offsetof(WeftOptions, replaceable), IS_BOOL},
	{"op_by_op", offsetof(WeftOptions, op_by_op), IS_BOOL},
	{"no_cache", offsetof(WeftOptions, no_cache), IS_BOOL},
	{"duplicate_weights", offsetof(WeftOptions, duplicate_weights), IS_BOOL},
	{"cancellable", offsetof(WeftOptions, cancellable), IS_BOOL},
	{"jobs", offsetof(WeftOptions, jobs), IS_COUNT},
	{"link", offsetof(WeftOptions, link), IS_LINK},             /* a list of texts */
	{"weights_file", offsetof(WeftOptions, weights), IS_COUNT}, /* WeftWeights */
};

static int set_option(WeftOptions *o, PyObject *key, PyObject *value)
{
	const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
	for (size_t k = 0; name && k < sizeof option_fields / sizeof *option_fields; k++) {
		void *field = (char *)o + option_fields[k].at;
		if (strcmp(option_fields[k].name, name))
			continue;
		if (value == Py_None)
			return 0;
		if (option_fields[k].kind == IS_TEXT && PyUnicode_Check(value)) {
			*(const char **)field = PyUnicode_AsUTF8AndSize(value, NULL);
		} else if (option_fields[k].kind == IS_LINK) {
			o->link = texts_of(value, &o->nlink);
		} else if (option_fields[k].kind == IS_TEXT) {
			PyErr_Format(PyExc_TypeError, "compile: option %s: expected a text, got %R",
				     name, value);
		} else if (option_fields[k].kind == IS_BOOL) {
			*(bool *)field = PyObject_IsTrue(value) == 1;
		} else {
			unsigned long n = PyLong_AsUnsignedLong(value);
			if (PyErr_Occurred() || n > UINT32_MAX)
				PyErr_Format(PyExc_ValueError,
					     "compile: option %s: expected 0 to %u, got %R", name,
					     UINT32_MAX, value);
			*(uint32_t *)field = (uint32_t)n;
		}
		return PyErr_Occurred() ? -1 : 0;
	}
	if (name)
		PyErr_Format(PyExc_TypeError, "compile has no option %s", name);
	return -1;
}

/* After success free o->link. */
static int options_of(PyObject *dict, WeftOptions *o)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	*o = (WeftOptions){.size = sizeof *o};
	while (dict && PyDict_Next(dict, &at, &key, &value))
		if (set_option(o, key, value) < 0) {
			free((void *)(uintptr_t)o->link);
			return -1;
		}
	return 0;
}

/* jit(graph, options) -> Program */
static PyObject *session_jit(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph, *options = NULL;
	WeftOptions o;
	WeftGraph *g;
	const WeftModel *m = NULL;
	if (!PyArg_ParseTuple(args, "O|O!", &graph, &PyDict_Type, &options) ||
	    !graph_of(s, graph, &g) || options_of(options, &o) < 0)
		return NULL;
	if (!session_enter(s)) {
		free((void *)(uintptr_t)o.link);
		return NULL;
	}
	/* Functions of libraries that the Weft has loaded live as long as that. */
	RELEASED(s, m = (s->has_ops ? weft_jit : weft_jit_keep)(s->w, g, &o));
	free((void *)(uintptr_t)o.link);
	PyObject *program =
		m ? program_object(m, NULL, s->has_ops ? self : NULL) : session_raise(s);
	if (program && !session_warn(s))
		Py_CLEAR(program);
	return program;
}

/* plan(graph, options): fills in the report. */
static PyObject *session_plan(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph, *options = NULL;
	WeftOptions o;
	WeftGraph *g;
	bool done = false;
	if (!PyArg_ParseTuple(args, "O|O!", &graph, &PyDict_Type, &options) ||
	    !graph_of(s, graph, &g) || options_of(options, &o) < 0)
		return NULL;
	if (!session_enter(s)) {
		free((void *)(uintptr_t)o.link);
		return NULL;
	}
	RELEASED(s, done = weft_plan(s->w, g, &o));
	free((void *)(uintptr_t)o.link);
	if (!done)
		return session_raise(s);
	Py_RETURN_NONE;
}

/* emit(graph, kind, path, options): kind as WeftEmit; WEFT_EMIT_SHARED compiles. */
static PyObject *session_emit(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *graph, *path, *options = NULL;
	WeftOptions o;
	WeftGraph *g;
	int kind;
	bool done = false;
	if (!PyArg_ParseTuple(args, "OiO&|O!", &graph, &kind, PyUnicode_FSConverter, &path,
			      &PyDict_Type, &options))
		return NULL;
	if (graph_of(s, graph, &g) && options_of(options, &o) == 0) {
		const char *file = PyBytes_AsString(path);
		if (session_enter(s)) {
			RELEASED(s, done = weft_emit(s->w, g, &o, (WeftEmit)kind, file));
			if (!done)
				session_raise(s);
			done = done && session_warn(s);
		}
		free((void *)(uintptr_t)o.link);
	}
	Py_DECREF(path);
	if (!done)
		return NULL;
	Py_RETURN_NONE;
}

/* report() -> dict or None */
static PyObject *session_report(PyObject *self, PyObject *none)
{
	Session *s = (Session *)self;
	if (!session_ready(s))
		return NULL;
	const WeftReport *r = weft_report(s->w);
	PyObject *kernels = PyList_New(0), *phases = PyList_New(0);
	(void)none;
	for (uint32_t k = 0; r && kernels && k < r->nkernel; k++) {
		const WeftKernelInfo *i = &r->kernel[k];
		list_put(&kernels,
			 Py_BuildValue("{s:z,s:z,s:d,s:d,s:z,s:d,s:z,s:I,s:z,s:z}", "name", i->name,
				       "algorithm", i->algorithm, "flops", i->flops, "bytes",
				       i->bytes, "why", i->why, "seconds", i->seconds, "line",
				       i->line, "nline", (unsigned)i->nline, "plan", i->plan,
				       "stored", i->stored));
	}
	for (uint32_t k = 0; r && phases && k < r->nphase; k++)
		list_put(&phases, Py_BuildValue("(sd)", r->phase[k].name, r->phase[k].seconds));
	PyObject *out =
		r && kernels && phases
			? Py_BuildValue("{s:I,s:I,s:I,s:d,s:d,s:K,s:K,s:K,s:O,s:O}", "operators",
					(unsigned)r->operators, "kernels", (unsigned)r->kernels,
					"distinct", (unsigned)r->distinct, "flops", r->flops,
					"bytes", r->bytes, "weight_bytes",
					(unsigned long long)r->weight_bytes, "workspace_bytes",
					(unsigned long long)r->workspace_bytes, "code_bytes",
					(unsigned long long)r->code_bytes, "kernel", kernels,
					"phases", phases)
			: NULL;
	Py_XDECREF(kernels);
	Py_XDECREF(phases);
	if (!r)
		Py_RETURN_NONE;
	return out;
}

/* supports(op, dtypes): dtypes is a list of texts. */
static PyObject *session_supports(PyObject *self, PyObject *args)
{
	Session *s = (Session *)self;
	PyObject *list;
	const char *op;
	uint32_t n;
	WeftDType dtype[64];
	if (!PyArg_ParseTuple(args, "sO", &op, &list) || !session_ready(s))
		return NULL;
	const char **text = texts_of(list, &n);
	bool good = !PyErr_Occurred() && n <= 64;
	for (uint32_t k = 0; good && k < n; k++)
		good = dtype_of_text(text[k], &dtype[k]);
	good = good && weft_trace_supports(s->w, op, dtype, n);
	free(text);
	return PyErr_Occurred() ? NULL : PyBool_FromLong(good);
}

static PyMethodDef session_methods[] = {
	{"messages", session_messages, METH_NOARGS,
	 "All messages so far: (severity, where, "
	 "text)."},
	{"load", session_load, METH_VARARGS,
	 "load(path or buffer, name, rng_input=False, seed=0, "
	 "ignore_guards=None): a Graph."},
	{"ops", session_ops, METH_VARARGS, "ops(path): registers the operators of a library."},
	{"ranks", session_ranks, METH_VARARGS,
	 "ranks(n): how many ranks groups have of which collectives do not say it."},
	{"parse", session_parse, METH_VARARGS, "parse(text, name): a Graph."},
	{"parse_like", session_parse_like, METH_VARARGS,
	 "parse_like(graph, text, name): a Graph "
	 "with the constants of another one."},
	{"vjp", session_vjp, METH_VARARGS, "vjp(graph, wrt=None, outputs=None)"},
	{"jvp", session_jvp, METH_VARARGS, "jvp(graph, wrt=None)"},
	{"split", session_split, METH_VARARGS,
	 "split(graph, wrt=None, outputs=None, budget=None): "
	 "(forward, backward)"},
	{"vmap", session_vmap, METH_VARARGS,
	 "vmap(graph, extent=0, in_dims=None, out_dims=None, "
	 "randomness=0)"},
	{"join", session_join, METH_VARARGS, "join(names, graphs): one model of several entries."},
	{"transform", session_transform, METH_VARARGS,
	 "transform(graph, pass): applies a pass in "
	 "place."},
	{"set_mode", session_set_mode, METH_VARARGS, "set_mode(graph, train): in place."},
	{"load_weights", session_load_weights, METH_VARARGS,
	 "load_weights(graph, (path, ...), path of names or None): changes the graph"},
	{"set_activations", session_set_activations, METH_VARARGS,
	 "set_activations(graph, \"int8\" or \"exact\"): changes the graph"},
	{"set_precision", session_set_precision, METH_VARARGS,
	 "set_precision(graph, \"bf16\" or "
	 "\"f16\"): in place."},
	{"jit", session_jit, METH_VARARGS, "jit(graph, options): a Program in this process."},
	{"plan", session_plan, METH_VARARGS, "plan(graph, options): plans without making code."},
	{"emit", session_emit, METH_VARARGS,
	 "emit(graph, kind, path, options): writes a file or "
	 "folder."},
	{"report", session_report, METH_NOARGS, "What the last compilation made, as a dict."},
	{"supports", session_supports, METH_VARARGS,
	 "supports(op, dtypes): whether a trace can "
	 "call the operator."},
	{"trace", session_trace, METH_O, "trace(name): a Trace."},
	{0},
};
static PyType_Slot session_slots[] = {
	{Py_tp_new, session_new},
	{Py_tp_dealloc, session_dealloc},
	{Py_tp_methods, session_methods},
	{Py_tp_doc, "A compilation: owns graphs and messages."},
	{0, NULL},
};
static PyType_Spec session_spec = {"weft._weft.Session", sizeof(Session), 0, Py_TPFLAGS_DEFAULT,
				   session_slots};

/* ---- graphs ---- */

static PyObject *infos(GraphObject *g,
		       const WeftTensorInfo *(*list)(Weft *, const WeftGraph *, uint32_t *))
{
	uint32_t n;
	if (!session_ready(g->session))
		return NULL;
	const WeftTensorInfo *t = list(g->session->w, g->graph, &n);
	if (!t)
		return session_raise(g->session);
	PyObject *out = PyList_New(0);
	for (uint32_t k = 0; out && k < n; k++) {
		PyObject *dims = PyTuple_New(t[k].rank);
		for (uint32_t d = 0; dims && d < t[k].rank; d++)
			tuple_put(&dims, d,
				  t[k].dim[d].value >= 0 ? PyLong_FromLongLong(t[k].dim[d].value)
							 : PyUnicode_FromString(t[k].dim[d].text));
		list_put(&out,
			 Py_BuildValue("(ssNziI)", t[k].name, dtype_text(t[k].dtype), dims,
				       t[k].role, (int)t[k].donates, (unsigned)t[k].requires_grad));
	}
	return out;
}

static PyObject *graph_inputs(PyObject *self, PyObject *none)
{
	(void)none;
	return infos((GraphObject *)self, weft_inputs);
}

static PyObject *graph_outputs(PyObject *self, PyObject *none)
{
	(void)none;
	return infos((GraphObject *)self, weft_outputs);
}

static PyObject *graph_states(PyObject *self, PyObject *none)
{
	(void)none;
	return infos((GraphObject *)self, weft_states);
}

static PyObject *text_or_raise(GraphObject *g, const char *text)
{
	return text ? PyUnicode_FromString(text) : session_raise(g->session);
}

/* text(after=None) */
static PyObject *graph_text(PyObject *self, PyObject *args)
{
	GraphObject *g = (GraphObject *)self;
	const char *after = NULL;
	bool ready = PyArg_ParseTuple(args, "|z", &after) && session_ready(g->session);
	return ready ? text_or_raise(g, weft_graph_text(g->session->w, g->graph, after)) : NULL;
}

/* dot(after=None) */
static PyObject *graph_dot(PyObject *self, PyObject *args)
{
	GraphObject *g = (GraphObject *)self;
	const char *after = NULL;
	bool ready = PyArg_ParseTuple(args, "|z", &after) && session_ready(g->session);
	return ready ? text_or_raise(g, weft_graph_dot(g->session->w, g->graph, after)) : NULL;
}

static PyMemberDef graph_members[] = {
	{"session", T_OBJECT, offsetof(GraphObject, session), READONLY,
	 "The Session that owns the "
	 "graph."},
	{0},
};
static PyMethodDef graph_methods[] = {
	{"inputs", graph_inputs, METH_NOARGS, "(name, dtype, extents, role, donates, "
					      "requires_grad) of each input."},
	{"outputs", graph_outputs, METH_NOARGS, "The same of each output."},
	{"states", graph_states, METH_NOARGS, "The same of each state."},
	{"text", graph_text, METH_VARARGS, "text(after=None): the text form, after a pass."},
	{"dot", graph_dot, METH_VARARGS, "dot(after=None): for graphviz."},
	{0},
};
static PyType_Slot graph_slots[] = {
	{Py_tp_dealloc, graph_dealloc},
	{Py_tp_members, graph_members},
	{Py_tp_methods, graph_methods},
	{Py_tp_doc, "A graph of a Session."},
	{0, NULL},
};
static PyType_Spec graph_spec = {"weft._weft.Graph", sizeof(GraphObject), 0,
				 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				 graph_slots};

int session_setup(PyObject *module)
{
	if (class_add(module, &session_spec, "Session", &session_type) < 0)
		return -1;
	return class_add(module, &graph_spec, "Graph", &graph_type);
}
