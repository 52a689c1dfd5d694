/* The difference of two reports. Kernels are matched by name, those of one name by their order. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

/* ---- reading ---- */

typedef struct {
	const char *path;
	json_t *root;
	const json_t *kernels;
} Side;

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

static bool read_side(Side *s, const char *path)
{
	json_error_t e;
	s->path = path;
	s->root = json_load_file(path, 0, &e);
	if (!s->root)
		return fail("%s: no report: %s (line %d)", path, e.text, e.line), false;
	s->kernels = json_object_get(s->root, "kernels");
	if (strcmp(text(s->root, "schema"), "weft-report") != 0 || !json_is_array(s->kernels))
		return fail("%s: no report: expected the JSON of weft report", path), false;
	if ((int)number(s->root, "version") != REPORT_VERSION)
		return fail("%s: a report of version %d, expected %d", path,
			    (int)number(s->root, "version"), REPORT_VERSION),
		       false;
	return true;
}

int report_convert(const char *path, const char *output)
{
	json_error_t e;
	ReportText page;
	json_t *root = json_load_file(path, 0, &e);
	if (!root)
		return fail("%s: no report: %s (line %d)", path, e.text, e.line);
	bool ok = !strncmp(text(root, "schema"), "weft-report", strlen("weft-report")) ||
		  (fail("%s: no report: expected the JSON of weft report", path), false);
	ok = ok && ((int)number(root, "version") == REPORT_VERSION ||
		    (fail("%s: a report of version %d, expected %d", path,
			  (int)number(root, "version"), REPORT_VERSION),
		     false));
	char *data = ok ? json_dumps(root, JSON_ENSURE_ASCII | JSON_COMPACT) : NULL;
	ok = ok && (data || (fail("out of memory"), false)) && report_begin(&page);
	if (ok)
		report_page(page.f, data, strlen(data));
	ok = ok && report_end(&page);
	ok = ok && report_write(output, page.data, page.n);
	if (ok)
		free(page.data);
	free(data);
	json_decref(root);
	return ok ? 0 : 1;
}

/* ---- matching ---- */

typedef struct {
	const char *name;
	uint32_t turn;                /* among those of one name */
	const json_t *before, *after; /* NULL: not there */
	double change;                /* seconds */
} Pair;

typedef struct {
	Side side[2];
	Pair *pair;
	size_t n;
} Diff;

typedef struct {
	const char *name;
	uint32_t at;
} Named;

static int by_name(const void *pa, const void *pb)
{
	const Named *a = pa, *b = pb;
	const int c = strcmp(a->name, b->name);
	return c ? c : (a->at > b->at) - (a->at < b->at);
}

/* Returns the kernels of a side by name. */
static Named *names_of(const Side *s, size_t *n)
{
	*n = json_array_size(s->kernels);
	Named *out = calloc(*n + 1, sizeof *out);
	for (size_t k = 0; out && k < *n; k++)
		out[k] = (Named){text(json_array_get(s->kernels, k), "name"), (uint32_t)k};
	if (out && *n)
		qsort(out, *n, sizeof *out, by_name);
	return out;
}

static int by_change(const void *pa, const void *pb)
{
	const Pair *a = pa, *b = pb;
	const double x = fabs(a->change), y = fabs(b->change);
	const int c = strcmp(a->name, b->name);
	return x != y ? (x < y) - (x > y) : c ? c : (a->turn > b->turn) - (a->turn < b->turn);
}

static void add_pair(Diff *d, const char *name, uint32_t turn, const json_t *a, const json_t *b)
{
	d->pair[d->n++] = (Pair){name, turn, a, b, number(b, "seconds") - number(a, "seconds")};
}

