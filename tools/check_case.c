/* One model against its references. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "on_device.h"

enum { MAX_SYMBOLS = 16, MAX_VALUES = 16 };

typedef struct {
	void *data;
	uint64_t bytes;
} CaseBytes;

typedef struct {
	const CheckCase *cs;
	const CheckOptions *o;
	Runner r;
	Runner oracle; /* the interpreter, for --sizes */
	Weft *files;
	WeftTensors *ref;
	int k; /* which reference */
	bool calls; /* it has several calls: 0.x.0, 1.x.0, ... */
	bool nothing; /* no reference has anything for --mode */
	WeftTensor *in;
	CaseBytes *first; /* results with the first number of threads; those of the runner go with
			 its next call */
	CheckRecord whole;
} Case;

static void add_record(Case *c, const CheckRecord *r)
{
	fwrite(r, sizeof *r, 1, c->cs->records);
}

static bool put_reason(Case *c, const char *text)
{
	const char *made = c->cs->made;
	c->whole.c.ok = false;
	snprintf(c->whole.text, sizeof c->whole.text, "%.*s%s%s", *made ? 90 : 399, text,
		 *made ? "; " : "", made);
	return false;
}

/* Whether the model draws random numbers, which are not the reference's. */
static bool draws(const Case *c)
{
	for (uint32_t k = 0; k < runner_nstate(&c->r); k++)
		if (!strcmp(runner_state(&c->r, k)->name, "weft.rng"))
			return true;
	for (uint32_t k = 0; k < c->r.ninput; k++)
		if (!strcmp(runner_input(&c->r, k)->name, "weft.rng"))
			return true;
	return false;
}

/* Whether values are free: ONNX defines no generator of random numbers, so its tests compare
 * types and shapes of them. */
static bool has_free_values(const Case *c)
{
	return has_suffix(c->cs->model, ".onnx") && draws(c);
}

/* Returns a number in words: "NaN", "infinity", "0.5". */
static const char *in_words(double v, char text[32])
{
	if (isnan(v))
		snprintf(text, 32, "NaN");
	else if (isinf(v))
		snprintf(text, 32, "%sinfinity", v < 0 ? "-" : "");
	else
		snprintf(text, 32, "%.9g", v);
	return text;
}

/* Returns where value i (value_at) stands: "[2, 3]". */
static const char *place_in(const WeftTensor *t, int64_t i, char text[128])
{
	int64_t rest = t->dtype.code == WEFT_COMPLEX ? i / 2 : i, stride = numel_of(t);
	size_t n = 0;
	text[n++] = '[';
	for (int32_t d = 0; d < t->ndim && n < 100; d++) {
		stride /= t->shape[d];
		n += (size_t)snprintf(text + n, 128 - n, "%s%lld", d ? ", " : "",
				      (long long)(rest / stride));
		rest %= stride;
	}
	snprintf(text + n, 128 - n, "]");
	return text;
}

/* Says what differs most between tensors of the same type. */
static void tell_difference(const char *what, const WeftTensor *got, const WeftTensor *want,
			    CheckRecord *r)
{
	const int64_t n = values_of(want);
	double a = n ? value_at(got, r->c.at) : 0, b = n ? value_at(want, r->c.at) : 0;
	char x[32], y[32], place[128];
	if (isfinite(a) && isfinite(b))
		snprintf(r->text, sizeof r->text,
			 "%s: error %.4g at element %lld, allowed %.4g; %lld of %lld wrong: %s, "
			 "expected %s",
			 what, r->c.error, (long long)r->c.at, r->c.allowed, (long long)r->c.wrong,
			 (long long)n, in_words(a, x), in_words(b, y));
	else
		snprintf(r->text, sizeof r->text,
			 "%s: the reference has %s at %s, the model %s; %lld of %lld wrong", what,
			 in_words(b, y), place_in(want, r->c.at, place), in_words(a, x),
			 (long long)r->c.wrong, (long long)n);
}

/* Returns the dtype that products of the model are computed in, for tolerance_in; NULL: in full
 * precision. */
