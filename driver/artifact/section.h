/* The weight section: the constants of a program in the layouts that kernels read, one after the
 * other, at ProgramConst.offset. */
#ifndef WEFT_DRIVER_ARTIFACT_SECTION_H
#define WEFT_DRIVER_ARTIFACT_SECTION_H

#include "ir/loop/program.h"

typedef enum {
	SECTION_RAW,   /* the section alone */
	SECTION_FILE,  /* a weight file: the section behind a page of header that names the model */
	SECTION_OBJECT /* an ELF object for `triple` that defines `symbol`, hidden */
} SectionKind;

/* Pages of a section. data NULL: there are no weights, or somebody else owns the pages. */
typedef struct {
	void *data;
	uint64_t bytes;
} SectionMap;
/* Frees the pages; data becomes NULL. Does nothing if data is NULL. */
void section_unmap(SectionMap *);

/* Makes the section in this process, with `jobs` threads (0: one per processor): read-only pages,
 * valid until ctx_free, which frees them. Contents of constants must be known: with recipes, after
 * recipes_compute. *out is in the arena; its data is NULL if there are no weights. Whoever sets its
 * data to NULL owns the pages. Returns false after an error. */
bool section_map(Program *p, uint32_t jobs, SectionMap **out);
/* Returns a hash of the section's contents and layout, 32 digits in the arena: equal for programs
 * that can use one weight file. Of a constant with a recipe, the recipe is hashed, so its contents
 * need not be known. */
const char *section_hash(Program *p);
/* The names in a file of the section, by kind. */
typedef struct {
	const char *symbol, *triple; /* for SECTION_OBJECT; triple NULL: of this machine */
	const char *hash;            /* for SECTION_FILE: section_hash */
} SectionNames;

/* Writes the section to the file `path`, with `jobs` threads (0: one per processor), on whose
 * number the file does not depend. Contents must be known, as for section_map. names: not read for
 * SECTION_RAW. An existing file is overwritten. A file that cannot be completed is left as it is:
 * the caller removes it. Returns 0, or errno after a failure; records no error. */
int section_write(Program *p, SectionKind, const SectionNames *, uint32_t jobs, const char *path);

#endif
