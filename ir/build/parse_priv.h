/* Private to parse*.c: the reader of the text form. The functions that read move r->p behind the
 * text that they have read; but for parse_name they skip blanks and comments first. Those that
 * return bool return false after an error (parse_fail), except parse_at and parse_accept, for which
 * false is an answer. Only the first error is recorded. */
#ifndef WEFT_IR_PARSE_PRIV_H
#define WEFT_IR_PARSE_PRIV_H

#include "ir/op/op.h"

typedef struct {
	Ir *ir;
	const char *text, *p; /* p never passes the terminating NUL */
	const char *name;     /* of the text, for messages */
	uint32_t depth;       /* of nested graphs and tuple types */
	bool in_body;         /* the inputs are read, whose sizes are all symbols there are */
	const char *line;     /* start of a line before the last position asked for, and its
	                         number */
	unsigned line_number;
	bool failed;
} Parser;

enum { PARSE_DEPTH = 72 }; /* graph_verify accepts 64 bodies in one another; tuples in them */

/* Records an error with the text that printf would print, at the position of r->p, and sets
 * r->failed; does nothing if r->failed is set. Returns false. */
bool parse_fail(Parser *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define parse_fail(...) ctx_false(parse_fail(__VA_ARGS__))
/* Returns the position of r->p, "name:line:col", in the scratch arena. */
const char *parse_position(Parser *);
/* Moves r->p behind blanks, line breaks and comments (; to the end of the line). */
void parse_skip(Parser *);
/* Whether the punctuation or whole word s is next. Reads nothing but blanks and comments. Returns
 * false also if an error was recorded before. */
bool parse_at(Parser *, const char *s);
/* Whether the punctuation or whole word s is next (parse_at); if so, reads it. */
bool parse_accept(Parser *, const char *s);
/* Reads the punctuation or whole word s. If something else is next, records an error and returns
 * false. */
bool parse_expect(Parser *, const char *s);
/* Whether the character is one of [A-Za-z0-9_.$]. */
bool parse_word_char(char);
/* Reads [A-Za-z_][A-Za-z0-9_.$]* and returns it, in the scratch arena; NULL if no word is next. */
const char *parse_word(Parser *);
/* Reads all of [A-Za-z0-9_.$]* at r->p and returns it, in the scratch arena; it may be "". */
const char *parse_name(Parser *);
/* Reads a string in quotes, on one line, with \\ \" \xNN (NN not 00, in lower case), and interns it
 * in the Ir. Returns false after an error. */
bool parse_string(Parser *, const char **out);
/* Reads an optional minus sign and digits. Returns false after an error, also if the number leaves
 * int64. */
bool parse_i64(Parser *, int64_t *out);
/* Reads a symbolic integer. Its text ends before a comma or ")" that no "(" of the text encloses,
 * before "[", "]", a brace, "=", "!", "<", ">", "~", a string, ";" and the line's end. A symbol
 * that is new becomes a SYMVAR_SIZE in 0..SYM_INF while the header of the outermost graph is read
 * (!in_body); afterwards it is an error. Returns false after an error. */
bool parse_sym(Parser *, Sym *out);
/* Reads a tensor or tuple type; a constant extent below 0 is an error. Returns false after an
 * error. */
bool parse_type(Parser *, TypeId *out);
/* Reads a value of the argument's kind, or "none" (ATTR_none), whatever the kind. Lists are in the
 * scratch arena. A value of an argument that is a tensor, a graph or ignored is an error. Returns
 * false after an error. */
bool parse_attr(Parser *, const Arg *, Attr *out);
/* Reads the list behind the word "where": ranges of symbols and guards ("require a == b"). guards
 * NULL: sets the ranges, and skips the guards. Else adds the guards to that graph as well. Returns
 * false after an error. */
bool parse_where(Parser *, Graph *guards);

#endif
