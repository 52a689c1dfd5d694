/* --mode: the model is transformed after loading, and files call what it takes and gives by other
 * names than x.0 and y.0:
 *
 *   vjp    x.<i>, ct.<i>      ->  y.<i>, g.<i>, gp.PARAMETER
 *   jvp    x.<i>, t.<i>       ->  y.<i>, jy.<i>
 *   vmap   vx.<i>, x.<i>      ->  vy.<i>, or y.<i> of what has no batch (--out-dims)
 *
 * A file decides what is asked for by what it holds: a tangent or a cotangent that it has none of
 * is zero, and nothing is computed from it. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int randomness_of(const char *text)
{
	static const char *const name[] = {"error", "same", "different"};
	for (int k = 0; k < 3; k++)
		if (!strcmp(text, name[k]))
			return k;
	return -1;
}

bool parse_mode(const char *text, const char *wrt, ModeArgs *out)
{
	static const char *const name[] = {"", "vjp", "jvp", "vmap"};
	for (int k = MODE_VJP; text && k <= MODE_VMAP; k++)
		if (!strcmp(text, name[k]))
			out->mode = (Mode)k;
	out->wrt = wrt;
	if (text && !out->mode)
		return fail_usage("--mode is vjp, jvp or vmap, not %s", text), false;
	if (wrt && out->mode != MODE_VJP && out->mode != MODE_JVP)
		return fail_usage("--wrt is for --mode vjp and jvp"), false;
	if (out->randomness && (out->mode != MODE_VMAP || randomness_of(out->randomness) < 0))
		return out->mode != MODE_VMAP
		       ? fail_usage("--randomness is for --mode vmap"),
		       false
		       : (fail_usage("--randomness is error, same or different, not %s",
				     out->randomness),
			  false);
	if ((out->in_dims || out->out_dims) && out->mode != MODE_VMAP)
		return fail_usage("--%s-dims is for --mode vmap", out->in_dims ? "in" : "out"),
		       false;
	return true;
}

/* ---- names of tensors in files ---- */

/* Returns "1." of call 1; "" of the only one, -1. */
static const char *call_prefix(int call, char before[16])
{
	*before = 0;
	if (call >= 0)
		snprintf(before, 16, "%d.", call);
	return before;
}

void key_text(const TensorKey *key, int call, char *out, size_t n)
{
	char number[12], before[16];
	snprintf(number, sizeof number, "%u", (unsigned)key->k);
	snprintf(out, n, "%s%s.%s", call_prefix(call, before), key->kind,
		 key->name ? key->name : number);
}

/* Whether the name is that of a tensor of a list: "x.3.0". */
static bool in_list(const char *name)
{
	if ((*name != 'x' && *name != 'y') || name[1] != '.')
		return false;
	size_t digits = strspn(name + 2, "0123456789");
	return digits && name[2 + digits] == '.' && isdigit((unsigned char)name[3 + digits]);
}

static bool has_lists(const WeftTensors *t)
{
	for (uint32_t k = 0; k < weft_tensors_count(t); k++)
		if (in_list(weft_tensors_name(t, k)))
			return true;
	return weft_tensors_meta(t, "lists");
}

/* Finds a tensor by its key. A file with lists has its tensors in order. */
const WeftTensor *key_find(const WeftTensors *t, const TensorKey *key, int call)
{
	char text[512];
	bool counted = !key->name && call < 0 &&
		       (!strcmp(key->kind, "x") || !strcmp(key->kind, "y")) && has_lists(t);
	uint32_t n = 0;
	key_text(key, call, text, sizeof text);
	if (!counted)
		return weft_tensors_find(t, text);
	for (uint32_t k = 0; k < weft_tensors_count(t); k++) {
		const char *name = weft_tensors_name(t, k);
		if (*name == *key->kind && name[1] == '.' && n++ == key->k)
			return weft_tensors_at(t, k);
	}
	return NULL;
}

static TensorKey numbered(const char *kind, uint32_t k)
{
	return (TensorKey){kind, k, NULL};
}

