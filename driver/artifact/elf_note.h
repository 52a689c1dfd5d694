/* Notes of ELF files, read without loading the file. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_NOTE_H
#define WEFT_DRIVER_ARTIFACT_ELF_NOTE_H

#include <stdbool.h>

/* Whether the file is an ELF file of this process's class (32 or 64 bits) and byte order, and has a
 * note of that name with that text. Returns false also if the file cannot be read. */
bool elf_has_note(const char *path, const char *name, const char *text);

#endif
