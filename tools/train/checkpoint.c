/* Most states have the names that PyTorch's state dicts give them, flattened. The numbers of an
 * optimiser are one state for all parameters of a group, "optimizer.0.step", whose elements are
 * "state.PARAMETER.step" in the file. */
#include "tools/train/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>

static const char key[] = "weft.train";

enum { NAME = 1024 };

/* ---- names ---- */

/* Whether a state has a number for each parameter of a group. *name: of the number. */
static bool is_numbers(const char *state, const char **name)
{
	static const char begin[] = "optimizer.";
	if (strncmp(state, begin, sizeof begin - 1) != 0)
		return false;
	const char *s = state + sizeof begin - 1;
	const size_t digits = strspn(s, "0123456789");
	*name = s + digits + 1;
	return digits && s[digits] == '.';
}

/* Returns the length of PARAMETER in "state.PARAMETER.KEY"; 0 for other names. */
static size_t parameter_length(const char *state)
{
	static const char begin[] = "state.";
	const char *last = strrchr(state, '.');
	const size_t n = sizeof begin - 1;
	return strncmp(state, begin, n) != 0 || last < state + n ? 0 : (size_t)(last - state) - n;
}

/* Sets out to the name that element i of the numbers k has in a file. The parameters of their group
 * are those of the states that follow, each of which is there for all of them. Returns false if
 * there is none: PyTorch has no such number, or no state of the parameter. */
static bool element_name(const Runner *r, uint32_t k, uint32_t i, char out[NAME])
{
	const char *number;
	if (!is_numbers(runner_state(r, k)->name, &number) || !strcmp(number, "started"))
		return false;
	uint32_t at = k + 1;
	const char *other;
	while (at < runner_nstate(r) && is_numbers(runner_state(r, at)->name, &other))
		at++;
	if (at + i >= runner_nstate(r))
		return false;
	const char *state = runner_state(r, at + i)->name;
	const size_t n = parameter_length(state);
	return n && snprintf(out, NAME, "state.%.*s.%s", (int)n, state + strlen("state."), number) <
			    NAME;
}

/* ---- tensors ---- */

/* A state in memory of ours. */
typedef struct {
	WeftTensor tensor;
	int64_t shape[16];
} Copy;

static bool copy_begin(const Runner *r, uint32_t k, Copy *c)
{
	const WeftTensorInfo *info = runner_state(r, k);
	*c = (Copy){.tensor = {.device = {WEFT_CPU, 0},
			       .ndim = (int32_t)info->rank,
			       .dtype = info->dtype}};
	for (uint32_t d = 0; d < info->rank; d++)
		c->shape[d] = tensor_dim(r->model, info, d)->value;
	c->tensor.shape = c->shape;
	c->tensor.data = malloc(bytes_of(&c->tensor) + 1);
	return c->tensor.data || (fail("no memory for state %s", info->name), false);
}

/* Returns the tensor of element i of numbers. */
static WeftTensor element(const Copy *c, uint32_t i)
{
	WeftTensor t = c->tensor;
	t.ndim = 0;
	t.data = (char *)c->tensor.data + (size_t)i * (t.dtype.bits / 8u);
	return t;
}

/* ---- the place ---- */

static void place_text(const Place *p, char out[400])
{
	snprintf(out, 400,
		 "version=1 seed=%" PRIu64 " data=%" PRIu64 " rows=%" PRId64 " batch=%" PRId64
		 " epoch=%" PRId64 " done=%" PRId64 " step=%" PRId64 " parts=%" PRId64
		 " epochs=%" PRId64 " loss=%.17g seen=%" PRId64 " lr=%.17g",
		 p->seed, p->data, p->rows, p->batch, p->epoch, p->done, p->step, p->parts,
		 p->epochs, p->loss, p->seen, p->lr);
}

static bool read_place(const char *text, Place *p)
{
	p->lr = -1;
	return sscanf(text,
		      "version=1 seed=%" SCNu64 " data=%" SCNu64 " rows=%" SCNd64 " batch=%" SCNd64
		      " epoch=%" SCNd64 " done=%" SCNd64 " step=%" SCNd64 " parts=%" SCNd64
		      " epochs=%" SCNd64 " loss=%lf seen=%" SCNd64 " lr=%lf",
		      &p->seed, &p->data, &p->rows, &p->batch, &p->epoch, &p->done, &p->step,
		      &p->parts, &p->epochs, &p->loss, &p->seen, &p->lr) >= 11;
}

/* ---- saving ---- */

static bool add_state(const Runner *r, uint32_t k, Copy *c, Weft *w, WeftTensors *file)
{
	WeftStatus status = {0};
	const WeftTensorInfo *info = runner_state(r, k);
	char name[NAME];
	if (!copy_begin(r, k, c))
		return false;
	if (r->model->state_get(r->instance, k, &c->tensor, &status) != WEFT_OK)
		return fail_status(NULL, status.code, status.message), false;
	if (!element_name(r, k, 0, name))
		return weft_tensors_add(w, file, info->name, &c->tensor) ||
		       (fail_messages(w), false);
	for (uint32_t i = 0; i < (uint32_t)c->shape[0]; i++) {
		const WeftTensor one = element(c, i);
		if (!element_name(r, k, i, name) || !weft_tensors_add(w, file, name, &one))
			return fail_messages(w), false;
	}
	return true;
}

