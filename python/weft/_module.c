/* The module weft._weft. */
#include "_weft.h"

#include <stdlib.h>

#include "weft_trace.h"

PyObject *weft_error;
static PyObject *busy_error, *check_error, *cancelled_error;

PyObject *weft_raise(int code, const char *message)
{
	PyObject *class = weft_error;
	if (code == WEFT_ERR_ARGUMENT || code == WEFT_ERR_INPUT)
		class = PyExc_ValueError;
	else if (code == WEFT_ERR_MEMORY)
		class = PyExc_MemoryError;
	else if (code == WEFT_ERR_FILE)
		class = PyExc_OSError;
	else if (code == WEFT_ERR_BUSY)
		class = busy_error;
	else if (code == WEFT_ERR_CHECK)
		class = check_error;
	else if (code == WEFT_ERR_CANCELLED)
		class = cancelled_error;
	else if (code == WEFT_ERR_DEADLINE)
		class = PyExc_TimeoutError;
	else if (code == WEFT_ERR_COMM) {
		class = PyExc_ConnectionError;
		const char *why = comm_take_no_group();
		message = why ? why : message;
	}
	PyErr_SetString(class, message);
	return NULL;
}

void *no_memory(const char *what)
{
	PyErr_Format(PyExc_MemoryError, "no memory for %s", what);
	return NULL;
}

int class_add(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **out)
{
	PyObject *class = PyType_FromSpec(spec);
	if (!class || PyModule_AddObjectRef(module, name, class) < 0)
		return -1;
	*out = (PyTypeObject *)class;
	return 0;
}

void *list_memory(Py_ssize_t count, size_t bytes)
{
	void *memory = count < 0 ? NULL : calloc((size_t)count + 1, bytes);
	return memory || count < 0 ? memory : no_memory("a call");
}

void list_put(PyObject **list, PyObject *item)
{
	if (!item || PyList_Append(*list, item) < 0)
		Py_CLEAR(*list);
	Py_XDECREF(item);
}

void tuple_put(PyObject **tuple, Py_ssize_t k, PyObject *item)
{
	if (!item || PyTuple_SetItem(*tuple, k, item) < 0)
		Py_CLEAR(*tuple);
}

static PyObject *new_error(PyObject *module, const char *full, const char *name, const char *doc,
			   PyObject *base)
{
	PyObject *class = PyErr_NewExceptionWithDoc(full, doc, base, NULL);
	return class && PyModule_AddObjectRef(module, name, class) == 0 ? class : NULL;
}

static PyObject *has_llvm(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	return PyBool_FromLong(weft_has_llvm());
}

static PyObject *passes(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	PyObject *list = PyList_New(0);
	for (const char *const *p = weft_passes(); list && *p; p++)
		list_put(&list, PyUnicode_FromString(*p));
	return list;
}

/* operators() -> list of dict: the table. */
static PyObject *operators(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	PyObject *list = PyList_New(0);
	WeftOperator o = {.size = sizeof o};
	for (uint32_t k = 0; list && weft_table_operator(k, &o); k++)
		list_put(&list, Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s}", "name", o.name, "schema",
					      o.schema, "aliases", o.aliases, "kind", o.kind,
					      "derivative", o.derivative, "deviates", o.deviates));
	return list;
}

/* optimizers() -> list of dict: the table of optimisers. */
static PyObject *optimizers(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	PyObject *list = PyList_New(0);
	WeftOptimizer o = {.size = sizeof o};
	for (uint32_t k = 0; list && weft_table_optimizer(k, &o); k++)
		list_put(&list, Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:z,s:O}", "name", o.name,
					      "torch", o.torch, "scalars", o.scalars, "flags",
					      o.flags, "states", o.states, "rows", o.rows, "lazy",
					      o.lazy ? Py_True : Py_False));
	return list;
}

static PyMethodDef functions[] = {
	{"has_llvm", has_llvm, METH_NOARGS, "Whether weft_llvm.so is there."},
	{"passes", passes, METH_NOARGS, "The names of all passes."},
	{"optimizers", optimizers, METH_NOARGS, "The optimisers of the table."},
	{"operators", operators, METH_NOARGS, "The operators of the table."},
	{0},
};

/* The classes are static: one interpreter at a time has the module. */
static int execute(PyObject *module)
{
	if (weft_error) {
		PyErr_SetString(
			PyExc_ImportError,
			"weft._weft is already loaded in another interpreter of this process");
		return -1;
	}
	weft_error = new_error(module, "weft.Error", "Error",
			       "What the compiler or a compiled model says.", PyExc_RuntimeError);
	if (!weft_error)
		return -1;
	busy_error = new_error(module, "weft.BusyError", "BusyError",
			       "Another call writes the same state or weights.", weft_error);
	check_error = new_error(
		module, "weft.CheckError", "CheckError",
		"A check inside of the model failed, such as an index out of range.", weft_error);
	cancelled_error = new_error(module, "weft.CancelledError", "CancelledError",
				    "Model.cancel() has ended the call.", weft_error);
	if (!busy_error || !check_error || !cancelled_error ||
	    PyModule_AddStringConstant(module, "version", WEFT_VERSION) < 0)
		return -1;
	if (program_setup(module) < 0 || function_setup(module) < 0 || session_setup(module) < 0 ||
	    trace_setup(module) < 0 || nodes_setup(module) < 0 || quantize_setup(module) < 0 ||
	    comm_setup(module) < 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "weft._weft",
				 .m_doc = "Compiled models and the compiler, in C.", .m_size = 0,
				 .m_slots = slots};

PyMODINIT_FUNC PyInit__weft(void)
{
	return PyModuleDef_Init(&definition);
}
