/* Which locale the calling thread has. Texts that are read and printed are those of the C locale,
 * with decimal points and the letters of ASCII, whatever locale the program has set. */
#ifndef WEFT_BASE_C_LOCALE_H
#define WEFT_BASE_C_LOCALE_H

#include <locale.h>

/* Gives the calling thread the C locale; other threads keep theirs. Returns the locale that the
 * thread had, for c_locale_end. Calls may be nested. */
locale_t c_locale_begin(void);
/* Gives the calling thread the locale that c_locale_begin returned. */
void c_locale_end(locale_t);

#endif
