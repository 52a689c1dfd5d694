/* Nodes of graphs (weft_graph.h), as functions of a Graph and a Node. */
#include "_weft.h"

#include <stdlib.h>
#include <string.h>

#include "weft_graph.h"

/* A node of a graph, which the node keeps alive. */
typedef struct {
	PyObject_HEAD GraphObject *graph;
	uint32_t index;
} Node;

static PyTypeObject *node_type;

/* ---- nodes ---- */

/* A Node; None for no node, unless the function recorded an error. */
static PyObject *node_object(GraphObject *g, WeftNode n)
{
	if (!n.index && session_failed(g->session))
		return session_raise(g->session);
	if (!n.index)
		Py_RETURN_NONE;
	Node *out = PyObject_New(Node, node_type);
	if (out) {
		Py_INCREF((PyObject *)g);
		*out = (Node){.ob_base = out->ob_base, .graph = g, .index = n.index};
	}
	return (PyObject *)out;
}

/* The node of a Node of this graph, or no node of None. */
static bool node_of(GraphObject *g, PyObject *o, WeftNode *n)
{
	*n = (WeftNode){g->graph, 0};
	if (o == Py_None)
		return true;
	if (Py_TYPE(o) != node_type)
		PyErr_Format(PyExc_TypeError, "expected a node of the graph, got %R",
			     (PyObject *)Py_TYPE(o));
	else if (((Node *)o)->graph->graph != g->graph)
		PyErr_SetString(PyExc_ValueError, "this is a node of another graph");
	else
		n->index = ((Node *)o)->index;
	return n->index;
}

static bool graph_ready(GraphObject *g)
{
	return session_ready(g->session);
}

/* The arguments (graph, node). */
static bool graph_and_node(PyObject *args, GraphObject **g, WeftNode *n)
{
	PyObject *o;
	return PyArg_ParseTuple(args, "O!O", graph_type, g, &o) && graph_ready(*g) &&
	       node_of(*g, o, n);
}

/* The arguments (graph, node, k). */
static bool graph_node_and_number(PyObject *args, GraphObject **g, WeftNode *n, unsigned *k)
{
	PyObject *o;
	return PyArg_ParseTuple(args, "O!OI", graph_type, g, &o, k) && graph_ready(*g) &&
	       node_of(*g, o, n);
}

static PyObject *done_or_raise(GraphObject *g, bool done)
{
	if (!done)
		return session_raise(g->session);
	Py_RETURN_NONE;
}

static PyObject *text_of(GraphObject *g, const char *text)
{
	return text ? PyUnicode_FromString(text) : session_raise(g->session);
}

/* ---- visit ---- */

/* nodes(graph) -> list, in program order */
static PyObject *nodes(PyObject *module, PyObject *graph)
{
	(void)module;
	if (Py_TYPE(graph) != graph_type)
		return PyErr_Format(PyExc_TypeError, "expected a Graph");
	GraphObject *g = (GraphObject *)graph;
	PyObject *list = graph_ready(g) ? PyList_New(0) : NULL;
	if (!list)
		return NULL;
	for (WeftNode n = weft_node_first(g->session->w, g->graph); n.index;
	     n = weft_node_next(g->session->w, n)) {
		PyObject *o = node_object(g, n);
		bool good = o && PyList_Append(list, o) == 0;
		Py_XDECREF(o);
		if (!good) {
			Py_DECREF(list);
			return NULL;
		}
	}
	return list;
}

static PyObject *beside(PyObject *args, WeftNode (*f)(Weft *, WeftNode))
{
	GraphObject *g;
	WeftNode n;
	return graph_and_node(args, &g, &n) ? node_object(g, f(g->session->w, n)) : NULL;
}

static PyObject *node_next(PyObject *module, PyObject *args)
{
	(void)module;
	return beside(args, weft_node_next);
}

static PyObject *node_prev(PyObject *module, PyObject *args)
{
	(void)module;
	return beside(args, weft_node_prev);
}

static PyObject *numbered(PyObject *args, WeftNode (*f)(Weft *, WeftGraph *, uint32_t))
{
	GraphObject *g;
	unsigned k;
	if (!PyArg_ParseTuple(args, "O!I", graph_type, &g, &k) || !graph_ready(g))
		return NULL;
	return node_object(g, f(g->session->w, g->graph, k));
}

static PyObject *node_of_input(PyObject *module, PyObject *args)
{
	(void)module;
	return numbered(args, weft_node_of_input);
}

