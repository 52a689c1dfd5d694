#include "base/visible.h"

#include <string.h>

uint32_t text_code_point(const char *text, uint32_t *length)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = (const unsigned char *)text;
	uint32_t n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
	uint32_t c = n > 1 ? *s & (0xffu >> (n + 1)) : *s;
	*length = 1;
	if (!n)
		return UINT32_MAX;
	for (uint32_t k = 1; k < n; k++) {
		if (s[k] >> 6 != 2)
			return UINT32_MAX;
		c = c << 6 | (s[k] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || c >> 11 == 0x1b)
		return UINT32_MAX;
	*length = n;
	return c;
}

/* Whether c is neither a control nor a format character: direction, joining, invisible sign,
 * tag. */
bool text_is_visible(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} range[] = {
		{0, 0x1f},         {0x7f, 0x9f},      {0xad, 0xad},       {0x600, 0x605},
		{0x61c, 0x61c},    {0x6dd, 0x6dd},    {0x70f, 0x70f},     {0x180e, 0x180e},
		{0x200b, 0x200f},  {0x2028, 0x202e},  {0x2060, 0x206f},   {0xfe00, 0xfe0f},
		{0xfeff, 0xfeff},  {0xfff9, 0xfffb},  {0xfffe, 0xffff},   {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff}, {0x110000, UINT32_MAX},
	};
	for (size_t k = 0; k < sizeof range / sizeof *range; k++)
		if (c >= range[k].first && c <= range[k].last)
			return false;
	return true;
}

void text_visible(Text *t, const char *s, const char *keep)
{
	for (uint32_t n; *s; s += n) {
		uint32_t c = text_code_point(s, &n);
		if (c == UINT32_MAX)
			text_printf(t, "<0x%02x>", (unsigned)(unsigned char)*s);
		else if (!text_is_visible(c) && !(c < 128 && strchr(keep, (int)c)))
			text_printf(t, "<U+%04X>", (unsigned)c);
		else
			text_addn(t, s, n);
	}
}
