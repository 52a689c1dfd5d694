/* Objects of earlier compilations, by the contents they were made from. */
#ifndef WEFT_DRIVER_ARTIFACT_CACHE_H
#define WEFT_DRIVER_ARTIFACT_CACHE_H

#include "base/ctx.h"

/* The folder: $WEFT_CACHE, else weft in $XDG_CACHE_HOME, else ~/.cache/weft. NULL when there is
 * none or it cannot be made: not an error. */
const char *cache_folder(Ctx *);
/* Path of the entry for the object made from these texts by this command line and compiler. */
const char *cache_path(Ctx *, const char *folder, const char *const *argv, const char *const *text);
/* Copy the object of an entry to `object`. False: there is no entry, or a damaged one, which is
 * removed. */
bool cache_take(Ctx *, const char *entry, const char *object);
/* Make an entry of an object, whole or not at all; that this may fail is no error. */
void cache_keep(Ctx *, const char *object, const char *entry);
/* Path of the compiler binary with its size and time: part of the key. */
const char *cache_compiler(Ctx *, const char *cc);

#endif