static PyObject *node_of_output(PyObject *module, PyObject *args)
{
	(void)module;
	return numbered(args, weft_node_of_output);
}

/* ---- ask ---- */

/* node_info(graph, node) -> (kind, op, user name, line, results) */
static PyObject *node_info(PyObject *module, PyObject *args)
{
	static const char *const kinds[] = {"", "input", "state", "constant", "call"};
	GraphObject *g;
	WeftNode n;
	(void)module;
	if (!graph_and_node(args, &g, &n))
		return NULL;
	Weft *w = g->session->w;
	WeftNodeKind kind = weft_node_kind(w, n);
	if (kind == WEFT_NODE_NONE)
		return session_raise(g->session);
	return Py_BuildValue("(ssssI)", kinds[kind], weft_node_op(w, n), weft_node_user_name(w, n),
			     weft_node_line(w, n), (unsigned)weft_node_nresult(w, n));
}

/* node_is(graph, node, op) -> whether the node calls the operator, by any of its names */
static PyObject *node_is(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o;
	WeftNode n;
	const char *op;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!Os", graph_type, &g, &o, &op) || !graph_ready(g) ||
	    !node_of(g, o, &n))
		return NULL;
	bool is = weft_node_is(g->session->w, n, op);
	return session_failed(g->session) ? session_raise(g->session) : PyBool_FromLong(is);
}

static PyObject *asked_text(PyObject *args, const char *(*f)(Weft *, WeftNode))
{
	GraphObject *g;
	WeftNode n;
	return graph_and_node(args, &g, &n) ? text_of(g, f(g->session->w, n)) : NULL;
}

static PyObject *node_name(PyObject *module, PyObject *args)
{
	(void)module;
	return asked_text(args, weft_node_name);
}

static PyObject *node_text(PyObject *module, PyObject *args)
{
	(void)module;
	return asked_text(args, weft_node_text);
}

static PyObject *node_set_name(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o;
	WeftNode n;
	const char *name;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!Os", graph_type, &g, &o, &name) || !graph_ready(g) ||
	    !node_of(g, o, &n))
		return NULL;
	return done_or_raise(g, weft_node_set_name(g->session->w, n, name));
}

/* node_result_type(graph, node, k) -> (dtype, extents) */
static PyObject *node_result_type(PyObject *module, PyObject *args)
{
	GraphObject *g;
	WeftNode n;
	unsigned k;
	WeftDType dtype;
	int64_t shape[MOST_RANK];
	(void)module;
	if (!graph_node_and_number(args, &g, &n, &k))
		return NULL;
	int32_t rank = weft_node_shape(g->session->w, n, k, &dtype, shape);
	if (rank < 0)
		return session_raise(g->session);
	PyObject *extents = PyTuple_New(rank);
	for (int32_t d = 0; extents && d < rank; d++) {
		PyObject *e =
			shape[d] >= 0
				? PyLong_FromLongLong(shape[d])
				: text_of(g, weft_node_extent(g->session->w, n, k, (uint32_t)d));
		if (!e)
			Py_CLEAR(extents);
		else
			PyTuple_SetItem(extents, d, e);
	}
	return extents ? Py_BuildValue("(sN)", dtype_text(dtype), extents) : NULL;
}

/* ---- arguments ---- */

/* Element k of a list. */
static PyObject *element_object(GraphObject *g, const WeftAttr *a, uint32_t k)
{
	switch (a->kind) {
	case WEFT_ATTR_NODES:
		return node_object(g, a->u.nodes[k]);
	case WEFT_ATTR_FLOATS:
		return PyFloat_FromDouble(a->u.floats[k]);
	case WEFT_ATTR_BOOLS:
		return PyBool_FromLong(a->u.bools[k]);
	case WEFT_ATTR_SIZES:
		return size_object(a->u.texts[k]);
	default:
		return PyLong_FromLongLong(a->u.ints[k]);
	}
}

static PyObject *list_object(GraphObject *g, const WeftAttr *a)
{
	PyObject *list = PyList_New(a->n);
	for (uint32_t k = 0; list && k < a->n; k++) {
		PyObject *o = element_object(g, a, k);
		if (!o)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, k, o);
	}
	return list;
}

