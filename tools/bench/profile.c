/* What `weft bench --profile` prints: a line for each kernel call, or sums over modules or lines of
 * the model's source, as wide as the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"

/* ---- a table that fits ---- */

enum { MOST_COLUMNS = 10, CELL = 48, LEAST_NAME = 20, MOST_NAME = 36, LEAST_LAST = 26 };

typedef struct {
	const char *title;
	int width;
	int drop; /* which column is left out first where there is no room: 1, 2, ...; 0: none */
	bool text; /* on the left of its column, and two columns apart */
	bool shown;
} Column;

/* A name, columns of numbers, and a last text, which is cut on its left. */
typedef struct {
	Column column[MOST_COLUMNS];
	int n, name;  /* name: its width */
	int last;     /* the most columns of the last text */
	bool brief;   /* of algorithms the first word */
	const char *first_title, *last_title;
} TableLayout;

static int width_of(const TableLayout *l)
{
	int w = 0;
	for (int k = 0; k < l->n; k++)
		w += l->column[k].shown ? l->column[k].width + 1 + l->column[k].text : 0;
	return w;
}

/* Leaves columns out until the rest has room for names and last texts of these widths. */
static void fit(TableLayout *l, int width, int name, int last)
{
	const int least_name = name < LEAST_NAME ? name : LEAST_NAME,
		  least_last = last < LEAST_LAST ? last : LEAST_LAST;
	for (int k = 0; k < l->n; k++)
		l->column[k].shown = true;
	for (int drop = 1; drop <= l->n; drop++)
		for (int k = 0; k < l->n; k++)
			if (l->column[k].drop == drop &&
			    width_of(l) + least_name + 2 + least_last > width)
				l->column[k].shown = false;
	int rest = width - width_of(l) - 2;
	l->name = rest - last < least_name ? least_name : rest - last;
	l->name = l->name > name ? name : l->name;
	l->last = rest - l->name > 8 ? rest - l->name : 8;
}

/* Prints a text. One of more than n columns loses its middle (or left part), in which "..."
 * stands. */
static void print_cut(const char *text, int n, bool left)
{
	const int length = (int)strlen(text), tail = left ? n - 3 : (n - 3) / 2;
	if (length <= n)
		printf("%s", text);
	else
		printf("%.*s...%s", n - 3 - tail, text, text + length - tail);
}

static void print_name(const TableLayout *l, const char *name)
{
	const int n = (int)strlen(name);
	print_cut(name, l->name, false);
	printf("%*s", n < l->name ? l->name - n : 0, "");
}

static void print_cells(const TableLayout *l, char cell[][CELL])
{
	for (int k = 0; k < l->n; k++) {
		const Column *c = &l->column[k];
		if (c->shown)
			printf(c->text ? "  %-*s" : " %*s", c->width, cell[k]);
	}
}

static void print_head(const TableLayout *l)
{
	char cell[MOST_COLUMNS][CELL];
	for (int k = 0; k < l->n; k++)
		snprintf(cell[k], CELL, "%s", l->column[k].title);
	print_name(l, l->first_title);
	print_cells(l, cell);
	printf("%s%s\n", *l->last_title ? "  " : "", l->last_title);
}

static void print_dropped(const TableLayout *l)
{
	bool any = false;
	for (int k = 0; k < l->n; k++) {
		if (l->column[k].shown)
			continue;
		printf("%s%s", any ? ", " : "for lack of room without: ", l->column[k].title);
		any = true;
	}
	if (any)
		puts(" (COLUMNS=200, or --json)");
}

/* ---- kernels ---- */

static const double *sorting;

static int by_time(const void *pa, const void *pb)
{
	double a = sorting[*(const uint32_t *)pa], b = sorting[*(const uint32_t *)pb];
	return (a < b) - (a > b);
}

static void order(uint32_t *out, const double *seconds, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		out[k] = k;
	sorting = seconds;
	qsort(out, n, sizeof *out, by_time);
}

/* Returns the least time the launches of a call can take. Caches may hold data from before:
 * memory must deliver what is beyond them, in every launch. */
static double least_time(const WeftKernelInfo *c, double launches, const Peak *peak, bool *cached)
{
	double beyond = c->bytes / launches - peak->cache;
	*cached = beyond <= 0;
	return fmax(c->flops / peak->flops, *cached ? 0 : launches * beyond / peak->bytes);
}

enum { US, PART, SUM, PREDICTED, FLOP, BYTES, RATE, ROOFLINE, ALGORITHM };

