/* Traces: calls of operators that make a graph (weft_trace.h). */
#include "_weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_trace.h"

/* A value of a trace, which it does not keep alive: the trace's number tells it from all others. */
typedef struct {
	PyObject_HEAD
	WeftValue value;
	uint64_t trace;
} TraceValue;

typedef struct {
	PyObject_HEAD
	Session *session;
	WeftTrace *trace; /* NULL: it has ended */
	uint64_t number;
} Trace;

static PyTypeObject *value_type, *trace_type;
static PyObject *size_type; /* class Size(str): an expression of sizes */

/* ---- arguments ---- */

void *memory_take(Memory **m, size_t bytes)
{
	Memory *block = calloc(1, sizeof *block + bytes);
	if (!block)
		return no_memory("a call");
	block->next = *m;
	*m = block;
	return block + 1;
}

void memory_drop(Memory *m)
{
	for (Memory *next; m; m = next) {
		next = m->next;
		free(m);
	}
}

static PyObject *value_object(const Trace *t, WeftValue v)
{
	TraceValue *out = PyObject_New(TraceValue, value_type);
	if (out)
		*out = (TraceValue){.ob_base = out->ob_base, .value = v, .trace = t->number};
	return (PyObject *)out;
}

static bool is_value(PyObject *o)
{
	return Py_TYPE(o) == value_type;
}

/* Sets *v to the value, which must be one of this trace; else returns false with an exception. */
static bool value_of(const Trace *t, PyObject *o, WeftValue *v)
{
	if (!is_value(o)) {
		PyErr_Format(PyExc_TypeError, "expected a value of a trace, got %R",
			     (PyObject *)Py_TYPE(o));
		return false;
	}
	if (((TraceValue *)o)->trace != t->number) {
		PyErr_SetString(PyExc_ValueError, "this is a value of another trace");
		return false;
	}
	*v = ((TraceValue *)o)->value;
	return true;
}

bool is_size(PyObject *o)
{
	return PyObject_TypeCheck(o, (PyTypeObject *)size_type);
}

/* The kind of an argument that is no list. */
static WeftArgKind kind_of(PyObject *o)
{
	if (o == Py_None)
		return WEFT_ARG_NONE;
	if (is_value(o))
		return WEFT_ARG_VALUE;
	if (is_size(o))
		return WEFT_ARG_SIZE;
	if (PyUnicode_Check(o))
		return WEFT_ARG_TEXT;
	if (PyBool_Check(o))
		return WEFT_ARG_BOOL;
	return PyFloat_Check(o)     ? WEFT_ARG_FLOAT
	       : PyComplex_Check(o) ? WEFT_ARG_COMPLEX
				    : WEFT_ARG_INT;
}

/* The kind of a list with these elements: None among tensors is an absent tensor, an integer among
 * sizes or floats is one of them. */
static WeftArgKind list_kind(WeftArgKind a, WeftArgKind b)
{
	return a == WEFT_ARG_VALUE || b == WEFT_ARG_VALUE   ? WEFT_ARG_VALUE
	       : a == WEFT_ARG_SIZE || b == WEFT_ARG_SIZE   ? WEFT_ARG_SIZE
	       : a == WEFT_ARG_FLOAT || b == WEFT_ARG_FLOAT ? WEFT_ARG_FLOAT
	       : a == b                                     ? a
							    : WEFT_ARG_INT;
}

PyObject *size_object(const char *text)
{
	return PyObject_CallFunction(size_type, "s", text);
}

const char *size_text(PyObject *o, Memory **m)
{
	if (PyUnicode_Check(o))
		return PyUnicode_AsUTF8AndSize(o, NULL);
	long long i = PyLong_AsLongLong(o);
	char *text = memory_take(m, 24);
	if (text)
		snprintf(text, 24, "%lld", i);
	return text;
}

static bool set_element(const Trace *t, WeftArg *a, uint32_t k, PyObject *o, Memory **m)
{
	switch (a->kind) {
	case WEFT_ARG_VALUES:
		if (is_value(o))
			value_of(t, o, (WeftValue *)(uintptr_t)a->u.values + k);
		break;
	case WEFT_ARG_SIZES:
		((const char **)(uintptr_t)a->u.texts)[k] = size_text(o, m);
		break;
	case WEFT_ARG_FLOATS:
		((double *)(uintptr_t)a->u.floats)[k] = PyFloat_AsDouble(o);
		break;
	case WEFT_ARG_BOOLS:
		((bool *)(uintptr_t)a->u.bools)[k] = o == Py_True;
		break;
	default:
		((int64_t *)(uintptr_t)a->u.ints)[k] = PyLong_AsLongLong(o);
	}
	return !PyErr_Occurred();
}

