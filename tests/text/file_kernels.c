/* Families of kernels at awkward sizes: what a schedule does at the end of a row, of a tile, of a
 * panel. */
#include "file_kernels.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/plan/tuning.h"
#include "draw.h"
#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "tests/help/model.h"

enum { MAX_SIZES = 8, MAX_RUNS = 16 };

typedef struct {
	char name[8];
	int64_t value;
} Size;

/* The sizes of one execution. */
typedef struct {
	Size size[MAX_SIZES];
	uint32_t n;
	const char *text; /* "M=1,N=9" */
} Sizes;

typedef enum { SYMBOLS, NUMBERS, CONSTANTS, FORMS } Form;
static const char *const form_name[] = {"symbols", "numbers", "constants"};

typedef struct {
	const FileTest *test;
	Text *out;
	Weft *w;
	const Target *target;
	Form form;
	const Sizes *run;
	uint32_t nrun;
	uint32_t agree, failed;
	Draw *draw; /* NULL: the graph as it is */
	bool shows; /* the graph of what fails: its text */
	const char *graph;
	uint32_t noutput;
	bool refused; /* of what is drawn: by the graph's interpreter, or its reader */
} Family;

/* Every CPU, then the GPU that has the least; then CPUs with features, which only tests that name
 * them have. */
static const Target *tested_target(uint32_t k)
{
	static const char *const extended[] = {"x86-64-v3+vnni", "x86-64-v4+vnni+bf16"};
	uint32_t ncpu = 0;
	while (target_at(ncpu))
		ncpu++;
	if (k <= ncpu)
		return k < ncpu ? target_at(k) : target_gpu_at(0);
	return k - ncpu - 1 < sizeof extended / sizeof *extended ? target_find(extended[k - ncpu - 1]) : NULL;
}

/* only: the targets that the test names; NULL: it names none. */
static bool is_tested(const Target *t, const char *only)
{
	return only ? strstr(only, t->isa.name) != NULL : !strchr(t->isa.name, '+');
}

/* ---- sizes ---- */

/* "2w+1" */
static int64_t evaluate(const char **s, int64_t lanes, int64_t rows)
{
	char *end;
	int64_t sum = 0, sign = 1;
	for (;;) {
		int64_t n = isdigit(**s) ? strtoll(*s, &end, 10) : 1;
		*s = isdigit(**s) ? end : *s;
		n *= **s == 'w' ? lanes : **s == 'r' ? rows : 1;
		*s += **s == 'w' || **s == 'r';
		sum += sign * n;
		if (**s != '+' && **s != '-')
			return sum;
		sign = *(*s)++ == '+' ? 1 : -1;
	}
}

static uint32_t find_sizes(const FileTest *test, const Target *t, Arena *a, Sizes *out)
{
	const char *s = header_find(a, test->text, "sizes:", NULL);
	uint32_t n = 0;
	int64_t rows = tuning_tile_rows(t, DT_f32, 1);
	for (s = s ? s + strspn(s, " ") : ""; *s && n < MAX_RUNS; s += strspn(s, " ")) {
		Sizes *x = &out[n++];
		Text text;
		text_init(&text, a);
		*x = (Sizes){0};
		for (; *s && *s != ' ' && x->n < MAX_SIZES; s += *s == ',') {
			Size *size = &x->size[x->n++];
			size_t len = strcspn(s, "=");
			snprintf(size->name, sizeof size->name, "%.*s", (int)len, s);
			s += len + (s[len] == '=');
			size->value = evaluate(&s, target_width(t), rows);
			size->value = size->value < 1 ? 1 : size->value;
			text_printf(&text, "%s%s=%lld", x->n > 1 ? "," : "", size->name, (long long)size->value);
		}
		x->text = text.data;
	}
	return n;
}

/* ---- the graph ---- */