static void counted_cells(const WeftKernelInfo *c, double launches, double t, const Peak *peak,
			  char cell[][CELL])
{
	bool cached;
	const double least = least_time(c, launches, peak, &cached);
	snprintf(cell[ROOFLINE], CELL, "-");
	snprintf(cell[PREDICTED], CELL, "-");
	if (t > 0 && least > 0)
		snprintf(cell[ROOFLINE], CELL, "%.1f%%%s", 100 * least / t, cached ? " c" : "");
	if (c->seconds > 0)
		snprintf(cell[PREDICTED], CELL, "%.1f", 1e6 * c->seconds);
	human(c->flops, cell[FLOP]);
	human(c->bytes, cell[BYTES]);
	human(t > 0 ? c->flops / t : 0, cell[RATE]);
}

/* Writes "model.py:31 in encoder.0 (+3 lines)". */
static void line_text(const WeftKernelInfo *k, char *out, size_t n)
{
	*out = 0;
	if (k->line && k->nline > 1)
		snprintf(out, n, "%s (+%u line%s)", k->line, k->nline - 1, k->nline > 2 ? "s" : "");
	else if (k->line)
		snprintf(out, n, "%s", k->line);
}

/* Returns the length of "gemm" of "gemm, b in place, 8x32 tile". */
static int first_word(const char *algorithm)
{
	return (int)strcspn(algorithm, ",");
}

/* Chooses the columns. Without counts their columns are not there. Before columns are left out,
 * algorithms lose what stands behind their first comma. */
static TableLayout kernel_layout(const Profile *p, bool counted)
{
	static const Column all[] = {{.title = "us", .width = 9},
				     {.title = "%", .width = 6},
				     {.title = "sum %", .width = 6, .drop = 4},
				     {.title = "predicted", .width = 9, .drop = 1},
				     {.title = "FLOP", .width = 6, .drop = 3},
				     {.title = "B", .width = 6, .drop = 2},
				     {.title = "FLOP/s", .width = 6, .drop = 5},
				     {.title = "roofline", .width = 8}};
	TableLayout l = {.first_title = "kernel", .last_title = "line"};
	int algorithm = (int)strlen("algorithm"), shorter = algorithm,
	    name = (int)strlen("kernel"), last = 4;
	for (uint32_t k = 0; k < p->e->ncall; k++) {
		const WeftCallInfo *c = weft_call(p->m, p->e, k);
		const WeftKernelInfo info = call_info(p->m, c);
		char text[400];
		line_text(&info, text, sizeof text);
		int a = (int)strlen(c->algorithm), b = (int)strlen(c->name), d = (int)strlen(text);
		algorithm = a > algorithm ? a : algorithm;
		a = first_word(c->algorithm);
		shorter = a > shorter ? a : shorter;
		name = b > name ? b : name;
		last = d > last ? d : last;
	}
	memcpy(l.column, all, sizeof all);
	l.n = counted ? ALGORITHM : PREDICTED;
	l.column[l.n] = (Column){.title = "algorithm",
				 .width = algorithm < CELL ? algorithm : CELL - 1,
				 .drop = 6,
				 .text = true};
	l.n++;
	fit(&l, terminal_width(1), name < MOST_NAME ? name : MOST_NAME, last);
	for (int k = 0; k < l.n; k++)
		l.brief |= !l.column[k].shown;
	if (l.brief) {
		l.column[l.n - 1].width = shorter < CELL ? shorter : CELL - 1;
		fit(&l, terminal_width(1), name < MOST_NAME ? name : MOST_NAME, last);
	}
	return l;
}

static void print_kernels(const Profile *p, const WeftReport *count, const Peak *peak, double total)
{
	const TableLayout l = kernel_layout(p, count);
	uint32_t *sorted = calloc(p->e->ncall + 1, sizeof *sorted);
	double before = 0;
	if (!sorted)
		return;
	order(sorted, p->seconds, p->e->ncall);
	print_head(&l);
	for (uint32_t i = 0; i < p->e->ncall; i++) {
		const uint32_t k = sorted[i];
		const double t = p->seconds[k];
		const WeftCallInfo *c = weft_call(p->m, p->e, k);
		const WeftKernelInfo info = call_info(p->m, c);
		char cell[MOST_COLUMNS][CELL], line[400];
		before += t;
		snprintf(cell[US], CELL, "%.1f", 1e6 * t);
		snprintf(cell[PART], CELL, "%.1f%%", 100 * t / total);
		snprintf(cell[SUM], CELL, "%.1f%%", 100 * before / total);
		if (count)
			counted_cells(&count->kernel[k], p->launches[k], t, peak, cell);
		snprintf(cell[count ? ALGORITHM : PREDICTED], CELL, "%.*s",
			 l.brief ? first_word(c->algorithm) : CELL - 1, c->algorithm);
		line_text(&info, line, sizeof line);
		print_name(&l, c->name);
		print_cells(&l, cell);
		fputs(*line ? "  " : "", stdout);
		print_cut(line, l.last, true);
		putchar('\n');
	}
	free(sorted);
	print_name(&l, "all calls");
	printf(" %9.1f\n", 1e6 * total);
	print_dropped(&l);
}

