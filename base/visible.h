/* Makes text from outside (model files, names) safe to print: nothing in it hides or acts. */
#ifndef WEFT_BASE_VISIBLE_H
#define WEFT_BASE_VISIBLE_H

#include "base/text.h"

/* Appends s for a comment, a message or a terminal. Control characters, and characters of Unicode
 * that reorder or hide text, become "<U+202E>"; bytes that are no UTF-8 become "<0xff>". Characters
 * in `keep` stay. */
void text_visible(Text *, const char *s, const char *keep);
/* Returns the code point at s and sets *length to its bytes; UINT32_MAX and 1 if it is no UTF-8. */
uint32_t text_code_point(const char *s, uint32_t *length);
/* Whether the code point is neither UINT32_MAX nor a control nor a character that reorders or hides
 * text. */
bool text_is_visible(uint32_t code_point);

#endif