static PyObject *node_users(PyObject *module, PyObject *args)
{
	GraphObject *g;
	WeftNode n;
	uint32_t count;
	(void)module;
	if (!graph_and_node(args, &g, &n))
		return NULL;
	const WeftNode *users = weft_node_users(g->session->w, n, &count);
	return users ? list_object(
			       g,
			       &(WeftAttr){.kind = WEFT_ATTR_NODES, .n = count, .u.nodes = users})
		     : session_raise(g->session);
}

static PyObject *attr_object(GraphObject *g, const WeftAttr *a)
{
	switch (a->kind) {
	case WEFT_ATTR_NODE:
		return node_object(g, a->u.node);
	case WEFT_ATTR_BOOL:
		return PyBool_FromLong(a->u.b);
	case WEFT_ATTR_INT:
		return PyLong_FromLongLong(a->u.i);
	case WEFT_ATTR_FLOAT:
		return PyFloat_FromDouble(a->u.f);
	case WEFT_ATTR_COMPLEX:
		return PyComplex_FromDoubles(a->u.z[0], a->u.z[1]);
	case WEFT_ATTR_TEXT:
		return PyUnicode_FromString(a->u.text);
	case WEFT_ATTR_SIZE:
		return size_object(a->u.text);
	case WEFT_ATTR_NODES:
	case WEFT_ATTR_INTS:
	case WEFT_ATTR_FLOATS:
	case WEFT_ATTR_BOOLS:
	case WEFT_ATTR_SIZES:
		return list_object(g, a);
	case WEFT_ATTR_BODY:
		return graph_object(g->session, a->u.body);
	case WEFT_ATTR_NONE:
	case WEFT_ATTR_VALUE:
		break;
	}
	Py_RETURN_NONE;
}