/* Whether the file has a tensor of that key or name, also of several calls: the first has it,
 * and others may. */
static bool has(const WeftTensors *file, TensorKey key, const char *name)
{
	char text[512];
	for (int call = -1; call <= 0; call++) {
		key_text(&key, call, text, sizeof text);
		if (weft_tensors_find(file, text))
			return true;
	}
	snprintf(text, sizeof text, "%s.%s", key.kind, name);
	return !isdigit((unsigned char)*name) && weft_tensors_find(file, text);
}

/* Whether a name begins with "KIND." and goes on with a number, or with something else. */
static bool has_kind(const WeftTensors *file, const char *kind, bool number, const char **rest)
{
	size_t n = strlen(kind);
	for (uint32_t k = 0; k < weft_tensors_count(file); k++) {
		const char *name = weft_tensors_name(file, k);
		if (!strncmp(name, kind, n) && name[n] == '.' &&
		    (isdigit((unsigned char)name[n + 1]) != 0) == number) {
			if (rest)
				*rest = name + n + 1;
			return true;
		}
	}
	return false;
}

bool mode_has_reference(Mode mode, const WeftTensors *file)
{
	if (mode == MODE_VJP)
		return has_kind(file, "g", true, NULL) || has_kind(file, "g", false, NULL) ||
		       has_kind(file, "gp", false, NULL) || has_kind(file, "gp", true, NULL);
	return !mode || has_kind(file, mode == MODE_JVP ? "jy" : "vy", true, NULL);
}

/* ---- what is asked for ---- */

typedef struct {
	Weft *w;
	WeftGraph *g;
	const ModeArgs *a;
	const WeftTensorInfo *input, *output;
	uint32_t ninput, noutput;
	uint32_t *place; /* of inputs or outputs */
	const char **wrt;
	char *text; /* of wrt */
	int32_t *dim, *out_dim; /* of a batch: as many as inputs, and outputs, or one */
	uint32_t nout_dim;
	uint32_t nplace, nwrt;
} AskedTransform;

/* Returns <i> or NAME of KIND.<i> or KIND.NAME, without its call's number; NULL of something
 * else. */
static const char *of_kind(const char *name, const char *kind)
{
	size_t n = strlen(kind), digits = strspn(name, "0123456789");
	if (digits && name[digits] == '.')
		name += digits + 1;
	return !strncmp(name, kind, n) && name[n] == '.' ? name + n + 1 : NULL;
}

/* Checks that every tensor of this kind belongs to one of t[n]: one that does not would be taken
 * as not there. */
static bool all_known(const AskedTransform *q, const char *kind, const char *what,
		      const WeftTensorInfo *t, uint32_t n, bool by_name)
{
	for (uint32_t k = 0; k < weft_tensors_count(q->a->file); k++) {
		const char *name = weft_tensors_name(q->a->file, k), *rest = of_kind(name, kind);
		bool known = !rest;
		/* an input of the model's may be called so */
		for (uint32_t i = 0; i < q->ninput && !known; i++)
			known = !strcmp(q->input[i].name, name);
		for (uint32_t i = 0; i < n && !known; i++) {
			char number[12];
			snprintf(number, sizeof number, "%u", (unsigned)i);
			known = !strcmp(rest, number) || (by_name && !strcmp(rest, t[i].name));
		}
		if (!known)
			return fail("%s: %s: the model has %u %s%s", q->a->path, name, (unsigned)n,
				    what, n == 1 ? "" : "s"),
			       false;
	}
	return true;
}

/* Splits "inputs,params,NAME" in place; returns the number of items. */
static uint32_t split_wrt(char *text, const char **item)
{
	uint32_t n = 0;
	for (char *p = strtok(text, ","); p; p = strtok(NULL, ","))
		item[n++] = p;
	return n;
}