static bool match(Diff *d)
{
	size_t na, nb, i = 0, j = 0;
	uint32_t turn = 0;
	Named *a = names_of(&d->side[0], &na), *b = names_of(&d->side[1], &nb);
	d->pair = calloc(na + nb + 1, sizeof *d->pair);
	bool ok = (a && b && d->pair) || (fail("out of memory"), false);
	while (ok && (i < na || j < nb)) {
		const int c = i == na ? 1 : j == nb ? -1 : strcmp(a[i].name, b[j].name);
		const char *name = c <= 0 ? a[i].name : b[j].name;
		turn = d->n && !strcmp(d->pair[d->n - 1].name, name) ? turn + 1 : 0;
		add_pair(d, name, turn, c <= 0 ? json_array_get(d->side[0].kernels, a[i].at) : NULL,
			 c >= 0 ? json_array_get(d->side[1].kernels, b[j].at) : NULL);
		i += c <= 0;
		j += c >= 0;
	}
	free(a);
	free(b);
	if (ok && d->n)
		qsort(d->pair, d->n, sizeof *d->pair, by_change);
	return ok;
}

/* ---- views ---- */

static const char *const total_key[] = {
	"seconds", "kernels_seconds", "kernels",      "functions",       "operators",
	"flops",   "bytes",           "weight_bytes", "workspace_bytes", "process_bytes"};
enum { NTOTAL = sizeof total_key / sizeof *total_key };

static void print_tensors(FILE *f, const json_t *list)
{
	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *t = json_array_get(list, k);
		fprintf(f, "%s%s: %s[%s]", k ? ", " : "", text(t, "name"), text(t, "dtype"),
			text(t, "shape"));
	}
}

/* Sets *t to the inputs and outputs of a side: "x: f32[2] -> y: f32[2]". */
static bool interface_of(const Side *s, ReportText *t)
{
	const json_t *model = json_object_get(s->root, "model");
	if (!report_begin(t))
		return false;
	print_tensors(t->f, json_object_get(model, "inputs"));
	fputs(" -> ", t->f);
	print_tensors(t->f, json_object_get(model, "outputs"));
	return report_end(t);
}

static void put_side(Json *j, const char *key, const Side *s)
{
	const json_t *machine = json_object_get(s->root, "machine"),
		     *totals = json_object_get(s->root, "totals");
	json_open(j, key, '{');
	json_put_string(j, "path", s->path);
	json_put_string(j, "model", text(json_object_get(s->root, "model"), "path"));
	ReportText interface;
	if (interface_of(s, &interface)) {
		json_put_string(j, "interface", interface.data);
		free(interface.data);
	}
	json_put_string(j, "weft", text(s->root, "weft"));
	json_put_string(j, "target", text(s->root, "target"));
	json_put_string(j, "processor", text(machine, "processor"));
	json_put_number(j, "threads", number(machine, "threads"));
	json_open(j, "totals", '{');
	for (int k = 0; k < NTOTAL; k++)
		if (json_object_get(totals, total_key[k]))
			json_put_number(j, total_key[k], number(totals, total_key[k]));
	json_close(j, '}');
	json_close(j, '}');
}

static void put_kernel(Json *j, const char *key, const json_t *k)
{
	if (!k)
		return;
	json_open(j, key, '{');
	json_put_number(j, "id", number(k, "id"));
	json_put_number(j, "seconds", number(k, "seconds"));
	json_put_number(j, "bytes", number(k, "bytes"));
	json_put_number(j, "flops", number(k, "flops"));
	json_put_string(j, "algorithm", text(k, "algorithm"));
	json_put_string(j, "place", text(k, "place"));
	json_close(j, '}');
}

