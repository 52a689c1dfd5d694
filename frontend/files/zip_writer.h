/* Zip archives, for writing: members stored without compression, dated 1980-01-01, so that the same
 * contents give the same bytes; zip64 where a size, an offset or a count needs it (APPNOTE 6.3.3,
 * 4.3 and 4.5.3). Order of calls: out_open (out_file.h), zip_begin; for each member zip_add;
 * zip_end, out_commit. Failures to write are reported by out_commit. */
#ifndef WEFT_FRONTEND_FILES_ZIP_WRITER_H
#define WEFT_FRONTEND_FILES_ZIP_WRITER_H

#include "base/text.h"
#include "frontend/files/archive.h"
#include "frontend/files/out_file.h"

typedef struct {
	OutFile *out;
	Text directory; /* in the arena of the context */
	uint64_t at;    /* bytes written */
	uint64_t n;     /* members */
	uint64_t limit; /* values from here on are zip64; tests lower the limit */
} ZipWriter;

/* Begins an archive at the beginning of the opened file. */
void zip_begin(Ctx *, OutFile *, ZipWriter *);
/* Appends a member: the n parts, one after the other. name: UTF-8, at most 65,535 bytes, one that
 * no other member has. Copies the name, and none of the parts. */
void zip_add(ZipWriter *, const char *name, const Bytes *part, uint32_t n);
/* Appends the directory. */
void zip_end(ZipWriter *);

#endif
