/* A relocatable ELF object of 64 bits, little endian, with one read-only section, and one hidden
 * symbol at the section's begin: weights for the linker, without an assembler. The file is: `start`
 * bytes of head, the section, a tail. */
#ifndef WEFT_DRIVER_ELF_ELF_OBJECT_H
#define WEFT_DRIVER_ELF_ELF_OBJECT_H

#include <stdint.h>

/* Returns the size of the file in bytes, with a section of `bytes` bytes that begins at offset
 * `start`: a power of two of at least 64, which is also the section's alignment. symbol: the
 * symbol's name. */
uint64_t elf_object_bytes(uint64_t start, uint64_t bytes, const char *symbol);
/* Fills in the file around the section: head, the `start` bytes before the section, and tail, the
 * elf_object_bytes - start - bytes bytes behind the section. Both must be zero before. triple: the
 * machine, x86-64, AArch64 or RISC-V 64 (else the file names no machine); NULL: this one. */
void elf_object_write(char *head, char *tail, uint64_t start, uint64_t bytes, const char *symbol,
		      const char *triple);

#endif
