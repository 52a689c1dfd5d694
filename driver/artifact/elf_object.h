/* A relocatable ELF object of one read-only section and one symbol: weights for the linker, without
 * an assembler reading hundreds of megabytes first. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H
#define WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H

#include <stdint.h>

/* Size of the file whose section starts at `start` (aligned to it) and has `bytes` bytes. */
uint64_t elf_object_bytes(uint64_t start, uint64_t bytes, const char *symbol);
/* Fill in what stands around the section: the first `start` bytes of the file, and in `tail` all
 * that come behind the section, both zeroed. triple: of the machine it is for; NULL: this one. */
void elf_object_write(char *head, char *tail, uint64_t start, uint64_t bytes, const char *symbol,
		      const char *triple);

#endif
