/* Private to transform/step: the texts in which a step is described,
 * "adamw(lr=cosine(3e-4, steps=1000), amsgrad=true)". */
#ifndef WEFT_TRANSFORM_STEP_SPEC_H
#define WEFT_TRANSFORM_STEP_SPEC_H

#include "base/ctx.h"

enum { SPEC_MAX_ARGS = 24 };

struct Spec;

/* An argument: a number, or a word with or without arguments of its own. */
typedef struct {
	const char *key; /* NULL: the argument has no key */
	double number;
	const struct Spec *word; /* NULL: it is a number */
} SpecArg;

/* A word and its arguments. */
typedef struct Spec {
	const char *name;
	uint32_t narg;
	SpecArg arg[SPEC_MAX_ARGS];
} Spec;

/* Reads the whole text as a word with arguments. what: the option, for messages. Returns NULL after
 * an error. */
const Spec *spec_read(Ctx *, const char *what, const char *text);
/* Reads the whole text as arguments, each with a key, with commas between: the name of the result
 * is "". Returns NULL after an error. */
Spec *spec_read_args(Ctx *, const char *what, const char *text);
/* Reads the whole text as a number or a word: an argument without key. Returns false after an
 * error. */
bool spec_read_value(Ctx *, const char *what, const char *text, SpecArg *out);

/* Splits "a,b" at commas into texts without blanks around them, in the arena, and sets *n to their
 * number. Empty texts are left out. */
const char *const *spec_list(Arena *, const char *text, size_t length, uint32_t *n);
/* Whether a text is like a pattern, in which * stands for any characters and ? for one. */
bool spec_matches(const char *pattern, const char *text);

#endif
