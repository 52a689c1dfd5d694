/* Unique C identifiers in nested scopes. */
#ifndef WEFT_CODEGEN_NAMES_H
#define WEFT_CODEGEN_NAMES_H

#include "base/array.h"
#include "base/intern.h"

typedef struct {
	Arena *arena;
	Intern used; /* id -> scope depth it belongs to, 0 free */
	ARRAY(uint32_t) depth;
	uint32_t scope;
} Names;

void names_init(Names *, Arena *);
void names_reserve(Names *, const char *); /* in the outermost scope, for good */
const char *names_add(Names *, const char *stem); /* legal and unused from here to the scope's end */
void names_push(Names *);
void names_pop(Names *);
const char *c_identifier(Arena *, const char *); /* legal, not a keyword; may collide */

#endif
