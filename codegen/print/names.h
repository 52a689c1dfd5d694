/* Unique C identifiers in nested scopes. */
#ifndef WEFT_CODEGEN_PRINT_NAMES_H
#define WEFT_CODEGEN_PRINT_NAMES_H

#include "base/array.h"
#include "base/intern.h"
#include "base/text.h"

/* A name that was used. */
typedef struct {
	uint32_t scope;      /* the depth of its scope; 0: free */
	uint32_t next;       /* name_1, name_2, ... with smaller numbers are taken */
	uint32_t of, number; /* the name is `number` of another name; 0: of none */
} Name;

typedef struct {
	Arena *arena;
	Intern used; /* id -> name[id - 1] */
	ARRAY(Name) name;
	ARRAY(uint32_t) taken; /* ids of taken names, innermost scope last */
	uint32_t scope;
} Names;

void names_init(Names *, Arena *);
void names_reserve(Names *, const char *); /* takes a name in the outermost scope */
const char *names_add(Names *, const char *stem); /* returns a legal name that is unused until the
                                                     scope ends */
void names_push(Names *);
void names_pop(Names *);
/* Appends text for a comment of C or C++, so that nothing ends the comment or hides; a line break
 * becomes `line`. */
void c_comment(Text *, const char *s, const char *line);
/* Returns NULL if a function of an artifact may have the name, else the reason why not: no
 * identifier, a keyword of C or C++, reserved, or a function of the C library. */
const char *c_export_refused(const char *);
const char *c_identifier(Arena *, const char *); /* a legal identifier that is no keyword; may
                                                    collide with another */

#endif
