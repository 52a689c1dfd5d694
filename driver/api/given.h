/* Checks of arguments of the API. Each function returns true, or false after one error that names
 * the function of the API. */
#ifndef WEFT_DRIVER_API_GIVEN_H
#define WEFT_DRIVER_API_GIVEN_H

#include "driver/api/driver_priv.h"

/* p is not NULL. what: "the tensor". */
bool given(Weft *, const char *function, const char *what, const void *p);
/* list is not NULL, unless n is 0. */
bool given_list(Weft *, const char *function, const char *what, const void *list, uint32_t n);
/* text is neither NULL nor empty. */
bool given_text(Weft *, const char *function, const char *what, const char *text);
/* n texts, none of them NULL or empty. */
bool given_texts(Weft *, const char *function, const char *what, const char *const *text, uint32_t n);
/* A graph of this Weft, not NULL, which is no body of control flow, and correct. */
bool given_graph(Weft *, const char *function, const WeftGraph *);
/* The same, or a body of such a graph. */
bool given_graph_or_body(Weft *, const char *function, WeftGraph *);

#endif
