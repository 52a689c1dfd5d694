/* Tensors of Python: their memory for the time of a call, and new ones for results. */
#include "_weft.h"

#include <stdlib.h>
#include <string.h>

#include "_dlpack.h"

/* ---- dtypes ---- */

static const struct {
	const char *text, *numpy, *format; /* format: of the buffer protocol; NULL: it has none */
	WeftDType dtype;
} dtypes[] = {
	{"f32", "float32", "f", {WEFT_FLOAT, 32, 1}},
	{"f64", "float64", "d", {WEFT_FLOAT, 64, 1}},
	{"i64", "int64", "l", {WEFT_INT, 64, 1}},
	{"i32", "int32", "i", {WEFT_INT, 32, 1}},
	{"bool", "bool_", "?", {WEFT_BOOL, 8, 1}}, /* numpy.bool: not before NumPy 2 */
	{"u8", "uint8", "B", {WEFT_UINT, 8, 1}},
	{"i8", "int8", "b", {WEFT_INT, 8, 1}},
	{"i16", "int16", "h", {WEFT_INT, 16, 1}},
	{"u16", "uint16", "H", {WEFT_UINT, 16, 1}},
	{"u32", "uint32", "I", {WEFT_UINT, 32, 1}},
	{"u64", "uint64", "L", {WEFT_UINT, 64, 1}},
	{"f16", "float16", "e", {WEFT_FLOAT, 16, 1}},
	{"c64", "complex64", "Zf", {WEFT_COMPLEX, 64, 1}},
	{"c128", "complex128", "Zd", {WEFT_COMPLEX, 128, 1}},
	{"i64", "int64", "q", {WEFT_INT, 64, 1}},
	{"u64", "uint64", "Q", {WEFT_UINT, 64, 1}},
	{"bf16", "bfloat16", NULL, {WEFT_BFLOAT, 16, 1}},
	{"f8e4m3", "float8_e4m3fn", NULL, {WEFT_F8_E4M3FN, 8, 1}},
	{"f8e5m2", "float8_e5m2", NULL, {WEFT_F8_E5M2, 8, 1}},
	{"f8e4m3fnuz", "float8_e4m3fnuz", NULL, {WEFT_F8_E4M3FNUZ, 8, 1}},
	{"f8e5m2fnuz", "float8_e5m2fnuz", NULL, {WEFT_F8_E5M2FNUZ, 8, 1}},
};
enum { NDTYPE = sizeof dtypes / sizeof *dtypes };

static bool same_dtype(WeftDType a, WeftDType b)
{
	return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static int dtype_row(WeftDType d)
{
	for (int k = 0; k < NDTYPE; k++)
		if (same_dtype(dtypes[k].dtype, d))
			return k;
	return -1;
}

const char *dtype_text(WeftDType d)
{
	int k = dtype_row(d);
	return k < 0 ? "" : dtypes[k].text;
}

bool dtype_of_text(const char *text, WeftDType *d)
{
	for (int k = 0; k < NDTYPE; k++)
		if (!strcmp(dtypes[k].text, text)) {
			*d = dtypes[k].dtype;
			return true;
		}
	return false;
}

/* ---- classes ---- */

typedef enum { BY_NOTHING, BY_EXCHANGE, BY_BUFFER, BY_DLPACK, BY_NUMBER, MASKED } Way;

/* How objects of a class convert, found once. A class that stands here stays alive. */
typedef struct {
	PyTypeObject *type;
	Way way;
	const DLExchange *exchange;
	PyObject *is_conj, *is_neg; /* methods of a tensor of PyTorch; NULL: the class has none */
} Known;
static Known known[32];
static unsigned nknown;

static const DLExchange *exchange_of(PyTypeObject *type)
{
	PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
	const DLExchange *e = NULL;
	if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
		e = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
	Py_XDECREF(capsule);
	PyErr_Clear();
	while (e && e->version.major > 1)
		e = e->older;
	return e && e->version.major == 1 && e->view_object ? e : NULL;
}

static Way way_of(PyObject *o, const DLExchange *exchange)
{
	if (exchange)
		return BY_EXCHANGE;
	if (PyObject_HasAttrString(o, "mask") && PyObject_HasAttrString(o, "filled"))
		return MASKED;
	if (PyObject_CheckBuffer(o))
		return BY_BUFFER;
	if (PyObject_HasAttrString(o, "__dlpack__"))
		return BY_DLPACK;
	return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyIndex_Check(o)
		       ? BY_NUMBER
		       : BY_NOTHING;
}

static PyObject *method_of(PyTypeObject *type, const char *name)
{
	PyObject *f = PyObject_GetAttrString((PyObject *)type, name);
	PyErr_Clear();
	return f;
}

static const Known *known_class(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);
	const unsigned most = sizeof known / sizeof *known;
	for (unsigned k = 0; k < most && known[k].type; k++)
		if (known[k].type == type)
			return &known[k];
	const DLExchange *exchange = exchange_of(type);
	Known *at = &known[nknown++ % most];
	const Known before = *at;
	Py_INCREF((PyObject *)type);
	*at = (Known){type, way_of(o, exchange), exchange, method_of(type, "is_conj"),
		      method_of(type, "is_neg")};
	Py_XDECREF((PyObject *)before.type);
	Py_XDECREF(before.is_conj);
	Py_XDECREF(before.is_neg);
	return at;
}