/* node_arguments(graph, node) -> list of (name, value) */
static PyObject *node_arguments(PyObject *module, PyObject *args)
{
	GraphObject *g;
	WeftNode n;
	(void)module;
	if (!graph_and_node(args, &g, &n))
		return NULL;
	uint32_t count = weft_node_nattr(g->session->w, n);
	PyObject *list = session_failed(g->session) ? session_raise(g->session) : PyList_New(0);
	for (uint32_t k = 0; list && k < count; k++) {
		WeftAttr a;
		PyObject *value = weft_node_attr_at(g->session->w, n, k, &a)
					  ? attr_object(g, &a)
					  : session_raise(g->session);
		PyObject *item = value ? Py_BuildValue("(sN)", a.name, value) : NULL;
		if (!item || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* The kind of a list: that of its elements; an integer among sizes or floats is one of them, a bool
 * among integers is 0 or 1, None among nodes is an absent one. */
static WeftAttrKind list_kind(PyObject *list, Py_ssize_t n)
{
	WeftAttrKind kind = WEFT_ATTR_INTS;
	for (Py_ssize_t k = 0; k < n; k++) {
		PyObject *o = PySequence_GetItem(list, k);
		if (!o)
			return WEFT_ATTR_NONE;
		if (Py_TYPE(o) == node_type || o == Py_None)
			kind = WEFT_ATTR_NODES;
		else if (is_size(o))
			kind = WEFT_ATTR_SIZES;
		else if (PyFloat_Check(o))
			kind = WEFT_ATTR_FLOATS;
		else if (PyBool_Check(o) && !k)
			kind = WEFT_ATTR_BOOLS;
		else if (!PyBool_Check(o) && kind == WEFT_ATTR_BOOLS)
			kind = WEFT_ATTR_INTS;
		Py_DECREF(o); /* the list has it */
	}
	return kind;
}

/* An element of at most 16 bytes. */
static bool set_element(GraphObject *g, const WeftAttr *a, void *to, uint32_t k, PyObject *o,
			Memory **m)
{
	if (a->kind == WEFT_ATTR_NODES)
		return node_of(g, o, &((WeftNode *)to)[k]);
	if (a->kind == WEFT_ATTR_SIZES)
		((const char **)to)[k] = size_text(o, m);
	else if (a->kind == WEFT_ATTR_FLOATS)
		((double *)to)[k] = PyFloat_AsDouble(o);
	else if (a->kind == WEFT_ATTR_BOOLS)
		((bool *)to)[k] = PyObject_IsTrue(o) == 1;
	else
		((int64_t *)to)[k] = PyLong_AsLongLong(o);
	return !PyErr_Occurred();
}

static bool list_attr(GraphObject *g, WeftAttr *a, PyObject *list, Memory **m)
{
	Py_ssize_t n = PySequence_Size(list);
	void *to = n < 0 ? NULL : memory_take(m, ((size_t)n + 1) * sizeof(WeftNode));
	if (!to)
		return false;
	a->kind = list_kind(list, n);
	a->n = (uint32_t)n;
	a->u.ints = to;
	for (Py_ssize_t k = 0; k < n; k++) {
		PyObject *o = PySequence_GetItem(list, k);
		bool good = o && set_element(g, a, to, (uint32_t)k, o, m);
		Py_XDECREF(o);
		if (!good)
			return false;
	}
	return true;
}

/* What *a refers to lives as long as the object and the memory. */
static bool attr_of(GraphObject *g, WeftAttr *a, PyObject *o, Memory **m)
{
	*a = weft_attr_none();
	if (PyList_Check(o) || PyTuple_Check(o))
		return list_attr(g, a, o, m);
	a->n = 1;
	if (Py_TYPE(o) == node_type) {
		WeftNode n;
		if (!node_of(g, o, &n))
			return false;
		*a = weft_attr_node(n);
	} else if (is_size(o) || PyUnicode_Check(o)) {
		a->kind = is_size(o) ? WEFT_ATTR_SIZE : WEFT_ATTR_TEXT;
		a->u.text = PyUnicode_AsUTF8AndSize(o, NULL);
	} else if (PyBool_Check(o)) {
		*a = weft_attr_bool(o == Py_True);
	} else if (PyFloat_Check(o)) {
		*a = weft_attr_float(PyFloat_AsDouble(o));
	} else if (PyComplex_Check(o)) {
		a->kind = WEFT_ATTR_COMPLEX;
		a->u.z[0] = PyComplex_RealAsDouble(o);
		a->u.z[1] = PyComplex_ImagAsDouble(o);
	} else if (o != Py_None) {
		*a = weft_attr_int(PyLong_AsLongLong(o));
	}
	return !PyErr_Occurred();
}

/* ---- change ---- */

/* node_insert(graph, at, after, op, args, named) -> Node */
static PyObject *node_insert(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o, *list, *named, *key, *value, *out = NULL;
	const char *op;
	int after;
	WeftNode at;
	Memory *m = NULL;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!OpsO!O!", graph_type, &g, &o, &after, &op, &PyTuple_Type,
			      &list, &PyDict_Type, &named) ||
	    !graph_ready(g) || !node_of(g, o, &at))
		return NULL;
	Py_ssize_t n = PyTuple_Size(list), place = 0;
	WeftAttr *a = memory_take(&m, (size_t)(n + PyDict_Size(named) + 1) * sizeof *a);
	bool good = a;
	for (Py_ssize_t k = 0; good && k < n; k++)
		good = attr_of(g, &a[k], PyTuple_GetItem(list, k), &m);
	while (good && PyDict_Next(named, &place, &key, &value)) {
		good = attr_of(g, &a[n], value, &m);
		a[n++].name = PyUnicode_AsUTF8AndSize(key, NULL);
	}
	if (good && !PyErr_Occurred()) {
		WeftNode made = (after ? weft_node_insert_after : weft_node_insert_before)(
			g->session->w, at, op, a, (uint32_t)n);
		out = made.index ? node_object(g, made) : session_raise(g->session);
	}
	memory_drop(m);
	return out;
}

/* node_result(graph, node, k) -> Node */
static PyObject *node_result(PyObject *module, PyObject *args)
{
	GraphObject *g;
	WeftNode n;
	unsigned k;
	(void)module;
	return graph_node_and_number(args, &g, &n, &k)
		       ? node_object(g, weft_node_result(g->session->w, n, k))
		       : NULL;
}

/* node_replace(graph, old, by) */
static PyObject *node_replace(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *a, *b;
	WeftNode old, by;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!OO", graph_type, &g, &a, &b) || !graph_ready(g) ||
	    !node_of(g, a, &old) || !node_of(g, b, &by))
		return NULL;
	return done_or_raise(g, weft_node_replace(g->session->w, old, by));
}

/* node_set_argument(graph, node, name, value) */
static PyObject *node_set_argument(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o, *value, *out = NULL;
	WeftNode n;
	WeftAttr a;
	const char *name;
	Memory *m = NULL;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!OsO", graph_type, &g, &o, &name, &value) ||
	    !graph_ready(g) || !node_of(g, o, &n))
		return NULL;
	if (attr_of(g, &a, value, &m)) {
		a.name = name;
		out = done_or_raise(g, weft_node_set_attr(g->session->w, n, &a));
	}
	memory_drop(m);
	return out;
}