/* ---- sums ---- */

/* What calls of one module, or line, took together. */
typedef struct {
	char name[300];
	double own, all; /* all: of the modules in it, too */
	uint32_t calls;  /* its own */
} Sum;

typedef struct {
	Sum *item;
	uint32_t n;
	bool failed; /* no memory */
} Sums;

static Sum *sum_of(Sums *s, const char *name, size_t length)
{
	for (uint32_t k = 0; k < s->n; k++)
		if (strlen(s->item[k].name) == length && !strncmp(s->item[k].name, name, length))
			return &s->item[k];
	Sum *more = realloc(s->item, (s->n + 1) * sizeof *more);
	s->failed |= !more;
	if (!more)
		return NULL;
	s->item = more;
	s->item[s->n] = (Sum){0};
	snprintf(s->item[s->n].name, sizeof s->item->name, "%.*s", (int)length, name);
	return &s->item[s->n++];
}

static const char unknown[] = "(unknown)";

/* Returns the module of "model.py:31 in encoder.0", or the line; `unknown` where the file has
 * none. */
static const char *place_of(const WeftKernelInfo *k, ProfileBy by, char out[300])
{
	const char *in = k->line ? strstr(k->line, " in ") : NULL;
	if (by == PROFILE_BY_LINE && k->line)
		snprintf(out, 300, "%.*s", in ? (int)(in - k->line) : 299, k->line);
	else
		snprintf(out, 300, "%s",
			 by == PROFILE_BY_MODULE && in ? in + strlen(" in ")
			 : by == PROFILE_BY_MODULE && k->line ? "(model)"
							      : unknown);
	return out;
}

/* Returns where the next part ends: of "a/b.c" at "/", of "a.b" at ".". */
static size_t next_part(const char *name, size_t at)
{
	const char split = strchr(name, '/') ? '/' : '.';
	while (name[at] && (name[at] != split || !at))
		at++;
	return at;
}

static void add_call(Sums *s, ProfileBy by, const char *name, double seconds)
{
	const size_t length = strlen(name);
	for (size_t end = by == PROFILE_BY_MODULE && *name != '(' ? next_part(name, 0) : length;;
	     end = next_part(name, end + 1)) {
		Sum *one = end > 299 ? NULL : sum_of(s, name, end < 299 ? end : 299);
		if (!one)
			return;
		one->all += seconds;
		one->own += end == length ? seconds : 0;
		one->calls += end == length;
		if (end >= length)
			return;
	}
}

static bool sum_up(const Profile *p, ProfileBy by, Sums *s)
{
	char name[300];
	*s = (Sums){0};
	for (uint32_t k = 0; k < p->e->ncall; k++) {
		const WeftKernelInfo info = call_info(p->m, weft_call(p->m, p->e, k));
		add_call(s, by, place_of(&info, by, name), p->seconds[k]);
	}
	return !s->failed || (fail("out of memory"), false);
}

/* A module before those in it, modules with more time first. */
static const Sums *compared;

static const Sum *ancestor(const char *name, size_t length)
{
	for (uint32_t k = 0; k < compared->n; k++)
		if (strlen(compared->item[k].name) == length &&
		    !strncmp(compared->item[k].name, name, length))
			return &compared->item[k];
	return NULL;
}

static int by_place(const void *pa, const void *pb)
{
	const Sum *a = &compared->item[*(const uint32_t *)pa],
		  *b = &compared->item[*(const uint32_t *)pb];
	for (size_t at = 0;; at++) {
		const size_t x = next_part(a->name, at), y = next_part(b->name, at);
		if (x != y || strncmp(a->name, b->name, x) != 0) {
			const Sum *u = ancestor(a->name, x), *v = ancestor(b->name, y);
			const double du = u ? u->all : a->all, dv = v ? v->all : b->all;
			return du != dv ? (du < dv) - (du > dv) : strcmp(a->name, b->name);
		}
		if (!a->name[x] || !b->name[y])
			return (a->name[x] != 0) - (b->name[y] != 0);
		at = x;
	}
}

static int by_own(const void *pa, const void *pb)
{
	const Sum *a = &compared->item[*(const uint32_t *)pa],
		  *b = &compared->item[*(const uint32_t *)pb];
	return a->own != b->own ? (a->own < b->own) - (a->own > b->own)
				: strcmp(a->name, b->name);
}

