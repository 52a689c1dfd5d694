/* Reading a text: words, numbers and expressions of infix operators, at a place *s, which moves
 * behind what is read. Blanks are spaces, tabs and line breaks. */
#ifndef WEFT_BASE_SCAN_H
#define WEFT_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Moves *s behind blanks. */
void scan_blanks(const char **s);
/* Moves *s behind blanks, and, if the text goes on with t, behind t. Returns whether it does. */
bool scan_accept(const char **s, const char *t);
/* Returns the length of the word at s: letters and digits of ASCII and _, no digit first. 0: none
 * begins there. */
size_t scan_word(const char *s);
/* Whether the character is a digit. */
bool scan_is_digit(char);
/* Reads the digits at *s. Returns false, with *s unchanged, if their number is above `most`. */
bool scan_number(const char **s, uint64_t most, uint64_t *out);

/* An infix operator. */
typedef struct {
	const char *text; /* NULL ends a table; of texts that begin alike the longer is first */
	int binds;        /* how closely, from 1; 0: no operator, the expression ends before it */
	int op;           /* its name for the reader */
	bool stays;       /* the operand behind it reads its text, too: a sign */
} ScanInfix;

/* A language of expressions. A value has at most SCAN_VALUE bytes. */
enum { SCAN_VALUE = 128 };
typedef struct {
	const ScanInfix *infix;
	size_t size; /* of a value */
	/* Reads an operand, sets *value. Returns false after an error. */
	bool (*operand)(void *reader, void *value);
	/* Makes *left the result of the operator on *left, whose text begins at `from`, and *right.
	 * Returns false after an error. */
	bool (*join)(void *reader, int op, const char *from, void *left, const void *right);
} ScanGrammar;

/* Returns the operator of the table that follows behind blanks, and moves *s behind it; NULL, with
 * *s unchanged, if none follows. */
const ScanInfix *scan_infix(const ScanInfix *table, const char **s);
/* Reads operands with operators between them, and sets *value to what they are together; operators
 * that bind equally closely are joined from the left. s points to the place in the reader, which
 * its functions move. Returns false if one of these did. */
bool scan_expression(const ScanGrammar *, const char **s, void *reader, void *value);

#endif