static const char *precision_of(Case *c)
{
	const char *precision = precision_given(&c->o->load, c->cs->entry),
		   *given = activations_given(&c->o->load, c->cs->entry);
	if (precision)
		return precision;
	if (c->r.one)
		return weft_rounds_activations(c->r.w, c->r.one) ? "int8" : NULL;
	return given && !strcmp(given, "int8") ? given : NULL;
}

/* Compares an output, or state of that name ("state x"; no key); keeps the worst of them in
 * c->whole. */
static void judge_as(Case *c, const TensorKey *key, const char *what, const WeftTensor *got,
		     const WeftTensor *want)
{
	const char *op = weft_tensors_meta(c->ref, "op");
	WeftTensor a, b;
	CheckRecord r = {.ref = c->k};
	const char *precision = precision_of(c);
	Tolerance t = tolerance_in(precision, c->ref, key, want);
	const bool values = key && (!strcmp(key->kind, "y") || !strcmp(key->kind, "jy") ||
				    !strcmp(key->kind, "vy"));
	uint32_t k = values ? key->k : UINT32_MAX;
	bool phase = op && normalise_phase(op, k, got, &a) && normalise_phase(op, k, want, &b);
	if (has_free_values(c))
		r.c = compare_types(got, want);
	else
		r.c = phase ? compare(&a, &b, want->dtype, &t)
			    : compare(got, want, want->dtype, &t);
	if (phase) {
		free(a.data);
		free(b.data);
	}
	if (*r.c.why)
		snprintf(r.text, sizeof r.text, "%s: %s", what, r.c.why);
	else
		tell_difference(what, got, want, &r);
	if (!r.c.ok || r.c.ratio >= 0)
		add_record(c, &r);
	c->whole.c.ok &= r.c.ok;
	c->whole.rounded |= precision && !strcmp(precision, "int8");
	if (!*r.c.why && !has_free_values(c) && (!*c->whole.of || r.c.share > c->whole.c.share)) {
		c->whole.c.share = r.c.share;
		c->whole.c.largest = r.c.largest;
		c->whole.c.largest_allowed = r.c.share > 0 ? r.c.largest_allowed : r.c.allowed;
		c->whole.theirs = t.eager_err;
		const char *name = strstr(what, " ("); /* "output 0 (y)" */
		snprintf(c->whole.of, sizeof c->whole.of, "%.*s",
			 name ? (int)(name - what) : (int)sizeof c->whole.of - 1, what);
	}
	if (r.c.ratio > c->whole.c.ratio)
		c->whole.c.ratio = r.c.ratio;
}

static void judge(Case *c, uint32_t k, const TensorKey *key, const WeftTensor *got,
		  const WeftTensor *want)
{
	char what[200];
	snprintf(what, sizeof what, "output %u (%s)", (unsigned)k, runner_output(&c->r, k)->name);
	judge_as(c, key, what, got, want);
}

static bool keep_first(Case *c)
{
	for (uint32_t k = 0; k < c->r.noutput; k++) {
		uint64_t n = bytes_of(&c->r.result[k]);
		c->first[k] = (CaseBytes){malloc(n + 1), n};
		if (!c->first[k].data)
			return put_reason(c, "out of memory");
		memcpy(c->first[k].data, c->r.result[k].data, n);
	}
	return true;
}

static bool same_as_first(const Case *c, uint32_t k)
{
	const WeftTensor *t = &c->r.result[k];
	return bytes_of(t) == c->first[k].bytes &&
	       memcmp(c->first[k].data, t->data, c->first[k].bytes) == 0;
}

static void drop_first(Case *c)
{
	for (uint32_t k = 0; k < c->r.noutput; k++) {
		free(c->first[k].data);
		c->first[k].data = NULL;
	}
}

static bool device_output_same(Case *c, OnDevice *d, uint32_t k)
{
	const CaseBytes *want = &c->first[k];
	void *got = malloc(want->bytes + 1);
	const bool known = got && on_device_output(d, k, got, want->bytes),
		   same = known && !memcmp(got, want->data, want->bytes);
	char text[100];
	free(got);
	snprintf(text, sizeof text, "output %u differs with tensors in the GPU's memory",
		 (unsigned)k);
	return same || put_reason(c, known ? text : "failed with tensors in the GPU's memory");
}

