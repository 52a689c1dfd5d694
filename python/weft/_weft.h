/* The extension module weft._weft: compiled models and the compiler, for Python.
 *
 * Policy is Python; this module converts arguments and calls the C interfaces. It uses the
 * stable ABI of Python 3.11 only. All functions run with the interpreter lock held, except where
 * they say otherwise. Functions that return a pointer return NULL with a Python exception set;
 * those that return an int return -1. */
#ifndef WEFT_PYTHON_H
#define WEFT_PYTHON_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

#include "weft.h"

/* ---- module.c ---- */

/* Sets the exception for an error code of weft_model.h, with the sentence: ValueError for arguments
 * and inputs, MemoryError, OSError for files, weft.BusyError, weft.CheckError,
 * weft.CancelledError, TimeoutError for deadlines, else weft.Error.
 * Returns NULL. */
PyObject *weft_raise(int code, const char *message);
/* The class weft.Error. */
extern PyObject *weft_error;

/* ---- tensor.c ---- */

enum { MOST_RANK = 12 };

/* A tensor of somebody else, for the time of a call. Zeros, until view_open fills it in, and again
 * after view_close. */
typedef struct View {
	void (*close)(struct View *); /* NULL: nothing to give back */
	PyObject *copy;               /* whose memory it is; NULL: the object's own */
	int64_t shape[MOST_RANK], stride[MOST_RANK];
	union {
		Py_buffer buffer;
		struct {
			void *tensor; /* DLManagedTensor or DLManagedTensorVersioned */
			PyObject *capsule;
		} managed;
		double number[2];
	} u;
} View;

/* Fills in *t with the memory of a Python object: one with DLPack's C exchange interface (PyTorch),
 * the buffer protocol (NumPy), or __dlpack__. Nothing is copied, except a tensor of PyTorch whose
 * elements are conjugated or negated only when they are read. With `number`, an object of Python
 * that is a number becomes a tensor of this dtype without dimensions. `writable`: the memory will
 * be written. who, name: "input", "x", for exceptions. Returns 1 where the View has something to
 * give back, else 0: of a tensor of PyTorch it is not written then, so that a call of a thousand
 * tensors leaves it out of the caches. */
int view_open(View *, PyObject *, const WeftDType *number, bool writable, const char *who,
	      const char *name, WeftTensor *t);
void view_close(View *);
/* Whether objects of the class of `o` convert by DLPack's C exchange interface, so that make_tensor
 * can make more of them. */
bool is_exchanged(PyObject *o);
/* Whether autograd would record what is computed now of tensors of PyTorch that require gradients.
 */
bool autograd_records(void);
/* Whether a tensor of PyTorch requires a gradient. */
bool requires_grad(PyObject *o);
/* Makes an uninitialised row-major tensor and fills in *t with its memory, which lives as long as
 * the object: of the class of `like` if is_exchanged(like), else a NumPy array, else a
 * memoryview. */
PyObject *make_tensor(PyObject *like, WeftDType, uint32_t rank, const int64_t *shape,
		      const char *name, WeftTensor *t);
/* "f32"; "" for a dtype that Weft lacks. */
const char *dtype_text(WeftDType);
/* Returns whether the text is that of a dtype, and sets *d. */
bool dtype_of_text(const char *text, WeftDType *d);

/* ---- program.c ---- */

/* A compiled model that is loaded: a shared object, or code in this process. */
typedef struct {
	PyObject_HEAD
	const WeftModel *model;
	void *library;   /* of dlopen; NULL: weft_jit_free, unless there is an owner */
	PyObject *owner; /* the Session whose Weft has the model; NULL: none */
} Program;
/* Makes a Program of a model: of weft_jit_keep, which it frees; of a library, which it closes; or
 * of weft_jit, whose Session is the owner. */
PyObject *program_object(const WeftModel *, void *library, PyObject *owner);