bool checkpoint_save(const Runner *r, const char *path, const Place *place)
{
	const uint32_t n = runner_nstate(r);
	char text[400];
	Weft *w = weft_new(); /* whose memory ends with the file */
	WeftTensors *file = w ? weft_tensors_new(w) : NULL;
	Copy *copy = calloc(n + 1, sizeof *copy);
	bool ok = file && copy;
	if (!ok)
		fail("out of memory");
	place_text(place, text);
	for (uint32_t k = 0; ok && k < n; k++)
		ok = add_state(r, k, &copy[k], w, file);
	ok = ok &&
	     ((weft_tensors_set_meta(w, file, key, text) && weft_tensors_write(w, file, path)) ||
	      (fail_messages(w), false));
	for (uint32_t k = 0; copy && k < n; k++)
		free(copy[k].tensor.data);
	free(copy);
	weft_free(w);
	return ok;
}

/* ---- loading ---- */

typedef struct {
	const Runner *r;
	const char *path;
	const WeftTensors *file;
	uint32_t used; /* tensors of the file */
} Loading;

/* Copies the tensor of that name, which must be like `to`. */
static bool take(Loading *l, const char *name, const WeftTensor *to)
{
	const WeftTensor *t = weft_tensors_find(l->file, name);
	if (!t)
		return fail("%s: no tensor %s, which is state of the model", l->path, name), false;
	if (memcmp(&t->dtype, &to->dtype, sizeof t->dtype) != 0 || t->ndim != to->ndim ||
	    memcmp(t->shape, to->shape, (size_t)t->ndim * sizeof *t->shape) != 0)
		return fail("%s: %s has another dtype or shape than the model's state", l->path,
			    name),
		       false;
	memcpy(to->data, (char *)t->data + t->byte_offset, bytes_of(to));
	l->used++;
	return true;
}

static bool load_state(Loading *l, uint32_t k)
{
	const Runner *r = l->r;
	WeftStatus status = {0};
	char name[NAME];
	Copy c;
	bool ok = copy_begin(r, k, &c);
	if (ok && !element_name(r, k, 0, name))
		ok = take(l, runner_state(r, k)->name, &c.tensor);
	else if (ok)
		for (uint32_t i = 0; ok && i < (uint32_t)c.shape[0]; i++) {
			const WeftTensor one = element(&c, i);
			ok = element_name(r, k, i, name) && take(l, name, &one);
		}
	if (ok && r->model->state_set(r->instance, k, &c.tensor, &status) != WEFT_OK)
		ok = (fail_status(l->path, status.code, status.message), false);
	free(c.tensor.data);
	return ok;
}

/* Whether a state of the model has the name in files. */
static bool is_state(const Runner *r, const char *name)
{
	char own[NAME];
	for (uint32_t k = 0; k < runner_nstate(r); k++) {
		if (!element_name(r, k, 0, own)) {
			if (!strcmp(runner_state(r, k)->name, name))
				return true;
			continue;
		}
		const int64_t n = tensor_dim(r->model, runner_state(r, k), 0)->value;
		for (uint32_t i = 0; i < (uint32_t)n; i++)
			if (element_name(r, k, i, own) && !strcmp(own, name))
				return true;
	}
	return false;
}

static bool find_place(const WeftTensors *file, const char *path, Place *place)
{
	const char *text = weft_tensors_meta(file, key);
	return (text && read_place(text, place)) ||
	       (fail("%s: no checkpoint of weft train; to begin with weights of another file, use "
		     "--weights-from",
		     path),
		false);
}

bool checkpoint_place(const char *path, Place *place)
{
	Weft *w = weft_new();
	const WeftTensors *file = w ? weft_tensors_read(w, path) : NULL;
	const bool ok = file ? find_place(file, path, place) : (fail_messages(w), false);
	weft_free(w);
	return ok;
}

static bool load(Loading *l, Place *place)
{
	if (!find_place(l->file, l->path, place))
		return false;
	for (uint32_t k = 0; k < runner_nstate(l->r); k++)
		if (!load_state(l, k))
			return false;
	if (l->used == weft_tensors_count(l->file))
		return true;
	for (uint32_t k = 0; k < weft_tensors_count(l->file); k++)
		if (!is_state(l->r, weft_tensors_name(l->file, k)))
			return fail("%s: the model has no state %s", l->path,
				    weft_tensors_name(l->file, k)),
			       false;
	return true;
}

bool checkpoint_load(const Runner *r, const char *path, Place *place)
{
	Weft *w = weft_new();
	Loading l = {.r = r, .path = path, .file = w ? weft_tensors_read(w, path) : NULL};
	const bool ok = l.file ? load(&l, place) : (fail_messages(w), false);
	weft_free(w);
	return ok;
}
