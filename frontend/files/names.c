/* How names of weights in a model belong to names in a file (checkpoint.h). */
#include <stdlib.h>
#include <string.h>

#include "frontend/files/checkpoint.h"

enum { MOST_STARS = 8 };

/* ---- patterns ---- */

typedef struct {
	const char *begin;
	size_t n;
} Part;

/* Whether the pattern is all of the text. part[]: what its stars stand for, each at least one
 * character, the first ones as short as possible. */
static bool matches(const char *pattern, const char *text, Part *part)
{
	for (; *pattern && *pattern != '*'; pattern++, text++)
		if (*pattern != *text)
			return false;
	if (!*pattern)
		return !*text;
	for (size_t n = 1; n <= strlen(text); n++)
		if (matches(pattern + 1, text + n, part + 1)) {
			*part = (Part){text, n};
			return true;
		}
	return false;
}

/* Whether the pattern is the name, or its end behind a dot. */
static bool is_of(const char *pattern, const char *name, Part *part)
{
	for (const char *p = name; p; p = (p = strchr(p, '.')) ? p + 1 : NULL)
		if (matches(pattern, p, part))
			return true;
	return false;
}

static const char *filled(Arena *arena, const char *pattern, const Part *part)
{
	Text t;
	text_init(&t, arena);
	for (; *pattern; pattern++)
		if (*pattern != '*')
			text_char(&t, *pattern);
		else
			text_addn(&t, part->begin, part->n), part++;
	return t.data;
}

/* Returns the number of heads that a rule states; 0 after an error. */
static uint32_t heads_of(Ctx *ctx, const NameRule *rule, const Checkpoint *c)
{
	char *end;
	const unsigned long number = strtoul(rule->heads, &end, 10);
	static const char of_keys[] = "_kv"; /* as many as of queries, if they are not said */
	const GgufMeta *m = gguf_meta(&c->gguf, rule->heads);
	if (!m && text_ends(rule->heads, of_keys))
		m = gguf_meta(&c->gguf, arena_strndup(ctx->arena, rule->heads,
						      strlen(rule->heads) - strlen(of_keys)));
	const int64_t n = !*end && end != rule->heads ? (int64_t)number : m ? m->number : 0;
	if (n > 0 && n <= UINT16_MAX)
		return (uint32_t)n;
	if (*end)
		ctx_error(ctx, c->path,
			  "rows of %s are those of heads, and %s in its metadata is no number of "
			  "heads",
			  rule->file, rule->heads);
	else
		ctx_error(ctx, c->path,
			  "rows of %s are those of heads, and %s is no number of "
			  "heads, expected 1 to %d",
			  rule->file, rule->heads, UINT16_MAX);
	return 0;
}

bool names_find(Ctx *ctx, const NameRules *r, const Checkpoint *c, const char *model,
		SavedName *out)
{
	Part part[MOST_STARS + 1];
	const NameRule *found = NULL;
	*out = (SavedName){.name = model};
	for (uint32_t k = 0; k < r->n; k++) {
		if (!is_of(r->rule[k].model, model, part))
			continue;
		const char *name = filled(ctx->arena, r->rule[k].file, part);
		const bool is_there = checkpoint_find(c, name);
		if (found && !is_there)
			continue;
		found = &r->rule[k];
		out->name = name;
		if (is_there)
			break;
	}
	if (found && found->heads)
		out->heads = heads_of(ctx, found, c);
	return !found || !found->heads || out->heads;
}

/* ---- rules in a file ---- */

static uint32_t count_stars(const char *s)
{
	uint32_t n = 0;
	for (; *s; s++)
		n += *s == '*';
	return n;
}

static bool bad_line(Ctx *ctx, const char *path, uint32_t line)
{
	return ctx_error(ctx, arena_printf(ctx->arena, "%s:%u", path, line),
			 "expected NAME = NAME, with as many * (at most %d) on both sides, and "
			 "maybe heads=NUMBER or heads=KEY",
			 MOST_STARS);
}

