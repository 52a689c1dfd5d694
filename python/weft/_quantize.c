/* Weights of few bits, and graphs in files. */
#include "_weft.h"

#include <stdlib.h>
#include <string.h>

/* The tensors of a call, in memory of Python objects. */
typedef struct {
	WeftTensors *list;
	View *view;
	Py_ssize_t n;
} Data;

static void data_close(Data *d)
{
	while (d->n--)
		view_close(&d->view[d->n]);
	free(d->view);
	*d = (Data){0};
}

/* Makes a list of the tensors of a dict; of None none. Returns false after an exception. */
static bool data_open(Session *s, PyObject *named, Data *d)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	*d = (Data){0};
	if (named == Py_None)
		return true;
	d->list = weft_tensors_new(s->w);
	d->view = list_memory(PyDict_Size(named), sizeof *d->view);
	if (!d->list)
		session_raise(s);
	while (d->list && d->view && PyDict_Next(named, &at, &key, &value)) {
		WeftTensor t;
		const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
		if (!name || view_open(&d->view[d->n], value, NULL, false, "data", name, &t) < 0)
			break;
		d->n++;
		if (!weft_tensors_add(s->w, d->list, name, &t)) {
			session_raise(s);
			break;
		}
	}
	if (!PyErr_Occurred())
		return true;
	data_close(d);
	return false;
}

/* Returns the report as a dict. */
static PyObject *report_of(const WeftQuantizeReport *r)
{
	PyObject *list = PyList_New(0), *out = NULL;
	for (uint32_t k = 0; list && k < r->nweight; k++) {
		const WeftQuantizedWeight *w = &r->weight[k];
		list_put(&list, Py_BuildValue("{s:s,s:s,s:s,s:s,s:K,s:K,s:d}", "name", w->name,
					      "type", w->type, "kind", w->kind, "why", w->why,
					      "bytes", (unsigned long long)w->bytes, "bytes_before",
					      (unsigned long long)w->bytes_before, "snr", w->snr));
	}
	if (list)
		out = Py_BuildValue("{s:O,s:K,s:K,s:I}", "weights", list, "bytes",
				    (unsigned long long)r->bytes, "bytes_before",
				    (unsigned long long)r->bytes_before, "samples",
				    (unsigned)r->samples);
	Py_XDECREF(list);
	if (!out || !r->samples)
		return out;
	PyObject *snr = PyFloat_FromDouble(r->snr), *same = PyFloat_FromDouble(r->agreement);
	if (!snr || !same || PyDict_SetItemString(out, "snr", snr) < 0 ||
	    PyDict_SetItemString(out, "agreement", same) < 0) {
		Py_DECREF(out);
		out = NULL;
	}
	Py_XDECREF(snr);
	Py_XDECREF(same);
	return out;
}

static bool activations_of_text(const char *text, WeftQuantizeActivations *out)
{
	static const char *const ways[] = {[WEFT_QUANTIZE_NONE] = "none",
					   [WEFT_QUANTIZE_DYNAMIC] = "dynamic",
					   [WEFT_QUANTIZE_STATIC] = "static"};
	for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
		if (!strcmp(text, ways[k])) {
			*out = (WeftQuantizeActivations)k;
			return true;
		}
	PyErr_Format(PyExc_ValueError,
		     "activations is \"none\", \"dynamic\" or \"static\", not \"%s\"", text);
	return false;
}

static bool kind_of_text(const char *text, WeftWeightKind *out)
{
	static const char *const kinds[] = {[WEFT_WEIGHT_INT8] = "int8",
					    [WEFT_WEIGHT_INT4] = "int4",
					    [WEFT_WEIGHT_BF16] = "bf16",
					    [WEFT_WEIGHT_FLOAT] = "float"};
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (!strcmp(text, kinds[k])) {
			*out = (WeftWeightKind)k;
			return true;
		}
	PyErr_Format(PyExc_ValueError,
		     "weights is \"int8\", \"int4\", \"bf16\" or \"float\", not \"%s\"", text);
	return false;
}

/* quantize(graph, weights, group, zero_points, embeddings, activations, rules, data, jobs,
 * least_snr): a report; in place
 */
static PyObject *quantize(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *rules, *named;
	const char *kind, *activations;
	int zero_points, embeddings;
	unsigned group, jobs;
	WeftQuantizeOptions o = {.size = sizeof o};
	Data data;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!sIppsO!OId", graph_type, &g, &kind, &group, &zero_points,
			      &embeddings, &activations, &PyTuple_Type, &rules, &named, &jobs,
			      &o.least_snr) ||
	    !kind_of_text(kind, &o.weights) || !activations_of_text(activations, &o.activations) ||
	    !session_ready(g->session))
		return NULL;
	const Py_ssize_t n = PyTuple_Size(rules);
	const char **rule = list_memory(n, sizeof *rule);
	for (Py_ssize_t k = 0; rule && k < n; k++)
		rule[k] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(rules, k), NULL);
	if (PyErr_Occurred() || !data_open(g->session, named, &data)) {
		free(rule);
		return NULL;
	}
	o.group = group;
	o.zero_points = zero_points;
	o.embeddings = embeddings;
	o.nkeep = (uint32_t)n;
	o.keep = rule;
	o.data = data.list;
	o.jobs = jobs;
	Weft *w = g->session->w;
	bool ok;
	g->session->busy = true;
	Py_BEGIN_ALLOW_THREADS ok = weft_quantize(w, g->graph, &o);
	Py_END_ALLOW_THREADS g->session->busy = false;
	data_close(&data);
	free(rule);
	return ok ? report_of(weft_quantize_report(w)) : session_raise(g->session);
}

/* save_graph(graph, path) */
static PyObject *save_graph(PyObject *module, PyObject *args)
{
	GraphObject *g;
	PyObject *path;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!O&", graph_type, &g, PyUnicode_FSConverter, &path))
		return NULL;
	const bool ready = session_ready(g->session);
	const bool ok = ready && weft_save_graph(g->session->w, g->graph, PyBytes_AsString(path));
	Py_DECREF(path);
	if (ready && !ok)
		return session_raise(g->session);
	if (!ready)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"quantize", quantize, METH_VARARGS,
	 "quantize(graph, weights, group, zero_points, embeddings, activations, rules, data, "
	 "jobs): a report"},
	{"save_graph", save_graph, METH_VARARGS,
	 "save_graph(graph, path): a file that load reads."},
	{0},
};

int quantize_setup(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