static bool list_argument(const Trace *t, WeftArg *a, PyObject *list, Memory **m)
{
	Py_ssize_t n = PySequence_Size(list);
	WeftArgKind kind = WEFT_ARG_NONE;
	for (Py_ssize_t k = 0; k < n; k++) {
		PyObject *o = PySequence_GetItem(list, k);
		if (!o)
			return false;
		kind = k ? list_kind(kind, kind_of(o)) : kind_of(o);
		Py_DECREF(o); /* the list has it */
	}
	a->n = (uint32_t)n;
	a->kind = kind == WEFT_ARG_VALUE       ? WEFT_ARG_VALUES
		  : kind == WEFT_ARG_SIZE      ? WEFT_ARG_SIZES
		  : kind == WEFT_ARG_FLOAT     ? WEFT_ARG_FLOATS
		  : kind == WEFT_ARG_BOOL      ? WEFT_ARG_BOOLS
		  : kind == WEFT_ARG_NONE && n ? WEFT_ARG_VALUES
					       : WEFT_ARG_INTS;
	void *memory = memory_take(m, (size_t)(n + 1) * sizeof(WeftValue));
	a->u.ints = memory;
	for (Py_ssize_t k = 0; memory && k < n; k++) {
		PyObject *o = PySequence_GetItem(list, k);
		bool good = o && set_element(t, a, (uint32_t)k, o, m);
		Py_XDECREF(o);
		if (!good)
			return false;
	}
	return memory;
}

static bool complex_argument(WeftArg *a, PyObject *o, Memory **m)
{
	double *parts = memory_take(m, 2 * sizeof *parts);
	if (!parts)
		return false;
	parts[0] = PyComplex_RealAsDouble(o);
	parts[1] = PyComplex_ImagAsDouble(o);
	*a = weft_arg_complex(parts);
	return true;
}

static bool argument(const Trace *t, WeftArg *a, PyObject *o, Memory **m)
{
	*a = weft_arg_none();
	a->n = 1;
	if (PyList_Check(o) || PyTuple_Check(o))
		return list_argument(t, a, o, m);
	a->kind = kind_of(o);
	WeftValue v;
	if (a->kind == WEFT_ARG_VALUE && value_of(t, o, &v))
		*a = weft_arg(v);
	else if (a->kind == WEFT_ARG_BOOL)
		a->u.b = o == Py_True;
	else if (a->kind == WEFT_ARG_FLOAT)
		a->u.f = PyFloat_AsDouble(o);
	else if (a->kind == WEFT_ARG_COMPLEX)
		return complex_argument(a, o, m);
	else if (a->kind == WEFT_ARG_TEXT || a->kind == WEFT_ARG_SIZE)
		a->u.text = PyUnicode_AsUTF8AndSize(o, NULL);
	else if (a->kind == WEFT_ARG_INT)
		a->u.i = PyLong_AsLongLong(o);
	return !PyErr_Occurred();
}

/* ---- calls ---- */

/* Whether calls can be traced; else sets an exception. */
static bool trace_ready(const Trace *t)
{
	if (!t->trace)
		PyErr_SetString(weft_error, "the trace has ended");
	return t->trace && session_ready(t->session);
}

static PyObject *checked_value(Trace *t, WeftValue v)
{
	return v.node ? value_object(t, v) : session_raise(t->session);
}

