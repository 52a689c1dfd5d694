/* Notes of ELF files: what a library says of itself, read without loading it. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_NOTE_H
#define WEFT_DRIVER_ARTIFACT_ELF_NOTE_H

#include <stdbool.h>

/* The file is of this process's class and byte order and has a note of that name whose content is
 * that text. */
bool elf_has_note(const char *path, const char *name, const char *text);

#endif