/* Parses "0.5", a part; "200k", "64M", "1.5G" or "4096": bytes. */
static bool parse_budget(const char *text, double *out)
{
	static const char unit[] = "kMG";
	char *end;
	*out = strtod(text, &end);
	const char *u = *end && end > text ? strchr(unit, *end) : NULL;
	for (long k = u ? u - unit + 1 : 0; k > 0; k--)
		*out *= 1000;
	if (end == text || end[u != NULL] || !(*out >= 0) || isinf(*out))
		return fail_usage("--memory-budget is a part of what is saved, 0 to 1, or bytes, "
				  "such as "
				  "64M, not %s",
				  text),
		       false;
	return true;
}

WeftGraph *with_gradients(Weft *w, WeftGraph *g, const char *wrt, const char *budget)
{
	double most = 0;
	if (budget && !parse_budget(budget, &most))
		return NULL;
	static const char *const name[] = {"run", "forward_saving", "backward"};
	WeftGraph *entry[3] = {g}, *all = NULL;
	char *text = strdup(*wrt ? wrt : "inputs,params");
	const char **item = calloc(strlen(wrt) + 16, sizeof *item);
	if (text && item) {
		const WeftGradOptions o = {.size = sizeof o,
					   .nwrt = split_wrt(text, item),
					   .wrt = item,
					   .memory_budget = budget ? &most : NULL};
		all = weft_vjp_split(w, g, &o, &entry[1], &entry[2]) ? weft_join(w, 3, name, entry)
								     : NULL;
	} else {
		fail("out of memory");
	}
	free(text);
	free(item);
	return all;
}

/* Sets what is differentiated by to that of which the file has a gradient. */
static void wrt_of_reference(AskedTransform *q)
{
	const WeftTensors *file = q->a->file;
	if (has_kind(file, "g", true, NULL))
		q->wrt[q->nwrt++] = "inputs";
	for (uint32_t k = 0; k < weft_tensors_count(file); k++) {
		const char *name = weft_tensors_name(file, k);
		if (!strncmp(name, "gp.", 3))
			q->wrt[q->nwrt++] = name + 3;
		else if (!strncmp(name, "g.", 2) && !isdigit((unsigned char)name[2]))
			q->wrt[q->nwrt++] = name + 2;
	}
}

static WeftGraph *ask_vjp(AskedTransform *q, Runner *r)
{
	if (!all_known(q, "ct", "output", q->output, q->noutput, true))
		return NULL;
	for (uint32_t k = 0; k < q->noutput; k++)
		if (has(q->a->file, numbered("ct", k), q->output[k].name))
			q->place[q->nplace++] = k;
	if (!q->nplace && q->noutput) { /* of a loss */
		q->place[q->nplace++] = 0;
		r->ct_is_one = true;
	}
	if (q->a->compares && !q->a->wrt)
		wrt_of_reference(q);
	const WeftGradOptions o = {.size = sizeof o,
				   .nwrt = q->nwrt,
				   .wrt = q->wrt,
				   .noutput = q->nplace,
				   .output = q->place};
	return weft_vjp(q->w, q->g, &o);
}

static WeftGraph *ask_jvp(AskedTransform *q)
{
	if (!all_known(q, "t", "input", q->input, q->ninput, true))
		return NULL;
	for (uint32_t k = 0; k < q->ninput && !q->a->wrt; k++)
		if (has(q->a->file, numbered("t", k), q->input[k].name))
			q->place[q->nplace++] = k;
	const WeftGradOptions o = {.size = sizeof o,
				   .nwrt = q->nwrt,
				   .wrt = q->wrt,
				   .ninput = q->nplace,
				   .input = q->place};
	return weft_jvp(q->w, q->g, &o);
}

static const WeftTensor *batched_input(const AskedTransform *q, uint32_t k)
{
	char text[32];
	for (int call = -1; call <= 0; call++) {
		const TensorKey key = numbered("vx", k);
		key_text(&key, call, text, sizeof text);
		const WeftTensor *t = weft_tensors_find(q->a->file, text);
		if (t)
			return t;
	}
	return NULL;
}

/* Parses "0,none,-1" for count inputs or outputs, or one number for all; *n: how many. NULL, and
 * no number: no text. */