/* Checks that tensors of the GPU give the bits that those of the host gave: launches one by one,
 * while the graph is made, and by the graph. */
static bool execute_on_device(Case *c)
{
	enum { CALLS = 4 };
	OnDevice *d = on_device_new(&c->r, c->in);
	bool ok = d || put_reason(c, "failed with tensors in the GPU's memory");
	for (int i = 0; ok && i < CALLS; i++) {
		ok = (runner_reset(&c->r) && on_device_begin(d) && on_device_wait(d)) ||
		     put_reason(c, "failed with tensors in the GPU's memory");
		for (uint32_t k = 0; ok && k < c->r.noutput; k++)
			ok = device_output_same(c, d, k);
	}
	on_device_free(d);
	return ok;
}

/* Runs once per number of threads, and with tensors at each place; all must agree to the bit. */
static bool execute(Case *c)
{
	char text[100];
	const bool device = on_device_can(&c->r);
	if (!runner_prepare(&c->r, c->in))
		return put_reason(c, "refused");
	double start = now();
	if (!runner_reset(&c->r) || !runner_call(&c->r, c->in, c->o->threads[0], NULL, NULL))
		return put_reason(c, "failed");
	c->whole.seconds = now() - start;
	if ((c->o->nthreads < 2 && !device) || c->r.interp)
		return true;
	bool ok = keep_first(c);
	if (ok && device)
		ok = execute_on_device(c);
	for (int t = 1; ok && t < c->o->nthreads; t++) {
		if (!runner_reset(&c->r) ||
		    !runner_call(&c->r, c->in, c->o->threads[t], NULL, NULL))
			ok = put_reason(c, "failed");
		for (uint32_t k = 0; ok && k < c->r.noutput; k++)
			if (!same_as_first(c, k)) {
				snprintf(text, sizeof text,
					 "output %u differs between %d and %d threads", (unsigned)k,
					 c->o->threads[0], c->o->threads[t]);
				ok = put_reason(c, text);
			}
	}
	drop_first(c);
	return ok;
}

/* Whether the output is an input that the model writes, which comes back as a further result of
 * that name; references have only the model's own. */
static bool is_written_input(const Runner *r, uint32_t output)
{
	for (uint32_t k = 0; k < r->ninput; k++)
		if (!strcmp(runner_input(r, k)->name, runner_output(r, output)->name))
			return true;
	return false;
}

/* ---- references ---- */

/* Finds "y.0", or of a reference with several calls "0.y.0", "1.y.0", ... NULL: it has none. */
static const WeftTensor *find(const Case *c, uint32_t call, TensorKey key)
{
	return key_find(c->ref, &key, c->calls ? (int)call : -1);
}

/* Finds the reference of an output. Gradients of parameters are called gp.NAME or g.NAME. */
static const WeftTensor *find_output(const Case *c, uint32_t call, TensorKey key)
{
	const WeftTensor *t = find(c, call, key);
	if (!t && !strcmp(key.kind, "gp"))
		t = find(c, call, (TensorKey){"g", 0, key.name});
	return t;
}

/* Compares state with "b.NAME" after that call. */
static void against_state(Case *c, uint32_t call)
{
	for (uint32_t k = 0; k < runner_nstate(&c->r); k++) {
		const char *name = runner_state(&c->r, k)->name;
		const WeftTensor *want = find(c, call, (TensorKey){"b", 0, name});
		char what[200];
		WeftTensor got = want ? *want : (WeftTensor){0};
		if (!want)
			continue;
		snprintf(what, sizeof what, "state %s after call %u", name, (unsigned)call + 1);
		got.data = malloc(bytes_of(want) + 1);
		got.byte_offset = 0;
		got.strides = NULL;
		if (!got.data || !runner_get_state(&c->r, k, &got))
			put_reason(c, got.data ? "state cannot be read" : "out of memory");
		else
			judge_as(c, NULL, what, &got, want);
		free(got.data);
	}
}

