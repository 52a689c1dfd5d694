/* Providers of communication between ranks: callables of Python, or shared memory (weft_comm.h). */
#include "_weft.h"

#include <stdio.h>
#include <string.h>
#include <structmember.h>

#include "weft_comm.h"

typedef struct {
	PyObject_HEAD WeftComm comm;
	PyObject *exchange, *wait, *group;
	PyObject *groups; /* by name: a Comm, which stays */
	WeftRank *local;  /* of shared memory; NULL: callables */
} Comm;

static PyTypeObject *comm_type;

/* Moves the exception into the status. Returns its code. */
static int told(WeftStatus *status)
{
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	PyObject *text = value ? PyObject_Str(value) : NULL;
	PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
	snprintf(status->message, sizeof status->message, "%s",
		 bytes ? PyBytes_AsString(bytes) : "the provider failed");
	Py_XDECREF(bytes);
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	PyErr_Clear();
	return status->code = WEFT_ERR_COMM;
}

/* Why the last group of this thread was not made; empty: it was. */
static _Thread_local char no_group[sizeof((WeftStatus *)0)->message];

const char *comm_take_no_group(void)
{
	static _Thread_local char taken[sizeof no_group];
	memcpy(taken, no_group, sizeof taken);
	*no_group = 0;
	return *taken ? taken : NULL;
}

