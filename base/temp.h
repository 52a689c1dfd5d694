/* The temporary files and folders that this process has made, which its signal handler removes, and
 * the programs that it has started, which the handler ends. There is one list for the whole
 * process, safe for threads. Of more than 256 paths, or programs, at once the rest is not
 * listed. */
#ifndef WEFT_BASE_TEMP_H
#define WEFT_BASE_TEMP_H

#include <sys/types.h>

/* Adds a file or folder to the list, until temp_end is called with the same pointer. The text must
 * stay valid and unchanged until then. Call temp_begin before making the file. */
void temp_begin(const char *path);
/* Takes a path off the list, because the file was removed, or renamed to its final name. The
 * pointer counts, not the text; NULL and unknown pointers are ignored. */
void temp_end(const char *path);
/* Adds a program that this process has started to the list, until temp_end_program. */
void temp_begin_program(pid_t);
/* Takes a program off the list, because it has ended. */
void temp_end_program(pid_t);

/* Removes a file, or a folder with its contents (up to 16 folders deep), listed or not. Symbolic
 * links are removed, not followed. Errors are ignored. Async-signal-safe. */
void temp_remove(const char *path);
/* Does as temp_remove, and also removes the files path.tmp... that a linker which crashed or was
 * ended left beside a path whose name contains ".tmp-". */
void temp_remove_all(const char *path);
/* Ends all programs of the list (SIGTERM, after a second SIGKILL) and removes all files and folders
 * of the list, but not those that were listed by a process from which this one was forked.
 * Async-signal-safe. The process must end next: from now on a thread that calls temp_begin waits
 * for ever. */
void temp_abandon(void);

#endif
