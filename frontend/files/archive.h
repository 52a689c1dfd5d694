/* Zip archives (.pt2, .npz), for reading. The contents of members that are stored without
 * compression stay in the mapped file. Errors are recorded in the context and begin with the path.
 */
#ifndef WEFT_FRONTEND_FILES_ARCHIVE_H
#define WEFT_FRONTEND_FILES_ARCHIVE_H

#include "base/ctx.h"
#include "base/intern.h"

typedef struct {
	const uint8_t *data;
	size_t size;
} Bytes;

typedef struct {
	const char *name; /* as in the archive */
	uint64_t header;  /* the offset of the local header */
	uint64_t size;    /* uncompressed */
	uint64_t stored;  /* bytes in the file */
	uint32_t crc;
	uint16_t method; /* 0: stored */
	uint16_t flags;
	bool ready; /* `contents` is valid and checked */
	Bytes contents;
} Member;

typedef struct {
	const char *path; /* for messages */
	const uint8_t *data;
	size_t size;
	ARRAY(Member) member; /* in the order of the directory */
	Intern names;         /* id k is member k - 1 */
	const char
		*root;  /* the one folder of all members, with its '/'; "" if there is none */
	bool unchecked; /* checksums are not compared; for fuzzing */
} Archive;

/* Maps an archive until ctx_free, and reads its directory. Copies the path. Sets all of *Archive:
 * set `unchecked` afterwards. Returns false after an error: also if a member's header lies outside
 * of the file. */
bool archive_open(Ctx *, const char *path, Archive *);
/* Reads the directory of an archive whose contents are in memory, and must stay there as long as
 * the context. path: for messages. Returns false after an error. */
bool archive_open_bytes(Ctx *, const char *path, const void *data, size_t size, Archive *);
/* Returns the member of that name below the root folder (Archive.root), or NULL, without an error,
 * if there is none. */
Member *archive_find(const Archive *, const char *name);
/* Reads a member of the archive, compares its checksum, and sets *Bytes to its contents: aligned to
 * 16 bytes, in the mapped file if possible, else in the arena. A second call returns the same
 * bytes. Returns false after an error: the member is damaged, encrypted, or cannot be
 * decompressed. */
bool archive_read(Ctx *, const Archive *, Member *, Bytes *);
/* Reads a member that is text, as archive_read. Text of more than 16 MB that is stored in less than
 * a hundredth of its size is refused before it is inflated: no model's description is like that. */
bool archive_read_text(Ctx *, const Archive *, Member *, Bytes *);

#endif
