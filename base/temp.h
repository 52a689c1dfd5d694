/* The temporary files, folders and programs of this process, which a signal handler removes and
 * ends. There is one list for the whole process. */
#ifndef WEFT_BASE_TEMP_H
#define WEFT_BASE_TEMP_H

#include <sys/types.h>

/* Registers a file or folder that temp_abandon removes, until temp_end is called with the same
 * pointer. The text must stay valid and unchanged until then. Call temp_begin before making the
 * file. */
void temp_begin(const char *path);
/* The file was removed, or renamed to its final name. NULL and unknown pointers are ignored. */
void temp_end(const char *path);
/* Registers a program that temp_abandon ends, until temp_end_program. */
void temp_begin_program(pid_t);
void temp_end_program(pid_t);

/* Removes a file or a folder with its contents. Async-signal-safe. */
void temp_remove(const char *path);
/* The same, and the files that a linker which crashed or was ended left beside it. */
void temp_remove_all(const char *path);
/* Ends the programs and removes the files of this process, but not those of a process from which
 * this one was forked. Async-signal-safe. The process must end next: a thread that makes another
 * temporary file stops. */
void temp_abandon(void);

#endif