/* call(op, args, named) -> Value */
static PyObject *trace_call(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	const char *op;
	PyObject *list, *named = NULL, *key, *value, *out = NULL;
	if (!PyArg_ParseTuple(args, "sO!|O!", &op, &PyTuple_Type, &list, &PyDict_Type, &named) ||
	    !trace_ready(t))
		return NULL;
	Memory *m = NULL;
	Py_ssize_t n = PyTuple_Size(list), all = n + (named ? PyDict_Size(named) : 0), at = 0;
	WeftArg *a = memory_take(&m, (size_t)(all + 1) * sizeof *a);
	bool good = a;
	for (Py_ssize_t k = 0; good && k < n; k++)
		good = argument(t, &a[k], PyTuple_GetItem(list, k), &m);
	while (good && named && PyDict_Next(named, &at, &key, &value)) {
		good = argument(t, &a[n], value, &m);
		a[n++].name = PyUnicode_AsUTF8AndSize(key, NULL);
	}
	if (good && !PyErr_Occurred()) {
		WeftValue v = weft_trace_call(t->trace, op, a, (uint32_t)n);
		out = checked_value(t, v);
	}
	memory_drop(m);
	return out;
}

static PyObject *trace_result(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *o;
	unsigned k;
	WeftValue v;
	if (!PyArg_ParseTuple(args, "OI", &o, &k) || !value_of(t, o, &v) || !trace_ready(t))
		return NULL;
	return checked_value(t, weft_trace_result(t->trace, v, k));
}

/* nresult(several) -> how many results; -1: one tensor */
static PyObject *trace_nresult(PyObject *self, PyObject *o)
{
	Trace *t = (Trace *)self;
	WeftValue v;
	if (!value_of(t, o, &v) || !trace_ready(t))
		return NULL;
	int32_t n = weft_trace_nresult(t->trace, v);
	return session_failed(t->session) ? session_raise(t->session) : PyLong_FromLong(n);
}

/* shape(value) -> tuple, with None for an extent that is no number */
static PyObject *trace_shape(PyObject *self, PyObject *o)
{
	Trace *t = (Trace *)self;
	int64_t shape[12];
	WeftValue v;
	if (!value_of(t, o, &v) || !trace_ready(t))
		return NULL;
	int32_t rank = weft_trace_shape(t->trace, v, shape);
	if (rank < 0)
		return session_raise(t->session);
	PyObject *out = PyTuple_New(rank);
	for (int32_t d = 0; out && d < rank; d++) {
		if (shape[d] < 0)
			Py_INCREF(Py_None);
		PyTuple_SetItem(out, d, shape[d] < 0 ? Py_None : PyLong_FromLongLong(shape[d]));
	}
	return out;
}

/* extent(value, dim) -> an expression of sizes */
static PyObject *trace_extent(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *o;
	unsigned dim;
	WeftValue v;
	if (!PyArg_ParseTuple(args, "OI", &o, &dim) || !value_of(t, o, &v) || !trace_ready(t))
		return NULL;
	const char *text = weft_trace_extent(t->trace, v, dim);
	return text ? PyUnicode_FromString(text) : session_raise(t->session);
}

static PyObject *trace_dtype(PyObject *self, PyObject *o)
{
	Trace *t = (Trace *)self;
	WeftValue v;
	if (!value_of(t, o, &v) || !trace_ready(t))
		return NULL;
	const char *text = weft_trace_dtype(t->trace, v);
	return text ? PyUnicode_FromString(text) : session_raise(t->session);
}

/* ---- what goes in and out ---- */

static PyObject *trace_symbol(PyObject *self, PyObject *args)
{
	const char *name;
	long long lo, hi;
	if (!PyArg_ParseTuple(args, "sLL", &name, &lo, &hi) || !trace_ready((Trace *)self))
		return NULL;
	weft_trace_symbol(((Trace *)self)->trace, name, lo, hi);
	Py_RETURN_NONE;
}

static PyObject *trace_input(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	const char *name, *type;
	bool ready = PyArg_ParseTuple(args, "ss", &name, &type) && trace_ready(t);
	return ready ? checked_value(t, weft_trace_input(t->trace, name, type)) : NULL;
}

typedef WeftValue Declare(WeftTrace *, const char *name, const char *type, const void *data);

/* (name, type, array): the session keeps the array, which must be row-major, or its copy. */
static PyObject *declare(PyObject *self, PyObject *args, Declare *f)
{
	Trace *t = (Trace *)self;
	const char *name, *type;
	PyObject *o = NULL;
	View v = {0};
	WeftTensor data = {0};
	if (!PyArg_ParseTuple(args, "ss|O", &name, &type, &o) || !trace_ready(t))
		return NULL;
	if (o && o != Py_None) {
		if (view_open(&v, o, NULL, false, "parameter", name, &data) < 0)
			return NULL;
		int held = PyList_Append(t->session->held, v.copy ? v.copy : o);
		view_close(&v);
		if (held < 0)
			return NULL;
	}
	return checked_value(t, f(t->trace, name, type, data.data));
}