static PyObject *node_erase(PyObject *module, PyObject *args)
{
	GraphObject *g;
	WeftNode n;
	(void)module;
	return graph_and_node(args, &g, &n) ? done_or_raise(g, weft_node_erase(g->session->w, n))
					    : NULL;
}

/* graph_sweep(graph) -> how many nodes are erased */
static PyObject *graph_sweep(PyObject *module, PyObject *args)
{
	GraphObject *g;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!", graph_type, &g) || !graph_ready(g))
		return NULL;
	uint32_t n = weft_graph_sweep(g->session->w, g->graph);
	return !n && session_failed(g->session) ? session_raise(g->session)
						: PyLong_FromUnsignedLong(n);
}

static PyObject *graph_verify(PyObject *module, PyObject *args)
{
	GraphObject *g;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!", graph_type, &g) || !graph_ready(g))
		return NULL;
	return done_or_raise(g, weft_graph_verify(g->session->w, g->graph));
}

/* graph_set_output(graph, k, node) */
static PyObject *graph_set_output(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o;
	WeftNode n;
	unsigned k;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!IO", graph_type, &g, &k, &o) || !graph_ready(g) ||
	    !node_of(g, o, &n))
		return NULL;
	return done_or_raise(g, weft_graph_set_output(g->session->w, g->graph, k, n));
}

/* graph_rename_size(graph, size, name) */
static PyObject *graph_rename_size(PyObject *module, PyObject *args)
{
	GraphObject *g;
	const char *size, *name;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!ss", graph_type, &g, &size, &name) || !graph_ready(g))
		return NULL;
	return done_or_raise(g, weft_graph_rename_size(g->session->w, g->graph, size, name));
}

/* graph_add_output(graph, name, node) */
static PyObject *graph_add_output(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o;
	WeftNode n;
	const char *name;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!sO", graph_type, &g, &name, &o) || !graph_ready(g) ||
	    !node_of(g, o, &n))
		return NULL;
	return done_or_raise(g, weft_graph_add_output(g->session->w, g->graph, name, n));
}

/* graph_remove_output(graph, k) */
static PyObject *graph_remove_output(PyObject *module, PyObject *args)
{
	GraphObject *g;
	unsigned k;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!I", graph_type, &g, &k) || !graph_ready(g))
		return NULL;
	return done_or_raise(g, weft_graph_remove_output(g->session->w, g->graph, k));
}

/* graph_add_input(graph, name, type) -> Node */
static PyObject *graph_add_input(PyObject *module, PyObject *args)
{
	GraphObject *g;
	const char *name, *type;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!ss", graph_type, &g, &name, &type) || !graph_ready(g))
		return NULL;
	return node_object(g, weft_graph_add_input(g->session->w, g->graph, name, type));
}

/* graph_constant(graph, name or None, array) -> Node: the array, row-major, is copied. */
static PyObject *graph_constant(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o;
	const char *name;
	View v = {0};
	WeftTensor t;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!zO", graph_type, &g, &name, &o) || !graph_ready(g) ||
	    view_open(&v, o, NULL, false, "constant", name ? name : "", &t) < 0)
		return NULL;
	WeftNode n = weft_graph_constant(g->session->w, g->graph, name, &t);
	view_close(&v);
	return node_object(g, n);
}

/* node_value(graph, node, like) -> a copy of the value of a constant, or of the initial contents of
 * a state */
static PyObject *node_value(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *o, *like;
	WeftNode n;
	WeftTensor t, to;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!OO", graph_type, &g, &o, &like) || !graph_ready(g) ||
	    !node_of(g, o, &n))
		return NULL;
	if (!weft_node_tensor(g->session->w, n, &t))
		return session_raise(g->session);
	PyObject *out = make_tensor(like == Py_None ? NULL : like, t.dtype, (uint32_t)t.ndim,
				    t.shape, "constant", &to);
	size_t bytes = t.dtype.bits / 8;
	for (int32_t d = 0; d < t.ndim; d++)
		bytes *= (size_t)t.shape[d];
	if (out && bytes)
		memcpy(to.data, (const char *)t.data + t.byte_offset, bytes);
	return out;
}