/* Compares the outputs. What a reference does not have is not compared, but for a model's own
 * results where it is not transformed. */
static void against_outputs(Case *c, uint32_t call)
{
	TensorKey key;
	for (uint32_t k = 0; k < c->r.noutput; k++) {
		const WeftTensor *want =
			runner_output_key(&c->r, k, &key) ? find_output(c, call, key) : NULL;
		if (want)
			judge(c, k, &key, &c->r.result[k], want);
		else if (!c->o->mode.mode && !is_written_input(&c->r, k))
			put_reason(c, "the reference has fewer results than the model");
	}
}

/* Takes the inputs of a call. Those that it has none of stay as they were. */
static bool take_inputs(Case *c, int call)
{
	return runner_call_inputs(&c->r, c->ref, c->cs->ref[c->k], call, c->in);
}

/* Executes all calls of a reference; state goes from one call to the next. */
static void all_calls(Case *c, int threads)
{
	if (!runner_reset(&c->r))
		put_reason(c, "failed");
	for (uint32_t call = 0; c->whole.c.ok && find(c, call, (TensorKey){"x", 0, NULL}); call++)
		if (!take_inputs(c, (int)call) || !runner_prepare(&c->r, c->in) ||
		    !runner_call(&c->r, c->in, threads, NULL, NULL)) {
			put_reason(c, "a call failed");
		} else {
			against_outputs(c, call);
			against_state(c, call);
		}
}

/* Turns a file's cotangents of vectors that are fixed up to phase, which are those of the file's
 * vectors, as the model's own vectors are turned. Returns the number of cotangents that it
 * replaced, in data of their own: turned[] by input. */
static uint32_t turn_cotangents(Case *c, bool *turned)
{
	const char *op = weft_tensors_meta(c->ref, "op");
	uint32_t n = 0;
	for (uint32_t i = 0; op && i < c->r.ninput; i++) {
		const TensorKey ct = runner_input_key(&c->r, i);
		for (uint32_t k = 0; !strcmp(ct.kind, "ct") && !ct.name && k < c->r.noutput; k++) {
			TensorKey y;
			const bool own = runner_output_key(&c->r, k, &y) && !strcmp(y.kind, "y") &&
					 y.k == ct.k;
			const WeftTensor *want = own ? find_output(c, 0, y) : NULL;
			if (want && turn_phase(op, ct.k, &c->r.result[k], want, &c->in[i]))
				n += turned[i] = true;
		}
	}
	return n;
}

static bool execute_turned(Case *c)
{
	bool *turned = calloc(c->r.ninput + 1, sizeof *turned);
	if (!turned)
		return put_reason(c, "out of memory");
	const bool ok = !turn_cotangents(c, turned) || execute(c);
	for (uint32_t i = 0; i < c->r.ninput; i++)
		if (turned[i])
			free(c->in[i].data);
	free(turned);
	return ok;
}

/* Says why results may differ from the reference's although neither is wrong. */
static void explain_rounding(Case *c)
{
	uint32_t n;
	CheckRecord r = {.ref = c->k, .c = {.ratio = -1}};
	if (c->calls) {
		snprintf(r.text, sizeof r.text, "--trace-rounding is for references of one call");
		add_record(c, &r);
		return;
	}
	weft_outputs(c->oracle.w, c->oracle.one, &n);
	trace_rounding(c->oracle.w, c->oracle.one, c->in, c->oracle.ninput, n, r.text,
		       sizeof r.text);
	add_record(c, &r);
}

static void against_reference(Case *c)
{
	if (!execute(c) || (c->o->mode.mode == MODE_VJP && !execute_turned(c)))
		return;
	against_outputs(c, 0);
	against_state(c, 0);
	if (!c->whole.c.ok && c->o->trace_rounding)
		explain_rounding(c);
	if (c->whole.c.ok && has_free_values(c))
		snprintf(c->whole.text, sizeof c->whole.text,
			 "types and shapes only: the model draws random numbers");
	for (int t = 0; c->calls && (c->r.model || (c->r.interp && !t)) && t < c->o->nthreads; t++)
		all_calls(c, c->o->threads[t]);
	if (!c->whole.c.ok && !*c->whole.text && draws(c))
		put_reason(c, "the model draws random numbers, which are not PyTorch's: with "
			      "--set-mode eval dropout draws none");
}

