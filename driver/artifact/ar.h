/* Static libraries in the format of System V's ar, with an index of symbols for the linker. */
#ifndef WEFT_DRIVER_ARTIFACT_AR_H
#define WEFT_DRIVER_ARTIFACT_AR_H

#include "base/ctx.h"

typedef struct {
	const char *name; /* at most 15 characters */
	const void *data; /* an ELF object of 64 bits, little endian */
	size_t size;
} ArMember;

/* Writes a library of n members, whole or not at all. Dates and owners are 0, so equal members give
 * equal bytes. Returns false after an error: a member is no object with symbols, 4 GiB are
 * exceeded, or the file cannot be written. */
bool ar_write(Ctx *, const char *path, const ArMember *member, uint32_t n);

#endif
