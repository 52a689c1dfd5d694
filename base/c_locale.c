#include "base/c_locale.h"

/* Makes C the locale of the thread. An implementation that must allocate this locale and has no
 * memory keeps the thread's: uselocale of 0 changes nothing. */
locale_t c_locale_begin(void)
{
	return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void c_locale_end(locale_t before)
{
	locale_t c = uselocale(before);
	if (c != before && c != LC_GLOBAL_LOCALE)
		freelocale(c);
}
