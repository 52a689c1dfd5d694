/* Notes of ELF files, read without loading the file. */
#ifndef WEFT_DRIVER_ARTIFACT_ELF_NOTE_H
#define WEFT_DRIVER_ARTIFACT_ELF_NOTE_H

#include <stdbool.h>

/* Whether the file has this process's class and byte order, and a note of that name with that
 * text. */
bool elf_has_note(const char *path, const char *name, const char *text);

#endif
