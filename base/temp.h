/* What this process has made and must not leave behind: temporary files and folders, programs it
 * has started. One list for the whole process, so that the handler of a signal can clear up. */
#ifndef WEFT_BASE_TEMP_H
#define WEFT_BASE_TEMP_H

#include <sys/types.h>

/* From now on temp_abandon removes this file or folder, until temp_end with the same pointer; the
 * text must not change or go meanwhile. Call it before making the file. */
void temp_begin(const char *path);
/* The file is gone, or has its final name. NULL and what was never begun are fine. */
void temp_end(const char *path);
/* The same for a program in the background: temp_abandon ends it. */
void temp_begin_program(pid_t);
void temp_end_program(pid_t);

/* rm -rf, async-signal-safe. */
void temp_remove(const char *path);
/* The same, and what a linker that was ended, or crashed, left beside it. */
void temp_remove_all(const char *path);
/* End the programs and remove the files of this process (not of the one it was forked from).
 * Async-signal-safe; the process must end next: a thread that would make another temporary file
 * stops. */
void temp_abandon(void);

#endif