static void put_diff(const Diff *d, FILE *f)
{
	Json j = {.f = f, .line_from = 2};
	json_open(&j, NULL, '{');
	json_put_string(&j, "schema", "weft-report-diff");
	json_put_number(&j, "version", REPORT_VERSION);
	put_side(&j, "before", &d->side[0]);
	put_side(&j, "after", &d->side[1]);
	json_open(&j, "kernels", '[');
	for (size_t k = 0; k < d->n; k++) {
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", d->pair[k].name);
		json_put_number(&j, "change", d->pair[k].change);
		put_kernel(&j, "before", d->pair[k].before);
		put_kernel(&j, "after", d->pair[k].after);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

static void print_total(const Diff *d, const char *what, const char *key, double unit,
			const char *name)
{
	const double a = unit * number(json_object_get(d->side[0].root, "totals"), key),
		     b = unit * number(json_object_get(d->side[1].root, "totals"), key);
	if (a > 0 || b > 0)
		printf("%-12s %12.4g %12.4g %s", what, a, b, name);
	if (a > 0)
		printf("%*s%+.1f%%", (int)(4 - strlen(name)), "", 100 * (b / a - 1));
	if (a > 0 || b > 0)
		putchar('\n');
}

/* Returns the length of "gemm" of "gemm, packed b". */
static int first_word(const char *algorithm)
{
	return (int)strcspn(algorithm, ",");
}

/* Says that the reports are of models with different inputs or outputs. */
static void warn_of_others(const Diff *d)
{
	ReportText t[2];
	if (!interface_of(&d->side[0], &t[0]))
		return;
	if (interface_of(&d->side[1], &t[1])) {
		if (strcmp(t[0].data, t[1].data) != 0)
			fprintf(stderr,
				"%s: warning: inputs and outputs are %s, and those of %s are %s\n",
				d->side[0].path, t[0].data, d->side[1].path, t[1].data);
		free(t[1].data);
	}
	free(t[0].data);
}

static void print_diff(const Diff *d)
{
	enum { MOST = 30 };
	printf("%-12s %12s %12s\n", "", "before", "after");
	print_total(d, "a call", "seconds", 1e3, "ms");
	print_total(d, "kernels", "kernels", 1, "");
	print_total(d, "weights", "weight_bytes", 1e-6, "MB");
	print_total(d, "workspace", "workspace_bytes", 1e-6, "MB");
	printf("\n%12s %12s %12s  kernel\n", "before us", "after us", "change us");
	for (size_t k = 0; k < d->n && k < MOST; k++) {
		const Pair *p = &d->pair[k];
		char a[32] = "-", b[32] = "-";
		if (p->before)
			snprintf(a, sizeof a, "%.1f", 1e6 * number(p->before, "seconds"));
		if (p->after)
			snprintf(b, sizeof b, "%.1f", 1e6 * number(p->after, "seconds"));
		const char *was = text(p->before, "algorithm"), *is = text(p->after, "algorithm");
		printf("%12s %12s %+12.1f  %s", a, b, 1e6 * p->change, p->name);
		if (p->before && p->after &&
		    (first_word(was) != first_word(is) ||
		     strncmp(was, is, (size_t)first_word(is)) != 0))
			printf(": %.*s, was %.*s", first_word(is), is, first_word(was), was);
		else if (p->before && p->after && strcmp(was, is) != 0)
			printf(": another plan");
		putchar('\n');
	}
	if (d->n > MOST)
		printf("%zu further kernels changed less\n", d->n - MOST);
}

static bool write_diff(const Diff *d, const char *output, bool json)
{
	ReportText t, page;
	if (!report_begin(&t))
		return false;
	put_diff(d, t.f);
	if (!report_end(&t))
		return false;
	bool ok = true;
	if (!output) {
		fwrite(t.data, 1, t.n, stdout);
	} else if (json) {
		ok = report_write(output, t.data, t.n);
	} else {
		ok = report_begin(&page);
		if (ok)
			report_page(page.f, t.data, t.n);
		ok = ok && report_end(&page);
		ok = ok && report_write(output, page.data, page.n);
		if (ok)
			free(page.data);
	}
	free(t.data);
	return ok;
}

int report_diff(const char *before, const char *after, const char *output, bool json)
{
	Diff d = {0};
	bool ok = read_side(&d.side[0], before) && read_side(&d.side[1], after) && match(&d);
	if (ok)
		warn_of_others(&d);
	if (ok && (output || json))
		ok = write_diff(&d, output, json);
	else if (ok)
		print_diff(&d);
	free(d.pair);
	json_decref(d.side[0].root);
	json_decref(d.side[1].root);
	return ok ? 0 : 1;
}
