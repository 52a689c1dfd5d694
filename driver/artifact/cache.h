/* A cache of compiled objects: a folder with a file (entry) for each. The name of an entry is a
 * hash of all that the object was made from. Texts that are returned are in the context's arena. */
#ifndef WEFT_DRIVER_ARTIFACT_CACHE_H
#define WEFT_DRIVER_ARTIFACT_CACHE_H

#include "base/ctx.h"

/* The folder of the cache: $WEFT_CACHE, else weft in $XDG_CACHE_HOME, else ~/.cache/weft. It is
 * made if it is missing. Returns NULL, without an error, if it cannot be made. */
const char *cache_folder(Ctx *);
/* The path of the entry for an object. argv, text: lists that end with NULL, which together say all
 * that the object was made from: command line, compiler (cache_compiler), sources. */
const char *cache_path(Ctx *, const char *folder, const char *const *argv, const char *const *text);
/* Copies the object of an entry to the file `object`. Returns false, without an error, if there is
 * no entry, or a damaged one, which is removed. Returns false after an error if the file cannot be
 * written. */
bool cache_take(Ctx *, const char *entry, const char *object);
/* Copies the file `object` into an entry, whole or not at all. A failure is ignored. */
void cache_keep(Ctx *, const char *object, const char *entry);
/* A text that changes when the compiler does: its path (looked up in PATH), size and time of
 * change. Returns cc if it is not found. */
const char *cache_compiler(Ctx *, const char *cc);

#endif
