/* Makes text from outside (model files, names) safe to print: nothing in it hides or acts. */
#ifndef WEFT_BASE_VISIBLE_H
#define WEFT_BASE_VISIBLE_H

#include "base/text.h"

/* Appends s for a comment, a message or a terminal. A control character, or a character of Unicode
 * that reorders or hides text, becomes its code point in brackets, "<U+202E>"; a byte that is not
 * UTF-8 becomes "<0xff>". The ASCII characters in `keep`, such as "\n\t", stay; keep is not
 * NULL. */
void text_visible(Text *, const char *s, const char *keep);
/* Returns the code point at s and sets *length to the number of its bytes. If the bytes at s are
 * not UTF-8, returns UINT32_MAX and sets *length to 1. s must be NUL-terminated; at its end the
 * code point is 0 and the length 1. */
uint32_t text_code_point(const char *s, uint32_t *length);
/* Whether the code point is neither UINT32_MAX nor a control nor a character that reorders or hides
 * text. */
bool text_is_visible(uint32_t code_point);

#endif