/* replace_pattern(graph, pattern, replacement) -> the number of places */
static PyObject *replace_pattern(PyObject *module, PyObject *args)
{
	GraphObject *g, *pattern, *replacement;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!O!O!", graph_type, &g, graph_type, &pattern, graph_type,
			      &replacement) ||
	    !graph_ready(g))
		return NULL;
	int64_t n =
		weft_replace_pattern(g->session->w, g->graph, pattern->graph, replacement->graph);
	return n < 0 ? session_raise(g->session) : PyLong_FromLongLong(n);
}

/* ---- the class ---- */

static void node_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF((PyObject *)((Node *)self)->graph);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static PyMemberDef node_members[] = {
	{"index", T_UINT, offsetof(Node, index), READONLY, "The number of the node, "
							   "never used again."},
	{0},
};
static PyType_Slot node_slots[] = {
	{Py_tp_dealloc, node_dealloc},
	{Py_tp_members, node_members},
	{Py_tp_doc, "A node of a Graph."},
	{0, NULL},
};
static PyType_Spec node_spec = {"weft._weft.Node", sizeof(Node), 0,
				Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

static PyMethodDef functions[] = {
	{"nodes", nodes, METH_O, "nodes(graph): a list in program order."},
	{"node_next", node_next, METH_VARARGS, "node_next(graph, node): None behind the last."},
	{"node_prev", node_prev, METH_VARARGS, "node_prev(graph, node): None before the first."},
	{"node_of_input", node_of_input, METH_VARARGS, "node_of_input(graph, k)"},
	{"node_of_output", node_of_output, METH_VARARGS, "node_of_output(graph, k)"},
	{"node_info", node_info, METH_VARARGS, "node_info(graph, node): (kind, op, user name, "
					       "line, results)."},
	{"node_is", node_is, METH_VARARGS, "node_is(graph, node, op): an operator that is not "
					   "there is an error."},
	{"node_name", node_name, METH_VARARGS, "node_name(graph, node)"},
	{"node_set_name", node_set_name, METH_VARARGS, "node_set_name(graph, node, name)"},
	{"node_text", node_text, METH_VARARGS, "node_text(graph, node)"},
	{"node_result_type", node_result_type, METH_VARARGS, "node_result_type(graph, node, k): "
							     "(dtype, extents)."},
	{"node_users", node_users, METH_VARARGS, "node_users(graph, node): the nodes that read "
						 "it."},
	{"node_arguments", node_arguments, METH_VARARGS, "node_arguments(graph, node): list of "
							 "(name, value)."},
	{"node_insert", node_insert, METH_VARARGS, "node_insert(graph, at, after, op, args, "
						   "named)"},
	{"node_result", node_result, METH_VARARGS, "node_result(graph, node, k): a node of result "
						   "k."},
	{"node_replace", node_replace, METH_VARARGS, "node_replace(graph, old, by)"},
	{"node_set_argument", node_set_argument, METH_VARARGS, "node_set_argument(graph, node, "
							       "name, value)"},
	{"node_erase", node_erase, METH_VARARGS, "node_erase(graph, node)"},
	{"node_value", node_value, METH_VARARGS, "node_value(graph, node, like): a copy of a "
						 "constant."},
	{"graph_sweep", graph_sweep, METH_VARARGS, "graph_sweep(graph): erases what nothing "
						   "reads."},
	{"graph_verify", graph_verify, METH_VARARGS, "graph_verify(graph)"},
	{"graph_rename_size", graph_rename_size, METH_VARARGS,
	 "graph_rename_size(graph, size, name)"},
	{"graph_set_output", graph_set_output, METH_VARARGS, "graph_set_output(graph, k, node)"},
	{"graph_add_output", graph_add_output, METH_VARARGS, "graph_add_output(graph, name, node)"},
	{"graph_remove_output", graph_remove_output, METH_VARARGS, "graph_remove_output(graph, k)"},
	{"graph_add_input", graph_add_input, METH_VARARGS, "graph_add_input(graph, name, type)"},
	{"graph_constant", graph_constant, METH_VARARGS, "graph_constant(graph, name, array)"},
	{"replace_pattern", replace_pattern, METH_VARARGS, "replace_pattern(graph, pattern, "
							   "replacement): how often."},
	{0},
};

int nodes_setup(PyObject *module)
{
	return class_add(module, &node_spec, "Node", &node_type) < 0
		       ? -1
		       : PyModule_AddFunctions(module, functions);
}