static bool parse_dims(const char *option, const char *text, uint32_t count, const char *what,
		       int32_t *dim, uint32_t *n)
{
	*n = 0;
	for (const char *p = text; p; p = *p ? p + 1 : NULL) {
		char *end;
		bool none = !strncmp(p, "none", 4);
		long v = none ? WEFT_NO_BATCH : strtol(p, &end, 10);
		const char *rest = none ? p + 4 : end;
		if (rest == p || (*rest && *rest != ',') ||
		    (!none && (isspace((unsigned char)*p) || labs(v) > 1000000)))
			return fail_usage("%s %s: expected dimensions or none, with commas between",
				    option, text),
			       false;
		if (*n >= count && *n > 0)
			return fail("%s %s: the model has %u %s%s", option, text, (unsigned)count,
				    what, count == 1 ? "" : "s"),
			       false;
		dim[(*n)++] = (int32_t)v;
		p = rest;
	}
	if (*n > 1 && *n != count)
		return fail("%s %s: the model has %u %ss", option, text, (unsigned)count, what),
		       false;
	return true;
}

static bool parse_all_dims(AskedTransform *q, WeftVmapOptions *o)
{
	q->dim = calloc(q->ninput + q->noutput + 2, sizeof *q->dim);
	if (!q->dim)
		return fail("out of memory"), false;
	q->out_dim = q->dim + q->ninput + 1;
	bool ok = parse_dims("--in-dims", q->a->in_dims, q->ninput, "input", q->dim, &o->nin_dim) &&
		  parse_dims("--out-dims", q->a->out_dims, q->noutput, "output", q->out_dim,
			     &q->nout_dim);
	o->in_dim = q->dim;
	o->out_dim = q->out_dim;
	o->nout_dim = q->nout_dim;
	return ok;
}

/* Takes what the file and the option say of input k, t: its batch, NULL if it has none there. */
static bool take_batched(AskedTransform *q, WeftVmapOptions *o, uint32_t k, const WeftTensor *t)
{
	int32_t dim = !o->nin_dim ? 0 : o->in_dim[o->nin_dim == 1 ? 0 : k];
	if (!t)
		return o->nin_dim < 2 || dim == WEFT_NO_BATCH ||
		       (fail("%s: no tensor vx.%u, of which dimension %d is the batch", q->a->path,
			     (unsigned)k, (int)dim),
			false);
	q->place[q->nplace++] = k;
	int32_t at = dim < 0 && dim != WEFT_NO_BATCH ? dim + t->ndim : dim;
	if (at >= 0 && at < t->ndim)
		o->extent = t->shape[at];
	return true;
}

static WeftGraph *ask_vmap(AskedTransform *q)
{
	if (!all_known(q, "vx", "input", q->input, q->ninput, false))
		return NULL;
	WeftVmapOptions o = {.size = sizeof o, .input = q->place};
	if (!parse_all_dims(q, &o))
		return NULL;
	for (uint32_t k = 0; k < q->ninput; k++)
		if (!take_batched(q, &o, k, batched_input(q, k)))
			return NULL;
	o.ninput = q->nplace;
	if (q->a->randomness)
		o.randomness = (WeftRandomness)randomness_of(q->a->randomness);
	if (!q->nplace)
		return fail("%s: it has no vx.<i>, an input with a batch", q->a->path), NULL;
	return weft_vmap(q->w, q->g, &o);
}

/* ---- what it takes and gives ---- */

/* Finds the next of the tensors, from *at on, that has this name: those of a transformed model
 * are in the order of the model's. */
static bool follow(const WeftTensorInfo *t, uint32_t n, uint32_t *at, const char *name,
		   uint32_t *found)
{
	for (uint32_t k = *at; k < n; k++)
		if (!strcmp(t[k].name, name)) {
			*found = k;
			*at = k + 1;
			return true;
		}
	return false;
}

/* Sets keys to KIND.PLACE for what is called PREFIX.NAME after the model's own; to PARAM.NAME
 * where NAME is none of these. */