/* With numbers in place of the symbols, which need no condition then. */
static const char *with_numbers(Arena *a, const char *text, const Sizes *sizes)
{
	Text out;
	text_init(&out, a);
	const char *where = strstr(text, " where "), *body = where ? strchr(where, '{') - 1 : NULL;
	for (const char *s = text; *s;) {
		if (s == where) {
			s = body;
			continue;
		}
		bool begins = isupper(*s) && (s == text || (!isalnum(s[-1]) && s[-1] != '_' && s[-1] != '%'));
		uint32_t k = 0;
		size_t n = begins ? strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
		while (n && k < sizes->n && (strlen(sizes->size[k].name) != n || strncmp(sizes->size[k].name, s, n) != 0))
			k++;
		if (n && k < sizes->n && !isalnum(s[n]) && s[n] != '_') {
			text_printf(&out, "%lld", (long long)sizes->size[k].value);
			s += n;
		} else {
			text_char(&out, *s++);
		}
	}
	return out.data;
}

static void bind(const Ir *ir, const Sizes *sizes, EvalCtx *e)
{
	*e = (EvalCtx){.ctx = ir->ctx, .arena = ir->ctx->arena, .syms = ir->syms};
	Sym *sym = ARENA_ARRAY(e->arena, Sym, sizes->n);
	int64_t *value = ARENA_ARRAY(e->arena, int64_t, sizes->n);
	for (uint32_t k = 0; k < sizes->n; k++) {
		Sym v = sym_find(ir->syms, sizes->size[k].name, (uint32_t)strlen(sizes->size[k].name));
		if (!v.i)
			continue;
		sym[e->nsym] = v;
		value[e->nsym++] = sizes->size[k].value;
	}
	e->sym = sym;
	e->value = value;
}

/* What reads inputs whose names begin with w reads constants. */
static void make_constants(Graph *g, Tensor *in)
{
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *x = &g->input.data[k];
		Tensor *t = &in[k];
		if (x->name[0] != 'w')
			continue;
		Const c = {.name = x->name, .dtype = t->dtype, .rank = t->rank, .dim = t->dim, .data = t->data, .bytes = tensor_bytes(t),
			   .is_param = true};
		Build b = {.g = g, .before = node_next(g, x->node)};
		graph_replace(g, x->node, b_const(&b, ir_const(g->ir, c)));
	}
}

/* ---- running ---- */

static bool differs(Family *f, const Sizes *sizes, const char *what)
{
	text_printf(f->out, "%s, %s, %s: %s\n", f->target->isa.name, form_name[f->form], sizes->text, what);
	if (f->shows)
		text_add(f->out, f->graph);
	f->failed++;
	return false;
}

/* Rows of equal elements leave a norm nothing but what rounding does: an element of another place
 * is still far more off. */
static double tolerance(const Family *f, DType d)
{
	return f->draw && (d == DT_f32 || d == DT_f64) ? 1e-3 : 0;
}

static bool compare(Family *f, const Sizes *sizes, const Graph *g, const Tensor *have, const Tensor *want)
{
	for (uint32_t k = 0; k < g->output.n; k++) {
		int64_t i = values_differ(&have[k], &want[k], tolerance(f, want[k].dtype));
		if (i < 0)
			continue;
		Text at;
		text_init(&at, f->w->ctx->arena);
		text_printf(&at, "%%%s differs at ", g->output.data[k].name);
		values_index(&want[k], i, &at);
		text_printf(&at, ": %.9g, expected %.9g", tensor_f64(&have[k], i), tensor_f64(&want[k], i));
		return differs(f, sizes, at.data);
	}
	f->agree++;
	return true;
}

/* Each input must be as large as it is: where its sizes are numbers. */
static bool refuses_others(Family *f, const Sizes *sizes, Graph *g, Model *m, Tensor *in)
{
	Tensor *none = ARENA_ARRAY(f->w->ctx->arena, Tensor, g->output.n);
	for (uint32_t k = 0; k < g->input.n && f->form != SYMBOLS; k++) {
		for (uint32_t d = 0; d < in[k].rank; d++) {
			in[k].dim[d]++;
			int code = model_run(m, in, g->input.n, none, 1, f->w->ctx->arena);
			in[k].dim[d]--;
			const char *name = g->input.data[k].name;
			if (code == WEFT_OK || !strstr(m->status.message, name))
				return differs(f, sizes, arena_printf(f->w->ctx->arena, "dimension %u of %s may be another", d, name));
		}
	}
	return true;
}

