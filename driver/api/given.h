/* Private to the driver: checks of arguments of the API, within the boundary. function: the name of
 * the API's function, with which the message begins. what: the argument, for the message. */
#ifndef WEFT_DRIVER_API_GIVEN_H
#define WEFT_DRIVER_API_GIVEN_H

#include "driver/api/driver_priv.h"

/* Checks that p is not NULL. what: "the tensor". Returns false after an error. */
bool given(Weft *, const char *function, const char *what, const void *p);
/* Checks that a list is not NULL, unless n is 0. what: "the inputs". Returns false after an
 * error. */
bool given_list(Weft *, const char *function, const char *what, const void *list, uint32_t n);
/* Checks that a text is neither NULL nor empty. Returns false after an error. */
bool given_text(Weft *, const char *function, const char *what, const char *text);
/* Checks that a list of n texts is not NULL, unless n is 0, and that none of the texts is NULL or
 * empty. Returns false after an error. */
bool given_texts(Weft *, const char *function, const char *what, const char *const *text,
		 uint32_t n);
/* Checks that a graph is not NULL, belongs to the Weft, is no body of control flow, and is correct
 * (if it was changed, it is verified). Joined graphs pass: see graph_is_one. Returns false after an
 * error. */
bool given_graph(Weft *, const char *function, const WeftGraph *);
/* Does as given_graph, but also accepts a body of control flow, if the node that has the body is
 * still there and the graph around it is correct. Returns false after an error. */
bool given_graph_or_body(Weft *, const char *function, WeftGraph *);

/* Copies options of a caller, a structure that begins with its size in a uint32_t, into ours at
 * `to`, of n bytes. Fields of ours that the caller's size does not cover, and all if `options` is
 * NULL, stay as they are. The caller clears `to` before: a size that stays 0 means NULL options.
 * Checks nothing: call options_fit next, with the first field of `to`. */
void options_copy(void *to, size_t n, const void *options);
/* Checks the size (the first field) of options that options_copy copied into a structure of n
 * bytes: the size is set, and not larger than n, that of a newer version. Options that were NULL
 * pass. Returns false after an error. */
bool options_fit(Weft *, uint32_t size, size_t n);

#endif