/* Returns the numbers of the sums in the order in which they are printed; the caller frees them. */
static uint32_t *sorted_sums(const Sums *s, ProfileBy by)
{
	uint32_t *sorted = calloc(s->n + 1, sizeof *sorted);
	for (uint32_t k = 0; sorted && k < s->n; k++)
		sorted[k] = k;
	compared = s;
	if (sorted)
		qsort(sorted, s->n, sizeof *sorted, by == PROFILE_BY_LINE ? by_own : by_place);
	return sorted;
}

static void print_sums(const Profile *p, ProfileBy by, double total)
{
	const bool modules = by == PROFILE_BY_MODULE;
	TableLayout l = {.first_title = modules ? "module" : "line",
			 .last_title = "",
			 .column = {{.title = modules ? "us with its parts" : "us",
				     .width = modules ? 17 : 9},
				    {.title = "%", .width = 6},
				    {.title = "us alone", .width = 9},
				    {.title = "calls", .width = 6}},
			 .n = 4};
	Sums s;
	uint32_t *sorted = sum_up(p, by, &s) ? sorted_sums(&s, by) : NULL;
	int name = (int)strlen("all calls");
	for (uint32_t k = 0; k < s.n; k++)
		if ((int)strlen(s.item[k].name) > name)
			name = (int)strlen(s.item[k].name);
	fit(&l, terminal_width(1), name, 0);
	l.column[2].shown = modules;
	print_head(&l);
	for (uint32_t k = 0; sorted && k < s.n; k++) {
		const Sum *one = &s.item[sorted[k]];
		char cell[MOST_COLUMNS][CELL];
		snprintf(cell[0], CELL, "%.1f", 1e6 * one->all);
		snprintf(cell[1], CELL, "%.1f%%", 100 * one->all / total);
		snprintf(cell[2], CELL, "%.1f", 1e6 * one->own);
		snprintf(cell[3], CELL, "%u", (unsigned)one->calls);
		print_name(&l, one->name);
		print_cells(&l, cell);
		putchar('\n');
	}
	print_name(&l, "all calls");
	printf(" %*.1f\n", l.column[0].width, 1e6 * total);
	free(sorted);
	free(s.item);
}

void profile_print(const Profile *p, ProfileBy by, const WeftReport *count, const Peak *peak)
{
	char f[32], b[32], cache[32];
	double total = 0;
	for (uint32_t k = 0; k < p->e->ncall; k++)
		total += p->seconds[k];
	if (by != PROFILE_BY_KERNEL) {
		print_sums(p, by, total);
		putchar('\n');
		return;
	}
	print_kernels(p, count, peak, total);
	if (count)
		printf("roofline: %sFLOP/s, and %sB/s for what a launch reads and writes beyond\n"
		       "the caches' %sB; c: it fits into them and is compared with FLOP/s only\n",
		       human(peak->flops, f), human(peak->bytes, b), human(peak->cache, cache));
	putchar('\n');
}

/* ---- JSON ---- */

static void json_kernels(Json *j, const Profile *p, const WeftReport *count)
{
	json_open(j, "profile", '[');
	for (uint32_t k = 0; k < p->e->ncall; k++) {
		const WeftKernelInfo info = call_info(p->m, weft_call(p->m, p->e, k));
		json_open(j, NULL, '{');
		json_put_string(j, "name", info.name);
		json_put_string(j, "algorithm", info.algorithm);
		if (info.line) {
			json_put_string(j, "line", info.line);
			json_put_number(j, "lines", info.nline);
		}
		json_put_number(j, "seconds", p->seconds[k]);
		json_put_number(j, "launches", p->launches[k]);
		if (count) {
			json_put_number(j, "flops", count->kernel[k].flops);
			json_put_number(j, "bytes", count->kernel[k].bytes);
		}
		if (count && count->kernel[k].seconds > 0)
			json_put_number(j, "predicted", count->kernel[k].seconds);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void profile_json(Json *j, const Profile *p, ProfileBy by, const WeftReport *count)
{
	Sums s;
	if (by == PROFILE_BY_KERNEL) {
		json_kernels(j, p, count);
		return;
	}
	uint32_t *sorted = sum_up(p, by, &s) ? sorted_sums(&s, by) : NULL;
	json_open(j, "profile", '[');
	for (uint32_t k = 0; sorted && k < s.n; k++) {
		const Sum *one = &s.item[sorted[k]];
		json_open(j, NULL, '{');
		json_put_string(j, by == PROFILE_BY_LINE ? "line" : "module", one->name);
		json_put_number(j, "seconds", one->all);
		json_put_number(j, "alone", one->own);
		json_put_number(j, "calls", one->calls);
		json_close(j, '}');
	}
	json_close(j, ']');
	free(sorted);
	free(s.item);
}
