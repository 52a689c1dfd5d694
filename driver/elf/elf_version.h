/* Private to the driver: which shared library defines a symbol, and in which version, for
 * elf_link. */
#ifndef WEFT_DRIVER_ELF_VERSION_H
#define WEFT_DRIVER_ELF_VERSION_H

#include "base/ctx.h"
#include "base/text.h"

typedef struct ElfLibrary ElfLibrary;

typedef struct {
	Arena *arena;
	ElfLibrary *library;
	uint32_t nlibrary;
	uint16_t next;         /* the next version's number in the file */
	const uint64_t *needed; /* after elf_version_table: places of the names of libraries that
	                          are used */
	uint32_t nneeded, nneed; /* how many; of how many there are versions */
} ElfVersions;

/* Reads the symbols of shared libraries, which lie in memory until ctx_free. Returns false after an
 * error: a file cannot be read, or is no shared library for this machine's kind. */
bool elf_versions_read(Ctx *, const char *const *path, uint32_t n, ElfVersions *);
/* Finds the first library that defines the symbol in its default version. Sets *version to the
 * number of that version in the file that is made (1: it has none). Returns false, without an
 * error, if no library does. */
bool elf_version_find(ElfVersions *, const char *name, uint32_t *version);
/* Returns the table of versions (SHT_GNU_verneed) of all symbols that elf_version_find found, and
 * sets *size; adds its names to `names`, the file's, and sets needed. All libraries that are used
 * count. */
const void *elf_version_table(ElfVersions *, Text *names, uint64_t *size);

#endif
