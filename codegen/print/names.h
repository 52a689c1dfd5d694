/* Unique C identifiers in nested scopes. */
#ifndef WEFT_CODEGEN_PRINT_NAMES_H
#define WEFT_CODEGEN_PRINT_NAMES_H

#include "base/array.h"
#include "base/intern.h"
#include "base/text.h"

/* A name that was given once. */
typedef struct {
	uint32_t scope;      /* the depth it belongs to, 0: free */
	uint32_t next;       /* name_1 ... with smaller numbers are taken */
	uint32_t of, number; /* it is the one of this number of another name; 0: of none */
} Name;

typedef struct {
	Arena *arena;
	Intern used; /* id -> name[id - 1] */
	ARRAY(Name) name;
	ARRAY(uint32_t) taken; /* ids, those of the innermost scope last */
	uint32_t scope;
} Names;

void names_init(Names *, Arena *);
void names_reserve(Names *, const char *); /* in the outermost scope, for good */
const char *names_add(Names *, const char *stem); /* legal and unused to the scope's end */
void names_push(Names *);
void names_pop(Names *);
/* Text within a comment of C or C++, where nothing ends the comment or hides; a line break becomes
 * `line`. */
void c_comment(Text *, const char *s, const char *line);
/* Why a function of an artifact cannot be called so, NULL when it can: no identifier, a keyword of
 * C or C++, reserved, or a function of the C library. */
const char *c_export_refused(const char *);
const char *c_identifier(Arena *, const char *); /* legal, not a keyword; may collide */

#endif