/* ---- other sizes ---- */

typedef struct {
	uint32_t n;
	int64_t value[MAX_SYMBOLS][MAX_VALUES];
	int count[MAX_SYMBOLS];
} CaseSizes;

static int find_symbol(const WeftSymbolInfo *symbol, uint32_t n, const char *name, size_t len)
{
	for (uint32_t k = 0; k < n; k++)
		if (strlen(symbol[k].name) == len && !strncmp(symbol[k].name, name, len))
			return (int)k;
	return -1;
}

/* Parses "1,2,5", up to the end or a blank. */
static bool parse_values(const char *text, int64_t value[MAX_VALUES], int *count)
{
	for (const char *p = text;; p++) {
		char *end;
		errno = 0;
		long long v = strtoll(p, &end, 10);
		if (end == p || errno || v < 0 || *count == MAX_VALUES)
			return false;
		value[(*count)++] = v;
		p = end;
		if (*p != ',')
			return !*p || *p == ' ';
	}
}

static bool bad_sizes(Case *c, const char *why, const char *item, size_t n)
{
	char text[200];
	snprintf(text, sizeof text, "--sizes: %s: %.*s", why, (int)(n < 100 ? n : 100), item);
	return put_reason(c, text);
}

/* Says that the model has no symbol of the name item[n]. Returns false. */
static bool no_symbol(Case *c, const WeftSymbolInfo *symbol, uint32_t count, const char *item,
		      size_t n)
{
	char name[64], text[400];
	snprintf(name, sizeof name, "%.*s", (int)n, item);
	Guess g = {.word = name};
	for (uint32_t k = 0; k < count; k++)
		guess_offer(&g, symbol[k].name, symbol[k].name);
	snprintf(text, sizeof text, "--sizes: the model has no symbol %s%s", name,
		 count ? guess_text(&g) : "; it has none");
	return put_reason(c, text);
}

/* Parses "s0=1,2 s1=17": every symbol of the model must be given, once, and nothing else. */
static bool parse_sizes(Case *c, CaseSizes *s)
{
	const WeftSymbolInfo *symbol = weft_symbols(c->oracle.w, c->oracle.one, &s->n);
	if (s->n > MAX_SYMBOLS)
		return put_reason(c, "too many symbols");
	for (const char *p = c->o->sizes; *(p += strspn(p, " ")); p += strcspn(p, " ")) {
		size_t n = strcspn(p, " "), name = strcspn(p, "= ");
		int k = find_symbol(symbol, s->n, p, name);
		if (k < 0)
			return no_symbol(c, symbol, s->n, p, name);
		if (s->count[k])
			return bad_sizes(c, "given twice", p, name);
		if (p[name] != '=' || !parse_values(p + name + 1, s->value[k], &s->count[k]))
			return bad_sizes(c, "expected NAME=N,N..., at most 16 numbers", p, n);
	}
	for (uint32_t k = 0; k < s->n; k++)
		if (!s->count[k])
			return bad_sizes(c, "no value for", symbol[k].name, strlen(symbol[k].name));
	return true;
}

/* Makes an input of the given extents whose values repeat those of the reference's. */
static bool refill(WeftTensor *t, const WeftTensor *from, const int64_t *shape)
{
	size_t elem = (from->dtype.bits + 7u) / 8;
	*t = *from;
	t->shape = malloc((size_t)(from->ndim + 1) * sizeof *shape);
	if (!t->shape)
		return false;
	memcpy(t->shape, shape, (size_t)from->ndim * sizeof *shape);
	int64_t n = numel_of(t), have = numel_of(from);
	t->data = malloc((size_t)n * elem + 1);
	t->byte_offset = 0;
	for (int64_t i = 0; t->data && have && i < n; i++)
		memcpy((char *)t->data + (size_t)i * elem,
		       (char *)from->data + from->byte_offset + (size_t)(i % have) * elem, elem);
	return t->data;
}

