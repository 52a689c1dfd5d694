/* Text of strangers that people and programs read: nothing in it hides or acts. */
#ifndef WEFT_BASE_VISIBLE_H
#define WEFT_BASE_VISIBLE_H

#include "base/text.h"

/* The text of a stranger for a comment, a message or a terminal: control characters and what
 * Unicode uses to reorder or hide text become "<U+202E>", bytes that are no UTF-8 "<0xff>".
 * Characters of `keep` stay. */
void text_visible(Text *, const char *s, const char *keep);
/* The code point at s and its length in bytes; UINT32_MAX and 1 where it is no UTF-8. */
uint32_t text_code_point(const char *s, uint32_t *length);
/* Neither a control nor a character that reorders or hides text, nor UINT32_MAX. */
bool text_is_visible(uint32_t code_point);

#endif