static PyObject *trace_param(PyObject *self, PyObject *args)
{
	return declare(self, args, weft_trace_param);
}

static PyObject *trace_variable(PyObject *self, PyObject *args)
{
	return declare(self, args, weft_trace_variable);
}

static PyObject *trace_buffer(PyObject *self, PyObject *args)
{
	return declare(self, args, weft_trace_buffer);
}

static PyObject *trace_size(PyObject *self, PyObject *args)
{
	const char *name;
	PyObject *o;
	long long lo, hi;
	WeftValue v;
	if (!PyArg_ParseTuple(args, "sOLL", &name, &o, &lo, &hi) ||
	    !value_of((Trace *)self, o, &v) || !trace_ready((Trace *)self))
		return NULL;
	weft_trace_size(((Trace *)self)->trace, name, v, lo, hi);
	Py_RETURN_NONE;
}

static PyObject *trace_integer(PyObject *self, PyObject *text)
{
	Trace *t = (Trace *)self;
	const char *size = PyUnicode_AsUTF8AndSize(text, NULL);
	return size && trace_ready(t) ? checked_value(t, weft_trace_integer(t->trace, size)) : NULL;
}

static PyObject *trace_output(PyObject *self, PyObject *args)
{
	const char *name;
	PyObject *o;
	WeftValue v;
	if (!PyArg_ParseTuple(args, "sO", &name, &o) || !value_of((Trace *)self, o, &v) ||
	    !trace_ready((Trace *)self))
		return NULL;
	weft_trace_output(((Trace *)self)->trace, name, v);
	Py_RETURN_NONE;
}

static PyObject *trace_assign(PyObject *self, PyObject *args)
{
	PyObject *state, *to;
	WeftValue s, v;
	if (!PyArg_ParseTuple(args, "OO", &state, &to) || !value_of((Trace *)self, state, &s) ||
	    !value_of((Trace *)self, to, &v) || !trace_ready((Trace *)self))
		return NULL;
	weft_trace_assign(((Trace *)self)->trace, s, v);
	Py_RETURN_NONE;
}

static PyObject *trace_line(PyObject *self, PyObject *text)
{
	const char *line = text == Py_None ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
	if (PyErr_Occurred() || !trace_ready((Trace *)self))
		return NULL;
	weft_trace_line(((Trace *)self)->trace, line);
	Py_RETURN_NONE;
}

/* ---- graphs, branches, loops ---- */

static WeftValue *values_of(const Trace *t, PyObject *list, uint32_t *n)
{
	Py_ssize_t count = PySequence_Size(list);
	WeftValue *out = list_memory(count, sizeof *out);
	for (Py_ssize_t k = 0; out && k < count; k++) {
		PyObject *o = PySequence_GetItem(list, k);
		bool good = o && value_of(t, o, &out[k]);
		Py_XDECREF(o);
		if (!good) {
			free(out);
			return NULL;
		}
	}
	*n = (uint32_t)(count > 0 ? count : 0);
	return out;
}

static PyObject *value_list(Trace *t, const WeftValue *v, uint32_t n)
{
	PyObject *out = PyList_New(n);
	for (uint32_t k = 0; out && k < n; k++) {
		PyObject *o = checked_value(t, v[k]);
		if (!o)
			Py_CLEAR(out);
		else
			PyList_SetItem(out, k, o);
	}
	return out;
}

/* graph(graph, values, n) -> list of n values */
static PyObject *trace_graph(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *graph, *list, *result = NULL;
	unsigned nout;
	uint32_t n;
	if (!PyArg_ParseTuple(args, "O!OI", graph_type, &graph, &list, &nout) || !trace_ready(t))
		return NULL;
	WeftValue *in = values_of(t, list, &n), *out = in ? list_memory(nout, sizeof *out) : NULL;
	if (out) {
		weft_trace_graph(t->trace, ((GraphObject *)graph)->graph, in, n, out, nout);
		result = value_list(t, out, nout);
	}
	free(in);
	free(out);
	return result;
}

