/* Unique C identifiers in nested scopes, for emitted code; and names and comments that are legal in
 * C. */
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

/* Begins with no name taken, in the outermost scope. */
void names_init(Names *, Arena *);
/* Takes a name in the outermost scope, so that names_add never returns it. Has no effect if the
 * name is taken in any open scope. */
void names_reserve(Names *, const char *);
/* Takes the keywords of C++ and newer C. */
void names_reserve_cpp(Names *);
/* Returns a legal identifier that is not taken in this scope or one around it, and takes it until
 * the scope ends: the stem as c_identifier makes it, or that with a number behind. The result lies
 * in the arena. */
const char *names_add(Names *, const char *stem);
/* Begins a scope inside of the current one. */
void names_push(Names *);
/* Ends the innermost scope: its names are free again. */
void names_pop(Names *);
/* Appends s as the contents of a comment of C or C++: nothing in it ends the comment, and hidden
 * characters are made visible. Each line break becomes the text `line`. */
void c_comment(Text *, const char *s, const char *line);
/* Returns NULL if a function of an artifact may have the name, else the reason why not: the name is
 * no identifier, is a keyword or a usual macro of C or C++, begins with "_", "k_" or "weft_rt_", or
 * is that of a function of the C library of this machine. */
const char *c_export_refused(const char *);
/* Returns s as a legal identifier that is no keyword of C (a keyword of C++ stays) and no name that
 * emitted code calls: characters that an identifier cannot have become "_", leading "_" are
 * dropped, a digit in front gets a "v" before it, such a keyword or name a "_" behind it. ""
 * becomes "v". Different texts may give the same identifier. The result lies in the arena. */
const char *c_identifier(Arena *, const char *s);

#endif
