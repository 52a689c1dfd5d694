/* Constants become the weight section: rearranged into the layouts that kernels read, one after the
 * other. */
#ifndef WEFT_DRIVER_ARTIFACT_SECTION_H
#define WEFT_DRIVER_ARTIFACT_SECTION_H

#include "ir/loop/program.h"

typedef enum {
	SECTION_RAW,   /* the section and nothing else */
	SECTION_FILE,  /* behind a page of header that names the model: a weight file */
	SECTION_OBJECT /* an ELF object for `triple` that defines `symbol`, hidden */
} SectionKind;

/* The section in memory of this process, filled by `jobs` threads, read-only, page-aligned, until
 * the context is freed; *out is NULL when there are no weights. False after ctx_error. */
bool section_map(Program *p, uint32_t jobs, const void **out);
/* Of what stands where in the section, as text: equal for programs that can share a file. */
const char *section_hash(Program *p);
/* What a file of the section says, as its kind needs it. */
typedef struct {
	const char *symbol, *triple; /* of an object */
	const char *hash;            /* section_hash, of a file */
} SectionNames;

/* Write the section of p to path, by `jobs` threads (0: one per processor), in parts of a megabyte;
 * the file does not depend on their number. Returns 0 or errno. */
int section_write(Program *p, SectionKind, const SectionNames *, uint32_t jobs, const char *path);

#endif