/* Returns a list with a memoryview for each rank, None where there are no bytes. */
static PyObject *views(const Comm *c, const void *const *data, const uint64_t *bytes)
{
	PyObject *list = PyList_New(c->comm.ranks);
	for (int32_t r = 0; list && r < c->comm.ranks; r++) {
		PyObject *view = Py_NewRef(Py_None);
		if (bytes[r]) {
			Py_DECREF(view);
			/* writable, since PyTorch has no tensors on memory that is not */
			view = PyMemoryView_FromMemory((char *)(uintptr_t)data[r],
						       (Py_ssize_t)bytes[r], PyBUF_WRITE);
		}
		if (!view || PyList_SetItem(list, r, view) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static int64_t python_exchange(void *user, const void *const *to, const uint64_t *to_bytes,
			       void *const *from, const uint64_t *from_bytes, WeftStatus *status)
{
	Comm *c = user;
	int64_t handle = 0;
	const PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *give = views(c, to, to_bytes),
		 *take = views(c, (const void *const *)from, from_bytes);
	PyObject *made =
		give && take ? PyObject_CallFunctionObjArgs(c->exchange, give, take, NULL) : NULL;
	if (made)
		handle = PyLong_AsLongLong(made);
	if (PyErr_Occurred()) {
		told(status);
		handle = 0;
	}
	Py_XDECREF(made);
	Py_XDECREF(give);
	Py_XDECREF(take);
	PyGILState_Release(gil);
	return handle;
}

static int python_wait(void *user, int64_t handle, WeftStatus *status)
{
	Comm *c = user;
	const PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *number = PyLong_FromLongLong(handle);
	PyObject *made = number ? PyObject_CallFunctionObjArgs(c->wait, number, NULL) : NULL;
	const int code = made ? WEFT_OK : told(status);
	Py_XDECREF(number);
	Py_XDECREF(made);
	PyGILState_Release(gil);
	return code;
}

static const WeftComm *python_group(void *user, const char *name)
{
	Comm *c = user, *found = NULL;
	const PyGILState_STATE gil = PyGILState_Ensure();
	*no_group = 0;
	found = (Comm *)PyDict_GetItemString(c->groups, name);
	if (!found && c->group != Py_None) {
		PyObject *made = PyObject_CallFunction(c->group, "s", name);
		if (made && PyObject_TypeCheck(made, comm_type) &&
		    PyDict_SetItemString(c->groups, name, made) == 0)
			found = (Comm *)made;
		Py_XDECREF(made); /* the dictionary has it */
		if (PyErr_Occurred()) {
			WeftStatus why = {0};
			told(&why);
			snprintf(no_group, sizeof no_group,
				 "group \"%.60s\" cannot be made: %.400s", name, why.message);
		}
	}
	PyGILState_Release(gil);
	return found ? &found->comm : NULL;
}

static void set(PyObject **field, PyObject *value)
{
	PyObject *old = *field;
	*field = Py_NewRef(value);
	Py_XDECREF(old);
}

static PyObject *comm_alloc(PyTypeObject *type, int32_t rank, int32_t ranks)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	Comm *c = (Comm *)alloc(type, 0);
	if (!c)
		return NULL;
	set(&c->exchange, Py_None);
	set(&c->wait, Py_None);
	set(&c->group, Py_None);
	c->comm = (WeftComm){.size = sizeof c->comm, .rank = rank, .ranks = ranks, .user = c};
	c->groups = PyDict_New();
	if (!c->groups)
		Py_CLEAR(c);
	return (PyObject *)c;
}

/* Comm(rank, ranks, exchange, wait, group=None) */
static PyObject *comm_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
	static char *names[] = {"rank", "ranks", "exchange", "wait", "group", NULL};
	int rank, ranks;
	PyObject *exchange, *wait, *group = Py_None;
	if (!PyArg_ParseTupleAndKeywords(args, named, "iiOO|O", names, &rank, &ranks, &exchange,
					 &wait, &group))
		return NULL;
	if (ranks < 1 || rank < 0 || rank >= ranks)
		return PyErr_Format(PyExc_ValueError, "rank %d of %d", rank, ranks);
	Comm *c = (Comm *)comm_alloc(type, rank, ranks);
	if (!c)
		return NULL;
	set(&c->exchange, exchange);
	set(&c->wait, wait);
	set(&c->group, group);
	c->comm.exchange = python_exchange;
	c->comm.wait = python_wait;
	c->comm.group = group == Py_None ? NULL : python_group;
	return (PyObject *)c;
}

/* Comm.local(name, rank, ranks, timeout): a rank that shares memory with other processes. */
static PyObject *comm_local(PyObject *type, PyObject *args)
{
	const char *name;
	int rank, ranks;
	double timeout;
	WeftStatus status = {0};
	if (!PyArg_ParseTuple(args, "siid", &name, &rank, &ranks, &timeout))
		return NULL;
	WeftRank *local;
	Py_BEGIN_ALLOW_THREADS local = weft_rank_open(name, rank, ranks, timeout, &status);
	Py_END_ALLOW_THREADS if (!local) return weft_raise(status.code, status.message);
	Comm *c = (Comm *)comm_alloc((PyTypeObject *)type, rank, ranks);
	if (!c) {
		weft_rank_close(local);
		return NULL;
	}
	c->local = local;
	c->comm = *weft_rank_comm(local);
	return (PyObject *)c;
}

static void comm_dealloc(PyObject *self)
{
	Comm *c = (Comm *)self;
	PyTypeObject *type = Py_TYPE(self);
	weft_rank_close(c->local);
	Py_XDECREF(c->exchange);
	Py_XDECREF(c->wait);
	Py_XDECREF(c->group);
	Py_XDECREF(c->groups);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

const WeftComm *comm_of(PyObject *comm)
{
	return comm && PyObject_TypeCheck(comm, comm_type) ? &((Comm *)comm)->comm : NULL;
}

static PyMemberDef comm_members[] = {
	{"rank", T_INT, offsetof(Comm, comm) + offsetof(WeftComm, rank), READONLY, "This rank."},
	{"ranks", T_INT, offsetof(Comm, comm) + offsetof(WeftComm, ranks), READONLY,
	 "The number of ranks."},
	{0},
};
static PyMethodDef comm_methods[] = {
	{"local", comm_local, METH_VARARGS | METH_CLASS,
	 "local(name, rank, ranks, timeout): a rank among processes of this machine, which share "
	 "memory. Waits for all ranks."},
	{0},
};
static PyType_Slot comm_slots[] = {
	{Py_tp_new, comm_new},
	{Py_tp_dealloc, comm_dealloc},
	{Py_tp_members, comm_members},
	{Py_tp_methods, comm_methods},
	{Py_tp_doc, "Comm(rank, ranks, exchange, wait, group=None): a provider of communication. "
		    "exchange(to, from) begins to send to[r] to rank r and to receive from[r], "
		    "memoryviews or None, and returns a number above 0; wait(number) returns when "
		    "that is complete; group(name) returns the Comm of a group of ranks."},
	{0, NULL},
};
static PyType_Spec comm_spec = {"weft._weft.Comm", sizeof(Comm), 0, Py_TPFLAGS_DEFAULT, comm_slots};

int comm_setup(PyObject *module)
{
	return class_add(module, &comm_spec, "Comm", &comm_type);
}