bool is_exchanged(PyObject *o)
{
	return o && known_class(o)->way == BY_EXCHANGE;
}

bool autograd_records(void)
{
	static PyObject *enabled; /* torch.is_grad_enabled, once PyTorch is loaded */
	PyObject *name = enabled ? NULL : PyUnicode_InternFromString("torch"),
		 *torch = name ? PyImport_GetModule(name) : NULL;
	if (torch)
		enabled = PyObject_GetAttrString(torch, "is_grad_enabled");
	Py_XDECREF(name);
	Py_XDECREF(torch);
	PyObject *answer = enabled ? PyObject_CallNoArgs(enabled) : NULL;
	Py_XDECREF(answer);
	PyErr_Clear();
	return answer == Py_True;
}

bool requires_grad(PyObject *o)
{
	static PyObject *name;
	if (!name)
		name = PyUnicode_InternFromString("requires_grad");
	PyObject *answer = PyObject_GetAttr(o, name);
	Py_XDECREF(answer);
	PyErr_Clear();
	return answer == Py_True;
}

/* ---- tensors of others ---- */

static int refuse(const char *who, const char *name, const char *what)
{
	PyErr_Format(PyExc_TypeError, "%s %s: %s", who, name, what);
	return -1;
}

/* The first line of an exception's text, or NULL without an exception. */
static PyObject *first_line(PyObject *value)
{
	PyObject *text = value ? PyObject_Str(value) : NULL,
		 *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
	PyObject *line = lines && PyList_Size(lines) ? PyList_GetItem(lines, 0) : NULL;
	Py_XINCREF(line);
	Py_XDECREF(text);
	Py_XDECREF(lines);
	PyErr_Clear();
	return line;
}

