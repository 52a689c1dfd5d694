/* What a wrong call must have said. */
#include <stdint.h>
#include <string.h>

#include "weft.h"

/* Whether it was taken for right, or said something else than one error; 1 then. */
static inline uint32_t is_wrong(Weft *w, const char *call, bool taken)
{
	bool one = weft_nmessages(w) == 1 && weft_message(w, 0).severity == WEFT_ERROR &&
		   weft_message(w, 0).text[0];
	if (!taken && one && !strstr(weft_message(w, 0).text, "internal error"))
		return 0;
	print_error("%s: %s, %u messages: %s\n", call, taken ? "taken for right" : "refused",
		    weft_nmessages(w), weft_messages(w));
	return 1;
}
