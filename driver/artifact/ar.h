/* Static libraries in the format of System V's ar, with an index of symbols for the linker. */
#ifndef WEFT_DRIVER_ARTIFACT_AR_H
#define WEFT_DRIVER_ARTIFACT_AR_H

#include "base/ctx.h"

typedef struct {
	const char *name; /* of the member in the library; at most 15 characters */
	const void *data; /* an ELF object of 64 bits, little endian */
	size_t size;
} ArMember;

/* Writes a library of n members to `path`, whole or not at all; an existing file is replaced. Dates
 * and owners are 0, so equal members give equal bytes. Returns false after an error: a member is no
 * object with a symbol table, the members have more than about 4 GiB, or the file cannot be
 * written. */
bool ar_write(Ctx *, const char *path, const ArMember *member, uint32_t n);

#endif
