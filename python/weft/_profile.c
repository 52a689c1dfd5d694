/* Profiles: the times of kernel calls of all functions, while a profile is in progress. */
#include "_function.h"

#include <stdlib.h>
#include <string.h>

/* The functions of the profile in progress, each once; NULL: there is none. */
static PyObject *profiled;

bool profile_is_on(void)
{
	return profiled;
}

void profile_spend(void *user, uint32_t call, double seconds)
{
	((double *)user)[call] += seconds;
}

int profile_begin_call(Function *f, CallRoom *c)
{
	size_t n = f->entry->ncall + 1;
	if (!f->spent) {
		f->runs = 0;
		if (!(f->spent = calloc(n, sizeof *f->spent)))
			return no_memory("a call"), -1;
		if (PyList_Append(profiled, (PyObject *)f) < 0)
			return -1;
	}
	if (!c->spent && !(c->spent = malloc(n * sizeof *c->spent)))
		return no_memory("a call"), -1;
	memset(c->spent, 0, n * sizeof *c->spent);
	return 0;
}

void profile_end_call(Function *f, const CallRoom *c)
{
	for (uint32_t k = 0; f->spent && k < f->entry->ncall; k++)
		f->spent[k] += c->spent[k];
	f->runs++;
}

/* Returns the rows of one function: (function, runs, [(kernel, algorithm, flops, bytes, line,
 * seconds)]) */
static PyObject *profile_of(Function *f)
{
	PyObject *rows = PyList_New(0);
	for (uint32_t k = 0; rows && k < f->entry->ncall; k++) {
		const WeftCallInfo *i = weft_call(f->model, f->entry, k);
		PyObject *row = Py_BuildValue("(zzddzd)", i->name, i->algorithm, i->flops, i->bytes,
					      i->line, f->spent[k]);
		if (!row || PyList_Append(rows, row) < 0)
			Py_CLEAR(rows);
		Py_XDECREF(row);
	}
	return rows ? Py_BuildValue("(OKN)", (PyObject *)f, (unsigned long long)f->runs, rows)
		    : NULL;
}

/* Implements profile_begin(): all calls of the process are measured until profile_end. */
static PyObject *profile_begin(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	if (profiled)
		return PyErr_Format(weft_error, "a profile is in progress already");
	if (!(profiled = PyList_New(0)))
		return NULL;
	Py_RETURN_NONE;
}

/* Implements profile_end() -> list, by function in the order of their first calls */
static PyObject *profile_end(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	PyObject *functions = profiled, *out = PyList_New(0);
	profiled = NULL;
	for (Py_ssize_t k = 0; functions && k < PyList_Size(functions); k++) {
		Function *f = (Function *)PyList_GetItem(functions, k);
		PyObject *row = out ? profile_of(f) : NULL;
		if (out && (!row || PyList_Append(out, row) < 0))
			Py_CLEAR(out);
		Py_XDECREF(row);
		free(f->spent);
		f->spent = NULL;
	}
	Py_XDECREF(functions);
	return out;
}

static PyMethodDef functions[] = {
	{"profile_begin", profile_begin, METH_NOARGS,
	 "profile_begin(): calls are measured from now on."},
	{"profile_end", profile_end, METH_NOARGS, "profile_end(): what was measured, by function."},
	{0},
};

int profile_setup(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
