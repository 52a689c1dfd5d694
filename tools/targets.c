/* weft show --targets */
#include "tool.h"

static const char *here(const WeftTargetInfo *t)
{
	return t->native ? "native" : t->runs_here ? "yes" : "no";
}

/* Writes a size: 49152 -> "48 KiB". */
static const char *cache(uint32_t bytes, char buf[16])
{
	if (bytes >> 20 && !(bytes & ((1u << 20) - 1)))
		snprintf(buf, 16, "%u MiB", bytes >> 20);
	else
		snprintf(buf, 16, "%u KiB", bytes >> 10);
	return buf;
}

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

static void print_row(const WeftTargetInfo *t)
{
	char l1[16], l2[16];
	printf("%-18s %-18s %7u %9u %7s %7s %-7s %-6s  %s\n", t->name, or_dash(t->triple),
	       t->vector_bytes, t->registers, cache(t->l1, l1), cache(t->l2, l2),
	       t->has_runtime ? "yes" : "no", here(t), or_dash(t->features));
}

/* Writes the fields of a target file, and what holds of it here. */
static void write_object(Json *j, const WeftTargetInfo *t)
{
	const struct {
		const char *key, *text;
	} text[] = {
		{"name", t->name},
		{"triple", t->triple},
		{"cpu", t->cpu},
		{"attributes", t->attributes},
		{"attribute_features", t->attribute_features},
		{"features", t->features},
		{"flags", t->flags},
		{"masks", t->masks},
		{"machine", t->machine},
	};
	const struct {
		const char *key;
		uint32_t n;
	} number[] = {
		{"vector_bytes", t->vector_bytes},
		{"registers", t->registers},
		{"l1", t->l1},
		{"l2", t->l2},
		{"threads", t->threads},
		{"page", t->page},
	};
	const struct {
		const char *key;
		bool yes;
	} truth[] = {
		{"fma", t->fma},
		{"f16", t->f16},
		{"masked_memory", t->masked_memory},
		{"gathers", t->gathers},
		{"runs_here", t->runs_here},
		{"native", t->native},
		{"has_runtime", t->has_runtime},
	};
	json_open(j, NULL, '{');
	for (size_t k = 0; k < sizeof text / sizeof *text; k++)
		json_put_string(j, text[k].key, text[k].text);
	for (size_t k = 0; k < sizeof number / sizeof *number; k++)
		json_put_number(j, number[k].key, number[k].n);
	for (size_t k = 0; k < sizeof truth / sizeof *truth; k++)
		json_put_bool(j, truth[k].key, truth[k].yes);
	json_close(j, '}');
}

static void write_all(const WeftTargetInfo *t, uint32_t n, bool json)
{
	Json j = {.f = stdout};
	if (json) {
		json_open(&j, NULL, '{');
		json_open(&j, "targets", '[');
	} else {
		printf("%-18s %-18s %7s %9s %7s %7s %-7s %-6s  %s\n", "target", "triple", "vectors",
		       "registers", "L1", "L2", "runtime", "here", "features");
	}
	for (uint32_t k = 0; k < n; k++)
		if (json)
			write_object(&j, &t[k]);
		else
			print_row(&t[k]);
	if (json) {
		json_close(&j, ']');
		json_close(&j, '}');
	}
}

int show_targets(const char *name, bool json)
{
	uint32_t n;
	Weft *w = weft_new();
	const WeftTargetInfo *t = w ? weft_targets(w, name, &n) : NULL;
	int status = 1;
	if (t) {
		write_all(t, n, json);
		status = 0;
	} else {
		fail_messages(w);
	}
	weft_free(w);
	return status;
}
