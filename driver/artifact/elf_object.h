/* A relocatable ELF object with one read-only section and one symbol: weights for the linker,
 * without an assembler. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H
#define WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H

#include <stdint.h>

/* The size of the file if the section begins at offset `start` (aligned) and has `bytes` bytes. */
uint64_t elf_object_bytes(uint64_t start, uint64_t bytes, const char *symbol);
/* Fills in the file around the section: head, the first `start` bytes; tail, the bytes behind the
 * section. Both must be zeroed. triple: the machine; NULL: this one. */
void elf_object_write(char *head, char *tail, uint64_t start, uint64_t bytes, const char *symbol,
		      const char *triple);

#endif
