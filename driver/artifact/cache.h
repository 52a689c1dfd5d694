/* A cache of compiled objects: a folder with a file (entry) for each. The name of an entry is a
 * hash of all that the object was made from. Texts that are returned are in the context's arena. */
#ifndef WEFT_DRIVER_ARTIFACT_CACHE_H
#define WEFT_DRIVER_ARTIFACT_CACHE_H

#include "base/ctx.h"

/* Returns the folder of the cache: $WEFT_CACHE, else weft in $XDG_CACHE_HOME, else ~/.cache/weft.
 * Makes the folder if it is missing. Returns NULL, with a warning, if the folder cannot be made, or
 * belongs to another user or may be written by others; NULL alone if none of the three is set. */
const char *cache_folder(Ctx *);
/* Returns the path that the entry for an object has in the folder, whether or not there is one.
 * argv, text: lists that end with NULL, which together say all that the object is made from:
 * command line, compiler (cache_compiler), sources. The order in the lists counts. */
const char *cache_path(Ctx *, const char *folder, const char *const *argv, const char *const *text);
/* Sets *data and *n to the object of an entry (cache_path), in the arena. Returns false, without an
 * error, if there is no entry, or a damaged one, which is removed. */
bool cache_read(Arena *, const char *entry, const char **data, size_t *n);
/* Puts an object into an entry (cache_path), whole or not at all; replaces an entry that is there.
 * A failure is ignored. */
void cache_write(Ctx *, const char *data, size_t n, const char *entry);
/* Copies the object of an entry (cache_path) to the file `object`. Returns false, without an error,
 * if there is no entry, or a damaged one, which is removed. Returns false after an error if the
 * file cannot be written. */
bool cache_take(Ctx *, const char *entry, const char *object);
/* Puts the file `object` into an entry, as cache_write. */
void cache_keep(Ctx *, const char *object, const char *entry);
/* Returns a text that changes when the compiler cc does: its path (looked up in PATH), size and
 * time of change. Returns cc if no program of that whole name is found, as of "gcc -m32". */
const char *cache_compiler(Ctx *, const char *cc);

#endif
