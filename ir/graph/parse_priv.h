/* Private to parse*.c: the reader of the text form. After the first error everything returns false.
 */
#ifndef WEFT_IR_PARSE_PRIV_H
#define WEFT_IR_PARSE_PRIV_H

#include "ir/ops/op.h"

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

/* Record "name:line:col: error: ..." once; false. */
bool parse_fail(Parser *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define parse_fail(...) ctx_false(parse_fail(__VA_ARGS__))
/* "name:line:col" of what is next, in scratch memory. */
const char *parse_position(Parser *);
/* Past blanks, newlines and comments. */
void parse_skip(Parser *);
/* A punctuation or a whole word, if it is next. */
bool parse_accept(Parser *, const char *);
bool parse_expect(Parser *, const char *);
bool parse_at(Parser *, const char *);
bool parse_word_char(char); /* [A-Za-z0-9_.$] */
/* [A-Za-z_][A-Za-z0-9_.$]*; NULL if none is next. In scratch memory. */
const char *parse_word(Parser *);
/* Letters, digits, "_.$" in any order. */
const char *parse_name(Parser *);
bool parse_string(Parser *, const char **); /* interned */
bool parse_i64(Parser *, int64_t *);        /* an optional sign and digits */
/* A symbolic integer up to a comma, bracket, relation or string. Creates the symbols it reads, up
 * to the end of the inputs. */
bool parse_sym(Parser *, Sym *);
bool parse_type(Parser *, TypeId *);
/* A value of the argument's kind; graphs are left to the caller. */
bool parse_attr(Parser *, const Arg *, Attr *);
/* The where clause: with `guards` NULL the ranges of symbols only, else the guards only. */
bool parse_where(Parser *, Graph *guards);

#endif