/* An instance: weights and state of its own. */
typedef struct {
	PyObject_HEAD
	Program *program;
	WeftInstance *instance;
	int32_t running; /* calls in progress */
} Instance;
/* Whether the instance is open; else sets an exception. */
bool instance_ready(const Instance *);
extern PyTypeObject *instance_type;
int program_setup(PyObject *module);

/* ---- threads.c ---- */

/* Returns the threads of PyTorch's OpenMP library: it keeps its threads busy for milliseconds after
 * each of its operators, so that no other ones get their processors. Use WeftContext.nthreads with
 * it. Returns NULL where PyTorch is not loaded or has no such library, and after a fork, which
 * OpenMP does not survive. */
const WeftThreads *torch_threads(void);

/* ---- function.c ---- */

int function_setup(PyObject *module);

/* ---- session.c ---- */

/* A Weft, for one compilation. */
typedef struct {
	PyObject_HEAD
	Weft *w;
	PyObject *held; /* list of the objects whose memory the Weft refers to */
	uint32_t told;  /* messages that exceptions had already */
	bool busy, has_ops; /* has_ops: operators of the user are registered */
} Session;
/* A graph, with its Session. */
typedef struct {
	PyObject_HEAD
	Session *session;
	WeftGraph *graph;
} GraphObject;
extern PyTypeObject *session_type, *graph_type;
/* Sets weft.Error with the messages since the last call. Returns NULL. */
PyObject *session_raise(Session *);
/* Whether an error was recorded that session_raise has not told. */
bool session_failed(const Session *);
/* Whether no other thread uses the Session; else sets an exception. */
bool session_ready(const Session *);
/* Makes a Graph, or, for NULL, session_raise. */
PyObject *graph_object(Session *, WeftGraph *);
int session_setup(PyObject *module);

/* ---- trace.c ---- */

/* Method of Session: begins a trace. */
PyObject *session_trace(PyObject *self, PyObject *name);
/* A list of blocks that arguments refer to until a call. */
typedef struct Memory {
	struct Memory *next;
} Memory;
/* Allocates zeros that memory_drop frees. */
void *memory_take(Memory **, size_t bytes);
void memory_drop(Memory *);
/* Whether the object is a Size, an expression of sizes. */
bool is_size(PyObject *);
PyObject *size_object(const char *text);
/* The text of a Size or of an integer, which lives as long as the object and the memory. */
const char *size_text(PyObject *, Memory **);
int trace_setup(PyObject *module);

/* ---- nodes.c ---- */

int nodes_setup(PyObject *module);

/* ---- quantize.c ---- */

int quantize_setup(PyObject *module);

/* ---- communication ---- */

/* Returns the provider of a Comm, which stays as long as it does; NULL for another object, and for
 * NULL. */
const WeftComm *comm_of(PyObject *);
/* Returns why the last group that this thread asked for was not made, once; NULL if it was. */
const char *comm_take_no_group(void);
/* Adds the class Comm to the module. Returns -1 with an exception. */
int comm_setup(PyObject *module);

/* ---- helpers ---- */

/* A function of CPython as a method, whatever its arguments are. */
#define METHOD(f) ((PyCFunction)(void (*)(void))(f))
/* Sets MemoryError with a text, and returns NULL. */
void *no_memory(const char *what);
/* Makes a class of a spec, adds it to the module, and sets *out. */
int class_add(PyObject *module, PyType_Spec *, const char *name, PyTypeObject **out);
/* Zeros for `count` elements and one more; free them. NULL with an exception. A negative count is
 * that of a list which has none, whose exception is set. */
void *list_memory(Py_ssize_t count, size_t bytes);
/* Adds an item, which the list takes over. Without an item, or without memory, *list becomes NULL,
 * with an exception. */
void list_put(PyObject **list, PyObject *item);
/* The same for element k of a new tuple. */
void tuple_put(PyObject **tuple, Py_ssize_t k, PyObject *item);

#endif