/* Reads a line, which is changed. *rule stays empty if nothing stands there. */
static bool parse_line(Ctx *ctx, const char *path, uint32_t line, char *text, NameRule *rule)
{
	static const char blanks[] = " \t\r";
	char *rest, *word[4] = {NULL};
	uint32_t n = 0;
	*rule = (NameRule){0};
	text[strcspn(text, "#")] = 0;
	char *equals = strchr(text, '=');
	if (equals) /* a word of its own, also without blanks around it */
		text = arena_printf(ctx->arena, "%.*s = %s", (int)(equals - text), text,
				    equals + 1);
	for (char *w = strtok_r(text, blanks, &rest); w; w = strtok_r(NULL, blanks, &rest)) {
		if (n == 4)
			return bad_line(ctx, path, line);
		word[n++] = w;
	}
	if (!n)
		return true;
	const bool heads = n == 4 && !strncmp(word[3], "heads=", 6) && word[3][6];
	if (n < 3 || strcmp(word[1], "=") || (n == 4 && !heads) ||
	    count_stars(word[0]) != count_stars(word[2]) || count_stars(word[0]) > MOST_STARS)
		return bad_line(ctx, path, line);
	*rule = (NameRule){word[0], word[2], heads ? word[3] + 6 : NULL};
	return true;
}

bool names_parse(Ctx *ctx, const char *path, const char *text, size_t size, NameRules *out)
{
	ARRAY(NameRule) all = {0};
	NameRule rule;
	char *copy = arena_strndup(ctx->arena, text, size), *rest = copy;
	uint32_t number = 0;
	for (char *line; (line = strsep(&rest, "\n"));) {
		TRY(parse_line(ctx, path, ++number, line, &rule));
		if (rule.model)
			array_push(ctx->arena, &all, rule);
	}
	*out = (NameRules){all.data, all.n};
	return true;
}

/* ---- rules that are known ---- */

/* Names of transformers beside those of llama.cpp's converter. Of Llama the converter puts the two
 * halves of each head of queries and keys between each other. */
#define LAYER(model, file) {"model.layers.*." model, "blk.*." file, NULL}
#define LAYER_OF_HEADS(model, file, heads) {"model.layers.*." model, "blk.*." file, heads}
#define DECODER                                                                                    \
	{"model.embed_tokens.weight", "token_embd.weight", NULL},                                  \
		{"model.norm.weight", "output_norm.weight", NULL},                                 \
		{"lm_head.weight", "output.weight", NULL},                                         \
		{"lm_head.weight", "token_embd.weight", NULL},                                     \
		LAYER("input_layernorm.weight", "attn_norm.weight"),                               \
		LAYER("post_attention_layernorm.weight", "ffn_norm.weight"),                       \
		LAYER("mlp.gate_proj.*", "ffn_gate.*"), LAYER("mlp.up_proj.*", "ffn_up.*"),        \
		LAYER("mlp.down_proj.*", "ffn_down.*"), LAYER("self_attn.v_proj.*", "attn_v.*"),   \
		LAYER("self_attn.o_proj.*", "attn_output.*")

static const NameRule llama[] = {
	DECODER,
	LAYER_OF_HEADS("self_attn.q_proj.*", "attn_q.*", "llama.attention.head_count"),
	LAYER_OF_HEADS("self_attn.k_proj.*", "attn_k.*", "llama.attention.head_count_kv"),
};

static const NameRule qwen[] = {
	DECODER,
	LAYER("self_attn.q_proj.*", "attn_q.*"),
	LAYER("self_attn.k_proj.*", "attn_k.*"),
	LAYER("self_attn.q_norm.weight", "attn_q_norm.weight"),
	LAYER("self_attn.k_norm.weight", "attn_k_norm.weight"),
};

NameRules names_of_architecture(const char *architecture)
{
	static const struct {
		const char *name;
		NameRules rules;
	} all[] = {{"llama", {llama, sizeof llama / sizeof *llama}},
		   {"qwen2", {qwen, sizeof qwen / sizeof *qwen}},
		   {"qwen3", {qwen, sizeof qwen / sizeof *qwen}}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (!strcmp(all[k].name, architecture))
			return all[k].rules;
	return (NameRules){0};
}