enum { MOST_RESULTS = 256 }; /* of a body that says how many it has */

/* A body is a function of Python: from a list of values to a list of values. */
typedef struct {
	PyObject *body[2];
	Trace *t;
	uint32_t nin, nout[2];
	bool counted; /* the bodies say how many values they give, at most nout */
} Bodies;

static void run_body(Bodies *b, int which, const WeftValue *in, WeftValue *out)
{
	uint32_t n = 0;
	PyObject *list = PyErr_Occurred() ? NULL : value_list(b->t, in, b->nin);
	PyObject *result = list ? PyObject_CallFunctionObjArgs(b->body[which], list, NULL) : NULL;
	WeftValue *v = result ? values_of(b->t, result, &n) : NULL;
	bool fits = b->counted ? n <= b->nout[which] : n == b->nout[which];
	if (v && fits)
		memcpy(out, v, n * sizeof *v);
	if (v && fits && b->counted)
		weft_body_gives(b->t->trace, n);
	if (v && !fits)
		PyErr_Format(PyExc_ValueError, "the body gives %u values, expected %s%u",
			     (unsigned)n, b->counted ? "at most " : "",
			     (unsigned)b->nout[which]);
	free(v);
	Py_XDECREF(list);
	Py_XDECREF(result);
}

static void body_first(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)t;
	run_body(user, 0, in, out);
}

static void body_second(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)t;
	run_body(user, 1, in, out);
}

/* How many values there are in front of those without a node. */
static uint32_t counted(const WeftValue *v, uint32_t n)
{
	uint32_t k = 0;
	while (k < n && v[k].node)
		k++;
	return k;
}

/* The results of a branch or loop. */
static PyObject *result_list(Trace *t, const Bodies *b, const WeftValue *v, uint32_t n)
{
	return session_failed(t->session) ? session_raise(t->session)
					  : value_list(t, v, b->counted ? counted(v, n) : n);
}

/* cond(condition, yes, no, n=-1) -> list of n values, or of as many as the branches give */
static PyObject *trace_cond(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *condition, *yes, *no, *result = NULL;
	int n = -1;
	WeftValue v;
	if (!PyArg_ParseTuple(args, "OOO|i", &condition, &yes, &no, &n) ||
	    !value_of(t, condition, &v) || !trace_ready(t))
		return NULL;
	const uint32_t nout = n < 0 ? MOST_RESULTS : (uint32_t)n;
	Bodies b = {{yes, no}, t, 0, {nout, nout}, n < 0};
	WeftValue *out = list_memory(nout, sizeof *out);
	if (out) {
		weft_cond(t->trace, v, body_first, body_second, &b, out, nout);
		result = PyErr_Occurred() ? NULL : result_list(t, &b, out, nout);
	}
	free(out);
	return result;
}

/* while_loop(values, test, body, most=0) -> list */
static PyObject *trace_while(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *list, *test, *body, *result = NULL;
	long long most = 0;
	uint32_t n;
	if (!PyArg_ParseTuple(args, "OOO|L", &list, &test, &body, &most) || !trace_ready(t))
		return NULL;
	WeftValue *in = values_of(t, list, &n), *out = in ? list_memory(n, sizeof *out) : NULL;
	if (out) {
		Bodies b = {{test, body}, t, n, {1, n}, false};
		weft_while_loop(t->trace, in, n, body_first, body_second, most, &b, out);
		result = PyErr_Occurred() ? NULL : result_list(t, &b, out, n);
	}
	free(in);
	free(out);
	return result;
}