static bool execute(Family *f, Graph *g, Model *m, const Sizes *sizes)
{
	EvalCtx e;
	Arena *a = f->w->ctx->arena;
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n), *want = ARENA_ARRAY(a, Tensor, g->output.n), *have = ARENA_ARRAY(a, Tensor, g->output.n);
	bind(g->ir, sizes, &e);
	f->refused = f->draw;
	for (uint32_t k = 0; k < g->input.n; k++)
		TRY(values_input(f->test, &e, g, k, &in[k]));
	TRY(interp(f->w->ctx, g, in, g->input.n, want, g->output.n, a));
	f->refused = false;
	if (f->form == CONSTANTS)
		make_constants(g, in);
	if (!m->model) {
		/* zen4 has all features at full rate */
		const char *tune = strchr(f->target->isa.name, '+') ? "zen4" : NULL;
		WeftOptions o = {.size = sizeof o, .no_cache = true, .target = f->target->isa.name, .tune = tune};
		TRY(model_open_loops(m, f->w, graph_wrap(f->w, g, f->test->name), &o));
	}
	if (model_run(m, in, g->input.n, have, 1, a) != WEFT_OK)
		return differs(f, sizes, m->status.message);
	return compare(f, sizes, g, have, want) && (f->draw || refuses_others(f, sizes, g, m, in));
}

static const char *graph_text(const Graph *g)
{
	Text t;
	text_init(&t, g->ir->ctx->arena);
	graph_print(g, &t);
	return t.data;
}

/* A symbol that is 0 may be: "1 <= N" becomes "0 <= N". */
static const char *with_zeros(Arena *a, const char *text, const Sizes *sizes)
{
	char *out = arena_strdup(a, text);
	for (uint32_t k = 0; k < sizes->n; k++) {
		const char *bound = arena_printf(a, "1 <= %s", sizes->size[k].name);
		char *at = sizes->size[k].value == 0 ? strstr(out, bound) : NULL;
		if (at && !isalnum(at[strlen(bound)]))
			*at = '0';
	}
	return out;
}

/* One graph, at the sizes of f->run. */
static bool run_graph(void *arg)
{
	Family *f = arg;
	Model m = {0};
	bool ok = true;
	Ctx *ctx = f->w->ctx;
	const char *text = f->form == SYMBOLS ? f->test->text : with_numbers(ctx->arena, f->test->text, f->run);
	if (f->draw && f->form == SYMBOLS)
		text = with_zeros(ctx->arena, text, f->run);
	f->refused = f->draw;
	Graph *g = graph_parse(ir_new(ctx), text, f->test->name);
	TRY(g);
	f->noutput = g->output.n;
	if (f->draw)
		draw_graph(g, f->draw);
	if (f->shows)
		f->graph = graph_text(g);
	f->refused = false;
	for (uint32_t k = 0; k < f->nrun && ok; k++)
		ok = execute(f, g, &m, &f->run[k]);
	model_close(&m);
	return ok;
}

static bool run_all(Family *f)
{
	f->w = weft_new();
	f->refused = false;
	f->graph = "";
	bool ok = f->w && boundary(f->w, run_graph, f);
	if (!ok && !f->failed && !f->refused)
		differs(f, f->run, f->w ? weft_messages(f->w) : "out of memory");
	weft_free(f->w);
	return ok;
}

static void run_form(Family f, Form form, const Sizes *run, uint32_t nrun, uint32_t *agree, uint32_t *failed)
{
	f.form = form;
	f.run = run;
	f.nrun = nrun;
	run_all(&f);
	*agree += f.agree;
	*failed += f.failed;
}