static void one_size(Case *c, const int64_t *symbol)
{
	WeftTensor *own = calloc(c->r.ninput + 1, sizeof *own), *saved = c->in;
	TensorKey key;
	bool ok = own;
	for (uint32_t k = 0; ok && k < c->r.ninput; k++) {
		int64_t shape[16];
		ok = weft_input_shape(c->oracle.w, c->oracle.one, k, symbol, shape) &&
		     refill(&own[k], &saved[k], shape);
	}
	c->in = own;
	ok = ok && execute(c);
	if (ok &&
	    (!runner_prepare(&c->oracle, own) || !runner_call(&c->oracle, own, 1, NULL, NULL)))
		ok = put_reason(c, "the interpreter failed");
	for (uint32_t k = 0; ok && k < c->r.noutput && k < c->oracle.noutput; k++)
		if (runner_output_key(&c->r, k, &key))
			judge(c, k, &key, &c->r.result[k], &c->oracle.result[k]);
	for (uint32_t k = 0; own && k < c->r.ninput; k++) {
		free(own[k].data);
		free(own[k].shape);
	}
	free(own);
	c->in = saved;
}

static void all_sizes(Case *c)
{
	CaseSizes s = {0};
	int at[MAX_SYMBOLS] = {0};
	if (!parse_sizes(c, &s)) {
		add_record(c, &c->whole);
		return;
	}
	const WeftSymbolInfo *symbol = weft_symbols(c->oracle.w, c->oracle.one, &s.n);
	for (uint32_t carry = 0; carry < s.n || s.n == 0;) {
		int64_t value[MAX_SYMBOLS] = {0};
		size_t n = 0;
		c->whole = (CheckRecord){
			.is_ref = true, .ref = c->k, .theirs = -1, .c = {.ok = true, .ratio = -1}};
		for (uint32_t k = 0; k < s.n; k++) {
			value[k] = s.value[k][at[k]];
			n += (size_t)snprintf(c->whole.text + n, sizeof c->whole.text - n,
					      "%s%s=%lld", k ? " " : "", symbol[k].name,
					      (long long)value[k]);
		}
		char label[400];
		memcpy(label, c->whole.text, sizeof label);
		one_size(c, value);
		if (!c->whole.c.ok && strcmp(label, c->whole.text))
			snprintf(c->whole.text, sizeof c->whole.text, "%.200s: %.150s", label,
				 c->whole.text[0] ? c->whole.text : "wrong");
		add_record(c, &c->whole);
		for (carry = 0; carry < s.n && ++at[carry] == s.count[carry]; carry++)
			at[carry] = 0;
		if (carry == s.n)
			return;
	}
}

/* ---- all of it ---- */

static void one_reference(Case *c)
{
	const char *path = c->cs->ref[c->k];
	const char *slash = strrchr(path, '/');
	progress_show("reference %d of %d", c->k + 1, c->cs->nref);
	c->whole = (CheckRecord){
		.is_ref = true, .ref = c->k, .theirs = -1, .c = {.ok = true, .ratio = -1}};
	if (c->cs->nref > 1)
		snprintf(c->whole.text, sizeof c->whole.text, "%s", slash ? slash + 1 : path);
	else if (c->o->against)
		snprintf(c->whole.text, sizeof c->whole.text, "%s", c->cs->made);
	c->ref = weft_tensors_read(c->files, path);
	if (!c->ref) {
		fail_messages(c->files);
		put_reason(c, "unreadable reference");
	} else if (!mode_has_reference(c->o->mode.mode, c->ref)) {
		c->whole.skipped = true;
	} else if (c->calls = weft_tensors_find(c->ref, "0.x.0"),
		   !(c->calls ? take_inputs(c, 0) : runner_inputs(&c->r, c->ref, path, c->in))) {
		put_reason(c, "inputs missing");
	} else if (c->o->sizes) {
		all_sizes(c);
		return;
	} else {
		against_reference(c);
	}
	add_record(c, &c->whole);
}