/* scan(carried, slices, body, ny=-1, reverse=False) -> list; ny -1: as many as the body gives */
static PyObject *trace_scan(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	PyObject *carried, *slices, *body, *result = NULL;
	int given = -1, reverse = 0;
	uint32_t ninit = 0, nxs = 0;
	if (!PyArg_ParseTuple(args, "OOO|ip", &carried, &slices, &body, &given, &reverse) ||
	    !trace_ready(t))
		return NULL;
	const uint32_t ny = given < 0 ? MOST_RESULTS : (uint32_t)given;
	WeftValue *init = values_of(t, carried, &ninit),
		  *xs = init ? values_of(t, slices, &nxs) : NULL;
	WeftValue *in = xs ? list_memory((Py_ssize_t)ninit + nxs, sizeof *in) : NULL;
	WeftValue *out = in ? list_memory((Py_ssize_t)ninit + ny, sizeof *out) : NULL;
	if (out) {
		memcpy(in, init, ninit * sizeof *in);
		memcpy(in + ninit, xs, nxs * sizeof *in);
		Bodies b = {{body, NULL}, t, ninit + nxs, {ninit + ny, 0}, given < 0};
		weft_scan(t->trace, in, ninit, nxs, ny, reverse, body_first, &b, out);
		result = PyErr_Occurred() ? NULL : result_list(t, &b, out, ninit + ny);
	}
	free(init);
	free(xs);
	free(in);
	free(out);
	return result;
}

/* ---- optimisers ---- */

/* Returns the options of a dictionary: n of them, in memory. NULL after an exception. */
static WeftArg *options_of(const Trace *t, PyObject *dict, uint32_t *n, Memory **m)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	WeftArg *a = memory_take(m, (size_t)(PyDict_Size(dict) + 1) * sizeof *a);
	*n = 0;
	while (a && PyDict_Next(dict, &at, &key, &value)) {
		if (!argument(t, &a[*n], value, m))
			return NULL;
		a[*n].name = PyUnicode_AsUTF8AndSize(key, NULL);
		if (!a[(*n)++].name)
			return NULL;
	}
	return a;
}

/* optimizer_states(name, options) -> list of (name, key, begins, number) */
static PyObject *trace_optimizer_states(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	const char *name;
	PyObject *dict;
	uint32_t n;
	Memory *m = NULL;
	if (!PyArg_ParseTuple(args, "sO!", &name, &PyDict_Type, &dict) || !trace_ready(t))
		return NULL;
	WeftArg *a = options_of(t, dict, &n, &m);
	PyObject *list = a ? PyList_New(0) : NULL;
	WeftOptimizerState s = {.size = sizeof s};
	for (uint32_t k = 0; list && weft_optimizer_state(t->session->w, name, a, n, k, &s); k++)
		list_put(&list, Py_BuildValue("(ssdO)", s.name, s.key, s.begins,
					      s.number ? Py_True : Py_False));
	memory_drop(m);
	if (!list || !session_failed(t->session))
		return list;
	Py_DECREF(list);
	return session_raise(t->session);
}

/* optimizer_step(name, options, parameters, gradients, states) -> list of new parameters and
 * states */
static PyObject *trace_optimizer_step(PyObject *self, PyObject *args)
{
	Trace *t = (Trace *)self;
	const char *name;
	PyObject *dict, *p, *g, *s, *result = NULL;
	uint32_t noption, n = 0, ng = 0, nstate = 0;
	Memory *m = NULL;
	if (!PyArg_ParseTuple(args, "sO!OOO", &name, &PyDict_Type, &dict, &p, &g, &s) ||
	    !trace_ready(t))
		return NULL;
	WeftArg *a = options_of(t, dict, &noption, &m);
	WeftValue *pv = a ? values_of(t, p, &n) : NULL, *gv = pv ? values_of(t, g, &ng) : NULL,
		  *sv = gv ? values_of(t, s, &nstate) : NULL,
		  *out = sv ? list_memory((Py_ssize_t)n + nstate, sizeof *out) : NULL;
	if (out && ng != n)
		PyErr_SetString(PyExc_ValueError, "as many gradients as parameters expected");
	if (out && ng == n) {
		weft_optimizer_step(t->trace, name, a, noption, pv, gv, n, sv, nstate, out);
		result = session_failed(t->session) ? session_raise(t->session)
						    : value_list(t, out, n + nstate);
	}
	free(pv);
	free(gv);
	free(sv);
	free(out);
	memory_drop(m);
	return result;
}

static PyObject *trace_end(PyObject *self, PyObject *none)
{
	Trace *t = (Trace *)self;
	(void)none;
	if (!trace_ready(t))
		return NULL;
	WeftGraph *g = weft_trace_end(t->trace);
	t->trace = NULL;
	return graph_object(t->session, g);
}

/* ---- the classes ---- */