static void name_rest(TensorKey *key, const WeftTensorInfo *t, uint32_t from, uint32_t n,
		      const WeftTensorInfo *own, uint32_t nown, const char *kind, const char *param)
{
	uint32_t at = 0, found;
	for (uint32_t k = from; k < n; k++) {
		const char *name = strchr(t[k].name, '.') + 1;
		key[k] = follow(own, nown, &at, name, &found) ? numbered(kind, found)
							      : (TensorKey){param, 0, name};
	}
}

/* Whether output k is the same for all members of a batch. */
static bool is_shared_output(const AskedTransform *q, uint32_t k)
{
	return q->nout_dim && q->out_dim[q->nout_dim == 1 ? 0 : k] == WEFT_NO_BATCH;
}

static bool name_tensors(Runner *r, const AskedTransform *q)
{
	uint32_t nin, nout;
	const WeftTensorInfo *in = weft_inputs(r->w, r->one, &nin),
			     *out = weft_outputs(r->w, r->one, &nout);
	r->given = out;
	r->ngiven = nout;
	r->in_key = calloc(nin + 1, sizeof *r->in_key);
	r->out_key = calloc(nout + 1, sizeof *r->out_key);
	r->fill = calloc(nin + 1, sizeof *r->fill);
	if (!r->in_key || !r->out_key || !r->fill)
		return fail("out of memory"), false;
	bool vmap = q->a->mode == MODE_VMAP, vjp = q->a->mode == MODE_VJP;
	for (uint32_t k = 0; k < q->ninput; k++)
		r->in_key[k] = numbered("x", k);
	for (uint32_t k = 0; k < q->nplace && vmap; k++)
		r->in_key[q->place[k]].kind = "vx";
	for (uint32_t k = 0; k < q->noutput; k++)
		r->out_key[k] = numbered(vmap && !is_shared_output(q, k) ? "vy" : "y", k);
	if (vjp) {
		name_rest(r->in_key, in, q->ninput, nin, q->output, q->noutput, "ct", "ct");
		name_rest(r->out_key, out, q->noutput, nout, q->input, q->ninput, "g", "gp");
	} else if (!vmap) {
		name_rest(r->in_key, in, q->ninput, nin, q->input, q->ninput, "t", "tp");
		name_rest(r->out_key, out, q->noutput, nout, q->output, q->noutput, "jy", "jy");
	}
	return true;
}

static bool transform(Runner *r, AskedTransform *q)
{
	size_t most = weft_tensors_count(q->a->file) + 2,
	       length = q->a->wrt ? strlen(q->a->wrt) : 0;
	q->input = weft_inputs(r->w, r->one, &q->ninput);
	q->output = weft_outputs(r->w, r->one, &q->noutput);
	q->place = calloc(q->ninput + q->noutput + 1, sizeof *q->place);
	q->wrt = calloc(most + length, sizeof *q->wrt);
	q->text = malloc(length + 1);
	if (!q->place || !q->wrt || !q->text)
		return fail("out of memory"), false;
	if (q->a->wrt)
		q->nwrt = split_wrt(strcpy(q->text, q->a->wrt), q->wrt);
	WeftGraph *g = q->a->mode == MODE_VJP   ? ask_vjp(q, r)
		       : q->a->mode == MODE_JVP ? ask_jvp(q)
						: ask_vmap(q);
	if (!g)
		return fail_messages(r->w), false;
	r->g = r->one = g;
	return name_tensors(r, q);
}

bool mode_apply(Runner *r, const ModeArgs *a)
{
	AskedTransform q = {.w = r->w, .g = r->one, .a = a};
	if (r->one != r->g)
		return fail_usage("--mode is for one model file, not for several as NAME=FILE"),
		       false;
	bool ok = transform(r, &q);
	free(q.place);
	free(q.wrt);
	free(q.text);
	free(q.dim);
	return ok;
}

TensorKey runner_input_key(const Runner *r, uint32_t k)
{
	return r->in_key ? r->in_key[k] : numbered("x", k);
}