void file_kernels(const FileTest *test, Text *out)
{
	Arena *a = arena_new(NULL);
	const char *only = header_find(a, test->text, "targets:", NULL), *forms = header_find(a, test->text, "forms:", NULL);
	uint32_t agree = 0, failed = 0;
	const Target *t;
	for (uint32_t k = 0; (t = tested_target(k)); k++) {
		if (!is_tested(t, only))
			continue;
		Sizes run[MAX_RUNS];
		uint32_t n = find_sizes(test, t, a, run);
		Family f = {.test = test, .out = out, .target = t};
		if (!forms)
			run_form(f, SYMBOLS, run, n, &agree, &failed);
		for (uint32_t i = 0; i < n; i++) {
			run_form(f, NUMBERS, &run[i], 1, &agree, &failed);
			if (strstr(test->text, "%w"))
				run_form(f, CONSTANTS, &run[i], 1, &agree, &failed);
		}
	}
	text_printf(out, failed ? "%u agree, %u do not\n" : "%u agree\n", agree, failed);
	arena_free(a);
}

/* ---- drawn ---- */

enum {
	DRAWS = 6 /* on each target, if the test says nothing else */,
	LEAST = 3 /* one in so many must be one that the interpreter takes */
};

/* One size of the run is 1, or 0, in turn. */
static Sizes with_one(Arena *a, const Sizes *base, uint32_t turn)
{
	Sizes x = *base;
	Text text;
	text_init(&text, a);
	if (x.n)
		x.size[turn % x.n].value = turn / x.n % 2 ? 0 : 1;
	for (uint32_t k = 0; k < x.n; k++)
		text_printf(&text, "%s%s=%lld", k ? "," : "", x.size[k].name,
			    (long long)x.size[k].value);
	x.text = text.data;
	return x;
}

/* The text of a failure with as few edits and outputs as it takes. */
static void reduce(Family *f, Text *out)
{
	Text last;
	text_init(&last, out->arena);
	for (uint32_t k = 0; k < f->draw->n; k++) {
		text_init(&last, out->arena);
		f->out = &last;
		f->failed = 0;
		f->draw->left_out[k] = true;
		run_all(f);
		f->draw->left_out[k] = f->failed;
	}
	for (uint32_t k = 1; k <= f->noutput; k++) {
		f->failed = 0;
		f->draw->only = k;
		run_all(f);
		if (f->failed)
			break;
		f->draw->only = 0;
	}
	f->out = out;
	f->failed = 0;
	f->shows = true;
	run_all(f);
}

static bool run_drawn(Family *f, Text *out)
{
	Text quiet;
	text_init(&quiet, out->arena);
	f->out = &quiet;
	run_all(f);
	if (f->failed)
		reduce(f, out);
	return !f->failed;
}

static uint64_t seed_of(const FileTest *test, uint32_t target, uint32_t turn)
{
	uint64_t seed = strtoull(test->draw, NULL, 0);
	for (const char *s = test->name; *s; s++)
		seed = seed * 0x100000001b3u + (unsigned char)*s;
	return (seed * 64 + target) * 64 + turn;
}

void file_kernels_drawn(const FileTest *test, Text *out)
{
	Arena *a = arena_new(NULL);
	const char *only = header_find(a, test->text, "targets:", NULL),
		   *forms = header_find(a, test->text, "forms:", NULL);
	const char *few = header_find(a, test->text, "draws:", NULL);
	uint32_t ran = 0, of = 0, failed = 0, draws = few ? (uint32_t)atoi(few) : DRAWS;
	const Target *t;
	for (uint32_t k = 0; (t = tested_target(k)); k++) {
		Sizes run[MAX_RUNS];
		uint32_t n = !is_tested(t, only) ? 0 : find_sizes(test, t, a, run);
		for (uint32_t turn = 0; n && turn < draws; turn++, of++) {
			uint64_t rng = seed_of(test, k, turn);
			Draw draw = {.seed = rng};
			const Sizes sizes =
				with_one(a, &run[draw_below(&rng, n)],
					 turn + k * DRAWS + (uint32_t)seed_of(test, 0, 0));
			Family f = {
				.test = test, .target = t, .run = &sizes, .nrun = 1, .draw = &draw};
			f.form = forms ? 1 + draw_below(&rng, 2) : draw_below(&rng, FORMS);
			failed += !run_drawn(&f, out);
			ran += f.agree;
		}
	}
	if (!failed && ran * LEAST < of)
		text_printf(out, "only %u of %u could be run\n", ran, of);
	else if (!failed)
		text_printf(out, "no difference\n");
	arena_free(a);
}
