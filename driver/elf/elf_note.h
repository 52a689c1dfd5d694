/* Notes of ELF files, read without loading the file. */
#ifndef WEFT_DRIVER_ELF_ELF_NOTE_H
#define WEFT_DRIVER_ELF_ELF_NOTE_H

#include <stdbool.h>

/* Whether the file is an ELF file of 64 bits and of this process's byte order, and has a note of
 * that name whose content is `text`, without a 0 behind it. Only segments of program headers are
 * looked at (PT_NOTE), and of each the first 4,096 bytes. Returns false, without a message, also if
 * the file cannot be read. */
bool elf_has_note(const char *path, const char *name, const char *text);

#endif