PyObject *session_trace(PyObject *self, PyObject *name)
{
	Session *s = (Session *)self;
	const char *text = session_ready(s) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	WeftTrace *trace = text ? weft_trace_new(s->w, text) : NULL;
	if (!trace)
		return text ? session_raise(s) : NULL;
	Trace *t = PyObject_New(Trace, trace_type);
	if (!t)
		return NULL;
	static uint64_t traces;
	Py_INCREF(self);
	*t = (Trace){.ob_base = t->ob_base, .session = s, .trace = trace, .number = ++traces};
	return (PyObject *)t;
}

static void trace_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF((PyObject *)((Trace *)self)->session);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static void value_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static PyMethodDef trace_methods[] = {
	{"symbol", trace_symbol, METH_VARARGS, "symbol(name, lo, hi): declares a size."},
	{"input", trace_input, METH_VARARGS, "input(name, type): \"f32[B, 3]\""},
	{"param", trace_param, METH_VARARGS, "param(name, type, array): a constant."},
	{"variable", trace_variable, METH_VARARGS,
	 "variable(name, type, array): state that is a "
	 "parameter."},
	{"buffer", trace_buffer, METH_VARARGS, "buffer(name, type, array): state that is none."},
	{"size", trace_size, METH_VARARGS,
	 "size(name, value, lo, hi): an integer's value becomes "
	 "a size."},
	{"integer", trace_integer, METH_O, "integer(size): the value of an expression of sizes."},
	{"output", trace_output, METH_VARARGS, "output(name, value)"},
	{"assign", trace_assign, METH_VARARGS, "assign(state, value)"},
	{"line", trace_line, METH_O, "line(text): where the next calls come from."},
	{"call", trace_call, METH_VARARGS, "call(op, args, named=None): calls an operator."},
	{"result", trace_result, METH_VARARGS, "result(several, k)"},
	{"nresult", trace_nresult, METH_O, "nresult(several): -1 of one tensor."},
	{"shape", trace_shape, METH_O, "shape(value): None for an extent that is no number."},
	{"extent", trace_extent, METH_VARARGS, "extent(value, dim): an expression of sizes."},
	{"dtype", trace_dtype, METH_O, "dtype(value): its name, \"bf16\"."},
	{"graph", trace_graph, METH_VARARGS, "graph(graph, values, n): traces all of a graph."},
	{"cond", trace_cond, METH_VARARGS, "cond(condition, yes, no, n=-1)"},
	{"while_loop", trace_while, METH_VARARGS, "while_loop(values, test, body, most=0)"},
	{"scan", trace_scan, METH_VARARGS,
	 "scan(carried, slices, body, ny=-1, "
	 "reverse=False)"},
	{"optimizer_states", trace_optimizer_states, METH_VARARGS,
	 "optimizer_states(name, options): (name, key, begins, number) of each."},
	{"optimizer_step", trace_optimizer_step, METH_VARARGS,
	 "optimizer_step(name, options, parameters, gradients, states)"},
	{"end", trace_end, METH_NOARGS, "end(): the Graph."},
	{0},
};
static PyMemberDef trace_members[] = {
	{"session", T_OBJECT, offsetof(Trace, session), READONLY, "The Session that owns the "
								  "trace."},
	{0},
};
static PyType_Slot trace_slots[] = {
	{Py_tp_dealloc, trace_dealloc},
	{Py_tp_methods, trace_methods},
	{Py_tp_members, trace_members},
	{Py_tp_doc, "Records calls of operators."},
	{0, NULL},
};
static PyType_Spec trace_spec = {"weft._weft.Trace", sizeof(Trace), 0,
				 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				 trace_slots};
static PyType_Slot value_slots[] = {
	{Py_tp_dealloc, value_dealloc}, {Py_tp_doc, "A value of a Trace."}, {0, NULL}};
static PyType_Spec value_spec = {"weft._weft.Value", sizeof(TraceValue), 0,
				 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				 value_slots};

int trace_setup(PyObject *module)
{
	size_type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s:s}", "Size",
					  (PyObject *)&PyUnicode_Type, "__doc__",
					  "An expression of sizes, as an argument of Trace.call.");
	if (!size_type || PyModule_AddObjectRef(module, "Size", size_type) < 0)
		return -1;
	if (class_add(module, &value_spec, "Value", &value_type) < 0)
		return -1;
	return class_add(module, &trace_spec, "Trace", &trace_type);
}
