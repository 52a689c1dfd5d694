/* A relocatable ELF object of 64 bits with one read-only section, and one hidden symbol at the
 * section's begin: weights for the linker, without an assembler. The file is: `start` bytes of
 * head, the section, a tail. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H
#define WEFT_DRIVER_ARTIFACT_ELF_OBJECT_H

#include <stdint.h>

/* The size of the file in bytes, with a section of `bytes` bytes that begins at offset `start`: a
 * power of two, which is also the section's alignment. */
uint64_t elf_object_bytes(uint64_t start, uint64_t bytes, const char *symbol);
/* Fills in the file around the section: head, the `start` bytes before the section, and tail, the
 * elf_object_bytes - start - bytes bytes behind the section. Both must be zero before. triple: the
 * machine; NULL: this one. */
void elf_object_write(char *head, char *tail, uint64_t start, uint64_t bytes, const char *symbol,
		      const char *triple);

#endif