/* Sets *key to that of output k. Inputs that the model writes stand among the outputs of what
 * runs, in order: they are the ones that the graph's do not have. They donate only where the
 * model can write them in place. */
bool runner_output_key(const Runner *r, uint32_t k, TensorKey *key)
{
	*key = numbered("y", k);
	if (!r->out_key)
		return true;
	uint32_t n = 0;
	bool given = false;
	for (uint32_t j = 0; j <= k; j++) {
		n += given;
		given = n < r->ngiven && !strcmp(runner_output(r, j)->name, r->given[n].name);
	}
	*key = given ? r->out_key[n] : *key;
	return given;
}

/* ---- cotangents and tangents that are not there ---- */

static void set_one(WeftTensor *t)
{
	static const float one = 1;
	static const double wide = 1;
	uint16_t half = t->dtype.code == WEFT_BFLOAT ? 0x3f80 : 0x3c00;
	int bits = t->dtype.code == WEFT_COMPLEX ? t->dtype.bits / 2 : t->dtype.bits;
	const void *from = bits == 64   ? (const void *)&wide
			   : bits == 32 ? (const void *)&one
					: &half;
	memcpy(t->data, from, (size_t)bits / 8);
}

/* Sets shape[] to the shape of the tensor that input k belongs to, or to the type's where that
 * is constant. */
static bool shape_of(const Runner *r, uint32_t k, const WeftTensor *like, int64_t *shape)
{
	const WeftTensorInfo *info = runner_input(r, k);
	for (uint32_t d = 0; d < info->rank; d++) {
		shape[d] = like && like->ndim == (int32_t)info->rank
				   ? like->shape[d]
				   : tensor_dim(r->model, info, d)->value;
		if (shape[d] < 0)
			return false;
	}
	return true;
}

static const WeftTensor *fill(Runner *r, uint32_t k, const WeftTensor *like, const char *path,
			      const char *name, bool one)
{
	const WeftTensorInfo *info = runner_input(r, k);
	WeftTensor *t = &r->fill[k];
	free(t->data);
	free(t->shape);
	*t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
	t->shape = calloc(info->rank + 1, sizeof *t->shape);
	const bool known = t->shape && shape_of(r, k, like, t->shape);
	if (!known && !one)
		return fail("%s: no tensor %s, whose shape is not known either", path, name), NULL;
	t->data = known ? calloc(bytes_of(t) + 16, 1) : NULL;
	if (known && !t->data)
		return fail("out of memory"), NULL;
	if (one && (!known || numel_of(t) != 1))
		return fail("%s: no tensor %s: only where output 0 is one number, a loss, its "
			    "cotangent is 1 by itself",
			    path, name),
		       NULL;
	if (one)
		set_one(t);
	return t;
}

const WeftTensor *runner_absent(Runner *r, uint32_t k, const WeftTensors *file, const char *path,
				int call)
{
	TensorKey key = runner_input_key(r, k), of = key;
	char name[512], text[512];
	key_text(&key, call, name, sizeof name);
	bool tangent = !strcmp(key.kind, "t"), cotangent = !strcmp(key.kind, "ct");
	if ((!tangent && !cotangent) || key.name) {
		char before[16];
		Guess g = {.word = runner_input(r, k)->name};
		for (uint32_t i = 0; i < weft_tensors_count(file); i++)
			guess_offer(&g, weft_tensors_name(file, i), weft_tensors_name(file, i));
		return fail_id("W0008", "%s: no tensor %s or %s%s for input %u%s", path, name,
			       call_prefix(call, before), g.word, (unsigned)k, guess_text(&g)),
		       NULL;
	}
	of.kind = tangent ? "x" : "y";
	key_text(&of, call, text, sizeof text);
	return fill(r, k, weft_tensors_find(file, text), path, name, cotangent && r->ct_is_one);
}

void mode_close(Runner *r)
{
	for (uint32_t k = 0; r->fill && k < r->ninput; k++) {
		free(r->fill[k].data);
		free(r->fill[k].shape);
	}
	free(r->fill);
	free(r->in_key);
	free(r->out_key);
}