/* Finds out what is asked for with --mode: what the first reference that has something for it
 * says. Returns false if none has, or after a message. */
static bool ask(Case *c, ModeArgs *mode)
{
	*mode = c->o->mode;
	mode->compares = true;
	for (int k = 0; k < c->cs->nref && mode->mode && !mode->file; k++) {
		mode->path = c->cs->ref[k];
		const WeftTensors *file = weft_tensors_read(c->files, mode->path);
		if (!file)
			return fail_messages(c->files), false;
		mode->file = mode_has_reference(mode->mode, file) ? file : NULL;
	}
	c->nothing = mode->mode && !mode->file;
	return !c->nothing;
}

static bool has_warning(Weft *w)
{
	for (uint32_t k = 0; k < weft_nmessages(w); k++)
		if (weft_message(w, k).severity == WEFT_WARNING)
			return true;
	return false;
}

static bool open_case(Case *c)
{
	if (c->o->weights && !is_shared_object(c->cs->model))
		return fail("%s is a model file: --weights is for compiled models", c->cs->model),
		       false;
	ModeArgs mode;
	RunnerOptions ro = {.load = &c->o->load,
			    .backend = c->o->backend,
			    .remote = c->o->runner,
			    .share_all = true,
			    .mode = &mode,
			    .compile = &c->o->compile,
			    .entry = c->cs->entry,
			    .verify = c->o->weights,
			    .device = c->o->device};
	c->files = weft_new();
	LoadArgs load = c->o->load; /* what the reference has decides what inputs of ONNX models
	                               fix */
	if (!load.values && has_suffix(c->cs->model, ".onnx") && c->cs->nref)
		load.values = c->cs->ref[0];
	ro.load = &load;
	if (!c->files || !ask(c, &mode) || !runner_open(&c->r, c->cs->model, &ro))
		return false;
	if (c->r.w && c->cs->nref && has_warning(c->r.w))
		fputs(weft_messages(c->r.w), stderr);
	ro = (RunnerOptions){
		.load = &load, .backend = RUN_INTERP, .mode = &mode, .entry = c->cs->entry};
	if (!c->r.w && (c->o->sizes || c->o->trace_rounding))
		return fail("%s is compiled: %s is for model files", c->cs->model,
			    c->o->sizes ? "--sizes" : "--trace-rounding"),
		       false;
	if ((c->o->sizes || c->o->trace_rounding) && !runner_open(&c->oracle, c->cs->model, &ro))
		return false;
	c->in = calloc(c->r.ninput + 1, sizeof *c->in);
	c->first = calloc(c->r.noutput + 1, sizeof *c->first);
	return c->in && c->first;
}

void check_case(CheckCase *cs, const CheckOptions *o)
{
	Case c = {.cs = cs, .o = o};
	AgainstFiles made;
	progress_show("%s", o->against ? o->against : "reading");
	bool has = against_begin(cs, o, &made), ok = has && open_case(&c);
	for (c.k = 0; c.k < cs->nref || c.k == 0; c.k++) {
		c.whole = (CheckRecord){
			.is_ref = true, .ref = c.k, .theirs = -1, .c = {.ratio = -1, .ok = true}};
		if (!has) {
			put_reason(&c, "there is no reference");
			add_record(&c, &c.whole);
		} else if (ok && !cs->nref) { /* that it could be opened says all */
			if (c.r.w) /* what is odd in the file */
				fputs(weft_messages(c.r.w), stderr);
			if (!o->weights)
				snprintf(c.whole.text, sizeof c.whole.text,
					 "types and shapes only: no reference");
			add_record(&c, &c.whole);
		} else if (ok) {
			one_reference(&c);
		} else if (c.nothing) {
			c.whole.skipped = true;
			add_record(&c, &c.whole);
		} else {
			put_reason(&c, o->backend == RUN_INTERP ? "cannot be loaded"
								: "cannot be compiled or loaded");
			add_record(&c, &c.whole);
		}
	}
	against_end(cs, &made);
	free(c.in);
	free(c.first);
	runner_close(&c.r);
	runner_close(&c.oracle);
	weft_free(c.files);
}