/* An exception of somebody else's, with the name in front; of several lines, the first one. */
static int refuse_with_cause(const char *who, const char *name)
{
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	PyObject *line = first_line(value);
	if (line)
		PyErr_Format(type, "%s %s: %U", who, name, line);
	else
		PyErr_Format(PyExc_TypeError, "%s %s: no tensor", who, name);
	Py_XDECREF(line);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

static void close_buffer(View *v)
{
	PyBuffer_Release(&v->u.buffer);
}

/* The row of a format of the buffer protocol in native order, or -1. */
static int format_row(const char *format, Py_ssize_t bytes)
{
	if (!format)
		format = "B";
	if (*format == '@' || *format == '=' || *format == '<')
		format++;
	for (int k = 0; k < NDTYPE; k++)
		if (dtypes[k].format && !strcmp(dtypes[k].format, format) &&
		    dtypes[k].dtype.bits == 8 * bytes)
			return k;
	return -1;
}

static int open_buffer(View *v, PyObject *o, bool writable, const char *who, const char *name,
		       WeftTensor *t)
{
	Py_buffer *b = &v->u.buffer;
	if (PyObject_GetBuffer(o, b, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0)
		return refuse_with_cause(who, name);
	v->close = close_buffer;
	int row = format_row(b->format, b->itemsize);
	if (row < 0) {
		PyErr_Format(PyExc_TypeError, "%s %s: elements of format '%s' are no dtype of Weft",
			     who, name, b->format ? b->format : "B");
		return -1;
	}
	if (b->ndim > MOST_RANK)
		return refuse(who, name, "the array has too many dimensions");
	for (int d = 0; d < b->ndim; d++) {
		if (b->shape[d] > 1 && b->strides[d] % b->itemsize)
			return refuse(who, name,
				      "the strides are no multiples of the element's size");
		v->shape[d] = b->shape[d];
		v->stride[d] = b->strides[d] / b->itemsize;
	}
	*t = (WeftTensor){b->buf,   {WEFT_CPU, 0}, b->ndim, dtypes[row].dtype,
			  v->shape, v->stride,     0};
	return 1;
}

static void close_versioned(View *v)
{
	DLVersioned *m = v->u.managed.tensor;
	if (m->deleter)
		m->deleter(m);
	Py_XDECREF(v->u.managed.capsule);
}

static void close_managed(View *v)
{
	DLManaged *m = v->u.managed.tensor;
	if (m->deleter)
		m->deleter(m);
	Py_XDECREF(v->u.managed.capsule);
}

/* __dlpack__(max_version=(1, 0)), or of old classes without arguments. */
static PyObject *capsule_of(PyObject *o)
{
	PyObject *f = PyObject_GetAttrString(o, "__dlpack__"), *none = PyTuple_New(0);
	PyObject *named = Py_BuildValue("{s:(ii)}", "max_version", 1, 0), *capsule = NULL;
	if (f && none && named)
		capsule = PyObject_Call(f, none, named);
	if (f && none && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		capsule = PyObject_Call(f, none, NULL);
	}
	Py_XDECREF(f);
	Py_XDECREF(none);
	Py_XDECREF(named);
	return capsule;
}

static int open_dlpack(View *v, PyObject *o, bool writable, const char *who, const char *name,
		       WeftTensor *t)
{
	PyObject *capsule = capsule_of(o);
	if (!capsule)
		return refuse_with_cause(who, name);
	v->u.managed.capsule = capsule;
	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		DLVersioned *m = v->u.managed.tensor =
			PyCapsule_GetPointer(capsule, "dltensor_versioned");
		PyCapsule_SetName(capsule, "used_dltensor_versioned");
		v->close = close_versioned;
		*t = m->tensor;
		if (writable && m->flags & DL_READ_ONLY)
			return refuse(who, name, "the tensor is read-only");
		return 1;
	}
	DLManaged *m = v->u.managed.tensor = PyCapsule_GetPointer(capsule, "dltensor");
	if (!m) {
		Py_DECREF(capsule);
		return refuse_with_cause(who, name);
	}
	PyCapsule_SetName(capsule, "used_dltensor");
	v->close = close_managed;
	*t = m->tensor;
	return 1;
}

/* A tensor that its class cannot show: one that is sparse, quantised, or has no memory. */
static int refuse_exchanged(PyObject *o, const char *who, const char *name)
{
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	PyObject *layout = PyObject_GetAttrString(o, "layout"),
		 *device = layout ? PyObject_GetAttrString(o, "device") : NULL;
	PyObject *line = first_line(value);
	if (device && line)
		PyErr_Format(
			PyExc_TypeError,
			"%s %s: expected a dense tensor in memory, got one of layout %S on %S (%U)",
			who, name, layout, device, line);
	else
		refuse(who, name, "expected a dense tensor in memory");
	Py_XDECREF(line);
	Py_XDECREF(layout);
	Py_XDECREF(device);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

static void close_copy(View *v)
{
	Py_CLEAR(v->copy);
}

/* Whether the method says yes of the object; without a method: no. */
static bool says_yes(PyObject *method, PyObject *o)
{
	PyObject *answer = method ? PyObject_CallFunctionObjArgs(method, o, NULL) : NULL;
	bool yes = answer == Py_True;
	Py_XDECREF(answer);
	PyErr_Clear();
	return yes;
}

/* Whether a tensor of PyTorch is conjugated or negated when it is read. A real tensor can be so
 * only as the imaginary part of a complex one: then all of its strides are even. Other tensors, of
 * which most calls are, are not asked. */
static bool is_lazy(const Known *k, PyObject *o, const WeftTensor *t)
{
	if (t->dtype.code == WEFT_COMPLEX)
		return says_yes(k->is_conj, o) || says_yes(k->is_neg, o);
	if (t->dtype.code != WEFT_FLOAT)
		return false;
	for (int32_t d = 0; d < t->ndim; d++)
		if (t->shape[d] > 1 && (!t->strides || t->strides[d] % 2))
			return false;
	return says_yes(k->is_neg, o);
}

static int open_exchanged(View *v, PyObject *o, const Known *k, bool writable, const char *who,
			  const char *name, WeftTensor *t)
{
	const DLExchange *e = k->exchange; /* a call of Python may give *k to another class */
	if (e->view_object(o, t))
		return refuse_exchanged(o, who, name);
	if (!is_lazy(k, o, t))
		return 0;
	if (writable) {
		PyErr_Format(PyExc_ValueError,
			     "%s %s: a tensor with the conjugate or the negative bit cannot be "
			     "written: resolve_conj().resolve_neg()",
			     who, name);
		return -1;
	}
	PyObject *plain = PyObject_CallMethod(o, "resolve_conj", NULL);
	v->copy = plain ? PyObject_CallMethod(plain, "resolve_neg", NULL) : NULL;
	v->close = close_copy;
	Py_XDECREF(plain);
	return v->copy && !e->view_object(v->copy, t) ? 1 : refuse_with_cause(who, name);
}

/* Whether an integer, of which x has the low 64 bits, is one of the dtype. */
static bool in_range(int64_t x, WeftDType d)
{
	int unused = 64 - d.bits;
	int64_t kept = d.code == WEFT_UINT ? (int64_t)((uint64_t)x << unused >> unused)
					   : (int64_t)((uint64_t)x << unused) >> unused;
	return kept == x;
}

/* The value of a number, as the dtype has it, in v->u.number. */
static int open_number(View *v, PyObject *o, WeftDType d, const char *who, const char *name,
		       WeftTensor *t)
{
	void *p = v->u.number;
	if (d.code == WEFT_FLOAT && d.bits >= 32) {
		double x = PyFloat_AsDouble(o);
		if (d.bits == 32)
			*(float *)p = (float)x;
		else
			*(double *)p = x;
	} else if (d.code == WEFT_BOOL) {
		*(uint8_t *)p = PyObject_IsTrue(o) == 1;
	} else if (d.code == WEFT_INT || d.code == WEFT_UINT) {
		PyObject *whole = PyNumber_Index(o);
		int64_t x = whole ? d.code == WEFT_UINT ? (int64_t)PyLong_AsUnsignedLongLong(whole)
							: PyLong_AsLongLong(whole)
				  : -1;
		Py_XDECREF(whole);
		if (!PyErr_Occurred() && !in_range(x, d))
			PyErr_Format(PyExc_OverflowError, "%R is out of the range of %s", o,
				     dtype_text(d));
		memcpy(p, &x, sizeof x); /* little-endian: the low bytes come first */
	} else {
		return refuse(who, name, "a number cannot be given for this dtype");
	}
	if (PyErr_Occurred())
		return refuse_with_cause(who, name);
	*t = (WeftTensor){p, {WEFT_CPU, 0}, 0, d, v->shape, v->stride, 0};
	return 0;
}

static int open_as(View *v, PyObject *o, const Known *k, const WeftDType *number, bool writable,
		   const char *who, const char *name, WeftTensor *t)
{
	switch (k->way) {
	case BY_EXCHANGE:
		return open_exchanged(v, o, k, writable, who, name, t);
	case BY_BUFFER:
		return open_buffer(v, o, writable, who, name, t);
	case BY_DLPACK:
		return open_dlpack(v, o, writable, who, name, t);
	case MASKED:
		return refuse(who, name,
			      "a masked array, whose mask would be lost: give x.filled(value)");
	case BY_NUMBER:
		if (number)
			return open_number(v, o, *number, who, name, t);
		/* fallthrough */
	case BY_NOTHING:
		break;
	}
	PyErr_Format(PyExc_TypeError, "%s %s: expected a tensor or array, got %R", who, name,
		     (PyObject *)Py_TYPE(o));
	return -1;
}

int view_open(View *v, PyObject *o, const WeftDType *number, bool writable, const char *who,
	      const char *name, WeftTensor *t)
{
	const int held = open_as(v, o, known_class(o), number, writable, who, name, t);
	if (held < 0) {
		view_close(v);
		return -1;
	}
	t->data = (char *)t->data + t->byte_offset;
	t->byte_offset = 0;
	return held;
}

void view_close(View *v)
{
	if (v->close)
		v->close(v);
	v->close = NULL;
}

/* ---- new tensors ---- */

static void set_error(void *error, const char *kind, const char *message)
{
	(void)error, (void)kind;
	PyErr_SetString(PyExc_RuntimeError, message);
}

static PyObject *make_exchanged(const DLExchange *e, WeftDType d, uint32_t rank,
				const int64_t *shape, WeftTensor *t)
{
	WeftTensor like = {NULL, {WEFT_CPU, 0}, (int32_t)rank, d, (int64_t *)(uintptr_t)shape, NULL,
			   0};
	DLVersioned *m = NULL;
	void *object = NULL;
	if (e->allocate(&like, &m, NULL, set_error))
		return NULL;
	*t = m->tensor;
	t->shape = (int64_t *)(uintptr_t)shape;
	t->strides = NULL;
	return e->to_object(m, &object) ? NULL : object;
}

static PyObject *empty; /* numpy.empty; NULL: NumPy is not there */
static PyObject *numpy_dtype[NDTYPE];

static bool numpy_ready(void)
{
	static bool asked;
	if (!asked) {
		asked = true;
		PyObject *numpy = PyImport_ImportModule("numpy");
		empty = numpy ? PyObject_GetAttrString(numpy, "empty") : NULL;
		Py_XDECREF(numpy);
		PyErr_Clear();
	}
	return empty;
}

static PyObject *shape_tuple(uint32_t rank, const int64_t *shape)
{
	PyObject *tuple = PyTuple_New(rank);
	for (uint32_t k = 0; tuple && k < rank; k++)
		PyTuple_SetItem(tuple, k, PyLong_FromLongLong(shape[k]));
	return tuple;
}

/* The dtype object of a row. NumPy itself has no bf16 and no f8; the package ml_dtypes does. */
static PyObject *numpy_dtype_of(int row, const char *name)
{
	if (numpy_dtype[row])
		return numpy_dtype[row];
	PyObject *module = PyImport_ImportModule(dtypes[row].format ? "numpy" : "ml_dtypes"),
		 *dtype = NULL;
	PyObject *numpy = PyImport_ImportModule("numpy");
	PyObject *class = module ? PyObject_GetAttrString(module, dtypes[row].numpy) : NULL;
	if (class && numpy)
		dtype = PyObject_CallMethod(numpy, "dtype", "O", class);
	Py_XDECREF(module);
	Py_XDECREF(numpy);
	Py_XDECREF(class);
	if (!dtype)
		PyErr_Format(
			PyExc_TypeError,
			"output %s: NumPy has no dtype for %s: pass tensors of PyTorch, or out=",
			name, dtypes[row].text);
	return numpy_dtype[row] = dtype;
}

static PyObject *make_numpy(int row, uint32_t rank, const int64_t *shape, const char *name)
{
	PyObject *dtype = numpy_dtype_of(row, name),
		 *extents = dtype ? shape_tuple(rank, shape) : NULL;
	PyObject *array =
		extents ? PyObject_CallFunctionObjArgs(empty, extents, dtype, NULL) : NULL;
	Py_XDECREF(extents);
	return array;
}

/* Without NumPy: a memoryview with format and shape. */
static PyObject *make_memoryview(int row, uint32_t rank, const int64_t *shape, const char *name)
{
	Py_ssize_t bytes = dtypes[row].dtype.bits / 8;
	for (uint32_t k = 0; k < rank; k++)
		bytes *= shape[k];
	if (!dtypes[row].format || strlen(dtypes[row].format) > 1)
		return PyErr_Format(PyExc_TypeError, "output %s: %s needs NumPy or PyTorch", name,
				    dtypes[row].text);
	PyObject *memory = PyByteArray_FromStringAndSize(NULL, bytes),
		 *view = memory ? PyMemoryView_FromObject(memory) : NULL;
	PyObject *extents = view ? shape_tuple(rank, shape) : NULL, *cast = NULL;
	if (extents)
		cast = PyObject_CallMethod(view, "cast", "sO", dtypes[row].format, extents);
	Py_XDECREF(memory);
	Py_XDECREF(view);
	Py_XDECREF(extents);
	return cast;
}

PyObject *make_tensor(PyObject *like, WeftDType d, uint32_t rank, const int64_t *shape,
		      const char *name, WeftTensor *t)
{
	const Known *k = like ? known_class(like) : NULL;
	if (k && k->way == BY_EXCHANGE)
		return make_exchanged(k->exchange, d, rank, shape, t);
	int row = dtype_row(d);
	if (row < 0)
		return PyErr_Format(PyExc_TypeError, "output %s: its dtype is unknown here", name);
	PyObject *o = (numpy_ready() ? make_numpy : make_memoryview)(row, rank, shape, name);
	View v = {0};
	if (o && dtypes[row].format && view_open(&v, o, NULL, true, "output", name, t) >= 0) {
		view_close(&v); /* a new array does not move */
		t->shape = (int64_t *)(uintptr_t)shape;
		t->strides = NULL;
		return o;
	}
	if (o && !dtypes[row].format) { /* an array of ml_dtypes: its address */
		PyObject *data = PyObject_GetAttrString(o, "ctypes"),
			 *address = data ? PyObject_GetAttrString(data, "data") : NULL;
		void *p = address ? PyLong_AsVoidPtr(address) : NULL;
		Py_XDECREF(data);
		Py_XDECREF(address);
		*t = (WeftTensor){
			p, {WEFT_CPU, 0}, (int32_t)rank, d, (int64_t *)(uintptr_t)shape, NULL, 0};
		if (!PyErr_Occurred())
			return o;
	}
	Py_XDECREF(o);
	return NULL;
}
