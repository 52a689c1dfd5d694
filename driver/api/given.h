/* What callers of the API must give. Each is false after one ctx_error, which names the function of
 * the API. */
#ifndef WEFT_DRIVER_API_GIVEN_H
#define WEFT_DRIVER_API_GIVEN_H

#include "driver/api/driver_priv.h"

/* Not NULL. what: "the tensor". */
bool given(Weft *, const char *function, const char *what, const void *p);
/* `n` of something, which may be none. */
bool given_list(Weft *, const char *function, const char *what, const void *list, uint32_t n);
/* A text that is not empty. */
bool given_text(Weft *, const char *function, const char *what, const char *text);
/* `n` such texts. */
bool given_texts(Weft *, const char *function, const char *what, const char *const *text, uint32_t n);
/* A graph of this Weft. */
bool given_graph(Weft *, const char *function, const WeftGraph *);

#endif
