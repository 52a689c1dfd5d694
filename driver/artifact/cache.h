/* A cache of compiled objects, by the contents they were made from. */
#ifndef WEFT_DRIVER_ARTIFACT_CACHE_H
#define WEFT_DRIVER_ARTIFACT_CACHE_H

#include "base/ctx.h"

/* The folder of the cache: $WEFT_CACHE, else weft in $XDG_CACHE_HOME, else ~/.cache/weft. Returns
 * NULL, without an error, if there is none and it cannot be made. */
const char *cache_folder(Ctx *);
/* The path of the entry for an object made from these texts by this command line and compiler. */
const char *cache_path(Ctx *, const char *folder, const char *const *argv, const char *const *text);
/* Copies an entry to `object`. Returns false if there is no entry, or a damaged one, which is
 * removed. */
bool cache_take(Ctx *, const char *entry, const char *object);
/* Adds an object to the cache, whole or not at all. A failure is no error. */
void cache_keep(Ctx *, const char *object, const char *entry);
/* The path of the compiler with its size and time, a part of the key. */
const char *cache_compiler(Ctx *, const char *cc);

#endif
